"""Output directories of irobot_benchmark as a run: summary and tables of perflab, null for missing data.

The differences from perflab's own figures are in the notes: `lost` includes gaps and messages sent before the match,
and is stored in `gap`; losses at the end are not noticed; too late messages are in the counts but not in the times;
there are no percentiles. CPU use is a share of the whole machine; it is converted to percent of one CPU if the metadata
has the number of CPUs. Beside the documented keys, times have `sd`, and resources have `cpu_percent_of_machine`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perflab.formats.irobot import dialect
from perflab.formats.irobot.dialect import DISCOVERY, SERVICE_UNAVAILABLE, Event, Output, Sample
from perflab.formats.irobot.parse import parse
from perflab.formats.tables import empty_tables
from perflab.results.figure import Distribution
from perflab.results.files import Manifest, UsedSettings, UsedThresholds, UsedWorkload
from perflab.results.outcome import SUCCESS, Outcomes
from perflab.results.phase import ALIGNED, AS_CREATED
from perflab.results.run import IROBOT, IROBOT_LEGACY, UNKNOWN, RunData, Tables, TrialTables
from perflab.results.summary import Summary
from perflab.results.trial import (
    Coverage,
    EdgeResult,
    Lost,
    ProcessResources,
    Resources,
    Result,
    ServiceResult,
    Totals,
    Trial,
    added,
    largest,
)
from perflab.statistics.irobot import LATE, LOST, TOO_LATE, Row, Total

Json = dict[str, Any]

# Metadata that perflab adds to its exports.
MEASURED_BY = "measured_by"
MIDDLEWARE = "middleware"
ACCOUNTING = "accounting"
CPUS = "cpus"
PHASE = "phase"

_EXECUTORS = {
    "SingleThreadedExecutor": "single_threaded",
    "StaticSingleThreadedExecutor": "static_single_threaded",
    "EventsExecutor": "events",
}
_CODES = {LATE: "late", TOO_LATE: "too_late", LOST: "lost", SERVICE_UNAVAILABLE: "service_unavailable"}
_DISCOVERY_CODES = (("PDP", "all_participants_found"), ("EDP", "all_endpoints_matched"))
_LATE_TEXT = re.compile(r"msg (\d+) (?:too )?late\. (\d+)us > (\d+)us")
_LOST_TEXT = re.compile(r"msgs? (\d+)(?: to (\d+))? lost\.")
_WRAPPED = 1 << 31


def read(path: Path, directories: Sequence[Path]) -> RunData:
    """The run in these directories, one process each; `path` is where they were found. Raises BadInput."""
    outputs = [parse(directory) for directory in directories]
    origin = IROBOT_LEGACY if any(output.legacy for output in outputs) else IROBOT
    tracked = _tracked(outputs)
    metadata = next((output.metadata for output in outputs if output.metadata), {})
    duration_s = _duration_s(outputs)
    asked: dict[str, Any] = {
        "workload": "+".join(_ordered_names(outputs)),
        "executor": _executor(metadata),
        "ipc": metadata.get("ipc"),
        # Its own timers run from their creation on; perflab's were aligned before the phase was recorded.
        "phase": metadata.get(PHASE) or (ALIGNED if MEASURED_BY in metadata else AS_CREATED),
    }
    edges = [_edge(row, outputs, tracked) for output in outputs for row in output.subscriptions or ()]
    services = [_service(row, tracked) for output in outputs for row in output.clients]
    totals = _totals(edges, outputs, tracked)
    resources = _resources(outputs)
    result = Result(
        **asked,
        middleware=metadata.get(MIDDLEWARE),
        trials=1,
        outcomes=Outcomes(success=1),
        duration_s=duration_s,
        coverage=Coverage(trials_merged=1, complete=True),
        totals=totals,
        trials_detail=(
            Trial(
                trial=1,
                order=1,
                outcome=SUCCESS,
                measured_s=duration_s,
                complete=True,
                totals=totals,
                resources=resources,
            ),
        ),
        services=tuple(services),
        edges=tuple(edges),
        resources=resources,
    )
    name = path.resolve().name
    trial = TrialTables(
        number=1,
        **asked,
        middleware=metadata.get(MIDDLEWARE) or UNKNOWN,
        outcome=SUCCESS,
        started_ns=None,
        duration_s=duration_s if duration_s is not None else math.nan,
        **_tables(outputs, edges, services),
    )
    return RunData(
        name=name,
        path=path,
        origin=origin,
        summary=Summary(run=name, valid=True, results=(result,)),
        manifest=Manifest(
            run=name,
            settings=_settings(metadata, duration_s),
            workload=UsedWorkload(kind=origin, name=asked["workload"]),
            middlewares=(),
            trials=(),
            preflight=(),
        ),
        trials=(trial,),
        notes=tuple(_notes(outputs, origin, tracked, duration_s)),
    )


def _tracked(outputs: Sequence[Output]) -> bool | None:
    """Whether messages were classified: according to the metadata, or else the files. None: unknown."""
    for output in outputs:
        if (said := output.metadata.get("tracking.is_enabled")) is not None:
            return said == "on"
    rows = [row for output in outputs for row in (*(output.subscriptions or ()), *output.clients)]
    seen = any(output.events is not None for output in outputs)
    return True if seen or any(row.late or row.too_late or row.lost for row in rows) else None


def _ordered_names(outputs: Sequence[Output]) -> list[str]:
    """The processes in the order of the command line if that is known, else by name."""
    names = [output.process for output in outputs]
    for output in outputs:
        said = [Path(topology).stem for topology in output.metadata.get("topology_json_list", "").split()]
        if sorted(said) == sorted(names):
            return said
    return names


def _duration_s(outputs: Sequence[Output]) -> float | None:
    for output in outputs:
        match = re.match(r"\d+(?:\.\d+)?", output.metadata.get("duration_sec", ""))
        if match and float(match.group()) > 0:
            return float(match.group())
    known = [output.duration_s for output in outputs if output.duration_s]
    if not known:
        known = [output.resources[-1].time_ms / 1000 for output in outputs if output.resources]
    longest = max(known, default=0.0)
    return longest if longest > 0 else None


def _executor(metadata: dict[str, str]) -> str | None:
    said = metadata.get("system_executor")
    return None if not said or said.startswith("Unknown") else _EXECUTORS.get(said, said)


def _settings(metadata: dict[str, str], duration_s: float | None) -> UsedSettings:
    def whole(key: str, scale: int = 1) -> int | None:
        text = metadata.get(key, "")
        return int(text) * scale if text.isdigit() else None

    return UsedSettings(
        duration_ns=None if duration_s is None else round(duration_s * 1e9),
        sampling_ns=whole("resources_sampling_per_ms", 1_000_000),
        thresholds=UsedThresholds(
            late_percent=whole("late_percentage"),
            late_ns=whole("late_absolute_us", 1000),
            too_late_percent=whole("too_late_percentage"),
            too_late_ns=whole("too_late_absolute_us", 1000),
        ),
    )


def _samples(row: Row, tracked: bool | None) -> int | None:
    """How many messages the times of a row cover."""
    return None if tracked is None else row.received - (row.too_late if tracked else 0)


def _ns(us: float) -> int | None:
    return None if math.isnan(us) else round(us * 1000)


def _of_row(row: Row, count: int | None) -> Distribution:
    mean, sd = (None if math.isnan(us) else us * 1000 for us in (row.mean_us, row.sd_us))
    return Distribution(count=count, min=_ns(row.min_us), mean=mean, max=_ns(row.max_us), sd=sd)


def _publisher_of(topic: str, outputs: Sequence[Output]) -> Row | None:
    """The publisher of a topic, if there is exactly one."""
    found = [row for output in outputs for row in output.publishers if row.topic == topic]
    return found[0] if len(found) == 1 else None


def _edge(row: Row, outputs: Sequence[Output], tracked: bool | None) -> EdgeResult:
    publisher = _publisher_of(row.topic, outputs)
    # The size and frequency of a subscription are those of its first message: 0 if there was none.
    source = row if row.received or publisher is None else publisher
    return EdgeResult(
        publisher=None if publisher is None else publisher.node,
        topic=row.topic,
        subscription=row.node,
        size_bytes=source.size_bytes if source.size_bytes or row.received else None,
        frequency_hz=source.frequency_hz or None,
        **_counts(row.received, row.late, row.too_late, row.lost, tracked),
        latency_ns=_of_row(row, _samples(row, tracked)),
        publish_call_ns=None if publisher is None else _of_row(publisher, None),
    )


def _counts(
    received: int | None, late: int | None, too_late: int | None, lost: int | None, tracked: bool | None
) -> dict[str, Any]:
    if not tracked:
        late = too_late = lost = None
    on_time = None if received is None or late is None or too_late is None else received - late - too_late
    return {"received": received, "on_time": on_time, "late": late, "too_late": too_late, "lost": Lost(gap=lost)}


def _totals(edges: Sequence[EdgeResult], outputs: Sequence[Output], tracked: bool | None) -> Totals:
    """Over all edges; without latency_all.txt, from latency_total.txt."""

    def counts(parts: Sequence[EdgeResult] | Sequence[Total], lost: Iterable[int | None]) -> dict[str, Any]:
        received, late, too_late = (added(getattr(p, key) for p in parts) for key in ("received", "late", "too_late"))
        return _counts(received, late, too_late, added(lost), tracked)

    if not edges:
        # With clients they are those of the replies, which are listed with the services.
        totals = [output.total for output in outputs if output.total is not None and not output.clients]
        mean = totals[0].mean_us * 1000 if len(totals) == 1 and not math.isnan(totals[0].mean_us) else None
        latency = Distribution(mean=mean) if totals else None
        return Totals(**counts(totals, [t.lost for t in totals]), latency_ns=latency)
    times = [(e.received or 0, e.latency_ns or Distribution()) for e in edges]
    # Of all messages if the too late ones are unknown.
    latency = _pooled([(n if d.count is None else d.count, d) for n, d in times], added(d.count for _, d in times))
    calls = [(0, _of_row(row, None)) for output in outputs for row in output.publishers]
    return Totals(
        **counts(edges, [e.lost.gap for e in edges]),
        latency_ns=latency,
        publish_call_ns=_pooled(calls, None) if calls else None,
    )


def _pooled(parts: Sequence[tuple[int, Distribution]], count: int | None) -> Distribution:
    """The distribution of all messages of some rows, each (number of messages, distribution)."""
    lows = [d.min for _, d in parts if d.min is not None]
    highs = [d.max for _, d in parts if d.max is not None]
    filled = [(n, d.mean, d.sd) for n, d in parts if n and d.mean is not None and d.sd is not None]
    weight = sum(n for n, _, _ in filled)
    mean = sd = None
    if weight:
        mean = sum(n * m for n, m, _ in filled) / weight
        sd = math.sqrt(max(0.0, sum(n * (s * s + m * m) for n, m, s in filled) / weight - mean * mean))
    return Distribution(count=count, min=min(lows, default=None), mean=mean, max=max(highs, default=None), sd=sd)


def _service(row: Row, tracked: bool | None) -> ServiceResult:
    return ServiceResult(
        client=row.node,
        service=row.topic,
        server=None,
        size_bytes=row.size_bytes,
        frequency_hz=row.frequency_hz or None,
        **_counts(row.received, row.late, row.too_late, row.lost, tracked),
        round_trip_ns=_of_row(row, _samples(row, tracked)),
    )


def _cpus(output: Output) -> int | None:
    said = output.metadata.get(CPUS, "")
    return int(said) if said.isdigit() and int(said) > 0 else None


def measured_samples(output: Output) -> list[Sample]:
    """The samples of a process, without the original's first line of zeros."""
    samples = list(output.resources or ())
    first = samples[0] if samples else None
    if first is not None and not any((first.time_ms, first.cpu_percent, first.rss_kb, first.vsz_kb)):
        return samples[1:]
    return samples


