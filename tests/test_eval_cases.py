"""Cases of a user's own: the file, and the conversations that come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli import main
from core.errors import UserError
from core.stages import PROJECT, Run
from data.skill_library import read_skills, system_prompt
from eval.cases import cases_suite, read_cases
from eval.scoring import score_step
from eval.trajectory import evaluate
from hermes import Conversation, Message, Skill, ToolCall, ToolCalls, get_dialect
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER
from runtime.backend import Completion, OnDone

GALLERY_CASES = PROJECT / "eval" / "gallery_cases.yaml"
CASES = """\
- skill: dice
  request: Roll 2 dice
  run: {tool: run_js, data: {count: 2, sides: 6.5, names: [é, null], "no": true}}
- skill: dice
  request: Roll
  run: {tool: run_js, script: roll.html}
- skill: note
  request: Note that I am late
  run: {tool: run_intent, intent: make_note, data: {text: I am late}}
- {skill: note, request: Which day is it, run: {tool: run_intent, intent: get_day}}
- {skill: note, request: Help, run: null}
- {skill: null, request: Sing}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("dice", "note"):
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: About {name}.\n---\n\nDo {name}.\n")
    return tmp_path / "skills"


def write(folder: Path, text: str) -> Path:
    path = folder.parent / "cases.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def calls(conversation: Conversation) -> list[ToolCall]:
    return [call for message in conversation.messages for call in message.calls]


def test_a_case_becomes_a_conversation_up_to_its_first_call(folder: Path) -> None:
    skills = read_skills(folder)
    found = read_cases(write(folder, CASES), skills, "Skills!")
    assert [each.id for each in found] == [f"cases/{number:03d}" for number in range(1, 7)]
    assert [message.role for message in found[0].messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert found[0].messages[0].content == "Skills!"
    assert found[0].messages[1].content == "Roll 2 dice"
    assert found[0].messages[3] == Message("tool", skills[0].load_result(), name="load_skill")
    data = '{"count": 2, "sides": 6.5, "names": ["é", null], "no": true}'
    assert calls(found[0]) == [
        ToolCall("load_skill", {"skill_name": "dice"}),
        ToolCall("run_js", {"skill_name": "dice", "script_name": "index.html", "data": data}),
    ]
    assert [calls(each)[1] for each in found[1:4]] == [
        ToolCall("run_js", {"skill_name": "dice", "script_name": "roll.html", "data": ""}),
        ToolCall("run_intent", {"intent": "make_note", "parameters": '{"text": "I am late"}'}),
        ToolCall("run_intent", {"intent": "get_day", "parameters": "{}"}),
    ]
    assert calls(found[4]) == [ToolCall("load_skill", {"skill_name": "note"})]
    assert found[5].messages[2:] == (Message("assistant", NO_SKILL_ANSWER),)
    assert all(each.tools == GALLERY_TOOLS for each in found)
    assert [each.notes["skill"] for each in found] == ["dice", "dice", "note", "note", "note", None]


def test_the_prompt_lists_every_skill_of_the_folder(folder: Path, tmp_path: Path) -> None:
    run, cases = Run(tmp_path / "run"), write(folder, CASES)
    suite = cases_suite(run, cases, folder)
    assert suite.folder == run.root / "evaluation-cases"
    assert {each.messages[0].content for each in suite.conversations} == {system_prompt(read_skills(folder))}
    (tmp_path / "system.txt").write_text("Mine:\n___SKILLS___\n")
    other = cases_suite(run, cases, folder, tmp_path / "system.txt")
    (tmp_path / "bare.txt").write_text("No place for skills.")
    with pytest.raises(UserError, match=r"bare\.txt: ___SKILLS___ must stand"):
        cases_suite(run, cases, folder, tmp_path / "bare.txt")
    listed = "\n\n".join(f'- Skill name: "{name}"\n- Description: About {name}.' for name in ("dice", "note"))
    assert {each.messages[0].content for each in other.conversations} == {f"Mine:\n{listed}"}
    assert suite.data() != other.data()


class Recorded:
    """A backend that answers as the records say, but for what is changed."""

    name = "recorded"
    batched = True

    def __init__(self, records: list[Conversation], changes: dict[tuple[str, int], str]) -> None:
        self.records = {record.id: record for record in records}
        self.changes = changes

    def complete(self, conversations: Any, on_done: OnDone | None = None) -> list[Completion]:
        return [Completion(self._reply(each), "stop", 0.1) for each in conversations]

    def _reply(self, asked: Conversation) -> str:
        step = sum(message.role == "assistant" for message in asked.messages)
        turns = [message for message in self.records[asked.id].messages if message.role == "assistant"]
        dialect = get_dialect("hermes")
        return self.changes.get((asked.id, step)) or dialect.format_reply(turns[step])  # type: ignore[attr-defined]


def test_loads_and_runs_are_scored_exactly(folder: Path) -> None:
    records = read_cases(write(folder, CASES), read_skills(folder), "Skills!")
    run = '<tool_call>{"name": "run_intent", "arguments": {"intent": "make_note", "parameters": %s}}</tool_call>'
    changes = {
        ("cases/003", 1): run % '"{\\"text\\":\\"I am late\\"}"',
        ("cases/004", 1): run % '"{}"',
        ("cases/005", 0): "I can help.",
    }
    cases = evaluate(Recorded(records, changes), records, "hermes")
    assert [case.trajectory for case in cases] == [True, True, True, False, False, True]
    assert [[step.score.kind for step in case.steps] for case in cases] == [
        *[["load", "run"]] * 4,
        ["load"],
        ["abstain"],
    ]


def test_all_problems_are_named_by_file_and_entry(folder: Path) -> None:
    text = """\
- {skill: dice, request: Roll, run: {tool: run_js}}
- {skill: dcie, request: Roll, run: null}
- {request: "", run: {tool: run_js, script: "", data: [1]}}
- {skill: dice, request: Roll}
- {skill: dice, request: Roll, run: {tool: load_skill}}
- {skill: dice, request: Roll, run: {tool: run_intent, date: {}}}
- {skill: null, request: Roll, run: {tool: run_js}}
- dice
- {skill: dice, request: Roll, run: {tool: run_js, data: {day: 2026-03-18, at: .nan, 3: x}}}
- {skill: dice, request: 7, run: {data: {}}}
"""
    with pytest.raises(UserError) as caught:
        read_cases(write(folder, text), read_skills(folder), "Skills!")
    first, *problems = str(caught.value).split("\n  ")
    assert first == f"{folder.parent / 'cases.yaml'}: {len(problems)} problem(s):"
    entries = Counter(int(problem.split(":")[0].removeprefix("entry ")) for problem in problems)
    assert set(entries) == {2, 3, 4, 5, 6, 7, 8, 9, 10}
    for expected in (
        "entry 2: skill: there is no skill 'dcie'; did you mean 'dice'?",
        "entry 3: skill: missing",
        "entry 3: request: ",
        "entry 3: run.script: ",
        "entry 3: run.data: ",
        "entry 4: run: missing; say null if the skill needs no call",
        "entry 5: run: tool must be run_js or run_intent",
        "entry 6: run.intent: missing",
        "entry 6: run.date: unknown key",
        "entry 7: run: no skill fits, so there is nothing to run",
        "entry 8: must be a mapping",
        "entry 9: run.data.day",
        "entry 9: run.data.3",
        "entry 9: run.data.at",
        "entry 10: request: ",
        "entry 10: run: tool must be run_js or run_intent",
    ):
        assert [problem for problem in problems if problem.startswith(expected)], (expected, problems)


@pytest.mark.parametrize("text", ["", "[]", "a: 1", "- [", "- {skill: dice, skill: note}", "- " + "[" * 5000])
def test_what_is_no_list_of_cases_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"cases\.yaml"):
        read_cases(write(folder, text), read_skills(folder), "Skills!")


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match="none.yaml: cannot be read"):
        read_cases(folder / "none.yaml", read_skills(folder), "Skills!")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cases", "c.yaml"], "--cases needs --skills"),
        (["--skills", "s"], "--skills and --system go with --cases"),
        (["--system", "s.txt"], "--skills and --system go with --cases"),
        (["--cases", "c.yaml", "--skills", "s", "--full"], "--full is about the test split"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], expected: str) -> None:
    result = CliRunner().invoke(main, ["eval", *options])
    assert result.exit_code == 2
    assert expected in result.output


