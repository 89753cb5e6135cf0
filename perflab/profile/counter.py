"""Finds the event that can be sampled on this machine by trying to open it.

`cycles` if the processor has counters, else `cpu-clock`, a timer that runs while a thread does; including the kernel's
part if the rights allow it, else only user space.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perflab.errors import Unavailable

CYCLES, CPU_CLOCK = "cycles", "cpu-clock"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
KPTR_RESTRICT = Path("/proc/sys/kernel/kptr_restrict")
SYMBOLS = Path("/proc/kallsyms")

_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "armv7l": 364, "ppc64le": 319, "s390x": 331}
# perf_event_attr up to branch_sample_type (PERF_ATTR_SIZE_VER2): type, size, config, frequency, sample_type,
# read_format, flags, wakeup_events, bp_type, config1, config2, branch_sample_type.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQQ")
_HARDWARE, _SOFTWARE = 0, 1
_SAMPLE_IP, _SAMPLE_BRANCH_STACK = 1, 1 << 11
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _FREQUENCY = 1, 1 << 5, 1 << 6, 1 << 10
_BRANCH_USER, _BRANCH_CALL_STACK = 1, 1 << 11
_CLOSE_ON_EXEC = 1 << 3
_PROBED_HZ = 99

_FORBIDDEN = (errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class Attempt:
    """An event for sampling: of this process, or of one CPU with everything on it."""

    event: str
    kernel: bool
    system: bool = False
    branches: bool = False  # with the last branch records, from which `lbr` makes call stacks


Open = Callable[[Attempt], int]  # returns 0, or the errno


@dataclass(frozen=True)
class Counter:
    """The sampled event. `unit` is the unit of a sample's weight; `notes` say what is missing, and why."""

    event: str
    kernel: bool
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> Literal["ns", "cycles"]:
        return "cycles" if self.event == CYCLES else "ns"

    @property
    def argument(self) -> str:
        """For `perf record -e`."""
        return self.event if self.kernel else f"{self.event}:u"


def open_event(attempt: Attempt) -> int:
    """Opens the event and closes it at once; returns 0, or the errno."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        return errno.ENOSYS
    flags = _DISABLED | _EXCLUDE_HYPERVISOR | _FREQUENCY | (0 if attempt.kernel else _EXCLUDE_KERNEL)
    attributes = _ATTRIBUTES.pack(
        _HARDWARE if attempt.event == CYCLES else _SOFTWARE,
        _ATTRIBUTES.size,
        0,  # the number of both in their type
        _PROBED_HZ,
        _SAMPLE_IP | (_SAMPLE_BRANCH_STACK if attempt.branches else 0),
        0,
        flags,
        *(0, 0, 0, 0),
        _BRANCH_USER | _BRANCH_CALL_STACK if attempt.branches else 0,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    pid, cpu = (-1, min(os.sched_getaffinity(0))) if attempt.system else (0, -1)
    descriptor = libc.syscall(number, attributes, pid, cpu, -1, _CLOSE_ON_EXEC)
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0


def choose(*, system: bool = False, branches: bool = False, ask: Open = open_event) -> Counter:
    """The best available event. Raises Unavailable with the setting, its value and the command."""
    refused: dict[Attempt, int] = {}
    for event in (CYCLES, CPU_CLOCK):
        for kernel in (True, False):
            attempt = Attempt(event, kernel, system)
            refused[attempt] = ask(attempt)
            if refused[attempt]:
                continue
            if branches and (event != CYCLES or ask(Attempt(event, kernel, system, branches=True))):
                raise Unavailable(
                    "call graph lbr: this processor, or the virtual machine, has no last branch records; use dwarf"
                )
            return Counter(event, kernel, _notes(event, kernel, refused[Attempt(CYCLES, kernel, system)]))
    raise Unavailable(_why_not(set(refused.values()), system))


def kernel_symbols() -> bool:
    """Whether this process may read the addresses of the kernel's functions."""
    try:
        with SYMBOLS.open(encoding="ascii", errors="replace") as symbols:
            return any(int(line.split()[0], 16) for line, _ in zip(symbols, range(100), strict=False))
    except (OSError, ValueError, IndexError):
        return False


def setting(path: Path) -> str:
    """A setting of the kernel as text; "unknown" if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return "unknown"


def _notes(event: str, kernel: bool, cycles_refused: int) -> tuple[str, ...]:
    notes = []
    if event == CPU_CLOCK:
        reason = os.strerror(cycles_refused).lower() if cycles_refused else "refused"
        notes.append(
            f"sampled by cpu-clock, a timer: this machine has no cycle counter ({reason}); code that runs with "
            "interrupts off is attributed to where it enables them"
        )
    if not kernel:
        notes.append(
            f"only user space: kernel.perf_event_paranoid is {setting(PARANOID)}; the kernel's part needs `sudo "
            "sysctl kernel.perf_event_paranoid=1`"
        )
    elif not kernel_symbols():
        notes.append(
            f"functions of the kernel have no names: kernel.kptr_restrict is {setting(KPTR_RESTRICT)}; for names, "
            "run as root, or after `sudo sysctl kernel.kptr_restrict=0`"
        )
    return tuple(notes)


def _why_not(reasons: set[int], system: bool) -> str:
    value = setting(PARANOID)
    highest = 0 if system else 2
    if reasons & set(_FORBIDDEN):
        what = "all processes of the machine" if system else "a process"
        if value.lstrip("-").isdigit() and int(value) <= highest:
            return (
                f"the kernel refuses perf_event_open although kernel.perf_event_paranoid is {value}: a container's "
                "filter or a security module; start the container with --cap-add PERFMON"
            )
        return (
            f"kernel.perf_event_paranoid is {value}, so that {what} cannot be profiled: "
            f"`sudo sysctl kernel.perf_event_paranoid={0 if system else 1}`"
        )
    named = ", ".join(sorted(os.strerror(reason) for reason in reasons))
    return f"this kernel cannot sample (perf_event_open: {named}); it needs CONFIG_PERF_EVENTS"
