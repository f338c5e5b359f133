"""What makes a training step fast on a processor (CPU); the gradient is the same but for rounding.

* A linear layer with a LoRA adapter adds the adapter's product into the layer's output where it lies, and keeps what
  the way back needs of it. PEFT's own way takes two more passes over the output, and autograd several on the way back.
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

    A layer with dropout keeps PEFT's way; a model whose attention caps its scores, or has dropout, keeps its attention.
    """
    base = cast(PreTrainedModel, model.get_base_model() if isinstance(model, PeftModel) else model)
    before = base.config._attn_implementation
    changed: list[Linear] = []
    try:
        for layer in model.modules():
            if isinstance(layer, Linear) and _is_plain(layer):
                changed.append(layer)
                layer.forward = partial(_adapted_linear, layer)
        if _can_attend(base):
            AttentionInterface.register(_NAME, attend)
            AttentionMaskInterface.register(_NAME, eager_mask)
            base.set_attn_implementation(_NAME)
        yield
    finally:
        for layer in changed:
            vars(layer).pop("forward", None)
        base.set_attn_implementation(before)


def _is_plain(layer: Linear) -> bool:
    """Whether the layer has one adapter, of the plain kind, and no dropout."""
    linear_alone = isinstance(layer.get_base_layer(), nn.Linear) and list(layer.lora_A) == ["default"]
    plain = not any(layer.use_dora.values()) and not any(layer.lora_bias.values())
    return linear_alone and plain and isinstance(layer.lora_dropout["default"], nn.Identity)


def _can_attend(model: PreTrainedModel) -> bool:
    config = model.config.get_text_config()
    special = any(getattr(config, name, None) for name in ("attn_logit_softcapping", "attention_dropout"))
    # A learned sink is one more key, of which the attention interface tells by a keyword of its own.
    sinks = any(name.endswith(".sinks") for name, _ in model.named_parameters())
    return not special and not sinks and bool(model._can_set_attn_implementation())


def _adapted_linear(layer: Linear, inputs: Tensor) -> Tensor:
    base = cast(nn.Linear, layer.get_base_layer())
    down, up = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    found = _AdaptedLinear.apply(inputs, base.weight, base.bias, down, up, layer.scaling["default"])  # type: ignore[no-untyped-call]
    return cast(Tensor, found)


class _AdaptedLinear(torch.autograd.Function):
    """inputs W^T + bias + scale * (inputs A^T) B^T, differentiable in inputs, A (`down`) and B (`up`).

    With g the gradient of the output: that of the inputs is g W + scale * (g B) A, that of A is
    scale * (g B)^T inputs, that of B scale * g^T (inputs A^T); summed over all tokens.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor, scale: float
    ) -> Tensor:
        tokens = inputs.to(weight.dtype).flatten(0, -2)
        low = tokens @ down.to(weight.dtype).T
        output = linear(tokens, weight, bias).addmm_(low, up.to(weight.dtype).T, alpha=scale)
        ctx.save_for_backward(tokens, weight, down, up, low)
        ctx.scale, ctx.shape, ctx.dtype = scale, inputs.shape, inputs.dtype
        return output.view(*inputs.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, Tensor, Tensor, None]:
        tokens, weight, down, up, low = ctx.saved_tensors
        gradient = gradients[0].flatten(0, -2)
        of_low = (gradient @ up.to(weight.dtype)).mul_(ctx.scale)
        of_up = (gradient.T @ low).to(up.dtype).mul_(ctx.scale)
        of_down = (of_low.T @ tokens).to(down.dtype)
        of_inputs = None
        if ctx.needs_input_grad[0]:
            of_inputs = (gradient @ weight).addmm_(of_low, down.to(weight.dtype)).view(ctx.shape).to(ctx.dtype)
        return of_inputs, None, None, of_down, of_up, None


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
