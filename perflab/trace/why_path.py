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

from perflab.trace.why_layers import NONE, Collected, Columns, Flags, Ints, chosen, cut_by, of_rows
from perflab.trace.why_threads import Threads, Within

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
        self._found.put(front, thread=NONE, role=unknown, note=Note.HOPS)

    def _hop(self, front: Columns, *, first: bool) -> Columns:
        """One thread of the way of each message: from its last wake-up on. Returns those that are to be followed."""
        sleeps = self._threads.sleeps
        sleep = sleeps.last(front["thread"], front["end"], front["start"])
        sleep = np.where(front["role"] == Role.WRITE, NONE, sleep)
        front |= {"sleep": sleep, "woken": np.where(sleep >= 0, of_rows(sleeps.end, sleep), front["start"])}
        if first and not self._of_timer:
            absent = np.minimum(self._messages.absent[front["subject"]], front["end"])
            later = (absent > front["start"]) & (absent >= front["woken"])
            behind = chosen(front | {"absent": absent}, later)
            self._found.put(behind, start=behind["absent"])
            self._found.put(behind, thread=NONE, end=behind["absent"], role=Role.ON_THE_WAY, note=Note.NOT_THERE)
            front = chosen(front, ~later)
        self._found.put(front, start=front["woken"])
        front = chosen(front, front["sleep"] >= 0)
        front["end"] = front["woken"]
        front["waker"] = of_rows(sleeps.waker, front["sleep"])
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
            self._found.put(front, thread=NONE, role=role, note=Note.NO_WAKE_UPS)
            return
        if self._of_timer:
            # What it did between the tick and that sleep was ahead of the timer.
            fell_asleep = np.maximum(of_rows(sleeps.start, sleep), front["start"])
            self._found.put(front, end=fell_asleep, role=Role.TIMER)
            self._found.put(front, thread=NONE, start=fell_asleep, role=Role.TIMER_LATE)
            return
        known = of_rows(sleeps.has_waking, sleep) == 1
        homeless = (waker >= 0) & (self._threads.process[np.maximum(waker, 0)] == NONE)
        front["role"] = np.where(known & ~homeless, Role.ON_THE_WAY, Role.TRANSPORT)
        front["note"] = np.where(known, np.where(homeless, Note.NO_PROCESS, Note.NOTHING), Note.NO_WAKER)
        # Stopped, the thread could not take what had come.
        front, stop = cut_by(self._threads.stops, front)
        self._found.put(chosen(front, stop >= 0), role=Role.MIDDLEWARE, note=Note.NOTHING)
        self._found.put(chosen(front, stop < 0), thread=NONE)
