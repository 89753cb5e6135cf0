"""Whether and by how much the values of a treatment b are larger than those of its baseline a.

The test is by ranks: Wilcoxon, Mann and Whitney for two samples; with blocks the aligned rank test of Hodges and
Lehmann (1962; Lehmann, Nonparametrics, 3.3): the mean of each block is taken from its values, all are ranked
together, and the sum of b's ranks is compared with what it is when values are exchanged within blocks. Pairs make it a
signed-rank test with scores r - 1/2. The distribution is counted out exactly, ties included, up to MAX_EXACT trials.

The estimate is Hodges and Lehmann's: the shift that makes both samples look alike to the test. Its interval is what the
test does not reject: the order statistics of all differences b_j - a_i (Moses; Hollander, Wolfe and Chicken, 4.3)
or, with blocks, the shifts at which the ranks change, searched. Closed, so that it covers as stated for ties too.

Without a unit: Cliff's delta and Hedges' g. Every sign: positive means that the treatment's values b are larger.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from perflab.results.comparison import Direction, Estimate, Interval, Test
from perflab.statistics.sample import Block, Design, Floats
from perflab.units import format_confidence

Ranks = npt.NDArray[np.int64]

MAX_EXACT = 80  # trials; beyond, the normal approximation is off by less than 0.003
MAX_ENUMERATED = 20_000  # arrangements that a permutation test goes through one by one
RESAMPLES = 9999
_RELATIVE_NOISE = 1e-10  # of floating point: values that differ by less, measured by the largest, are equal


@dataclass(frozen=True)
class _Tails:
    """Chances, if there is no difference, of a rank sum at most and at least as large as the one seen."""

    low: float
    high: float
    exact: bool

    def p(self, direction: Direction) -> float:
        return {"both": min(1.0, 2 * min(self.low, self.high)), "higher": self.high, "lower": self.low}[direction]


def attainable_p(design: Design, direction: Direction = "both") -> float | None:
    """The smallest p that these numbers of trials can give; None where nothing can be compared."""
    if not design.blocks:
        return None
    return min(1.0, (2 if direction == "both" else 1) / design.arrangements)


def rank_test(design: Design, direction: Direction = "both") -> Test:
    """Mann and Whitney's test, with blocks the aligned rank test. The statistic is the share of pairs with b > a."""
    name = "aligned ranks within blocks" if design.blocked else "Mann-Whitney"
    if not design.blocks:
        return Test(name, None, reason="there are no trials to compare")
    a, b = design.a, design.b
    superiority = float(np.mean((b[:, None] > a) + (b[:, None] == a) / 2))
    tails = _tails(design)
    return Test(name, tails.p(direction), superiority, tails.exact)


def shift(design: Design, confidence: float = 0.95) -> Estimate:
    """Hodges and Lehmann's shift from a to b and its interval."""
    if not design.blocks:
        return Estimate(None, reason="there are no trials to compare")
    steps = _steps(design)
    value = _middle(design, steps)
    needed = 2 / (1 - confidence)
    if design.arrangements < needed * (1 - 1e-9):
        sizes = f"{len(design.a)} and {len(design.b)} trials"
        where = f" in {len(design.blocks)} blocks" if design.blocked else ""
        return Estimate(value, reason=f"{sizes}{where} are too few for an interval of {format_confidence(confidence)}")
    low, high = _inverted(design, steps, confidence) if design.blocked else _moses(design, steps, confidence)
    method = "aligned ranks inverted" if design.blocked else "Mann-Whitney inverted"
    return Estimate(value, Interval(min(low, value), max(high, value), confidence, method))


def shift_value(design: Design) -> float | None:
    """The value of shift() alone, which is had much sooner than its interval."""
    return _middle(design, _steps(design)) if design.blocks else None


def hodges_lehmann(a: Floats, b: Floats) -> Floats:
    """The median of all differences b_j - a_i of two samples; of many pairs of samples, each along the last axis."""
    medians: Floats = np.median(b[..., :, None] - a[..., None, :], axis=(-2, -1))
    return medians


