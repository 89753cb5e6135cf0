"""The tables of a trial, written once as Parquet after it ended.

Histograms stay what they are: the V2 encoding in a column `<name>_v2`, beside its exact count, sum (ns), minimum,
maximum and instant of the maximum.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.formats.records import ProcessRecords
from perflab.statistics import cost as costs
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import EDGE_HISTOGRAMS, PERIOD_HISTOGRAMS, PUBLISHER_HISTOGRAMS, Accounts
from perflab.statistics.histogram import Histogram

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]

_EDGE_TEXT = ("publisher", "topic", "subscription")
_EDGE_COUNTS = (
    "sent", "received", "first_sequence", "highest_sequence", "pre_match", "gap", "tail", "reordered", "duplicate",
    "beyond_window", "warmup_received", "on_time", "late", "too_late",
)  # fmt: skip
_PUBLISHER_COUNTS = ("sent", "not_sent", "write_errors", "warmup_sent", "first_sequence")
_RESOURCES = (
    "at_ns", "interval_ns", "cpu_ns", "cpu_interval_ns", "rss_kb", "rss_peak_kb", "vsz_kb", "arena_kb", "in_use_kb",
    "mmap_kb", "voluntary_switches", "involuntary_switches", "run_delay_ns",
)  # fmt: skip
_SERVICE_TEXT = {"client": "publisher", "service": "topic", "server": "subscription"}
_SERVICE_HISTOGRAMS = {"latency": "round_trip", "response": "round_trip_response"}
_ALLOCATIONS = {"allocations": "count", "allocated_bytes": "bytes", "frees": "frees"}
_THREADS = (
    "cpu_ns", "cpu_interval_ns", "run_delay_ns", "voluntary_switches", "involuntary_switches", "cpu", "allocations",
)  # fmt: skip


def write(directory: Path, accounts: Accounts | None, processes: Sequence[ProcessRecords]) -> list[str]:
    """Writes edges, publishers, services, resources, threads, cost and events, and returns the names of the files.

    Raises OSError.
    """
    _import_polars()
    tables = {
        "edges": edges(accounts),
        "publishers": publishers(accounts),
        "services": services(accounts),
        "resources": resources(processes),
        "threads": threads(processes),
        "cost": cost(processes),
        "events": events(processes),
    }
    for name, table in tables.items():
        _write_whole(directory / f"{name}.parquet", table)
    return [f"{name}.parquet" for name in tables]


def edges(accounts: Accounts | None) -> pl.DataFrame:
    """One row per edge."""
    import polars as pl

    schema: dict[str, Any] = dict.fromkeys(_EDGE_TEXT, pl.String)
    schema |= {"size_bytes": pl.Int64, "frequency_hz": pl.Float64}
    schema |= dict.fromkeys(_EDGE_COUNTS, pl.Int64) | _histogram_schema(EDGE_HISTOGRAMS)
    rows = [
        {name: getattr(edge, name) for name in (*_EDGE_TEXT, "size_bytes", "frequency_hz", *_EDGE_COUNTS)}
        | _histogram_columns(edge.histograms)
        for edge in (accounts.edges if accounts else ())
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def publishers(accounts: Accounts | None) -> pl.DataFrame:
    """One row per publisher."""
    import polars as pl

    schema: dict[str, Any] = {"node": pl.String, "topic": pl.String}
    schema |= dict.fromkeys(_PUBLISHER_COUNTS, pl.Int64)
    schema |= _histogram_schema((*PUBLISHER_HISTOGRAMS, *PERIOD_HISTOGRAMS))
    rows = [
        {name: getattr(publisher, name) for name in ("node", "topic", *_PUBLISHER_COUNTS)}
        | _histogram_columns(publisher.histograms)
        for publisher in (accounts.publishers if accounts else ())
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def services(accounts: Accounts | None) -> pl.DataFrame:
    """One row per client and service: the counts of its requests and replies, in the columns of publishers and edges.

    `requested` are the requests written; `sent` is the same where both ends are known. `latency` and `response` are
    called `round_trip` and `round_trip_response`.
    """
    import polars as pl

    requests = tuple(name for name in _PUBLISHER_COUNTS if name not in _EDGE_COUNTS)
    figures = tuple(_SERVICE_HISTOGRAMS.get(name, name) for name in EDGE_HISTOGRAMS)
    schema: dict[str, Any] = dict.fromkeys(_SERVICE_TEXT, pl.String)
    schema |= {"size_bytes": pl.Int64, "frequency_hz": pl.Float64}
    schema |= dict.fromkeys((*_EDGE_COUNTS, "requested", *requests), pl.Int64)
    schema |= _histogram_schema((*figures, *PUBLISHER_HISTOGRAMS))
    rows = [
        {name: getattr(s.replies, member) for name, member in _SERVICE_TEXT.items()}
        | {name: getattr(s.replies, name) for name in ("size_bytes", "frequency_hz", *_EDGE_COUNTS)}
        | {"requested": s.requests.sent}
        | {name: getattr(s.requests, name) for name in requests}
        | _histogram_columns({_SERVICE_HISTOGRAMS.get(n, n): h for n, h in s.replies.histograms.items()})
        | _histogram_columns({name: s.requests.histograms.get(name) for name in PUBLISHER_HISTOGRAMS})
        for s in (accounts.services if accounts else ())
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def resources(processes: Sequence[ProcessRecords]) -> pl.DataFrame:
    """One row per sample of a process; how often it allocated is null where nobody counted."""
    import polars as pl

    schema: dict[str, Any] = {"process": pl.String} | dict.fromkeys((*_RESOURCES, *_ALLOCATIONS), pl.Int64)
    rows = [
        _pick(record, _RESOURCES)
        | {column: (record.get("allocations") or {}).get(key) for column, key in _ALLOCATIONS.items()}
        | {"process": process.name}
        for process in processes
        for record in process.resources
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def threads(processes: Sequence[ProcessRecords]) -> pl.DataFrame:
    """One row per sample of a thread; how it is scheduled is its last reading, `cpus` as "0,1"."""
    import polars as pl

    schema: dict[str, Any] = {"process": pl.String, "at_ns": pl.Int64, "tid": pl.Int64, "name": pl.String}
    schema |= dict.fromkeys(_THREADS, pl.Int64)
    schema |= {"role": pl.String, "policy": pl.String, "priority": pl.Int64, "cpus": pl.String}
    rows = []
    for process in processes:
        scheduled = {tid: _scheduling(state) for tid, state in process.thread_states.items()}
        for record in process.resources:
            rows += [
                _pick(t, ("tid", "name", *_THREADS))
                | {"process": process.name, "at_ns": record["at_ns"]}
                | scheduled.get(t.get("tid"), {})
                for t in record.get("threads", ())
            ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def cost(processes: Sequence[ProcessRecords]) -> pl.DataFrame:
    """What each process used within the measured part (`tid` null), and each of its threads; counts are of processes
    alone. No rows for a process without both ends, or with damaged ones."""
    import polars as pl

    schema: dict[str, Any] = {"process": pl.String, "tid": pl.Int64, "name": pl.String, "role": pl.String}
    schema |= {"interval_ns": pl.Int64, "cpu_ns": pl.Int64} | dict.fromkeys(costs.COUNTERS, pl.Int64)
    rows: list[Row] = []
    for process in processes:
        try:
            found = costs.of_process(process.name, process.cost)
        except (KeyError, TypeError):
            continue
        if found is None:
            continue
        own = {"process": process.name, "interval_ns": found.interval_ns}
        rows.append(own | {"cpu_ns": found.cpu_ns, **found.counts})
        rows += [own | {name: getattr(t, name) for name in ("tid", "name", "role", "cpu_ns")} for t in found.threads]
    return pl.DataFrame(rows, schema=schema, orient="row")


def events(processes: Sequence[ProcessRecords]) -> pl.DataFrame:
    """One row per event; what only some codes have is in `details`, a JSON object."""
    import polars as pl

    schema: dict[str, Any] = {
        "process": pl.String, "at_ns": pl.Int64, "code": pl.String, "text": pl.String, "details": pl.String,
    }  # fmt: skip
    rows = []
    for process in processes:
        for event in process.events:
            rest = {k: v for k, v in event.items() if k not in ("type", "at_ns", "code", "text")}
            rows.append(
                _pick(event, ("at_ns", "code", "text"))
                | {"process": process.name, "details": json.dumps(rest) if rest else None}
            )
    return pl.DataFrame(rows, schema=schema, orient="row")


def _scheduling(state: Mapping[str, Any]) -> Row:
    cpus = state.get("cpus")
    return _pick(state, ("role", "policy", "priority")) | {"cpus": None if cpus is None else ",".join(map(str, cpus))}


def _pick(record: Mapping[str, Any], names: Sequence[str]) -> Row:
    return {name: record.get(name) for name in names}


def _histogram_schema(names: Sequence[str]) -> dict[str, Any]:
    import polars as pl

    schema: dict[str, Any] = {}
    for name in names:
        schema[f"{name}_v2"] = pl.String
        schema |= {f"{name}_{side}": pl.Int64 for side in _SIDES}
    return schema


_SIDES = ("count", "sum", "min", "max", "max_at_ns", "saturated", "negative", "overflowed")


def _histogram_columns(histograms: Mapping[str, Histogram | None]) -> Row:
    row: Row = {}
    for name, histogram in histograms.items():
        row[f"{name}_v2"] = None if histogram is None else hg.encode(histogram)
        for side in _SIDES:
            row[f"{name}_{side}"] = None if histogram is None else getattr(histogram, side)
    return row


def _import_polars() -> None:
    """Imports polars and keeps SIGINT ours.

    polars puts a handler of its own before ours, which would end a table half-way with KeyboardInterrupt.
    """
    handler = signal.getsignal(signal.SIGINT)
    import polars  # noqa: F401 - for its effect on SIGINT

    if handler is not None:
        signal.signal(signal.SIGINT, handler)


def _write_whole(path: Path, table: pl.DataFrame) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            table.write_parquet(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def empty_tables() -> dict[str, pl.DataFrame]:
    """Every table of a trial, without rows."""
    return {
        "edges": edges(None),
        "publishers": publishers(None),
        "services": services(None),
        "resources": resources(()),
        "threads": threads(()),
        "events": events(()),
    }
