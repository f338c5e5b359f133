"""`hermes-edge train`: conversations in, adapter and merged model out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console, progress
from core.errors import UserError
from core.files import atomic_write_text, file_hash
from core.memory import peak_memory_gb
from core.models import load_model, load_tokenizer, materialise, resolve_source
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.supervision import Kind, audit
from data.tokenise import Example, tokenise
from hermes import dumps, get_dialect, unreadable_turns
from training.adapter import attach, choose_dtype, merge, prepare_tokenizer
from training.checkpoint import Progress
from training.curve import write_curve
from training.loop import fit

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the training of `recipe` depends on."""
    need_stage(run.data, "hermes-edge data", {"data": recipe.data.model_dump(), "seed": recipe.seed})
    splits = [run.data / f"{split}.jsonl" for split in ("train", "validation")]
    return Stage(
        run.training,
        {
            "training": recipe.training.model_dump(),
            "model": recipe.model.model_dump(),
            "model content": resolve_source(recipe.model)[1],
            "dialect": recipe.dialect,
            "seed": recipe.seed,
            "data": [file_hash(path) for path in splits],
            "code": code_hash("hermes", "training", "data/tokenise.py", "data/supervision.py", "core/models.py"),
            "versions": versions("torch", "transformers", "peft"),
        },
    )


def train(recipe: Recipe, run: Run) -> Path:
    """Tune the recipe's model on the recipe's data; returns the folder of the merged model.

    Goes on from the last checkpoint of the same inputs; what an unfinished run with other inputs left is
    removed.
    """
    this = stage(recipe, run)
    merged = run.training / "merged"
    stale = this.why_stale()
    if stale is None:
        console().print(f"train: up to date ({merged})")
        return merged
    console().print(f"train: {stale}")
    base = materialise(recipe.model)
    tokenizer = load_tokenizer(base, recipe.model.trust_remote_code)
    dialect = get_dialect(recipe.dialect)
    prepare_tokenizer(tokenizer, dialect)
    supervision = _audited(recipe, run, tokenizer)
    this.begin()
    for leftover in (merged, run.training / "adapter"):
        shutil.rmtree(leftover, ignore_errors=True)
    examples = {split: _examples(recipe, run, split, tokenizer) for split in ("train", "validation")}
    dtype = choose_dtype(recipe.training.precision)
    model = attach(_on_device(load_model(base, dtype, recipe.model.trust_remote_code)), recipe.training, recipe.seed)
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
    write_curve(finished.history, run.training)
    # The adapter's card should name the model's source, not a folder of this machine.
    model.peft_config["default"].base_model_name_or_path = recipe.model.source
    model.save_pretrained(run.training / "adapter", safe_serialization=True, save_embedding_layers=False)
    del model
    console().print("train: merging the adapter into the model")
    merge(base, recipe.model.trust_remote_code, run.training / "adapter", merged, dialect)
    shutil.rmtree(run.training / "checkpoints")
    outputs = [path for path in run.training.rglob("*") if path.is_file() and not path.name.startswith(".")]
    this.finish(
        outputs, **_figures(finished, examples["train"], str(dtype).removeprefix("torch.")), supervision=supervision
    )
    return merged


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


def _examples(recipe: Recipe, run: Run, split: str, tokenizer: PreTrainedTokenizerFast) -> list[Example]:
    """The tokenised split; conversations over `max_length` are written to `rejected.jsonl` and named."""
    dialect = get_dialect(recipe.dialect)
    limit = recipe.training.max_length
    kept: list[Example] = []
    rejected: list[str] = []
    for conversation in read_conversations(run.data / f"{split}.jsonl"):
        example = tokenise(conversation, dialect, tokenizer)
        length = len(example.input_ids)
        unreadable = unreadable_turns(conversation, dialect)
        if unreadable:
            rejected.append(dumps({"id": conversation.id, "reason": "; ".join(unreadable)}))
        elif length > limit:
            rejected.append(dumps({"id": conversation.id, "reason": f"{length} tokens; max_length is {limit}"}))
        else:
            kept.append(example)
    atomic_write_text(run.training / f"rejected-{split}.jsonl", "".join(f"{line}\n" for line in rejected))
    if rejected:
        console().print(
            f"train: {len(rejected)} {split} conversation(s) left out, named with the reason in "
            f"{run.training / f'rejected-{split}.jsonl'}; training.max_length is {limit} tokens"
        )
    if not kept:
        raise UserError(f"{run.data / f'{split}.jsonl'}: no conversation fits training.max_length = {limit}")
    return kept


def _on_device(model: PreTrainedModel) -> PreTrainedModel:
    import torch

    return model.to("cuda") if torch.cuda.is_available() else model
