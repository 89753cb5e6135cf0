"""Comparisons of treatments: estimates with intervals, tests, verdicts, and what must be known about them.

The trial is the unit: a figure of a trial (its p99, its mean) enters as one value. docs/statistics.md says how these
are calculated, docs/findings.md what is compared with what.
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
Kind = Literal["condition", "factor", "variant", "observer", "carry_over"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONDITION, FACTOR, VARIANT, OBSERVER, CARRY_OVER = KINDS

ALPHA = 0.05
MARGIN = 0.05  # a difference by a smaller factor is called none
SHARE_PLANNED, SHARE_UNPLANNED = 0.5, 0.9  # of alpha, which the first look at a run spends
NOTABLE_RATIO = 2.0  # of standard deviations: worth a word
NOT_POSITIVE = "a relative margin needs values above 0"

MAX_TIMES = 20  # as many trials as there are: further ahead nobody should look

DIFFERENCES: tuple[Verdict, ...] = ("higher", "lower")
CLAIMS: tuple[Verdict, ...] = (*DIFFERENCES, "equivalent")


@dataclass(frozen=True)
class Interval:
    """An interval that covers the true value in at least or about `confidence` of all experiments like this one."""

    low: float
    high: float
    confidence: float
    method: str
    low_open: bool = False
    """The end itself is excluded: with ties a test may reject it and nothing beyond it."""
    high_open: bool = False

    def mapped(self, function: Callable[[float], float]) -> Interval:
        """Of an increasing function of the value."""
        return dataclasses.replace(self, low=function(self.low), high=function(self.high))

    def contains(self, value: float) -> bool:
        below = value <= self.low if self.low_open else value < self.low
        above = value >= self.high if self.high_open else value > self.high
        return not below and not above

    def within(self, low: float, high: float) -> bool:
        """Whether neither `low` or anything below it nor `high` or anything above it is in the interval."""
        return (low < self.low or (self.low_open and low == self.low)) and (
            self.high < high or (self.high_open and self.high == high)
        )


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval."""

    value: float | None
    interval: Interval | None = None
    """Null where these trials allow none."""
    reason: str | None = None
    """Why there is no value, or no interval."""

    @property
    def low(self) -> float | None:
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        return None if self.interval is None else self.interval.high

    def mapped(self, function: Callable[[float], float]) -> Estimate:
        """Of an increasing function of the value."""
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
    """p is that of the complete null distribution, not of an approximation or of resampling."""
    reason: str | None = None
    """Why there is no p."""


@dataclass(frozen=True)
class Outlier:
    """A trial far from the others of its sample. Named, never dropped."""

    sample: str
    """The treatment."""
    label: str
    """The trial."""
    value: float
    modified_z: float | None
    """Signed; null where the median absolute deviation is 0."""
    by_mad: bool
    fence: Literal["inner", "outer"] | None
    """Tukey's fence that it is beyond."""


@dataclass(frozen=True)
class Described:
    """One sample by itself: one value per trial."""

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
    """Values at k period + offset. Of kind resolution: it is how finely they were written, not how they came about."""

    kind: Literal["lattice", "resolution"]
    period: float
    """The roundest number within two standard errors of fitted_period."""
    fitted_period: float
    period_error: float
    """Its standard error; 0 where every value is on the lattice exactly."""
    offset: float
    """The middle residue, in [0, period)."""
    offset_low: float
    """The residues of the values on the lattice lie in [offset_low, offset_high]; low may be below 0."""
    offset_high: float
    levels: int
    """How many different k."""
    on_lattice: int
    n: int
    p: float
    """The chance of such a lattice where there is none, corrected for the search."""
    resolution: float | None
    """How finely the values are written; null where that cannot be told."""


@dataclass(frozen=True)
class LeftOut:
    """The comparison without one trial; the estimate is a difference, or a ratio where the comparison is of ratios."""

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
    """What single trials do to the conclusion."""

    largest_estimate: LeftOut | None
    """Without this trial the estimate changes most."""
    largest_p: LeftOut | None
    """Without this trial p changes most."""
    flips: tuple[LeftOut, ...]
    """Trials without which the verdict is another, other than for want of trials."""
    reason: str | None = None
    """Why nothing is listed."""

    @property
    def carries(self) -> LeftOut | None:
        """The one trial without which a claim is none, if it is only one."""
        lost = [trial for trial in self.flips if trial.verdict not in CLAIMS]
        return lost[0] if len(lost) == 1 else None


