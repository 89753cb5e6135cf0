"""Recording: LTTng's session for user space, a recorder for the scheduler, and the common output folder.

    recording = Recording(directory, RecordingSettings(scheduler="auto"), start=companions.start, native=native.find())
    recording.begin(roots=[os.getpid()]) # from here on, processes with `recording.environment` are recorded ...
    document = recording.end() # idempotent; writes directory/recording.json

`perflab trace` reads the folder; docs/formats.md describes its content.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab import models, programs
from perflab.condition import Start
from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.formats.recording import FILE
from perflab.host import Host
from perflab.native import Native
from perflab.tracer import lttng
from perflab.tracer.cgroups import CgroupWatch
from perflab.tracer.lttng import Session, UserSpaceSettings
from perflab.tracer.scheduler import SchedulerRecorder, check_source, complaint
from perflab.units import format_bytes

SCHEMA = 1
NONE, AUTO, LTTNG = "none", "auto", "lttng"
PERF_EVENT, EBPF = "perf_event", "ebpf"
OWN_SOURCES = (PERF_EVENT, EBPF)
TRACEPOINTS = "libperflab_ros2_tracepoints.so"  # how perflab-node emits `ros2:*`
RECORDED = "PERFLAB_RECORDED"  # in the environment of everything in a user-space recording
GRANT = "sudo setcap "  # in a recorder's message when it only lacks rights
SCHEDULERS = (NONE, AUTO, *OWN_SOURCES, LTTNG)


@dataclass(frozen=True)
class RecordingSettings:
    """What to record. `scheduler` is one of SCHEDULERS; "auto" is the first available one of `source_of`."""

    user_space: UserSpaceSettings | None = field(default_factory=UserSpaceSettings)
    scheduler: str = NONE
    scheduler_buffer_bytes: int = 4 << 20  # per CPU
    whole_system: bool = False  # otherwise only events that concern the processes below the roots
    flight_recorder_bytes: int | None = None  # of scheduler events, if only the last ones are kept
    locks: bool = False  # where threads wait for locks, and which threads hold them: only with EBPF


@dataclass(eq=False)
class Recording:
    """One recording; `begin` and `end` once each."""

    directory: Path
    settings: RecordingSettings
    _: KW_ONLY
    start: Start
    native: Native
    host: Host = field(default_factory=Host)
    _session: Session | None = None
    _scheduler: SchedulerRecorder | None = None
    _cgroups: CgroupWatch | None = None
    _document: dict[str, Any] | None = None
    _began_ns: int = 0
    _began: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that processes need to be recorded."""
        if self._session is None:
            return {}
        return self._session.environment | ({RECORDED: "1"} if self.settings.user_space is not None else {})

    def begin(self, roots: Sequence[int] = ()) -> None:
        """Returns when all tracers record. Raises Unavailable if one cannot; then none does."""
        self._began_ns, self._began = time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="milliseconds")
        self.directory.mkdir(parents=True, exist_ok=True)
        source = source_of(self.settings.scheduler, self.native, locks=self.settings.locks)
        kernel = source == LTTNG
        try:
            if self.settings.user_space is not None or kernel:
                self._session = Session(self.directory, self.settings.user_space, kernel=kernel, start=self.start)
                self._session.begin()
            if self.settings.scheduler != NONE and not kernel:
                self._scheduler = SchedulerRecorder(
                    self.directory / "scheduler",
                    source=source,
                    roots=() if self.settings.whole_system else tuple(roots),
                    buffer_bytes=self.settings.scheduler_buffer_bytes,
                    flight_recorder_bytes=self.settings.flight_recorder_bytes,
                    locks=self.settings.locks,
                )
                self._scheduler.begin(self.start, self.native)
            if self.settings.scheduler != NONE:
                self._cgroups = CgroupWatch(() if self.settings.whole_system else roots)
                self._cgroups.begin()
        except BaseException:
            with contextlib.suppress(PerflabError):
                self._end_tracers()
            raise

    def add_root(self, pid: int) -> None:
        """A further process to record, with its descendants."""
        if self._cgroups is not None and not self.settings.whole_system:
            self._cgroups.roots.append(pid)
        if self._scheduler is not None and not self.settings.whole_system:
            self._scheduler.add_root(pid)

    def end(self, command: Sequence[str] | None = None) -> dict[str, Any]:
        """Ends both tracers and returns what they recorded and lost. Raises PerflabError if that is unknown."""
        if self._document is not None:
            return self._document
        try:
            held = None if self._cgroups is None else self._cgroups.end()
        finally:
            told = self._end_tracers()
        self._document = {
            "schema": SCHEMA,
            "began": self._began,
            "began_ns": self._began_ns,
            "ended_ns": time.monotonic_ns(),
            "command": None if command is None else list(command),
            "host": {"boot_id": self.host.boot_id(), **self.host.facts()},
            **told,
            "cgroups": None if held is None else models.as_json(held),
        }
        text = json.dumps(self._document, indent=1, ensure_ascii=False) + "\n"
        (self.directory / FILE).write_text(text, encoding="utf-8")
        return self._document

    def _end_tracers(self) -> dict[str, Any]:
        """The scheduler's first, so that both cover the same time. An error of one is raised when both have ended."""
        told: dict[str, Any] = {"user_space": None, "scheduler": None}
        try:
            if self._scheduler is not None:
                told["scheduler"] = self._scheduler.end()
        finally:
            if self._session is not None:
                told |= self._session.end()
        return told


