from __future__ import annotations

from dataclasses import replace

import pytest
from eval_samples import call, none, step

from core.errors import UserError
from eval.comparison import agreement, newcombe_paired, paired
from eval.results import CaseResult, ModelResult, StepScore
from eval.statistics import METRICS, Estimate, abstention, by_skill, confusion, funnel, latency, proportion, summarise
from hermes import ToolCall

BY_KEY = {metric.key: metric for metric in METRICS}


def test_wilson_interval() -> None:
    share = proportion(8, 10)
    assert share.share == 0.8
    assert (share.low, share.high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert proportion(0, 10).low == pytest.approx(0.0)
    assert proportion(0, 0).share is None


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((36, 12, 2, 0), (0.2, 0.0569, 0.3404)),
        ((0, 0, 0, 30), (0.0, -0.1135, 0.1135)),
        ((30, 0, 0, 0), (0.0, -0.1135, 0.1135)),
    ],
)
def test_newcombe_interval(table: tuple[int, int, int, int], expected: tuple[float, float, float]) -> None:
    """The first table is the published example; in the others one share is 30 of 30, with 0.8865 as its limit."""
    assert newcombe_paired(*table) == pytest.approx(expected, abs=6e-5)


def test_metrics_count_conversations() -> None:
    cases = [call("1"), call("2", run=4), call("3", load=0, answer=1), none("4"), none("5", 0), none("6", 1)]
    found = {key: (summarise(cases, metric).k, summarise(cases, metric).n) for key, metric in BY_KEY.items()}
    assert found == {
        "well_formed": (2, 3),
        "right_tool": (2, 3),
        "load_exact": (2, 3),
        "run_exact": (2, 3),
        "answer_facts": (2, 3),
        "abstained": (2, 3),
        "trajectory": (2, 6),
    }


def test_funnel_counts_replies() -> None:
    cases = [call("1"), call("2", run=5), call("3", load=0, run=2), call("4", run=3, load=4), none("5", 0)]
    assert {label: each.k for label, each in funnel(cases).items()} == {
        "Well-formed": 7,
        "Known tool": 7,
        "Right tool": 6,
        "Required arguments": 5,
        "Valid arguments": 4,
        "Exact call": 3,
    }
    assert {each.n for each in funnel(cases).values()} == {8}
    assert funnel([none("1")]) == {}


def test_a_model_that_never_calls_has_full_recall_and_a_low_f1() -> None:
    silent = StepScore("load", *[False] * 6, abstained=True, facts=False)
    cases = [CaseResult(str(i), "call", "a", (replace(step("load", 0), score=silent),)) for i in range(8)]
    found = abstention([*cases, none("x"), none("y", 1)])
    assert (found.recall.k, found.recall.n) == (2, 2)
    assert (found.false_abstention.k, found.false_abstention.n) == (8, 8)
    assert (found.wording.k, found.wording.n) == (1, 2)
    assert found.precision == pytest.approx(0.2)
    assert found.f1.share == pytest.approx(1 / 3)
    star = proportion(2, 10)
    assert star.low is not None
    assert found.f1.low == pytest.approx(2 * star.low / (1 + star.low))


def test_abstention_without_cases_claims_nothing() -> None:
    found = abstention([call("1")])
    assert found.f1 == Estimate(None, None, None)
    assert (found.precision, found.recall.share) == (None, None)


def test_paired_comparison() -> None:
    a = ModelResult("a", "A", [call("1"), call("2", run=4), call("3", run=4), call("4", run=4), none("5"), call("6")])
    b = ModelResult("b", "B", [call("4"), call("3"), call("2"), call("1", run=0), none("5"), call("7")])
    found = paired(a, b, BY_KEY["run_exact"])
    assert (found.both, found.only_a, found.only_b, found.neither) == (0, 1, 3, 0)
    assert found.difference == pytest.approx(0.5)
    assert found.p_value == pytest.approx(0.625)
    nothing = paired(a, ModelResult("c", "C", [none("5")]), BY_KEY["run_exact"])
    assert (nothing.both, nothing.difference, nothing.p_value) == (0, None, None)


def test_models_measured_on_different_data_are_not_compared() -> None:
    other = CaseResult("1", "none", "", (step("abstain", expected="other"),))
    with pytest.raises(UserError, match="different data: '1'"):
        paired(ModelResult("a", "A", [none("1")]), ModelResult("b", "B", [other]), BY_KEY["trajectory"])


def test_agreement_has_three_levels() -> None:
    one = replace(step("answer"), raw="It is 3.")
    two = replace(step("answer"), raw="That makes 3.")
    cases_a = [call("1"), CaseResult("2", "call", "a", (one,)), call("3", run=4), call("4", run=4)]
    other_run = replace(step("run", 4), calls=(ToolCall("run_js", {"data": "other"}),))
    cases_b = [
        call("1"),
        CaseResult("2", "call", "a", (two,)),
        call("3"),
        CaseResult("4", "call", "a", (step("load"), other_run, step("answer"))),
    ]
    found = agreement(ModelResult("a", "A", cases_a), ModelResult("b", "B", cases_b))
    assert (found.text.k, found.action.k, found.verdict.k) == (2, 2, 3)
    assert [(each.case, each.step) for each in found.differences] == [("3", 2), ("4", 2)]


def test_skills_latency_and_confusion() -> None:
    cases = [call("1", skill="b"), call("2", skill="a", run=4), none("3", 0)]
    assert {skill: (each.k, each.n) for skill, each in by_skill(cases, BY_KEY["run_exact"]).items()} == {
        "a": (0, 1),
        "b": (1, 1),
    }
    assert confusion(cases)["no call"] == {"malformed": 1, "no call": 2}
    timed = [CaseResult(str(i), "none", "", (step("abstain", seconds=float(i)),)) for i in range(1, 11)]
    pace = latency(timed)
    assert pace is not None
    assert (pace.replies, pace.median, pace.ninetieth) == (10, 5.5, 9.0)
    assert latency([]) is None
