"""Staleness, locks, atomic files and the command line's manners."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import cli
from core.errors import UserError
from core.files import atomic_path, atomic_write_json, atomic_write_text
from core.stages import PROJECT, Run, Stage, _meaning, code_hash, need_stage, read_facts, versions


def finished(folder: Path, inputs: dict[str, object]) -> Stage:
    stage = Stage(folder, inputs)
    stage.begin()
    (folder / "out.txt").write_text("result")
    stage.finish([folder / "out.txt"], seconds=1)
    return stage


def test_a_stage_says_why_it_must_run(tmp_path: Path) -> None:
    assert Stage(tmp_path, {"a": 1}).why_stale() == "not finished yet"
    finished(tmp_path, {"a": 1, "b": (1, 2)})
    assert Stage(tmp_path, {"b": [1, 2], "a": 1}).why_stale() is None
    assert Stage(tmp_path, {"a": 2, "b": [1, 2]}).why_stale() == "changed: a"
    assert Stage(tmp_path, {"a": 1, "c": 0}).why_stale() == "changed: b, c"
    (tmp_path / "out.txt").write_text("resulT")
    assert Stage(tmp_path, {"a": 1, "b": [1, 2]}).why_stale() == "altered: out.txt"
    (tmp_path / "out.txt").unlink()
    assert Stage(tmp_path, {"a": 1, "b": [1, 2]}).why_stale() == "missing: out.txt"


EMPTY = '{"inputs": {}, "outputs": {}, "facts": {}}'


@pytest.mark.parametrize("stamp", ["", "{", "[]", "{}", '{"inputs": 1, "outputs": 2}', "[" * 9999, EMPTY])
def test_a_torn_stamp_means_not_finished(tmp_path: Path, stamp: str) -> None:
    (tmp_path / "stamp.json").write_text(stamp)
    assert Stage(tmp_path, {}).why_stale() == "not finished yet"
    assert read_facts(tmp_path) == {}
    with pytest.raises(UserError, match="not finished yet; run `x` first, with the same --recipe, --runs and --set"):
        need_stage(tmp_path, "x", {})


def test_a_begun_stage_is_not_finished(tmp_path: Path) -> None:
    finished(tmp_path, {"a": 1}).begin()
    assert Stage(tmp_path, {"a": 1}).why_stale() == "not finished yet"


def test_code_counts_but_its_comments_do_not() -> None:
    assert _meaning('"""Doc."""\ndef f():\n    """Doc."""\n    return 1  # why\n') == _meaning("def f():\n  return 1")
    assert _meaning("def f():\n    return 1") != _meaning("def f():\n    return 2")
    assert _meaning("X = 'a'") != _meaning("X = 'b'")
    assert code_hash("hermes") != code_hash("core") == code_hash("core")


def test_versions_of_a_missing_package() -> None:
    with pytest.raises(UserError, match="the package 'no-such-package' is missing; `make setup`"):
        versions("no-such-package")


def test_a_run_is_held_by_one_command(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    with run.locked(), pytest.raises(UserError, match="another hermes-edge command"), run.locked():
        pass
    with run.locked():
        pass


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    atomic_write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("new")
        raise RuntimeError
    with pytest.raises(TypeError):
        atomic_write_json(path, {"a": object()})
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "run", tmp_path / ("x" * 300)):
        with pytest.raises(UserError, match=f"{place}: this folder cannot be made"), Run(place).locked():
            pass
        with pytest.raises(UserError, match="this folder cannot be made"):
            atomic_write_text(place / "out.txt", "")
    (tmp_path / "run" / ".lock").mkdir(parents=True)
    with pytest.raises(UserError, match="nothing can be written there.*--runs"), Run(tmp_path / "run").locked():
        pass
    (tmp_path / "stamped" / "stamp.json").mkdir(parents=True)
    with pytest.raises(UserError, match="stamped: cannot be written"):
        Stage(tmp_path / "stamped", {}).begin()


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["data", "--recipe", "none.yaml"], "none.yaml: no such recipe; those that ship are in configs/"),
        (["data", "--set", "data.trian=3"], "data.trian: unknown key; did you mean 'train'?"),
        (["data", "--set", "data.train"], "must be KEY=VALUE"),
        (["train"], "data: not finished yet; run `hermes-edge data` first"),
        (["export"], "data: not finished yet; run `hermes-edge data` first"),
        (["eval"], "run `hermes-edge data` first"),
        (["run", "none.litertlm"], "none.litertlm"),
        (["run", "none.litertlm", "--max-new-tokens", "0"], "0 is not in the range x>=1"),
        (["run", "none.litertlm", "--skills", "nowhere"], "nowhere: no such folder"),
        (["eval", "--model", "base", "--model", "tuned", "--model", "bundle"], "run `hermes-edge data` first"),
        (["trian"], "No such command 'trian'"),
    ],
)
def test_mistakes_get_one_message(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = invoke(*arguments)
    assert code not in (0, 130)
    assert expected in output
    assert "Traceback" not in output


@pytest.mark.parametrize("verb", ["data", "train", "export", "eval", "run", "compat", "doctor"])
def test_every_verb_explains_itself(verb: str) -> None:
    code, output = invoke(verb, "--help")
    assert code == 0
    assert len(output) > 80


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'litert_torch', 'litert_lm', 'pydantic', 'matplotlib', 'scipy', 'rich'}"
    code = (
        "import sys, cli\n"
        "try: cli.main(['--help'])\n"
        f"except SystemExit: print('heavy:', sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert "heavy: []" in done.stdout


def test_ctrl_c_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("data.stage.build_data", interrupted)
    code, output = invoke("data", "--runs", str(tmp_path))
    assert code == 130
    assert "Interrupted. The same command starts anew." in output
    assert "checkpoint" not in output


def test_a_file_where_a_folder_of_results_should_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "file" / "sub").mkdir()

    monkeypatch.setattr("data.stage.build_data", fails)
    code, output = invoke("data", "--runs", str(tmp_path))
    assert code == 1
    assert "sub: Not a directory; mend that place, or name another one with --runs" in output.replace("\n", " ")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_quotes_paths_and_refuses_empty_ones() -> None:
    def make(*arguments: str) -> str:
        command = ["make", "-n", "-o", ".venv/ready", "data", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
        return done.stdout + done.stderr

    assert '--recipe "a b.yaml" --runs "c d"' in make("RECIPE=a b.yaml", "RUNS=c d")
    assert "RECIPE is empty" in make("RECIPE=")
    assert "RUNS is empty" in make("RUNS= ")


def test_no_floor_imports_what_stands_above_it() -> None:
    allowed = {
        "hermes": set(),
        "core": {"hermes"},
        "data": {"hermes", "core"},
        "runtime": {"hermes", "core"},
        "training": {"hermes", "core", "data"},
        "eval": {"hermes", "core", "data", "runtime"},
        "export": {"hermes", "core", "data", "runtime", "eval"},
    }
    wrong = []
    for floor, below in allowed.items():
        for path in (PROJECT / floor).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                words = line.split()
                if len(words) > 1 and words[0] in ("from", "import"):
                    top = words[1].split(".")[0]
                    if top in allowed and top not in below | {floor}:
                        wrong.append(f"{path.relative_to(PROJECT)}: {line.strip()}")
    assert not wrong