def is_recorded() -> bool:
    """Whether this process runs within a user-space recording, like the command of `perflab trace record` does."""
    return bool(os.environ.get(RECORDED))


def has_tracepoints(runtime: str, native: Native) -> bool:
    """Whether a perflab-node of that runtime can emit `ros2:*`; for ROS 2 and commands this is unknown."""
    return (native.folder / TRACEPOINTS).is_file() if runtime == "dds" else runtime != "virtual"


def node_setting(runtime: str, native: Native) -> dict[str, Any]:
    """Makes a perflab-node emit `ros2:*` (docs/formats.md, section 2).

    ROS 2 has its own tracepoints; two providers of the same events in one process would conflict.
    """
    return {"library": str(native.folder / TRACEPOINTS) if runtime == "dds" else None}


def source_of(scheduler: str, native: Native, *, locks: bool = False) -> str:
    """The recorder that "auto" selects on this machine: LTTng's modules; else a BPF program, which costs the traced
    threads less than perf's buffers do and sees switches that these do not; else perf_event (docs/recording.md). Only
    the BPF program can record which thread holds a lock.
    """
    if scheduler != AUTO:
        return scheduler
    if locks:
        return EBPF
    if lttng.has_kernel_modules() and lttng.may_trace_kernel():
        return LTTNG
    program = native.folder / SchedulerRecorder.PROGRAM
    missing = complaint(program, EBPF) if program.is_file() else ""
    if missing is None:
        return EBPF
    # If neither is available, the one that needs a single command is named: perf_event needs two settings and tracefs.
    return EBPF if GRANT in missing and complaint(program, PERF_EVENT) is not None else PERF_EVENT


def check(settings: RecordingSettings, native: Native, host: Host | None = None) -> None:
    """Raises Unavailable if recording is impossible here, BadInput if it is impossible anywhere; changes nothing."""
    _check_memory(settings, host or Host())
    source = source_of(settings.scheduler, native, locks=settings.locks)
    if settings.locks and source != EBPF:
        raise BadInput(f"only {EBPF} records lock waits, but the scheduler's events come from {source}")
    if settings.user_space is not None or source == LTTNG:
        lttng.check()
    if settings.user_space is not None:
        lttng.check_contexts(settings.user_space.contexts)
    if source == LTTNG and not lttng.has_kernel_modules():
        raise Unavailable(
            "LTTng's kernel modules are not installed for this kernel: install them with "
            "`apt install lttng-modules-dkms`, or record the scheduler with perf_event"
        )
    if source == LTTNG and not lttng.may_trace_kernel():
        raise Unavailable(
            f"only root and the group {lttng.GROUP} may record the kernel with LTTng: `sudo usermod -aG {lttng.GROUP} "
            "$USER` and a new login, or record the scheduler with perf_event"
        )
    if source in OWN_SOURCES:
        program = native.program(SchedulerRecorder.PROGRAM)
        try:
            check_source(
                program, source, settings.scheduler_buffer_bytes, settings.flight_recorder_bytes, settings.locks
            )
        except OSError as error:
            raise Unavailable(f"{program} cannot be started: {error.strerror}; build it again with `make`") from error


