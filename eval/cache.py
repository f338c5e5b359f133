"""Replies that are already known, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from core.errors import UserError
from runtime.backend import Completion


class ReplyCache:
    """Completions by key, in a JSON Lines file to which each is added as soon as it is known.

    A line that cannot be read (the last one of a run that was killed) counts as not there. Without a path
    nothing is kept. `others` are files of the same kind that are only read, as far as they are there.
    """

    def __init__(self, path: Path | None, others: Sequence[Path] = ()) -> None:
        self._path = path
        self._others = others
        self._file: IO[str] | None = None
        self._known: dict[str, Completion] = {}

    def __enter__(self) -> ReplyCache:
        for other in self._others:
            self._read_other(other)
        if self._path is None:
            return self
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+", encoding="utf-8", errors="replace", newline="\n")
            self._file.seek(0)
            text = self._file.read()
            if text and not text.endswith("\n"):
                self._write("\n")
        except OSError as error:
            raise self._unwritable(error) from error
        for line in text.splitlines():
            self._read(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, key: str) -> Completion | None:
        """The completion that was added under `key`, if any."""
        return self._known.get(key)

    def add(self, key: str, completion: Completion, *, case: str, step: int) -> None:
        """Keep a completion; `case` and `step` tell a reader of the file where it belongs.

        Raises:
            UserError: the file cannot be written.
        """
        self._known[key] = completion
        if self._file is None:
            return
        row = {"case": case, "step": step, "key": key, "text": completion.text}
        row |= {"finish_reason": completion.finish_reason, "seconds": completion.seconds}
        try:
            self._write(json.dumps(row) + "\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def _write(self, text: str) -> None:
        assert self._file is not None
        self._file.write(text)
        self._file.flush()

    def _read_other(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for line in text.splitlines():
            self._read(line)

    def _read(self, line: str) -> None:
        try:
            row = json.loads(line)
            key, text, reason, seconds = row["key"], row["text"], row["finish_reason"], float(row["seconds"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return
        whole = isinstance(key, str) and isinstance(text, str) and isinstance(reason, str)
        if whole and reason in ("stop", "length") and 0 <= seconds < math.inf:
            self._known[key] = Completion(text, reason, seconds)

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"{self._path}: replies cannot be kept: {error.strerror or error}")
