"""What every thread was doing, as layers: callbacks and executor phases, the scheduler's states, who held its CPU.

And the sleeps of threads outside of callbacks, with who ended each: along these a message's way is followed backwards.

A layer is a set of intervals of threads, disjoint on each thread: its states, its callbacks, who held its CPU. Cutting
a stretch by a layer gives pieces, each within one interval or between two, that together are the stretch:

    stretch        |-------------------------|
    layer       |======|   |======||===|  |=====|
    pieces         |---|---|------||---|--|--|

What control groups did to threads (CPU quotas and freezers) is in recording.json. Their counters were read every 20 ms
or so. When exactly a group was let go or frozen lies between two readings, and the thread's own states tell: a wait for
a CPU that was over no earlier than its group was let go was held back for as long as the group was, and a sleep that
lasted over a reading at which its group was frozen is of the freezer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from perflab.formats.recording import Cgroup, cgroups_of, recording_of
from perflab.trace.quality import migration_reason, wake_up_reason
from perflab.trace.source import Source

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Columns of equal length. Those of stretches of time are subject (whose time it is: the message, or the callback
# instance), thread (its row; NONE where no thread's states matter), start, end, role and note.
Columns = dict[str, Ints]

FOREVER = 2**62  # ns
NONE = -1  # no row
_STRETCHES = ("subject", "thread", "start", "end", "role", "note")
_PERIOD_US = 100_000  # of a CPU quota: the kernel's default
# Threads of the kernel that carry messages on when an interrupt does not do it at once.
_OF_THE_NETWORK = re.compile(r"(ksoftirqd/|irq/|napi/).*")


def ints(series: pl.Series, missing: int = NONE) -> Ints:
    """As numbers; null is `missing`. Enumerations by their place."""
    if series.dtype == pl.Enum:
        series = series.to_physical()
    filled: Ints = series.cast(pl.Int64).fill_null(missing).to_numpy()
    return filled


class Layer:
    """Intervals by thread and time. `row` is what each is of; where two overlap, the later one ends the earlier one."""

    def __init__(self, thread: Ints, start: Ints, end: Ints, row: Ints | None = None) -> None:
        row = np.arange(len(thread), dtype=np.int64) if row is None else row
        same, later = thread[1:] == thread[:-1], start[1:] >= start[:-1]
        if not ((thread[1:] > thread[:-1]) | (same & later)).all():  # the scheduler's tables are sorted
            order = np.lexsort((start, thread))
            thread, start, end, row = thread[order], start[order], end[order], row[order]
        self.thread, self.start, self.row, self.end = thread, start, row, end.copy()
        if len(thread) > 1:
            same = self.thread[1:] == self.thread[:-1]
            self.end[:-1] = np.where(same, np.minimum(self.end[:-1], self.start[1:]), self.end[:-1])
        times = np.sort(self.start)
        self._times = times[np.diff(times, prepend=times[:1] - 1) != 0]  # np.unique is slower
        self._keys = self._key(self.thread, self.start, right=True)

    @classmethod
    def of(cls, table: pl.DataFrame, rows: Ints | None = None) -> Layer:
        """These rows of a table with `thread`, `start_ns` and `end_ns`, or all; what was not seen to end goes on."""
        rows = np.arange(table.height, dtype=np.int64) if rows is None else rows
        thread, start = ints(table["thread"])[rows], ints(table["start_ns"])[rows]
        return cls(thread, start, ints(table["end_ns"], FOREVER)[rows], rows)

    def __len__(self) -> int:
        return len(self.thread)

    def _key(self, thread: Ints, time: Ints, *, right: bool) -> Ints:
        """Ascending with thread, then with how many different starts lie before the time (`right`: or at it)."""
        rank = np.searchsorted(self._times, time, side="right" if right else "left")
        key: Ints = thread * (len(self._times) + 1) + rank
        return key

    def at(self, thread: Ints, time: Ints) -> Ints:
        """The row within whose interval that thread is at that time; NONE where it is in none."""
        return of_rows(self.row, self.place(thread, time))

    def next_start(self, thread: Ints, time: Ints) -> Ints:
        """The first start on that thread after that time; FOREVER where there is none."""
        if not len(self):
            return np.full(len(thread), FOREVER)
        after = np.searchsorted(self._keys, self._key(thread, time, right=True), side="right")
        at = np.minimum(after, len(self) - 1)
        found = (after < len(self)) & (self.thread[at] == thread)
        return np.where(found, self.start[at], FOREVER)

    def place(self, thread: Ints, time: Ints) -> Ints:
        """Which of the intervals, as they are sorted, that is; NONE where it is in none."""
        if not len(self):
            return np.full(len(thread), NONE, dtype=np.int64)
        last = np.searchsorted(self._keys, self._key(thread, time, right=True), side="right") - 1
        at = np.maximum(last, 0)
        within = (last >= 0) & (self.thread[at] == thread) & (time < self.end[at])
        place: Ints = np.where(within, last, NONE)
        return place

    def cut(self, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The pieces of these stretches: of which stretch, start, end, and the row of the layer, NONE between them."""
        if not len(self):
            whole = np.flatnonzero(end > start)
            return whole, start[whole], end[whole], np.full(len(whole), NONE, dtype=np.int64)
        first = np.searchsorted(self._keys, self._key(thread, start, right=True), side="right") - 1
        at = np.maximum(first, 0)
        reaches_in = (first >= 0) & (self.thread[at] == thread) & (self.end[at] > start)
        first = np.where(reaches_in, first, first + 1)
        after = np.searchsorted(self._keys, self._key(thread, end, right=False), side="right")
        count = np.maximum(after - first, 0)
        # Of n intervals there are 2 n + 1 places: before, within the first, between, within the second, ..., after.
        places = 2 * count + 1
        of = np.repeat(np.arange(len(thread), dtype=np.int64), places)
        number = np.arange(len(of), dtype=np.int64) - np.repeat(np.cumsum(places) - places, places)
        inside = (number & 1) == 1
        interval = first[of] + (number >> 1)  # of a place between two: the later one
        within = np.clip(interval, 0, len(self) - 1)
        previous = np.clip(interval - 1, 0, len(self) - 1)
        is_first, is_last = number == 0, number == places[of] - 1
        begins = np.where(inside, self.start[within], np.where(is_first, start[of], self.end[previous]))
        ends = np.where(inside, self.end[within], np.where(is_last, end[of], self.start[within]))
        begins, ends = np.maximum(begins, start[of]), np.minimum(ends, end[of])
        keep = ends > begins
        row = np.where(inside, self.row[within], NONE)
        return of[keep], begins[keep], ends[keep], row[keep]


