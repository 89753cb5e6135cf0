"""A message's way as stretches of threads' time that follow each other without a gap, from its begin to its callback.

    begin       sender                   transport               reader                      callback_start
      |- timer late, waiting -|- work -|- call -|- on the way -|- woken, busy -|- take -|- dispatch -|
                        callback_start published          known to the reader arrived

The middle is found backwards. The thread that took the message was woken by its last waker; that thread is followed
from there on, back to its own waker, and so on, to the thread that published, to an interrupt, or to the publication.
Wakers are followed only where they can have carried the message: threads of the middleware in either process, threads
of the same executor that are within no callback (they pass on the executor's lock, or have ended a callback of the same
group), the kernel's network threads, and the thread that published as long as its publish call can have lasted. Any
other waker was interrupted: what slept until then waited for something on its way.

And what the pieces of that time are called: the stage of the way, the cause, and who (perflab.trace.causes).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.causes import CAUSES, Who
from perflab.trace.quality import NO_WAKE_UPS
from perflab.trace.source import Source
from perflab.trace.why_threads import (
    FOREVER,
    NONE,
    Collected,
    Columns,
    Flags,
    Ints,
    Layer,
    State,
    Threads,
    Within,
    chosen,
    cut_by,
    ints,
    of_rows,
)

MAX_HOPS = 16  # threads on one way; ways in real systems have three or four
STAGES = ("sender", "transport", "reader", "callback")

INFERRED = "the switch to the thread was not recorded"
NO_STATE = "scheduler events are missing there"
NO_EVENT = "no event of the scheduler says it"
NO_HOLDER = "which thread had the CPU is not recorded, nor that it was idle"
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
_NOTES = ("", NOT_THERE, NO_WAKER, BOTH, TOO_MANY, NO_PROCESS)  # of a stretch, by its number


class Role(IntEnum):
    """What a stretch is on its message's way."""

    TIMER = 0  # the timer's thread and those of its executor, from the due time on
    WORK = 1  # the callback that published, until it did
    PUBLISH = 2  # the publish call as far as there are events of it
    WRITE = 3  # the rest of the publish call: the thread that published, until it woke the next one
    MIDDLEWARE = 4
    NETWORK = 5  # threads of the kernel
    READER = 6  # the executor that took the message
    TAKE = 7
    DISPATCH = 8
    SLOW = 9  # a callback, of itself
    # Without a thread of which one could say more:
    TIMER_LATE = 10  # the timer's thread slept
    ON_THE_WAY = 11
    TRANSPORT = 12
    UNKNOWN = 13
    TIMER_UNKNOWN = 14


IN_PROGRAMS = (Role.TIMER, Role.READER)  # which callback or phase they were within matters


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
# What a part is of; equal pieces of one subject are one part.
KEY = ("subject", "stage", "cause", "thread_row", "holder_row", "cpu", "callback_row", "leg", "during", "reason")


@dataclass(frozen=True)
class Messages:
    """Columns of equal length; times are ns and ascend in this order: begin to started."""

    begin: Ints  # when the timer's tick was due; where that is not known or there is none: published
    work: Ints  # callback_start of the timer's callback that published; without begin of that kind: published
    published: Ints
    sent: Ints
    arrived: Ints  # taken from the middleware, or from the ring buffer
    started: Ints  # callback_start
    taken: Ints  # between the two: the last layer of the take
    publisher_thread: Ints
    publisher_process: Ints
    write_until: Ints  # the next thing that the publisher's thread did: the publish call had returned by then
    reader_thread: Ints
    inline: Flags  # the callback was called within the publish call, on its thread
    absent: Ints  # the executor had looked for work by then, and the message was not there; -FOREVER: not known

    def __len__(self) -> int:
        return len(self.begin)


