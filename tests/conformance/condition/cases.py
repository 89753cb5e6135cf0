"""The conditions that the suite runs, with small parameters, and how each is sabotaged in the middle of a window."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perflab.condition import (
    cpu_load,
    cpu_pinning,
    io_load,
    memory_pressure,
    network_shaping,
    priority_inhibitor,
)
from perflab.condition.evidence import Task, allowed_cpus, descendants
from perflab.condition.network_shaping import enter
from perflab.registry import Kind
from tests.conformance.condition.real_trial import RealTrial

Act = Callable[[RealTrial, str], None]

KINDS: Mapping[str, Kind] = {  # type: ignore[type-arg]
    module.KIND.name: module.KIND
    for module in (cpu_load, cpu_pinning, io_load, memory_pressure, network_shaping, priority_inhibitor)
}


@dataclass(frozen=True)
class Sabotage:
    """What is done to the condition, and a pattern of the reason that must name it."""

    act: Act
    reason: str
    needs_cpus: int = 1


@dataclass(frozen=True)
class Case:
    """A condition with parameters. `achieved` are keys that its evidence has."""

    word: str
    achieved: tuple[str, ...]
    sabotages: Mapping[str, Sabotage] = field(default_factory=dict)
    needs_cpus: int = 1
    last_cpu: bool = False  # append cpus=N with the highest CPU

    @property
    def name(self) -> str:
        return self.word.partition(":")[0]


def _workers(trial: RealTrial, label: str) -> list[Task]:
    """The processes of a load that have no children: stress-ng's workers."""
    root = trial.companions[label].pid
    assert root is not None
    below = descendants(root)
    parents = {parent for parent, _ in below.values()}
    return [t for t in below if t.pid not in parents]


def kill_the_program(trial: RealTrial, label: str) -> None:
    pid = trial.companions[label].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_a_worker(trial: RealTrial, label: str) -> None:
    os.kill(_workers(trial, label)[0].pid, signal.SIGKILL)


def stop_the_workers(trial: RealTrial, label: str) -> None:
    for worker in _workers(trial, label):
        os.kill(worker.pid, signal.SIGSTOP)


def stop_the_program(trial: RealTrial, label: str) -> None:
    pid = trial.companions[label].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)


def pause_the_workers(trial: RealTrial, label: str) -> None:
    """For some time only: at the end of the window everything is as it was."""
    stop_the_workers(trial, label)
    trial.wait(1.2)
    for worker in _workers(trial, label):
        os.kill(worker.pid, signal.SIGCONT)


def stop_the_workers_most_of_the_time(trial: RealTrial, label: str) -> None:
    """No pause is as long as a second."""
    for _ in range(3):
        stop_the_workers(trial, label)
        trial.wait(0.8)
        for worker in _workers(trial, label):
            os.kill(worker.pid, signal.SIGCONT)
        trial.wait(0.1)


def make_a_worker_idle(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(_workers(trial, label)[0].pid, os.SCHED_IDLE, os.sched_param(0))


def renice_a_worker(trial: RealTrial, label: str) -> None:
    os.setpriority(os.PRIO_PROCESS, _workers(trial, label)[0].pid, 19)


def move_a_worker(trial: RealTrial, label: str) -> None:
    os.sched_setaffinity(_workers(trial, label)[0].pid, {allowed_cpus()[0]})


def _thread_of(pid: int) -> int:
    """A thread that is not the main one."""
    return max(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())


def move_a_thread(trial: RealTrial, label: str) -> None:
    del label
    os.sched_setaffinity(_thread_of(trial.processes["listener"]), set(allowed_cpus()))


def move_a_thread_of_the_child_and_back(trial: RealTrial, label: str) -> None:
    del label
    child = next(iter(descendants(trial.processes["talker"])))
    thread = _thread_of(child.pid)
    before = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, set(allowed_cpus()) - before)
    trial.wait(0.4)
    os.sched_setaffinity(thread, before)


def _burning_thread(trial: RealTrial, label: str) -> int:
    pid = trial.companions[label].pid
    assert pid is not None
    return _thread_of(pid)


def move_the_burner(trial: RealTrial, label: str) -> None:
    os.sched_setaffinity(_burning_thread(trial, label), {allowed_cpus()[0]})


