"""Checks of calls and conversations against the tools they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from hermes.control import MARKERS
from hermes.dialects.base import Dialect
from hermes.record import Conversation, Malformed, Tool, ToolCall, ToolCalls, dumps


def validate(call: ToolCall, tool: Tool) -> list[str]:
    """What is wrong with the arguments of `call`, each problem with its JSON path; empty if nothing."""
    problems = check_schema(tool)
    if problems:
        return problems
    # An empty registry: a schema that refers elsewhere is refused, never fetched.
    validator = Draft202012Validator(dict(tool.parameters), registry=Registry())
    try:
        errors = sorted(validator.iter_errors(dict(call.arguments)), key=lambda each: (each.json_path, each.message))
    except Unresolvable as error:
        return [f"$: the schema of {tool.name!r} refers to {error.ref!r}, which is not in it"]
    except RecursionError:
        return [f"$: nested too deeply to be checked, or the schema of {tool.name!r} refers to itself"]
    except (ValueError, TypeError, ArithmeticError, AttributeError, re.error) as error:
        return [f"$: cannot be checked against the schema of {tool.name!r}: {error}"]
    return [f"{error.json_path}: {error.message}" for error in errors]


def check_schema(tool: Tool) -> list[str]:
    """What is wrong with the parameters of `tool` as a JSON Schema; empty if nothing."""
    try:
        problem = _schema_problem(dumps(dict(tool.parameters)))
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"$: {error}"
    return [f"$: the schema of {tool.name!r} is wrong at {problem}"] if problem else []


@lru_cache(maxsize=1024)
def _schema_problem(parameters: str) -> str | None:
    try:
        Draft202012Validator.check_schema(json.loads(parameters))
    except SchemaError as error:
        return f"{error.json_path}: {error.message}"
    return None


def validate_call(call: ToolCall, tools: Iterable[Tool]) -> list[str]:
    """As `validate`, for a call of any of `tools`; an unknown tool is a problem."""
    by_name = {tool.name: tool for tool in tools}
    if call.name not in by_name:
        return [f"$: unknown tool {call.name!r}"]
    return validate(call, by_name[call.name])


def validate_conversation(conversation: Conversation) -> list[str]:
    """What keeps a conversation from being trained on; empty if nothing.

    Checked: the turn order, calls against the tools on offer, and that no assistant text holds a marker.
    """
    problems: list[str] = []
    messages = conversation.messages
    problems += [problem for tool in conversation.tools for problem in check_schema(tool)]
    names = [tool.name for tool in conversation.tools]
    problems += [f"tools: two are called {name!r}" for name in sorted({n for n in names if names.count(n) > 1})]
    if not any(message.role == "assistant" for message in messages):
        problems.append("messages: no assistant turn to learn from")
    if not any(message.role == "user" for message in messages):
        problems.append("messages: no user turn")
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message.role == "system" and index:
            problems.append(f"{where}: a system turn must come first")
        if message.role == "tool" and not _follows_call(conversation, index):
            problems.append(f"{where}: a tool result without a call before it")
        if message.role != "assistant":
            continue
        if not message.content and not message.calls:
            problems.append(f"{where}: an assistant turn with neither text nor calls")
        problems += [f"{where}: assistant text holds {m}" for m in MARKERS if m in message.content]
        for number, call in enumerate(message.calls):
            problems += [f"{where}.calls[{number}] {p}" for p in validate_call(call, conversation.tools)]
    return problems


def unreadable_turns(conversation: Conversation, dialect: Dialect) -> list[str]:
    """Assistant turns that `dialect` does not read back as they are: training on them teaches what no parser takes.

    An open code block before a call, or a text that looks like a call, are such.
    """
    problems = []
    for index, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        try:
            reply = dialect.parse(dialect.format_reply(message), conversation.tools)
        except ValueError as error:
            problems.append(f"messages[{index}]: {error}")
            continue
        calls = reply.calls if isinstance(reply, ToolCalls) else ()
        if calls != message.calls or isinstance(reply, Malformed):
            read = reply.reason if isinstance(reply, Malformed) else f"{len(calls)} call(s)"
            problems.append(f"messages[{index}]: read back by the {dialect.name} dialect, this turn is {read}")
    return problems


def _follows_call(conversation: Conversation, index: int) -> bool:
    """Whether the turns just before `index` are results that follow an assistant turn with calls."""
    for message in reversed(conversation.messages[:index]):
        if message.role != "tool":
            return bool(message.calls)
    return False
