"""Reports as text: the templates beside this file, and how figures are written in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval.statistics import FUNNEL
from hermes.record import JSON, dumps

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent
SHOWN_DIFFERENCES = 50
"""Steps at which two models differ that the pages show; the JSON file has all."""


def render_html(report: Mapping[str, JSON], charts: Mapping[str, str]) -> str:
    """The report as one HTML page; everything but the charts is escaped."""
    from markupsafe import Markup

    from eval.charts import COLOURS

    trusted = {name: Markup(svg) for name, svg in charts.items()}
    template = _environment(autoescape=True).get_template("report.html.jinja")
    return template.render(report=report, charts=trusted, colours=COLOURS, shown=SHOWN_DIFFERENCES)


def render_markdown(report: Mapping[str, JSON]) -> str:
    """The report as Markdown; what a model wrote stands in code fences that it cannot close."""
    template = _environment(autoescape=False).get_template("report.md.jinja")
    return template.render(report=report, stages=[label for _, label in FUNNEL], shown=SHOWN_DIFFERENCES)


def _environment(autoescape: bool) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (
        percent,
        interval,
        points,
        probability,
        seconds,
        flat,
        columns,
        any_asked,
        skill_rows,
        cell,
        fence,
        visible,
    )
    environment.filters.update({each.__name__: each for each in filters})
    return environment


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal."""
    return "–" if share is None else f"{100 * share:.1f}%"


def interval(low: float | None, high: float | None) -> str:
    """Limits of a share as percentages, without the sign."""
    return "–" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f}"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, always with its sign."""
    if difference is None:
        return "–"
    value = round(100 * difference, 1) + 0.0
    return "±0.0" if value == 0 else f"{value:+.1f}".replace("-", "−")


def probability(value: float | None) -> str:
    """A p value."""
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float) -> str:
    """A duration with about three digits."""
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def flat(value: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Rows of a table of facts: nested mappings with dotted keys, other values as text."""
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            yield from flat(each, f"{prefix}{key}.")
        elif isinstance(each, list) and all(isinstance(item, str | int | float) for item in each):
            yield f"{prefix}{key}", ", ".join(map(str, each)) or "none"
        else:
            yield f"{prefix}{key}", each if isinstance(each, str) else dumps(each)


def columns(confusion: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The columns of a confusion matrix: its rows' names first, so that the diagonal shows."""
    called = {name for row in confusion.values() for name in row}
    return [*confusion, *sorted(called - confusion.keys())]


def any_asked(groups: Sequence[Mapping[str, JSON]], metric: str) -> bool:
    """Whether the metric applies to any conversation of any model."""
    return any(group["metrics"][metric]["n"] for group in groups)


def skill_rows(groups: Sequence[Mapping[str, JSON]], metric: str) -> list[tuple[str, list[JSON]]]:
    """For each skill that any model was asked about, each model's share or None."""
    names = sorted({skill for group in groups for skill in group["skills"][metric]})
    return [(name, [group["skills"][metric].get(name) for group in groups]) for name in names]


def visible(text: str) -> str:
    """Text of a model with control characters as pictures, so that a page shows what is there."""
    return "".join(chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else c for c in text) or "(nothing)"


def cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(re.sub(r"([\\|`*_<\[\]])", r"\\\1", str(text)).split())


def fence(text: str) -> str:
    """Text in a Markdown code fence longer than any run of backticks inside."""
    text = visible(text)
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}text\n{text}\n{ticks}"
