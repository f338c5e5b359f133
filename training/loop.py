"""The training loop: AdamW on the adapter, cosine schedule, checkpoints that resume."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.recipe import TrainingSettings
from data.tokenise import Example
from training import checkpoint
from training.batches import collate, plan
from training.loss import labelled_loss

if TYPE_CHECKING:
    from torch import nn

OnStep = Callable[[int, int, dict[str, float]], None]
"""Called after each step with its number, the number of steps, and the step's point of the curve."""


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Linear rise over the first `warmup` share of `steps`, then half a cosine down to a tenth of `peak`.

    `step` counts from 0; the schedule of Loshchilov & Hutter, arXiv 1608.03983, without restarts.
    """
    rise = max(1, round(warmup * steps))
    if step < rise:
        return peak * (step + 1) / rise
    progress = (step - rise) / max(1, steps - rise)
    return peak * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * progress)))


def fit(
    model: nn.Module,
    train: Sequence[Example],
    validation: Sequence[Example],
    settings: TrainingSettings,
    seed: int,
    checkpoints: Path,
    key: str,
    on_step: OnStep | None = None,
) -> list[dict[str, float]]:
    """Train `model`'s trainable parameters in place.

    Args:
        key: identifies the run; a checkpoint in `checkpoints` with another key is not used.

    Returns:
        The curve: one point a step with `step`, `loss` (mean per label), `learning_rate`,
        `gradient_norm`, and `validation_loss` at a quarter, half, three quarters and the end.
    """
    import torch

    device = next(model.parameters()).device
    weights = list(checkpoint.trainable(model).values())
    optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    torch.manual_seed(seed)
    progress = checkpoint.restore(checkpoints, key, model, optimizer) or checkpoint.Progress(0, [])
    history = list(progress.history)
    batches = plan(train, settings.batch_size, settings.epochs, seed)
    validate_after = {max(1, round(len(batches) * quarter / 4)) for quarter in range(1, 5)}
    # Every label weighs the same, in whichever batch it is: a mean over each batch's own labels would weigh
    # those of short replies more.
    usual = sum(train[index].label_count for batch in batches for index in batch) / len(batches)
    model.train()
    for step in range(progress.step, len(batches)):
        rate = learning_rate(step, len(batches), settings.learning_rate, settings.warmup)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, labels = labelled_loss(model, collate([train[index] for index in batches[step]]).to(device))
        (loss / usual).backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(weights, settings.max_gradient_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        point = {
            "step": step + 1,
            "loss": float(loss.detach()) / labels,
            "learning_rate": rate,
            "gradient_norm": float(norm),
        }
        if step + 1 in validate_after:
            point["validation_loss"] = mean_loss(model, validation, settings.batch_size)
        history.append(point)
        if (step + 1) % settings.checkpoint_every == 0 or step + 1 == len(batches):
            checkpoint.save(checkpoints, key, model, optimizer, checkpoint.Progress(step + 1, history))
        if on_step:
            on_step(step + 1, len(batches), point)
    return history


def mean_loss(model: nn.Module, examples: Sequence[Example], batch_size: int) -> float:
    """Mean cross entropy per label over `examples`, without dropout or gradient."""
    import torch

    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for indices in plan(examples, batch_size, epochs=1, seed=0):
            loss, labels = labelled_loss(model, collate([examples[index] for index in indices]).to(device))
            total, count = total + float(loss), count + labels
    model.train(was_training)
    return total / count
