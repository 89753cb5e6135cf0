"""Logs of performance_test as a run: summary and tables of perflab, null for missing data.

A file is a process; a trial is one process, or the one that publishes and those that subscribe. Trials with the same
settings make one result, and different settings are factors of the workload `pubsub`, which has performance_test's
parameters.

The rows are seconds, from which a trial is reconstructed: messages are counts per second times seconds, too low by less
than one in each, since performance_test truncates them; means and variances are pooled by numbers of messages; losses
are stored in `gap`. There are no percentiles. The first row of 1.x and 2.x is not a second: its time is that since
boot, and its counts are divided by it; so it is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from perflab.errors import BadInput
from perflab.formats.performance_test import dialect
from perflab.formats.performance_test.dialect import Log, Second
from perflab.formats.performance_test.parse import parse
from perflab.formats.performance_test.seconds import (
    Process,
    cpus_of,
    distribution_of,
    ignored_s,
    pooled,
    process_of,
    size_of,
)
from perflab.formats.tables import empty_tables
from perflab.results.figure import Distribution
from perflab.results.files import Manifest, UsedSettings, UsedWorkload
from perflab.results.outcome import SUCCESS, Outcomes
from perflab.results.run import PERFORMANCE_TEST, UNKNOWN, RunData, Tables, TrialTables
from perflab.results.summary import Summary
from perflab.results.trial import (
    BASELINE,
    Coverage,
    EdgeResult,
    Level,
    Lost,
    ProcessResources,
    Purpose,
    Resources,
    Result,
    Totals,
    Trial,
    added,
    largest,
)

WORKLOAD = "pubsub"

_CPU_TIMES = 1e5  # number of CPUs beyond any machine: more CPU time is that of 2018, microseconds multiplied by 1e6
_NS = 1e9
_DECIMAL = re.compile(r"\d+(\.\d+)?")
_PUBSUB = re.compile(r"(?<![A-Za-z0-9])(pub|sub)(lisher|scriber)?(?![A-Za-z0-9])")

# Settings as parameters of the workload.
_PARAMETERS = {
    "msg_name": "message",
    "rate": "rate",
    "number_of_subscribers": "subscribers",
    "qos_reliability": "reliability",
    "qos_durability": "durability",
    "qos_history_kind": "history",
    "qos_history_depth": "depth",
    "unbounded_msg_size": "size",
    "execution_strategy": "execution_strategy",
    "roundtrip_mode": "roundtrip_mode",
}


def read(path: Path, files: Sequence[Path]) -> RunData:
    """The run in these files; `path` is where they were found. Raises BadInput."""
    trials = _trials(_once([parse(file) for file in files]))
    varied = _varied(trials)
    name = path.resolve().stem if path.is_file() else path.resolve().name
    made = [_Made(number, logs, varied) for number, logs in enumerate(trials, start=1)]
    groups: dict[tuple[object, ...], list[_Made]] = {}
    for trial in made:
        groups.setdefault((trial.middleware, *trial.asked.values(), *trial.factors.items()), []).append(trial)
    results = tuple(_result(group) for group in groups.values())
    first = made[0]
    return RunData(
        name=name,
        path=path,
        origin=PERFORMANCE_TEST,
        summary=Summary(run=name, valid=True, results=results),
        manifest=Manifest(
            run=name,
            settings=UsedSettings(duration_ns=None if first.duration_s is None else round(first.duration_s * _NS)),
            workload=UsedWorkload(kind=PERFORMANCE_TEST, name=WORKLOAD),
            middlewares=(),
            trials=(),
            preflight=(),
            host={"cpus_online": f"0-{first.cpus - 1}"} if first.cpus else {},
        ),
        trials=tuple(trial.tables() for trial in made),
        notes=tuple(_notes(made)),
    )


# -- which files belong together ---------------------------------------------------------------------------------------


def _once(logs: Sequence[Log]) -> list[Log]:
    """For a process that wrote both, its JSON, which has more data."""
    found: dict[object, Log] = {}
    for log in logs:
        name = log.text("id") or str(log.path)
        if name not in found or log.path.suffix == ".json":
            found[name] = log
    return list(found.values())


def _trials(logs: Sequence[Log]) -> list[list[Log]]:
    """The logs of each trial. Files with the same settings are trials, except those of a publisher and its
    subscribers."""
    found: dict[tuple[object, ...], list[Log]] = {}
    for log in logs:
        alone = log.whole("number_of_publishers") != 0 and log.whole("number_of_subscribers") != 0
        key: tuple[object, ...] = (str(log.path),)
        if log.is_own:
            key = (log.external.get(dialect.TRIAL), *_same(log))
        elif not alone:
            key = (_PUBSUB.sub("", log.path.stem), *_same(log))
        found.setdefault(key, []).append(log)
    return list(found.values())


def _same(log: Log) -> tuple[object, ...]:
    """The common settings of a trial's processes."""
    own = (
        *("id", "logfile_name", "number_of_publishers", "number_of_subscribers", "execution_strategy"),
        *("max_runtime", "ignore_seconds"),
    )
    external = (dialect.MEASURED_BY, dialect.RUN, dialect.ACCOUNTING)
    settings = tuple(log.settings.get(s.key) for s in dialect.SETTINGS if s.key not in own)
    return (*settings, *(log.external.get(key) for key in external))


