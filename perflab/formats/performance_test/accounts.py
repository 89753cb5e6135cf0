"""A trial of perflab as performance_test's logs: one per process, a row per second, counted its way or perflab's.

perflab records counts and a histogram of latencies every second (docs/formats.md, section 4), but its resources at
other instants. So in a row

- counts are exact;
- latencies are those of the histogram's cells, each known to within 1/2048 of itself: minimum and maximum are the ends
  of their cells, at most 1/1024 off; the mean is off by at most 1/2048 of itself, the standard deviation by at most
  1/2048 of the root of the mean square;
- CPU time is interpolated between two samples, and the rest is from the last sample before the end of the row.

`original` counts as performance_test does: latency from when a message was sent to its callback, losses as missing
numbers below a received one, counts divided by the duration of the row and truncated. `corrected` has perflab's
response, from when a message was due, each certain loss, those at the end in the last row, and exact counts. Both omit
what would only mislead readers: the time since boot in the first row, overflowing variances, zeros for missing values.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from perflab.errors import BadInput
from perflab.formats import records
from perflab.formats.performance_test import dialect
from perflab.formats.performance_test.dialect import Log, Second, Value
from perflab.formats.records import RecordError
from perflab.results.run import UNKNOWN, RunData, TrialTables
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.statistics.target import machine_cpus
from perflab.version import __version__
from perflab.workload import qualified_name

Json = dict[str, Any]

NOT_MEASURED = (
    "ru_ixrss", "ru_idrss", "ru_isrss", "ru_nswap", "ru_msgsnd", "ru_msgrcv", "ru_nsignals",
)  # fmt: skip
"""Linux does not count them: getrusage(2) returns 0."""

_LEAST_NS = 500_000_000  # seconds of a row: progress comes every second, and more often at the end
_NS_PER_S = 1e9


@dataclass(frozen=True)
class _Reading:
    """The counts of a process up to an instant. `lost`: missing below a received message."""

    at_ns: int
    sent: int
    received: int
    lost: int
    times: Histogram


def topics_of(graph: Mapping[str, Any]) -> list[str]:
    """Those of the workload's own nodes, without duplicates."""
    nodes = [node for process in graph["processes"] for node in process["nodes"] if not node.get("condition")]
    ends = [end for node in nodes for end in (*node["publishers"], *node["subscriptions"])]
    return list(dict.fromkeys(str(end["topic"]) for end in ends))


def logs_of(
    run: RunData, trial: TrialTables, graph: Mapping[str, Any], files: Mapping[str, Path], accounting: str
) -> dict[str, Log]:
    """One Log per process with records; `graph` is that of the trial, since it may contain levels of factors, `files`
    are its records. Raises BadInput."""
    nodes = {process: members for process, members in _nodes(graph).items() if members}
    if len(files) == 1:  # in virtual time one process reports for all, and only at the end of the trial
        nodes = {next(iter(files)): [node for members in nodes.values() for node in members]}
    logs: dict[str, Log] = {}
    for process, path in files.items():
        try:
            readings = _readings(path, "response" if accounting == dialect.CORRECTED else "latency")
        except (KeyError, TypeError, ValueError) as error:
            words = str(error) if str(path) in str(error) else f"{path} is damaged: {error}"
            raise BadInput(words) from error
        if len(readings) > 1 and process in nodes:
            logs[process] = _Account(run, trial, graph, process, nodes[process], readings, accounting).log(path)
    return logs


def _nodes(graph: Mapping[str, Any]) -> dict[str, list[Json]]:
    return {p["name"]: [node for node in p["nodes"] if not node.get("condition")] for p in graph["processes"]}


def _readings(path: Path, figure: str) -> list[_Reading]:
    """About a second apart, from the start of the measured part to its end. Raises RecordError."""
    found: list[_Reading] = []
    until_ns = 0
    last: Json | None = None
    for record in records.lines(path, "start", "progress", "end", "checkpoint"):
        if record is None:
            continue  # an incomplete last line
        of = record.get("type")
        if of == "start" and not found:
            found = [_Reading(int(record["measured_from_ns"]), 0, 0, 0, hg.empty())]
            until_ns = records.measured_until_ns(record)
        elif of == "end" and found:
            until_ns = records.measured_until_ns(record)
        elif of == "checkpoint" and found:
            last = records.without_conditions(record)
        elif of == "progress" and found and record.get(figure) is not None:
            at_ns = int(record["at_ns"])
            if found[-1].at_ns + _LEAST_NS <= at_ns < until_ns:
                sent, received, lost = (int(record[key]) for key in ("sent", "received", "lost"))
                found.append(_Reading(at_ns, sent, received, lost, hg.decode(record[figure])))
    if last is None or not found:
        return found
    try:
        return [*found, *_at_the_end(last, figure, found[-1], until_ns)]
    except hg.HistogramError as error:
        raise RecordError(f"a histogram of its last checkpoint: {error}") from error


