"""What makes a training step fast on a processor (CPU); the gradient is the same but for rounding.

* A linear layer with a LoRA adapter computes with its merged weight, W + scale * B A, made once a step. PEFT's own
  way adds a product over every token and two passes over the layer's output. The gradients of A and B come from
  products of the low rank; none of the frozen weight's size is made.
* Attention as plain matrix products. The way back of PyTorch's fused kernel takes several times as long here; what
  it saves is memory for the weights, which the parts of a batch keep small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from peft import PeftModel
from peft.tuners.lora import Linear
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask

_NAME = "hermes_products"


@contextmanager
def fast_step(model: nn.Module) -> Iterator[None]:
    """Within the block `model`, with or without an adapter, computes as this module's head says.

    The merged weights are made when the block begins, so the adapter must change only outside. A layer with dropout
    keeps PEFT's way, since its two products see different inputs; a model whose attention caps its scores keeps its
    attention.
    """
    changed = [layer for layer in model.modules() if isinstance(layer, Linear) and _can_merge(layer)]
    for layer in changed:
        layer.forward = partial(_merged_linear, **_merged(layer))
    base = cast(PreTrainedModel, model.get_base_model() if isinstance(model, PeftModel) else model)
    before = base.config._attn_implementation
    if _can_attend(base):
        AttentionInterface.register(_NAME, attend)
        AttentionMaskInterface.register(_NAME, eager_mask)
        base.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        for layer in changed:
            del layer.forward
        base.set_attn_implementation(before)


def _can_merge(layer: Linear) -> bool:
    return list(layer.lora_A) == ["default"] and isinstance(layer.lora_dropout["default"], nn.Identity)


def _can_attend(model: PreTrainedModel) -> bool:
    config = model.config.get_text_config()
    return not getattr(config, "attn_logit_softcapping", None) and bool(model._can_set_attn_implementation())


def _merged(layer: Linear) -> dict[str, Any]:
    """What `_merged_linear` needs to know of a layer."""
    base = cast(nn.Linear, layer.get_base_layer())
    down, up, scale = layer.lora_A["default"].weight, layer.lora_B["default"].weight, layer.scaling["default"]
    with torch.no_grad():
        weight = torch.addmm(base.weight, up.to(base.weight.dtype), down.to(base.weight.dtype), alpha=scale)
    return {"weight": weight, "bias": base.bias, "down": down, "up": up, "scale": scale}


def _merged_linear(
    inputs: Tensor, *, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor, scale: float
) -> Tensor:
    output = cast(Tensor, _MergedLinear.apply(inputs, weight, down, up, scale))  # type: ignore[no-untyped-call]
    return output if bias is None else output + bias


class _MergedLinear(torch.autograd.Function):
    """inputs W'^T for a merged weight W' = W + scale * B A, differentiable in inputs, A (`down`) and B (`up`).

    With g the gradient of the output: that of the inputs is g W', that of A is scale * (g B)^T inputs, that of B
    scale * g^T (inputs A^T); summed over all tokens.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, down: Tensor, up: Tensor, scale: float) -> Tensor:
        inputs = inputs.to(weight.dtype)
        ctx.save_for_backward(inputs, weight, down, up)
        ctx.scale = scale
        return linear(inputs, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor, Tensor, None]:
        inputs, weight, down, up = ctx.saved_tensors
        gradient, tokens = gradients[0].flatten(0, -2), inputs.flatten(0, -2)
        of_down = (gradient @ up.to(gradient.dtype)).T @ tokens
        of_up = gradient.T @ (tokens @ down.to(tokens.dtype).T)
        of_inputs = (gradient @ weight).view_as(inputs) if ctx.needs_input_grad[0] else None
        return of_inputs, None, of_down.to(down.dtype) * ctx.scale, of_up.to(up.dtype) * ctx.scale, None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers' attention interface asks for it.

    Args:
        module: the attention layer.
        query: `(batch, heads, new, size)`.
        key: `(batch, key-value heads, all, size)`; so is `value`.
        value: see `key`.
        attention_mask: `(batch, 1, new, all)`, 0 where a query sees a key, else hugely negative.
        scaling: factor of the scores.
        dropout: must be 0.

    Returns:
        `(batch, new, heads, size)`, and no weights.
    """
    if dropout:
        raise NotImplementedError("attention with dropout")
    return cast(Tensor, _Attention.apply(query, key, value, attention_mask, scaling)), None  # type: ignore[no-untyped-call]


class _Attention(torch.autograd.Function):
    """softmax(scale * query key^T + mask) value; heads that share a key are rows of one product."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
        batch, heads, new, size = query.shape
        queries = (query * scaling).reshape(batch * key.shape[1], -1, size)
        keys, values = key.flatten(0, 1), value.flatten(0, 1)
        scores = torch.bmm(queries, keys.transpose(1, 2)).view(batch, heads, new, -1)
        if mask is not None:
            scores += mask
        weights = scores.softmax(-1).view(len(keys), -1, keys.shape[1])
        ctx.save_for_backward(queries, keys, values, weights)
        ctx.scaling, ctx.shapes = scaling, (query.shape, key.shape)
        return torch.bmm(weights, values).view(batch, heads, new, size).transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        queries, keys, values, weights = ctx.saved_tensors
        queries_shape, keys_shape = ctx.shapes
        gradient = gradients[0].transpose(1, 2).reshape(queries.shape)
        of_weights = torch.bmm(gradient, values.transpose(1, 2))
        of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_query = torch.bmm(of_scores, keys).mul_(ctx.scaling).view(queries_shape)
        of_key = torch.bmm(of_scores.transpose(1, 2), queries).view(keys_shape)
        of_value = torch.bmm(weights.transpose(1, 2), gradient).view(keys_shape)
        return of_query, of_key, of_value, None, None
