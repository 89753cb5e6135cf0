"""Processes in /proc: identified even if their ids are reused, and how they ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from perflab.errors import Unavailable
from perflab.kernel import Files
from perflab.units import NS_PER_S
from perflab.waiting import Wait

PROC = Path("/proc")
LOG_TAIL_LINES = 5
_LOG_TAIL_BYTES = 8192
KILL_LIMIT_S = 10.0
LOOK_INTERVAL_S = 0.02  # seconds between checks of ending processes
_FIRST_FIELD = 3  # proc(5) counts from 1, and the name may contain anything but its last parenthesis


@dataclass(frozen=True)
class Process:
    """A process or a thread. Process id and start time identify it until a reboot; the rest may change."""

    pid: int
    start_ticks: int
    name: str = field(compare=False, default="")
    state: str = field(compare=False, default="")
    parent: int = field(compare=False, default=0)
    session: int = field(compare=False, default=0)
    cpu_ns: int = field(compare=False, default=0)

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start_ticks

    @property
    def alive(self) -> bool:
        """Whether it exists, and is not a zombie."""
        return read_process(self.pid) == self

    @property
    def stopped(self) -> bool:
        now = read_process(self.pid)
        return now is not None and now == self and now.state in "Tt"

    @property
    def started_ns(self) -> int:
        """On CLOCK_MONOTONIC, to a kernel tick; the kernel counts from boot, including suspended time."""
        age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _ns(self.start_ticks)
        return time.monotonic_ns() - age_ns


def read_process(pid: int) -> Process | None:
    """The present process with this id; None if there is none, or a zombie."""
    return _read(PROC / str(pid) / "stat")


def read_thread(pid: int, tid: int) -> Process | None:
    """The same for a thread of a process."""
    return _read(PROC / str(pid) / "task" / str(tid) / "stat")


def pids(proc: Path = PROC) -> list[int]:
    """The ids of all visible processes."""
    try:
        return [int(entry.name) for entry in os.scandir(proc) if entry.name.isdecimal()]
    except FileNotFoundError:
        return []


def living() -> Iterator[Process]:
    """All visible processes that are not zombies."""
    return (process for pid in pids() if (process := read_process(pid)))


def threads_of(pid: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Id and /proc status of every thread of a process; without those that end meanwhile."""
    proc = Files(PROC)
    for tid in sorted(int(Path(folder).name) for folder in proc.folders(f"{pid}/task", "*")):
        if status := proc.table(f"{pid}/task/{tid}/status"):
            yield tid, status


def children_of(pid: int) -> list[int]:
    """The living child processes of all threads of a process; if it ends meanwhile, those seen so far."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                children += [int(child) for child in (thread / "children").read_text(encoding="ascii").split()]
    return children


def descendants(root: int) -> Iterator[Process]:
    """The processes below `root`, without it, at the cost of these and not of all of the machine."""
    waiting = [root]
    while waiting:
        found = children_of(waiting.pop())
        waiting += found
        yield from (process for pid in found if (process := read_process(pid)))


def with_descendants(belongs: Callable[[Process], bool]) -> list[Process]:
    """The matching living processes, and all below them, without this one."""
    others = [process for process in living() if process.pid != os.getpid()]
    children: dict[int, list[Process]] = {}
    for process in others:
        children.setdefault(process.parent, []).append(process)
    found: dict[int, Process] = {}
    waiting = [process for process in others if belongs(process)]
    while waiting:
        process = waiting.pop()
        if process.pid not in found:
            found[process.pid] = process
            waiting += children.get(process.pid, [])
    return list(found.values())


def ancestors() -> Iterator[int]:
    """The ids of this process and of its ancestors."""
    pid = os.getpid()
    while (process := read_process(pid)) is not None:
        yield pid
        pid = process.parent


def send(process: Process, signum: int) -> None:
    """Sends a signal to that process, never to another one that reuses its id. Raises PermissionError."""
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(process.pid)
        try:
            if process.alive:
                signal.pidfd_send_signal(pidfd, signum)
        finally:
            os.close(pidfd)


def kill_all(find: Callable[[], list[Process]]) -> list[Process]:
    """Sends SIGKILL to all that `find` finds, until it finds none; returns those that do not end within KILL_LIMIT_S.

    None must be found twice in a row: /proc is not read in one instant, and a process that forks and ends meanwhile may
    hide a child.
    """
    wait = Wait("processes that were killed to end", KILL_LIMIT_S)
    for _ in range(2):
        while left := find():
            wait.say()
            if wait.is_over:
                return left
            for process in left:
                with contextlib.suppress(PermissionError):
                    send(process, signal.SIGKILL)
            time.sleep(LOOK_INTERVAL_S)
    return []


def stat_fields(path: Path) -> list[str] | None:
    """The fields of a "stat" file of /proc from the third on (proc(5)); None if it no longer exists."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot, also for a zombie; None if there is none."""
    fields = stat_fields(PROC / str(pid) / "stat")
    return int(fields[22 - _FIRST_FIELD]) if fields else None


def _read(path: Path) -> Process | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    before, _, rest = text.rpartition(")")
    number, _, name = before.partition(" (")
    fields = rest.split()
    if not fields or fields[0] in "ZX":
        return None
    parent, session, user, system, start = (int(fields[n - _FIRST_FIELD]) for n in (4, 6, 14, 15, 22))
    return Process(int(number), start, name, fields[0], parent, session, _ns(user + system))


def _ns(ticks: int) -> int:
    return ticks * NS_PER_S // os.sysconf("SC_CLK_TCK")


def describe_status(status: int) -> str:
    """How a process ended, for people: "was killed by SIGKILL", "exited with status 3"."""
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def log_tail(log: Path) -> list[str]:
    """The last lines of a log; none if it is empty or cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-LOG_TAIL_LINES:]


def last_words(log: Path) -> str:
    """For messages: how the log of a process ends."""
    tail = log_tail(log)
    return f"; its log ends with: {tail[-1]}" if tail else "; its log is empty"


@contextlib.contextmanager
def on_cpus(cpus: Set[int] | None) -> Iterator[None]:
    """A process inherits the CPUs of the thread that creates it: setting them before leaves no instant without them."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise Unavailable(f"CPUs {','.join(map(str, sorted(cpus)))} are not available: {error.strerror}") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pid_namespace() -> str | None:
    """Identifies the process id namespace: containers of one machine share its boot, but not their processes."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - the link leads to no path
    except OSError:
        return None


def is_locked(file: Path) -> bool:
    """Whether another process holds a lock (flock) on the file; False if there is no file. Raises OSError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
