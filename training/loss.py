"""The loss, with logits only where a label is.

Most positions of a tool prompt have no label, and the output head over a large vocabulary is a good
part of a step, so the head sees the labelled positions alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from data.tokenise import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


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


def labelled_loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> tuple[Tensor, int]:
    """Sum of the cross entropy over the labelled tokens, and how many there are.

    Args:
        model: a causal language model.
        batch: `input_ids`, `attention_mask` and `labels`, int64, [batch, length]; labels are not shifted.

    Returns:
        A float32 scalar with gradient, and the count it sums over. Position t predicts label t + 1.
    """
    from torch.nn.functional import cross_entropy, pad

    labels = batch["labels"]
    predicts = pad(labels[:, 1:] != IGNORED, (0, 1))
    targets = labels[:, 1:][predicts[:, :-1]]
    with logits_at(model, predicts):
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits[0]
    return cross_entropy(logits.float(), targets, reduction="sum"), targets.numel()
