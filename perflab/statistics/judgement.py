"""What a comparison comes to: the estimate, the test, equivalence, and one word for them.

In this order: a difference within the margin is `equivalent`, whether there is one or not; a difference that the test
finds is `higher` or `lower`, or `below_noise_floor`; where no test could have found one, `too_few_trials`; all else
is `not_shown`, which says nothing of whether there is a difference.

That there is no difference larger than d is shown by two one-sided tests, never by a test that found nothing
(Schuirmann 1987): the hypothesis "the difference is d or more" is rejected on either side at level alpha. It is the
same as that the interval of confidence 1 - 2 alpha lies within (-d, d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from perflab.results.comparison import NOT_POSITIVE, Direction, Equivalence, Estimate, Margin, Test, Verdict
from perflab.statistics.difference import attainable_p, rank_p, rank_test, shift, shift_value
from perflab.statistics.sample import Design, Sample, design


@dataclass(frozen=True)
class Rules:
    """How samples are judged. `logarithms`: ratios instead of differences; every value must be positive then."""

    alpha: float = 0.05
    margin: Margin | None = None
    noise_floor: float | None = None  # a shift on the scale of the analysis
    direction: Direction = "both"
    logarithms: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"alpha is between 0 and 0.5, not {self.alpha}")

    @property
    def confidence(self) -> float:
        """Of the interval that excludes 0 when the test rejects."""
        return 1 - self.alpha if self.direction == "both" else 1 - 2 * self.alpha

    @property
    def bounds(self) -> tuple[float, float] | str:
        """The margin as limits of the shift on the scale of the analysis, or why there are none.

        A relative margin is one of factors. As a share of the baseline's own median it would be an estimate that is
        taken for known: where values cross 0 equivalence was then claimed in 9 to 22 % of experiments at alpha = 5 %.
        """
        if self.margin is None:
            return "there is no margin"
        if self.logarithms:
            if not self.margin.relative:
                return "an absolute margin does not go with ratios"
            return -math.log1p(self.margin.value), math.log1p(self.margin.value)
        return NOT_POSITIVE if self.margin.relative else (-self.margin.value, self.margin.value)


@dataclass(frozen=True)
class Judgement:
    """One comparison by itself, on the scale of the analysis: shifts of values, or of logarithms."""

    design: Design
    rules: Rules

    @property
    def trials(self) -> int:
        return len(self.design.a) + len(self.design.b)

    @cached_property
    def value(self) -> float | None:
        """Hodges and Lehmann's shift, which is had much sooner than its interval."""
        return shift_value(self.design)

    @cached_property
    def estimate(self) -> Estimate:
        return shift(self.design, self.rules.confidence)

    @cached_property
    def test(self) -> Test:
        return rank_test(self.design, self.rules.direction)

    @property
    def attainable_p(self) -> float | None:
        return attainable_p(self.design, self.rules.direction)

    @cached_property
    def equivalence_p(self) -> float | None:
        limits = self.rules.bounds
        return None if isinstance(limits, str) else one_sided_p(self.design, *limits)

    @property
    def equivalence(self) -> Equivalence | None:
        """None without a margin."""
        rules, p = self.rules, self.equivalence_p
        if rules.margin is None:
            return None
        if isinstance(rules.bounds, str):
            return Equivalence(rules.margin, None, None, None, None, shown=False, reason=rules.bounds)
        low, high = rules.bounds
        if p is None:
            reason = "there are no trials to compare"
            return Equivalence(rules.margin, low, high, None, None, shown=False, reason=reason)
        interval = shift(self.design, 1 - 2 * rules.alpha).interval
        return Equivalence(rules.margin, low, high, p, interval, shown=p <= rules.alpha, p_adjusted=p)

    @property
    def verdict(self) -> Verdict:
        equivalent = self.equivalence_p is not None and self.equivalence_p <= self.rules.alpha
        return verdict_of(self.value, self.test, self.test.p, self.attainable_p, self.rules, equivalent=equivalent)


def judge(baseline: Sample, treatment: Sample, rules: Rules) -> Judgement:
    if rules.logarithms:
        baseline, treatment = baseline.mapped(math.log), treatment.mapped(math.log)
    return Judgement(design(baseline, treatment), rules)


def one_sided_p(design: Design, low: float, high: float) -> float | None:
    """The larger p of the tests against a shift of `low` or less and of `high` or more."""
    above = rank_p(design.shifted(-low), "higher")
    below = rank_p(design.shifted(-high), "lower")
    return None if above is None or below is None else max(above, below)


def verdict_of(
    estimate: float | None, test: Test, p: float | None, attainable: float | None, rules: Rules, *, equivalent: bool
) -> Verdict:
    """The word for a shift, a p and the smallest p that there could have been; both adjusted in a family."""
    if equivalent:
        return "equivalent"
    if p is None or estimate is None or attainable is None:
        return "too_few_trials"
    if p <= rules.alpha:
        if rules.noise_floor is not None and abs(estimate) <= rules.noise_floor:
            return "below_noise_floor"
        if rules.direction != "both":
            return rules.direction
        # With many ties the shift may be 0 where the ranks differ.
        larger = estimate or (test.statistic or 0.5) - 0.5
        if larger:
            return "higher" if larger > 0 else "lower"
    return "too_few_trials" if attainable > rules.alpha else "not_shown"
