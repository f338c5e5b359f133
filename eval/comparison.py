"""Two models on the same conversations: paired differences, and whether they do the same."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from core.errors import UserError
from eval.results import CaseResult, ModelResult, StepKind, StepResult
from eval.scoring import same_calls
from eval.statistics import Metric, Proportion, proportion


@dataclass(frozen=True)
class Paired:
    """Two models, A and B, on the same conversations. The difference is B's share less A's."""

    both: int
    only_a: int
    only_b: int
    neither: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None


def paired(a: ModelResult, b: ModelResult, metric: Metric) -> Paired:
    """Compare two models by one metric over the conversations that both were asked.

    The 95% interval is Newcombe's (1998, Statistics in Medicine 17:2635, method 10: score intervals, with a
    continuity-corrected correlation); the p value is McNemar's exact one.
    """
    verdicts = [(metric.verdict(one), metric.verdict(other)) for one, other in pair_cases(a, b)]
    table = Counter(pair for pair in verdicts if None not in pair)
    both, only_a, only_b = table[True, True], table[True, False], table[False, True]
    neither = table[False, False]
    if not table:
        return Paired(0, 0, 0, 0, None, None, None, None)
    from scipy.stats import binomtest

    discordant = only_a + only_b
    p_value = float(binomtest(only_a, discordant, 0.5).pvalue) if discordant else 1.0
    difference, low, high = newcombe_paired(both, only_b, only_a, neither)
    return Paired(both, only_a, only_b, neither, difference, low, high, p_value)


def newcombe_paired(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float, float]:
    """First share less second share of a paired 2x2 table, and the limits of Newcombe's method 10."""
    n = both + only_first + only_second + neither
    first, second = proportion(both + only_first, n), proportion(both + only_second, n)
    assert first.share is not None and first.low is not None and first.high is not None, "the table is empty"
    assert second.share is not None and second.low is not None and second.high is not None
    scale = math.sqrt(first.k * (n - first.k) * second.k * (n - second.k))
    cross = float(both * neither - only_first * only_second)
    if cross > 0:
        cross = max(cross - n / 2, 0.0)
    phi = cross / scale if scale else 0.0

    def reach(x: float, y: float) -> float:
        return math.sqrt(max(x * x - 2 * phi * x * y + y * y, 0.0))

    difference = first.share - second.share
    low = difference - reach(first.share - first.low, second.high - second.share)
    high = difference + reach(first.high - first.share, second.share - second.low)
    return difference, low, high


def pair_cases(a: ModelResult, b: ModelResult) -> list[tuple[CaseResult, CaseResult]]:
    """The conversations that both models were asked, in A's order.

    Raises:
        UserError: a conversation of one id is not the same in both.
    """
    of_b = {case.id: case for case in b.cases}
    pairs = [(case, of_b[case.id]) for case in a.cases if case.id in of_b]
    for one, other in pairs:
        if [step.expected for step in one.steps] != [step.expected for step in other.steps]:
            raise UserError(
                f"{a.name} and {b.name} were evaluated on different data: {one.id!r} is not the same in both; "
                "run the evaluation of both again"
            )
    return pairs


@dataclass(frozen=True)
class Difference:
    """A step at which two models did different things."""

    case: str
    step: int
    """Counted from 1."""
    kind: StepKind
    expected: str
    a_raw: str
    b_raw: str
    a_right: bool
    b_right: bool


@dataclass(frozen=True)
class Agreement:
    """In how many conversations two models did the same, at three levels of strictness."""

    text: Proportion
    """Every reply has the same characters."""
    action: Proportion
    """The headline: every reply is the same action (see `same_action`)."""
    verdict: Proportion
    """Both conversations are right as a whole, or both are wrong."""
    differences: tuple[Difference, ...]
    """The steps that are not the same action."""


def agreement(a: ModelResult, b: ModelResult) -> Agreement:
    """Compare what two models did, over the conversations that both were asked."""
    pairs = pair_cases(a, b)
    steps = [(one.id, list(zip(one.steps, other.steps, strict=True))) for one, other in pairs]
    return Agreement(
        text=proportion(sum(all(x.raw == y.raw for x, y in both) for _, both in steps), len(pairs)),
        action=proportion(sum(all(same_action(x, y) for x, y in both) for _, both in steps), len(pairs)),
        verdict=proportion(sum(one.trajectory == other.trajectory for one, other in pairs), len(pairs)),
        differences=tuple(
            Difference(case, number, x.score.kind, x.expected, x.raw, y.raw, x.score.right, y.score.right)
            for case, both in steps
            for number, (x, y) in enumerate(both, start=1)
            if not same_action(x, y)
        ),
    )


def same_action(one: StepResult, other: StepResult) -> bool:
    """Whether two replies do the same: equal calls by `same_call`, or no readable call in either and the same verdict.

    A malformed reply is the same action as a malformed one only.
    """
    if one.calls or other.calls:
        return same_calls(one.calls, other.calls) and one.score.right == other.score.right
    return one.called == other.called and one.score.right == other.score.right
