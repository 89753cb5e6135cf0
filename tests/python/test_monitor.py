"""What perflab-monitor records: read from made files with known answers, and from real processes."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from perflab.formats.monitor import Escape, MonitorReader, ThreadSeen, tables
from perflab.formats.records import RecordError

MS = 1_000_000
LIMIT_S = 60  # for what must happen at some time; machines may be busy


# -- made files ------------------------------------------------------------------------------------------------------


class MonitorFile:
    """A file as perflab-monitor writes it; instants in ms."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_ms: int | None = None
        self.add({"type": "monitor", "schema": 1, "at_ns": 0, "interval_ns": 100 * MS, "pid": 1, "cpus": [0, 1]})

    def add(self, record: dict[str, Any]) -> MonitorFile:
        with self.path.open("a") as file:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
        return self

    def thread(self, at_ms: int, tid: int, *, group: str = "g", cpus: tuple[int, ...] = (0, 1), **more: Any) -> None:
        state = {"start_ticks": tid, "started_ns": 0, "name": f"t{tid}", "policy": "OTHER", "priority": 0, "nice": 0}
        pid = more.pop("pid", 10)
        self.add(
            {"type": "thread", "at_ns": at_ms * MS, "group": group, "pid": pid, "tid": tid, "cpus": list(cpus)}
            | state
            | more
        )

    def sample(
        self,
        at_ms: int,
        cpu_ms: dict[int, int],
        *,
        groups: dict[str, dict[str, Any]] | None = None,
        idle_ms: dict[int, tuple[int, int, int]] | None = None,
        delay_ms: dict[int, int] | None = None,
        switches: int | None = None,
    ) -> None:
        """CPU time of threads by tid; busy, idle and stolen time of CPUs in the interval."""
        before, self.last_ms = self.last_ms, at_ms
        whole = {"processes": 1, "rss_kb": 100, "read_bytes": 0, "write_bytes": 0}
        delay_ms = delay_ms or {}
        self.add(
            {
                "type": "sample",
                "at_ns": at_ms * MS,
                "interval_ns": None if before is None else (at_ms - before) * MS,
                "cpus": [
                    {"cpu": cpu, "busy_ns": busy * MS, "idle_ns": idle * MS, "steal_ns": steal * MS}
                    for cpu, (busy, idle, steal) in (idle_ms or {}).items()
                ],
                "pressure": None,
                "threads": [
                    [tid, ms * MS, delay_ms[tid] * MS if tid in delay_ms else None, switches, switches, 1]
                    for tid, ms in cpu_ms.items()
                ],
                "groups": {name: {**whole, **given} for name, given in (groups or {"g": {}}).items()},
            }
        )

    def gone(self, at_ms: int, tid: int, cpu_ms: int | None = None) -> None:
        self.add({"type": "gone", "at_ns": at_ms * MS, "tid": tid, "cpu_ns": None if cpu_ms is None else cpu_ms * MS})

    def reader(self) -> MonitorReader:
        reader = MonitorReader(self.path)
        reader.refresh()
        return reader


@pytest.fixture
def made(tmp_path: Path) -> MonitorFile:
    return MonitorFile(tmp_path / "monitor.jsonl")


@pytest.fixture
def steady(made: MonitorFile) -> MonitorFile:
    """One thread that had used 500 ms before it was watched, and uses half a CPU from 1000 ms to 1400 ms."""
    made.thread(1000, 7)
    for at_ms, cpu_ms in ((1000, 500), (1100, 550), (1200, 600), (1300, 650), (1400, 700)):
        made.sample(at_ms, {7: cpu_ms})
    return made


def test_cpu_time_is_interpolated_at_both_ends_of_the_window(steady: MonitorFile) -> None:
    reader = steady.reader()
    assert reader.cpu_seconds("g", 1000 * MS, 1400 * MS) == pytest.approx(0.2)
    assert reader.cpu_seconds("g", 1050 * MS, 1350 * MS) == pytest.approx(0.15)
    assert reader.thread_cpu_seconds("g", 1050 * MS, 1350 * MS) == {7: pytest.approx(0.15)}
    assert reader.cpu_seconds("g", 1190 * MS, 1210 * MS) == pytest.approx(0.01)


def test_nothing_is_assumed_outside_of_what_was_sampled(steady: MonitorFile) -> None:
    reader = steady.reader()
    assert reader.sampled("g", 0, 1200 * MS) == (1000 * MS, 1200 * MS)
    assert reader.sampled("g", 1200 * MS, 9000 * MS) == (1200 * MS, 1400 * MS)
    assert reader.cpu_seconds("g", 0, 1200 * MS) == pytest.approx(0.1)
    assert reader.cpu_seconds("g", 1200 * MS, 9000 * MS) == pytest.approx(0.1)