def as_messages(trace: Source, late: pl.DataFrame, threads: Threads) -> Messages:
    """The late messages for the way's search. Times ascend: what two clocks or a fast reader put before the event that
    it follows is put at that event."""
    begin, work, published, sent, arrived, taken, started = (
        ints(late[c])
        for c in ("begin_ns", "work_ns", "published_ns", "sent_ns", "arrived_ns", "taken_ns", "started_ns")
    )
    arrived = np.clip(arrived, published, started)
    sent = np.clip(sent, published, arrived)
    taken = np.clip(taken, arrived, started)
    publisher, reader = ints(late["publisher_thread"]), ints(late["reader_thread"])
    instances = trace.table("callback_instances")
    ends = ints(instances["end_ns"].gather(late["published_in"]), FOREVER)
    publications = trace.table("publications")
    layers = ("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns")
    starts = publications.select("thread", start=pl.min_horizontal(*layers)).drop_nulls()
    next_one = Layer(ints(starts["thread"]), ints(starts["start"]), ints(starts["start"])).next_start(publisher, sent)
    # Called within the publish call: not by an executor that the callback spins, which would be the innermost.
    kind, row = threads.within(reader, arrived - 1)
    published_in = ints(late["published_in"])
    inline = (kind == Within.CALLBACK) & (row == published_in) & (ints(late["handled_within"]) == published_in)
    return Messages(
        begin=begin, work=work, published=published, sent=sent, arrived=arrived, started=started, taken=taken,
        publisher_thread=publisher,
        publisher_process=np.where(publisher >= 0, threads.process[np.maximum(publisher, 0)], -1),
        write_until=np.minimum(next_one, np.where(ends >= sent, ends, FOREVER)),
        reader_thread=reader,
        inline=inline,
        absent=_absent(trace, late, threads),
    )  # fmt: skip


def _absent(trace: Source, late: pl.DataFrame, threads: Threads) -> Ints:
    """Until when the message was certainly not there for the executor; -FOREVER where that is not known.

    An executor of one thread that waited for work finds everything that is there, and takes one message of each
    subscription before it waits again. So where it took nothing of a subscription after a wait, nothing of it was
    there when that ended; where it did, a later message may have stood behind that one.
    """
    waits = threads.waits_for_work
    ends = Layer(waits.thread, waits.end, np.full(len(waits), FOREVER))
    columns = ["subscription_row", "intra_process", "thread", "arrived_ns"]
    taken = (pl.col("match") != "not_taken") & pl.col("subscription").is_not_null()
    found = pl.concat(
        trace.table(table)
        .filter(is_there)
        .select(subscription_row="subscription", intra_process=intra, thread=thread, arrived_ns=arrived)
        for table, is_there, intra, thread, arrived in (
            ("takes", taken, pl.lit(False), "thread", pl.coalesce("rmw_ns", "rcl_ns", "rclcpp_ns")),
            ("intra_deliveries", pl.col("dequeue_ns").is_not_null(), pl.lit(True), "dequeue_thread", "dequeue_ns"),
        )
    ).sort(columns)
    # The last wait that had ended; the waits of one thread are numbered without a gap.
    wait = ends.at(ints(found["thread"]), ints(found["arrived_ns"]))
    numbered = found.with_columns(wait=pl.Series(wait, dtype=pl.Int64))
    of_reader = ("subscription_row", "intra_process", "thread")
    new = (pl.col("wait") - pl.col("wait").shift(1).over(of_reader) > 1).fill_null(True)
    numbered = numbered.with_columns(first=pl.when(new).then("wait").forward_fill().over(of_reader)).unique(
        columns, keep="first", maintain_order=True
    )
    mine = late.select("subscription_row", "intra_process", pl.col("reader_thread").alias("thread"), "arrived_ns")
    first = ints(mine.join(numbered, on=columns, how="left", maintain_order="left")["first"])
    before = first - 1
    thread = ints(mine["thread"])
    if not len(ends):
        return np.full(len(thread), -FOREVER)
    at = np.maximum(before, 0)
    of_thread = (before >= 0) & (ends.thread[at] == thread)
    known = of_thread & threads.alone[np.maximum(thread, 0)] & late["handled_within"].is_null().to_numpy()
    return np.where(known, ends.start[at], -FOREVER)


