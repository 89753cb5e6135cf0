"""Mean, median and deviation of a sample, with intervals; if the sample is too small for one, there is none.

The median is the middle value, or the mean of the middle two.

Interval of a quantile: order statistics. The number of values below the true q-quantile is binomial(n, q), so that
[x_(l), x_(u)] covers it with probability P(l <= B < u), whatever the distribution (David and Nagaraja, Order
Statistics, 3rd ed., 7.1). With ties, the probability is a lower bound.

Interval of a mean: BCa bootstrap (Efron 1987) from MIN_BOOTSTRAP values on. Bootstrap intervals of few values are too
narrow; docs/statistics.md says by how much.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy

from perflab.results.comparison import Estimate, Interval, Outlier
from perflab.results.figure import Median
from perflab.statistics.sample import Floats, Sample, as_median
from perflab.units import format_confidence

MIN_BOOTSTRAP = 8
RESAMPLES = 9999

Statistic = Callable[..., Any]


def mean(sample: Sample, confidence: float = 0.95, seed: int = 0) -> Estimate:
    """The mean, with a bootstrap interval."""
    if sample.n == 0:
        return Estimate(None, reason="no values")
    interval, reason = bootstrap([sample.array], np.mean, confidence, seed)
    return Estimate(float(np.mean(sample.array)), interval, reason)


def median(sample: Sample, confidence: float = 0.95) -> Estimate:
    """The median, with the interval of its order statistics."""
    if sample.n == 0:
        return Estimate(None, reason="no values")
    interval, reason = order_statistics(sample.array, 0.5, confidence)
    return Estimate(float(np.median(sample.array)), interval, reason)


def median_of(sample: Sample, confidence: float = 0.95, unit: str = "") -> Median:
    """The same as a record."""
    return as_median(median(sample, confidence), sample.n, confidence, unit)


def standard_deviation(sample: Sample, confidence: float = 0.95, seed: int = 0) -> Estimate:
    """The standard deviation (n - 1), with a bootstrap interval."""
    if sample.n < 2:
        return Estimate(None, reason="a standard deviation needs 2 values")
    interval, reason = bootstrap([sample.array], _sd, confidence, seed)
    return Estimate(float(_sd(sample.array)), interval, reason)


def mad(values: Floats) -> float:
    """The median absolute deviation from the median, not scaled."""
    return float(np.median(np.abs(values - np.median(values))))


def order_statistics(values: Floats, q: float, confidence: float) -> tuple[Interval | None, str | None]:
    """The interval of the q-quantile with at most (1 - confidence) / 2 in either tail, or the reason why there is
    none."""
    n, tail = len(values), (1 - confidence) / 2
    ranks = _ranks(n, q, tail)
    if ranks is None:
        needed = next(m for m in range(n + 1, 1_000_000) if _ranks(m, q, tail))
        few = f"{n} {'value is' if n == 1 else 'values are'} too few"
        return None, f"{few} for an interval of {format_confidence(confidence)}: it needs {needed}"
    low, high = ranks
    in_order = np.sort(values)
    covered = scipy.special.bdtr(high - 1, n, q) - scipy.special.bdtr(low - 1, n, q)
    method = f"order statistics {low} and {high} of {n}, exact: {covered:.1%}"
    return Interval(float(in_order[low - 1]), float(in_order[high - 1]), confidence, method), None


def bootstrap(
    samples: Sequence[Floats], statistic: Statistic, confidence: float, seed: int, resamples: int = RESAMPLES
) -> tuple[Interval | None, str | None]:
    """A bootstrap interval of a statistic with an `axis`: BCa, or percentile if that is not defined; or why there is
    none."""
    smallest = min(map(len, samples))
    if smallest < MIN_BOOTSTRAP:
        return None, f"{smallest} values are too few for a bootstrap: it needs {MIN_BOOTSTRAP}"
    if all(np.ptp(values) == 0 for values in samples):
        return None, "all values are equal"
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # scipy warns of a degenerate distribution; its NaN is handled
        drawn = [values[rng.integers(0, len(values), (resamples, len(values)))] for values in samples]
        found = statistic(*drawn, axis=-1)
        tail = (1 - confidence) / 2
        for method, ends in (("BCa", _bca(samples, statistic, found, tail)), ("percentile", (tail, 1 - tail))):
            if all(map(math.isfinite, ends)):
                low, high = map(float, np.quantile(found, ends))
                if math.isfinite(low) and math.isfinite(high):
                    return Interval(low, high, confidence, f"bootstrap, {method}"), None
    return None, "the bootstrap distribution is degenerate"


def _bca(samples: Sequence[Floats], statistic: Statistic, found: Floats, tail: float) -> tuple[float, float]:
    """Which quantiles of the bootstrap distribution are the interval's ends (Efron and Tibshirani 1993, 14.3); NaN if
    not defined."""
    here = statistic(*samples, axis=-1)
    bias = scipy.special.ndtri((np.count_nonzero(found < here) + np.count_nonzero(found <= here)) / (2 * len(found)))
    cubes = squares = 0.0
    for place, values in enumerate(samples):
        n = len(values)
        rest = without_each(values)
        without = statistic(*(rest if at == place else other for at, other in enumerate(samples)), axis=-1)
        apart = (n - 1) * (without.mean() - without)
        cubes += float((apart**3).sum()) / n**3
        squares += float((apart**2).sum()) / n**2
    acceleration = np.float64(cubes) / 6 / np.float64(squares) ** 1.5
    moved = bias + np.asarray([1, -1]) * scipy.special.ndtri(tail)
    low, high = scipy.special.ndtr(bias + moved / (1 - acceleration * moved)).tolist()
    return low, high


def without_each(values: Floats) -> Floats:
    """A row for each value, with all the others in order."""
    n = len(values)
    rows: Floats = np.broadcast_to(values, (n, n))[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return rows


def _ranks(n: int, q: float, tail: float) -> tuple[int, int] | None:
    """Ranks l < u, from 1, of the order statistics that enclose the quantile; None if there are none."""
    below = scipy.special.bdtr(np.arange(n + 1), n, q)  # P(B <= k)
    low = int(np.searchsorted(below, tail * (1 + 1e-9), side="right"))  # the largest l with P(B <= l - 1) <= tail
    high = int(np.searchsorted(below, (1 - tail) * (1 - 1e-12), side="left")) + 1
    return (low, high) if 1 <= low < high <= n else None


def _sd(values: Floats, axis: int = -1) -> Any:
    return np.std(values, axis=axis, ddof=1)


MIN_VALUES = 5
MAD_LIMIT = 3.5  # of the modified z score 0.6745 |x - median| / MAD (Iglewicz and Hoaglin 1993)
FENCE, FAR_FENCE = 1.5, 3.0  # interquartile ranges beyond the quartiles (Tukey 1977)


def find_outliers(sample: Sample) -> tuple[Outlier, ...]:
    """Outliers by the rule of the MAD or Tukey's fences; none for fewer than MIN_VALUES values.

    They are reported and kept: a slow trial is a result too.
    """
    if sample.n < MIN_VALUES:
        return ()
    values = sample.array
    centre, deviation = float(np.median(values)), mad(values)
    lower, upper = (float(q) for q in np.quantile(values, (0.25, 0.75)))
    found = []
    for label, value in zip(sample.labels, sample.values, strict=True):
        z = 0.6745 * (value - centre) / deviation if deviation else None
        beyond = max(lower - value, value - upper)
        width = upper - lower
        fence: Literal["inner", "outer"] | None = None
        if width > 0 and beyond > FENCE * width:
            fence = "outer" if beyond > FAR_FENCE * width else "inner"
        by_mad = z is not None and abs(z) > MAD_LIMIT
        if by_mad or fence:
            found.append(Outlier(sample.name, label, value, z, by_mad, fence))
    return tuple(found)