@pytest.mark.parametrize(("begin_ms", "end_ms"), [(0, 999), (1401, 2000), (1110, 1190), (1400, 2000)])
def test_a_window_without_samples_is_not_measured(steady: MonitorFile, begin_ms: int, end_ms: int) -> None:
    reader, window = steady.reader(), (begin_ms * MS, end_ms * MS)
    assert reader.cpu_seconds("g", *window) is None
    assert reader.thread_cpu_seconds("g", *window) == {}
    assert reader.cpu_by_interval("g", *window) == []
    assert reader.io_bytes("g", *window) == (None, None)
    assert reader.idle_share([0], *window) is None


def test_an_unknown_group_and_a_missing_file_hold_nothing(steady: MonitorFile, tmp_path: Path) -> None:
    missing = MonitorReader(tmp_path / "none.jsonl")
    missing.refresh()
    assert (missing.last_at_ns, missing.interval_ns, missing.groups()) == (None, None, [])
    for reader in (missing, steady.reader()):
        assert reader.cpu_seconds("none", 0, 2000 * MS) is None
        assert reader.threads("none", 0, 2000 * MS) == []
        assert reader.rss_kb("none", 0, 2000 * MS) == []
        assert reader.alive("none") == 0


def test_cpus_used_are_those_of_intervals_within_the_window(made: MonitorFile) -> None:
    made.thread(0, 7)
    made.thread(0, 8)
    for at_ms, a, b in ((0, 0, 0), (100, 100, 0), (200, 150, 50), (400, 150, 150)):
        made.sample(at_ms, {7: a, 8: b})
    reader = made.reader()
    assert reader.cpu_by_interval("g", 0, 400 * MS) == [(100 * MS, 1.0), (200 * MS, 1.0), (400 * MS, 0.5)]
    assert reader.cpu_by_interval("g", 1, 400 * MS) == [(200 * MS, 1.0), (400 * MS, 0.5)]


def test_a_thread_that_begins_counts_from_its_beginning(made: MonitorFile) -> None:
    made.thread(0, 7)
    made.sample(0, {7: 1000})
    made.thread(100, 8, started_ns=20 * MS)
    made.sample(100, {7: 1000, 8: 60})
    made.sample(200, {7: 1000, 8: 100})
    reader = made.reader()
    assert reader.cpu_seconds("g", 0, 200 * MS) == pytest.approx(0.1)
    assert reader.thread_cpu_seconds("g", 0, 200 * MS) == {7: 0.0, 8: pytest.approx(0.1)}


def test_a_thread_that_was_there_before_counts_from_its_first_sample(made: MonitorFile) -> None:
    made.thread(1000, 7)
    made.sample(1000, {7: 0})
    made.sample(1100, {7: 0})
    made.thread(1200, 8, started_ns=1 * MS)  # a second tree is watched late
    made.sample(1200, {7: 0, 8: 900})
    made.sample(1300, {7: 0, 8: 910})
    reader = made.reader()
    assert reader.cpu_seconds("g", 1000 * MS, 1300 * MS) == pytest.approx(0.01)
    assert reader.thread_cpu_seconds("g", 1000 * MS, 1300 * MS)[8] == pytest.approx(0.01)


def test_a_thread_that_ended_keeps_what_it_used(made: MonitorFile) -> None:
    made.thread(0, 7)
    made.thread(0, 8)
    made.sample(0, {7: 0, 8: 0})
    made.sample(100, {7: 50, 8: 10})
    made.gone(200, 7, 80)  # known to the end
    made.gone(200, 8)  # vanished: what it used after its last sample is not known
    made.sample(200, {}, groups={"g": {"processes": 0}})
    made.sample(300, {}, groups={"g": {"processes": 0}})
    reader = made.reader()
    assert reader.cpu_seconds("g", 0, 300 * MS) == pytest.approx(0.09)
    assert reader.thread_cpu_seconds("g", 0, 300 * MS) == {7: pytest.approx(0.08), 8: pytest.approx(0.01)}
    assert reader.thread_cpu_seconds("g", 250 * MS, 300 * MS) == {}
    assert reader.cpu_seconds("g", 250 * MS, 300 * MS) == 0.0
    assert (reader.alive("g", 100 * MS), reader.alive("g", 250 * MS), reader.alive("g")) == (1, 0, 0)
    assert reader.alive("g", -1) == 0