def _check_memory(settings: RecordingSettings, host: Host) -> None:
    """Checks that the buffers have room: those of user space are in /dev/shm."""
    facts = host.facts()
    user_space, cpus, memory_kb = settings.user_space, facts.get("cpus_allowed") or 1, facts.get("memory_kb")
    needed = {} if user_space is None else {"user space": user_space.memory_bytes(os.cpu_count() or cpus)}
    if settings.scheduler != NONE:
        rings = settings.scheduler_buffer_bytes * (os.cpu_count() or cpus)
        needed["the scheduler"] = max(rings, settings.flight_recorder_bytes or 0)
    for what, size in needed.items():
        if memory_kb is not None and size > memory_kb << 10:
            raise BadInput(
                f"the buffers of {what} would take {format_bytes(size)}, but this machine has "
                f"{format_bytes(memory_kb << 10)} of memory: choose smaller ones"
            )
    free = lttng.free_shared_memory()
    if user_space is not None and free is not None and needed["user space"] > free:
        raise Unavailable(
            f"the user-space buffers need {format_bytes(needed['user space'])} of {lttng.SHARED_MEMORY}, but only "
            f"{format_bytes(free)} are free: choose smaller ones, or enlarge it (docker: --shm-size)"
        )


def losses(document: dict[str, Any]) -> list[str]:
    """What was lost, one sentence each with the remedy; from the result of `end`."""
    found = []
    user_space, scheduler = document["user_space"], document["scheduler"]
    remedy = "make the buffers larger or record fewer events"
    if user_space and user_space["discarded_events"]:
        found.append(f"LTTng discarded {user_space['discarded_events']:,} user-space events: {remedy}")
    if user_space and user_space["lost_packets"] and user_space["mode"] != "snapshot":
        found.append(f"LTTng lost {user_space['lost_packets']:,} user-space packets: {remedy}")
    if scheduler and scheduler["lost"]:
        found.append(f"{scheduler['lost']:,} scheduler events were lost: {remedy}")
    return found


@dataclass(frozen=True)
class Ability:
    """One way to record. `text` is the description, or what is missing and the remedy."""

    name: str
    available: bool
    text: str


def abilities(native: Native) -> list[Ability]:
    """The tracing and profiling tools of this machine: user space, the recorders of the scheduler, CPU profiles."""

    def user_space() -> str | None:
        lttng.check()
        return lttng.version()

    def tracepoints() -> None:
        if not (native.folder / TRACEPOINTS).is_file():
            headers = "install LTTng's headers with `apt install liblttng-ust-dev` and build again with `make`"
            raise Unavailable(f"{TRACEPOINTS} is missing: {headers}")
        if (missing := native.needs.missing(TRACEPOINTS)) is not None:
            raise Unavailable(missing)

    def scheduler(source: str) -> None:
        if (missing := complaint(native.program(SchedulerRecorder.PROGRAM), source)) is not None:
            raise Unavailable(missing)

    ways: dict[str, Callable[[], object]] = {
        "LTTng": user_space,
        "ros2 tracepoints": tracepoints,
        **{f"scheduler by {source}": functools.partial(scheduler, source) for source in OWN_SOURCES},
        "scheduler by lttng": lambda: check(RecordingSettings(user_space=None, scheduler=LTTNG), native),
        "CPU profiles": lambda: programs.find("perf", "`apt install linux-perf` (Ubuntu: linux-tools-generic)"),
    }
    found = []
    for name, look in ways.items():
        try:
            said = look()
            found.append(Ability(name, True, said if isinstance(said, str) else ""))
        except Unavailable as error:
            found.append(Ability(name, False, str(error)))
    return found
