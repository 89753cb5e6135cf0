"""A trial of perflab as irobot_benchmark's output directories: one per process, counted its way or ours.

Nodes stand in the order of the graph and topics in that of the alphabet within a node, as there. Names are relative to
the root namespace. What perflab did not record is left out: a single process reports no discovery of participants.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput
from perflab.formats.irobot.model import DISCOVERY, Event, Output, Sample
from perflab.formats.irobot.runs import ACCOUNTING, CPUS, MEASURED_BY, MIDDLEWARE, PHASE
from perflab.formats.tables import histogram_of
from perflab.middleware import rclcpp
from perflab.results.run import RunData, TrialTables
from perflab.statistics import histogram as hg
from perflab.statistics import irobot
from perflab.statistics.irobot import LATE, LOST, TOO_LATE, Delivery, Options, Row, Total
from perflab.statistics.target import machine_cpus
from perflab.version import __version__

if TYPE_CHECKING:
    import polars as pl

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
    """How to count: as irobot_benchmark does, defects included, or as perflab does."""

    ORIGINAL = "original"
    CORRECTED = "corrected"


@dataclass(frozen=True)
class Stream:
    """What one node receives of one sender: messages of a topic, or as a client the replies of a service."""

    node: str
    subject: str  # topic or service
    client: bool
    recorded: bool  # by a process; a stream that only the graph knows is not
    delivery: Delivery


@dataclass
class _Process:
    """The graph's side of one process."""

    name: str
    nodes: list[str] = field(default_factory=list)


def outputs_of(
    run: RunData, trial: TrialTables, accounting: Accounting, *, tracking: bool, legacy: bool = False, csv: bool = False
) -> list[Output]:
    """One Output per process of the graph. Raises BadInput where the run does not hold what is needed.

    `legacy` is the older dialect: there CPU use is the mean since the start of the process. `csv` is only what the
    metadata say.
    """
    try:
        processes = _processes(run.manifest)
        options = options_of(run.manifest, tracking=tracking)
        streams = _streams(run, trial)
        message_events = _message_events(run.manifest, trial, streams)
        publishers = list(trial.publishers.iter_rows(named=True))
        cpus = machine_cpus(run.manifest)
        outputs = []
        for process in processes:
            topics, topic_samples = _receivers(process, streams, False, accounting, options, trial.duration_s)
            clients, client_samples = _receivers(process, streams, True, accounting, options, trial.duration_s)
            outputs.append(
                Output(
                    process=process.name,
                    subscriptions=tuple(topics),
                    clients=tuple(clients),
                    publishers=tuple(_publishers(process, publishers, run.manifest, accounting, trial.duration_s)),
                    total=_total(topics + clients, topic_samples + client_samples, accounting),
                    resources=_samples(process.name, trial.resources, cpus, accounting, since_start=legacy),
                    events=_events(process, trial, streams, message_events, accounting, options) if tracking else None,
                    metadata=_metadata(run, trial, accounting, options, cpus, csv=csv),
                    duration_s=trial.duration_s,
                    legacy=legacy,
                )
            )
    except (KeyError, TypeError, hg.HistogramError) as error:
        raise BadInput(f"{run.path} is damaged: {type(error).__name__}: {error}") from error
    return outputs


def aggregate(outputs: Sequence[Output], accounting: Accounting) -> Total:
    """The total of all processes: the original prints it and writes it nowhere."""
    totals = [output.total for output in outputs if output.total is not None]
    combine = irobot.original_aggregate if accounting is Accounting.ORIGINAL else irobot.corrected_aggregate
    return combine(totals)


def options_of(manifest: Mapping[str, Any], *, tracking: bool) -> Options:
    """The thresholds of a run as the original's whole numbers; what it cannot express is cut down."""
    thresholds = manifest["settings"]["thresholds"]
    return Options(
        tracking=tracking,
        late_percentage=int(thresholds["late_percent"]),
        late_absolute_us=thresholds["late_ns"] // 1000,
        too_late_percentage=int(thresholds["too_late_percent"]),
        too_late_absolute_us=thresholds["too_late_ns"] // 1000,
    )


