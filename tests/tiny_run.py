"""A recipe that ships, at tiny size, through all stages once; several tests look at what that leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.recipe import Recipe, load_recipe
from core.stages import Run
from data.stage import build_data
from eval.stage import evaluate_models
from export.card import renew_card
from export.stage import export
from training.stage import train

TINY = {
    "data.train": "24",
    "data.validation": "2",
    "data.test": "3",
    "training.rank": "2",
    "training.learning_rate": "0.03",
    "training.batch_size": "8",
    "training.precision": "float32",
    "export.cache_length": "1280",
    "export.prefill_lengths": "[256]",
    "evaluation.max_new_tokens": "8",
    # What a model of 3M parameters cannot do: be sure of its next token, end its turns.
    "export.gates.agreement": "0.7",
    "export.gates.first_token_lead": "2",
    "export.gates.stopped": "0",
    "export.gates.reply_tokens": "12",
}


@dataclass(frozen=True)
class Finished:
    """A run in which every stage has finished."""

    recipe: Recipe
    run: Run
    recipe_file: Path
    overrides: dict[str, str]


def finish(recipe_file: Path, model: Path, folder: Path) -> Finished:
    """All stages, in the order of `make`."""
    overrides = TINY | {"model.source": str(model)}
    recipe = load_recipe(recipe_file, overrides)
    run = Run(folder / recipe.name)
    build_data(recipe, run)
    train(recipe, run)
    evaluate_models(recipe, run, ("base", "tuned"))
    export(recipe, run)
    evaluate_models(recipe, run, ("base", "tuned", "bundle"))
    renew_card(recipe, run)
    return Finished(recipe, run, recipe_file, overrides)