def _at_the_end(checkpoint: Json, figure: str, before: _Reading, until_ns: int) -> Iterator[_Reading]:
    """From the last checkpoint; a final one is from the end of the measured part, including what was drained after
    it."""
    at_ns = int(checkpoint["at_ns"])
    at_ns = min(at_ns, until_ns) if checkpoint.get("final") else at_ns
    edges = checkpoint["edges"]
    if at_ns > before.at_ns:
        histograms = [h for edge in edges if (h := edge.get(figure)) is not None]
        yield _Reading(
            at_ns,
            sum(int(p["sent"]) for p in checkpoint["publishers"]),
            sum(int(e["received"]) for e in edges),
            sum(int(e["gap"]) for e in edges),
            hg.merge(hg.from_records(histograms)) if histograms else hg.empty(),
        )


class _Account:
    """One process of a trial."""

    def __init__(
        self,
        run: RunData,
        trial: TrialTables,
        graph: Mapping[str, Any],
        process: str,
        nodes: Sequence[Json],
        readings: Sequence[_Reading],
        accounting: str,
    ) -> None:
        self.run, self.trial, self.graph, self.process, self.nodes = run, trial, graph, process, nodes
        self.readings, self.corrected = readings, accounting == dialect.CORRECTED
        self.accounting, self.cpus = accounting, machine_cpus(run.manifest.host)
        names = {qualified_name(node) for node in nodes}
        self.edges = [row for row in trial.edges.iter_rows(named=True) if row["subscription"] in names]
        self.samples = trial.resources.filter(trial.resources["process"] == process).sort("at_ns")
        self.bytes_each = _one({row["size_bytes"] for row in self.edges})

    def log(self, path: Path) -> Log:
        return Log(path, self._settings(), self._external(), tuple(self._seconds()))

    # -- rows --------------------------------------------------------------------------------------------------------

    def _seconds(self) -> Iterator[Second]:
        lost = self._lost()
        start_ns = self.readings[0].at_ns
        for place, (before, now) in enumerate(pairwise(self.readings)):
            loop_s = (now.at_ns - before.at_ns) / _NS_PER_S
            received, sent = now.received - before.received, now.sent - before.sent
            missing = None if lost is None else lost[place + 1] - lost[place]
            size = self.bytes_each if self.edges else 0
            yield Second(
                experiment_s=(before.at_ns - start_ns) / _NS_PER_S,
                loop_s=loop_s,
                received=self._count(received, loop_s),
                sent=self._count(sent, loop_s),
                lost=None if missing is None else self._count(missing, loop_s),
                relative_loss=self._share(missing, sent, received),
                data_received=None if size is None else self._count(received * size, loop_s),
                **_times(before.times, now.times),
                **self._resources(before.at_ns, now.at_ns),
            )

    def _count(self, n: int, loop_s: float) -> int:
        return n if self.corrected else math.floor(n / loop_s)

    def _share(self, lost: int | None, sent: int, received: int) -> float | None:
        """performance_test divides by what the process sent, whether the process received it or not."""
        of = sent
        if self.corrected:
            of = (lost or 0) + received
        return None if lost is None or of == 0 else lost / of

    def _lost(self) -> list[int] | None:
        """Up to each reading. A late arrival is not a loss; None if the losses are not certain."""
        whole = [[row[key] for key in ("pre_match", "gap", "tail")] for row in self.edges]
        if any(None in classes for classes in whole):
            return None
        certain = sum(pre_match + gap for pre_match, gap, _ in whole)
        seen = np.minimum.accumulate([reading.lost for reading in self.readings][::-1])[::-1].tolist()
        head = max(0, certain - int(seen[-1]))  # before the first received message
        found = [int(seen[0]), *(int(n) + head for n in seen[1:])]
        if self.corrected:
            found[-1] += sum(tail for *_, tail in whole)
        return found

    def _resources(self, begin_ns: int, end_ns: int) -> dict[str, float | None]:
        known = self.samples.filter(self.samples["at_ns"] <= end_ns)
        found: dict[str, float | None] = {"cpu_cores": self.cpus, "cpu_usage": self._cpu(begin_ns, end_ns)}
        last = known.row(-1, named=True) if known.height else {}
        for usage in dialect.USAGE:
            value = last.get(usage.ours)
            found[usage.member] = None if value is None else value / usage.scale
        return found

    def _cpu(self, begin_ns: int, end_ns: int) -> float | None:
        """Of all CPUs, in percent."""
        known = self.samples.drop_nulls("cpu_ns")
        at, used = known["at_ns"].to_numpy(), known["cpu_ns"].to_numpy()
        if self.cpus is None or len(at) < 2 or begin_ns < at[0] or end_ns > at[-1]:
            return None
        first, last = np.interp([begin_ns, end_ns], at, used)
        return float(100 * (last - first) / ((end_ns - begin_ns) * self.cpus))

    # -- settings ----------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Value]:
        everyone = [node for members in _nodes(self.graph).values() for node in members]
        publishers = [p for node in self.nodes for p in node["publishers"]]
        subscriptions = [s for node in self.nodes for s in node["subscriptions"]]
        ends = [*publishers, *subscriptions]
        communicator, rmw = _communicator(self.trial)
        rates = {p["frequency_hz"] for node in everyone for p in node["publishers"]}
        qos = _one_of([end["qos"] for end in ends]) or {}
        found: dict[str, Value | None] = {
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.run.manifest.run}/{self.trial.number}/{self.process}")),
            "perf_test_version": f"{dialect.VERSION} (written by perflab {__version__})",
            "com_mean_str": communicator,
            "rmw_implementation": rmw,
            "execution_strategy": self._strategy(),
            "rate": None if (rate := _one(rates)) is None else round(rate),
            "topic_name": _one({end["topic"].removeprefix("/") for end in ends}),
            "msg_name": None if (of := _one({end["type"] for end in ends})) is None else message_name(of),
            "max_runtime": round(self.trial.duration_s),
            "number_of_publishers": len(publishers),
            "number_of_subscribers": len(subscriptions),
            "use_loaned_samples": self.trial.pass_by == "loaned",
            "is_zero_copy_transfer": self.trial.pass_by == "loaned",
            "roundtrip_mode": "None",
            "ignore_seconds": 0,
        }
        for key, ours in (("reliability", "reliability"), ("durability", "durability"), ("history_kind", "history")):
            found[f"qos_{key}"] = str(qos[ours]).upper() if ours in qos else None
        found["qos_history_depth"] = qos.get("depth")
        return {key: value for key, value in found.items() if value is not None}

    def _strategy(self) -> str:
        """INTRA_THREAD if one thread runs all nodes of a process that has several."""
        executors = {node["executor"] for node in self.nodes}
        return "INTRA_THREAD" if len(self.nodes) > 1 and len(executors) == 1 else "INTER_THREAD"

    def _external(self) -> dict[str, str]:
        asked = {
            dialect.MEASURED_BY: f"perflab {__version__}",
            dialect.ACCOUNTING: self.accounting,
            dialect.RUN: self.run.manifest.run,
            dialect.PROCESS: self.process,
            dialect.TRIAL: str(self.trial.number),
            dialect.DURATION: f"{self.trial.duration_s:g}",
            dialect.MIDDLEWARE: self.trial.middleware,
            dialect.EXECUTOR: self.trial.executor,
            dialect.IPC: self.trial.ipc,
            dialect.PASS_BY: self.trial.pass_by,
            dialect.TREATMENT: self.trial.label,
            dialect.PURPOSE: self.trial.purpose,
            dialect.FACTORS: json.dumps(dict(self.trial.factors), ensure_ascii=False) if self.trial.factors else None,
            dialect.CPUS: None if self.cpus is None else str(self.cpus),
        }
        return {key: value for key, value in asked.items() if value is not None}


