"""How large a difference is without a unit. Every sign: positive means that the treatment's values b are larger."""

from __future__ import annotations

import math
import warnings

from scipy import optimize, stats
from statsmodels.stats.nonparametric import rank_compare_2indep

from perflab.results.comparison import Estimate, Interval
from perflab.statistics.sample import Floats


def cliffs_delta(a: Floats, b: Floats, confidence: float = 0.95) -> Estimate:
    """P(b > a) - P(b < a), between -1 and 1, with the interval of Brunner and Munzel's variance."""
    if not len(a) or not len(b):
        return Estimate(None, reason="there are no trials to compare")
    superiority = float(stats.mannwhitneyu(b, a, method="asymptotic").statistic) / (len(a) * len(b))
    delta = 2 * superiority - 1
    if min(len(a), len(b)) < 3:
        return Estimate(delta, reason="it needs 3 trials of either for an interval")
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
        return float(stats.nct.cdf(t, freedom, noncentrality)) - below

    reach = 4 + t / math.sqrt(freedom)
    for widened in (1, 1.5, 2, 3):
        low, high = excess(t - widened * reach), excess(t + widened * reach)
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        if low >= 0 >= high:
            return float(optimize.brentq(excess, t - widened * reach, t + widened * reach, xtol=1e-8))
    return None