def test_a_number_that_is_used_again_is_another_thread(made: MonitorFile) -> None:
    made.thread(0, 7, name="old")
    made.sample(0, {7: 500})
    made.sample(100, {7: 600})
    made.thread(200, 7, name="new", start_ticks=20, started_ns=190 * MS)
    made.sample(200, {7: 5})
    made.sample(300, {7: 15})
    reader = made.reader()
    assert [(s.name, s.first_seen_ns, s.last_seen_ns) for s in reader.threads("g", 0, 300 * MS)] == [
        ("old", 0, 100 * MS),
        ("new", 200 * MS, 300 * MS),
    ]
    assert reader.cpu_seconds("g", 0, 300 * MS) == pytest.approx(0.115)
    assert reader.thread_cpu_seconds("g", 0, 300 * MS) == {7: pytest.approx(0.115)}


def test_a_thread_that_moves_to_another_group_leaves_its_past_behind(made: MonitorFile) -> None:
    made.thread(0, 7, group="a")
    made.thread(0, 8, group="b")
    both: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    made.sample(0, {7: 0, 8: 0}, groups=both)
    made.sample(100, {7: 90, 8: 0}, groups=both)
    made.thread(200, 7, group="b")
    made.sample(200, {7: 95, 8: 0}, groups=both)
    made.sample(300, {7: 99, 8: 0}, groups=both)
    reader = made.reader()
    assert reader.cpu_seconds("a", 0, 300 * MS) == pytest.approx(0.09)
    assert reader.cpu_seconds("b", 0, 300 * MS) == pytest.approx(0.004)
    assert reader.groups() == ["a", "b"]


def test_states_of_a_thread_and_escapes_are_seen_where_they_were(made: MonitorFile) -> None:
    made.thread(0, 7, cpus=(0,))
    made.thread(0, 8, cpus=(0,), policy="FIFO", priority=20, pid=11)
    made.sample(0, {7: 0, 8: 0})
    made.sample(100, {7: 0, 8: 0})
    made.thread(200, 7, cpus=(0, 1))
    made.sample(200, {7: 0, 8: 0})
    made.thread(300, 7, cpus=(0,))
    made.sample(300, {7: 0, 8: 0})
    reader = made.reader()
    assert reader.threads("g", 0, 300 * MS) == [
        ThreadSeen(10, 7, "t7", "OTHER", 0, 0, (0,), 0, 100 * MS),
        ThreadSeen(10, 7, "t7", "OTHER", 0, 0, (0, 1), 200 * MS, 200 * MS),
        ThreadSeen(10, 7, "t7", "OTHER", 0, 0, (0,), 300 * MS, 300 * MS),
        ThreadSeen(11, 8, "t8", "FIFO", 20, 0, (0,), 0, 300 * MS),
    ]
    assert reader.escaped("g", frozenset({0}), 0, 300 * MS) == [Escape(10, 7, "t7", (0, 1), 200 * MS)]
    assert reader.escaped("g", frozenset({0}), 0, 150 * MS) == []
    assert reader.escaped("g", frozenset({0}), 250 * MS, 300 * MS) == []
    assert reader.escaped("g", frozenset({0, 1}), 0, 300 * MS) == []
    assert [e.at_ns for e in reader.escaped("g", frozenset({1}), 50 * MS, 60 * MS)] == [50 * MS, 50 * MS]


def test_what_is_said_again_after_a_gap_is_not_another_state(made: MonitorFile) -> None:
    made.thread(0, 7)
    made.sample(0, {7: 0})
    made.thread(500, 7)
    made.sample(500, {7: 250})
    made.sample(600, {7: 300, 99: 1000})  # 99: what it is did not get into the file
    reader = made.reader()
    assert len(reader.threads("g", 0, 600 * MS)) == 1
    assert reader.cpu_seconds("g", 0, 600 * MS) == pytest.approx(0.3)
    assert reader.cpu_seconds("g", 100 * MS, 550 * MS) == pytest.approx(0.225)


def test_run_delay_is_not_known_where_the_kernel_does_not_count_it(made: MonitorFile) -> None:
    made.thread(0, 7)
    made.thread(0, 8)
    made.sample(0, {7: 0, 8: 0}, delay_ms={7: 40})
    made.sample(100, {7: 0, 8: 0}, delay_ms={7: 60})
    made.sample(200, {7: 0, 8: 0}, delay_ms={7: 100})
    made.gone(300, 7, 0)
    made.sample(300, {8: 0})
    reader = made.reader()
    assert reader.thread_run_delay_seconds("g", 50 * MS, 300 * MS) == {7: pytest.approx(0.05), 8: None}
    assert reader.thread_run_delay_seconds("g", 0, 100 * MS) == {7: pytest.approx(0.02), 8: None}


