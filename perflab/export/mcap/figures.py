"""A trial's data over time, without single messages: it is small, and generated in one step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import BadInput
from perflab.export.mcap.trial import ExportedTrial, topic
from perflab.formats import checkpoints
from perflab.formats.mcap import ERROR, INFO, WARNING, McapFile, Message, Series, log, numbers
from perflab.formats.records import RecordError
from perflab.results.figure import OWN_FIGURES
from perflab.results.outcome import SUCCESS
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram

_INTEGER, _NUMBER, _TEXT = "integer", "number", "string"

_MEASURED = Series(
    "perflab.Measured", "When the trial was measured", {"measured": (_INTEGER, "1 within the measured part, else 0")}
)
_CONDITION = Series(
    "perflab.Condition",
    "When a condition was in effect",
    {"there": (_INTEGER, "1 from its begin to its removal, else 0")},
)
_LOST = Series(
    "perflab.Lost",
    "Messages that a process noticed as missing",
    {"lost": (_INTEGER, "so far, over all processes"), "process": (_TEXT, "that noticed it")},
)
_RESOURCES = Series(
    "perflab.Resources",
    "For a process; counts are since it began",
    {
        "cpu_percent": (_NUMBER, "CPU time since the previous sample, % of one CPU"),
        "rss_kb": (_INTEGER, "resident memory, KiB"),
        "in_use_kb": (_INTEGER, "memory allocated by the allocator, KiB"),
        "minor_faults": (_INTEGER, "minor page faults"),
        "major_faults": (_INTEGER, "major page faults"),
        "voluntary_switches": (_INTEGER, "voluntary context switches"),
        "involuntary_switches": (_INTEGER, "involuntary context switches"),
        "run_delay_us": (_NUMBER, "time in which its threads were ready and waited for a CPU, µs"),
    },
)
_CPU = Series(
    "perflab.Cpu",
    "For a CPU of the machine, since the previous sample",
    {
        "busy_percent": (_NUMBER, "busy, % of the time"),
        "idle_percent": (_NUMBER, "idle, % of the time"),
        "steal_percent": (_NUMBER, "taken by the hypervisor, % of the time"),
    },
)
_DISTRIBUTION = Series(
    "perflab.Distribution",
    "Times since the previous message on this channel, or of the whole trial if there is only one",
    {
        "count": (_INTEGER, "how many"),
        "mean_us": (_NUMBER, "mean, µs"),
        "p50_us": (_NUMBER, "median, µs"),
        "p90_us": (_NUMBER, "90th percentile, µs"),
        "p99_us": (_NUMBER, "99th percentile, µs"),
        "p99_9_us": (_NUMBER, "99.9th percentile, µs"),
        "max_us": (_NUMBER, "maximum, µs"),
    },
)
_LOOP = Series(
    "perflab.Loop",
    "A tick of a timer whose message comes back to its node",
    {
        "loop": (_INTEGER, "number of the tick"),
        "round_trip_us": (_NUMBER, "from its publication until the callback of the returning message begins, µs"),
        "since_due_us": (_NUMBER, "likewise from when the tick was due, µs"),
        "woken_late_us": (_NUMBER, "from when the tick was due until its callback begins, µs"),
    },
)
_OUTCOME = Series(
    "perflab.Outcome",
    "How the trial ended",
    {
        "success": (_INTEGER, "1 of a success, else 0"),
        "outcome": (_TEXT, "success, failed, invalid or harness_error"),
        "reason": (_TEXT, "of an unsuccessful trial"),
    },
)

# Events (docs/formats.md, section 4) that report errors.
_WARNINGS = frozenset(
    {
        "late", "too_late", "lost", "sample_lost", "incompatible_qos", "deadline_missed", "liveliness_lost",
        "participant_lost", "writer_lost", "reader_lost", "unmatched", "events_dropped",
    }
)  # fmt: skip
_ERRORS = frozenset({"write_failed", "middleware_failed", "crashed"})


def of(trial: ExportedTrial, file: McapFile) -> list[list[Message]]:
    """The messages of each kind, in time order. Raises BadInput if records are damaged."""
    logs = file.log(topic("log"))
    sorts = (
        _course(trial, file, logs),
        _events(trial, file, logs),
        _resources(trial, file),
        _cpus(trial, file),
        _distributions(trial, file),
        _loops(trial, file),
        _ended(trial, file, logs),
    )
    return [sorted(sort, key=lambda message: message.log_ns) for sort in sorts]


def _course(trial: ExportedTrial, file: McapFile, logs: int) -> Iterator[Message]:
    """When it was measured, and when its conditions were in effect."""
    yield log(logs, trial.wall(trial.begin_ns), INFO, "perflab", "the measured part begins")
    yield log(logs, trial.wall(trial.end_ns), INFO, "perflab", "the measured part ends")
    yield from _steps(trial, file.series(topic("measured"), _MEASURED), "measured", trial.begin_ns, trial.end_ns)
    for label, times in trial.file.condition_times.items():
        channel = file.series(topic("conditions", label), _CONDITION, condition=label)
        yield log(logs, trial.wall(times.begun_ns), INFO, label, f"condition {label} begins")
        if times.removed_ns is not None:
            yield log(logs, trial.wall(times.removed_ns), INFO, label, f"condition {label} is removed")
        yield from _steps(trial, channel, "there", times.begun_ns, times.removed_ns)


def _steps(trial: ExportedTrial, channel: int, name: str, begin_ns: int, end_ns: int | None) -> Iterator[Message]:
    """0, 1 and 0 again; two values at each end, so that they are drawn as a step."""
    ends = [(begin_ns, 0, 1)] if end_ns is None else [(begin_ns, 0, 1), (end_ns, 1, 0)]
    for at_ns, before, after in ends:
        yield numbers(channel, trial.wall(at_ns - 1), {name: before})
        yield numbers(channel, trial.wall(at_ns), {name: after})


def _events(trial: ExportedTrial, file: McapFile, logs: int) -> Iterator[Message]:
    losses: int | None = None
    lost = 0
    for event in trial.tables.events.sort("at_ns").iter_rows(named=True):
        code, at_ns = event["code"], trial.wall(event["at_ns"])
        level = ERROR if code in _ERRORS else WARNING if code in _WARNINGS else INFO
        words = " ".join(word for word in (code, event["text"], event["details"]) if word)
        yield log(logs, at_ns, level, event["process"], words)
        if code in ("lost", "sample_lost"):
            losses = file.series(topic("lost"), _LOST) if losses is None else losses
            lost += int(json.loads(event["details"] or "{}").get("count") or 1)
            yield numbers(losses, at_ns, {"lost": lost, "process": event["process"]})


def _resources(trial: ExportedTrial, file: McapFile) -> Iterator[Message]:
    channels: dict[str, int] = {}
    for row in trial.tables.resources.iter_rows(named=True):
        name, interval_ns, cpu_ns = row["process"], row["interval_ns"], row["cpu_interval_ns"]
        if name not in channels:
            channels[name] = file.series(topic("resources", name), _RESOURCES, process=name)
        values = {key: row[key] for key in _RESOURCES.members if key in row}
        values["cpu_percent"] = 100 * cpu_ns / interval_ns if interval_ns and cpu_ns is not None else None
        values["run_delay_us"] = _us(row["run_delay_ns"])
        yield numbers(channels[name], trial.wall(row["at_ns"]), values)


def _cpus(trial: ExportedTrial, file: McapFile) -> Iterator[Message]:
    """For trials with perflab-monitor's samples."""
    channels: dict[int, int] = {}
    for row in _rows(trial.directory.path / "monitor_cpus.parquet"):
        cpu, interval_ns = row["cpu"], row["interval_ns"]
        if not interval_ns:
            continue
        if cpu not in channels:
            channels[cpu] = file.series(topic("cpus", f"cpu{cpu}"), _CPU, cpu=str(cpu))
        shares = {what: row[f"{what}_ns"] for what in ("busy", "idle", "steal")}
        values = {f"{what}_percent": None if ns is None else 100 * ns / interval_ns for what, ns in shares.items()}
        yield numbers(channels[cpu], trial.wall(row["at_ns"]), values)


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    import polars as pl

    if not path.is_file():
        return
    try:
        yield from pl.read_parquet(path).iter_rows(named=True)
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"{path} is damaged: {str(error).splitlines()[0]}") from error


