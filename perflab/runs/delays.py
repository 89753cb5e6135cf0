"""Which threads starved which in an untraced trial, from its records and its monitor: how long threads had waited for a
CPU at each reading, and how long others ran.

The kernel counts a wait when it is over (`run_delay_ns`), so a reading shows that a thread waited before it, but not
when: a wait is assigned to the time since the previous reading, or to as long before the reading as it took. A trace
has microsecond resolution (`traced`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.formats.monitor import MONITOR_FILE, MonitorReader
from perflab.formats.records import ProcessRecords, RecordError
from perflab.results.starvation import LEAST_HELD, LEAST_SHARE, LONG_WAIT_NS, LongWait, Starvation
from perflab.results.trial import CpuHolder, StarvedThread
from perflab.units import NS_PER_S

Json = Mapping[str, Any]


def starvation(directory: Path, processes: Sequence[ProcessRecords]) -> Starvation | None:
    """None if no process recorded its threads. Raises KeyError, TypeError and ValueError for damaged records."""
    if not any(process.resources for process in processes):
        return None
    others = _monitored(directory / MONITOR_FILE)
    waits = [
        LongWait(
            begin_ns=(begin_ns := min(before_ns, at_ns - waited_ns)),
            end_ns=at_ns,
            thread=_thread(process, tid, _holders(processes, others, process, tid, begin_ns, at_ns)),
            waited_ns=waited_ns,
        )
        for process in processes
        for tid, before_ns, at_ns, waited_ns in _grown(process, "run_delay_ns")
        if waited_ns >= LONG_WAIT_NS
    ]
    return Starvation(waits, least_share=LEAST_SHARE)


def _grown(process: ProcessRecords, figure: str) -> Iterator[tuple[int, int, int, int]]:
    """Thread, both instants, and the increase of its figure, from reading to reading."""
    readings: dict[int, list[tuple[int, int]]] = {}
    for record in process.resources:
        for thread in record.get("threads") or ():
            if thread.get(figure) is not None:
                readings.setdefault(int(thread["tid"]), []).append((int(record["at_ns"]), int(thread[figure])))
    for tid, found in readings.items():
        for (before_ns, before), (at_ns, value) in itertools.pairwise(found):
            yield tid, before_ns, at_ns, value - before


def _thread(process: ProcessRecords, tid: int, holders: tuple[CpuHolder, ...]) -> StarvedThread:
    known = process.thread_states.get(tid, {})
    return StarvedThread(
        process=process.name,
        tid=tid,
        name=str(known.get("name") or ""),
        role=known.get("role"),
        policy=known.get("policy"),
        priority=known.get("priority") or None,
        cpus=tuple(known.get("cpus") or ()),
        waiting_share=1.0,
        holders=holders,
    )


# Who ran --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ran:
    """A thread, and the share of a time that it ran."""

    process: str
    pid: int | None
    state: Json
    share: float


def _holders(
    processes: Sequence[ProcessRecords],
    others: MonitorReader | None,
    starved: ProcessRecords,
    tid: int,
    begin_ns: int,
    end_ns: int,
) -> tuple[CpuHolder, ...]:
    """The threads of the trial and of its companions that ran on the CPUs that it may use, the longest first."""
    cpus = frozenset(starved.thread_states.get(tid, {}).get("cpus") or ())
    found = []
    for ran in (*_of_workload(processes, begin_ns, end_ns), *_of_companions(others, begin_ns, end_ns)):
        theirs = tuple(ran.state.get("cpus") or ())
        # If it may use other CPUs as well, the CPU on which it ran is unknown.
        if not theirs or not cpus.issuperset(theirs) or ran.share < LEAST_HELD or ran.state["tid"] == tid:
            continue
        found.append(
            CpuHolder(
                process=ran.process,
                pid=ran.pid,
                tid=int(ran.state["tid"]),
                name=str(ran.state["name"]),
                policy=ran.state["policy"],
                priority=ran.state["priority"] or None,
                cpu=theirs[0] if len(theirs) == 1 else None,
                share=round(min(1.0, ran.share), 3),
            )
        )
    return tuple(sorted(found, key=lambda holder: -holder.share))


def _of_workload(processes: Sequence[ProcessRecords], begin_ns: int, end_ns: int) -> Iterator[_Ran]:
    for process in processes:
        ran_ns: dict[int, float] = {}
        for tid, before_ns, at_ns, grown_ns in _grown(process, "cpu_ns"):
            both = min(at_ns, end_ns) - max(before_ns, begin_ns)
            if both > 0:
                ran_ns[tid] = ran_ns.get(tid, 0.0) + grown_ns * both / (at_ns - before_ns)
        for tid, ns in ran_ns.items():
            if (state := process.thread_states.get(tid)) is not None:
                yield _Ran(process.name, None, state, ns / (end_ns - begin_ns))


def _of_companions(monitor: MonitorReader | None, begin_ns: int, end_ns: int) -> Iterator[_Ran]:
    if monitor is None:
        return
    for group in monitor.groups():
        seconds = monitor.thread_cpu_seconds(group, begin_ns, end_ns)
        for thread in monitor.threads(group, begin_ns, end_ns):
            state = {
                "tid": thread.tid, "name": thread.name, "policy": thread.policy, "priority": thread.priority,
                "cpus": thread.cpus,
            }  # fmt: skip
            yield _Ran(group, thread.pid, state, seconds.get(thread.tid, 0.0) * NS_PER_S / (end_ns - begin_ns))


def _monitored(path: Path) -> MonitorReader | None:
    """None if nothing was sampled, or its file cannot be read."""
    if not path.is_file():
        return None
    reader = MonitorReader(path)
    try:
        reader.refresh()
    except (RecordError, OSError):
        return None
    return reader