def _streams(run: RunData, trial: TrialTables) -> list[Stream]:
    """The edges of a trial and, after them, its services, with what the original's rules need of each."""
    thresholds = run.manifest["settings"]["thresholds"]
    found = [_stream(row, "subscription", "latency", thresholds) for row in trial.edges.iter_rows(named=True)]
    services = [
        row | {"publisher": row["client"], "topic": row["service"]} for row in trial.services.iter_rows(named=True)
    ]
    found += [_stream(row, "publisher", "round_trip", thresholds) for row in services]
    late: dict[int, list[int]] = {}
    for number, event in _message_events(run.manifest, trial, found):
        if event["code"] != "lost":
            late.setdefault(number, []).append(event["latency_ns"])
    streams = []
    for number, stream in enumerate(found):
        one_by_one = tuple(late.get(number, ()))
        whole = len(one_by_one) == stream.delivery.late + stream.delivery.too_late
        streams.append(replace(stream, delivery=replace(stream.delivery, late_ns=one_by_one)) if whole else stream)
    return streams


def _stream(row: Mapping[str, Any], node: str, figure: str, thresholds: Mapping[str, Any]) -> Stream:
    losses = [row[key] for key in ("pre_match", "gap", "tail")]
    return Stream(
        node=row[node],
        subject=row["topic"],
        client=node == "publisher",
        recorded=row["size_bytes"] is not None,
        delivery=Delivery(
            **{key: row[key] for key in _DELIVERY},
            lost=None if None in losses else sum(losses),
            latency=histogram_of(row, figure) or hg.empty(),
            recorded_above_ns=_recorded_above_ns(thresholds, row["frequency_hz"]),
        ),
    )


def _recorded_above_ns(thresholds: Mapping[str, Any], frequency_hz: float | None) -> float:
    """perflab's own lower threshold: what is above is an event."""
    limits = [float(thresholds["late_ns"]), float(thresholds["too_late_ns"])]
    if frequency_hz:
        period_ns = 1e9 / frequency_hz
        limits += [thresholds[key] / 100 * period_ns for key in ("late_percent", "too_late_percent")]
    return min(limits)


def _processes(manifest: Mapping[str, Any]) -> list[_Process]:
    return [
        _Process(process["name"], [_full_name(node) for node in process["nodes"]])
        for process in manifest["workload"]["graph"]["processes"]
    ]


def _full_name(node: Mapping[str, Any]) -> str:
    return f"{str(node['namespace']).rstrip('/')}/{node['name']}"


def _relative(name: str) -> str:
    return name.removeprefix("/")


def _message_events(
    manifest: Mapping[str, Any], trial: TrialTables, streams: Sequence[Stream]
) -> list[tuple[int, Json]]:
    """(index of the stream, event) of every event about single messages.

    An event names its stream by its place among those of its own process: edges first, then services.
    """
    import polars as pl

    process_of = {node: p.name for p in _processes(manifest) for node in p.nodes}
    everywhere = [number for number, stream in enumerate(streams) if stream.recorded]
    places: dict[str, list[int]] = {}
    for number in everywhere:
        places.setdefault(process_of.get(streams[number].node, ""), []).append(number)
    found = []
    wanted = trial.events.filter(pl.col("code").is_in(["late", "too_late", "lost"]))
    for event in wanted.iter_rows(named=True):
        details = json.loads(event["details"] or "{}")
        # In virtual time one process speaks for all.
        own = places.get(event["process"], everywhere)
        if 0 <= details["edge"] < len(own):
            found.append((own[details["edge"]], {**event, **details}))
    return found


def _receivers(
    process: _Process,
    streams: Sequence[Stream],
    clients: bool,
    accounting: Accounting,
    options: Options,
    duration_s: float,
) -> tuple[list[Row], list[int]]:
    """One row per subscription, or per client, and the number of messages behind each mean."""
    parts: dict[tuple[str, str], list[Delivery]] = {}
    for stream in streams:
        if stream.client is clients:
            parts.setdefault((stream.node, stream.subject), []).append(stream.delivery)
    rows: list[Row] = []
    samples: list[int] = []
    for node in process.nodes:
        for key in sorted(key for key in parts if key[0] == node):
            name, subject, deliveries = _relative(node), _relative(key[1]), parts[key]
            if accounting is Accounting.ORIGINAL:
                rows.append(irobot.original_subscription(name, subject, deliveries, options, duration_s))
            else:
                row = irobot.corrected_subscription(name, subject, deliveries, duration_s)
                rows.append(row if options.tracking else _untracked(row))
            samples.append(sum(delivery.latency.count for delivery in deliveries))
    return rows, samples


