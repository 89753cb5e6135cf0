"""cpu_pinning on made monitor data, and on a real process for what is read from /proc."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeMonitor, MadeTrial, S, graph_of

from perflab.condition import NotInEffect, Window
from perflab.condition import cpu_pinning as module
from perflab.condition.cpu_pinning import KIND, CpuPinning
from perflab.errors import BadInput
from perflab.host import Host
from perflab.models import as_json
from perflab.workload import Graph

WINDOW = Window(S, 4 * S)
GRAPH = graph_of("a", "b")


@pytest.fixture(autouse=True)
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("perflab.condition.evidence.allowed_cpus", "perflab.condition.cpu_pinning.allowed_cpus"):
        monkeypatch.setattr(name, lambda: (0, 1, 2, 3))


def made(graph: Graph = GRAPH, **parameters: Any) -> CpuPinning:
    condition = KIND.make(parameters, "cpu_pinning")
    assert isinstance(condition, CpuPinning)
    condition.check(Host(), graph, "dds")
    return condition


def watched(tmp_path: Path, cpus: list[int]) -> MadeMonitor:
    monitor = MadeMonitor(tmp_path / "m.jsonl", (0, 1, 2, 3))
    for name, tid in (("a", 11), ("a", 12), ("b", 21)):
        monitor.thread(f"workload/{name}", tid, cpus=cpus)
    return monitor


def verified(tmp_path: Path, condition: CpuPinning, monitor: MadeMonitor) -> dict[str, Any]:
    return dict(as_json(condition.begin(MadeTrial(tmp_path, monitor.samples(51).reader())).verify(WINDOW)))


def test_count_takes_the_highest_cpus_and_pins_every_process(tmp_path: Path) -> None:
    trial = MadeTrial(tmp_path, watched(tmp_path, [2, 3]).samples(51).reader())
    pinned = made(count=2).begin(trial)
    assert trial.launch.cpus_of == {"a": frozenset({2, 3}), "b": frozenset({2, 3})}
    evidence = as_json(pinned.verify(WINDOW))
    assert evidence["in_effect"], evidence
    assert evidence["promised"]["cpus"] == [2, 3]
    assert evidence["promised"]["clipped"] is False
    assert (evidence["achieved"]["threads"], evidence["achieved"]["samples"]) == (3, 31)


def test_fewer_cpus_than_promised_are_no_escape(tmp_path: Path) -> None:
    monitor = watched(tmp_path, [2, 3]).thread("workload/b", 21, at=20, cpus=[3])
    assert verified(tmp_path, made(count=2), monitor)["in_effect"]


def test_one_thread_that_could_run_elsewhere_for_a_moment_is_seen(tmp_path: Path) -> None:
    monitor = watched(tmp_path, [2, 3])
    monitor.thread("workload/a", 12, at=25, cpus=[1, 2, 3], name="recvUC")
    monitor.thread("workload/a", 12, at=27, cpus=[2, 3], name="recvUC")
    evidence = verified(tmp_path, made(count=2), monitor)
    assert evidence["reason"] == (
        "thread 12 (recvUC) of process 'a' could run on CPUs 1,2,3 1.5 s into the measured time, but CPUs 2,3 was "
        "promised"
    )
    assert evidence["achieved"]["processes"]["a"]["escapes"][0]["cpus"] == [1, 2, 3]


def test_a_process_that_the_monitor_did_not_see_is_no_success(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("workload/a", 11, cpus=[3])
    evidence = verified(tmp_path, made(count=1), monitor)
    assert evidence["reason"] == "the monitor has no sample of workload/b"


def test_only_the_named_processes_are_pinned(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl", (0, 1, 2, 3))
    monitor.thread("workload/a", 11, cpus=[0, 1, 2, 3]).thread("workload/b", 21, cpus=[1])
    condition = made(cpus="1", processes="b")
    evidence = verified(tmp_path, condition, monitor)
    assert evidence["in_effect"], evidence
    assert set(evidence["achieved"]["processes"]) == {"b"}


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def test_the_affinity_at_the_end_is_read_from_the_kernel(
    tmp_path: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(module, "allowed_cpus", lambda: (*real, 4094))
    condition = made(graph_of("a"), count=1)
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("workload/a", sleeper, cpus=[4094])
    trial = MadeTrial(tmp_path, monitor.samples(51).reader(), graph=graph_of("a"))
    trial.processes = {"a": sleeper}
    reason = as_json(condition.begin(trial).verify(WINDOW))["reason"]
    assert reason.startswith(f"thread {sleeper} (sleep) of process 'a' could run on CPU")
    assert reason.endswith(" at the end, but CPU 4094 was promised")


def test_a_thread_that_ran_elsewhere_between_two_samples_is_seen(tmp_path: Path) -> None:
    def where(tid: int, i: int) -> int:
        return 1 if tid == 12 and i in (25, 26) else 3

    def verify(used: float) -> dict[str, Any]:
        trial = MadeTrial(tmp_path, watched(tmp_path, [2, 3]).samples(51, cpu=lambda tid, i: used, on=where).reader())
        return dict(as_json(made(count=2).begin(trial).verify(WINDOW)))

    evidence = verify(0.1)
    assert evidence["reason"] == (
        "thread 12 (t) of process 'a' ran on CPU 1 1.5 s into the measured time, but CPUs 2,3 was promised"
    )
    assert evidence["achieved"]["processes"]["a"]["ran_outside"] == [
        {"pid": 12, "tid": 12, "name": "t", "cpu": 1, "at_ns": 25 * S // 10}
    ]
    assert evidence["achieved"]["interval_s"] == 0.1
    assert verify(0.0)["in_effect"]  # where it was last, and not where it ran


def test_what_ran_before_the_window_is_no_escape(tmp_path: Path) -> None:
    monitor = watched(tmp_path, [2, 3]).samples(51, cpu=lambda tid, i: 0.1, on=lambda tid, i: 1 if i <= 10 else 3)
    evidence = as_json(made(count=2).begin(MadeTrial(tmp_path, monitor.reader())).verify(WINDOW))
    assert evidence["in_effect"], evidence


def test_an_old_thread_that_nobody_watched_is_counted(tmp_path: Path, sleeper: int) -> None:
    begin_ns = time.monotonic_ns()
    condition = made(graph_of("a"), count=4)

    def verify(tid: int, at_ns: int) -> dict[str, Any]:
        monitor = MadeMonitor(tmp_path / "m.jsonl", begin_ns=at_ns).thread("workload/a", tid, cpus=[3])
        trial = MadeTrial(tmp_path, monitor.samples(51, on=lambda tid, i: 3).reader(), graph=graph_of("a"))
        trial.processes = {"a": sleeper}
        return dict(as_json(condition.begin(trial).verify(Window(at_ns + S, at_ns + 4 * S))))

    evidence = verify(sleeper + 1, begin_ns)
    assert evidence["reason"] == "1 thread of process 'a' was never sampled"
    assert evidence["achieved"]["processes"]["a"]["never_watched"] == 1
    assert verify(sleeper, begin_ns)["achieved"]["processes"]["a"]["never_watched"] == 0
    # It began with the last sample: the next one would have found it.
    young = verify(sleeper + 1, begin_ns - 60 * S)
    assert young["achieved"]["processes"]["a"]["never_watched"] == 0


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({}, "cpu_pinning: give exactly one of count and cpus"),
        ({"count": 1, "cpus": "0"}, "cpu_pinning: give exactly one of count and cpus"),
        ({"count": 8}, "cpu_pinning: count 8, but this machine allows 4 CPUs; clip=on uses as many as there are"),
        ({"cpus": "3,4"}, "cpu_pinning: cpus 4, but this machine allows CPUs 0,1,2,3"),
        ({"cpus": "4", "clip": "on"}, "cpu_pinning: none of cpus 4 is allowed here"),
        ({"count": 1, "processes": "a,c"}, "cpu_pinning: the workload has no process 'c'; choose from a, b"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as raised:
        made(**parameters)
    assert str(raised.value) == line


def test_clipping_says_so(tmp_path: Path) -> None:
    evidence = verified(tmp_path, made(count=8, clip="on"), watched(tmp_path, [0, 1, 2, 3]))
    assert evidence["in_effect"]
    assert evidence["promised"]["cpus"] == [0, 1, 2, 3]
    assert (evidence["promised"]["asked"], evidence["promised"]["clipped"]) == ({"count": 8}, True)


@pytest.mark.parametrize(
    ("process", "what"),
    [
        ({"threads": {"middleware": {"policy": None, "priority": 0, "cpus": [0]}}}, "the threads of middleware"),
        ({"executors": [{"id": 3, "kind": "inline", "thread": {"policy": None, "cpus": [0]}}]}, "executor 3"),
    ],
)
def test_a_graph_that_puts_threads_elsewhere_is_refused(process: dict[str, Any], what: str) -> None:
    with pytest.raises(BadInput) as raised:
        made(graph_of("a", **process), count=2)
    expected = f"cpu_pinning: the graph puts {what} of process 'a' on CPU 0, but the pinning allows CPUs 2,3"
    assert str(raised.value) == expected
    made(graph_of("a", **process), cpus="0,1")


def test_two_pinnings_of_one_process_are_refused(tmp_path: Path) -> None:
    trial = MadeTrial(tmp_path, watched(tmp_path, [3]).samples(2).reader())
    made(count=1).begin(trial)
    with pytest.raises(NotInEffect, match="another condition has pinned process 'b'"):
        made(cpus="0", processes="b").begin(trial)
