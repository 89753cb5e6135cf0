"""The levels of a factor as tables: for a curve the measurements at each, for a search the trials at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.columns import Cell, Column, Read, Table, Tone
from perflab.quantity import COUNT, FACTOR, NUMBER, PLAIN, UNKNOWN
from perflab.report.against_floor import floors_among
from perflab.report.tables.messages import Of
from perflab.report.tables.results import left_out
from perflab.results.curve import BreakingPoint, Curve, CurveLevel, CurveMetric, Knee, LevelTried, Saturation
from perflab.results.figure import Median
from perflab.statistics.breaking_point_verdicts import STATES
from perflab.statistics.metrics import LOWER, RATIO, Metric, find, named
from perflab.statistics.selection import level_number, level_words

BARS = "bars"  # a column for the graph's bar in text
BAR_WIDTH = 10
_PARTS = " ▏▎▍▌▋▊▉█"

# Which columns stay on a narrow terminal: the lower, the longer.
_RANKS = {
    "latency.p99": 1, "round_trip.p99": 2, "run_time": 2, "lost": 3,
    "response.p99": 5, "latency.p50": 6, "cpu_percent": 7,
}  # fmt: skip
_SUCCESS_RANK, _LEFT_OUT_RANK, _BAR_RANK, _N_RANK, _FIRST_OTHER_RANK = 2, 3, 4, 8, 9
# The metric with a bar and all sentences: the first of these that the curve has, else its first.
_LEADING = ("latency.p99", "round_trip.p99", "run_time")


@dataclass(frozen=True)
class Level:
    """A level of a curve, with its metrics."""

    record: CurveLevel
    points: dict[str, Median | None]


def curve(of: Curve, title: str) -> Table[Level]:
    """One row per level."""
    metrics = metrics_of(of)
    leading = leading_of(of, metrics)
    columns: list[Column[Level]] = [
        Column("level", of.factor.rpartition(".")[2], lambda row: level_cell(of.factor, row.record), PLAIN, rank=0),
        Column("n", "n", lambda row: row.record.n, PLAIN, rank=_N_RANK, help="number of trials that count"),
        Column("success", "success", lambda row: _success(row.record), PLAIN, rank=_SUCCESS_RANK),
        Column("left_out", "left out", lambda row: left_out(row.record.left_out), PLAIN, rank=_LEFT_OUT_RANK),
    ]
    for place, metric in enumerate(metrics):
        # Other columns than those of `_RANKS` are left out one by one, the last of them first.
        columns.append(_metric(metric, _RANKS.get(metric.name, _FIRST_OTHER_RANK + place)))
        if metric is leading:
            largest = max((p.value for p in of.metrics[metric.name].points if p and p.value is not None), default=0.0)
            columns.append(_bars(metric, largest))
    rows = [
        Level(level, {name: of_metric.points[place] for name, of_metric in of.metrics.items()})
        for place, level in enumerate(of.levels)
    ]
    return Table("curve", title, columns, rows, ["Medians over trials with their intervals; success with Wilson's."])


def metrics_of(of: Curve) -> list[Metric]:
    return [named(name) for name in of.metrics if find(name) is not None]


def leading_of(of: Curve, metrics: Sequence[Metric]) -> Metric | None:
    """Chosen from `metrics`, those of the curve: one that varies, if any does."""
    known = [m for name in _LEADING for m in metrics if m.name == name]
    varying = [m for m in metrics if of.metrics[m.name].course != "same"]
    return next(iter((*known, *varying, *metrics)), None)


def _metric(metric: Metric, rank: int) -> Column[Level]:
    def read(row: Level) -> Read:
        point = row.points[metric.name]
        same = point is not None and point.low == point.high == point.value
        return replace(point, low=None, high=None) if point is not None and same else point

    return Column(metric.name, metric.words, read, metric.quantity, rank=rank, beside=True)


def _bars(metric: Metric, largest: float) -> Column[Level]:
    """Proportional to the values, from 0 on: a bar twice as long is a value twice as large."""

    def read(row: Level) -> Cell:
        point = row.points[metric.name]
        value = None if point is None else point.value
        return Cell("" if value is None or value <= 0 else _bar(value / largest) or _PARTS[1])

    return Column(BARS, "", read, rank=_BAR_RANK, called="bars")


def _bar(share: float) -> str:
    eighths = round(8 * BAR_WIDTH * min(1.0, max(0.0, share)))
    return "█" * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")


def _level(path: str, level: float) -> Cell:
    return Cell(level_words(path, level), level)


def level_cell(path: str, level: CurveLevel) -> Cell:
    """By its name if it has one."""
    return Cell(level.called, level.level) if level.called else _level(path, level.level)


def _success(level: CurveLevel) -> Cell:
    between = _percentages(level.success_low, level.success_high, " %")
    share = level.successes / level.judged if level.judged else None
    tone: Tone = "bad" if level.successes < level.judged else ""
    return Cell(f"{level.successes}/{level.judged}{between}", share, tone)


def _percentages(low: float | None, high: float | None, unit: str = "") -> str:
    """ " [38, 96]", or "" without an interval."""
    return "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}{unit}]"


@dataclass(frozen=True)
class AboveFloor:
    """A level of a variant, with each metric as a multiple of the floor's, by the floor's name and the metric's."""

    variant: str
    level: Level
    ratios: dict[tuple[str, str], float | None]


