"""What the pieces of a message's time are called: stage, cause, and who.

stage    cause           of the thread's time                                        who
-------  --------------  ----------------------------------------------------------  ----------------------------
any      cpu             it could run and did not, and another one had its CPU       the thread that had it, and CPU
any      wake_up         it could run, and nobody was seen on its CPU                (idle, or not recorded)
any      blocked         it slept within what it was doing                           callback or thread
any      throttled       it could run, and the CPU quota of its cgroup held it back  its process
any      held_back       it was preempted, and its CPU idled: a limit of real time   its process
any      frozen          its cgroup was frozen                                       its process
any      uninterruptible it slept, and nothing but what it waited for ends that      its process
any      stopped         it was stopped by a signal: SIGSTOP, SIGTSTP                its process
any      traced          a debugger held it: ptrace                                  its process
any      unknown         nobody knows                                                why
sender   timer_late      it slept although the tick was due                          the timer
s, r     callback_ahead  its executor ran another callback (on a CPU, or asleep)     that callback
s, r     executor        its executor ran, also take and dispatch                    the process
sender   own_work        the callback ran until it published                         that callback
s, t     publish_call    the publish call ran                                        publisher
transp.  middleware      a thread of the middleware ran                              its process
transp.  on_the_way      who was to carry it on slept: network, delay                the topic
transp.  transport       the whole transport: the trace has no more of it            the topic
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.causes import CAUSES, OF_PROCESSES
from perflab.trace.quality import NO_WAKE_UPS
from perflab.trace.why_layers import NONE, Ints, Stretches
from perflab.trace.why_path import IN_PROGRAMS, Note, Role
from perflab.trace.why_threads import (
    BLOCKED,
    CALLBACK,
    FROZEN,
    PHASE,
    PREEMPTED,
    RUNNING,
    STOPPED,
    THROTTLED,
    TRACED,
    UNINTERRUPTIBLE,
    WOKEN,
    Pieces,
    Threads,
)

if TYPE_CHECKING:
    from perflab.trace.source import Source

STAGES = ("sender", "transport", "reader", "callback")
_CAUSES = tuple(CAUSES)

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

_STAGE_OF = {
    Role.TIMER: "sender", Role.WORK: "sender", Role.PUBLISH: "sender", Role.TIMER_LATE: "sender",
    Role.TIMER_UNKNOWN: "sender",
    Role.WRITE: "transport", Role.MIDDLEWARE: "transport", Role.NETWORK: "transport", Role.ON_THE_WAY: "transport",
    Role.TRANSPORT: "transport", Role.UNKNOWN: "transport",
    Role.READER: "reader", Role.TAKE: "reader", Role.DISPATCH: "reader", Role.SLOW: "callback",
}  # fmt: skip
_RUNS = {
    Role.TIMER: "executor", Role.READER: "executor", Role.TAKE: "executor", Role.DISPATCH: "executor",
    Role.WORK: "own_work", Role.SLOW: "own_work", Role.PUBLISH: "publish_call", Role.WRITE: "publish_call",
    Role.MIDDLEWARE: "middleware", Role.NETWORK: "on_the_way",
}  # fmt: skip
_WHOLE = {
    Role.TIMER_LATE: "timer_late", Role.ON_THE_WAY: "on_the_way", Role.TRANSPORT: "transport", Role.UNKNOWN: "unknown",
    Role.TIMER_UNKNOWN: "unknown",
}  # fmt: skip

# What a part is of; equal pieces of one subject are one part.
KEY = ("subject", "stage", "cause", "thread_row", "holder_row", "cpu", "callback_row", "during", "reason")


def parts_of(
    trace: Source, stretches: Stretches, threads: Threads, own_callback: Ints, between_hosts: np.ndarray
) -> pl.DataFrame:
    """One row per part of each subject: KEY, `ns`, `pieces` and `first_ns`.

    `own_callback` is the callback that published (or, of a slow callback, itself) of each subject, `between_hosts` a
    flag of each. Of each subject the parts add up to its stretches.
    """
    pieces = threads.divide(stretches, IN_PROGRAMS)
    cause, stage, reason = _classified(pieces, threads)
    s = pieces.stretches
    waits = cause == _code("cpu")
    callbacks = trace.table("callback_instances")["callback"]
    innermost = np.where(pieces.within == CALLBACK, pieces.within_row, NONE)
    within = _gathered(callbacks, innermost)
    own = np.where(np.isin(s.role, (Role.WORK, Role.SLOW, Role.PUBLISH, Role.WRITE)), own_callback[s.subject], NONE)
    own = np.where(cause == _code("timer_late"), own_callback[s.subject], own)
    in_transport = stage == STAGES.index("transport")
    far = between_hosts[s.subject] & in_transport & (reason == 0)
    reason = np.where(far, _REASONS.index(CLOCKS), reason)
    phase = np.where(pieces.within == PHASE, pieces.within_row, NONE)
    phase_kind = threads.phase_kind[phase] if len(threads.phase_kind) else phase
    frame = pl.DataFrame(
        {
            "subject": s.subject,
            "stage": stage,
            "cause": cause,
            "thread_row": s.thread,
            "holder_row": np.where(waits, pieces.holder, NONE),
            "cpu": np.where(np.isin(cause, (_code("cpu"), _code("wake_up"))), pieces.cpu, NONE),
            "callback_row": np.where(pieces.within == CALLBACK, within, own),
            "during": _during(s.role, np.where(phase >= 0, phase_kind, NONE), len(threads.phase_names)),
            "reason": reason,
            "start_ns": s.start,
            "ns": s.end - s.start,
        }
    )
    grouped = (
        frame.lazy()
        .group_by(KEY)
        .agg(pl.col("ns").sum(), pieces=pl.len().cast(pl.Int64), first_ns=pl.col("start_ns").min())
        .sort("subject", "first_ns", *KEY[1:])
        .collect()
    )
    phases = dict(enumerate((*threads.phase_names, *_DURING.values())))
    return grouped.with_columns(
        pl.col("subject").cast(pl.Int32),
        pl.col("stage").replace_strict(dict(enumerate(STAGES)), return_dtype=pl.Enum(STAGES)),
        pl.col("cause").replace_strict(dict(enumerate(_CAUSES)), return_dtype=pl.Enum(_CAUSES)),
        *(pl.when(pl.col(c) >= 0).then(c).cast(pl.Int32).alias(c) for c in ("thread_row", "holder_row", "cpu")),
        pl.when(pl.col("callback_row") >= 0).then("callback_row").cast(pl.Int32).alias("callback_row"),
        pl.col("during").replace_strict(phases, default=None, return_dtype=pl.String),
        pl.col("reason").replace_strict(dict(enumerate(_REASONS)), return_dtype=pl.String),
    )


_REASONS = (
    None, INFERRED, NO_STATE, WALL_TIME, ASLEEP_OR_WAITING, ONE_PART, NO_WAKER, NOT_THERE, TOO_MANY, CLOCKS, BOTH,
    NO_PROCESS, NOT_DIVIDED, DISK,
)  # fmt: skip


_NOTES = {
    Note.NOT_THERE: NOT_THERE, Note.NO_WAKER: NO_WAKER, Note.NO_WAKE_UPS: BOTH, Note.HOPS: TOO_MANY,
    Note.NO_PROCESS: NO_PROCESS,
}  # fmt: skip
_DURING = {Role.TAKE: "take", Role.DISPATCH: "dispatch"}


def _during(role: Ints, phase: Ints, phases: int) -> Ints:
    """The executor's phase, and beyond the phases take and dispatch."""
    for number, named in enumerate(_DURING):
        phase = np.where(role == named, phases + number, phase)
    return phase


