"""Which threads waited for locks, who held them, and what kept these from letting go.

    locks(trace)                              waits for locks of 1 ms and more one by one, all of them per lock
    locks(trace, longer_than_ns=10_000_000)   those of 10 ms and more

Definitions (docs/tracing.md, Locks):
  wait       a call of futex(2) for a lock, from its begin until the thread comes back. Calls whose lock was free by
             then (EAGAIN) did not wait. What waits at a condition variable or a semaphore waits for no lock
  owner      the thread that the lock's memory named when a wait for it began, until the lock was next handed on; the
             next wait for it shows the next owner, and for a lock that inherits priorities the thread that it was
             handed to. In between the owner is unknown
  meanwhile  what the owner did while the waiting thread slept: ran, was ready but did not run, slept
  inversion  while a thread waited, the owner was ready but did not run, and one that is less urgent than the waiting
             thread had its CPU. Nice values are shares of a CPU, not urgency: threads without a real-time policy are
             equal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, flag, identity, percent, text, time
from perflab.trace.names import NO_SCHEDULER
from perflab.trace.quality import quality_of
from perflab.trace.scheduling import priority_label
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.starvation_waits import held, thread_words
from perflab.trace.threads import OF_ANY, holders, part_of, section_of, split_of
from perflab.trace.why_threads import FOREVER, Layer, Threads, ints, of_rows
from perflab.units import format_time, plural

LONGER_THAN_NS = 1_000_000
NO_LOCKS = "waits for locks were not recorded: record with --locks, or --observer tracing:locks=on"
_NOT_WAITED = -11  # EAGAIN
_FAIR = 100  # from this priority on threads have no real-time policy
_INHERITING = ("lock_pi", "lock_pi2")
_NOBODY = "who held the lock is not known"
_DID = ("ran", "could_run", "slept", "unknown")

_OWNER = because(
    _NOBODY,
    text("owner", "the thread that held the lock for the longest time of it"),
    identity("owner_tid", "its number"),
    text("owner_priority", "its priority then, as people set it, or as it inherited it"),
)
_MEANWHILE = (
    time("ran", "how long the owner ran meanwhile"),
    time("could_run", "how long it could run and did not"),
    time("slept", "how long it slept, or was stopped"),
    time("unknown", "the rest: the owner is not known, or what it did, or the waiting thread had been woken"),
)
_BY = because(
    "the owner never had to wait for a CPU that another thread is known to have had",
    text("by_process", "process of the thread that had the owner's CPU for the longest time", "that is no process"),
    identity("by_pid", "its number"),
    text("by_thread", "that thread"),
    identity("by_tid", "its number"),
    text("by_priority", "its priority then, as people set it"),
)
_INVERSION = (
    flag("inversion", "whether a less urgent thread than the waiting one kept the owner from its CPU"),
    time("inversion", "for how long"),
)
ADDRESS = text("address", "where the lock is in the memory of the process")

VERDICT = Table(
    "verdict",
    "Locks",
    (
        text("sentence", "the answer in one sentence"),
        count("locks", "locks that threads waited for"),
        count("waits", "waits for them"),
        time("longest", "the longest", "no thread waited for a lock"),
        count("inversions", "waits in which a less urgent thread kept the owner from its CPU"),
        time("inversion", "for how long in all"),
    ),
    shown=("locks", "waits", "longest_ns", "inversions", "inversion_ns"),
    vertical=True,
)
LOCKS = Table(
    "locks",
    "Locks that threads waited for",
    (
        text("host", "host"),
        text("process", "process", "no event says its name"),
        identity("pid", "its number"),
        ADDRESS,
        flag("inherits", "whether the lock hands the priority of waiting threads to its owner (PTHREAD_PRIO_INHERIT)"),
        count("waits", "waits for it"),
        count("waiters", "threads that waited for it"),
        time("total", "the waits together"),
        time("longest", "the longest"),
        time("longest_at", "when that began, from the beginning of the trace"),
        *_OWNER,
        *_MEANWHILE,
        *_BY,
        *_INVERSION,
    ),
    shown=(
        "host", "process", "pid", "address", "waits", "total_ns", "longest_ns", "owner", "owner_tid", "ran_ns",
        "could_run_ns", "slept_ns", "by_thread", "by_tid", "inversion_ns",
    ),
    spare=("by_tid", "slept_ns", "pid", "ran_ns"),
)  # fmt: skip
WAITS = Table(
    "lock_waits",
    "The waits for locks",
    (
        *OF_ANY,
        time("at", "when it began, from the beginning of the trace"),
        time("begin", "the same on the trace's clock"),
        time("end", "when the thread came back, on the trace's clock"),
        time("waited", "how long it was"),
        flag("returned", "whether the thread came back; else it ended, or the scheduler's events do"),
        text("priority", "its priority when it began, as people set it", "its events have no priority"),
        ADDRESS,
        flag("inherits", "whether the lock hands the priority of waiting threads to its owner"),
        *_OWNER,
        percent("owner", "share of the wait in which that was the owner", _NOBODY),
        *_MEANWHILE,
        *_BY,
        *_INVERSION,
    ),
    shown=(
        "host", "process", "thread", "tid", "priority", "at_ns", "waited_ns", "address", "owner", "owner_tid",
        "owner_priority", "ran_ns", "could_run_ns", "slept_ns", "by_thread", "by_priority", "inversion_ns",
    ),
    spare=("slept_ns", "ran_ns", "address", "process"),
)  # fmt: skip

TABLES = (VERDICT, LOCKS, WAITS)


def locks(trace: Source, scope: Scope = EVERYTHING, longer_than_ns: int = LONGER_THAN_NS) -> Answer:
    """Who waited for locks, and for whom. `longer_than_ns`: of the single waits."""
    quality = quality_of(trace)
    found = LockWaits.of(trace, Threads(trace), scope)
    sections = (_verdict(found), _locks(found), _waits(found, longer_than_ns))
    return quality.answer("locks", sections, "thread states", "wake-ups", scope=scope)


def recorded(trace: Source) -> bool:
    return bool((trace.facts["scheduler"] or {}).get("has_locks"))


def why_none(trace: Source) -> str:
    """Why there are no waits for locks."""
    if trace.facts["scheduler"] is None:
        return NO_SCHEDULER
    return "no thread waited for a lock whose owner is known" if recorded(trace) else NO_LOCKS


@dataclass(frozen=True)
class LockWaits:
    """The waits for locks: `wait`, `thread_row`, `begin_ns`, `end_ns`, `waited_ns`, `returned`, `priority_number`,
    `lock`, `process_row`, `address_number`, `inherits`; what their owners did, and who was in their way.

    `pieces` are parts of waits in which the waiting thread slept, and one thread held the lock: `piece`, `wait`,
    `owner_row`, `start_ns`, `end_ns`, `owner_priority_number`. `held` are those of them in which another thread had the
    CPU that the owner waited for: `piece`, `holder`, `priority`, `held_ns`, `inverts`.
    """

    trace: Source
    waits: pl.DataFrame
    pieces: pl.DataFrame
    held: pl.DataFrame

    @classmethod
    def of(cls, trace: Source, threads: Threads, scope: Scope = EVERYTHING) -> LockWaits:
        calls = _calls(trace, threads)
        wanted = scope.of_threads(trace, scope.cut(calls))
        waits = (
            wanted.rename({"start_ns": "begin_ns"})
            .sort("begin_ns", "thread_row")
            .with_row_index("wait")
            .with_columns(pl.col("wait").cast(pl.Int32), waited_ns=pl.col("end_ns") - pl.col("begin_ns"))
        )
        pieces = _pieces(trace, threads, _owners(calls), waits)
        priorities = waits.select("wait", waiter_priority="priority_number")
        behind = held(
            trace, threads,
            pieces.select(wait="piece", thread_row="owner_row", begin_ns="start_ns", end_ns="end_ns"),
        ).rename({"wait": "piece"})  # fmt: skip
        behind = (
            behind.filter(pl.col("holder").is_not_null())
            .join(pieces.select("piece", "wait"), on="piece", how="left", maintain_order="left")
            .join(priorities, on="wait", how="left", maintain_order="left")
            .with_columns(inverts=less_urgent(pl.col("priority"), pl.col("waiter_priority")).fill_null(False))
        )
        return cls(trace, waits, pieces, behind)

    def with_all(self, by: str) -> pl.DataFrame:
        """Of each wait or lock (`by`): the owner, what it did, who had its CPU, and how long that was an inversion."""
        keys = self.waits.select("wait", by) if by != "wait" else self.waits.select("wait")
        total = self.waits.group_by(by).agg(all_ns=pl.col("waited_ns").sum())
        pieces = split_of(self.trace, self.pieces, "owner_row").with_columns(
            ran_ns=pl.col("on_cpu_ns"),
            could_run_ns=pl.col("preempted_ns") + pl.col("wake_up_ns"),
            slept_ns=pl.col("blocked_ns") + pl.col("stopped_ns"),
            length_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        pieces = pieces.join(keys, on="wait", how="left", maintain_order="left")
        did = pieces.group_by(by).agg(*(pl.col(f"{name}_ns").fill_null(0).sum() for name in _DID[:3]))
        owner = _longest(pieces, by, "owner_row", "length_ns", "owner_priority_number")
        behind = self.held.join(keys, on="wait", how="left") if by != "wait" else self.held
        held_by = _longest(behind, by, "holder", "held_ns", "priority")
        inverts = behind.filter("inverts")
        inverted = inverts.group_by(by).agg(inversion_ns=pl.col("held_ns").sum())
        inverter = _longest(inverts, by, "holder", "held_ns", "priority").select(
            by, inverter_row="holder", inverter_priority="priority"
        )
        named = names.threads(self.trace).select(owner_row="thread_row", owner="thread", owner_tid="tid")
        frame = total
        for one in (did, owner.rename({"length_ns": "owner_ns"}), held_by.drop("held_ns"), inverted, inverter):
            frame = frame.join(one, on=by, how="left", maintain_order="left")
        return (
            frame.with_columns(*(pl.col(f"{name}_ns").fill_null(0) for name in (*_DID[:3], "inversion")))
            .with_columns(
                unknown_ns=pl.col("all_ns") - pl.sum_horizontal(*(f"{name}_ns" for name in _DID[:3])),
                inversion=pl.col("inversion_ns") > 0,
                owner_percent=part_of(pl.col("owner_ns"), pl.col("all_ns")),
                owner_priority=label("owner_priority_number"),
                by_priority=label("priority"),
            )
            .join(named, on="owner_row", how="left", maintain_order="left")
            .join(holders(self.trace), on="holder", how="left", maintain_order="left")
        )


def _calls(trace: Source, threads: Threads) -> pl.DataFrame:
    """The calls that waited for a lock and whose end is known, in the order of time."""
    table = trace.table("futex_waits")
    inherits = pl.col("operation").cast(pl.String).is_in(_INHERITING)
    calls = table.rename({"thread": "thread_row", "priority": "priority_number", "owner": "owner_row"}).with_columns(
        inherits=inherits,
        process_row=pl.Series(of_rows(threads.process, ints(table["thread"])), dtype=pl.Int64),
        returned=pl.col("result").is_not_null(),
    )
    is_lock = pl.col("owner_row").is_not_null() | pl.col("inherits")
    # A wait shows that the lock has a waiter even if its owner could not be read.
    known = calls.filter(is_lock).select("process_row", "address").unique()
    calls = calls.join(known, on=["process_row", "address"], how="semi", maintain_order="left")
    waited = pl.col("end_ns").is_not_null() & pl.col("result").ne_missing(_NOT_WAITED)
    return (
        calls.filter(waited)
        .with_columns(lock=pl.struct("process_row", "address").rank("dense").cast(pl.Int64) - 1)
        .rename({"address": "address_number"})
        .sort("start_ns", "thread_row")
    )


def _owners(calls: pl.DataFrame) -> Layer:
    """By lock and time, the owner: `row` is that thread's, FOREVER if unknown."""
    begins = calls.select("lock", at_ns="start_ns", owner=pl.col("owner_row").cast(pl.Int64))
    handed = calls.filter(pl.col("result") == 0).select(
        "lock", at_ns="end_ns", owner=pl.when("inherits").then(pl.col("thread_row").cast(pl.Int64))
    )
    events = pl.concat([handed, begins]).sort("lock", "at_ns", maintain_order=True)
    until = pl.col("at_ns").shift(-1).over("lock").fill_null(FOREVER)
    events = events.with_columns(until_ns=until)
    return Layer(ints(events["lock"]), ints(events["at_ns"]), ints(events["until_ns"]), ints(events["owner"], FOREVER))