def above_floors(found: Sequence[Curve], title: str) -> Table[AboveFloor] | None:
    """Variants above the floors of the same factor: medians as multiples of the floor's at the same level.

    None if no floor was measured beside anything else. Metrics that are compared as ratios, and are better if lower.
    """
    floors = floors_among(found)
    if not floors:
        return None
    others = [curve for curve in found if curve not in floors]
    metrics = [m for m in metrics_of(others[0]) if m.compared == RATIO and m.better == LOWER]
    rows = [
        AboveFloor(curve.place, Level(level, {}), _ratios(curve, place, floors, metrics))
        for curve in others
        for place, level in enumerate(curve.levels)
    ]
    columns: list[Column[AboveFloor]] = [
        Column("variant", "variant", lambda row: row.variant, rank=0, once=True),
        Column("level", others[0].factor.rpartition(".")[2], lambda row: level_cell(others[0].factor, row.level.record),
               rank=0),
    ]  # fmt: skip
    for metric in metrics:
        for variant, middleware in {floor.variant: floor.middleware for floor in floors}.items():
            if any(row.ratios.get((variant, metric.name)) is not None for row in rows):
                columns.append(_times_floor(variant, metric, f"{metric.name}_over_{middleware}"))
    said = (
        "Medians over trials, as multiples of those of a floor at the same level: the cost of plain sockets or memory."
    )
    return Table("above_floors", title, columns, rows, [said]) if len(columns) > 2 else None


def _times_floor(variant: str, metric: Metric, name: str) -> Column[AboveFloor]:
    key = variant, metric.name
    return Column(name, f"over {variant}", lambda row: row.ratios.get(key), FACTOR, group=metric.words, rank=1)


def _ratios(
    curve: Curve, place: int, floors: Sequence[Curve], metrics: Sequence[Metric]
) -> dict[tuple[str, str], float | None]:
    """Floors measured with everything but the middleware equal."""
    level = curve.levels[place].level
    ratios: dict[tuple[str, str], float | None] = {}
    for floor in (f for f in floors if f.others == curve.others):
        at = next((n for n, other in enumerate(floor.levels) if other.level == level), None)
        for metric in metrics:
            ends = _value(curve, metric, place), None if at is None else _value(floor, metric, at)
            ratios[floor.variant, metric.name] = ends[0] / ends[1] if ends[0] is not None and ends[1] else None
    return ratios


def _value(curve: Curve, metric: Metric, place: int) -> float | None:
    of = curve.metrics.get(metric.name)
    point = None if of is None else of.points[place]
    return None if point is None else point.value


def knees(of: Curve, title: str) -> Table[Of[CurveMetric]]:
    """Where each metric bends, and from where it no longer changes; metrics that do either."""
    rows = [Of(metric, named(name).words) for name, metric in of.metrics.items() if find(name) is not None]
    return Table(
        "knees",
        title,
        [
            Column("metric", "metric", lambda row: row.result),
            Column("knee", "knee", lambda row: _place(row.record.knee, row.record.knee_reason)),
            Column("saturation", "saturation", lambda row: _place(row.record.saturation, row.record.saturation_reason)),
        ],
        [row for row in rows if any((row.record.knee, row.record.saturation, *_reasons(row.record)))],
    )


def _reasons(metric: CurveMetric) -> tuple[str | None, ...]:
    return metric.knee_reason, metric.saturation_reason


def _place(found: Knee | Saturation | None, reason: str | None) -> Cell:
    if found is None:
        return Cell(UNKNOWN, below=(reason or "",))
    between = f"{level_number(found.low)}, {level_number(found.high)}"
    return Cell(f"{level_number(found.level)} [{between}]", found.level)


def tried(search: BreakingPoint, title: str) -> Table[LevelTried]:
    """One row per level of a search."""
    unit = f" ({search.unit})" if search.unit else ""
    return Table(
        "tried",
        title,
        [
            Column(
                "level",
                f"{search.factor.rpartition('.')[2]}{unit}",
                lambda row: _level(search.factor, row.level),
                PLAIN,
                rank=0,
            ),
            Column("met", "met", lambda row: Cell(f"{row.met}/{row.n}", row.met), PLAIN, rank=0),
            Column(BARS, "", lambda row: Cell(_bar(row.met / row.n) if row.n else ""), rank=2, called="bars"),
            Column("share", "share", _share, PLAIN, rank=1),
            Column("invalid", "invalid", _invalid, PLAIN, rank=3),
        ],
        sorted(search.levels, key=lambda row: float(row.level)),
    )


def _share(row: LevelTried) -> Cell:
    if not row.n:
        return Cell(UNKNOWN, tone="faint")
    return Cell(f"{100 * row.met / row.n:.0f} %{_percentages(row.low, row.high)}", row.met / row.n)


def _invalid(row: LevelTried) -> Cell:
    return Cell(str(row.invalid or ""), row.invalid, "warn")


def breaking_points(found: Sequence[BreakingPoint]) -> Table[BreakingPoint]:
    """Every search, what it found, and from how many trials."""
    return Table(
        "breaking_points",
        "Breaking points",
        [
            Column("search", "search", lambda p: f"{p.place}, {p.factor}", rank=0),
            Column("range", "range", lambda p: f"{level_number(p.low)} to {level_number(p.high)}", rank=0),
            Column("criterion", "criterion", lambda p: p.criterion, rank=0),
            Column("share", "share", lambda p: f"{100 * p.share:.0f} %", PLAIN, rank=0),
            Column("value", "breaking point", point, NUMBER, rank=0),
            Column("state", "state", lambda p: STATES[p.state], rank=0),
            Column("trials", "trials", lambda p: p.trials, PLAIN, rank=0),
        ],
        found,
        [words for p in found for words in p.words],
    )


def point(p: BreakingPoint) -> Cell:
    """The level that was found, with its interval."""
    low, high = (None, None) if p.interval is None else (p.interval.low, p.interval.high)
    return Cell(NUMBER.text(p.value), p.value, low=low, high=high, quantity=COUNT if p.integer else NUMBER)
