"""Pictures of what processes used over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from perflab.report import axes
from perflab.report.captions import Draft, durations, left_out, not_single, seconds_axis, single, workloads
from perflab.report.figures import Axis, Figure, Key, Reference, Series, Target, Weight
from perflab.report.results import Trials
from perflab.results.run import IROBOT_LEGACY, PERFLAB, TrialTables
from perflab.statistics.target import machine_cpus
from perflab.units import NS_PER_S, format_count

MAX_LINES = 12  # processes in one picture
MARKS_PER_LINE = 6

_MACHINE = "cpu_percent_of_machine"  # of foreign runs alone

ValueOf = Callable[[Trials, TrialTables, dict[str, Any]], float | None]


@dataclass(frozen=True)
class Unit:
    """What an axis counts, and in what."""

    what: str
    name: str


@dataclass(frozen=True)
class _Line:
    """One process of a result: (seconds, value) of each of its trials."""

    group: int
    name: str
    result: Trials
    trials: list[list[tuple[float, float]]]


def cpu(results: Sequence[Trials], target: Target | None = None) -> Figure | None:
    """CPU use of each process between samples, in per cent of one CPU.

    Where a result knows its share of all CPUs only, all of them are drawn as that.
    """
    notes = []
    of: ValueOf
    if any(_knows_share_only(result) for result in results):
        unit, of = "% of all CPUs", _share_of_machine
        references = [] if target is None or target.cpu_percent is None else [_bound(target, target.cpu_percent, None)]
    else:
        unit, of = "% of one CPU", _share_of_one
        references = []
        if target is not None and target.cpu_percent is not None:
            counts = sorted({n for r in results if (n := machine_cpus(r.run.manifest)) is not None})
            references = [_bound(target, target.cpu_percent, n) for n in counts]
            if not counts:
                notes.append(f"{target.name} is a share of all CPUs, whose number is not recorded: no line.")
    if any(r.run.origin == IROBOT_LEGACY for r in results):
        notes.append("This version of irobot_benchmark records the mean CPU use since the start.")
    return _resource(results, "cpu", "CPU use of each process", Unit("CPU", unit), of, references, notes)


def _bound(target: Target, percent: float, cpus: int | None) -> Reference:
    """The line of a target for all CPUs, on an axis of one CPU where `cpus` says how many they are."""
    text = f"{target.name}: {percent:g} % of all"
    return Reference(f"{text} CPUs", percent) if cpus is None else Reference(f"{text} {cpus} CPUs", percent * cpus)


def _share_of_one(_: Trials, trial: TrialTables, row: dict[str, Any]) -> float | None:
    used, interval = row["cpu_interval_ns"], row["interval_ns"]
    if used is None or not interval or not _within(trial, row["at_ns"], interval):
        return None
    return 100.0 * float(used) / float(interval)


def _share_of_machine(result: Trials, trial: TrialTables, row: dict[str, Any]) -> float | None:
    if row.get(_MACHINE) is not None:
        return float(row[_MACHINE])
    one, cpus = _share_of_one(result, trial, row), machine_cpus(result.run.manifest)
    return None if one is None or cpus is None else one / cpus


def _within(trial: TrialTables, at_ns: int, interval_ns: int) -> bool:
    """Whether an interval lies in the measured part, give or take half of it: as in the means of the summary.

    What starting up and ending cost is in neither. Of a foreign run the measured part is not known.
    """
    if trial.started_ns is None:
        return True
    until_ns = trial.started_ns + round(trial.duration_s * NS_PER_S)
    return at_ns - interval_ns >= trial.started_ns - interval_ns // 2 and at_ns <= until_ns + interval_ns // 2


def _knows_share_only(result: Trials) -> bool:
    tables = [trial.resources for trial in result.trials]
    known = any(t["cpu_interval_ns"].null_count() < t.height for t in tables)
    return not known and any(_MACHINE in t.columns and t[_MACHINE].null_count() < t.height for t in tables)


def rss(results: Sequence[Trials], target: Target | None = None) -> Figure | None:
    """Resident memory of each process, in MiB."""

    def of(_: Trials, __: TrialTables, row: dict[str, Any]) -> float | None:
        kb = row["rss_kb"] if row["rss_kb"] is not None else row["rss_peak_kb"]
        return None if kb is None else kb / 1024

    references = []
    if target is not None and target.rss_kb is not None:
        references.append(Reference(f"{target.name}: {target.rss_kb / 1024:.4g} MiB", target.rss_kb / 1024))
    notes = []
    if any(r.run.origin != PERFLAB for r in results):
        notes.append("irobot_benchmark records the peak of the memory so far.")
    return _resource(results, "rss", "Resident memory of each process", Unit("RSS", "MiB"), of, references, notes)


def _resource(
    results: Sequence[Trials],
    name: str,
    title: str,
    unit: Unit,
    of: ValueOf,
    references: list[Reference],
    notes: list[str],
) -> Figure | None:
    """Lines over time, one per result and process: thin for single trials, thick for their mean."""
    lines: list[_Line] = []
    more = len(results)
    for group, result in enumerate(results):
        processes = list(dict.fromkeys(p for t in result.trials for p in t.resources["process"].to_list()))
        for process in processes:
            samples = [_samples(result, trial, process, of) for trial in result.trials]
            parts = [result.label] if len(results) > 1 else []
            parts += [process] if len(processes) > 1 or len(results) == 1 else []
            if any(samples):
                first = all(line.result is not result for line in lines)
                lines.append(_Line(group if first else more, ", ".join(parts), result, [s for s in samples if s]))
                more += not first
    if not lines:
        return None
    if len(lines) > MAX_LINES:
        notes.append(f"The {MAX_LINES} largest of {len(lines)} processes.")
        lines = sorted(lines, key=lambda line: _mean(line.trials), reverse=True)[:MAX_LINES]
    draft = Draft(notes=notes)
    for line in lines:
        alone = f"{line.name}, a single trial"
        draft.series += [_resource_line(alone, line.group, samples, unit, "thin") for samples in single(line.trials)]
        merged = line.trials[0] if len(line.trials) == 1 else _mean_line(line.trials)
        weight: Weight = "normal" if len(line.trials) == 1 else "thick"
        draft.series.append(_resource_line(line.name, line.group, merged, unit, weight))
    high = max([y for s in draft.series for y in s.y if y is not None] + [r.value for r in references])
    high = high * 1.08 or 1.0
    draft.notes += not_single(results) + left_out(results)
    count = sum(len(samples) for line in lines for samples in line.trials)
    several = any(len(line.trials) > 1 for line in lines)
    shown = [result for result in results if any(line.result is result for line in lines)]
    return Figure(
        name=name,
        title=f"{title} over time",
        subtitle=f"{workloads(shown)}: {format_count(count)} samples, {durations(shown)}",
        x=seconds_axis(max(x for s in draft.series for x in s.x if x is not None)),
        y=Axis(f"{unit.what} ({unit.name})", "linear", 0.0, high, axes.linear_ticks(0.0, high)),
        series=tuple(draft.series),
        groups=tuple((line.group, line.name) for line in lines),
        keys=(Key("mean of the trials", "solid", "thick"), Key("single trials", "solid", "thin")) if several else (),
        references=tuple(references),
        notes=tuple(draft.notes),
    )


def _samples(result: Trials, trial: TrialTables, process: str, of: ValueOf) -> list[tuple[float, float]]:
    """(seconds since the start of the measured part, value) of one process, from that start on."""
    start_ns = trial.started_ns or 0
    found = []
    for row in trial.resources.iter_rows(named=True):
        if row["process"] == process and row["at_ns"] is not None and row["at_ns"] >= start_ns:
            value = of(result, trial, row)
            if value is not None:
                found.append(((row["at_ns"] - start_ns) / NS_PER_S, value))
    return sorted(found)


def _mean_line(trials: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The mean over trials, at the instants of the first one that every trial has a sample near."""
    steps = [b[0] - a[0] for line in trials for a, b in pairwise(line)]
    near = float(np.median(steps)) / 2 if steps else math.inf
    merged = []
    for at, _ in trials[0]:
        values = []
        for line in trials:
            closest = min(line, key=lambda sample: abs(sample[0] - at))
            if abs(closest[0] - at) <= near:
                values.append(closest[1])
        if len(values) == len(trials):
            merged.append((at, sum(values) / len(values)))
    return merged


def _mean(trials: Sequence[Sequence[tuple[float, float]]]) -> float:
    values = [value for line in trials for _, value in line]
    return sum(values) / len(values)


def _resource_line(name: str, group: int, samples: Sequence[tuple[float, float]], unit: Unit, weight: Weight) -> Series:
    thin = weight == "thin"
    return Series(
        name=name,
        group=group,
        shape="line",
        x=tuple(x for x, _ in samples),
        y=tuple(y for _, y in samples),
        weight=weight,
        sign="none" if thin else "full",
        signed=tuple(axes.spread(len(samples), MARKS_PER_LINE, offset=group)),
        hover=tuple(f"{name}<br>at {x:.3g} s: {y:.4g} {unit.name}" for x, y in samples),
    )
