"""`cpu_pinning` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import os

from perflab.condition.evidence import allowed_cpus
from perflab.processes import descendants
from tests.conformance.condition.case import Case, Sabotage, thread_of
from tests.conformance.condition.real_trial import RealTrial


def move_a_thread(trial: RealTrial, label: str) -> None:
    del label
    os.sched_setaffinity(thread_of(trial.processes["listener"]), set(allowed_cpus()))


def move_a_thread_of_the_child_and_back(trial: RealTrial, label: str) -> None:
    del label
    child = next(iter(descendants(trial.processes["talker"])))
    thread = thread_of(child.pid)
    before = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, set(allowed_cpus()) - before)
    trial.wait(0.4)
    os.sched_setaffinity(thread, before)


CASES = (
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
)