def welch(design: Design, confidence: float = 0.95, direction: Direction = "both") -> tuple[Test, Estimate]:
    """Welch's t test and the difference of means with the interval of the same degrees of freedom.

    With blocks the t test of the blocks' differences of means.
    """
    name = "t of the blocks' differences" if design.blocked else "Welch's t"
    a, b = design.a, design.b
    value: float | None
    reason: str | None = None
    test: Callable[..., Any]
    if design.blocked:
        differences = np.asarray([block.b.mean() - block.a.mean() for block in design.blocks])
        value, test = float(differences.mean()), partial(scipy.stats.ttest_1samp, differences, 0)
        if float(np.ptp(differences)) <= _RELATIVE_NOISE * float(np.max(np.abs(differences))):
            reason = "the blocks do not differ"
    else:
        value = float(b.mean() - a.mean()) if design.blocks else None
        test = partial(scipy.stats.ttest_ind, b, a, equal_var=False)
        if min(len(a), len(b)) < 2:
            reason = "it needs 2 trials of either"
        elif np.ptp(a) == 0 and np.ptp(b) == 0:
            reason = "the values do not vary"
    if reason is not None:
        return Test(name, None, reason=reason), Estimate(value, reason=reason)
    found = test(alternative={"both": "two-sided", "higher": "greater", "lower": "less"}[direction])
    low, high = map(float, test().confidence_interval(confidence))
    return (
        Test(name, float(found.pvalue), float(found.statistic)),
        Estimate(value, Interval(low, high, confidence, name)),
    )


def permutation_test(design: Design, direction: Direction = "both", seed: int = 0, resamples: int = RESAMPLES) -> Test:
    """The permutation test of the difference of means, within blocks where there are any.

    Complete where there are at most MAX_ENUMERATED arrangements, else (k + 1) / (resamples + 1) of random ones. Blocks
    are weighted by n_a n_b / (n_a + n_b), the inverse of their variance.
    """
    name = "permutation of means"
    if not design.blocks:
        return Test(name, None, reason="there are no trials to compare")
    # The weighted difference of means is the sum of b's deviations from their block's mean, up to a constant factor.
    centred = [np.concatenate([block.a, block.b]) for block in design.blocks]
    centred = [values - values.mean() for values in centred]
    observed = float(sum(values[len(block.a) :].sum() for values, block in zip(centred, design.blocks, strict=True)))
    exact = design.arrangements <= MAX_ENUMERATED
    rng = np.random.default_rng(seed)
    null = np.zeros(1 if exact else resamples)
    for values, block in zip(centred, design.blocks, strict=True):
        if exact:
            chosen = np.asarray(list(itertools.combinations(range(len(values)), len(block.b))))
            null = np.add.outer(null, values[chosen].sum(axis=1)).ravel()
        else:
            shuffled = rng.permuted(np.broadcast_to(values, (resamples, len(values))), axis=1)
            null += shuffled[:, : len(block.b)].sum(axis=1)
    slack = _RELATIVE_NOISE * max(1e-300, *(float(np.abs(values).sum()) for values in centred))
    added = 0 if exact else 1
    low = (np.count_nonzero(null <= observed + slack) + added) / (len(null) + added)
    high = (np.count_nonzero(null >= observed - slack) + added) / (len(null) + added)
    weight = sum(len(block.a) * len(block.b) / (len(block.a) + len(block.b)) for block in design.blocks)
    return Test(name, _Tails(float(low), float(high), exact).p(direction), observed / weight, exact)


def rank_p(design: Design, direction: Direction) -> float | None:
    """The p of rank_test alone."""
    return _tails(design).p(direction) if design.blocks else None


def _tails(design: Design) -> _Tails:
    if len(design.blocks) == 1:
        a, b = design.blocks[0].a, design.blocks[0].b
        n = len(a) + len(b)
        if n > MAX_EXACT or len(np.unique(np.concatenate([a, b]))) == n:
            method = "exact" if n <= MAX_EXACT else "asymptotic"
            low = scipy.stats.mannwhitneyu(b, a, alternative="less", method=method).pvalue
            high = scipy.stats.mannwhitneyu(b, a, alternative="greater", method=method).pvalue
            return _Tails(float(low), float(high), method == "exact")
    scores = _scores(design.blocks)
    observed = sum(int(score[len(block.a) :].sum()) for score, block in zip(scores, design.blocks, strict=True))
    if sum(map(len, scores)) > MAX_EXACT:
        return _normal_tails(scores, design.blocks, observed)
    null, least = np.ones(1), 0
    for score, block in zip(scores, design.blocks, strict=True):
        counts = _subset_sums(score, len(block.b))
        first, last = np.nonzero(counts)[0][[0, -1]]
        null = np.convolve(null, counts[first : last + 1] / block.arrangements)
        least += int(first)
    at = observed - least
    return _Tails(min(1.0, float(null[: at + 1].sum())), min(1.0, float(null[at:].sum())), True)


