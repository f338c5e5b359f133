"""Files that are never half-written, and hashes that say what a stage was made from."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import UserError


def make_folder(path: Path) -> None:
    """Make the folder `path` with those above it.

    Raises:
        UserError: it cannot be made: no permission, a file in its place, a name that is too long.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: this folder cannot be made: {reason}; name another place, or mend this one") from None


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the folder of `path`; moved onto `path` if the block succeeds, else removed.

    Raises:
        UserError: the file cannot be written (no space, no permission).
    """
    make_folder(path.parent)
    try:
        # Not all of a long name: the temporary one must not be too long where the name itself is not.
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:50]}.", dir=path.parent)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to `path`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def atomic_write_json(path: Path, value: Any) -> None:
    """Write indented JSON with a final newline to `path`, whole or not at all."""
    atomic_write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def value_hash(value: Any) -> str:
    """SHA-256 of a JSON value, independent of key order."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
