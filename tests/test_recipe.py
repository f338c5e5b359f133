from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import load_recipe

GOOD = "name: x\nmodel:\n  source: a/b\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_problems_come_at_once_with_suggestions(tmp_path: Path) -> None:
    text = GOOD + "seeed: 3\ntraining:\n  learning_rat: 1\n  rank: 0\nexport:\n  quantization: int4\n"
    with pytest.raises(UserError) as caught:
        load_recipe(write(tmp_path, text))
    message = str(caught.value)
    assert "4 problem(s)" in message
    assert "seeed: unknown key; did you mean 'seed'?" in message
    assert "training.learning_rat: unknown key; did you mean 'learning_rate'?" in message
    assert "training.rank: " in message and "not 0" in message
    assert "export.quantization: " in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a recipe is a mapping"),
        ("- a\n", "a recipe is a mapping"),
        ("a: [", "cannot be read as YAML"),
        ("name: x\n", "model: missing"),
        ("name: X Y\nmodel: {source: a/b}\n", "name: "),
        (GOOD + "1: 2\n", "unknown key"),
        (GOOD + "[a]: 2\n", "cannot be read as YAML"),
        (GOOD + "training: 5\n", "training: "),
        (GOOD + "training: {rank: .nan}\n", "training.rank: "),
        (GOOD + "training: {learning_rate: .nan}\n", "training.learning_rate: "),
        (GOOD + "training: {learning_rate: .inf}\n", "training.learning_rate: "),
        (GOOD + "export: {prefill_lengths: [0]}\n", "export.prefill_lengths.0: "),
        (GOOD + "export: {prefill_lengths: [128, 128]}\n", "export: prefill_lengths: one stands twice"),
        (GOOD + "export: {cache_length: 256}\n", "export: prefill_lengths: 1024 is more than cache_length, 256"),
        (GOOD + "export: {prefill_lengths: []}\n", "export.prefill_lengths: "),
        (GOOD + "name: y\n", "the key 'name' stands twice"),
    ],
)
def test_bad_recipes(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UserError, match="recipe.yaml") as caught:
        load_recipe(write(tmp_path, text))
    assert expected in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such recipe"):
        load_recipe(tmp_path / "none.yaml")


def test_overrides_win_and_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "training: {rank: 4}\n")
    assert load_recipe(path, {"training.rank": "8", "seed": "7"}).training.rank == 8
    with pytest.raises(UserError, match=r"training\.ranc: unknown key; did you mean 'rank'"):
        load_recipe(path, {"training.ranc": "8"})
    with pytest.raises(UserError, match="is a value, not a section"):
        load_recipe(path, {"name.x": "8"})
