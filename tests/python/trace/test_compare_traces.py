"""Two traces side by side, written row by row: what is matched, what differs, and what is not claimed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from made_tables import MadeSource

from perflab.trace.answer import Answer
from perflab.trace.compare import ONE_TRIAL, compare

SCHEDULER = {
    "begin_ns": 0, "end_ns": 1_000_000_000, "events": 10, "has_wakeups": True, "has_waking": False,
    "has_migrations": False,
}  # fmt: skip


def made(
    *,
    duration: int = 100,
    n: int = 300,
    pid: int = 10,
    latency: int = 1000,
    more: dict[str, Any] | None = None,
    **facts: Any,
) -> MadeSource:
    """A timer of 1 ms that publishes /chatter, and a subscription of it; handles and numbers are made from `pid`."""
    starts = [1_000_000 * (i + 1) for i in range(n)]
    tables: dict[str, Any] = {
        "hosts": [{"name": "robot"}],
        "processes": [{"host": 0, "pid": pid, "name": "talker", "first_ns": 0, "last_ns": 10**9}],
        "threads": [{"host": 0, "process": 0, "tid": pid, "name": "talker", "first_ns": 0, "last_ns": 10**9}],
        "nodes": [{"process": 0, "handle": 1, "name": "/talker"}, {"process": 0, "handle": 2, "name": "/listener"}],
        "publishers": [{"process": 0, "node": 0, "handle": pid + 2, "topic": "/chatter"}],
        "subscriptions": [{"process": 0, "node": 1, "handle": pid + 3, "topic": "/chatter"}],
        "timers": [{"process": 0, "node": 0, "handle": pid + 4, "period_ns": 1_000_000}],
        "callbacks": [
            {"process": 0, "handle": pid + 5, "kind": "timer", "owner": 0, "node": 0, "name": "1 ms"},
            {"process": 0, "handle": pid + 6, "kind": "subscription", "owner": 0, "node": 1, "name": "/chatter"},
        ],
        "callback_instances": [
            *({"callback": 0, "thread": 0, "start_ns": t, "end_ns": t + duration} for t in starts),
            *(
                {"callback": 1, "thread": 0, "start_ns": t + 10 + latency, "end_ns": t + 20 + latency, "take": i}
                for i, t in enumerate(starts)
            ),
        ],
        "publications": [
            {"publisher": 0, "thread": 0, "callback_instance": i, "rclcpp_ns": t + 10, "rmw_ns": t + 12}
            for i, t in enumerate(starts)
        ],
        "takes": [
            {
                "subscription": 0, "thread": 0, "rmw_ns": t + latency, "rcl_ns": t + latency + 1,
                "rclcpp_ns": t + latency + 2, "match": "matched", "publication": i, "callback_instance": n + i,
            }
            for i, t in enumerate(starts)
        ],
    }  # fmt: skip
    return MadeSource({**tables, **(more or {})}, **facts)


def rows(answer: Answer, section: str) -> list[dict[str, Any]]:
    return list(answer.section(section).frame.iter_rows(named=True))


def row(answer: Answer, section: str, **where: Any) -> dict[str, Any]:
    (found,) = [r for r in rows(answer, section) if all(r[key] == value for key, value in where.items())]
    return found


def test_callbacks_are_matched_by_node_kind_and_name_and_not_by_their_handles() -> None:
    answer = compare(made(), made(pid=9000, duration=150))
    found = row(answer, "callbacks", callback="timer 1 ms", figure="duration")
    assert (found["node"], found["n_a"], found["n_b"], found["objects_a"]) == ("/talker", 300, 300, 1)
    assert (found["p50_a_ns"], found["p50_b_ns"]) == (100, 150)
    assert (found["p50_difference_ns"], found["p50_ratio"]) == (50, 1.5)
    assert (found["max_a_ns"], found["max_b_ns"], found["max_ratio"]) == (100, 150, 1.5)
    period = row(answer, "callbacks", callback="timer 1 ms", figure="inter_arrival")
    assert (period["n_a"], period["p50_a_ns"], period["p50_difference_ns"]) == (299, 1_000_000, 0)
    assert answer.section("unmatched").frame.is_empty()


def test_messages_are_matched_by_topic_publisher_and_subscription() -> None:
    answer = compare(made(latency=1000), made(pid=50, latency=3000))
    found = row(answer, "messages", figure="latency")
    assert (found["topic"], found["publisher"], found["subscription"]) == ("/chatter", "/talker", "/listener")
    assert (found["delivery_a"], found["delivery_b"]) == ("middleware", "middleware")
    assert (found["p50_a_ns"], found["p50_b_ns"], found["p50_ratio"]) == (1000, 3000, 3.0)
    transport = row(answer, "messages", figure="transport")
    assert (transport["p50_a_ns"], transport["p50_b_ns"]) == (988, 2988)


def test_the_interval_is_of_batch_medians_and_needs_enough_values() -> None:
    # Durations alternate, so that the medians of batches do not vary and the shift is exact.
    answer = compare(made(duration=100), made(duration=130))
    found = row(answer, "callbacks", callback="timer 1 ms", figure="duration")
    assert (found["shift_ns"], found["shift_low_ns"], found["shift_high_ns"]) == (30.0, 30.0, 30.0)
    few = compare(made(n=199), made(n=300))
    found = row(few, "callbacks", callback="timer 1 ms", figure="duration")
    assert found["shift_ns"] is found["shift_low_ns"] is found["shift_high_ns"] is None
    assert "20 batches of 10" in few.section("callbacks").reasons["shift_ns"]


def test_a_drift_within_a_trace_widens_the_interval() -> None:
    def drifting(pid: int, step: int) -> MadeSource:
        starts = [1_000_000 * (i + 1) for i in range(400)]
        instances = [
            {"callback": 0, "thread": 0, "start_ns": t, "end_ns": t + 1000 + step * i} for i, t in enumerate(starts)
        ]
        return made(pid=pid, more={"callback_instances": instances, "takes": [], "publications": []})

    steady = row(compare(drifting(1, 0), drifting(2, 0)), "callbacks", figure="duration")
    drifted = row(compare(drifting(1, 5), drifting(2, 5)), "callbacks", figure="duration")
    assert (steady["shift_low_ns"], steady["shift_high_ns"]) == (0.0, 0.0)
    assert drifted["shift_low_ns"] < -200
    assert drifted["shift_high_ns"] > 200


def test_no_verdict_is_given_from_one_trace_of_either() -> None:
    answer = compare(made(), made(duration=100_000))
    assert answer.quality[0] == ONE_TRIAL
    words = json.dumps(answer.document())
    assert not any(claim in words for claim in ("significant", "slower", "faster", "regression"))


def test_what_only_one_trace_has_is_listed() -> None:
    other = {
        "nodes": [{"process": 0, "handle": 1, "name": "/speaker"}, {"process": 0, "handle": 2, "name": "/listener"}],
    }  # fmt: skip
    answer = compare(made(), made(more=other))
    lone = {(r["only_in"], r["what"], r["name"]): r["n"] for r in rows(answer, "unmatched")}
    assert lone == {
        ("a", "callback", "/talker  timer 1 ms"): 300,
        ("b", "callback", "/speaker  timer 1 ms"): 300,
        ("a", "message", "/chatter  /talker  /listener"): 300,
        ("b", "message", "/chatter  /speaker  /listener"): 300,
    }


def test_the_same_name_twice_is_one_row_that_says_so() -> None:
    twice = {
        "callbacks": [
            {"process": 0, "handle": h, "kind": "timer", "owner": 0, "node": 0, "name": "1 ms"} for h in (1, 2)
        ]
    }
    found = row(compare(made(), made(more=twice)), "callbacks", callback="timer 1 ms", figure="inter_arrival")
    assert (found["objects_a"], found["objects_b"]) == (1, 2)
    # Periods are within each of the two, not between them.
    assert (found["n_b"], found["p50_b_ns"]) == (598, 1_000_000)


def test_executor_threads_are_matched_by_name() -> None:
    def phases(wait: int) -> dict[str, Any]:
        return {
            "phases": [
                {"thread": 0, "phase": "wait_for_work", "start_ns": 0, "end_ns": wait},
                {"thread": 0, "phase": "get_next_ready", "start_ns": wait, "end_ns": 100},
                {"thread": 0, "phase": "execute", "start_ns": 100, "end_ns": None},
            ]
        }

    answer = compare(made(more=phases(80)), made(pid=77, more=phases(50)))
    found = row(answer, "executor", function="wait_for_work")
    assert (found["process"], found["thread"], found["count_a"], found["count_b"]) == ("talker", "talker", 1, 1)
    assert (found["of_spin_a_percent"], found["of_spin_b_percent"]) == (80.0, 50.0)
    assert found["of_spin_difference_points"] == -30.0
    assert found["cpu_usage_a_percent"] is None
    assert row(answer, "executor", function="thread")["of_spin_a_percent"] is None
    only_a = compare(made(more=phases(80)), made())
    assert [(r["only_in"], r["what"]) for r in rows(only_a, "unmatched")] == [("a", "executor thread")]


def test_scheduling_is_matched_by_process_and_thread() -> None:
    def states(running: int, latency: int) -> dict[str, Any]:
        return {
            "thread_states": [
                {"thread": 0, "state": "running", "start_ns": 0, "end_ns": running, "cpu": 0, "end_state": "sleeping"},
                {"thread": 0, "state": "blocked", "start_ns": running, "end_ns": 10**9 - latency},
                {"thread": 0, "state": "woken", "start_ns": 10**9 - latency, "end_ns": 10**9, "cpu": 0},
            ],
            "wake_ups": [{"thread": 0, "wakeup_ns": 10**9 - latency, "switch_ns": 10**9, "already_running": False}],
        }

    a = made(more=states(250_000_000, 5), scheduler=SCHEDULER)
    b = made(pid=99, more=states(500_000_000, 8), scheduler=SCHEDULER)
    answer = compare(a, b)
    found = row(answer, "threads", thread="talker")
    assert (found["cpu_a_percent"], found["cpu_b_percent"], found["cpu_difference_points"]) == (25.0, 50.0, 25.0)
    assert (found["switches_a_hz"], found["migrations_a_hz"]) == (1.0, 0.0)
    woken = row(answer, "wake_ups", figure="wake_up")
    assert (woken["max_a_ns"], woken["max_b_ns"], woken["max_difference_ns"]) == (5, 8, 3)
    on_cpu = row(answer, "callbacks", callback="timer 1 ms", figure="on_cpu")
    assert (on_cpu["n_a"], on_cpu["p50_a_ns"], on_cpu["max_b_ns"]) == (300, 100, 100)


def test_what_losses_reach_into_is_left_out_and_counted() -> None:
    lost = {"kind": "discarded_events", "count": 3, "exact": True, "file": "ust/a", "begin_ns": 2_000_050,
            "end_ns": 2_000_500, "message": ""}  # fmt: skip
    answer = compare(made(), made(ledger=[lost]))
    timer = row(answer, "callbacks", callback="timer 1 ms", figure="duration")
    assert (timer["n_a"], timer["n_b"]) == (300, 299)
    notes = answer.section("callbacks").notes
    assert "b: 1 duration and 2 inter-arrival times left out: events are missing there" in notes
    assert row(answer, "messages", figure="latency")["n_b"] == 299
    assert any(note.startswith("b: 1 message left out") for note in answer.section("messages").notes)


def test_losses_of_both_stand_first() -> None:
    entry = {
        "kind": "discarded_events", "count": 7, "exact": True, "file": "ust/channel_0", "offset": None, "begin_ns": 1,
        "end_ns": 2, "message": "",
    }  # fmt: skip
    answer = compare(made(), made(ledger=[entry], counters={"callback_end_without_start": 3}))
    assert answer.sections[0].name == "traces"
    assert row(answer, "traces", what="discarded_events") == {
        "what": "discarded_events", "a": 0, "b": 7, "difference": 7,
    }  # fmt: skip
    assert row(answer, "traces", what="callback_end_without_start")["b"] == 3
    assert row(answer, "traces", what="scheduler_covers_ns")["a"] is None
    assert any(line.startswith("b: ") and "7 events discarded" in line for line in answer.quality)


def test_empty_traces_can_be_compared() -> None:
    answer = compare(MadeSource({}), MadeSource({}))
    assert all(section.frame.is_empty() for section in answer.sections if section.name != "traces")
    json.dumps(answer.document(), allow_nan=False)


@pytest.mark.parametrize("swapped", [False, True])
def test_one_trace_without_scheduler_events(swapped: bool) -> None:
    a, b = made(scheduler=SCHEDULER), made()
    answer = compare(b, a) if swapped else compare(a, b)
    assert any("no scheduler events" in note for note in answer.section("threads").notes)
    assert not [r for r in rows(answer, "callbacks") if r["figure"] == "on_cpu"]
