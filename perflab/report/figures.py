"""What a picture shows, as neutral data: axes, series, words. Drawn by draw_static.py and draw_html.py.

Values stand in the unit that the axis names. A result has the same group, and so the same colour and mark, in every
picture; of a result with several processes the first one has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perflab.report.axes import Ticks

KINDS = ("percentiles", "edges", "time", "cpu", "rss")


Scale = Literal["linear", "log", "nines", "rows"]
Shape = Literal["line", "points", "ranges"]
Stroke = Literal["solid", "dashed", "dotted"]
Weight = Literal["thick", "normal", "thin"]
Sign = Literal["none", "full", "hollow", "bar", "dot", "cross", "ring", "lost"]


@dataclass(frozen=True)
class Axis:
    """One axis. On a scale of "nines" values are percentiles; on one of "rows" they count rows from the top."""

    title: str
    scale: Scale
    low: float
    high: float
    ticks: Ticks = ()


@dataclass(frozen=True)
class Series:
    """Points, or a line through them; None breaks a line. Signs stand at the points with indices `signed` (or all)."""

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


@dataclass(frozen=True)
class Reference:
    """A horizontal line that was not measured but is to be compared with."""

    label: str
    value: float


@dataclass(frozen=True)
class Key:
    """What a stroke or a sign means, whatever its colour."""

    label: str
    stroke: Stroke | None = None
    weight: Weight = "normal"
    sign: Sign = "none"


@dataclass(frozen=True)
class Figure:
    """One picture. `groups` names the groups of the series, `keys` their strokes and signs."""

    name: str  # of its file
    kind: str
    title: str
    subtitle: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    groups: tuple[tuple[int, str], ...]
    keys: tuple[Key, ...] = ()
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """Limits to compare resources with. CPU is per cent of all CPUs together."""

    name: str
    cpu_percent: float | None
    rss_kb: float | None