def _pieces(trace: Source, threads: Threads, owners: Layer, waits: pl.DataFrame) -> pl.DataFrame:
    lock, begin, end = (ints(waits[name]) for name in ("lock", "begin_ns", "end_ns"))
    of, start, stop, owner = owners.cut(lock, begin, end)
    waiter = ints(waits["thread_row"])[of]
    # A thread that was woken waits for the lock no more, but for its CPU.
    of_waiters = pl.col("thread").is_in(waits["thread_row"].unique().to_list())
    states = trace.table("thread_states").filter(of_waiters, pl.col("state").cast(pl.String) == "blocked")
    asleep = Layer.of(states)
    piece, start, stop, row = asleep.cut(waiter, start, stop)
    of, owner = of[piece], owner[piece]
    keep = (row >= 0) & (owner >= 0) & (owner < FOREVER)
    of, start, stop, owner = of[keep], start[keep], stop[keep], owner[keep]
    state = threads.states.at(owner, start)
    priority = of_rows(ints(trace.table("thread_states")["priority"], -FOREVER), state)
    return (
        pl.DataFrame(
            {
                "wait": waits["wait"].gather(of),
                "owner_row": pl.Series(owner, dtype=pl.Int32),
                "start_ns": pl.Series(start, dtype=pl.Int64),
                "end_ns": pl.Series(stop, dtype=pl.Int64),
                "owner_priority_number": pl.Series(np.where(state >= 0, priority, -FOREVER), dtype=pl.Int64),
            }
        )
        .with_columns(pl.when(pl.col("owner_priority_number") > -FOREVER).then("owner_priority_number"))
        .with_row_index("piece")
        .with_columns(pl.col("piece").cast(pl.Int32))
    )


