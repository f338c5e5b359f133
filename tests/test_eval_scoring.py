from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.scoring import (
    MAX_DEPTH,
    called_tool,
    has_fact,
    json_equal,
    refuse_depth,
    same_call,
    same_wording,
    score_step,
    step_kind,
)
from eval.statistics import FUNNEL
from hermes import Final, Malformed, Message, Reply, Tool, ToolCall, ToolCalls, get_dialect
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

LOAD = ToolCall("load_skill", {"skill_name": "unit-converter"})
DATA = '{"value": 5, "from": "km"}'
RUN = ToolCall("run_js", {"skill_name": "unit-converter", "script_name": "index.html", "data": DATA})


def run_js(data: Any) -> ToolCall:
    return ToolCall("run_js", {**RUN.arguments, "data": data})


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        (True, True, True),
        (None, False, False),
        (None, None, True),
        ("1", 1, False),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ({}, [], False),
        ({"a": 1, "b": [True]}, {"b": [True], "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": {"b": 1}}, {"a": {"b": True}}, False),
        (0.1 + 0.2, 0.3, False),
    ],
)
def test_json_equal(left: Any, right: Any, same: bool) -> None:
    assert json_equal(left, right) is same


def test_json_equal_of_deep_values_does_not_recurse() -> None:
    def deep() -> list[Any]:
        value: list[Any] = []
        for _ in range(100_000):
            value = [value]
        return value

    assert json_equal(deep(), deep())


@pytest.mark.parametrize(
    ("data", "same"),
    [
        (DATA, True),
        ('{"from":"km","value":5.0}', True),
        ('{"value": 5, "from": "km", "from": "km"}', True),
        ('{"value": "5", "from": "km"}', False),
        ('{"value": true, "from": "km"}', False),
        ('{"value": 5}', False),
        ('{"value": NaN, "from": "km"}', False),
        ("value 5 from km", False),
        ("[" * 100_000, False),
        ("1" * 10_000, False),
        ("", False),
        ({"value": 5, "from": "km"}, False),
        (None, False),
    ],
)
def test_same_call_compares_json_text_as_json(data: Any, same: bool) -> None:
    assert same_call(RUN, run_js(data)) is same


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (LOAD, LOAD, True),
        (LOAD, ToolCall("load_skill", {"skill_name": "Unit-Converter"}), False),
        (LOAD, ToolCall("run_skill", {"skill_name": "unit-converter"}), False),
        (LOAD, ToolCall("load_skill", {}), False),
        (LOAD, ToolCall("load_skill", {"skill_name": "unit-converter", "x": 1}), False),
        (run_js(""), run_js(""), True),
        (run_js(""), run_js("{}"), False),
        (run_js("plain"), run_js("plain "), False),
        (ToolCall("t", {"text": "[1]"}), ToolCall("t", {"text": "[1.0]"}), False),
        (ToolCall("t", {"data": [1]}), ToolCall("t", {"data": [1.0]}), True),
    ],
)
def test_same_call(expected: ToolCall, actual: ToolCall, same: bool) -> None:
    assert same_call(expected, actual) is same


@pytest.mark.parametrize(
    ("text", "fact", "found"),
    [
        ("That is 7.77 miles.", "7.77", True),
        ("That is 7.77.", "7.77", True),
        ("That is 7.77km", "7.77", True),
        ("That is 17.77", "7.77", False),
        ("That is 7.775", "7.77", False),
        ("It costs 45,000", "45", False),
        ("It costs 45, or so", "45", True),
        ("from 3.7", "7", False),
        ("11 words", "1 word", False),
        ("has 4\n Words", "4 words", True),
        ("Sent to +1 555 0100.", "+1 555 0100", True),
        ("ÉCOLE", "école", True),
        ("anything", "", True),
        ("", "x", False),
    ],
)
def test_has_fact(text: str, fact: str, found: bool) -> None:
    assert has_fact(text, fact) is found


