"""The terminal: one console, one kind of progress bar."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Advance = Callable[[int, int, str], None]
"""Called with what is done, what there is in all, and a short text beside the bar."""


@cache
def console() -> Console:
    """The console that all messages go through (standard error, so that output can be piped)."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


_KEPT = "\n\t"
_BIDI = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def printable(text: str) -> str:
    """`text` without what could steer a terminal: control characters but newline and tab, and text direction."""
    return "".join(c for c in text if c in _KEPT or (unicodedata.category(c) != "Cc" and c not in _BIDI))


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """A progress bar with elapsed and remaining time; plain lines where the output is not a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if not console().is_terminal:
        yield _plain_lines(title)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console()) as bar:
        task = bar.add_task(title, total=None, note="")

        def advance(done: int, total: int, note: str) -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield advance


def _plain_lines(title: str) -> Advance:
    """One line at each tenth of the way."""
    last = -1

    def advance(done: int, total: int, note: str) -> None:
        nonlocal last
        tenth = done * 10 // max(total, 1)
        if tenth != last:
            last = tenth
            console().print(f"{title}: {done}/{total} {note}".rstrip())

    return advance
