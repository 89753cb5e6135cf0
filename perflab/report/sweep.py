"""Sweeps on a terminal: a table with the levels of a factor as rows, and what the curve shows in sentences; breaking
points with what was tried at each level. docs/sweeps.md says how to read them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from perflab.report.table import Column, print_table
from perflab.results.curve import BreakingPoint, Curve, CurveLevel, CurveMetric, LevelTried
from perflab.results.summary import Summary
from perflab.results.trial import Median
from perflab.statistics.curves_words import SAME, level_number, level_words
from perflab.statistics.metrics import Metric, find, named
from perflab.units import format_confidence

BAR_WIDTH = 10
_PARTS = " ▏▎▍▌▋▊▉█"

# Which columns stay on a narrow terminal: the lower, the longer.
_RANKS = {
    "latency.p99": 1, "round_trip.p99": 2, "run_time": 2, "lost": 3,
    "response.p99": 5, "latency.p50": 6, "cpu_percent": 7,
}  # fmt: skip
_SUCCESS_RANK, _LEFT_OUT_RANK, _BAR_RANK, _N_RANK, _OTHER_RANK = 2, 3, 4, 8, 9
# Of which there are a bar and all sentences: the first of these that the curve has.
_LEADING = ("latency.p99", "round_trip.p99", "run_time")

_STATES = {
    "found": "",
    "not_reached": "yellow",
    "below_low": "yellow",
    "not_monotone": "yellow",
    "unsettled": "yellow",
    "not_producible": "yellow",
}


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
    levels, path = curve.levels, curve.factor
    metrics = [named(name) for name in curve.metrics if find(name) is not None]
    leading = _leading(metrics)
    columns = [
        Column(path.rpartition(".")[2], 0, [Text(level_words(path, entry.level)) for entry in levels]),
        Column("n", _N_RANK, [Text(str(entry.n)) for entry in levels]),
        Column("success", _SUCCESS_RANK, [_success(entry) for entry in levels]),
    ]
    if any(entry.invalid or entry.harness_errors for entry in levels):
        columns.append(Column("left out", _LEFT_OUT_RANK, [_left_out(entry) for entry in levels]))
    for metric in metrics:
        points = curve.metrics[metric.name].points
        rank = _RANKS.get(metric.name, _OTHER_RANK)
        columns.append(Column(metric.words, rank, [_point(metric, point) for point in points]))
        if metric is leading:
            columns.append(Column("", _BAR_RANK, _bars(points), right=False, called="bars"))
    out.print(Text(_place(curve), "bold"))
    print_table(out, columns)
    for words in _sentences(curve, metrics, leading):
        out.print(Text(f"- {words.removesuffix('.')}"))
    out.print()


def _place(entry: Curve | BreakingPoint) -> str:
    """ "cyclonedds: message_flood.rate, at message_flood.publishers=2"."""
    others = ", ".join(f"{path}={level}" for path, level in entry.others.items())
    return f"{entry.variant}: {entry.factor}{f', at {others}' if others else ''}"


def _leading(metrics: Sequence[Metric]) -> Metric | None:
    named = [m for name in _LEADING for m in metrics if m.name == name]
    return named[0] if named else metrics[0] if metrics else None


def _success(level: CurveLevel) -> Text:
    text = f"{level.successes}/{level.judged}"
    if level.success_low is not None and level.success_high is not None:
        text += f" [{100 * level.success_low:.0f}, {100 * level.success_high:.0f} %]"
    return Text(text, "red" if level.successes < level.judged else "")


def _left_out(level: CurveLevel) -> Text:
    """ "1 invalid", "1 harness error": what is neither success nor failure."""
    return Text(_counted(level.invalid, level.harness_errors, "invalid"), "yellow")


def _counted(invalid: int, harness_errors: int, word: str) -> str:
    """ "2 invalid, 1 harness error"; `word` is what the first ones are called."""
    plural = "" if invalid == 1 or word == "invalid" else "s"
    parts = [f"{invalid} {word}{plural}"] if invalid else []
    parts += [f"{harness_errors} harness error{'' if harness_errors == 1 else 's'}"] if harness_errors else []
    return ", ".join(parts)


def _point(metric: Metric, point: Median | None) -> Text:
    """ "502 [497, 511] µs"; the unit once where all have the same one."""
    if point is None:
        return Text("–", "dim")
    if point.low is None or point.low == point.high == point.value:
        return Text(metric.format(point.value))
    words = [metric.format(value) for value in (point.value, point.low, point.high)]
    numbers, units = zip(*(word.partition(" ")[::2] for word in words), strict=True)
    if metric.unit and len(set(units)) == 1:
        return Text(f"{numbers[0]} [{numbers[1]}, {numbers[2]}] {units[0]}")
    return Text(f"{words[0]} [{words[1]}, {words[2]}]")


def _bars(points: Sequence[Median | None]) -> list[Text]:
    """As long as the values are large, from 0 on: a bar twice as long is a value twice as large."""
    values = [None if point is None else point.value for point in points]
    largest = max((v for v in values if v is not None), default=0.0)
    return [Text("" if v is None or v <= 0 else _bar(v / largest) or _PARTS[1]) for v in values]


def _bar(share: float) -> str:
    eighths = round(8 * BAR_WIDTH * min(1.0, max(0.0, share)))
    return "█" * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")


def _sentences(curve: Curve, metrics: Sequence[Metric], leading: Metric | None) -> list[str]:
    """All of the leading metric; of each other one line, with what is claimed of it; one of those that never vary."""
    said = {m.name: curve.metrics[m.name].words for m in metrics}
    same = [m for m in metrics if m is not leading and any(SAME in words for words in said[m.name])]
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
    path, levels = found.factor, sorted(found.levels, key=lambda entry: float(entry.level))
    out.print(Text.assemble((_place(found), "bold"), f", {found.criterion}"))
    if levels:
        bars = [Text(_bar(entry.met / entry.n) if entry.n else "") for entry in levels]
        some_invalid = any(entry.invalid for entry in levels)
        columns = [
            Column(_header(found), 0, [Text(level_words(path, entry.level)) for entry in levels]),
            Column("met", 0, [Text(f"{entry.met}/{entry.n}") for entry in levels]),
            Column("", 2, bars, right=False, called="bars"),
            Column("share", 1, [_share(entry) for entry in levels]),
        ]
        if some_invalid:
            columns.append(Column("invalid", 3, [Text(str(entry.invalid or ""), "yellow") for entry in levels]))
        print_table(out, columns)
    for words in found.words:
        out.print(Text(f"- {words.removesuffix('.')}", _STATES.get(found.state, "")))
    out.print()


def _header(found: BreakingPoint) -> str:
    """ "rate", "delay (ms)"."""
    return f"{found.factor.rpartition('.')[2]}{f' ({unit})' if (unit := found.unit) else ''}"


def _share(entry: LevelTried) -> Text:
    if not entry.n:
        return Text("–", "dim")
    low, high = entry.low, entry.high
    between = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
    return Text(f"{100 * entry.met / entry.n:.0f} %{between}")
