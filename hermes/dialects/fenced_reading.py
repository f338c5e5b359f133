"""Reading replies of the `fenced` dialect: exactly one fenced json block, a call or the final answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from hermes.control import IM_END
from hermes.dialects.base import CallSyntax, FinishReason, Policy
from hermes.dialects.tagged import join_pieces, split_reasoning
from hermes.json_text import UnreadableError, decode, skip_space
from hermes.reading import as_body, read_body
from hermes.record import Final, Malformed, Reply, ToolCall, ToolCalls
from hermes.repair import readings

FINAL = "final"
SYNTAX = CallSyntax("```json\n", "\n```", "tool", "arguments", parallel=False, answer=(FINAL, "text"))
FINAL_TEXT = re.compile(
    r'[ \t\n]*```json[ \t]*\r?\n[ \t\r\n]*\{[ \t\r\n]*"tool"[ \t\r\n]*:[ \t\r\n]*"final"[ \t\r\n]*,'
    r'[ \t\r\n]*"text"[ \t\r\n]*:[ \t\r\n]*"'
)
"""The beginning of a reply that is an answer, up to its text."""

_STOP = re.escape(IM_END)
_MARK = re.compile(rf"{_STOP}|^[ \t]*`{{3,}}[ \t]*([^`\n<]*)$", re.MULTILINE)
"""The end of the reply, or a line that opens a block of some language."""
_PROBES = {
    "strict": json.JSONDecoder(parse_int=str, parse_float=str),
    "lenient": json.JSONDecoder(parse_int=str, parse_float=str, strict=False),
}
"""They find where a value ends, whatever it is."""
_END_OF_OTHER = re.compile(rf"{_STOP}|^[ \t]*`{{3,}}(?=[ \t\r]*(?:$|{_STOP}))", re.MULTILINE)
_END_OF_JSON = re.compile(rf"{_STOP}|^[ \t]*`{{3,}}|(?<=\}})`{{3,}}(?=[ \t\r]*(?:$|{_STOP}))", re.MULTILINE)
_FENCE = re.compile("`{3,}")
_BARE_FENCE = re.compile(r"\s*```[A-Za-z_]*\n(.*?)\n?```\s*", re.DOTALL)


@dataclass(frozen=True)
class _Found:
    """What a reply says: an answer, or a call; and what was odd about it."""

    answer: str = ""
    calls: tuple[ToolCall, ...] = ()
    flags: tuple[str, ...] = ()


def read_fenced(text: str, policy: Policy, finish_reason: FinishReason) -> Reply:
    """Read a reply.

    Text without a block is an answer. A fence of another language is text, and so is what stands in it.
    """
    reasoning, rest, closed = split_reasoning(text)
    flags = ["cut"] if finish_reason == "length" else []
    if not closed:
        return Malformed("the reasoning is not closed", text, reasoning, (*flags, "unclosed_reasoning"))
    scan = _scan(rest, policy)
    said = join_pieces(scan.pieces) if scan.blocks else ""
    flags += ["text_after_stop"] if scan.after_stop.strip() else []
    flags += ["text_around"] if said.strip() else []
    try:
        if scan.blocks:
            found = _in_block(scan.blocks, policy, finish_reason)
        else:
            found = _without_block("".join(scan.pieces), policy, finish_reason)
    except UnreadableError as error:
        return Malformed(str(error), text, reasoning, tuple(flags))
    if found.calls:
        return ToolCalls(found.calls, said, (), text, reasoning, (*flags, *found.flags))
    return Final(found.answer, text, reasoning, (*flags, *found.flags))


@dataclass
class _Scan:
    """A reply taken apart."""

    blocks: list[tuple[str, bool]] = field(default_factory=list)
    """What stands in each json block, and whether something closes it."""
    pieces: list[str] = field(default_factory=list)
    """Text before, between and after the blocks."""
    after_stop: str = ""


def _scan(text: str, policy: Policy) -> _Scan:
    """Go through a reply once, from fence to fence."""
    scan, piece, position = _Scan(), 0, 0
    while match := _MARK.search(text, position):
        if match[0] == IM_END:
            scan.pieces.append(text[piece : match.start()])
            scan.after_stop = text[match.end() :]
            return scan
        if match[1].strip().lower() != "json":
            end = _END_OF_OTHER.search(text, match.end())
            position = len(text) if end is None else end.start() if end[0] == IM_END else end.end()
            continue
        scan.pieces.append(text[piece : match.start()])
        body_end, piece = _end_of_block(text, match.end(), policy)
        scan.blocks.append((text[match.end() : body_end], piece > body_end))
        position = piece
    scan.pieces.append(text[piece:])
    return scan


def _end_of_block(text: str, start: int, policy: Policy) -> tuple[int, int]:
    """Where the text of a json block ends, and where the block does; the same where nothing closes it.

    A fence inside a string of the block's object does not close it.
    """
    end = _end_of_value(text, start, policy)
    closing = skip_space(text, end)
    if end > start and (fence := _FENCE.match(text, closing)):
        return closing, fence.end()
    match = _END_OF_JSON.search(text, end)
    if match is None:
        return len(text), len(text)
    return match.start(), match.start() if match[0] == IM_END else match.end()


def _end_of_value(text: str, start: int, policy: Policy) -> int:
    """Where the JSON value that begins at `start` ends; `start` if there is none."""
    try:
        return _PROBES[policy].raw_decode(text, skip_space(text, start))[1]
    except (ValueError, RecursionError):
        return start


def _in_block(blocks: list[tuple[str, bool]], policy: Policy, finish_reason: FinishReason) -> _Found:
    """What the one block of a reply says.

    Raises:
        UnreadableError: it breaks the protocol; says how.
    """
    if len(blocks) > 1:
        raise UnreadableError(f"expected exactly one json block, got {len(blocks)}")
    ((body, closed),) = blocks
    if closed:
        return _read_object(body, policy)
    if finish_reason == "length":
        raise UnreadableError("the json block is cut by the token limit")
    if policy == "strict":
        raise UnreadableError("the json block is not closed")
    found = _read_object(body, "strict")
    return replace(found, flags=(*found.flags, "unclosed"))


def _without_block(said: str, policy: Policy, finish_reason: FinishReason) -> _Found:
    """What a reply without a block says; in lenient reading it may be the object alone, or in a bare fence."""
    flags = ["no_block"] if policy == "strict" else []
    fence = _BARE_FENCE.fullmatch(said) if said.lstrip().startswith("```") else None
    body = fence[1] if fence else said
    if finish_reason == "stop" and body.lstrip().startswith("{"):
        try:
            found = _read_object(body, "strict")
        except UnreadableError:
            return _Found(said, flags=tuple(flags))
        if policy == "lenient":
            return replace(found, flags=(*found.flags, "untagged_call"))
        flags.append("untagged_call")
    return _Found(said, flags=tuple(flags))


def _read_object(text: str, policy: Policy) -> _Found:
    """What the object in a block says.

    Raises:
        UnreadableError: it breaks the protocol; says how.
    """
    try:
        return _read_strictly(text)
    except UnreadableError as error:
        if policy == "strict":
            raise
        return _repaired_answer(text) or _repaired_call(text, error)


def _read_strictly(text: str) -> _Found:
    try:
        value, end = decode(text)
        if skip_space(text, end) != len(text):
            raise UnreadableError("more follows after the object")
    except UnreadableError as error:
        raise UnreadableError(f"the json block did not parse: {error}") from None
    if not isinstance(value, dict) or "tool" not in value:
        raise UnreadableError('the json block has no "tool" key')
    name = value["tool"]
    if name == FINAL:
        if not isinstance(value.get("text"), str):
            raise UnreadableError('a final block needs a "text" string')
        return _Found(value["text"])
    if not isinstance(value.get("arguments"), dict):
        raise UnreadableError(f'tool {name!r} needs an "arguments" object')
    body = as_body([value], SYNTAX, "strict", text)
    return _Found("", body.calls, body.flags)


def _repaired_call(text: str, problem: UnreadableError) -> _Found:
    """The call in a block that strict reading refuses.

    Raises:
        UnreadableError: `problem`, if there is not exactly one.
    """
    try:
        body = read_body(text, SYNTAX, "lenient")
    except UnreadableError:
        raise problem from None
    if len(body.calls) != 1 or body.calls[0].name == FINAL:
        raise problem
    return _Found("", body.calls, body.flags)


def _repaired_answer(text: str) -> _Found | None:
    """The answer in a block that strict reading refuses, if it has one meaning."""
    for values, flags in readings(text):
        value = values[0] if len(values) == 1 else None
        if isinstance(value, dict) and value.get("tool") == FINAL and isinstance(answer := value.get("text"), str):
            return _Found(answer, (), tuple(flags))
    return None
