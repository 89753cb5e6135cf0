"""What every thread was doing, as layers: callbacks and executor phases, the scheduler's states, who held its CPU.

And the sleeps of threads outside of callbacks, with who ended each: along these a message's way is followed backwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from perflab.trace import restraints
from perflab.trace.quality import knows_idle_cpus, wake_up_reason
from perflab.trace.why_layers import FOREVER, NONE, Columns, Flags, Ints, Layer, cut_by, ints, of_rows

if TYPE_CHECKING:
    from perflab.trace.source import Source

# Threads of the kernel that carry messages on when an interrupt does not do it at once.
_OF_THE_NETWORK = re.compile(r"(ksoftirqd/|irq/|napi/).*")


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
        self.knows_idle_cpus = knows_idle_cpus(trace.facts)

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
            found = layer.start_at(thread, time)
            later = (found >= began) & (found > -FOREVER)
            kind = np.where(later, name, kind)
            row = np.where(later, layer.at(thread, time), row)
            began = np.where(later, found, began)
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
    def _throttled(self) -> Layer:
        """Waits for a CPU that a quota caused."""
        waits = np.isin(self._state["state"], (State.PREEMPTED, State.WOKEN))
        return restraints.throttled(self._trace, self.states, waits)

    @cached_property
    def _frozen(self) -> Layer:
        """Sleeps in frozen groups."""
        sleeps = np.isin(self._state["state"], (State.BLOCKED, State.UNINTERRUPTIBLE))
        return restraints.frozen(self._trace, self.states, sleeps)

    @cached_property
    def _holds(self) -> tuple[Layer, Ints]:
        table = self._trace.table("holds")
        return Layer.of(table), ints(table["holder"])

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
    def sleeps(self) -> Sleeps:
        """The sleeps of threads that are within no callback, each ended by a wake-up.

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
        return Sleeps(
            ints(slept["thread"]), ints(slept["start_ns"]), ints(slept["end_ns"]), ints(slept["by_thread"]),
            ints(slept["waking_ns"].is_not_null()),
        )  # fmt: skip

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
        """Stretches by what their thread was within (those with roles `in_programs` only), by its states, and by who
        held its CPU.

        Their columns, and `within` with its row `within_row` of callback_instances or phases, `state` and whether that
        is `inferred`, `cpu`, and while preempted or woken its `holder`. NONE is what is not known.
        """
        at_first = {"within": Within.NOTHING, "within_row": NONE, "began": -FOREVER}
        n = len(stretches["start"])
        pieces = {**stretches, **{name: np.full(n, value, dtype=np.int64) for name, value in at_first.items()}}
        for name, layer in self.contexts:
            pieces, found = cut_by(layer, pieces, np.isin(pieces["role"], in_programs))
            began = np.where(found >= 0, layer.start_at(pieces["thread"], pieces["start"]), -FOREVER)
            later = (found >= 0) & (began >= pieces["began"])
            for column, value in (("within", name), ("within_row", found), ("began", began)):
                pieces[column] = np.where(later, value, pieces[column])
        pieces, row = cut_by(self.states, pieces)
        pieces |= {column: of_rows(values, row) for column, values in self._state.items()}
        for caused, layer in ((State.THROTTLED, self._throttled), (State.FROZEN, self._frozen)):
            pieces, held = cut_by(layer, pieces)
            pieces["state"] = np.where(held >= 0, caused, pieces["state"])
        layer, holders = self._holds
        pieces, held = cut_by(layer, pieces, np.isin(pieces["state"], (State.PREEMPTED, State.WOKEN)))
        pieces["holder"] = of_rows(holders, held)
        return pl.DataFrame(pieces).drop("began").with_columns(pl.col("inferred") == 1)


class Sleeps:
    """Sorted by thread and end."""

    def __init__(self, thread: Ints, start: Ints, end: Ints, waker: Ints, has_waking: Ints) -> None:
        self.start, self.end, self.waker, self.has_waking = start, end, waker, has_waking
        self._thread = thread
        # As a layer of instants: the sleep that ended last is that in whose interval "from its end on" a time lies.
        self._ends = Layer(thread, end, np.full(len(end), FOREVER))

    def last(self, thread: Ints, before: Ints, after: Ints) -> Ints:
        """The row of the last sleep of that thread that ended before one time and after another; NONE without."""
        row = self._ends.at(thread, before - 1)
        return np.where(of_rows(self.end, row) > after, row, NONE)


def _overlap(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> bool:
    """Whether an interval of one set overlaps one of the other; both sorted and disjoint."""
    first = np.searchsorted(b[1], a[0], side="right")  # the first of b that ends after the start
    within = first < len(b[0])
    return bool((b[0][np.minimum(first, len(b[0]) - 1)][within] < a[1][within]).any()) if len(b[0]) else False