def stretches_of(messages: Messages, threads: Threads) -> Columns:
    """Of each message the stretches from its begin to its callback_start. Their lengths add up to that time."""
    found = Collected()
    m = messages
    of_sender, of_reader = ({"subject": np.arange(len(m)), "thread": t} for t in (m.publisher_thread, m.reader_thread))
    _Walk(m, threads, found, of_timer=True).go(m.publisher_thread, m.work, m.begin)
    found.put(of_sender, start=m.work, end=m.published, role=Role.WORK)
    found.put(of_sender, start=m.published, end=m.sent, role=Role.PUBLISH)
    taken_up = np.where(m.inline, m.arrived, m.sent)
    found.put(of_reader, start=m.sent, end=taken_up, role=Role.WRITE)
    _Walk(m, threads, found, of_timer=False).go(m.reader_thread, m.arrived, taken_up)
    found.put(of_reader, start=m.arrived, end=m.taken, role=Role.TAKE)
    found.put(of_reader, start=m.taken, end=m.started, role=Role.DISPATCH)
    return found.all()


class _Walk:
    """Backwards from what a thread did at a time, to when it could begin at the earliest."""

    def __init__(self, messages: Messages, threads: Threads, found: Collected, *, of_timer: bool) -> None:
        self._messages, self._threads, self._found, self._of_timer = messages, threads, found, of_timer

    def go(self, thread: Ints, until: Ints, begin: Ints) -> None:
        """Finds the stretches of every message from its `begin` to `until`, when that thread had it."""
        role = np.full(len(self._messages), Role.TIMER if self._of_timer else Role.READER, dtype=np.int64)
        subject = np.arange(len(self._messages), dtype=np.int64)
        front = {"subject": subject, "thread": thread, "start": begin, "end": until, "role": role}
        front = chosen(front, until > begin)
        for hop in range(MAX_HOPS):
            if not len(front["subject"]):
                return
            front = self._hop(front, first=hop == 0)
        unknown = Role.TIMER_UNKNOWN if self._of_timer else Role.UNKNOWN
        self._found.put(front, thread=NONE, role=unknown, note=_NOTES.index(TOO_MANY))

    def _hop(self, front: Columns, *, first: bool) -> Columns:
        """One thread of the way of each message: from its last wake-up on. Returns the ones to follow."""
        sleeps = self._threads.sleeps
        sleep = self._threads.last_sleep(front["thread"], front["end"], front["start"])
        sleep = np.where(front["role"] == Role.WRITE, NONE, sleep)
        front |= {"sleep": sleep, "woken": np.where(sleep >= 0, of_rows(sleeps["end"], sleep), front["start"])}
        if first and not self._of_timer:
            absent = np.minimum(self._messages.absent[front["subject"]], front["end"])
            later = (absent > front["start"]) & (absent >= front["woken"])
            behind = chosen(front | {"absent": absent}, later)
            self._found.put(behind, start=behind["absent"])
            self._found.put(
                behind, thread=NONE, end=behind["absent"], role=Role.ON_THE_WAY, note=_NOTES.index(NOT_THERE)
            )
            front = chosen(front, ~later)
        self._found.put(front, start=front["woken"])
        front = chosen(front, front["sleep"] >= 0)
        front["end"] = front["woken"]
        front["waker"] = of_rows(sleeps["waker"], front["sleep"])
        front["role"] = self._role_of(front["subject"], front["thread"], front["waker"], front["end"])
        ends = front["role"] == NONE
        self._end(chosen(front, ends))
        front = chosen(front, ~ends)
        return front | {"thread": front["waker"]}

    def _role_of(self, subject: Ints, thread: Ints, waker: Ints, time: Ints) -> Ints:
        """What a waker is on the way; NONE where it cannot have carried the message."""
        m, threads = self._messages, self._threads
        at = np.maximum(waker, 0)
        possible = (waker >= 0) & (waker != thread) & (threads.host[at] == threads.host[thread])
        process, home = (
            threads.process[at],
            np.where(self._of_timer, m.publisher_process[subject], threads.process[m.reader_thread[subject]]),
        )
        at_home = (process == home) & (process != NONE)
        kind, _ = threads.within(at, time)
        executes: Flags = threads.executes[at]
        peer = possible & at_home & executes & (kind != Within.CALLBACK)
        role = np.where(peer, Role.TIMER if self._of_timer else Role.READER, NONE)
        if self._of_timer:
            return role
        publishes = possible & (at == m.publisher_thread[subject]) & (time <= m.write_until[subject])
        middleware = possible & ~executes & (at_home | ((process == m.publisher_process[subject]) & (process != NONE)))
        role = np.where(middleware, Role.MIDDLEWARE, role)
        role = np.where(possible & threads.of_the_network[at], Role.NETWORK, role)
        return np.where(publishes, Role.WRITE, role)

    def _end(self, front: Columns) -> None:
        """Nobody is followed any further: up to here the thread slept, or did what had no part in this."""
        sleeps, sleep, waker = self._threads.sleeps, front["sleep"], front["waker"]
        if self._threads.wake_up_reason is not None:
            role = Role.TIMER_UNKNOWN if self._of_timer else Role.TRANSPORT
            self._found.put(front, thread=NONE, role=role, note=_NOTES.index(BOTH))
            return
        if self._of_timer:
            # What it did between the tick and that sleep was ahead of the timer.
            fell_asleep = np.maximum(of_rows(sleeps["start"], sleep), front["start"])
            self._found.put(front, end=fell_asleep, role=Role.TIMER)
            self._found.put(front, thread=NONE, start=fell_asleep, role=Role.TIMER_LATE)
            return
        known = of_rows(sleeps["has_waking"], sleep) == 1
        homeless = (waker >= 0) & (self._threads.process[np.maximum(waker, 0)] == NONE)
        front["role"] = np.where(known & ~homeless, Role.ON_THE_WAY, Role.TRANSPORT)
        front["note"] = np.where(known, np.where(homeless, _NOTES.index(NO_PROCESS), 0), _NOTES.index(NO_WAKER))
        # Stopped, the thread could not take what had come.
        front, stop = cut_by(self._threads.stops, front)
        self._found.put(chosen(front, stop >= 0), role=Role.MIDDLEWARE, note=0)
        self._found.put(chosen(front, stop < 0), thread=NONE)


