"""perf, started so that it ends with perflab: on a command, or on running processes.

settings = Settings(frequency_hz=999, call_graph="dwarf") plan = Plan.of(settings) # raises Unavailable if impossible
here attached = Attached(directory, plan, pids=[4711], start=trial.start) attached.begin(trial.wait) # returns when
samples are taken ... attached.end() # perf.data is complete; idempotent
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflab import programs
from perflab.condition import Companion, Start
from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.kernel import Files
from perflab.native import Native
from perflab.processes import Process, descendants, describe_status, read_process
from perflab.profile import (
    DEFAULT_CALL_GRAPH,
    DEFAULT_FREQUENCY_HZ,
    DEFAULT_STACK_BYTES,
    LARGEST_STACK_BYTES,
    CallGraph,
    counter,
)
from perflab.profile.counter import Counter
from perflab.profile.flamegraph import Unit

CALL_GRAPHS: tuple[CallGraph, ...] = ("dwarf", "fp", "lbr")

DATA, LOG = "perf.data", "perf.log"
POLL = "libperflab_perf_poll.so"  # without it perf takes a whole CPU once a watched thread has ended
MAX_RATE = Path("/proc/sys/kernel/perf_event_max_sample_rate")
MLOCK_KB = Path("/proc/sys/kernel/perf_event_mlock_kb")

# perf must manage with its buffers when delayed for this long at the highest rate, if memory allows it.
BUFFERED_S = 1.0
LEAST_BUFFER_BYTES, LARGEST_BUFFER_BYTES = 512 << 10, 64 << 20  # per CPU
ALL_BUFFERS_BYTES = 256 << 20
_SAMPLE_BYTES = 1024  # of a sample without the copy of its stack
_CAP_IPC_LOCK = 14

BEGIN_LIMIT_S = 60.0
END_GRACE_S = 60.0  # perf flushes its buffers
_ANSWER_LIMIT_S = 20.0

# Opens the control channel ($1, $2), keeps alive a process that perf watches, so that it continues when the others have
# ended, and becomes perf.
_ATTACH = """
exec 7<>"$1" 8<>"$2"; rm -r "${1%/*}"; shift 2
sleep 2147483647 7>&- 8>&- & keeper=$!
case $1 in --whole-system) shift; set -- "$@" -a ;; *) pids=$1; shift; set -- "$@" -p "$pids,$keeper" ;; esac
exec "$@"
"""
# perf's own output goes to the log ($1); the command's is not redirected.
_RUN = 'exec 9>&2 2>"$1"; shift; exec "$@"'
_COMMAND = 'exec "$@" 2>&9 9>&-'


@dataclass(frozen=True)
class Settings:
    """What to record. `system` means all processes on all CPUs."""

    frequency_hz: int = DEFAULT_FREQUENCY_HZ
    call_graph: CallGraph = DEFAULT_CALL_GRAPH
    stack_bytes: int = DEFAULT_STACK_BYTES  # how much of a stack dwarf copies
    system: bool = False


@dataclass(frozen=True)
class Plan:
    """How to record it on this machine."""

    settings: Settings
    counter: Counter
    perf: Path
    version: str
    buffer_bytes: int  # per CPU

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        """Raises Unavailable with what is missing and the command, BadInput."""
        perf, version = find()
        limit = highest_frequency()
        if limit is not None and settings.frequency_hz > limit:
            raise Unavailable(
                f"kernel.perf_event_max_sample_rate is {limit}, less than {settings.frequency_hz} Hz: "
                f"`sudo sysctl kernel.perf_event_max_sample_rate={settings.frequency_hz}`, or a lower frequency"
            )
        found = counter.choose(system=settings.system, branches=settings.call_graph == "lbr")
        return cls(settings, found, perf, version, buffer_bytes(settings))

    def arguments(self, output: Path) -> list[str]:
        """`perf record` with everything except the target."""
        settings = self.settings
        graph = f"dwarf,{settings.stack_bytes}" if settings.call_graph == "dwarf" else settings.call_graph
        return [
            *(str(self.perf), "record", "-o", str(output), "-e", self.counter.argument),
            *("-F", str(settings.frequency_hz), "--call-graph", graph, "-k", "CLOCK_MONOTONIC"),
            # Without copies of programs in the user's cache; the programs are known from the mappings.
            *("-m", f"{self.buffer_bytes >> 10}K", "-N", "--buildid-all"),
        ]


def find() -> tuple[Path, str]:
    """perf and its version. Raises Unavailable."""
    path = programs.find("perf", _install())
    try:
        done = programs.ask([path, "--version"], limit_s=_ANSWER_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{path} does not run: {error}; install it again: {_install()}") from error
    if done.returncode or not done.stdout.startswith("perf version"):
        # Ubuntu's is a script that looks for the perf of the running kernel.
        raise Unavailable(f"{path} is not for kernel {os.uname().release}; install it with: {_install()}")
    return path, done.stdout.removeprefix("perf version").strip()


def _install() -> str:
    from perflab.host import Host

    if "ubuntu" in str(Host().facts().get("distribution") or "").lower():
        return f"apt-get install linux-tools-{os.uname().release}"
    return "apt-get install linux-perf"


def highest_frequency() -> int | None:
    """The kernel's limit, which it lowers when sampling takes too much time."""
    text = counter.setting(MAX_RATE)
    return int(text) if text.isdecimal() else None


