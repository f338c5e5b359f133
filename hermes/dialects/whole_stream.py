"""Reading a reply while it is written, where only the whole tells what it is.

Text is told as soon as it is certain; a call, or what may still become one, is held until `close`. The reply itself
is always that of the dialect's own reading of the whole text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

from hermes.dialects.base import (
    ArgumentsDelta,
    CallEnd,
    CallFailed,
    CallStart,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
)
from hermes.dialects.tagged import THINK_END, THINK_START
from hermes.record import Malformed, Reply, ToolCalls, dumps

Read: TypeAlias = Callable[[str, FinishReason], Reply]


class Teller(Protocol):
    """Follows a reply, without its reasoning, and knows what of it is certainly text for the user."""

    def feed(self, text: str) -> str:
        """Take more; returns what has become certain."""
        ...


class TextTeller:
    """Tells text up to the mark that ends the turn, or up to where something else may begin."""

    def __init__(self, stop: str, first: str, held: str = "") -> None:
        """Make one.

        Args:
            stop: ends the turn.
            first: a reply that begins with one of these characters may be no text.
            held: from one of these characters on nothing is certain, nor is white space before it.
        """
        self._stop, self._first, self._held = stop, first, held
        self._pending = ""
        self._begun = self._done = False

    def feed(self, text: str) -> str:
        """Take more of the reply; returns what has become certain."""
        if self._done:
            return ""
        self._pending += text
        if not self._begun:
            begun = self._pending.lstrip()
            if not begun:
                return ""
            self._begun, self._done = True, begun[0] in self._first
        return "" if self._done else self._take()

    def _take(self) -> str:
        pending = self._pending
        marks = [at for mark in (self._stop, *self._held) if (at := pending.find(mark)) != -1]
        self._done = bool(marks)
        end = min(marks) if marks else len(pending) - _overlap(pending, self._stop)
        if self._held:
            end = len(pending[:end].rstrip())
        self._pending = pending[end:]
        return pending[:end]


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if mark.startswith(text[-size:])), 0)


_PREFIX_LIMIT = 200
"""Characters after which a beginning that still does not match is given up."""
_IN_STRING = re.compile(
    r"(?:[^\"\\\x00-\x1f\ud800-\udfff]+|\\(?:[\"\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"
)


class StringTeller:
    """Tells the value of a JSON string that follows a certain beginning of a reply."""

    def __init__(self, prefix: re.Pattern[str]) -> None:
        """Make one.

        Args:
            prefix: matches the beginning of the reply up to and with the string's quotation mark.
        """
        self._prefix: re.Pattern[str] | None = prefix
        self._pending = ""
        self._inside = False

    def feed(self, text: str) -> str:
        """Take more of the reply; returns what has become certain."""
        if self._prefix is None:
            return ""
        self._pending += text
        if not self._inside:
            match = self._prefix.match(self._pending)
            if match is None:
                self._prefix = None if len(self._pending) > _PREFIX_LIMIT else self._prefix
                return ""
            self._inside, self._pending = True, self._pending[match.end() :]
        inside = _IN_STRING.match(self._pending)
        assert inside is not None
        self._pending = self._pending[inside.end() :]
        if self._pending.startswith('"'):
            self._prefix = None
        return str(json.loads(f'"{inside[0]}"'))


class WholeStream:
    """The stream parser of a dialect in which a call is the whole reply."""

    def __init__(self, read: Read, teller: Teller) -> None:
        self._read, self._teller = read, teller
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._received: list[str] = []
        self._start: str | None = ""
        """What came before it was known where the reasoning ends; None afterwards."""
        self._said = self._thought = ""
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
        if self._start is not None:
            text = self._after_reasoning(self._start, text, events)
        if text and (said := self._teller.feed(text)):
            self._said += said
            events.append(TextDelta(said))
        return events

    def close(self, finish_reason: FinishReason = "stop") -> list[Event]:
        """The reply has ended; returns what was held back."""
        events = self.feed(self._bytes.decode(b"", final=True))
        self._reply = reply = self._read("".join(self._received), finish_reason)
        if reply.reasoning and not self._thought:
            events.append(ReasoningDelta(reply.reasoning))
        if isinstance(reply, Malformed):
            return [*events, CallFailed(None, reply.reason)]
        if rest := reply.text[len(self._said) :]:
            events.append(TextDelta(rest))
        if isinstance(reply, ToolCalls):
            for index, call in enumerate(reply.calls):
                arguments = ArgumentsDelta(index, dumps(dict(call.arguments)))
                events += [CallStart(index, call.name), arguments, CallEnd(index, call)]
            events += [CallFailed(None, reason) for reason in reply.malformed]
        return events

    def _after_reasoning(self, before: str, text: str, events: list[Event]) -> str:
        """What of `before` and `text` follows the reasoning; nothing as long as that is not known."""
        searched = max(0, len(before) - len(THINK_END))
        whole = before + text
        begun = whole.lstrip()
        self._start = whole
        if THINK_START.startswith(begun):
            return ""
        if not begun.startswith(THINK_START):
            self._start = None
            return whole
        end = whole.find(THINK_END, searched)
        if end == -1:
            return ""
        self._start = None
        self._thought = begun[len(THINK_START) :].partition(THINK_END)[0].strip()
        if self._thought:
            events.append(ReasoningDelta(self._thought))
        return whole[end + len(THINK_END) :]
