"""Sentinels as single tokens: reserved tokens of a vocabulary that get the tags' texts.

Checkpoints carry tokens that nothing used. Such a token can stand for `<tool_call>`, so that a tag is one token
rather than five; the vocabulary keeps its size, and only the claimed rows of the embedding have to be learned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def claim_tokens(
    tokenizer: PreTrainedTokenizerFast, tags: Sequence[str], reserved: Sequence[str]
) -> tuple[PreTrainedTokenizerFast, dict[str, int]]:
    """A tokenizer in which each of `tags` is one token, and the ids of those that a reserved token was renamed for.

    A tag that is one token already keeps it. The renamed tokens are ordinary ones: decoding shows their text.

    Args:
        tokenizer: a fast tokenizer; it stays as it is.
        tags: texts, such as `<tool_call>`.
        reserved: added tokens that nothing uses, at least as many as there are tags without a token.

    Raises:
        UserError: there are too few reserved tokens, or one is no added token of this vocabulary, or has a use.
    """
    missing = [tag for tag in tags if len(tokenizer.encode(tag, add_special_tokens=False)) != 1]
    if not missing:
        return tokenizer, {}
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    added = {token["content"]: token for token in content["added_tokens"]}
    unknown = [name for name in reserved if name not in added]
    if unknown:
        raise UserError(
            f"model.reserved_tokens: {', '.join(unknown)}: no added token of {tokenizer.name_or_path}; "
            f"it has {', '.join(added)}"
        )
    used = {value for value in tokenizer.special_tokens_map.values() if isinstance(value, str)}
    if taken := [name for name in reserved if name in used]:
        raise UserError(f"model.reserved_tokens: {', '.join(taken)}: begins, ends or pads texts of this tokenizer")
    if len(set(reserved)) < len(missing):
        raise UserError(
            f"model.reserved_tokens: {len(missing)} tags need a token each ({', '.join(missing)}), "
            f"and {len(set(reserved))} are named; {tokenizer.name_or_path} has {', '.join(added)}"
        )
    claimed = list(dict.fromkeys(reserved))[: len(missing)]
    vocabulary = content["model"].get("vocab")
    ids: dict[str, int] = {}
    for tag, name in zip(missing, claimed, strict=True):
        token = added[name]
        token.update(content=tag, special=False, normalized=False, lstrip=False, rstrip=False, single_word=False)
        if isinstance(vocabulary, dict) and name in vocabulary:
            vocabulary[tag] = vocabulary.pop(name)
        ids[tag] = token["id"]
    return _rebuilt(tokenizer, content, set(claimed)), ids


def _rebuilt(tokenizer: PreTrainedTokenizerFast, content: dict[str, object], gone: set[str]) -> PreTrainedTokenizerFast:
    """A tokenizer like `tokenizer` with the content of another tokenizer.json, which has no tokens `gone`."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast as Fast

    specials = {
        name: value if isinstance(value, str) else [each for each in value if str(each) not in gone]
        for name, value in tokenizer.special_tokens_map.items()
    }
    rebuilt = Fast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)),
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        model_max_length=tokenizer.model_max_length,
        clean_up_tokenization_spaces=tokenizer.clean_up_tokenization_spaces,
        **specials,
    )
    rebuilt.chat_template = tokenizer.chat_template
    rebuilt.name_or_path = tokenizer.name_or_path
    return rebuilt


def start_rows(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ids: dict[str, int]) -> None:
    """Give the claimed rows of `model`'s embeddings the mean of the rows that a tag was written with before.

    Args:
        tokenizer: the tokenizer before `claim_tokens`.
        ids: what `claim_tokens` returned.

    Raises:
        UserError: the output head has rows of its own; only embeddings that both share are trained.
    """
    import torch

    if ids and not getattr(model.config.get_text_config(), "tie_word_embeddings", False):
        raise UserError("sentinels: tokens needs a model whose output head is its embedding; say `sentinels: text`")

    with torch.no_grad():
        for embeddings in (model.get_input_embeddings(), model.get_output_embeddings()):
            weight = embeddings.weight
            for tag, row in ids.items():
                pieces = tokenizer.encode(tag, add_special_tokens=False)
                weight[row] = weight[pieces].float().mean(0).to(weight.dtype)
