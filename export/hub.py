"""`hermes-edge export --hub`: a folder that can be uploaded to a model hub as it is. Nothing is uploaded."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import yaml

from core.console import console
from core.errors import UserError
from core.files import make_folder
from core.recipe import Recipe
from core.stages import Run
from eval.subjects import bundle_path, need_model
from export.card import card, gguf_files
from runtime.constraint import FOLDER

_TAGS = ("tool-calling", "function-calling", "agent", "on-device", "litert-lm", "lora")


def export_hub(recipe: Recipe, run: Run) -> Path:
    """Write the folder `hub`: model, tokenizer, bundle, GGUF if there is one, and the card as README.md.

    Raises:
        UserError: no finished bundle of this recipe is there, or the recipe does not say the base model's licence.
    """
    need_model("bundle", recipe, run)
    if recipe.model.license is None:
        raise UserError(
            "model.license: not given; a hub's page must say the licence of the base model, "
            "e.g. --set model.license=apache-2.0"
        )
    bundle = bundle_path(recipe, run)
    beside = [bundle, *(run.export / name for name in ("lock.json", "evidence.json"))]
    beside += gguf_files(run)
    beside += sorted({path.with_name(f"{recipe.name}.gbnf") for path in gguf_files(run)})[:1]
    merged = sorted(path for path in (run.training / "merged").iterdir() if path.is_file())
    target = run.export / "hub"
    make_folder(run.export)
    with tempfile.TemporaryDirectory(prefix=".hub-", dir=run.export) as work:
        folder = Path(work) / "hub"
        folder.mkdir()
        for path in (*merged, *beside):
            _place(path, folder / path.name)
        if (run.export / FOLDER).is_dir():
            shutil.copytree(run.export / FOLDER, folder / FOLDER)
        (folder / "README.md").write_text(readme(recipe, run), encoding="utf-8", newline="\n")
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    console().print(f"export: {target}: {len(merged) + len(beside) + 1} files, ready for a model hub")
    return target


def readme(recipe: Recipe, run: Run) -> str:
    """The card with what a hub reads from its head."""
    about: dict[str, object] = {"license": recipe.model.license}
    base = recipe.model.base_model or (recipe.model.source if _is_hub_id(recipe.model.source) else None)
    if base:
        about |= {"base_model": base, "base_model_relation": "finetune"}
    tags = [*_TAGS, *(["gguf"] if gguf_files(run) else [])]
    about |= {"pipeline_tag": "text-generation", "library_name": "litert-lm", "language": ["en"], "tags": tags}
    head = yaml.safe_dump(about, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{card(recipe, run)}"


def _is_hub_id(source: str) -> bool:
    return source.count("/") == 1 and not source.startswith((".", "/", "~", "pypi:")) and not Path(source).exists()


def _place(source: Path, target: Path) -> None:
    """A second name for the same bytes, where the file system has that; else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