def _code(cause: str) -> int:
    return _CAUSES.index(cause)


def _gathered(column: pl.Series, rows: Ints) -> Ints:
    values: Ints = column.cast(pl.Int64).fill_null(NONE).to_numpy()
    return np.where(rows >= 0, values[rows], NONE) if len(values) else np.full(len(rows), NONE)


def _table(of: dict[Role, str], words: tuple[str, ...]) -> Ints:
    table = np.full(len(Role), NONE, dtype=np.int64)
    for role, word in of.items():
        table[role] = words.index(word)
    return table


def _waits(pieces: Pieces, threads: Threads) -> Ints:
    """The cause where a thread could run and did not."""
    cause = np.where(pieces.holder >= 0, _code("cpu"), _code("wake_up"))
    # Nothing but a quota or a limit keeps a thread from running on while its CPU idles; woken, it may wait for the CPU
    # to come out of its sleep.
    idled = (pieces.state == PREEMPTED) & (pieces.holder < 0) & threads.knows_idle_cpus
    return np.where(idled, _code("held_back"), cause)


def _classified(pieces: Pieces, threads: Threads) -> tuple[Ints, Ints, Ints]:
    """Cause, stage and reason of every piece, as places in _CAUSES, STAGES and _REASONS."""
    role, state = pieces.stretches.role, pieces.state
    thread = pieces.stretches.thread
    at = np.maximum(thread, 0)
    stage = _table(_STAGE_OF, STAGES)[role]
    whole = _table(_WHOLE, _CAUSES)[role]
    runs = _table(_RUNS, _CAUSES)[role]
    in_callback = pieces.within == CALLBACK
    executor = np.isin(role, IN_PROGRAMS)
    waiting = threads.phase_names.index("wait_for_work")
    phase = np.where(pieces.within == PHASE, pieces.within_row, NONE)
    is_waiting = (threads.phase_kind[phase] == waiting) & (phase >= 0) if len(threads.phase_kind) else phase >= 0
    idle = executor & ~in_callback & (is_waiting | (phase < 0))
    runs = np.where(executor & in_callback, _code("callback_ahead"), runs)

    # As the scheduler tells it.
    cause = np.full(len(role), _code("unknown"), dtype=np.int64)
    cause = np.where(state == RUNNING, runs, cause)
    sleeps = np.where(executor & in_callback, _code("callback_ahead"), _code("blocked"))
    if threads.wake_up_reason is None:
        sleeps = np.where(idle & (role == Role.TIMER), _code("timer_late"), sleeps)
    cause = np.where(state == BLOCKED, sleeps, cause)
    of_disk = np.where(executor & in_callback, _code("callback_ahead"), _code("uninterruptible"))
    cause = np.where(state == UNINTERRUPTIBLE, of_disk, cause)
    cause = np.where(state == STOPPED, _code("stopped"), cause)
    cause = np.where(state == TRACED, _code("traced"), cause)
    cause = np.where(state == THROTTLED, _code("throttled"), cause)
    cause = np.where(state == FROZEN, _code("frozen"), cause)
    waits = (state == PREEMPTED) | (state == WOKEN)
    cause = np.where(waits, _waits(pieces, threads), cause)
    reason = np.zeros(len(role), dtype=np.int64)
    reason = np.where(state == UNINTERRUPTIBLE, _REASONS.index(DISK), reason)
    unknown = state == NONE
    reason = np.where(unknown, _REASONS.index(NO_STATE), reason)
    cause = np.where(pieces.inferred, _code("unknown"), cause)
    reason = np.where(pieces.inferred, _REASONS.index(INFERRED), reason)
    if threads.wake_up_reason is not None:
        reason = np.where(state == BLOCKED, _REASONS.index(BOTH), reason)

    # Where there are no scheduler events of the thread: by the program's events alone.
    blind = ~threads.scheduled[at] & (thread >= 0)
    blind_cause = np.where(idle & (role == Role.READER), _code("transport"), runs)
    blind_cause = np.where(idle & (role == Role.TIMER), _code("unknown"), blind_cause)
    blind_reason = np.where(idle & (role == Role.READER), _REASONS.index(ONE_PART), _REASONS.index(WALL_TIME))
    blind_reason = np.where(idle & (role == Role.TIMER), _REASONS.index(ASLEEP_OR_WAITING), blind_reason)
    # A callback that is asked what it did, and not what it was in the way of.
    blind_cause = np.where(role == Role.SLOW, _code("unknown"), blind_cause)
    blind_reason = np.where(role == Role.SLOW, _REASONS.index(NOT_DIVIDED), blind_reason)
    cause, reason = np.where(blind, blind_cause, cause), np.where(blind, blind_reason, reason)
    # What an executor's thread did while it waited for work may have been to sleep, with the message still on its way.
    slept = idle & (role == Role.READER) & (blind | (cause == _code("unknown")))
    stage = np.where(slept, STAGES.index("transport"), stage)

    cause = np.where(whole >= 0, whole, cause)
    notes = np.zeros(len(Note), dtype=np.int64)
    for note, text in _NOTES.items():
        notes[note] = _REASONS.index(text)
    reason = np.where(whole >= 0, notes[pieces.stretches.note], reason)
    return cause, stage, reason


