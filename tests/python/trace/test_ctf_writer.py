"""What the tests' own writer writes is what babeltrace2 reads; only then does it prove anything about another
reader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from both_readers import assert_same, babeltrace2
from ctf_writer import (
    INT32,
    UINT32,
    Array,
    Clock,
    CtfTrace,
    StreamFile,
    String,
    Struct,
    complete,
    lttng_compact_header,
    lttng_large_header,
    lttng_packet_context,
    lttng_ust_context,
)
from made_trace import Flavour, Layout, MadeTrace
from random_traces import random_trace
from reference_traces import reference_trace, trace_folders

from tests.marks import long_but

TRACES = 120
FIRST_SEED = 10_000  # others than those of the differential test


def test_random_traces_are_read_by_babeltrace2_as_they_were_written(tmp_path: Path) -> None:
    made = [random_trace(FIRST_SEED + i, tmp_path / str(i)) for i in range(TRACES)]
    read = babeltrace2([[m.folder] for m in made], tmp_path)
    events = 0
    for one, theirs in zip(made, read, strict=True):
        events += assert_same({k: v for k, v in one.expected.items() if v}, theirs, one.folder.name)
    assert events > 10 * TRACES


CONTEXT = {"vpid": 1, "vtid": 2, "procname": "abc"}


def ping_file(name: str, times: list[int], *, compact: bool = False) -> StreamFile:
    """A trace of one file whose events have these times."""
    trace = CtfTrace(clock=Clock())
    stream = trace.stream_class(
        packet_context=lttng_packet_context(),
        event_header=lttng_compact_header() if compact else lttng_large_header(),
        event_context=lttng_ust_context(),
    )
    event = stream.event("ping", Struct.of(_count=UINT32, _name=String()))
    file = trace.file(name, stream, cpu=3)
    for i, time in enumerate(times):
        file.write(event, time, {"count": i, "name": "x"}, stream_context=CONTEXT)
    return file


def times_of(lines: list[str]) -> list[int]:
    return [json.loads(line)["time_ns"] for line in lines]


@pytest.mark.parametrize(("compact", "bits", "more_bytes"), [(False, 32, 8), (True, 27, 9)])
def test_short_stamps_are_used_where_they_suffice(tmp_path: Path, compact: bool, bits: int, more_bytes: int) -> None:
    limit = 1 << bits
    near = [5 * limit - 1, 5 * limit, 6 * limit - 1]  # wraps, but no step is too far
    far = [5 * limit - 1, 5 * limit, 6 * limit]
    files = [ping_file("c", times, compact=compact) for times in (near, far)]
    for file, name in zip(files, ("near", "far"), strict=True):
        file.trace.write(tmp_path / name)
    read = babeltrace2([[tmp_path / "near"], [tmp_path / "far"]], tmp_path)
    assert [times_of(r["c"]) for r in read] == [near, far]
    assert len(files[1].encode()) - len(files[0].encode()) == more_bytes


def test_losses_are_told_by_babeltrace2(tmp_path: Path) -> None:
    file = ping_file("c", [10, 20])
    file.end_packet()
    event = file.stream.events[0]
    file.write(event, 30, {"count": 2, "name": ""}, stream_context=CONTEXT)
    file.discard(7)
    file.end_packet()
    file.lose_packets(2)
    file.write(event, 40, {"count": 3, "name": ""}, stream_context=CONTEXT)
    file.trace.write(tmp_path / "t")
    said = subprocess.run(
        ["babeltrace2", "--clock-gmt", str(tmp_path / "t")], capture_output=True, text=True, timeout=60, check=False
    )
    assert len(said.stdout.splitlines()) == 4
    assert "discarded 7 events between [00:00:00.000000020] and [00:00:00.000000030]" in said.stderr
    assert "discarded 2 packets between [00:00:00.000000030] and [00:00:00.000000040]" in said.stderr


def test_values_are_checked() -> None:
    kind = Struct.of(_a=INT32, _b=String())
    assert complete(kind, {"a": 1, "_b": "x"}) == {"_a": 1, "_b": "x"}
    with pytest.raises(KeyError, match="no value for _b"):
        complete(kind, {"a": 1})
    with pytest.raises(KeyError, match="no field c; there are _a, _b"):
        complete(kind, {"a": 1, "b": "", "c": 1})


LAYOUTS: tuple[Layout, ...] = ("humble_fork", "iron", "jazzy", "kilted")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("flavour", ["lttng", "perf"])
def test_a_made_trace_has_the_events_that_were_asked_for(tmp_path: Path, layout: Layout, flavour: Flavour) -> None:
    trace = MadeTrace(layout)
    talker = trace.process("talker", pid=10)
    listener = trace.process("listener", pid=20, cpu=1)
    talker.context()
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    node = listener.node("listener", "/robot")
    subscription = listener.subscription(node, "/chatter", intra_process=layout != "humble_fork", depth=2)
    listener.service(node, "/add")
    talker.client(chatter.node, "/add")
    sent = talker.main.publish(chatter, at=1_000)
    listener.main.take(subscription, sent, at=2_000)
    listener.main.callback(subscription, 2_100, 5_000_000_000)
    listener.main.take(subscription, None, at=5_000_000_100, taken=False)
    kernel = trace.kernel(flavour)
    kernel.switch(900, 0, prev=0, next=talker.main)
    kernel.wakeup(1_500, 1, listener.main, prio=49)
    trace.write(tmp_path / "t")

    folders = trace_folders(tmp_path / "t")
    assert [f.name for f in folders] == ["kernel", "ust"]
    in_kernel, in_user_space = babeltrace2([[f] for f in folders], tmp_path)
    switch = json.loads(next(iter(in_kernel.values()))[0])
    names = ("prev_tid", "next_tid") if flavour == "lttng" else ("prev_pid", "next_pid")
    assert [switch["payload"][n] for n in names] == [0, 10]
    assert switch["payload"]["next_comm"] == "talker"
    wakeup = json.loads(list(in_kernel.values())[1][0])
    assert wakeup["payload"]["prio"] == (-51 if flavour == "lttng" else 49)
    events = [json.loads(line) for line in in_user_space["ros2_1"]]
    runtime = [e for e in events if e["time_ns"] >= 1_000]
    took = [e["name"].split(":")[1] for e in runtime if not e["name"].startswith("dds:")]
    assert took == ["rmw_take", "rcl_take", "rclcpp_take", "callback_start", "callback_end", "rmw_take"]
    takes = [e["payload"] for e in runtime if e["name"] == "ros2:rmw_take"]
    assert [t["source_timestamp"] for t in takes] == [sent.source_timestamp, 0]
    assert [t["taken"] for t in takes] == [1, 0]
    assert all(e["stream_context"] == {"vpid": 20, "vtid": 20, "procname": "listener"} for e in events)


RECORDINGS = [("jazzy", "jazzy_small"), ("humble_fork", "ros2_fastrtps_humble_fork")]


@pytest.mark.parametrize(("layout", "recorded"), long_but(RECORDINGS[:1], RECORDINGS))
def test_layouts_are_those_of_recorded_traces(tmp_path: Path, layout: Layout, recorded: str) -> None:
    """Names, order and values' types of all fields of all events that the recording has."""
    folder = next(f for f in trace_folders(reference_trace(recorded)) if (f / "index").is_dir())
    mine = MadeTrace(layout).events
    seen = 0
    for lines in babeltrace2([[folder]], tmp_path)[0].values():
        for line in {json.loads(line)["name"]: line for line in lines}.values():
            event = json.loads(line)
            shape = mine[event["name"]]
            assert list(event["payload"]) == [name.removeprefix("_") for name, _ in shape.fields], event["name"]
            for name, kind in shape.fields:
                value = event["payload"][name.removeprefix("_")]
                if isinstance(kind, Array):
                    assert len(value) == kind.length, event["name"]
                else:
                    assert isinstance(value, str) == isinstance(kind, String), event["name"]
            seen += 1
    assert seen > 20
