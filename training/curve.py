"""The loss curve, as JSON to read by program and as PNG to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.files import atomic_path, atomic_write_json

CURVE_FILES = ("loss.json", "loss.png")
"""What `write_curve` leaves."""


def write_curve(history: Sequence[dict[str, float]], folder: Path) -> None:
    """Write `loss.json` and `loss.png` into `folder`."""
    atomic_write_json(folder / "loss.json", list(history))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    steps = [point["step"] for point in history]
    axes.plot(steps, [point["loss"] for point in history], color="#2563eb", linewidth=1.2, label="training")
    checked = [point for point in history if "validation_loss" in point]
    axes.plot(
        [point["step"] for point in checked],
        [point["validation_loss"] for point in checked],
        "o-",
        color="#ea580c",
        label="validation (unseen phrasings and values)",
    )
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("loss per label (nats)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    with atomic_path(folder / "loss.png") as path:
        figure.savefig(path, dpi=150, format="png", metadata={"Software": None})
    pyplot.close(figure)
