"""Traces with parts taken away: no figure appears that the whole trace does not have, and what is missing is said.

A made system (threads on three CPUs that publish, take, wait, sleep, are stopped and moved), and recorded ones, lose
packets at either end or within, whole streams, the ends of files and pages.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_trace import MadeTrace, Thread
from opened import needs_library
from reference_traces import reference_trace, unpack

from perflab.trace import open_trace
from perflab.trace.callbacks import instances_of
from perflab.trace.messages import Deliveries
from perflab.trace.quality import Quality, quality_of
from perflab.trace.scheduling import latencies
from perflab.trace.source import Source

CPUS = 3
US = 1_000
PACKET_NS = 400 * US
START = 1_000_000
MAGIC = bytes.fromhex("c11ffcc1")
RCLCPP = Path(__file__).resolve().parents[2] / "data" / "traces" / "rclcpp" / "rmw_cyclonedds_cpp.tar.xz"


# A system ------------------------------------------------------------------------------------------------------------


@dataclass
class _Task:
    thread: Thread
    entity: Any  # publisher and timer, or subscription
    state: str = "blocked"
    cpu: int = 0
    in_callback: bool = False


@dataclass
class _System:
    """What every CPU and every thread does, event by event, at random."""

    rng: random.Random
    made: MadeTrace = field(default_factory=lambda: MadeTrace("jazzy"))
    tasks: list[_Task] = field(default_factory=list)
    current: list[_Task | None] = field(default_factory=lambda: [None] * CPUS)
    messages: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kernel = self.made.kernel("lttng")
        process = self.made.process("robot", pid=10)
        node = process.node("robot")
        publisher, subscription = process.publisher(node, "/x"), process.subscription(node, "/x")
        for number in range(4):
            thread = process.thread(10 + number, f"t{number}")
            timer = process.timer(node, 1_000_000)
            self.tasks.append(_Task(thread, (publisher, timer) if number < 2 else subscription, cpu=number % CPUS))

    def run(self, steps: int) -> MadeTrace:
        at, packet_end = START, START + PACKET_NS
        for _ in range(steps):
            at += self.rng.randint(2 * US, 30 * US)
            while at > packet_end:
                self._flush(packet_end)
                packet_end += PACKET_NS
            self._step(at)
        self._flush(packet_end)
        return self.made

    def _flush(self, at: int) -> None:
        """Of all buffers at once, as LTTng's timer does."""
        for domain in (self.kernel, self.made.user_space()):
            for cpu in range(CPUS):
                domain.discard(at, 0, cpu=cpu)

    def _step(self, at: int) -> None:
        cpu = self.rng.randrange(CPUS)
        runs = self.current[cpu]
        waiting = [t for t in self.tasks if t.state == "waits" and t.cpu == cpu]
        asleep = [t for t in self.tasks if t.state == "blocked"]
        match self.rng.choice(("wake", "wake", "switch", "switch", "work", "work", "work", "sleep", "move")):
            case "wake" if asleep:
                task = self.rng.choice(asleep)
                task.state, task.cpu = "waits", self.rng.randrange(CPUS)
                self.kernel.waking(at, cpu, task.thread, target_cpu=task.cpu)
                self.kernel.wakeup(at + 1, cpu, task.thread, target_cpu=task.cpu)
            case "switch" if waiting:
                self._switch(at, cpu, waiting[0], "running")
            case "sleep" if runs:
                state = "stopped" if self.rng.random() < 0.2 else "sleeping"
                self._switch(at, cpu, waiting[0] if waiting else None, state)
            case "move" if waiting:
                task, to = waiting[0], self.rng.randrange(CPUS)
                if to != cpu:
                    task.cpu = to
                    self.kernel.migrate(at, self.rng.randrange(CPUS), task.thread, cpu, to)
            case "work" if runs:
                self._work(at, cpu, runs)

    def _switch(self, at: int, cpu: int, to: _Task | None, state: str) -> None:
        runs = self.current[cpu]
        self.kernel.switch(at, cpu, runs.thread if runs else 0, to.thread if to else 0, state)
        if runs:
            runs.state = "waits" if state == "running" else "blocked"
        if to:
            to.state, to.cpu = "runs", cpu
        self.current[cpu] = to

    def _work(self, at: int, cpu: int, task: _Task) -> None:
        thread, talks = task.thread, isinstance(task.entity, tuple)
        thread.cpu = cpu
        callback = task.entity[1].callback if talks else task.entity.callback
        if task.in_callback:
            if talks:
                self.messages.append(thread.publish(task.entity[0], at))
            thread.at(at + 10).callback_end(callback=callback)
        elif talks or self.messages:
            if not talks:
                thread.take(task.entity, self.messages.pop(0), at)
            thread.at(at + 10).callback_start(callback=callback, is_intra_process=0)
        else:
            return
        task.in_callback = not task.in_callback


