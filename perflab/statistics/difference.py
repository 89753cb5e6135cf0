"""Whether and by how much the values of a treatment b are larger than those of its baseline a.

The test is by ranks: Wilcoxon, Mann and Whitney for two samples; with blocks the aligned rank test of Hodges and
Lehmann (1962; Lehmann, Nonparametrics, 3.3): the mean of each block is subtracted from its values, all are ranked
together, and the sum of b's ranks is compared with its distribution when values are exchanged within blocks. Pairs make
it a signed-rank test with scores r - 1/2. The distribution is enumerated exactly, including ties, up to MAX_EXACT
trials.

The estimate is Hodges and Lehmann's: the shift that makes both samples look alike to the test. Its interval is what the
test does not reject: the order statistics of all differences b_j - a_i (Moses; Hollander, Wolfe and Chicken, 4.3)
or, with blocks, the shifts at which the ranks change, searched. It is closed, so that it covers as stated for ties too.

Dimensionless effect sizes: Cliff's delta and Hedges' g. Every sign: positive means that the treatment's values b are
larger.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from perflab.results.comparison import Direction, Estimate, Interval, Test
from perflab.statistics import ranks
from perflab.statistics.ranks import MAX_EXACT, Designs, Steps
from perflab.statistics.sample import Design, Floats
from perflab.units import format_confidence

MAX_ENUMERATED = 20_000  # arrangements that a permutation test enumerates
RESAMPLES = 9999


@dataclass(frozen=True)
class Tails:
    """Probabilities, without a difference, of a rank sum at most and at least as large as the observed one."""

    low: float
    high: float
    exact: bool

    def p(self, direction: Direction) -> float:
        return {"both": min(1.0, 2 * min(self.low, self.high)), "higher": self.high, "lower": self.low}[direction]


def attainable_p(design: Design, direction: Direction = "both") -> float | None:
    """The smallest p that is possible with these numbers of trials; None if nothing can be compared."""
    if not design.blocks:
        return None
    return min(1.0, (2 if direction == "both" else 1) / design.arrangements)


def rank_test(design: Design, direction: Direction = "both") -> Test:
    """Mann and Whitney's test; with blocks, the aligned rank test. The statistic is the share of pairs with b > a."""
    found = rank_tails([design])[0]
    return rank_test_of(design, direction, found, superiorities([design])[0])


def rank_test_of(design: Design, direction: Direction, tails: Tails | None, superiority: float | None) -> Test:
    """The same from precomputed values."""
    name = "aligned ranks within blocks" if design.blocked else "Mann-Whitney"
    if tails is None:
        return Test(name, None, reason="there are no trials to compare")
    return Test(name, tails.p(direction), superiority, tails.exact)


def rank_tails(designs: Sequence[Design], by: Sequence[float] = ()) -> list[Tails | None]:
    """For each design, after its treatment was moved by this shift; None for one without blocks."""
    shifts = by or [0.0] * len(designs)
    known = [n for n, design in enumerate(designs) if design.blocks]
    if not known:
        return [None] * len(designs)
    found = ranks.tails(Designs.of([designs[n] for n in known]), np.asarray([shifts[n] for n in known], float))
    made = {n: Tails(*each) for n, *each in zip(known, *(part.tolist() for part in found), strict=True)}
    return [made.get(n) for n in range(len(designs))]


def superiorities(designs: Sequence[Design]) -> list[float | None]:
    """For each design the share of pairs with b > a."""
    return _of_known(designs, lambda known: ranks.superiority(Designs.of(known)))


def shift_values(designs: Sequence[Design]) -> list[float | None]:
    """Only the values of shifts(), which are computed much faster than the intervals."""
    return _of_known(designs, lambda known: Steps.of(Designs.of(known)).centres())


def _of_known(designs: Sequence[Design], compute: Callable[[Sequence[Design]], Floats]) -> list[float | None]:
    """None for designs without blocks."""
    known = [design for design in designs if design.blocks]
    found = iter(compute(known).tolist() if known else ())
    return [next(found) if design.blocks else None for design in designs]