# Parts ----------------------------------------------------------------------------------------------------------------


def parts_of(trace: Source, subjects: pl.DataFrame, stretches: Columns, threads: Threads) -> pl.DataFrame:
    """One row per part of each subject, as in the section `parts`. Of each subject they add up to its stretches.

    `subjects` has their row number `subject`, `topic`, `publisher` (its node), `own_callback`, that published (or, of a
    slow callback, itself), and whether they went `between_hosts`.
    """
    pieces = threads.divide(stretches, IN_PROGRAMS)
    row, within, stage = pl.col("within_row"), pl.col("within"), pl.col("stage")
    of_callback = pieces.select(pl.when(within == Within.CALLBACK).then(row)).to_series()
    of_phase = pieces.select(pl.when(within == Within.PHASE).then(row)).to_series()
    pieces = _classified(
        pieces.with_columns(
            trace.table("callback_instances")["callback"].gather(of_callback).alias("innermost"),
            trace.table("phases")["phase"].cast(pl.String).gather(of_phase).alias("phase"),
            *(subjects[name].gather(pieces["subject"]) for name in ("own_callback", "between_hosts")),
            scheduled=pl.Series(threads.scheduled[pieces["thread"].to_numpy()]),
        ),
        threads,
    )
    is_own = pl.col("role").is_in(_OF_ITS_CALLBACK) | (pl.col("cause") == "timer_late")
    leg = pl.col("role").replace_strict(_LEGS, default=None, return_dtype=pl.String)
    clocks = pl.when(pl.col("between_hosts") & (stage == "transport")).then(pl.lit(CLOCKS))
    found = pieces.lazy().select(
        pl.col("subject").cast(pl.Int32), stage.cast(pl.Enum(STAGES)), pl.col("cause").cast(pl.Enum(list(CAUSES))),
        thread_row="thread",
        holder_row=pl.when(pl.col("cause") == "cpu").then("holder"),
        cpu=pl.when(pl.col("cause").is_in(["cpu", "wake_up"])).then("cpu"),
        callback_row=pl.when(within == Within.CALLBACK).then("innermost").when(is_own).then("own_callback"),
        leg=leg.is_not_null(),
        during=pl.coalesce(leg, "phase"),
        reason=pl.coalesce("reason", clocks),
        start_ns="start", part_ns=pl.col("end") - pl.col("start"),
    )  # fmt: skip
    numbers = ("thread_row", "holder_row", "cpu", "callback_row")
    parts = (
        found.with_columns(pl.when(pl.col(c) >= 0).then(c).cast(pl.Int32).alias(c) for c in numbers)
        .group_by(KEY)
        .agg(pl.col("part_ns").sum(), pieces=pl.len().cast(pl.Int64), first_ns=pl.col("start_ns").min())
        .sort("subject", "first_ns", *KEY[1:])
        .collect()
    )
    return _with_names(trace, parts.join(subjects, on="subject", how="left", maintain_order="left"))


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
    notes = pl.col("note").replace_strict(dict(enumerate(_NOTES)), return_dtype=pl.String)
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
        (pl.col("idle") != 1, "unknown", NO_HOLDER),
        (state == State.WOKEN, "wake_up", ""),
        # Nothing but a quota or a limit keeps a thread from running on while its CPU idles, unless it was moved.
        (pl.lit(threads.migration_reason is None), "held_back", ""),
        (pl.lit(True), "unknown", threads.migration_reason or ""),
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