# Who ------------------------------------------------------------------------------------------------------------------


def with_names(trace: Source, parts: pl.DataFrame, subjects: pl.DataFrame) -> pl.DataFrame:
    """The parts with whose time it was (`thread`, `tid`, `process`, `pid`), who is named for it (`who`), and by what
    name it is summed (`group`, `group_pid`), which knows processes instead of threads.

    `subjects` has `subject`, `topic`, `publisher` and `timer`.
    """
    threads = names.threads(trace).with_columns(
        process=pl.coalesce("process", "thread", pl.format("tid {}", "tid")),
        thread=pl.coalesce("thread", pl.format("tid {}", "tid")),
    )
    own = threads.select("thread_row", "thread", "tid", "process", "pid", "host")
    holders = threads.select(
        pl.col("thread_row").alias("holder_row"), pl.col("thread").alias("by_thread"), pl.col("tid").alias("by_tid"),
        pl.col("process").alias("by_process"), pl.col("pid").alias("by_pid"),
    )  # fmt: skip
    callbacks = names.callbacks(trace).select(pl.col("row").alias("callback_row"), pl.col("label").alias("callback"))
    frame = (
        parts.join(own, on="thread_row", how="left", maintain_order="left")
        .join(holders, on="holder_row", how="left", maintain_order="left")
        .join(callbacks, on="callback_row", how="left", maintain_order="left")
        .join(subjects, on="subject", how="left", maintain_order="left")
    )
    holder = pl.format("{} ({} {})", "by_process", "by_thread", "by_tid")
    by_name = (pl.col("by_process") == pl.col("by_thread")) & (pl.col("by_pid") == pl.col("by_tid"))
    holder = pl.when(by_name).then(pl.format("{} ({})", "by_process", "by_tid")).otherwise(holder)
    thread = pl.format("{} ({} {})", "process", "thread", "tid")
    by_callback = pl.coalesce("callback", "process", pl.lit("(unknown)"))
    named: dict[str, tuple[pl.Expr, pl.Expr | None]] = {"cpu": (holder, pl.col("by_process"))}
    publisher = pl.coalesce("publisher", "process")
    named |= dict.fromkeys(("callback_ahead", "own_work", "blocked", "timer_late"), (by_callback, by_callback))
    named |= {"publish_call": (publisher, publisher)}
    named |= dict.fromkeys(("middleware", "executor", *OF_PROCESSES), (thread, pl.col("process")))
    named |= dict.fromkeys(("on_the_way", "transport"), (pl.col("topic"), None))
    named |= {"unknown": (pl.col("reason"), None)}
    is_cause = {name: pl.col("cause") == name for name in named}
    return frame.with_columns(
        who=pl.coalesce(*(pl.when(is_cause[name]).then(who) for name, (who, _) in named.items())),
        group=pl.coalesce(*(pl.when(is_cause[n]).then(group) for n, (_, group) in named.items() if group is not None)),
        group_pid=pl.when(pl.col("cause") == "cpu")
        .then("by_pid")
        .when(pl.col("cause").cast(pl.String).is_in(OF_PROCESSES))
        .then("pid"),
    )
