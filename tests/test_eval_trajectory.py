from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import UserError
from eval.results import ModelResult, load_results, save_results
from eval.trajectory import evaluate
from hermes import Conversation, Message, Tool, ToolCall, get_dialect
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER
from runtime.backend import Completion, OnDone

DIALECT = get_dialect("hermes")
LOAD = Message("assistant", calls=(ToolCall("load_skill", {"skill_name": "unit-converter"}),))
RUN = Message(
    "assistant",
    calls=(ToolCall("run_js", {"skill_name": "unit-converter", "script_name": "index.html", "data": '{"value": 5}'}),),
)
CALL = Conversation(
    (
        Message("system", "Skills."),
        Message("user", "5 km in miles?"),
        LOAD,
        Message("tool", {"skill_name": "unit-converter"}, name="load_skill"),
        RUN,
        Message("tool", {"result": "3.11 miles"}, name="run_js"),
        Message("assistant", "5 km is 3.11 miles."),
    ),
    GALLERY_TOOLS,
    id="call",
    notes={"kind": "call", "skill": "unit-converter", "facts": ["3.11", "miles"]},
)
NONE = Conversation(
    (Message("system", "Skills."), Message("user", "Sing."), Message("assistant", NO_SKILL_ANSWER)),
    GALLERY_TOOLS,
    id="none",
    notes={"kind": "none", "skill": None, "facts": [NO_SKILL_ANSWER]},
)
REPLIES = {
    ("call", 0): DIALECT.format_reply(LOAD),  # type: ignore[attr-defined]
    ("call", 1): DIALECT.format_reply(RUN),  # type: ignore[attr-defined]
    ("call", 2): "It is 3.11 miles.",
    ("none", 0): "No relevant skills found.",
}


class Scripted:
    """A backend that answers by conversation and step, and remembers what it was asked."""

    name = "scripted"
    batched = True

    def __init__(self, changes: dict[tuple[str, int], str | Completion] | None = None, silent: bool = False) -> None:
        self.replies: dict[tuple[str, int], str | Completion] = {**REPLIES, **(changes or {})}
        self.silent = silent
        self.asked: list[Conversation] = []
        self.fail_after: int | None = None

    def complete(self, conversations: Sequence[Conversation], on_done: OnDone | None = None) -> list[Completion]:
        completions = []
        for index, conversation in enumerate(conversations):
            if self.fail_after is not None and len(self.asked) >= self.fail_after:
                raise KeyboardInterrupt
            step = sum(message.role == "assistant" for message in conversation.messages)
            self.asked.append(conversation)
            reply = self.replies[conversation.id, step]
            completion = reply if isinstance(reply, Completion) else Completion(reply, "stop", 0.5)
            completions.append(completion)
            if on_done is not None and not self.silent:
                on_done(index, completion)
        return completions


def test_a_model_that_does_everything_right() -> None:
    progress: list[tuple[int, int]] = []
    call, none = evaluate(Scripted(), [CALL, NONE], "hermes", lambda done, total: progress.append((done, total)))
    assert [step.score.kind for step in call.steps] == ["load", "run", "answer"]
    assert call.trajectory and none.trajectory
    assert (call.kind, call.skill, none.kind, none.skill) == ("call", "unit-converter", "none", "")
    assert [step.expected for step in call.steps] == [REPLIES["call", 0], REPLIES["call", 1], "5 km is 3.11 miles."]
    assert [step.called for step in call.steps] == ["load_skill", "run_js", "no call"]
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_backend_that_answers_one_at_a_time_is_asked_conversation_by_conversation() -> None:
    backend = Scripted()
    backend.batched = False
    call, none = evaluate(backend, [CALL, NONE], "hermes")
    assert [conversation.id for conversation in backend.asked] == ["call", "call", "call", "none"]
    assert call.trajectory and none.trajectory


def test_conversations_with_the_same_system_turn_and_tools_go_in_step() -> None:
    backend = Scripted()
    evaluate(backend, [CALL, NONE], "hermes")
    assert [conversation.id for conversation in backend.asked] == ["call", "none", "call", "call"]
    assert all(conversation.messages[-1].role in ("user", "tool") for conversation in backend.asked)
    assert all(conversation.tools == GALLERY_TOOLS for conversation in backend.asked)