def change_the_policy(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(_burning_thread(trial, label), os.SCHED_OTHER, os.sched_param(0))


def change_the_priority(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(_burning_thread(trial, label), os.SCHED_FIFO, os.sched_param(3))


def _tc(trial: RealTrial, label: str, words: str) -> None:

    holder = trial.companions[label].pid
    assert holder is not None
    subprocess.run([*enter(holder), "tc", "qdisc", *words.split()], check=True)


def delete_the_discipline(trial: RealTrial, label: str) -> None:
    _tc(trial, label, "del dev lo root")


def replace_the_discipline(trial: RealTrial, label: str) -> None:
    """Away for a moment, and back as it was, handle and all."""
    delete_the_discipline(trial, label)
    trial.wait(0.5)
    _tc(trial, label, "add dev lo root handle 10: tbf rate 1250000bps burst 131072 latency 50ms")


def change_the_rate(trial: RealTrial, label: str) -> None:
    _tc(trial, label, "change dev lo root handle 10: tbf rate 2500000bps burst 131072 latency 50ms")


ENDED = "was killed by SIGKILL|ended during the trial|ended by itself"
STRESS_NG_SABOTAGES = {
    "the program is killed": Sabotage(kill_the_program, ENDED),
    "a worker is killed": Sabotage(kill_a_worker, ENDED),
}
USE = ("cpus_used", "cpus_used_by_part", "idle_share")

CASES = (
    Case(
        "cpu_load:workers=1,load=30",
        (*USE, "workers_alive", "cpus_shared_with_workload"),
        {
            **STRESS_NG_SABOTAGES,
            "the workers are stopped": Sabotage(stop_the_workers, "is stopped"),
            "the workers pause": Sabotage(pause_the_workers, "wanted .* of a CPU instead of 30%|CPU time"),
            "a worker is made idle": Sabotage(make_a_worker_idle, "had policy IDLE instead of"),
            "a worker is moved": Sabotage(move_a_worker, "was on CPUs 0 instead of", needs_cpus=2),
        },
    ),
    Case(
        "cpu_load:workers=2,load=20",
        USE,
        {
            "a worker is killed": Sabotage(kill_a_worker, ENDED),
            "a worker is moved": Sabotage(move_a_worker, "was on CPUs 0 instead of", needs_cpus=2),
        },
        last_cpu=True,
    ),
    Case(
        "cpu_pinning:count=1",
        ("threads", "samples", "processes"),
        {
            "a thread is moved": Sabotage(move_a_thread, "thread .* of process 'listener' could run on", needs_cpus=2),
            "a thread of a child is moved and back": Sabotage(
                move_a_thread_of_the_child_and_back, "thread .* of process 'talker' could run on", needs_cpus=2
            ),
        },
    ),
    Case(
        "memory_pressure:workers=2,bytes=64MiB",
        ("resident_bytes", "resident_bytes_at_end", "workers_alive"),
        {
            **STRESS_NG_SABOTAGES,
            "the workers are stopped": Sabotage(stop_the_workers, "is stopped"),
            "the workers pause": Sabotage(pause_the_workers, "did not rewrite its memory"),
            "a worker is reniced": Sabotage(renice_a_worker, "had nice 19 instead of"),
        },
    ),
    Case(
        "memory_pressure:bytes=32MiB,access=hold",
        ("resident_bytes", "cpus_used"),
        {"the memory goes with its worker": Sabotage(kill_a_worker, ENDED)},
    ),
    Case(
        "io_load:workers=2,bytes=2MiB",
        ("written_mb_per_s", "written_mb_per_s_by_part", "read_mb_per_s"),
        {
            **STRESS_NG_SABOTAGES,
            "the workers are stopped": Sabotage(stop_the_workers, "is stopped"),
            "the workers pause": Sabotage(pause_the_workers, "wrote nothing"),
            "the workers are stopped most of the time": Sabotage(stop_the_workers_most_of_the_time, "wrote nothing"),
        },
    ),
    Case(
        "network_shaping:rate=10Mbit",
        ("bytes", "packets", "drops", "overlimits", "bytes_per_s", "processes_outside"),
        {
            "the holder is killed": Sabotage(kill_the_program, "the holder of the namespace was killed by SIGKILL"),
            "the discipline is deleted": Sabotage(delete_the_discipline, "tbf is not on lo"),
            "the discipline is away for a moment": Sabotage(replace_the_discipline, "replaced|passed lo, and"),
            "the rate is changed": Sabotage(change_the_rate, "rate of tbf is 2.5e\\+06 bytes/s, and 1.25e\\+06"),
        },
    ),
    Case("network_shaping:delay=5ms,jitter=1ms,loss=1%", ("packets", "drops")),
    Case(
        "priority_inhibitor:policy=FIFO,priority=5,load=30",
        ("threads", "states", "real_time_share"),
        {
            "the program is killed": Sabotage(kill_the_program, ENDED),
            "the program is stopped": Sabotage(stop_the_program, "wanted .* of a CPU|CPU time"),
            "the policy is changed": Sabotage(change_the_policy, "had policy OTHER, and FIFO was promised"),
            "the priority is changed": Sabotage(change_the_priority, "had priority 3, and 5 was promised"),
            "the burner is moved": Sabotage(move_the_burner, "had cpus \\[0\\], and", needs_cpus=2),
        },
    ),
    Case("priority_inhibitor:policy=OTHER,nice=5,load=20,when=after", ("threads", "states")),
)
