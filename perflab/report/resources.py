"""Pictures of the processes' resources over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from perflab.report import axes
from perflab.report.captions import durations, left_out, not_single, single, workloads
from perflab.report.figures import Figure, Key, Plot, Reference, Target, Weight, from_zero, seconds
from perflab.report.results import Trials
from perflab.results.run import IROBOT_LEGACY, PERFLAB, TrialTables
from perflab.statistics.target import machine_cpus
from perflab.units import NS_PER_S, format_count

MAX_LINES = 12  # processes in one picture
MARKS_PER_LINE = 6

_MACHINE = "cpu_percent_of_machine"  # only for foreign runs

Samples = list[tuple[float, float]]  # (seconds since the start of the measured part, value)
ValueOf = Callable[[Trials, TrialTables, dict[str, Any]], float | None]


@dataclass(frozen=True)
class _Line:
    """One process of a result, with the samples of each of its trials."""

    group: int
    name: str
    result: Trials
    trials: list[Samples]

    @property
    def mean(self) -> float:
        values = [value for samples in self.trials for _, value in samples]
        return sum(values) / len(values)


def cpu(results: Sequence[Trials], target: Target | None = None) -> Figure | None:
    """CPU use of each process between samples, in percent of one CPU.

    If a result only knows its share of all CPUs, that is drawn for all results.
    """
    notes, references = [], []
    of_all = any(_knows_share_only(result) for result in results)
    if target is not None and target.cpu_percent is not None:
        bound, text = target.cpu_percent, f"{target.name}: {target.cpu_percent:g} % of all"
        counts = sorted({n for r in results if (n := machine_cpus(r.run.manifest.host)) is not None})
        if of_all:
            references = [Reference(f"{text} CPUs", bound)]
        elif counts:
            references = [Reference(f"{text} {n} CPUs", bound * n) for n in counts]
        else:
            notes = [f"{target.name} is a share of all CPUs, whose number is not recorded: no line."]
    if any(r.run.origin == IROBOT_LEGACY for r in results):
        notes.append("This version of irobot_benchmark records the mean CPU use since the start.")
    unit, of = ("% of all CPUs", _share_of_machine) if of_all else ("% of one CPU", _share_of_one)
    return _over_time(results, ("cpu", "CPU use of each process", "CPU", unit), of, references, notes)


def _share_of_one(_: Trials, trial: TrialTables, row: dict[str, Any]) -> float | None:
    used, interval = row["cpu_interval_ns"], row["interval_ns"]
    if used is None or not interval or not _within(trial, row["at_ns"], interval):
        return None
    return 100.0 * float(used) / float(interval)


def _share_of_machine(result: Trials, trial: TrialTables, row: dict[str, Any]) -> float | None:
    if row.get(_MACHINE) is not None:
        return float(row[_MACHINE])
    one, cpus = _share_of_one(result, trial, row), machine_cpus(result.run.manifest.host)
    return None if one is None or cpus is None else one / cpus


def _within(trial: TrialTables, at_ns: int, interval_ns: int) -> bool:
    """Whether an interval lies in the measured part, with a tolerance of half of it, as for the means of the summary.

    Both leave out the cost of starting up and ending. The measured part of a foreign run is unknown.
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
    programs = dict.fromkeys(r.run.program for r in results if r.run.origin != PERFLAB)
    notes = [f"{program} records the peak of the memory so far." for program in programs]
    return _over_time(results, ("rss", "Resident memory of each process", "RSS", "MiB"), of, references, notes)


def _over_time(
    results: Sequence[Trials],
    words: tuple[str, str, str, str],  # name, title, quantity of the axis, its unit
    of: ValueOf,
    references: Sequence[Reference],
    notes: list[str],
) -> Figure | None:
    """Lines over time, one per result and process: thin for single trials, thick for their mean."""
    name, title, what, unit = words
    lines = _lines(results, of)
    if not lines:
        return None
    if len(lines) > MAX_LINES:
        notes.append(f"The {MAX_LINES} largest of {len(lines)} processes.")
        lines = sorted(lines, key=lambda line: line.mean, reverse=True)[:MAX_LINES]
    plot = Plot(seconds, from_zero(f"{what} ({unit})"), notes=[*notes, *not_single(results), *left_out(results)])
    for line in lines:
        weight: Weight = "thick" if len(line.trials) > 1 else "normal"
        merged = (line.name, weight, _mean_line(line.trials) if len(line.trials) > 1 else line.trials[0])
        drawn = [(f"{line.name}, a single trial", "thin", samples) for samples in single(line.trials)]
        for label, how, samples in (*drawn, merged):
            plot.line(
                label, line.group, [x for x, _ in samples], [y for _, y in samples],
                hover=[f"{label}<br>at {x:.3g} s: {y:.4g} {unit}" for x, y in samples],
                weight=how, sign="none" if how == "thin" else "full",
                signed=tuple(axes.spread(len(samples), MARKS_PER_LINE, offset=line.group)),
            )  # fmt: skip
    count = sum(len(samples) for line in lines for samples in line.trials)
    shown = [result for result in results if any(line.result is result for line in lines)]
    return plot.figure(
        name,
        f"{title} over time",
        f"{workloads(shown)}: {format_count(count)} samples, {durations(shown)}",
        [(line.group, line.name) for line in lines],
        [Key("mean of the trials", "solid", "thick"), Key("single trials", "solid", "thin")],
        references=tuple(references),
    )


def _lines(results: Sequence[Trials], of: ValueOf) -> list[_Line]:
    """The first process of each result has the result's group, and others have their own groups."""
    lines: list[_Line] = []
    more = len(results)
    for group, result in enumerate(results):
        processes = list(dict.fromkeys(p for t in result.trials for p in t.resources["process"].to_list()))
        own = group
        for process in processes:
            trials = [samples for trial in result.trials if (samples := _samples(result, trial, process, of))]
            if not trials:
                continue
            parts = [result.label] if len(results) > 1 else []
            parts += [process] if len(processes) > 1 or len(results) == 1 else []
            lines.append(_Line(own, ", ".join(parts), result, trials))
            more += own != group
            own = more
    return lines


def _samples(result: Trials, trial: TrialTables, process: str, of: ValueOf) -> Samples:
    """Samples of one process, from the start of the measured part on."""
    start_ns = trial.started_ns or 0
    own = trial.resources.filter((trial.resources["process"] == process) & (trial.resources["at_ns"] >= start_ns))
    found = [((row["at_ns"] - start_ns) / NS_PER_S, of(result, trial, row)) for row in own.iter_rows(named=True)]
    return sorted((at, value) for at, value in found if value is not None)


def _mean_line(trials: Sequence[Samples]) -> Samples:
    """The mean over trials, at the instants of the first trial for which every trial has a near sample."""
    steps = [b[0] - a[0] for line in trials for a, b in pairwise(line)]
    near = float(np.median(steps)) / 2 if steps else math.inf
    merged = []
    for at, _ in trials[0]:
        closest = [min(line, key=lambda sample: abs(sample[0] - at)) for line in trials]
        if all(abs(sample[0] - at) <= near for sample in closest):
            merged.append((at, sum(value for _, value in closest) / len(closest)))
    return merged