def cut_by(layer: Layer, pieces: Columns, where: Flags | None = None) -> tuple[Columns, Ints]:
    """Pieces with thread, start and end (those `where` only) cut by a layer, and the layer's row of each."""
    thread = pieces["thread"] if where is None else np.where(where, pieces["thread"], NONE)
    of, start, end, row = layer.cut(thread, pieces["start"], pieces["end"])
    return {name: column[of] for name, column in pieces.items()} | {"start": start, "end": end}, row


def of_rows(values: Ints, row: Ints) -> Ints:
    """The values of these rows; NONE where there is none."""
    return np.where(row >= 0, values[row], NONE) if len(values) else np.full(len(row), NONE)


def chosen(pieces: Columns, rows: Flags) -> Columns:
    return {name: column[rows] for name, column in pieces.items()}


class Collected:
    """Stretches that are found one after the other. Those of no length are left out."""

    def __init__(self) -> None:
        self._found: list[Columns] = []

    def put(self, pieces: Columns, **instead: Ints | int) -> None:
        """Pieces with their columns, or with others `instead`."""
        columns = {"note": 0, **pieces, **instead}
        n = len(pieces["subject"])
        stretches = {name: np.broadcast_to(np.int64(columns[name]), n) for name in _STRETCHES}
        self._found.append(chosen(stretches, stretches["end"] > stretches["start"]))

    def all(self) -> Columns:
        return {name: np.concatenate([found[name] for found in self._found]) for name in _STRETCHES}


