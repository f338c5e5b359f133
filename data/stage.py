"""`hermes-edge data`: from the recipe to conversations on disk."""

from __future__ import annotations

from pathlib import Path

from core.console import console, progress
from core.files import value_hash
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash
from core.user_files import read_prompt
from data.build import OUTPUTS, build


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the data of `recipe` depends on."""
    return Stage(
        run.data,
        {
            **recipe.data_inputs(),
            "system prompts": [value_hash(read_prompt(Path(path))) for path in recipe.data.system_prompts],
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
