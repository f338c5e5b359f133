from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from eval_samples import HOSTILE, call, none, results, unseen, with_held_out

from eval.page import fence, flat, interval, percent, points, probability, visible
from eval.report import build_report, headline_table, write_report
from eval.results import ModelResult, save_results
from eval.statistics import METRICS


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


@pytest.fixture(params=["folder", "held_out_folder"])
def either(request: pytest.FixtureRequest) -> Path:
    """A report without held-out skills, and one with them."""
    path = request.getfixturevalue(request.param)
    assert isinstance(path, Path)
    return path


def test_what_a_model_wrote_cannot_become_a_part_of_the_page(either: Path) -> None:
    text = (either / "report.html").read_text()
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "iframe", "link", "object"}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert "&lt;script&gt;alert(1)" in text
    assert "{{ 7 * 7 }}" in text


def test_the_page_needs_nothing_from_elsewhere(either: Path) -> None:
    page = Page((either / "report.html").read_text())
    references = [value for _, attributes in page.tags for name, value in attributes.items() if "href" in name]
    references += [attributes["src"] for _, attributes in page.tags if "src" in attributes]
    assert all(reference.startswith("#") for reference in references)
    assert "@import" not in (either / "report.html").read_text()


def test_clip_paths_and_ids_of_the_charts_do_not_clash(either: Path) -> None:
    text = (either / "report.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_markdown_fences_hold(either: Path) -> None:
    text = (either / "report.md").read_text()
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
    assert report["models"][2]["examples"][-1]["why"] == "arguments not valid"


def test_the_funnel_is_in_every_file(folder: Path) -> None:
    model = json.loads((folder / "report.json").read_text())["models"][1]
    assert model["funnel"]["Required arguments"] == {"k": 13, "n": 14}
    assert re.search(r"\| Required arguments \| \d+/\d+ \| 13/14 \| 12/12 \|", (folder / "report.md").read_text())
    assert "Required arguments" in (folder / "report.html").read_text()


def test_why_a_call_is_wrong() -> None:
    cases = [call(str(passed), run=passed) for passed in range(6)]
    model = build_report({"tuned": ModelResult("tuned", "Tuned", cases)}, {})["models"][0]
    assert [example["why"] for example in model["examples"]] == [
        "no well-formed call",
        "unknown tool",
        "wrong tool",
        "an argument is missing or one too many",
        "arguments not valid",
        "other arguments",
    ]


@pytest.fixture(scope="module")
def held_out_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("held-out")
    write_report(path, with_held_out(), {"cpu": "x", "versions": {"torch": HOSTILE}})
    return path


def test_figures_of_held_out_skills_stand_by_themselves(held_out_folder: Path, folder: Path) -> None:
    def without_groups(report: dict[str, Any]) -> dict[str, Any]:
        models = [{**model, "held_out": None, "latency": None} for model in report["models"]]
        return {**report, "models": models, "comparisons": [each["metrics"] for each in report["comparisons"]]}

    report, plain = (json.loads((each / "report.json").read_text()) for each in (held_out_folder, folder))
    alike, other = without_groups(report), without_groups(plain)
    del alike["agreements"], other["agreements"]
    assert alike == other
    held_out = report["models"][1]["held_out"]
    assert held_out["conversations"] == 7
    assert {key: (each["k"], each["n"]) for key, each in held_out["metrics"].items()} == {
        "well_formed": (6, 7),
        "right_tool": (6, 7),
        "load_exact": (7, 7),
        "run_exact": (5, 7),
        "answer_facts": (7, 7),
        "abstained": (0, 0),
        "trajectory": (5, 7),
    }
    assert {skill: each["k"] for skill, each in held_out["skills"]["run_exact"].items()} == {"y": 3, "z": 2, HOSTILE: 0}
    assert held_out["funnel"]["Exact call"] == {"k": 12, "n": 14}
    comparison = report["comparisons"][0]["held_out"]
    assert {key: each["only_b"] for key, each in comparison.items()} == {
        "load_exact": 6,
        "run_exact": 5,
        "trajectory": 5,
    }
    assert plain["comparisons"][0]["held_out"] == {}
    assert report["agreements"][0]["action"]["n"] == plain["agreements"][0]["action"]["n"] + 7


def test_the_table_and_the_pages_show_held_out_skills_where_there_are_any(held_out_folder: Path, folder: Path) -> None:
    rows = {row[0]: row[1:] for row in headline_table(with_held_out())}
    assert rows["Held-out skills: exact load_skill"][0] == "1/7 = 14.3% (2.6 – 51.3)"
    assert "Held-out skills: exact run call" in rows and "Held-out skills: whole conversation" in rows
    assert "Held-out skills: abstention, F1" not in rows
    assert not [row for row in headline_table(results()) if row[0].startswith("Held-out")]
    title = "Skills that training never saw"
    for name in ("report.md", "report.html"):
        assert title in (held_out_folder / name).read_text() and title not in (folder / name).read_text()
    assert "| y | 0/3 | 3/3 | 3/3 |" in (held_out_folder / "report.md").read_text()
    assert [tag for tag, _ in Page((held_out_folder / "report.html").read_text()).tags].count("svg") == 5


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


def test_the_spread_over_seeds(tmp_path: Path) -> None:
    right = {"runs-0": 4, "runs-1": 3, "runs-2": 2}
    for folder, count in right.items():
        cases = [call(str(n), run=6 if n < count else 5) for n in range(4)] + [unseen("h"), none("n")]
        for place, some in (("evaluation", cases), ("evaluation-full", cases[:1])):
            result = ModelResult("tuned", "tuned", some)
            save_results(tmp_path / folder / "x" / place / "tuned" / "results.json", result)
    save_results(tmp_path / "runs-0/x/evaluation/bundle/results.json", ModelResult("bundle", "bundle", [call("1")]))
    script = Path(__file__).parent.parent / "benchmarks" / "seeds.py"

    def printed(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, script, *(tmp_path / folder / "x" for folder in right), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    quick = printed()
    lines = quick.stdout.splitlines()
    assert lines[0] == "| model | figure | runs | mean | min | max | standard deviation |"
    assert "| tuned | Exact run call | 3 | 75.0% | 50.0% | 100.0% | 25.0% |" in lines
    assert "| tuned | Abstention, F1 | 3 | 100.0% | 100.0% | 100.0% | 0.0% |" in lines
    assert "| tuned | Held-out skills: exact run call | 3 | 100.0% | 100.0% | 100.0% | 0.0% |" in lines
    assert "| bundle | Exact run call | 1 | 100.0% | 100.0% | 100.0% | – |" in lines
    assert "runs-1/x/evaluation/bundle/results.json: not there" in quick.stderr
    full = printed("--full").stdout.splitlines()
    assert "| tuned | Exact run call | 3 | 100.0% | 100.0% | 100.0% | 0.0% |" in full
    assert not [line for line in full if "bundle" in line or "Held-out" in line]
    (tmp_path / "runs-2/x/evaluation/tuned/results.json").write_text("{}")
    broken = printed()
    assert broken.returncode == 1 and "run the evaluation again" in broken.stderr
