"""Sweeps on a terminal: a table with the levels of a factor as rows, and what the curve shows in sentences; breaking
points with what was tried at each level. docs/sweeps.md says how to read them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from perflab.report.table import print_rows
from perflab.report.tables import curves as tables
from perflab.results.curve import BreakingPoint, Curve, CurveMetric
from perflab.results.summary import Summary
from perflab.statistics.metrics import Metric
from perflab.statistics.selection import level_number, level_words
from perflab.units import format_confidence


def print_curves(out: Console, summary: Summary) -> None:
    """Each curve as a table and sentences; nothing where the summary has none."""
    curves = summary.curves
    for curve in curves:
        _print_curve(out, curve)
    if curves:
        of_metrics = [m for c in curves for m in c.metrics.values()]
        levels = {m.confidence for m in of_metrics if any(p and p.low is not None for p in m.points)}
        shown = f"[{format_confidence(*levels)} interval]" if levels else "(an interval takes 5 trials)"
        if of_metrics:
            out.print(Text(f"Medians over trials {shown}; shares with Wilson's interval", "dim"))
            out.print()


def print_breaking_points(out: Console, summary: Summary) -> None:
    """Each breaking point with the levels that were tried, then what that shows."""
    for found in summary.breaking_points:
        _print_breaking_point(out, found)


def _print_curve(out: Console, curve: Curve) -> None:
    metrics = tables.metrics_of(curve)
    leading = tables.leading_of(metrics)
    out.print(Text(_place(curve), "bold"))
    print_rows(out, tables.curve(curve, ""))
    for words in _sentences(curve, metrics, leading):
        out.print(Text(f"- {words.removesuffix('.')}"))
    out.print()


def _place(entry: Curve | BreakingPoint) -> str:
    """ "cyclonedds: message_flood.rate, at message_flood.publishers=2"."""
    others = ", ".join(f"{path}={level}" for path, level in entry.others.items())
    return f"{entry.variant}: {entry.factor}{f', at {others}' if others else ''}"


def _sentences(curve: Curve, metrics: Sequence[Metric], leading: Metric | None) -> list[str]:
    """All of the leading metric; of each other one line, with what is claimed of it; one of those that never vary."""
    said = {m.name: curve.metrics[m.name].words for m in metrics}
    same = [m for m in metrics if m is not leading and curve.metrics[m.name].course == "same"]
    found: list[str] = []
    for metric in sorted(metrics, key=lambda m: m is not leading):
        if metric is leading:
            found += said[metric.name]
        elif metric not in same and said[metric.name]:
            first = said[metric.name][0].removesuffix(".")
            found.append(f"{first}{_claims(curve.factor, curve.metrics[metric.name])}")
    if same:
        values = [f"{m.words} {m.format(_any_value(curve.metrics[m.name]))}" for m in same]
        found.append(f"the same in every trial: {', '.join(values)}")
    return found


def _claims(path: str, document: CurveMetric) -> str:
    """ "; knee at 60 % [45, 75]; within the margin of the last level from 2 on"."""
    text = ""
    if (knee := document.knee) is not None:
        between = f"{level_number(knee.low)}, {level_number(knee.high)}"
        text += f"; knee at {level_words(path, knee.level)} [{between}]"
    if (saturation := document.saturation) is not None:
        text += f"; within the margin of the last level from {level_words(path, saturation.level)} on"
    return text


def _any_value(document: CurveMetric) -> float | None:
    return next((point.value for point in document.points if point is not None), None)


def _print_breaking_point(out: Console, found: BreakingPoint) -> None:
    out.print(Text.assemble((_place(found), "bold"), f", {found.criterion}"))
    if found.levels:
        print_rows(out, tables.tried(found, ""))
    for words in found.words:
        out.print(Text(f"- {words.removesuffix('.')}", "" if found.state == "found" else "yellow"))
    out.print()