def test_the_verb_passes_its_options_on(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr("eval.stage.evaluate_models", lambda _, __, *rest, full: seen.append((*rest, full)))
    monkeypatch.setattr("eval.stage.evaluate_cases", lambda _, __, *rest: seen.append(rest))
    where = ["--runs", str(tmp_path / "runs")]
    for options in (
        ["--model", "base", "--full"],
        [],
        ["--cases", "c.yaml", "--skills", str(folder), "--system", "s.txt", "--model", "tuned"],
    ):
        assert CliRunner().invoke(main, ["eval", *where, *options]).exit_code == 0
    assert seen == [
        (("base",), True),
        ((), False),
        (("tuned",), Path("c.yaml"), folder, Path("s.txt")),
    ]


@pytest.fixture(scope="module")
def shipped() -> list[Conversation]:
    """The cases that ship, under skills of the same names."""
    names = {entry["skill"] for entry in yaml.safe_load(GALLERY_CASES.read_text(encoding="utf-8"))} - {None}
    return read_cases(GALLERY_CASES, [Skill(name, "d", "b") for name in sorted(names)], "Skills!")


def test_the_cases_that_ship_are_four_a_skill_and_ten_without(shipped: list[Conversation]) -> None:
    counts = Counter(each.notes["skill"] for each in shipped)
    assert counts.pop(None) == 10
    assert len(counts) == 15 and set(counts.values()) == {4}
    requests = [each.messages[1].content for each in shipped]
    assert len(set(requests)) == len(requests)


def test_what_the_shipped_cases_expect_stands_in_the_request(shipped: list[Conversation]) -> None:
    """Nothing is to be guessed but what the skill's instructions say."""
    said_by_the_skill = {"en", "es", "log_mood", "get_mood", "export_data", "delete_mood"}

    def values(conversation: Conversation) -> Iterator[str]:
        for call in calls(conversation)[1:]:
            data = call.arguments.get("data", call.arguments.get("parameters"))
            yield from (str(value) for value in (yaml.safe_load(data) or {}).values() if value is not True)

    for conversation in shipped:
        request = str(conversation.messages[1].content)
        assert [value for value in values(conversation) if value not in request] == [
            value for value in values(conversation) if value in said_by_the_skill
        ]


def test_the_calls_of_the_shipped_cases_are_exact_by_their_own_scorer(shipped: list[Conversation]) -> None:
    for conversation in shipped:
        for message in conversation.messages[2:]:
            if message.calls:
                assert score_step(message, ToolCalls(message.calls), tools=GALLERY_TOOLS).exact
