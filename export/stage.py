"""`hermes-edge export`: the merged model in, one `.litertlm` and its card out."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from core.console import console
from core.files import atomic_write_json, atomic_write_text, file_hash
from core.memory import peak_memory_gb
from core.models import load_tokenizer
from core.recipe import Recipe
from core.requirements import EXPORT, need_versions
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.stage import data_inputs
from export.bundle import write_bundle
from export.card import card
from export.convert import convert
from export.lengths import check_room
from export.metadata import llm_metadata
from export.stops import stop_tokens_of
from export.verify import check_lengths, verify
from hermes import get_dialect

PACKAGES = ("litert-torch", "litert-converter", "ai-edge-quantizer", "litert-lm-builder", "litert-lm-api", "torch")

_CODE = (
    *(f"export/{name}.py" for name in ("bundle", "card", "convert", "metadata", "stage", "verify")),
    *(f"export/{name}.py" for name in ("call_format", "lengths", "stops", "template_features")),
    *(f"runtime/{name}.py" for name in ("litert_backend", "litert_messages")),
)


def bundle_path(recipe: Recipe, run: Run) -> Path:
    """Where the recipe's bundle lies."""
    return run.export / f"{recipe.name}.litertlm"


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
    log = run.export / "convert.log"
    shutil.rmtree(work, ignore_errors=True)
    log.unlink(missing_ok=True)
    console().print(f"export: converting the graph, two to four minutes for 135M parameters; details in {log}")
    converted = convert(model, work, recipe.export, log)
    metadata = llm_metadata(dialect, stop_tokens_of(model, (dialect.stop,)), recipe.export.cache_length)
    unproven = target.with_name(f"refused-{target.name}")
    write_bundle(unproven, converted, model / "tokenizer.json", metadata, work)
    console().print("export: checking the bundle in LiteRT-LM")
    evidence = verify(unproven, dialect, tokenizer, samples, recipe.export.cache_length)
    for what, outcome in evidence["replies"].items():
        console().print(f"export:   {what}: {outcome}")
    this.begin()
    unproven.replace(target)
    atomic_write_json(run.export / "evidence.json", evidence)
    digest = file_hash(target)
    facts = {"merged model": f"SHA-256 `{this.inputs['model'][0]}`", **evidence["replies"], **this.inputs["versions"]}
    atomic_write_text(run.export / "card.md", card(recipe, target.name, target.stat().st_size, digest, facts))
    this.finish(
        [target, run.export / "card.md", run.export / "evidence.json"],
        seconds=round(time.monotonic() - started, 1),
        peak_memory_gb=peak_memory_gb(),
        bytes=target.stat().st_size,
        sha256=digest,
    )
    shutil.rmtree(work, ignore_errors=True)
    return target