def _with_names(trace: Source, parts: pl.DataFrame) -> pl.DataFrame:
    """The parts with whose time it was, who is named for it (`who`), and by what name it is summed (`group`,
    `group_pid`), which knows processes instead of threads."""
    threads = names.threads(trace).with_columns(
        process=pl.coalesce("process", "thread", pl.format("tid {}", "tid")),
        thread=pl.coalesce("thread", pl.format("tid {}", "tid")),
    )
    of, by = (
        threads.select(
            pl.col("thread_row").alias(row), "host",
            *(pl.col(name).alias(f"{whose}_{name}") for name in ("thread", "tid", "process", "pid")),
        )
        for whose, row in (("of", "thread_row"), ("by", "holder_row"))
    )  # fmt: skip
    callbacks = names.callbacks(trace).select(callback_row="row", of_callback="label")
    frame = (
        parts.join(of, on="thread_row", how="left", maintain_order="left")
        .join(by.drop("host"), on="holder_row", how="left", maintain_order="left")
        .join(callbacks, on="callback_row", how="left", maintain_order="left")
    )
    by_name = (pl.col("by_process") == pl.col("by_thread")) & (pl.col("by_pid") == pl.col("by_tid"))
    holder = (
        pl.when(by_name)
        .then(pl.format("{} ({})", "by_process", "by_tid"))
        .otherwise(pl.format("{} ({} {})", "by_process", "by_thread", "by_tid"))
    )
    thread = pl.format("{} ({} {})", "of_process", "of_thread", "of_tid")
    callback = pl.coalesce("of_callback", "of_process", pl.lit("(unknown)"))
    publisher = pl.coalesce("publisher", "of_process")
    nobody, nothing = pl.lit(None, pl.String), pl.lit(None, pl.Int32)
    # In a part, in a group, and the number of the group's process.
    named: dict[Who, tuple[pl.Expr | str, pl.Expr | str, pl.Expr | str]] = {
        Who.HOLDER: (holder, "by_process", "by_pid"),
        Who.PROCESS: (thread, "of_process", "of_pid"),
        Who.THREAD: (thread, "of_process", nothing),
        Who.CALLBACK: (callback, callback, nothing),
        Who.PUBLISHER: (publisher, publisher, nothing),
        Who.TOPIC: ("topic", nobody, nothing),
        Who.REASON: ("reason", pl.coalesce("reason", pl.lit(NO_EVENT)), nothing),
    }
    cause = pl.col("cause").cast(pl.String)
    whose = cause.replace_strict({c.name: c.who.name for c in CAUSES.values()})

    def first(place: int) -> pl.Expr:
        return pl.coalesce(*(pl.when(whose == who.name).then(words[place]) for who, words in named.items()))

    several_hosts = trace.table("hosts").height > 1
    return frame.with_columns(
        who=first(0), group=first(1), group_pid=first(2),
        during=pl.coalesce("during", "of_callback"),
        host=pl.when(cause.is_in(["cpu", "wake_up"]) & several_hosts).then("host"),
    )  # fmt: skip