def test_wording_ignores_case_space_and_final_period() -> None:
    assert same_wording(NO_SKILL_ANSWER, " no relevant  skills found.\n")
    assert not same_wording(NO_SKILL_ANSWER, "No relevant skills found, sorry")


def test_step_kinds() -> None:
    user, text = Message("user", "hi"), Message("assistant", "hello")
    called = Message("assistant", calls=(RUN,))
    assert step_kind(Message("assistant", calls=(LOAD,)), [user]) == "load"
    assert step_kind(called, [user]) == "run"
    assert step_kind(text, [user]) == "abstain"
    assert step_kind(text, [user, called]) == "answer"


UNKNOWN = ToolCall("fly", {})
WRONG_TOOL = ToolCall("run_intent", {"intent": "x", "parameters": "{}"})
INCOMPLETE = ToolCall("run_js", {"skill_name": "unit-converter"})
OTHER = run_js("{}")


@pytest.mark.parametrize(
    ("reply", "cut", "passed"),
    [
        (ToolCalls((run_js('{"from": "km", "value": 5}'),), "Let me see."), False, 6),
        (ToolCalls((RUN,)), True, 0),
        (ToolCalls((OTHER,)), False, 5),
        (ToolCalls((run_js({"value": 5}),)), False, 4),
        (ToolCalls((INCOMPLETE,)), False, 3),
        (ToolCalls((WRONG_TOOL,)), False, 2),
        (ToolCalls((RUN, RUN)), False, 2),
        (ToolCalls((UNKNOWN,)), False, 1),
        (ToolCalls((RUN,), malformed=("call is not JSON",)), False, 0),
        (Malformed("call is not closed"), False, 0),
        (Final("5 km"), False, 0),
        (Final(""), False, 0),
    ],
)
def test_funnel_of_a_call(reply: Reply, cut: bool, passed: int) -> None:
    score = score_step(Message("assistant", calls=(RUN,)), reply, tools=GALLERY_TOOLS, cut=cut)
    stages = [getattr(score, name) for name, _ in FUNNEL]
    assert stages == [True] * passed + [False] * (6 - passed)
    assert score.kind == "run"
    assert score.right is (passed == 6)
    assert score.abstained is isinstance(reply, Final)


TRIP = {"type": "object", "properties": {"to": {"type": "string"}, "days": {"type": "integer"}}, "required": ["to"]}


@pytest.mark.parametrize(
    ("schema", "arguments", "required", "valid"),
    [
        ({}, {"to": "Oslo"}, True, True),
        ({}, {"to": "Oslo", "days": "three"}, True, False),
        ({}, {"to": 3}, True, False),
        ({}, {"days": 3}, False, False),
        ({}, {"to": "Oslo", "by": "train"}, True, True),
        ({"additionalProperties": False}, {"to": "Oslo", "days": 3}, True, True),
        ({"additionalProperties": False}, {"to": "Oslo", "by": "train"}, False, False),
        ({"additionalProperties": False}, {"to": 3}, True, False),
        (
            {"additionalProperties": False, "patternProperties": {"^x-": {"type": "string"}}},
            {"to": "", "x-a": 1},
            True,
            False,
        ),
        ({"additionalProperties": {"type": "string"}}, {"to": "Oslo", "by": 3}, True, False),
        ({"dependentRequired": {"days": ["month"]}}, {"to": "Oslo", "days": 3}, False, False),
        ({"required": "to"}, {"to": "Oslo"}, False, False),
        ({"properties": {"to": {"$ref": "elsewhere"}}}, {"to": "Oslo"}, True, False),
    ],
)
def test_a_missing_argument_and_a_wrong_type_are_told_apart(
    schema: dict[str, Any], arguments: dict[str, Any], required: bool, valid: bool
) -> None:
    tool = Tool("travel", "Go.", TRIP | schema)
    expected = Message("assistant", calls=(ToolCall("travel", {"to": "Bergen"}),))
    score = score_step(expected, ToolCalls((ToolCall("travel", arguments),)), tools=[tool])
    assert score.right_tool
    assert (score.required_arguments, score.valid_arguments, score.exact) == (required, valid, False)


