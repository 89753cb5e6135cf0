"""Comparisons from only the mean, standard deviation and number of trials.

All of them assume approximately normal values; whether the values are normal cannot be seen in a mean and a standard
deviation. Nor can single trials, lattices or outliers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from perflab.models import as_json
from perflab.results.comparison import Estimate, Interval, Margin, Power, Test
from perflab.statistics import power
from perflab.statistics.difference import hedges_g
from perflab.statistics.sample import Json


@dataclass(frozen=True)
class Moments:
    """One treatment's row in a table; `sd` with n - 1. Raises ValueError for invalid values."""

    name: str
    mean: float
    sd: float
    n: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.sd)):
            raise ValueError("mean and sd must be finite")
        if self.sd < 0 or self.n < 1:
            raise ValueError(f"sd {self.sd:g} and n {self.n}: sd must not be negative, and n must be at least 1")

    def interval(self, confidence: float = 0.95) -> Estimate:
        """The mean with Student's interval."""
        if self.n < 2:
            return Estimate(self.mean, reason="it needs 2 trials")
        half = float(scipy.stats.t.ppf((1 + confidence) / 2, self.n - 1)) * self.sd / math.sqrt(self.n)
        return Estimate(self.mean, Interval(self.mean - half, self.mean + half, confidence, "Student's t"))


@dataclass(frozen=True)
class SummaryComparison:
    """Every sign: positive means that the treatment's mean is larger."""

    verdict: Literal["higher", "lower", "equivalent", "not_shown", "too_few_trials"]
    metric: str
    baseline: Moments
    treatment: Moments
    alpha: float
    difference: Estimate
    p: float | None
    p_adjusted: float | None
    family_size: int
    welch: Test
    degrees_of_freedom: float | None
    hedges_g: Estimate
    margin: Margin | None
    equivalence_p: float | None
    equivalence_p_adjusted: float | None
    power: Power  # Student's, for a difference as large as the margin, at alpha / family_size

    def to_dict(self) -> Json:
        out: Json = as_json(self)
        return out


def compare_moments(
    baseline: Moments, treatment: Moments, *, metric: str = "", alpha: float = 0.05, margin: Margin | None = None
) -> SummaryComparison:
    """Welch's t test, with the difference's interval of the same degrees of freedom, and two one-sided tests."""
    a, b = baseline, treatment
    test, freedom = _welch(a, b)
    equivalence_p = None if freedom is None or margin is None else _equivalence_p(a, b, margin)
    compared = SummaryComparison(
        verdict="not_shown",
        metric=metric,
        baseline=a,
        treatment=b,
        alpha=alpha,
        difference=Estimate(b.mean - a.mean, reason=test.reason),
        p=test.p,
        p_adjusted=None,
        family_size=1,
        welch=test,
        degrees_of_freedom=freedom,
        hedges_g=hedges_g(a.mean, a.sd, a.n, b.mean, b.sd, b.n, 1 - alpha),
        margin=margin,
        equivalence_p=equivalence_p,
        equivalence_p_adjusted=None,
        power=_planned(a, b, margin, alpha),
    )
    return corrected([compared])[0]


def corrected(comparisons: Sequence[SummaryComparison]) -> list[SummaryComparison]:
    """The same comparisons as one family, which shares alpha (Bonferroni): p values, intervals and verdicts agree.

    A two-sided test has half of the error on either side, and so do both tests of an equivalence.
    """
    size = max(1, sum(c.p is not None for c in comparisons))
    return [_of_family(c, size) for c in comparisons]


def _of_family(c: SummaryComparison, size: int) -> SummaryComparison:
    level = c.alpha / size
    made = dataclasses.replace(
        c,
        p_adjusted=None if c.p is None else min(1.0, c.p * size),
        equivalence_p_adjusted=None if c.equivalence_p is None else min(1.0, 2 * c.equivalence_p * size),
        family_size=size,
        power=_planned(c.baseline, c.treatment, c.margin, level),
    )
    if c.degrees_of_freedom is not None:
        found = _difference(c.baseline, c.treatment, c.degrees_of_freedom, 1 - level)
        made = dataclasses.replace(made, difference=found)
    return dataclasses.replace(made, verdict=_verdict(made))


