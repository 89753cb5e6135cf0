"""Comparisons of treatments: estimates with intervals, tests, verdicts, and remarks.

The trial is the unit: a figure of a trial (its p99, its mean) counts as one value. docs/statistics.md explains the
calculations, docs/findings.md what is compared with what.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from perflab.models import Count
from perflab.results.trial import Purpose

Verdict = Literal["higher", "lower", "equivalent", "below_noise_floor", "not_shown", "too_few_trials"]
Direction = Literal["both", "higher", "lower"]
Scale = Literal["ratio", "difference"]
Side = Literal["baseline", "treatment"]
Effect = Literal["worse", "better"]
WORSE: Effect = "worse"
BETTER: Effect = "better"
Kind = Literal["condition", "mitigation", "factor", "variant", "observer", "carry_over"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONDITION, MITIGATION, FACTOR, VARIANT, OBSERVER, CARRY_OVER = KINDS

ALPHA = 0.05
MARGIN = 0.05  # a difference by a smaller factor counts as none
SHARE_PLANNED, SHARE_UNPLANNED = 0.5, 0.9  # share of alpha that the first look at a run spends
NOTABLE_RATIO = 2.0  # ratio of standard deviations that is worth mentioning
NOT_POSITIVE = "a relative margin needs values above 0"

MAX_TIMES = 20  # times the present number of trials: predictions further ahead are unreliable

DIFFERENCES: tuple[Verdict, ...] = ("higher", "lower")
CLAIMS: tuple[Verdict, ...] = (*DIFFERENCES, "equivalent")


@dataclass(frozen=True)
class Interval:
    """An interval that covers the true value in at least, or approximately, `confidence` of all such experiments."""

    low: float
    high: float
    confidence: float
    method: str
    low_open: bool = False
    """The end itself is excluded: with ties, a test may reject it and accept everything inside."""
    high_open: bool = False

    def mapped(self, function: Callable[[float], float]) -> Interval:
        """Applies an increasing function to the interval."""
        return dataclasses.replace(self, low=function(self.low), high=function(self.high))

    def contains(self, value: float) -> bool:
        below = value <= self.low if self.low_open else value < self.low
        above = value >= self.high if self.high_open else value > self.high
        return not below and not above

    def within(self, low: float, high: float) -> bool:
        """Whether the whole interval lies strictly between `low` and `high`."""
        return (low < self.low or (self.low_open and low == self.low)) and (
            self.high < high or (self.high_open and self.high == high)
        )


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval."""

    value: float | None
    interval: Interval | None = None
    """Null if these trials allow none."""
    reason: str | None = None
    """Why there is no value, or no interval."""

    @property
    def low(self) -> float | None:
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        return None if self.interval is None else self.interval.high

    def mapped(self, function: Callable[[float], float]) -> Estimate:
        """Applies an increasing function to value and interval."""
        return Estimate(
            None if self.value is None else function(self.value),
            None if self.interval is None else self.interval.mapped(function),
            self.reason,
        )


@dataclass(frozen=True)
class Test:
    """A test of "no difference"."""

    __test__ = False  # not a test of pytest

    name: str
    p: float | None
    statistic: float | None = None
    exact: bool = False
    """p is from the complete null distribution, not from an approximation or resampling."""
    reason: str | None = None
    """Why there is no p."""


@dataclass(frozen=True)
class Outlier:
    """An outlier of its sample. Reported, never dropped."""

    sample: str
    """The treatment."""
    label: str
    """The trial."""
    value: float
    modified_z: float | None
    """Signed; null if the median absolute deviation is 0."""
    by_mad: bool
    fence: Literal["inner", "outer"] | None
    """The Tukey fence that it exceeds."""


@dataclass(frozen=True)
class Described:
    """One sample: one value per trial."""

    name: str
    n: Count
    missing: Count
    """Trials that did not measure it."""
    median: Estimate
    mean: Estimate
    sd: float | None
    smallest: float | None
    largest: float | None
    outliers: tuple[Outlier, ...]


