"""Reading replies of the `json` dialect: prose, or one bare JSON object that is a call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hermes.control import IM_END
from hermes.dialects.base import CallSyntax, FinishReason, Policy
from hermes.dialects.code_spans import WHOLE_FENCE, CodeState
from hermes.dialects.tagged import QUOTES, join_pieces, split_reasoning
from hermes.json_text import UnreadableError, decode
from hermes.reading import Body, read_body
from hermes.record import JSON, Final, Malformed, Reply, ToolCalls

SYNTAX = CallSyntax("", "", "tool", "args", parallel=False)
ONE_CALL = "a reply of the json dialect is prose or one call"


@dataclass(frozen=True)
class _Found:
    """The calls in a reply, what was odd about them, and the text around the first."""

    body: Body
    text: str = ""


def read_bare(text: str, policy: Policy, finish_reason: FinishReason) -> Reply:
    """Read a reply.

    Strict: one that begins with a brace is a call, JSON that is none, or malformed; any other is prose.
    Lenient: prose may also have a call inside it, outside of code.
    """
    reasoning, rest, closed = split_reasoning(text)
    flags = ["cut"] if finish_reason == "length" else []
    if not closed:
        return Malformed("the reasoning is not closed", text, reasoning, (*flags, "unclosed_reasoning"))
    value, end = _leading_object(rest)
    said, _, after_stop = rest[end:].partition(IM_END)
    said = rest[:end] + said
    if after_stop.strip():
        flags.append("text_after_stop")
    try:
        found = _find(said, value, said[end:].strip(), policy, finish_reason)
    except UnreadableError as error:
        return Malformed(str(error), text, reasoning, tuple(flags))
    if found is not None:
        calls, more = found.body.calls[:1], found.body.calls[1:]
        problems = (f"{ONE_CALL}, so that {len(more)} more are left out",) if more else ()
        return ToolCalls(calls, found.text, problems, text, reasoning, (*flags, *found.body.flags))
    if _inside(said) is not None:
        flags.append("untagged_call")
    return Final(said, text, reasoning, tuple(flags))


def _leading_object(text: str) -> tuple[Mapping[str, JSON] | None, int]:
    """The object that a reply begins with and where it ends; None and 0 without one that can be read."""
    start = len(text) - len(text.lstrip())
    if text.startswith("{", start):
        try:
            return decode(text, start)
        except UnreadableError:
            pass
    return None, 0


def _find(
    said: str, value: Mapping[str, JSON] | None, after: str, policy: Policy, finish_reason: FinishReason
) -> _Found | None:
    """The call in a reply; None if there is none.

    Args:
        said: the reply.
        value: the object that it begins with, if it does.
        after: what follows that object; all of the reply without one.
        policy: lenient looks for calls in prose as well.
        finish_reason: what the token limit cut is not repaired.

    Raises:
        UnreadableError: the reply begins as a call and is none; says why.
    """
    body = said.strip()
    begins, cut = body.startswith("{"), value is None and finish_reason == "length"
    problem: UnreadableError | None = None
    if begins or (policy == "lenient" and body.startswith("[")):
        may_repair = not cut and (value is None or after in ("", "}"))
        try:
            return _Found(read_body(body, SYNTAX, policy if may_repair else "strict"))
        except UnreadableError as error:
            problem = error
    if policy == "lenient" and (found := _inside(said)) is not None:
        return found
    is_other_json = value is not None and SYNTAX.name_key not in value
    if problem is None or is_other_json or not begins:
        return None
    raise UnreadableError("the call is cut by the token limit") if cut else problem


def _inside(said: str) -> _Found | None:
    """The calls that stand in prose, or in a code block that is the whole reply."""
    fence = WHOLE_FENCE.fullmatch(said) if said.lstrip().startswith("```") else None
    if fence is not None:
        body = _call_of(fence[1])
        return None if body is None else _Found(replace(body, flags=(*body.flags, "text_around")))
    places = [(start, end, body) for start, end in _objects(said) if (body := _call_of(said[start:end])) is not None]
    if not places:
        return None
    start, end, first = places[0]
    calls = tuple(call for *_, body in places for call in body.calls)
    return _Found(Body(calls, (*first.flags, "text_around")), join_pieces([said[:start], said[end:]]))


def _call_of(text: str) -> Body | None:
    try:
        return read_body(text, SYNTAX, "lenient")
    except UnreadableError:
        return None


_PROBE = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_FAR = 4096


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Where JSON objects stand that have a "tool" key, in no code and in no other object.

    What stands in an object that breaks off is not tried: it is a part of something that was not finished.
    """
    code, gone, walked, position = CodeState(), 0, 0, 0
    while (start := text.find("{", position)) != -1:
        code.walk(text, walked, start)
        if start > _FAR:
            # An error costs as much as there is text before it: Python counts the lines.
            text, gone, start = text[start:], gone + start, 0
        position, walked = start + 1, start
        if code.span and (span_end := code.span_end(text, start)) is not None:
            position = span_end
            continue
        if code.block:
            continue
        try:
            value, end = _PROBE.raw_decode(text, start)
        except json.JSONDecodeError as error:
            position = max(position, error.pos)
            continue
        except RecursionError:
            return
        position = walked = end
        before = QUOTES.get(text[start - 1]) if start else None
        if SYNTAX.name_key in value and not (before and text.startswith(before, end)):
            yield gone + start, gone + end
