"""What control groups did to threads while they were recorded: CPU quotas and freezers, as recording.json has it.

The counters were read every 20 ms or so. When exactly a group was let go or frozen lies between two readings, and the
thread's own states tell: a wait for a CPU that was over no earlier than its group was let go was held back for as long
as the group was, and a sleep that lasted over a reading at which its group was frozen is of the freezer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from perflab.formats.recording import Cgroup, cgroups_of, recording_of
from perflab.trace.why_layers import FOREVER, Columns, Flags, Ints, Layer, chosen, cut_by, ints

if TYPE_CHECKING:
    from perflab.trace.source import Source

_PERIOD_US = 100_000  # the kernel's default
Json = dict[str, Any]


def throttled(trace: Source, states: Layer, eligible: Flags) -> Layer:
    """The parts of eligible states (waits for a CPU) that quotas caused; `row` is that of the state."""

    def held_back(group: Cgroup, shift_ns: int) -> Iterator[tuple[int, ...]]:
        for t in group.throttled:
            # The kernel sums over CPUs; on each of them it is a period at a time at most.
            longest = min(t.ns, max(t.periods, 1) * 1000 * (group.period_us or _PERIOD_US))
            before, after = t.before_ns + shift_ns, t.after_ns + shift_ns
            yield before - longest, after, before, after, longest

    found = _overlapped(trace, states, eligible, ("start", "end", "before", "after", "longest"), held_back)
    stop = np.minimum(found["until"], found["after"])
    start = np.maximum(found["since"], stop - found["longest"])
    # A thread that ran before its group was let go was not held back by it.
    return _disjoint(found["thread"], start, stop, found["row"], found["until"] >= found["before"])


def frozen(trace: Source, states: Layer, eligible: Flags) -> Layer:
    """The parts of eligible states (sleeps) in which the threads were frozen; `row` is that of the state."""

    def frozen_at(group: Cgroup, shift_ns: int) -> Iterator[tuple[int, ...]]:
        for f in group.frozen:
            before = -FOREVER if f.before_ns is None else f.before_ns + shift_ns
            after = FOREVER if f.after_ns is None else f.after_ns + shift_ns
            first, last = sorted((f.first_ns + shift_ns, f.last_ns + shift_ns))
            yield before, after, before, first, last, after

    found = _overlapped(trace, states, eligible, ("start", "end", "before", "first", "last", "after"), frozen_at)
    since, until = found["since"], found["until"]
    # It was at least from one of these to the other; a state that begins or ends around them tells it exactly.
    start = np.where(since >= found["before"], since, found["first"])
    stop = np.where(until <= found["after"], until, found["last"])
    certain = (since <= found["last"]) & (until >= found["first"])
    return _disjoint(found["thread"], start, stop, found["row"], certain)


def _overlapped(
    trace: Source,
    states: Layer,
    eligible: Flags,
    columns: tuple[str, ...],
    times_of: Callable[[Cgroup, int], Iterable[tuple[int, ...]]],
) -> Columns:
    """Eligible states within the times that their groups were held, as `times_of` tells these of a group (shifted to
    the trace's time line): `thread`, `columns`, and of the state `row`, `since` and `until`.
    """
    times = dict.fromkeys(columns, pl.Int64)
    held = [pl.DataFrame(schema={"thread": pl.Int64, **times})]
    for recording, shift_ns, host in _recordings(trace.facts):
        rows = _threads(trace, host)
        for group in cgroups_of(recording):
            mine = pl.Series("thread", [row for tid in group.threads for row in rows.get(tid, ())], dtype=pl.Int64)
            told = pl.DataFrame(list(times_of(group, shift_ns)), schema=times, orient="row")
            held.append(mine.to_frame().join(told, how="cross"))
    pieces, row = cut_by(states, {name: ints(column) for name, column in pl.concat(held).to_dict().items()})
    found = chosen({**pieces, "row": row}, row >= 0)
    found = chosen(found, eligible[found["row"]])
    place = np.argsort(states.row)
    return found | {"since": states.start[place[found["row"]]], "until": states.end[place[found["row"]]]}


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
