"""What the answer about the scheduler says of threads, wake-ups, periods and CPUs, on rows written by hand."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import polars as pl
import pytest
from made_tables import MadeSource
from opened import needs_library
from reference_traces import reference_trace, trace_folders

from perflab.kernel import cpu_list
from perflab.trace import open_trace
from perflab.trace.scheduling import latencies, priority_label, scheduling

SCHEDULER = {
    "begin_ns": 0, "end_ns": 1000, "events": 10, "has_wakeups": True, "has_waking": True, "has_migrations": True,
}  # fmt: skip
WHO: dict[str, Any] = {
    "hosts": [{"name": "robot"}],
    "processes": [{"host": 0, "pid": 10, "name": "driver"}],
    "threads": [
        {"host": 0, "process": 0, "tid": 10, "name": "driver", "first_ns": 0, "last_ns": 1000},
        {"host": 0, "process": None, "tid": 7, "name": "kworker", "first_ns": 0, "last_ns": 1000},
    ],
}


def state(thread: int, kind: str, start: int, end: int, cpu: int | None = 0, **more: Any) -> dict[str, Any]:
    return {"thread": thread, "state": kind, "start_ns": start, "end_ns": end, "cpu": cpu, "priority": 49, **more}


# driver: runs, is preempted by kworker, runs, sleeps, is woken on CPU 1 and runs there to the end.
STATES = [
    state(0, "running", 0, 100, end_state="preempted"),
    state(0, "preempted", 100, 150),
    state(0, "running", 150, 200, end_state="sleeping"),
    state(0, "blocked", 200, 500, None),
    state(0, "woken", 500, 530, 1),
    state(0, "running", 530, 900, 1, priority=120),
    state(1, "running", 100, 150, end_state="sleeping", priority=120),
]


def wake_up(
    thread: int, waking: int | None, wakeup: int, switch: int | None, *, running: bool = False
) -> dict[str, Any]:
    return {
        "thread": thread, "waking_ns": waking, "wakeup_ns": wakeup, "switch_ns": switch, "cpu": 1, "priority": 49,
        "already_running": running,
    }  # fmt: skip


WAKE_UPS = [wake_up(0, 490, 500, 530), wake_up(0, None, 600, None, running=True), wake_up(1, 950, 960, None)]
HOLDS = [
    {"thread": 0, "state": "preempted", "start_ns": 100, "end_ns": 150, "cpu": 0, "holder": 1},
    {"thread": 0, "state": "woken", "start_ns": 500, "end_ns": 530, "cpu": 1, "holder": None},
]


def made(**more: Any) -> MadeSource:
    tables = {**WHO, "thread_states": STATES, "wake_ups": WAKE_UPS, "holds": HOLDS, **more.pop("tables", {})}
    return MadeSource(tables, **{"scheduler": SCHEDULER, **more})


def rows(source: MadeSource, section: str, key: str = "thread") -> dict[Any, dict[str, Any]]:
    return {row[key]: row for row in scheduling(source).section(section).frame.iter_rows(named=True)}


def test_time_of_threads() -> None:
    found = rows(made(), "threads")
    driver = found["driver"]
    assert (driver["process"], driver["pid"], driver["tid"]) == ("driver", 10, 10)
    assert (driver["cpu_percent"], driver["on_cpu_ns"], driver["known_percent"]) == (52.0, 520, 90.0)
    assert (driver["switches"], driver["preemptions"], driver["migrations"]) == (3, 1, 1)
    assert (driver["preempted_ns"], driver["blocked_ns"], driver["wake_up_ns"]) == (50, 300, 30)
    assert (driver["wake_ups"], driver["already_running"]) == (2, 1)
    assert (driver["cpus"], driver["priorities"]) == ("0-1", "RT 50, nice 0")
    assert (found["kworker"]["process"], found["kworker"]["priorities"]) == (None, "nice 0")


def test_without_wake_up_events_nothing_is_said_of_them() -> None:
    answer = scheduling(made(tables={"wake_ups": []}, scheduler={**SCHEDULER, "has_wakeups": False}))
    for row in answer.section("threads").frame.iter_rows(named=True):
        assert row["wake_up_ns"] is row["wake_ups"] is row["already_running"] is None
    assert "sched_wakeup" in answer.section("threads").reasons["wake_ups"]
    assert "sched_wakeup" in answer.section("wake_up_latency").notes[0]
    assert "sched_wakeup" in answer.section("periodic").notes[0]


def test_wake_up_latency_leaves_out_running_threads_and_those_that_did_not_run() -> None:
    answer = scheduling(made())
    (row,) = answer.section("wake_up_latency").frame.iter_rows(named=True)
    assert (row["wake_up_n"], row["wake_up_min_ns"], row["wake_up_max_ns"]) == (1, 30, 30)
    assert (row["from_waking_n"], row["from_waking_max_ns"]) == (1, 40)
    assert row["wake_up_p99_ns"] is None
    assert "p99 100" in answer.section("wake_up_latency").reasons["wake_up_p99_ns"]
    assert any("1 wake-up of threads that ran already" in n for n in answer.section("wake_up_latency").notes)
    assert any(
        "1 wake-up after which the thread was not seen to run" in n for n in answer.section("wake_up_latency").notes
    )


def test_wake_up_latency_by_priority() -> None:
    found = rows(made(), "wake_up_latency_by_priority", "priorities")
    assert list(found) == ["all", "RT 50"]
    assert (found["RT 50"]["threads"], found["RT 50"]["wake_up_n"]) == (1, 1)


def test_who_ran_while_a_thread_waited() -> None:
    found = rows(made(), "preemptions", "by_thread")
    by = found["kworker"]
    assert (by["thread"], by["preemptions"], by["while_preempted_ns"], by["while_woken_ns"]) == ("driver", 1, 50, 0)
    assert (found[None]["preemptions"], found[None]["while_woken_ns"], found[None]["longest_ns"]) == (0, 30, 30)


def test_the_second_who_runs_while_a_thread_is_preempted_did_not_preempt_it() -> None:
    holds = [HOLDS[0] | {"end_ns": 120}, HOLDS[0] | {"start_ns": 120, "holder": 0}]
    found = rows(made(tables={"holds": holds}), "preemptions", "by_thread")
    assert (found["kworker"]["preemptions"], found["kworker"]["while_preempted_ns"]) == (1, 20)
    assert (found["driver"]["preemptions"], found["driver"]["while_preempted_ns"]) == (0, 30)


def loop(thread: int, wakes: list[int]) -> list[dict[str, Any]]:
    """A thread that is woken at these instants, runs 2 ns later for 3 ns, and sleeps."""
    states = [state(thread, "running", wakes[0] - 10, wakes[0] - 5, end_state="sleeping")]
    for wake, following in zip(wakes, [*wakes[1:], wakes[-1] + 100], strict=True):
        states += [
            state(thread, "blocked", states[-1]["end_ns"], wake, None),
            state(thread, "woken", wake, wake + 2),
            state(thread, "running", wake + 2, min(wake + 5, following), end_state="sleeping"),
        ]
    return states


def test_a_control_loop_is_regular_and_its_longest_period_stays() -> None:
    wakes = [100 * i for i in range(1, 21)] + [100 * i for i in range(30, 40)]  # one period of 1000
    (row,) = scheduling(made(tables={"thread_states": loop(0, wakes)})).section("periodic").frame.iter_rows(named=True)
    intervals = [b - a for a, b in itertools.pairwise(wakes)]
    assert (row["n"], row["regular"], row["period_p50_ns"], row["long_periods"]) == (29, True, 100, 1)
    assert row["jitter_sd_ns"] == pytest.approx(statistics.stdev(intervals))
    assert (row["off_max_ns"], row["period_max_ns"], row["period_min_ns"]) == (900, 1000, 100)
    assert row["off_p99_ns"] is None  # of 29
    assert row["intervals_across_losses"] == 0


def test_a_thread_that_wakes_up_at_odd_times_is_listed_and_not_regular() -> None:
    wakes = [10]
    for i in range(24):
        wakes.append(wakes[-1] + (20 if i % 2 else 60))
    (row,) = scheduling(made(tables={"thread_states": loop(0, wakes)})).section("periodic").frame.iter_rows(named=True)
    assert (row["n"], row["regular"], row["median_deviation_percent"]) == (24, False, 50.0)


def test_too_few_intervals_and_threads_with_callbacks_are_no_loops() -> None:
    tables = {"thread_states": loop(0, [100 * i for i in range(1, 21)])}  # 19 intervals
    assert scheduling(made(tables=tables)).section("periodic").frame.is_empty()
    tables = {
        "thread_states": loop(0, [100 * i for i in range(1, 41)]),
        "phases": [{"thread": 0, "phase": "wait_for_work", "start_ns": 0}],
    }
    section = scheduling(made(tables=tables)).section("periodic")
    assert section.frame.is_empty()
    assert any("1 thread with callbacks left out" in note for note in section.notes)


def test_an_interval_in_which_events_were_lost_is_no_interval() -> None:
    states = loop(0, [100 * i for i in range(1, 41)])
    lost = [s for s in states if not 1200 <= s["start_ns"] < 1500]
    (row,) = scheduling(made(tables={"thread_states": lost})).section("periodic").frame.iter_rows(named=True)
    assert row["period_max_ns"] == 100
    assert row["intervals_across_losses"] == 1


def test_cpus_are_busy_and_idle_unless_events_were_lost() -> None:
    stream = {"cpu": 1, "discarded_events": 3, "lost_packets": 0}
    part = {"domain": "kernel", "streams": [stream]}
    found = rows(made(traces=[part]), "cpus", "cpu")
    assert (found[0]["busy_percent"], found[0]["idle_percent"], found[0]["threads"]) == (20.0, 80.0, 2)
    assert (found[1]["busy_percent"], found[1]["idle_percent"]) == (37.0, None)
    anywhere = {"domain": "kernel", "streams": [{**stream, "cpu": None}]}
    assert rows(made(traces=[anywhere]), "cpus", "cpu")[0]["idle_percent"] is None
    elsewhere = {"domain": "ust", "streams": [stream]}
    assert rows(made(traces=[elsewhere]), "cpus", "cpu")[1]["idle_percent"] == 63.0


def test_a_trace_without_scheduler_events_says_so() -> None:
    answer = scheduling(MadeSource(WHO))
    assert all(section.frame.is_empty() for section in answer.sections)
    assert answer.section("threads").notes == ("the trace has no scheduler events",)


@pytest.mark.parametrize(
    ("priority", "label"),
    [(0, "RT 99"), (49, "RT 50"), (98, "RT 1"), (100, "nice -20"), (120, "nice 0"), (139, "nice 19"), (-1, "deadline")],
)
def test_priorities(priority: int, label: str) -> None:
    assert priority_label(priority) == label


def test_lists_of_cpus() -> None:
    assert cpu_list([5, 0, 1, 3, 2]) == "0-3,5"
    assert cpu_list([]) == ""


# A recorded trace -----------------------------------------------------------------------------------------------------


def by_index(values: list[int], share: float) -> int:
    """As the independent program counts: sorted[floor(n q)], which may be one value above the nearest rank."""
    return sorted(values)[int(len(values) * share)]


def test_the_recorded_trace_of_16_cores_has_the_known_wake_up_latencies() -> None:
    needs_library()
    trace = open_trace(trace_folders(reference_trace("kernel_16_cores_rt")))
    woken = latencies(trace.table("wake_ups"))
    values = woken["latency_ns"].to_list()
    assert (len(values), min(values), max(values)) == (15_986, 978, 4_687_570)
    assert (by_index(values, 0.5), by_index(values, 0.99)) == (3_742, 7_608)
    assert trace.table("wake_ups")["already_running"].sum() == 41
    fifo_50 = woken.filter(pl.col("priority") == 49)["latency_ns"].to_list()
    assert (len(fifo_50), min(fifo_50), max(fifo_50)) == (306, 1_345, 6_905)
    assert (by_index(fifo_50, 0.5), by_index(fifo_50, 0.99)) == (1_585, 2_430)
    frame = scheduling(trace).section("wake_up_latency_by_priority").frame
    found = {row["priorities"]: row for row in frame.iter_rows(named=True)}
    assert (found["all"]["wake_up_n"], found["all"]["wake_up_min_ns"], found["all"]["wake_up_max_ns"]) == (
        15_986, 978, 4_687_570,
    )  # fmt: skip
    assert found["all"]["wake_up_p50_ns"] in sorted(values)[15_986 // 2 - 1 : 15_986 // 2 + 1]
    assert (found["RT 50"]["wake_up_n"], found["RT 1"]["wake_up_n"]) == (306, 15_191)
    cpus = scheduling(trace).section("cpus").frame
    assert cpus["busy_percent"].is_between(0, 100).all()