def _varied(trials: Sequence[Sequence[Log]]) -> list[str]:
    """The settings that differ between trials."""
    told = [_parameters(logs) for logs in trials]
    return [key for key in _PARAMETERS if len({one.get(key) for one in told}) > 1]


def _parameters(logs: Sequence[Log]) -> dict[str, Level]:
    found: dict[str, Level] = {}
    for key in _PARAMETERS:
        known = [value for log in logs if (value := log.settings.get(key)) is not None]
        if key == "msg_name" and not known:  # in 2018 the topic was named after its type
            known = [value for log in logs if (value := log.text("topic_name")) is not None]
        if key == "number_of_subscribers":
            known = [sum(value for value in known if isinstance(value, int))] if known else []
        if known:
            found[key] = known[0].lower() if key.startswith("qos_") and isinstance(known[0], str) else known[0]
    return found


def _factors(log: Log) -> dict[str, Level]:
    """For an export: the levels of its trial."""
    try:
        found = json.loads(log.external.get(dialect.FACTORS, "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(level, bool | int | float | str) for level in found.values()):
        raise BadInput(f"{log.path}: {dialect.FACTORS} is not an object of levels; export the run again")
    return found


def _circumstances(log: Log) -> dict[str, Any]:
    """For an export: the other settings of its trial."""
    treatment = log.external.get(dialect.TREATMENT, BASELINE)
    purpose = log.external.get(dialect.PURPOSE)
    return {
        "ipc": log.external.get(dialect.IPC),
        "pass_by": log.external.get(dialect.PASS_BY),
        "treatment": treatment,
        "conditions": () if treatment == BASELINE else (treatment,),
        "purpose": purpose if purpose in get_args(Purpose) else None,
    }


def _result(trials: Sequence[_Made]) -> Result:
    first = trials[0]
    details = tuple(trial.trial() for trial in trials)
    lengths = {trial.duration_s for trial in trials}
    return Result(
        **first.asked,
        middleware=first.middleware,
        factors=first.factors,
        trials=len(trials),
        outcomes=Outcomes(success=len(trials)),
        duration_s=lengths.pop() if len(lengths) == 1 else None,
        coverage=Coverage(trials_merged=len(trials), complete=True),
        totals=_merged([detail.totals for detail in details]),
        trials_detail=details,
        edges=_merged_edges([trial.edges for trial in trials]),
        resources=_merged_resources([detail.resources for detail in details]),
    )


# -- one trial ---------------------------------------------------------------------------------------------------------


class _Made:
    """A trial, from the logs of its processes."""

    def __init__(self, number: int, logs: Sequence[Log], varied: Sequence[str]) -> None:
        self.number, self.processes = number, [process_of(log, len(logs) > 1) for log in logs]
        self.log = logs[0]
        told = _parameters(logs)
        self.factors = {f"workload.{_PARAMETERS[key]}": told[key] for key in varied if key in told}
        self.middleware, executor = _middleware(self.log)
        loaned = self.log.settings.get("use_loaned_samples") is True
        self.asked: dict[str, Any] = {
            "workload": WORKLOAD,
            "executor": executor,
            "pass_by": "loaned" if loaned else None,
        }
        if self.log.is_own:
            self.factors = _factors(self.log)
            self.asked |= _circumstances(self.log)
        self.corrected = self.log.accounting == dialect.CORRECTED
        self.figure = "response" if self.corrected else "latency"
        self.edges = tuple(self._edge(process) for process in self.processes if process.subscribes)

    @property
    def duration_s(self) -> float | None:
        """The requested duration, else the length of its rows."""
        own = self.log.external.get(dialect.DURATION, "") if self.log.is_own else ""
        if _DECIMAL.fullmatch(own) and float(own) > 0:
            return float(own)
        asked, ignored = self.log.whole("max_runtime"), ignored_s(self.log)
        if asked and asked > ignored:
            return float(asked - ignored)
        return self.measured_s or None

    @property
    def measured_s(self) -> float:
        return max((process.measured_s for process in self.processes), default=0.0)

    @property
    def cpus(self) -> int | None:
        return next((n for process in self.processes if (n := cpus_of(process)) is not None), None)

    def trial(self) -> Trial:
        return Trial(
            trial=self.number,
            order=self.number,
            outcome=SUCCESS,
            measured=True,
            measured_s=self.measured_s,
            complete=True,
            totals=self._totals(),
            resources=self._resources(),
        )

    def _totals(self) -> Totals:
        published = added(_sum(row.sent for row in p.rows) for p in self.processes if p.publishes)
        times = pooled([distribution_of(p) for p in self.processes if p.subscribes]) if self.edges else None
        return Totals(
            received=added(edge.received for edge in self.edges),
            lost=Lost(gap=added(edge.lost.gap for edge in self.edges)),
            published=published,
            latency_ns=None if self.corrected else times,
            response_ns=times if self.corrected else None,
        )

    def _edge(self, process: Process) -> EdgeResult:
        """All subscriptions of a process together, with its name if several processes subscribe."""
        log = process.log
        role = "subscribers" if (log.whole("number_of_subscribers") or 1) > 1 else "subscriber"
        times = distribution_of(process)
        alone = sum(p.subscribes for p in self.processes) == 1
        return EdgeResult(
            publisher=None,
            topic=(log.text("topic_name") or "topic").removeprefix("/"),
            subscription=role if alone else process.name,
            size_bytes=size_of(process),
            frequency_hz=float(rate) if (rate := log.whole("rate")) else None,
            received=_sum(row.received for row in process.rows),
            lost=Lost(gap=_sum(row.lost for row in process.rows)),
            latency_ns=None if self.corrected else times,
            response_ns=times if self.corrected else None,
        )

    def _resources(self) -> Resources:
        found = []
        for process in self.processes:
            used = [(row.lasted_ns, share) for row in process.rows if (share := row.cpu_usage) is not None]
            weight = sum(ns for ns, _ in used)
            machine = sum(ns * share for ns, share in used) / weight if weight else None
            cpus = cpus_of(process)
            peaks = [int(row.second.ru_maxrss) for row in process.rows if row.second.ru_maxrss is not None]
            if machine is None and not peaks:
                continue
            found.append(
                ProcessResources(
                    process=process.name or _name(process.log),
                    cpu_percent_mean=None if machine is None or cpus is None else machine * cpus,
                    cpu_percent_of_machine=machine,
                    rss_kb_max=max(peaks, default=None),
                )
            )
        return Resources(
            cpu_percent_mean=added(p.cpu_percent_mean for p in found),
            cpu_percent_of_machine=added(p.cpu_percent_of_machine for p in found),
            rss_kb_max=largest([p.rss_kb_max for p in found]),
            processes=tuple(found),
        )

    def tables(self) -> TrialTables:
        duration_s = self.duration_s
        return TrialTables(
            number=self.number,
            **self.asked,
            factors=self.factors,
            middleware=self.middleware or UNKNOWN,
            outcome=SUCCESS,
            started_ns=None,
            duration_s=math.nan if duration_s is None else duration_s,
            **self._frames(),
        )

    def _frames(self) -> Tables:
        import polars as pl

        processes = [(process, process.name or _name(process.log)) for process in self.processes]
        lines: dict[str, list[dict[str, Any]]] = {
            "edges": [_edge_line(edge, self.figure) for edge in self.edges],
            "publishers": [
                {"node": f"/{name}", "topic": f"/{p.log.text('topic_name') or 'topic'}", "sent": sent}
                for p, name in processes
                if p.publishes and (sent := _sum(row.sent for row in p.rows)) is not None
            ],
            "resources": [line for p, name in processes for line in _resource_lines(p, name)],
            "seconds": [line for p, name in processes for line in _second_lines(p, name, self.figure)],
        }
        frames = dict(empty_tables())
        more = {"edges": f"{self.figure}_mean", "resources": "cpu_percent_of_machine"}
        for table, made in lines.items():
            schema: dict[str, Any] = dict(frames[table].schema) if table in frames else _seconds_schema()
            schema |= {more[table]: pl.Float64()} if table in more else {}
            whole = [{column: line.get(column) for column in schema} for line in made]
            frames[table] = pl.DataFrame(whole, schema=schema, orient="row")
        return frames


def _notes(trials: Sequence[_Made]) -> Iterator[str]:
    """Remarks on the figures, and on files with errors, without duplicates."""
    logs = [process.log for trial in trials for process in trial.processes]
    if any(not log.is_own for log in logs):
        yield (
            "logs of performance_test: means and extremes of seconds, no percentiles; rss is the peak; counts are "
            "truncated to whole messages, so up to one in each row is missing"
        )
        yield (
            "latency is from when a message was sent: it excludes messages that a late publisher does not send; "
            "lost includes messages sent before the match, and excludes losses at the end"
        )
    for log in logs:
        if (ours := log.external.get(dialect.MEASURED_BY)) is not None:
            yield (
                f"exported by {ours} in the format of performance_test, accounting {log.accounting}; the run "
                "itself has more data"
            )
            break
    said: dict[str, list[str]] = {}
    for trial in trials:
        for process in trial.processes:
            for note in process.notes:
                said.setdefault(note, []).append(process.log.path.name)
    for note, names in said.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {note}" if len(logs) > 1 else note


def _middleware(log: Log) -> tuple[str | None, str | None]:
    """Includes the executor, by perflab's names; others keep their names."""
    if log.is_own:
        return log.external.get(dialect.MIDDLEWARE), log.external.get(dialect.EXECUTOR)
    name = log.text("com_mean_str")
    if name in dialect.RCLCPP:
        rmw = log.text("rmw_implementation")
        return f"rclcpp/{rmw}" if rmw else "rclcpp", dialect.RCLCPP[name]
    return (None if name is None else dialect.COMMUNICATORS.get(name, name)), None


def _name(log: Log) -> str:
    return log.path.stem


def _sum(values: Iterable[int | None]) -> int | None:
    """None if there is no value, or one is unknown."""
    return added(values)


# -- several trials ----------------------------------------------------------------------------------------------------


def _merged(totals: Sequence[Totals]) -> Totals:
    if len(totals) == 1:
        return totals[0]
    return Totals(
        received=added(t.received for t in totals),
        lost=Lost(gap=added(t.lost.gap for t in totals)),
        published=added(t.published for t in totals),
        latency_ns=_pooled_known([t.latency_ns for t in totals]),
        response_ns=_pooled_known([t.response_ns for t in totals]),
    )


def _pooled_known(parts: Sequence[Distribution | None]) -> Distribution | None:
    known = [part for part in parts if part is not None]
    return pooled(known) if known else None


def _merged_edges(trials: Sequence[Sequence[EdgeResult]]) -> tuple[EdgeResult, ...]:
    """Each subscription over all trials; if files have different names in each, they are matched by position."""
    if len(trials) == 1 or len({len(edges) for edges in trials}) > 1:
        return tuple(trials[0]) if len(trials) == 1 else ()
    return tuple(
        EdgeResult(
            publisher=None,
            topic=same[0].topic,
            subscription=same[0].subscription,
            size_bytes=same[0].size_bytes,
            frequency_hz=same[0].frequency_hz,
            received=added(edge.received for edge in same),
            lost=Lost(gap=added(edge.lost.gap for edge in same)),
            latency_ns=_pooled_known([edge.latency_ns for edge in same]),
            response_ns=_pooled_known([edge.response_ns for edge in same]),
        )
        for same in zip(*trials, strict=True)
    )


def _merged_resources(used: Sequence[Resources]) -> Resources:
    """The means of the trials, and the largest peak, by position of the processes."""
    if len(used) == 1 or len({len(one.processes) for one in used}) > 1:
        return used[0] if len(used) == 1 else Resources()
    processes = tuple(
        ProcessResources(
            process=same[0].process,
            cpu_percent_mean=_mean(p.cpu_percent_mean for p in same),
            cpu_percent_of_machine=_mean(p.cpu_percent_of_machine for p in same),
            rss_kb_max=largest([p.rss_kb_max for p in same]),
        )
        for same in zip(*(one.processes for one in used), strict=True)
    )
    return Resources(
        cpu_percent_mean=added(p.cpu_percent_mean for p in processes),
        cpu_percent_of_machine=added(p.cpu_percent_of_machine for p in processes),
        rss_kb_max=largest([p.rss_kb_max for p in processes]),
        processes=processes,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    found = list(values)
    total = added(found)
    return None if total is None else total / len(found)


# -- tables ------------------------------------------------------------------------------------------------------------


def _seconds_schema() -> dict[str, Any]:
    import polars as pl

    texts, numbers = ("process", "figure"), ("begin_ns", "end_ns", "count")
    columns: Mapping[str, Any] = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Int64)
    return {**columns, **dict.fromkeys(("min", "mean", "max"), pl.Float64)}


def _edge_line(edge: EdgeResult, figure: str) -> dict[str, Any]:
    times = edge.response_ns if figure == "response" else edge.latency_ns
    times = times or Distribution()
    return {
        "publisher": None,
        "topic": f"/{edge.topic}",
        "subscription": f"/{edge.subscription}",
        **{key: getattr(edge, key) for key in ("size_bytes", "frequency_hz", "received")},
        "gap": edge.lost.gap,
        **{f"{figure}_{side}": getattr(times, side) for side in ("count", "mean", "min", "max")},
    }


def _resource_lines(process: Process, name: str) -> Iterator[dict[str, Any]]:
    cpus = cpus_of(process)
    for row in process.rows:
        second, share = row.second, row.cpu_usage
        used = None if share is None or cpus is None else round(share / 100 * row.lasted_ns * cpus)
        yield {
            "process": name,
            "at_ns": row.end_ns,
            "interval_ns": row.lasted_ns or None,
            "cpu_ns": _cpu_ns(second),
            "cpu_interval_ns": used,
            "cpu_percent_of_machine": share,
            **{usage.ours: _ours(second, usage) for usage in dialect.USAGE},
        }


def _ours(second: Second, usage: dialect.Usage) -> int | None:
    value: float | None = getattr(second, usage.member)
    impossible = usage.is_time and _cpu_ns(second) is None
    return None if value is None or impossible else round(value * usage.scale)


def _cpu_ns(second: Second) -> int | None:
    if second.ru_utime_s is None or second.ru_stime_s is None:
        return None
    used_s = second.ru_utime_s + second.ru_stime_s
    lasted_s = (second.experiment_s or 0.0) + 1
    return round(used_s * _NS) if used_s <= lasted_s * _CPU_TIMES else None


def _second_lines(process: Process, name: str, figure: str) -> Iterator[dict[str, Any]]:
    if process.since_start or not process.subscribes:
        return
    for row in process.rows:
        if row.maximum is not None:
            yield {
                "process": name,
                "figure": figure,
                **{key: getattr(row, key) for key in ("begin_ns", "end_ns")},
                "count": row.received,
                "min": row.minimum,
                "mean": row.mean,
                "max": row.maximum,
            }
