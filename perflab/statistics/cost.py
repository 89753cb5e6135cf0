"""The cost of a trial between the two ends of its measured part: CPU time by role of threads, and the processor's
counters if available (docs/formats.md, section 4, records `cost`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.results.trial import Cost, added

Record = Mapping[str, Any]

ROLES = ("executor", "middleware", "perflab", "tracer")  # threads of every process; a program has its own in addition
ENDED = "ended"  # threads of unknown role that ended within the measured part
COUNTERS = ("cycles", "instructions", "cache_misses")


@dataclass(frozen=True)
class Thread:
    """CPU time of one thread within the measured part."""

    process: str
    tid: int
    name: str
    role: str
    cpu_ns: int


@dataclass(frozen=True)
class ProcessCost:
    """Of one process between its records at the start and at the end; `counts` are by counter name.

    A count is None if it was not counted, and `reasons` says why; `notes` are remarks on the others.
    """

    process: str
    interval_ns: int
    cpu_ns: int
    threads: tuple[Thread, ...]
    counts: Mapping[str, int | None]
    reasons: Mapping[str, str]
    notes: tuple[str, ...] = ()
    allocations: int | None = None
    """Of all threads but perflab's own; None if they were not counted."""

    @property
    def cpu_percent(self) -> float | None:
        """Of one CPU."""
        return 100.0 * self.cpu_ns / self.interval_ns if self.interval_ns > 0 else None


def of_process(process: str, records: Sequence[Record]) -> ProcessCost | None:
    """None if one of its two records is missing. Raises KeyError or TypeError for damaged ones."""
    by_end = {record["when"]: record for record in records}
    if "start" not in by_end or "end" not in by_end:
        return None
    begin, end = by_end["start"], by_end["end"]
    before = {thread["tid"]: thread["cpu_ns"] for thread in begin["threads"]}
    threads = tuple(
        Thread(process, t["tid"], str(t["name"]), str(t["role"]), t["cpu_ns"] - before.get(t["tid"], 0))
        for t in end["threads"]
    )
    cpu_ns = end["cpu_ns"] - begin["cpu_ns"]
    ended = [t for t in begin["threads"] if t["tid"] not in {other["tid"] for other in end["threads"]}]
    if len({t["role"] for t in ended}) == 1:  # like that of timers, which ends when the last one has fired
        used = max(0, cpu_ns - sum(t.cpu_ns for t in threads))
        threads += (Thread(process, ended[0]["tid"], str(ended[0]["name"]), str(ended[0]["role"]), used),)
    counts: dict[str, int | None] = {}
    reasons: dict[str, str] = {}
    notes: list[str] = []
    for name in COUNTERS:
        counts[name], said = _counted(name, begin.get(name) or {}, end.get(name) or {})
        if counts[name] is None:
            reasons[name] = said
        elif said:
            notes.append(said)
    ends = begin.get("allocations"), end.get("allocations")
    allocations = None if ends[0] is None or ends[1] is None else ends[1] - ends[0]
    took_ns = end["at_ns"] - begin["at_ns"]
    return ProcessCost(process, took_ns, cpu_ns, threads, counts, reasons, tuple(notes), allocations)


def _counted(name: str, begin: Record, end: Record) -> tuple[int | None, str]:
    """A counter's value, with a remark; or None with the reason."""
    for record in (begin, end):
        if record.get("count") is None:
            return None, str(record.get("reason") or "not recorded")
    count, enabled, running = (end[key] - begin[key] for key in ("count", "enabled_ns", "running_ns"))
    if running <= 0:
        return None, f"the counter of {name} was never scheduled: others use the processor's counters"
    if count <= 0:
        return None, f"the counter of {name} does not advance, as on some virtual machines"
    notes = [] if end.get("kernel") else [f"{name} of user space only: counting the kernel's is not permitted"]
    if running < enabled:
        share = running / enabled
        notes.append(f"{name} were counted for {share:.0%} of the time, and are scaled from that")
        count = round(count / share)
    return count, "; ".join(notes)


def of_trial(processes: Sequence[ProcessCost | None]) -> Cost | None:
    """All processes of a trial together; None if one was not recorded."""
    known = [cost for cost in processes if cost is not None]
    if not known or len(known) < len(processes):
        return None
    cpu_ns = sum(cost.cpu_ns for cost in known)
    roles = dict.fromkeys(ROLES, 0)
    for cost in known:
        for thread in cost.threads:
            roles[thread.role] = roles.get(thread.role, 0) + thread.cpu_ns
    counts: dict[str, Any] = {name: added(cost.counts[name] for cost in known) for name in COUNTERS}
    reasons: dict[str, Any] = {
        f"{name}_reason": next((cost.reasons[name] for cost in known if name in cost.reasons), None)
        for name in COUNTERS
    }
    return Cost(
        cpu_ns=cpu_ns,
        # Threads are read one after the other, right after the process: the difference belongs to others.
        roles={**roles, ENDED: max(0, cpu_ns - sum(roles.values()))},
        **counts,
        **reasons,
        notes=tuple(dict.fromkeys(note for cost in known for note in cost.notes)),
    )
