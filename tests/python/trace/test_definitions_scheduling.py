"""What a thread does by the scheduler's events: the definitions of docs/tracing.md (Callbacks, Where the time went;
Scheduling) on events written by hand, through the real reader up to the answer. Times in ns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_trace import MadeTrace
from opened import opened

from perflab.trace.answer import Answer
from perflab.trace.callbacks import callbacks
from perflab.trace.executor import executor
from perflab.trace.scheduling import scheduling

MS = 1_000_000
FLAVOURS = ("lttng", "perf")


def by_tid(answer: Answer, section: str) -> dict[int, dict[str, Any]]:
    return {row["tid"]: row for row in answer.section(section).frame.to_dicts()}


def made_with_thread(flavour: Any = "lttng") -> tuple[MadeTrace, Any, Any]:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    process.main.at(1).rclcpp_callback_register(callback=0xC, symbol="tick()")
    return made, process.main, made.kernel(flavour)


# Where the time went --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_callback_is_divided_into_what_its_thread_did_and_the_parts_add_up(flavour: str, tmp_path: Path) -> None:
    made, main, kernel = made_with_thread(flavour)
    kernel.switch(500, cpu=0, prev=0, next=main)
    main.callback(0xC, 1_000, 2_000)
    kernel.switch(1_100, cpu=0, prev=main, next=(99, "other"), prev_state="running")  # preempted
    kernel.switch(1_300, cpu=0, prev=(99, "other"), next=main)
    kernel.switch(1_350, cpu=0, prev=main, next=0, prev_state="sleeping")  # blocked
    kernel.waking(1_740, cpu=1, task=main, target_cpu=0)  # begins no state
    kernel.wakeup(1_750, cpu=0, task=main)
    kernel.switch(1_800, cpu=0, prev=0, next=main)
    kernel.switch(3_000, cpu=0, prev=main, next=0)
    answer = callbacks(opened(made, tmp_path))
    (row,) = answer.section("split").frame.to_dicts()
    parts = {p: row[f"{p}_total_ns"] for p in ("on_cpu", "preempted", "blocked", "wake_up")}
    assert parts == {"on_cpu": 350, "preempted": 200, "blocked": 400, "wake_up": 50}
    assert sum(parts.values()) == row["known_ns"] == 1_000
    (held,) = answer.section("preempted_by").frame.to_dicts()
    assert (held["by"], held["by_tid"], held["state"], held["held_ns"]) == ("other", 99, "preempted", 200)
    # The idle task had the CPU while the thread was woken: nobody.
    assert held["share_percent"] == pytest.approx(100 * 200 / 250)


@pytest.mark.parametrize("state", ["stopped", "traced"])
def test_a_stopped_thread_neither_sleeps_nor_waits(state: str, tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(500, cpu=0, prev=0, next=main)
    main.callback(0xC, 1_000, 2_000)
    kernel.switch(1_100, cpu=0, prev=main, next=0, prev_state=state)
    kernel.wakeup(1_750, cpu=0, task=main)
    kernel.switch(1_800, cpu=0, prev=0, next=main)
    kernel.switch(3_000, cpu=0, prev=main, next=0)
    trace = opened(made, tmp_path)
    (row,) = callbacks(trace).section("split").frame.to_dicts()
    parts = {p: row[f"{p}_total_ns"] for p in ("on_cpu", "preempted", "blocked", "stopped", "wake_up")}
    assert parts == {"on_cpu": 300, "preempted": 0, "blocked": 0, "stopped": 650, "wake_up": 50}
    thread = by_tid(scheduling(trace), "threads")[10]
    assert (thread["stopped_ns"], thread["blocked_ns"], thread["wake_up_ns"]) == (650, 0, 50)
    assert thread["known_percent"] == 100.0
    states = trace.table("thread_states").filter(pl.col("state") == state)
    assert states.select("start_ns", "end_ns", "cpu").rows() == [(1_100, 1_750, None)]


def test_an_instance_into_which_a_loss_reaches_is_not_divided_and_its_duration_stays(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(500, cpu=0, prev=0, next=main)
    main.callback(0xC, 1_000, 2_000)
    main.callback(0xC, 4_000, 5_000)
    kernel.switch(2_500, cpu=0, prev=main, next=0)
    kernel.lose_packets(2_600, cpu=0)
    kernel.switch(4_500, cpu=0, prev=(99, "other"), next=main)
    kernel.switch(6_000, cpu=0, prev=main, next=0)
    answer = callbacks(opened(made, tmp_path))
    (row,) = answer.section("split").frame.to_dicts()
    assert (row["n"], row["n_known"], row["coverage_percent"], row["on_cpu_total_ns"]) == (2, 1, 50, 1_000)
    (durations,) = answer.section("callbacks").frame.to_dicts()
    assert (durations["n"], durations["duration_p50_ns"]) == (2, 1_000)
    assert any("1 packet lost" in line for line in answer.quality)
    assert "thread states: 50.0 % of callback time has known thread states" in answer.quality


def test_without_wake_ups_blocked_has_both_and_wake_up_is_null(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(500, cpu=0, prev=0, next=main)
    main.callback(0xC, 1_000, 2_000)
    kernel.switch(1_200, cpu=0, prev=main, next=0)
    kernel.switch(1_700, cpu=0, prev=0, next=main)
    kernel.switch(3_000, cpu=0, prev=main, next=0)
    trace = opened(made, tmp_path)
    (row,) = callbacks(trace).section("split").frame.to_dicts()
    assert (row["on_cpu_total_ns"], row["blocked_total_ns"], row["wake_up_total_ns"]) == (500, 500, None)
    assert scheduling(trace).section("wake_up_latency").frame.is_empty()


def test_a_switch_that_does_not_follow_from_the_one_before_makes_states_unknown_and_is_said(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(500, cpu=0, prev=0, next=main)
    main.callback(0xC, 1_000, 2_000)
    # Another thread leaves the CPU: when it came, and main left, was not recorded.
    kernel.switch(1_500, cpu=0, prev=(99, "other"), next=main)
    kernel.switch(3_000, cpu=0, prev=main, next=0)
    trace = opened(made, tmp_path)
    assert trace.facts["scheduler"]["contradictions"] > 0
    answer = callbacks(trace)
    (row,) = answer.section("split").frame.to_dicts()
    assert (row["n"], row["n_known"], row["on_cpu_total_ns"]) == (1, 0, None)
    assert any("the recording lacks switches" in line for line in answer.quality)
    assert any("the recording lacks switches" in line for line in executor(trace).quality)


# Time of threads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_time_of_a_thread_is_of_the_covered_time(flavour: str, tmp_path: Path) -> None:
    made, main, kernel = made_with_thread(flavour)
    kernel.switch(10_000, cpu=0, prev=0, next=main)
    kernel.switch(10_400, cpu=0, prev=main, next=(99, "other"), prev_state="running", prev_prio=49)
    kernel.switch(10_500, cpu=0, prev=(99, "other"), next=main, next_prio=49)
    kernel.switch(10_600, cpu=0, prev=main, next=0, prev_state="sleeping", prev_prio=49)
    kernel.wakeup(10_900, cpu=1, task=main, target_cpu=1, prio=49)
    kernel.switch(10_950, cpu=1, prev=0, next=main, next_prio=49)  # on another CPU than before
    kernel.switch(11_000, cpu=1, prev=main, next=0, prev_state="sleeping", prev_prio=49)
    answer = scheduling(opened(made, tmp_path))
    row = by_tid(answer, "threads")[10]
    assert (row["on_cpu_ns"], row["preempted_ns"], row["blocked_ns"], row["wake_up_ns"]) == (550, 100, 300, 50)
    assert row["cpu_percent"] == pytest.approx(55)  # of the 1 000 ns from the first to the last scheduler event
    assert (row["switches"], row["preemptions"], row["migrations"], row["wake_ups"]) == (3, 1, 1, 1)
    assert "RT 50" in row["priorities"]
    figures = ("by_tid", "preemptions", "while_preempted_ns", "while_woken_ns")
    held = answer.section("preemptions").frame.filter(pl.col("tid") == 10).select(figures).rows()
    assert held == [(99, 1, 100, 0), (None, 0, 0, 50)]  # nobody: CPU 1 was idle
    cpus = {r["cpu"]: r for r in answer.section("cpus").frame.to_dicts()}
    assert (cpus[0]["busy_percent"], cpus[0]["idle_percent"]) == (pytest.approx(60), pytest.approx(40))
    assert cpus[1]["busy_ns"] == 50


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_wake_up_is_from_sched_wakeup_to_the_switch_and_from_waking_is_longer(flavour: str, tmp_path: Path) -> None:
    made, main, kernel = made_with_thread(flavour)
    kernel.switch(10_000, cpu=0, prev=main, next=0, prev_state="sleeping")
    kernel.waking(10_490, cpu=1, task=main, target_cpu=0)
    kernel.wakeup(10_500, cpu=0, task=main)
    kernel.wakeup(10_510, cpu=0, task=main)  # again, before it ran: the first counts
    kernel.switch(10_540, cpu=0, prev=0, next=main)
    kernel.wakeup(10_600, cpu=1, task=main, target_cpu=0)  # runs already: no latency
    kernel.switch(10_700, cpu=0, prev=main, next=0, prev_state="sleeping")
    kernel.wakeup(10_900, cpu=0, task=main)  # not seen to run
    kernel.switch(11_000, cpu=1, prev=0, next=99)
    answer = scheduling(opened(made, tmp_path))
    row = by_tid(answer, "wake_up_latency")[10]
    assert (row["wake_up_n"], row["wake_up_max_ns"], row["from_waking_max_ns"]) == (1, 40, 50)
    notes = " ".join(answer.section("wake_up_latency").notes)
    assert "ran already" in notes
    assert "not seen to run" in notes


def test_no_latency_and_no_idle_time_is_claimed_across_a_loss(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(10_000, cpu=0, prev=main, next=0, prev_state="sleeping")
    kernel.wakeup(10_500, cpu=0, task=main)
    kernel.lose_packets(10_600, cpu=0)
    kernel.switch(20_000, cpu=0, prev=0, next=main)
    kernel.switch(20_500, cpu=0, prev=main, next=0, prev_state="sleeping")
    answer = scheduling(opened(made, tmp_path))
    assert by_tid(answer, "wake_up_latency").get(10, {"wake_up_n": 0})["wake_up_n"] == 0
    (cpu,) = answer.section("cpus").frame.to_dicts()
    assert (cpu["busy_ns"], cpu["idle_percent"]) == (500, None)
    assert by_tid(answer, "threads")[10]["known_percent"] < 100


def test_a_thread_migrated_where_it_ran_and_an_instance_where_that_was_recorded(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    kernel.switch(10_000, cpu=0, prev=main, next=0, prev_state="sleeping")
    kernel.migrate(10_100, cpu=0, task=main, origin=0, destination=1)
    kernel.migrate(10_200, cpu=0, task=main, origin=1, destination=0)  # and back, before it ran
    kernel.wakeup(10_300, cpu=0, task=main)
    kernel.switch(10_400, cpu=0, prev=0, next=main)
    kernel.switch(10_500, cpu=0, prev=main, next=0)
    main.callback(0xC, 10_050, 10_450)
    trace = opened(made, tmp_path)
    assert by_tid(scheduling(trace), "threads")[10]["migrations"] == 0  # it ran on CPU 0 before and after
    (row,) = callbacks(trace).section("split").frame.to_dicts()
    assert row["migrations"] == 2


# Periods --------------------------------------------------------------------------------------------------------------


def loop(kernel: Any, task: Any, begins: list[int]) -> None:
    """A control loop: sleeps until each of these, and runs for 100 us."""
    kernel.switch(begins[0] - MS, cpu=0, prev=0, next=task)
    kernel.switch(begins[0] - MS // 2, cpu=0, prev=task, next=0, prev_state="sleeping")
    for begin in begins:
        kernel.wakeup(begin, cpu=0, task=task)
        kernel.switch(begin + 3_000, cpu=0, prev=0, next=task)
        kernel.switch(begin + 103_000, cpu=0, prev=task, next=0, prev_state="sleeping")


def test_a_period_is_from_wake_up_to_wake_up_and_a_long_one_stays(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    kernel = made.kernel()
    begins = [10 * MS + i * MS for i in range(25)]
    begins += [begins[-1] + 7 * MS + i * MS for i in range(6)]
    loop(kernel, (50, "controller"), begins)
    row = by_tid(scheduling(opened(made, tmp_path)), "periodic")[50]
    assert (row["n"], row["regular"], row["period_p50_ns"], row["period_max_ns"]) == (30, True, MS, 7 * MS)
    assert (row["long_periods"], row["off_max_ns"], row["intervals_across_losses"]) == (1, 6 * MS, 0)


def test_twenty_periods_are_needed(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    loop(made.kernel(), (50, "controller"), [10 * MS + i * MS for i in range(20)])  # 19 periods
    assert scheduling(opened(made, tmp_path)).section("periodic").frame.is_empty()


def test_a_period_across_lost_events_is_counted_and_is_none(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    kernel = made.kernel()
    begins = [10 * MS + i * MS for i in range(40)]
    loop(kernel, (50, "controller"), [*begins[:20], *begins[25:]])  # five are lost
    kernel.lose_packets(begins[19] + MS // 2, cpu=0)
    row = by_tid(scheduling(opened(made, tmp_path)), "periodic")[50]
    assert row["period_max_ns"] == MS
    assert row["long_periods"] == 0
    assert row["intervals_across_losses"] == 1
    assert row["n"] == 32  # 19 before; how it came to sleep is not known of the first wake-up after the loss


def test_a_thread_with_callbacks_is_no_control_loop(tmp_path: Path) -> None:
    made, main, kernel = made_with_thread()
    begins = [10 * MS + i * MS for i in range(30)]
    loop(kernel, main, begins)
    for begin in begins:
        main.callback(0xC, begin + 10_000, begin + 90_000)
    trace = opened(made, tmp_path)
    assert scheduling(trace).section("periodic").frame.is_empty()
    (row,) = callbacks(trace).section("callbacks").frame.to_dicts()
    assert row["inter_arrival_p50_ns"] == MS
