from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from core.errors import UserError
from eval.comparison import agreement, newcombe_paired, paired
from eval.page import fence, flat, interval, percent, points, probability, visible
from eval.report import build_report, headline_table, write_report
from eval.results import NO_CALL, CaseResult, ModelResult, StepKind, StepResult, StepScore
from eval.statistics import METRICS, Estimate, abstention, by_skill, confusion, funnel, latency, proportion, summarise
from hermes import ToolCall

BY_KEY = {metric.key: metric for metric in METRICS}
WORDS = {"load": "load_skill", "run": "run_js"}


def step(kind: StepKind, passed: int = 5, raw: str = "", expected: str = "", seconds: float = 1.0) -> StepResult:
    """A reply that passes the first `passed` stages; a text with none is a call where none was due."""
    right = passed == 5
    text = kind in ("answer", "abstain")
    facts = kind == "answer" and right
    score = StepScore(kind, passed > 0, passed > 1, passed > 2, passed > 3, right, passed > 0 if text else False, facts)
    due = WORDS.get(kind, NO_CALL)
    called = due if (passed > 0 if text else passed > 2) else "malformed"
    calls = (ToolCall(due, {"data": raw or "right"}),) if not text and passed > 0 else ()
    return StepResult(score, expected or kind, due, raw or f"{kind} {passed}", called, calls, "stop", seconds)


def call(identity: str, load: int = 5, run: int = 5, answer: int = 5, skill: str = "a") -> CaseResult:
    return CaseResult(identity, "call", skill, (step("load", load), step("run", run), step("answer", answer)))


def none(identity: str, passed: int = 5) -> CaseResult:
    return CaseResult(identity, "none", "", (step("abstain", passed),))


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
    cases = [call("1"), call("2", run=4), call("3", load=0, run=2), none("4", 0)]
    assert [each.k for each in funnel(cases).values()] == [5, 5, 4, 4, 3]
    assert {each.n for each in funnel(cases).values()} == {6}
    assert funnel([none("1")]) == {}


def test_a_model_that_never_calls_has_full_recall_and_a_low_f1() -> None:
    silent = StepScore("load", False, False, False, False, False, True, False)
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


def test_figures_as_text() -> None:
    assert [percent(None), percent(1.0), percent(0.1234)] == ["–", "100.0%", "12.3%"]
    assert [points(None), points(0.0), points(-0.0001), points(0.25), points(-0.05)] == [
        "–",
        "±0.0",
        "±0.0",
        "+25.0",
        "−5.0",
    ]
    assert [probability(0.0001), probability(1.0)] == ["< 0.001", "1.000"]
    assert interval(0.5, 0.75) == "50.0 – 75.0"
    assert visible("a\x00\x1b\n") == "a␀␛\n"
    assert dict(flat({"a": {"b": 1, "c": ["x", 2]}, "d": None, "e": {}})) == {
        "a.b": "1",
        "a.c": "x, 2",
        "d": "null",
        "e": "{}",
    }


HOSTILE = "</pre><script>alert(1)</script>\n````\n# Title\n<img src=x onerror=alert(2)> {{ 7 * 7 }} &amp; | \x1b"


def results() -> dict[str, ModelResult]:
    base = [call(f"c{i}", load=0, run=i % 5, answer=1) for i in range(6)] + [none("n0"), none("n1", 0)]
    hostile = CaseResult(
        HOSTILE, "call", f"{HOSTILE} $x^$", (step("load"), step("run", 0, raw=HOSTILE), step("answer"))
    )
    tuned = [call(f"c{i}") for i in range(6)] + [none("n0"), none("n1")]
    return {
        "base": ModelResult("base", "Base", [*base, hostile], {"weights": HOSTILE}),
        "tuned": ModelResult("tuned", "Tuned $\\frac{$", [*tuned, hostile]),
        "bundle": ModelResult("bundle", f"Bundle {HOSTILE}", [*tuned[:5], call("c5", run=4), *tuned[6:]]),
    }


class Page(HTMLParser):
    """Collects what a browser would see as elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    write_report(path, results(), {"cpu": "x", "versions": {"torch": HOSTILE}})
    return path


def test_what_a_model_wrote_cannot_become_a_part_of_the_page(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "iframe", "link", "object"}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert "&lt;script&gt;alert(1)" in text
    assert "{{ 7 * 7 }}" in text


def test_the_page_needs_nothing_from_elsewhere(folder: Path) -> None:
    page = Page((folder / "report.html").read_text())
    references = [value for _, attributes in page.tags for name, value in attributes.items() if "href" in name]
    references += [attributes["src"] for _, attributes in page.tags if "src" in attributes]
    assert all(reference.startswith("#") for reference in references)
    assert "@import" not in (folder / "report.html").read_text()
    assert [tag for tag, _ in page.tags].count("svg") == 3


def test_clip_paths_and_ids_of_the_charts_do_not_clash(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_markdown_fences_hold(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    assert "`````text\n" in text
    outside = re.sub(r"(`{3,})text\n.*?\n\1(?=\n)", "", text, flags=re.S)
    assert "<script" not in re.sub(r"\\<", "", outside)
    assert fence("").startswith("```text\n(nothing)")


def test_the_same_results_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    write_report(tmp_path, results(), {"cpu": "x", "versions": {"torch": HOSTILE}})
    for name in ("report.json", "report.md", "report.html"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_the_json_report_says_the_same(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text())
    assert report == json.loads(json.dumps(build_report(results(), {"cpu": "x", "versions": {"torch": HOSTILE}})))
    assert [model["metrics"]["trajectory"]["k"] for model in report["models"]] == [1, 8, 7]
    assert [(each["a"], each["metrics"]["trajectory"]["only_b"]) for each in report["comparisons"]] == [
        ("Base", 7),
        ("Tuned $\\frac{$", 0),
    ]
    assert len(report["agreements"]) == 1
    assert report["models"][0]["wrong"] == 8
    assert report["models"][0]["examples"][0]["why"] == "no well-formed call"


@pytest.mark.parametrize("names", [["base"], ["tuned"], ["base", "tuned"], ["tuned", "bundle"]])
def test_missing_models_are_missing_columns(tmp_path: Path, names: list[str]) -> None:
    chosen = {name: results()[name] for name in names}
    write_report(tmp_path, chosen, {})
    table = headline_table(chosen)
    assert table[0] == ["", *(model.label for model in chosen.values())]
    assert {len(row) for row in table} == {1 + len(names)}
    assert [row[0] for row in table[1:]] == [*(m.label for m in METRICS[:-2]), "Abstention, F1", METRICS[-1].label]


def test_a_model_without_abstentions_or_cases(tmp_path: Path) -> None:
    chosen = {"base": ModelResult("base", "Base", []), "tuned": ModelResult("tuned", "Tuned", [call("1")])}
    write_report(tmp_path, chosen, {})
    assert headline_table(chosen)[1][1:] == ["–", "1/1 = 100.0% (20.7 – 100.0)"]
