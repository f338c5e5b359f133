"""Attention over a prefix that all rows of a batch share.

Conversations with the same tools begin with the same system turn, often most of the prompt. Its keys and
values are kept once, without a batch dimension to copy them over; every decoding step reads them once for
the whole batch. To the model the sequence is only what follows the prefix, at shifted positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

PrefixLayers: TypeAlias = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of a layer, each `(1, key-value heads, prefix length, head size)`, layer by layer."""

_NAME = "hermes_shared_prefix"


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float,
    *,
    shared_prefix: PrefixLayers,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers' attention interface asks for it.

    Args:
        module: the attention layer; its `layer_idx` picks the prefix.
        query: `(batch, heads, new, size)`.
        key: `(batch, key-value heads, own, size)`, the row's own tokens after the prefix; so is `value`.
        value: see `key`.
        attention_mask: `(batch, 1, new, own)`, 0 where a query sees an own token, else hugely negative.
        scaling: factor of the scores.
        shared_prefix: what every query sees in full.

    Returns:
        `(batch, new, heads, size)`, and no weights.
    """
    prefix_key, prefix_value = shared_prefix[module.layer_idx]
    batch, heads, new, size = query.shape
    groups = key.shape[1]
    prefix_length = prefix_key.shape[2]
    rows = (query * scaling).reshape(batch, groups, -1, size)
    own = (rows @ key.transpose(2, 3)).view(batch, groups, heads // groups, new, -1) + attention_mask[:, :, None]
    together = rows.transpose(0, 1).reshape(groups, -1, size)
    common = (together @ prefix_key[0].transpose(1, 2)).view(groups, batch, -1, prefix_length).transpose(0, 1)
    weights = torch.cat([common, own.view(batch, groups, -1, own.shape[-1])], dim=-1).softmax(-1, dtype=torch.float32)
    weights = weights.to(query.dtype)
    common, own = weights[..., :prefix_length], weights[..., prefix_length:]
    from_prefix = common.transpose(0, 1).reshape(groups, -1, prefix_length) @ prefix_value[0]
    output = own @ value + from_prefix.view(groups, batch, -1, size).transpose(0, 1)
    return output.view(batch, heads, new, size).transpose(1, 2).contiguous(), None


def can_share(model: Any) -> bool:
    """Whether `model` attends in full in every layer, through transformers' attention interface."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    special = any(getattr(config, name, None) for name in ("attn_logit_softcapping", "sliding_window_pattern"))
    # Mistral has one window for all layers and no layer types.
    windowed = getattr(config, "layer_types", None) is None and bool(getattr(config, "sliding_window", None))
    return kinds == {"full_attention"} and not special and not windowed and bool(model._can_set_attn_implementation())


@contextmanager
def sharing(model: Any) -> Iterator[None]:
    """Within the block, `model` attends with `attend`: each call needs the argument `shared_prefix`."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, eager_mask)
    before = model.config._attn_implementation
    model.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
