"""Who starved whom: systems written by hand, in which a thread is kept from its CPU for a known time by a known one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from made_tables import MadeSource
from made_trace import MadeTrace, Task
from opened import needs_library, opened
from why_system import BASE, HOG, System

from perflab.trace import open_trace
from perflab.trace.answer import Answer
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.starvation import starvation

LIMIT_NS = 1_000
BURN: Task = (98, "burn")


def rows(answer: Answer, section: str) -> list[dict[str, Any]]:
    return answer.section(section).frame.to_dicts()


def ask(system: System, folder: Path, **more: Any) -> Answer:
    return starvation(opened(system.trace, folder), longer_than_ns=LIMIT_NS, **more)


def starved(holds: int, *, lost: bool = False, prio: int = 120) -> System:
    """A message whose receive thread gets its CPU `holds` ns after it was woken; who has it is the hog. With
    `lost` there was a message before, which nobody took."""
    system = System()
    system.kernel().switch(BASE - 500, 2, 0, HOG, next_prio=prio)
    system.switch(-100, 0, 0, system.talking)
    if lost:
        system.talk(0, 100, 150)
    sent = system.talk(200)
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(800, 0, system.talking, 0)
    system.kernel().switch(BASE + 600 + holds, 2, HOG, system.receiving, "running", prev_prio=prio)
    system.wake(700 + holds, system.listening, by_cpu=2, cpu=1)
    system.switch(710 + holds, 1, 0, system.listening)
    system.wait(-15_000, 750 + holds)
    system.listen(sent, 800 + holds)
    system.switch(900 + holds, 2, system.receiving, 0)
    return system


def test_a_starved_thread_is_named_with_who_had_its_cpu_and_who_waited_for_it(tmp_path: Path) -> None:
    answer = ask(starved(4_000, prio=9), tmp_path)
    (thread,) = rows(answer, "starved")
    assert (thread["thread"], thread["tid"], thread["role"], thread["cpus"]) == ("recv", 21, "middleware", "2")
    assert (thread["waits"], thread["total_ns"], thread["longest_ns"], thread["waiters"]) == (1, 4_000, 4_000, 1)
    assert (thread["by_process"], thread["by_pid"], thread["by_thread"]) == ("hog", 99, "hog")
    assert (thread["by_priorities"], thread["by_ns"], thread["by_percent"]) == ("RT 90", 4_000, 100.0)
    (wait,) = rows(answer, "waits")
    assert (wait["began"], wait["ran"], wait["woken_by_thread"], wait["waited_ns"]) == ("woken", True, "talker", 4_000)
    (waiter,) = rows(answer, "waiters")
    assert (waiter["thread"], waiter["role"], waiter["for_thread"]) == ("listener", "executor", "recv")
    assert waiter["waited_ns"] == 4_100
    assert answer.section("starvation").title == (
        "1 thread starved for 1 µs or longer: thread recv (tid 21) of listener (pid 20) did not run for 4.00 µs behind"
        " hog (pid 99, RT 90) on CPU 2"
    )


def test_what_stood_between_is_the_way_of_the_message_that_ended_the_stretch(tmp_path: Path) -> None:
    answer = ask(starved(4_000), tmp_path)
    (stretch,) = rows(answer, "stretches")
    assert (stretch["callback"], stretch["topic"], stretch["not_handled"]) == ("/listener /chatter", "/chatter", 0)
    assert (stretch["thread"], stretch["by_thread"], stretch["starved_ns"]) == ("recv", "hog", 4_000)
    assert stretch["sentence"].endswith(
        "thread recv (tid 21) of listener (pid 20) could run and did not for 4.00 µs behind hog (pid 99, nice "
        "0) on CPU"
        " 2; the message that ended it waited for that thread for 4.00 µs"
    )
    chain = rows(answer, "chain")
    assert sum(part["part_ns"] for part in chain) == stretch["chain_ns"]
    (longest,) = [part for part in chain if part["part_ns"] == 4_000]
    assert (longest["cause"], longest["of_thread"], longest["who"], longest["cpu"]) == ("cpu", "recv", "hog (99)", 2)


def test_messages_that_never_arrived_are_counted(tmp_path: Path) -> None:
    (stretch,) = rows(ask(starved(4_000, lost=True), tmp_path), "stretches")
    assert stretch["not_handled"] == 1
    assert "1 message published meanwhile was never handled" in stretch["sentence"]


@pytest.mark.parametrize("holds", [10, 999])
def test_without_a_starved_thread_none_is_named(tmp_path: Path, holds: int) -> None:
    answer = ask(starved(holds), tmp_path)
    assert [rows(answer, name) for name in ("starved", "holders", "waits", "waiters", "stretches", "chain")] == [[]] * 6
    assert answer.section("starvation").title == "No thread that could run waited for a CPU for 1 µs or longer"


def test_a_thread_that_never_runs_again_starves_until_the_end(tmp_path: Path) -> None:
    system = System()
    system.switch(-500, 2, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(50_600, 0, system.talking, 0)
    answer = ask(system, tmp_path)
    (wait,) = rows(answer, "waits")
    assert (wait["thread"], wait["ran"], wait["waited_ns"], wait["by_thread"]) == ("recv", False, 50_000, "hog")
    assert rows(answer, "waiters") == []


def test_of_recordings_one_after_the_other_nobody_starves_in_between(tmp_path: Path) -> None:
    needs_library()
    system = System()
    system.switch(-500, 2, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(50_600, 0, system.talking, 0)
    system.trace.write(tmp_path / "first")
    later = MadeTrace()
    later.kernel().ctf.uuid = UUID(int=2)  # else both are parts of one recording
    later.kernel().switch(BASE + 1_000_000_000, 2, HOG, (98, "other"))
    later.kernel().switch(BASE + 1_000_000_500, 2, (98, "other"), 0)
    later.write(tmp_path / "second")
    (wait,) = rows(starvation(open_trace([tmp_path]), longer_than_ns=LIMIT_NS), "waits")
    assert (wait["thread"], wait["ran"], wait["waited_ns"], wait["by_thread"]) == ("recv", False, 50_000, "hog")


def test_several_who_had_the_cpu_have_their_shares_and_the_longest_is_named(tmp_path: Path) -> None:
    system = System()
    system.kernel().fork(BASE - 39_000, 0, (1, "init"), BURN, child_pid=98)
    system.switch(-500, 2, 0, HOG)
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(1_600, 2, HOG, BURN)
    system.switch(4_600, 2, BURN, system.receiving)
    system.switch(4_700, 2, system.receiving, 0)
    answer = ask(system, tmp_path)
    shares = {row["by_thread"]: (row["by_ns"], row["by_percent"]) for row in rows(answer, "holders")}
    assert shares == {"burn": (3_000, 75.0), "hog": (1_000, 25.0)}
    assert rows(answer, "starved")[0]["by_thread"] == "burn"


def test_an_executor_s_own_thread_that_starves_keeps_its_timer(tmp_path: Path) -> None:
    system = System(period_ns=1_000)
    for start in (0, 1_000):
        system.wake(start, system.talking, by_cpu=0, cpu=0)
        system.switch(start + 10, 0, 0, system.talking)
        system.talk(start + 20, start + 100, start + 200)
        system.switch(start + 300, 0, system.talking, HOG if start else 0)
    system.wake(2_000, system.talking, by_cpu=0, cpu=0)
    system.switch(9_000, 0, HOG, system.talking, "running")
    system.talk(9_010, 9_100, 9_200)
    system.switch(9_300, 0, system.talking, 0)
    answer = ask(system, tmp_path)
    (stretch,) = rows(answer, "stretches")
    assert (stretch["thread"], stretch["by_thread"], stretch["starved_ns"]) == ("talker", "hog", 7_000)
    assert stretch["length_ns"] == 9_010 - 1_020
    assert rows(answer, "starved")[0]["role"] == "executor"


def test_a_cpu_that_idles_while_a_thread_waits_is_told_as_that(tmp_path: Path) -> None:
    who: dict[str, Any] = {
        "hosts": [{"name": "robot"}],
        "processes": [{"host": 0, "pid": 10, "name": "driver"}],
        "threads": [{"host": 0, "process": 0, "tid": 10, "name": "driver", "first_ns": 0, "last_ns": 9_000}],
        "thread_states": [
            {"thread": 0, "state": "woken", "start_ns": 0, "end_ns": 5_000, "cpu": 1, "priority": 49},
            {"thread": 0, "state": "running", "start_ns": 5_000, "end_ns": 9_000, "cpu": 1, "priority": 49},
        ],
        "holds": [{"thread": 0, "state": "woken", "start_ns": 0, "end_ns": 5_000, "cpu": 1, "idle": True}],
    }
    scheduler = {"begin_ns": 0, "end_ns": 9_000, "events": 3, "has_wakeups": True, "has_waking": True}
    made = MadeSource(who, scheduler={**scheduler, "has_migrations": True})
    answer = starvation(made, longer_than_ns=LIMIT_NS)
    (thread,) = rows(answer, "starved")
    assert (thread["by_thread"], thread["role"], thread["priorities"]) == (None, "program", "RT 50")
    assert [(row["idle"], row["by_thread"], row["by_ns"]) for row in rows(answer, "holders")] == [(True, None, 5_000)]


def test_of_a_stretch_of_time_of_processes_and_of_nodes(tmp_path: Path) -> None:
    trace = opened(starved(4_000).trace, tmp_path)

    def found(scope: Scope = EVERYTHING, **more: Any) -> list[int]:
        return [row["waited_ns"] for row in rows(starvation(trace, scope, LIMIT_NS, **more), "waits")]

    zero = trace.facts["begin_ns"]
    begin_ns = next(row["begin_ns"] for row in rows(starvation(trace, EVERYTHING, LIMIT_NS), "waits"))
    assert found(Scope(begin_ns=begin_ns + 1_500)) == [2_500]
    assert found(Scope(begin_ns=zero, end_ns=begin_ns + 500)) == []
    assert (found(pids=[20]), found(pids=[10])) == ([4_000], [])
    assert (found(Scope.of(trace, nodes=["/listener"])), found(Scope.of(trace, nodes=["/talker"]))) == ([4_000], [])


def test_without_the_scheduler_s_events_nothing_is_claimed(tmp_path: Path) -> None:
    system = System(scheduler=False)
    system.listen(system.talk(), 1_000)
    answer = ask(system, tmp_path)
    assert answer.section("starvation").title == "Whether threads starved is not known"
    assert answer.section("starved").notes == ("the trace has no scheduler events",)


def test_what_threads_did_is_not_known_between_recordings(tmp_path: Path) -> None:
    needs_library()
    first = MadeTrace()
    first.kernel().switch(BASE, 0, 0, BURN)
    first.kernel().switch(BASE + 1_000, 1, 0, HOG)
    first.write(tmp_path / "first")
    later = MadeTrace()
    later.kernel().ctf.uuid = UUID(int=2)
    later.kernel().switch(BASE + 1_000_000_000, 0, BURN, 0, "sleeping")
    later.kernel().switch(BASE + 1_000_000_500, 0, 0, HOG)
    later.write(tmp_path / "second")
    states = open_trace([tmp_path]).table("thread_states")
    assert (states["end_ns"] - states["start_ns"]).to_list() == [1_000, 500], "it ran, and then it slept"
