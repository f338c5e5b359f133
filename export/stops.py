"""Stop tokens: every token that may end a reply, from everywhere that a checkpoint names one.

Files of a checkpoint disagree: newer ones keep added tokens only in tokenizer.json, and a generation_config.json
often names the end of a document where the tokenizer names the end of a turn. So the sources are joined, and none
replaces another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import UserError

ENDS_OF_TURN = frozenset(
    {
        "<|im_end|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|end_of_turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "<end_of_turn>",
        "<turn|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
        "<|end|>",
        "<|return|>",
        "<eos>",
        "</s>",
    }
)
"""Spellings of the end of a turn, a message or a text in published vocabularies."""


def stop_token_ids(
    trained: Iterable[str],
    tokenizer: Mapping[str, Any],
    tokenizer_config: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    generation_config: Mapping[str, Any] | None = None,
) -> tuple[int, ...]:
    """The union of all ends of a turn, by id.

    Args:
        trained: what ends a turn in the training data; each must be one token.
        tokenizer: the content of tokenizer.json; its added tokens in `ENDS_OF_TURN` count.
        tokenizer_config: the content of tokenizer_config.json, for its `eos_token`.
        config: the content of config.json, for its `eos_token_id`, also that of a nested text model.
        generation_config: the content of generation_config.json, for its `eos_token_id`.

    Raises:
        UserError: a trained end of a turn is no single token, or an id is outside of the vocabulary.
    """
    ids = token_ids(tokenizer)
    trained = tuple(trained)
    if absent := [text for text in trained if text not in ids]:
        raise UserError(f"tokenizer.json: {', '.join(absent)}: ends a turn in the training data, but is no token")
    found = {ids[text] for text in trained} | set(end_of_turn_tokens(tokenizer).values())
    eos = _text(tokenizer_config or {}, "eos_token")
    if eos in ids:
        found.add(ids[eos])
    config = config or {}
    found |= {*_eos_ids(config), *_eos_ids(config.get("text_config") or {}), *_eos_ids(generation_config or {})}
    size = max([*ids.values(), _vocabulary_size(config) - 1])
    if outside := sorted(each for each in found if not 0 <= each <= size):
        raise UserError(f"eos_token_id: {', '.join(map(str, outside))}: not in the vocabulary of {size + 1} tokens")
    return tuple(sorted(found))


def stop_tokens_of(folder: Path, trained: Iterable[str]) -> tuple[int, ...]:
    """`stop_token_ids` for a checkpoint's folder.

    Raises:
        UserError: a file of it cannot be read, or `stop_token_ids` refuses what they hold.
    """
    names = ("tokenizer_config.json", "config.json", "generation_config.json")
    try:
        return stop_token_ids(trained, _read(folder / "tokenizer.json"), *(_read(folder / name) for name in names))
    except UserError as error:
        raise UserError(f"{folder}: {error}; mend these files, or choose another checkpoint") from None


def end_of_turn_tokens(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Text → id of a tokenizer.json's added tokens that end a turn."""
    added = tokenizer.get("added_tokens") or ()
    return {token["content"]: token["id"] for token in added if token["content"] in ENDS_OF_TURN}


def token_ids(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Text → id of a whole tokenizer.json, added tokens included."""
    model = tokenizer.get("model") or {}
    vocabulary = model.get("vocab") or {}
    if not isinstance(vocabulary, Mapping):
        vocabulary = {piece[0]: index for index, piece in enumerate(vocabulary)}
    return {**vocabulary, **{token["content"]: token["id"] for token in tokenizer.get("added_tokens") or ()}}


def _eos_ids(config: Mapping[str, Any]) -> Iterator[int]:
    given = config.get("eos_token_id")
    yield from given if isinstance(given, list) else () if given is None else (given,)


def _text(config: Mapping[str, Any], key: str) -> str:
    """A token's text, which is written plainly or as an object."""
    value = config.get(key)
    return str(value.get("content", "")) if isinstance(value, Mapping) else str(value or "")


def _vocabulary_size(config: Mapping[str, Any]) -> int:
    return int(config.get("vocab_size") or (config.get("text_config") or {}).get("vocab_size") or 0)


def _read(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one where the file is not."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path.name}: must hold an object, not {type(value).__name__}")
    return value
