"""What is exported for Perfetto, read back with Perfetto's own trace processor: it shows what the trace says."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_trace import EPOCH_OFFSET_NS, MadeTrace
from opened import needs_library, opened
from reference_traces import reference_trace
from support import HERE, SOURCE
from trace_processor import TraceProcessor

from perflab.cli import main
from perflab.errors import BadInput, PerflabError
from perflab.trace import open_trace
from perflab.trace.export import export_file
from perflab.trace.messages import messages
from perflab.trace.source import NativeTrace

Rows = list[tuple[Any, ...]]

SLICES = """
    select s.id, s.ts, s.dur, s.name, s.depth, s.category, t.tid, p.pid, s.arg_set_id
    from slice s join thread_track k on s.track_id = k.id join thread t using (utid) left join process p using (upid)
"""


@pytest.fixture(scope="module")
def processor() -> Iterator[TraceProcessor]:
    needs_library()
    with TraceProcessor() as made:
        yield made


def shown(processor: TraceProcessor, trace: NativeTrace, folder: Path) -> TraceProcessor:
    """The trace as Perfetto has it."""
    path = folder / "made.pftrace"
    export_file(trace, path, "perfetto", force=True)
    processor.load(path.read_bytes())
    return processor


def rows(processor: TraceProcessor, sql: str) -> Rows:
    return processor.query(sql)


def errors(processor: TraceProcessor) -> Rows:
    return rows(processor, "select name, value from stats where severity != 'info' and value > 0 order by name")


def chatting(layout: Any = "jazzy") -> tuple[MadeTrace, Any, Any, Any, Any, Any]:
    """A talker with a timer and a listener, and their objects."""
    trace = MadeTrace(layout)
    talker, listener = trace.process("talker", pid=10), trace.process("listener", pid=20, cpu=1)
    node = talker.node("talker")
    chatter = talker.publisher(node, "/chatter")
    timer = talker.timer(node, period_ns=100_000_000)
    heard = listener.subscription(listener.node("listener"), "/chatter", "Listener::on_chatter(int)")
    return trace, talker, listener, chatter, timer, heard


def test_callbacks_publications_and_their_flows_and_arguments(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, listener, chatter, timer, heard = chatting()
    talker.main.at(1_000_000).callback_start(callback=timer.callback, is_intra_process=0)
    sent = talker.main.publish(chatter, at=1_000_100)
    talker.main.at(1_000_500).callback_end(callback=timer.callback)
    listener.main.take(heard, sent, at=1_002_000)
    listener.main.callback(heard, 1_002_100, 1_003_100)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    found = rows(read, f"select ts, dur, name, depth, category, tid, pid from ({SLICES}) order by ts")
    assert found == [
        (1_000_000, 500, "/talker timer 100 ms", 0, "callback", 10, 10),
        (1_000_100, 2, "publish /chatter", 1, "publication", 10, 10),
        (1_002_100, 1_000, "/listener /chatter", 0, "callback", 20, 20),
    ]
    flows = "select o.name, i.name from flow join slice o on slice_out = o.id join slice i on slice_in = i.id"
    assert rows(read, flows) == [("publish /chatter", "/listener /chatter")]
    arguments = "select key, display_value from slice join args using (arg_set_id) where name = '/listener /chatter'"
    assert dict(rows(read, arguments)) == {
        "debug.handle": f"{heard.callback:#x}",
        "debug.kind": "subscription",
        "debug.symbol": "Listener::on_chatter(int)",
        "debug.latency_ns": "2000",
    }
    assert rows(read, "select pid, name from process where pid > 0 order by pid") == [(10, "talker"), (20, "listener")]
    realtime = rows(read, "select to_realtime(ts) from slice where name = '/listener /chatter'")
    assert realtime == [(1_002_100 + EPOCH_OFFSET_NS,)]
    assert errors(read) == []


def test_a_timer_says_when_it_was_due_and_how_late_it_was(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, _, _, timer, _ = chatting()
    talker.main.at(1_000_090).perflab__timer_due(timer_handle=timer.handle, due_ns=999_900)
    talker.main.callback(timer, 1_000_100, 1_000_500)
    talker.main.callback(timer, 2_000_100, 2_000_500)  # not said
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    query = """select extract_arg(arg_set_id, 'debug.due_ns'), extract_arg(arg_set_id, 'debug.late_ns')
               from slice where category = 'callback' order by ts"""
    assert rows(read, query) == [(999_900, 200), (None, None)]


def test_a_latency_across_lost_events_is_left_out_and_the_flow_is_not(
    processor: TraceProcessor, tmp_path: Path
) -> None:
    trace, talker, listener, chatter, _, heard = chatting()
    for at in (1_000, 5_000):
        sent = talker.main.publish(chatter, at=at)
        listener.main.take(heard, sent, at=at + 1_000)
        listener.main.callback(heard, at + 1_100, at + 1_200)
        if at == 1_000:
            trace.user_space().discard(4_900, events=0)
    trace.user_space().discard(5_500, events=3)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    query = "select extract_arg(arg_set_id, 'debug.latency_ns') from slice where category = 'callback' order by ts"
    assert rows(read, query) == [(1_100,), (None,)]
    assert rows(read, "select count(*) from flow") == [(2,)]


def test_one_message_to_two_subscriptions_is_two_flows(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, listener, chatter, _, heard = chatting()
    third = trace.process("third", pid=30, cpu=2)
    also = third.subscription(third.node("third"), "/chatter")
    sent = talker.main.publish(chatter, at=1_000)
    for process, subscription, at in ((listener, heard, 2_000), (third, also, 3_000)):
        process.main.take(subscription, sent, at=at)
        process.main.callback(subscription, at + 10, at + 20)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    flows = (
        "select o.name, i.name from flow join slice o on slice_out = o.id join slice i on slice_in = i.id order by i.ts"
    )
    assert rows(read, flows) == [
        ("publish /chatter", "/listener /chatter"),
        ("publish /chatter", "/third /chatter"),
    ]


def test_within_a_process_flows_follow_the_ring_buffer_and_what_is_overwritten_is_said(
    processor: TraceProcessor, tmp_path: Path
) -> None:
    trace = MadeTrace("jazzy")
    process = trace.process("composed", pid=10)
    node = process.node("composed")
    chatter = process.publisher(node, "/chatter")
    heard = process.subscription(node, "/chatter", depth=1, intra_process=True)
    for at in (1_000, 2_000):  # the second takes the place of the first
        process.main.intra_publish(chatter, [heard], at=at)
    process.main.dequeue(heard, at=3_000)
    assert heard.ring is not None
    process.main.callback(heard.ring, 3_010, 3_020, intra=True)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    flows = "select o.ts, i.ts from flow join slice o on slice_out = o.id join slice i on slice_in = i.id"
    assert rows(read, flows) == [(2_000, 3_010)]
    lost = "select s.ts, s.name, k.name from slice s join track k on s.track_id = k.id where category = 'lost message'"
    assert rows(read, lost) == [(1_001, "overwritten: /chatter → /composed", "lost messages")]


def test_what_is_not_taken_stands_where_it_was_published(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, listener, chatter, _, heard = chatting()
    sent = [talker.main.publish(chatter, at=at) for at in (1_000_000, 2_000_000, 3_000_000)]
    for publication, at in ((sent[0], 1_500_000), (sent[2], 3_500_000)):
        listener.main.take(heard, publication, at=at)
        listener.main.callback(heard, at + 10, at + 20)
    listener.main.callback(heard, 300_000_000, 300_000_010)  # so that what came before is judged
    source = opened(trace, tmp_path / "trace")
    assert messages(source).section("messages").frame["not_taken"].to_list() == [1]
    read = shown(processor, source, tmp_path)
    found = rows(read, "select ts, dur, name from slice where category = 'lost message'")
    assert found == [(2_000_000, 0, "not taken: /chatter → /listener")]


def test_nested_callbacks_executors_and_functions_have_tracks_of_their_own(
    processor: TraceProcessor, tmp_path: Path
) -> None:
    trace, talker, _, _, timer, _ = chatting()
    inner = talker.timer(talker.node("inner"), period_ns=1_000_000)
    main = talker.main
    main.get_next_ready(1_000)
    main.execute(1_100, timer)
    main.at(1_200).callback_start(callback=timer.callback, is_intra_process=0)
    main.callback(inner, 1_300, 1_400)
    main.at(1_500).callback_end(callback=timer.callback)
    main.get_next_ready(1_600)
    main.function(0x5500_1111, 1_250, 1_450)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    query = "select s.ts, s.dur, s.name, s.depth, k.name from slice s join track k on s.track_id = k.id"
    where = "where category in ('callback', 'executor', 'function')"
    assert rows(read, f"{query} {where} order by k.name, s.ts") == [
        (1_200, 300, "/talker timer 100 ms", 0, None),
        (1_300, 100, "/inner timer 1 ms", 1, None),
        (1_000, 100, "get_next_ready", 0, "executor"),
        (1_100, 500, "execute", 0, "executor"),
        (1_600, -1, "get_next_ready", 0, "executor"),
        (1_250, 200, "0x55001111", 0, "functions"),
    ]


def test_what_has_no_end_gets_none(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, _, _, timer, _ = chatting()
    other = talker.timer(talker.node("other"), period_ns=1_000_000)
    talker.main.callback(timer, 1_000, None)  # its end was not seen: others follow
    talker.main.callback(other, 2_000, 2_500)
    talker.main.callback(timer, 3_000, None)  # the last: it may go on
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    found = rows(
        read,
        f"""select ts, dur, name, depth, extract_arg(arg_set_id, 'debug.end')
            from ({SLICES}) where category = 'callback' order by ts""",
    )
    assert found == [
        (1_000, 0, "/talker timer 100 ms", 0, "not seen"),
        (2_000, 500, "/other timer 1 ms", 0, None),
        (3_000, -1, "/talker timer 100 ms", 0, "not seen"),
    ]


# The scheduler --------------------------------------------------------------------------------------------------------

STATES = """
    select tid, ts, dur, state, cpu from thread_state join thread using (utid) where tid != 0 order by tid, ts