# Threads --------------------------------------------------------------------------------------------------------------


class State(IntEnum):
    """Of a thread: the codes of thread_states.state in the order of tables.h, and what is made of them."""

    RUNNING = 0
    PREEMPTED = 1
    BLOCKED = 2
    WOKEN = 3
    STOPPED = 4
    TRACED = 5
    UNINTERRUPTIBLE = 6  # blocked, and nothing but what it waits for ends that sleep
    THROTTLED = 7  # what its control group made of a wait
    FROZEN = 8  # and of a sleep


class Within(IntEnum):
    """What a thread is within, in its program."""

    NOTHING = 0
    CALLBACK = 1
    PHASE = 2


class Threads:
    """The tables of a trace as layers. Each is made when it is first needed."""

    def __init__(self, trace: Source) -> None:
        self._trace = trace
        self.count = trace.table("threads").height
        self.host = ints(trace.table("threads")["host"])
        self.process = ints(trace.table("threads")["process"])
        self.wake_up_reason = wake_up_reason(trace.facts)
        self.migration_reason = migration_reason(trace.facts)

    # Programs -----------------------------------------------------------------------------------------------------

    @cached_property
    def contexts(self) -> tuple[tuple[int, Layer], ...]:
        """Callback instances and phases, by how deep they are nested in their like. What began last is the innermost.

        Where an end was not seen, it is at the next start of the same depth at the latest.
        """
        instances = self._trace.table("callback_instances")
        parent = above = ints(instances["parent"])
        depth = np.zeros(len(parent), dtype=np.int64)
        while (above >= 0).any():
            depth += above >= 0
            above = of_rows(parent, above)
        nested = [
            Layer.of(instances, np.flatnonzero(depth == level)) for level in range(int(depth.max(initial=-1)) + 1)
        ]
        return (*((Within.PHASE, layer) for layer in self._phases), *((Within.CALLBACK, layer) for layer in nested))

    @cached_property
    def _phases(self) -> tuple[Layer, ...]:
        """The phases of executors; those of executors that callbacks spin are in a layer further down."""
        phases = self._trace.table("phases")
        rest = phases.select("thread", "start_ns", pl.col("end_ns").fill_null(FOREVER)).with_row_index("row")
        rest = rest.sort("thread", "start_ns")
        nested = (pl.col("start_ns") < pl.col("end_ns").cum_max().shift(1).over("thread")).fill_null(False)
        layers = []
        while rest.height:
            layers.append(Layer.of(phases, ints(rest.filter(~nested)["row"])))
            rest = rest.filter(nested)
        return tuple(layers)

    def within(self, thread: Ints, time: Ints) -> tuple[Ints, Ints]:
        """The innermost of what a thread is within at that time: what kind, and its row."""
        kind = np.full(len(thread), Within.NOTHING, dtype=np.int64)
        row = np.full(len(thread), NONE, dtype=np.int64)
        began = np.full(len(thread), -FOREVER, dtype=np.int64)
        for name, layer in self.contexts:
            place = layer.place(thread, time)
            start = of_rows(layer.start, place)
            later = (place >= 0) & (start >= began)
            kind = np.where(later, name, kind)
            row = np.where(later, of_rows(layer.row, place), row)
            began = np.where(later, start, began)
        return kind, row

    def _works(self, thread: Ints, time: Ints) -> Flags:
        """Whether an executor's thread does anything but wait for work at that time, by its phases."""
        kind, row = self.within(thread, time)
        works: Flags = kind == Within.PHASE
        works[works] = ~self._is_waiting[row[works]]
        return works

    @cached_property
    def executes(self) -> Flags:
        """Whether a thread is one of an executor: has phases, or callbacks."""
        found = np.zeros(self.count, dtype=np.bool_)
        for table in ("phases", "callback_instances"):
            found[ints(self._trace.table(table)["thread"].drop_nulls().unique())] = True
        return found

    @cached_property
    def alone(self) -> Flags:
        """Whether a thread's executor has no other thread: of its process no other waits for work, or both do at once,
        which threads of one executor do not."""
        waits = self.waits_for_work
        alone = np.zeros(self.count, dtype=np.bool_)
        threads = np.unique(waits.thread)
        spans = {t: (waits.start[waits.thread == t], waits.end[waits.thread == t]) for t in threads}
        for thread in threads:
            others = [
                t for t in np.flatnonzero(self.executes) if t != thread and self.process[t] == self.process[thread]
            ]
            alone[thread] = all(t in spans and _overlap(spans[thread], spans[t]) for t in others)
        return alone

    @cached_property
    def waits_for_work(self) -> Layer:
        """The phases wait_for_work of executors that no callback spins, where their ends were seen."""
        if not self._phases:
            return Layer.of(self._trace.table("phases"))
        outer = self._phases[0]
        keep = self._is_waiting[outer.row] & (outer.end < FOREVER)
        return Layer(outer.thread[keep], outer.start[keep], outer.end[keep])

    @cached_property
    def _is_waiting(self) -> Flags:
        """Of each phase whether it waits for work."""
        phases = self._trace.table("phases")["phase"].cast(pl.String)
        flags: Flags = (phases == "wait_for_work").fill_null(False).to_numpy()
        return flags

    # Scheduler ----------------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> Layer:
        return Layer.of(self._trace.table("thread_states"))

    @cached_property
    def _state(self) -> Columns:
        """Of each state what it is, whether that is inferred, and the CPU."""
        table = self._trace.table("thread_states")
        state = np.where(self._uninterruptible, State.UNINTERRUPTIBLE, ints(table["state"]))
        return {"state": state, "inferred": ints(table["inferred"], 0), "cpu": ints(table["cpu"])}

    @cached_property
    def _uninterruptible(self) -> Flags:
        """Of each state, whether it is a sleep that began uninterruptibly: no message ends such a one."""
        table = self._trace.table("thread_states").select("thread", "state", "start_ns", "end_ns", "end_state")
        follows = (pl.col("thread") == pl.col("thread").shift(1)) & (pl.col("start_ns") == pl.col("end_ns").shift(1))
        began = pl.col("end_state").cast(pl.String).shift(1) == "uninterruptible"
        found = (pl.col("state").cast(pl.String) == "blocked") & follows & began
        flags: Flags = table.select(found.fill_null(False))["state"].to_numpy()
        return flags

    @cached_property
    def _frozen(self) -> Layer:
        """Sleeps in frozen groups."""
        sleeps = np.isin(self._state["state"], (State.BLOCKED, State.UNINTERRUPTIBLE))
        return frozen(self._trace, self.states, sleeps)

    @cached_property
    def stops(self) -> Layer:
        """When threads were stopped, by a signal, a debugger or a freezer."""
        table = self._trace.table("thread_states")
        stopped = Layer.of(table.filter(pl.col("state").cast(pl.String).is_in(["stopped", "traced"])))
        both = ((layer.thread, layer.start, layer.end) for layer in (stopped, self._frozen))
        return Layer(*(np.concatenate(columns) for columns in zip(*both, strict=True)))

    @cached_property
    def scheduled(self) -> Flags:
        """Whether the scheduler's events say anything of a thread."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[np.unique(self.states.thread)] = True
        return found

    @cached_property
    def of_the_network(self) -> Flags:
        names = self._trace.table("threads")["name"].to_list()
        return np.array([bool(name and _OF_THE_NETWORK.fullmatch(name)) for name in names], dtype=np.bool_)

    @cached_property
    def sleeps(self) -> Columns:
        """The sleeps of threads that are within no callback, each ended by a wake-up: thread, start, end, waker and
        has_waking, sorted by thread and end.

        Without those of an executor's thread that did not wait for work and was woken by none of its executor's: it
        waited for a lock of the middleware, and no message came with that.
        """
        slept = self._slept()
        thread, start = ints(slept["thread"]), ints(slept["start_ns"])
        executes = np.flatnonzero(self.executes[thread])
        kind, _ = self.within(thread[executes], start[executes])
        outside = np.ones(len(thread), dtype=np.bool_)
        outside[executes[kind == Within.CALLBACK]] = False
        locked = executes[self._works(thread[executes], start[executes])]
        locked = locked[self._works(thread[locked], ints(slept["end_ns"])[locked] - 1)]
        waker, sleeper = ints(slept["by_thread"])[locked], thread[locked]
        outside[locked[np.where(waker >= 0, ~self._of_executor(waker, sleeper), self.alone[sleeper])]] = False
        slept = slept.filter(pl.Series(outside, dtype=pl.Boolean)).sort("thread", "end_ns")
        columns = {"thread": "thread", "start": "start_ns", "end": "end_ns", "waker": "by_thread"}
        found = {name: ints(slept[column]) for name, column in columns.items()}
        return found | {"has_waking": ints(slept["waking_ns"].is_not_null())}

    def last_sleep(self, thread: Ints, before: Ints, after: Ints) -> Ints:
        """The row of the last sleep of that thread that ended before one time and after another; NONE without."""
        row = self._sleep_ends.at(thread, before - 1)
        return np.where(of_rows(self.sleeps["end"], row) > after, row, NONE)

    @cached_property
    def _sleep_ends(self) -> Layer:
        """The sleep that ended last is that in whose interval "from its end on" a time lies."""
        return Layer(self.sleeps["thread"], self.sleeps["end"], np.full(len(self.sleeps["end"]), FOREVER))

    def _slept(self) -> pl.DataFrame:
        """Every sleep of a thread, with who ended it, where a wake-up did."""
        table = self._trace.table("thread_states")
        # What came after a thaw ended a sleep that was frozen for a while only.
        frozen = np.zeros(table.height, dtype=np.bool_)
        frozen[self._frozen.row[self._frozen.end >= ints(table["end_ns"])[self._frozen.row]]] = True
        asleep = (pl.col("state") == "blocked") & ~pl.lit(pl.Series(self._uninterruptible | frozen, dtype=pl.Boolean))
        slept = table.filter(asleep).select("thread", "start_ns", "end_ns")
        wake_ups = (
            self._trace.table("wake_ups")
            .filter(~pl.col("already_running").fill_null(False))
            .select("thread", "by_thread", "waking_ns", end_ns="wakeup_ns")
            .unique(["thread", "end_ns"], keep="first", maintain_order=True)
        )
        return slept.join(wake_ups, on=["thread", "end_ns"], how="left", maintain_order="left")

    def _of_executor(self, waker: Ints, sleeper: Ints) -> Flags:
        """Whether a waker is a thread of an executor in the sleeper's process."""
        at = np.maximum(waker, 0)
        found: Flags = (waker >= 0) & self.executes[at] & (self.process[at] == self.process[sleeper])
        return found

    def locked_by_its_executor(self) -> pl.DataFrame:
        """phase_row, slept_ns: the sleeps of executors' threads in phases that do not wait for work, and in no
        callback, that another thread of the same executor ended: it had the executor's lock.
        """
        slept = self._slept()
        thread, start, end = (ints(slept[c]) for c in ("thread", "start_ns", "end_ns"))
        mine = np.flatnonzero(self.executes[thread] & ~self.alone[thread]) if len(thread) else np.empty(0, np.int64)
        _, row = self.within(thread[mine], start[mine])
        works = self._works(thread[mine], start[mine])
        works &= self._of_executor(ints(slept["by_thread"])[mine], thread[mine])
        mine, row = mine[works], row[works]
        return pl.DataFrame({"phase_row": row.astype(np.uint32), "slept_ns": end[mine] - start[mine]})

    def divide(self, stretches: Columns, in_programs: Sequence[int]) -> pl.DataFrame:
        """Stretches by what their thread was within (those with roles `in_programs` only), by its states, and by the
        holder of its CPU.

        Their columns, and `within` with its row `within_row` of callback_instances or phases, `state` and whether that
        is `inferred`, `cpu`, and while preempted or woken its `holder`, and whether the CPU was `idle` (1). NONE is
        what is not known.
        """
        pieces = stretches
        for _, layer in self.contexts:
            pieces, _ = cut_by(layer, pieces, np.isin(pieces["role"], in_programs))
        thread = np.where(np.isin(pieces["role"], in_programs), pieces["thread"], NONE)
        pieces |= dict(zip(("within", "within_row"), self.within(thread, pieces["start"]), strict=True))
        pieces, row = cut_by(self.states, pieces)
        pieces |= {column: of_rows(values, row) for column, values in self._state.items()}
        waits = (State.PREEMPTED, State.WOKEN)
        of_quotas = throttled(self._trace, self.states, np.isin(self._state["state"], waits))
        for caused, layer in ((State.THROTTLED, of_quotas), (State.FROZEN, self._frozen)):
            pieces, held = cut_by(layer, pieces)
            pieces["state"] = np.where(held >= 0, caused, pieces["state"])
        holds = self._trace.table("holds")
        pieces, held = cut_by(Layer.of(holds), pieces, np.isin(pieces["state"], waits))
        pieces |= {column: of_rows(ints(holds[column]), held) for column in ("holder", "idle")}
        return pl.DataFrame(pieces).with_columns(pl.col("inferred") == 1)