def _resources(outputs: Sequence[Output]) -> Resources:
    processes = []
    for output in outputs:
        machine, cpus = cpu_percent_of_machine(output), _cpus(output)
        peaks = [sample.rss_kb for sample in measured_samples(output) if sample.rss_kb is not None]
        processes.append(
            ProcessResources(
                process=output.process,
                cpu_percent_mean=None if machine is None or cpus is None else machine * cpus,
                cpu_percent_of_machine=machine,
                rss_kb_max=max(peaks, default=None),
            )
        )
    return Resources(
        cpu_percent_mean=added(p.cpu_percent_mean for p in processes),
        cpu_percent_of_machine=added(p.cpu_percent_of_machine for p in processes),
        rss_kb_max=largest([p.rss_kb_max for p in processes]),
        processes=tuple(processes),
    )


def cpu_percent_of_machine(output: Output) -> float | None:
    """The mean CPU use of a process since it started, in percent of all CPUs.

    In the current dialect each line covers the time since the previous one; in the older one it is the mean since the
    start of the process, so that the last one is the mean of all.
    """
    samples = [sample for sample in measured_samples(output) if sample.cpu_percent is not None]
    if not samples:
        return None
    if output.legacy:
        return samples[-1].cpu_percent
    before = 0
    used = 0.0
    for sample in samples:
        used += (sample.cpu_percent or 0.0) * (sample.time_ms - before)
        before = sample.time_ms
    return used / before if before else None


