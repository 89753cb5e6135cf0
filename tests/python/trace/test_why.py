"""Why a message was late: every cause on events written by hand."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import polars as pl
import pytest
from made_trace import MadeTrace, Task
from opened import opened
from reference_traces import ROOT
from why_system import ALL, BASE, HOG, System, assert_conserved, by_cause, parts

from perflab.errors import BadInput
from perflab.trace.causes import CAUSES
from perflab.trace.quality import NO_MIGRATIONS
from perflab.trace.scope import Scope
from perflab.trace.why import Selection, why
from perflab.trace.why_path import ASLEEP_OR_WAITING, DISK, MAX_HOPS, NO_HOLDER, NO_PROCESS, TOO_MANY

TALK, LISTEN, RECEIVE = "talker (10)", "listener (20)", "listener (recv 21)"
TIMER, SLOW = "/talker timer 1 s", "/listener /slow"
EXECUTOR = "listener (listener 20)"
MIDDLEWARE = "listener (recv 21)"


def sent_and_received(system: System, begin: int = 0) -> object:
    """From `begin` on: the talker publishes at 500, has sent at 502 and wakes the receiving thread at 600, which wakes
    the listener at 900 and sleeps. The listener's executor waits for work from -15 000 on."""
    system.switch(begin - 100, 0, 0, system.talking)
    sent = system.talk(begin, begin + 500, begin + 700)
    system.wake(begin + 600, system.receiving, by_cpu=0, cpu=2)
    system.switch(begin + 650, 2, 0, system.receiving)
    system.switch(begin + 800, 0, system.talking, 0)
    system.wake(begin + 900, system.listening, by_cpu=2, cpu=1)
    system.switch(begin + 950, 2, system.receiving, 0)
    system.listening.wait_for_work(BASE + begin - 15_000)
    return sent


BEFORE_THE_LISTENER = [
    ("sender", "publish_call", "/talker", 2),
    ("transport", "publish_call", "/talker", 98),
    ("transport", "wake_up", None, 50),
    ("transport", "middleware", MIDDLEWARE, 250),
]


def test_a_busy_thread_on_the_subscriber_s_cpu_is_named_with_its_cpu(tmp_path: Path) -> None:
    system = System()
    system.switch(-500, 1, 0, HOG)
    sent = sent_and_received(system)
    system.switch(5_000, 1, HOG, system.listening, "running")
    system.listening.get_next_ready(BASE + 5_100)
    system.listening.execute(BASE + 5_150, system.subscription)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    assert parts(answer) == [
        *BEFORE_THE_LISTENER,
        ("reader", "cpu", "hog (99)", 4_100),
        ("reader", "executor", EXECUTOR, 100),
        ("reader", "executor", EXECUTOR, 50),
        ("reader", "executor", EXECUTOR, 50),
        ("reader", "executor", EXECUTOR, 10),
        ("reader", "executor", EXECUTOR, 90),
    ]
    during = answer.section("parts").frame.filter(pl.col("cause") == "executor").sort("first_ns")["during"]
    assert during.to_list() == ["wait_for_work", "get_next_ready", "execute", "take", "dispatch"]
    row = answer.section("totals").frame.to_dicts()[0]
    assert (row["cause"], row["who"], row["cpu"], row["pids"]) == ("cpu", "hog", 1, "99")
    assert (row["messages"], row["total_ns"], row["having"]) == (1, 4_100, 1)
    assert answer.section("why").title == (
        "Of 1 late message (longer than 0 ns; 1 in all) 1 waited for CPU 1 behind hog (pid 99)"
    )
    part = answer.section("parts").frame.filter(pl.col("cause") == "cpu").to_dicts()[0]
    assert (part["of_thread"], part["of_tid"], part["by_thread"], part["by_tid"], part["cpu"]) == (
        "listener", 20, "hog", 99, 1,
    )  # fmt: skip


def test_what_perflab_itself_held_up_is_said_to_be_its_own() -> None:
    def told(group: str, *pids: int) -> str:
        row = {"group": group, "group_cpu": 1, "host": None, "pids": pids}
        return f"{CAUSES['cpu'].described(row)}; {CAUSES['cpu'].told(row, 2, slow=False, named=True)}"

    assert told("perflab", 7, 8) == (
        "CPU 1: perflab itself (2 processes); waited for CPU 1 behind perflab itself (2 processes)"
    )
    monitor = "perflab itself (perflab-monitor, pid 7)"
    assert told("perflab-monitor", 7) == f"CPU 1: {monitor}; waited for CPU 1 behind {monitor}"
    assert told("perflab-node", 7) == "CPU 1: perflab-node (pid 7); waited for CPU 1 behind perflab-node (pid 7)"


