from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe_file import load_recipe

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
        (GOOD + "a: [\n", 'recipe.yaml", line '),
        (GOOD + "seed: 2024-99-99\n", "cannot be read as YAML: month must be in 1..12"),
        (GOOD + "seed: 0b_\n", "cannot be read as YAML: invalid literal"),
        (GOOD + "seed: !!bool x\n", "cannot be read as YAML"),
        (GOOD + "seed: !!timestamp x\n", "cannot be read as YAML"),
        (GOOD + "seed: " + "[" * 5000, "nested too deeply"),
        (GOOD + "seed: &a [*a]\n", "seed: "),
        (GOOD + f"seed: 0x{'f' * 5000}\n", "seed: "),
        (GOOD + f"seed: {2**63}\n", "seed: "),
        (GOOD + "training: {rank: true}\n", "training.rank: must be a whole number, not True"),
        (GOOD + "training: {rank: '8'}\n", "training.rank: must be a whole number, not '8'"),
        (GOOD + "training: {rank: 100000}\n", "training.rank: "),
        (GOOD + "training: {dropout: false}\n", "training.dropout: must be a number, not False"),
        (GOOD + "data: {train: 1000000}\n", "data.train: "),
        ("name: x\nmodel: {source: a/b, trust_remote_code: 1}\n", "must be true or false, not 1"),
        (f"name: {'x' * 101}\nmodel: {{source: a/b}}\n", "name: "),
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
    assert load_recipe(path, {"training.learning_rate": "1e-3"}).training.learning_rate == 0.001
    for value, expected in (("{rank: 1, rank: 2}", "stands twice"), ("2024-99-99", "month"), ("[", 'in "--set train')):
        with pytest.raises(UserError, match="--set training: cannot be read as YAML") as caught:
            load_recipe(path, {"training": value})
        assert expected in str(caught.value)
    with pytest.raises(UserError, match="is a value, not a section"):
        load_recipe(path, {"name.x": "8"})