def _tables(outputs: Sequence[Output], edges: Sequence[EdgeResult], services: Sequence[ServiceResult]) -> Tables:
    import polars as pl

    lines: dict[str, list[Json]] = {
        "edges": [_line(edge, ("publisher", "topic", "subscription"), "latency") for edge in edges],
        "publishers": [
            {
                "node": f"/{row.node}",
                "topic": f"/{row.topic}",
                "publish_call_min": _ns(row.min_us),
                "publish_call_max": _ns(row.max_us),
            }
            for output in outputs
            for row in output.publishers
        ],
        "services": [_line(service, ("client", "service"), "round_trip") for service in services],
        "resources": [line for output in outputs for line in _resource_lines(output)],
        "events": [_event_line(output, event) for output in outputs for event in output.events or ()],
    }
    # Columns that only a foreign run has.
    more = {"edges": "latency_mean", "services": "round_trip_mean", "resources": "cpu_percent_of_machine"}
    frames = dict(empty_tables())
    for name, made in lines.items():
        schema = dict(frames[name].schema) | ({more[name]: pl.Float64()} if name in more else {})
        whole = [{column: line.get(column) for column in schema} for line in made]
        frames[name] = pl.DataFrame(whole, schema=schema, orient="row")
    return frames


def _line(of: EdgeResult | ServiceResult, names: Sequence[str], figure: str) -> Json:
    """From the table of edges or services."""
    called = {name: getattr(of, name) for name in names}
    times = of.times_ns or Distribution()
    return {
        **{name: None if text is None else f"/{text}" for name, text in called.items()},
        **{key: getattr(of, key) for key in ("size_bytes", "frequency_hz", "received", "on_time", "late", "too_late")},
        "gap": of.lost.gap,
        **{f"{figure}_{side}": getattr(times, side) for side in ("count", "mean", "min", "max")},
    }


