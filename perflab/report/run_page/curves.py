"""Tables of degradation curves and breaking points, beside their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.report.run_page.elements import Cell, Column, Table, escape, facts, number, word
from perflab.report.run_page.runs import ReportRun
from perflab.report.run_page.words import metric_of, plain
from perflab.units import format_confidence

Json = dict[str, Any]

_STATES = {
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
        for curve in run.summary.get("curves") or ():
            title = _title(run, curve, len(runs) > 1)
            made.append(f"<h3>{escape(title)}</h3>{_curve(title, curve).html()}{_knees(title, curve).html()}")
    return "".join(made)


def breaking_points(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        for search in run.summary.get("breaking_points") or ():
            title = _title(run, search, len(runs) > 1)
            made.append(f"<h3>{escape(title)}</h3>{facts(_found(search))}{_levels(title, search).html()}")
    return "".join(made)


def _title(run: ReportRun, part: Json, several: bool) -> str:
    others = ", ".join(f"{path} = {plain(level)}" for path, level in (part.get("others") or {}).items())
    words = [run.name if several else "", str(part["factor"]), str(part.get("variant") or ""), others]
    return " · ".join(word for word in words if word)


def _curve(title: str, curve: Json) -> Table:
    names = list(curve["metrics"])
    columns = [
        Column(str(curve["factor"])),
        Column("n", title="trials that enter"),
        Column("success"),
        Column("invalid"),
        *(Column(_words(name)) for name in names),
    ]
    rows = []
    for place, level in enumerate(curve["levels"]):
        cells = [
            _level(level["level"]),
            number(plain(level.get("n")), level.get("n")),
            _success(level),
            _invalid(level),
        ]
        for name in names:
            points = curve["metrics"][name]["points"]
            cells.append(_point(name, points[place] if place < len(points) else None))
        rows.append(cells)
    return Table(
        f"{title}: levels", columns, rows, ["Medians over trials with their intervals; success with Wilson's."]
    )


def _words(name: str) -> str:
    metric = metric_of(name)
    return name if metric is None else metric.words


def _level(level: Any) -> Cell:
    return number(plain(level), level if isinstance(level, int | float) else None)


def _success(level: Mapping[str, Any]) -> Cell:
    judged, successes = level.get("judged"), level.get("successes")
    if not judged or successes is None:
        return number("–", None)
    low, high = level.get("success_low"), level.get("success_high")
    between = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
    return number(f"{successes}/{judged} = {100 * successes / judged:.0f} %{between}", successes / judged)


def _invalid(level: Mapping[str, Any]) -> Cell:
    n = (level.get("invalid") or 0) + (level.get("harness_errors") or 0)
    return number(str(n), n, "warn" if n else "")


def _point(name: str, point: Json | None) -> Cell:
    metric = metric_of(name)
    if point is None or point.get("value") is None or metric is None:
        return number("–", None)
    between = "" if point.get("low") is None else f" [{metric.format(point['low'])}, {metric.format(point['high'])}]"
    return number(f"{metric.format(point['value'])}{between}", point["value"])


def _knees(title: str, curve: Json) -> Table:
    rows = []
    for name, of_metric in curve["metrics"].items():
        cells = [word(_words(name))]
        for kind in ("knee", "saturation"):
            found, reason = of_metric.get(kind), of_metric.get(f"{kind}_reason")
            level = None if found is None else found.get("level")
            between = (
                "" if level is None or found.get("low") is None else f" [{plain(found['low'])}, {plain(found['high'])}]"
            )
            cells.append(Cell(f"{plain(level)}{between}", level, below=(str(reason or ""),) if level is None else ()))
        rows.append(cells)
    kept = [row for row in rows if any(cell.known for cell in row[1:])]
    return Table(
        f"{title}: knee and saturation",
        [Column("metric", False), Column("knee", False), Column("saturation", False)],
        kept,
    )


def _found(search: Json) -> list[tuple[str, object]]:
    interval = search.get("interval")
    value = search.get("value")
    between = (
        ""
        if not interval
        else f" [{plain(interval['low'])}, {plain(interval['high'])}] at {format_confidence(interval['level'])}"
    )
    left = search.get("left_out") or {}
    out = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in left.items() if n)
    return [
        ("criterion", search.get("criterion")),
        ("result", _STATES.get(search["state"], search["state"])),
        ("breaking point", None if value is None else f"{plain(value)}{between}"),
        (
            "is where the criterion is met in",
            None if search.get("share") is None else f"{100 * search['share']:.3g} % of trials",
        ),
        ("searched", f"{plain(search.get('low'))} to {plain(search.get('high'))}, {search.get('scale')}"),
        ("trials", f"{search.get('trials')}{f'; left out: {out}' if out else ''}"),
        ("ended because", search.get("stopped")),
    ]


def _levels(title: str, search: Json) -> Table:
    columns = [Column(str(search["factor"])), Column("met"), Column("of"), Column("share"), Column("invalid")]
    rows = []
    for level in search.get("levels") or ():
        n, met = level.get("n") or 0, level.get("met")
        low, high = level.get("low"), level.get("high")
        between = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
        share = None if not n or met is None else met / n
        text = "–" if share is None else f"{100 * share:.0f} %{between}"
        invalid = level.get("invalid")
        rows.append(
            [
                _level(level["level"]),
                number(plain(met), met),
                number(str(n), n),
                number(text, share),
                number(plain(invalid), invalid),
            ]
        )
    return Table(f"{title}: levels that were tried", columns, rows)
