"""`hermes-edge export`: the merged model in, one `.litertlm` with its lock, evidence and card out."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console
from core.files import atomic_write_json, file_hash
from core.memory import peak_memory_with_children_gb
from core.models import resolve_source
from core.recipe import Recipe
from core.requirements import EXPORT, need_versions
from core.stages import Run, Stage, code_hash, need_stage, versions
from data.build import read_conversations
from data.stage import data_inputs
from export.bundle import write_bundle
from export.card import write_card
from export.constraint import constraint_files, write_constraint
from export.convert import convert_float, quantised
from export.every_gate import GATES
from export.gates import Subject, run_gates
from export.lengths import check_room
from export.lock import lock
from export.metadata import llm_metadata
from export.stops import stop_tokens_of
from export.tokenizer_parity import PackedTokenizer, choose_tokenizer
from hermes import get_dialect
from runtime.bundle_tokenizer import bundle_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_NAMES = (
    *("bundle", "call_format", "constraint", "constraint_gate", "convert", "converter", "every_gate", "gates"),
    *("lengths", "lock", "logit_gates", "logits", "metadata", "probes", "quantise", "rendering_gates", "reply_gates"),
    *("stage", "stops", "template_features", "tokenizer_parity"),
)
_RUNTIME = ("bundle_tokenizer", "constraint", "litert_backend", "litert_messages", "raw_text", "speed")
_CODE = (*(f"export/{name}.py" for name in _NAMES), *(f"runtime/{name}.py" for name in _RUNTIME))


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
            "answer": recipe.evaluation.max_new_tokens,
            "name": recipe.name,
            "dialect": recipe.dialect,
            "model": [file_hash(weights), file_hash(weights.parent / "tokenizer.json")],
            "samples": [file_hash(run.data / f"{split}.jsonl") for split in ("test", "train")],
            "code": code_hash("hermes", *_CODE),
            "versions": versions(*EXPORT),
        },
    )


def export(recipe: Recipe, run: Run) -> Path:
    """Convert, pack and prove; returns the bundle. An earlier one stays until the new one has passed.

    Raises:
        UserError: versions are not those that are tested, a prompt leaves no room for its answer, the conversion
            failed, or a gate did; the message lists each. The bundle then lies there as `refused-NAME.litertlm`, with
            its figures in `refused-evidence.json`.
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
    unproven, evidence = (run.export / f"refused-{name}" for name in (target.name, "evidence.json"))
    test, trained = (read_conversations(run.data / f"{split}.jsonl") for split in ("test", "train"))
    with Subject(unproven, run.training / "merged", recipe, test, trained) as subject:
        answer, cache = recipe.evaluation.max_new_tokens, recipe.export.cache_length
        check_room([*test, *trained], subject.dialect, subject.tokenizer, answer, cache)
        parts = _write(subject, run)
        console().print("export: checking the bundle")
        run_gates(GATES, subject, evidence)
    constraint = constraint_files(recipe, target.name, bundle_tokenizer(unproven))
    template = hashlib.sha256(get_dialect(recipe.dialect).chat_template().encode()).hexdigest()
    this.begin()
    unproven.replace(target)
    evidence.replace(run.export / "evidence.json")
    sidecar = write_constraint(target, constraint)
    locked = lock(target, run.training / "merged", parts, template, this.inputs["export"])
    atomic_write_json(run.export / "lock.json", locked)
    this.finish(
        [target, run.export / "evidence.json", run.export / "lock.json", *sidecar],
        seconds=round(time.monotonic() - started, 1),
        peak_memory_gb=peak_memory_with_children_gb(),
        bytes=target.stat().st_size,
        sha256=locked["bundle"]["sha256"],
    )
    write_card(recipe, run)
    shutil.rmtree(run.export / "work", ignore_errors=True)
    return target


def _write(subject: Subject, run: Run) -> dict[str, str]:
    """Convert the merged model and pack the bundle, which nothing has proven yet; returns its parts' hashes."""
    recipe, work, log = subject.recipe, run.export / "work", run.export / "convert.log"
    shutil.rmtree(work, ignore_errors=True)
    log.unlink(missing_ok=True)
    console().print(f"export: converting the graph, two to four minutes for 135M parameters; details in {log}")
    whole = convert_float(subject.model, work, recipe.export, log)
    subject.float_graph = whole.graph
    converted = quantised(whole, recipe.export.quantization, work, log)
    subject.packed = packed_tokenizer(recipe, run, subject.tokenizer)
    console().print(f"export: tokenizer: {subject.packed.path.name}: {subject.packed.reason}")
    return write_bundle(subject.bundle, converted, subject.packed.path, metadata_of(recipe, run), work)
