"""Every event and every field that perflab's reader finds in traces of random shape, and in recorded ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from both_readers import assert_same, babeltrace2, need_babeltrace2, ours, run_ctf_dump
from random_traces import random_trace
from reference_traces import RECORDED, reference_trace, trace_folders

from tests.marks import long_but

SEEDS = [range(100), range(100, 250)]

pytestmark = pytest.mark.native


@pytest.mark.parametrize("seeds", long_but(SEEDS[:1], SEEDS))
def test_random_traces_are_read_as_they_were_written(tmp_path: Path, seeds: range) -> None:
    """Needs no other reader: test_ctf_writer.py shows that babeltrace2 finds the same in such traces."""
    events = 0
    for seed in seeds:
        made = random_trace(seed, tmp_path / str(seed), full=True)
        dump = ours(made.folder, threads=1 + seed % 2)
        expected = {k: v for k, v in made.expected.items() if v}
        events += assert_same(dump.streams, expected, f"seed {seed}")
        assert dump.end["ledger"] == [], f"seed {seed}"
    assert events > 10 * len(seeds)


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
