"""Reading replies in which a call stands between two marks, as in `hermes` and `native`.

What is never a call: a mark inside a code span or code block, one in quotation marks, anything inside
reasoning, and a call that the token limit cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from hermes.dialects.base import CallSyntax, FinishReason, Policy
from hermes.dialects.code_spans import WHOLE_FENCE, CodeState
from hermes.json_text import UnreadableError, decode_whole
from hermes.reading import Body, plain_call, read_body
from hermes.record import Final, Malformed, Reply, ToolCall, ToolCalls

THINK_START = "<think>"
THINK_END = "</think>"
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """What stands between think tags at the start of a reply, the rest, and whether the tags are closed."""
    start = text.lstrip()
    if not start.startswith(THINK_START):
        return "", text, True
    reasoning, closing, rest = start[len(THINK_START) :].partition(THINK_END)
    return reasoning.strip(), rest, bool(closing)


@cache
def marks_of(*marks: str) -> re.Pattern[str]:
    """Finds any of `marks`."""
    return re.compile("|".join(map(re.escape, marks)))


@cache
def _body_of(*marks: str) -> re.Pattern[str]:
    """Finds text up to the first of `marks` that is not in a JSON string, or up to a string that does not end.

    Possessive throughout: it never looks back, so it takes time in proportion to what it finds.
    """
    assert all(mark.startswith("<") for mark in marks)
    rests = "|".join(re.escape(mark[1:]) for mark in marks)
    return re.compile(rf'(?:[^"<]++|"(?:[^"\\]++|\\.)*+"|<(?!{rests}))*+', re.DOTALL)


@dataclass
class _Scan:
    """A reply while it is read."""

    text: str
    syntax: CallSyntax
    stop: str
    policy: Policy
    finish_reason: FinishReason
    calls: list[ToolCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    flags: dict[str, None] = field(default_factory=dict)
    reasoning: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    """Text before, between and after calls."""
    _endless_from: int | None = None
    """The quotation mark of a string that nothing ends."""

    @property
    def _marks(self) -> tuple[str, str, str]:
        return self.syntax.opening, self.syntax.closing, self.stop

    def read(self) -> None:
        """Fill in everything that the reply holds."""
        marks = marks_of(*self._marks, THINK_START)
        code, walked, piece, position = CodeState(), 0, 0, 0
        while match := marks.search(self.text, position):
            code.walk(self.text, walked, match.start())
            walked = match.start()
            quoted_until = self._quoted_until(code, match)
            if quoted_until is not None:
                self.flags["markup_in_code_span"] = None
                position = quoted_until
                continue
            if match[0] == THINK_START and not self._is_reasoning(match.end()):
                position = match.end()
                continue
            self.pieces.append(self.text[piece : match.start()])
            piece = position = walked = self._take(match)
            if match[0] == self.stop:
                break
        else:
            self.pieces.append(self.text[piece:])

    def _quoted_until(self, code: CodeState, match: re.Match[str]) -> int | None:
        """Where the code or the quotation ends that the mark stands in; None if it is a mark."""
        if match[0] == self.stop:
            return None
        if code.block:
            return match.end()
        if code.span and (end := code.span_end(self.text, match.end())) is not None:
            return end
        return self._quotation_end(match)

    def _quotation_end(self, match: re.Match[str]) -> int | None:
        """Where quoted markup ends: a mark alone in quotation marks, or one up to its closing mark."""
        before = self.text[match.start() - 1] if match.start() else ""
        after = QUOTES.get(before)
        if after is None:
            return None
        if self.text.startswith(after, match.end()):
            return match.end()
        if match[0] != self.syntax.opening:
            return None
        end = self._body_end(match.end())
        quoted = self.syntax.closing + after
        return end + len(self.syntax.closing) if self.text.startswith(quoted, end) else None

    def _is_reasoning(self, start: int) -> bool:
        """Whether a think tag before `start` opens reasoning: it is closed, or a call could hide in it."""
        return any(self.text.find(mark, start) != -1 for mark in (THINK_END, self.syntax.opening))

    def _take_reasoning(self, start: int) -> int:
        end = self.text.find(THINK_END, start)
        if end == -1:
            self.flags["unclosed_reasoning"] = None
            self.problems.append("the reasoning is not closed")
        thought = self.text[start : end if end != -1 else len(self.text)]
        self.reasoning.append(thought.strip())
        if self.syntax.opening in thought:
            self.flags["call_markup_in_reasoning"] = None
        return end + len(THINK_END) if end != -1 else len(self.text)

    def _take(self, match: re.Match[str]) -> int:
        """Read what the mark stands for; returns where the text goes on."""
        if match[0] == self.syntax.opening:
            return self._take_call(match.end())
        if match[0] == THINK_START:
            return self._take_reasoning(match.end())
        if match[0] == self.syntax.closing:
            self.problems.append("a closing tag without a call")
        elif self.text[match.end() :].strip():
            self.flags["text_after_stop"] = None
        return match.end()

    def _take_call(self, start: int) -> int:
        """Read the call whose body begins at `start`."""
        end = self._body_end(start)
        mark = marks_of(*self._marks).match(self.text, end)
        if mark is None or mark[0] != self.syntax.closing:
            return self._take_unclosed(start, end, is_last=mark is None)
        if end == start:
            self.problems.append("a call is empty")
        else:
            self._add_body(self.text[start:end])
        return mark.end()

    def _add_body(self, body: str) -> None:
        try:
            self._add(read_body(body, self.syntax, self.policy))
        except UnreadableError as error:
            self.problems.append(f"a call cannot be read: {error}")

    def _body_end(self, start: int) -> int:
        """Where the body ends that begins at `start`: at the next mark that is not inside a JSON string."""
        limit = len(self.text)
        if self._endless_from is not None and start > self._endless_from:
            quote = self.text.find('"', start)
            limit = quote if quote != -1 else limit
        found = _body_of(*self._marks).match(self.text, start, limit)
        assert found is not None
        end = found.end()
        if end < len(self.text) and self.text[end] == '"':
            # No string that begins later ends either, so that none is looked through twice.
            self._endless_from = end if self._endless_from is None else min(end, self._endless_from)
            mark = marks_of(*self._marks).search(self.text, start)
            end = mark.start() if mark else len(self.text)
        return end

    def _take_unclosed(self, start: int, end: int, is_last: bool) -> int:
        """A call that nothing closes: whole in lenient reading, unless the token limit cut it."""
        if self.finish_reason == "length" and is_last:
            self.problems.append("a call is cut by the token limit")
        elif self.policy == "strict":
            self.problems.append("a call is not closed")
        else:
            try:
                body = read_body(self.text[start:end], self.syntax, "strict")
                self._add(replace(body, flags=(*body.flags, "unclosed")))
            except UnreadableError as error:
                self.problems.append(f"a call is not closed: {error}")
        return end

    def _add(self, body: Body) -> None:
        self.calls += body.calls
        self.flags |= dict.fromkeys(body.flags)


def _only_call(text: str, syntax: CallSyntax, stop: str) -> ToolCall | None:
    """The call that `text` is, if it is one and nothing else, and nothing about it is odd."""
    if not text.startswith(syntax.opening):
        return None
    end = text.find(syntax.closing)
    if end == -1 or text[end + len(syntax.closing) :] not in ("", stop):
        return None
    return plain_call(text[len(syntax.opening) : end], syntax)


def join_pieces(pieces: list[str]) -> str:
    """The text around calls: white space next to a call is not part of it, and what stood apart is a line each."""
    last = len(pieces) - 1
    trimmed = []
    for number, piece in enumerate(pieces):
        piece = piece.lstrip() if number else piece
        trimmed.append(piece.rstrip() if number < last else piece)
    return "\n".join(piece for piece in trimmed if piece)


def read_reply(
    text: str, syntax: CallSyntax, stop: str, policy: Policy = "strict", finish_reason: FinishReason = "stop"
) -> Reply:
    """Read a reply in which calls stand between `syntax.opening` and `syntax.closing`.

    Calls that follow a broken one are still read; the broken ones are named in `malformed`.
    """
    if finish_reason == "stop" and (call := _only_call(text, syntax, stop)) is not None:
        return ToolCalls((call,), raw=text)
    reasoning, rest, closed = split_reasoning(text)
    flags = {"cut": None} if finish_reason == "length" else {}
    if syntax.opening in reasoning:
        flags["call_markup_in_reasoning"] = None
    if not closed:
        flags["unclosed_reasoning"] = None
        return Malformed("the reasoning is not closed", text, reasoning, tuple(flags))
    scan = _Scan(rest, syntax, stop, policy, finish_reason, flags=flags)
    scan.read()
    reasoning = "\n".join(each for each in (reasoning, *scan.reasoning) if each)
    if scan.calls:
        problems = tuple(scan.problems)
        return ToolCalls(tuple(scan.calls), join_pieces(scan.pieces), problems, text, reasoning, tuple(scan.flags))
    if scan.problems:
        return Malformed(_reason(scan.problems), text, reasoning, tuple(scan.flags))
    said = join_pieces(scan.pieces)
    for body in _untagged(said, syntax) if finish_reason == "stop" else ():
        scan.flags |= dict.fromkeys((*body.flags, "untagged_call"))
        if policy == "lenient":
            return ToolCalls(body.calls, "", (), text, reasoning, tuple(scan.flags))
    return Final(said, text, reasoning, tuple(scan.flags))


def _reason(problems: list[str]) -> str:
    more = len(problems) - _MOST_REASONS
    return "; ".join([*problems[:_MOST_REASONS], *([f"and {more} more"] if more > 0 else [])])


_MOST_REASONS = 5


def _untagged(said: str, syntax: CallSyntax) -> Iterator[Body]:
    """The call that a whole reply is, without its marks: bare, or in a code block."""
    fence = WHOLE_FENCE.fullmatch(said) if said.lstrip().startswith("```") else None
    body = fence[1] if fence else said
    if body.lstrip().startswith("{"):
        try:
            value = decode_whole(body)
            if isinstance(value, dict) and any(key in value for key in (syntax.arguments_key, "parameters")):
                yield read_body(body, syntax, "lenient")
        except UnreadableError:
            return