@dataclass(frozen=True)
class SpreadLeftOut:
    """The ratio of the standard deviations without one trial."""

    sample: str
    label: str
    sd_ratio: float
    p: float | None
    """Brown and Forsythe's."""


@dataclass(frozen=True)
class SpreadInfluence:
    largest: SpreadLeftOut | None
    carried_by: SpreadLeftOut | None
    """The one trial without which less than half of a notable ratio is left, on the log scale."""


@dataclass(frozen=True)
class NoiseFloor:
    """What baselines differ among themselves; below it no difference is claimed."""

    difference: float
    ratio: float | None
    """A factor of at least 1; null where a value is not positive."""
    trials: int
    splits: int
    exact: bool
    """Every split was taken."""
    n_baseline: int
    """The sizes that it is scaled to."""
    n_treatment: int


@dataclass(frozen=True)
class Margin:
    """The largest difference that does not matter: absolute, or relative (0.05: a factor of 1.05 either way)."""

    value: float
    relative: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise ValueError(f"a margin is positive, not {self.value}")


@dataclass(frozen=True)
class Equivalence:
    """Whether the difference is shown to be within [low, high]."""

    margin: Margin
    low: float | None
    high: float | None
    p: float | None
    """The larger one of the two one-sided tests."""
    shown: bool
    """As the interval of the estimate lies within them."""
    p_adjusted: float | None = None
    """At most alpha where it is shown."""
    reason: str | None = None


@dataclass(frozen=True)
class Power:
    """For shifts on the scale of the analysis; each null where it is not known."""

    sd: float | None
    """Of one trial, within samples and blocks."""
    detectable: float | None
    """What these numbers of trials find with the chance target."""
    effect: float | None
    """What was asked about: the margin."""
    power: float | None
    """Chance of finding it."""
    needed: int | None
    """Trials of either sample to find it with the chance target."""
    alpha: float
    """At which p is judged: alpha, divided among the comparisons of a family and among the looks at a run."""
    target: float = 0.8


@dataclass(frozen=True)
class Spread:
    """How much the values scatter. Ratios above 1: the treatment scatters more."""

    sd_baseline: float | None
    sd_treatment: float | None
    mad_baseline: float | None
    mad_treatment: float | None
    sd_ratio: Estimate
    mad_ratio: Estimate
    brown_forsythe: Test
    """Levene's test about the medians."""
    permutation_sd: Test
    """Of |log ratio|, of the deviations from either median; approximate, for these are estimated."""
    permutation_mad: Test
    scaled_sd_baseline: float | None = None
    """On the scale of the comparison: where that is of ratios the standard deviation of logarithms, so that a change of
    all values by one factor is no difference of spread."""
    scaled_sd_treatment: float | None = None
    scaled_ratio: Estimate = Estimate(None)
    """The treatment's over the baseline's; its interval holds together with those of all other comparisons."""
    scaled_test: Test = Test("Brown-Forsythe", None)
    """Brown and Forsythe's on that scale, which decides together with that interval."""
    p_adjusted: float | None = None
    """Of scaled_test, after Holm's correction for the family of all differences of spread."""
    verdict: Literal["more", "less", "not_shown", "too_few_trials"] = "too_few_trials"
    """Whether the treatment scatters more or less: by p_adjusted, and where there is an interval it excludes 1."""


@dataclass(frozen=True)
class EarlierLook:
    """A look at a run before the last one."""

    number: Count
    trials: Count
    """That the run had then."""