def _distributions(trial: ExportedTrial, file: McapFile) -> Iterator[Message]:
    """Counts of all processes in each second, and times of the whole trial."""
    paths = sorted(trial.directory.processes.glob("*.jsonl"))
    for figure in ("latency", "response"):
        sources = [_intervals(path, figure) for path in paths]
        intervals = [i for i in checkpoints.merge(sources) if i.histogram.count]
        channel = file.series(topic("seconds", figure), _DISTRIBUTION, figure=figure) if intervals else 0
        for interval in intervals:
            yield numbers(channel, trial.wall(interval.end_ns), _quantiles(interval.histogram))
    for name, histogram in trial.tables.times.items():
        if histogram.count:
            channel = file.series(topic("times", name), _DISTRIBUTION, figure=name)
            yield numbers(channel, trial.wall(trial.end_ns), _quantiles(histogram))


def _intervals(path: Path, figure: str) -> Sequence[checkpoints.Interval]:
    try:
        return checkpoints.intervals(checkpoints.read(path, figure))
    except (RecordError, hg.HistogramError) as error:
        text = str(error)
        raise BadInput(text if str(path) in text else f"{path}: {text}") from error


def _quantiles(histogram: Histogram) -> dict[str, Any]:
    at = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9}
    values: dict[str, float | None] = {name: hg.value_at_percentile(histogram, share) for name, share in at.items()}
    values |= {"mean": hg.mean(histogram), "max": histogram.max}
    return {"count": histogram.count, **{f"{name}_us": _us(value) for name, value in values.items()}}


