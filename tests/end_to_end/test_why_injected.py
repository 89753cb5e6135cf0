"""Causes that were put there on purpose are found by `perflab trace why`, with the time that they cost.

Whatever else the machine does comes on top, as causes of its own: what is checked is the part that was injected.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.schemas import published

from .conftest import Json, Run

MS = 1_000_000
RECORDER = Path(os.environ.get("PERFLAB_NATIVE", "")) / "perflab-scheduler-recorder"

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("lttng") is None, reason="no lttng: install lttng-tools"),
]

AHEAD = """\
name: ahead
processes:
  - name: sender
    nodes:
      - name: sender
        timers: [{name: tick, period: 20ms, publish: [slow, fast]}]
        publishers: [{topic: slow, type: stamped100b}, {topic: fast, type: stamped100b}]
  - name: reader
    executors: [{id: 0, kind: single_threaded}]
    nodes:
      - name: reader
        subscriptions: [{topic: slow, type: stamped100b}, {topic: fast, type: stamped100b}]
        reactions: [{on: slow, work: 4ms}]
"""

# At 10, 20, 30 and 40 ms of every 90 ms the timer that sends finds the other one at work, for 4, 3, 2 and 1 ms more.
LATE_SENDER = """\
name: late_sender
processes:
  - name: sender
    executors: [{id: 0, kind: single_threaded}]
    nodes:
      - name: sender
        timers:
          - {name: busy, period: 9ms, work: 5ms, publish: other}
          - {name: tick, period: 10ms, publish: fast}
        publishers: [{topic: fast, type: stamped100b}, {topic: other, type: stamped100b}]
  - name: reader
    nodes:
      - name: reader
        subscriptions: [{topic: fast, type: stamped100b}, {topic: other, type: stamped100b}]
"""

PAIR = """\
name: pair
processes:
  - name: sender
    nodes:
      - name: sender
        timers: [{name: tick, period: 5ms, publish: fast}]
        publishers: [{topic: fast, type: stamped100b}]
  - name: reader
    nodes:
      - name: reader
        subscriptions: [{topic: fast, type: stamped100b}]