@dataclass(frozen=True)
class Lattice:
    """Values at k period + offset. Of kind resolution: the lattice comes from rounding in the data, not from the
    measured process."""

    kind: Literal["lattice", "resolution"]
    period: float
    """The roundest number within two standard errors of fitted_period."""
    fitted_period: float
    period_error: float
    """Its standard error; 0 if every value is on the lattice exactly."""
    offset: float
    """The median residue, in [0, period)."""
    offset_low: float
    """The residues of the values on the lattice lie in [offset_low, offset_high]; low may be below 0."""
    offset_high: float
    levels: int
    """Number of different k."""
    on_lattice: int
    n: int
    p: float
    """Probability of such a lattice by chance, corrected for the search."""
    resolution: float | None
    """Resolution of the written values; null if unknown."""


@dataclass(frozen=True)
class LeftOut:
    """The comparison without one trial; the estimate is a difference, or a ratio if the comparison is of ratios."""

    sample: str
    """baseline or treatment."""
    label: str
    estimate: float | None
    p: float | None
    attainable_p: float | None
    equivalence_p: float | None
    test: Test
    verdict: Verdict


@dataclass(frozen=True)
class Influence:
    """How single trials affect the conclusion."""

    largest_estimate: LeftOut | None
    """Leaving out this trial changes the estimate most."""
    largest_p: LeftOut | None
    """Leaving out this trial changes p most."""
    flips: tuple[LeftOut, ...]
    """Trials whose removal changes the verdict for another reason than the smaller number of trials."""
    reason: str | None = None
    """Why nothing is listed."""

    @property
    def carries(self) -> LeftOut | None:
        """The trial on which a claim depends, if it is only one."""
        lost = [trial for trial in self.flips if trial.verdict not in CLAIMS]
        return lost[0] if len(lost) == 1 else None


@dataclass(frozen=True)
class SpreadLeftOut:
    """The ratio of the standard deviations without one trial."""

    sample: str
    label: str
    sd_ratio: float
    p: float | None
    """p of the Brown-Forsythe test."""


@dataclass(frozen=True)
class SpreadInfluence:
    largest: SpreadLeftOut | None
    carried_by: SpreadLeftOut | None
    """The trial without which less than half of a notable ratio remains, on the log scale."""


@dataclass(frozen=True)
class NoiseFloor:
    """Differences among baselines; smaller differences are not claimed."""

    difference: float
    ratio: float | None
    """A factor of at least 1; null if a value is not positive."""
    trials: int
    splits: int
    exact: bool
    """Whether every split was used."""
    n_baseline: int
    """The sample sizes that it is scaled to."""
    n_treatment: int


@dataclass(frozen=True)
class Margin:
    """The largest difference that does not matter: absolute, or relative (0.05: a factor of 1.05 either way)."""

    value: float
    relative: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise ValueError(f"a margin must be positive, not {self.value}")


@dataclass(frozen=True)
class Equivalence:
    """Whether the difference is shown to be within [low, high]."""

    margin: Margin
    low: float | None
    high: float | None
    p: float | None
    """The larger p of the two one-sided tests."""
    shown: bool
    """Whether the interval of the estimate lies within them."""
    p_adjusted: float | None = None
    """At most alpha if it is shown."""
    reason: str | None = None


@dataclass(frozen=True)
class Power:
    """For shifts on the scale of the analysis; each null if unknown."""

    sd: float | None
    """Standard deviation of a trial, within samples and blocks."""
    detectable: float | None
    """The smallest shift that these numbers of trials find with the probability target."""
    effect: float | None
    """The shift in question: the margin."""
    power: float | None
    """Probability of finding it."""
    needed: int | None
    """Trials of either sample needed to find it with the probability target."""
    alpha: float
    """The level for p: alpha, divided among the comparisons of a family and among the looks at a run."""
    target: float = 0.8


