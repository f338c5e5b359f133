"""What is made from a finished run beside its bundle: lock, card, sizes, GGUF, a folder for a hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from litert_lm_builder import litertlm_builder
from tiny_run import Finished
from transformers import GemmaTokenizerFast

from core.errors import UserError
from core.files import file_hash
from core.recipe_file import load_recipe
from core.stages import PROJECT
from export.bundle import write_bundle
from export.convert import ConvertedModel
from export.gguf import CONVERTER, SCRIPT, export_gguf
from export.hub import export_hub
from export.metadata import llm_metadata
from export.stage import bundle_path, export
from export.sweep import sweep
from export.tokenizer_parity import choose_tokenizer, comparable_texts, differences
from hermes import get_dialect
from runtime.litert_backend import LiteRTBackend


def test_a_sweep_in_another_process_packs_the_same_bytes_and_goes_on_where_it_stopped(finished: Finished) -> None:
    recipe, run = finished.recipe, finished.run
    folder = run.export / "sweep"
    asked = {"export.sweep.candidates": "[wi8, wi4]", "evaluation.quick": "3"}
    options = [f"--set={key}={value}" for key, value in (finished.overrides | asked).items()]
    command = [sys.executable, "cli.py", "export", "--sweep", "--recipe", str(finished.recipe_file)]
    command += ["--runs", str(run.root.parent), *options]
    subprocess.run(command, cwd=PROJECT, env=os.environ | {"PYTHONHASHSEED": "7"}, check=True)
    name = bundle_path(recipe, run).name
    assert (folder / "wi8" / name).read_bytes() == bundle_path(recipe, run).read_bytes()
    found = {each["quantization"]: each for each in json.loads((folder / "sweep.json").read_text())["candidates"]}
    assert found["wi4"]["bytes"] < 0.7 * found["wi8"]["bytes"]
    for each in found.values():
        assert each["trajectory"]["n"] == 3 and each["prompt_tokens"] > 500 and each["new_tokens"] > 0
        assert each["first_token_seconds"] > 0 and 0.05 < each["peak_memory_gb"] < 4

    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in (".litertlm", ".json")}
    sweep(load_recipe(finished.recipe_file, finished.overrides | asked), run)
    later = {path: path.stat().st_mtime_ns for path in kept}
    assert {path.name for path in kept if later[path] != kept[path]} <= {"sweep.json"}
    assert not (folder / "work").exists()
    card = (run.export / "card.md").read_text(encoding="utf-8")
    assert "## Other sizes" in card and "| wi4 |" in card


def test_what_lies_beside_a_bundle_says_what_it_is(finished: Finished) -> None:
    recipe, run = finished.recipe, finished.run
    lock = json.loads((run.export / "lock.json").read_text(encoding="utf-8"))
    bundle = bundle_path(recipe, run)
    assert lock["bundle"] == {"name": bundle.name, "bytes": bundle.stat().st_size, "sha256": file_hash(bundle)}
    assert lock["parts"]["tokenizer"] == lock["model"]["tokenizer.json"]
    assert str(run.root.parent) not in json.dumps(lock)
    evidence = json.loads((run.export / "evidence.json").read_text(encoding="utf-8"))
    (texts,) = (each for each in evidence["gates"] if each["gate"] == "token ids equal in texts of all kinds")
    assert texts["outcome"] == "passed" and texts["figures"]["texts"] >= 10_000
    export(recipe, run)
    card = (run.export / "card.md").read_text(encoding="utf-8")
    assert "The bundle on 3 held-out conversations" in card and lock["bundle"]["sha256"] in card


def test_a_bundle_with_a_sentencepiece_model_gives_the_models_ids_too(
    finished: Finished, pieces: Path, tmp_path: Path
) -> None:
    model = GemmaTokenizerFast.from_pretrained(pieces)
    packed = choose_tokenizer(finished.run.training / "merged", pieces, model)
    assert packed.path.name == "tokenizer.model"
    litertlm_builder.unpack(str(bundle_path(finished.recipe, finished.run)), str(tmp_path))
    (graph,) = tmp_path.glob("*.tflite")
    (executor,) = (path for path in tmp_path.iterdir() if "executor" in path.name.lower() and path.suffix != ".toml")
    bundle = tmp_path / "pieces.litertlm"
    metadata = llm_metadata(get_dialect("hermes"), (4,), finished.recipe.export.cache_length)
    write_bundle(bundle, ConvertedModel(graph, executor), packed.path, metadata, tmp_path)
    with LiteRTBackend(bundle) as backend:
        asked = comparable_texts(packed)
        assert not differences(model, backend.engine.tokenize, asked)
    assert sum(map(len, asked.values())) >= 10_000


def test_a_folder_for_a_hub_holds_what_was_made_and_says_the_licence(finished: Finished) -> None:
    recipe, run = finished.recipe, finished.run
    folder = export_hub(recipe, run)
    _, head, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["license"] == "apache-2.0" and about["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert text.strip() == (run.export / "card.md").read_text(encoding="utf-8").strip()
    names = {path.name for path in folder.iterdir()}
    assert (folder / "constraint" / "manifest.json").is_file()
    assert names >= {"model.safetensors", "config.json", "tokenizer.json", "lock.json", f"{recipe.name}.litertlm"}
    unknown = recipe.model_copy(update={"model": recipe.model.model_copy(update={"license": None})})
    with pytest.raises(UserError, match="model.license: not given"):
        export_hub(unknown, run)


def test_without_its_converter_no_gguf_is_written(finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"convert_hf_to_gguf.py, is not there; run `make gguf`"):
        export_gguf(finished.recipe, finished.run, "q8_0", tmp_path)


@pytest.mark.skipif(not (CONVERTER / SCRIPT).is_file(), reason="not checked: llama.cpp's converter; `make gguf`")
@pytest.mark.parametrize(("kind", "tolerance"), [("f32", 1e-4), ("q8_0", 0.05)])
def test_a_gguf_is_the_merged_model(finished: Finished, kind: str, tolerance: float) -> None:
    """Logits as by the merged model: exactly but for the order of sums, or as 8 bits a weight in blocks of 32 allow."""
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM

    path = export_gguf(finished.recipe, finished.run, kind)
    before = path.stat().st_mtime_ns
    assert export_gguf(finished.recipe, finished.run, kind).stat().st_mtime_ns == before
    template = GGUFReader(path).fields["tokenizer.chat_template"].contents()
    assert template == get_dialect("hermes").chat_template()
    assert "load_skill" in path.with_name(f"{finished.recipe.name}.gbnf").read_text(encoding="utf-8")
    merged = AutoModelForCausalLM.from_pretrained(finished.run.training / "merged", dtype=torch.float32)
    loaded = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    ids = torch.arange(100, 140)[None]
    with torch.no_grad():
        exact, found = merged(ids).logits, loaded(ids).logits
    assert torch.linalg.norm(found - exact) < tolerance * torch.linalg.norm(exact)