def test_a_callback_ahead_has_its_time_on_the_cpu_and_asleep_but_not_that_of_who_preempts_it(tmp_path: Path) -> None:
    system = System()
    system.switch(-4_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE - 3_500)
    system.listening.at(BASE - 3_000).callback_start(callback=system.slow.callback, is_intra_process=0)
    sent = sent_and_received(system)
    # It is awake: the wake-up that the receiving thread causes finds it running, preempted or asleep in the callback.
    system.switch(2_000, 1, system.listening, HOG, "running")
    system.switch(3_000, 1, HOG, system.listening)
    system.switch(4_000, 1, system.listening, 0)  # sleeps within the callback
    system.wake(4_500, system.listening, by_cpu=1, cpu=1)
    system.switch(4_600, 1, 0, system.listening)
    system.listening.at(BASE + 7_000).callback_end(callback=system.slow.callback)
    system.listening.get_next_ready(BASE + 7_050)
    system.wait(7_100, 7_150)
    system.listening.execute(BASE + 7_180, system.subscription)
    system.listen(sent, 7_200)
    system.switch(8_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    found = parts(answer)
    assert found[0] == ("sender", "publish_call", "/talker", 2)
    assert all(stage == "reader" for stage, *_ in found[1:])
    assert by_cause(answer) == {
        "callback_ahead": 7_000 - 502 - 1_000 - 100, "cpu": 1_000, "wake_up": 100, "executor": 300, "publish_call": 2,
    }  # fmt: skip
    assert found[1][1:3] == ("callback_ahead", SLOW)
    assert answer.section("messages").frame["main"].to_list() == [f"behind {SLOW}"]


def test_what_sleeps_on_its_way_until_an_interrupt_is_on_the_way(tmp_path: Path) -> None:
    """A delay: the receiving thread has the message, and sleeps until its delivery time."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(650, 2, 0, system.receiving)
    system.switch(800, 0, system.talking, 0)
    system.switch(850, 2, system.receiving, 0)
    system.wake(5_000, system.receiving, by_cpu=2, cpu=2)  # the CPU is idle: an interrupt
    system.switch(5_020, 2, 0, system.receiving)
    system.wake(5_100, system.listening, by_cpu=2, cpu=1)
    system.switch(5_110, 1, 0, system.listening)
    system.switch(5_200, 2, system.receiving, 0)
    system.wait(-15_000, 5_150)
    system.listen(sent, 5_200)
    answer = system.why(tmp_path)
    assert parts(answer)[:5] == [
        ("sender", "publish_call", "/talker", 2),
        ("transport", "on_the_way", "/chatter", 5_000 - 502),
        ("transport", "wake_up", None, 20),
        ("transport", "middleware", MIDDLEWARE, 80),
        ("reader", "wake_up", None, 10),
    ]


@pytest.mark.parametrize(("state", "words"), [("stopped", "stopped by a signal"), ("traced", "held by a debugger")])
def test_a_reader_that_is_stopped_waits_for_nobody_s_message(tmp_path: Path, state: str, words: str) -> None:
    """The signal wakes both threads, which leave their CPUs at once; the next one lets them go on."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    for thread, cpu in ((system.listening, 1), (system.receiving, 2)):
        system.wake(-90, thread, by_cpu=3, cpu=cpu)
        system.switch(-80, cpu, 0, thread)
        system.switch(-70, cpu, thread, 0, state)
    system.kernel().switch(-60 + BASE, 3, HOG, 0)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.wake(50_000, system.receiving, by_cpu=3, cpu=2)
    system.switch(50_050, 2, 0, system.receiving)
    system.wake(50_060, system.listening, by_cpu=3, cpu=1)
    system.switch(50_070, 1, 0, system.listening)
    system.switch(50_080, 1, system.listening, 0)
    system.wake(50_200, system.listening, by_cpu=2, cpu=1)
    system.switch(50_300, 2, system.receiving, 0)
    system.switch(50_400, 1, 0, system.listening)
    system.wait(-15_000, 50_450)
    system.listen(sent, 50_500)
    answer = system.why(tmp_path)
    assert parts(answer)[:4] == [
        ("sender", "publish_call", "/talker", 2),
        ("transport", state, MIDDLEWARE, 50_000 - 502),
        ("transport", "wake_up", None, 50),
        ("transport", "middleware", MIDDLEWARE, 150),
    ]
    assert answer.section("messages").frame["main"].to_list() == [f"listener (pid 20) {words}"]
    assert answer.section("totals").frame["pids"].to_list()[0] == "20"


def test_an_uninterruptible_sleep_of_who_is_to_receive_is_nothing_on_the_way(tmp_path: Path) -> None:
    """A page that is read in, or a frozen cgroup: no message ends it."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    system.wake(-90, system.receiving, by_cpu=3, cpu=2)
    system.switch(-80, 2, 0, system.receiving)
    system.switch(-70, 2, system.receiving, 0, "uninterruptible")
    system.kernel().switch(-60 + BASE, 3, HOG, 0)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.wake(50_000, system.receiving, by_cpu=3, cpu=2)
    system.switch(50_050, 2, 0, system.receiving)
    system.wake(50_200, system.listening, by_cpu=2, cpu=1)
    system.switch(50_300, 2, system.receiving, 0)
    system.switch(50_400, 1, 0, system.listening)
    system.wait(-15_000, 50_450)
    system.listen(sent, 50_500)
    answer = system.why(tmp_path)
    assert parts(answer)[:4] == [
        ("sender", "publish_call", "/talker", 2),
        ("transport", "uninterruptible", MIDDLEWARE, 50_000 - 502),
        ("transport", "wake_up", None, 50),
        ("transport", "middleware", MIDDLEWARE, 150),
    ]
    assert answer.section("parts").frame.filter(pl.col("cause") == "uninterruptible")["reason"].to_list() == [DISK]


@pytest.mark.parametrize("migrations", [True, False])
def test_a_preempted_thread_whose_cpu_idles_is_held_back(tmp_path: Path, migrations: bool) -> None:
    """By a quota of its cgroup. Without migration events, whether it was moved is unknown."""
    system = System()
    if migrations:
        system.kernel().migrate(BASE - 30_000, 0, HOG, 0, 1)
    system.switch(-500, 1, 0, HOG)
    sent = sent_and_received(system)
    system.switch(5_000, 1, HOG, system.listening, "running")
    system.switch(5_050, 1, system.listening, HOG, "running")
    system.switch(6_000, 1, HOG, 0)
    system.switch(40_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE + 40_100)
    system.listening.execute(BASE + 40_150, system.subscription)
    system.listen(sent, 40_200)
    answer = system.why(tmp_path)
    assert by_cause(answer)["cpu"] == 4_100 + 950
    if migrations:
        assert by_cause(answer)["held_back"] == 34_000
        assert answer.section("messages").frame["main"].to_list() == ["listener (pid 20) held back from an idle CPU"]
    else:
        moved = answer.section("parts").frame.filter(pl.col("reason") == NO_MIGRATIONS)
        assert moved.select("cause", "part_ns").rows() == [("unknown", 34_000)]


def test_a_sender_that_is_stopped_did_not_sleep_past_its_tick(tmp_path: Path) -> None:
    system = System()
    system.wake(-9_500, system.talking, by_cpu=3, cpu=0)
    system.switch(-9_400, 0, 0, system.talking)
    system.switch(-9_300, 0, system.talking, 0, "stopped")
    system.wake(-200, system.talking, by_cpu=3, cpu=0)
    system.kernel().switch(-190 + BASE, 3, HOG, 0)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk(due=-5_000)
    system.switch(800, 0, system.talking, 0)
    system.listen(sent, 5_200)
    found = parts(system.why(tmp_path))
    assert found[0] == ("sender", "stopped", "talker (talker 10)", 5_000 - 200)
    assert {cause for _, cause, _, _ in found} >= {"stopped"} and "timer_late" not in {c for _, c, _, _ in found}


@pytest.mark.parametrize("bystander", ["another process", "a callback of the listener"])
def test_who_was_interrupted_is_not_followed(tmp_path: Path, bystander: str) -> None:
    """The interrupt that ends a delay finds an unrelated thread on its CPU."""
    system = System()
    other = system.listener.thread(22, "worker", cpu=2)
    task = HOG if bystander == "another process" else other
    system.switch(-300, 2, 0, task)
    if task is other:
        other.at(BASE - 200).callback_start(callback=system.slow.callback, is_intra_process=0)
        other.at(BASE + 9_000).callback_end(callback=system.slow.callback)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.wake(5_000, system.listening, by_cpu=2, cpu=1)
    system.switch(5_010, 1, 0, system.listening)
    system.wait(-15_000, 5_150)
    system.listen(sent, 5_200)
    system.switch(9_500, 2, task, 0)
    assert parts(system.why(tmp_path))[1] == ("transport", "on_the_way", "/chatter", 5_000 - 502)


def test_a_receive_thread_that_is_starved_is_cpu_time_of_who_had_its_cpu(tmp_path: Path) -> None:
    system = System()
    system.switch(-500, 2, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(800, 0, system.talking, 0)
    system.switch(4_600, 2, HOG, system.receiving, "running")
    system.wake(4_700, system.listening, by_cpu=2, cpu=1)
    system.switch(4_710, 1, 0, system.listening)
    system.wait(-15_000, 4_750)
    system.listen(sent, 4_800)
    answer = system.why(tmp_path)
    assert parts(answer)[1:4] == [
        ("transport", "publish_call", "/talker", 98),
        ("transport", "cpu", "hog (99)", 4_000),
        ("transport", "middleware", MIDDLEWARE, 100),
    ]
    part = answer.section("parts").frame.filter(pl.col("cause") == "cpu").to_dicts()[0]
    assert (part["cpu"], part["of_thread"], part["by_process"]) == (2, "recv", "hog")


def test_the_kernel_s_network_thread_is_followed(tmp_path: Path) -> None:
    """The message waits for ksoftirqd, which waits for its CPU."""
    system = System()
    softirq: Task = (15, "ksoftirqd/2")
    system.asleep(softirq, 2)
    system.switch(-500, 2, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.kernel().waking(BASE + 600, 0, softirq, target_cpu=2)
    system.kernel().wakeup(BASE + 600, 0, softirq, target_cpu=2)
    system.switch(800, 0, system.talking, 0)
    system.switch(3_600, 2, HOG, softirq, "running")
    system.wake(3_700, system.listening, by_cpu=2, cpu=1)
    system.switch(3_710, 1, 0, system.listening)
    system.switch(3_800, 2, softirq, 0)
    system.wait(-15_000, 3_750)
    system.listen(sent, 3_800)
    assert parts(system.why(tmp_path))[1:4] == [
        ("transport", "publish_call", "/talker", 98),
        ("transport", "cpu", "hog (99)", 3_000),
        ("transport", "on_the_way", "/chatter", 100),
    ]


def test_who_woke_it_is_not_followed_where_nobody_knows_whose_thread_that_is(tmp_path: Path) -> None:
    system = System()
    stranger: Task = (77, "recv")
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.switch(900, 2, 0, stranger)
    system.wake(3_700, system.listening, by_cpu=2, cpu=1)
    system.switch(3_710, 1, 0, system.listening)
    system.switch(3_800, 2, stranger, 0)
    system.wait(-15_000, 3_750)
    system.listen(sent, 3_800)
    answer = system.why(tmp_path)
    assert parts(answer)[1] == ("transport", "transport", "/chatter", 3_700 - 502)
    assert NO_PROCESS in answer.section("parts").frame["reason"].to_list()


def test_a_way_of_too_many_threads_is_unknown_before_the_last_of_them(tmp_path: Path) -> None:
    system = System()
    chain = [system.listener.thread(30 + n, f"stage {n}", cpu=2) for n in range(MAX_HOPS + 2)]
    for thread in chain:
        system.kernel().fork(BASE - 40_000, 1, system.listening, thread, child_pid=20)
        system.asleep(thread, 2) if thread is chain[0] else None
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, chain[0], by_cpu=0, cpu=2)
    system.switch(800, 0, system.talking, 0)
    at = 1_000
    system.switch(at, 2, 0, chain[0])
    for one, other in itertools.pairwise(chain):
        system.switch(at + 10, 3, 0, other)
        system.switch(at + 20, 3, other, 0)
        system.wake(at + 50, other, by_cpu=2, cpu=2)
        at += 100
        system.switch(at, 2, one, other)
    system.wake(at + 50, system.listening, by_cpu=2, cpu=1)
    system.switch(at + 60, 1, 0, system.listening)
    system.switch(at + 90, 2, chain[-1], 0)
    system.wait(-15_000, at + 70)
    system.listen(sent, at + 80)
    answer = system.why(tmp_path)
    found = parts(answer)
    assert found[1][:3] == ("transport", "unknown", TOO_MANY)
    assert sum(cause == "middleware" for _, cause, _, _ in found) == MAX_HOPS - 1


# The sender -----------------------------------------------------------------------------------------------------------


def quickly_heard(system: System, sent: object, at: int) -> None:
    """The talker wakes the listener itself at that time, and all goes well."""
    system.wake(at, system.receiving, by_cpu=0, cpu=2)
    system.switch(at + 1, 2, 0, system.receiving)
    system.wake(at + 10, system.listening, by_cpu=2, cpu=1)
    system.switch(at + 11, 1, 0, system.listening)
    system.switch(at + 20, 2, system.receiving, 0)
    system.wait(-15_000, at + 12)
    system.listen(sent, at + 15)


def test_a_timer_that_waits_for_its_cpu_is_late_by_who_had_it(tmp_path: Path) -> None:
    system = System()
    system.switch(-6_000, 0, 0, HOG)
    system.talking.wait_for_work(BASE - 15_000)
    system.wake(-5_000, system.talking, by_cpu=0, cpu=0)
    system.switch(-100, 0, HOG, system.talking, "running")
    system.talking.get_next_ready(BASE - 50)
    sent = system.talk(due=-5_010)
    quickly_heard(system, sent, 600)
    answer = system.why(tmp_path)
    assert parts(answer)[:6] == [
        ("sender", "timer_late", TIMER, 10),
        ("sender", "cpu", "hog (99)", 4_900),
        ("sender", "executor", "talker (talker 10)", 50),
        ("sender", "executor", "talker (talker 10)", 50),
        ("sender", "own_work", TIMER, 500),
        ("sender", "publish_call", "/talker", 2),
    ]
    message = answer.section("messages").frame.to_dicts()[0]
    assert (message["begin"], message["begin_ns"], message["total_ns"] - message["latency_ns"]) == (
        "due", BASE - 5_010, 5_510,
    )  # fmt: skip


def test_a_timer_behind_another_callback_of_its_executor(tmp_path: Path) -> None:
    system = System()
    system.switch(-9_000, 0, 0, system.talking)
    system.talking.callback(system.other_timer, BASE - 8_000, BASE - 1_000)
    system.talking.get_next_ready(BASE - 900)
    sent = system.talk(due=-5_000)
    quickly_heard(system, sent, 600)
    assert parts(system.why(tmp_path))[:3] == [
        ("sender", "callback_ahead", "/talker timer 7 s", 4_000),
        ("sender", "executor", "talker (talker 10)", 100),
        ("sender", "executor", "talker (talker 10)", 900),
    ]


def test_a_timer_that_slept_past_its_tick(tmp_path: Path) -> None:
    system = System()
    system.talking.wait_for_work(BASE - 15_000)
    system.wake(-1_000, system.talking, by_cpu=0, cpu=0)
    system.switch(-990, 0, 0, system.talking)
    system.talking.get_next_ready(BASE - 900)
    sent = system.talk(due=-4_000)
    quickly_heard(system, sent, 600)
    assert parts(system.why(tmp_path))[:2] == [
        ("sender", "timer_late", TIMER, 3_000),
        ("sender", "wake_up", None, 10),
    ]


def test_what_ran_between_the_tick_and_a_sleep_past_it_is_ahead_of_the_timer(tmp_path: Path) -> None:
    """It is asleep only from when it fell asleep on; a lock that it waits for meanwhile is no sleep past the tick."""
    system = System()
    system.switch(-9_000, 0, 0, system.talking)
    system.talking.execute(BASE - 8_500, system.other_timer)
    system.talking.callback(system.other_timer, BASE - 8_000, BASE - 5_000)
    system.switch(-4_900, 0, system.talking, 0)
    system.wake(-4_700, system.talking, by_cpu=0, cpu=0)
    system.switch(-4_690, 0, 0, system.talking)
    system.talking.wait_for_work(BASE - 4_500)
    system.switch(-4_400, 0, system.talking, 0)
    system.wake(-1_000, system.talking, by_cpu=0, cpu=0)
    system.switch(-990, 0, 0, system.talking)
    system.talking.get_next_ready(BASE - 900)
    sent = system.talk(due=-7_000)
    quickly_heard(system, sent, 600)
    assert parts(system.why(tmp_path))[:7] == [
        ("sender", "callback_ahead", "/talker timer 7 s", 2_000),
        ("sender", "executor", "talker (talker 10)", 100 + 190),
        ("sender", "blocked", "talker", 200),
        ("sender", "wake_up", None, 10),
        ("sender", "executor", "talker (talker 10)", 100 + 90),
        ("sender", "timer_late", TIMER, 3_400),
        ("sender", "wake_up", None, 10),
    ]


def test_the_sender_s_own_work_without_what_kept_it_from_running(tmp_path: Path) -> None:
    system = System()
    system.switch(-100, 0, 0, system.talking)
    system.switch(1_000, 0, system.talking, HOG, "running")
    system.switch(2_500, 0, HOG, system.talking, "running")
    system.switch(3_000, 0, system.talking, 0)
    system.wake(3_700, system.talking, by_cpu=0, cpu=0)
    system.switch(3_710, 0, 0, system.talking)
    sent = system.talk(0, 6_000, 7_000, due=0)
    quickly_heard(system, sent, 6_100)
    found = parts(system.why(tmp_path))
    assert found[:4] == [
        ("sender", "own_work", TIMER, 6_000 - 1_500 - 710),
        ("sender", "cpu", "hog (99)", 1_500),
        ("sender", "blocked", TIMER, 700),
        ("sender", "wake_up", None, 10),
    ]


def test_a_slow_publish_call(tmp_path: Path) -> None:
    system = System()
    system.switch(-100, 0, 0, system.talking)
    system.talking.at(BASE).callback_start(callback=system.timer.callback, is_intra_process=0)
    sent = system.talking.publish(system.publisher, BASE + 500, rcl_at=BASE + 510, rmw_at=BASE + 4_500)
    system.talking.at(BASE + 9_000).callback_end(callback=system.timer.callback)
    quickly_heard(system, sent, 5_600)
    assert parts(system.why(tmp_path))[:2] == [
        ("sender", "publish_call", "/talker", 4_000),
        ("transport", "publish_call", "/talker", 1_100),
    ]


def test_a_wake_up_by_the_publisher_s_thread_after_its_publish_call_is_no_part_of_it(tmp_path: Path) -> None:
    """After the callback ended its thread was only interrupted."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(5_000, system.receiving, by_cpu=0, cpu=2)
    system.switch(5_010, 2, 0, system.receiving)
    system.wake(5_020, system.listening, by_cpu=2, cpu=1)
    system.switch(5_030, 1, 0, system.listening)
    system.wait(-15_000, 5_040)
    system.listen(sent, 5_100)
    assert parts(system.why(tmp_path))[1] == ("transport", "on_the_way", "/chatter", 5_000 - 502)


# When a tick was due --------------------------------------------------------------------------------------------------


def periodic(late_ns: list[int], period_ns: int = 100_000, *, scheduler: bool = False) -> System:
    """One message per period, whose timer starts so late."""
    system = System(scheduler=scheduler, period_ns=period_ns)
    for number, late_by in enumerate(late_ns):
        start = number * period_ns + late_by
        sent = system.talk(start, start + 500, start + 700)
        system.listen(sent, start + 1_000)
    return system


def test_a_due_time_that_is_not_recorded_is_the_latest_point_of_the_lower_envelope_s_grid(tmp_path: Path) -> None:
    late_by = [40 + 7 * (n % 5) for n in range(30)]
    late_by[13] = 60_000
    answer = periodic(late_by).why(tmp_path)
    frame = answer.section("messages").frame.sort("started_ns")
    assert frame["begin"].unique().to_list() == ["due_estimated"]
    assert frame["begin_ns"].to_list() == [BASE + 40 + n * 100_000 for n in range(30)]
    assert any("30 messages" in note and "estimated" in note for note in answer.section("messages").notes)


@pytest.mark.parametrize(
    "late_by",
    [
        [40] * 19,  # too few
        [(n * 37) % 100 * 1_000 for n in range(60)],  # starts everywhere
        [40 + n * 1_000 for n in range(60)],  # the envelope moves
    ],
    ids=["few", "everywhere", "moving"],
)
def test_a_grid_that_is_not_credible_is_not_used(tmp_path: Path, late_by: list[int]) -> None:
    answer = periodic(late_by).why(tmp_path)
    frame = answer.section("messages").frame
    assert frame["begin"].unique().to_list() == ["published_due_unknown"]
    assert (frame["begin_ns"] == frame["published_ns"]).all()
    assert any("when the tick was due is not known" in note for note in answer.section("messages").notes)


# Intra-process, several threads, nested executors ---------------------------------------------------------------------


def test_a_message_within_a_process_waits_in_the_ring_buffer(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("app", pid=10)
    node = process.node("app")
    publisher = process.publisher(node, "/chatter")
    subscription = process.subscription(node, "/chatter", intra_process=True)
    slow = process.subscription(node, "/slow")
    sender, reader = process.thread(11, "sender"), process.thread(12, "reader", cpu=1)
    kernel = made.kernel()
    kernel.switch(BASE - 2_000, 0, 0, sender)
    kernel.switch(BASE - 2_000, 1, 0, reader)
    reader.get_next_ready(BASE - 1_500)
    reader.callback(slow, BASE - 1_000, BASE + 5_000)
    sender.intra_publish(publisher, [subscription], BASE)
    kernel.switch(BASE + 50, 0, sender, 0)
    reader.get_next_ready(BASE + 5_100)
    reader.wait_for_work(BASE + 5_110)
    reader.get_next_ready(BASE + 5_120)
    reader.dequeue(subscription, BASE + 5_200)
    assert subscription.ring is not None
    reader.callback(subscription.ring, BASE + 5_300, BASE + 5_400, intra=True)
    kernel.switch(BASE + 6_000, 1, reader, 0)
    answer = why(opened(made, tmp_path), ALL)
    assert_conserved(answer)
    found = parts(answer)
    assert found[0] == ("sender", "publish_call", "/app", 1)
    assert found[1] == ("reader", "callback_ahead", "/app /slow", 4_999)
    assert {cause for _, cause, _, _ in found[2:]} == {"executor"}


def test_a_publish_call_that_calls_the_callback_itself_is_one(tmp_path: Path) -> None:
    """An executor that calls within the publication: the time until then is the publish call's."""
    system = System()
    listener = system.talker.subscription(system.timer.node, "/chatter")
    system.switch(-100, 0, 0, system.talking)
    system.talking.at(BASE).callback_start(callback=system.timer.callback, is_intra_process=0)
    sent = system.talking.publish(system.publisher, BASE + 500, rcl_at=BASE + 500, rmw_at=BASE + 510)
    system.talking.take(listener, sent, BASE + 900)
    system.talking.callback(listener, BASE + 1_000, BASE + 1_100)
    system.talking.at(BASE + 1_200).callback_end(callback=system.timer.callback)
    system.switch(2_000, 0, system.talking, 0)
    assert [(stage, cause, ns) for stage, cause, _, ns in parts(system.why(tmp_path))] == [
        ("sender", "publish_call", 10), ("transport", "publish_call", 390), ("reader", "executor", 1),
        ("reader", "executor", 99),
    ]  # fmt: skip


def test_a_thread_that_waits_for_its_executor_is_followed_to_the_one_that_had_it(tmp_path: Path) -> None:
    """One thread of an executor waits for work; the other for it. The first takes something else and lets the second go
    on: what the first waited for was the receiving thread."""
    system = System()
    second = system.listener.thread(22, "listener-2", cpu=3)
    system.asleep(second, 3)
    second.get_next_ready(BASE - 30_000)
    second.execute(BASE - 29_000, system.slow)
    sent = sent_and_received(system)  # wakes the first at 900
    system.switch(1_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE + 1_050)
    system.wake(1_200, second, by_cpu=1, cpu=3)
    system.listening.callback(system.slow, BASE + 1_300, BASE + 8_000)
    system.switch(1_500, 3, 0, second)
    second.get_next_ready(BASE + 1_600)
    system.listen(sent, 1_700, by=second)
    system.switch(9_000, 1, system.listening, 0)
    assert parts(system.why(tmp_path)) == [
        *BEFORE_THE_LISTENER,
        ("reader", "wake_up", None, 100),
        ("reader", "executor", EXECUTOR, 50),
        ("reader", "executor", EXECUTOR, 150),
        ("reader", "wake_up", None, 300),
        ("reader", "executor", "listener (listener-2 22)", 100),
        ("reader", "executor", "listener (listener-2 22)", 100),
        ("reader", "executor", "listener (listener-2 22)", 10),
        ("reader", "executor", "listener (listener-2 22)", 90),
    ]


def test_a_callback_of_the_same_group_on_another_thread_is_ahead(tmp_path: Path) -> None:
    """The end of that callback, seen by its thread's wake-up, lets the message go."""
    system = System()
    second = system.listener.thread(22, "listener-2", cpu=3)
    system.switch(-5_000, 3, 0, second)
    second.get_next_ready(BASE - 4_500)
    second.callback(system.slow, BASE - 4_000, BASE + 6_000)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.wake(6_100, system.listening, by_cpu=3, cpu=1)
    system.switch(6_110, 1, 0, system.listening)
    second.get_next_ready(BASE + 6_200)
    system.switch(6_300, 3, second, 0)
    system.wait(-15_000, 6_150)
    system.listen(sent, 6_200)
    found = parts(system.why(tmp_path))
    assert found[1] == ("reader", "callback_ahead", SLOW, 6_000 - 502)
    assert found[2] == ("reader", "executor", "listener (listener-2 22)", 100)


def test_a_lock_that_the_executor_waits_for_hides_no_callback_ahead(tmp_path: Path) -> None:
    """The receiving thread has the lock of the middleware as the executor takes: that it lets go of it is not how the
    message came, which had been there all the time that the callback ran."""
    system = System()
    system.switch(-5_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE - 4_800)
    system.listening.execute(BASE - 4_500, system.slow)
    system.listening.callback(system.slow, BASE - 4_000, BASE + 6_000)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(650, 2, 0, system.receiving)
    system.switch(800, 0, system.talking, 0)
    system.switch(900, 2, system.receiving, 0)
    system.wake(6_050, system.receiving, by_cpu=2, cpu=2)  # for another message
    system.switch(6_060, 2, 0, system.receiving)
    system.switch(6_100, 1, system.listening, 0)
    system.wake(6_300, system.listening, by_cpu=2, cpu=1)
    system.switch(6_310, 1, 0, system.listening)
    system.switch(6_400, 2, system.receiving, 0)
    system.listening.execute(BASE + 6_450, system.subscription)
    system.listen(sent, 6_500)
    system.switch(9_000, 1, system.listening, 0)
    assert parts(system.why(tmp_path)) == [
        ("sender", "publish_call", "/talker", 2),
        ("reader", "callback_ahead", SLOW, 6_000 - 502),
        ("reader", "executor", EXECUTOR, 100 + 190),
        ("reader", "blocked", "listener", 200),
        ("reader", "wake_up", None, 10),
        ("reader", "executor", EXECUTOR, 10),
        ("reader", "executor", EXECUTOR, 90),
    ]


def test_within_a_callback_that_spins_its_executor_is_no_callback_ahead(tmp_path: Path) -> None:
    system = System()
    system.switch(-4_000, 1, 0, system.listening)
    system.listening.execute(BASE - 3_500, system.slow)
    system.listening.at(BASE - 3_000).callback_start(callback=system.slow.callback, is_intra_process=0)
    system.listening.get_next_ready(BASE - 2_000)
    system.listening.wait_for_work(BASE - 1_900)
    system.switch(-1_800, 1, system.listening, 0)
    sent = sent_and_received_by_nested(system)
    system.switch(1_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE + 1_050)
    system.listening.execute(BASE + 1_100, system.subscription)
    system.listen(sent, 1_200)
    system.listening.at(BASE + 5_000).callback_end(callback=system.slow.callback)
    system.switch(6_000, 1, system.listening, 0)
    assert parts(system.why(tmp_path)) == [
        *BEFORE_THE_LISTENER,
        ("reader", "wake_up", None, 100),
        ("reader", "executor", EXECUTOR, 50),
        ("reader", "executor", EXECUTOR, 50),
        ("reader", "executor", EXECUTOR, 100),
        ("reader", "executor", EXECUTOR, 10),
        ("reader", "executor", EXECUTOR, 90),
    ]


def sent_and_received_by_nested(system: System) -> object:
    """As `sent_and_received`, whose wait_for_work is another one here."""
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, system.receiving, by_cpu=0, cpu=2)
    system.switch(650, 2, 0, system.receiving)
    system.switch(800, 0, system.talking, 0)
    system.wake(900, system.listening, by_cpu=2, cpu=1)
    system.switch(950, 2, system.receiving, 0)
    return sent


def test_what_an_executor_did_not_find_was_on_its_way(tmp_path: Path) -> None:
    """The reader is busy all the time. It looked for work at 4 000, and the message was not there: only what came then
    was ahead of it."""
    system = System()
    system.switch(-5_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE - 4_500)
    system.listening.callback(system.slow, BASE - 4_000, BASE + 3_800)
    system.listening.get_next_ready(BASE + 3_850)
    system.wait(3_900, 4_000)
    system.listening.callback(system.slow, BASE + 4_100, BASE + 6_000)
    system.listening.get_next_ready(BASE + 6_050)
    system.wait(6_100, 6_200)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.listen(sent, 6_300)
    system.switch(7_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    assert by_cause(answer) == {"publish_call": 2, "on_the_way": 4_000 - 502, "callback_ahead": 1_900, "executor": 500}
    assert parts(answer)[1] == ("transport", "on_the_way", "/chatter", 4_000 - 502)


def test_a_message_behind_one_of_its_subscription_may_have_been_there(tmp_path: Path) -> None:
    """Taken in consecutive rounds: nothing says that the second was not there when the first was found."""
    system = System()
    system.switch(-5_000, 1, 0, system.listening)
    system.listening.get_next_ready(BASE - 4_500)
    system.listening.callback(system.slow, BASE - 4_000, BASE + 3_800)
    system.wait(3_900, 4_000)
    system.switch(-100, 0, 0, system.talking)
    first = system.talk(0, 500, 600)
    second = system.talk(700, 800, 900)
    system.switch(1_000, 0, system.talking, 0)
    system.listen(first, 4_100)
    system.listening.get_next_ready(BASE + 4_350)
    system.wait(4_400, 4_500)
    system.listen(second, 4_600)
    system.switch(5_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    found = parts(answer, 1)
    assert found[1] == ("reader", "callback_ahead", SLOW, 3_800 - 802)
    assert ("reader", "callback_ahead", "/listener /chatter", 100) in found
    assert all(stage == "reader" for stage, *_ in found[1:])


def test_the_docs_have_every_cause_as_it_is_declared() -> None:
    told = (ROOT / "docs" / "tracing.md").read_text().partition("| cause | the thread whose time it was | who |\n")[2]
    rows = [re.split(r" ?\| ", line.strip("|")) for line in told.partition("\n\n")[0].splitlines()[1:]]
    assert [tuple(cell.strip() for cell in row) for row in rows] == [
        (cause.name, cause.help, cause.who.value) for cause in CAUSES.values()
    ]


# What cannot be known -------------------------------------------------------------------------------------------------


def test_without_scheduler_transport_and_wake_up_are_one_part_and_say_so(tmp_path: Path) -> None:
    system = System(scheduler=False)
    system.listening.get_next_ready(BASE - 9_000)
    system.listening.callback(system.slow, BASE - 8_000, BASE + 2_000)
    system.wait(2_100, 5_000)
    sent = system.talk(due=-1_000)
    system.listening.execute(BASE + 5_100, system.subscription)
    system.listen(sent, 5_200)
    answer = system.why(tmp_path)
    assert parts(answer) == [
        ("sender", "unknown", ASLEEP_OR_WAITING, 1_000),
        ("sender", "own_work", TIMER, 500),
        ("sender", "publish_call", "/talker", 2),
        ("reader", "callback_ahead", SLOW, 1_498),
        ("reader", "executor", EXECUTOR, 100),
        ("transport", "transport", "/chatter", 2_900),
        ("reader", "executor", EXECUTOR, 100),
        ("reader", "executor", EXECUTOR, 100),
        ("reader", "executor", EXECUTOR, 10),
        ("reader", "executor", EXECUTOR, 90),
    ]
    frame = answer.section("parts").frame
    assert frame.filter(pl.col("cause") == "transport")["reason"].str.contains("one part").all()
    assert frame.filter(pl.col("cause") == "callback_ahead")["reason"].str.contains("wall time").all()
    assert any("transport and wake-up are one part" in note for note in answer.section("messages").notes)


def test_a_cpu_that_another_thread_leaves_unseen_was_not_idle(tmp_path: Path) -> None:
    """By what is recorded it idled, until it is left by a thread that was not seen to come."""
    system = System()
    system.switch(-500, 1, 0, HOG)
    sent = sent_and_received(system)
    system.switch(2_000, 1, HOG, 0)
    system.switch(5_000, 1, (98, "unseen"), system.listening)
    system.listening.get_next_ready(BASE + 5_100)
    system.listening.execute(BASE + 5_150, system.subscription)
    system.listen(sent, 5_200)
    found = system.why(tmp_path)
    held_up = found.section("parts").frame.filter(pl.col("reason") == NO_HOLDER)
    assert held_up.select("cause", "part_ns").rows() == [("unknown", 3_000)]


def test_what_the_scheduler_lost_is_unknown_and_no_more_than_that(tmp_path: Path) -> None:
    system = System()
    system.switch(-500, 1, 0, HOG)
    sent = sent_and_received(system)
    system.kernel().discard(BASE + 2_000, 5, cpu=1)
    system.switch(3_000, 1, HOG, HOG, "running")
    system.switch(5_000, 1, HOG, system.listening, "running")
    system.listening.get_next_ready(BASE + 5_100)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    found = system.why(tmp_path)
    times = by_cause(found)
    assert times["unknown"] > 0
    assert times.get("cpu", 0) < 4_100
    assert "scheduler events are missing there" in found.section("parts").frame["reason"].to_list()
    assert found.section("why").frame["unknown_ns"].to_list() == [times["unknown"]]


def test_a_message_across_lost_events_of_user_space_is_left_out_and_counted(tmp_path: Path) -> None:
    system = System()
    sent = sent_and_received(system)
    system.switch(1_000, 1, 0, system.listening)
    system.trace.user_space().discard(BASE + 1_500, 3, cpu=1)
    system.listening.get_next_ready(BASE + 2_000)
    system.listen(sent, 2_100)
    answer = system.why(tmp_path)
    assert answer.section("messages").frame.is_empty()
    assert answer.section("why").frame["messages"].to_list() == [0]


def test_states_that_begin_with_an_event_of_user_space_are_unknown(tmp_path: Path) -> None:
    system = System()
    sent = sent_and_received(system)
    # The switch to the listener was not recorded; that away from it was.
    system.listening.get_next_ready(BASE + 1_100)
    system.listen(sent, 1_200)
    system.switch(2_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    frame = answer.section("parts").frame.filter(pl.col("cause") == "unknown")
    assert frame["reason"].unique().sort().to_list() == [
        "scheduler events are missing there", "the switch to the thread was not recorded",
    ]  # fmt: skip
    assert frame["part_ns"].sum() >= 1_300 - 1_100


def test_without_wake_ups_what_slept_is_transport_as_a_whole(tmp_path: Path) -> None:
    system = System()
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.switch(5_000, 1, 0, system.listening)
    system.wait(-15_000, 5_150)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    assert parts(answer)[1] == ("transport", "transport", "/chatter", 5_000 - 502)
    assert "waiting for a CPU is in it" in str(answer.section("parts").frame["reason"].to_list()[1])


def test_without_sched_waking_an_idle_waker_may_be_anybody(tmp_path: Path) -> None:
    system = System()
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.kernel().wakeup(BASE + 5_000, 1, system.listening)
    system.switch(5_010, 1, 0, system.listening)
    system.wait(-15_000, 5_150)
    system.listen(sent, 5_200)
    answer = system.why(tmp_path)
    assert parts(answer)[1] == ("transport", "transport", "/chatter", 5_000 - 502)
    assert any("sched_waking" in note for note in answer.section("messages").notes)


def test_between_hosts_transport_says_that_it_has_two_clocks(tmp_path: Path) -> None:
    system = System(hosts=("base", "robot"))
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.wake(5_000, system.listening, by_cpu=1, cpu=1)
    system.switch(5_010, 1, 0, system.listening)
    system.wait(-15_000, 5_150)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    frame = answer.section("parts").frame
    transport = frame.filter(pl.col("stage") == "transport")
    assert transport["cause"].cast(pl.String).to_list() == ["on_the_way"]
    assert transport["reason"].to_list() == ["between hosts: contains the difference of their clocks"]
    assert frame.filter(pl.col("stage") != "transport")["reason"].null_count() == frame.height - 1
    assert any("clocks" in note for note in answer.section("messages").notes)


def test_holders_outside_of_a_filtered_process_tree_are_named_all_the_same(tmp_path: Path) -> None:
    """The recorder keeps the switches of a CPU only while a thread of the tree could run there: the hog is seen to take
    over, but not when it began."""
    system = System()
    sent = sent_and_received(system)
    system.switch(1_000, 1, (98, "other"), HOG, "running")
    system.switch(5_000, 1, HOG, system.listening, "running")
    system.listening.get_next_ready(BASE + 5_100)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    assert ("reader", "cpu", "hog (99)", 4_000) in parts(system.why(tmp_path))


def test_threads_that_wake_each_other_at_once_end_the_search(tmp_path: Path) -> None:
    system = System()
    sent = sent_and_received(system)
    # The receiving thread is woken by the listener at exactly the time at which it wakes it.
    system.wake(900, system.receiving, by_cpu=1, cpu=2)
    system.switch(900, 1, 0, system.listening)
    system.listening.get_next_ready(BASE + 1_000)
    system.listen(sent, 1_100)
    assert system.why(tmp_path).section("messages").frame.height == 1


# Which messages -------------------------------------------------------------------------------------------------------


def test_what_is_late_is_said_by_a_threshold_a_number_or_a_quantile(tmp_path: Path) -> None:
    trace = opened(periodic([10 * n for n in range(15)]).trace, tmp_path)
    totals = why(trace, ALL).section("messages").frame["total_ns"]
    assert totals.to_list() == [600] * 15  # no grid: from the publication
    late_by = [0] * 20
    late_by[3], late_by[11] = 9_000, 20_000
    trace = opened(periodic(late_by).trace, tmp_path / "two")
    for selection, expected in (
        (Selection(later_than_ns=5_000), 2),
        (Selection(later_than_ns=20_000), 1),
        (Selection(slowest=3), 3),
        (Selection(slowest=50), 20),
        (Selection(per_mille=900), 3),  # the 18th smallest of 20 and what is longer
        (Selection(), 1),
    ):
        found = why(trace, selection)
        assert found.section("messages").frame.height == expected, selection
        assert found.section("why").frame["late"].to_list() == [expected]
    with pytest.raises(ValueError, match="one of"):
        Selection(slowest=1, per_mille=900)


def test_topics_and_nodes_choose_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    trace = opened(periodic([0] * 3).trace, tmp_path)
    for scope in (Scope.of(trace, topics=("/chatter",)), Scope.of(trace, nodes=("/listener",))):
        assert why(trace, Selection(later_than_ns=0, scope=scope)).section("messages").frame.height == 3
    with pytest.raises(BadInput, match=r"no topic '/x' .* there are /chatter"):
        Scope.of(trace, topics=("/x",))
    with pytest.raises(BadInput, match="node '/y'"):
        Scope.of(trace, nodes=("/y",))
    of_listener = Selection(slow_callbacks=True, per_mille=0, scope=Scope.of(trace, nodes=("/listener",)))
    assert set(why(trace, of_listener).section("callbacks").frame["node"]) == {"/listener"}


def test_limits_by_topic_leave_other_topics_alone(tmp_path: Path) -> None:
    late_by = [0] * 20
    late_by[3], late_by[11] = 9_000, 20_000
    trace = opened(periodic(late_by).trace, tmp_path)

    def late(limits: dict[str, int] | None) -> int:
        return why(trace, Selection(later_than_by_topic=limits)).section("messages").frame.height

    assert [late(limits) for limits in ({"/chatter": 5_000, "/absent": 1}, {"/absent": 1}, None)] == [2, 0, 1]


def test_totals_are_those_of_all_messages(tmp_path: Path) -> None:
    system = System()
    for begin, until in ((0, 5_000), (30_000, 37_000)):
        system.switch(begin - 500, 1, 0, HOG)
        sent = sent_and_received(system, begin)
        system.switch(until, 1, HOG, system.listening, "running")
        system.listening.get_next_ready(BASE + until + 100)
        system.listen(sent, until + 200)
        system.switch(until + 1_000, 1, system.listening, 0)
    answer = system.why(tmp_path)
    row = answer.section("totals").frame.to_dicts()[0]
    assert (row["cause"], row["who"], row["messages"], row["total_ns"]) == ("cpu", "hog", 2, 4_100 + 6_100)
    assert (row["each_p50_ns"], row["each_max_ns"]) == (4_100, 6_100)
    assert answer.section("why").frame["late"].to_list() == [2]
    assert answer.section("why").title.startswith("Of 2 late messages (longer than 0 ns; 2 in all) 2 waited for CPU 1")


# Slow callbacks -------------------------------------------------------------------------------------------------------


def test_a_slow_callback_is_divided_into_running_waiting_and_sleeping(tmp_path: Path) -> None:
    system = System()
    system.switch(-100, 1, 0, system.listening)
    system.listening.callback(system.slow, BASE, BASE + 9_000)
    system.switch(1_000, 1, system.listening, HOG, "running")
    system.switch(4_000, 1, HOG, system.listening, "running")
    system.switch(5_000, 1, system.listening, 0)
    system.wake(6_000, system.listening, by_cpu=1, cpu=1)
    system.switch(6_200, 1, 0, system.listening)
    system.switch(9_500, 1, system.listening, 0)
    answer = system.why(tmp_path, Selection(slow_callbacks=True, later_than_ns=0))
    assert answer.kind == "why_callbacks"
    assert parts(answer) == [
        ("callback", "own_work", SLOW, 9_000 - 3_000 - 1_200),
        ("callback", "cpu", "hog (99)", 3_000),
        ("callback", "blocked", SLOW, 1_000),
        ("callback", "wake_up", None, 200),
    ]
    assert answer.section("why").title == (f"Of 1 slow callback (longer than 0 ns; 1 in all) 1 mainly ran ({SLOW})")


def test_without_scheduler_a_slow_callback_is_not_said_to_have_run(tmp_path: Path) -> None:
    system = System(scheduler=False)
    system.listening.callback(system.slow, BASE, BASE + 9_000)
    answer = system.why(tmp_path, Selection(slow_callbacks=True, later_than_ns=0))
    assert [(stage, cause, ns) for stage, cause, _, ns in parts(answer)] == [("callback", "unknown", 9_000)]
    part = answer.section("parts").frame.to_dicts()[0]
    assert (part["during"], part["of_tid"]) == (SLOW, 20)
    assert part["reason"].endswith("so whether it ran, slept or waited for a CPU is not known")
    assert answer.section("why").title == (
        "Of 1 slow callback (longer than 0 ns; 1 in all) 1 took time of which the trace does not tell what it was "
        f"({part['reason']})"
    )
