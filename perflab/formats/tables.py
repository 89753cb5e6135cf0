"""The tables of a trial, written once as Parquet after it has ended.

Histograms are kept: the V2 encoding in a column `<name>_v2`, beside its exact count, sum (ns), minimum, maximum and
instant of the maximum.
"""

from __future__ import annotations

import functools
import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.formats import loops
from perflab.formats.json_file import replaced
from perflab.formats.records import ProcessRecords
from perflab.results.loops import INSTANTS
from perflab.results.run import TABLES
from perflab.statistics import cost as costs
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import (
    EDGE_HISTOGRAMS,
    PERIOD_HISTOGRAMS,
    PUBLISHER_COUNTS,
    PUBLISHER_HISTOGRAMS,
    Accounts,
)
from perflab.statistics.histogram import Histogram
from perflab.statistics.system_counts import USAGE

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]

_SERVICE_NAMES = {"client": "publisher", "service": "topic", "server": "subscription"}
_SERVICE_HISTOGRAMS = {"latency": "round_trip", "response": "round_trip_response"}
_ALLOCATIONS = {"allocations": "count", "allocated_bytes": "bytes", "frees": "frees"}


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "String")


def _numbers(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "Int64")


def _histograms(*names: str) -> dict[str, str]:
    return {column: of for n in names for column, of in (_texts(f"{n}_v2") | _numbers(*_sides(n))).items()}


def _sides(name: str) -> list[str]:
    return [f"{name}_{side}" for side in hg.SIDES]


_PAYLOAD = _numbers("size_bytes") | {"frequency_hz": "Float64"}
_EDGE_COUNTS = _numbers(
    "sent", "received", "first_sequence", "highest_sequence", "pre_match", "gap", "tail", "reordered", "duplicate",
    "beyond_window", "warmup_received", "on_time", "late", "too_late", "filtered",
)  # fmt: skip
_EDGE = _texts("publisher", "topic", "subscription") | _PAYLOAD | _EDGE_COUNTS
_PUBLISHER = _texts("node", "topic") | _numbers(*PUBLISHER_COUNTS)
_REQUESTS = _numbers(*(name for name in PUBLISHER_COUNTS if name not in _EDGE_COUNTS))
_RESOURCES = _numbers(
    "at_ns", "interval_ns", "cpu_ns", "cpu_interval_ns", "rss_kb", "rss_peak_kb", "vsz_kb", "arena_kb", "in_use_kb",
    "mmap_kb", *USAGE, "user_ns", "system_ns", "run_delay_ns",
)  # fmt: skip
_THREAD = _numbers("tid") | _texts("name") | _numbers(
    "cpu_ns", "cpu_interval_ns", "run_delay_ns", "voluntary_switches", "involuntary_switches", "cpu", "allocations",
)  # fmt: skip

# The columns of each table, with their types in polars. `requested` of a service are the requests written; `sent` is
# the same if both ends are known. A thread's scheduling is from its last reading, `cpus` as "0,1". Fields that only
# some event codes have are in `details`, a JSON object.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "edges": _EDGE | _histograms(*EDGE_HISTOGRAMS),
    "publishers": _PUBLISHER | _histograms(*PUBLISHER_HISTOGRAMS, *PERIOD_HISTOGRAMS),
    "services": _texts(*_SERVICE_NAMES) | _PAYLOAD | _EDGE_COUNTS | _numbers("requested") | _REQUESTS
    | _histograms(*(_SERVICE_HISTOGRAMS.get(name, name) for name in EDGE_HISTOGRAMS), *PUBLISHER_HISTOGRAMS),
    "resources": _texts("process") | _RESOURCES | _numbers(*_ALLOCATIONS),
    "threads": _texts("process") | _numbers("at_ns") | _THREAD
    | _texts("role", "policy") | _numbers("priority") | _texts("cpus"),
    "events": _texts("process") | _numbers("at_ns") | _texts("code", "text", "details"),
    "loops": _texts("process", "node", "timer") | _numbers("period_ns", "loop", *INSTANTS),
    "cost": _texts("process") | _numbers("tid") | _texts("name", "role")
    | _numbers("interval_ns", "cpu_ns", *costs.COUNTERS),
}  # fmt: skip


def of(accounts: Accounts | None, processes: Sequence[ProcessRecords]) -> dict[str, pl.DataFrame]:
    """The tables of a trial by name; those without records have no rows."""
    import polars as pl

    rows = {
        "edges": _edges(accounts) if accounts else (),
        "publishers": _publishers(accounts) if accounts else (),
        "services": _services(accounts) if accounts else (),
        "resources": _resources(processes),
        "threads": _threads(processes),
        "events": _events(processes),
        "loops": _loops(processes),
        "cost": _cost(processes),
    }
    types = {name: {column: getattr(pl, of) for column, of in columns.items()} for name, columns in COLUMNS.items()}
    return {name: pl.DataFrame(list(rows[name]), schema=types[name], orient="row") for name in COLUMNS}


def write(directory: Path, accounts: Accounts | None, processes: Sequence[ProcessRecords]) -> list[str]:
    """Writes the tables, and returns the names of the files. Raises OSError."""
    return write_tables(directory, lambda: of(accounts, processes))


