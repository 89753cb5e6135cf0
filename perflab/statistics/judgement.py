"""What a comparison comes to: the estimate, the test, equivalence, and one word for them.

In this order: a difference within the margin is `equivalent`, whether there is one or not; a difference that the test
finds is `higher` or `lower`, or `below_noise_floor`; where no test could have found one, `too_few_trials`; all else
is `not_shown`, which says nothing of whether there is a difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perflab.results.comparison import Direction, Equivalence, Estimate, Margin, Test, Verdict
from perflab.statistics.design import Design, design
from perflab.statistics.difference import attainable_p, rank_test, shift
from perflab.statistics.equivalence import two_one_sided
from perflab.statistics.sample import Sample


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


@dataclass(frozen=True)
class Judgement:
    """On the scale of the analysis: shifts of values, or of logarithms."""

    design: Design
    estimate: Estimate
    test: Test
    attainable_p: float | None
    equivalence: Equivalence | None
    verdict: Verdict


def judge(baseline: Sample, treatment: Sample, rules: Rules) -> Judgement:
    """The rank test, Hodges and Lehmann's shift, and the verdict, for one comparison by itself."""
    if rules.logarithms:
        baseline, treatment = baseline.mapped(math.log), treatment.mapped(math.log)
    compared = design(baseline, treatment)
    estimate = shift(compared, rules.confidence)
    test = rank_test(compared, rules.direction)
    attainable = attainable_p(compared, rules.direction)
    equivalence = (
        None
        if rules.margin is None
        else two_one_sided(compared, rules.margin, rules.alpha, logarithms=rules.logarithms)
    )
    shown = equivalence is not None and equivalence.shown
    verdict = verdict_of(estimate.value, test, test.p, attainable, rules, equivalent=shown)
    return Judgement(compared, estimate, test, attainable, equivalence, verdict)


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
