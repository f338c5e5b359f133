"""What an outcome is made of, what a run of gates leaves, and the probes that every bundle is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import ModelSettings, Recipe
from export.gates import Gate, Outcome, Subject, judge, not_checked, run_gates
from export.probes import RENDERED, SETS
from hermes import Conversation, Final, Reply, ToolCalls, get_dialect, text_of, validate_conversation

DIALECT = get_dialect("hermes")
RECIPE = Recipe(name="x", model=ModelSettings(source="a/b"))


@pytest.mark.parametrize(
    ("figures", "verdict", "words"),
    [
        ({"a": 1.0, "b": 2}, "passed", ""),
        ({"a": 1.5, "b": 2}, "failed", "a: 1.5, must be at most 1; more"),
        ({"a": float("nan"), "b": 1}, "failed", "a: nan, must be at most 1; b: 1, must be at least 2; more"),
        ({"b": 2}, "failed", "a: None, must be at most 1; more"),
    ],
)
def test_figures_are_held_against_their_limits(figures: dict[str, float], verdict: str, words: str) -> None:
    outcome = judge(figures, at_most={"a": 1}, at_least={"b": 2}, detail="more")
    assert (outcome.verdict, outcome.reason) == (verdict, words)
    json.dumps(outcome.to_json("gate"), allow_nan=False)


def test_every_failure_is_listed_and_an_error_hides_no_other_gate(tmp_path: Path) -> None:
    def broken(_: Subject) -> Outcome:
        raise ZeroDivisionError("oops")

    def refused(_: Subject) -> Outcome:
        raise UserError("no such part")

    bundle = tmp_path / "x.litertlm"
    bundle.write_bytes(b"x")
    checks = {"one": broken, "two": lambda _: not_checked("why"), "three": refused, "four": lambda _: Outcome("passed")}
    with pytest.raises(UserError) as caught:
        subject = Subject(bundle, tmp_path, RECIPE, ())
        run_gates([Gate(name, check) for name, check in checks.items()], subject, tmp_path / "evidence.json")
    assert "2 of 4 gates failed" in str(caught.value)
    assert "\n  one: ZeroDivisionError: oops\n  three: no such part\n" in str(caught.value)
    verdicts = {entry["gate"]: entry["outcome"] for entry in _entries(tmp_path / "evidence.json")}
    assert verdicts == {"one": "failed", "two": "not checked", "three": "failed", "four": "passed"}


def test_the_probes_are_sound() -> None:
    scored = [conversation for conversations in SETS.values() for conversation in conversations]
    assert not [problem for conversation in scored for problem in validate_conversation(conversation)]
    assert all(conversation.messages[-1].role == "assistant" for conversation in scored)
    assert all(prompt.messages[-1].role != "assistant" for prompt in RENDERED)
    kinds = {name: {type(_read(conversation)) for conversation in each} for name, each in SETS.items()}
    assert kinds.pop("no call needed") == {Final} and all(kind == {ToolCalls} for kind in kinds.values())


def _read(conversation: Conversation) -> Reply:
    """The last turn, read back."""
    whole = text_of(DIALECT.render(conversation))
    prompt = text_of(DIALECT.render(conversation.prompts()[-1], add_generation_prompt=True))
    return DIALECT.parse(whole[len(prompt) :].removesuffix(DIALECT.stop), conversation.tools)


def _entries(path: Path) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["gates"]
    return entries