def test_idle_share_is_that_of_the_cpus_named(made: MonitorFile) -> None:
    made.sample(0, {})
    made.sample(100, {}, idle_ms={0: (100, 0, 0), 1: (0, 100, 0)})
    made.sample(200, {}, idle_ms={0: (0, 100, 0), 1: (50, 25, 25)})
    reader = made.reader()
    assert reader.idle_share([0], 0, 100 * MS) == 0.0
    assert reader.idle_share([1], 0, 100 * MS) == 1.0
    assert reader.idle_share([0, 1], 0, 200 * MS) == pytest.approx(225 / 400)
    assert reader.idle_share([0], 50 * MS, 200 * MS) == pytest.approx(100 / 150)
    assert reader.idle_share([0], 0, 150 * MS) == pytest.approx(50 / 150)
    assert reader.idle_share([0, 5], 0, 200 * MS) is None
    assert reader.idle_share([], 0, 200 * MS) is None
    assert reader.idle_share([0], 210 * MS, 300 * MS) is None


def test_memory_and_io_of_a_group(made: MonitorFile) -> None:
    for at_ms, rss, written in ((0, 10, 1000), (100, 30, 3000), (200, 20, 3000), (300, 20, 3500)):
        made.sample(at_ms, {}, groups={"g": {"rss_kb": rss, "read_bytes": None, "write_bytes": written}})
    reader = made.reader()
    assert reader.rss_kb("g", 50 * MS, 200 * MS) == [(100 * MS, 30), (200 * MS, 20)]
    assert reader.io_bytes("g", 0, 300 * MS) == (None, 2500)
    assert reader.io_bytes("g", 50 * MS, 250 * MS) == (None, 1250)
    assert reader.io_by_interval("g", 0, 200 * MS) == [(100 * MS, None, 2000), (200 * MS, None, 0)]


def test_what_is_appended_is_read_once(steady: MonitorFile) -> None:
    reader = steady.reader()
    reader.refresh()
    assert reader.last_at_ns == 1400 * MS
    assert reader.interval_ns == 100 * MS
    steady.sample(1500, {7: 800})
    assert reader.last_at_ns == 1400 * MS
    reader.refresh()
    assert reader.last_at_ns == 1500 * MS
    assert reader.cpu_seconds("g", 1400 * MS, 1500 * MS) == pytest.approx(0.1)


def test_a_line_cut_anywhere_is_read_when_it_is_whole(steady: MonitorFile) -> None:
    whole = steady.path.read_bytes()
    steady.sample(1500, {7: 800})
    grown = steady.path.read_bytes()
    for cut in range(len(whole), len(grown)):
        steady.path.write_bytes(grown[:cut])
        reader = steady.reader()
        assert reader.last_at_ns == 1400 * MS
        steady.path.write_bytes(whole)  # the writer takes a part of a line back
        reader.refresh()
        assert reader.last_at_ns == 1400 * MS
        steady.path.write_bytes(grown)
        reader.refresh()
        assert reader.last_at_ns == 1500 * MS
        assert reader.cpu_seconds("g", 1000 * MS, 1500 * MS) == pytest.approx(0.3)


@pytest.mark.parametrize("line", ['{"type":', "[]", '{"type":"sample","at_ns":1}', '{"no":"type"}'])
def test_a_damaged_line_names_file_and_line(steady: MonitorFile, line: str) -> None:
    with steady.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RecordError, match=r"monitor\.jsonl:8: not a record"):
        steady.reader()


def test_unknown_records_are_ignored(steady: MonitorFile) -> None:
    steady.add({"type": "news"})
    assert steady.reader().last_at_ns == 1400 * MS


