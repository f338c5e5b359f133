"""The tokenizer inside a `.litertlm` file: which one it is, and how it spells text."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import UserError
from hermes.grammar.regex import SENTENCEPIECE_SPACE, Alphabet

_SIZE_BYTES = 8
"""A compressed tokenizer follows the length that it has without compression."""


@dataclass(frozen=True)
class TokenizerFacts:
    """What a constraint depends on."""

    alphabet: Alphabet
    """How its tokens spell text: the runtime matches spellings."""
    sha256: str
    """Of the tokenizer's file, in hexadecimal."""


def bundle_tokenizer(bundle: Path) -> TokenizerFacts:
    """The facts of the tokenizer in `bundle`.

    Raises:
        UserError: the file is no bundle, has no tokenizer, or one whose spelling is not known.
    """
    from litert_lm_builder import litertlm_header_schema_py_generated as schema
    from litert_lm_builder import litertlm_peek

    kinds = schema.AnySectionDataType
    try:
        sections = litertlm_peek.read_litertlm_header(str(bundle), io.StringIO()).SectionMetadata()
        for index in range(sections.ObjectsLength()):
            section = sections.Objects(index)
            if section.DataType() not in (kinds.HF_Tokenizer_Zlib, kinds.SP_Tokenizer):
                continue
            with bundle.open("rb") as file:
                file.seek(section.BeginOffset())
                content = file.read(section.EndOffset() - section.BeginOffset())
            if section.DataType() == kinds.SP_Tokenizer:
                return TokenizerFacts("sentencepiece", hashlib.sha256(content).hexdigest())
            return tokenizer_facts(zlib.decompress(content[_SIZE_BYTES:]), bundle)
    except UserError:
        raise
    except Exception as error:  # Whatever a reader of foreign bytes may raise.
        raise UserError(f"{bundle}: its tokenizer cannot be read: {type(error).__name__}: {error}") from None
    raise UserError(f"{bundle}: has no tokenizer, so no constraint can be written for it")


def tokenizer_facts(content: bytes, where: Path) -> TokenizerFacts:
    """The facts of a `tokenizer.json` with these bytes.

    Raises:
        UserError: it is not one, or its spelling is not known; the message begins with `where`.
    """
    try:
        settings = json.loads(content)
        alphabet = alphabet_of(settings)
    except (ValueError, RecursionError, AttributeError) as error:
        raise UserError(f"{where}: its tokenizer.json cannot be read: {error}") from None
    if alphabet is None:
        raise UserError(
            f"{where}: no constraint can be written for this tokenizer: its tokens are spelled neither byte by byte "
            f"nor with {SENTENCEPIECE_SPACE!r} for a space; say `export.constraint: none`"
        )
    return TokenizerFacts(alphabet, hashlib.sha256(content).hexdigest())


def alphabet_of(settings: Mapping[str, Any]) -> Alphabet | None:
    """How the tokens of a `tokenizer.json` are spelled; None if in neither way that is known.

    A step of byte-level encoding, or of marking spaces, stands in the pre-tokenizer, the normalizer or the decoder.
    """
    steps = [step for name in ("normalizer", "pre_tokenizer", "decoder") for step in _steps(settings.get(name))]
    if any(step.get("type") == "ByteLevel" for step in steps):
        return "byte_level"
    marks_spaces = any(
        step.get("type") == "Metaspace"
        or (step.get("type") == "Replace" and SENTENCEPIECE_SPACE in (step.get("content"), _pattern(step)))
        for step in steps
    )
    return "sentencepiece" if marks_spaces else None


def _steps(step: Any) -> Iterator[Mapping[str, Any]]:
    """A step, or those of a sequence."""
    if isinstance(step, Mapping):
        yield step
        for name in ("normalizers", "pretokenizers", "decoders"):
            for each in step.get(name) or ():
                yield from _steps(each)


def _pattern(step: Mapping[str, Any]) -> object:
    pattern = step.get("pattern")
    return pattern.get("String") if isinstance(pattern, Mapping) else pattern
