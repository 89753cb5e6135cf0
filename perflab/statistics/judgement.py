"""What a comparison comes to: the estimate, the test, equivalence, and one word for them.

In this order: a difference within the margin is `equivalent`, whether there is one or not; a difference that the test
finds is `higher` or `lower`, or `below_noise_floor`; where no test could have found one, `too_few_trials`; all else
is `not_shown`, which says nothing of whether there is a difference.

That there is no difference larger than d is shown by two one-sided tests, never by a test that found nothing
(Schuirmann 1987): the hypothesis "the difference is d or more" is rejected on either side at level alpha. It is the
same as that the interval of confidence 1 - 2 alpha lies within (-d, d).

One interval says it all: `estimate` has the one that excludes 0 where a difference is claimed, lies within the margin
where equivalence is, and does neither otherwise. It is what the rank test does not reject, made to agree with the exact
tests at 0 and at the margin where ties make these differ from the interval's order statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from perflab.results.comparison import NOT_POSITIVE, Direction, Equivalence, Estimate, Interval, Margin, Test, Verdict
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
    correction: float = 1.0  # what p is multiplied with: how many comparisons share alpha, and looks at them

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"alpha is between 0 and 0.5, not {self.alpha}")

    @property
    def level(self) -> float:
        """At which p itself is judged."""
        return self.alpha / self.correction

    @property
    def confidence(self) -> float:
        """Of the interval that excludes 0 when the test rejects."""
        return 1 - self.level * (1 if self.direction == "both" else 2)

    def adjusted(self, p: float | None) -> float | None:
        return None if p is None else min(1.0, p * self.correction)

    def adjusted_one_sided(self, p: float | None) -> float | None:
        """Of one of the interval's two ends, which share its error."""
        return self.adjusted(None if p is None else p * (2 if self.direction == "both" else 1))

    def rejects(self, adjusted: float | None) -> bool:
        return adjusted is not None and adjusted <= self.alpha

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

    def corrected(self, correction: float) -> Judgement:
        """The same as one of a family."""
        made = Judgement(self.design, replace(self.rules, correction=correction))
        kept = ("value", "test", "one_sided")  # which no correction changes
        made.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return made

    @cached_property
    def estimate(self) -> Estimate:
        """With the interval that says what the verdict says."""
        found = shift(self.design, self.rules.confidence)
        return found if found.interval is None else replace(found, interval=self._agreeing(found.interval))

    def _agreeing(self, found: Interval) -> Interval:
        low, high = found.low, found.high
        larger = self.verdict_but_for_margin
        if larger == "higher":
            low = max(low, 0.0)
        elif larger == "lower":
            high = min(high, 0.0)
        else:
            low, high = min(low, 0.0), max(high, 0.0)
        made = replace(found, low=low, high=high, low_open=low == 0 and larger == "higher")
        made = replace(made, high_open=high == 0 and larger == "lower")
        if isinstance(self.rules.bounds, str) or self.one_sided is None:
            return made
        least, most = self.rules.bounds
        above, _ = self.one_sided
        if self.is_equivalent:
            made = replace(made, low=least, low_open=True) if low <= least else made
            return replace(made, high=most, high_open=True) if high >= most else made
        if not made.within(least, most):
            return made
        if not self.rules.rejects(self.rules.adjusted_one_sided(above)):
            return replace(made, low=least, low_open=False)
        return replace(made, high=most, high_open=False)

    @cached_property
    def test(self) -> Test:
        return rank_test(self.design, self.rules.direction)

    @property
    def attainable_p(self) -> float | None:
        return attainable_p(self.design, self.rules.direction)

    @cached_property
    def one_sided(self) -> tuple[float, float] | None:
        """The p's of the tests against a shift as low as the margin or lower, and as high or higher."""
        limits = self.rules.bounds
        return None if isinstance(limits, str) else one_sided_ps(self.design, *limits)

    @property
    def equivalence_p(self) -> float | None:
        return None if self.one_sided is None else max(self.one_sided)

    @property
    def is_equivalent(self) -> bool:
        return self.rules.rejects(self.rules.adjusted_one_sided(self.equivalence_p))

    @property
    def equivalence(self) -> Equivalence | None:
        """None without a margin."""
        rules, p = self.rules, self.equivalence_p
        if rules.margin is None:
            return None
        if isinstance(rules.bounds, str):
            return Equivalence(rules.margin, None, None, None, shown=False, reason=rules.bounds)
        low, high = rules.bounds
        if p is None:
            return Equivalence(rules.margin, low, high, None, shown=False, reason="there are no trials to compare")
        adjusted = rules.adjusted_one_sided(p)
        return Equivalence(rules.margin, low, high, p, shown=self.is_equivalent, p_adjusted=adjusted)

    @property
    def verdict_but_for_margin(self) -> Verdict:
        return verdict_of(self.value, self.test, self.attainable_p, self.rules)

    @property
    def verdict(self) -> Verdict:
        return "equivalent" if self.is_equivalent else self.verdict_but_for_margin


def judge(baseline: Sample, treatment: Sample, rules: Rules) -> Judgement:
    if rules.logarithms:
        baseline, treatment = baseline.mapped(math.log), treatment.mapped(math.log)
    return Judgement(design(baseline, treatment), rules)


def one_sided_ps(design: Design, low: float, high: float) -> tuple[float, float] | None:
    """The p's of the tests against a shift of `low` or less, and of `high` or more; 0 is between them.

    What rejects all shifts up to 0 rejects those up to `low` too, which with ties a test at `low` alone may not.
    """
    above = rank_p(design.shifted(-low), "higher"), rank_p(design, "higher")
    below = rank_p(design.shifted(-high), "lower"), rank_p(design, "lower")
    if None in above or None in below:
        return None
    return min(p for p in above if p is not None), min(p for p in below if p is not None)


def verdict_of(estimate: float | None, test: Test, attainable: float | None, rules: Rules) -> Verdict:
    """The word for a shift, its test and the smallest p that there could have been, where there is no margin."""
    if test.p is None or estimate is None or attainable is None:
        return "too_few_trials"
    if rules.rejects(rules.adjusted(test.p)):
        if rules.noise_floor is not None and abs(estimate) <= rules.noise_floor:
            return "below_noise_floor"
        if rules.direction != "both":
            return rules.direction
        # With many ties the shift may be 0 where the ranks differ.
        larger = estimate or (test.statistic or 0.5) - 0.5
        if larger:
            return "higher" if larger > 0 else "lower"
    return "not_shown" if rules.rejects(rules.adjusted(attainable)) else "too_few_trials"