def test_tables_hold_what_happened_between_samples(made: MonitorFile) -> None:
    made.thread(0, 7, cpus=(0, 1, 2, 5))
    made.sample(0, {7: 500}, delay_ms={7: 10}, switches=100)
    made.thread(100, 8, started_ns=60 * MS, policy="RR", priority=3, cpus=(1,))
    made.sample(100, {7: 530, 8: 20}, delay_ms={7: 15}, idle_ms={0: (60, 40, 0)})
    made.thread(200, 7, cpus=(0,), name="renamed")
    made.sample(200, {7: 530, 8: 25}, delay_ms={7: 15}, switches=130)
    made.gone(300, 8, 26)
    made.sample(300, {7: 531}, idle_ms={0: (10, 89, 1)})
    found = tables(made.path)
    threads = found["monitor_threads"]
    assert threads.columns == [
        "at_ns", "group", "pid", "tid", "name", "cpu_interval_ns", "run_delay_interval_ns", "cpu", "policy", "priority",
        "cpus", "voluntary", "involuntary",
    ]  # fmt: skip
    assert threads.rows() == [
        (0, "g", 10, 7, "t7", None, None, 1, "OTHER", 0, "0-2,5", None, None),
        (100 * MS, "g", 10, 7, "t7", 30 * MS, 5 * MS, 1, "OTHER", 0, "0-2,5", None, None),
        (100 * MS, "g", 10, 8, "t8", 20 * MS, None, 1, "RR", 3, "1", None, None),
        (200 * MS, "g", 10, 7, "renamed", 0, 0, 1, "OTHER", 0, "0", 30, 30),
        (200 * MS, "g", 10, 8, "t8", 5 * MS, None, 1, "RR", 3, "1", 130, 130),
        (300 * MS, "g", 10, 7, "renamed", 1 * MS, None, 1, "OTHER", 0, "0", None, None),
        (300 * MS, "g", 10, 8, "t8", 1 * MS, None, None, "RR", 3, "1", None, None),
    ]
    assert found["monitor_cpus"].columns == ["at_ns", "cpu", "busy_ns", "idle_ns", "steal_ns", "interval_ns"]
    assert found["monitor_cpus"].rows() == [
        (100 * MS, 0, 60 * MS, 40 * MS, 0, 100 * MS),
        (300 * MS, 0, 10 * MS, 89 * MS, 1 * MS, 100 * MS),
    ]


def test_tables_of_nothing_have_their_columns(tmp_path: Path, made: MonitorFile) -> None:
    empty = tables(tmp_path / "none.jsonl")
    made.thread(0, 7)
    made.sample(0, {7: 1})
    for name, table in tables(made.path).items():
        assert empty[name].schema == table.schema
        assert empty[name].height == 0


# -- the program, on real processes ----------------------------------------------------------------------------------


