"""What the pieces of a message's time are called: the stage of its way, the cause, and who (perflab.trace.causes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from perflab.trace import names
from perflab.trace.causes import CAUSES, Who
from perflab.trace.quality import NO_WAKE_UPS
from perflab.trace.why_layers import Columns, Flags, Ints
from perflab.trace.why_path import IN_PROGRAMS, Note, Role
from perflab.trace.why_threads import State, Threads, Within

if TYPE_CHECKING:
    from perflab.trace.source import Source

STAGES = ("sender", "transport", "reader", "callback")

INFERRED = "the switch to the thread was not recorded"
NO_STATE = "scheduler events are missing there"
WALL_TIME = "wall time: the trace has no scheduler events of this thread"
ASLEEP_OR_WAITING = f"{WALL_TIME}, so whether it slept or waited for a CPU is not known"
NOT_DIVIDED = f"{WALL_TIME}, so whether it ran, slept or waited for a CPU is not known"
ONE_PART = f"transport and wake-up are one part: {WALL_TIME.removeprefix('wall time: ')}"
NO_WAKER = "who woke the thread is not recorded (sched_waking): the middleware's threads are in it"
NOT_THERE = "the executor had looked for work, and the message was not there"
NO_PROCESS = "whose thread woke it is not known: the middleware's threads may be in it"
TOO_MANY = "there are more threads on its way than are followed"
CLOCKS = "between hosts: contains the difference of their clocks"
DISK = "it slept uninterruptibly: for a disk, for memory, for the kernel, or in a frozen cgroup"
BOTH = NO_WAKE_UPS.partition(": ")[0] + ": waiting for a CPU is in it"

# Of each role its stage, and the cause where its thread runs; of a role without a thread the cause of all of it.
_ROLES = {
    Role.TIMER: ("sender", "executor"), Role.WORK: ("sender", "own_work"), Role.PUBLISH: ("sender", "publish_call"),
    Role.WRITE: ("transport", "publish_call"), Role.MIDDLEWARE: ("transport", "middleware"),
    Role.NETWORK: ("transport", "on_the_way"), Role.READER: ("reader", "executor"), Role.TAKE: ("reader", "executor"),
    Role.DISPATCH: ("reader", "executor"), Role.SLOW: ("callback", "own_work"),
    Role.TIMER_LATE: ("sender", "timer_late"), Role.ON_THE_WAY: ("transport", "on_the_way"),
    Role.TRANSPORT: ("transport", "transport"), Role.UNKNOWN: ("transport", "unknown"),
    Role.TIMER_UNKNOWN: ("sender", "unknown"),
}  # fmt: skip
_LEGS = {Role.TAKE: "take", Role.DISPATCH: "dispatch"}
_OF_ITS_CALLBACK = [Role.WORK, Role.SLOW, Role.PUBLISH, Role.WRITE]
_NOTES = {
    Note.NOT_THERE: NOT_THERE, Note.NO_WAKER: NO_WAKER, Note.NO_WAKE_UPS: BOTH, Note.HOPS: TOO_MANY,
    Note.NO_PROCESS: NO_PROCESS,
}  # fmt: skip

# What a part is of; equal pieces of one subject are one part.
KEY = ("subject", "stage", "cause", "thread_row", "holder_row", "cpu", "callback_row", "leg", "during", "reason")


def parts_of(
    trace: Source, stretches: Columns, threads: Threads, own_callback: Ints, between_hosts: Flags
) -> pl.DataFrame:
    """One row per part of each subject: KEY, `ns`, `pieces` and `first_ns`.

    `own_callback` is the callback that published (or, of a slow callback, itself) of each subject, `between_hosts` a
    flag of each. Of each subject the parts add up to its stretches.
    """
    pieces = threads.divide(stretches, IN_PROGRAMS)
    row, within, stage = pl.col("within_row"), pl.col("within"), pl.col("stage")
    of_callback = pieces.select(pl.when(within == Within.CALLBACK).then(row)).to_series()
    of_phase = pieces.select(pl.when(within == Within.PHASE).then(row)).to_series()
    pieces = _classified(
        pieces.with_columns(
            trace.table("callback_instances")["callback"].gather(of_callback).alias("innermost"),
            trace.table("phases")["phase"].cast(pl.String).gather(of_phase).alias("phase"),
            own=pl.Series(own_callback, dtype=pl.Int64).gather(pieces["subject"]),
            far=pl.Series(between_hosts, dtype=pl.Boolean).gather(pieces["subject"]),
            scheduled=pl.Series(threads.scheduled[pieces["thread"].to_numpy()]),
        ),
        threads,
    )
    is_own = pl.col("role").is_in(_OF_ITS_CALLBACK) | (pl.col("cause") == "timer_late")
    leg = pl.col("role").replace_strict(_LEGS, default=None, return_dtype=pl.String)
    found = pieces.lazy().select(
        pl.col("subject").cast(pl.Int32), stage.cast(pl.Enum(STAGES)), pl.col("cause").cast(pl.Enum(list(CAUSES))),
        thread_row="thread",
        holder_row=pl.when(pl.col("cause") == "cpu").then("holder"),
        cpu=pl.when(pl.col("cause").is_in(["cpu", "wake_up"])).then("cpu"),
        callback_row=pl.when(within == Within.CALLBACK).then("innermost").when(is_own).then("own"),
        leg=leg.is_not_null(),
        during=pl.coalesce(leg, "phase"),
        reason=pl.when(pl.col("far") & (stage == "transport")).then(pl.coalesce("reason", pl.lit(CLOCKS)))
        .otherwise("reason"),
        start_ns="start", ns=pl.col("end") - pl.col("start"),
    )  # fmt: skip
    numbers = ("thread_row", "holder_row", "cpu", "callback_row")
    return (
        found.with_columns(pl.when(pl.col(c) >= 0).then(c).cast(pl.Int32).alias(c) for c in numbers)
        .group_by(KEY)
        .agg(pl.col("ns").sum(), pieces=pl.len().cast(pl.Int64), first_ns=pl.col("start_ns").min())
        .sort("subject", "first_ns", *KEY[1:])
        .collect()
    )


def _classified(pieces: pl.DataFrame, threads: Threads) -> pl.DataFrame:
    """The pieces with `stage`, `cause` and `reason`."""
    role, state, within = pl.col("role"), pl.col("state"), pl.col("within")
    executor = role.is_in(list(IN_PROGRAMS))
    ahead = executor & (within == Within.CALLBACK)
    idle = executor & ((within == Within.NOTHING) | (pl.col("phase") == "wait_for_work"))
    reads, ticks = idle & (role == Role.READER), idle & (role == Role.TIMER)
    of_role = role.replace_strict({role: cause for role, (_, cause) in _ROLES.items()}, return_dtype=pl.String)
    runs = pl.when(ahead).then(pl.lit("callback_ahead")).otherwise(of_role)
    blind = ~pl.col("scheduled") & (pl.col("thread") >= 0)
    has_wake_ups = threads.wake_up_reason is None
    slept = "" if has_wake_ups else BOTH
    notes = pl.col("note").replace_strict(_NOTES, default="", return_dtype=pl.String)
    # Of each piece the first of these that is true.
    rules: list[tuple[pl.Expr, pl.Expr | str, pl.Expr | str]] = [
        (role >= Role.TIMER_LATE, of_role, notes),
        # Without scheduler events of the thread by the program's events alone; a callback that is asked what it did,
        # and not what it was in the way of, may have done anything.
        (blind & (role == Role.SLOW), "unknown", NOT_DIVIDED),
        (blind & reads, "transport", ONE_PART),
        (blind & ticks, "unknown", ASLEEP_OR_WAITING),
        (blind, runs, WALL_TIME),
        (pl.col("inferred"), "unknown", INFERRED),
        (state == State.RUNNING, runs, ""),
        (ahead & (state == State.BLOCKED), "callback_ahead", slept),
        (ahead & (state == State.UNINTERRUPTIBLE), "callback_ahead", DISK),
        (ticks & (state == State.BLOCKED) & has_wake_ups, "timer_late", ""),
        (state == State.BLOCKED, "blocked", slept),
        (state == State.UNINTERRUPTIBLE, "uninterruptible", DISK),
        *((state == State[name.upper()], name, "") for name in ("stopped", "traced", "throttled", "frozen")),
        (state < 0, "unknown", NO_STATE),
        (pl.col("holder") >= 0, "cpu", ""),
        # Nothing but a quota or a limit keeps a thread from running on while its CPU idles; woken, it may wait for the
        # CPU to come out of its sleep.
        ((state == State.PREEMPTED) & threads.knows_idle_cpus, "held_back", ""),
        (pl.lit(True), "wake_up", ""),
    ]

    def first(place: int) -> pl.Expr:
        told = ((rule[0], rule[place]) for rule in rules)
        return pl.coalesce(
            *(pl.when(true).then(pl.lit(word) if isinstance(word, str) else word) for true, word in told)
        )

    pieces = pieces.with_columns(cause=first(1), reason=first(2))
    # What an executor's thread did while it waited for work may have been to sleep, with the message still on its way.
    on_the_way = reads & (blind | (pl.col("cause") == "unknown"))
    stage = role.replace_strict({role: stage for role, (stage, _) in _ROLES.items()}, return_dtype=pl.String)
    return pieces.with_columns(
        stage=pl.when(on_the_way).then(pl.lit("transport")).otherwise(stage),
        reason=pl.when(pl.col("reason") != "").then("reason"),
    )


def with_names(trace: Source, parts: pl.DataFrame, subjects: pl.DataFrame) -> pl.DataFrame:
    """The parts with whose time it was (`thread`, `tid`, `process`, `pid`), who is named for it (`who`), and by what
    name it is summed (`group`, `group_pid`), which knows processes instead of threads.

    `subjects` has `subject`, `topic` and `publisher`.
    """
    threads = names.threads(trace).with_columns(
        process=pl.coalesce("process", "thread", pl.format("tid {}", "tid")),
        thread=pl.coalesce("thread", pl.format("tid {}", "tid")),
    )
    own = threads.select("thread_row", "thread", "tid", "process", "pid", "host")
    holders = threads.select(
        holder_row="thread_row", by_thread="thread", by_tid="tid", by_process="process", by_pid="pid"
    )
    callbacks = names.callbacks(trace).select(callback_row="row", callback="label")
    frame = (
        parts.join(own, on="thread_row", how="left", maintain_order="left")
        .join(holders, on="holder_row", how="left", maintain_order="left")
        .join(callbacks, on="callback_row", how="left", maintain_order="left")
        .join(subjects, on="subject", how="left", maintain_order="left")
    )
    by_name = (pl.col("by_process") == pl.col("by_thread")) & (pl.col("by_pid") == pl.col("by_tid"))
    holder = (
        pl.when(by_name)
        .then(pl.format("{} ({})", "by_process", "by_tid"))
        .otherwise(pl.format("{} ({} {})", "by_process", "by_thread", "by_tid"))
    )
    thread = pl.format("{} ({} {})", "process", "thread", "tid")
    callback = pl.coalesce("callback", "process", pl.lit("(unknown)"))
    publisher = pl.coalesce("publisher", "process")
    nobody, nothing = pl.lit(None, pl.String), pl.lit(None, pl.Int32)
    # In a part, in a group, and the number of the group's process.
    named: dict[Who, tuple[pl.Expr | str, pl.Expr | str, pl.Expr | str]] = {
        Who.HOLDER: (holder, "by_process", "by_pid"),
        Who.PROCESS: (thread, "process", "pid"),
        Who.THREAD: (thread, "process", nothing),
        Who.CALLBACK: (callback, callback, nothing),
        Who.PUBLISHER: (publisher, publisher, nothing),
        Who.TOPIC: ("topic", nobody, nothing),
        Who.REASON: ("reason", nobody, nothing),
    }
    of = pl.col("cause").cast(pl.String).replace_strict({c.name: c.who.name for c in CAUSES.values()})

    def first(place: int) -> pl.Expr:
        return pl.coalesce(*(pl.when(of == who.name).then(words[place]) for who, words in named.items()))

    return frame.with_columns(who=first(0), group=first(1), group_pid=first(2))