def _longest(frame: pl.DataFrame, by: str, who: str, length: str, priority: str) -> pl.DataFrame:
    """Of each value of `by` the one with the longest sum of `length`, that sum, and its first priority."""
    return (
        frame.group_by(by, who, maintain_order=True)
        .agg(pl.col(length).sum(), pl.col(priority).drop_nulls().first())
        .sort(by, length, who, descending=[False, True, False])
        .group_by(by, maintain_order=True)
        .first()
    )


def less_urgent(one: pl.Expr, than: pl.Expr) -> pl.Expr:
    """By the kernel's priorities, of which lower ones are more urgent."""
    return one.clip(upper_bound=_FAIR) > than.clip(upper_bound=_FAIR)


def label(column: str) -> pl.Expr:
    return pl.col(column).map_elements(priority_label, return_dtype=pl.String)


def hexadecimal(addresses: pl.Series) -> pl.Series:
    return names.hexadecimal(addresses.alias("address"))


# Sections -------------------------------------------------------------------------------------------------------------


def _verdict(found: LockWaits) -> Section:
    waits = found.with_all("wait")
    inverted = waits.filter("inversion")
    sentence = _sentence(found, inverted)
    row = (
        sentence, found.waits["lock"].n_unique(), found.waits.height, found.waits["waited_ns"].max(), inverted.height,
        int(inverted["inversion_ns"].sum()),
    )  # fmt: skip
    notes = () if recorded(found.trace) else (why_none(found.trace),)
    return Section(replace(VERDICT, title=sentence), VERDICT.frame([row]), notes)