class RealMonitor:
    """A perflab-monitor of the test's own."""

    def __init__(self, path: Path, interval_ms: int = 20) -> None:
        program = Path(os.environ.get("PERFLAB_NATIVE", "")) / "perflab-monitor"
        if not os.access(program, os.X_OK):
            pytest.skip(f"{program} is missing; build the native programs and set PERFLAB_NATIVE to their folder")
        self.path = path
        self.channel, theirs = socket.socketpair()
        self.channel.settimeout(LIMIT_S)
        self._incoming = self.channel.makefile("r")
        arguments = [
            "--control-fd",
            str(theirs.fileno()),
            "--interval-ns",
            str(interval_ms * MS),
            "--output",
            str(path),
        ]
        with theirs:
            self.process = subprocess.Popen([program, *arguments], pass_fds=(theirs.fileno(),))
        self.reader = MonitorReader(path)

    def __enter__(self) -> RealMonitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.process.kill()
        self.process.wait(LIMIT_S)

    def close(self) -> None:
        self._incoming.close()
        self.channel.close()

    def send(self, **body: Any) -> None:
        self.channel.sendall(json.dumps(body).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        line = self._incoming.readline()
        assert line, "the monitor has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def watch(self, group: str, root: int) -> None:
        self.send(type="watch", group=group, root=root)
        assert self.receive() == {"type": "watching", "group": group, "root": root}

    def stop(self) -> dict[str, Any]:
        self.send(type="stop")
        done = self.receive()
        assert self.process.wait(LIMIT_S) == 0
        self.reader.refresh()
        return done

    def until(self, happened: Callable[[MonitorReader], bool]) -> int:
        """Waits until the reader says so; the instant of the last sample then."""
        limit_s = time.monotonic() + LIMIT_S
        while True:
            self.reader.refresh()
            if happened(self.reader):
                assert self.reader.last_at_ns is not None
                return self.reader.last_at_ns
            assert time.monotonic() < limit_s, "it has not happened"
            time.sleep(0.01)

    def pass_by(self, samples: int = 2) -> int:
        """Waits for some more samples; when the last of them was."""
        now_ns, seen = time.monotonic_ns(), len(self._after(0))
        return self.until(lambda _: len(self._after(0)) >= seen + samples and self._after(0)[-1] > now_ns)

    def _after(self, at_ns: int) -> list[int]:
        return [at for at in self.reader._at_ns if at >= at_ns]


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[RealMonitor]:
    with RealMonitor(tmp_path / "monitor.jsonl") as running:
        yield running


class Child:
    """A Python process that runs a script and is spoken with over its pipes."""

    def __init__(self, script: str) -> None:
        preface = "import os, sys, time\ndef say(*words): print(*words, flush=True)\ndef hear(): return input()\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", preface + script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> list[int]:
        assert self.process.stdout is not None
        return [int(word) for word in self.process.stdout.readline().split()]

    def say(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def child() -> Iterator[Callable[[str], Child]]:
    started: list[Child] = []

    def start(script: str) -> Child:
        started.append(Child(script))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


BUSY = """
say(0)
hear()
begin, begun = time.monotonic_ns(), time.process_time_ns()
while time.process_time_ns() - begun < 1_000_000_000: pass
say(begin, time.monotonic_ns(), time.process_time_ns() - begun)
hear()
"""


@pytest.mark.native
def test_the_cpu_time_of_a_busy_process_is_what_it_says_itself(
    monitor: RealMonitor, child: Callable[[str], Child]
) -> None:
    busy = child(BUSY)
    busy.hear()
    monitor.watch("busy", busy.pid)
    before_ns = monitor.pass_by()
    busy.say()
    begin_ns, end_ns, used_ns = busy.hear()
    after_ns = monitor.pass_by()
    # It sleeps at both ends, so that no interval is cut, however late the samples come.
    assert monitor.reader.cpu_seconds("busy", before_ns, after_ns) == pytest.approx(used_ns / 1e9, rel=0.1)
    assert monitor.reader.thread_cpu_seconds("busy", before_ns, after_ns) == {busy.pid: pytest.approx(1.0, rel=0.1)}
    wall_s = (end_ns - begin_ns) / 1e9
    by_interval = monitor.reader.cpu_by_interval("busy", begin_ns, end_ns)
    assert max(used for _, used in by_interval) > 0.5 * used_ns / 1e9 / wall_s
    idle = monitor.reader.idle_share(os.sched_getaffinity(0), begin_ns, end_ns)
    assert idle is not None
    assert 0 <= idle < 1
    (resident_kb, *_) = [kb for _, kb in monitor.reader.rss_kb("busy", begin_ns, end_ns)]
    status = Path(f"/proc/{busy.pid}/status").read_text()
    now_kb = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
    assert resident_kb == pytest.approx(now_kb, rel=0.5)


@pytest.mark.native
def test_a_thread_that_was_moved_and_moved_back_is_seen(monitor: RealMonitor, child: Callable[[str], Child]) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs 2 CPUs")
    home, other = cpus[0], cpus[1]
    idle = child("say(0); hear()")
    idle.hear()
    os.sched_setaffinity(idle.pid, {home})
    monitor.watch("g", idle.pid)
    begin_ns = time.monotonic_ns()
    between_ns = monitor.pass_by()
    os.sched_setaffinity(idle.pid, {other})
    monitor.pass_by()
    os.sched_setaffinity(idle.pid, {home})
    end_ns = monitor.pass_by()
    reader = monitor.reader
    assert reader.escaped("g", frozenset({home}), begin_ns, between_ns) == []
    (escape,) = reader.escaped("g", frozenset({home}), begin_ns, end_ns)
    assert (escape.pid, escape.tid, escape.cpus) == (idle.pid, idle.pid, (other,))
    assert between_ns < escape.at_ns < end_ns
    assert [s.cpus for s in reader.threads("g", 0, end_ns)] == [(home,), (other,), (home,)]


THREADS = """
import threading
go = [threading.Event() for _ in range(3)]
def work(event):
    with open("/proc/thread-self/comm", "w") as comm: comm.write("worker")
    event.wait()
threads = [threading.Thread(target=work, args=(event,)) for event in go]
say(0); hear()
for thread in threads: thread.start()
say(0); hear()
go[0].set(); threads[0].join()
say(0); hear()
"""


@pytest.mark.native
def test_threads_are_found_as_they_begin_and_missed_when_they_end(
    monitor: RealMonitor, child: Callable[[str], Child]
) -> None:
    many = child(THREADS)
    many.hear()
    monitor.watch("g", many.pid)
    many.say()
    many.hear()

    def workers(reader: MonitorReader) -> int:
        last_ns = reader.last_at_ns or 0
        return sum(s.name == "worker" for s in reader.threads("g", last_ns, last_ns))

    monitor.until(lambda reader: workers(reader) == 3)
    assert monitor.reader.alive("g") == 1
    many.say()
    many.hear()
    monitor.until(lambda reader: workers(reader) == 2)


@pytest.mark.native
def test_a_thread_may_have_any_bytes_as_its_name(monitor: RealMonitor, child: Callable[[str], Child]) -> None:
    odd = child("open('/proc/self/comm', 'wb').write(b') S \"\\\\\\n\\xff('); say(0); hear()")
    odd.hear()
    assert Path(f"/proc/{odd.pid}/comm").read_bytes() == b') S "\\\n\xff(\n'
    monitor.watch("g", odd.pid)
    end_ns = monitor.pass_by()
    (seen,) = monitor.reader.threads("g", 0, end_ns)
    assert (seen.name, seen.policy, seen.tid) == (') S "\\\n\ufffd(', "OTHER", odd.pid)


TREE = """
def fork():
    sys.stdout.flush()
    return os.fork()
again, go = os.pipe()
if fork() == 0:
    if fork() == 0:
        say(os.getpid())
        os.close(go)
        os.read(again, 1)  # until nobody has the other end
        end = time.process_time() + 0.3
        while time.process_time() < end: pass
        time.sleep(600)
    os.close(go)
    time.sleep(600)
hear()
os.close(go)
hear()
"""


@pytest.mark.native
def test_a_descendant_whose_parent_died_stays_in_its_group(monitor: RealMonitor, child: Callable[[str], Child]) -> None:
    root = child(TREE)
    (orphan,) = root.hear()
    try:
        monitor.watch("g", root.pid)
        monitor.until(lambda reader: reader.alive("g") == 3)
        last_ns = monitor.reader.last_at_ns or 0
        (middle,) = {s.pid for s in monitor.reader.threads("g", last_ns, last_ns)} - {root.pid, orphan}
        os.kill(middle, signal.SIGKILL)
        begin_ns = monitor.until(lambda reader: reader.alive("g") == 2)  # though nobody reaps it
        root.say()

        def used(reader: MonitorReader) -> float:
            return reader.thread_cpu_seconds("g", begin_ns, time.monotonic_ns()).get(orphan, 0.0)

        monitor.until(lambda reader: used(reader) > 0.2)
        root.process.kill()
        monitor.until(lambda reader: reader.alive("g") == 1)
    finally:
        os.kill(orphan, signal.SIGKILL)
    monitor.until(lambda reader: reader.alive("g") == 0)
    assert [t.pid for t in monitor.reader._by_group["g"] if not t.ended] == []


WRITER = """
def write():
    with open(PATH, "wb") as file:
        file.write(os.urandom(4 << 20))
        os.fsync(file.fileno())
hear()
there, here = os.pipe()
if (pid := os.fork()) == 0:
    write()
    say(0)
    os.close(here)
    os.read(there, 1)
    os._exit(0)
hear()
os.close(here)
os.waitpid(pid, 0)
say(0)
hear()
"""


@pytest.mark.native
def test_what_a_child_wrote_is_counted_once_also_after_its_parent_waited_for_it(
    monitor: RealMonitor, child: Callable[[str], Child], tmp_path: Path
) -> None:
    if not _counts_writes(tmp_path):
        pytest.skip(f"the kernel counts no writes to {tmp_path} (/proc/PID/io)")
    root = child(f"PATH = {str(tmp_path / 'data')!r}\n" + WRITER)
    monitor.watch("g", root.pid)
    begin_ns = monitor.pass_by()
    root.say()
    root.hear()
    end_ns = monitor.pass_by()
    _, written = monitor.reader.io_bytes("g", begin_ns, end_ns)
    assert written is not None
    assert 4 << 20 <= written < 6 << 20
    root.say()
    root.hear()
    end_ns = monitor.pass_by(10)
    assert monitor.reader.alive("g") == 1
    assert monitor.reader.io_bytes("g", begin_ns, end_ns)[1] == pytest.approx(written, abs=64 << 10)
    intervals = monitor.reader.io_by_interval("g", begin_ns, end_ns)
    assert sum(more for _, _, more in intervals if more) == pytest.approx(written, abs=64 << 10)


def _counts_writes(folder: Path) -> bool:
    def written() -> int:
        text = Path("/proc/self/io").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("write_bytes")))

    try:
        before = written()
        with (folder / "probe").open("wb") as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
        return written() - before >= 1 << 20
    except (OSError, StopIteration):
        return False


