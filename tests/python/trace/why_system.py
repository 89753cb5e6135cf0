"""A talker and a listener written by hand, for tests of `why`: threads, CPUs, and who wakes whom.

CPU 0 has the talker, CPU 1 the listener's executor, CPU 2 the thread of the middleware that receives for it. Helpers
write what a message makes of it, in ns from 0 at the message's beginning; `BASE` lies before, for the initialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from made_trace import EPOCH_OFFSET_NS, Kernel, MadeTrace, Process, Subscription, Task, Thread, Timer
from opened import opened

from perflab.trace.answer import Answer
from perflab.trace.why import Selection, why

BASE = 100_000
ALL = Selection(later_than_ns=0)
HOG: Task = (99, "hog")


class System:
    def __init__(
        self,
        *,
        scheduler: bool = True,
        hosts: tuple[str, str] = ("robot", "robot"),
        period_ns: int = 0,
        epoch_offset_ns: int = EPOCH_OFFSET_NS,
    ) -> None:
        self.trace = MadeTrace("jazzy", epoch_offset_ns=epoch_offset_ns)
        self.talker: Process = self.trace.process("talker", pid=10, host=hosts[0])
        self.listener: Process = self.trace.process("listener", pid=20, host=hosts[1])
        self.talking: Thread = self.talker.main
        self.listening: Thread = self.listener.thread(20, cpu=1)
        self.receiving: Thread = self.listener.thread(21, "recv", cpu=2)
        talker, listener = self.talker.node("talker"), self.listener.node("listener")
        self.publisher = self.talker.publisher(talker, "/chatter")
        self.timer: Timer = self.talker.timer(talker, period_ns or 1_000_000_000)
        self.other_timer: Timer = self.talker.timer(talker, 7_000_000_000)
        self.subscription: Subscription = self.listener.subscription(listener, "/chatter")
        self.slow: Subscription = self.listener.subscription(listener, "/slow")
        self.kernels: dict[str, Kernel] = {}
        if scheduler:
            for host in dict.fromkeys(hosts):
                self.kernels[host] = self.trace.kernel(host=host)
            # Threads that only the scheduler knows have a process by their fork.
            self.kernel(self.receiving).fork(BASE - 40_000, 1, self.listening, self.receiving, child_pid=20)
            self.kernel().fork(BASE - 40_000, 0, (1, "init"), HOG, child_pid=99)
            self.asleep(self.talking, 0)
            self.asleep(self.listening, 1)
            self.asleep(self.receiving, 2)

    def kernel(self, task: Task | None = None) -> Kernel:
        """That of a thread's host."""
        host = task.process.host.name if isinstance(task, Thread) else next(iter(self.kernels))
        return self.kernels[host]

    def asleep(self, thread: Task, cpu: int) -> None:
        """It runs shortly before everything, and goes to sleep."""
        self.kernel(thread).switch(BASE - 20_000, cpu, prev=0, next=thread)
        self.kernel(thread).switch(BASE - 10_000, cpu, prev=thread, next=0)

    def switch(self, at: int, cpu: int, prev: Task, next: Task, state: str = "sleeping") -> None:
        known = prev if prev != 0 else next
        self.kernel(known).switch(BASE + at, cpu, prev, next, state)

    def wake(self, at: int, thread: Thread, by_cpu: int, cpu: int) -> None:
        """`by_cpu` is where the one that wakes it runs."""
        self.kernel(thread).waking(BASE + at, by_cpu, thread, target_cpu=cpu)
        self.kernel(thread).wakeup(BASE + at, by_cpu, thread, target_cpu=cpu)

    def talk(self, start: int = 0, published: int = 500, end: int = 700, *, due: int | None = None) -> Any:
        """The timer's callback, with its publication. Returns that."""
        if due is not None:
            self.talking.at(BASE + start).perflab__timer_due(timer_handle=self.timer.handle, due_ns=BASE + due)
        self.talking.at(BASE + start).callback_start(callback=self.timer.callback, is_intra_process=0)
        sent = self.talking.publish(
            self.publisher, BASE + published, rcl_at=BASE + published, rmw_at=BASE + published + 2
        )
        self.talking.at(BASE + end).callback_end(callback=self.timer.callback)
        return sent

    def listen(self, sent: Any, at: int, *, by: Thread | None = None) -> None:
        """The take of the message at that time, and its callback 100 later, which takes 100."""
        thread = by or self.listening
        thread.take(self.subscription, sent, BASE + at, rclcpp_at=BASE + at + 10)
        thread.callback(self.subscription, BASE + at + 100, BASE + at + 200)

    def wait(self, since: int, until: int, by: Thread | None = None) -> None:
        """The executor waits for work, and looks what there is."""
        thread = by or self.listening
        thread.wait_for_work(BASE + since)
        thread.get_next_ready(BASE + until)

    def why(self, folder: Path, selection: Selection = ALL) -> Answer:
        found = why(opened(self.trace, folder), selection)
        assert_conserved(found)
        return found


def assert_conserved(answer: Answer) -> None:
    """Of every message (or callback) the parts add up to its total, and no part has no time."""
    kind = "message" if answer.kind == "why" else "callback"
    parts = answer.section("parts").frame
    sums = parts.group_by(kind).agg(pl.col("part_ns").sum())
    rows = answer.section(f"{kind}s").frame.select(kind, "total_ns").join(sums, on=kind, how="full", coalesce=True)
    assert rows.filter(~pl.col("total_ns").eq_missing(pl.col("part_ns"))).rows() == []
    assert (parts["part_ns"] > 0).all()


def parts(answer: Answer, number: int = 0) -> list[tuple[str, str, str | None, int]]:
    """The parts of a message: stage, cause, who, ns; in the order in which they began."""
    frame = answer.section("parts").frame
    kind = frame.columns[0]
    frame = frame.filter(pl.col(kind) == number).sort("first_ns", maintain_order=True)
    texts: Sequence[pl.Expr] = [pl.col(c).cast(pl.String) for c in ("stage", "cause", "who")]
    return frame.select(*texts, "part_ns").rows()


def by_cause(answer: Answer) -> dict[str, int]:
    """Of all messages the time per cause."""
    return dict(answer.section("causes").frame.select("cause", "total_ns").rows())
