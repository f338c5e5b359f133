"""Checks of calls and conversations against the tools they name."""

from __future__ import annotations

from collections.abc import Iterable

from jsonschema import Draft202012Validator

from hermes.control import MARKERS
from hermes.record import Conversation, Tool, ToolCall


def validate(call: ToolCall, tool: Tool) -> list[str]:
    """What is wrong with the arguments of `call`, each problem with its JSON path; empty if nothing."""
    validator = Draft202012Validator(dict(tool.parameters))
    errors = sorted(validator.iter_errors(dict(call.arguments)), key=lambda error: (error.json_path, error.message))
    return [f"{error.json_path}: {error.message}" for error in errors]


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


def _follows_call(conversation: Conversation, index: int) -> bool:
    """Whether the turns just before `index` are results that follow an assistant turn with calls."""
    for message in reversed(conversation.messages[:index]):
        if message.role != "tool":
            return bool(message.calls)
    return False