@dataclass(frozen=True)
class Comparison:
    """A treatment against its baseline. Positive, or a ratio above 1: the treatment's values are larger."""

    verdict: Verdict
    metric: str
    baseline: Described
    treatment: Described
    alpha: float
    direction: Direction
    """Which difference the test looks for."""
    scale: Scale
    """That of estimate, noise_floor, equivalence and power: factors, or differences in the unit."""
    estimate: Estimate
    """Its interval decides: without 0 (or the factor 1) in it there is a difference, within the margin there is none
    that matters. All intervals of a family hold together with confidence 1 - alpha."""
    shift: Estimate
    ratio: Estimate
    """Its value is null where a value is not positive."""
    mean_difference: Estimate
    p: float | None
    """Of rank_test, which decides; the other tests stand beside it."""
    p_adjusted: float | None
    """p times family_size, divided by the share of alpha that this look at the run may spend; at most 1."""
    attainable_p: float | None
    """The smallest p that these numbers of trials can give."""
    attainable_adjusted: float | None
    """Likewise of attainable_p."""
    family_size: Count
    rank_test: Test
    permutation: Test
    welch: Test
    hedges_g: Estimate
    cliffs_delta: Estimate
    blocks: int | None
    """Blocks that have both samples; null where trials are not blocked."""
    unused: tuple[str, ...]
    """Trials whose block lacks the other sample."""
    noise_floor: float | None
    """On scale."""
    equivalence: Equivalence | None
    """Whether no difference larger than the margin is shown; null without a margin."""
    power: Power
    more_trials: int | None
    """Where neither is shown: so many more trials of either, or blocks, show a difference or that there is none larger
    than the margin, with a predicted chance of 0.6 if trials go on as they have. Null too where MAX_TIMES as many as
    now are too few, and where the spread is not known."""
    spread: Spread
    influence: Influence
    spread_influence: SpreadInfluence
    lattice: Lattice | None
    """Of both samples together."""
    look: EarlierLook | None = field(default=None, kw_only=True)
    """Of whose trials, and at whose level, all of this is; null: of all trials, at the level of the last look."""

    @property
    def excluded(self) -> float | None:
        """No difference, as 0 or the factor 1, where the interval does not contain it; else None."""
        nothing = 1.0 if self.scale == "ratio" else 0.0
        interval = self.estimate.interval
        return None if interval is None or interval.contains(nothing) else nothing

    @property
    def constant(self) -> float | None:
        """The one value of all trials of both; None where they differ or there are none."""
        ends = {x for side in (self.baseline, self.treatment) for x in (side.smallest, side.largest)}
        return next(iter(ends)) if len(ends) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Finding(Comparison):
    """What an experiment shows of a treatment and its baseline in one metric."""

    kind: Kind
    """What is compared with what (docs/findings.md)."""
    variant: str | None
    """The place that both share, in words; null between variants."""
    unit: str
    better: Literal["lower", "higher"]
    effect: Effect | None
    """Where a difference is shown: whether it is worse or better."""
    words: str
    """All of this as a sentence."""


@dataclass(frozen=True, kw_only=True)
class RunFinding(Comparison):
    """What two runs show of a result that both measured."""

    result: str
    baseline_run: str
    run: str
    effect: Effect | None
    words: str


@dataclass(frozen=True)
class ShareInterval:
    """Of a share, from 0 to 1."""

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
    """Which comparisons it is about, in words; empty where the words hold it together."""
    metrics: tuple[str, ...] = ()
    """The metrics that it is about, where it holds of all comparisons of them."""


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Which look at the trials of a run it is that judges them, and which part of alpha it may spend.

    A run that is judged, continued because that decided too little, and judged again has several chances of a false
    claim. So alpha is divided among the looks (alpha spending; Lan and DeMets 1983) and the union bound does the rest:
    over all looks, however many there are and whatever made somebody look again, a false claim is made in at most alpha
    of all runs. The first look spends half of alpha where it was known from the start that others may follow; where it
    was not it spends all but a tenth, for most runs are looked at once. Look k gets 2 / (k (k + 1)) of the rest.
    """

    number: Count = 1
    from_start: bool = False
    """Whether the rule that asks for further looks was there before the first trial."""
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
    """What the trials say about differences: comparisons with intervals, success rates, noise floors
    (docs/findings.md)."""

    alpha: float
    """Rate of false claims, of differences and of equivalences, over all comparisons together and over all looks."""
    margin: float
    """0.05: a factor of 1.05 counts as no difference."""
    looks: Looks = Looks()
    metrics: tuple[str, ...]
    family_size: Count
    """How many comparisons alpha is divided among."""
    noise_floor: Mapping[str, Mapping[str, NoiseFloor]] = field(default_factory=dict)
    """By variant and metric."""
    comparisons: tuple[Finding, ...] = ()
    carry_over: tuple[Finding, ...] = ()
    """Baselines right after a disturbance against the others, a family of its own."""
    success_rates: tuple[SuccessRate, ...] = ()
    lattices: tuple[FoundLattice, ...] = ()
    outliers: tuple[FoundOutlier, ...] = ()
    more_trials: int | None = None
    """Further repetitions that would probably decide every comparison of which that can be said (the most of their
    more_trials); null: there is none."""
    remarks: tuple[Remark, ...] = ()
    """What must be known, in words, the most important first."""
