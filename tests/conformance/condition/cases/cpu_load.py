"""`cpu_load` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import os

from perflab.condition.evidence import allowed_cpus
from tests.conformance.condition.case import (
    ENDED,
    STRESS_NG_SABOTAGES,
    Case,
    Sabotage,
    kill_a_worker,
    pause_the_workers,
    stop_the_workers,
    workers,
)
from tests.conformance.condition.real_trial import RealTrial


def make_a_worker_idle(trial: RealTrial, label: str) -> None:
    os.sched_setscheduler(workers(trial, label)[0].pid, os.SCHED_IDLE, os.sched_param(0))


def move_a_worker(trial: RealTrial, label: str) -> None:
    os.sched_setaffinity(workers(trial, label)[0].pid, {allowed_cpus()[0]})


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
            "a worker is moved": Sabotage(move_a_worker, "had cpus 0 instead of", needs_cpus=2),
        },
    ),
    Case(
        "cpu_load:workers=2,load=20",
        USE,
        {
            "a worker is killed": Sabotage(kill_a_worker, ENDED),
            "a worker is moved": Sabotage(move_a_worker, "had cpus 0 instead of", needs_cpus=2),
        },
        last_cpu=True,
    ),
)