"""

# The reader works longer than the quota of a test gives it.
WORKING_PAIR = f"{PAIR}        reactions: [{{on: fast, work: 1ms}}]\n"

SECONDS = 2
MakeGroup = Callable[[str], Path]


@pytest.fixture(autouse=True)
def rights() -> None:
    """Scheduler events are nothing that every user of every machine may see."""
    checked = subprocess.run([RECORDER, "--check"], capture_output=True, text=True, timeout=60, check=False)
    if checked.returncode == 3:
        pytest.skip(checked.stderr.strip())
    assert checked.returncode == 0, checked.stderr


@pytest.fixture
def why(run: Run, tmp_path: Path) -> Callable[..., Json]:
    """Runs a graph with the tracer and asks why messages of /fast were late."""

    def asked(graph: str, *options: str, late: tuple[str, ...], tracing: str = "") -> Json:
        path, out = tmp_path / "graph.yaml", tmp_path / "run"
        path.write_text(graph)
        observer = f"tracing:trials=all{tracing}"
        done = run("run", path, "--time", SECONDS, "--observer", observer, "--output", out, "-q", *options)
        if done.returncode == 3 and "priority_inhibitor" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        (trace,) = out.glob("trials/*/trace")
        told = run("trace", "why", trace, "--topic", "/fast", *late, "--json")
        assert told.returncode == 0, told.stderr
        answer: Json = json.loads(told.stdout)
        _conserved(answer)
        summary = json.loads((out / "summary.json").read_text())
        published("summary").validate(summary)
        (trial,) = summary["results"][0]["trials_detail"]
        assert trial["why"]["messages"] > 0
        return answer

    return asked


def test_a_callback_that_is_ahead_in_the_executor(why: Callable[..., Json]) -> None:
    # On one CPU a reader may interrupt the sender between its two messages, and be through before the second comes.
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    place = [("--thread", f"sender.{role}=OTHER@{first}") for role in ("executors", "middleware")]
    place += [("--thread", f"reader.{role}=OTHER@{last}") for role in ("executors", "middleware")]
    answer = why(AHEAD, "--middleware", "cyclonedds", *itertools.chain(*place), late=("--quantile", "0"))
    (ahead,) = rows(answer, "totals", cause="callback_ahead", what="behind /reader /slow")
    assert ahead["having"] >= 0.8 * answer["why"]["rows"][0]["late"]
    # What the callback ahead spent of CPU time, whatever else it waited for.
    assert 3.5 * MS < ahead["each_p50_ns"] < 6 * MS
    assert ahead["stages"] == "reader"


@pytest.mark.long
def test_a_sender_that_is_late_because_of_another_callback(why: Callable[..., Json]) -> None:
    answer = why(LATE_SENDER, "--middleware", "cyclonedds", late=("--later-than", "800us"))
    ahead = rows(answer, "totals", cause="callback_ahead", stages="sender")
    assert ahead
    busy = max(ahead, key=lambda row: row["total_ns"])
    assert "timer 9 ms" in busy["what"]
    # Four of nine messages, with a mean of 2.5 ms; on a busy machine more, and the waits for the CPU on top.
    expected = SECONDS / 0.09 * 4
    assert busy["having"] >= 0.8 * expected
    assert busy["total_ns"] >= 0.7 * expected * 2.5 * MS
    assert busy["each_p50_ns"] > 0.9 * MS


def test_a_delay_on_the_way(why: Callable[..., Json]) -> None:
    answer = why(PAIR, "--middleware", "sim", "--middleware-option", "delay=3ms", late=("--quantile", "0"))
    (way,) = rows(answer, "totals", cause="on_the_way")
    assert way["having"] >= 0.9 * answer["why"]["rows"][0]["late"]
    assert 2 * MS < way["each_p50_ns"] < 3.5 * MS
    assert way["stages"] == "transport"


def test_a_busy_thread_on_the_subscriber_s_cpu(why: Callable[..., Json]) -> None:
    """Half of the time a thread burns there that nobody preempts."""
    cpu = max(os.sched_getaffinity(0))
    load = ("--condition", f"priority_inhibitor:load=50,cpus={cpu}", "--baseline", "off")
    place = ("--thread", f"reader.executors=OTHER@{cpu}", "--thread", f"reader.middleware=OTHER@{cpu}")
    answer = why(PAIR, "--middleware", "cyclonedds", *load, *place, late=("--later-than", "500us"))
    (verdict,) = answer["why"]["rows"]
    assert verdict["late"] >= 20
    held = rows(answer, "totals", cause="cpu", cpu=cpu)
    burnt = sum(row["total_ns"] for row in held if "perflab-burn" in row["who"])
    assert burnt > 0.5 * sum(row["total_ns"] for row in held), "it is what runs there"
    assert any("reader" in row["stages"] or "transport" in row["stages"] for row in held)


@pytest.mark.parametrize("whose", ["reader", pytest.param("sender", marks=pytest.mark.long)])
def test_a_process_that_is_stopped(why: Callable[..., Json], tmp_path: Path, whose: str) -> None:
    """SIGSTOP, and SIGCONT 50 ms later, again and again while the graph runs."""
    config, over = f"{whose}.config.json".encode(), threading.Event()
    stops = []

    def stop() -> None:
        while not over.wait(0.1):
            for pid in _processes_with(bytes(tmp_path), config):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    over.wait(0.05)
                    os.kill(pid, signal.SIGCONT)
                    stops.append(pid)

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        answer = why(PAIR, "--middleware", "cyclonedds", late=("--later-than", "15ms"))
    finally:
        over.set()
        stopper.join()
    assert stops
    (stopped,) = rows(answer, "totals", cause="stopped")
    assert stopped["pids"] == str(stops[-1])
    assert stopped["total_ns"] > 0.5 * answer["why"]["rows"][0]["total_ns"]
    assert stopped["total_ns"] > sum(row["total_ns"] for row in rows(answer, "totals", cause="on_the_way"))
    assert stopped["total_ns"] > sum(row["total_ns"] for row in rows(answer, "totals", cause="timer_late"))


@pytest.fixture
def cgroup() -> Iterator[MakeGroup]:
    """Makes control groups of a controller (\"freezer\": or of version 2), and removes them."""
    made: list[Path] = []

    def make(controller: str) -> Path:
        places = [Path("/sys/fs/cgroup") / name for name in (controller, "cpu,cpuacct", "unified", ".")]
        files = ("cpu.cfs_quota_us", "cpu.max") if controller == "cpu" else ("freezer.state", "cgroup.freeze")
        for place in places:
            folder = place / f"perflab_test_{os.getpid()}_{len(made)}"
            with contextlib.suppress(OSError):
                folder.mkdir()
                made.append(folder)
                if any((folder / name).exists() for name in files):
                    return folder
        pytest.skip(f"no control group with {' or '.join(files)} can be made here")

    yield make
    for folder in made:
        # Processes that a failed test left go back to the group above.
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (folder.parent / "cgroup.procs").write_text(pid)
        folder.rmdir()


@pytest.mark.long
def test_a_cpu_quota_on_a_cpu_that_is_busy(why: Callable[..., Json], tmp_path: Path, cgroup: MakeGroup) -> None:
    """The scheduler's events say that the other process has the CPU; what keeps the reader from it is its quota."""
    group = cgroup("cpu")
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text("3000 100000")
    else:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text("3000")
    cpu = max(os.sched_getaffinity(0))
    place = [("--thread", f"reader.{role}=OTHER@{cpu}") for role in ("executors", "middleware")]
    busy = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
    try:
        with _into(group, tmp_path, "reader"):
            answer = why(
                WORKING_PAIR, "--middleware", "cyclonedds", *itertools.chain(*place), late=("--later-than", "30ms")
            )
    finally:
        busy.kill()
        busy.wait()
    (throttled,) = rows(answer, "totals", cause="throttled")
    total = answer["why"]["rows"][0]["total_ns"]
    assert throttled["total_ns"] > 0.5 * total, answer["why"]["rows"][0]["sentence"]
    assert throttled["total_ns"] > sum(row["total_ns"] for row in rows(answer, "totals", cause="cpu"))


@pytest.mark.long
def test_a_frozen_group(why: Callable[..., Json], tmp_path: Path, cgroup: MakeGroup) -> None:
    """The reader's, for 50 ms again and again."""
    group, over, freezes = cgroup("freezer"), threading.Event(), 0
    switch, on, off = group / "cgroup.freeze", "1", "0"
    if not switch.exists():
        switch, on, off = group / "freezer.state", "FROZEN", "THAWED"

    def freeze() -> None:
        nonlocal freezes
        while not over.wait(0.1):
            if (group / "cgroup.procs").read_text():
                switch.write_text(on)
                over.wait(0.05)
                switch.write_text(off)
                freezes += 1

    freezer = threading.Thread(target=freeze)
    freezer.start()
    try:
        with _into(group, tmp_path, "reader"):
            answer = why(PAIR, "--middleware", "cyclonedds", late=("--later-than", "15ms"))
    finally:
        over.set()
        freezer.join()
    assert freezes
    (frozen,) = rows(answer, "totals", cause="frozen")
    # A busy machine makes others late for reasons of its own.
    largest = max(row["total_ns"] for row in rows(answer, "totals"))
    assert frozen["total_ns"] == largest, answer["why"]["rows"][0]["sentence"]
    assert frozen["total_ns"] > sum(row["total_ns"] for row in rows(answer, "totals", cause="on_the_way"))


@contextlib.contextmanager
def _into(group: Path, folder: Path, process: str) -> Iterator[None]:
    """That process of the graph that runs below the folder gets into the group as soon as it is there."""
    over = threading.Event()

    def put() -> None:
        while not over.wait(0.02):
            for pid in _processes_with(bytes(folder), f"{process}.config.json".encode()):
                with contextlib.suppress(OSError):
                    (group / "cgroup.procs").write_text(str(pid))

    thread = threading.Thread(target=put)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _processes_with(*words: bytes) -> list[int]:
    """Processes that this test started, by their command lines."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and b"perflab-node" in (line := (folder / "cmdline").read_bytes()).split(b"\0")[0]:
                found += [int(folder.name)] if all(word in line for word in words) else []
    return found


def rows(answer: Json, section: str, **members: object) -> list[Json]:
    return [row for row in answer[section]["rows"] if all(row[key] == value for key, value in members.items())]


def _conserved(answer: Json) -> None:
    sums: dict[int, int] = {}
    for part in answer["parts"]["rows"]:
        sums[part["message"]] = sums.get(part["message"], 0) + part["part_ns"]
    assert sums == {row["message"]: row["total_ns"] for row in answer["messages"]["rows"]}
