"""`hermes-edge data`: from the recipe to conversations on disk."""

from __future__ import annotations

from core.console import console, progress
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash
from data.build import OUTPUTS, build


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the data of `recipe` depends on."""
    return Stage(
        run.data,
        {
            "data": recipe.data.model_dump(),
            "seed": recipe.seed,
            "code": code_hash("hermes", "data"),
        },
    )


def build_data(recipe: Recipe, run: Run) -> None:
    """Write the splits, unless they are up to date."""
    this = stage(recipe, run)
    stale = this.why_stale()
    if stale is None:
        console().print(f"data: up to date ({run.data})")
        return
    console().print(f"data: {stale}")
    this.begin()
    with progress("data") as advance:
        summary = build(recipe, run.data, lambda split, done, total: advance(done, total, split))
    this.finish([run.data / name for name in OUTPUTS], **summary)
