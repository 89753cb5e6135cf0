"""What a picture shows, as neutral data: axes, series, words. Drawn by draw.py.

Values stand in the unit that the axis names. A result has the same group, and so the same colour and mark, in every
picture; of a result with several processes the first one has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perflab.report.axes import Ticks

Scale = Literal["linear", "log", "nines", "rows"]
Shape = Literal["line", "points", "ranges", "whiskers", "band"]
Stroke = Literal["solid", "dashed", "dotted"]
Weight = Literal["thick", "normal", "thin"]
Sign = Literal["none", "full", "hollow", "bar", "dot", "cross", "ring", "box", "lost", "whisker", "band", "ground"]


@dataclass(frozen=True)
class Axis:
    """One axis. On a scale of "nines" values are percentiles; on one of "rows" they count rows from the top."""

    title: str
    scale: Scale
    low: float
    high: float
    ticks: Ticks = ()

    def is_right(self, value: float) -> bool:
        """Whether a place is so far to the right that words beside it stand better to its left."""
        if self.scale == "log":
            return math.log(value / self.low) > 0.6 * math.log(self.high / self.low)
        return value - self.low > 0.6 * (self.high - self.low)


def rows_axis(names: Sequence[str]) -> Axis:
    """One row for each name."""
    return Axis("", "rows", -0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names)))


@dataclass(frozen=True)
class Series:
    """Points, or a line through them; None breaks a line. Signs stand at the points with indices `signed` (or all).

    "whiskers" reach from `low` to `high` through each point, upright or `across`; a "band" is the area between them
    along x, which breaks where one is None. `sizes` are factors of the signs' usual size.
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


def points(name: str, group: int, rows: Sequence[tuple[float, float, str]], **more: Any) -> Series:
    """Signs, each as x, y and its hover text."""
    x, y, hover = zip(*rows, strict=True)
    return Series(name, group, "points", x, y, hover=hover, **more)


Ends = tuple[float | None, float | None]


def ends_of(of: Callable[[float], float], low: float | None, high: float | None) -> Ends:
    """Both ends of an interval, where `of` says that they are drawn."""
    return (None if low is None else of(low), None if high is None else of(high))


def whiskers(name: str, group: int, rows: Sequence[tuple[float, float, Ends, str]], **more: Any) -> Series:
    """Signs with intervals, each as x, y, both ends and its hover text."""
    x, y, ends, hover = zip(*rows, strict=True)
    low, high = zip(*ends, strict=True)
    return Series(name, group, "whiskers", x, y, low=low, high=high, hover=hover, **more)


@dataclass(frozen=True)
class Strip:
    """One row of cells, from `top` to `bottom` on a scale of rows; None is a cell of which nothing is known."""

    top: float
    bottom: float
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Cells:
    """Strips of cells that all begin at `begin` and are `step` wide along x: a heat map of shares, 0 to 100 %."""

    name: str
    begin: float
    step: float
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Span:
    """A stretch along x within a row; `label` is printed in it where there is room."""

    begin: float
    end: float
    top: float
    bottom: float
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Spans:
    """Stretches of one group; those of group None are a faint ground for others."""

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
    """A horizontal line that was not measured but is to be compared with."""

    label: str
    value: float


@dataclass(frozen=True)
class Key:
    """What a stroke or a sign means, whatever its colour; `shade` is that of a cell with this share, in per cent."""

    label: str
    stroke: Stroke | None = None
    weight: Weight = "normal"
    sign: Sign = "none"
    shade: float | None = None


@dataclass(frozen=True)
class Figure:
    """One picture. `groups` names the groups of the series, `keys` their strokes and signs.

    `lanes` is how many things stand below each other in a row; None: one for each group.
    """

    name: str  # of its file
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


@dataclass(frozen=True)
class Target:
    """Limits to compare resources with. CPU is per cent of all CPUs together."""

    name: str
    cpu_percent: float | None
    rss_kb: float | None
