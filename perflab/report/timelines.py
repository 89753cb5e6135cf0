"""The picture of a figure over time: what was counted between checkpoints, and late messages one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perflab.formats import checkpoints
from perflab.formats.checkpoints import Interval
from perflab.report import axes
from perflab.report.axes import Unit
from perflab.report.captions import (
    WHAT,
    Draft,
    groups,
    left_out,
    low,
    not_single,
    seconds_axis,
    single,
    subtitle,
    time_axis,
    unmeasured,
    words,
)
from perflab.report.figures import Figure, Key, Series, Sign, Stroke, Weight, points
from perflab.report.results import Trials, timeline
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.units import NS_PER_S, format_count, format_time

MAX_EVENTS = 1000  # late messages of a result drawn one by one
MAX_ALL_EVENTS = 4000  # of all results, in equal parts

_EVENT_KEYS: dict[Sign, str] = {"dot": "a late message", "cross": "a too late message", "lost": "messages lost"}

Event = tuple[float, float, str]  # seconds, latency in ns, code


def time(results: Sequence[Trials], name: str) -> Figure | None:
    """p50, p99 and maximum of what was counted between two checkpoints, and late messages one by one."""
    lines: list[tuple[int, str, tuple[Interval, ...], bool]] = []
    merged_lines: list[tuple[Trials, tuple[Interval, ...]]] = []
    for group, result in enumerate(results):
        trials = [timeline(result, trial, name) for trial in result.trials]
        merged = trials[0] if len(trials) == 1 else checkpoints.merge(trials)
        if not any(i.histogram.count for i in merged):
            continue
        for trial, line in single(list(zip(result.trials, trials, strict=True))):
            lines.append((group, f"{result.label}, trial {trial.number}", line, False))
        lines.append((group, result.label, merged, True))
        merged_lines.append((result, merged))
    if not lines:
        return None
    draft = Draft()
    most = min(MAX_EVENTS, MAX_ALL_EVENTS // len(results))
    events = [_events(result, draft, most) for result in results] if name == "latency" else []
    values: list[float] = [low(i.histogram) for *_, line, _ in lines for i in line if i.histogram.count]
    values += [i.histogram.max for *_, line, _ in lines for i in line if i.histogram.max is not None]
    values += [latency for found in events for _, latency, _ in found]
    unit = axes.time_unit(values)
    for group, found in enumerate(events):
        draft.series += _event_series(results[group].label, group, found, unit)  # below the lines
    for group, label, line, whole in lines:
        draft.series += _steps(label, group, line, unit, whole)
    end_s = max(x for s in draft.series for x in s.x if x is not None)
    y = time_axis(words(name), unit, draft.series, "y")
    draft.series += _lost_series(results, y.low * (y.high / y.low) ** 0.015)
    gaps = {i.end_ns - i.begin_ns for _, _, line, whole in lines if whole for i in line}
    draft.notes += [f"Lines show intervals of {_span(gaps)} between checkpoints.", *not_single(results)]
    draft.notes += left_out(results)
    draft.notes += unmeasured(results, (name,))
    signs = {s.sign for s in draft.series}
    keys = [
        Key("p50", "solid", "thick", "full"),
        Key("p99", "dashed", "normal", "hollow"),
        Key("maximum", "dotted", "normal", "bar"),
        *(Key(label, None, sign=sign) for sign, label in _EVENT_KEYS.items() if sign in signs),
    ]
    if any(not whole for *_, whole in lines):
        keys.append(Key("p50 and p99 of single trials", "solid", "thin"))
    return Figure(
        name=f"{name}_time",
        title=f"{WHAT[name]}: over time",
        subtitle=subtitle([(r, name, sum(i.histogram.count for i in line)) for r, line in merged_lines]),
        x=seconds_axis(end_s),
        y=y,
        series=tuple(draft.series),
        groups=groups(results, draft.series),
        keys=tuple(keys),
        notes=tuple(draft.notes),
    )


def _steps(label: str, group: int, line: Sequence[Interval], unit: Unit, whole: bool) -> list[Series]:
    """p50, p99 and maximum per interval as steps, with signs at their middles; of a single trial thin p50 and p99."""
    filled = [i for i in line if i.histogram.count]
    statistics: list[tuple[str, Stroke, Weight, Sign, Callable[[Histogram], float | None]]] = [
        ("p50", "solid", "thick", "full", lambda h: _quantile(h, 50.0)),
        ("p99", "dashed", "normal", "hollow", lambda h: _quantile(h, 99.0)),
        ("maximum", "dotted", "normal", "bar", lambda h: h.max),
    ]
    series = []
    for word, stroke, weight, sign, of in statistics[: 3 if whole else 2]:
        values = [max(of(i.histogram) or 0.0, 1.0) / unit.ns for i in filled]
        xs: list[float | None] = []
        ys: list[float | None] = []
        previous_end: float | None = None
        for interval, value in zip(filled, values, strict=True):
            begin, end = interval.begin_ns / NS_PER_S, interval.end_ns / NS_PER_S
            if previous_end is not None and begin > previous_end:
                xs.append(None)
                ys.append(None)
            xs += [begin, end]
            ys += [value, value]
            previous_end = end
        name = f"{label}, {word}"
        series.append(
            Series(name, group, "line", tuple(xs), tuple(ys), stroke=stroke, weight=weight if whole else "thin")
        )
        if whole:
            middles = [
                (
                    (i.begin_ns + i.end_ns) / 2 / NS_PER_S,
                    value,
                    f"{name} {format_time(value * unit.ns)}<br>{i.begin_ns / NS_PER_S:.3g} to "
                    f"{i.end_ns / NS_PER_S:.3g} s, {format_count(i.histogram.count)} messages",
                )
                for i, value in zip(filled, values, strict=True)
            ]
            series.append(points(name, group, middles, sign=sign))
    return series


def _quantile(h: Histogram, percentile: float) -> float | None:
    value = hg.value_at_percentile(h, percentile)
    return value if value is None or h.max is None else min(value, h.max)


def _events(result: Trials, draft: Draft, most: int) -> list[Event]:
    """Late and too late messages of the trials shown; the slowest where there are very many."""
    found: list[Event] = []
    dropped = 0
    for trial in result.trials:
        start_ns = trial.started_ns or 0
        for row in trial.events.iter_rows(named=True):
            dropped += row["code"] == "events_dropped"
            if row["code"] not in ("late", "too_late") or row["at_ns"] is None:
                continue
            latency_ns = _details(row).get("latency_ns")
            if latency_ns is not None:
                found.append(((row["at_ns"] - start_ns) / NS_PER_S, float(latency_ns), str(row["code"])))
    if dropped:
        draft.notes.append(f"{result.label}: more messages were late than could be recorded one by one.")
    if len(found) > most:
        draft.notes.append(
            f"{result.label}: the slowest {format_count(most)} of {format_count(len(found))} late messages."
        )
        found = sorted(sorted(found, key=lambda e: e[1], reverse=True)[:most])
    return found


def _details(row: dict[str, Any]) -> dict[str, Any]:
    try:
        details = json.loads(row["details"]) if row["details"] else {}
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}


def _event_series(label: str, group: int, events: Sequence[Event], unit: Unit) -> list[Series]:
    series = []
    signs: tuple[tuple[str, Sign], ...] = (("late", "dot"), ("too_late", "cross"))
    for code, sign in signs:
        word = words(code)
        found = [
            (x, max(ns, 1.0) / unit.ns, f"{label}<br>{word} at {x:.4g} s: {format_time(max(ns, 1.0))}")
            for x, ns, c in events
            if c == code
        ]
        if found:
            series.append(points(f"{label}, {word}", group, found, sign=sign))
    return series


def _lost_series(results: Sequence[Trials], bottom: float) -> list[Series]:
    """When losses were noticed, along the bottom: a lost message has no latency."""
    series = []
    for group, result in enumerate(results):
        found = [
            ((row["at_ns"] - (trial.started_ns or 0)) / NS_PER_S, _details(row).get("count"))
            for trial in result.trials
            for row in trial.events.iter_rows(named=True)
            if row["code"] == "lost" and row["at_ns"] is not None
        ]
        found = sorted(found, key=lambda e: e[0])[:MAX_EVENTS]
        if found:
            rows = [(x, bottom, f"{result.label}<br>{format_count(n)} lost, noticed at {x:.4g} s") for x, n in found]
            series.append(points(f"{result.label}, lost", group, rows, sign="lost"))
    return series


def _span(lengths_ns: Iterable[int]) -> str:
    """ "5 s", "1 to 5 s": of intervals, to a tenth of a second."""
    rounded = sorted({round(ns / NS_PER_S, 1) for ns in lengths_ns})
    if not rounded:
        return "0 s"
    low, high = rounded[0], rounded[-1]
    return f"{high:g} s" if low == high else f"{low:g} to {high:g} s"
