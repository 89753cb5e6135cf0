"""`priority_inhibitor` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import os
import signal

from perflab.condition.evidence import allowed_cpus
from tests.conformance.condition.case import ENDED, Case, Sabotage, kill_the_program, thread_of
from tests.conformance.condition.real_trial import RealTrial


def stop_the_program(trial: RealTrial, label: str) -> None:
    pid = trial.companions[label].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)


def _burning_thread(trial: RealTrial, label: str) -> int:
    pid = trial.companions[label].pid
    assert pid is not None
    return thread_of(pid)


def move_the_burner(trial: RealTrial, label: str) -> None:
    os.sched_setaffinity(_burning_thread(trial, label), {allowed_cpus()[0]})


def change_the_policy(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(_burning_thread(trial, label), os.SCHED_OTHER, os.sched_param(0))


def change_the_priority(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(_burning_thread(trial, label), os.SCHED_FIFO, os.sched_param(3))


CASES = (
    Case(
        "priority_inhibitor:policy=FIFO,priority=5,load=30",
        ("threads", "states", "real_time_share"),
        {
            "the program is killed": Sabotage(kill_the_program, ENDED),
            "the program is stopped": Sabotage(stop_the_program, "wanted .* of a CPU|CPU time"),
            "the policy is changed": Sabotage(change_the_policy, "had policy OTHER instead of FIFO"),
            "the priority is changed": Sabotage(change_the_priority, "had priority 3 instead of 5"),
            "the burner is moved": Sabotage(move_the_burner, "had cpus 0 instead of", needs_cpus=2),
        },
    ),
    Case("priority_inhibitor:policy=OTHER,nice=5,load=20,when=after", ("threads", "states")),
)
