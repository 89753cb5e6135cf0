"""What control groups did to threads while they were recorded: CPU quotas and freezers, as recording.json has it.

The counters were read every 20 ms or so. When exactly a group was let go or frozen lies between two readings, and the
thread's own states tell: a wait for a CPU that was over no earlier than its group was let go was held back for as long
as the group was, and a sleep that lasted over a reading at which its group was frozen is of the freezer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from perflab.formats.recording import Cgroup, cgroups_of, recording_of
from perflab.trace.why_layers import FOREVER, Flags, Ints, Layer

if TYPE_CHECKING:
    from perflab.trace.source import Source

_PERIOD_US = 100_000  # the kernel's default
Json = dict[str, Any]


def throttled(trace: Source, states: Layer, eligible: Flags) -> Layer:
    """The parts of eligible states (waits for a CPU) that quotas caused; `row` is that of the state."""
    held = _gathered(
        trace,
        3,
        lambda group: [(t.before_ns, t.after_ns, _longest_ns(group, t.periods, t.ns)) for t in group.throttled],
    )
    before, after, longest = held.times
    found = _overlaps(states, eligible, held.thread, before - longest, after)
    of = found.window
    stop = np.minimum(found.end, after[of])
    start = np.maximum(found.begin, stop - longest[of])
    # A thread that ran before its group was let go was not held back by it.
    return _disjoint(held.thread[of], start, stop, found.row, found.end >= before[of])


def frozen(trace: Source, states: Layer, eligible: Flags) -> Layer:
    """The parts of eligible states (sleeps) in which the threads were frozen; `row` is that of the state."""
    held = _gathered(
        trace,
        4,
        lambda group: [
            (-FOREVER if f.before_ns is None else f.before_ns, f.first_ns, f.last_ns,
             FOREVER if f.after_ns is None else f.after_ns)
            for f in group.frozen
        ],
    )  # fmt: skip
    before, first, last, after = held.times
    found = _overlaps(states, eligible, held.thread, before, after)
    of = found.window
    # It was at least from one of these to the other; a state that begins or ends around them tells it exactly.
    start = np.where(found.begin >= before[of], found.begin, np.minimum(first, last)[of])
    stop = np.where(found.end <= after[of], found.end, np.maximum(first, last)[of])
    certain = (found.begin <= np.maximum(first, last)[of]) & (found.end >= np.minimum(first, last)[of])
    return _disjoint(held.thread[of], start, stop, found.row, certain)


def _longest_ns(group: Cgroup, periods: int, ns: int) -> int:
    """The kernel sums over CPUs; on each of them it is a period at a time at most."""
    return min(ns, max(periods, 1) * 1000 * (group.period_us or _PERIOD_US))


@dataclass(frozen=True)
class _Held:
    """Threads and the times of what held them, a row each; ns on the trace's time line."""

    thread: Ints
    times: tuple[Ints, ...]


def _gathered(trace: Source, columns: int, of_group: Callable[[Cgroup], Sequence[Sequence[int]]]) -> _Held:
    """For every thread of every group the so many times that `of_group` tells; the third of three is a duration."""
    threads, parts = [], []
    for recording, shift_ns, host in _recordings(trace.facts):
        rows = _threads(trace, host)
        for group in cgroups_of(recording):
            mine = np.array([row for tid in group.threads for row in rows.get(tid, ())], dtype=np.int64)
            times = np.array(of_group(group), dtype=np.int64)
            if not len(mine) or not len(times):
                continue
            moved = np.where(np.abs(times) == FOREVER, times, times + shift_ns)
            if columns == 3:
                moved[:, 2] = times[:, 2]
            threads.append(np.repeat(mine, len(times)))
            parts.append(np.tile(moved, (len(mine), 1)))
    if not threads:
        return _Held(np.empty(0, np.int64), (np.empty(0, np.int64),) * columns)
    return _Held(np.concatenate(threads), tuple(np.ascontiguousarray(c) for c in np.concatenate(parts).T))


@dataclass(frozen=True)
class _Found:
    """Eligible states within the windows: which window, which state, and that state's begin and end."""

    window: Ints
    row: Ints
    begin: Ints
    end: Ints


def _overlaps(states: Layer, eligible: Flags, thread: Ints, since: Ints, until: Ints) -> _Found:
    window, _, _, row = states.cut(thread, since, until)
    keep = row >= 0
    window, row = window[keep], row[keep]
    keep = eligible[row] if len(row) else np.empty(0, np.bool_)
    window, row = window[keep], row[keep]
    place = np.zeros(int(states.row.max(initial=-1)) + 1, dtype=np.int64)
    place[states.row] = np.arange(len(states), dtype=np.int64)
    return _Found(window, row, states.start[place[row]], states.end[place[row]])


def _disjoint(thread: Ints, start: Ints, stop: Ints, row: Ints, keep: Flags) -> Layer:
    """As a layer. Groups lie within groups, so that pieces may overlap: each then begins where those before ended."""
    pieces = (
        pl.DataFrame({"thread": thread, "start": start, "stop": stop, "row": row})
        .filter(pl.Series(keep, dtype=pl.Boolean))
        .sort("thread", "start", "stop")
        .with_columns(pl.max_horizontal("start", pl.col("stop").cum_max().shift(1).over("thread")).alias("start"))
        .filter(pl.col("start") < pl.col("stop"))
    )
    return Layer(*(pieces[column].to_numpy() for column in ("thread", "start", "stop", "row")))


def _recordings(facts: Json) -> Iterator[tuple[Json, int, str | None]]:
    """Of each scheduler part on the clock that recordings use: its recording, the part's shift to the trace's time
    line, which is that clock elsewhere, and its host.
    """
    paths = [Path(path) for path in facts.get("paths") or ()]
    seen: list[Json] = []
    for part in facts.get("traces") or ():
        clock = part.get("clock") or {}
        if part.get("domain") != "kernel" or clock.get("name") != "monotonic":
            continue
        # Relative to the path that was given; of several it begins with its own.
        path = paths[0] / part["path"] if len(paths) == 1 else Path(part["path"])
        recording = recording_of(path)
        if recording and recording not in seen:
            seen.append(recording)
            yield recording, int(part.get("shift_ns") or 0), part.get("host")


def _threads(trace: Source, host: str | None) -> dict[int, list[int]]:
    """The rows of the threads of that host, by their numbers. Where a trace is of one host, it is that one."""
    hosts = trace.table("hosts")["name"].to_list()
    found: dict[int, list[int]] = {}
    for row, (tid, of) in enumerate(trace.table("threads").select("tid", "host").iter_rows()):
        if len(hosts) < 2 or (of is not None and hosts[of] == host):
            found.setdefault(tid, []).append(row)
    return found
