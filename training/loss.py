"""The loss, with less arithmetic for the same gradient.

* Logits only where a label is: most positions of a tool prompt have none, and the output head over a
  large vocabulary is a good part of a step.
* A shared prefix once: conversations with the same system turn and tools are one batch; the prefix's
  keys and values are computed once and expanded to the rows, and gradients flow back through them.
* Rows of about one length together: what pads a short row is computed and thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from data.tokenise import IGNORED
from training.batches import Batch, Rows

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import Cache


@contextmanager
def logits_at(model: nn.Module, positions: Tensor) -> Iterator[None]:
    """Within the block, the model's output head sees only the positions marked in `positions`.

    Args:
        model: a causal language model of transformers.
        positions: bool, [batch, length].

    The model's `logits` then have the shape [1, marked positions, vocabulary]; scaling or capping that
    a model applies after its head still happens, since the model's own `forward` runs.
    """
    head: nn.Module = model.get_output_embeddings()  # type: ignore[operator]

    def select(_module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden, *rest = arguments
        return (hidden[positions].unsqueeze(0), *rest)

    handle = head.register_forward_pre_hook(select)
    try:
        yield
    finally:
        handle.remove()


def labelled_loss(model: nn.Module, batch: Batch) -> tuple[float, int]:
    """Sum of the cross entropy over the labelled tokens, and how many there are; nothing is kept for a gradient.

    Args:
        model: a causal language model.
        batch: rows that share a prefix, possibly empty; see `training.batches.collate`.

    Returns:
        The sum, in float32 (float64 for a model in that), and the count that it sums over. Position t predicts
        label t + 1.
    """
    import torch

    with torch.no_grad():
        prefix = _prefix(model, batch)
        losses = [_rows_loss(model, part, prefix, batch.prefix.shape[0]) for part in batch.parts]
    return sum(loss.item() for loss, _ in losses), sum(labels for _, labels in losses)


def add_gradient(model: nn.Module, batch: Batch, scale: float) -> tuple[float, int]:
    """As `labelled_loss`, and adds the gradient of the sum times `scale` to the parameters'.

    One part after the other goes forward and back, down to the prefix's keys and values; these go back once,
    with what all parts left there. So memory holds the prefix and one part, whatever the batch.
    """
    import torch

    prefix = _prefix(model, batch)
    ends = [] if prefix is None else [tensor for layer in prefix.layers for tensor in (layer.keys, layer.values)]
    starts = [tensor.detach().requires_grad_() for tensor in ends]
    if prefix is not None:
        prefix = _with_tensors(prefix, starts)
    total, count = 0.0, 0
    for part in batch.parts:
        loss, labels = _rows_loss(model, part, prefix, batch.prefix.shape[0])
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        total, count = total + loss.item(), count + labels
    if any(tensor.requires_grad for tensor in ends):
        torch.autograd.backward(ends, [start.grad for start in starts])
    return total, count


def _prefix(model: nn.Module, batch: Batch) -> Cache | None:
    """Keys and values of the batch's prefix, one row; None if the batch has none."""
    import torch

    shared = batch.prefix.shape[0]
    if not shared:
        return None
    nowhere = torch.zeros(1, shared, dtype=torch.bool, device=batch.prefix.device)
    with logits_at(model, nowhere):
        cache: Cache = model(input_ids=batch.prefix[None], use_cache=True).past_key_values
    return cache


def _rows_loss(model: nn.Module, part: Rows, prefix: Cache | None, shared: int) -> tuple[Tensor, int]:
    """Summed cross entropy of `part` and its labels, after the `shared` tokens whose keys and values are `prefix`."""
    import torch
    from torch.nn.functional import cross_entropy, pad

    rows, length = part.input_ids.shape
    cache = _repeated(prefix, rows) if prefix is not None else None
    predicts = pad(part.labels[:, 1:] != IGNORED, (0, 1))
    targets = part.labels[:, 1:][predicts[:, :-1]]
    positions = torch.arange(shared, shared + length, device=part.input_ids.device)
    with logits_at(model, predicts):
        logits = model(
            input_ids=part.input_ids,
            attention_mask=pad(part.attention_mask, (shared, 0), value=1),
            position_ids=positions.expand(rows, length),
            past_key_values=cache,
            use_cache=cache is not None,
        ).logits[0]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return cross_entropy(logits, targets, reduction="sum"), targets.numel()


def _repeated(prefix: Cache, rows: int) -> Cache:
    """A cache of its own for each part: `prefix`, a row, as `rows` rows that gradients flow back from."""
    cache = _copied(prefix)
    cache.batch_repeat_interleave(rows)
    return cache


def _with_tensors(cache: Cache, tensors: Sequence[Tensor]) -> Cache:
    """A copy of `cache` that holds `tensors`: keys and values of the first layer, of the second, and so on."""
    changed = _copied(cache)
    for number, layer in enumerate(changed.layers):
        layer.keys, layer.values = tensors[2 * number : 2 * number + 2]
    return changed


def _copied(cache: Cache) -> Cache:
    copied = copy(cache)
    copied.layers = [copy(layer) for layer in cache.layers]
    return copied
