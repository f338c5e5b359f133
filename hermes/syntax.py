"""How a call is written, and how strictly it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.control import TOOL_CALL_END, TOOL_CALL_START

FinishReason = Literal["stop", "length"]
Policy = Literal["strict", "lenient"]
"""Strict reads what the dialect says and nothing else. Lenient also repairs what has one meaning, and flags it."""


@dataclass(frozen=True)
class CallSyntax:
    """How a call is written: what parsers cut at and grammars are anchored on.

    A call is `opening`, an object `{name_key: …, arguments_key: {…}}`, `closing`.
    """

    opening: str
    """Empty where a call is the whole reply."""
    closing: str
    name_key: str = "name"
    arguments_key: str = "arguments"
    padding: str = ""
    """White space that the dialect itself writes between the marks and the object."""
    parallel: bool = True
    """Whether one reply may hold several calls, a line each."""
    answer: tuple[str, str] | None = None
    """Where an answer is written as a call too: what stands under `name_key`, and the key of its text."""


HERMES = CallSyntax(TOOL_CALL_START, TOOL_CALL_END)
"""How the `hermes` dialect writes calls."""