def _untracked(row: Row) -> Row:
    """As without tracking: the file has zeros where nothing was classified."""
    return replace(row, late=0, too_late=0, lost=0)


def _publishers(
    process: _Process,
    publishers: Sequence[Mapping[str, Any]],
    manifest: Mapping[str, Any],
    accounting: Accounting,
    duration_s: float,
) -> list[Row]:
    build = irobot.original_publisher if accounting is Accounting.ORIGINAL else irobot.corrected_publisher
    described = {
        (_full_name(node), publisher["topic"]): publisher
        for p in manifest["workload"]["graph"]["processes"]
        for node in p["nodes"]
        for publisher in node["publishers"]
    }
    rows = []
    for name in process.nodes:
        for row in sorted((p for p in publishers if p["node"] == name), key=lambda p: str(p["topic"])):
            publisher = described[name, row["topic"]]
            rows.append(
                build(
                    _relative(name),
                    _relative(row["topic"]),
                    publisher["size_bytes"] or 0,
                    publisher["frequency_hz"] or 0.0,
                    row["sent"],
                    histogram_of(row, "publish_call") or hg.empty(),
                    duration_s,
                )
            )
    return rows


def _total(rows: Sequence[Row], samples: Sequence[int], accounting: Accounting) -> Total:
    if accounting is Accounting.ORIGINAL:
        return irobot.original_total(rows)
    return irobot.corrected_total(rows, samples)


def _samples(
    process: str, resources: pl.DataFrame, cpus: int | None, accounting: Accounting, *, since_start: bool
) -> tuple[Sample, ...] | None:
    """The samples of a process from its start on, after the original's line of zeros. None where it was not sampled."""
    rows = [row for row in resources.iter_rows(named=True) if row["process"] == process]
    if not rows:
        return None
    samples = [Sample(0, 0.0, 0, 0, 0, 0, 0)]
    first = rows[0]
    for before, row in itertools.pairwise(rows):
        begin = first if since_start else before
        used_ns, wall_ns = row["cpu_ns"] - begin["cpu_ns"], row["at_ns"] - begin["at_ns"]
        samples.append(
            Sample(
                time_ms=(row["at_ns"] - first["at_ns"]) // _NS_PER_MS,
                cpu_percent=None if cpus is None else irobot.cpu_percent_of_machine(used_ns, wall_ns, cpus),
                arena_kb=row["arena_kb"],
                in_use_kb=row["in_use_kb"],
                mmap_kb=row["mmap_kb"],
                rss_kb=row["rss_peak_kb" if accounting is Accounting.ORIGINAL else "rss_kb"],
                vsz_kb=row["vsz_kb"],
            )
        )
    return tuple(samples)