@dataclass(frozen=True)
class Spread:
    """The scatter of the values. Ratios above 1: the treatment scatters more."""

    sd_baseline: float | None
    sd_treatment: float | None
    mad_baseline: float | None
    mad_treatment: float | None
    sd_ratio: Estimate
    mad_ratio: Estimate
    brown_forsythe: Test
    """Levene's test with medians."""
    permutation_sd: Test
    """Test of |log ratio|, by permuting the deviations from the medians; approximate, because these are estimated."""
    permutation_mad: Test
    scaled_sd_baseline: float | None = None
    """On the scale of the comparison: for ratios the standard deviation of logarithms, so that changing all
    values by one factor does not change the spread."""
    scaled_sd_treatment: float | None = None
    scaled_ratio: Estimate = Estimate(None)
    """The treatment's divided by the baseline's; its interval holds simultaneously with those of all other
    comparisons."""
    scaled_test: Test = Test("Brown-Forsythe", None)
    """Brown-Forsythe test on that scale, which decides together with that interval."""
    p_adjusted: float | None = None
    """p of scaled_test, after Holm's correction for the family of all spread comparisons."""
    verdict: Literal["more", "less", "not_shown", "too_few_trials"] = "too_few_trials"
    """Whether the treatment scatters more or less: by p_adjusted, and if there is an interval, it must exclude 1."""


@dataclass(frozen=True)
class EarlierLook:
    """A look at a run before the last one."""

    number: Count
    trials: Count
    """Trials that the run had then."""


@dataclass(frozen=True)
class Comparison:
    """A treatment compared with its baseline. Positive, or a ratio above 1: the treatment's values are larger."""

    verdict: Verdict
    metric: str
    baseline: Described
    treatment: Described
    alpha: float
    direction: Direction
    """Direction of the difference that the test looks for."""
    scale: Scale
    """Scale of estimate, noise_floor, equivalence and power: factors, or differences in the unit."""
    estimate: Estimate
    """Its interval decides: if it excludes 0 (or the factor 1) there is a difference; if it lies within the
    margin, there is none that matters. All intervals of a family hold simultaneously with confidence 1 - alpha."""
    shift: Estimate
    ratio: Estimate
    """Its value is null if a value is not positive."""
    mean_difference: Estimate
    p: float | None
    """p of rank_test, which decides; the other tests are additional."""
    p_adjusted: float | None
    """p times family_size, divided by the share of alpha that this look at the run may spend; at most 1."""
    attainable_p: float | None
    """The smallest p that is possible with these numbers of trials."""
    attainable_adjusted: float | None
    """Likewise of attainable_p."""
    family_size: Count
    rank_test: Test
    permutation: Test
    welch: Test
    hedges_g: Estimate
    cliffs_delta: Estimate
    blocks: int | None
    """Blocks that have both samples; null if trials are not blocked."""
    unused: tuple[str, ...]
    """Trials whose block lacks the other sample."""
    noise_floor: float | None
    """On scale."""
    equivalence: Equivalence | None
    """Whether no difference larger than the margin is shown; null without a margin."""
    power: Power
    more_trials: int | None
    """If neither is shown: with this many more trials of either, or blocks, a difference or its absence beyond
    the margin will be shown with a predicted probability of 0.6, if trials continue like the present ones.
    Also null if MAX_TIMES the present number would be too few, or the spread is unknown."""
    spread: Spread
    influence: Influence
    spread_influence: SpreadInfluence
    lattice: Lattice | None
    """Over both samples together."""
    look: EarlierLook | None = field(default=None, kw_only=True)
    """The look whose trials and level all of this refers to; null: all trials, at the level of the last look."""

    @property
    def excluded(self) -> float | None:
        """The value for no difference, 0 or the factor 1, if the interval excludes it; else None."""
        nothing = 1.0 if self.scale == "ratio" else 0.0
        interval = self.estimate.interval
        return None if interval is None or interval.contains(nothing) else nothing

    @property
    def constant(self) -> float | None:
        """The value that all trials of both share; None if they differ or there are none."""
        ends = {x for side in (self.baseline, self.treatment) for x in (side.smallest, side.largest)}
        return next(iter(ends)) if len(ends) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Finding(Comparison):
    """The result of comparing a treatment with its baseline in one metric."""

    kind: Kind
    """What is compared with what (docs/findings.md)."""
    variant: str | None
    """The place that both share, in words; null between variants."""
    unit: str
    better: Literal["lower", "higher"]
    effect: Effect | None
    """If a difference is shown: whether it is worse or better."""
    words: str
    """The finding as a sentence."""


