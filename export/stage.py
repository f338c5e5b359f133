"""`hermes-edge export`: the merged model in, one `.litertlm` with its evidence and its card out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from core.console import console
from core.files import atomic_write_text, file_hash
from core.memory import peak_memory_gb
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.stage import data_inputs
from export.bundle import write_bundle
from export.card import card
from export.convert import convert
from export.every_gate import GATES
from export.gates import Outcome, Subject, run_gates
from export.metadata import llm_metadata
from export.rendering_gates import refuse_small_cache

PACKAGES = ("litert-torch", "litert-converter", "ai-edge-quantizer", "litert-lm-builder", "litert-lm-api", "torch")

_MODULES = ("bundle", "card", "convert", "every_gate", "gates", "logit_gates", "logits", "metadata", "probes")
_CODE = (
    *(f"export/{name}.py" for name in (*_MODULES, "rendering_gates", "reply_gates", "stage")),
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
            "answer": recipe.evaluation.max_new_tokens,
            "name": recipe.name,
            "dialect": recipe.dialect,
            "model": [file_hash(weights), file_hash(weights.parent / "tokenizer.json")],
            "samples": [file_hash(run.data / f"{split}.jsonl") for split in ("test", "train")],
            "code": code_hash("hermes", *_CODE),
            "versions": versions(*PACKAGES),
        },
    )


def export(recipe: Recipe, run: Run) -> Path:
    """Convert, pack and prove; returns the bundle. An earlier one stays until the new one has passed.

    Raises:
        UserError: the conversion failed, or a gate did; the message lists each. The bundle then lies there as
            `refused-NAME.litertlm`, with its figures in `refused-evidence.json`.
    """
    this = stage(recipe, run)
    target = bundle_path(recipe, run)
    stale = this.why_stale()
    if stale is None:
        console().print(f"export: up to date ({target})")
        return target
    console().print(f"export: {stale}")
    started = time.monotonic()
    work = run.export / "work"
    unproven, evidence = (run.export / f"refused-{name}" for name in (target.name, "evidence.json"))
    test, trained = (read_conversations(run.data / f"{split}.jsonl") for split in ("test", "train"))
    with Subject(unproven, run.training / "merged", recipe, test, trained) as subject:
        refuse_small_cache(subject)
        _write(subject, work, run.export / "convert.log")
        console().print("export: checking the bundle")
        outcomes = run_gates(GATES, subject, evidence)
    this.begin()
    unproven.replace(target)
    evidence.replace(run.export / "evidence.json")
    digest = file_hash(target)
    facts = {"merged model": f"SHA-256 `{this.inputs['model'][0]}`", **_shown(outcomes), **this.inputs["versions"]}
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


def _write(subject: Subject, work: Path, log: Path) -> None:
    """Convert the merged model and pack the bundle, which nothing has proven yet."""
    settings, dialect = subject.recipe.export, subject.dialect
    shutil.rmtree(work, ignore_errors=True)
    log.unlink(missing_ok=True)
    console().print(f"export: converting the graph, two to four minutes for 135M parameters; details in {log}")
    converted = convert(subject.model, work, settings, log)
    subject.float_graph = next((path for path in work.glob("*.tflite") if "quantized" not in path.name), None)
    stop = subject.tokenizer.convert_tokens_to_ids(dialect.stop)
    metadata = llm_metadata(dialect, stop, settings.cache_length)
    write_bundle(subject.bundle, converted, subject.model / "tokenizer.json", metadata, work)


def _shown(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """The gates on the card."""
    return {name: str(outcome) for name, outcome in outcomes.items()}
