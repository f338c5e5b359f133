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
_STOPPED_AT = (
    "no well-formed call",
    "unknown tool",
    "wrong tool",
    "an argument is missing or one too many",
    "arguments not valid",
    "other arguments",
)
"""What is wrong with a call that passes so many stages of the funnel."""
WORST = 10
"""Wrong conversations that a report shows of each model; the JSON file has as many."""
BY_SKILL = tuple(metric for metric in METRICS if metric.key in ("load_exact", "run_exact", "trajectory"))
"""The metrics that are shown skill by skill, and by which models are compared on held-out skills."""
(RUN_EXACT,) = (metric for metric in METRICS if metric.key == "run_exact")
"""The metric of the charts by skill."""


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
    rows = [[label, *map(_cell, cells)] for label, cells in headlines(models)]
    return [["", *(model.label for model in models)], *rows]


def headlines(models: Sequence[ModelResult]) -> list[tuple[str, list[Estimate]]]:
    """The lines that say how good each model is, each with one figure a model.

    First those of the skills that training lists and of refusals, then those of held-out skills. A line that applies
    to no conversation is left out.
    """
    held_out = _lines([model.part(True) for model in models])
    return [
        *_lines([model.part(False) for model in models]),
        *((f"Held-out skills: {label[0].lower()}{label[1:]}", cells) for label, cells in held_out),
    ]


def _lines(models: Sequence[ModelResult]) -> Iterator[tuple[str, list[Estimate]]]:
    for metric in METRICS:
        label, cells = metric.label, [summarise(model.cases, metric) for model in models]
        if not any(cell.n for cell in cells):
            continue
        if not metric.detail:
            yield label, list(cells)
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
        "format": 2,
        "facts": dict(facts),
        "metrics": [{"key": m.key, "label": m.label, "meaning": m.meaning} for m in METRICS],
        "models": [_model(model) for model in models],
        "comparisons": [_comparison(a, b) for a, b in pairwise(models)],
        "agreements": [_agreement(a, b) for a, b in pairwise(models) if BASE not in (a.name, b.name)],
    }


def _model(model: ModelResult) -> dict[str, JSON]:
    pace = latency(model.cases)
    return {
        "name": model.name,
        "label": model.label,
        "meta": model.meta,
        "latency": asdict(pace) if pace else None,
        **_figures(model.part(False).cases),
        "held_out": _figures(model.part(True).cases),
    }


def _figures(cases: Sequence[CaseResult]) -> dict[str, JSON]:
    wrong = [case for case in cases if not case.trajectory]
    return {
        "conversations": len(cases),
        "replies": sum(len(case.steps) for case in cases),
        "metrics": {metric.key: asdict(summarise(cases, metric)) for metric in METRICS},
        "abstention": asdict(abstention(cases)),
        "skills": {
            metric.key: {skill: asdict(share) for skill, share in by_skill(cases, metric).items()}
            for metric in BY_SKILL
        },
        "funnel": {stage: {"k": each.k, "n": each.n} for stage, each in funnel(cases).items()},
        "confusion": confusion(cases),
        "wrong": len(wrong),
        "examples": list(_examples(wrong))[:WORST],
    }


def _examples(wrong: Sequence[CaseResult]) -> Iterator[dict[str, JSON]]:
    """The first wrong step of each conversation, the furthest from right first."""
    found = []
    for case in wrong:
        number, step = next((n, step) for n, step in enumerate(case.steps, start=1) if not step.score.right)
        score = step.score
        passed = sum(getattr(score, name) for name, _ in FUNNEL)
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
    return _STOPPED_AT[passed]


def _comparison(a: ModelResult, b: ModelResult) -> dict[str, JSON]:
    """Paired differences that apply to any conversation: of the headline's, and of held-out skills."""
    lines = {
        held_out: {
            metric.key: asdict(found)
            for metric in (BY_SKILL if held_out else METRICS)
            if (found := paired(a.part(held_out), b.part(held_out), metric)).difference is not None
        }
        for held_out in (False, True)
    }
    return {"a": a.label, "b": b.label, "metrics": lines[False], "held_out": lines[True]}


def _agreement(a: ModelResult, b: ModelResult) -> dict[str, JSON]:
    return {"a": a.label, "b": b.label, **asdict(agreement(a, b))}


def draw_charts(models: Sequence[ModelResult]) -> dict[str, str]:
    """The page's charts as SVG text, by name; those of held-out skills only where there are any."""
    from eval.charts import share_bars

    labels = [model.label for model in models]
    headline, held_out = ([model.part(part) for model in models] for part in (False, True))
    charts = {"metrics": share_bars(labels, dict(_lines(headline)), "Shares by metric and model, with 95% intervals")}
    funnels = [funnel(model.cases) for model in headline]
    stages = {stage: [each.get(stage, proportion(0, 0)) for each in funnels] for _, stage in FUNNEL}
    charts["funnel"] = share_bars(labels, stages, "How far replies get that should be calls, by model")
    charts |= _skill_chart("skills", headline, "Exact run calls by skill and model")
    if any(model.cases for model in held_out):
        charts["held_out"] = share_bars(labels, dict(_lines(held_out)), "Held-out skills: shares by metric and model")
        charts |= _skill_chart("held_out_skills", held_out, "Exact run calls by held-out skill and model")
    return charts


def _skill_chart(name: str, models: Sequence[ModelResult], title: str) -> dict[str, str]:
    from eval.charts import skill_grid

    columns = [by_skill(model.cases, RUN_EXACT) for model in models]
    skills = sorted({skill for column in columns for skill in column})
    grid = {skill: [column.get(skill) for column in columns] for skill in skills}
    return {name: skill_grid([model.label for model in models], grid, title)} if skills else {}