@dataclass(frozen=True, kw_only=True)
class RunFinding(Comparison):
    """The comparison of two runs for a result that both measured."""

    result: str
    baseline_run: str
    run: str
    effect: Effect | None
    words: str


@dataclass(frozen=True)
class ShareInterval:
    """A proportion, from 0 to 1."""

    low: float
    high: float
    level: float
    """0.95: 95 %."""
    method: str = "Wilson"


@dataclass(frozen=True, kw_only=True)
class SuccessRate:
    variant: str
    treatment: str
    purpose: Purpose | None
    successes: Count
    n: Count
    """Successes and failures."""
    interval: ShareInterval | None
    invalid: Count
    harness_errors: Count


@dataclass(frozen=True, kw_only=True)
class FoundLattice(Lattice):
    variant: str
    metric: str


@dataclass(frozen=True, kw_only=True)
class FoundOutlier(Outlier):
    variant: str
    metric: str


@dataclass(frozen=True)
class Remark:
    kind: str
    words: str
    about: str = ""
    """The comparisons that it refers to, in words; empty if the words suffice."""
    metrics: tuple[str, ...] = ()
    """The metrics that it refers to, if it holds for all comparisons of them."""


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Which look judges the trials of a run, and which part of alpha it may spend.

    A run that is judged, continued because too little was decided, and judged again has several chances of a false
    claim. So alpha is divided among the looks (alpha spending; Lan and DeMets 1983) and the union bound does the rest:
    over any number of looks, whatever their reason, at most alpha of all runs make a false claim. The first look spends
    half of alpha if further looks were announced from the start; otherwise it spends nine tenths, since most runs are
    looked at once. Look k gets 2 / (k (k + 1)) of the rest.
    """

    number: Count = 1
    from_start: bool = False
    """Whether the rule for further looks was set before the first trial."""
    earlier: tuple[Count, ...] = ()
    """How many trials the run had at each look before this one."""

    @property
    def share(self) -> float:
        """The part of alpha that this look spends; the parts of all looks add up to 1."""
        first = SHARE_PLANNED if self.from_start else SHARE_UNPLANNED
        return first if self.number <= 1 else (1 - first) * 2 / (self.number * (self.number + 1))

    @property
    def next(self) -> Looks:
        return dataclasses.replace(self, number=self.number + 1)

    @property
    def before(self) -> list[tuple[Looks, EarlierLook]]:
        """The looks before this one, the latest first."""
        return [
            (Looks(number=n, from_start=self.from_start, earlier=self.earlier[: n - 1]), EarlierLook(n, trials))
            for n, trials in reversed(list(enumerate(self.earlier, 1)))
        ]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results about differences: comparisons with intervals, success rates, noise floors (docs/findings.md)."""

    alpha: float
    """Rate of false claims, of differences and of equivalences, over all comparisons and all looks."""
    margin: float
    """0.05: a factor of 1.05 counts as no difference."""
    looks: Looks = Looks()
    metrics: tuple[str, ...]
    family_size: Count
    """The number of comparisons that share alpha."""
    noise_floor: Mapping[str, Mapping[str, NoiseFloor]] = field(default_factory=dict)
    """By variant and metric."""
    comparisons: tuple[Finding, ...] = ()
    carry_over: tuple[Finding, ...] = ()
    """Baselines right after a disturbance against the others, a separate family."""
    success_rates: tuple[SuccessRate, ...] = ()
    lattices: tuple[FoundLattice, ...] = ()
    outliers: tuple[FoundOutlier, ...] = ()
    more_trials: int | None = None
    """Further repetitions that would probably decide every comparison with a prediction (the maximum of their
    more_trials); null: none has one."""
    remarks: tuple[Remark, ...] = ()
    """Remarks, in words, the most important first."""
