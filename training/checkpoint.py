"""Checkpoints: everything a run needs to go on as if it had not stopped, in safetensors and JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console
from core.files import atomic_path, atomic_write_json

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

_STATE = "state.json"
_TENSORS = "tensors.safetensors"


@dataclass(frozen=True)
class Progress:
    """Where a run stands: finished steps and the curve so far."""

    step: int
    history: list[dict[str, float]]
    seconds: float
    """Wall-clock time so far, interruptions left out."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name, in the model's order."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def save(folder: Path, key: str, model: nn.Module, optimizer: Optimizer, progress: Progress) -> None:
    """Write a checkpoint of the run identified by `key`; replaces the one before only once complete."""
    import torch
    from safetensors.torch import save_file

    parameters = trainable(model)
    tensors: dict[str, Tensor] = {f"weight/{name}": weight.data for name, weight in parameters.items()}
    for name, weight in parameters.items():
        for entry, value in optimizer.state.get(weight, {}).items():
            tensors[f"optimizer/{entry}/{name}"] = value
    tensors["random_state"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random_state_cuda"] = torch.cuda.get_rng_state()
    # The key is part of the name: another run's checkpoint is never half overwritten.
    target = folder / f"step-{progress.step:06d}-{key[:12]}"
    target.mkdir(parents=True, exist_ok=True)
    with atomic_path(target / _TENSORS) as path:
        save_file(tensors, path)
    atomic_write_json(target / _STATE, {"key": key, **asdict(progress)})
    for other in folder.glob("step-*"):
        if other != target:
            shutil.rmtree(other)


def restore(folder: Path, key: str, model: nn.Module, optimizer: Optimizer) -> Progress | None:
    """Load the newest complete checkpoint of the run `key` into model and optimizer; None if there is none.

    A damaged one is named and passed over.
    """
    import torch

    for target in sorted(folder.glob("step-*"), reverse=True):
        if not target.name.endswith(f"-{key[:12]}"):
            continue
        progress = _read_state(target, key)
        tensors = _read_tensors(target, model) if progress is not None else None
        if progress is None or tensors is None:
            console().print(f"train: {target} is damaged or was not finished, and is not used")
            continue
        with torch.no_grad():
            for name, weight in trainable(model).items():
                weight.copy_(tensors[f"weight/{name}"])
                # AdamW keeps its count of steps on the CPU.
                optimizer.state[weight] = {"step": tensors[f"optimizer/step/{name}"]} | {
                    entry: tensors[f"optimizer/{entry}/{name}"].to(weight.device) for entry in ("exp_avg", "exp_avg_sq")
                }
        torch.set_rng_state(tensors["random_state"])
        if "random_state_cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random_state_cuda"])
        return progress
    return None


def _read_state(target: Path, key: str) -> Progress | None:
    """Where the checkpoint of the run `key` stands; None if it does not say."""
    try:
        state = json.loads((target / _STATE).read_text(encoding="utf-8"))
        step, history, seconds = int(state["step"]), list(state["history"]), float(state["seconds"])
        whole = state["key"] == key and len(history) == step and all("loss" in dict(point) for point in history)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Progress(step, history, seconds) if whole else None


def _read_tensors(target: Path, model: nn.Module) -> Mapping[str, Tensor] | None:
    """The tensors of a checkpoint; None if the file is torn, or one is missing or has another shape."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(target / _TENSORS)
    except (OSError, ValueError, KeyError, SafetensorError):
        return None
    shapes = {"random_state": torch.get_rng_state().shape}
    for name, weight in trainable(model).items():
        shapes[f"optimizer/step/{name}"] = torch.Size([])
        for entry in ("weight", "optimizer/exp_avg", "optimizer/exp_avg_sq"):
            shapes[f"{entry}/{name}"] = weight.shape
    whole = all(name in tensors and tensors[name].shape == shape for name, shape in shapes.items())
    return tensors if whole else None