def shift(design: Design, confidence: float = 0.95) -> Estimate:
    """Hodges and Lehmann's shift from a to b and its interval."""
    return shifts([design], [confidence])[0]


def shifts(designs: Sequence[Design], confidences: Sequence[float]) -> list[Estimate]:
    """The shift of each design, with its confidence."""
    asked = [
        n for n, (design, level) in enumerate(zip(designs, confidences, strict=True)) if _has_interval(design, level)
    ]
    of_blocks = [n for n in asked if designs[n].blocked]
    ends: dict[int, tuple[float, float]] = {}
    if of_blocks:
        steps = Steps.of(Designs.of([designs[n] for n in of_blocks]))
        tails = np.asarray([(1 - confidences[n]) / 2 for n in of_blocks])
        ends = dict(zip(of_blocks, zip(*(part.tolist() for part in steps.kept(tails)), strict=True), strict=True))
    ends |= {n: _moses(designs[n], confidences[n]) for n in asked if not designs[n].blocked}
    values = shift_values(designs)
    return [_estimate(*each, ends.get(n)) for n, each in enumerate(zip(designs, confidences, values, strict=True))]


def _has_interval(design: Design, confidence: float) -> bool:
    return bool(design.blocks) and design.arrangements >= 2 / (1 - confidence) * (1 - 1e-9)


def _estimate(design: Design, confidence: float, value: float | None, ends: tuple[float, float] | None) -> Estimate:
    if value is None:
        return Estimate(None, reason="there are no trials to compare")
    if ends is None:
        sizes = f"{len(design.a)} and {len(design.b)} trials"
        where = f" in {len(design.blocks)} blocks" if design.blocked else ""
        return Estimate(value, reason=f"{sizes}{where} are too few for an interval of {format_confidence(confidence)}")
    method = "aligned ranks inverted" if design.blocked else "Mann-Whitney inverted"
    return Estimate(value, Interval(min(ends[0], value), max(ends[1], value), confidence, method))


def hodges_lehmann(a: Floats, b: Floats) -> Floats:
    """The median of all differences b_j - a_i of two samples; for many pairs of samples, each along the last axis."""
    medians: Floats = np.median(b[..., :, None] - a[..., None, :], axis=(-2, -1))
    return medians


def welch(design: Design, confidence: float = 0.95, direction: Direction = "both") -> tuple[Test, Estimate]:
    """Welch's t test and the difference of means with the interval of the same degrees of freedom.

    With blocks, the t test of the blocks' differences of means.
    """
    name = "t of the blocks' differences" if design.blocked else "Welch's t"
    a, b = design.a, design.b
    value: float | None
    reason: str | None = None
    if design.blocked:
        differences = np.asarray([block.b.mean() - block.a.mean() for block in design.blocks])
        value, parts = float(differences.mean()), [differences]
        if float(np.ptp(differences)) <= ranks.NOISE * float(np.max(np.abs(differences))):
            reason = "the blocks do not differ"
    else:
        value, parts = (float(b.mean() - a.mean()) if design.blocks else None), [a, b]
        if min(len(a), len(b)) < 2:
            reason = "it needs 2 trials of either"
        elif np.ptp(a) == 0 and np.ptp(b) == 0:
            reason = "the values do not vary"
    if reason is not None or value is None:
        return Test(name, None, reason=reason), Estimate(value, reason=reason)
    errors = [float(part.var(ddof=1)) / len(part) for part in parts]  # squared, of each mean
    error = math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(e**2 / (len(part) - 1) for e, part in zip(errors, parts, strict=True))
    t = value / error
    below, above = (float(scipy.special.stdtr(freedom, x)) for x in (t, -t))
    p = {"both": 2 * min(below, above), "higher": above, "lower": below}[direction]
    half = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * error
    return Test(name, p, t), Estimate(value, Interval(value - half, value + half, confidence, name))


