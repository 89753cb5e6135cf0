"""What of tracing and profiling this machine can do, and what is missing; nothing is recorded or changed."""

from __future__ import annotations

from dataclasses import dataclass

from perflab import programs
from perflab.errors import Unavailable
from perflab.native import Native
from perflab.tracer import LTTNG, OWN_SOURCES, TRACEPOINTS, RecordingSettings, check, lttng
from perflab.tracer.scheduler import SchedulerRecorder, complaint

PERF = "perf"


@dataclass(frozen=True)
class Ability:
    """One way to record. `text` says what was found, or what is missing and how to get it."""

    name: str
    available: bool
    text: str


def abilities(native: Native) -> list[Ability]:
    """User space, then the recorders of the scheduler, then CPU profiles."""
    library = native.folder / TRACEPOINTS
    headers = "install LTTng's headers with `apt install liblttng-ust-dev` and build again with `make`"
    return [
        _lttng(),
        Ability(
            "ros2 tracepoints", library.is_file(), "" if library.is_file() else f"{TRACEPOINTS} is missing: {headers}"
        ),
        *(_scheduler(source, native) for source in OWN_SOURCES),
        _kernel_modules(native),
        _perf(),
    ]


def _lttng() -> Ability:
    name = "LTTng"
    try:
        lttng.check()
    except Unavailable as error:
        return Ability(name, False, str(error))
    return Ability(name, True, lttng.version() or "")


def _scheduler(source: str, native: Native) -> Ability:
    name = f"scheduler by {source}"
    try:
        missing = complaint(native.program(SchedulerRecorder.PROGRAM), source)
    except Unavailable as error:
        missing = str(error)
    return Ability(name, missing is None, missing or "")


def _kernel_modules(native: Native) -> Ability:
    name = "scheduler by lttng"
    try:
        check(RecordingSettings(user_space=None, scheduler=LTTNG), native)
    except Unavailable as error:
        return Ability(name, False, str(error))
    return Ability(name, True, "")


def _perf() -> Ability:
    found = programs.which(PERF)
    return Ability("CPU profiles", found is not None, "" if found else f"{PERF} is not installed: {_perf_package()}")


def _perf_package() -> str:
    return "install it with `apt install linux-perf` (Ubuntu: linux-tools-generic)"
