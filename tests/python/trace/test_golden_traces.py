"""Known answers on recorded traces: computed once by independent scripts over babeltrace2, reproduced exactly.

Those scripts read the quantile q of n sorted values at the index floor(q n); perflab's own tables use the nearest rank.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from opened import needs_library
from reference_traces import reference_trace

from perflab.trace import open_trace
from perflab.trace.compare import compare
from perflab.trace.source import NativeTrace


def open_reference(name: str, folder: str = "") -> NativeTrace:
    needs_library()
    return open_trace([reference_trace(name) / folder])


def four(values: pl.Series) -> tuple[int, int, int, int]:
    """Smallest, median, 99 % and largest by the rule above."""
    ordered = values.sort().to_list()
    n = len(ordered)
    return ordered[0], ordered[n // 2], ordered[int(n * 0.99)], ordered[-1]


def of_callbacks(trace: NativeTrace, kind: str, name: str) -> pl.DataFrame:
    """Instances of the callbacks of that kind and name."""
    callbacks = trace.table("callbacks").with_row_index("callback").with_columns(pl.col("callback").cast(pl.Int32))
    chosen = callbacks.filter((pl.col("kind").cast(pl.String) == kind) & (pl.col("name") == name))
    return trace.table("callback_instances").join(chosen.select("callback"), on="callback", how="semi")


@pytest.fixture(scope="module")
def trace() -> NativeTrace:
    return open_reference("ros2_fastrtps_humble_fork")


class TestHumbleFork:
    """Three processes, source -> sync_one_to_one -> sink, on a fork of Humble with dds:* events."""

    def test_what_it_holds(self, trace: NativeTrace) -> None:
        assert sum(t["events"] for t in trace.facts["traces"]) == 99_338
        assert round((trace.facts["end_ns"] - trace.facts["begin_ns"]) / 1e9, 2) == 10.18
        assert (trace.table("processes").height, trace.table("threads").height) == (3, 6)
        assert trace.facts["ledger"] == []

    def test_callbacks(self, trace: NativeTrace) -> None:
        instances = trace.table("callback_instances")
        assert (instances.height, instances["end_ns"].null_count()) == (6_065, 0)
        expected = {
            ("timer", "5 ms"): (2_031, (16_562, 92_502, 180_552, 1_021_076)),
            ("subscription", "/topic_a"): (1_986, (19_164, 84_433, 172_144, 330_106)),
            ("subscription", "/topic_b"): (2_026, (15_569, 99_488, 195_834, 612_068)),
        }
        for (kind, name), (n, durations) in expected.items():
            found = of_callbacks(trace, kind, name)
            assert found.height == n
            assert four(found["end_ns"] - found["start_ns"]) == durations
        timer = of_callbacks(trace, "timer", "5 ms").sort("start_ns")
        assert four(timer["start_ns"].diff().drop_nulls()) == (584_513, 4_999_933, 5_107_871, 15_470_722)

    def test_takes(self, trace: NativeTrace) -> None:
        takes = trace.table("takes").with_columns(pl.col("match").cast(pl.String))
        assert Counter(takes["match"]) == {"matched": 3_994, "not_taken": 34, "no_publication": 40, "no_timestamp": 26}
        subscriptions = trace.table("subscriptions").with_row_index("subscription")
        topics = takes.join(
            subscriptions.select(pl.col("subscription").cast(pl.Int32), "topic"), on="subscription", how="left"
        )
        by_topic = {
            kind: Counter(topics.filter(pl.col("match") == kind)["topic"])
            for kind in ("matched", "no_publication", "no_timestamp")
        }
        assert by_topic["matched"] == {"/parameter_events": 22, "/topic_a": 1_986, "/topic_b": 1_986}
        assert by_topic["no_publication"] == {"/topic_b": 40}
        assert by_topic["no_timestamp"] == {None: 26}

        publications = trace.table("publications").with_row_index("publication")
        latency = topics.join(
            publications.select(pl.col("publication").cast(pl.Int32), "dds_ns"), on="publication", how="inner"
        ).with_columns((pl.col("rmw_ns") - pl.col("dds_ns")).alias("latency"))
        assert four(latency.filter(pl.col("topic") == "/topic_a")["latency"]) == (42_062, 195_332, 489_600, 45_377_631)
        assert four(latency.filter(pl.col("topic") == "/topic_b")["latency"]) == (35_853, 188_068, 430_668, 12_369_408)

        instances = trace.table("callback_instances").drop_nulls("take")
        started = instances.join(
            trace.table("takes").with_row_index("take").select(pl.col("take").cast(pl.Int32), "rmw_ns"), on="take"
        )
        assert started.height == 4_034
        assert four(started["start_ns"] - started["rmw_ns"]) == (1_771, 10_438, 31_521, 283_479)

    def test_executors(self, trace: NativeTrace) -> None:
        phases = trace.table("phases").with_columns(pl.col("phase").cast(pl.String))
        assert Counter(phases["phase"]) == {"get_next_ready": 24_189, "wait_for_work": 12_096, "execute": 6_065}
        spent = (
            phases.drop_nulls("end_ns")
            .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("ns"))
            .group_by("thread", "phase")
            .agg(pl.col("ns").sum())
            .with_columns((100 * pl.col("ns") / pl.col("ns").sum().over("thread")).round(1).alias("share"))
        )
        shares = {(row["thread"], row["phase"]): row["share"] for row in spent.to_dicts()}
        threads = sorted({thread for thread, _ in shares})
        found = {tuple(shares[t, p] for p in ("wait_for_work", "execute", "get_next_ready")) for t in threads}
        assert found == {(97.7, 2.0, 0.4), (97.1, 2.6, 0.3), (96.8, 2.9, 0.3)}


def test_caret_sample() -> None:
    trace = open_reference("caret_end_to_end_sample")
    assert sum(t["events"] for t in trace.facts["traces"]) == 2_880
    assert (trace.table("processes").height, trace.table("threads").height) == (1, 13)
    instances = trace.table("callback_instances")
    assert (instances.height, instances["end_ns"].null_count()) == (480, 0)
    callbacks = trace.table("callbacks").with_row_index("callback")
    named = instances.join(callbacks.with_columns(pl.col("callback").cast(pl.Int32)), on="callback")
    timers = named.filter(pl.col("kind").cast(pl.String) == "timer").sort("start_ns")
    medians = set()
    for _, group in timers.group_by("callback"):
        gaps = group.sort("start_ns")["start_ns"].diff().drop_nulls().sort().to_list()
        medians.add(gaps[len(gaps) // 2])
    assert medians == {100_001_779, 100_003_863, 100_000_194}


def wake_up_latencies(trace: NativeTrace) -> pl.DataFrame:
    wake_ups = trace.table("wake_ups").filter(~pl.col("already_running")).drop_nulls("switch_ns")
    return wake_ups.with_columns((pl.col("switch_ns") - pl.col("wakeup_ns")).alias("latency"))


def test_wake_ups_of_a_real_time_kernel() -> None:
    trace = open_reference("kernel_16_cores_rt")
    assert sum(t["events"] for t in trace.facts["traces"]) == 388_738
    latencies = wake_up_latencies(trace)
    assert latencies.height == 15_986
    assert four(latencies["latency"]) == (978, 3_742, 7_608, 4_687_570)
    assert trace.table("wake_ups")["already_running"].sum() == 41
    # The kernel's own scale: FIFO 50 is 49, FIFO 1 is 98.
    fifo_50 = latencies.filter(pl.col("priority") == 49)
    assert (fifo_50.height, four(fifo_50["latency"])) == (306, (1_345, 1_585, 2_430, 6_905))
    fifo_1 = latencies.filter(pl.col("priority") == 98)
    assert (fifo_1.height, four(fifo_1["latency"])) == (15_191, (978, 3_774, 7_643, 4_687_570))


@pytest.mark.parametrize("name", ["jazzy_small", "jazzy_small_ipc"])
def test_counts_of_real_rclcpp_programs_are_those_beside_the_trace(name: str) -> None:
    trace = open_reference(name)
    lines = (reference_trace(name) / name / "event_counts.txt").read_text().splitlines()
    expected = {event: int(count) for count, event in (line.split() for line in lines)}
    counted: Counter[str] = Counter()
    for event in trace.facts["events"]:
        counted[event["name"]] += event["count"]
    assert {event: n for event, n in counted.items() if event.startswith("ros2:")} == expected
    assert trace.table("callback_instances").height == expected["ros2:callback_start"]
    assert trace.table("callback_instances")["end_ns"].null_count() == 0
    assert trace.table("takes").height == expected.get("ros2:rmw_take", 0)
    assert trace.table("intra_deliveries").height == expected.get("ros2:rclcpp_ring_buffer_enqueue", 0)
    assert trace.table("intra_deliveries")["callback_instance"].null_count() == 0


def test_user_space_and_perf_are_on_one_time_line() -> None:
    trace = open_reference("jazzy_small")
    kernel = next(t for t in trace.facts["traces"] if t["domain"] == "kernel")
    user = next(t for t in trace.facts["traces"] if t["domain"] == "ust")
    assert kernel["first_ns"] < user["first_ns"] < user["last_ns"] < kernel["last_ns"]
    # Where a callback runs, its thread is on a CPU at some time between its start and its end.
    instances = trace.table("callback_instances")
    split = trace.split(instances["thread"], instances["start_ns"], instances["end_ns"])
    known = split.drop_nulls()
    assert known.height > 0.99 * instances.height
    assert (known["on_cpu_ns"] > 0).all()


def test_reading_is_the_same_with_one_thread_and_with_several(tmp_path: Path) -> None:
    needs_library()
    folder = reference_trace("jazzy_small")
    one, four_threads = open_trace([folder], threads=1), open_trace([folder], threads=4)
    for name in ("callback_instances", "publications", "takes", "phases", "thread_states", "wake_ups", "holds"):
        assert one.table(name).equals(four_threads.table(name))


def test_two_traces_are_compared_whichever_way_messages_went() -> None:
    """The same system with and without intra-process delivery: the edges are the same ones."""
    answer = compare(open_reference("jazzy_small"), open_reference("jazzy_small_ipc"))
    messages = answer.section("messages").frame.filter(pl.col("figure") == "transport")
    found = messages.filter(pl.col("topic").is_in(["/raw", "/filtered", "/command"]))
    assert found.height == 3
    assert set(found["delivery_a"]) == {"middleware"}
    assert set(found["delivery_b"]) == {"within process"}
    assert (found["p50_ratio"] < 1).all()
