"""The picture of a figure over time: statistics between checkpoints, and individual late messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.formats import checkpoints
from perflab.formats.checkpoints import Interval
from perflab.report.captions import WHAT, groups, left_out, not_single, single, subtitle, words
from perflab.report.figures import AT_BOTTOM, Figure, Key, Plot, Sign, Stroke, Weight, seconds, times
from perflab.report.results import Trials, quantile, timeline
from perflab.statistics.histogram import Histogram
from perflab.units import NS_PER_S, format_count, format_time

TOGETHER = 0.25  # share of an interval: how far its beginning may be from the end of the previous one
MAX_EVENTS = 1000  # late messages of a result drawn individually
MAX_ALL_EVENTS = 4000  # of all results, in equal parts

# The lines of every interval; for a single trial the first two, thin.
_STATISTICS: tuple[tuple[str, Stroke, Weight, Sign, Callable[[Histogram], float | None]], ...] = (
    ("p50", "solid", "thick", "full", lambda h: quantile(h, 50.0)),
    ("p99", "dashed", "normal", "hollow", lambda h: quantile(h, 99.0)),
    ("maximum", "dotted", "normal", "bar", lambda h: h.max),
)
_EVENTS: tuple[tuple[str, Sign, str], ...] = (
    ("late", "dot", "a late message"),
    ("too_late", "cross", "a too late message"),
    ("lost", "lost", "messages lost"),
)
_LATE, _LOST, _DROPPED = ("late", "too_late"), "lost", "events_dropped"  # codes of events
Event = tuple[float | None, str, dict[str, Any]]  # seconds from the start of the trial, the code, and the details


def time(results: Sequence[Trials], name: str) -> Figure | None:
    """p50, p99 and maximum between two checkpoints, and individual late messages."""
    lines: list[tuple[int, str, tuple[Interval, ...], bool]] = []
    counts: list[tuple[Trials, str, int | None]] = []
    for group, result in enumerate(results):
        trials = [timeline(result, trial, name) for trial in result.trials]
        merged = trials[0] if len(trials) == 1 else checkpoints.merge(trials)
        if count := sum(i.histogram.count for i in merged):
            heard = [
                (t, line) for t, line in zip(result.trials, trials, strict=True) if any(i.histogram.count for i in line)
            ]
            own = single(heard)
            lines += [(group, f"{result.label}, trial {trial.number}", line, False) for trial, line in own]
            lines.append((group, result.label, merged, True))
            counts.append((result, name, count))
    seconds_of = [(group, result, found) for group, result in enumerate(results) if (found := _seconds(result, name))]
    counts += [(result, name, found.count) for _, result, found in seconds_of]
    if not lines and not seconds_of:
        return None
    plot = Plot(seconds, times(words(name)))
    events = [list(_events(result)) for result in results]
    if name == "latency":
        most = min(MAX_EVENTS, MAX_ALL_EVENTS // len(results))
        for group, result in enumerate(results):
            _late(plot, group, result.label, events[group], most)  # below the lines
    for group, label, line, whole in lines:
        _steps(plot, label, group, line, whole)
    for group, result, found in seconds_of:
        _means(plot, result.label, group, found)
    for group, result in enumerate(results):
        _lost(plot, group, result.label, events[group])
    gaps = {i.end_ns - i.begin_ns for _, _, line, whole in lines if whole for i in line}
    if lines:
        plot.notes.append(f"Lines show intervals of {_span(gaps)} between checkpoints.")
    plot.notes += not_single(results)
    for program in dict.fromkeys(result.run.program for _, result, _ in seconds_of):
        plot.notes.append(
            f"{program} records means and extremes of each second, no percentiles and no single messages."
        )
    plot.notes += left_out(results, (name,))
    of_seconds = [Key(word, stroke, weight, sign) for word, stroke, weight, sign, _ in _OF_SECONDS[: 1 if lines else 2]]
    return plot.figure(
        f"{name}_time",
        f"{WHAT[name]}: over time",
        subtitle(counts),
        groups(results),
        [
            *(of_seconds if seconds_of else []),
            *(
                [Key("mean of single trials", "solid", "thin")]
                if any(found.singles for *_, found in seconds_of)
                else []
            ),
            *((Key(word, stroke, weight, sign) for word, stroke, weight, sign, _ in _STATISTICS) if lines else ()),
            *((Key(what, None, sign=sign) for _, sign, what in _EVENTS) if lines else ()),
            *([Key("p50 and p99 of single trials", "solid", "thin")] if lines else []),
        ],
    )


@dataclass(frozen=True)
class _Second:
    """Statistics of the messages between two instants, in nanoseconds."""

    begin_ns: int
    end_ns: int
    count: int
    mean: float | None
    maximum: float


@dataclass(frozen=True)
class _OfSeconds:
    """Statistics of each second from a result's files, over its processes: of all trials together, and of single
    ones."""

    whole: Sequence[_Second]
    singles: Sequence[tuple[int, Sequence[_Second]]]

    @property
    def count(self) -> int:
        return sum(second.count for second in self.whole)


# The lines of each second.
_OF_SECONDS: tuple[tuple[str, Stroke, Weight, Sign, Callable[[_Second], float | None]], ...] = (
    ("mean", "solid", "normal", "full", lambda s: s.mean),
    ("maximum", "dotted", "normal", "bar", lambda s: s.maximum),
)


def _seconds(result: Trials, name: str) -> _OfSeconds | None:
    """None if the files of a result have no statistics of single seconds."""
    trials = []
    for trial in result.trials:
        if trial.seconds is not None:
            own = trial.seconds.filter(trial.seconds["figure"] == name)
            rows = own.select("begin_ns", "end_ns", "count", "mean", "max").iter_rows()
            trials.append((trial.number, _together(_Second(b, e, n or 0, mean, most) for b, e, n, mean, most in rows)))
    whole = _together(second for _, line in trials for second in line)
    return _OfSeconds(whole, single(trials)) if whole else None


def _together(seconds: Iterable[_Second]) -> list[_Second]:
    """Seconds of several processes or trials as one series: those that begin at almost the same time are merged."""
    grouped: list[list[_Second]] = []
    for second in sorted(seconds, key=lambda s: (s.begin_ns, s.end_ns)):
        first = grouped[-1][0] if grouped else None
        if first is not None and second.begin_ns - first.begin_ns <= TOGETHER * (first.end_ns - first.begin_ns):
            grouped[-1].append(second)
        else:
            grouped.append([second])
    return [_of_all(group) for group in grouped]


def _of_all(group: Sequence[_Second]) -> _Second:
    known = [(second.mean, second.count) for second in group if second.mean is not None and second.count]
    count = sum(n for _, n in known)
    return _Second(
        min(second.begin_ns for second in group),
        max(second.end_ns for second in group),
        sum(second.count for second in group),
        sum(mean * n for mean, n in known) / count if count else None,
        max(second.maximum for second in group),
    )


def _means(plot: Plot, label: str, group: int, found: _OfSeconds) -> None:
    """Mean and maximum of each second as steps, with signs at their centres; for single trials, thin means."""
    for number, line in found.singles:
        steps = _stairs([(s, s.mean) for s in line])
        plot.line(f"{label}, trial {number}, mean", group, *zip(*steps, strict=True), weight="thin")
    for word, stroke, weight, sign, of in _OF_SECONDS:
        name = f"{label}, {word}"
        known = [(second, value) for second in found.whole if (value := of(second)) is not None]
        if not known:
            continue
        plot.line(name, group, *zip(*_stairs(known), strict=True), stroke=stroke, weight=weight)
        middles = [
            (
                (s.begin_ns + s.end_ns) / 2 / NS_PER_S,
                value,
                f"{name} {format_time(max(value, 1.0))}<br>{s.begin_ns / NS_PER_S:.3g} to {s.end_ns / NS_PER_S:.3g} s, "
                f"{format_count(s.count)} messages",
            )
            for s, value in known
        ]
        plot.points(name, group, middles, sign=sign)


def _stairs(values: Iterable[tuple[_Second, float | None]]) -> list[tuple[float | None, float | None]]:
    """A line from each second to the next, with a gap if there is none between."""
    steps: list[tuple[float | None, float | None]] = []
    before: float | None = None
    for second, value in values:
        if value is None:
            continue
        begin, end = second.begin_ns / NS_PER_S, second.end_ns / NS_PER_S
        if before is not None and abs(begin - before) > TOGETHER * (end - begin):
            steps.append((None, None))
            before = None
        steps += [(begin if before is None else before, value), (end, value)]
        before = end
    return steps


def _steps(plot: Plot, label: str, group: int, line: Sequence[Interval], whole: bool) -> None:
    """p50, p99 and maximum per interval as steps, with signs at their centres; for a single trial, thin p50 and p99."""
    filled = [(i.begin_ns / NS_PER_S, i.end_ns / NS_PER_S, i.histogram) for i in line if i.histogram.count]
    for word, stroke, weight, sign, of in _STATISTICS[: 3 if whole else 2]:
        name = f"{label}, {word}"
        steps: list[tuple[float | None, float | None]] = []
        middles = []
        for begin, end, counted in filled:
            value = of(counted) or 0.0
            before = steps[-1][0] if steps else None
            # Those of short trials overlap: a line continues where one begins as the previous one ends.
            if before is not None and abs(begin - before) > TOGETHER * (end - begin):
                steps.append((None, None))
                before = None
            steps += [(begin if before is None else before, value), (end, value)]
            between = f"{begin:.3g} to {end:.3g} s, {format_count(counted.count)} messages"
            middles.append(((begin + end) / 2, value, f"{name} {format_time(max(value, 1.0))}<br>{between}"))
        plot.line(name, group, *zip(*steps, strict=True), stroke=stroke, weight=weight if whole else "thin")
        if whole:
            plot.points(name, group, middles, sign=sign)


def _late(plot: Plot, group: int, label: str, events: Sequence[Event], most: int) -> None:
    """Late and too late messages of the trials shown; the slowest if there are very many."""
    found = [
        (at, float(latency_ns), code)
        for at, code, details in events
        if at is not None and code in _LATE and (latency_ns := details.get("latency_ns")) is not None
    ]
    if any(code == _DROPPED for _, code, _ in events):
        plot.notes.append(f"{label}: more messages were late than could be recorded individually.")
    if len(found) > most:
        plot.notes.append(f"{label}: the slowest {format_count(most)} of {format_count(len(found))} late messages.")
        found = sorted(sorted(found, key=lambda event: event[1], reverse=True)[:most])
    for code, sign, _ in _EVENTS:
        marks = [
            (at, ns, f"{label}<br>{words(code)} at {at:.4g} s: {format_time(max(ns, 1.0))}")
            for at, ns, own in found
            if own == code
        ]
        plot.points(f"{label}, {words(code)}", group, marks, sign=sign)


def _lost(plot: Plot, group: int, label: str, events: Sequence[Event]) -> None:
    """When losses were noticed, along the bottom: a lost message has no latency."""
    found = [(at, details.get("count")) for at, code, details in events if at is not None and code == _LOST]
    found = sorted(found, key=lambda event: event[0])[:MAX_EVENTS]
    marks = [(at, AT_BOTTOM, f"{label}<br>{format_count(n)} lost, noticed at {at:.4g} s") for at, n in found]
    plot.points(f"{label}, lost", group, marks, sign="lost")


def _events(result: Trials) -> Iterator[Event]:
    """Late and lost messages, and whether some were not recorded."""
    for trial in result.trials:
        known = trial.events.filter(trial.events["code"].is_in((*_LATE, _LOST, _DROPPED)))
        for at_ns, code, text in known.select("at_ns", "code", "details").iter_rows():
            try:
                details = json.loads(text or "{}")
            except ValueError:
                details = {}
            at = None if at_ns is None else (at_ns - (trial.started_ns or 0)) / NS_PER_S
            yield at, code, details if isinstance(details, dict) else {}


def _span(lengths_ns: Iterable[int]) -> str:
    """ "5 s", "1 to 5 s": lengths of intervals, to a tenth of a second."""
    rounded = sorted({round(ns / NS_PER_S, 1) for ns in lengths_ns})
    if not rounded:
        return "0 s"
    low, high = rounded[0], rounded[-1]
    return f"{high:g} s" if low == high else f"{low:g} to {high:g} s"
