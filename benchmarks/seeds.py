"""How much figures depend on the seed: `python benchmarks/seeds.py runs-0/x runs-1/x runs-2/x [--full]`.

Each folder is one run of the same recipe with its own seed, evaluated (`hermes-edge eval --runs runs-0 --set seed=0`).
Prints mean, minimum, maximum and sample standard deviation of every main figure as a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.errors import UserError
from core.stages import Run
from eval.page import percent
from eval.report import headlines
from eval.results import ModelResult, load_results
from eval.suite import results_path, split_folder

MODELS = ("tuned", "bundle")
"""The models that a seed decides."""


def read(folders: Sequence[Path], name: str, full: bool) -> list[ModelResult]:
    """The results of the model `name` in those runs that have any.

    Raises:
        UserError: a file does not hold results of this version.
    """
    paths = [results_path(split_folder(Run(folder), full), name) for folder in folders]
    for path in paths:
        if not path.is_file():
            print(f"{path}: not there; this run is left out of {name!r}", file=sys.stderr)
    return [load_results(path) for path in paths if path.is_file()]


def table(folders: Sequence[Path], full: bool = False) -> Iterator[str]:
    """The lines of the Markdown table; figures of held-out skills come after the others."""
    yield "| model | figure | runs | mean | min | max | standard deviation |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in MODELS:
        shares: dict[str, list[float]] = {}
        for model in read(folders, name, full):
            for label, (estimate,) in headlines([model]):
                if estimate.share is not None:
                    shares.setdefault(label, []).append(estimate.share)
        for label, values in shares.items():
            spread = percent(statistics.stdev(values) if len(values) > 1 else None)
            figures = " | ".join(map(percent, (statistics.mean(values), min(values), max(values))))
            yield f"| {name} | {label} | {len(values)} | {figures} | {spread} |"


def main() -> None:
    """Print the table for the folders that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs, such as runs-0/smollm2-135m")
    parser.add_argument("--full", action="store_true", help="evaluations of the whole test split")
    given = parser.parse_args()
    try:
        for line in table(given.runs, given.full):
            print(line)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
