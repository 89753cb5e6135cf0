"""The result of a comparison: the estimate, the test, equivalence, and one word for them.

In this order: a difference within the margin is `equivalent`, whether there is one or not; a difference that the test
finds is `higher` or `lower`, or `below_noise_floor`; if no test could have found one, `too_few_trials`; everything else
is `not_shown`, which says nothing about whether there is a difference.

The absence of a difference larger than d is shown by two one-sided tests, never by a test that found nothing
(Schuirmann 1987): the hypothesis "the difference is d or more" is rejected on either side at level alpha. This is
equivalent to the interval of confidence 1 - 2 alpha lying within (-d, d).

One interval agrees with all verdicts: that of `estimate` excludes 0 if a difference is claimed, lies within the margin
if equivalence is, and does neither otherwise. It is what the rank test does not reject, adjusted to agree with the
exact tests at 0 and at the margin if ties make these differ from the interval's order statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perflab.results.comparison import (
    NOT_POSITIVE,
    Direction,
    Equivalence,
    Estimate,
    Interval,
    Margin,
    Side,
    Test,
    Verdict,
)
from perflab.statistics.difference import (
    Tails,
    attainable_p,
    rank_tails,
    rank_test_of,
    shift_values,
    shifts,
    superiorities,
)
from perflab.statistics.sample import Design, Sample, design


@dataclass(frozen=True)
class Rules:
    """The rules by which samples are judged. `logarithms`: ratios instead of differences; then every value must be
    positive."""

    alpha: float = 0.05
    margin: Margin | None = None
    noise_floor: float | None = None  # a shift on the scale of the analysis
    direction: Direction = "both"
    logarithms: bool = False
    correction: float = 1.0  # factor of p: the number of comparisons that share alpha, and looks at them

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"alpha must be between 0 and 0.5, not {self.alpha}")

    @property
    def level(self) -> float:
        """The level for p itself."""
        return self.alpha / self.correction

    @property
    def confidence(self) -> float:
        """Confidence of the interval that excludes 0 if the test rejects."""
        return 1 - self.level * (1 if self.direction == "both" else 2)

    def adjusted(self, p: float | None) -> float | None:
        return None if p is None else min(1.0, p * self.correction)

    def adjusted_one_sided(self, p: float | None) -> float | None:
        """Error probability at one of the interval's two ends, which share its error."""
        return self.adjusted(None if p is None else p * (2 if self.direction == "both" else 1))

    def rejects(self, adjusted: float | None) -> bool:
        return adjusted is not None and adjusted <= self.alpha

    @property
    def bounds(self) -> tuple[float, float] | str:
        """The margin as limits of the shift on the scale of the analysis, or why there are none.

        A relative margin is a factor. A share of the baseline's own median would be an estimate treated as known: for
        values around 0, equivalence was then claimed in 9 to 22 % of experiments at alpha = 5 %.
        """
        if self.margin is None:
            return "there is no margin"
        if self.logarithms:
            if not self.margin.relative:
                return "an absolute margin excludes ratios"
            return -math.log1p(self.margin.value), math.log1p(self.margin.value)
        return NOT_POSITIVE if self.margin.relative else (-self.margin.value, self.margin.value)


@dataclass(frozen=True)
class _Ranked:
    """The parts that no correction changes: without trials, all are None. `of_margin` are the tails after the treatment
    is moved by either end of the margin towards 0; None without a margin."""

    value: float | None
    superiority: float | None
    tails: Tails | None
    of_margin: tuple[Tails | None, Tails | None] | None


