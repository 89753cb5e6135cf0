"""Who starved whom in a trial: of what its trace told, which threads a stall is given to, by the names that its records
have; and the picture of such a stretch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeMonitor

from perflab.formats.records import ProcessRecords
from perflab.report import stretch_lanes
from perflab.results.starvation import LongWait, Starvation, Stretch
from perflab.results.trial import CpuHolder, StarvedThread
from perflab.runs import delays, traced

MS = 1_000_000
SHIFT = 7 * MS  # of the trace's time line


def thread(tid: int, **more: Any) -> StarvedThread:
    told: dict[str, Any] = {"process": "pong", "name": f"recv{tid}", "policy": "OTHER", "priority": None, "cpus": (1,)}
    return StarvedThread(tid=tid, waiting_share=1.0, **told, **more)


def wait(tid: int, begin_ms: int, end_ms: int) -> LongWait:
    return LongWait(begin_ms * MS, end_ms * MS, thread(tid))


def test_a_stall_is_given_to_the_thread_that_stood_between_then_to_those_that_messages_waited_for() -> None:
    found = Starvation(
        [wait(1, 0, 1000), wait(2, 100, 600), wait(2, 700, 900), wait(3, 50, 950), wait(4, 2000, 3000)],
        [Stretch(90 * MS, 980 * MS, 2), Stretch(1990 * MS, 3100 * MS, 1)],
    )
    during = found.during(100 * MS, 1000 * MS)
    assert [t.tid for t in during] == [2, 1, 3]
    assert [t.longest_ns for t in during] == [500 * MS, 900 * MS, 850 * MS]
    assert [t.waiting_share for t in during] == [0.778, 1.0, 0.944]
    assert found.during(1000 * MS, 1500 * MS) == ()


def test_without_a_stretch_that_fits_it_is_the_one_that_waited_longest() -> None:
    found = Starvation([wait(1, 0, 300), wait(2, 0, 900)], [Stretch(5000 * MS, 9000 * MS, 9)])
    assert [t.tid for t in found.during(0, 1000 * MS)] == [2, 1]


def test_its_words_say_who_it_is_how_long_and_behind_whom() -> None:
    holder = CpuHolder(
        process="burn", pid=8, tid=9, name="burn_1", policy="RR", priority=90, cpu=1, share=0.99
    )  # fmt: skip
    starved = thread(7, role="middleware", longest_ns=950 * MS, holders=(holder,))
    assert starved.words == (
        "thread recv7 (middleware, OTHER) of pong, which was ready but did not run for 0.95 s behind burn (pid 8, "
        "RR 90) on"
        " CPU 1"
    )


# -- what a trial keeps ----------------------------------------------------------------------------------------------


def row(**more: Any) -> dict[str, Any]:
    return {
        "begin_ns": 100 * MS + SHIFT, "end_ns": 900 * MS + SHIFT, "waited_ns": 800 * MS, "tid": 21, "pid": 20,
        "thread": "perflab-node", "process": "perflab-node", "role": "middleware", "priorities": "nice 0", "cpus": "1",
        "by_tid": 9, "by_pid": 8, "by_process": "perflab-burn", "by_thread": "burn_1", "by_priorities": "RT 90",
        "by_percent": 99.5, **more,
    }  # fmt: skip


def kept(
    folder: Path, *waits: dict[str, Any], shift_ns: int | None = SHIFT, locks: list[dict[str, Any]] | None = None
) -> Path:
    (folder / traced.FOLDER).mkdir()
    document = {
        "waits": {"rows": list(waits)},
        "stretches": {"rows": [{"begin_ns": 90 * MS + SHIFT, "end_ns": 950 * MS + SHIFT, "tid": 21}]},
        "lock_waiters": {"rows": locks or []},
        "asked": {"pids": [20], "monotonic_shift_ns": shift_ns, "locks": locks is not None},
    }
    (folder / traced.FOLDER / traced.STARVATION).write_text(json.dumps(document))
    return folder


def test_threads_have_the_names_that_the_records_and_the_monitor_have(tmp_path: Path) -> None:
    reading = {"tid": 21, "name": "recvUC", "role": "middleware", "policy": "OTHER", "priority": 0}
    process = ProcessRecords("pong", threads=[{"threads": [reading]}])
    monitor = MadeMonitor(tmp_path / "monitor.jsonl")
    monitor.thread("priority_inhibitor", 9, pid=8, policy="RR", priority=90).samples(2).reader()
    found = traced.starvation(kept(tmp_path, row()), [process])
    assert found is not None
    (wait,) = found.waits
    assert (wait.begin_ns, wait.end_ns) == (100 * MS, 900 * MS)
    assert (wait.thread.process, wait.thread.name, wait.thread.policy) == ("pong", "recvUC", "OTHER")
    (holder,) = wait.thread.holders
    assert (holder.process, holder.policy, holder.priority, holder.cpu) == ("perflab-burn", "RR", 90, 1)
    assert holder.share == pytest.approx(0.995)


LOCKED = {
    "for_wait": 3, "tid": 22, "process": "perflab-node", "thread": "perflab-node", "priority": "RT 98",
    "address": "0x7f10",
}  # fmt: skip


def test_who_waited_for_a_lock_of_the_starved_thread_is_named(tmp_path: Path) -> None:
    reading = {"tid": 22, "name": "executor", "role": "executor", "policy": "RR", "priority": 98}
    process = ProcessRecords("pong", threads=[{"threads": [reading]}])
    rows = [LOCKED, {**LOCKED, "address": "0x7f20"}, {**LOCKED, "tid": 23, "for_wait": 4}]
    found = traced.starvation(kept(tmp_path, row(wait=3), locks=rows), [process])
    assert found is not None
    (thread,) = (wait.thread for wait in found.waits)
    (waiter,) = thread.lock_waiters or ()
    assert (waiter.process, waiter.tid, waiter.name, waiter.address) == ("pong", 22, "executor", "0x7f10")
    assert thread.words.endswith("on CPU 1 and holds a lock that thread executor (tid 22, RR 98) waited for")


@pytest.mark.parametrize(("locks", "known"), [([], ()), (None, None)])
def test_that_nobody_waited_is_not_that_locks_were_not_recorded(
    tmp_path: Path, locks: list[dict[str, Any]] | None, known: tuple[()] | None
) -> None:
    found = traced.starvation(kept(tmp_path, row(wait=3), locks=locks))
    assert found is not None
    assert found.waits[0].thread.lock_waiters == known


def test_without_records_they_have_those_of_the_trace(tmp_path: Path) -> None:
    found = traced.starvation(kept(tmp_path, row()))
    assert found is not None
    assert "perflab-burn (pid 8, RT 90) on CPU 1" in found.waits[0].thread.words


def test_on_another_clock_than_the_records_nothing_is_claimed(tmp_path: Path) -> None:
    assert traced.starvation(kept(tmp_path, row(), shift_ns=None)) is None
    assert traced.keep_stretch(tmp_path, None, []) == []
    assert traced.stretch(tmp_path) is None


# -- without a trace -------------------------------------------------------------------------------------------------


def recorded(name: str, tid: int, *delays_ms: int, cpus: tuple[int, ...] = (1,), ran_ms: int = 0) -> ProcessRecords:
    """A process with one thread, read every 500 ms."""
    thread = {"tid": tid, "name": f"t{tid}", "role": "executor", "policy": "OTHER", "priority": 0, "cpus": [*cpus]}
    resources = [
        {
            "at_ns": 500 * MS * number,
            "threads": [{"tid": tid, "run_delay_ns": delay * MS, "cpu_ns": number * ran_ms * MS}],
        }
        for number, delay in enumerate(delays_ms)
    ]
    return ProcessRecords(name, threads=[{"threads": [thread]}], resources=resources)


def test_the_kernel_s_counts_of_waits_say_who_starved_and_its_cpu_time_who_ran(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "monitor.jsonl")
    monitor.thread("inhibitor", 9, pid=8, name="burn_1", policy="RR", priority=90, cpus=[1])
    monitor.thread("elsewhere", 10, cpus=[0]).samples(30, cpu=lambda tid, i: 0.95).reader()
    pong = recorded("pong", 21, 0, 0, 0, 950, 950)  # it was over before the reading at 1.5 s
    found = delays.starvation(tmp_path, [pong, recorded("ping", 22, 0, 0, 30, 99, 120, ran_ms=10)])
    assert found is not None
    (starved,) = found.during(550 * MS, 1500 * MS)
    assert (starved.process, starved.name, starved.waiting_share, starved.longest_ns) == ("pong", "t21", 1.0, None)
    assert starved.words == (
        "thread t21 (executor, OTHER) of pong, which waited 100 % of the time behind inhibitor (pid 8, RR 90) on CPU 1"
    )
    assert found.during(1500 * MS, 2000 * MS) == ()
    assert found.during(0, 2000 * MS) == (), "not half of the time"


def test_a_thread_of_the_workload_that_had_the_cpu_is_named_and_one_that_may_run_elsewhere_is_not(
    tmp_path: Path,
) -> None:
    pong, ping = recorded("pong", 21, 0, 500, 1000), recorded("ping", 22, 0, 0, 0, ran_ms=480)
    anywhere = recorded("other", 23, 0, 0, 0, cpus=(0, 1), ran_ms=400)
    found = delays.starvation(tmp_path, [pong, ping, anywhere])
    assert found is not None
    (starved,) = found.during(0, 1000 * MS)
    assert [(h.process, h.name, h.share) for h in starved.holders] == [("ping", "t22", 0.96)]
    assert delays.starvation(tmp_path, [ProcessRecords("pong")]) is None


# -- its picture -----------------------------------------------------------------------------------------------------


def drawn(**more: Any) -> dict[str, Any]:
    def who(name: str, process: str | None, role: str) -> dict[str, Any]:
        return {"process": process, "pid": 1, "thread": name, "tid": 1, "role": role}

    return {
        "begin_ns": 0, "end_ns": 950 * MS, "stretch": [100 * MS, 900 * MS], "cpus": [1],
        "threads": {
            "0": who("ping", "ping", "executor"), "1": who("recv", "pong", "middleware"),
            "2": who("burn_1", "burn", "program"), "3": who("pong", "pong", "executor"),
        },
        "runs": [[1, 2, 0, 850 * MS, 1], [1, 1, 850 * MS, 851 * MS, 2], [1, 0, 860 * MS, 861 * MS, 1]],
        "waits": [[1, 1, 110 * MS, 850 * MS]],
        "messages": [
            {"topic": "/ping", "published_ns": 105 * MS, "from_thread": 0, "handled_ns": 860 * MS, "to_thread": 3},
            {"topic": "/ping", "published_ns": 205 * MS, "from_thread": 0, "handled_ns": None, "to_thread": None},
        ],
        **more,
    }  # fmt: skip


def test_its_lanes_are_the_cpu_the_executors_and_who_starved() -> None:
    figure = stretch_lanes.lanes("stretch", "title", drawn())
    assert figure is not None
    assert [name for _, name in figure.y.ticks] == ["CPU 1", "ping", "pong", "recv of pong"]
    assert figure.x.title == "time since the last progress (ms)"
    bars = {
        of.name: [(round(s.begin), round(s.end), round(s.top + 0.3), s.label) for s in of.spans] for of in figure.spans
    }
    assert bars["burn_1 of burn runs"] == [(-100, 750, 0, "burn")]
    assert bars["ready but not running"] == [(10, 750, 3, "740 ms")]
    assert bars["the middleware runs"] == [(750, 751, 0, "pong"), (750, 751, 3, "")]
    signs = {s.name: [round(x) for x in s.x if x is not None] for s in figure.series}
    assert signs == {"messages": [5, 760], "published": [5], "handled": [760], "never handled": [105]}
    assert figure.notes[0].startswith("2 messages: 1 handled, 1 never;")


def test_where_nobody_waited_there_is_no_picture() -> None:
    assert stretch_lanes.lanes("stretch", "title", drawn(waits=[])) is None
    assert stretch_lanes.length_ns(drawn()) == 800 * MS
    assert stretch_lanes.length_ns({"stretch": None}) == 0