@pytest.mark.native
def test_the_monitor_is_in_no_group(monitor: RealMonitor) -> None:
    monitor.watch("all", os.getpid())
    end_ns = monitor.pass_by()
    pids = {s.pid for s in monitor.reader.threads("all", 0, end_ns)}
    assert os.getpid() in pids
    assert monitor.process.pid not in pids


@pytest.mark.native
def test_a_tree_within_a_tree_gets_a_group_of_its_own(monitor: RealMonitor, child: Callable[[str], Child]) -> None:
    inner = child("say(0); hear()")
    inner.hear()
    monitor.watch("outer", os.getpid())
    both = monitor.pass_by()
    monitor.watch("inner", inner.pid)
    end_ns = monitor.pass_by()
    assert inner.pid in {s.pid for s in monitor.reader.threads("outer", 0, both)}
    assert {s.pid for s in monitor.reader.threads("inner", both, end_ns)} == {inner.pid}
    assert inner.pid not in {s.pid for s in monitor.reader.threads("outer", end_ns, end_ns)}
    assert monitor.reader.alive("inner") == 1
    monitor.send(type="unwatch", group="inner")
    gone_ns = monitor.pass_by()
    assert monitor.reader.sampled("inner", gone_ns, gone_ns + MS) is None


@pytest.mark.native
def test_a_root_that_is_gone_is_a_group_without_processes(monitor: RealMonitor) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(LIMIT_S)
    monitor.watch("g", ended.pid)
    end_ns = monitor.pass_by()
    assert (monitor.reader.alive("g"), monitor.reader.threads("g", 0, end_ns)) == (0, [])
    assert monitor.reader.cpu_seconds("g", 0, end_ns) == 0.0


