"""The folder `constraint` beside a bundle: the grammar for the tools that it was made for, for every engine."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from core.errors import UserError
from core.files import atomic_write_text
from core.recipe import Recipe
from hermes import Dialect, Tool, get_dialect
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import Grammar, lint
from hermes.grammar import compile as compile_grammar
from hermes.record import JSON
from runtime.bundle_tokenizer import TokenizerFacts
from runtime.constraint import FOLDER, FORMAT, GBNF, LARK, MANIFEST, REGEX, STRUCTURAL_TAG, TOOLS, tools_text

TOOLS_OF_BUILDER: Mapping[str, tuple[Tool, ...]] = {"agent_skills": GALLERY_TOOLS}
"""For each builder of `data.builder`, the tools that its conversations declare."""


def constraint_files(recipe: Recipe, bundle_name: str, tokenizer: TokenizerFacts) -> dict[str, str]:
    """The files of the folder by name, the manifest last; none if `export.constraint` is `none`.

    Args:
        bundle_name: file name of the bundle.
        tokenizer: the bundle's.

    Raises:
        UserError: no grammar can be written for this tokenizer or these tools.
    """
    if recipe.export.constraint == "none":
        return {}
    tools = TOOLS_OF_BUILDER[recipe.data.builder]
    return sidecar_files(tools, get_dialect(recipe.dialect), tokenizer, bundle_name)


def sidecar_files(
    tools: Sequence[Tool], dialect: Dialect, tokenizer: TokenizerFacts, bundle_name: str
) -> dict[str, str]:
    """The grammars for `tools` and the manifest. The same inputs give the same bytes.

    Raises:
        UserError: no grammar can be written for these tools.
    """
    try:
        texts = _texts(compile_grammar(tools, dialect), tools, tokenizer)
    except ValueError as error:
        raise UserError(f"export.constraint: {error}; mend the tool, or say `none`") from None
    manifest: dict[str, JSON] = {
        "format": FORMAT,
        "bundle": bundle_name,
        "dialect": dialect.name,
        "sentinels": list(dialect.sentinels),
        "tokenizer": asdict(tokenizer),
        "tools": [tool.name for tool in tools],
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "not_enforced": [
            {"tool": each.tool, "pointer": each.pointer, "keyword": each.keyword, "instead": each.instead}
            for each in lint(tools)
        ],
    }
    return {**texts, MANIFEST: _json(manifest)}


def write_constraint(bundle: Path, files: Mapping[str, str]) -> list[Path]:
    """Write `files` into the folder beside `bundle`, in their order; an earlier folder goes in any case.

    The manifest comes last, since a folder without one is refused by the runtime.
    """
    folder = bundle.parent / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        atomic_write_text(folder / name, text)
    return [folder / name for name in files]


def _texts(grammar: Grammar, tools: Sequence[Tool], tokenizer: TokenizerFacts) -> dict[str, str]:
    return {
        TOOLS: tools_text(tools),
        LARK: grammar.lark,
        REGEX: grammar.regex(tokenizer.alphabet),
        GBNF: grammar.gbnf,
        STRUCTURAL_TAG: _json(grammar.structural_tag),
    }


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
