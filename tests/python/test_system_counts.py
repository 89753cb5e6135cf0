"""What the operating system counted in the measured part, from the records of processes."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.results.outcome import SUCCESS
from perflab.results.trial import SystemCounts, Totals, Trial
from perflab.statistics import system_counts
from perflab.statistics.metrics import METRICS, parse_criterion
from perflab.statistics.system_counts import NO_SIGNALS, NOT_RECORDED, NOT_TOLD, SOCKET_CLOSED, USAGE

Json = dict[str, Any]


def record(when: str, usage: int, sent: int | None, drops: dict[int, int], namespace: int = 7) -> Json:
    sockets = [{"inode": inode, "drops": n} for inode, n in drops.items()]
    network = {
        "namespace": namespace, "sent_bytes": sent, "sent_packets": 3, "tcp_retransmissions": 0, "sockets": sockets,
    }  # fmt: skip
    return {"when": when, "usage": dict.fromkeys(USAGE, usage), "network": network}


def told(*costs: list[Json], described: list[Json | None] | None = None) -> SystemCounts:
    found = system_counts.of_trial(costs, [None for _ in costs] if described is None else described)
    assert found is not None
    return found


def test_a_process_counts_for_itself_and_a_namespace_once_for_all_its_processes() -> None:
    one = [record("start", 10, 1000, {1: 5}), record("end", 14, 1900, {1: 7, 2: 1})]
    other = [record("start", 100, 1010, {}), record("end", 103, 2000, {})]
    found = told(one, other)
    assert (found.minor_faults, found.voluntary_switches, found.socket_drops) == (4 + 3, 4 + 3, 2 + 1)
    assert found.wire_bytes == 2000 - 1000
    apart = [record("start", 0, 50, {}, 8), record("end", 0, 80, {}, 8)]
    assert told(one, other, apart).wire_bytes == 1000 + 30


def test_what_was_not_told_is_null_with_its_reason_and_never_0() -> None:
    one = [record("start", 0, None, {1: 0}), record("end", 0, None, {})]
    found = told(one)
    assert (found.minor_faults, found.signals, found.wire_bytes, found.socket_drops) == (0, None, None, None)
    assert found.reasons["signals"] == NO_SIGNALS
    assert found.reasons["socket_drops"] == SOCKET_CLOSED
    assert found.reasons["retransmitted_bytes"] == NOT_TOLD
    assert found.reasons["wire_bytes"] == "the kernel does not report it"
    killed = told(one, [record("start", 0, 1, {})])
    assert killed.minor_faults is None
    assert killed.reasons["minor_faults"] == NOT_RECORDED
    assert system_counts.of_trial([[], []], [None, None]) is None
    assert system_counts.of_trial([[{"when": "start"}, {"when": "end"}]], [None]) is None  # of an older version


@pytest.mark.parametrize(
    ("effective", "expected"),
    [
        ({"retransmitted_bytes": 12}, 12 + 5),
        ({"retransmitted_bytes": 0, "participants": [{"retransmitted_bytes": 3}, {"retransmitted_bytes": 4}]}, 7 + 5),
        ({"retransmitted_bytes": 12, "participants": 1}, 12 + 5),  # ROS 2 tells their number
        ({}, None),
    ],
)
def test_what_middlewares_sent_again_is_added_up_where_all_say_it(effective: Json, expected: int | None) -> None:
    one = [record("start", 0, 0, {}), record("end", 0, 0, {})]
    described: list[Json | None] = [{"effective": effective}, {"effective": {"retransmitted_bytes": 5}}]
    assert told(one, one, described=described).retransmitted_bytes == expected


def test_they_are_metrics_and_criteria_with_the_reason_where_there_is_none() -> None:
    counts = SystemCounts(minor_faults=50, socket_drops=0, reasons={"signals": NO_SIGNALS})
    totals = Totals(sent=100, received=100)
    trial = Trial(trial=1, order=1, outcome=SUCCESS, system=counts, totals=totals)
    assert METRICS["minor_faults_per_message"].read(trial).value == 0.5
    assert METRICS["signals"].read(trial).reason == NO_SIGNALS
    assert parse_criterion("socket_drops == 0").evaluate(trial).met
    assert parse_criterion("signals == 0").evaluate(trial).met is None