def copied(record: Conversation, identity: str, system: str, tools: tuple[Tool, ...] = GALLERY_TOOLS) -> Conversation:
    messages = (Message("system", system), *record.messages[1:])
    return replace(record, messages=messages, tools=tools, id=identity)


def test_all_steps_of_a_group_come_before_the_next_and_results_keep_their_order() -> None:
    records = [
        copied(CALL, "a1", "A"),
        copied(NONE, "b1", "B"),
        copied(CALL, "alone1", "C"),
        copied(CALL, "b2", "B"),
        copied(NONE, "a2", "A"),
        copied(CALL, "alone2", "A", GALLERY_TOOLS[:3]),
    ]
    replies = {
        (each.id, step): REPLIES["none" if len(each.messages) == 3 else "call", step]
        for each in records
        for step in range(3 if len(each.messages) > 3 else 1)
    }
    backend = Scripted(replies)
    progress: list[tuple[int, int]] = []
    cases = evaluate(backend, records, "hermes", lambda done, total: progress.append((done, total)))
    assert " ".join(conversation.id for conversation in backend.asked) == (
        "a1 a2 a1 a1 b1 b2 b2 b2 alone1 alone2 alone1 alone2 alone1 alone2"
    )
    assert [case.id for case in cases] == [each.id for each in records]
    assert all(case.trajectory for case in cases)
    assert progress == [(done, 14) for done in range(1, 15)]
    one_by_one = Scripted(replies)
    one_by_one.batched = False
    assert evaluate(one_by_one, records, "hermes") == cases


def test_history_holds_own_words_after_a_right_step_and_the_record_after_a_wrong_one() -> None:
    own_load = "Let me look.\n" + REPLIES["call", 0]
    backend = Scripted({("call", 0): own_load, ("call", 1): "<tool_call>{}</tool_call>"})
    (case,) = evaluate(backend, [CALL], "hermes")
    last = backend.asked[-1].messages
    assert last[2] == Message("assistant", "Let me look.", LOAD.calls)
    assert last[3] == CALL.messages[3]
    assert last[4] == RUN
    assert last[5] == CALL.messages[5]
    assert [step.score.right for step in case.steps] == [True, False, True]
    assert not case.trajectory


GARBAGE = [
    "",
    "</tool_call>",
    "<tool_call>" * 50,
    '<tool_call>{"name": "load_skill", "arguments": {"skill_name": NaN}}</tool_call>',
    '<tool_call>{"name": "\\ud800", "arguments": {"\\ud800": "\\ud800"}}</tool_call>',
    "\ud800 half a pair",
    "\x00\x1b[31m",
    *(
        '<tool_call>{"name": "load_skill", "arguments": ' + '{"a":' * depth + "1" + "}" * depth + "}</tool_call>"
        for depth in (99, 100, 101, 850, 930, 100_000)
    ),
]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_scored_and_saved(text: str, tmp_path: Path) -> None:
    changes: dict[tuple[str, int], str | Completion] = {("call", step): text for step in range(3)}
    cases = evaluate(Scripted(changes), [CALL], "hermes", cache=tmp_path / "replies.jsonl")
    assert [step.score.right for step in cases[0].steps] == [False, False, False]
    result = ModelResult("base", "Base", cases)
    save_results(tmp_path / "base.json", result)
    assert repr(load_results(tmp_path / "base.json")) == repr(result)
    again = evaluate(Scripted({("call", 0): "unused"}), [CALL], "hermes", cache=tmp_path / "replies.jsonl")
    assert repr(again) == repr(cases)


def test_a_cut_reply_is_wrong_though_it_looks_right() -> None:
    cut = Completion(REPLIES["call", 0], "length", 1.0)
    (case,) = evaluate(Scripted({("call", 0): cut}), [CALL], "hermes")
    assert not case.steps[0].score.well_formed
    assert case.steps[0].finish_reason == "length"