"""


def test_thread_states_priorities_and_wakers(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, listener, *_ = chatting()
    kernel = trace.kernel("lttng")
    one, two = talker.main, listener.main
    kernel.switch(1_000, cpu=0, prev=0, next=one, next_prio=49)
    kernel.wakeup(1_200, cpu=0, task=two)
    kernel.switch(1_500, cpu=0, prev=one, next=two, prev_state="preempted", prev_prio=49)
    kernel.switch(1_900, cpu=0, prev=two, next=one, prev_state="uninterruptible", next_prio=49)
    kernel.wakeup(2_000, cpu=1, task=two, target_cpu=0)
    kernel.switch(2_400, cpu=0, prev=one, next=two, prev_state="sleeping", prev_prio=49)
    kernel.exit(2_500, cpu=0, task=two)
    kernel.switch(2_600, cpu=0, prev=two, next=0, prev_state="dead")
    kernel.switch(3_000, cpu=1, prev=0, next=(99, "other"))
    kernel.switch(3_500, cpu=1, prev=(99, "other"), next=0)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    assert rows(read, STATES) == [
        (10, 1_000, 500, "Running", 0),
        (10, 1_500, 400, "R+", None),
        (10, 1_900, 500, "Running", 0),
        (10, 2_400, -1, "S", None),
        (20, 1_200, 300, "R", None),
        (20, 1_500, 400, "Running", 0),
        (20, 1_900, 100, "D", None),
        (20, 2_000, 400, "R", None),
        (20, 2_400, 200, "Running", 0),
        (20, 2_600, -1, "X", None),
        (99, 3_000, 500, "Running", 1),
        (99, 3_500, -1, "S", None),
    ]
    wakers = """select w.ts, t.tid from thread_state w join thread t on t.utid = w.waker_utid order by w.ts"""
    assert rows(read, wakers) == [(1_200, 10), (2_000, 0)]
    slices = (
        "select ts, dur, cpu, tid, priority, end_state from sched join thread using (utid) where tid != 0 order by ts"
    )
    assert rows(read, slices) == [
        (1_000, 500, 0, 10, 49, "R+"),
        (1_500, 400, 0, 20, 120, "D"),
        (1_900, 500, 0, 10, 49, "S"),
        (2_400, 200, 0, 20, 120, "X"),
        (3_000, 500, 1, 99, 120, "S"),
    ]
    assert rows(read, "select name from thread where tid = 99") == [("other",)]
    assert errors(read) == []


def test_a_thread_of_which_nothing_is_known_until_it_runs_again_is_in_no_state(
    processor: TraceProcessor, tmp_path: Path
) -> None:
    trace, talker, *_ = chatting()
    kernel = trace.kernel("lttng")
    kernel.switch(1_000, cpu=0, prev=0, next=talker.main)
    kernel.switch(1_500, cpu=0, prev=talker.main, next=0)
    kernel.discard(1_600, events=0)  # ends a packet
    kernel.discard(2_000, events=7)
    kernel.switch(3_000, cpu=0, prev=0, next=talker.main)
    kernel.switch(3_500, cpu=0, prev=talker.main, next=0)
    source = opened(trace, tmp_path / "trace")
    read = shown(processor, source, tmp_path)
    assert rows(read, STATES) == [
        (10, 1_000, 500, "Running", 0),
        (10, 1_500, 1_500, None, None),
        (10, 3_000, 500, "Running", 0),
        (10, 3_500, -1, "S", None),
    ]
    assert errors(read) == [("task_state_invalid", 1)]
    lost = "select s.ts, s.dur, s.name, k.name from slice s join track k on s.track_id = k.id where category = 'loss'"
    (loss,) = source.facts["ledger"]
    assert (loss["begin_ns"], loss["end_ns"]) == (1_600, 2_000)
    where = f"events lost: {Path(loss['file']).name}"
    assert rows(read, lost) == [(1_600, 400, loss["message"], where)]


def test_it_is_said_where_the_scheduler_s_events_begin_and_end(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, _, _, timer, _ = chatting()
    talker.main.callback(timer, 100, 9_000)
    kernel = trace.kernel("lttng")
    kernel.switch(1_000, cpu=0, prev=0, next=(99, "other"))
    kernel.switch(2_000, cpu=0, prev=(99, "other"), next=talker.main)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    found = rows(
        read, "select ts, name from slice where category = 'quality' and name glob 'scheduler events*' order by ts"
    )
    assert found == [
        (1_000, "scheduler events begin here"),
        (2_000, "scheduler events end here: what threads do from here on is unknown"),
    ]


def test_names_may_be_anything(processor: TraceProcessor, tmp_path: Path) -> None:
    trace = MadeTrace("jazzy")
    process = trace.process('größe"; drop\n', pid=10)
    hostile = "/" + "x" * 3_000
    timer = process.timer(process.node(hostile), period_ns=1_000_000, symbol="f<a; b>::(lambda)#1 \t \\ é")
    process.main.callback(timer, 1_000, 2_000)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    (found,) = rows(read, "select name, extract_arg(arg_set_id, 'debug.symbol') from slice where category = 'callback'")
    assert found == (f"/{hostile} timer 1 ms", "f<a; b>::(lambda)#1 \t \\ é")
    assert rows(read, "select name from process where pid = 10") == [('größe"; drop\n',)]


def test_what_is_doubtful_is_said_at_the_beginning(processor: TraceProcessor, tmp_path: Path) -> None:
    trace, talker, _, _, timer, _ = chatting()
    talker.main.callback(timer, 1_000, 1_500)
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    said = rows(
        read, "select s.ts, s.name from slice s join track k on s.track_id = k.id where k.name = 'Data quality'"
    )
    assert {ts for ts, _ in said} == {1}
    assert any("the trace has no scheduler events" in str(name) for _, name in said)


def test_two_hosts_with_the_same_numbers_are_kept_apart(processor: TraceProcessor, tmp_path: Path) -> None:
    trace = MadeTrace("jazzy")
    callbacks = []
    for name in ("alpha", "beta"):
        process = trace.process("node", pid=10, host=name)
        timer = process.timer(process.node(f"node_{name}"), period_ns=1_000_000)
        process.main.callback(timer, 1_000, 2_000)
        kernel = trace.kernel("lttng", host=name)
        kernel.switch(900, cpu=0, prev=0, next=process.main)
        kernel.switch(2_100, cpu=0, prev=process.main, next=0)
        callbacks.append(f"/node_{name} timer 1 ms")
    read = shown(processor, opened(trace, tmp_path / "trace"), tmp_path)
    found = rows(read, f"select name, pid, tid from ({SLICES}) where category = 'callback' order by pid")
    assert found == [(callbacks[0], 10, 10), (callbacks[1], 10_000_010, 10_000_010)]
    names = rows(read, "select pid, name from process where pid > 0 order by pid")
    assert names == [(10, "node @ alpha"), (10_000_010, "node @ beta")]
    running = "select tid, cpu, dur from thread_state join thread using (utid) where state = 'Running' order by tid"
    assert rows(read, running) == [(10, 0, 1_200), (10_000_010, 1, 1_200)]


# Recorded traces ------------------------------------------------------------------------------------------------------

RECORDED = ("jazzy_small", "jazzy_small_ipc", "ros2_fastrtps_humble_fork", "kernel_16_cores_rt", "lttng_ust_plus_perf")


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_trace_is_the_same_in_perfetto(processor: TraceProcessor, tmp_path: Path, name: str) -> None:
    needs_library()
    trace = open_trace([reference_trace(name)])
    read = shown(processor, trace, tmp_path)
    threads = trace.table("threads").with_row_index("thread").select(pl.col("thread").cast(pl.Int32), "tid")

    # Callbacks of each thread: how many, and how long those that ended.
    instances = trace.table("callback_instances").join(threads, on="thread").filter(pl.col("tid").is_not_null())
    duration = (pl.col("end_ns") - pl.col("start_ns")).sum()
    per_thread = instances.group_by("tid").agg(n=pl.len(), ns=duration).sort("tid").rows()
    query = (
        f"select tid, count(*), sum(max(dur, 0)) from ({SLICES}) where category = 'callback' group by tid order by tid"
    )
    assert [(tid, n, ns) for tid, n, ns in rows(read, query)] == per_thread

    # Flows: messages whose publication and callback are known.
    handled = [
        frame.filter(pl.col("publication").is_not_null(), pl.col("callback_instance").is_not_null()).height
        for frame in (trace.table("takes"), trace.table("intra_deliveries"))
    ]
    assert rows(read, "select count(*) from flow") == [(sum(handled),)]
    assert (sum(handled) > 0) == (name not in ("kernel_16_cores_rt", "lttng_ust_plus_perf"))

    # Thread states: as long as ours; of others only where they are known from end to end. What still ran when the
    # scheduler's events ended has no end.
    states = trace.table("thread_states").join(threads, on="thread")
    ends = pl.col("end_state").is_not_null() | (pl.col("end_ns") < pl.col("end_ns").max())
    running = states.filter(pl.col("state") == "running").filter(ends).group_by("tid").agg(
        n=pl.len(), ns=(pl.col("end_ns") - pl.col("start_ns")).sum()
    )  # fmt: skip
    query = """select tid, count(*), sum(dur) from {} join thread using (utid)
        where tid != 0 and dur >= 0 and {} group by tid order by tid"""
    expected = running.sort("tid").rows()
    assert rows(read, query.format("thread_state", "state = 'Running'")) == expected
    assert rows(read, query.format("sched", "true")) == expected
    # Waiting for a CPU; one that goes on for another CPU is one wait.
    waits: dict[tuple[int, int], int] = {}
    begun, before = (0, 0), None
    for tid, start, end in states.filter(pl.col("state") == "woken").select("tid", "start_ns", "end_ns").rows():
        begun = begun if before == (tid, start) else (tid, start)
        waits[begun] = end - begun[1]
        before = (tid, end)
    theirs = rows(
        read,
        """select tid, ts, dur from thread_state join thread using (utid)
           where state = 'R' and dur >= 0 order by tid, ts""",
    )
    assert all(waits[tid, ts] == dur for tid, ts, dur in theirs)
    if name == "kernel_16_cores_rt":  # without contradictions or losses
        assert len(theirs) >= len(waits) - trace.table("threads").height
        assert errors(read) == []
    assert {row[0] for row in errors(read)} <= {"task_state_invalid"}


# The file itself ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jazzy_small", "jazzy_small_ipc"])
def test_every_packet_has_only_fields_that_perfetto_has(tmp_path: Path, name: str) -> None:
    needs_library()
    if importlib.util.find_spec("perfetto") is None:
        pytest.skip("the package perfetto is not installed; it is in the extra `test`")
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    path = tmp_path / "trace.pftrace"
    counts = export_file(open_trace([reference_trace(name)]), path, "perfetto")
    assert path.stat().st_size == counts["bytes"]
    trace = Trace.FromString(path.read_bytes())

    def unknown(message: Any) -> int:
        found = len(UnknownFieldSet(message))
        for field, value in message.ListFields():
            if field.message_type is not None:
                found += sum(map(unknown, value if field.is_repeated else (value,)))
        return found

    assert sum(map(unknown, trace.packet)) == 0
    begins = sum(1 for packet in trace.packet if packet.track_event.type == packet.track_event.TYPE_SLICE_BEGIN)
    instants = sum(1 for packet in trace.packet if packet.track_event.type == packet.track_event.TYPE_INSTANT)
    slices = sum(counts[what] for what in ("callbacks", "publications", "phases", "function_calls"))
    assert begins + instants >= slices
    assert trace.packet[0].first_packet_on_sequence


def small(tmp_path: Path) -> NativeTrace:
    trace, talker, _, _, timer, _ = chatting()
    talker.main.callback(timer, 1_000, 1_500)
    return opened(trace, tmp_path / "trace")


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    trace = small(tmp_path)
    mine = tmp_path / "mine.pftrace"
    mine.write_text("mine")
    with pytest.raises(BadInput, match="is there already; name another, or replace it with --force"):
        export_file(trace, mine, "perfetto")
    assert mine.read_text() == "mine"
    export_file(trace, mine, "perfetto", force=True)
    assert mine.read_bytes().startswith(b"\x0a")
    with pytest.raises(BadInput, match="is a folder; name a file in it"):
        export_file(trace, tmp_path, "perfetto", force=True)
    with pytest.raises(BadInput, match="/dev/null is no file"):
        export_file(trace, Path("/dev/null"), "perfetto", force=True)


def test_other_formats_and_wall_time_are_refused(tmp_path: Path) -> None:
    trace = small(tmp_path)
    with pytest.raises(BadInput, match="--format 'svg' is not one of perfetto, folded, flamegraph"):
        export_file(trace, tmp_path / "x", "svg")
    with pytest.raises(BadInput, match="--wall is for --format folded and flamegraph"):
        export_file(trace, tmp_path / "x", "perfetto", wall=True)
    assert not (tmp_path / "x").exists()


def test_a_file_below_a_file_is_one_line(tmp_path: Path) -> None:
    trace = small(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises((BadInput, PerflabError)) as caught:
        export_file(trace, tmp_path / "file" / "x", "perfetto")
    assert "\n" not in str(caught.value)
    assert "file/x" in str(caught.value)


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path: Path) -> None:
    needs_library()
    out = tmp_path / "out" / "trace.pftrace"
    out.parent.mkdir()
    out.write_text("before")
    script = """
