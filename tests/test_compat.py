"""`hermes-edge compat` with interpreters that do not do what they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import DataSettings, ModelSettings, Recipe
from core.stages import Run
from data.stage import build_data
from export.compat import check_compat
from export.stage import bundle_path

RECIPE = Recipe(name="x", model=ModelSettings(source="a/b"), data=DataSettings(train=1, validation=1, test=24))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "runs" / "x")
    build_data(RECIPE, run)
    run.export.mkdir()
    bundle_path(RECIPE, run).write_bytes(b"")
    return run


def interpreter(folder: Path, script: str) -> Path:
    path = folder / "other-python"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo '{not json'; echo '[]'; echo '{}'", "does not work with the LiteRT-LM of"),
        ("printf '\\377{\\n'", "does not work with the LiteRT-LM of"),
        ("echo \"No module named 'litert_lm'\" >&2; exit 1", "has no litert-lm-api; name the interpreter"),
        ("echo broken >&2; exit 3", "broken"),
    ],
)
def test_an_environment_that_does_not_answer(script: str, expected: str, run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        check_compat(RECIPE, run, interpreter(tmp_path, script))
    assert expected in str(caught.value)


def test_what_cannot_be_run_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("no program", encoding="utf-8")
    with pytest.raises(UserError, match=r"plain\.txt: cannot be run: .*make compat"):
        check_compat(RECIPE, run, path)


def test_a_bare_name_means_the_file_here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.dumps({"version": "1", "name": "n", "failed": [], "tool_calls": [1]})
    count = '$(grep -c \'"name": "agent_skills\' "$3")'
    interpreter(tmp_path, f"i=0; while [ $i -lt {count} ]; do echo '{row}'; i=$((i+1)); done")
    monkeypatch.chdir(tmp_path)
    check_compat(RECIPE, run, Path("./other-python"))
