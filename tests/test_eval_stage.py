"""Quick and full evaluation, and cases of a user's own, of a random model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import UserError
from core.files import atomic_write_text
from core.recipe import Recipe
from core.recipe_file import load_recipe
from core.stages import Run, Stage
from data.stage import data_inputs
from eval.results import load_results
from eval.stage import evaluate_cases, evaluate_models
from hermes import Conversation, Message, dumps
from hermes.gallery_tools import NO_SKILL_ANSWER
from runtime.transformers_backend import TransformersBackend


def conversation(number: int, user: str = "Sing {}.") -> Conversation:
    messages = (
        Message("system", "Be brief."),
        Message("user", user.format(number)),
        Message("assistant", NO_SKILL_ANSWER),
    )
    return Conversation(messages, id=f"test/{number}", notes={"skill": None})


def write_split(recipe: Recipe, run: Run, conversations: list[Conversation]) -> None:
    """A data stage that has made this test split."""
    path = run.data / "test.jsonl"
    atomic_write_text(path, "".join(dumps(each.to_json()) + "\n" for each in conversations))
    Stage(run.data, data_inputs(recipe)).finish([path])


@pytest.fixture
def recipe(tiny_llama: Path, tmp_path: Path) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_text(
        f"name: tiny\nmodel: {{source: {tiny_llama}}}\nevaluation: {{quick: 3, max_new_tokens: 2, batch_size: 2}}\n"
    )
    return load_recipe(path)


@pytest.fixture
def run(recipe: Recipe, tmp_path: Path) -> Run:
    run = Run(tmp_path / "runs" / recipe.name)
    write_split(recipe, run, [conversation(number) for number in range(5)])
    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the models are asked, as it happens: the ids of conversations."""
    ids: list[str] = []
    complete = TransformersBackend.complete

    def spy(self: TransformersBackend, conversations: list[Conversation], *rest: object) -> object:
        ids.extend(each.id for each in conversations)
        return complete(self, conversations, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(TransformersBackend, "complete", spy)
    return ids


def ids_in(folder: Path) -> list[str]:
    return [case.id for case in load_results(folder / "base" / "results.json").cases]


def test_quick_asks_the_first_and_full_only_what_quick_has_not_asked(
    recipe: Recipe, run: Run, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page = evaluate_models(recipe, run, ("base",))
    assert page == run.evaluation / "report" / "report.html" and page.is_file()
    assert asked == ids_in(run.evaluation) == ["test/0", "test/1", "test/2"]
    assert not run.evaluation_full.exists()
    page = evaluate_models(recipe, run, ("base",), full=True)
    assert page == run.evaluation_full / "report" / "report.html" and page.is_file()
    assert asked[3:] == ["test/3", "test/4"]
    assert ids_in(run.evaluation_full) == [f"test/{number}" for number in range(5)]
    quick, full = (
        load_results(folder / "base" / "results.json").cases for folder in (run.evaluation, run.evaluation_full)
    )
    assert full[:3] == quick
    printed = " ".join(capsys.readouterr().err.split())
    assert "the first 3 of 5 test conversations" in printed and "all 5 test conversations" in printed
    facts = json.loads((run.evaluation / "report" / "report.json").read_text())["facts"]
    assert facts["test conversations"]["asked"] == "the first 3 of 5"


def test_quick_finds_what_full_has_asked(recipe: Recipe, run: Run, asked: list[str]) -> None:
    evaluate_models(recipe, run, ("base",), full=True)
    asked.clear()
    evaluate_models(recipe, run, ("base",))
    assert asked == []


def test_only_what_decides_a_result_makes_it_stale(recipe: Recipe, run: Run, asked: list[str]) -> None:
    def with_settings(**changes: object) -> Recipe:
        return recipe.model_copy(update={"evaluation": recipe.evaluation.model_copy(update=changes)})

    evaluate_models(recipe, run, ("base",))
    more = [conversation(number) for number in range(4)] + [conversation(9, "Dance {}.")]
    write_split(recipe, run, more)
    asked.clear()
    evaluate_models(recipe, run, ("base",))
    assert asked == []
    evaluate_models(with_settings(quick=4), run, ("base",))
    assert asked == ["test/3"]
    evaluate_models(with_settings(quick=2, precision="bfloat16"), run, ("base",))
    assert asked[1:] == ["test/0", "test/1"]
    assert load_results(run.evaluation / "base" / "results.json").meta["precision"] == "bfloat16"
    write_split(
        recipe, run, [replace(more[0], messages=(*more[0].messages[:2], Message("assistant", "No."))), *more[1:]]
    )
    asked.clear()
    evaluate_models(with_settings(quick=2, precision="bfloat16"), run, ("base",))
    assert asked == []
    assert load_results(run.evaluation / "base" / "results.json").cases[0].steps[0].expected == "No."


def test_auto_says_what_it_was(recipe: Recipe, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models._cpu_has_bfloat16", lambda: False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    auto = recipe.model_copy(update={"evaluation": recipe.evaluation.model_copy(update={"precision": "auto"})})
    evaluate_models(auto, run, ("base",))
    assert load_results(run.evaluation / "base" / "results.json").meta["precision"] == "float32"


def test_a_model_that_is_not_there_is_named_before_anything_is_asked(
    recipe: Recipe, run: Run, asked: list[str]
) -> None:
    with pytest.raises(UserError, match="training: not finished yet; run `hermes-edge train` first"):
        evaluate_models(recipe, run, ("base", "tuned"), full=True)
    assert asked == []


def test_cases_of_a_users_own_need_no_data(recipe: Recipe, tmp_path: Path, asked: list[str]) -> None:
    run = Run(tmp_path / "elsewhere" / recipe.name)
    (tmp_path / "skills" / "dice").mkdir(parents=True)
    (tmp_path / "skills" / "dice" / "SKILL.md").write_text("---\nname: dice\ndescription: Rolls dice.\n---\nRoll.\n")
    cases = tmp_path / "mine.yaml"
    cases.write_text("- {skill: dice, request: Roll, run: {tool: run_js}}\n- {skill: null, request: Sing}\n")
    page = evaluate_cases(recipe, run, ("base",), cases, tmp_path / "skills")
    assert page == run.evaluation_cases / "report" / "report.html" and page.is_file()
    assert ids_in(run.evaluation_cases) == ["mine/001", "mine/002"]
    assert sorted(asked) == ["mine/001", "mine/001", "mine/002"]
    report = json.loads((run.evaluation_cases / "report" / "report.json").read_text())
    assert report["facts"]["skills"] == ["dice"]
    assert {key: each["n"] for key, each in report["models"][0]["metrics"].items() if each["n"]} == {
        "well_formed": 1,
        "right_tool": 1,
        "load_exact": 1,
        "run_exact": 1,
        "abstained": 1,
        "trajectory": 2,
    }