def _loops(trial: ExportedTrial, file: McapFile) -> Iterator[Message]:
    channels: dict[tuple[str, str, str], int] = {}
    table = trial.tables.loops
    for row in () if table is None else table.iter_rows(named=True):
        key = row["process"], row["node"], row["timer"]
        if row["back_ns"] is None:
            continue
        if key not in channels:
            ends = dict(zip(("process", "node", "timer"), key, strict=True))
            channels[key] = file.series(topic("loops", row["node"], row["timer"]), _LOOP, **ends)
        values = {
            "loop": row["loop"],
            "round_trip_us": _between(row["published_ns"], row["back_ns"]),
            "since_due_us": _between(row["due_ns"], row["back_ns"]),
            "woken_late_us": _between(row["due_ns"], row["woken_ns"]),
        }
        yield numbers(channels[key], trial.wall(row["back_ns"]), values)


def _ended(trial: ExportedTrial, file: McapFile, logs: int) -> Iterator[Message]:
    """Its outcome, and its values from the kind of workload."""
    outcome, reason, at_ns = trial.tables.outcome, trial.file.reason, trial.wall(trial.end_ns)
    succeeded = outcome == SUCCESS
    words = f"trial {trial.tables.number}: {outcome.words}" + ("" if reason is None else f": {reason}")
    yield log(logs, at_ns, INFO if succeeded else ERROR, "perflab", words)
    said = {"success": int(succeeded), "outcome": str(outcome), "reason": reason}
    yield numbers(file.series(topic("outcome"), _OUTCOME), at_ns, said)
    if figures := {name: value for name, value in trial.file.own_figures.items() if value is not None}:
        members = {name: (_NUMBER, _words_of(name)) for name in figures}
        series = Series("perflab.Figures", "The trial's values from the kind of workload", members)
        yield numbers(file.series(topic("figures"), series), at_ns, figures)
    for words in trial.missing:
        yield log(logs, at_ns, WARNING, "perflab", words)


def _words_of(figure: str) -> str:
    own = OWN_FIGURES.get(figure)
    return figure if own is None else ", ".join(word for word in (own.words, own.unit) if word)


def _between(begin_ns: int | None, end_ns: int | None) -> float | None:
    return None if begin_ns is None or end_ns is None else _us(end_ns - begin_ns)


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1000
