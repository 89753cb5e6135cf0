"""`memory_pressure` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import os

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


def renice_a_worker(trial: RealTrial, label: str) -> None:
    os.setpriority(os.PRIO_PROCESS, workers(trial, label)[0].pid, 19)


CASES = (
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
)
