"""Figures of trials: distributions, medians over trials, and the key figures of graphs and of kinds of workloads.

Apart from trials, for kinds of workloads declare theirs where they are listed, which shall not take the time to load
all that is said of a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perflab.errors import BadInput
from perflab.models import Count


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Quantiles of one histogram in nanoseconds; null where it was not measured, null members where it has no values. A
    percentile is HdrHistogram's value (3 significant digits), never above the exact maximum; min, mean and max are
    exact."""

    count: Count | None = None
    """Null where a foreign run does not say."""
    min: int | None = None
    mean: float | None = None
    p50: int | None = None
    p90: int | None = None
    p99: int | None = None
    p99_9: int | None = None
    p99_99: int | None = None
    max: int | None = None
    max_at_s: float | None = None
    """When the maximum happened, in seconds from the start of the measured part of its trial."""
    saturated: Count | None = None
    """Values above 100 s, counted at 100 s."""
    negative: Count | None = None
    """Values below 0, counted here and nowhere else."""
    sd: float | None = None
    """Standard deviation; of runs of other programs alone."""


@dataclass(frozen=True, kw_only=True)
class Median:
    """The median over trials with its interval; null where there is none."""

    value: float | None
    low: float | None
    high: float | None
    level: float | None = None
    """Of the interval: 0.95 is 95 %."""
    n: Count
    """Trials that measured it."""
    unit: str = ""
    reason: str | None = None
    """Why there is no value, or no interval."""


@dataclass(frozen=True, kw_only=True)
class _Figure:
    words: str
    metrics: Mapping[str, Median] = field(default_factory=dict)
    """By metric (hot_path.max): the median over the trials; empty of a single trial."""

    @property
    def times_ns(self) -> Distribution | None:
        """What its statistics are of; null where it only counts."""
        return None


@dataclass(frozen=True, kw_only=True)
class PathFigure(_Figure):
    """Response at `edges`, in nanoseconds; `possible` updates could have come by what was published, `arrived` did."""

    kind: Literal["path"] = "path"
    from_: tuple[str, ...]
    to: str
    edges: tuple[tuple[str, ...], ...]
    response_ns: Distribution | None
    possible: int | None
    arrived: int | None
    missed: int | None

    @property
    def times_ns(self) -> Distribution | None:
        return self.response_ns


@dataclass(frozen=True, kw_only=True)
class LostFigure(_Figure):
    """Messages lost on `topics`; null: on all."""

    kind: Literal["lost"] = "lost"
    topics: tuple[str, ...] | None
    sent: int | None
    lost: int | None
    share_percent: float | None


@dataclass(frozen=True, kw_only=True)
class JitterFigure(_Figure):
    """|interval - period| between publications of `publishers`, in nanoseconds; `period_ns` are the intervals, null
    where there are several periods."""

    kind: Literal["jitter"] = "jitter"
    publishers: tuple[tuple[str, ...], ...]
    periods_ns: tuple[int, ...]
    jitter_ns: Distribution | None
    period_ns: Distribution | None

    @property
    def times_ns(self) -> Distribution | None:
        return self.jitter_ns


@dataclass(frozen=True, kw_only=True)
class OwnFigure(_Figure):
    """A number that a kind of workload says of each trial, as only it can; of several trials `value` is the median. Its
    metric is called like the figure."""

    unit: str = ""
    """Of a plain number: ns, %, kB, Hz, B, m; empty of a count."""
    better: Literal["lower", "higher"] = "lower"
    scale: Literal["ratio", "difference"] = "ratio"
    """How two values of it are compared."""
    compared: bool = True
    """Among the metrics that are compared unless others are asked for; parts of another figure are not, as alpha is
    divided among all."""
    kind: Literal["value"] = "value"
    value: float | None = None

    @property
    def declaration(self) -> dict[str, Any]:
        """As a graph file declares it."""
        return _written(self, "kind", "words", "unit", "better", "scale", "compared")


@dataclass(frozen=True, kw_only=True)
class OwnTimes(_Figure):
    """Times that a kind of workload says of each trial, as only it can, in nanoseconds; of several trials those of all.
    Its metrics are its statistics, NAME.p99."""

    drawn: bool = False
    """Whether reports show it in pictures, and terminals beside other results; else it is in tables."""
    floor: str | None = None
    """The observer whose times are the least that these can be on this machine: ratios to it are metrics as well."""
    kind: Literal["times"] = "times"
    of_ns: Distribution | None = None

    @property
    def times_ns(self) -> Distribution | None:
        return self.of_ns

    @property
    def declaration(self) -> dict[str, Any]:
        """As a graph file declares it."""
        return _written(self, "kind", "words", "drawn", "floor")


# Keys of a declaration that say how the value of a trial is made of what a program reports; no result has them.
OF_A_TRIAL = frozenset({"factor", "several"})


def _written(figure: object, *keys: str) -> dict[str, Any]:
    return {key: value for key in keys if (value := getattr(figure, key)) not in (None, "")}


OWN_FIGURES: dict[str, OwnFigure] = {}  # of the kinds of workloads that this process has seen results of


def know(name: str, figure: OwnFigure) -> None:
    """Lets what a kind of workload says be found by its name, as metrics are. Raises BadInput where two say it."""
    known = OWN_FIGURES.setdefault(name, figure)
    if (known.unit, known.better, known.scale) != (figure.unit, figure.better, figure.scale):
        raise BadInput(f"the figure {name!r} is of two kinds of workloads, which cannot be compared")


KeyFigureResult = PathFigure | LostFigure | JitterFigure | OwnFigure | OwnTimes
