"""Checkpoints: everything a run needs to go on as if it had not stopped, in safetensors and JSON."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """Load the newest complete checkpoint of the run `key` into model and optimizer; None if there is none."""
    import torch
    from safetensors.torch import load_file

    for target in sorted(folder.glob("step-*"), reverse=True):
        state = _read_state(target, key)
        if state is None:
            continue
        tensors = load_file(target / _TENSORS)
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
        return Progress(state["step"], state["history"], state["seconds"])
    return None


def _read_state(target: Path, key: str) -> dict[str, Any] | None:
    """The state of a complete checkpoint of the run `key`, else None."""
    try:
        state: dict[str, Any] = json.loads((target / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if state.get("key") == key and (target / _TENSORS).is_file() else None
