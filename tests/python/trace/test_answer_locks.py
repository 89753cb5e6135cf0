"""Who waits for whose lock: systems written by hand, in which a thread holds a lock for a known time and is kept from
its CPU by a known one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_trace import MadeTrace, Task
from opened import opened

from perflab.trace.answer import Answer
from perflab.trace.locks import NO_LOCKS, locks
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.starvation import starvation

MUTEX = 0x7F00_0000_1000
PRIVATE, LOCK_PI = 128, 128 | 6
HIGH, MIDDLE, LOW, NICE = 19, 49, 120, 130  # RT 80, RT 50, nice 0, nice 10
LIMIT_NS = 1_000
INIT, ROBOT, HOLDER, WAITER, OTHER, HOG = (
    (1, "init"),
    (50, "robot"),
    (51, "low"),
    (52, "high"),
    (53, "third"),
    (99, "hog"),
)


def rows(answer: Answer, section: str) -> list[dict[str, Any]]:
    return answer.section(section).frame.to_dicts()


class System:
    """`low`, `high` and `third` are threads of the process `robot`, the hog is another one. Nothing but `low` runs
    from 1 000 on, on CPU 0."""

    def __init__(self) -> None:
        self.trace = MadeTrace("jazzy")
        self.kernel = self.trace.kernel()
        self.kernel.fork(100, 2, INIT, ROBOT, child_pid=50)
        self.kernel.fork(110, 2, INIT, HOG, child_pid=99)
        for at, thread in ((120, HOLDER), (130, WAITER), (140, OTHER)):
            self.kernel.fork(at, 2, ROBOT, thread, child_pid=50)
        self.asleep(WAITER, 1, 200)
        self.asleep(OTHER, 1, 400)
        self.asleep(HOG, 0, 600)
        self.kernel.switch(1_000, 0, 0, HOLDER, next_prio=LOW)

    def asleep(self, task: Task, cpu: int, at: int) -> None:
        self.kernel.switch(at, cpu, 0, task)
        self.kernel.switch(at + 100, cpu, task, 0)

    def runs(self, at: int, task: Task, prio: int) -> None:
        """It comes to CPU 1."""
        self.kernel.wakeup(at - 10, 1, task, prio=prio)
        self.kernel.switch(at, 1, 0, task, next_prio=prio)

    def waits(
        self, at: int, task: Task, prio: int, *, owner: int = 51, op: int = PRIVATE, address: int = MUTEX
    ) -> None:
        """It comes to CPU 1, wants the lock, and sleeps 10 later."""
        self.runs(at - 10, task, prio)
        self.kernel.futex_wait(at, 1, task, address, op=op, owner=owner, prio=prio)
        self.kernel.switch(at + 10, 1, task, 0, prev_prio=prio)

    def returns(self, at: int, task: Task, prio: int, *, op: int = PRIVATE, result: int = 0) -> None:
        """It is woken 20 before, and comes 10 before. Then it sleeps again."""
        self.runs(at - 10, task, prio)
        self.kernel.futex_return(at, 1, task, MUTEX, op=op, result=result, prio=prio)
        self.kernel.switch(at + 5, 1, task, 0, prev_prio=prio)

    def hog(self, since: int, until: int, prio: int = MIDDLE) -> None:
        """It takes the holder's CPU in this time."""
        self.kernel.wakeup(since - 10, 0, HOG, prio=prio)
        self.kernel.switch(since, 0, HOLDER, HOG, "running", prev_prio=LOW, next_prio=prio)
        self.kernel.switch(until, 0, HOG, HOLDER, prev_prio=prio, next_prio=LOW)

    def ends(self, at: int) -> None:
        self.kernel.switch(at, 0, HOLDER, 0, prev_prio=LOW)

    def ask(self, folder: Path, scope: Scope = EVERYTHING) -> Answer:
        return locks(opened(self.trace, folder), scope, LIMIT_NS)


def inverted(waiter: int = HIGH, hog: int = MIDDLE, op: int = PRIVATE) -> System:
    """From 2 000 to 10 000 `high` waits for what `low` holds, and from 3 000 to 9 000 the hog has the CPU of that."""
    system = System()
    system.waits(2_000, WAITER, waiter, op=op)
    system.hog(3_000, 9_000, hog)
    system.returns(10_000, WAITER, waiter, op=op)
    system.ends(11_000)
    return system


def test_a_wait_for_a_lock_is_found_with_its_owner_and_what_that_did(tmp_path: Path) -> None:
    answer = inverted().ask(tmp_path)
    (wait,) = rows(answer, "lock_waits")
    assert (wait["thread"], wait["tid"], wait["priority"]) == ("high", 52, "RT 80")
    assert (wait["address"], wait["waited_ns"], wait["returned"], wait["inherits"]) == (hex(MUTEX), 8_000, True, False)
    assert (wait["owner"], wait["owner_tid"], wait["owner_priority"]) == ("low", 51, "nice 0")
    # It slept from 2 010 to 9 980: the lock's owner ran, was kept from its CPU for 6 000, ran again.
    assert (wait["ran_ns"], wait["could_run_ns"], wait["slept_ns"], wait["unknown_ns"]) == (1_970, 6_000, 0, 30)
    assert (wait["by_process"], wait["by_thread"], wait["by_priority"]) == ("hog", "hog", "RT 50")
    assert (wait["inversion"], wait["inversion_ns"]) == (True, 6_000)
    (lock,) = rows(answer, "locks")
    assert (lock["process"], lock["pid"], lock["address"], lock["waits"]) == ("robot", 50, hex(MUTEX), 1)
    assert (lock["total_ns"], lock["longest_ns"], lock["owner"], lock["inversion_ns"]) == (8_000, 8_000, "low", 6_000)
    assert answer.section("verdict").title == (
        "Priority inversion in 1 of 1 wait for locks: thread high (tid 52, RT 80) of robot (pid 50) waited 8.00 µs"
        " for a lock that thread low (tid 51, nice 0) held, which was ready but did not run for 6.00 µs, for 6.00 "
        "µs of it"
        " behind less urgent threads, the longest hog (tid 99, RT 50)"
    )


