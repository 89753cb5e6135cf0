"""What the executor's answer says of phases, waits and function calls, on traces written row by row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from made_tables import MadeSource
from opened import needs_library
from reference_traces import reference_trace, trace_folders

from perflab.trace import open_trace
from perflab.trace.answer import Answer
from perflab.trace.executor import base_name, executor

SCHEDULER = {
    "begin_ns": 0, "end_ns": 1000, "events": 10, "has_wakeups": True, "has_waking": False, "has_migrations": False,
}  # fmt: skip
WHO: dict[str, Any] = {
    "hosts": [{"name": "robot"}],
    "processes": [{"host": 0, "pid": 10, "name": "talker"}],
    "threads": [{"host": 0, "process": 0, "tid": 10, "name": "talker", "first_ns": 0, "last_ns": 1000, "events": 9}],
}

# get_next_executable is called at 100, 400 and 450: the first waits, the second finds a service, the third nothing.
PHASES = [
    {"thread": 0, "phase": "get_next_ready", "start_ns": 100, "end_ns": 110},
    {"thread": 0, "phase": "wait_for_work", "start_ns": 110, "end_ns": 310},
    {"thread": 0, "phase": "get_next_ready", "start_ns": 310, "end_ns": 330},
    {"thread": 0, "phase": "execute", "start_ns": 330, "end_ns": 400},
    {"thread": 0, "phase": "get_next_ready", "start_ns": 400, "end_ns": 420},
    {"thread": 0, "phase": "dispatch", "start_ns": 420, "end_ns": 450},
    {"thread": 0, "phase": "get_next_ready", "start_ns": 450, "end_ns": 500},
    {"thread": 0, "phase": "wait_for_work", "start_ns": 500, "end_ns": None},
]
CALLBACKS = [
    {"callback": 0, "thread": 0, "start_ns": 340, "end_ns": 390},
    {"callback": 1, "thread": 0, "start_ns": 345, "end_ns": 350, "parent": 0},
    {"callback": 1, "thread": 0, "start_ns": 420, "end_ns": 440},
]


def _state(state: str, start: int, end: int) -> dict[str, Any]:
    return {"thread": 0, "state": state, "start_ns": start, "end_ns": end}


STATES = [
    _state("running", 0, 150), _state("blocked", 150, 280), _state("woken", 280, 300), _state("running", 300, 430),
    _state("preempted", 430, 440), _state("running", 440, 1000),
]  # fmt: skip


def rows(answer: Answer, section: str, key: str = "function") -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in answer.section(section).frame.iter_rows(named=True)}


def made(**more: Any) -> MadeSource:
    tables = {**WHO, "phases": PHASES, "callback_instances": CALLBACKS, **more.pop("tables", {})}
    return MadeSource(tables, **more)


def test_phases_become_the_table_of_an_executor() -> None:
    found = rows(executor(made(scheduler=SCHEDULER, tables={"thread_states": STATES})), "executor")
    assert list(found) == [
        "thread", "spin", "get_next_executable", "get_next_ready_executable", "wait_for_work", "execute",
        "callbacks in execute", "dispatch", "callbacks in dispatch",
    ]  # fmt: skip
    counts = {name: row["count"] for name, row in found.items()}
    assert counts == {
        "thread": 1, "spin": 1, "get_next_executable": 3, "get_next_ready_executable": 4, "wait_for_work": 2,
        "execute": 1, "callbacks in execute": 1, "dispatch": 1, "callbacks in dispatch": 1,
    }  # fmt: skip
    walls = {name: row["wall_ns"] for name, row in found.items()}
    assert walls == {
        "thread": 1000, "spin": 400, "get_next_executable": 300, "get_next_ready_executable": 100,
        "wait_for_work": 200, "execute": 70, "callbacks in execute": 50, "dispatch": 30, "callbacks in dispatch": 20,
    }  # fmt: skip
    on_cpu = {name: row["on_cpu_ns"] for name, row in found.items()}
    assert on_cpu == {
        "thread": 840, "spin": 240, "get_next_executable": 150, "get_next_ready_executable": 100, "wait_for_work": 50,
        "execute": 70, "callbacks in execute": 50, "dispatch": 20, "callbacks in dispatch": 10,
    }  # fmt: skip
    wait = found["wait_for_work"]
    assert wait["cpu_usage_percent"] == 25.0
    assert wait["cpu_of_thread_percent"] == pytest.approx(100 * 50 / 840)
    assert wait["cpu_of_parent_percent"] == pytest.approx(100 * 50 / 150)
    assert (wait["wall_of_thread_percent"], wait["wall_of_spin_percent"]) == (20.0, 50.0)
    assert wait["wall_of_parent_percent"] == pytest.approx(100 * 200 / 300)
    assert wait["known_percent"] == 100.0
    assert (found["thread"]["depth"], found["spin"]["depth"], wait["depth"]) == (0, 1, 3)
    assert found["thread"]["wall_of_spin_percent"] is None


def test_every_phase_is_split_by_the_state_of_its_thread() -> None:
    answer = executor(made(scheduler=SCHEDULER, tables={"thread_states": STATES}))
    found = rows(answer, "phases", "phase")
    assert list(found) == ["get_next_ready", "wait_for_work", "execute", "dispatch"]
    wait = found["wait_for_work"]
    assert (wait["thread"], wait["count"], wait["wall_ns"]) == ("talker", 2, 200)
    assert (wait["blocked_ns"], wait["runnable_ns"], wait["on_cpu_ns"]) == (130, 20, 50)
    assert (wait["preempted_ns"], wait["wake_up_ns"]) == (0, 20)
    assert (wait["blocked_percent"], wait["runnable_percent"], wait["on_cpu_percent"]) == (65.0, 10.0, 25.0)
    assert wait["executor_lock_ns"] is None, "it sleeps for work"
    dispatch = found["dispatch"]
    assert (dispatch["preempted_ns"], dispatch["on_cpu_ns"], dispatch["blocked_ns"]) == (10, 20, 0)
    for row in found.values():
        assert (
            row["on_cpu_ns"] + row["runnable_ns"] + row["blocked_ns"] + row["stopped_ns"]
            == (row["known_percent"] or 0) / 100 * (row["wall_ns"])
        )


# Two threads of one executor: the second finds the first in wait_for_work, and sleeps until it lets go of the lock.
# Then it sleeps within a callback, and after it for a lock that a thread of the middleware has.
LOCKED: dict[str, Any] = {
    "threads": [
        {"host": 0, "process": 0, "tid": tid, "name": name, "first_ns": 0, "last_ns": 1000, "events": 9}
        for tid, name in ((10, "first"), (11, "second"), (12, "middleware"))
    ],
    "phases": [
        {"thread": 0, "phase": "wait_for_work", "start_ns": 100, "end_ns": 300},
        {"thread": 0, "phase": "execute", "start_ns": 300, "end_ns": 500},
        {"thread": 1, "phase": "get_next_ready", "start_ns": 110, "end_ns": 330},
        {"thread": 1, "phase": "wait_for_work", "start_ns": 330, "end_ns": 400},
        {"thread": 1, "phase": "execute", "start_ns": 400, "end_ns": 600},
    ],
    "callback_instances": [
        {"callback": 0, "thread": 0, "start_ns": 310, "end_ns": 480},
        {"callback": 0, "thread": 1, "start_ns": 410, "end_ns": 500},
    ],
    "thread_states": [
        {"thread": 0, "state": "running", "start_ns": 0, "end_ns": 1000},
        *(
            {"thread": 1, "state": state, "start_ns": start, "end_ns": end}
            for state, start, end in (
                ("running", 0, 120), ("blocked", 120, 310), ("woken", 310, 320), ("running", 320, 420),
                ("blocked", 420, 450), ("woken", 450, 460), ("running", 460, 510), ("blocked", 510, 550),
                ("running", 550, 1000),
            )
        ),
    ],
    "wake_ups": [
        {"thread": 1, "by_thread": by, "waking_ns": at, "wakeup_ns": at}
        for at, by in ((310, 0), (450, 0), (550, 2))
    ],
}  # fmt: skip


def test_a_sleep_until_a_thread_of_the_executor_lets_go_is_the_executor_s_lock() -> None:
    answer = executor(made(scheduler=SCHEDULER, tables=LOCKED))
    second = {row["phase"]: row for row in answer.section("phases").frame.to_dicts() if row["thread"] == "second"}
    ready = second["get_next_ready"]
    assert (ready["wall_ns"], ready["blocked_ns"], ready["executor_lock_ns"]) == (220, 190, 190)
    assert ready["executor_lock_percent"] == pytest.approx(100 * 190 / 220)
    execute = second["execute"]
    assert (execute["blocked_ns"], execute["blocked_in_callbacks_ns"], execute["executor_lock_ns"]) == (70, 30, 0)
    (_, sentence) = answer.section("phases").notes
    assert sentence.startswith("1 thread spent 38.8 % of the time waiting for the executor's lock: ")


def test_without_wake_ups_the_executor_s_lock_is_not_known() -> None:
    answer = executor(made(scheduler=SCHEDULER | {"has_wakeups": False}, tables=LOCKED | {"wake_ups": []}))
    section = answer.section("phases")
    assert section.frame["executor_lock_ns"].null_count() == section.frame.height
    assert section.reasons["executor_lock_ns"].startswith("wake-ups were not recorded: ")
    assert len(section.notes) == 1


def test_without_scheduler_events_cpu_figures_are_null_and_shares_of_time_remain() -> None:
    answer = executor(made())
    found = rows(answer, "executor")
    for row in found.values():
        assert row["on_cpu_ns"] is row["cpu_usage_percent"] is row["cpu_of_thread_percent"] is None
        assert row["known_percent"] is None
    assert found["wait_for_work"]["wall_of_spin_percent"] == 50.0
    assert answer.section("executor").reasons["on_cpu_ns"] == "the trace has no scheduler events"
    assert rows(answer, "phases", "phase")["wait_for_work"]["blocked_ns"] is None


def test_where_the_scheduler_was_lost_there_are_no_shares_of_the_rest() -> None:
    # Nothing is known from 320 on: of execute nothing, of getting the next executable 110 ns of 300.
    states = [*STATES[:3], _state("running", 300, 320)]
    found = rows(executor(made(scheduler=SCHEDULER, tables={"thread_states": states})), "executor")
    assert found["execute"]["on_cpu_ns"] is None
    assert found["execute"]["known_percent"] == 0.0
    assert found["get_next_executable"]["known_percent"] == pytest.approx(100 * 210 / 300)
    # 60 ns of 210 on a CPU: of 70 % no share is made, because the covered part may be unusual.
    assert found["get_next_executable"]["cpu_usage_percent"] is None
    assert found["get_next_ready_executable"]["cpu_usage_percent"] is None
    assert found["wait_for_work"]["cpu_usage_percent"] == 25.0
    # 60 ns of 110 on a CPU where it is known: a share of the whole thread cannot be made of that.
    assert found["get_next_executable"]["on_cpu_ns"] == 60
    assert found["get_next_executable"]["cpu_of_thread_percent"] is None
    assert found["wait_for_work"]["cpu_of_parent_percent"] is None


def test_a_phase_that_never_came_is_counted_as_none() -> None:
    found = rows(
        executor(made(scheduler=SCHEDULER, tables={"phases": PHASES[:4], "thread_states": STATES})), "executor"
    )
    assert (found["dispatch"]["count"], found["dispatch"]["wall_ns"], found["dispatch"]["on_cpu_ns"]) == (0, 0, 0)
    assert found["dispatch"]["cpu_usage_percent"] is None


def test_threads_stand_one_by_one_and_in_order() -> None:
    threads = [
        {"host": 0, "process": 0, "tid": tid, "name": "worker", "first_ns": 0, "last_ns": 1000} for tid in (12, 11)
    ]
    phases = [{**phase, "thread": thread} for thread in (0, 1) for phase in PHASES]
    answer = executor(made(tables={"threads": threads, "phases": phases}))
    assert answer.section("executor").frame["tid"].unique(maintain_order=True).to_list() == [11, 12]
    assert any("MultiThreadedExecutor" in note for note in answer.section("executor").notes)


def test_threads_with_callbacks_and_no_phases_are_listed_with_the_reason() -> None:
    threads = [*WHO["threads"], {"host": 0, "process": 0, "tid": 11, "name": "events", "first_ns": 0, "last_ns": 9}]
    callbacks = [*CALLBACKS, {"callback": 2, "thread": 1, "start_ns": 5, "end_ns": 8}]
    answer = executor(made(tables={"threads": threads, "callback_instances": callbacks}))
    (row,) = answer.section("without_phases").frame.iter_rows(named=True)
    assert (row["tid"], row["callbacks"], row["in_callbacks_ns"]) == (11, 1, 3)
    assert "EventsExecutor" in row["reason"]


def test_a_trace_without_executor_events_says_so() -> None:
    answer = executor(made(tables={"phases": []}))
    assert answer.section("executor").frame.is_empty()
    assert "none of the executor's events" in answer.section("executor").notes[0]
    assert "none of the executor's events" in rows(answer, "without_phases", "tid")[10]["reason"]  # type: ignore[index]


def test_a_process_with_nodes_that_shows_nothing_is_named() -> None:
    tables = {
        "processes": [*WHO["processes"], {"host": 0, "pid": 20, "name": "python3"}],
        "threads": [*WHO["threads"], {"host": 0, "process": 1, "tid": 20, "name": "python3"}],
        "nodes": [{"process": 0, "name": "/talker"}, {"process": 1, "name": "/script"}],
    }  # fmt: skip
    (note,) = executor(made(tables=tables)).section("without_phases").notes
    assert note.endswith(": python3 (20)")


def test_phases_within_a_callback_that_spins_are_said_to_count_twice() -> None:
    phases = [
        {"thread": 0, "phase": "execute", "start_ns": 100, "end_ns": 800},
        {"thread": 0, "phase": "get_next_ready", "start_ns": 200, "end_ns": 300},
        {"thread": 0, "phase": "execute", "start_ns": 300, "end_ns": 700},
        {"thread": 0, "phase": "get_next_ready", "start_ns": 800, "end_ns": 900},
    ]
    callbacks = [
        {"callback": 0, "thread": 0, "start_ns": 110, "end_ns": 750},
        {"callback": 0, "thread": 0, "start_ns": 310, "end_ns": 690, "parent": 0},
        {"callback": 0, "thread": 0, "start_ns": 760, "end_ns": 780},
    ]
    answer = executor(made(tables={"callback_instances": callbacks, "phases": phases}))
    assert any(
        note.startswith("2 phases of executors that a callback spins") for note in answer.section("executor").notes
    )
    inside = rows(answer, "executor")["callbacks in execute"]
    assert (inside["count"], inside["wall_ns"]) == (2, 660)  # the third is in the phase around, too
    assert not any("spins" in note for note in executor(made()).section("executor").notes)


def test_callbacks_of_a_phase_without_end_are_no_part_of_it() -> None:
    phases = [
        {"thread": 0, "phase": "execute", "start_ns": 100, "end_ns": 200},
        {"thread": 0, "phase": "execute", "start_ns": 200, "end_ns": None},
    ]
    callbacks = [{"callback": 0, "thread": 0, "start_ns": s, "end_ns": e} for s, e in ((110, 150), (210, 900))]
    found = rows(executor(made(tables={"callback_instances": callbacks, "phases": phases})), "executor")
    assert (found["callbacks in execute"]["count"], found["callbacks in execute"]["wall_of_parent_percent"]) == (
        1,
        40.0,
    )


def test_phases_in_which_events_were_lost_are_counted() -> None:
    entry = {
        "kind": "discarded_events", "count": 7, "exact": True, "file": "ust/channel_0", "offset": None, "begin_ns": 335,
        "end_ns": 405, "message": "",
    }  # fmt: skip
    notes = executor(made(ledger=[entry])).section("executor").notes
    assert any(note.startswith("2 phases where events were lost") for note in notes)
    assert not any("lost" in note for note in executor(made()).section("executor").notes)


# Functions ------------------------------------------------------------------------------------------------------------

NEXT = "rclcpp::Executor::get_next_executable(rclcpp::AnyExecutable&, std::chrono::duration<long, std::ratio<1l> >)"
FUNCTIONS = [
    {"process": 0, "address": 16, "symbol": "rclcpp::executors::SingleThreadedExecutor::spin()"},
    {"process": 0, "address": 32, "symbol": NEXT},
    {"process": 0, "address": 48, "symbol": "rclcpp::Executor::wait_for_work(std::chrono::duration<long>)"},
    {"process": 0, "address": 64, "symbol": "helper(int)"},
    {"process": 0, "address": 80, "symbol": "rcl_wait"},
    {"process": 0, "address": 96, "symbol": None},
]
# spin 0-500 [ get_next 0-300 [ helper 10-290 [ wait_for_work 20-280 [ rcl_wait 100-260 ] ] ] , get_next 310-400,
# 0x60 410-480 [ helper 420-470 [ helper 430-450 ] ] ]
CALLS: list[dict[str, Any]] = [
    {"thread": 0, "function": 0, "start_ns": 0, "end_ns": 500},
    {"thread": 0, "function": 1, "start_ns": 0, "end_ns": 300, "parent": 0},
    {"thread": 0, "function": 3, "start_ns": 10, "end_ns": 290, "parent": 1},
    {"thread": 0, "function": 2, "start_ns": 20, "end_ns": 280, "parent": 2},
    {"thread": 0, "function": 4, "start_ns": 100, "end_ns": 260, "parent": 3},
    {"thread": 0, "function": 1, "start_ns": 310, "end_ns": 400, "parent": 0},
    {"thread": 0, "function": 5, "start_ns": 410, "end_ns": 480, "parent": 0},
    {"thread": 0, "function": 3, "start_ns": 420, "end_ns": 470, "parent": 6},
    {"thread": 0, "function": 3, "start_ns": 430, "end_ns": 450, "parent": 7},
]


def called(calls: list[dict[str, Any]] = CALLS, **more: Any) -> MadeSource:
    return made(tables={"functions": FUNCTIONS, "function_calls": calls, "thread_states": STATES}, **more)


def test_the_executor_s_functions_are_the_same_table() -> None:
    frame = executor(called(scheduler=SCHEDULER)).section("executor_functions").frame
    found = {row["function"]: row for row in frame.iter_rows(named=True)}
    spin, following = "rclcpp::executors::SingleThreadedExecutor::spin", "rclcpp::Executor::get_next_executable"
    waiting = "rclcpp::Executor::wait_for_work"
    assert frame["function"].to_list() == ["thread", spin, following, waiting, "rcl_wait"]
    assert frame["depth"].to_list() == [0, 1, 2, 3, 4]
    assert (found[following]["count"], found[following]["wall_ns"], found[following]["self_ns"]) == (2, 390, 130)
    assert (found[waiting]["wall_ns"], found[waiting]["self_ns"]) == (260, 100)
    # rcl_wait: 100 to 150 on a CPU, blocked to 260; wait_for_work: 20 to 150.
    assert (found["rcl_wait"]["on_cpu_ns"], found[waiting]["on_cpu_ns"], found[waiting]["on_cpu_self_ns"]) == (
        50,
        130,
        80,
    )
    assert found["rcl_wait"]["cpu_of_parent_percent"] == pytest.approx(100 * 50 / 130)
    assert found["rcl_wait"]["cpu_of_thread_percent"] == pytest.approx(100 * 50 / 840)
    assert found[following]["wall_of_parent_percent"] == 78.0
    assert found[following]["symbol"] == NEXT


def test_the_tree_of_calls_has_all_functions_and_the_largest_keep_their_callers() -> None:
    whole = executor(called(), None).section("call_tree").frame
    assert whole["function"].to_list() == [
        "thread", "rclcpp::executors::SingleThreadedExecutor::spin", "rclcpp::Executor::get_next_executable", "helper",
        "rclcpp::Executor::wait_for_work", "rcl_wait", "0x60", "helper", "helper",
    ]  # fmt: skip
    cut = executor(called(), 2).section("call_tree")
    assert cut.frame["function"].to_list() == whole["function"].to_list()[:3]
    assert any(note == "The 2 longest of 9; --all has all of them" for note in cut.notes)


def test_functions_by_their_own_time_count_recursion_once() -> None:
    found = rows(executor(called()), "functions")
    assert (found["helper"]["count"], found["helper"]["wall_ns"], found["helper"]["self_ns"]) == (3, 330, 70)
    assert found["0x60"]["self_ns"] == 20
    assert found["helper"]["on_cpu_ns"] == 140 + 40


def test_calls_that_did_not_return_have_no_duration() -> None:
    calls = [*CALLS[:4], {**CALLS[4], "end_ns": None}, *CALLS[5:]]
    section = executor(called(calls)).section("call_tree")
    found = {row["function"]: row for row in section.frame.iter_rows(named=True)}
    assert (found["rcl_wait"]["count"], found["rcl_wait"]["wall_ns"]) == (1, None)
    assert found["rclcpp::Executor::wait_for_work"]["self_ns"] is None
    assert any("1 call had not returned" in note for note in section.notes)


def test_a_trace_without_functions_has_no_such_sections() -> None:
    assert [s.name for s in executor(made()).sections] == ["executor", "phases", "without_phases"]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("rclcpp::executors::SingleThreadedExecutor::spin()", "rclcpp::executors::SingleThreadedExecutor::spin"),
        ("void rclcpp::Executor::run<int>(std::function<void ()>, int) const", "rclcpp::Executor::run"),
        (NEXT, "rclcpp::Executor::get_next_executable"),
        ("(anonymous namespace)::wait(int)", "{anonymous}::wait"),
        ("rcl_wait", "rcl_wait"),
        ("A::operator()(int) const", "A::operator"),
    ],
)  # fmt: skip
def test_names_without_arguments(symbol: str, name: str) -> None:
    assert base_name(symbol) == name


# Recorded traces ------------------------------------------------------------------------------------------------------


def test_the_recorded_trace_of_three_nodes_has_the_known_shares_and_counts() -> None:
    """Shares and counts as an independent program finds them, which ends the last phase of a thread nowhere, too."""
    needs_library()
    trace = open_trace(trace_folders(reference_trace("ros2_fastrtps_humble_fork")))
    answer = executor(trace)
    frame = answer.section("executor").frame
    counts = dict(frame.group_by("function").agg(pl.col("count").sum()).iter_rows())
    assert counts["get_next_ready_executable"] == 24_189
    assert counts["wait_for_work"] == 12_096
    assert counts["execute"] == 6_065
    shares = {
        tuple(round(share, 1) for share in of["wall_of_spin_percent"])
        for _, of in frame.filter(pl.col("function").is_in(["wait_for_work", "execute", "get_next_ready_executable"]))
        .sort("function", descending=True)
        .group_by("tid", maintain_order=True)
    }
    assert shares == {(97.7, 0.4, 2.0), (97.1, 0.3, 2.6), (96.8, 0.3, 2.9)}
    assert frame["on_cpu_ns"].is_null().all()


@pytest.mark.parametrize("name", ["jazzy_small", "jazzy_small_ipc"])
def test_recorded_traces_with_scheduler_events_add_up(name: str) -> None:
    needs_library()
    trace = open_trace(trace_folders(reference_trace(name)))
    frame = executor(trace).section("executor").frame
    assert frame.height
    for _, thread in frame.group_by("host", "pid", "tid"):
        found = {row["function"]: row for row in thread.iter_rows(named=True)}
        below = [found[name] for name in ("get_next_executable", "execute", "dispatch")]
        within = [found[name] for name in ("get_next_ready_executable", "wait_for_work")]
        assert sum(row["wall_ns"] for row in below) == found["spin"]["wall_ns"]
        assert sum(row["wall_ns"] for row in within) == found["get_next_executable"]["wall_ns"]
        for row in found.values():
            assert row["on_cpu_ns"] is None or 0 <= row["on_cpu_ns"] <= row["wall_ns"]
        waits = found["wait_for_work"]
        assert waits["known_percent"] < 90.0 or 0 < waits["cpu_of_thread_percent"] < 100.0
