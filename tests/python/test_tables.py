"""Tables of a trial: how threads are scheduled stands beside what they used."""

from __future__ import annotations

from typing import Any

from support import checkpoint, edge, publisher, service

from perflab.formats import tables
from perflab.formats.records import ProcessRecords
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import account


def sample(at_ns: int, *tids: int) -> dict[str, Any]:
    return {"at_ns": at_ns, "threads": [{"tid": tid, "name": f"t{tid}", "cpu_ns": at_ns} for tid in tids]}


def test_scheduling_is_joined_by_thread_and_process() -> None:
    reading = {"threads": [{"tid": 1, "role": "executor", "policy": "RR", "priority": 9, "cpus": [0, 2]}]}
    processes = [
        ProcessRecords("p", resources=[sample(5, 1, 2), sample(6, 1)], threads=[reading]),
        ProcessRecords("q", resources=[sample(5, 1)]),
    ]
    table = tables.of(None, processes)["threads"].select(
        "process", "at_ns", "tid", "role", "policy", "priority", "cpus"
    )
    assert table.rows() == [
        ("p", 5, 1, "executor", "RR", 9, "0,2"),
        ("p", 5, 2, None, None, None, None),
        ("p", 6, 1, "executor", "RR", 9, "0,2"),
        ("q", 5, 1, None, None, None, None),
    ]


def test_allocations_are_null_where_nobody_counted_them() -> None:
    counted = sample(5, 1) | {"allocations": {"count": 7, "bytes": 900, "frees": 3}}
    counted["threads"][0]["allocations"] = 4
    processes = [ProcessRecords("p", resources=[counted, sample(6, 1) | {"allocations": None}, sample(7, 1)])]
    table = tables.of(None, processes)["resources"].select("at_ns", "allocations", "allocated_bytes", "frees")
    assert table.rows() == [(5, 7, 900, 3), (6, None, None, None), (7, None, None, None)]
    assert tables.of(None, processes)["threads"].select("at_ns", "tid", "allocations").rows() == [
        (5, 1, 4),
        (6, 1, None),
        (7, 1, None),
    ]


def test_services_have_both_of_their_halves() -> None:
    accounts = account([checkpoint([publisher(3)], [edge(3, 0, 2)], [service(publisher(10), edge(8, 0, 8, gap=1))])])
    row = tables.of(accounts, [])["services"].row(0, named=True)
    assert [row[key] for key in ("client", "service", "server")] == ["/a", "/add", "/s"]
    assert [row[key] for key in ("requested", "sent", "received", "gap", "tail")] == [10, 10, 8, 1, 1]
    assert hg.decode(row["round_trip_v2"]).count == 8
    assert row["publish_delay_count"] == 10
    assert tables.of(accounts, [])["publishers"]["node"].to_list() == ["/a"]
    assert tables.of(None, [])["services"].columns == tables.of(accounts, [])["services"].columns
