"""`hermes-edge data`: from the recipe to conversations on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.console import console, progress
from core.files import value_hash
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash
from core.user_files import read_prompt
from data.build import OUTPUTS, build


def data_inputs(recipe: Recipe) -> dict[str, Any]:
    """What the recipe says that decides the conversations, and the hashes of the files that it names.

    Raises:
        UserError: such a file cannot be read.
    """
    prompts = [value_hash(read_prompt(Path(path))) for path in recipe.data.system_prompts]
    return {"data": recipe.data.model_dump(mode="json"), "seed": recipe.seed, "system prompts": prompts}


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the data of `recipe` depends on."""
    return Stage(
        run.data,
        {
            **data_inputs(recipe),
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
