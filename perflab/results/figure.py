"""Figures of trials: distributions, medians over trials, and the key figures of graphs and of kinds of workloads.

Separate from trials, because kinds of workloads declare theirs where they are listed, which must not load all of the
trials' models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perflab.errors import BadInput
from perflab.models import Count


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Quantiles of one histogram in nanoseconds; null if it was not measured, null members if it has no values. A
    percentile is HdrHistogram's value (3 significant digits), never above the exact maximum; min, mean and max are
    exact."""

    count: Count | None = None
    """Null if a foreign run lacks it."""
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
    """Values below 0, counted only here."""
    sd: float | None = None
    """Standard deviation; only for runs of other programs."""


@dataclass(frozen=True, kw_only=True)
class Median:
    """The median over trials with its interval; null if there is none."""

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
    """By metric (hot_path.max): the median over the trials; empty for a single trial."""

    @property
    def times_ns(self) -> Distribution | None:
        """The quantity of its statistics; null if it is only a count."""
        return None


@dataclass(frozen=True, kw_only=True)
class PathFigure(_Figure):
    """Response at `edges`, in nanoseconds; `possible` updates follow from the published messages, `arrived` ones were
    received."""

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
    """|interval - period| between publications of `publishers`, in nanoseconds; `period_ns` is the interval, null if
    there are several periods."""

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
    """A number that only the kind of workload can give for each trial; for several trials, `value` is the median. Its
    metric has the same name."""

    unit: str = ""
    """Unit of a number: ns, %, kB, Hz, B, m; empty for a count."""
    better: Literal["lower", "higher"] = "lower"
    scale: Literal["ratio", "difference"] = "ratio"
    """How two values of it are compared."""
    compared: bool = True
    """Whether it is compared by default; parts of another figure are not, because alpha is divided among all."""
    kind: Literal["value"] = "value"
    value: float | None = None

    @property
    def declaration(self) -> dict[str, Any]:
        """Parsed from a graph file."""
        return _written(self, "kind", "words", "unit", "better", "scale", "compared")


@dataclass(frozen=True, kw_only=True)
class OwnTimes(_Figure):
    """Times that only the kind of workload can give for each trial, in nanoseconds; for several trials, those of all.
    Its metrics are its statistics, NAME.p99."""

    drawn: bool = False
    """Whether reports draw it, and terminals show it beside other results; else it is only in tables."""
    floor: str | None = None
    """The observer whose times are the lower bound of these on this machine: ratios to it are metrics as well."""
    kind: Literal["times"] = "times"
    of_ns: Distribution | None = None

    @property
    def times_ns(self) -> Distribution | None:
        return self.of_ns

    @property
    def declaration(self) -> dict[str, Any]:
        """Parsed from a graph file."""
        return _written(self, "kind", "words", "drawn", "floor")


# Keys of a declaration that define how a program's reports are combined into a trial's value; no result has them.
OF_A_TRIAL = frozenset({"factor", "several"})


def _written(figure: object, *keys: str) -> dict[str, Any]:
    return {key: value for key in keys if (value := getattr(figure, key)) not in (None, "")}


OWN_FIGURES: dict[str, OwnFigure] = {}  # of the kinds of workloads whose results this process has read


def know(name: str, figure: OwnFigure) -> None:
    """Makes figures of a kind of workload known by name, like metrics. Raises BadInput if two kinds declare the same
    name."""
    known = OWN_FIGURES.setdefault(name, figure)
    if (known.unit, known.better, known.scale) != (figure.unit, figure.better, figure.scale):
        raise BadInput(f"the figure {name!r} is of two kinds of workloads, which cannot be compared")


KeyFigureResult = PathFigure | LostFigure | JitterFigure | OwnFigure | OwnTimes
