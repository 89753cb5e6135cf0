"""What a trace is, and the ledger of what is wrong with its data."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from made_tables import MadeSource, Row

from perflab.trace.callbacks import callbacks
from perflab.trace.compare import compare
from perflab.trace.executor import executor
from perflab.trace.messages import messages
from perflab.trace.quality import quality_of, share
from perflab.trace.scheduling import scheduling
from perflab.trace.summary import summary

MS = 1_000_000
SCHEDULER = {"begin_ns": 0, "end_ns": 10 * MS, "events": 9, "has_wakeups": True, "has_waking": False,
             "has_migrations": False}  # fmt: skip


def stream(**more: Any) -> dict[str, Any]:
    return {"cpu": 0, "instance": 0, "packets": 2, "events": 7, "bytes": 4096, "discarded_events": 0, "lost_packets": 0,
            "first_ns": 0, "last_ns": 10} | more  # fmt: skip


def part(path: str = "/traces/made/ust", **more: Any) -> dict[str, Any]:
    clock = {"name": "monotonic", "frequency_hz": 1_000_000_000, "offset_ns": 500, "absolute": True}
    return {"path": path, "uuid": None, "host": "robot", "domain": "ust", "tracer": "lttng-ust",
            "tracer_version": "2.13", "clock": clock, "shift_ns": 0, "events": 7, "first_ns": 0, "last_ns": 10 * MS,
            "streams": [stream()]} | more  # fmt: skip


def system() -> dict[str, list[Row]]:
    return {
        "hosts": [{"name": "robot"}],
        "processes": [
            {"host": 0, "pid": 10, "name": "talker", "tracetools_version": "8.2.3", "first_ns": 0, "last_ns": 10 * MS,
             "events": 50},
            {"host": 0, "pid": 20, "name": "bash", "events": 0},
        ],
        "threads": [
            {"host": 0, "process": 0, "tid": 10, "name": "talker", "events": 40},
            {"host": 0, "process": 0, "tid": 11, "name": "worker", "events": 10},
            {"host": 0, "process": 1, "tid": 20, "name": "bash", "events": 0},
        ],
        "nodes": [{"process": 0, "handle": 1, "name": "/talker"}, {"process": 0, "handle": 2, "name": "/other"}],
        "publishers": [{"process": 0, "node": 0, "handle": 3, "topic": "/chatter"}],
        "callbacks": [{"process": 0, "handle": 5, "kind": "unknown"}],
        "callback_instances": [
            {"callback": 0, "thread": 0, "start_ns": 1, "end_ns": 2},
            {"callback": 0, "thread": 0, "start_ns": 3, "end_ns": None},
        ],
    }  # fmt: skip


def rows(source: MadeSource, section: str) -> list[dict[str, Any]]:
    return summary(source).section(section).frame.to_dicts()


def test_what_ran_and_for_how_long() -> None:
    source = MadeSource(
        system(), traces=[part()], end_ns=10 * MS, epoch_offset_ns=1_700_000_000_123_000_000,
        tracetools_versions=["8.2.3"],
        events=[{"name": "ros2:rcl_init", "count": 3, "kind": "rcl_init", "trace": 0},
                {"name": "my:own", "count": 1, "kind": None, "trace": 0}],
    )  # fmt: skip
    overview = rows(source, "overview")[0]
    assert (overview["duration_ns"], overview["events"], overview["events_unused"]) == (10 * MS, 7, 1)
    assert (overview["nodes"], overview["publishers"], overview["callback_instances"]) == (2, 1, 2)
    assert (overview["tracetools"], overview["tracers"]) == ("8.2.3", "lttng-ust 2.13")
    assert overview["begin_utc"] == "2023-11-14T22:13:20.123+00:00"
    assert overview["scheduler_events"] is None
    assert [(r["event"], r["n"], r["share_percent"], r["used_as"]) for r in rows(source, "events")] == [
        ("ros2:rcl_init", 3, 75.0, "rcl_init"),
        ("my:own", 1, 25.0, None),
    ]


def test_processes_and_nodes_with_their_objects() -> None:
    source = MadeSource(system())
    processes = rows(source, "processes")
    assert [(p["process"], p["pid"], p["threads"], p["nodes"], p["publishers"]) for p in processes] == [
        ("talker", 10, 2, 2, 1)
    ]
    assert summary(source).section("processes").notes == ("1 more process only in scheduler events",)
    assert [(n["node"], n["publishers"], n["subscriptions"]) for n in rows(source, "nodes")] == [
        ("/other", 0, 0),
        ("/talker", 1, 0),
    ]


def test_streams_with_what_they_lost() -> None:
    lossy = stream(cpu=3, discarded_events=7002, lost_packets=1)
    source = MadeSource(system(), traces=[part(streams=[stream(), lossy])])
    assert [(s["cpu"], s["discarded_events"], s["lost_packets"]) for s in rows(source, "streams")] == [
        (0, 0, 0),
        (3, 7002, 1),
    ]


def entry(kind: str = "discarded_events", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "count": 7002, "exact": True, "file": "ust/channel_3", "offset": 4096, "begin_ns": 2 * MS,
            "end_ns": 6 * MS, "message": "channel_3: 7,002 events discarded"} | more  # fmt: skip


def test_every_entry_of_the_ledger_is_kept_and_summed_up_in_sentences() -> None:
    ledger = [entry(), entry(count=1, end_ns=8 * MS, exact=False), entry("lost_packets", count=1, begin_ns=None)]
    source = MadeSource(system(), ledger=ledger)
    assert [r["count"] for r in rows(source, "ledger")] == [7002, 1, 1]
    assert summary(source).quality[:2] == (
        "at least 7 003 events discarded by the tracer in 1 file, between 2.00 ms and 8.00 ms after the beginning",
        "1 packet lost in 1 file",
    )


def test_a_sound_trace_says_so() -> None:
    answer = summary(MadeSource({}))
    assert answer.quality == ()
    assert answer.section("ledger").notes == ("nothing of the trace is missing or damaged",)
    assert answer.section("clocks").notes == ("nothing about the clocks is odd",)


def test_counters_that_are_not_zero_are_explained() -> None:
    counters = {"callback_end_without_start": 2, "events_without_thread": 0, "some_new_counter": 1}
    found = {r["counter"]: r["meaning"] for r in rows(MadeSource({}, counters=counters), "unmatched")}
    assert set(found) == {"callback_end_without_start", "some_new_counter"}
    assert "start was not seen" in found["callback_end_without_start"]
    assert found["some_new_counter"] == "some new counter"


def test_missing_initialisation_counts_callbacks_and_their_instances() -> None:
    assert rows(MadeSource(system()), "initialisation") == [
        {"what": f"callbacks without {what}", "callbacks": 1, "instances": 2} for what in ("owner", "node", "symbol")
    ]


def test_clocks_that_do_not_agree() -> None:
    kernel = part(
        "/traces/made/kernel", domain="kernel", first_ns=30 * MS, last_ns=40 * MS, shift_ns=5,
        clock={"name": "tsc", "frequency_hz": 1_000_000, "offset_ns": 3050, "absolute": True},
    )  # fmt: skip
    remote = part("/traces/made/other", host="station")
    found = {r["kind"]: r["message"] for r in rows(MadeSource({}, traces=[part(), kernel, remote]), "clocks")}
    assert set(found) == {"frequencies", "offsets", "shift", "hosts", "no_overlap"}
    assert "2.55 µs" in found["offsets"]
    assert "20.0 ms" in found["no_overlap"]
    assert "robot, station" in found["hosts"]


def test_clocks_that_agree_are_not_mentioned() -> None:
    no_epoch = {"name": "perf", "frequency_hz": 1_000_000_000, "offset_ns": 0, "absolute": False}
    kernel = part("/traces/made/kernel", domain="kernel", first_ns=MS, last_ns=9 * MS, clock=no_epoch)
    assert rows(MadeSource({}, traces=[part(), kernel]), "clocks") == []


def test_an_offset_of_nothing_is_one_only_where_the_clock_is_absolute() -> None:
    absolute = {"name": "tsc", "frequency_hz": 1_000_000_000, "offset_ns": 0, "absolute": True}
    kernel = part("/traces/made/kernel", domain="kernel", first_ns=MS, last_ns=9 * MS, clock=absolute)
    (found,) = rows(MadeSource({}, traces=[part(), kernel]), "clocks")
    assert found["kind"] == "offsets"
    assert "500 ns" in found["message"]


def test_switches_that_contradict_each_other_are_said_wherever_the_scheduler_is_used() -> None:
    words = "12 context switches do not follow from the one before on their CPU or of their thread"
    source = MadeSource(system(), scheduler=SCHEDULER | {"contradictions": 12})
    answers = (summary(source), callbacks(source), messages(source), executor(source), scheduling(source))
    assert all(sum(words in line for line in answer.quality) == 1 for answer in answers)
    compared = compare(source, source)
    assert sum(words in line for line in compared.quality) == 2
    assert not any("context switch" in line for line in quality_of(source).lines("messages", "handling"))
    sound = MadeSource(system(), scheduler=SCHEDULER | {"contradictions": 0})
    assert not any("context switch" in line for line in scheduling(sound).quality)
    one = MadeSource(system(), scheduler=SCHEDULER | {"contradictions": 1})
    assert any(line.startswith("1 context switch does not follow") for line in scheduling(one).quality)
    inferred = MadeSource(system(), scheduler=SCHEDULER | {"contradictions": 2, "inferred_states": 1})
    assert any("unknown, but for 1 that" in line for line in scheduling(inferred).quality)


def test_wake_ups_that_only_the_recorder_knows_of_are_said_wherever_the_scheduler_is_used() -> None:
    source = MadeSource(system(), scheduler=SCHEDULER | {"recovered_wakeups": 2})
    words = "2 wake-ups without an event are known from the kernel, most to some µs; who woke is not"
    assert all(words in answer.quality for answer in (summary(source), executor(source), scheduling(source)))
    assert words not in quality_of(source).lines("messages", "handling")
    assert not any("wake-up" in line for line in scheduling(MadeSource(system(), scheduler=SCHEDULER)).quality)


def test_files_that_cannot_be_read_are_counted_as_files() -> None:
    entry = {"kind": "unreadable_stream", "count": 0, "exact": True, "file": "ust/a", "message": "cannot be read"}
    assert "1 file that cannot be read" in summary(MadeSource(system(), ledger=[entry])).quality
    two = [entry, entry | {"file": "ust/b", "count": 300}]
    assert "2 files that cannot be read (300 bytes)" in summary(MadeSource(system(), ledger=two)).quality


def test_the_coverage_of_thread_states_says_what_rests_on_inferred_ones() -> None:
    made = system() | {
        "callback_instances": [
            {"callback": 0, "thread": 0, "start_ns": 100, "end_ns": 200},
            {"callback": 0, "thread": 0, "start_ns": 300, "end_ns": 400},
        ],
        "thread_states": [
            {"thread": 0, "state": "running", "start_ns": 50, "end_ns": 120, "inferred": True},
            {"thread": 0, "state": "blocked", "start_ns": 120, "end_ns": 350, "inferred": False},
            {"thread": 0, "state": "running", "start_ns": 350, "end_ns": 500, "inferred": True},
        ],
    }
    source = MadeSource(made, scheduler=SCHEDULER | {"inferred_states": 2})
    basis = {c.figure: c.basis() for c in quality_of(source).coverage}["thread states"]
    # 20 ns of the first and 50 of the second
    assert basis == (
        "100 % of callback time has known thread states (35.0 % of it by states that begin with an event of user space)"
    )


def test_threads_of_user_space_without_scheduler_events() -> None:
    states = [{"thread": 0, "state": "running", "start_ns": 0, "end_ns": 10}]
    source = MadeSource(system() | {"thread_states": states}, scheduler=SCHEDULER)
    assert [(r["thread"], r["tid"], r["events"]) for r in rows(source, "threads_without_scheduler")] == [
        ("worker", 11, 10)
    ]
    assert rows(MadeSource(system()), "threads_without_scheduler") == []


def test_the_coverage_of_every_figure_or_why_it_is_null() -> None:
    coverage = {r["figure"]: r for r in rows(MadeSource(system(), tracetools_versions=["8.2.3"]), "coverage")}
    assert (coverage["callbacks"]["known"], coverage["callbacks"]["of"]) == (1, 2)
    assert (coverage["callback owners"]["known"], coverage["callback owners"]["known_percent"]) == (0, 0)
    for figure, words in (("services", "Kilted"), ("thread states", "scheduler"), ("executor", "EventsExecutor")):
        assert coverage[figure]["known"] is None
        assert words in coverage[figure]["reason"]
    newer = {r["figure"]: r for r in rows(MadeSource({}, tracetools_versions=["8.6.0"]), "coverage")}
    assert "Kilted" not in newer["services"]["reason"]


@pytest.mark.parametrize(
    ("part_", "whole", "words"),
    [(0, 7, "0.0 %"), (1, 100_000, "< 0.1 %"), (3994, 4060, "98.4 %"), (99_999, 100_000, "> 99.9 %"), (5, 5, "100 %")],
)
def test_a_share_is_neither_nothing_nor_all_where_it_is_not(part_: int, whole: int, words: str) -> None:
    assert share(part_, whole) == words


def test_which_stretches_a_loss_touches() -> None:
    ledger = [entry(begin_ns=100, end_ns=200), entry(begin_ns=150, end_ns=300), entry(begin_ns=500, end_ns=600)]
    quality = quality_of(MadeSource({}, ledger=ledger))
    assert quality.gaps.rows() == [(100, 300), (500, 600)]
    begins = pl.Series([0, 0, 250, 301, 301, 700, None], dtype=pl.Int64)
    ends = pl.Series([99, 100, 260, 499, 900, 800, 5], dtype=pl.Int64)
    assert quality.touched(begins, ends).to_list() == [False, True, True, False, True, False, None]
