"""A message's way as stretches of threads' time that follow each other without a gap, from its begin to its callback.

    begin       sender                   transport               reader                      callback_start
      |- timer late, waiting -|- work -|- call -|- on the way -|- woken, busy -|- take -|- dispatch -|
                        callback_start published          known to the reader arrived

The middle is found backwards. The thread that took the message was woken last by somebody; that one is followed from
there on, back to who woke it, and so on, to the thread that published, to an interrupt, or to the publication. Wakers
are followed only where they can have carried the message: threads of the middleware in either process, threads of the
same executor that are within no callback (they pass on the executor's lock, or have ended a callback of the same
group), the kernel's network threads, and the thread that published as long as its publish call can have lasted. Any
other waker was interrupted: what slept until then waited for something on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from perflab.trace.why_layers import NONE, Collected, Columns, Flags, Ints, of_rows
from perflab.trace.why_threads import CALLBACK, Threads

MAX_HOPS = 16  # threads on one way; ways in real systems have three or four


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


class Note(IntEnum):
    """What is to be known of a stretch."""

    NOTHING = 0
    NOT_THERE = 1  # the executor looked for work at the end of it, and the message was not there
    NO_WAKER = 2  # it is not recorded who woke its thread
    NO_WAKE_UPS = 3  # there are no wake-ups
    HOPS = 4
    NO_PROCESS = 5  # whose thread woke its thread is not known


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


def stretches_of(messages: Messages, threads: Threads) -> Columns:
    """Of each message the stretches from its begin to its callback_start. Their lengths add up to that time."""
    found = Collected()
    m = messages
    subject = np.arange(len(m), dtype=np.int64)
    _Walk(m, threads, found, of_timer=True).go(m.publisher_thread, m.work, m.begin)
    found.add(subject, m.publisher_thread, m.work, m.published, Role.WORK)
    found.add(subject, m.publisher_thread, m.published, m.sent, Role.PUBLISH)
    inline = np.flatnonzero(m.inline)
    found.add(inline, m.reader_thread[inline], m.sent[inline], m.arrived[inline], Role.WRITE)
    _Walk(m, threads, found, of_timer=False).go(m.reader_thread, m.arrived, np.where(m.inline, m.arrived, m.sent))
    found.add(subject, m.reader_thread, m.arrived, m.taken, Role.TAKE)
    found.add(subject, m.reader_thread, m.taken, m.started, Role.DISPATCH)
    return found.all()


class _Walk:
    """Backwards from what a thread did at a time, to when it could begin at the earliest."""

    def __init__(self, messages: Messages, threads: Threads, found: Collected, *, of_timer: bool) -> None:
        self._messages, self._threads, self._found, self._of_timer = messages, threads, found, of_timer

    def go(self, thread: Ints, until: Ints, begin: Ints) -> None:
        """Finds the stretches of every message from its `begin` to `until`, when that thread had it."""
        subject = np.flatnonzero(until > begin)
        thread, until = thread[subject], until[subject]
        role = np.full(len(subject), Role.TIMER if self._of_timer else Role.READER, dtype=np.int64)
        for hop in range(MAX_HOPS):
            if not len(subject):
                return
            subject, thread, until, role = self._hop(subject, thread, until, role, begin, first=hop == 0)
        unknown = Role.TIMER_UNKNOWN if self._of_timer else Role.UNKNOWN
        self._found.add(subject, NONE, begin[subject], until, unknown, Note.HOPS)

    def _hop(
        self, subject: Ints, thread: Ints, until: Ints, role: Ints, begin: Ints, *, first: bool
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """One thread of the way of each message: from its last wake-up on. Returns those that are to be followed."""
        low = begin[subject]
        sleeps = self._threads.sleeps
        sleep = np.where(role == Role.WRITE, NONE, sleeps.last(thread, until, low))
        slept = sleep >= 0
        woken = np.where(slept, of_rows(sleeps.end, sleep), low)
        if first and not self._of_timer:
            absent = np.minimum(self._messages.absent[subject], until)
            later = (absent > low) & (absent >= woken)
            self._found.add(subject[later], thread[later], absent[later], until[later], role[later])
            self._found.add(subject[later], NONE, low[later], absent[later], Role.ON_THE_WAY, Note.NOT_THERE)
            rest = ~later
            subject, thread, until, role = subject[rest], thread[rest], until[rest], role[rest]
            low, sleep, slept, woken = low[rest], sleep[rest], slept[rest], woken[rest]
        self._found.add(subject, thread, woken, until, role)
        subject, thread, low, sleep, woken = (column[slept] for column in (subject, thread, low, sleep, woken))
        waker = of_rows(sleeps.waker, sleep)
        next_role = self._role_of(subject, thread, waker, woken)
        ends = next_role == NONE
        self._end(subject[ends], thread[ends], sleep[ends], low[ends], woken[ends], waker[ends])
        return subject[~ends], waker[~ends], woken[~ends], next_role[~ends]

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
        peer = possible & at_home & executes & (kind != CALLBACK)
        role = np.where(peer, Role.TIMER if self._of_timer else Role.READER, NONE)
        if self._of_timer:
            return role
        publishes = possible & (at == m.publisher_thread[subject]) & (time <= m.write_until[subject])
        middleware = possible & ~executes & (at_home | ((process == m.publisher_process[subject]) & (process != NONE)))
        role = np.where(middleware, Role.MIDDLEWARE, role)
        role = np.where(possible & threads.of_the_network[at], Role.NETWORK, role)
        return np.where(publishes, Role.WRITE, role)

    def _end(self, subject: Ints, thread: Ints, sleep: Ints, low: Ints, woken: Ints, waker: Ints) -> None:
        """Nobody is followed any further: up to here the thread slept, or did what had no part in this."""
        sleeps = self._threads.sleeps
        if self._threads.wake_up_reason is not None:
            role = Role.TIMER_UNKNOWN if self._of_timer else Role.TRANSPORT
            self._found.add(subject, NONE, low, woken, role, Note.NO_WAKE_UPS)
            return
        if self._of_timer:
            # What it did between the tick and that sleep was ahead of the timer.
            fell_asleep = np.maximum(sleeps.start[sleep], low)
            self._found.add(subject, thread, low, fell_asleep, Role.TIMER)
            self._found.add(subject, NONE, fell_asleep, woken, Role.TIMER_LATE)
            return
        known = of_rows(sleeps.has_waking, sleep) == 1
        homeless = (waker >= 0) & (self._threads.process[np.maximum(waker, 0)] == NONE)
        roles = np.where(known & ~homeless, Role.ON_THE_WAY, Role.TRANSPORT)
        note = np.where(known, np.where(homeless, Note.NO_PROCESS, Note.NOTHING), Note.NO_WAKER)
        # Stopped, the thread could not take what had come.
        of, start, end, stop = self._threads.stops.cut(thread, low, woken)
        stopped = stop >= 0
        self._found.add(
            subject[of[stopped]], thread[of[stopped]], start[stopped], end[stopped], Role.MIDDLEWARE, Note.NOTHING
        )
        rest = of[~stopped]
        self._found.add(subject[rest], NONE, start[~stopped], end[~stopped], roles[rest], note[rest])
