"""`realtime_limits` with what every kernel can do, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

from pathlib import Path

from perflab import real_time
from perflab.condition import kernel_settings as kernel
from tests.conformance.condition.case import ENDED, Case, Sabotage, kill_the_program
from tests.conformance.condition.real_trial import RealTrial

NAME = "kernel.sched_rt_runtime_us"
BEFORE = kernel.read(NAME) if kernel.path_of(NAME).is_file() else "950000"


def is_set_back() -> bool:
    return not kernel.path_of(NAME).is_file() or kernel.read(NAME) == BEFORE


def set_it_back(trial: RealTrial, label: str) -> None:
    kernel.write(NAME, BEFORE)


def unless_nothing_is_throttled() -> dict[str, Sabotage]:
    """A kernel that throttles nothing has no setting that is held."""
    if real_time.means(Path("/")).throttles is False or BEFORE == "-1":
        return {}
    return {
        "it is set back": Sabotage(set_it_back, f"{NAME} became '{BEFORE}' .* was promised"),
        "the program is killed": Sabotage(kill_the_program, ENDED),
    }


CASES = (
    Case(
        "realtime_limits:throttling=off",
        ("settings", "before", "at_end", "changes", "real_time_share", "fair_server_share"),
        unless_nothing_is_throttled(),
    ),
)