import resource, sys
from pathlib import Path
from perflab.errors import PerflabError
from perflab.trace import open_trace
from perflab.trace.export import export_file
trace = open_trace([Path(sys.argv[1])])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    export_file(trace, Path(sys.argv[2]), "perfetto", force=True)
except PerflabError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(reference_trace("jazzy_small")), str(out)],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE}"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == f"cannot write {out}: File too large; choose another with --output\n"
    assert [path.name for path in out.parent.iterdir()] == ["trace.pftrace"]
    assert out.read_text() == "before"


# The command ----------------------------------------------------------------------------------------------------------


def test_the_command_writes_the_file_and_says_what_is_in_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace, talker, _, _, timer, _ = chatting()
    talker.main.callback(timer, 1_000, 1_500)
    needs_library()
    folder = trace.write(tmp_path / "trace")
    out = tmp_path / "new" / "made.pftrace"
    options = ["trace", "export", str(folder), "--format", "perfetto", "-o", str(out)]

    def run(*more: str) -> tuple[int, str, str]:
        code = main([*options, *more])
        return (code, *capsys.readouterr())

    code, said, err = run()
    assert (code, err) == (0, "")
    assert said.splitlines()[0] == str(out)
    assert "1 callbacks" in said
    code, _, err = run()
    assert (code, err.count("\n"), "replace it with --force" in err) == (2, 1, True)
    code, said, _ = run("--force", "--json")
    assert code == 0
    assert json.loads(said)["counts"]["bytes"] == out.stat().st_size
    code, _, err = run("--force", "--wall")
    assert (code, err.count("\n"), "--wall is for --format folded" in err) == (2, 1, True)
    code, _, err = run("--format", "folded", "--force")
    assert (code, err.count("\n"), "no scheduler events" in err) == (2, 1, True)
    code, _, err = run("--format", "svg", "--force")
    assert (code, err.count("\n"), "is not one of perfetto, folded" in err) == (2, 1, True)