def _sentence(found: LockWaits, inverted: pl.DataFrame) -> str:
    """ "Priority inversion in 1 of 3 waits for locks: thread high (tid 9, RT 80) of robot (pid 7) waited 118 ms for a
    lock that thread low (tid 8, nice 0) held, which was ready but did not run for 113 ms, for 112 ms of it behind less
    urgent threads, the longest hog (tid 5, RT 50)"."""
    if not recorded(found.trace):
        return "Whether threads waited for locks is not known"
    if not found.waits.height:
        return "No thread waited for a lock whose owner is known"
    if not inverted.height:
        longest = format_time(int(found.waits["waited_ns"].max() or 0))  # type: ignore[arg-type]
        return f"No priority inversion in {plural(found.waits.height, 'wait')} for locks; the longest took {longest}"
    worst = inverted.sort("inversion_ns", descending=True).head(1).join(found.waits, on="wait")
    who = names.threads(found.trace).select("thread_row", "process", "pid", "thread", "tid")
    inverter = who.select(inverter_row="thread_row", inverter="thread", inverter_tid="tid")
    worst = worst.join(who, on="thread_row", how="left").join(inverter, on="inverter_row", how="left")
    (row,) = worst.iter_rows(named=True)
    share = f"{inverted.height} of {plural(found.waits.height, 'wait')} for locks"
    return f"Priority inversion in {share}: {_wait_words(row)}"