@pytest.mark.parametrize("silent", [False, True])
def test_known_replies_are_not_asked_for_again(tmp_path: Path, silent: bool) -> None:
    cache = tmp_path / "folder" / "replies.jsonl"
    first = evaluate(Scripted(silent=silent), [CALL, NONE], "hermes", cache=cache)
    backend = Scripted()
    progress: list[int] = []
    again = evaluate(backend, [CALL, NONE], "hermes", lambda done, _: progress.append(done), cache=cache)
    assert again == first
    assert backend.asked == []
    assert progress == [1, 2, 3, 4]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    cache = tmp_path / "replies.jsonl"
    stopped = Scripted()
    stopped.fail_after = 3
    with pytest.raises(KeyboardInterrupt):
        evaluate(stopped, [CALL, NONE], "hermes", cache=cache)
    rows = [json.loads(line) for line in cache.read_text().splitlines()]
    assert [(row["case"], row["step"]) for row in rows] == [("call", 0), ("none", 0), ("call", 1)]
    backend = Scripted()
    assert evaluate(backend, [CALL, NONE], "hermes", cache=cache) == evaluate(Scripted(), [CALL, NONE], "hermes")
    assert len(backend.asked) == 1


def _cut_last_line(text: str) -> str:
    return text[:-20]


def _break_a_line(text: str) -> str:
    row = {"key": "k", "text": "t", "finish_reason": "stop", "seconds": 1}
    odd = ({"key": []}, {"text": 1}, {"finish_reason": {}}, {"seconds": 10**400}, {"seconds": float("nan")})
    rows = "".join(json.dumps(row | change) + "\n" for change in odd)
    return "[]\nnot json\n" + "[" * 9999 + "\n" + rows + text.replace('"stop"', '"never"', 1)


@pytest.mark.parametrize("damage", [_cut_last_line, _break_a_line])
def test_a_damaged_line_is_asked_for_again(tmp_path: Path, damage: Callable[[str], str]) -> None:
    cache = tmp_path / "replies.jsonl"
    first = evaluate(Scripted(), [CALL, NONE], "hermes", cache=cache)
    cache.write_text(damage(cache.read_text()))
    backend = Scripted()
    assert evaluate(backend, [CALL, NONE], "hermes", cache=cache) == first
    assert len(backend.asked) == 1
    last = Scripted()
    assert evaluate(last, [CALL, NONE], "hermes", cache=cache) == first
    assert last.asked == []


def test_other_weights_or_other_prompts_are_asked_again(tmp_path: Path) -> None:
    cache = tmp_path / "replies.jsonl"
    evaluate(Scripted(), [NONE], "hermes", cache=cache, fingerprint="a")
    other_weights, other_prompt = Scripted(), Scripted()
    evaluate(other_weights, [NONE], "hermes", cache=cache, fingerprint="b")
    changed = Conversation((Message("user", "Dance."), NONE.messages[-1]), GALLERY_TOOLS, id="none")
    evaluate(other_prompt, [changed], "hermes", cache=cache, fingerprint="a")
    assert len(other_weights.asked) == len(other_prompt.asked) == 1


def test_equal_ids_are_refused() -> None:
    with pytest.raises(UserError, match=r"distinct id.*'none'"):
        evaluate(Scripted(), [NONE, NONE], "hermes")


def test_skills_that_training_never_saw_are_marked_and_the_mark_is_kept(tmp_path: Path) -> None:
    records = [replace(CALL, notes={**CALL.notes, "held_out": True}), NONE]
    result = ModelResult("base", "Base", evaluate(Scripted(), records, "hermes"))
    assert [case.held_out for case in result.cases] == [True, False]
    save_results(tmp_path / "base.json", result)
    assert load_results(tmp_path / "base.json") == result
    assert [case.id for case in result.part(held_out=True).cases] == ["call"]


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1, "name": "", "cases": []}', '{"format": 2}', "{"])
def test_files_without_results_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"tuned\.json.*run the evaluation again"):
        load_results(path)


def test_missing_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_results(tmp_path / "tuned.json")


def test_the_facts_belong_to_the_answer_also_where_another_request_follows() -> None:
    longer = replace(CALL, messages=(*CALL.messages, Message("user", "And 2 km?"), LOAD))
    right = {("call", 3): DIALECT.format_reply(LOAD)}
    for answer, told in (("It is 3.11 miles.", True), ("It is 4 miles.", False)):
        (result,) = evaluate(Scripted({**right, ("call", 2): answer}), [longer], "hermes")
        assert [step.score.kind for step in result.steps] == ["load", "run", "answer", "load"]
        assert result.steps[2].score.facts is told and result.trajectory is told