# What a trace says ----------------------------------------------------------------------------------------------------


Figures = dict[str, set[tuple[int, ...]]]


def figures(trace: Source, quality: Quality) -> Figures:
    tids = trace.table("threads").select("tid").with_row_index("thread").with_columns(pl.col("thread").cast(pl.Int32))
    instances = instances_of(trace, quality).join(tids, on="thread")
    arrivals = instances.filter(pl.col("inter_arrival_ns").is_not_null())
    handled = Deliveries(trace, quality).handled.filter(~pl.col("left_out"))
    woken = latencies(trace.table("wake_ups")).join(tids, on="thread")
    return {
        "durations": set(
            instances.filter(pl.col("duration_ns").is_not_null()).select("tid", "start_ns", "duration_ns").rows()
        ),
        "inter-arrivals": set(arrivals.select("start_ns", "inter_arrival_ns").rows()),
        "latencies": set(handled.select("published_ns", "started_ns").rows()),
        "wake-ups": set(woken.select("tid", "wakeup_ns", "latency_ns").rows()),
    }


def states(trace: Source) -> dict[int, list[tuple[str, int, int]]]:
    tids = trace.table("threads")["tid"].to_list()
    found: dict[int, list[tuple[str, int, int]]] = {}
    for thread, state, start, end in (
        trace.table("thread_states").select("thread", "state", "start_ns", "end_ns").rows()
    ):
        found.setdefault(tids[thread], []).append((state, start, end))
    return found


def contradictions(part: Source, whole: Source) -> list[str]:
    """Stretches in which a thread is said to do something else than in the whole trace."""
    wrong, known = [], states(whole)
    for tid, rows in states(part).items():
        others, at = known.get(tid, []), 0
        for state, start, end in rows:
            while at < len(others) and others[at][2] <= start:
                at += 1
            for other, begin, until in itertools.takewhile(lambda row: row[1] < end, others[at:]):  # noqa: B023
                if other != state:
                    wrong.append(f"{tid} {state} {start}-{end}, in truth {other} {begin}-{until}")
    return wrong


# What is done to it ---------------------------------------------------------------------------------------------------


