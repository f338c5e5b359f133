"""Is this reply the right one? Pure functions over records and parsed replies; none of them raises for what
a model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eval.results import MALFORMED, NO_CALL, SEVERAL_CALLS, UNKNOWN_TOOL, StepKind, StepScore
from hermes.record import JSON, Final, Malformed, Message, Reply, Tool, ToolCall, ToolCalls, loads
from hermes.validation import check_schema, validate_call

JSON_TEXT_ARGUMENTS = frozenset({"data", "parameters", "input"})
"""Arguments of the phone's tools that are strings holding JSON."""
MAX_DEPTH = 100
"""Levels of nesting in a call's arguments."""


def json_equal(left: JSON, right: JSON) -> bool:
    """Whether two JSON values are the same: 1 is 1.0, but true is not 1; the order of keys does not count."""
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pending.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif isinstance(a, dict | list) or isinstance(b, dict | list) or a != b:
            return False
    return True


def same_call(expected: ToolCall, actual: ToolCall) -> bool:
    """Whether two calls do the same: the same tool with the same arguments.

    `data`, `parameters` and `input` are strings that hold JSON: where the expected string parses, the two
    are compared as JSON. An object in place of such a string is a different call; the phone refuses it.
    """
    if expected.name != actual.name or expected.arguments.keys() != actual.arguments.keys():
        return False
    return all(_same_argument(name, value, actual.arguments[name]) for name, value in expected.arguments.items())


def _same_argument(name: str, expected: JSON, actual: JSON) -> bool:
    if name in JSON_TEXT_ARGUMENTS and isinstance(expected, str) and isinstance(actual, str):
        try:
            wanted = loads(expected)
        except (ValueError, RecursionError):
            return expected == actual
        try:
            return json_equal(wanted, loads(actual))
        except (ValueError, RecursionError):
            return False
    return json_equal(expected, actual)


def same_calls(expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> bool:
    """`same_call` for each of as many calls, in order."""
    return len(expected) == len(actual) and all(map(same_call, expected, actual))


def normalise(text: str) -> str:
    """Text with white space collapsed and case folded."""
    return " ".join(text.split()).casefold()


def has_fact(text: str, fact: str) -> bool:
    """Whether `text` contains `fact`, ignoring case and white space.

    A number must stand alone, sign and all: `7.7` is not found in `17.7`, `-7.7` or `7.77`, nor `7` in `7.7`.
    A word must be whole: `m` is not found in `cm`.
    """
    wanted = normalise(fact)
    before = r"(?<![\d−-])(?<!\d[.,])" if wanted[:1].isdigit() else r"(?<!\w)" if wanted[:1].isalpha() else ""
    after = r"(?!\d)(?![.,]\d)" if wanted[-1:].isdigit() else r"(?!\w)" if wanted[-1:].isalpha() else ""
    return re.search(before + re.escape(wanted) + after, normalise(text)) is not None


def same_wording(expected: str, actual: str) -> bool:
    """Whether two texts are the same but for case, white space and a final period."""
    return normalise(expected).rstrip(".") == normalise(actual).rstrip(".")


def step_kind(expected: Message, before: Iterable[Message]) -> StepKind:
    """What a recorded assistant turn asks of the model; text with no call before it is an abstention."""
    if expected.calls:
        return "load" if expected.calls[0].name == "load_skill" else "run"
    return "answer" if any(message.calls for message in before) else "abstain"


def refuse_depth(reply: Reply) -> Reply:
    """The reply itself; one whose calls nest deeper than `MAX_DEPTH` as malformed, since not every reader of JSON
    can read it again.
    """
    if isinstance(reply, ToolCalls) and any(_depth_exceeds(dict(call.arguments), MAX_DEPTH) for call in reply.calls):
        return Malformed(f"arguments nest deeper than {MAX_DEPTH} levels", reply.raw, reply.reasoning, reply.flags)
    return reply


def _depth_exceeds(value: JSON, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [value for values in inner for value in values]
    return any(isinstance(each, dict | list) for each in level)


def score_step(
    expected: Message,
    reply: Reply,
    *,
    kind: StepKind | None = None,
    tools: Sequence[Tool] = (),
    facts: Sequence[str] = (),
    cut: bool = False,
) -> StepScore:
    """Compare a reply with the recorded assistant turn.

    Args:
        expected: The recorded turn.
        reply: What the model wrote, parsed.
        kind: What the turn asks for; by default a call's own kind, `answer` where there are facts, else `abstain`.
        tools: The tools on offer. Without them every tool counts as known and no schema is checked.
        facts: What a final answer must contain.
        cut: The reply reached the limit of new tokens. It never ended, so it is not right, whatever it holds.
    """
    if kind is None:
        kind = "answer" if facts and not expected.calls else step_kind(expected, ())
    abstained = isinstance(reply, Final)
    if not expected.calls:
        text = reply.text if isinstance(reply, Final) and not cut and reply.text.strip() else None
        told = text is not None and all(has_fact(text, fact) for fact in facts)
        exact = text is not None and same_wording(expected.content, text)
        fine = text is not None
        return StepScore(kind, fine, fine, fine, fine, fine, exact, abstained, told)

    reply = refuse_depth(reply)
    calls = reply.calls if isinstance(reply, ToolCalls) else ()
    well_formed = isinstance(reply, ToolCalls) and not reply.malformed and not cut
    known = well_formed and (not tools or {call.name for call in calls} <= {tool.name for tool in tools})
    right = known and [call.name for call in calls] == [call.name for call in expected.calls]
    required = right and not any(validate_call(call, _names_only(tools)) for call in calls if tools)
    valid = required and not any(validate_call(call, tools) for call in calls if tools)
    exact = valid and same_calls(expected.calls, calls)
    return StepScore(kind, well_formed, known, right, required, valid, exact, abstained, False)


def _names_only(tools: Iterable[Tool]) -> list[Tool]:
    """The tools with schemas that say which arguments there must and may be, but not of which type.

    A schema that is not valid stays, since no call fits it.
    """
    return [tool if check_schema(tool) else replace(tool, parameters=_name_rules(tool.parameters)) for tool in tools]


def _name_rules(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    rules = {key: schema[key] for key in ("required", "dependentRequired") if key in schema}
    if schema.get("additionalProperties") is False:
        known = {key: dict.fromkeys(schema.get(key, ()), True) for key in ("properties", "patternProperties")}
        rules |= {**known, "additionalProperties": False}
    return rules


def called_tool(reply: Reply, tools: Sequence[Tool] = ()) -> str:
    """The column of the confusion matrix that a reply falls into."""
    if isinstance(reply, Final):
        return NO_CALL
    if not isinstance(reply, ToolCalls) or reply.malformed:
        return MALFORMED
    if len(reply.calls) > 1:
        return SEVERAL_CALLS
    name = reply.calls[0].name
    return name if not tools or any(tool.name == name for tool in tools) else UNKNOWN_TOOL