def write_tables(directory: Path, made: Callable[[], Mapping[str, pl.DataFrame]]) -> list[str]:
    """Writes each table completely or not at all, and returns the names of the files. Raises OSError.

    polars is imported first, keeping perflab's SIGINT handler: it installs its own in front, which would interrupt a
    table half-way with KeyboardInterrupt.
    """
    handler = signal.getsignal(signal.SIGINT)
    import polars  # noqa: F401 - for its effect on SIGINT

    if handler is not None:
        signal.signal(signal.SIGINT, handler)
    files = []
    for name, table in made().items():
        files.append(f"{name}.parquet")
        _write_whole(directory / files[-1], table)
    return files


def _write_whole(path: Path, table: pl.DataFrame) -> None:
    with replaced(path) as file:
        table.write_parquet(file)


def _edges(accounts: Accounts) -> Iterator[Row]:
    for edge in accounts.edges:
        yield _attributes(edge, _EDGE) | _histogram_cells(edge.histograms)


def _publishers(accounts: Accounts) -> Iterator[Row]:
    for publisher in accounts.publishers:
        yield _attributes(publisher, _PUBLISHER) | _histogram_cells(publisher.histograms)


def _services(accounts: Accounts) -> Iterator[Row]:
    for service in accounts.services:
        replies, requests = service.replies, service.requests
        histograms = {_SERVICE_HISTOGRAMS.get(name, name): h for name, h in replies.histograms.items()}
        histograms |= {name: requests.histograms.get(name) for name in PUBLISHER_HISTOGRAMS}
        yield {
            **{name: getattr(replies, member) for name, member in _SERVICE_NAMES.items()},
            **_attributes(replies, _PAYLOAD | _EDGE_COUNTS),
            "requested": requests.sent,
            **_attributes(requests, _REQUESTS),
            **_histogram_cells(histograms),
        }


def _resources(processes: Sequence[ProcessRecords]) -> Iterator[Row]:
    """A process's number of allocations is null if it was not counted."""
    for process in processes:
        for record in process.resources:
            allocations = record.get("allocations") or {}
            counts = {column: allocations.get(key) for column, key in _ALLOCATIONS.items()}
            yield {"process": process.name, **_pick(record, _RESOURCES), **counts}


def _threads(processes: Sequence[ProcessRecords]) -> Iterator[Row]:
    for process in processes:
        scheduled = {tid: _scheduling(state) for tid, state in process.thread_states.items()}
        for record in process.resources:
            for thread in record.get("threads", ()):
                own = {"process": process.name, "at_ns": record["at_ns"]}
                yield own | _pick(thread, _THREAD) | scheduled.get(thread.get("tid"), {})


def _scheduling(state: Mapping[str, Any]) -> Row:
    cpus = state.get("cpus")
    return _pick(state, ("role", "policy", "priority")) | {"cpus": None if cpus is None else ",".join(map(str, cpus))}


def _events(processes: Sequence[ProcessRecords]) -> Iterator[Row]:
    for process in processes:
        for event in process.events:
            rest = {k: v for k, v in event.items() if k not in ("type", "at_ns", "code", "text")}
            details = {"details": json.dumps(rest) if rest else None}
            yield {"process": process.name, **_pick(event, ("at_ns", "code", "text")), **details}


def _loops(processes: Sequence[ProcessRecords]) -> Iterator[Row]:
    """Without rows of a process whose records of loops are damaged."""
    for process in processes:
        try:
            found = loops.of(process.name, process.loops)
        except (KeyError, TypeError, ValueError):
            continue
        for timer in found:
            own = _attributes(timer, ("process", "node", "timer", "period_ns"))
            for row in timer.rows:
                yield own | _attributes(row, ("loop", *INSTANTS))


def _cost(processes: Sequence[ProcessRecords]) -> Iterator[Row]:
    """The resources of each process in the measured part (`tid` null), and of each of its threads; only processes have
    counts. Without rows for a process that lacks an end, or has damaged ones."""
    for process in processes:
        try:
            found = costs.of_process(process.name, process.cost)
        except (KeyError, TypeError):
            continue
        if found is None:
            continue
        own = {"process": process.name, "interval_ns": found.interval_ns}
        yield own | {"cpu_ns": found.cpu_ns, **found.counts}
        for thread in found.threads:
            yield own | _attributes(thread, ("tid", "name", "role", "cpu_ns"))


def _attributes(record: object, names: Iterable[str]) -> Row:
    return {name: getattr(record, name) for name in names}


def _pick(record: Mapping[str, Any], names: Iterable[str]) -> Row:
    return {name: record.get(name) for name in names}


def _histogram_cells(histograms: Mapping[str, Histogram | None]) -> Row:
    row: Row = {}
    for name, histogram in histograms.items():
        row[f"{name}_v2"] = None if histogram is None else hg.encode(histogram)
        row |= {f"{name}_{side}": None if histogram is None else getattr(histogram, side) for side in hg.SIDES}
    return row


def histogram_of(row: Mapping[str, Any], name: str) -> Histogram | None:
    """The histogram of a row; None if it was not measured. Raises HistogramError."""
    return histograms_of([row], name)[0]


def histograms_of(rows: Sequence[Mapping[str, Any]], name: str) -> list[Histogram | None]:
    """Likewise of several rows at once. Raises HistogramError, without naming the row."""
    columns = {side: f"{name}_{side}" for side in ("v2", *hg.SIDES)}
    return hg.from_each(
        [
            None if row.get(columns["v2"]) is None else {side: row[column] for side, column in columns.items()}
            for row in rows
        ]
    )


@functools.cache
def empty_tables() -> Mapping[str, pl.DataFrame]:
    """Every table that a run needs for a trial, without rows."""
    return {name: table for name, table in of(None, ()).items() if name in TABLES}
