"""The report of an evaluation: `report.json`, `report.md`, and `report.html`, one page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from core.files import atomic_write_json, atomic_write_text
from eval.comparison import agreement, paired
from eval.page import interval, percent, render_html, render_markdown
from eval.results import CaseResult, ModelResult, StepScore
from eval.statistics import (
    FUNNEL,
    METRICS,
    Estimate,
    Proportion,
    abstention,
    by_skill,
    confusion,
    funnel,
    latency,
    proportion,
    summarise,
)
from hermes.record import JSON

BASE = "base"
"""The name of the untuned model: others are not asked to agree with it."""
WORST = 10
"""Wrong conversations that a report shows of each model; the JSON file has as many."""
RUN_EXACT = next(metric for metric in METRICS if metric.key == "run_exact")
TRAJECTORY = next(metric for metric in METRICS if metric.key == "trajectory")


def write_report(folder: Path, results: Mapping[str, ModelResult], facts: Mapping[str, JSON]) -> None:
    """Write the three files of a report into `folder`.

    Args:
        folder: Made if it is not there.
        results: Models in the order of their columns (base, tuned, bundle); neighbours are compared.
        facts: What ran on what, shown as a table; nested mappings are shown with dotted keys.

    Raises:
        UserError: the models were evaluated on different data, or a file cannot be written.
    """
    report = build_report(results, facts)
    charts = draw_charts(list(results.values()))
    atomic_write_json(folder / "report.json", report)
    atomic_write_text(folder / "report.md", render_markdown(report))
    atomic_write_text(folder / "report.html", render_html(report, charts))


def headline_table(results: Mapping[str, ModelResult]) -> list[list[str]]:
    """The main lines as text: a header row, then one row a metric with one cell a model."""
    models = list(results.values())
    rows = [[label, *map(_cell, cells)] for label, cells in _headlines(models)]
    return [["", *(model.label for model in models)], *rows]


def _headlines(models: Sequence[ModelResult]) -> Iterator[tuple[str, list[Estimate]]]:
    """The lines that say how good each model is, each with one figure a model."""
    for metric in METRICS:
        if not metric.detail:
            yield metric.label, [summarise(model.cases, metric) for model in models]
        elif metric.key == "abstained":
            yield "Abstention, F1", [abstention(model.cases).f1 for model in models]


def _cell(estimate: Estimate) -> str:
    if estimate.share is None:
        return "–"
    counts = f"{estimate.k}/{estimate.n} = " if isinstance(estimate, Proportion) else ""
    return f"{counts}{percent(estimate.share)} ({interval(estimate.low, estimate.high)})"


def build_report(results: Mapping[str, ModelResult], facts: Mapping[str, JSON]) -> dict[str, JSON]:
    """Everything that a report says, as JSON."""
    models = list(results.values())
    return {
        "format": 1,
        "facts": dict(facts),
        "metrics": [{"key": m.key, "label": m.label, "meaning": m.meaning} for m in METRICS],
        "models": [_model(model) for model in models],
        "comparisons": [_comparison(a, b) for a, b in pairwise(models)],
        "agreements": [_agreement(a, b) for a, b in pairwise(models) if BASE not in (a.name, b.name)],
    }


def _model(model: ModelResult) -> dict[str, JSON]:
    wrong = [case for case in model.cases if not case.trajectory]
    pace = latency(model.cases)
    return {
        "name": model.name,
        "label": model.label,
        "meta": model.meta,
        "conversations": len(model.cases),
        "replies": sum(len(case.steps) for case in model.cases),
        "metrics": {metric.key: asdict(summarise(model.cases, metric)) for metric in METRICS},
        "abstention": asdict(abstention(model.cases)),
        "skills": {
            metric.key: {skill: asdict(share) for skill, share in by_skill(model.cases, metric).items()}
            for metric in (RUN_EXACT, TRAJECTORY)
        },
        "funnel": {stage: {"k": each.k, "n": each.n} for stage, each in funnel(model.cases).items()},
        "confusion": confusion(model.cases),
        "latency": asdict(pace) if pace else None,
        "wrong": len(wrong),
        "examples": list(_examples(wrong))[:WORST],
    }


def _examples(wrong: Sequence[CaseResult]) -> Iterator[dict[str, JSON]]:
    """The first wrong step of each conversation, the furthest from right first."""
    found = []
    for case in wrong:
        number, step = next((n, step) for n, step in enumerate(case.steps, start=1) if not step.score.right)
        score = step.score
        passed = sum((score.well_formed, score.known_tool, score.right_tool, score.valid_arguments, score.exact))
        example = {
            "case": case.id,
            "skill": case.skill,
            "step": number,
            "kind": score.kind,
            "expected": step.expected,
            "raw": step.raw,
            "finish_reason": step.finish_reason,
            "why": _why(score, passed, step.finish_reason == "length"),
        }
        found.append((passed, case.id, example))
    return (example for _, _, example in sorted(found, key=lambda each: each[:2]))


def _why(score: StepScore, passed: int, cut: bool) -> str:
    if cut:
        return "cut by the token limit"
    if score.kind == "answer":
        return "a fact is missing" if score.abstained else "a call in place of the answer"
    if score.kind == "abstain":
        return "not the wording that the prompt asks for" if score.abstained else "a call where no skill fits"
    return ("no well-formed call", "unknown tool", "wrong tool", "arguments not valid", "other arguments")[passed]


def _comparison(a: ModelResult, b: ModelResult) -> dict[str, JSON]:
    lines = {metric.key: asdict(paired(a, b, metric)) for metric in METRICS}
    return {"a": a.label, "b": b.label, "metrics": lines}


def _agreement(a: ModelResult, b: ModelResult) -> dict[str, JSON]:
    return {"a": a.label, "b": b.label, **asdict(agreement(a, b))}


def draw_charts(models: Sequence[ModelResult]) -> dict[str, str]:
    """The page's charts as SVG text, by name."""
    from eval.charts import share_bars, skill_grid

    labels = [model.label for model in models]
    charts = {"metrics": share_bars(labels, dict(_headlines(models)), "Shares by metric and model, with 95% intervals")}
    funnels = [funnel(model.cases) for model in models]
    stages = {stage: [each.get(stage, proportion(0, 0)) for each in funnels] for _, stage in FUNNEL}
    charts["funnel"] = share_bars(labels, stages, "How far replies get that should be calls, by model")
    columns = [by_skill(model.cases, RUN_EXACT) for model in models]
    skills = sorted({skill for column in columns for skill in column})
    if skills:
        grid = {skill: [column.get(skill) for column in columns] for skill in skills}
        charts["skills"] = skill_grid(labels, grid)
    return charts