def _resource_lines(output: Output) -> Iterable[Json]:
    before = 0
    cpus = _cpus(output)
    for sample in measured_samples(output):
        interval_ns = (sample.time_ms - before) * 1_000_000
        before = sample.time_ms
        known = cpus is not None and sample.cpu_percent is not None and not output.legacy and interval_ns > 0
        yield {
            "process": output.process,
            "at_ns": sample.time_ms * 1_000_000,
            "interval_ns": interval_ns or None,
            "cpu_interval_ns": round((sample.cpu_percent or 0) / 100 * interval_ns * (cpus or 0)) if known else None,
            "cpu_percent_of_machine": sample.cpu_percent,
            "rss_peak_kb": sample.rss_kb,
            **{key: getattr(sample, key) for key in ("vsz_kb", "arena_kb", "in_use_kb", "mmap_kb")},
        }


def _event_line(output: Output, event: Event) -> Json:
    code = _CODES.get(event.code, "unknown")
    if event.code == DISCOVERY:
        code = next((ours for word, ours in _DISCOVERY_CODES if word in event.description), "discovery")
    details: Json = {}
    topic, arrow, node = event.caller.partition("->")
    if arrow:
        details = {"topic": f"/{topic}", "subscription": f"/{node}"}
    if match := _LATE_TEXT.fullmatch(event.description):
        number, latency_us, threshold_us = map(int, match.groups())
        details |= {"sequence": number, "latency_ns": latency_us * 1000, "threshold_ns": threshold_us * 1000}
    elif match := _LOST_TEXT.fullmatch(event.description):
        first, last = match.groups()
        # The original's range runs upwards from the last missing number, so only its length is usable.
        corrected = output.metadata.get(ACCOUNTING) == "corrected"
        details |= {"count": 1 if last is None else int(last) - int(first) + corrected}
        if corrected:
            details |= {"sequence": int(first)}
    return {
        "process": output.process,
        "at_ns": event.time_ms * 1_000_000,
        "code": code,
        "text": event.description,
        "details": json.dumps(details) if details else None,
    }