def _scores(blocks: tuple[Block, ...]) -> list[Ranks]:
    """Twice the ranks of all values, aligned where there are several blocks; whole numbers also for ties."""
    values = [np.concatenate([block.a, block.b]) for block in blocks]
    if len(blocks) > 1:
        largest = max(float(np.abs(v).max()) for v in values)
        values = [v - v.mean() for v in values]
        if largest > 0:  # what floating point makes of equal values must stay equal
            grain = largest * _RELATIVE_NOISE
            values = [np.round(v / grain) for v in values]
    _, places, counts = np.unique(np.concatenate(values), return_inverse=True, return_counts=True)
    ranks: Ranks = (2 * np.cumsum(counts) - counts + 1)[places]
    return np.split(ranks, np.cumsum([len(v) for v in values])[:-1])


def _subset_sums(scores: Ranks, size: int) -> Floats:
    """How many subsets of that size have each sum; index: the sum."""
    counts = np.zeros((size + 1, int(scores.sum()) + 1))
    counts[0, 0] = 1
    for score in map(int, scores):
        counts[1:, score:] += counts[:-1, : counts.shape[1] - score].copy()
    row: Floats = counts[size]
    return row


def _normal_tails(scores: list[Ranks], blocks: tuple[Block, ...], observed: float) -> _Tails:
    expected = variance = 0.0
    for score, block in zip(scores, blocks, strict=True):
        n, m = len(score), len(block.b)
        expected += m * float(score.mean())
        variance += m * (n - m) / n * float(np.var(score, ddof=1))
    if variance <= 0:
        return _Tails(1.0, 1.0, False)
    sd = math.sqrt(variance)
    low = scipy.stats.norm.cdf((observed + 1 - expected) / sd)  # scores are doubled: half a step of a rank is 1
    high = scipy.stats.norm.sf((observed - 1 - expected) / sd)
    return _Tails(float(low), float(high), False)


def _steps(design: Design) -> Floats:
    """The shifts of b, sorted, at which a pair (a_i, b_j) changes its order.

    Taking d from all b's takes d n_b / n from their block's mean: aligned b's fall by d n_a / n of their block, aligned
    a's rise by d n_b / n of theirs.
    """
    if not design.blocked:
        return np.sort(np.subtract.outer(design.b, design.a), axis=None)
    a, b, rise, fall = [], [], [], []
    for block in design.blocks:
        n = len(block.a) + len(block.b)
        middle = (block.a.sum() + block.b.sum()) / n
        a.append(block.a - middle)
        b.append(block.b - middle)
        rise.append(np.full(len(block.a), len(block.b) / n))
        fall.append(np.full(len(block.b), len(block.a) / n))
    apart = np.subtract.outer(np.concatenate(b), np.concatenate(a))
    return np.sort(apart / np.add.outer(np.concatenate(fall), np.concatenate(rise)), axis=None)