@pytest.mark.parametrize(
    ("reply", "cut", "well_formed", "right"),
    [
        (Final("5 km is 3.11 MILES."), False, True, True),
        (Final("It is 3.11  miles"), False, True, True),
        (Final("3.11 miles"), True, False, False),
        (Final("3.11"), False, True, False),
        (Final(" "), False, False, False),
        (ToolCalls((RUN,), "3.11 miles"), False, False, False),
        (Malformed("x", raw="3.11 miles"), False, False, False),
    ],
)
def test_answers_need_their_facts(reply: Reply, cut: bool, well_formed: bool, right: bool) -> None:
    expected = Message("assistant", "5 km is 3.11 miles.")
    score = score_step(expected, reply, kind="answer", tools=GALLERY_TOOLS, facts=["3.11", "miles"], cut=cut)
    assert (score.well_formed, score.facts, score.right) == (well_formed, right, right)


@pytest.mark.parametrize(
    ("reply", "cut", "abstained", "right"),
    [
        (Final("No relevant skills found"), False, True, True),
        (Final("no relevant skills found."), False, True, True),
        (Final("Sorry, I cannot do that."), False, True, False),
        (Final("No relevant skills found"), True, True, False),
        (ToolCalls((LOAD,)), False, False, False),
        (ToolCalls((LOAD,), "No relevant skills found"), False, False, False),
        (Malformed("call is not closed"), False, False, False),
    ],
)
def test_abstention_is_no_call_and_its_wording(reply: Reply, cut: bool, abstained: bool, right: bool) -> None:
    score = score_step(Message("assistant", NO_SKILL_ANSWER), reply, tools=GALLERY_TOOLS, cut=cut)
    assert (score.kind, score.abstained, score.right) == ("abstain", abstained, right)


@pytest.mark.parametrize(
    ("reply", "called"),
    [
        (ToolCalls((RUN,)), "run_js"),
        (ToolCalls((UNKNOWN,)), "unknown tool"),
        (ToolCalls((RUN, LOAD)), "several calls"),
        (ToolCalls((RUN,), malformed=("x",)), "malformed"),
        (Malformed("x"), "malformed"),
        (Final("hi"), "no call"),
    ],
)
def test_column_of_the_confusion_matrix(reply: Reply, called: str) -> None:
    assert called_tool(reply, GALLERY_TOOLS) == called


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(JSON_VALUES, st.sampled_from(["data", "x"]), st.text(max_size=20))
def test_no_reply_makes_scoring_raise(value: Any, key: str, noise: str) -> None:
    call = json.dumps({"name": "run_js", "arguments": {**RUN.arguments, key: value}})
    for text in (noise, f"{noise}<tool_call>{call}</tool_call>", f"<tool_call>{call}", call):
        reply = get_dialect("hermes").parse(text)
        for expected in (Message("assistant", calls=(RUN,)), Message("assistant", NO_SKILL_ANSWER)):
            score_step(expected, reply, tools=GALLERY_TOOLS)


def test_depth_limit() -> None:
    def nested(depth: int) -> ToolCalls:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value} if depth % 2 else [value]
        return ToolCalls((ToolCall("t", {"x": value}),))

    for depth in (0, 1, 98, MAX_DEPTH - 1):
        assert refuse_depth(nested(depth)) == nested(depth)
    assert isinstance(refuse_depth(nested(MAX_DEPTH)), Malformed)
    assert isinstance(refuse_depth(nested(MAX_DEPTH + 1)), Malformed)


def test_arguments_nested_too_deep_are_only_wrong() -> None:
    for depth in (200, 600, 850, 930, 100_000):
        nested = "[" * depth + "]" * depth
        text = f'<tool_call>{{"name": "load_skill", "arguments": {{"skill_name": {nested}}}}}</tool_call>'
        reply = get_dialect("hermes").parse(text)
        score = score_step(Message("assistant", calls=(LOAD,)), reply, tools=GALLERY_TOOLS)
        assert not score.right
