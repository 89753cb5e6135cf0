"""`cpu_idle`, and how it is sabotaged in the middle of a window.

That CPUs sleep for a while only is seen by the kernel's counters, where any CPU was idle meanwhile: on a busy machine
none is. tests/python/test_condition_cpu_idle.py has it.
"""

from __future__ import annotations

import os
from pathlib import Path

from perflab.condition import cpu_idle as module
from tests.conformance.condition.case import Case, Sabotage
from tests.conformance.condition.real_trial import RealTrial

DEEP_US = 1_000_000


def let_them_sleep(trial: RealTrial, label: str) -> None:
    """Changes the request that this process holds."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and entry.readlink() == module.DEVICE:
            os.write(int(entry.name), DEEP_US.to_bytes(4, "little"))


CASES = (
    Case(
        "cpu_idle",
        ("latency_us", "deep_entries", "before_us", "states"),
        {"CPUs may sleep": Sabotage(let_them_sleep, r"has \d+ µs, but 0 µs were promised|CPUs entered .* \d+ times")},
    ),
)