def _moses(design: Design, steps: Floats, confidence: float) -> tuple[float, float]:
    """The order statistics of the differences that the test without ties leaves in."""
    n_a, n_b = len(design.a), len(design.b)
    pairs, n = n_a * n_b, n_a + n_b
    tail = (1 - confidence) / 2
    if n <= MAX_EXACT:
        sums = _subset_sums(np.arange(1, n + 1, dtype=np.int64), n_b)[n_b * (n_b + 1) // 2 :]
        below = np.cumsum(sums) / math.comb(n, n_b)  # P(U <= k)
        k = int(np.searchsorted(below, tail * (1 + 1e-9), side="right"))
    else:
        sd = math.sqrt(pairs * (n + 1) / 12)
        k = max(0, math.floor(pairs / 2 + scipy.stats.norm.ppf(tail) * sd))
    k = max(k, 1)
    return float(steps[k - 1]), float(steps[pairs - k])


def _middle(design: Design, steps: Floats) -> float:
    return _centre(design, steps) if design.blocked else float(np.median(steps))


def _centre(design: Design, steps: Floats) -> float:
    """The shift at which the rank sum is what exchanging would make it on average."""

    points = np.unique(steps)

    @functools.cache  # both searches below pass most of the same points
    def excess(index: int) -> float:
        moved = design.shifted(-points[index])
        scores = _scores(moved.blocks)
        return sum(
            float(score[len(block.a) :].sum() - len(block.b) * score.mean())
            for score, block in zip(scores, moved.blocks, strict=True)
        )

    below = _last(len(points), lambda i: excess(i) > 0)
    above = _last(len(points), lambda i: excess(i) >= 0)
    return float((points[min(below + 1, len(points) - 1)] + points[max(above, 0)]) / 2)


def _inverted(design: Design, steps: Floats, confidence: float) -> tuple[float, float]:
    """The smallest and the largest shift that the aligned rank test does not reject.

    Between two steps no rank changes, so that the test is asked at their middles.
    """
    tail = (1 - confidence) / 2
    points = np.unique(steps)
    beyond = float(np.ptp(points)) or abs(float(points[0])) or 1.0
    middles = np.concatenate([[points[0] - beyond], (points[:-1] + points[1:]) / 2, [points[-1] + beyond]])
    rejected_below = _last(len(middles), lambda i: _tails(design.shifted(-float(middles[i]))).high <= tail)
    kept = _last(len(middles), lambda i: _tails(design.shifted(-float(middles[i]))).low > tail)
    return float(points[max(rejected_below, 0)]), float(points[min(max(kept, 0), len(points) - 1)])


def _last(count: int, holds: Callable[[int], bool]) -> int:
    """The last index for which `holds`, which holds up to some index and not after it; -1 where it never does."""
    return bisect.bisect_left(range(count), True, key=lambda index: not holds(index)) - 1


# -- without a unit --------------------------------------------------------------------------------------------------


def cliffs_delta(a: Floats, b: Floats, confidence: float = 0.95) -> Estimate:
    """P(b > a) - P(b < a), between -1 and 1, with the interval of Brunner and Munzel's variance."""
    if not len(a) or not len(b):
        return Estimate(None, reason="there are no trials to compare")
    superiority = float(scipy.stats.mannwhitneyu(b, a, method="asymptotic").statistic) / (len(a) * len(b))
    delta = 2 * superiority - 1
    if min(len(a), len(b)) < 3:
        return Estimate(delta, reason="it needs 3 trials of either for an interval")
    from statsmodels.stats.nonparametric import rank_compare_2indep  # takes half a second to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = rank_compare_2indep(b, a)
        low, high = map(float, ranks.conf_int(alpha=1 - confidence))
    if abs(delta) == 1 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        return Estimate(delta, reason="the samples do not overlap, or do not vary")
    return Estimate(delta, Interval(max(-1.0, 2 * low - 1), min(1.0, 2 * high - 1), confidence, "Brunner-Munzel"))


def hedges_g(
    mean_a: float, sd_a: float, n_a: int, mean_b: float, sd_b: float, n_b: int, confidence: float = 0.95
) -> Estimate:
    """Cohen's d with the pooled standard deviation, times Hedges' correction; interval: noncentral t.

    Exact for normal values of equal variance (Hedges and Olkin 1985; Cumming and Finch 2001).
    """
    freedom = n_a + n_b - 2
    if min(n_a, n_b) < 2:
        return Estimate(None, reason="it needs 2 trials of either")
    pooled = math.sqrt(((n_a - 1) * sd_a**2 + (n_b - 1) * sd_b**2) / freedom)
    if pooled == 0:
        return Estimate(None, reason="the values do not vary")
    scale = math.sqrt(1 / n_a + 1 / n_b)
    t = (mean_b - mean_a) / pooled / scale
    correction = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    tail = (1 - confidence) / 2
    # For t >= 0, where the noncentral t is computed more exactly, and turned round for the others.
    ends = [_noncentrality(abs(t), freedom, below) for below in (1 - tail, tail)]
    low, high = ends if t >= 0 else [None if end is None else -end for end in reversed(ends)]
    value = t * scale * correction
    if low is None or high is None:
        return Estimate(value, reason="its interval is beyond what the noncentral t can be computed for")
    return Estimate(value, Interval(low * scale * correction, high * scale * correction, confidence, "noncentral t"))


def _noncentrality(t: float, freedom: int, below: float) -> float | None:
    """The noncentrality with which a noncentral t is at most `t` with that probability; None where scipy fails."""

    def excess(noncentrality: float) -> float:
        return float(scipy.stats.nct.cdf(t, freedom, noncentrality)) - below

    reach = 4 + t / math.sqrt(freedom)
    for widened in (1, 1.5, 2, 3):
        low, high = excess(t - widened * reach), excess(t + widened * reach)
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        if low >= 0 >= high:
            return float(scipy.optimize.brentq(excess, t - widened * reach, t + widened * reach, xtol=1e-8))
    return None