def buffer_bytes(settings: Settings) -> int:
    """Per CPU, a power of two: for BUFFERED_S at full rate, as far as the user may lock memory."""
    cpus = os.cpu_count() or 1
    sample = _SAMPLE_BYTES + (settings.stack_bytes if settings.call_graph == "dwarf" else 0)
    wanted = round(settings.frequency_hz * sample * BUFFERED_S)
    most = min(LARGEST_BUFFER_BYTES, ALL_BUFFERS_BYTES // cpus)
    if not _may_lock_memory():
        allowed = counter.setting(MLOCK_KB)
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        more = 0 if limit == resource.RLIM_INFINITY else limit // cpus
        page = os.sysconf("SC_PAGE_SIZE")  # stored in a page beside the data
        most = min(most, (int(allowed) << 10 if allowed.isdecimal() else LEAST_BUFFER_BYTES) + more - page)
        return min(_power_of_two(wanted), 1 << max(0, most.bit_length() - 1))
    return max(LEAST_BUFFER_BYTES, min(_power_of_two(wanted), 1 << max(0, most.bit_length() - 1)))


def _power_of_two(size: int) -> int:
    return max(LEAST_BUFFER_BYTES, 1 << (size - 1).bit_length())


def _may_lock_memory() -> bool:
    return counter.setting(counter.PARANOID) == "-1" or Files().may(_CAP_IPC_LOCK)


def with_descendants(pids: Sequence[int]) -> list[int]:
    """The processes and all their present descendants. Raises BadInput for one that does not exist or belongs to
    another user."""
    for pid in pids:
        process = read_process(pid)
        if process is None:
            raise BadInput(f"--pid {pid}: there is no such process")
        _check_rights(process)
    return list(dict.fromkeys([*pids, *(below.pid for pid in pids for below in descendants(pid))]))


def _check_rights(process: Process) -> None:
    if os.geteuid() == 0:
        return
    with contextlib.suppress(OSError):
        owner = Path(f"/proc/{process.pid}").stat().st_uid
        if owner != os.geteuid():
            raise Unavailable(f"process {process.pid} belongs to user {owner}: only root may profile it; use sudo")


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How it was recorded; times are CLOCK_MONOTONIC, None if they are those of the first and last sample."""

    command: tuple[str, ...] | None = None
    pids: tuple[int, ...] = ()
    began_ns: int | None = None
    ended_ns: int | None = None
    perf_cpu_ns: int | None = None  # CPU time of perf itself
    frequency_hz: int
    call_graph: CallGraph
    stack_bytes: int | None  # None except for dwarf
    system: bool
    event: str
    unit: Unit  # of weights
    kernel: bool  # False: only user space
    buffer_bytes_per_cpu: int
    perf: str  # its version
    notes: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, notes: Iterable[str] = (), **what: Any) -> Recording:
        """`what` are the fields with defaults."""
        settings, event, rate = plan.settings, plan.counter, highest_frequency()
        lowered = rate is not None and rate < settings.frequency_hz
        slower = f"the kernel lowered the sampling rate to {rate} Hz, because samples took too much time"
        return cls(
            **what, frequency_hz=settings.frequency_hz, call_graph=settings.call_graph,
            stack_bytes=settings.stack_bytes if settings.call_graph == "dwarf" else None, system=settings.system,
            event=event.event, unit=event.unit, kernel=event.kernel, buffer_bytes_per_cpu=plan.buffer_bytes,
            perf=plan.version, notes=(*event.notes, *notes, *([slower] if lowered else [])),
        )  # fmt: skip

    @property
    def title(self) -> str:
        """The profiled target."""
        if self.command:
            return " ".join(self.command)
        if self.system:
            return "the whole machine"
        return f"process{'es' if len(self.pids) != 1 else ''} {', '.join(map(str, self.pids))}"


@dataclass(eq=False)
class Attached:
    """perf on running processes, or on the whole machine; `begin` and `end` once each."""

    directory: Path
    plan: Plan
    roots: Sequence[int]  # with all their descendants when it begins; later ones are recorded, too
    start: Start
    native: Native
    began_ns: int | None = None
    ended_ns: int | None = None
    perf_cpu_ns: int | None = None
    notes: list[str] = field(default_factory=list)
    _pids: Sequence[int] = ()
    _companion: Companion | None = None

    @property
    def data(self) -> Path:
        return self.directory / DATA

    def begin(self, wait: Callable[[float], None]) -> None:
        """Returns when samples are taken. Raises Unavailable with perf's message if it cannot."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._pids = with_descendants(self.roots)
        folder = Path(tempfile.mkdtemp(prefix="perflab-profile-"))
        try:
            self._begin(folder, wait)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, folder: Path, wait: Callable[[float], None]) -> None:
        control, acknowledged = folder / "control", folder / "acknowledged"
        for path in (control, acknowledged):
            os.mkfifo(path, 0o600)
        target = "--whole-system" if self.plan.settings.system else ",".join(map(str, self._pids))
        command = ["sh", "-c", _ATTACH, "sh", str(control), str(acknowledged), target]
        poll = self.native.folder / POLL
        # The dynamic linker takes both for the end of a name, and has no quotes.
        if poll.is_file() and not any(letter in str(poll) for letter in " :"):
            command += ["env", f"LD_PRELOAD={poll}"]
        command += [*self.plan.arguments(self.data.absolute()), "-D", "-1", "--control=fd:7,8"]
        # Read and write: opening only one end would wait for the other.
        channels = [os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for path in (control, acknowledged)]
        try:
            self._companion = self.start("profile", command)
            os.write(channels[0], b"enable\n")
            limit = time.monotonic() + BEGIN_LIMIT_S
            while not self._has_answered(channels[1]):
                if self._companion.status is not None:
                    how = describe_status(self._companion.status)
                    raise Unavailable(f"perf {how}: {complaint(self._companion.log)}")
                if time.monotonic() >= limit:
                    raise PerflabError(f"perf did not begin within {BEGIN_LIMIT_S:.0f} s; {self._companion.log}")
                wait(0.02)
            self.began_ns = time.monotonic_ns()
            self._note_who_came()
        finally:
            for channel in channels:
                os.close(channel)

    def _note_who_came(self) -> None:
        """Processes that started together with perf: whether it follows them depends on which was first."""
        if self.plan.settings.system:
            return
        with contextlib.suppress(BadInput):
            if came := [pid for pid in with_descendants(self.roots) if pid not in self._pids]:
                listed = ", ".join(map(str, came))
                self.notes.append(f"processes that started together with perf may be missing: {listed}")

    @staticmethod
    def _has_answered(channel: int) -> bool:
        try:
            return b"ack" in os.read(channel, 64)
        except BlockingIOError:
            return False

    def end(self) -> None:
        """Ends perf; its file is then complete. Raises PerflabError if perf did not end in order. Idempotent."""
        if self._companion is None or self.ended_ns is not None:
            return
        self.ended_ns = time.monotonic_ns()
        self.perf_cpu_ns = cpu_ns(self._companion.pid)
        self._companion.stop(END_GRACE_S)
        if self.began_ns is not None and not self.data.is_file():
            raise PerflabError(f"perf wrote nothing: {complaint(self._companion.log)}")

    @property
    def recording(self) -> Recording:
        """CPU time when it has ended."""
        times = {"began_ns": self.began_ns, "ended_ns": self.ended_ns, "perf_cpu_ns": self.perf_cpu_ns}
        return Recording.of(self.plan, self.notes, pids=tuple(self.roots), **times)


