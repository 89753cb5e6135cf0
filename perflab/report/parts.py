"""What several pictures share: their words, their notes, their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from perflab.report import axes
from perflab.report.axes import Unit
from perflab.report.figures import Axis, Series
from perflab.report.results import ROUND_TRIP, Result, was_measured
from perflab.statistics.histogram import Histogram
from perflab.units import format_count, format_duration

WHAT = {
    "latency": "Latency, from publishing to the callback",
    "response": "Response, from the intended time to the callback",
    "publish_delay": "Publish delay, from the intended time to publishing",
    "publish_call": "Publish call, the duration of publish()",
    "dispatch": "Dispatch, from arrival to the callback",
    "work": "Work, the duration of the callback",
    "round_trip": "Round trip, from a request to the callback of its reply",
}


@dataclass
class Draft:
    """What is being collected for a figure."""

    series: list[Series] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def words(name: str) -> str:
    return name.replace("_", " ")


def workloads(results: Sequence[Result]) -> str:
    return ", ".join(dict.fromkeys(result.workload for result in results))


def durations(results: Sequence[Result]) -> str:
    """ "12 s", "3 trials of 12 s", "4 trials of 10 s to 12 s"."""
    trials = [trial for result in results for trial in result.trials]
    lengths = sorted({trial.duration_s for trial in trials})
    of = " to ".join(format_duration(s) for s in (lengths if len(lengths) == 1 else (lengths[0], lengths[-1])))
    return of if len(trials) == 1 else f"{len(trials)} trials of {of}"


def subtitle(counts: Sequence[tuple[Result, str, int | None]]) -> str:
    """The workloads, how many messages of the first figure the picture stands for, and how long they were measured."""
    shown = list({id(result): result for result, *_ in counts}.values())
    numbers = [n for _, name, n in counts if name == counts[0][1]]
    known = [n for n in numbers if n is not None]
    what = "replies" if counts[0][1] == ROUND_TRIP else "messages"
    messages = f"{format_count(sum(known))} {what}, " if len(known) == len(numbers) else ""
    return f"{workloads(shown)}: {messages}{durations(shown)}"


def left_out(results: Sequence[Result]) -> list[str]:
    """Which trials are not in the picture, or are in it although they did not succeed."""
    notes = []
    for result in results:
        bad = sorted({t.outcome for t in result.trials if t.outcome != "success"})
        if bad:
            notes.append(f"{result.label}: no trial succeeded ({words(', '.join(bad))}); this is what was recorded.")
        elif result.left_out:
            numbers_ = ", ".join(str(t.number) for t in result.left_out)
            why = words(", ".join(sorted({t.outcome for t in result.left_out})))
            notes.append(f"{result.label}: trial {numbers_} ({why}) is left out.")
    return notes


def unmeasured(results: Sequence[Result], measured: Sequence[str]) -> list[str]:
    """Results that are not in the picture although another one is."""
    return [
        f"{result.label}: no {words(name)} was measured."
        for result in results
        for name in measured
        if not was_measured(result, name)
    ]


def time_axis(words: str, unit: Unit, series: Sequence[Series], side: Literal["x", "y"]) -> Axis:
    values = [v for s in series for v in getattr(s, side) if v is not None]
    low, high = axes.log_range(values)
    return Axis(f"{words} ({unit.name})", "log", low, high, axes.log_ticks(low, high))


def seconds_axis(end_s: float) -> Axis:
    high = max(end_s, 1e-3) * 1.01
    return Axis("time (s)", "linear", 0.0, high, axes.linear_ticks(0.0, high, 8))


def groups(results: Sequence[Result], series: Sequence[Series]) -> tuple[tuple[int, str], ...]:
    """The results that are in a picture, by the groups of their series."""
    drawn = {s.group for s in series}
    return tuple((i, result.label) for i, result in enumerate(results) if i in drawn)


def low(h: Histogram) -> float:
    return float(max(h.min or 1, 1))