def welch_anova(groups: Sequence[Moments]) -> Test:
    """Whether the means of three groups or more differ at all (Welch 1951); variances may differ."""
    usable = [group for group in groups if group.n > 1 and group.sd > 0]
    if len(usable) < len(groups) or len(usable) < 2:
        return Test("Welch's ANOVA", None, reason="every group needs 2 trials that vary")
    means, sds, counts = (np.asarray(x, dtype=float) for x in zip(*((g.mean, g.sd, g.n) for g in usable), strict=True))
    from statsmodels.stats.oneway import anova_generic  # takes half a second to import

    result = anova_generic(means, sds**2, counts, use_var="unequal")
    return Test("Welch's ANOVA", float(result.pvalue), float(result.statistic))


def _welch(a: Moments, b: Moments) -> tuple[Test, float | None]:
    if min(a.n, b.n) < 2:
        return Test("Welch's t", None, reason="it needs 2 trials of either"), None
    if a.sd == 0 and b.sd == 0:
        return Test("Welch's t", None, reason="the values do not vary"), None
    result = scipy.stats.ttest_ind_from_stats(b.mean, b.sd, b.n, a.mean, a.sd, a.n, equal_var=False)
    return Test("Welch's t", float(result.pvalue), float(result.statistic)), _freedom(a, b, 1.0)


def _freedom(a: Moments, b: Moments, factor: float) -> float:
    """Welch's and Satterthwaite's degrees of freedom of mean b - factor mean a."""
    of_a, of_b = (factor * a.sd) ** 2 / a.n, b.sd**2 / b.n
    return (of_a + of_b) ** 2 / (of_a**2 / (a.n - 1) + of_b**2 / (b.n - 1))


def _difference(a: Moments, b: Moments, freedom: float, confidence: float) -> Estimate:
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(a.sd**2 / a.n + b.sd**2 / b.n)
    value = b.mean - a.mean
    return Estimate(value, Interval(value - half, value + half, confidence, "Welch's t"))


def _equivalence_p(a: Moments, b: Moments, margin: Margin) -> float | None:
    """The larger p of two one-sided Welch tests; of mean b - factor mean a for a relative margin (Sasabuchi 1988)."""
    if margin.relative:
        if a.mean <= 0:
            return None
        sides = ((1 / (1 + margin.value), 0.0), (1 + margin.value, 0.0))
    else:
        sides = ((1.0, -margin.value), (1.0, margin.value))
    ps = []
    for (factor, offset), sign in zip(sides, (1, -1), strict=True):
        error = math.sqrt((factor * a.sd) ** 2 / a.n + b.sd**2 / b.n)
        t = sign * (b.mean - factor * a.mean - offset) / error
        ps.append(float(scipy.stats.t.sf(t, _freedom(a, b, factor))))
    return max(ps)


def _planned(a: Moments, b: Moments, margin: Margin | None, alpha: float) -> Power:
    wanted = None
    if margin is not None and not (margin.relative and a.mean <= 0):
        wanted = margin.value * (a.mean if margin.relative else 1)
    freedom = a.n + b.n - 2
    if freedom < 1:
        return Power(None, None, wanted, None, None, alpha)
    sd = math.sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / freedom)
    return Power(
        sd,
        power.detectable_shift(sd, a.n, b.n, alpha, efficiency=1.0),
        wanted,
        None if wanted is None else power.t_power(wanted, sd, a.n, b.n, alpha, efficiency=1.0),
        None if wanted is None else power.trials_needed(wanted, sd, alpha, efficiency=1.0),
        alpha,
    )


def _verdict(c: SummaryComparison) -> Literal["higher", "lower", "equivalent", "not_shown", "too_few_trials"]:
    if c.equivalence_p_adjusted is not None and c.equivalence_p_adjusted <= c.alpha:
        return "equivalent"
    if c.p_adjusted is None:
        return "too_few_trials" if min(c.baseline.n, c.treatment.n) < 2 else "not_shown"
    if c.p_adjusted <= c.alpha:
        return "higher" if c.treatment.mean > c.baseline.mean else "lower"
    return "not_shown"