def command_line(plan: Plan, directory: Path, command: Sequence[str]) -> list[str]:
    """For a companion that passes its output on: the command under perf, whose own output goes to perf.log."""
    return [
        *("sh", "-c", _RUN, "sh", str((directory / LOG).absolute())),
        *plan.arguments((directory / DATA).absolute()),
        *("--", "sh", "-c", _COMMAND, "sh", *command),
    ]


def command_of(perf_pid: int) -> Process | None:
    """The process of the command under perf; None before its start, and after its end."""
    return next(descendants(perf_pid), None)


def cpu_ns(pid: int | None) -> int | None:
    """The CPU time of a process so far; None if it does not exist."""
    process = None if pid is None else read_process(pid)
    return None if process is None else process.cpu_ns


def complaint(log: Path) -> str:
    """The line of perf's log with the error, or its last one."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        lines = [line for line in lines if line and not line.startswith("[ perf record:")]
        if lines:
            marked = [line for line in lines if line.lower().startswith(("error", "failed", "couldn't", "permission"))]
            at = marked[0] if marked else lines[-1]
            following = lines[lines.index(at) + 1 :]
            return f"{at} {following[0]}" if at.endswith(":") and following else at
    return "it ended without output"


def parse_call_graph(text: str, where: str) -> CallGraph:
    """Raises BadInput."""
    for kind in CALL_GRAPHS:
        if text == kind:
            return kind
    raise BadInput(f"{where}: {text!r} is not one of {', '.join(CALL_GRAPHS)}")


def check_stack(size: int, where: str) -> None:
    """Raises BadInput."""
    if not 0 < size <= LARGEST_STACK_BYTES or size % 8:
        raise BadInput(f"{where}: {size} bytes are not a multiple of 8 up to {LARGEST_STACK_BYTES}")