@dataclass(frozen=True)
class Judgement:
    """One comparison alone, on the scale of the analysis: shifts of values, or of logarithms."""

    design: Design
    rules: Rules

    @property
    def trials(self) -> int:
        return len(self.design.a) + len(self.design.b)

    @cached_property
    def _ranked(self) -> _Ranked:
        return _rank([self])[0]

    @property
    def value(self) -> float | None:
        """Hodges and Lehmann's shift, which is computed much faster than its interval."""
        return self._ranked.value

    def corrected(self, correction: float) -> Judgement:
        """The same as one of a family."""
        return self._by(replace(self.rules, correction=correction))

    def above(self, noise_floor: float | None) -> Judgement:
        """The same with a noise floor, on the scale of the analysis."""
        return self._by(replace(self.rules, noise_floor=noise_floor))

    def _by(self, rules: Rules) -> Judgement:
        """The same trials by other rules with the same margin."""
        made = Judgement(self.design, rules)
        made.__dict__["_ranked"] = self._ranked
        return made

    @cached_property
    def _shift(self) -> Estimate:
        return shifts([self.design], [self.rules.confidence])[0]

    @cached_property
    def estimate(self) -> Estimate:
        """With the interval that agrees with the verdict."""
        found = self._shift
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

    @property
    def test(self) -> Test:
        return rank_test_of(self.design, self.rules.direction, self._ranked.tails, self._ranked.superiority)

    @property
    def attainable_p(self) -> float | None:
        return attainable_p(self.design, self.rules.direction)

    @property
    def one_sided(self) -> tuple[float, float] | None:
        """The p values of the tests against a shift at or below the margin, and at or above it.

        A test that rejects all shifts up to 0 also rejects those up to the margin, which with ties a test at the margin
        alone may not.
        """
        here, of_margin = self._ranked.tails, self._ranked.of_margin
        if here is None or of_margin is None:
            return None
        lower, upper = of_margin
        if lower is None or upper is None:
            return None
        return min(lower.high, here.high), min(upper.low, here.low)

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


def judge_without_each(
    baseline: Sample, treatment: Sample, rules: Rules, left_out: Sequence[tuple[Side, int]]
) -> list[Judgement]:
    """The judgements without single trials, each identified by its sample and its index there."""
    if rules.logarithms:
        baseline, treatment = baseline.mapped(math.log), treatment.mapped(math.log)
    made = [
        Judgement(design(baseline.without(at), treatment), rules)
        if side == "baseline"
        else Judgement(design(baseline, treatment.without(at)), rules)
        for side, at in left_out
    ]
    ranked_together(made)
    return made


def ranked_together(judgements: Sequence[Judgement]) -> None:
    """Ranks the trials of all at once, which takes much less time than one by one."""
    for judgement, ranked in zip(judgements, _rank(judgements), strict=True):
        judgement.__dict__["_ranked"] = ranked


def estimated_together(judgements: Sequence[Judgement]) -> None:
    """The same for the intervals."""
    found = shifts([j.design for j in judgements], [j.rules.confidence for j in judgements])
    for judgement, shift in zip(judgements, found, strict=True):
        judgement.__dict__["_shift"] = shift


def _rank(judgements: Sequence[Judgement]) -> list[_Ranked]:
    designs = [judgement.design for judgement in judgements]
    limits = [None if isinstance(bounds := j.rules.bounds, str) else bounds for j in judgements]
    bounded = [n for n, ends in enumerate(limits) if ends is not None]
    lows, highs = ([-ends[side] for ends in limits if ends is not None] for side in (0, 1))
    moved = [designs[n] for n in bounded]
    n_all, n_bounded = len(designs), len(bounded)
    tails = rank_tails([*designs, *moved, *moved], [*([0.0] * n_all), *lows, *highs])
    of_margin = dict(
        zip(bounded, zip(tails[n_all : n_all + n_bounded], tails[n_all + n_bounded :], strict=True), strict=True)
    )
    return [
        _Ranked(value, share, tails[n], of_margin.get(n))
        for n, (value, share) in enumerate(zip(shift_values(designs), superiorities(designs), strict=True))
    ]


def verdict_of(estimate: float | None, test: Test, attainable: float | None, rules: Rules) -> Verdict:
    """The word for a shift, its test and the smallest possible p, without a margin."""
    if test.p is None or estimate is None or attainable is None:
        return "too_few_trials"
    if rules.rejects(rules.adjusted(test.p)):
        if rules.noise_floor is not None and abs(estimate) <= rules.noise_floor:
            return "below_noise_floor"
        if rules.direction != "both":
            return rules.direction
        # With many ties the shift may be 0 although the ranks differ.
        larger = estimate or (test.statistic or 0.5) - 0.5
        if larger:
            return "higher" if larger > 0 else "lower"
    return "not_shown" if rules.rejects(rules.adjusted(attainable)) else "too_few_trials"
