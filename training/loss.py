"""The loss, with less arithmetic for the same gradient.

* Logits only where a label is: most positions of a tool prompt have none, and the output head over a
  large vocabulary is a good part of a step.
* A shared prefix once: conversations with the same system turn and tools are one batch; the prefix's
  keys and values are computed once and expanded to the rows, and gradients flow back through them.
* Rows of about one length together: what pads a short row is computed and thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def labelled_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """Sum of the cross entropy over the labelled tokens, and how many there are.

    Args:
        model: a causal language model.
        batch: rows that share a prefix, possibly empty; see `training.batches.collate`.

    Returns:
        A scalar with gradient (float32, or float64 for a model in that), and the count it sums over.
        Position t predicts label t + 1.
    """
    import torch

    shared = batch.prefix.shape[0]
    prefix = None
    if shared:
        nowhere = torch.zeros(1, shared, dtype=torch.bool, device=batch.prefix.device)
        with logits_at(model, nowhere):
            prefix = model(input_ids=batch.prefix[None], use_cache=True).past_key_values
    losses = [_rows_loss(model, part, prefix, shared) for part in batch.parts]
    return torch.stack([loss for loss, _ in losses]).sum(), sum(labels for _, labels in losses)


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
    cache = copy(prefix)
    cache.layers = [copy(layer) for layer in prefix.layers]
    cache.batch_repeat_interleave(rows)
    return cache
