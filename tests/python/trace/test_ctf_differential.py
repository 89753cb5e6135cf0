"""perflab's reader beside babeltrace2: every event, every field, of traces of random shape and of recorded ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from both_readers import assert_same, babeltrace2, need_babeltrace2, ours, run_ctf_dump
from ctf_writer import (
    UINT32,
    Clock,
    CtfTrace,
    StreamFile,
    Struct,
    lttng_large_header,
    lttng_packet_context,
    overwrite,
    truncate,
)
from random_traces import random_trace
from reference_traces import RECORDED, reference_trace, trace_folders

from tests.marks import long_but

SEEDS = [range(100), range(100, 250)]
SEEDS_OF_BABELTRACE2 = [range(250, 350), range(350, 500)]

pytestmark = pytest.mark.native


@pytest.mark.parametrize("seeds", long_but(SEEDS[:1], SEEDS))
def test_random_traces_are_read_as_they_were_written(tmp_path: Path, seeds: range) -> None:
    """Needs no other reader: test_ctf_writer.py shows that these traces hold what was asked for."""
    events = 0
    for seed in seeds:
        made = random_trace(seed, tmp_path / str(seed), full=True)
        dump = ours(made.folder, threads=1 + seed % 2)
        expected = {k: v for k, v in made.expected.items() if v}
        events += assert_same(dump.streams, expected, f"seed {seed}")
        assert dump.end["ledger"] == [], f"seed {seed}"
    assert events > 10 * len(seeds)


@pytest.mark.parametrize("seeds", long_but(SEEDS_OF_BABELTRACE2[:1], SEEDS_OF_BABELTRACE2))
def test_random_traces_are_read_as_by_babeltrace2(tmp_path: Path, seeds: range) -> None:
    need_babeltrace2()
    folders = [random_trace(seed, tmp_path / str(seed)).folder for seed in seeds]
    theirs = babeltrace2([[f] for f in folders], tmp_path)
    for folder, read in zip(folders, theirs, strict=True):
        assert_same(ours(folder).streams, read, f"seed {folder.name}")


def three_packets() -> StreamFile:
    """Two events in each; 7 more were discarded in the second, and 2 packets are missing before the third."""
    trace = CtfTrace(clock=Clock())
    stream = trace.stream_class(packet_context=lttng_packet_context(), event_header=lttng_large_header())
    ping = stream.event("ping", Struct.of(_count=UINT32))
    file = trace.file("channel_0", stream)
    for packet in range(3):
        for i in range(2):
            file.write(ping, 100 * packet + 10 * i, {"count": 2 * packet + i})
        if packet == 1:
            file.discard(7)
        file.end_packet()
        if packet == 1:
            file.lose_packets(2)
    return file


def losses(folder: Path) -> tuple[int, list[tuple[str, int, int | None, int | None]]]:
    end = ours(folder).end
    return end["events"], [(e["kind"], e["count"], e["begin_ns"], e["end_ns"]) for e in end["ledger"]]


TRACERS_LOSSES = [("discarded_events", 7, 10, 110), ("lost_packets", 2, 110, 200)]


def test_losses_of_the_tracer_are_in_the_ledger(tmp_path: Path) -> None:
    three_packets().trace.write(tmp_path)
    assert losses(tmp_path) == (6, TRACERS_LOSSES)


def test_a_file_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    three_packets().trace.write(tmp_path)
    truncate(tmp_path / "channel_0", 3)
    events, found = losses(tmp_path)
    assert events == 5
    assert sorted(found)[:2] == sorted(TRACERS_LOSSES)
    assert [(kind, count) for kind, count, _, _ in found if kind not in ("discarded_events", "lost_packets")] == [
        ("truncated_packet", 3)
    ]


def test_what_comes_after_a_corrupt_packet_is_read(tmp_path: Path) -> None:
    three_packets().trace.write(tmp_path)
    data = (tmp_path / "channel_0").read_bytes()
    magic = data[:4]
    overwrite(tmp_path / "channel_0", data.index(magic, 4), bytes(4))
    events, found = losses(tmp_path)
    assert events == 4
    assert sorted(kind for kind, _, _, _ in found) == ["corrupt_packet", "discarded_events"]
    assert [loss for loss in found if loss[0] == "corrupt_packet"] == [
        ("corrupt_packet", data.index(magic, data.index(magic, 4) + 1) - data.index(magic, 4), 10, 200)
    ]


# How many events each recording has: from its origin, not from either reader.
EVENTS = {
    "ros2_fastrtps_humble_fork": 99_338,
    "caret_end_to_end_sample": 2_880,
    "kernel_16_cores_rt": 388_738,
    "lttng_ust_plus_perf": 100_001 + 429,
}


@pytest.mark.parametrize("name", long_but(["jazzy_small_ipc", "lttng_ust_plus_perf"], RECORDED))
def test_recorded_traces_are_read_as_by_babeltrace2(name: str, tmp_path: Path) -> None:
    need_babeltrace2()
    folders = trace_folders(reference_trace(name))
    with ThreadPoolExecutor() as both:
        reading = both.submit(babeltrace2, [[f] for f in folders], tmp_path)
        mine = [ours(f) for f in folders]
        theirs = reading.result()
    events = sum(
        assert_same(dump.streams, read, str(folder)) for dump, read, folder in zip(mine, theirs, folders, strict=True)
    )
    assert events == EVENTS.get(name, events)


@pytest.mark.parametrize("name", ["jazzy_small_ipc", "lttng_ust_plus_perf"])
def test_the_order_of_events_does_not_depend_on_threads(name: str) -> None:
    folder = reference_trace(name)
    one, four = (run_ctf_dump("--threads", n, folder) for n in ("1", "4"))
    assert one.returncode == 0, one.stderr
    assert one.stdout == four.stdout
    times = [int(line[len('{"time_ns":') :].split(",", 1)[0]) for line in one.stdout.splitlines()[:-1]]
    assert times == sorted(times)
