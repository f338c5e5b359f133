"""Which replies a bundle may write: its constraint for LiteRT-LM, from the folder beside it or compiled anew.

A bundle can have a folder `constraint` beside it (`export/constraint.py` writes it) with the grammar for the tools
that it was made for. Other tools get a grammar of their own, compiled when they are first asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import UserError
from hermes import Dialect, Tool
from hermes.grammar import compile as compile_grammar
from hermes.record import dumps
from runtime.bundle_tokenizer import TokenizerFacts

FOLDER = "constraint"
"""Beside the bundle."""
FORMAT = 1
"""Of the folder; another one is refused."""
MANIFEST = "manifest.json"
TOOLS = "tools.json"
REGEX = "reply.regex"
LARK = "reply.lark"
GBNF = "reply.gbnf"
STRUCTURAL_TAG = "reply.structural_tag.json"

_MEND = "export the bundle again, or remove the folder: the constraint is then compiled from the tools"


def tools_text(tools: Sequence[Tool]) -> str:
    """The tools as `tools.json` has them: a JSON list, one tool a line."""
    return "[\n" + ",\n".join(dumps(tool.to_function()) for tool in tools) + "\n]\n"


class Constraints:
    """The constraint of each set of tools that one bundle is asked with."""

    def __init__(self, bundle: Path, dialect: Dialect, tokenizer: TokenizerFacts) -> None:
        """Read the folder beside `bundle`, if there is one.

        Raises:
            UserError: it was made for another tokenizer or dialect, or is not as it was written.
        """
        self.dialect = dialect
        self.tokenizer = tokenizer
        self._known: dict[str, str] = {}
        self.from_sidecar = ""
        """The `tools_text` that the folder is for; empty without a folder."""
        folder = bundle.parent / FOLDER
        if folder.is_dir():
            self.from_sidecar, expression = read_sidecar(folder, dialect, tokenizer)
            self._known[self.from_sidecar] = expression

    def regex(self, tools: Sequence[Tool]) -> str:
        """The regular expression of all replies that may call `tools`, in the tokenizer's alphabet.

        Raises:
            UserError: no grammar can be written for these tools.
        """
        key = tools_text(tools)
        if key not in self._known:
            self._known[key] = compiled(tools, self.dialect, self.tokenizer)
        return self._known[key]


def compiled(tools: Sequence[Tool], dialect: Dialect, tokenizer: TokenizerFacts, choice: str = "auto") -> str:
    """The regular expression for `tools`; `choice` as in `hermes.grammar.compile`.

    Raises:
        UserError: no grammar can be written for these tools.
    """
    try:
        return compile_grammar(tools, dialect, choice).regex(tokenizer.alphabet)
    except ValueError as error:
        raise UserError(f"no constraint can be written for these tools: {error}") from None


def read_sidecar(folder: Path, dialect: Dialect, tokenizer: TokenizerFacts) -> tuple[str, str]:
    """The tools and the regular expression of the folder beside a bundle, as they were written.

    Raises:
        UserError: it was made for another tokenizer, dialect or version of this project, or is not as it was written.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(_read(path))
        spelling = manifest["tokenizer"]
        made_for = {
            "format": (manifest["format"], FORMAT),
            "dialect": (manifest["dialect"], dialect.name),
            "sentinels": (manifest["sentinels"], list(dialect.sentinels)),
            "tokenizer.sha256": (spelling["sha256"], tokenizer.sha256),
            "tokenizer.alphabet": (spelling["alphabet"], tokenizer.alphabet),
        }
        hashes = dict(manifest["files"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: not the manifest of a constraint: {type(error).__name__}: {error}; {_MEND}") from None
    for name, (said, needed) in made_for.items():
        if said != needed:
            raise UserError(f"{path}: {name} is {said!r}, the bundle's is {needed!r}; {_MEND}")
    return _unaltered(folder / TOOLS, hashes), _unaltered(folder / REGEX, hashes)


def _unaltered(path: Path, hashes: dict[str, Any]) -> str:
    text = _read(path)
    if hashlib.sha256(text.encode()).hexdigest() != hashes.get(path.name):
        raise UserError(f"{path}: altered since it was written; {_MEND}")
    return text


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}; {_MEND}") from None