def _notes(outputs: Sequence[Output], origin: str, tracked: bool | None, duration_s: float | None) -> Iterable[str]:
    ours = next((o.metadata[MEASURED_BY] for o in outputs if MEASURED_BY in o.metadata), None)
    accounting = next((o.metadata[ACCOUNTING] for o in outputs if ACCOUNTING in o.metadata), None)
    words = "an older version of irobot_benchmark" if origin == IROBOT_LEGACY else "irobot_benchmark"
    if ours is None:
        left_out = "" if tracked is False else "; times exclude too late messages"
        yield f"output of {words}: no percentiles{left_out}; rss is the peak"
    else:
        yield f"exported by {ours} in the format of {words}, accounting {accounting}; the run itself has more data"
    if tracked is False:
        yield "it ran without --tracking on: late, too late and lost messages were not counted"
    elif tracked is None:
        yield "whether it ran with --tracking on is not recorded; its zeros are treated as not counted"
    elif ours is None:
        yield "lost includes messages sent before the match, and excludes losses at the end"
    rows = [row for output in outputs for row in (*(output.subscriptions or ()), *output.clients)]
    wrapped = [row for row in rows if row.lost is not None and row.lost >= _WRAPPED]
    if wrapped:
        more = f" and {len(wrapped) - 1} more" if len(wrapped) > 1 else ""
        yield (
            f"lost of {wrapped[0].node} {wrapped[0].topic}{more} has wrapped around: a message came twice or out of "
            "order there"
        )
    if duration_s is None:
        yield "how long it ran is unknown"
    missing = sorted({name for output in outputs for name in _missing(output)})
    if missing:
        yield f"missing: {', '.join(missing)}"


def _missing(output: Output) -> Iterable[str]:
    if output.subscriptions is None:
        yield dialect.LATENCY_ALL
    if output.resources is None:
        yield dialect.RESOURCES
