"""Tables of degradation curves and breaking points, beside their figures."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.run_page.effects import plain
from perflab.report.run_page.html import escape, facts, table_html
from perflab.report.run_page.runs import ReportRun
from perflab.report.tables import curves as tables
from perflab.results.curve import BreakingPoint, Curve
from perflab.statistics.breaking_point_verdicts import STATES
from perflab.units import format_confidence


def curves(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        for curve in run.summary.curves:
            title = _title(run, curve, len(runs) > 1)
            levels = tables.curve(curve, f"{title}: levels").without(tables.BARS)
            knees = tables.knees(curve, f"{title}: knee and saturation")
            made.append(f"<h3>{escape(title)}</h3>{table_html(levels)}{table_html(knees)}")
    return "".join(made)


def breaking_points(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        for search in run.summary.breaking_points:
            title = _title(run, search, len(runs) > 1)
            levels = tables.tried(search, f"{title}: levels that were tried").without(tables.BARS)
            made.append(f"<h3>{escape(title)}</h3>{facts(_found(search))}{table_html(levels)}")
    return "".join(made)


def _title(run: ReportRun, part: Curve | BreakingPoint, several: bool) -> str:
    others = ", ".join(f"{path} = {plain(level)}" for path, level in part.others.items())
    words = [run.name if several else "", part.factor, part.variant, others]
    return " · ".join(word for word in words if word)


def _found(search: BreakingPoint) -> list[tuple[str, object]]:
    at, left = search.interval, search.left_out
    between = "" if at is None else f" [{plain(at.low)}, {plain(at.high)}] at {format_confidence(at.level)}"
    kinds = ((left.invalid, "invalid"), (left.harness_error, "harness error"))
    out = ", ".join(f"{n} {what}" for n, what in kinds if n)
    return [
        ("criterion", search.criterion),
        ("result", STATES[search.state]),
        ("breaking point", None if search.value is None else f"{plain(search.value)}{between}"),
        ("is where the criterion is met in", f"{100 * search.share:.3g} % of trials"),
        ("searched", f"{plain(search.low)} to {plain(search.high)}, {search.scale}"),
        ("trials", f"{search.trials}{f'; left out: {out}' if out else ''}"),
        ("ended because", search.stopped),
    ]
