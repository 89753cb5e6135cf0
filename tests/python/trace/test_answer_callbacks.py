"""What the figures of callbacks mean, on a few instances written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_tables import MadeSource, Row
from made_trace import MadeTrace
from opened import opened

from perflab.trace.callbacks import callbacks
from perflab.trace.names import NO_SCHEDULER

SCHEDULER = {"begin_ns": 0, "end_ns": 10_000, "events": 9, "has_wakeups": True, "has_waking": True,
             "has_migrations": True}  # fmt: skip


def objects() -> dict[str, list[Row]]:
    """A process with a node, a timer of 100 ns and a subscription; events from 0 to 1,000."""
    return {
        "hosts": [{"name": "robot"}],
        "processes": [{"host": 0, "pid": 10, "name": "talker", "first_ns": 0, "last_ns": 1000, "events": 50}],
        "threads": [
            {"host": 0, "process": 0, "tid": 10, "name": "talker", "events": 40},
            {"host": 0, "process": 0, "tid": 11, "name": "worker", "events": 10},
            {"host": 0, "tid": 99, "name": "kworker", "events": 0},
        ],
        "nodes": [{"process": 0, "handle": 1, "name": "/talker"}],
        "timers": [{"process": 0, "node": 0, "handle": 2, "period_ns": 100}],
        "subscriptions": [{"process": 0, "node": 0, "handle": 3, "topic": "/chatter"}],
        "callbacks": [
            {"process": 0, "handle": 0xA, "kind": "timer", "owner": 0, "node": 0, "name": "100 ns", "symbol": "tick()"},
            {"process": 0, "handle": 0xB, "kind": "subscription", "owner": 0, "node": 0, "name": "/chatter"},
            {"process": 0, "handle": 0xC, "kind": "unknown"},
        ],
    }


def instance(callback: int, start: int, end: int | None, thread: int = 0, **more: Any) -> Row:
    return {"callback": callback, "thread": thread, "start_ns": start, "end_ns": end, "intra_process": False, **more}


def rows(source: MadeSource, section: str = "callbacks") -> dict[str, dict[str, Any]]:
    return {row["callback"]: row for row in callbacks(source).section(section).frame.to_dicts()}


def test_duration_inter_arrival_jitter_and_utilization() -> None:
    instances = [instance(0, 100, 110), instance(0, 200, 230, thread=1), instance(0, 320, 340)]
    row = rows(MadeSource(objects() | {"callback_instances": instances}))["/talker timer 100 ns"]
    assert (row["n"], row["unended"], row["threads"]) == (3, 0, 2)
    assert (row["duration_min_ns"], row["duration_p50_ns"], row["duration_max_ns"]) == (10, 20, 30)
    assert row["duration_mean_ns"] == 20
    assert (row["inter_arrival_min_ns"], row["inter_arrival_max_ns"]) == (100, 120)
    assert row["jitter_ns"] == pytest.approx(200**0.5)  # of 100 and 120
    assert row["utilization_percent"] == pytest.approx(6.0)  # 60 of 1,000 ns
    assert (row["node"], row["kind"], row["symbol"], row["host"], row["handle"]) == (
        "/talker", "timer", "tick()", "robot", "0xa",
    )  # fmt: skip


def test_the_error_of_a_period_needs_a_hundred_inter_arrival_times() -> None:
    starts = [100 * i + (7 if i % 2 else 0) for i in range(101)]  # off by 7 in turn
    source = MadeSource(objects() | {"callback_instances": [instance(0, s, s + 1) for s in starts]})
    assert rows(source)["/talker timer 100 ns"]["period_error_p99_ns"] == 7
    fewer = MadeSource(objects() | {"callback_instances": [instance(0, s, s + 1) for s in starts[:-1]]})
    section = callbacks(fewer).section("callbacks")
    assert section.frame["period_error_p99_ns"].to_list() == [None]
    assert "100" in section.reasons["period_error_p99_ns"]


def test_an_instance_that_did_not_end_counts_and_has_no_duration() -> None:
    source = MadeSource(objects() | {"callback_instances": [instance(1, 100, None), instance(2, 50, 60)]})
    found = rows(source)
    row = found["/talker /chatter"]
    assert (row["n"], row["unended"], row["duration_max_ns"], row["utilization_percent"]) == (1, 1, None, None)
    assert "callbacks: 1 of 2 callbacks ended (50.0 %)" in callbacks(source).quality


def test_a_callback_without_owner_is_kept_under_its_handle_and_process() -> None:
    row = rows(MadeSource(objects() | {"callback_instances": [instance(2, 50, 60)]}))["0xc (talker 10)"]
    assert (row["n"], row["node"], row["symbol"]) == (1, None, None)


def test_callbacks_of_one_name_are_told_apart() -> None:
    made = objects()
    made["callbacks"].append(dict(made["callbacks"][0]) | {"handle": 0xD})
    source = MadeSource(made | {"callback_instances": [instance(0, 1, 2), instance(3, 3, 4)]})
    assert set(rows(source)) == {"/talker timer 100 ns 0xa", "/talker timer 100 ns 0xd"}


def test_an_inter_arrival_time_across_lost_events_is_left_out() -> None:
    instances = [instance(0, s, s + 1) for s in (100, 200, 700, 800)]
    lost = {"kind": "discarded_events", "count": 3, "exact": True, "file": "ust/channel_0", "begin_ns": 300,
            "end_ns": 400, "message": "3 events"}  # fmt: skip
    source = MadeSource(objects() | {"callback_instances": instances}, ledger=[lost])
    row = rows(source)["/talker timer 100 ns"]
    assert (row["inter_arrival_max_ns"], row["inter_arrival_left_out"]) == (100, 1)
    assert any("1 inter-arrival time left out" in note for note in callbacks(source).section("callbacks").notes)


def discarded(begin_ns: int | None, end_ns: int | None) -> Row:
    return {"kind": "discarded_events", "count": 3, "exact": True, "file": "ust/channel_0", "begin_ns": begin_ns,
            "end_ns": end_ns, "message": "3 events"}  # fmt: skip


def test_a_duration_into_which_a_loss_reaches_is_left_out() -> None:
    instances = [instance(0, 100, 110), instance(0, 200, 600), instance(0, 700, 720)]
    source = MadeSource(objects() | {"callback_instances": instances}, ledger=[discarded(300, 400)])
    row = rows(source)["/talker timer 100 ns"]
    assert (row["n"], row["unended"], row["duration_left_out"], row["duration_max_ns"]) == (
        3, 0, 1, 20,
    )  # fmt: skip
    notes = callbacks(source).section("callbacks").notes
    assert any(note.startswith("1 duration left out") for note in notes)
    assert any("n and utilization are lower bounds" in note for note in notes)


def test_what_was_lost_before_an_instant_may_be_as_old_as_the_trace() -> None:
    instances = [instance(0, s, s + 10) for s in (100, 200, 700, 800)]
    section = callbacks(
        MadeSource(objects() | {"callback_instances": instances}, ledger=[discarded(None, 205)])
    ).section("callbacks")
    row = section.frame.row(0, named=True)
    assert (row["duration_left_out"], row["duration_max_ns"]) == (2, 10)
    assert (row["inter_arrival_left_out"], row["inter_arrival_max_ns"]) == (2, 100)


def test_null_figures_say_that_it_was_for_losses() -> None:
    instances = [instance(0, s, s + 10) for s in (100, 200, 300)]
    section = callbacks(
        MadeSource(objects() | {"callback_instances": instances}, ledger=[discarded(None, 900)])
    ).section("callbacks")
    row = section.frame.row(0, named=True)
    assert row["duration_max_ns"] is row["inter_arrival_max_ns"] is row["jitter_ns"] is None
    assert section.reasons["duration_max_ns"] == "events are missing within all instances that ended"
    assert section.reasons["inter_arrival_max_ns"] == "events are missing between all starts"
    assert section.reasons["jitter_ns"] == "events are missing between all starts but two"


def test_a_loss_of_unknown_time_leaves_durations_and_says_so() -> None:
    instances = [instance(0, s, s + 10) for s in (100, 200)]
    section = callbacks(
        MadeSource(objects() | {"callback_instances": instances}, ledger=[discarded(None, None)])
    ).section("callbacks")
    row = section.frame.row(0, named=True)
    assert (row["duration_max_ns"], row["inter_arrival_max_ns"]) == (10, None)
    assert any("single durations may be wrong" in note for note in section.notes)


def test_callbacks_of_one_name_in_several_processes_have_their_numbers() -> None:
    made = objects()
    made["hosts"] = [{"name": "robot"}, {"name": "station"}]
    made["processes"].append(dict(made["processes"][0]) | {"host": 1, "pid": 4711})
    there = len(made["processes"]) - 1
    made["callbacks"].append(dict(made["callbacks"][0]) | {"process": there})
    source = MadeSource(made | {"callback_instances": [instance(0, 1, 2), instance(3, 3, 4)]})
    first = made["processes"][0]["pid"]
    assert set(rows(source)) == {f"/talker timer 100 ns ({first}, robot)", "/talker timer 100 ns (4711, station)"}


def test_lost_events_of_the_kernel_leave_inter_arrival_times_alone() -> None:
    instances = [instance(0, s, s + 1) for s in (100, 200, 700)]
    lost = {"kind": "discarded_events", "count": 3, "exact": True, "file": "kernel/channel_0", "begin_ns": 300,
            "end_ns": 400, "message": "3 events"}  # fmt: skip
    parts = [
        {"path": "/traces/made/kernel", "domain": "kernel", "events": 1, "host": "robot"},
        {"path": "/traces/made", "domain": "ust", "events": 1, "host": "robot"},
    ]
    source = MadeSource(objects() | {"callback_instances": instances}, ledger=[lost], traces=parts)
    assert rows(source)["/talker timer 100 ns"]["inter_arrival_max_ns"] == 500


def test_nested_callbacks_are_noted() -> None:
    source = MadeSource(objects() | {"callback_instances": [instance(0, 100, 200), instance(1, 120, 130, parent=0)]})
    assert rows(source)["/talker /chatter"]["nested"] == 1
    assert any("1 callback ran within another one" in note for note in callbacks(source).section("callbacks").notes)


def states(*parts: tuple[str, int, int]) -> list[Row]:
    return [{"thread": 0, "state": state, "start_ns": start, "end_ns": end} for state, start, end in parts]


def test_where_the_time_of_a_callback_went() -> None:
    source = MadeSource(
        objects()
        | {
            "callback_instances": [instance(0, 100, 200), instance(0, 300, 400), instance(0, 900, 950)],
            "thread_states": states(
                ("running", 0, 120), ("preempted", 120, 150), ("running", 150, 200), ("running", 200, 310),
                ("blocked", 310, 370), ("woken", 370, 380), ("running", 380, 400),
            ),
            "migrations": [{"thread": 0, "time_ns": 150, "from_cpu": 0, "to_cpu": 1}],
            "holds": [{"thread": 0, "state": "preempted", "start_ns": 120, "end_ns": 150, "cpu": 0, "holder": 2},
                      {"thread": 0, "state": "woken", "start_ns": 370, "end_ns": 380, "cpu": 1, "holder": None}],
        },
        scheduler=SCHEDULER,
    )  # fmt: skip
    row = rows(source, "split")["/talker timer 100 ns"]
    assert (row["n"], row["n_known"], row["known_ns"]) == (3, 2, 200)  # nothing is known of the third
    assert row["coverage_percent"] == pytest.approx(200 / 3)
    totals = [row[f"{state}_total_ns"] for state in ("on_cpu", "preempted", "blocked", "wake_up")]
    assert totals == [100, 30, 60, 10]
    assert [row[f"{state}_percent"] for state in ("on_cpu", "preempted", "blocked", "wake_up")] == [50, 15, 30, 5]
    assert row["migrations"] == 1
    by = callbacks(source).section("preempted_by").frame.to_dicts()
    assert [(r["state"], r["by"], r["by_tid"], r["instances"], r["held_ns"], r["share_percent"]) for r in by] == [
        ("preempted", "kworker", 99, 1, 30, 75.0),
        ("woken", "idle, or not known", None, 1, 10, 25.0),
    ]
    assert "thread states: 80.0 % of callback time has known thread states" in callbacks(source).quality


def test_without_wake_up_events_there_is_no_wake_up_latency_rather_than_none() -> None:
    source = MadeSource(
        objects() | {"callback_instances": [instance(0, 100, 200)], "thread_states": states(("running", 0, 400))},
        scheduler=SCHEDULER | {"has_wakeups": False, "has_migrations": False},
    )
    section = callbacks(source).section("split")
    row = section.frame.to_dicts()[0]
    assert (row["wake_up_total_ns"], row["wake_up_percent"], row["migrations"]) == (None, None, None)
    assert "sched_wakeup" in section.reasons["wake_up_percent"]
    assert "sched_migrate_task" in section.reasons["migrations"]
    assert row["on_cpu_percent"] == 100


def test_without_scheduler_events_the_split_is_empty_and_says_why() -> None:
    answer = callbacks(MadeSource(objects() | {"callback_instances": [instance(0, 100, 200)]}))
    for name in ("split", "preempted_by"):
        assert answer.section(name).frame.is_empty()
        assert answer.section(name).notes == (NO_SCHEDULER,)


def test_a_trace_without_callbacks_gives_empty_tables() -> None:
    answer = callbacks(MadeSource({}))
    assert [section.frame.height for section in answer.sections] == [0, 0, 0]
    assert "callbacks: null because the trace has no callbacks" in answer.quality


# Through the reader ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["lttng", "perf"])
def test_a_timer_that_is_preempted_and_sleeps(flavour: Any, tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    robot = made.process("robot", pid=10)
    timer = robot.timer(robot.node("arm"), 1_000)
    main = robot.main
    kernel = made.kernel(flavour)
    kernel.switch(900, cpu=0, prev=0, next=main)
    main.callback(timer, 1_000, 1_500)
    kernel.switch(1_100, cpu=0, prev=main, next=(99, "kworker"), prev_state="preempted")
    kernel.switch(1_150, cpu=0, prev=(99, "kworker"), next=main)
    kernel.switch(1_200, cpu=0, prev=main, next=0, prev_state="sleeping")
    kernel.wakeup(1_300, cpu=0, task=main)
    kernel.switch(1_320, cpu=0, prev=0, next=main)
    main.callback(timer, 2_010, 2_020)
    kernel.switch(3_000, cpu=0, prev=main, next=0, prev_state="sleeping")
    answer = callbacks(opened(made, tmp_path))
    row = answer.section("callbacks").frame.to_dicts()[0]
    assert (row["callback"], row["n"], row["duration_max_ns"]) == ("/arm timer 1 µs", 2, 500)
    assert row["inter_arrival_max_ns"] == 1_010
    split = answer.section("split").frame.to_dicts()[0]
    assert (split["n_known"], split["known_ns"]) == (2, 510)
    assert [split[f"{state}_total_ns"] for state in ("on_cpu", "preempted", "blocked", "wake_up")] == [340, 50, 100, 20]
    by = answer.section("preempted_by").frame.to_dicts()[0]
    assert (by["by"], by["by_tid"], by["state"], by["held_ns"]) == ("kworker", 99, "preempted", 50)
