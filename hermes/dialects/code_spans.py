"""Where a Markdown text is code: what stands there is shown, not meant."""

from __future__ import annotations

import re

_CODE = re.compile(r"`+|\n")
WHOLE_FENCE = re.compile(r"\s*```[A-Za-z_]*\n(.*?)\n?```\s*", re.DOTALL)
"""A text that is one code block and nothing else."""
_FENCE = 3
"""Backticks at the start of a line that open a code block."""


class CodeState:
    """Whether a position of a Markdown text is code, told by walking over the text once.

    A run of backticks opens a span until the same run or the end of the line; three or more at the start of a
    line open a block until the next such line, or the end of the text.
    """

    def __init__(self) -> None:
        self.block = False
        self.span = 0
        """Backticks that opened the span; 0 outside of one."""
        self._line_start = True

    def walk(self, text: str, start: int, end: int) -> None:
        """Go from `start` to `end`; runs of backticks must not be cut there."""
        position = start
        for match in _CODE.finditer(text, start, end):
            blank = not text[position : match.start()].strip(" ")
            at_line_start = self._line_start and blank
            if match[0] == "\n":
                self.span, self._line_start = 0, True
            else:
                self._backticks(len(match[0]), at_line_start)
                self._line_start = False
            position = match.end()
        if position < end and text[position:end].strip(" "):
            self._line_start = False

    def _backticks(self, run: int, at_line_start: bool) -> None:
        if at_line_start and run >= _FENCE and not self.span:
            self.block = not self.block
        elif not self.block and self.span == run:
            self.span = 0
        elif not self.block and not self.span:
            self.span = run

    def span_end(self, text: str, start: int) -> int | None:
        """Where the open span ends; None if its line ends first, so that it is none after all."""
        for match in _CODE.finditer(text, start):
            if match[0] == "\n":
                break
            if len(match[0]) == self.span:
                return match.end()
        self.span = 0
        return None
