"""`hermes-edge train`: conversations in, adapter and merged model out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console, progress
from core.errors import UserError
from core.files import atomic_write_text, file_hash
from core.memory import peak_memory_gb
from core.models import choose_dtype, load_model, materialise, resolve_source
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.stage import data_inputs
from data.supervision import Kind, audit
from data.tokenise import Example, tokenise
from hermes import dumps, get_dialect, unreadable_turns
from training.adapter import Vocabulary, attach, merge, save_adapter
from training.checkpoint import Progress
from training.curve import CURVE_FILES, write_curve
from training.loop import fit

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SPLITS = ("train", "validation")
"""The splits that training reads."""


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the training of `recipe` depends on."""
    need_stage(run.data, "hermes-edge data", data_inputs(recipe))
    splits = [run.data / f"{split}.jsonl" for split in SPLITS]
    return Stage(
        run.training,
        {
            **recipe.training_inputs(),
            "model content": resolve_source(recipe.model)[1],
            "data": [file_hash(path) for path in splits],
            "code": code_hash(
                "hermes", "training", "data/tokenise.py", "data/supervision.py", "core/models.py", "core/sentinels.py"
            ),
            "versions": versions("torch", "transformers", "peft"),
        },
    )


def train(recipe: Recipe, run: Run) -> Path:
    """Tune the recipe's model on the recipe's data; returns the folder of the merged model.

    Goes on from the last checkpoint of the same inputs; what an unfinished run with other inputs left is
    removed. An earlier result stays, and stays up to date, until the new one is written.
    """
    this = stage(recipe, run)
    merged = run.training / "merged"
    stale = this.why_stale()
    if stale is None:
        console().print(f"train: up to date ({merged})")
        return merged
    console().print(f"train: {stale}")
    base = materialise(recipe.model)
    vocabulary = Vocabulary.of(base, recipe)
    tokenizer = vocabulary.tokenizer
    supervision = _audited(recipe, run, tokenizer)
    examples, rejected = _examples(recipe, run, tokenizer)
    dtype = choose_dtype(recipe.training.precision)
    plain = load_model(base, dtype, recipe.model.trust_remote_code)
    rows = vocabulary.start(plain)
    model = attach(_on_device(plain), recipe.training, recipe.seed, rows)
    with progress("train") as advance:
        finished = fit(
            model,
            examples["train"],
            examples["validation"],
            recipe.training,
            recipe.seed,
            run.training / "checkpoints",
            this.key,
            lambda step, steps, point: advance(step, steps, f"loss {point['loss']:.3f}"),
        )
    this.begin()
    for split, text in rejected.items():
        atomic_write_text(_rejected_path(run, split), text)
    write_curve(finished.history, run.training)
    shutil.rmtree(run.training / "adapter", ignore_errors=True)
    save_adapter(model, recipe.model.source, run.training / "adapter")
    del model
    console().print("train: merging the adapter into the model")
    shutil.rmtree(merged, ignore_errors=True)
    merge(base, recipe, run.training / "adapter", merged)
    figures = _figures(finished, examples["train"], str(dtype).removeprefix("torch."))
    this.finish(_outputs(run), **figures, supervision=supervision)
    # Only now: whoever stops before the record is there can still go on from them.
    shutil.rmtree(run.training / "checkpoints", ignore_errors=True)
    return merged


def _outputs(run: Run) -> list[Path]:
    """The files of a finished training; what else lies in its folder is the user's."""
    folders = (run.training / "adapter", run.training / "merged")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [*files, *(run.training / name for name in CURVE_FILES), *(_rejected_path(run, split) for split in SPLITS)]


def _audited(recipe: Recipe, run: Run, tokenizer: PreTrainedTokenizerFast) -> dict[Kind, int]:
    """Trained tokens by kind; refuses a set in which a kind is missing."""
    path = run.data / "train.jsonl"
    try:
        return audit(read_conversations(path), get_dialect(recipe.dialect), tokenizer)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def _figures(finished: Progress, examples: list[Example], dtype: str) -> dict[str, object]:
    """What the report says of the training; seconds count every start of an interrupted run."""
    return {
        "seconds": round(finished.seconds, 1),
        "peak_memory_gb": peak_memory_gb(),
        "dtype": dtype,
        "final_loss": finished.history[-1]["loss"],
        "validation_loss": finished.history[-1]["validation_loss"],
        "labels": sum(example.label_count for example in examples),
        "tokens": sum(len(example.input_ids) for example in examples),
    }


def _examples(
    recipe: Recipe, run: Run, tokenizer: PreTrainedTokenizerFast
) -> tuple[dict[str, list[Example]], dict[str, str]]:
    """The tokenised splits, and for each the rows of those that are left out."""
    dialect = get_dialect(recipe.dialect)
    limit = recipe.training.max_length
    kept: dict[str, list[Example]] = {split: [] for split in SPLITS}
    rejected: dict[str, str] = {}
    for split in SPLITS:
        rows: list[str] = []
        for conversation in read_conversations(run.data / f"{split}.jsonl"):
            example = tokenise(conversation, dialect, tokenizer)
            length = len(example.input_ids)
            unreadable = unreadable_turns(conversation, dialect)
            if unreadable:
                rows.append(dumps({"id": conversation.id, "reason": "; ".join(unreadable)}))
            elif length > limit:
                rows.append(dumps({"id": conversation.id, "reason": f"{length} tokens; max_length is {limit}"}))
            else:
                kept[split].append(example)
        if not kept[split]:
            raise UserError(f"{run.data / f'{split}.jsonl'}: no conversation fits training.max_length = {limit}")
        if rows:
            console().print(
                f"train: {len(rows)} {split} conversation(s) are left out, to be named with the reason in "
                f"{_rejected_path(run, split)}; training.max_length is {limit} tokens"
            )
        rejected[split] = "".join(f"{row}\n" for row in rows)
    return kept, rejected


def _rejected_path(run: Run, split: str) -> Path:
    return run.training / f"rejected-{split}.jsonl"


def _on_device(model: PreTrainedModel) -> PreTrainedModel:
    import torch

    return model.to("cuda") if torch.cuda.is_available() else model