def _wait_words(row: Mapping[str, Any]) -> str:
    """The worst wait with who waited, held the lock, and was in the way."""
    holder = ", ".join(filter(None, (f"tid {row['owner_tid']}", row["owner_priority"])))
    inverter = f"{row['inverter']} (tid {row['inverter_tid']}, {priority_label(row['inverter_priority'])})"
    return (
        f"{thread_words(row, priority_label(row['priority_number']))} waited {format_time(row['waited_ns'])} for a lock"
        f" that thread {row['owner']} ({holder}) held, which was ready but did not run for"
        f" {format_time(row['could_run_ns'])}, for {format_time(row['inversion_ns'])} of it behind less urgent threads,"
        f" the longest {inverter}"
    )


def _locks(found: LockWaits) -> Section:
    rows = found.waits.group_by("lock", maintain_order=True).agg(
        pl.col("process_row", "address_number", "inherits").first(),
        pl.col("thread_row").first().alias("any_row"),
        waits=pl.len(),
        waiters=pl.col("thread_row").n_unique(),
        total_ns=pl.col("waited_ns").sum(),
        longest_ns=pl.col("waited_ns").max(),
        longest_at_ns=since_begin(found.trace, "begin_ns").sort_by("waited_ns", descending=True).first(),
    )
    of = names.threads(found.trace).select("host", "process", "pid", any_row="thread_row")
    frame = (
        rows.join(of, on="any_row", how="left", maintain_order="left")
        .join(found.with_all("lock"), on="lock", how="left", maintain_order="left")
        .with_columns(hexadecimal(rows["address_number"]))
        .select(LOCKS.names)
        .sort("total_ns", descending=True, maintain_order=True)
    )
    hidden = () if found.trace.table("hosts").height > 1 else ("host",)
    notes = () if frame.height else (why_none(found.trace),)
    return Section(LOCKS, frame, notes, {}, set(hidden))


def _waits(found: LockWaits, longer_than_ns: int) -> Section:
    waits = found.waits.filter(pl.col("waited_ns") >= longer_than_ns)
    rows = (
        waits.join(found.with_all("wait"), on="wait", how="left", maintain_order="left")
        .with_columns(
            hexadecimal(waits["address_number"]),
            since_begin(found.trace, "begin_ns").alias("at_ns"),
            priority=label("priority_number"),
        )
        .select("thread_row", *WAITS.names[len(OF_ANY) :])
    )
    least = names.period(longer_than_ns)
    said = f"waits of {least} and more" if rows.height else f"no wait took {least} or longer"
    notes = (said,) if found.waits.height else (why_none(found.trace),)
    return section_of(found.trace, WAITS, rows, notes, longest="waited_ns")