@pytest.mark.native
def test_a_full_disk_is_reported_once_and_leaves_whole_lines(
    monitor: RealMonitor, child: Callable[[str], Child]
) -> None:
    idle = child("say(0); hear()")
    idle.hear()
    monitor.watch("g", idle.pid)
    monitor.pass_by()
    unlimited = resource.prlimit(monitor.process.pid, resource.RLIMIT_FSIZE)
    # Somewhere within the next line.
    resource.prlimit(monitor.process.pid, resource.RLIMIT_FSIZE, (monitor.path.stat().st_size + 100, unlimited[1]))
    error = monitor.receive()
    assert (error["type"], error["kind"]) == ("error", "failed")
    assert str(monitor.path) in error["text"]
    time.sleep(0.2)  # several samples that do not fit either
    full = monitor.path.read_bytes()
    assert full.endswith(b"\n")
    monitor.reader.refresh()
    full_ns = monitor.reader.last_at_ns or 0
    resource.prlimit(monitor.process.pid, resource.RLIMIT_FSIZE, unlimited)
    end_ns = monitor.pass_by(5)
    assert end_ns > full_ns
    assert [s.pid for s in monitor.reader.threads("g", 0, end_ns)] == [idle.pid]
    done = monitor.stop()
    assert done["type"] == "done"
    assert done["lost_samples"] >= 1
    assert monitor.path.read_bytes().startswith(full)
    for line in monitor.path.read_text().splitlines():
        json.loads(line)


@pytest.mark.native
def test_done_names_the_file_and_the_last_sample_is_of_the_end(monitor: RealMonitor) -> None:
    monitor.watch("g", os.getpid())
    before_ns = time.monotonic_ns()
    done = monitor.stop()
    assert (done["type"], done["files"], done["lost_samples"]) == ("done", [str(monitor.path)], 0)
    assert done["samples"] == len(monitor.reader._at_ns)
    assert (monitor.reader.last_at_ns or 0) >= before_ns


@pytest.mark.native
def test_the_monitor_ends_when_the_channel_closes(monitor: RealMonitor) -> None:
    monitor.watch("g", os.getpid())
    monitor.close()
    assert monitor.process.wait(LIMIT_S) == 0


STARTER = """
import socket, subprocess
ours, theirs = socket.socketpair()
arguments = ["--control-fd", str(theirs.fileno()), "--interval-ns", "20000000", "--output", PATH]
print(subprocess.Popen([PROGRAM, *arguments], pass_fds=(theirs.fileno(),)).pid, flush=True)
theirs.close()
input()
"""


@pytest.mark.native
def test_the_monitor_ends_with_a_perflab_that_was_killed(
    monitor: RealMonitor, child: Callable[[str], Child], tmp_path: Path
) -> None:
    program = Path(os.environ["PERFLAB_NATIVE"]) / "perflab-monitor"
    starter = child(f"PATH, PROGRAM = {str(tmp_path / 'other.jsonl')!r}, {str(program)!r}\n{STARTER}")
    (pid,) = starter.hear()
    monitor.watch("g", pid)
    assert monitor.reader.alive("g") == 0
    monitor.until(lambda reader: reader.alive("g") == 1)
    starter.process.kill()
    monitor.until(lambda reader: reader.alive("g") == 0)


@pytest.mark.native
def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with RealMonitor(tmp_path / "missing" / "monitor.jsonl") as monitor:
        error = monitor.receive()
        assert (error["type"], error["kind"]) == ("error", "failed")
        assert "missing/monitor.jsonl" in error["text"]
        assert monitor.process.wait(LIMIT_S) == 1
