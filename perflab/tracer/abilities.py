"""What of tracing and profiling this machine can do, and what is missing; nothing is recorded or changed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from perflab import programs
from perflab.errors import Unavailable
from perflab.native import Native
from perflab.tracer import LTTNG, OWN_SOURCES, TRACEPOINTS, RecordingSettings, check, lttng
from perflab.tracer.scheduler import SchedulerRecorder, complaint


@dataclass(frozen=True)
class Ability:
    """One way to record. `text` says what was found, or what is missing and how to get it."""

    name: str
    available: bool
    text: str


def abilities(native: Native) -> list[Ability]:
    """User space, then the recorders of the scheduler, then CPU profiles."""

    def user_space() -> str:
        lttng.check()
        return lttng.version() or ""

    def tracepoints() -> str:
        if not (native.folder / TRACEPOINTS).is_file():
            headers = "install LTTng's headers with `apt install liblttng-ust-dev` and build again with `make`"
            raise Unavailable(f"{TRACEPOINTS} is missing: {headers}")
        return ""

    def scheduler(source: str) -> str:
        if (missing := complaint(native.program(SchedulerRecorder.PROGRAM), source)) is not None:
            raise Unavailable(missing)
        return ""

    def kernel_modules() -> str:
        check(RecordingSettings(user_space=None, scheduler=LTTNG), native)
        return ""

    def profiles() -> str:
        programs.find("perf", "`apt install linux-perf` (Ubuntu: linux-tools-generic)")
        return ""

    return [
        _ability("LTTng", user_space),
        _ability("ros2 tracepoints", tracepoints),
        *(_ability(f"scheduler by {source}", functools.partial(scheduler, source)) for source in OWN_SOURCES),
        _ability("scheduler by lttng", kernel_modules),
        _ability("CPU profiles", profiles),
    ]


def _ability(name: str, found: Callable[[], str]) -> Ability:
    """`found` says what was found, or raises Unavailable."""
    try:
        return Ability(name, True, found())
    except Unavailable as error:
        return Ability(name, False, str(error))
