"""The training loop: AdamW on the adapter, cosine schedule, checkpoints that resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UserError
from core.memory import release_freed
from core.recipe import TrainingSettings
from data.tokenise import Example
from training import checkpoint
from training.adapter import efficient
from training.batches import collate, plan
from training.checkpoint import Progress, trainable
from training.loss import add_gradient, labelled_loss

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

_RELEASE_EVERY = 4
"""Steps between calls of `release_freed`; after each step it costs a quarter of the step, new pages above all."""

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
) -> Progress:
    """Train `model`'s trainable parameters in place.

    Args:
        key: identifies the run; a checkpoint in `checkpoints` with another key is not used.

    Returns:
        The finished progress. Its history has one point a step with `step`, `loss` (mean per label),
        `learning_rate`, `gradient_norm`, and `validation_loss` at a quarter, half, three quarters and the end.

    Raises:
        UserError: the loss is no longer a number.
    """
    import torch

    weights = list(trainable(model).values())
    optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    torch.manual_seed(seed)
    before = checkpoint.restore(checkpoints, key, model, optimizer) or Progress(0, [], 0.0)
    history, started = list(before.history), time.monotonic() - before.seconds
    schedule = _Schedule.of(train, settings, seed)
    model.train()
    for step in range(before.step, len(schedule.batches)):
        point = _step(model, optimizer, train, schedule, step, settings)
        if step + 1 in schedule.validate_after:
            point["validation_loss"] = mean_loss(model, validation, settings)
        history.append(point)
        if (step + 1) % _RELEASE_EVERY == 0:
            release_freed()
        if (step + 1) % settings.checkpoint_every == 0 or step + 1 == len(schedule.batches):
            progress = Progress(step + 1, history, time.monotonic() - started)
            checkpoint.save(checkpoints, key, model, optimizer, progress)
        if on_step:
            on_step(step + 1, len(schedule.batches), point)
    return Progress(len(schedule.batches), history, time.monotonic() - started)


@dataclass(frozen=True)
class _Schedule:
    """What each step trains on; a pure function of examples, settings and seed."""

    batches: list[list[int]]
    labels_per_step: float
    """The mean over all steps."""
    validate_after: set[int]

    @classmethod
    def of(cls, train: Sequence[Example], settings: TrainingSettings, seed: int) -> _Schedule:
        batches = plan(train, settings.batch_size, settings.epochs, seed)
        labels = sum(train[index].label_count for batch in batches for index in batch)
        quarters = {max(1, round(len(batches) * quarter / 4)) for quarter in range(1, 5)}
        return cls(batches, labels / len(batches), quarters)


def _step(
    model: nn.Module,
    optimizer: Optimizer,
    train: Sequence[Example],
    schedule: _Schedule,
    step: int,
    settings: TrainingSettings,
) -> dict[str, float]:
    """One step, and its point of the curve.

    Every label weighs the same, in whichever batch it is: a mean over each batch's own labels would weigh
    those of short replies more.
    """
    import torch

    rate = learning_rate(step, len(schedule.batches), settings.learning_rate, settings.warmup)
    for group in optimizer.param_groups:
        group["lr"] = rate
    device = next(model.parameters()).device
    batch = collate([train[index] for index in schedule.batches[step]], settings.part_tokens).to(device)
    with efficient(model):
        loss, labels = add_gradient(model, batch, 1 / schedule.labels_per_step)
    norm = torch.nn.utils.clip_grad_norm_(trainable(model).values(), settings.max_gradient_norm)
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise UserError(
            f"training: the loss or its gradient is not finite at step {step + 1}; lower training.learning_rate "
            f"({settings.learning_rate}) or training.alpha ({settings.alpha}), or set training.precision to float32"
        )
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {"step": step + 1, "loss": loss / labels, "learning_rate": rate, "gradient_norm": float(norm)}


def mean_loss(model: nn.Module, examples: Sequence[Example], settings: TrainingSettings) -> float:
    """Mean cross entropy per label over `examples`, without dropout or gradient."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    with efficient(model):
        for indices in plan(examples, settings.batch_size, epochs=1, seed=0):
            batch = collate([examples[index] for index in indices], settings.part_tokens)
            loss, labels = labelled_loss(model, batch.to(device))
            total, count = total + loss, count + labels
    model.train(was_training)
    return total / count
