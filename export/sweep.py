"""`hermes-edge export --sweep`: one model in several sizes, measured side by side, and the smallest good one picked.

The graph is converted once; each candidate is a quantisation of it. A candidate that was packed, measured or evaluated
before, from the same inputs, is not again: an interrupted sweep goes on where it stopped. Accuracy is compared with the
tuned model in transformers, on the same conversations as `hermes-edge eval`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.console import console, printable
from core.doctor import processor
from core.errors import UserError
from core.files import atomic_write_text, file_hash
from core.models import load_tokenizer
from core.process import run_module
from core.recipe import Quantization, Recipe
from core.requirements import EXPORT
from core.stages import Run, Stage, code_hash, need_stage, versions
from eval.stage import evaluate_subject
from eval.subjects import Subject, subject
from eval.suite import Suite, split_suite
from export.bundle import write_bundle
from export.card import renew_card
from export.convert import convert_float, quantised
from export.quantise import QuantizationRefusedError
from export.stage import metadata_of, packed_tokenizer
from export.sweep_report import Size, pick, read_measured, write_sweep
from hermes import get_dialect, text_of
from runtime.litert_backend import LiteRTBackend

_PACKING = (
    *("bundle", "call_format", "convert", "converter", "metadata", "quantise", "stops", "template_features"),
    "tokenizer_parity",
)
_REFUSED = "refused.txt"
_LINES = 3


def sweep(recipe: Recipe, run: Run) -> Path:
    """Compare `export.sweep.candidates`, and write `sweep.json`, `sweep.md` and `sweep.png`; returns their folder.

    Raises:
        UserError: there is no trained model, its graph cannot be converted, or no candidate works.
    """
    need_stage(run.training, "hermes-edge train", recipe.training_inputs())
    folder, suite = run.export / "sweep", split_suite(recipe, run, full=False)
    reference = evaluate_subject(subject("tuned", recipe, run), suite, recipe)
    asked = replace(suite, folder=folder / "evaluation", others=())
    packing = _packing_inputs(recipe, run)
    refused = _pack(recipe, run, folder, packing)
    sizes = []
    for quantization in recipe.export.sweep.candidates:
        if quantization not in refused:
            try:
                sizes.append(_size(quantization, recipe, folder, asked))
                continue
            except UserError as error:
                refused[quantization] = str(error)
        console().print(f"sweep: {quantization} is left out: {refused[quantization]}")
        sizes.append(Size(quantization, refused=refused[quantization]))
    if len(refused) == len(sizes):
        raise UserError(f"{folder}: no candidate of export.sweep.candidates works; the reasons are above")
    write_sweep(folder, sizes, reference, recipe, packing["model"][0], processor())
    renew_card(recipe, run)
    _advise(pick(sizes, reference, recipe.export.sweep.bound), recipe, folder)
    return folder


def _advise(picked: Size | None, recipe: Recipe, folder: Path) -> None:
    console().print((folder / "sweep.md").read_text(encoding="utf-8"), markup=False, soft_wrap=True)
    if picked is None:
        console().print("sweep: no candidate is within export.sweep.bound; the recipe's quantization stays")
    elif picked.quantization == recipe.export.quantization:
        console().print(f"sweep: {picked.quantization} is what the recipe says already")
    else:
        console().print(f"sweep: say `export.quantization: {picked.quantization}` in the recipe, and export again")


def _packing_inputs(recipe: Recipe, run: Run) -> dict[str, Any]:
    """What decides the bytes of the candidates, apart from their quantisation."""
    weights = run.training / "merged" / "model.safetensors"
    settings = recipe.export.model_dump(mode="json", include={"cache_length", "prefill_lengths"})
    return {
        "export": settings,
        "name": recipe.name,
        "dialect": recipe.dialect,
        "model": [file_hash(weights), file_hash(weights.parent / "tokenizer.json")],
        "code": code_hash("hermes", *(f"export/{name}.py" for name in _PACKING)),
        "versions": versions(*EXPORT),
    }


def _bundle(folder: Path, quantization: Quantization, recipe: Recipe) -> Path:
    return folder / quantization / f"{recipe.name}.litertlm"


def _pack(recipe: Recipe, run: Run, folder: Path, inputs: Mapping[str, Any]) -> dict[Quantization, str]:
    """Pack every candidate that is not up to date; returns why some cannot be."""
    stages = {name: Stage(folder / name, {**inputs, "quantization": name}) for name in recipe.export.sweep.candidates}
    stale = {name: this for name, this in stages.items() if this.why_stale() is not None}
    if stale:
        _pack_stale(recipe, run, folder, stale)
    notes = {name: this.folder / _REFUSED for name, this in stages.items()}
    return {name: note.read_text(encoding="utf-8") for name, note in notes.items() if note.is_file()}


def _pack_stale(recipe: Recipe, run: Run, folder: Path, stale: Mapping[Quantization, Stage]) -> None:
    """Convert once, and pack the candidates `stale`; one that the quantiser refuses leaves the reason instead."""
    model, work, log = run.training / "merged", folder / "work", folder / "convert.log"
    tokenizer = load_tokenizer(model)
    packed, metadata = packed_tokenizer(recipe, run, tokenizer), metadata_of(recipe, run)
    shutil.rmtree(work, ignore_errors=True)
    console().print(f"sweep: converting the graph once for {', '.join(stale)}; details in {log}")
    converted = convert_float(model, work, recipe.export, log)
    for quantization, this in stale.items():
        this.begin()
        target, note = _bundle(folder, quantization, recipe), this.folder / _REFUSED
        note.unlink(missing_ok=True)
        try:
            candidate = quantised(converted, quantization, work, log)
        except QuantizationRefusedError as error:
            atomic_write_text(note, str(error))
            this.finish([note])
            continue
        write_bundle(target, candidate, packed.path, metadata, work)
        this.finish([target])
        console().print(f"sweep: {quantization}: {target.stat().st_size / 1e6:.0f} MB")
    shutil.rmtree(work, ignore_errors=True)


def _size(quantization: Quantization, recipe: Recipe, folder: Path, suite: Suite) -> Size:
    """Measure and evaluate one packed candidate.

    Raises:
        UserError: it does not work in LiteRT-LM; the message is the runtime's.
    """
    bundle = _bundle(folder, quantization, recipe)
    digest = file_hash(bundle)
    measured = _measured(quantization, bundle, digest, recipe, folder, suite)
    limit = recipe.evaluation.max_new_tokens

    def load() -> LiteRTBackend:
        return LiteRTBackend(bundle, recipe.dialect, limit, threads=os.cpu_count())

    model = Subject(quantization, digest, "litert-lm-api", {"max_new_tokens": limit}, load)
    return Size(quantization, measured, evaluate_subject(model, suite, recipe))


def _measured(
    quantization: Quantization, bundle: Path, digest: str, recipe: Recipe, folder: Path, suite: Suite
) -> dict[str, Any]:
    """Speed and memory of a bundle, by a process of its own; kept until the bundle or the machine changes."""
    first = suite.conversations[0].prompts()[0]
    prompt = text_of(get_dialect(recipe.dialect).render(first, add_generation_prompt=True))
    this = Stage(
        folder / "measured" / quantization,
        {
            "bundle": digest,
            "prompt": prompt,
            "processor": processor(),
            "code": code_hash("export/measure.py", "runtime/litert_backend.py"),
            "versions": versions("litert-lm-api"),
        },
    )
    result, asked = this.folder / "measured.json", this.folder / "prompt.txt"
    if this.why_stale() is not None:
        console().print(f"sweep: {quantization}: measuring")
        this.begin()
        atomic_write_text(asked, prompt)
        done = run_module("export.measure", bundle, asked, result, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            words = "\n  ".join(printable(line) for line in done.stderr.strip().splitlines()[-_LINES:])
            raise UserError(f"{bundle}: cannot be measured in LiteRT-LM:\n  {words}")
        this.finish([result])
    return read_measured(result)
