"""Charts as inline SVG: they take the page's text colour and font, and the same input gives the same bytes."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval.statistics import Estimate, Proportion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#8b95a5", "#3b82f6", "#10b981", "#f59e0b", "#a855f7", "#ef4444")
_INK = "#010203"
"""Stands for the page's text colour until the SVG is written."""
_WIDTH = 4.5
"""Inches; at 72 points each about as wide as a phone, so that text keeps its size there."""
_RC = {
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": _INK,
    "text.parse_math": False,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def share_bars(labels: Sequence[str], lines: Mapping[str, Sequence[Estimate]], title: str) -> str:
    """A group of bars for each line, one bar a model, with intervals where there are any.

    Args:
        labels: The models.
        lines: For each line's label, one share a model.
        title: For readers that do not see it.
    """
    import matplotlib

    with matplotlib.rc_context(_RC):
        bar, gap = 0.17, 0.28
        height = len(lines) * (len(labels) * bar + gap) + 0.45
        figure, axes = _canvas(height)
        y = 0.0
        for line, shares in lines.items():
            axes.text(0, y + gap * 0.45, line, ha="left", va="center", weight="bold")
            y += gap
            for index, share in enumerate(shares):
                _bar(axes, y + bar / 2, bar * 0.8, share, COLOURS[index % len(COLOURS)])
                y += bar
        axes.set_xlim(0, 1.15)
        axes.set_ylim(y + 0.05, 0)
        axes.set_yticks([])
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
        axes.grid(axis="x", color=_INK, alpha=0.12, linewidth=0.8)
        axes.set_axisbelow(True)
        return _svg(figure, title)


def _bar(axes: Axes, y: float, height: float, share: Estimate, colour: str) -> None:
    if share.share is None:
        axes.text(0.01, y, "not asked", ha="left", va="center", fontsize=8.5, alpha=0.7)
        return
    axes.barh(y, share.share, height=height, color=colour)
    if share.low is not None and share.high is not None:
        axes.plot([share.low, share.high], [y, y], color=_INK, linewidth=1.2, alpha=0.75, solid_capstyle="butt")
    axes.text(1.02, y, f"{100 * share.share:.0f}", ha="left", va="center", fontsize=8.5)


def skill_grid(labels: Sequence[str], skills: Mapping[str, Sequence[Proportion | None]], title: str) -> str:
    """A row for each skill, a column for each model; the fuller a cell, the larger the share.

    Args:
        labels: The models.
        skills: For each skill, one share a model; None where the model was not asked.
        title: For readers that do not see it.
    """
    import matplotlib
    from matplotlib.patches import Rectangle

    with matplotlib.rc_context(_RC):
        row, left = 0.30, 1.0
        figure, axes = _canvas(row * (len(skills) + 1) + 0.15)
        for column, label in enumerate(labels):
            axes.text(left + column + 0.5, -0.45, _short(label), ha="center", va="center", weight="bold")
        for index, (skill, shares) in enumerate(skills.items()):
            axes.text(left - 0.04, index + 0.5, _short(skill, 24), ha="right", va="center")
            for column, share in enumerate(shares):
                value = share.share if share is not None and share.share is not None else 0.0
                colour = COLOURS[column % len(COLOURS)]
                corner = (left + column + 0.02, index + 0.06)
                axes.add_patch(Rectangle(corner, 0.96, 0.88, facecolor=_INK, alpha=0.06, linewidth=0))
                axes.add_patch(Rectangle(corner, 0.96 * value, 0.88, facecolor=colour, alpha=0.55, linewidth=0))
                text = f"{share.k}/{share.n}" if share is not None and share.n else "–"
                axes.text(left + column + 0.5, index + 0.5, text, ha="center", va="center")
        axes.set_xlim(-0.35 * len(labels) + left * 0.4, left + len(labels))
        axes.set_ylim(len(skills) + 0.05, -0.9)
        axes.axis("off")
        return _svg(figure, title)


def _short(text: str, limit: int = 14) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _canvas(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(_WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02))
    axes = figure.add_subplot()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    return figure, axes


def _svg(figure: Figure, title: str) -> str:
    """The figure as an SVG element that can stand beside others in one page."""
    import matplotlib

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Ids are hashes of what they name and of this: two charts of one page must not share any.
    with matplotlib.rc_context({"svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg ") :].replace(_INK, "currentColor")
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"font: ((?:bold |\d+ )?[\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
