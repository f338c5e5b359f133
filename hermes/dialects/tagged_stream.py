"""Reading a tagged reply while it is written.

What is certain is told at once. Where that takes knowledge of what follows (a mark in an open code span or after a
quotation mark, a call that is no plain JSON), the rest is held until `close`. The reply itself is always
that of `read_reply` on the whole text.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable
from typing import Literal

from hermes.dialects.base import (
    ArgumentsDelta,
    CallEnd,
    CallFailed,
    CallStart,
    CallSyntax,
    Event,
    FinishReason,
    Policy,
    ReasoningDelta,
    StreamParser,
    TextDelta,
)
from hermes.dialects.call_stream import CallReader
from hermes.dialects.code_spans import CodeState
from hermes.dialects.tagged import QUOTES, THINK_END, THINK_START, marks_of, read_reply
from hermes.json_text import UnreadableError, decode_whole
from hermes.reading import as_body
from hermes.record import Malformed, Reply, Tool, ToolCall, ToolCalls, dumps

_Mode = Literal["start", "reasoning", "text", "call", "held"]
_HELD = "`" + "".join(char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace())
"""At the end of what is known: white space may stand next to a call, a run of backticks may go on."""


def _certain(text: str, marks: tuple[str, ...]) -> int:
    """How much of `text` is text whatever follows: no beginning of a mark, nothing in `_HELD` before it."""
    longest = max(map(len, marks)) - 1
    end = len(text)
    start = text.rfind("<", max(0, end - longest)) if longest else -1
    while start != -1:
        if any(mark.startswith(text[start:]) for mark in marks):
            end = start
        start = text.rfind("<", max(0, len(text) - longest), start)
    return len(text[:end].rstrip(_HELD))


class TaggedStream:
    """The stream parser of a dialect whose calls stand between two marks."""

    def __init__(self, syntax: CallSyntax, stop: str, policy: Policy = "strict") -> None:
        self._syntax, self._stop, self._policy = syntax, stop, policy
        self._marks = (syntax.opening, syntax.closing, stop, THINK_START)
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._received: list[str] = []
        self._pending = ""
        self._mode: _Mode = "start"
        self._code = CodeState()
        self._sent = {TextDelta: "", ReasoningDelta: ""}
        self._last = ""
        """The character before `_pending`."""
        self._after_call = False
        """Whether no text has come since the last call."""
        self._call: CallReader | None = None
        self._ended: list[ToolCall] = []
        self._reply: Reply | None = None

    @property
    def reply(self) -> Reply:
        """The whole reply as `parse` reads it; only after `close`."""
        if self._reply is None:
            raise RuntimeError("the reply is known after close()")
        return self._reply

    def feed(self, chunk: str | bytes) -> list[Event]:
        """Take more of the reply; returns what is now certain."""
        if self._reply is not None:
            raise RuntimeError("the reply is closed")
        text = self._bytes.decode(chunk) if isinstance(chunk, bytes) else chunk
        self._received.append(text)
        events: list[Event] = []
        if self._mode != "held":
            self._pending += text
            while self._step(events):
                pass
        return _merged(events)

    def close(self, finish_reason: FinishReason = "stop") -> list[Event]:
        """The reply has ended; returns what was held back."""
        events = self.feed(self._bytes.decode(b"", final=True))
        text = "".join(self._received)
        self._reply = reply = read_reply(text, self._syntax, self._stop, self._policy, finish_reason)
        self._emit(events, ReasoningDelta, reply.reasoning[len(self._sent[ReasoningDelta]) :])
        if not isinstance(reply, Malformed):
            self._emit(events, TextDelta, reply.text[len(self._sent[TextDelta]) :])
        calls = reply.calls[len(self._ended) :] if isinstance(reply, ToolCalls) else ()
        reasons = [reply.reason] if isinstance(reply, Malformed) else []
        reasons += reply.malformed if isinstance(reply, ToolCalls) else ()
        begun = self._call if self._call is not None and self._call.name is not None else None
        if begun is not None and not (calls and begun.continues(calls[0])):
            events.append(CallFailed(len(self._ended), reasons.pop(0) if reasons else "it is text after all"))
            self._call = None
        events += [CallFailed(None, reason) for reason in reasons]
        for call in calls:
            self._end_call(events, call)
        return _merged(events)

    def _step(self, events: list[Event]) -> bool:
        """Go on by one piece; whether there may be more to do."""
        steps: dict[_Mode, Callable[[list[Event]], bool]] = {
            "start": self._start,
            "reasoning": self._reason,
            "text": self._say,
            "call": self._read_call,
        }
        return self._mode != "held" and steps[self._mode](events)

    def _start(self, _events: list[Event]) -> bool:
        """Decide whether the reply begins with reasoning, or, in lenient reading, with a call without marks."""
        begun = self._pending.lstrip()
        if not begun or (begun != THINK_START and THINK_START.startswith(begun)):
            return False
        if begun.startswith(THINK_START):
            self._pending, self._mode = begun[len(THINK_START) :], "reasoning"
        else:
            self._begin_text()
        return True

    def _begin_text(self) -> None:
        begun = self._pending.lstrip()
        untagged = self._policy == "lenient" and begun[:1] in ("{", "`")
        self._mode = "held" if untagged else "text"

    def _reason(self, events: list[Event]) -> bool:
        end = self._pending.find(THINK_END)
        if end == -1:
            certain = _certain(self._pending, (THINK_END,))
            self._emit(events, ReasoningDelta, self._pending[:certain])
            self._pending = self._pending[certain:]
            return False
        self._emit(events, ReasoningDelta, self._pending[:end].rstrip())
        self._pending = self._pending[end:]
        rest = self._pending[len(THINK_END) :]
        if self._policy == "lenient" and not rest.strip():
            return False
        self._pending = rest
        self._begin_text()
        return True

    def _say(self, events: list[Event]) -> bool:
        """Text up to the next mark; whether it was a mark that is decided on."""
        match = marks_of(*self._marks).search(self._pending)
        if match is None:
            certain = _certain(self._pending, self._marks)
            self._code.walk(self._pending, 0, certain)
            self._take_text(events, certain)
            return False
        start, end = match.span()
        self._code.walk(self._pending, 0, start)
        if match[0] != self._stop and self._code.block:
            self._code.walk(self._pending, start, end)
            self._take_text(events, end)
            return True
        opens = match[0] == self._syntax.opening
        before = self._pending[start - 1] if start else self._last
        if not opens or self._code.span or before in QUOTES:
            self._mode = "held"
            return False
        self._take_text(events, len(self._pending[:start].rstrip()))
        self._pending = self._pending.lstrip()[len(match[0]) :]
        self._call, self._mode, self._after_call = CallReader(self._syntax), "call", True
        return True

    def _take_text(self, events: list[Event], length: int) -> None:
        """Tell the first `length` characters of `_pending`; next to a call, white space is not part of the text."""
        text, self._pending = self._pending[:length], self._pending[length:]
        if text:
            self._last = text[-1]
        if self._after_call:
            text = text.lstrip()
            if text and self._sent[TextDelta]:
                text = "\n" + text
        if text:
            self._after_call = False
        self._emit(events, TextDelta, text)

    def _read_call(self, events: list[Event]) -> bool:
        """More of a call's body; strict reading tells its arguments as they come."""
        call = self._call
        assert call is not None
        index, named = len(self._ended), call.name is not None
        self._pending = call.feed(self._pending)
        if call.name is not None and not named:
            events.append(CallStart(index, call.name))
        if call.name is not None and self._policy == "strict" and (text := call.take_arguments()):
            events.append(ArgumentsDelta(index, text))
        if call.lost:
            self._mode = "held"
        if call.body is None:
            return False
        try:
            (found,) = as_body([decode_whole(call.body)], self._syntax, self._policy, call.body).calls
        except UnreadableError:
            self._mode = "held"
            return False
        self._end_call(events, found)
        self._mode = "text"
        return True

    def _end_call(self, events: list[Event], call: ToolCall) -> None:
        """Tell what is left to tell of `call`."""
        index, begun = len(self._ended), self._call
        if begun is None or begun.name is None:
            events.append(CallStart(index, call.name))
        if begun is None or not begun.told:
            events.append(ArgumentsDelta(index, dumps(dict(call.arguments))))
        events.append(CallEnd(index, call))
        self._ended.append(call)
        self._call = None

    def _emit(self, events: list[Event], kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        if kind is ReasoningDelta and not self._sent[kind]:
            text = text.lstrip()
        if text:
            self._sent[kind] += text
            events.append(kind(text))


def _merged(events: list[Event]) -> list[Event]:
    """Deltas of one kind that follow each other as one."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            merged[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            merged[-1] = ReasoningDelta(last.text + event.text)
        else:
            merged.append(event)
    return merged


class TaggedReading:
    """The reading half of a dialect whose calls stand between two marks."""

    syntax: CallSyntax
    stop: str

    def parse(
        self,
        text: str,
        tools: Iterable[Tool] = (),
        policy: Policy = "strict",
        finish_reason: FinishReason = "stop",
    ) -> Reply:
        """Read a reply; see `hermes.dialects.tagged`. `tools` decide nothing: validation names unknown ones."""
        return read_reply(text, self.syntax, self.stop, policy, finish_reason)

    def stream_parser(self, tools: Iterable[Tool] = (), policy: Policy = "strict") -> StreamParser:
        """A parser for one reply that comes in chunks."""
        return TaggedStream(self.syntax, self.stop, policy)

    def correction_prompt(self, malformed: Malformed) -> str:
        """Names no tag: in a user's turn it would be neutralised."""
        return (
            f"Your last reply could not be read: {malformed.reason}. Send it again: either the call, one JSON object "
            'with "name" and "arguments" between the call tags, or an answer in plain text.'
        )
