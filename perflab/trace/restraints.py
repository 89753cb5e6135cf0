"""What control groups did to threads while they were recorded: CPU quotas and freezers, as recording.json has it.

The counters were read every 20 ms or so. When exactly a group was throttled or frozen lies between two readings, and
the thread's own states tell: one that waited for a CPU over the time that a group was throttled for certain was held
back from the beginning of that wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perflab.formats.recording import Cgroup, cgroups_of, recording_of
from perflab.trace.why_layers import FOREVER, Flags, Ints, Layer

if TYPE_CHECKING:
    from perflab.trace.source import Source

THROTTLED, FROZEN = "throttled", "frozen"
_PERIOD_US = 100_000  # the kernel's default
Json = dict[str, Any]


@dataclass(frozen=True)
class Restraints:
    """When groups held threads, as columns: it began from `since` to `since_latest`, and ended from `until` to
    `until_latest`; ns on the trace's time line.
    """

    thread: Ints
    since: Ints
    since_latest: Ints
    until: Ints
    until_latest: Ints

    def states(self, states: Layer, eligible: Flags) -> Layer:
        """The parts of those states of the threads that the groups caused; `row` is that of the state."""
        of, _, _, row = states.cut(self.thread, self.since, self.until_latest)
        keep = row >= 0
        of, row = of[keep], row[keep]
        keep = eligible[row]
        of, row = of[keep], row[keep]
        place = np.zeros(int(states.row.max(initial=-1)) + 1, dtype=np.int64)
        place[states.row] = np.arange(len(states), dtype=np.int64)
        begin, end = states.start[place[row]], states.end[place[row]]
        # What is certain; where the readings are further apart than it took, the middle of it.
        certain = np.minimum(self.since_latest[of], self.until[of])
        certain_end = np.maximum(self.since_latest[of], self.until[of])
        keep = (begin < certain_end) & (end > certain)
        of, row, begin, end = of[keep], row[keep], begin[keep], end[keep]
        start = np.where(begin >= self.since[of], begin, np.minimum(self.since_latest[of], self.until[of]))
        stop = np.where(end <= self.until_latest[of], end, np.maximum(self.since_latest[of], self.until[of]))
        return Layer(self.thread[of], start, stop, row)


def restraints_of(trace: Source, kind: str) -> Restraints:
    """Of THROTTLED or FROZEN; empty where the trace is of no recording, or of one that says nothing of groups."""
    shift = _from_monotonic(trace.facts)
    found: list[list[int]] = []
    for recording in _recordings(trace.facts) if shift is not None else ():
        rows = _threads(trace, str((recording.get("host") or {}).get("hostname")))
        for group in cgroups_of(recording):
            times = _throttled(group) if kind == THROTTLED else _frozen(group)
            for row in (row for tid in group.threads for row in rows.get(tid, ())):
                found += [[row, *(_moved(t, shift or 0) for t in time)] for time in times]
    made = np.array(found, dtype=np.int64).reshape(-1, 5)
    return Restraints(*(np.ascontiguousarray(column) for column in made.T))


def _threads(trace: Source, host: str) -> dict[int, list[int]]:
    """The rows of the threads of that host, by their numbers. Where a trace is of one host, it is that one."""
    hosts = trace.table("hosts")["name"].to_list()
    found: dict[int, list[int]] = {}
    for row, (tid, of) in enumerate(trace.table("threads").select("tid", "host").iter_rows()):
        if len(hosts) < 2 or (of is not None and hosts[of] == host):
            found.setdefault(tid, []).append(row)
    return found


def _throttled(group: Cgroup) -> list[tuple[int, int, int, int]]:
    """Counters grow when a group may run on, which was between two readings, by how long it was held back."""
    found = []
    for t in group.throttled:
        # The kernel sums over CPUs; on each it is a period at most.
        ns = min(t.ns, max(t.periods, 1) * 1000 * (group.period_us or _PERIOD_US))
        found.append((t.before_ns - ns, t.after_ns - ns, t.before_ns, t.after_ns))
    return found


def _frozen(group: Cgroup) -> list[tuple[int, int, int, int]]:
    return [
        (
            -FOREVER if f.before_ns is None else f.before_ns,
            f.first_ns,
            f.last_ns,
            FOREVER if f.after_ns is None else f.after_ns,
        )
        for f in group.frozen
    ]


def _moved(time_ns: int, by_ns: int) -> int:
    return time_ns if abs(time_ns) == FOREVER else time_ns + by_ns


def _from_monotonic(facts: Json) -> int | None:
    """What makes of a time of CLOCK_MONOTONIC one of the trace's time line; None where no scheduler part has it."""
    for part in facts.get("traces") or ():
        clock = part.get("clock") or {}
        if part.get("domain") == "kernel" and clock.get("name") == "monotonic":
            return int(clock["offset_ns"]) + int(part.get("shift_ns") or 0) - int(facts["epoch_offset_ns"])
    return None


def _recordings(facts: Json) -> list[Json]:
    found = [recording_of(Path(path)) for path in facts.get("paths") or ()]
    return [recording for number, recording in enumerate(found) if recording not in found[:number]]
