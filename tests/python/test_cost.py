"""What processes cost between the ends of their measured part, from their records."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.formats import tables
from perflab.formats.records import ProcessRecords
from perflab.results.outcome import SUCCESS
from perflab.results.trial import Totals, Trial
from perflab.statistics import cost
from perflab.statistics.metrics import METRICS

Json = dict[str, Any]
NO_COUNTER = {"count": None, "reason": "this machine has no such counter"}


def count(n: int, enabled: int, running: int | None = None, *, kernel: bool = True) -> Json:
    return {"count": n, "enabled_ns": enabled, "running_ns": enabled if running is None else running, "kernel": kernel}


def record(when: str, at_ns: int, cpu_ns: int, threads: list[tuple[int, str, str, int]], **changes: Any) -> Json:
    return {
        "type": "cost",
        "when": when,
        "at_ns": at_ns,
        "cpu_ns": cpu_ns,
        "cycles": NO_COUNTER,
        "instructions": NO_COUNTER,
        "cache_misses": NO_COUNTER,
        "threads": [{"tid": t, "name": name, "role": role, "cpu_ns": ns} for t, name, role, ns in threads],
        **changes,
    }


def both(begin: Json | None = None, end: Json | None = None) -> list[Json]:
    return [
        record("start", 1000, 100, [(1, "main", "perflab", 60), (2, "exec", "executor", 20)], **(begin or {})),
        record(
            "end",
            3000,
            700,
            [(1, "main", "perflab", 80), (2, "exec", "executor", 420), (3, "recv", "middleware", 100)],
            **(end or {}),
        ),
    ]


@pytest.mark.parametrize(("begin", "end", "expected"), [(430, 12_437, 12_007), (7, 7, 0), (None, 5, None)])
def test_allocations_are_those_between_the_records(begin: int | None, end: int, expected: int | None) -> None:
    found = cost.of_process("p", both({"allocations": begin}, {"allocations": end}))
    assert found is not None
    assert found.allocations == expected


def test_time_within_the_measured_part_is_that_of_the_second_record_less_the_first() -> None:
    found = cost.of_process("p", both())
    assert found is not None
    assert (found.interval_ns, found.cpu_ns, found.cpu_percent) == (2000, 600, 30.0)
    # A thread that began within it had no time before.
    assert {t.name: t.cpu_ns for t in found.threads} == {"main": 20, "exec": 400, "recv": 100}
    trial = cost.of_trial([found])
    assert trial is not None
    assert trial.roles == {"executor": 400, "middleware": 100, "perflab": 20, "tracer": 0, "ended": 80}


def test_threads_of_one_role_that_ended_within_it_keep_their_role() -> None:
    main = (1, "main", "perflab", 60)
    timers, other = (2, "node_0", "executor", 20), (3, "recv", "middleware", 10)
    end = record("end", 3000, 700, [(1, "main", "perflab", 80)])
    found = cost.of_process("p", [record("start", 1000, 100, [main, timers]), end])
    trial = cost.of_trial([found])
    assert trial is not None
    assert trial.roles == {"executor": 580, "middleware": 0, "perflab": 20, "tracer": 0, "ended": 0}
    # With two roles, the role is unknown.
    trial = cost.of_trial([cost.of_process("p", [record("start", 1000, 100, [main, timers, other]), end])])
    assert trial is not None
    assert trial.roles == {"executor": 0, "middleware": 0, "perflab": 20, "tracer": 0, "ended": 580}


def test_what_is_not_counted_is_null_with_the_reason() -> None:
    trial = cost.of_trial([cost.of_process("p", both())])
    assert trial is not None
    assert trial.cycles is None
    assert trial.cycles_reason == "this machine has no such counter"
    of = Trial(trial=1, order=1, outcome=SUCCESS, cost=trial, totals=Totals(received=10))
    reading = METRICS["cycles_per_message"].read(of)
    assert reading.value is None
    assert reading.reason == "not counted: this machine has no such counter"


def test_clock_rate_and_counts_of_a_trial_are_metrics() -> None:
    begin = {"cycles": count(0, 0), "cache_misses": count(10, 0)}
    ends = begin, {"cycles": count(1800, 600), "cache_misses": count(40, 600)}
    of = Trial(trial=1, order=1, outcome=SUCCESS, cost=cost.of_trial([cost.of_process("p", both(*ends))]))
    assert METRICS["clock_rate"].read(of).value == 3e9  # 1800 cycles in 600 ns of CPU time
    assert METRICS["cache_misses"].read(of).value == 30
    assert "no such counter" in (METRICS["instructions"].read(of).reason or "")


def test_a_counter_that_stands_still_has_counted_nothing_rather_than_0() -> None:
    found = cost.of_process("p", both({"cycles": count(0, 0)}, {"cycles": count(0, 50)}))
    assert found is not None
    assert found.counts["cycles"] is None
    assert "does not advance" in found.reasons["cycles"]


def test_a_counter_that_was_shared_is_scaled_and_says_so() -> None:
    found = cost.of_process("p", both({"cycles": count(100, 0, 0)}, {"cycles": count(600, 1000, 250)}))
    assert found is not None
    assert found.counts["cycles"] == 2000
    assert found.notes == ("cycles were counted for 25% of the time, and are scaled from that",)
    never = cost.of_process("p", both({"cycles": count(0, 0, 0)}, {"cycles": count(0, 1000, 0)}))
    assert never is not None
    assert never.counts["cycles"] is None
    assert "never scheduled" in never.reasons["cycles"]


def test_user_space_alone_is_a_note() -> None:
    ends = {"cycles": count(5, 0, kernel=False)}, {"cycles": count(905, 10, kernel=False)}
    trial = cost.of_trial([cost.of_process("p", both(*ends))])
    assert trial is not None
    assert trial.cycles == 900
    assert trial.notes == ("cycles of user space only: counting the kernel's is not permitted",)
    of = Trial(trial=1, order=1, outcome=SUCCESS, cost=trial, totals=Totals(received=9))
    assert METRICS["cycles_per_message"].read(of).value == 100


def test_processes_are_added_and_one_that_is_missing_makes_the_sum_unknown() -> None:
    counted = cost.of_process("p", both({"cycles": count(0, 0)}, {"cycles": count(50, 10)}))
    other = cost.of_process("q", both())
    two = cost.of_trial([counted, counted])
    assert two is not None
    assert (two.cpu_ns, two.cycles) == (1200, 100)
    mixed = cost.of_trial([counted, other])
    assert mixed is not None
    assert mixed.cycles is None
    assert cost.of_trial([counted, cost.of_process("r", both()[:1])]) is None
    assert cost.of_trial([]) is None


def test_damage_is_told() -> None:
    broken = both()
    del broken[1]["cpu_ns"]
    with pytest.raises(KeyError):
        cost.of_process("p", broken)
    assert tables.of(None, [ProcessRecords("p", cost=broken)])["cost"].height == 0


def test_the_table_has_a_row_for_the_process_and_each_thread() -> None:
    table = tables.of(None, [ProcessRecords("p", cost=both()), ProcessRecords("silent")])["cost"]
    assert table.select("process", "tid", "name", "role", "cpu_ns", "cycles").rows() == [
        ("p", None, None, None, 600, None),
        ("p", 1, "main", "perflab", 20, None),
        ("p", 2, "exec", "executor", 400, None),
        ("p", 3, "recv", "middleware", 100, None),
    ]
