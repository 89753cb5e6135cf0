"""`sysctl` with a harmless setting, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

from perflab.condition import kernel_settings as kernel
from tests.conformance.condition.case import ENDED, Case, Sabotage, kill_the_program
from tests.conformance.condition.real_trial import RealTrial

NAME = "vm.stat_interval"  # how often the kernel sums up its own counters, in seconds
BEFORE = int(kernel.read(NAME)) if kernel.path_of(NAME).is_file() else 1


def is_set_back() -> bool:
    return not kernel.path_of(NAME).is_file() or int(kernel.read(NAME)) == BEFORE


def set_it_otherwise(trial: RealTrial, label: str) -> None:
    kernel.write(NAME, str(BEFORE + 2))


def set_it_otherwise_and_back(trial: RealTrial, label: str) -> None:
    """At the end of the window it is as promised."""
    set_it_otherwise(trial, label)
    trial.wait(0.5)
    kernel.write(NAME, str(BEFORE + 1))


CASES = (
    Case(
        f"sysctl:{NAME}={BEFORE + 1}",
        ("settings", "before", "at_end", "changes"),
        {
            "it is set otherwise": Sabotage(set_it_otherwise, f"{NAME} became '{BEFORE + 2}' .* was promised"),
            "it is set otherwise and back": Sabotage(set_it_otherwise_and_back, f"{NAME} became '{BEFORE + 2}'"),
            "the program is killed": Sabotage(kill_the_program, ENDED),
        },
    ),
)
