"""`io_load` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import os
import signal

from tests.conformance.condition.case import (
    STRESS_NG_SABOTAGES,
    Case,
    Sabotage,
    pause_the_workers,
    stop_the_workers,
    workers,
)
from tests.conformance.condition.real_trial import RealTrial


def stop_the_workers_most_of_the_time(trial: RealTrial, label: str) -> None:
    """No pause is as long as a second."""
    for _ in range(3):
        stop_the_workers(trial, label)
        trial.wait(0.8)
        for worker in workers(trial, label):
            os.kill(worker.pid, signal.SIGCONT)
        trial.wait(0.1)


CASES = (
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
)
