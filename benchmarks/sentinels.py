"""Sentinels as text against sentinels as tokens: `python benchmarks/sentinels.py runs-text/x runs-tokens/x [--full]`.

Two runs of one recipe, both trained and evaluated, the second with `--set sentinels=tokens` and four tokens in
`--set model.reserved_tokens=[…]`. Prints the tokens of
the recorded calls with each run's own tokenizer, the time of the replies that should be calls, and the paired
differences of accuracy, as Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from core.errors import UserError
from core.models import load_tokenizer
from core.stages import Run
from data.build import read_conversations
from eval.comparison import paired
from eval.page import interval, points
from eval.results import CALL_KINDS, ModelResult, load_results
from eval.statistics import METRICS
from eval.suite import results_path, split_folder
from hermes import Conversation, get_dialect


def tokens_of_calls(run: Run) -> dict[str, list[int]]:
    """For each tool, how many tokens the recorded calls of the test split take, end of turn included."""
    tokenizer, dialect = load_tokenizer(run.training / "merged"), get_dialect("hermes")
    lengths: dict[str, list[int]] = {}
    for conversation in read_conversations(run.data / "test.jsonl"):
        for message in conversation.messages:
            if message.calls:
                trained = (each.text for each in dialect.render(Conversation((message,))) if each.trained)
                ids = tokenizer.encode("".join(trained), add_special_tokens=False)
                lengths.setdefault(message.calls[0].name, []).append(len(ids))
    return lengths


def seconds(result: ModelResult) -> float:
    """The median time of a reply that should be a call."""
    return statistics.median(
        step.seconds for case in result.cases for step in case.steps if step.score.kind in CALL_KINDS
    )


def lines(text: Run, tokens: Run, full: bool) -> Iterator[str]:
    """The lines of the Markdown table."""
    before, after = tokens_of_calls(text), tokens_of_calls(tokens)
    yield "| | text | tokens |"
    yield "| --- | --- | --- |"
    for tool in sorted(before):
        means = " | ".join(f"{statistics.mean(lengths[tool]):.1f}" for lengths in (before, after))
        yield f"| tokens of a {tool} call, mean | {means} |"
    for name in ("tuned", "bundle"):
        paths = [results_path(split_folder(run, full), name) for run in (text, tokens)]
        missing = [str(path) for path in paths if not path.is_file()]
        if missing:
            print(f"{', '.join(missing)}: not there; {name!r} is left out", file=sys.stderr)
            continue
        one, other = map(load_results, paths)
        yield f"| {name}: seconds of a reply that calls, median | {seconds(one):.2f} | {seconds(other):.2f} |"
        for metric in METRICS:
            difference = paired(one, other, metric)
            yield (
                f"| {name}: {metric.label} | {difference.both + difference.only_a} | "
                f"{difference.both + difference.only_b}, {points(difference.difference)} points "
                f"({interval(difference.low, difference.high)}) |"
            )


def main() -> None:
    """Print the table for the two folders that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="the run with sentinels as text")
    parser.add_argument("tokens", type=Path, help="the run with sentinels as tokens")
    parser.add_argument("--full", action="store_true", help="evaluations of the whole test split")
    given = parser.parse_args()
    try:
        for line in lines(Run(given.text), Run(given.tokens), given.full):
            print(line)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
