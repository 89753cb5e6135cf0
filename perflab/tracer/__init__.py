"""Recording: LTTng's session for user space, a recorder for the scheduler, and the folder that both write into.

    recording = Recording(directory, RecordingSettings(scheduler="auto"), start=companions.start, native=native.find())
    recording.begin(roots=[os.getpid()])        # from here on, whoever has `recording.environment` is recorded
    ...
    document = recording.end()                  # idempotent; writes directory/recording.json

The folder is what `perflab trace` reads; docs/formats.md says what is in it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from perflab.condition import Companion
from perflab.errors import PerflabError, Unavailable
from perflab.host import Host
from perflab.native import Native
from perflab.tracer import lttng
from perflab.tracer.lttng import Session, UserSpaceSettings
from perflab.tracer.scheduler import SchedulerRecorder, complaint

SCHEMA = 1
FILE = "recording.json"
NONE, AUTO, LTTNG = "none", "auto", "lttng"
PERF_EVENT, EBPF = "perf_event", "ebpf"
OWN_SOURCES = (PERF_EVENT, EBPF)
SCHEDULERS = (NONE, AUTO, *OWN_SOURCES, LTTNG)


class Start(Protocol):
    """Starts a program that ends with perflab, whatever is killed (perflab.condition.Trial.start)."""

    def __call__(self, name: str, command: Sequence[str | Path], *, control: bool = False) -> Companion: ...


@dataclass(frozen=True)
class RecordingSettings:
    """What is recorded. `scheduler` is one of SCHEDULERS; "auto" is the first that is there of `source_of`."""

    user_space: UserSpaceSettings | None = field(default_factory=UserSpaceSettings)
    scheduler: str = NONE
    scheduler_buffer_bytes: int = 4 << 20  # per CPU
    whole_system: bool = False  # otherwise only what concerns the processes below the roots
    flight_recorder_bytes: int | None = None  # of scheduler events, where only the last ones are kept


class Recording:
    """One recording; `begin` and `end` once each."""

    def __init__(
        self, directory: Path, settings: RecordingSettings, *, start: Start, native: Native, host: Host | None = None
    ) -> None:
        self.directory = directory
        self.settings = settings
        self._start = start
        self._native = native
        self._host = host or Host()
        self._session: Session | None = None
        self._scheduler: SchedulerRecorder | None = None
        self._document: dict[str, Any] | None = None
        self._began_ns = 0
        self._began = ""

    @property
    def environment(self) -> dict[str, str]:
        """What processes need in their environment to be recorded."""
        return {} if self._session is None else self._session.environment

    def begin(self, roots: Sequence[int] = ()) -> None:
        """Returns when all tracers record. Raises Unavailable where one cannot; then none does."""
        self._began_ns, self._began = time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="milliseconds")
        self.directory.mkdir(parents=True, exist_ok=True)
        source = source_of(self.settings.scheduler, self._native)
        kernel = source == LTTNG
        try:
            if self.settings.user_space is not None or kernel:
                self._session = Session(self.directory, self.settings.user_space, kernel=kernel, start=self._start)
                self._session.begin()
            if self.settings.scheduler != NONE and not kernel:
                self._scheduler = SchedulerRecorder(
                    self.directory / "scheduler",
                    source=source,
                    roots=() if self.settings.whole_system else tuple(roots),
                    buffer_bytes=self.settings.scheduler_buffer_bytes,
                    flight_recorder_bytes=self.settings.flight_recorder_bytes,
                )
                self._scheduler.begin(self._start, self._native)
        except BaseException:
            with contextlib.suppress(PerflabError):
                self._end_tracers()
            raise

    def add_root(self, pid: int) -> None:
        """A further process whose descendants are to be recorded, itself included."""
        if self._scheduler is not None and not self.settings.whole_system:
            self._scheduler.add_root(pid)

    def end(self, command: Sequence[str] | None = None) -> dict[str, Any]:
        """Ends both tracers and says what they recorded and lost. Raises PerflabError where that cannot be told."""
        if self._document is not None:
            return self._document
        user_space, scheduler = self._end_tracers()
        self._document = {
            "schema": SCHEMA,
            "began": self._began,
            "began_ns": self._began_ns,
            "ended_ns": time.monotonic_ns(),
            "command": None if command is None else list(command),
            "host": {"boot_id": self._host.boot_id(), **self._host.facts()},
            "user_space": user_space,
            "scheduler": scheduler,
        }
        text = json.dumps(self._document, indent=1, ensure_ascii=False) + "\n"
        (self.directory / FILE).write_text(text, encoding="utf-8")
        return self._document

    def _end_tracers(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The scheduler's first: so both tell the same time. What one cannot say is raised when both have ended."""
        scheduler: dict[str, Any] | None = None
        try:
            if self._scheduler is not None:
                scheduler = self._scheduler.end()
        finally:
            told = None if self._session is None else self._session.end()
        if told is None:
            return None, scheduler
        return told.user_space, told.kernel or scheduler


def source_of(scheduler: str, native: Native) -> str:
    """Which recorder "auto" is on this machine: LTTng's modules; else a BPF program, which costs the traced threads
    less than perf's buffers do and sees switches that these do not; else perf_event (docs/recording.md).
    """
    if scheduler != AUTO:
        return scheduler
    if lttng.has_kernel_modules() and lttng.may_trace_kernel():
        return LTTNG
    program = native.folder / SchedulerRecorder.PROGRAM
    return EBPF if program.is_file() and complaint(program, EBPF) is None else PERF_EVENT


def check(settings: RecordingSettings, native: Native) -> None:
    """Raises Unavailable where it cannot be recorded here; starts and changes nothing."""
    source = source_of(settings.scheduler, native)
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
        native.program(SchedulerRecorder.PROGRAM)


def losses(document: dict[str, Any]) -> list[str]:
    """What was lost, one sentence each with the remedy; of what `end` returned."""
    found = []
    user_space, scheduler = document["user_space"], document["scheduler"]
    remedy = "make the buffers larger or record fewer events"
    if user_space and user_space["discarded_events"]:
        found.append(f"LTTng discarded {user_space['discarded_events']:,} events of user space: {remedy}")
    if user_space and user_space["lost_packets"] and user_space["mode"] != "snapshot":
        found.append(f"LTTng lost {user_space['lost_packets']:,} packets of user space: {remedy}")
    if scheduler and scheduler["lost"]:
        found.append(f"{scheduler['lost']:,} scheduler events were lost: {remedy}")
    return found
