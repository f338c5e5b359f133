"""What one model does: shares with intervals, for each metric and each skill.

The unit is always the conversation: its turns depend on each other, so they are not counted as if they
were independent.
"""

from __future__ import annotations

import math
import statistics as descriptive
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eval.results import CALL_KINDS, CaseResult, StepKind, StepScore

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A share between 0 and 1 with its 95% interval; None where nothing is claimed."""

    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Proportion(Estimate):
    """`k` of `n`, with Wilson's score interval. Nothing is claimed where `n` is 0."""

    k: int
    n: int


def proportion(k: int, n: int) -> Proportion:
    """`k` of `n` with the 95% score interval of Wilson (1927)."""
    if n == 0:
        return Proportion(None, None, None, 0, 0)
    from scipy.stats import binomtest

    interval = binomtest(k, n).proportion_ci(confidence_level=LEVEL, method="wilson")
    return Proportion(k / n, float(interval.low), float(interval.high), k, n)


@dataclass(frozen=True)
class Metric:
    """A line of the report: a verdict for each conversation, or None where the question does not arise."""

    key: str
    label: str
    meaning: str
    verdict: Callable[[CaseResult], bool | None]
    detail: bool = False
    """Half of a story, that of a figure in the headline: a model that never calls has full recall of abstention."""


def _each(kinds: Sequence[StepKind], holds: Callable[[StepScore], bool]) -> Callable[[CaseResult], bool | None]:
    def verdict(case: CaseResult) -> bool | None:
        scores = [step.score for step in case.steps if step.score.kind in kinds]
        return all(map(holds, scores)) if scores else None

    return verdict


METRICS: tuple[Metric, ...] = (
    Metric(
        "well_formed",
        "Well-formed calls",
        "Every reply that should be a call is one, nothing in it is malformed, and it ends by itself.",
        _each(CALL_KINDS, lambda score: score.well_formed),
    ),
    Metric(
        "right_tool",
        "Right tools",
        "Every reply that should be a call calls exactly the tool of the record.",
        _each(CALL_KINDS, lambda score: score.right_tool),
    ),
    Metric(
        "load_exact",
        "Exact load_skill",
        "The right skill is loaded.",
        _each(("load",), lambda score: score.exact),
    ),
    Metric(
        "run_exact",
        "Exact run call",
        "run_js or run_intent is called with the arguments of the record; JSON inside strings is compared as JSON.",
        _each(("run",), lambda score: score.exact),
    ),
    Metric(
        "answer_facts",
        "Answer has the facts",
        "The final sentence contains every fact of the tool's result.",
        _each(("answer",), lambda score: score.facts),
    ),
    Metric(
        "abstained",
        "No call where none fits",
        "Recall of abstention: no call is made where no skill fits, whatever is said.",
        _each(("abstain",), lambda score: score.abstained),
        detail=True,
    ),
    Metric(
        "trajectory",
        "Whole conversation",
        "Every step is right: exact calls, the facts in the answer; where no skill fits, the wording of the prompt.",
        lambda case: case.trajectory,
    ),
)

EXACT_CALLS = Metric(
    "calls_exact",
    "Exact calls",
    "Every call that is due is made, with the arguments of the record.",
    _each(CALL_KINDS, lambda score: score.exact),
)
"""Of all calls in one figure; reports show those of each kind instead."""


def summarise(cases: Iterable[CaseResult], metric: Metric) -> Proportion:
    """How many of the conversations that `metric` applies to have it."""
    verdicts = [verdict for case in cases if (verdict := metric.verdict(case)) is not None]
    return proportion(sum(verdicts), len(verdicts))


FUNNEL: tuple[tuple[str, str], ...] = (
    ("well_formed", "Well-formed"),
    ("known_tool", "Known tool"),
    ("right_tool", "Right tool"),
    ("required_arguments", "Required arguments"),
    ("valid_arguments", "Valid arguments"),
    ("exact", "Exact call"),
)
"""Fields of `StepScore` of which each implies those before it, and their labels."""


def funnel(cases: Iterable[CaseResult]) -> dict[str, Proportion]:
    """Of all replies that should be calls, how many get how far. Without intervals: replies of one conversation
    depend on each other.
    """
    scores = [step.score for case in cases for step in case.steps if step.score.kind in CALL_KINDS]
    counts = {label: sum(getattr(score, name) for score in scores) for name, label in FUNNEL}
    return {label: Proportion(k / len(scores), None, None, k, len(scores)) for label, k in counts.items() if scores}


def by_skill(cases: Iterable[CaseResult], metric: Metric) -> dict[str, Proportion]:
    """`summarise` for each skill, in alphabetical order; skills to which the metric does not apply are left out."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if metric.verdict(case) is not None:
            groups.setdefault(case.skill, []).append(case)
    return {skill: summarise(groups[skill], metric) for skill in sorted(groups)}


@dataclass(frozen=True)
class Abstention:
    """The decision to call nothing, taken at the first reply, as a balanced measure."""

    recall: Proportion
    """Of the conversations where no skill fits: no call was made."""
    false_abstention: Proportion
    """Of the conversations where a call is due: none was made."""
    wording: Proportion
    """Of the conversations where no skill fits: the reply is the sentence that the prompt asks for."""
    precision: float | None
    f1: Estimate
    """Its interval is Wilson's for F* = TP / (TP + FP + FN), carried over by F1 = 2 F* / (1 + F*)."""


def abstention(cases: Sequence[CaseResult]) -> Abstention:
    """F1 of abstaining, where abstaining is right in conversations of kind `none` and wrong in the others.

    The interval is the "Wilson indirect" one of Lam, Gopal and Qian (2023, Confidence intervals for the F1
    score); unlike a bootstrap it does not shrink to nothing where all decisions are right.
    """
    due = [case for case in cases if case.kind == "none" and case.steps]
    others = [case for case in cases if case.kind != "none" and case.steps]
    hits, wrong = _abstained(due), _abstained(others)
    star = proportion(hits, len(due) + wrong) if due else proportion(0, 0)
    return Abstention(
        recall=proportion(hits, len(due)),
        false_abstention=proportion(wrong, len(others)),
        wording=proportion(sum(case.steps[0].score.exact for case in due), len(due)),
        precision=hits / (hits + wrong) if hits + wrong else None,
        f1=Estimate(_f1(star.share), _f1(star.low), _f1(star.high)),
    )


def _abstained(cases: Iterable[CaseResult]) -> int:
    return sum(case.steps[0].score.abstained for case in cases)


def _f1(star: float | None) -> float | None:
    return None if star is None else 2 * star / (1 + star)


@dataclass(frozen=True)
class Latency:
    """Seconds that a reply takes."""

    replies: int
    median: float
    ninetieth: float
    """The 90th percentile."""


def latency(cases: Iterable[CaseResult]) -> Latency | None:
    """Median and 90th percentile over all replies; None without any."""
    seconds = sorted(step.seconds for case in cases for step in case.steps)
    if not seconds:
        return None
    return Latency(len(seconds), descriptive.median(seconds), seconds[math.ceil(0.9 * len(seconds)) - 1])


def confusion(cases: Iterable[CaseResult]) -> dict[str, dict[str, int]]:
    """How often each tool that was due (or `no call`) was answered by each that was called."""
    counts = Counter((step.expected_tool, step.called) for case in cases for step in case.steps)
    return {due: {called: n for (row, called), n in sorted(counts.items()) if row == due} for due, _ in sorted(counts)}
