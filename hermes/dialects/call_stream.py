"""The body of one call while it is written: its name, its arguments' JSON text, its end."""

from __future__ import annotations

import json
import re

from hermes.dialects.base import CallSyntax
from hermes.json_text import skip_space
from hermes.record import ToolCall

_KEY = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*(?=\S)', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,}\]\"{\[]+(?=[\s,}\]])")
_NEXT = re.compile(r"\s*([,}])")
_OPEN = re.compile(r"\s*\{")
_IN_STRING = re.compile(r'(?:[^"\\]|\\.)+', re.DOTALL)
_OUTSIDE = re.compile(r'[^"{}\[\]]+')


_LONGEST = 4000
"""Characters of a key, or of a value that is not the arguments, that are looked at again with each chunk."""


class CallReader:
    """Follows a JSON object `{"name": …, "arguments": {…}}` piece by piece, whatever the order of its keys.

    It only tells where things are; whether the object can be read is for `hermes.reading` to say.
    """

    def __init__(self, syntax: CallSyntax) -> None:
        self._syntax = syntax
        self._seen: list[str] = []
        self._expects = "open"
        self._key = ""
        self._depth = 0
        self._in_string = False
        self._arguments: list[str] = []
        self.name: str | None = None
        self.body: str | None = None
        """The whole object, once its closing mark has come."""
        self.lost = False
        """Whether a token is so long that following it costs more than waiting for the end of the reply."""
        self.told = False
        """Whether any of the arguments were taken."""

    def feed(self, text: str) -> str:
        """Take as much of `text` as can be told; returns the rest, which is to be fed again with more."""
        position = 0
        while self.body is None and (end := self._token(text, position)) is not None:
            self._seen.append(text[position:end])
            position = end
        self.lost = self.body is None and len(text) - position > _LONGEST
        return text[position:]

    def take_arguments(self) -> str:
        """The text of the arguments object that has come since the last time."""
        text = "".join(self._arguments)
        self._arguments.clear()
        self.told = self.told or bool(text)
        return text

    def continues(self, call: ToolCall) -> bool:
        """Whether `call` can be what was followed so far."""
        return self.name == call.name and not self.told

    def _token(self, text: str, start: int) -> int | None:
        """Where the next token ends; None if it is not whole yet, or none that can stand here."""
        if self._expects == "value":
            return self._value(text, start)
        if self._expects == "nested":
            return self._nested(text, start)
        if self._expects == "closing":
            return self._closing(text, start)
        pattern = {"open": _OPEN, "key": _KEY, "next": _NEXT}[self._expects]
        match = pattern.match(text, start)
        if match is None:
            return None
        if self._expects == "key":
            self._key = _text(match[0].rstrip().removesuffix(":"))
        self._expects = {"open": "key", "key": "value", "next": "key"}[self._expects]
        if pattern is _NEXT and match[1] == "}":
            self._expects = "closing"
        return match.end()

    def _closing(self, text: str, start: int) -> int | None:
        at = skip_space(text, start)
        if not text.startswith(self._syntax.closing, at):
            return None
        self.body = "".join(self._seen)
        return at + len(self._syntax.closing)

    def _value(self, text: str, start: int) -> int | None:
        """A value of the outer object: text or a scalar whole, a list or object only its opening."""
        if text[start : start + 1] in ("{", "["):
            self._expects, self._depth = "nested", 1
            self._keep(text[start])
            return start + 1
        match = (_STRING if text[start : start + 1] == '"' else _SCALAR).match(text, start)
        if match is None:
            return None
        if self._key == self._syntax.name_key and match[0].startswith('"') and self.name is None:
            self.name = _text(match[0])
        self._expects = "next"
        return match.end()

    def _nested(self, text: str, start: int) -> int | None:
        """A run of a list or object: the inside of a string, what is outside of one, or a bracket."""
        char = text[start : start + 1]
        match = (_IN_STRING if self._in_string else _OUTSIDE).match(text, start)
        if match is None and (not char or char == "\\"):
            return None
        end = match.end() if match else start + 1
        self._keep(text[start:end])
        if match is None and char == '"':
            self._in_string = not self._in_string
        elif match is None:
            self._depth += 1 if char in "{[" else -1
            self._expects = "nested" if self._depth else "next"
        return end

    def _keep(self, text: str) -> None:
        if self._key == self._syntax.arguments_key:
            self._arguments.append(text)


def _text(literal: str) -> str:
    """The value of a JSON string; the literal itself where it is none."""
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal
