"""Answers from the trace of a trial, computed once when the trial has ended and stored beside its trace: why messages
were late, what executors did, and which threads starved which."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perflab import catalog, models
from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.formats.json_file import read_json
from perflab.formats.monitor import MONITOR_FILE, MonitorReader
from perflab.formats.records import ProcessRecords, RecordError, lines
from perflab.kernel import parse_cpu_list
from perflab.results.files import read_trial
from perflab.results.objective import PathResult
from perflab.results.starvation import LongWait, Starvation, Stretch
from perflab.results.trial import CpuHolder, LockWaiter, Phases, StarvedThread, Why
from perflab.runs.film import PROCESSES, film
from perflab.runs.rundir import TRIAL
from perflab.statistics import histogram as hg
from perflab.statistics.executor_costs import phases_of
from perflab.statistics.histogram import Histogram
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    from perflab.design.document import Thresholds
    from perflab.trace.source import NativeTrace, Source
    from perflab.trace.why import Selection
    from perflab.workload import Graph

Json = dict[str, Any]
T = TypeVar("T")

FOLDER = "trace"
FILE = "why.json"
EXECUTOR = "executor.json"
STARVATION = "starvation.json"
STRETCH = "stretch.json"
OCCUPANCY = "occupancy.json"
PATHS = "paths.json"
MONOTONIC = "monotonic"  # the clock of the records, by its name in traces
TOTALS_KEPT = 20  # causes in the summary; the file has all
BIN_NS = 20_000_000  # for the threads that had the CPUs of loops
AROUND = 0.03  # of a gap, before and after it in its picture
_ASKED = "asked"  # the definition of late, and the trial's processes
_LOCKS = "locks"  # whether lock waits were recorded
_SHIFT = "monotonic_shift_ns"  # of the trace's time line; null if its clock is another one
_PARTS = "parts"  # of every late message; `perflab trace why` shows them again, and the slowest one has its own here
_SLOWEST = "slowest"
_ROWS = "rows"


def explain(
    directory: Path,
    graph: Graph,
    thresholds: Thresholds,
    pids: AbstractSet[int] = frozenset(),
    paths: str | None = None,
) -> list[str]:
    """Analyses the trace of a trial, if it has one, and writes trace/why.json, trace/executor.json,
    trace/starvation.json and, if there are `paths`, trace/paths.json; returns the errors, one sentence each.

    Late is defined by the run. If nothing was late, the slowest hundredth of every edge is analysed. `pids` are the
    processes of the trial, if known: a session records whatever emits `ros2:*` on this machine, but the figures are
    only the trial's. `paths` is a paths file or a catalog name; None: the one with the graph's name, if there is one.
    """
    folder = directory / FOLDER
    if not folder.is_dir():
        return []
    limits, mine = late_after_ns(graph, thresholds), frozenset(pids)
    questions: tuple[tuple[str, str, Callable[[NativeTrace], Json]], ...] = (
        ("why messages were late", FILE, lambda trace: _document(trace, limits, mine)),
        ("what executors did", EXECUTOR, lambda trace: _executor(trace, mine)),
        ("which threads starved which", STARVATION, lambda trace: _starvation(trace, mine)),
    )
    if loops := _filmed_loops(directory):
        questions += (("which threads had the CPUs of its loops", OCCUPANCY, lambda trace: _occupancy(trace, *loops)),)
    named = paths or next((entry.name for entry in catalog.paths() if entry.name == graph.name), None)
    if named is not None:
        questions += (("how long named paths took", PATHS, lambda trace: _paths(trace, str(named))),)
    asked = questions[0][0]
    try:
        from perflab.trace import open_trace

        with open_trace([folder]) as trace:
            for what, file, ask in questions:
                asked = what
                _keep(folder / file, ask(trace))
    except (PerflabError, OSError, *DAMAGE) as error:
        return [f"{asked} is unknown: {error}"]
    return []


def _filmed_loops(directory: Path) -> tuple[int, int, tuple[int, ...]] | None:
    """The time in which a film of the trial shows the lateness of loops, and their threads; None without."""
    found = film(directory)
    if found is None or found.lateness is None:
        return None
    process, named = found.lateness.process, set(found.lateness.columns)
    tids: set[int] = set()
    with contextlib.suppress(RecordError, OSError, *DAMAGE):
        for record in lines(directory / PROCESSES / f"{process}.jsonl", "threads"):
            tids |= {int(t["tid"]) for t in (record or {}).get("threads", ()) if t["name"] in named}
    return (found.begin_ns, found.end_ns, tuple(sorted(tids))) if tids else None


def _occupancy(trace: Source, begin_ns: int, end_ns: int, tids: Sequence[int]) -> Json:
    from perflab.trace.occupancy import occupancy

    shift_ns = _shift_ns(trace)
    if shift_ns is None:
        return {_SHIFT: None}
    return {**occupancy(trace, begin_ns + shift_ns, end_ns + shift_ns, BIN_NS, tids), _SHIFT: shift_ns}


def occupancy(directory: Path) -> Json | None:
    """Which threads had the CPUs of the loops that a film of the trial shows, from perflab.trace.occupancy, from
    `begin_ns` on the clock of the records; None if the trial was not traced, or its trace has another clock."""
    return _kept(directory, OCCUPANCY, lambda kept: {**kept, "begin_ns": kept["begin_ns"] - kept[_SHIFT]})


def _keep(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _kept(directory: Path, file: str, record_of: Callable[[Json], T]) -> T | None:
    """The stored answers of the trial's trace; None if there are none."""
    path = directory / FOLDER / file
    try:
        return record_of(read_json(path)) if path.is_file() else None
    except (BadInput, *DAMAGE):
        return None


def _paths(trace: NativeTrace, named: str) -> Json:
    from perflab.trace import paths, paths_named

    found = paths.paths_of(trace, paths.Asked(paths_named.find(named), limit=0), strict=False)
    return {_ASKED: named, _ROWS: [models.as_json(measured.result) for measured in found.measured]}


def paths(directory: Path) -> tuple[PathResult, ...] | None:
    """The named paths of a traced trial; for times instead of a path, only the definition."""
    return _kept(directory, PATHS, lambda document: tuple(models.read(PathResult, row) for row in document[_ROWS]))


def times_of(path: Path) -> dict[str, Histogram] | None:
    """The times that the processes of a trial measured, by name, for analyses of its trace: `path` is the trial's
    folder or that of its trace. None if it is not a trial's."""
    for folder in (path, path.resolve().parent):
        try:
            file = read_trial(read_json(folder / TRIAL))
            return {name: hg.from_record(record) for name, record in file.own_times.items()}
        except (BadInput, *DAMAGE):
            continue
    return None


def phases(directory: Path) -> Phases | None:
    """The summary's data on the executors of a traced trial; None if the trace has none."""
    return _kept(directory, EXECUTOR, phases_of)


def why(directory: Path) -> Why | None:
    """The summary's data on the late messages of a traced trial: the definition, how many messages, and the causes."""
    return _kept(directory, FILE, _why_of)


def slowest(directory: Path) -> tuple[Json, list[Json]] | None:
    """The row of the slowest late message of a traced trial, and those of its parts, as in the answer of `perflab trace
    why`. None if none was late, or the trace has no answer."""
    return _kept(directory, FILE, lambda document: (document[_SLOWEST]["message"], document[_SLOWEST]["parts"]))


def _why_of(document: Json) -> Why:
    """Reads a stored answer. Raises one of DAMAGE."""
    (verdict,) = document["why"]["rows"]
    causes, totals = document["causes"]["rows"], document["totals"]["rows"][:TOTALS_KEPT]
    return models.read(Why, {**verdict, "causes": causes, "totals": totals, "quality": document["quality"]})


def late_after_ns(graph: Graph, thresholds: Thresholds) -> dict[str, int]:
    """By topic the latency from which the run considers a message late; the slowest publisher's, if there are
    several."""
    found: dict[str, int] = {}
    for process in graph.document["processes"]:
        for node in process["nodes"]:
            for publisher in () if node.get("condition") else node["publishers"]:
                limit = _limit(publisher.get("frequency_hz") or 0.0, thresholds)
                found[publisher["topic"]] = max(found.get(publisher["topic"], 0), limit)
    return found


def _limit(frequency_hz: float, thresholds: Thresholds) -> int:
    """As classified by perflab-node (native/measure/classification.h)."""
    if frequency_hz <= 0:
        return thresholds.late_ns
    return min(thresholds.late_ns, int(thresholds.late_percent / 100 * NS_PER_S / frequency_hz))


def _document(trace: Source, limits: Mapping[str, int], pids: frozenset[int]) -> Json:
    from perflab.trace.why import Selection
    from perflab.trace.why import why as ask

    selection = Selection(later_than_by_topic=limits, pids=pids)
    answer = ask(trace, selection)
    if not answer.section("why").frame["late"].item():
        selection = Selection(pids=pids)
        answer = ask(trace, selection)
    document: Json = answer.document()
    parts = document.pop(_PARTS, {"rows": ()})["rows"]
    if messages := document["messages"]["rows"]:
        slowest = messages[0]  # they are in this order
        document[_SLOWEST] = {
            "message": slowest,
            "parts": [part for part in parts if part["message"] == slowest["message"]],
        }
    by_topic = selection.later_than_by_topic
    return document | {
        _ASKED: {"later_than_by_topic": None if by_topic is None else dict(by_topic), "pids": sorted(selection.pids)}
    }


def asked_of(path: Path) -> Selection | None:
    """The parameters with which the run analysed the trial's trace, so that a later analysis gets the same answer:
    `path` is the trial's folder or that of its trace. None if it is not a trial's.
    """
    from perflab.trace.why import Selection

    for folder in (path, path / FOLDER):
        try:
            asked = read_json(folder / FILE)[_ASKED]
            return Selection(later_than_by_topic=asked["later_than_by_topic"], pids=frozenset(asked["pids"]))
        except (BadInput, *DAMAGE):
            continue
    return None


def _executor(trace: Source, pids: AbstractSet[int]) -> Json:
    from perflab.trace.executor import executor

    document: Json = executor(trace).document()
    if pids:
        for section in document.values():
            if isinstance(section, dict) and "rows" in section:
                section["rows"] = [row for row in section["rows"] if row["pid"] in pids]
    return document


# Which threads starved which ------------------------------------------------------------------------------------------


def _starvation(trace: Source, pids: AbstractSet[int]) -> Json:
    from perflab.trace.locks import recorded
    from perflab.trace.starvation import starvation as ask

    asked = {"pids": sorted(pids), _SHIFT: _shift_ns(trace), _LOCKS: recorded(trace)}
    return ask(trace, pids=pids).document() | {_ASKED: asked}


def _shift_ns(trace: Source) -> int | None:
    """From the clock of the records to the trace's time line; None if its clock is another one."""
    clocks = [part for part in trace.facts["traces"] if (part.get("clock") or {}).get("name") == MONOTONIC]
    return int(clocks[0].get("shift_ns") or 0) if clocks else None


def starvation(directory: Path, processes: Sequence[ProcessRecords] = ()) -> Starvation | None:
    """Which threads starved which in a traced trial, with the threads' names from its records and its monitor. None if
    there is no trace, its clock is not that of the records, or it has no answer."""
    records = _Records(directory, processes)
    return _kept(directory, STARVATION, lambda document: _starvation_of(document, records))


def keep_stretch(
    directory: Path,
    stretch: tuple[int, int] | None,
    processes: Sequence[ProcessRecords],
    pids: AbstractSet[int] = frozenset(),
) -> list[str]:
    """Writes trace/stretch.json, the data for the picture of a gap, if the trial was traced; returns the errors, one
    sentence each. `stretch` is on the clock of the records; None: the longest one in which a callback did not run
    because a thread starved."""
    folder = directory / FOLDER
    records = _Records(directory, processes)
    found = _kept(directory, STARVATION, lambda document: (document, _starvation_of(document, records)))
    if found is None or found[1] is None or not found[1].waits:
        return []
    document, starvation = found[0], found[1]
    if stretch is None:
        longest = max(starvation.stretches, key=lambda s: s.end_ns - s.begin_ns, default=None)
        if longest is None:
            return []
        stretch = longest.begin_ns, longest.end_ns
    shift_ns, around_ns = document[_ASKED][_SHIFT], int(AROUND * (stretch[1] - stretch[0]))
    begin_ns, end_ns = (at + shift_ns for at in stretch)
    try:
        from perflab.trace import open_trace
        from perflab.trace.lanes import lanes

        with open_trace([folder]) as trace:
            drawn = lanes(trace, begin_ns - around_ns, end_ns + around_ns, pids)
        named = {row: records.named(thread) for row, thread in drawn["threads"].items()}
        _keep(folder / STRETCH, drawn | {"threads": named, "stretch": [begin_ns, end_ns]})
    except (PerflabError, OSError, *DAMAGE) as error:
        return [f"when its threads ran is unknown: {error}"]
    return []


def stretch(directory: Path) -> Json | None:
    """The data for the picture of the gap in which a trial made no progress; None if nothing was stored."""
    return _kept(directory, STRETCH, lambda document: document)


def _starvation_of(document: Json, records: _Records) -> Starvation | None:
    """Reads a stored answer. Raises one of DAMAGE."""
    shift_ns = document[_ASKED][_SHIFT]
    if shift_ns is None:
        return None
    has_locks = document[_ASKED].get(_LOCKS, False)
    locked: dict[int, list[Json]] = {}
    for row in document["lock_waiters"]["rows"] if has_locks else ():
        locked.setdefault(row["for_wait"], []).append(row)
    return Starvation(
        waits=[
            LongWait(
                row["begin_ns"] - shift_ns,
                row["end_ns"] - shift_ns,
                records.starved(row, locked.get(row["wait"], ()) if has_locks else None),
            )
            for row in document["waits"]["rows"]
        ],
        stretches=[
            Stretch(row["begin_ns"] - shift_ns, row["end_ns"] - shift_ns, row["tid"])
            for row in document["stretches"]["rows"]
        ],
    )


class _Records:
    """The records' data on threads, by thread id."""

    def __init__(self, directory: Path, processes: Sequence[ProcessRecords]) -> None:
        self._known: dict[int, Json] = {}
        monitor = directory / MONITOR_FILE
        if monitor.is_file():
            reader = MonitorReader(monitor)
            with contextlib.suppress(RecordError, OSError):
                reader.refresh()
                for group in reader.groups():
                    for thread in reader.threads(group, 0, reader.last_at_ns or 0):
                        self._known[thread.tid] = {
                            "policy": thread.policy,
                            "priority": thread.priority,
                            "cpus": thread.cpus,
                        }
        for process in processes:
            for tid, state in process.thread_states.items():
                self._known[tid] = {**state, "process": process.name}

    def named(self, thread: Json) -> Json:
        """A thread of a trace with its names in the trial."""
        known = self._known.get(thread["tid"], {})
        process, name = known.get("process", thread["process"]), known.get("name") or thread["thread"]
        return {**thread, "process": process, "thread": name, "role": known.get("role", thread["role"])}

    def starved(self, row: Json, locked: Sequence[Json] | None) -> StarvedThread:
        """From a row of the section `waits`, and those of `lock_waiters` that belong to it."""
        known = self._known.get(row["tid"], {})
        by = row["by_tid"]
        holders = () if by is None else (self._holder(row),)
        return StarvedThread(
            process=known.get("process", row["process"]),
            tid=row["tid"],
            name=known.get("name") or row["thread"] or "",
            role=known.get("role", row["role"]),
            policy=known.get("policy", row["priorities"]),
            priority=known.get("priority") or None,
            cpus=tuple(parse_cpu_list(row["cpus"] or "")),
            waiting_share=1.0,
            longest_ns=row["waited_ns"],
            holders=holders,
            lock_waiters=None if locked is None else self._waiters(locked),
        )

    def _waiters(self, rows: Sequence[Json]) -> tuple[LockWaiter, ...]:
        """Each thread once, the one that slept longest for the lock first."""
        found: dict[int, LockWaiter] = {}
        for row in rows:
            known = self._known.get(row["tid"], {})
            waiter = LockWaiter(
                process=known.get("process", row["process"]),
                tid=row["tid"],
                name=known.get("name") or row["thread"] or "",
                policy=known.get("policy", row["priority"]),
                priority=known.get("priority") or None,
                address=row["address"],
            )
            found.setdefault(waiter.tid, waiter)
        return tuple(found.values())

    def _holder(self, row: Json) -> CpuHolder:
        known, cpus = self._known.get(row["by_tid"], {}), parse_cpu_list(row["cpus"] or "")
        return CpuHolder(
            process=known.get("process", row["by_process"]),
            pid=row["by_pid"],
            tid=row["by_tid"],
            name=known.get("name") or row["by_thread"] or "",
            policy=known.get("policy", row["by_priorities"]),
            priority=known.get("priority") or None,
            cpu=cpus[0] if len(cpus) == 1 else None,
            share=round(min(1.0, row["by_percent"] / 100), 3),
        )
