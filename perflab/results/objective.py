"""Named paths of a trial and the objectives formed from them (docs/tracing.md, Named paths)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

WORSE: Literal["worse"] = "worse"
BETTER: Literal["better"] = "better"
SAME: Literal["same"] = "same"


@dataclass(frozen=True, kw_only=True)
class PathResult:
    """A named path in the trace of a trial, or times that its processes measured instead of one."""

    name: str
    route: str | None = None
    """The callbacks and topics that it goes through."""
    link: str | None = None
    """causal, declared or inferred."""
    times: str | None = None
    """Name of the times that replace a route."""
    deadline_ns: int | None = None
    weight: float | None = None
    """Null without a deadline: then it is in no objective."""
    judged: int | None = None
    never_arrived: int | None = None
    late: int | None = None
    misses: int | None = None
    misses_percent: float | None = None
    latency_p50_ns: int | None = None
    latency_p99_ns: int | None = None
    latency_max_ns: int | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """By measure (median, p99, max, misses): shares of the deadline, and of misses."""
    reason: str | None = None
    """Why it was not measured."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveResult:
    """The scores of all paths with a deadline by one measure, compared with the baseline."""

    what: str
    """The summed measure."""
    trials: int
    weights: Mapping[str, float]
    """By path."""
    scores: Mapping[str, float | None]
    """By path: the median over trials."""
    total: float | None = None
    """Sum of weight x score / sum of the weights; smaller is better."""
    baseline_total: float | None = None
    ratio: float | None = None
    """total / baseline_total; also null if that is 0."""
    low: float | None = None
    high: float | None = None
    """The range of the ratio if the weight of one path changes by 10 or 50 %, or the path is left out; null:
    unbounded."""
    least: float | None = None
    most: float | None = None
    """The range of the ratio over all weights: that of single paths."""
    verdict: Literal["worse", "better", "same"] | None = None
    """Verdict on the totals with the given weights; it ignores differences between trials."""
    turned_by: tuple[str, ...] = ()
    """Changes of one weight that reverse the verdict: \"control -50 %\"."""
    hangs_on_weights: bool | None = None
    """Whether some weights reverse the verdict."""
    reason: str | None = None
    """Why a total is unknown."""
