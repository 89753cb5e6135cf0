"""The content of a picture, as neutral data: axes, series, words. Drawn by draw.py.

Values are in the unit that the axis names. A result has the same group, and so the same colour and mark, in every
picture; if a result has several processes, the first one has it. `Plot` collects marks in measured units, and makes a
figure of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

from perflab import quantity
from perflab.quantity import Quantity
from perflab.report import axes
from perflab.report.axes import Ticks
from perflab.statistics.metrics import KILOBYTES, NS

Scale = Literal["linear", "log", "nines", "rows"]
Shape = Literal["line", "points", "ranges", "whiskers", "band"]
Stroke = Literal["solid", "dashed", "dotted"]
Weight = Literal["thick", "normal", "thin"]
Sign = Literal["none", "full", "hollow", "bar", "dot", "cross", "ring", "box", "lost", "whisker", "band", "ground"]


@dataclass(frozen=True)
class Axis:
    """One axis. On a scale of "nines", values are percentiles; on one of "rows", they count rows from the top."""

    title: str
    scale: Scale
    low: float
    high: float
    ticks: Ticks = ()

    def is_right(self, value: float) -> bool:
        """Whether a position is so far to the right that words beside it fit better to its left."""
        if self.scale == "log":
            return math.log(value / self.low) > 0.6 * math.log(self.high / self.low)
        return value - self.low > 0.6 * (self.high - self.low)


@dataclass(frozen=True)
class Series:
    """Points, or a line through them; None interrupts a line. Signs are at the points with indices `signed` (or all).

    "whiskers" reach from `low` to `high` through each point, vertical or `across`; a "band" is the area between them
    along x, interrupted where one is None. `sizes` are factors of the signs' usual size.
    """

    name: str
    group: int
    shape: Shape
    x: tuple[float | None, ...]
    y: tuple[float | None, ...]
    stroke: Stroke = "solid"
    weight: Weight = "normal"
    sign: Sign = "none"
    signed: tuple[int, ...] | None = None
    hover: tuple[str, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    across: bool = False
    sizes: tuple[float, ...] = ()
    lane: int = 0  # position among those at the bottom: how many others are below it


@dataclass(frozen=True)
class Strip:
    """One row of cells, from `top` to `bottom` on a scale of rows; None is an unknown cell."""

    top: float
    bottom: float
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Cells:
    """Strips of cells that all begin at `begin`, with the width `step` along x: a heat map of shares, 0 to 100 %."""

    name: str
    begin: float
    step: float
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Span:
    """A stretch along x within a row; `label` is printed in it if there is room."""

    begin: float
    end: float
    top: float
    bottom: float
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Spans:
    """Stretches of one group; those of group None are a faint background for others."""

    name: str
    group: int | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Label:
    """Words beside a point, above it or `below`."""

    text: str
    x: float
    y: float
    group: int
    below: bool = False


@dataclass(frozen=True)
class Reference:
    """A horizontal line for comparison that was not measured."""

    label: str
    value: float


@dataclass(frozen=True)
class Key:
    """The meaning of a stroke or a sign, whatever its colour; `shade` is that of a cell with this share, in percent."""

    label: str
    stroke: Stroke | None = None
    weight: Weight = "normal"
    sign: Sign = "none"
    shade: float | None = None


@dataclass(frozen=True)
class Figure:
    """One picture. `groups` names the groups of the series, `keys` their strokes and signs.

    `lanes` is how many things are below each other in a row; None: one for each group.
    """

    name: str  # name of its file
    title: str
    subtitle: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    groups: tuple[tuple[int, str], ...]
    keys: tuple[Key, ...] = ()
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()
    cells: tuple[Cells, ...] = ()
    spans: tuple[Spans, ...] = ()
    labels: tuple[Label, ...] = ()
    lanes: int | None = None
    height: int | None = None  # height of the plot in px, if not the usual one
    panels: tuple[Figure, ...] = ()  # small ones with the same axes, which are drawn instead


@dataclass(frozen=True)
class Target:
    """Upper bounds of figures, by column (perflab/statistics/target.py)."""

    name: str
    bounds: Mapping[str, float]
    topology: str | None = None  # whose process it is for

    @property
    def cpu_percent(self) -> float | None:
        """All CPUs together."""
        return self.bounds.get("cpu_perc")

    @property
    def rss_kb(self) -> float | None:
        return self.bounds.get("rss_KB")


# -- axes of values that are unknown yet ------------------------------------------------------------------------------

Place = Callable[[float], float]
Side = Callable[[Sequence[float]], tuple[Axis, Place]]  # from all values along it, and the position of each

AT_BOTTOM = -math.inf  # position of missing values, at the lower end of an axis


def fixed(axis: Axis) -> Side:
    """Values are in its unit already."""
    return lambda _: (axis, float)


def rows(names: Sequence[str]) -> Side:
    """One row for each name."""
    return fixed(Axis("", "rows", -0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names))))


def seconds(values: Sequence[float]) -> tuple[Axis, Place]:
    """Since the start of the measured part."""
    high = max([*values, 1e-3]) * 1.01
    return Axis("time (s)", "linear", 0.0, high, axes.linear_ticks(0.0, high, 8)), float


def from_zero(title: str, count: int = 6, more: float = 1.08) -> Side:
    """A linear axis up to slightly `more` than the largest value."""

    def side(values: Sequence[float]) -> tuple[Axis, Place]:
        high = max(values) * more or 1.0
        return Axis(title, "linear", 0.0, high, axes.linear_ticks(0.0, high, count)), float

    return side


def times(title: str) -> Side:
    """A logarithmic axis of nanoseconds, in a suitable unit; times are drawn at 1 ns or above."""

    def side(values: Sequence[float]) -> tuple[Axis, Place]:
        unit = axes.time_unit(values)
        low, high = axes.log_range([max(value, 1.0) / unit.ns for value in values])
        axis = Axis(f"{title} ({unit.name})", "log", low, high, axes.log_ticks(low, high))
        return axis, lambda value: max(value, 1.0) / unit.ns

    return side


def decades(title: str) -> Side:
    """A logarithmic axis of nanoseconds over many decades, each in a suitable unit."""

    def side(values: Sequence[float]) -> tuple[Axis, Place]:
        low, high = axes.log_range([max(value, 1.0) for value in values])
        units = [axes.time_unit([10.0**n]) for n in range(12)]
        ticks = [(10.0**n, f"{10.0**n / u.ns:.0f} {u.name}") for n, u in enumerate(units) if low <= 10.0**n <= high]
        if len(ticks) < axes.MIN_TICKS:
            return times(title)(values)
        return Axis(title, "log", low, high, tuple(ticks)), lambda value: max(value, 1.0)

    return side


_RATES = {of.unit: of for of in (quantity.DATA_RATE, quantity.PER_SECOND)}
_WIDE = 10.0  # rates with a larger ratio are visible only on a logarithmic axis


def _rates(title: str, of: Quantity, values: Sequence[float]) -> tuple[Axis, Place]:
    per, unit = of.scale([math.sqrt(min(values) * max(values))]) if of.scales else (1.0, of.unit)
    low, high = axes.log_range([value / per for value in values])
    return Axis(f"{title} ({unit})", "log", low, high, axes.log_ticks(low, high)), lambda value: value / per


def of_metric(title: str, unit: str) -> Side:
    """A logarithmic axis for times, and for rates that are far apart; a linear one from 0 for everything else."""
    if unit == NS:
        return times(title)
    name, per = ("MiB", 1024.0) if unit == KILOBYTES else (unit, 1.0)

    def side(values: Sequence[float]) -> tuple[Axis, Place]:
        if unit in _RATES and values and min(values) > 0 and max(values) >= _WIDE * min(values):
            return _rates(title, _RATES[unit], values)
        least, most = (end(values, default=0.0) / per for end in (min, max))
        high = most * 1.06 or 1.0
        low = min(0.0, least * 1.06)
        if least < 0.02 * high:
            low -= 0.03 * (high - low)  # marks at 0 are completely visible
        ticks = axes.linear_ticks(low if low < -0.04 * high else 0.0, high)
        return Axis(f"{title} ({name})" if name else title, "linear", low, high, ticks), lambda value: value / per

    return side


# -- how a figure is made ----------------------------------------------------------------------------------------------

Ends = tuple[float | None, ...]  # both


@dataclass
class Plot:
    """A picture under construction. Values of its marks are in measured units."""

    x: Side
    y: Side
    _: KW_ONLY
    notes: list[str] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)

    def line(
        self, name: str, group: int, x: Iterable[float | None], y: Iterable[float | None], *,
        shape: Shape = "line", hover: Iterable[str] = (), **more: Any,
    ) -> None:  # fmt: skip
        self.series.append(Series(name, group, shape, tuple(x), tuple(y), hover=tuple(hover), **more))

    def points(self, name: str, group: int, marks: Sequence[tuple[float, float, str]], **more: Any) -> None:
        """Signs, each as x, y and its hover text."""
        if marks:
            x, y, hover = zip(*marks, strict=True)
            self.line(name, group, x, y, shape="points", hover=hover, **more)

    def whiskers(self, name: str, group: int, marks: Sequence[tuple[float, float, Ends, str]], **more: Any) -> None:
        """Signs with intervals, each as x, y, both ends and its hover text."""
        if marks:
            x, y, ends, hover = zip(*marks, strict=True)
            low, high = zip(*ends, strict=True)
            self.line(name, group, x, y, shape="whiskers", hover=hover, low=low, high=high, **more)

    def figure(
        self, name: str, title: str, subtitle: str, groups: Iterable[tuple[int, str]] = (), keys: Iterable[Key] = (),
        labels: Iterable[Label] = (), **more: Any,
    ) -> Figure:  # fmt: skip
        """Of the groups and keys, those that are drawn. `more` are further members of the figure."""
        lines: Sequence[Reference] = more.get("references", ())
        x, at_x = self.x(self._along("x"))
        y, at_y = self.y([*self._along("y"), *(line.value for line in lines)])
        drawn = {s.group for s in self.series} | {spans.group for spans in more.get("spans", ())}
        return Figure(
            name, title, subtitle, x, y,
            tuple(
                replace(
                    s, x=_placed(s.x, x, at_x), y=_placed(s.y, y, at_y, s.lane),
                    low=_placed(s.low, y, at_x if s.across else at_y),
                    high=_placed(s.high, y, at_x if s.across else at_y),
                )
                for s in self.series
            ),
            tuple(group for group in groups if group[0] in drawn),
            tuple(filter(self._has, keys)), notes=tuple(dict.fromkeys(self.notes)),
            labels=tuple(replace(label, x=at_x(label.x), y=at_y(label.y)) for label in labels), **more,
        )  # fmt: skip

    def _along(self, axis: Literal["x", "y"]) -> list[float]:
        """All values along an axis, with the ends of intervals."""
        ends = [end for s in self.series if s.across == (axis == "x") for end in (*s.low, *s.high)]
        values = [*(value for s in self.series for value in getattr(s, axis)), *ends]
        return [value for value in values if value is not None and value != AT_BOTTOM]

    def _has(self, key: Key) -> bool:
        """Whether any part of it is drawn; the interval of a sign with its own key does not count."""
        if key.stroke is not None:
            return any((s.shape, s.stroke, s.weight) == ("line", key.stroke, key.weight) for s in self.series)
        if key.sign == "whisker":
            bare = [s for s in self.series if s.shape == "whiskers" and s.sign not in ("ring", "box")]
            return any(low is not None for s in bare for low in s.low)
        if key.sign == "band":
            return any(s.shape == "band" for s in self.series)
        return key.sign in ("none", "ground") or any(s.sign == key.sign for s in self.series)


def _placed(values: Sequence[float | None], axis: Axis, place: Place, lane: int = 0) -> tuple[float | None, ...]:
    bottom = axis.low
    if AT_BOTTOM in values and axis.scale == "log":
        bottom *= (axis.high / axis.low) ** (0.015 + 0.06 * lane)
    return tuple(None if v is None else bottom if v == AT_BOTTOM else place(v) for v in values)