def packets(data: bytes) -> list[bytes]:
    places = [*_places(data), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def _places(data: bytes) -> Iterator[int]:
    """Where packets begin: the magic number, and the UUID of the first one behind it."""
    start = data[:20]
    assert start[:4] == MAGIC
    at = 0
    while at >= 0:
        yield at
        at = data.find(start, at + 1)


Damage = Callable[[bytes, random.Random], bytes]
DAMAGES: dict[str, Damage] = {
    "without its first packets": lambda data, rng: b"".join(packets(data)[rng.randint(1, 3) :]),
    "without its last packets": lambda data, rng: b"".join(packets(data)[: -rng.randint(1, 3)]),
    "without packets in the middle": lambda data, rng: (
        b"".join(packets(data)[:2]) + b"".join(packets(data)[2 + rng.randint(1, 3) :])
    ),
    "cut off": lambda data, rng: data[: rng.randint(len(data) // 3, len(data) - 1)],
}


def _with_zeros(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(0, max(1, len(data) - 4096), 4096)
    return data[:at] + bytes(min(4096, len(data) - at)) + data[at + 4096 :]


DAMAGES["with zeros"] = _with_zeros


def streams(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.read_bytes()[:4] == MAGIC)


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.long)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source, Figures]:
    needs_library()
    folder = _System(random.Random(request.param)).run(1000).write(tmp_path_factory.mktemp("made") / "trace")
    whole = open_trace([folder])
    found = figures(whole, quality_of(whole))
    assert all(len(values) > 20 for values in found.values()), {name: len(values) for name, values in found.items()}
    assert whole.facts["ledger"] == []
    return folder, whole, found


def check(part: Source, whole: Source, of_whole: Figures) -> None:
    quality = quality_of(part)
    for name, values in figures(part, quality).items():
        assert values <= of_whole[name], (name, sorted(values - of_whole[name])[:3])
    assert contradictions(part, whole) == []
    assert quality.losses


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("domain", ["ust", "kernel"])
@pytest.mark.parametrize("stream_number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, CPUS))])
def test_a_damaged_stream_makes_no_figures(
    made: tuple[Path, Source, Figures], tmp_path: Path, domain: str, damage: str, stream_number: int
) -> None:
    folder, whole, found = made
    rng = random.Random(f"{domain} {damage} {stream_number}")
    stream = streams(folder / domain)[stream_number]
    copy = tmp_path / "trace"
    shutil.copytree(folder, copy)
    (copy / domain / stream.name).write_bytes(DAMAGES[damage](stream.read_bytes(), rng))
    check(open_trace([copy]), whole, found)


def test_a_missing_stream_of_the_scheduler_makes_no_figures(made: tuple[Path, Source, Figures], tmp_path: Path) -> None:
    folder, whole, found = made
    assert streams(folder / "kernel")
    for stream in streams(folder / "kernel"):
        copy = tmp_path / stream.name
        shutil.copytree(folder, copy)
        (copy / "kernel" / stream.name).unlink()
        part = open_trace([copy])
        check(part, whole, found)
        cpu = stream.name.rpartition("_")[2]
        assert any(f"no scheduler events of CPU {cpu}" in line for line in quality_of(part).losses)
        # Where LTTng's index names it as well, it is still one stream.
        (copy / "kernel" / "index").mkdir()
        (copy / "kernel" / "index" / f"{stream.name}.idx").touch()
        part = open_trace([copy])
        check(part, whole, found)
        assert [entry["kind"] for entry in part.facts["ledger"]] == ["missing_stream"]


@pytest.mark.parametrize("name", ["jazzy_small_ipc", pytest.param("jazzy_small", marks=pytest.mark.long)])
def test_a_recorded_trace_without_a_stream_makes_no_figures(name: str, tmp_path: Path) -> None:
    needs_library()
    folder = reference_trace(name)
    whole = open_trace([folder])
    found = figures(whole, quality_of(whole))
    for number, stream in enumerate(streams(folder)):
        copy = tmp_path / str(number)
        shutil.copytree(folder, copy)
        (copy / stream.relative_to(folder)).unlink()
        check(open_trace([copy]), whole, found)


@pytest.mark.parametrize("damage", ["cut off", "with zeros"])
def test_a_recorded_trace_of_user_space_that_is_damaged_makes_no_figures(damage: str, tmp_path: Path) -> None:
    needs_library()
    unpack(RCLCPP, tmp_path / "whole")
    whole = open_trace([tmp_path / "whole"])
    found = figures(whole, quality_of(whole))
    for number, stream in enumerate(streams(tmp_path / "whole")):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", copy)
        place = copy / stream.relative_to(tmp_path / "whole")
        place.write_bytes(DAMAGES[damage](stream.read_bytes(), random.Random(number)))
        check(open_trace([copy]), whole, found)
