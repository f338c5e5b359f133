"""What sharing the prefix and selecting logits bring to a training step: `python benchmarks/prefix.py`.

The default recipe's data and model; each variant in a process of its own, so that its peak memory is its own. All
four compute the same gradient (tests/test_training.py). `plain` is what a step of transformers does: rows padded to
one length, logits at every position.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.memory import peak_memory_gb
from core.models import choose_dtype, load_model, load_tokenizer, materialise
from core.recipe_file import load_recipe
from data.agent_skills import generate
from data.tokenise import IGNORED, tokenise
from hermes import get_dialect
from training.adapter import attach, efficient
from training.batches import Batch, collate, plan
from training.loss import add_gradient

VARIANTS = ("plain", "selective logits", "shared prefix", "both")
RECIPE = Path(__file__).resolve().parent.parent / "configs" / "smollm2-135m.yaml"
AT_ONCE = 3
"""Whole rows that go forward and back at a time."""


def all_logits(model: Any, batch: Batch) -> None:
    """A step with logits at every position; the prefix, where there is one, once."""
    import torch
    from torch.nn.functional import cross_entropy, pad

    from training.loss import _prefix, _repeated

    prefix, shared = _prefix(model, batch), batch.prefix.shape[0]
    losses: list[torch.Tensor] = []
    for part in batch.parts:
        rows = len(part.input_ids)
        logits = model(
            input_ids=part.input_ids,
            attention_mask=pad(part.attention_mask, (shared, 0), value=1),
            past_key_values=_repeated(prefix, rows) if prefix is not None else None,
            use_cache=prefix is not None,
        ).logits
        loss = cross_entropy(
            logits[:, :-1].float().flatten(0, 1), part.labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
        )
        if prefix is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            losses.append(loss)
    if losses:
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]


def measure(variant: str, steps: int) -> dict[str, float]:
    """Examples per second over `steps` steps after one to warm up, and the peak memory."""
    recipe = load_recipe(RECIPE)
    base = materialise(recipe.model)
    tokenizer, dialect, settings = load_tokenizer(base), get_dialect(recipe.dialect), recipe.training
    examples = [tokenise(each, dialect, tokenizer) for each in generate("train", recipe.data.train, recipe.seed)]
    model = attach(load_model(base, choose_dtype(settings.precision)), settings, recipe.seed)
    model.train()
    chosen = [
        indices
        for indices in plan(examples, settings.batch_size, 1, recipe.seed)
        if len(indices) == settings.batch_size
    ]
    shares = variant in ("shared prefix", "both")
    step: Callable[[Any, Batch], object] = (
        all_logits if variant in VARIANTS[::2] else lambda m, b: add_gradient(m, b, 1.0)
    )
    times = []
    for indices in chosen[: steps + 1]:
        rows = [examples[index] for index in indices]
        batch = collate(rows, settings.part_tokens) if shares else whole_rows(rows)
        started = time.perf_counter()
        with efficient(model):
            step(model, batch)
        times.append(time.perf_counter() - started)
        model.zero_grad(set_to_none=True)
    return {"examples_per_second": settings.batch_size * steps / sum(times[1:]), "peak_memory_gb": peak_memory_gb()}


def whole_rows(rows: list[Any]) -> Batch:
    """Rows with the prefix in each, a few at a time: ten at once take 24 GB with all logits."""
    import torch

    from training.batches import _rows

    parts = [rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)]
    return Batch(torch.zeros(0, dtype=torch.long), tuple(_rows(part, 0) for part in parts))


def main() -> None:
    """Measure all variants, or, in a child process, one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args()
    if given.variant:
        print(json.dumps(measure(given.variant, given.steps)))
        return
    plain = None
    print("| step | examples a second | factor | peak memory |\n| --- | --- | --- | --- |")
    for variant in VARIANTS:
        command = [sys.executable, __file__, "--variant", variant, "--steps", str(given.steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        speed = found["examples_per_second"]
        plain = plain or speed
        print(f"| {variant} | {speed:.2f} | {speed / plain:.1f}x | {found['peak_memory_gb']:.1f} GB |", flush=True)


if __name__ == "__main__":
    main()
