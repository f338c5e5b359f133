"""Paired ratios of times, for benchmarks that alternate between two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95


@dataclass(frozen=True)
class Ratio:
    """How many times as much one side takes as the other."""

    mean: float
    """Geometric mean over the pairs."""
    low: float
    """95% interval of the mean, by Student's t on the logarithms."""
    high: float
    upper: float
    """One-sided 95% upper bound."""


def ratio(one: Sequence[float], other: Sequence[float]) -> Ratio:
    """`one` over `other`, pair by pair; at least two pairs, all positive."""
    import numpy as np
    from scipy.stats import ttest_1samp

    logs = np.log(np.asarray(one) / np.asarray(other))
    interval = ttest_1samp(logs, 0).confidence_interval(LEVEL)
    upper = ttest_1samp(logs, 0, alternative="less").confidence_interval(LEVEL).high
    mean, low, high, bound = (float(np.exp(value)) for value in (logs.mean(), interval.low, interval.high, upper))
    return Ratio(mean, low, high, bound)