def _events(
    process: _Process,
    trial: TrialTables,
    streams: Sequence[Stream],
    message_events: Sequence[tuple[int, Json]],
    accounting: Accounting,
    options: Options,
) -> tuple[Event, ...]:
    """Discovery, and the late, too late and lost messages of a process's subscriptions, in order of time."""
    timed: list[tuple[int, Event]] = []
    own = [row for row in trial.events.iter_rows(named=True) if row["process"] == process.name]
    created = [row["at_ns"] for row in own if row["code"] == "endpoints_created"]
    zero_ns = created[0] if created else (trial.started_ns or 0)

    def add(at_ns: int, caller: str, code: int, text: str) -> None:
        timed.append((at_ns, Event(max(0, at_ns - zero_ns) // _NS_PER_MS, caller, code, text)))

    for row in own:
        phase = {"all_participants_found": "PDP", "all_endpoints_matched": "EDP"}.get(row["code"])
        if phase is not None:
            add(row["at_ns"], "SYSTEM", DISCOVERY, f"[discovery] {phase} completed")
    for number, event in message_events:
        stream = streams[number]
        if stream.node not in process.nodes:
            continue
        caller = f"{_relative(stream.subject)}->{_relative(stream.node)}"
        found = _classified(event, stream.delivery, accounting, options)
        if found is not None:
            add(event["at_ns"], caller, *found)
    return tuple(event for _, event in sorted(timed, key=lambda pair: pair[0]))


def _classified(event: Json, delivery: Delivery, accounting: Accounting, options: Options) -> tuple[int, str] | None:
    """(code, text) of an event about one message; None where the original sees nothing in it."""
    original = accounting is Accounting.ORIGINAL
    if event["code"] == "lost":
        first, missing = event["sequence"], event["count"]
        if original:
            return LOST, irobot.original_lost_text(first + missing, missing)
        return LOST, irobot.corrected_lost_text(first, missing)
    number, latency_us = event["sequence"], event["latency_ns"] // 1000
    late_us = options.late_threshold_us(delivery.frequency_hz)
    too_late_us = options.too_late_threshold_us(delivery.frequency_hz)
    if original:
        if latency_us > too_late_us:
            return TOO_LATE, irobot.late_text(number, latency_us, too_late_us, too_late=True)
        if latency_us > late_us:
            return LATE, irobot.late_text(number, latency_us, late_us, too_late=False)
        return None
    is_too_late = event["code"] == "too_late"
    threshold_us = event["threshold_ns"] // 1000
    text = irobot.late_text(number, latency_us, threshold_us, too_late=is_too_late)
    return TOO_LATE if is_too_late else LATE, text


def _metadata(
    run: RunData, trial: TrialTables, accounting: Accounting, options: Options, cpus: int | None, *, csv: bool
) -> dict[str, str]:
    """The original's lines, and below them what tells where the figures come from."""
    settings = run.manifest["settings"]
    sources = run.manifest["workload"].get("sources") or ()

    def switch(on: bool) -> str:
        return "on" if on else "off"

    def option(name: str, default: str) -> str:
        value = settings.get(name)
        return default if value is None else switch(value) if isinstance(value, bool) else str(value)

    kind = trial.executor or _kinds(run.manifest)
    ros = _of_ros(run.manifest, str(trial.middleware))
    lines = {
        "topology_json_list": " ".join(Path(source["path"]).name for source in sources),
        "system_executor": _EXECUTORS.get(kind, kind),
        "node_type": _NODE_TYPES.get(ros.get("node") or option("node_type", "node"), "Node"),
        "ipc": trial.ipc or option("ipc", "off"),
        "ros_params": ros.get("parameter_services") or option("ros_params", "off"),
        "name_threads": option("name_threads", "on"),
        "duration_sec": f"{trial.duration_s:g} seconds",
        "resources_sampling_per_ms": f"{settings['sampling_ns'] / _NS_PER_MS:g}",
        "csv_out": switch(csv),
        "tracking.is_enabled": switch(options.tracking),
        "late_percentage": str(options.late_percentage),
        "late_absolute_us": str(options.late_absolute_us),
        "too_late_percentage": str(options.too_late_percentage),
        "too_late_absolute_us": str(options.too_late_absolute_us),
        MEASURED_BY: f"perflab {__version__}",
        MIDDLEWARE: trial.middleware,
        ACCOUNTING: str(accounting),
        PHASE: trial.phase,
        CPUS: None if cpus is None else str(cpus),
    }
    return {key: text for key, text in lines.items() if text is not None}


def _of_ros(manifest: Mapping[str, Any], middleware: str) -> dict[str, str]:
    """What the nodes of ROS 2 were made with; nothing on another runtime. Several in one run are told together."""
    if not middleware.startswith(f"{rclcpp.NAME}/"):
        return {}
    given = [m.get("options") or {} for m in manifest.get("middlewares") or () if m.get("name") == middleware]
    found = {key: {str(one.get(key, default)) for one in given or [{}]} for key, default in rclcpp.DEFAULTS.items()}
    return {key: "+".join(sorted(values)) for key, values in found.items()}


def _kinds(manifest: Mapping[str, Any]) -> str:
    kinds = {e["kind"] for p in manifest["workload"]["graph"]["processes"] for e in p["executors"]}
    return "+".join(sorted(kinds))