@pytest.mark.parametrize(("waiter", "hog"), [(MIDDLE, MIDDLE), (LOW, MIDDLE), (LOW, LOW), (LOW, NICE)])
def test_one_that_is_as_urgent_as_who_waits_is_no_inversion(tmp_path: Path, waiter: int, hog: int) -> None:
    answer = inverted(waiter, hog).ask(tmp_path)
    (wait,) = rows(answer, "lock_waits")
    assert (wait["could_run_ns"], wait["inversion"], wait["inversion_ns"]) == (6_000, False, 0)
    assert answer.section("verdict").title == "No priority inversion in 1 wait for locks; the longest took 8.00 µs"


def test_the_edge_is_in_who_starved_whom(tmp_path: Path) -> None:
    answer = starvation(opened(inverted().trace, tmp_path), longer_than_ns=LIMIT_NS)
    (edge,) = rows(answer, "lock_waiters")
    assert (edge["thread"], edge["priority"], edge["address"]) == ("high", "RT 80", hex(MUTEX))
    assert (edge["for_thread"], edge["for_priority"], edge["by_thread"]) == ("low", "nice 0", "hog")
    assert (edge["waited_ns"], edge["inversion_ns"]) == (6_000, 6_000)


def test_a_number_that_is_no_thread_of_the_process_is_no_owner(tmp_path: Path) -> None:
    system = System()
    system.waits(2_000, WAITER, HIGH, owner=99)  # the hog's
    system.returns(3_000, WAITER, HIGH)
    system.waits(4_000, WAITER, HIGH, owner=4_711)
    system.returns(5_000, WAITER, HIGH)
    system.waits(6_000, WAITER, HIGH, owner=0)
    system.returns(7_000, WAITER, HIGH)
    answer = system.ask(tmp_path)
    assert opened(system.trace, tmp_path).table("futex_waits")["owner"].to_list() == [None] * 3
    assert rows(answer, "locks") == []
    assert answer.section("verdict").title == "No thread waited for a lock whose owner is known"


def test_a_lock_that_inherits_priorities_goes_to_the_thread_whose_wait_ended(tmp_path: Path) -> None:
    system = System()
    system.waits(2_000, WAITER, HIGH, op=LOCK_PI)
    system.waits(3_000, OTHER, LOW, op=LOCK_PI)
    system.returns(6_000, WAITER, HIGH, op=LOCK_PI)
    system.returns(9_000, OTHER, LOW, op=LOCK_PI)
    system.ends(11_000)
    waits = {row["thread"]: row for row in rows(system.ask(tmp_path), "lock_waits")}
    assert (waits["high"]["owner"], waits["high"]["inherits"]) == ("low", True)
    # `third` slept from 3 010 to 8 980: `low` had the lock for 2 990 of that, `high` for the rest, in which it slept.
    assert (waits["third"]["owner"], waits["third"]["slept_ns"], waits["third"]["ran_ns"]) == ("low", 2_975, 2_995)


def test_who_has_a_lock_after_it_was_handed_on_is_not_guessed(tmp_path: Path) -> None:
    system = System()
    system.waits(2_000, WAITER, HIGH)
    system.waits(3_000, OTHER, LOW)
    system.returns(6_000, WAITER, HIGH)
    system.returns(9_000, OTHER, LOW)
    system.ends(11_000)
    waits = {row["thread"]: row for row in rows(system.ask(tmp_path), "lock_waits")}
    assert (waits["third"]["ran_ns"], waits["third"]["unknown_ns"]) == (2_990, 3_010)


def test_what_did_not_wait_and_whose_end_is_not_known_is_left_out(tmp_path: Path) -> None:
    system = System()
    system.waits(2_000, WAITER, HIGH)
    system.returns(3_000, WAITER, HIGH, result=-11)
    system.waits(4_000, OTHER, LOW)  # until the end
    system.ends(12_000)
    (wait,) = rows(system.ask(tmp_path), "lock_waits")
    assert (wait["thread"], wait["returned"], wait["waited_ns"]) == ("third", False, 8_000)


def test_without_recorded_locks_the_answer_says_so(tmp_path: Path) -> None:
    system = System()
    system.ends(5_000)
    answer = system.ask(tmp_path)
    assert answer.section("verdict").title == "Whether threads waited for locks is not known"
    assert [answer.section(name).notes for name in ("verdict", "locks", "lock_waits")] == [(NO_LOCKS,)] * 3
    assert starvation(opened(system.trace, tmp_path)).section("lock_waiters").notes == (NO_LOCKS,)


def test_recorded_locks_that_nobody_waited_for_are_none(tmp_path: Path) -> None:
    system = System()
    system.kernel.with_locks()
    system.ends(5_000)
    assert system.ask(tmp_path).section("verdict").title == "No thread waited for a lock whose owner is known"
