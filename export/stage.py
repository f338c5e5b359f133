"""`hermes-edge export`: the merged model in, one `.litertlm` with its lock, evidence and card out."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console
from core.files import atomic_write_json, file_hash
from core.memory import peak_memory_gb
from core.models import load_tokenizer, resolve_source
from core.recipe import Recipe
from core.requirements import EXPORT, need_versions
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.stage import data_inputs
from export.bundle import write_bundle
from export.card import write_card
from export.constraint import constraint_files, write_constraint
from export.convert import convert
from export.lengths import check_room
from export.lock import PACKAGES, lock
from export.metadata import llm_metadata
from export.stops import stop_tokens_of
from export.tokenizer_parity import PackedTokenizer, check_parity, choose_tokenizer
from export.verify import check_lengths, verify
from hermes import get_dialect
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.litert_backend import LiteRTBackend

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_NAMES = (
    *("bundle", "call_format", "constraint", "convert", "lengths", "lock", "metadata", "quantise", "stage", "stops"),
    *("template_features", "tokenizer_parity", "verify"),
)
_RUNTIME = ("bundle_tokenizer", "constraint", "litert_backend", "litert_messages", "raw_text", "speed")
_CODE = (
    *(f"export/{name}.py" for name in _NAMES),
    *(f"runtime/{name}.py" for name in _RUNTIME),
)


def bundle_path(recipe: Recipe, run: Run) -> Path:
    """Where the recipe's bundle lies."""
    return run.export / f"{recipe.name}.litertlm"


def packed_tokenizer(recipe: Recipe, run: Run, tokenizer: PreTrainedTokenizerFast) -> PackedTokenizer:
    """The tokenizer file of the recipe's bundle."""
    return choose_tokenizer(run.training / "merged", resolve_source(recipe.model)[0], tokenizer)


def metadata_of(recipe: Recipe, run: Run) -> bytes:
    """The metadata of the recipe's bundle."""
    dialect = get_dialect(recipe.dialect)
    stops = stop_tokens_of(run.training / "merged", (dialect.stop,))
    return llm_metadata(dialect, stops, recipe.export.cache_length)


def stage(recipe: Recipe, run: Run) -> Stage:
    """What the export of `recipe` depends on."""
    need_stage(run.data, "hermes-edge data", data_inputs(recipe))
    need_stage(run.training, "hermes-edge train", recipe.training_inputs())
    weights = run.training / "merged" / "model.safetensors"
    return Stage(
        run.export,
        {
            "export": recipe.export.model_dump(mode="json"),
            "name": recipe.name,
            "dialect": recipe.dialect,
            "model": [file_hash(weights), file_hash(weights.parent / "tokenizer.json")],
            "samples": file_hash(run.data / "test.jsonl"),
            "code": code_hash("hermes", *_CODE),
            "versions": versions(*PACKAGES),
        },
    )


def export(recipe: Recipe, run: Run) -> Path:
    """Convert, pack and verify; returns the bundle. An earlier one stays until the new one has passed.

    Raises:
        UserError: versions are not those that are tested, a prompt leaves no room for its answer, the conversion
            failed, or the finished bundle does not do in LiteRT-LM what the
            training saw; the bundle then lies there as `refused-NAME.litertlm`.
    """
    this = stage(recipe, run)
    target = bundle_path(recipe, run)
    stale = this.why_stale()
    if stale is None:
        console().print(f"export: up to date ({target})")
        write_card(recipe, run)
        return target
    console().print(f"export: {stale}")
    need_versions(EXPORT, "export")
    started = time.monotonic()
    samples = read_conversations(run.data / "test.jsonl")
    model, work = run.training / "merged", run.export / "work"
    dialect = get_dialect(recipe.dialect)
    tokenizer = load_tokenizer(model)
    check_lengths(samples, dialect, tokenizer, recipe.export.cache_length, run.data / "test.jsonl")
    prompts = [*samples, *read_conversations(run.data / "train.jsonl")]
    check_room(prompts, dialect, tokenizer, recipe.evaluation.max_new_tokens, recipe.export.cache_length)
    unproven = target.with_name(f"refused-{target.name}")
    packed, parts = _write(recipe, run, unproven, tokenizer, work)
    constraint = constraint_files(recipe, target.name, bundle_tokenizer(unproven))
    console().print("export: checking the bundle in LiteRT-LM")
    evidence = verify(unproven, dialect, tokenizer, samples, recipe.export.cache_length)
    with LiteRTBackend(unproven, recipe.dialect) as backend:
        evidence["texts with equal token ids"] = check_parity(tokenizer, backend.engine.tokenize, packed, unproven)
    for what, outcome in evidence["replies"].items():
        console().print(f"export:   {what}: {outcome}")
    this.begin()
    unproven.replace(target)
    sidecar = write_constraint(target, constraint)
    atomic_write_json(run.export / "evidence.json", evidence)
    template = hashlib.sha256(dialect.chat_template().encode()).hexdigest()
    locked = lock(target, model, parts, template, this.inputs["export"])
    atomic_write_json(run.export / "lock.json", locked)
    this.finish(
        [target, run.export / "evidence.json", run.export / "lock.json", *sidecar],
        seconds=round(time.monotonic() - started, 1),
        peak_memory_gb=peak_memory_gb(),
        bytes=target.stat().st_size,
        sha256=locked["bundle"]["sha256"],
    )
    write_card(recipe, run)
    shutil.rmtree(work, ignore_errors=True)
    return target


def _write(
    recipe: Recipe, run: Run, unproven: Path, tokenizer: PreTrainedTokenizerFast, work: Path
) -> tuple[PackedTokenizer, dict[str, str]]:
    """Convert the merged model and pack the bundle, which nothing has proven yet; the hashes are its parts'."""
    log = run.export / "convert.log"
    shutil.rmtree(work, ignore_errors=True)
    log.unlink(missing_ok=True)
    console().print(f"export: converting the graph, two to four minutes for 135M parameters; details in {log}")
    converted = convert(run.training / "merged", work, recipe.export, log)
    packed = packed_tokenizer(recipe, run, tokenizer)
    console().print(f"export: tokenizer: {packed.path.name}: {packed.reason}")
    return packed, write_bundle(unproven, converted, packed.path, metadata_of(recipe, run), work)
