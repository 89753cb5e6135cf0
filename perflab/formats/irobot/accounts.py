"""A trial of perflab as irobot_benchmark's output directories: one per process, counted its way or perflab's.

Nodes are in the order of the graph and topics in alphabetical order within a node, as in the original. Names are
relative to the root namespace. What perflab did not record is left out: a single process reports no discovery of
participants.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from perflab.errors import BadInput
from perflab.formats.irobot.dialect import DISCOVERY, Event, Output, Sample
from perflab.formats.irobot.runs import ACCOUNTING, CPUS, MEASURED_BY, MIDDLEWARE, PHASE
from perflab.formats.tables import histogram_of
from perflab.middleware import rclcpp
from perflab.models import as_json
from perflab.results.files import Manifest
from perflab.results.run import RunData, TrialTables
from perflab.statistics import histogram as hg
from perflab.statistics import irobot
from perflab.statistics.irobot import LATE, LOST, TOO_LATE, Delivery, Options, Row, Total
from perflab.statistics.target import machine_cpus
from perflab.version import __version__
from perflab.workload import qualified_name

Json = dict[str, Any]

_EXECUTORS = {
    "single_threaded": "SingleThreadedExecutor",
    "static_single_threaded": "StaticSingleThreadedExecutor",
    "events": "EventsExecutor",
}
_NODE_TYPES = {"node": "Node", "lifecycle": "LifecycleNode"}
_NS_PER_MS = 1_000_000
_DELIVERY = (
    "size_bytes", "frequency_hz", "received", "first_sequence", "highest_sequence", "reordered", "duplicate",
    "beyond_window", "late", "too_late",
)  # fmt: skip


class Accounting(StrEnum):
    """How to count: as irobot_benchmark does, including its defects, or as perflab does."""

    ORIGINAL = "original"
    CORRECTED = "corrected"

    @property
    def is_original(self) -> bool:
        return self is Accounting.ORIGINAL


@dataclass(frozen=True)
class Stream:
    """What one node receives from one sender: messages of a topic, or as a client the replies of a service."""

    node: str
    subject: str  # topic or service
    client: bool
    recorded: bool  # by a process; a stream that is only in the graph is not
    delivery: Delivery


def outputs_of(
    run: RunData, trial: TrialTables, accounting: Accounting, *, tracking: bool, legacy: bool = False, csv: bool = False
) -> list[Output]:
    """One Output per process of the graph. Raises BadInput if the run lacks required data.

    `legacy` is the older dialect: its CPU use is the mean since the start of the process. `csv` only affects the
    metadata.
    """
    try:
        accounts = _Accounts(run.manifest, trial, accounting, tracking=tracking)
        return [accounts.output(process, legacy=legacy, csv=csv) for process in accounts.nodes]
    except (KeyError, TypeError, hg.HistogramError) as error:
        raise BadInput(f"{run.path} is damaged: {type(error).__name__}: {error}") from error


def aggregate(outputs: Sequence[Output], accounting: Accounting) -> Total:
    """The total of all processes: the original prints it without writing it to a file."""
    totals = [output.total for output in outputs if output.total is not None]
    return irobot.original_aggregate(totals) if accounting.is_original else irobot.corrected_aggregate(totals)


T = TypeVar("T")


class _Accounts:
    """A trial, counted in one of the two ways."""

    def __init__(self, manifest: Manifest, trial: TrialTables, accounting: Accounting, *, tracking: bool) -> None:
        self.manifest, self.trial, self.original = manifest, trial, accounting.is_original
        self.accounting, self.cpus = accounting, machine_cpus(manifest.host)
        self.settings = manifest.settings
        self.thresholds = {key: _known(value) for key, value in as_json(self.settings.thresholds).items()}
        # Integers as in the original; fractions are truncated.
        self.options = Options(
            tracking=tracking,
            late_percentage=int(self.thresholds["late_percent"]),
            late_absolute_us=self.thresholds["late_ns"] // 1000,
            too_late_percentage=int(self.thresholds["too_late_percent"]),
            too_late_absolute_us=self.thresholds["too_late_ns"] // 1000,
        )
        graph = manifest.workload.graph["processes"]
        self.nodes = {p["name"]: {qualified_name(node): node for node in p["nodes"]} for p in graph}
        self.executors = {e["kind"] for p in graph for e in p["executors"]}
        self.streams = self._streams()
        self.message_events = list(self._message_events(self.streams))

    def output(self, process: str, *, legacy: bool, csv: bool) -> Output:
        topics, clients = self._receivers(process, client=False), self._receivers(process, client=True)
        rows, samples = [row for row, _ in (*topics, *clients)], [n for _, n in (*topics, *clients)]
        return Output(
            process=process,
            subscriptions=tuple(row for row, _ in topics),
            clients=tuple(row for row, _ in clients),
            publishers=tuple(self._publishers(process)),
            total=irobot.original_total(rows) if self.original else irobot.corrected_total(rows, samples),
            resources=self._samples(process, since_start=legacy),
            events=self._events(process) if self.options.tracking else None,
            metadata=self._metadata(csv=csv),
            duration_s=self.trial.duration_s,
            legacy=legacy,
        )

    # -- messages ----------------------------------------------------------------------------------------------------

    def _streams(self) -> list[Stream]:
        """The edges of a trial followed by its services, with the data for the original's rules."""
        found = [self._stream(row, "subscription", "latency") for row in self.trial.edges.iter_rows(named=True)]
        for row in self.trial.services.iter_rows(named=True):
            as_edge = row | {"publisher": row["client"], "topic": row["service"]}
            found.append(self._stream(as_edge, "publisher", "round_trip"))
        late: dict[int, list[int]] = {}
        for number, event in self._message_events(found):
            if event["code"] != "lost":
                late.setdefault(number, []).append(event["latency_ns"])
        streams = []
        for number, stream in enumerate(found):
            one_by_one = tuple(late.get(number, ()))
            whole = len(one_by_one) == stream.delivery.late + stream.delivery.too_late
            streams.append(replace(stream, delivery=replace(stream.delivery, late_ns=one_by_one)) if whole else stream)
        return streams

    def _stream(self, row: Mapping[str, Any], node: str, figure: str) -> Stream:
        losses = [row[key] for key in ("pre_match", "gap", "tail")]
        # perflab's own lower threshold: a latency above it is an event.
        above_ns = [float(self.thresholds[key]) for key in ("late_ns", "too_late_ns")]
        if row["frequency_hz"]:
            period_ns = 1e9 / row["frequency_hz"]
            above_ns += [self.thresholds[key] / 100 * period_ns for key in ("late_percent", "too_late_percent")]
        return Stream(
            node=row[node],
            subject=row["topic"],
            client=node == "publisher",
            recorded=row["size_bytes"] is not None,
            delivery=Delivery(
                **{key: row[key] for key in _DELIVERY},
                lost=None if None in losses else sum(losses),
                latency=histogram_of(row, figure) or hg.empty(),
                recorded_above_ns=min(above_ns),
            ),
        )

    def _message_events(self, streams: Sequence[Stream]) -> Iterator[tuple[int, Json]]:
        """(index of the stream, event) for every event about single messages.

        An event names its stream by its index among those of its own process: edges first, then services.
        """
        process_of = {node: process for process, nodes in self.nodes.items() for node in nodes}
        everywhere = [number for number, stream in enumerate(streams) if stream.recorded]
        places: dict[str, list[int]] = {}
        for number in everywhere:
            places.setdefault(process_of.get(streams[number].node, ""), []).append(number)
        for event in self.trial.events.iter_rows(named=True):
            if event["code"] not in ("late", "too_late", "lost"):
                continue
            details = json.loads(event["details"] or "{}")
            # In virtual time one process reports for all.
            own = places.get(event["process"], everywhere)
            if 0 <= details["edge"] < len(own):
                yield own[details["edge"]], {**event, **details}

    def _receivers(self, process: str, *, client: bool) -> list[tuple[Row, int]]:
        """One row per subscription, or per client, and the number of messages behind each mean."""
        parts: dict[tuple[str, str], list[Delivery]] = {}
        for stream in self.streams:
            if stream.client is client:
                parts.setdefault((stream.node, stream.subject), []).append(stream.delivery)
        found = []
        for node in self.nodes[process]:
            for key in sorted(key for key in parts if key[0] == node):
                names, deliveries = (_relative(node), _relative(key[1])), parts[key]
                if self.original:
                    row = irobot.original_subscription(*names, deliveries, self.options, self.trial.duration_s)
                else:
                    row = irobot.corrected_subscription(*names, deliveries, self.trial.duration_s)
                    if not self.options.tracking:  # the file has zeros if nothing was classified
                        row = replace(row, late=0, too_late=0, lost=0)
                found.append((row, sum(delivery.latency.count for delivery in deliveries)))
        return found

    def _publishers(self, process: str) -> Iterator[Row]:
        build = irobot.original_publisher if self.original else irobot.corrected_publisher
        recorded = sorted(self.trial.publishers.iter_rows(named=True), key=lambda row: str(row["topic"]))
        for name, node in self.nodes[process].items():
            described = {publisher["topic"]: publisher for publisher in node["publishers"]}
            for row in recorded:
                if row["node"] == name:
                    publisher = described[row["topic"]]
                    sizes = publisher["size_bytes"] or 0, publisher["frequency_hz"] or 0.0
                    calls = histogram_of(row, "publish_call") or hg.empty()
                    names = _relative(name), _relative(row["topic"])
                    yield build(*names, *sizes, row["sent"], calls, self.trial.duration_s)

    # -- files beside ------------------------------------------------------------------------------------------------

    def _samples(self, process: str, *, since_start: bool) -> tuple[Sample, ...] | None:
        """From its start on, after the original's line of zeros. None if it was not sampled."""
        rows = [row for row in self.trial.resources.iter_rows(named=True) if row["process"] == process]
        if not rows:
            return None
        samples = [Sample(0, 0.0, 0, 0, 0, 0, 0)]
        first = rows[0]
        rss = "rss_peak_kb" if self.original else "rss_kb"
        for before, row in itertools.pairwise(rows):
            begin = first if since_start else before
            used_ns, wall_ns = row["cpu_ns"] - begin["cpu_ns"], row["at_ns"] - begin["at_ns"]
            used = None if self.cpus is None else irobot.cpu_percent_of_machine(used_ns, wall_ns, self.cpus)
            memory = (row[key] for key in ("arena_kb", "in_use_kb", "mmap_kb", rss, "vsz_kb"))
            samples.append(Sample((row["at_ns"] - first["at_ns"]) // _NS_PER_MS, used, *memory))
        return tuple(samples)

    def _events(self, process: str) -> tuple[Event, ...]:
        """Discovery, and the late, too late and lost messages of a process's subscriptions, in time order."""
        own = [row for row in self.trial.events.iter_rows(named=True) if row["process"] == process]
        zero_ns = next((row["at_ns"] for row in own if row["code"] == "endpoints_created"), self.trial.started_ns or 0)
        found: list[tuple[int, str, int, str]] = []
        for row in own:
            phase = {"all_participants_found": "PDP", "all_endpoints_matched": "EDP"}.get(row["code"])
            if phase is not None:
                found.append((row["at_ns"], "SYSTEM", DISCOVERY, f"[discovery] {phase} completed"))
        for number, event in self.message_events:
            stream = self.streams[number]
            said = self._classified(event, stream.delivery) if stream.node in self.nodes[process] else None
            if said is not None:
                found.append((event["at_ns"], f"{_relative(stream.subject)}->{_relative(stream.node)}", *said))
        found.sort(key=lambda entry: entry[0])
        return tuple(
            Event(max(0, at_ns - zero_ns) // _NS_PER_MS, caller, code, text) for at_ns, caller, code, text in found
        )

    def _classified(self, event: Json, delivery: Delivery) -> tuple[int, str] | None:
        """(code, text) of an event about one message; None if the original reports nothing."""
        number = event["sequence"]
        if event["code"] == "lost":
            missing = event["count"]
            if self.original:
                return LOST, irobot.original_lost_text(number + missing, missing)
            return LOST, irobot.corrected_lost_text(number, missing)
        latency_us, is_too_late = event["latency_ns"] // 1000, event["code"] == "too_late"
        threshold_us = event["threshold_ns"] // 1000
        if self.original:
            too_late_us = self.options.too_late_threshold_us(delivery.frequency_hz)
            is_too_late = latency_us > too_late_us
            threshold_us = too_late_us if is_too_late else self.options.late_threshold_us(delivery.frequency_hz)
            if latency_us <= threshold_us:
                return None
        text = irobot.late_text(number, latency_us, threshold_us, too_late=is_too_late)
        return TOO_LATE if is_too_late else LATE, text

    def _metadata(self, *, csv: bool) -> dict[str, str]:
        """The original's lines, followed by the origin of the figures."""
        trial, options = self.trial, self.options
        kind = trial.executor or "+".join(sorted(self.executors))
        ros = _of_ros(self.manifest, str(trial.middleware))
        lines = {
            "topology_json_list": " ".join(Path(source.path).name for source in self.manifest.workload.sources),
            "system_executor": _EXECUTORS.get(kind, kind),
            "node_type": _NODE_TYPES.get(ros.get("node", "node"), "Node"),
            "ipc": trial.ipc or "off",
            "ros_params": ros.get("parameter_services", "off"),
            "name_threads": _switch(self.settings.name_threads is not False),
            "duration_sec": f"{trial.duration_s:g} seconds",
            "resources_sampling_per_ms": f"{_known(self.settings.sampling_ns) / _NS_PER_MS:g}",
            "csv_out": _switch(csv),
            "tracking.is_enabled": _switch(options.tracking),
            "late_percentage": str(options.late_percentage),
            "late_absolute_us": str(options.late_absolute_us),
            "too_late_percentage": str(options.too_late_percentage),
            "too_late_absolute_us": str(options.too_late_absolute_us),
            MEASURED_BY: f"perflab {__version__}",
            MIDDLEWARE: trial.middleware,
            ACCOUNTING: str(self.accounting),
            PHASE: trial.phase,
            CPUS: None if self.cpus is None else str(self.cpus),
        }
        return {key: text for key, text in lines.items() if text is not None}


def _known(setting: T | None) -> T:
    """Raises TypeError if the run lacks a setting."""
    if setting is None:
        raise TypeError("a setting is missing")
    return setting


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _relative(name: str) -> str:
    return name.removeprefix("/")


def _of_ros(manifest: Manifest, middleware: str) -> dict[str, str]:
    """The settings of ROS 2's nodes; nothing on another runtime. Several in one run are joined."""
    if not middleware.startswith(f"{rclcpp.NAME}/"):
        return {}
    given = [m.options for m in manifest.middlewares if m.name == middleware]
    found = {key: {str(one.get(key, default)) for one in given or [{}]} for key, default in rclcpp.DEFAULTS.items()}
    return {key: "+".join(sorted(values)) for key, values in found.items()}
