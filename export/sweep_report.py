"""What a sweep found: which candidate to take, a table, a plot, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.files import atomic_path, atomic_write_json, atomic_write_text
from core.recipe import Quantization, Recipe
from eval.comparison import Paired, paired
from eval.page import interval, percent, points
from eval.results import ModelResult
from eval.statistics import EXACT_CALLS, METRICS, Metric, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JUDGED: Metric = next(metric for metric in METRICS if metric.key == "trajectory")
"""What `export.sweep.bound` is about."""
_ROUNDING = 1e-9
"""A loss of exactly the bound is within it."""
_HEADER = (
    *("weights", "size", "load", "prefill", "decode", "first token", "memory", "exact calls", "whole conversations"),
    "against the tuned model",
)


@dataclass(frozen=True)
class Size:
    """One candidate: what was measured and how it did, or why it could not be."""

    quantization: Quantization
    measured: Mapping[str, Any] = field(default_factory=dict)
    """As `export.measure.measure` gives it."""
    result: ModelResult | None = None
    refused: str = ""

    def change(self, reference: ModelResult) -> Paired | None:
        """What it gains over the tuned model in whole conversations; None if it was not evaluated."""
        return None if self.result is None else paired(reference, self.result, JUDGED)


def read_measured(path: Path) -> dict[str, Any]:
    """The figures that a measuring process left."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def pick(sizes: Sequence[Size], reference: ModelResult, bound: float) -> Size | None:
    """The smallest candidate whose loss against `reference` is at most `bound`, or None.

    It is the loss that was seen which decides, not the end of its interval: the interval says how far that can be
    trusted, and with few conversations it reaches beyond any useful bound even for equal models.
    """
    within = [size for size in sizes if _loss(size, reference) <= bound + _ROUNDING]
    return min(within, key=lambda size: size.measured["bytes"], default=None)


def _loss(size: Size, reference: ModelResult) -> float:
    change = size.change(reference)
    return float("inf") if change is None or change.difference is None else -change.difference


def write_sweep(
    folder: Path, sizes: Sequence[Size], reference: ModelResult, recipe: Recipe, model: str, processor: str
) -> None:
    """Write `sweep.json`, `sweep.md` and `sweep.png` into `folder`.

    Args:
        model: SHA-256 of the merged model's weights.
        processor: where it was measured.
    """
    bound = recipe.export.sweep.bound
    picked = pick(sizes, reference, bound)
    value = {
        "format": 1,
        "model": model,
        "processor": processor,
        "bound": bound,
        "picked": None if picked is None else picked.quantization,
        "conversations": len(reference.cases),
        "candidates": [_as_json(size, reference) for size in sizes],
    }
    atomic_write_json(folder / "sweep.json", value)
    atomic_write_text(folder / "sweep.md", table(sizes, reference, bound, processor))
    _plot(folder / "sweep.png", sizes, reference, bound)


def _as_json(size: Size, reference: ModelResult) -> dict[str, Any]:
    if size.result is None:
        return {"quantization": size.quantization, "refused": size.refused}
    change = size.change(reference)
    assert change is not None
    shares = {metric.key: asdict(summarise(size.result.cases, metric)) for metric in (EXACT_CALLS, JUDGED)}
    return {"quantization": size.quantization, **size.measured, **shares, "against the tuned model": asdict(change)}


def table(sizes: Sequence[Size], reference: ModelResult, bound: float, processor: str) -> str:
    """Markdown: a row for each candidate, and which one is picked and why."""
    rows = [_HEADER, tuple("---" for _ in _HEADER), *(_row(size, reference) for size in sizes)]
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    measured = next(size.measured for size in sizes if size.measured)
    tuned = summarise(reference.cases, JUDGED)
    return f"""{lines}

{_verdict(pick(sizes, reference, bound), reference, bound)} The tuned model in transformers: {tuned.k}/{tuned.n}. On
{processor}, {measured["threads"]} threads, medians of {measured["repeats"]} replies to one prompt of
{measured["prompt_tokens"]:.0f} tokens. Load is from the start to the first token, first token is from the prompt on,
memory is the peak of the whole process.
"""


def _row(size: Size, reference: ModelResult) -> tuple[str, ...]:
    if size.result is None:
        reason = " ".join(size.refused.split()).replace("|", "\\|")
        return (size.quantization, *("–" for _ in _HEADER[2:]), f"left out: {reason}")
    figures, change = size.measured, size.change(reference)
    assert change is not None
    shares = (summarise(size.result.cases, metric) for metric in (EXACT_CALLS, JUDGED))
    return (
        size.quantization,
        f"{figures['bytes'] / 1e6:.1f} MB",
        f"{figures['load_seconds']:.2f} s",
        f"{figures['prefill_tokens_per_second']:.0f} tokens/s",
        f"{figures['decode_tokens_per_second']:.1f} tokens/s",
        f"{figures['first_token_seconds']:.2f} s",
        f"{figures['peak_memory_gb']:.2f} GB",
        *(f"{share.k}/{share.n} = {percent(share.share)}" for share in shares),
        f"{points(change.difference)} ({interval(change.low, change.high)})",
    )


def _verdict(picked: Size | None, reference: ModelResult, bound: float) -> str:
    if picked is None:
        return f"No candidate is within the bound: each loses more than {100 * bound:g} points."
    change = picked.change(reference)
    assert change is not None and change.low is not None
    sure = "and so does the end of its interval" if change.low >= -bound else "though its interval reaches beyond that"
    return f"**{picked.quantization}** is the smallest that loses at most {100 * bound:g} points, {sure}."


def _plot(path: Path, sizes: Sequence[Size], reference: ModelResult, bound: float) -> None:
    """Size against whole conversations, with intervals, the tuned model and the bound."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for size in sizes:
        if size.result is not None:
            _point(axes, size, size.result)
    tuned = summarise(reference.cases, JUDGED).share
    if tuned is not None:
        axes.axhline(100 * tuned, color="#64748b", linewidth=1, label="tuned model, float32, in transformers")
        axes.axhline(100 * (tuned - bound), color="#64748b", linewidth=1, linestyle=":", label="bound of the loss")
    axes.set_xlim(left=0)
    axes.set_xlabel("size of the bundle (MB)")
    axes.set_ylabel("whole conversations (%, with 95% interval)")
    axes.grid(alpha=0.3)
    axes.legend()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png", metadata={"Software": None})
    pyplot.close(figure)


def _point(axes: Axes, size: Size, result: ModelResult) -> None:
    share = summarise(result.cases, JUDGED)
    if share.share is None or share.low is None or share.high is None:
        return
    megabytes, height = size.measured["bytes"] / 1e6, 100 * share.share
    reach = [[max(height - 100 * share.low, 0.0)], [max(100 * share.high - height, 0.0)]]
    axes.errorbar([megabytes], [height], yerr=reach, fmt="o", color="#2563eb", capsize=4)
    label = f"{size.quantization}\n{size.measured['decode_tokens_per_second']:.0f} tokens/s"
    axes.annotate(label, (megabytes, height), xytext=(8, 4), textcoords="offset points", fontsize=9)