def permutation_test(design: Design, direction: Direction = "both", seed: int = 0, resamples: int = RESAMPLES) -> Test:
    """The permutation test of the difference of means, within blocks if there are any.

    Complete for at most MAX_ENUMERATED arrangements, else (k + 1) / (resamples + 1) of random ones. Blocks are weighted
    by n_a n_b / (n_a + n_b), the inverse of their variance.
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
    slack = ranks.NOISE * max(1e-300, *(float(np.abs(values).sum()) for values in centred))
    added = 0 if exact else 1
    low = (np.count_nonzero(null <= observed + slack) + added) / (len(null) + added)
    high = (np.count_nonzero(null >= observed - slack) + added) / (len(null) + added)
    weight = sum(len(block.a) * len(block.b) / (len(block.a) + len(block.b)) for block in design.blocks)
    return Test(name, Tails(float(low), float(high), exact).p(direction), observed / weight, exact)


def rank_p(design: Design, direction: Direction) -> float | None:
    """Only the p of rank_test."""
    found = rank_tails([design])[0]
    return None if found is None else found.p(direction)


def _moses(design: Design, confidence: float) -> tuple[float, float]:
    """The order statistics of the differences that the test without ties does not reject."""
    n_a, n_b = len(design.a), len(design.b)
    pairs, n = n_a * n_b, n_a + n_b
    tail = (1 - confidence) / 2
    if n <= MAX_EXACT:
        below = np.cumsum(ranks.counts_without_ties(n, n_b)) / math.comb(n, n_b)  # P(U <= k)
        k = int(np.searchsorted(below, tail * (1 + 1e-9), side="right"))
    else:
        sd = math.sqrt(pairs * (n + 1) / 12)
        k = max(0, math.floor(pairs / 2 + scipy.special.ndtri(tail) * sd))
    k = max(k, 1)
    steps = np.sort(np.subtract.outer(design.b, design.a), axis=None)
    return float(steps[k - 1]), float(steps[pairs - k])


# -- without a unit --------------------------------------------------------------------------------------------------


def cliffs_delta(a: Floats, b: Floats, confidence: float = 0.95) -> Estimate:
    """P(b > a) - P(b < a), between -1 and 1, with the interval of Brunner and Munzel's variance."""
    if not len(a) or not len(b):
        return Estimate(None, reason="there are no trials to compare")
    greater, equal = b[:, None] > a, b[:, None] == a
    placed = greater + equal / 2  # for each pair, whether b is larger
    of_a, of_b = placed.mean(axis=0), placed.mean(axis=1)
    superiority = float(placed.mean())
    delta = 2 * superiority - 1
    if min(len(a), len(b)) < 3:
        return Estimate(delta, reason="it needs 3 trials of either for an interval")
    errors = [float(np.var(of, ddof=1)) / len(of) for of in (of_a, of_b)]
    if abs(delta) == 1 or sum(errors) == 0:
        return Estimate(delta, reason="the samples do not overlap, or do not vary")
    freedom = sum(errors) ** 2 / sum(e**2 / (n - 1) for e, n in zip(errors, (len(a), len(b)), strict=True))
    half = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(sum(errors))
    low, high = 2 * (superiority - half) - 1, 2 * (superiority + half) - 1
    return Estimate(delta, Interval(max(-1.0, low), min(1.0, high), confidence, "Brunner-Munzel"))


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
    # For t >= 0, where the noncentral t is computed more exactly, and mirrored for the others.
    ends = [_noncentrality(abs(t), freedom, below) for below in (1 - tail, tail)]
    low, high = ends if t >= 0 else [None if end is None else -end for end in reversed(ends)]
    value = t * scale * correction
    if low is None or high is None:
        return Estimate(value, reason="its interval is beyond what the noncentral t can be computed for")
    return Estimate(value, Interval(low * scale * correction, high * scale * correction, confidence, "noncentral t"))


def _noncentrality(t: float, freedom: int, below: float) -> float | None:
    """The noncentrality for which a noncentral t is at most `t` with that probability; None if scipy fails."""

    def excess(noncentrality: float) -> float:
        return float(scipy.special.nctdtr(freedom, noncentrality, t)) - below

    reach = 4 + t / math.sqrt(freedom)
    for widened in (1, 1.5, 2, 3):
        low, high = excess(t - widened * reach), excess(t + widened * reach)
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        if low >= 0 >= high:
            return float(scipy.optimize.brentq(excess, t - widened * reach, t + widened * reach, xtol=1e-8))
    return None
