"""Curves over the levels of a factor (docs/sweeps.md), and breaking points that were searched
(docs/breaking_point.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perflab.models import Count, Number
from perflab.results.figure import Median
from perflab.results.outcome import Outcomes

# The change of a metric from the first level to the last: "differs" is neither up nor down over all of them.
Course = Literal["higher", "lower", "differs", "equivalent", "same", "too_few_trials", "not_shown"]
State = Literal["found", "not_reached", "below_low", "not_monotone", "unsettled", "not_producible"]


@dataclass(frozen=True)
class Knee:
    """Where a curve bends."""

    level: float
    low: float
    high: float
    confidence: float
    p: float | None = None
    """Probability of at least this bend on a straight curve."""


@dataclass(frozen=True)
class Saturation:
    """The level from which a curve is flat."""

    level: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, kw_only=True)
class CurveLevel:
    level: Number
    called: str | None = None
    """Name of a level that is a word, such as a message type; `level` is then its payload in bytes."""
    treatment: str | None
    """Label."""
    n: Count
    """Trials that enter the statistics."""
    successes: Count
    judged: Count
    """Successes and failures."""
    success_low: float | None
    """Wilson's interval of the share of successes, 0 to 1; null if no trial was judged."""
    success_high: float | None
    invalid: Count
    harness_errors: Count

    @property
    def left_out(self) -> Outcomes:
        return Outcomes(invalid=self.invalid, harness_error=self.harness_errors)


@dataclass(frozen=True, kw_only=True)
class CurveMetric:
    unit: str
    """Empty for plain numbers; times in ns."""
    points: tuple[Median | None, ...]
    """One per level; null if no trial measured it."""
    confidence: float
    """Confidence level of the points' intervals."""
    knee: Knee | None
    knee_reason: str | None
    """Why there is none."""
    saturation: Saturation | None
    saturation_reason: str | None
    """Why there is none."""
    course: Course | None = None
    """Its change over the levels; null if fewer than two measured it, and for older runs."""
    words: tuple[str, ...]
    """Sentences."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Metrics over the levels of a factor."""

    variant: str
    factor: str
    """Path, e.g. message_flood.rate."""
    others: Mapping[str, Any]
    """Levels of the other factors, by path."""
    scale: Literal["linear", "log"]
    middleware: str | None = None
    """Null for older runs."""
    levels: tuple[CurveLevel, ...]
    """Ascending."""
    success_confidence: float | None = None
    """Confidence level of the intervals of successes: 0.95 is 95 %."""
    metrics: Mapping[str, CurveMetric]
    """By name, e.g. latency.p99."""

    @property
    def place(self) -> str:
        """Variant and the levels of the other factors."""
        return _place(self.variant, self.others)

    @property
    def by_payload(self) -> bool:
        """Whether its levels are words, placed at their messages' payload."""
        return any(level.called for level in self.levels)


@dataclass(frozen=True)
class Bounds:
    """An interval of levels."""

    low: Number
    high: Number
    level: float
    """0.95: 95 %."""
    beyond: Literal["low", "high", "both"] | None = None
    """Whether it continues outside of the range; then the end of the range is given."""


@dataclass(frozen=True)
class LevelTried:
    """The results of the trials at one level."""

    level: Number
    met: Count
    n: Count
    low: float | None
    """Wilson's interval of the share that met the criterion; null if no trial counted."""
    high: float | None
    invalid: Count


@dataclass(frozen=True)
class Step:
    """A trial of the search."""

    order: Count
    level: Number
    met: bool | None
    """Null if the trial gave no answer."""


@dataclass(frozen=True)
class Fit:
    """The modelled probability of meeting the criterion over the levels, and its pointwise credible band."""

    level: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class LeftOutTrials:
    """Trials that never count as breaking."""

    invalid: Count
    harness_error: Count

    @staticmethod
    def of(outcomes: Outcomes) -> LeftOutTrials:
        return LeftOutTrials(outcomes.invalid, outcomes.harness_error)

    @property
    def outcomes(self) -> Outcomes:
        return Outcomes(invalid=self.invalid, harness_error=self.harness_error)


NOT_FINISHED = "not finished"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results of a search for a breaking point, for levels of any kind."""

    low: Number
    high: Number
    scale: Literal["linear", "log"]
    integer: bool
    falls: bool
    """Whether small levels break the system."""
    share: float
    """Share of trials that meet the criterion at the breaking point."""
    confidence: float | None = None
    """Confidence level of all intervals here, including those of the levels: 0.95 is 95 %."""
    precision: float
    """Interval width at which the search ends, as a share of the range."""
    max_trials: Count
    state: State
    value: Number | None
    interval: Bounds | None
    """Exists whenever there are trials and an end is in the range."""
    stopped: str
    """Why it ended."""
    trials: Count
    """That entered."""
    left_out: LeftOutTrials
    levels: tuple[LevelTried, ...]
    course: tuple[Step, ...]
    """Trials in their order."""
    fit: Fit | None
    monotone_p: float | None
    rises: tuple[Number, Number, Number, Number] | None = None
    """Where it is not monotone: from the first level to the second, the criterion is met less often than the
    direction implies."""
    producible: Number | None = None
    """The last level before those that could not be produced; null: all could."""

    @property
    def finished(self) -> bool:
        return self.stopped != NOT_FINISHED


@dataclass(frozen=True, kw_only=True)
class BreakingPoint(Found):
    """The result of a search."""

    variant: str
    treatment: str
    """Label without the level."""
    factor: str
    unit: str | None = None
    """Unit of all levels here, e.g. \"ms\"; null: levels are in the factor's own form."""
    others: Mapping[str, Any]
    """Levels of the other factors, by path."""
    criterion: str
    words: tuple[str, ...]
    """Sentences."""

    @property
    def place(self) -> str:
        """Variant and the levels of the other factors."""
        return _place(self.variant, self.others)


def _place(variant: str, others: Mapping[str, Any]) -> str:
    return ", ".join([variant, *(f"{path}={level}" for path, level in others.items())])