def _overlap(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> bool:
    """Whether an interval of one set overlaps one of the other; both sorted and disjoint."""
    first = np.searchsorted(b[1], a[0], side="right")  # the first of b that ends after the start
    within = first < len(b[0])
    return bool((b[0][np.minimum(first, len(b[0]) - 1)][within] < a[1][within]).any()) if len(b[0]) else False


# Control groups -------------------------------------------------------------------------------------------------------


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
    for group, shift_ns, threads in _groups(trace):
        told = pl.DataFrame(list(times_of(group, shift_ns)), schema=times, orient="row")
        held.append(pl.DataFrame({"thread": threads}, schema={"thread": pl.Int64}).join(told, how="cross"))
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


def _groups(trace: Source) -> Iterator[tuple[Cgroup, int, list[int]]]:
    """The groups of the recording of each scheduler part on the clock that recordings use, with the part's shift to the
    trace's time line, which is that clock elsewhere, and the rows of their threads.
    """
    paths = [Path(path) for path in trace.facts.get("paths") or ()]
    hosts = trace.table("hosts")["name"].to_list()
    seen: list[dict[str, Any]] = []
    for part in trace.facts.get("traces") or ():
        clock = part.get("clock") or {}
        if part.get("domain") != "kernel" or clock.get("name") != "monotonic":
            continue
        # Relative to the path that was given; of several it begins with its own.
        recording = recording_of(paths[0] / part["path"] if len(paths) == 1 else Path(part["path"]))
        if not recording or recording in seen:
            continue
        seen.append(recording)
        rows: dict[int, list[int]] = {}
        for row, (tid, host) in enumerate(trace.table("threads").select("tid", "host").iter_rows()):
            # Where a trace is of one host, all are of that one.
            if len(hosts) < 2 or (host is not None and hosts[host] == part.get("host")):
                rows.setdefault(tid, []).append(row)
        for group in cgroups_of(recording):
            yield group, int(part.get("shift_ns") or 0), [row for tid in group.threads for row in rows.get(tid, ())]