def _times(before: Histogram, now: Histogram) -> dict[str, float | None]:
    """The counts in between, from the cells alone: only the last reading has exact side values."""
    dense = np.zeros(hg.COUNTS_LENGTH, np.int64)
    dense[now.indices] += now.counts
    dense[before.indices] -= before.counts
    cells = np.flatnonzero(dense)
    n = int(dense.sum())
    if n <= 0 or int(dense.min(initial=0)) < 0:
        return {"latency_n": 0 if n == 0 else None}
    counts = dense[cells].astype(float)
    low, high = hg.lowest_value(cells).astype(float), hg.highest_value(cells).astype(float)
    middle = (low + high) / 2
    mean = float((middle * counts).sum() / n)
    m2 = float((counts * (middle - mean) ** 2).sum())
    highest = float(high[-1]) if now.max is None else min(float(high[-1]), float(now.max))
    return {
        "latency_n": n,
        "latency_min_s": max(float(low[0]), float(now.min or 0)) / _NS_PER_S,
        "latency_max_s": highest / _NS_PER_S,
        "latency_mean_s": min(mean, highest) / _NS_PER_S,
        "latency_m2_s2": m2 / _NS_PER_S**2,
        "latency_variance_s2": m2 / (n - 1) / _NS_PER_S**2 if n > 1 else None,
    }


def _communicator(trial: TrialTables) -> tuple[str, str | None]:
    """performance_test's name, with the RMW for ROS 2; perflab's name if that does not know it."""
    middleware = trial.middleware or UNKNOWN
    kind, _, rmw = middleware.partition("/")
    if kind == "rclcpp":
        names = {executor: name for name, executor in reversed(dialect.RCLCPP.items()) if "-" in name}
        return names.get(trial.executor or "single_threaded", f"rclcpp-{trial.executor}"), rmw or None
    return next((name for name, ours in dialect.COMMUNICATORS.items() if ours == kind), middleware), None


def message_name(of: str) -> str:
    """array1k is Array1k, point_cloud1m PointCloud1m; a type of a package keeps its name."""
    return of if "/" in of else "".join(part[:1].upper() + part[1:] for part in of.split("_"))


def _one(values: Iterable[Any]) -> Any:
    """The only value; None if there are several, or none."""
    found = list(values)
    return found[0] if len(found) == 1 else None


def _one_of(values: Sequence[Json]) -> Json | None:
    return values[0] if values and all(value == values[0] for value in values) else None
