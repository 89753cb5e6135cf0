"""Tables of degradation curves and breaking points, beside their figures."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.run_page.elements import Column, Table, escape, facts, number, word
from perflab.report.run_page.runs import ReportRun
from perflab.report.run_page.words import plain
from perflab.report.tables.model import Cell
from perflab.results.curve import BreakingPoint, Curve, CurveLevel, Knee, Saturation, State
from perflab.results.trial import Median
from perflab.statistics.metrics import find
from perflab.units import format_confidence

_STATES: dict[State, str] = {
    "found": "found",
    "not_reached": "not reached",
    "below_low": "broken at the lowest level already",
    "not_monotone": "not monotone",
    "unsettled": "not settled",
    "not_producible": "the levels could not be produced",
}


def curves(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        for curve in run.summary.curves:
            title = _title(run, curve, len(runs) > 1)
            made.append(f"<h3>{escape(title)}</h3>{_curve(title, curve).html()}{_knees(title, curve).html()}")
    return "".join(made)


def breaking_points(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        for search in run.summary.breaking_points:
            title = _title(run, search, len(runs) > 1)
            made.append(f"<h3>{escape(title)}</h3>{facts(_found(search))}{_levels(title, search).html()}")
    return "".join(made)


def _title(run: ReportRun, part: Curve | BreakingPoint, several: bool) -> str:
    others = ", ".join(f"{path} = {plain(level)}" for path, level in part.others.items())
    words = [run.name if several else "", part.factor, part.variant, others]
    return " · ".join(word for word in words if word)


def _curve(title: str, curve: Curve) -> Table:
    columns = [
        Column(curve.factor),
        Column("n", title="trials that enter"),
        Column("success"),
        Column("invalid"),
        *(Column(_words(name)) for name in curve.metrics),
    ]
    rows = []
    for place, level in enumerate(curve.levels):
        cells = [_level(level.level), number(plain(level.n), level.n), _success(level), _invalid(level)]
        cells += [_point(name, of_metric.points[place]) for name, of_metric in curve.metrics.items()]
        rows.append(cells)
    return Table(
        f"{title}: levels", columns, rows, ["Medians over trials with their intervals; success with Wilson's."]
    )


def _words(name: str) -> str:
    metric = find(name)
    return name if metric is None else metric.words


def _level(level: float) -> Cell:
    return number(plain(level), level)


def _success(level: CurveLevel) -> Cell:
    if not level.judged:
        return number("–", None)
    share = level.successes / level.judged
    between = _percentages(level.success_low, level.success_high)
    return number(f"{level.successes}/{level.judged} = {100 * share:.0f} %{between}", share)


def _percentages(low: float | None, high: float | None) -> str:
    """ " [38, 96]", or "" where there is no interval."""
    return "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"


def _invalid(level: CurveLevel) -> Cell:
    n = level.invalid + level.harness_errors
    return number(str(n), n, "warn" if n else "")


def _point(name: str, point: Median | None) -> Cell:
    metric = find(name)
    if point is None or point.value is None or metric is None:
        return number("–", None)
    between = "" if point.low is None else f" [{metric.format(point.low)}, {metric.format(point.high)}]"
    return number(f"{metric.format(point.value)}{between}", point.value)


def _knees(title: str, curve: Curve) -> Table:
    rows = [
        [word(_words(name)), _place(of.knee, of.knee_reason), _place(of.saturation, of.saturation_reason)]
        for name, of in curve.metrics.items()
    ]
    kept = [row for row in rows if any(cell.known for cell in row[1:])]
    return Table(
        f"{title}: knee and saturation",
        [Column("metric", False), Column("knee", False), Column("saturation", False)],
        kept,
    )


def _place(found: Knee | Saturation | None, reason: str | None) -> Cell:
    if found is None:
        return Cell(plain(None), below=(reason or "",))
    return Cell(f"{plain(found.level)} [{plain(found.low)}, {plain(found.high)}]", found.level)


def _found(search: BreakingPoint) -> list[tuple[str, object]]:
    at, left = search.interval, search.left_out
    between = "" if at is None else f" [{plain(at.low)}, {plain(at.high)}] at {format_confidence(at.level)}"
    kinds = ((left.invalid, "invalid"), (left.harness_error, "harness error"))
    out = ", ".join(f"{n} {what}" for n, what in kinds if n)
    return [
        ("criterion", search.criterion),
        ("result", _STATES[search.state]),
        ("breaking point", None if search.value is None else f"{plain(search.value)}{between}"),
        ("is where the criterion is met in", f"{100 * search.share:.3g} % of trials"),
        ("searched", f"{plain(search.low)} to {plain(search.high)}, {search.scale}"),
        ("trials", f"{search.trials}{f'; left out: {out}' if out else ''}"),
        ("ended because", search.stopped),
    ]


def _levels(title: str, search: BreakingPoint) -> Table:
    columns = [Column(search.factor), Column("met"), Column("of"), Column("share"), Column("invalid")]
    rows = []
    for level in search.levels:
        share = level.met / level.n if level.n else None
        text = "–" if share is None else f"{100 * share:.0f} %{_percentages(level.low, level.high)}"
        rows.append(
            [
                _level(level.level),
                number(plain(level.met), level.met),
                number(str(level.n), level.n),
                number(text, share),
                number(plain(level.invalid), level.invalid),
            ]
        )
    return Table(f"{title}: levels that were tried", columns, rows)
