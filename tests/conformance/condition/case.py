"""What a case of the suite is, and the sabotages that several conditions share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perflab.processes import Process, descendants
from tests.conformance.condition.real_trial import RealTrial

Act = Callable[[RealTrial, str], None]

ENDED = "was killed by SIGKILL|exited with|ended during the trial|ended by itself"


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


def workers(trial: RealTrial, label: str) -> list[Process]:
    """The processes of a load that have no children: stress-ng's workers."""
    root = trial.companions[label].pid
    assert root is not None
    below = list(descendants(root))
    parents = {process.parent for process in below}
    return [t for t in below if t.pid not in parents]


def kill_the_program(trial: RealTrial, label: str) -> None:
    pid = trial.companions[label].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_a_worker(trial: RealTrial, label: str) -> None:
    os.kill(workers(trial, label)[0].pid, signal.SIGKILL)


def stop_the_workers(trial: RealTrial, label: str) -> None:
    for worker in workers(trial, label):
        os.kill(worker.pid, signal.SIGSTOP)


def pause_the_workers(trial: RealTrial, label: str) -> None:
    """For some time only: at the end of the window everything is as it was."""
    stop_the_workers(trial, label)
    trial.wait(1.2)
    for worker in workers(trial, label):
        os.kill(worker.pid, signal.SIGCONT)


def thread_of(pid: int) -> int:
    """A thread that is not the main one."""
    return max(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())


STRESS_NG_SABOTAGES = {
    "the program is killed": Sabotage(kill_the_program, ENDED),
    "a worker is killed": Sabotage(kill_a_worker, ENDED),
}
