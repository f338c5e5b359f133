"""`hermes-edge compat` with interpreters that do not do what they should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from core.errors import UserError
from core.recipe import DataSettings, ModelSettings, Recipe
from core.stages import Run
from data.stage import build_data
from export.compat import check_compat
from export.stage import bundle_path

RECIPE = Recipe(name="x", model=ModelSettings(source="a/b"), data=DataSettings(train=1, validation=1, test=24))


@pytest.fixture
def run(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> Run:
    run = Run(tmp_path / "runs" / "x")
    build_data(RECIPE, run)
    tokenizer.save_pretrained(run.training / "merged")
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


ANSWERED = {
    "version": "1",
    "name": "n",
    "sent": True,
    "failed": [],
    "tool_calls": [1],
    "different_parts": 2,
    "ended": True,
    "second_turn": "not asked",
}


def answering(folder: Path, row: dict[str, object]) -> Path:
    """An interpreter that answers every case with `row`."""
    count = '$(grep -c \'"send"\' "$3")'
    return interpreter(folder, f"i=0; while [ $i -lt {count} ]; do echo '{json.dumps(row)}'; i=$((i+1)); done")


def test_a_bare_name_means_the_file_here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(tmp_path, ANSWERED)
    monkeypatch.chdir(tmp_path)
    check_compat(RECIPE, run, Path("./other-python"))


def test_what_only_all_replies_show_is_listed(run: Run, tmp_path: Path) -> None:
    row = ANSWERED | {"tool_calls": [], "different_parts": 1, "ended": False}
    with pytest.raises(UserError) as caught:
        check_compat(RECIPE, run, answering(tmp_path, row))
    for words in (r"no call came in \d+ turns", r"0 of \d+ replies ended", "every reply is one token over and over"):
        assert re.search(words, str(caught.value))
