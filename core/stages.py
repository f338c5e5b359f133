"""Stages: what each is made from, and whether its result is still that.

A finished stage leaves `stamp.json` in its folder: its inputs (settings, hashes of files and of the code
that made it, versions) and the hash of every output. A stage whose inputs and outputs still match is up
to date and is not run again.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.files import atomic_write_json, file_hash, make_folder, value_hash

PROJECT = Path(__file__).resolve().parent.parent
_STAMP = "stamp.json"
_CODE_SUFFIXES = {".py", ".jinja", ".md", ".html", ".yaml"}


@dataclass(frozen=True)
class Run:
    """The folders of one recipe's run."""

    root: Path

    @property
    def data(self) -> Path:
        """Conversations by split."""
        return self.root / "data"

    @property
    def training(self) -> Path:
        """Adapter, merged model, loss curve."""
        return self.root / "training"

    @property
    def export(self) -> Path:
        """The bundle and its card."""
        return self.root / "export"

    @property
    def evaluation(self) -> Path:
        """Results by model on the first test conversations, and the report."""
        return self.root / "evaluation"

    @property
    def evaluation_full(self) -> Path:
        """As `evaluation`, on the whole test split."""
        return self.root / "evaluation-full"

    @property
    def evaluation_cases(self) -> Path:
        """As `evaluation`, on cases that a user hands in."""
        return self.root / "evaluation-cases"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run: two commands at once would overwrite each other's files.

        Raises:
            UserError: another command holds it, or the folder cannot be written.
        """
        make_folder(self.root)
        try:
            opened = (self.root / ".lock").open("w")
        except OSError as error:
            raise UserError(
                f"{self.root}: nothing can be written there: {error.strerror or error}; name another folder with --runs"
            ) from None
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{self.root}: another hermes-edge command is at work there; wait for it") from None
            except OSError as error:
                raise UserError(
                    f"{self.root}: cannot be locked: {error.strerror or error}; name another folder with --runs"
                ) from None
            yield


@dataclass(frozen=True)
class Stage:
    """One stage of a run: a folder and everything that decides what ends up in it."""

    folder: Path
    inputs: Mapping[str, Any]
    """JSON values by name; when one changes, the stage is run again and the name is the reason given."""

    @cached_property
    def key(self) -> str:
        """Identifies the inputs."""
        return value_hash(dict(self.inputs))

    def why_stale(self) -> str | None:
        """Why the stage must run, or None if its result is up to date."""
        stamp = _read_stamp(self.folder)
        if stamp is None:
            return "not finished yet"
        before, outputs = stamp["inputs"], stamp["outputs"]
        now = json.loads(json.dumps(dict(self.inputs)))
        changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        if changed:
            return "changed: " + ", ".join(changed)
        for name, expected in outputs.items():
            path = self.folder / name
            try:
                if not path.is_file():
                    return f"missing: {name}"
                if file_hash(path) != expected:
                    return f"altered: {name}"
            except (OSError, ValueError):
                return f"unreadable: {name}"
        return None

    def finish(self, outputs: Iterable[Path], **facts: Any) -> None:
        """Record that `outputs`, all inside the folder, are what the inputs give; `facts` are kept beside."""
        hashes = {path.relative_to(self.folder).as_posix(): file_hash(path) for path in sorted(outputs)}
        value = {"key": self.key, "inputs": dict(self.inputs), "outputs": hashes, "facts": facts}
        atomic_write_json(self.folder / _STAMP, value)

    def begin(self) -> None:
        """Take back the record of an earlier result, before any of its files is touched."""
        make_folder(self.folder)
        try:
            (self.folder / _STAMP).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be written: {error.strerror or error}") from None


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts that a finished stage left; empty if it has not finished."""
    stamp = _read_stamp(folder)
    return {} if stamp is None else stamp["facts"]


def _read_stamp(folder: Path) -> dict[str, dict[str, Any]] | None:
    """The record of a finished stage; None if there is none that a stage could have written."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        parts = {name: stamp[name] for name in ("inputs", "outputs", "facts")}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    whole = all(isinstance(part, dict) for part in parts.values()) and parts["outputs"]
    return parts if whole else None


def code_hash(*names: str) -> str:
    """Hash of the project's own source in top-level folders and files `names`.

    Comments, docstrings and layout of Python files do not count: they change no result.
    """
    roots = [PROJECT / name for name in names]
    files = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.suffix in _CODE_SUFFIXES and "__pycache__" not in path.parts):
        content = path.read_text(encoding="utf-8")
        meaning = _meaning(content) if path.suffix == ".py" else content
        digest.update(f"{path.relative_to(PROJECT).as_posix()}\0{meaning}\0".encode())
    return digest.hexdigest()


def _meaning(source: str) -> str:
    """Python source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_string(line)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of `packages`.

    Raises:
        UserError: one is not installed; the message says how to mend that.
    """
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise UserError(f"the package {package!r} is missing; `make setup` installs what is needed") from None
    return found


def need_stage(folder: Path, command: str, inputs: Mapping[str, Any]) -> None:
    """Do nothing if the stage in `folder` has finished with these `inputs`, and its outputs are as it left them.

    Raises:
        UserError: it has not; the message says why and names the command that mends it.
    """
    stamp = _read_stamp(folder)
    stage = Stage(folder, inputs if stamp is None else stamp["inputs"] | dict(inputs))
    stale = stage.why_stale()
    if stale is not None:
        raise UserError(f"{folder}: {stale}; {_first(command)}")


def need_file(path: Path, command: str) -> Path:
    """`path`, if it exists.

    Raises:
        UserError: it does not; the message names the command that makes it.
    """
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}; check --runs") from None
    if not there:
        raise UserError(f"{path}: not there yet; {_first(command)}")
    return path


def _first(command: str) -> str:
    return f"run `{command}` first, with the same --recipe, --runs and --set"
