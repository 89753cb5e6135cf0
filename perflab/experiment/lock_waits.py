"""Which threads currently wait for a lock held by a thread of their process: the address at which a thread waits is in
/proc/PID/task/TID/syscall, and the owner of a lock is in its memory (docs/realtime.md, Locks).

The kernel's recorder reads the same (native/tracing/scheduler/scheduler.bpf.c), while it records.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perflab.kernel import Files

Thread = tuple[int, int]  # pid and tid

# Number of the system call futex, by machine: x86-64's own, the others' of asm-generic/unistd.h.
_CALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
# From linux/futex.h: operations of a waiting thread, without flags.
_PRIVATE, _CLOCK_REALTIME = 128, 256
_WAIT, _LOCK_PI, _WAIT_BITSET, _LOCK_PI2 = 0, 6, 9, 13
_WAITERS, _TID_MASK = 0x80000000, 0x3FFFFFFF
# pthread_mutex_t of glibc on 64-bit machines: the word, count, owner, users, kind.
_MUTEX = struct.Struct("=IIiII")
_KINDS = 1 << 10  # its flags are above the type of a mutex


@dataclass(frozen=True)
class LockWait:
    """A waiting thread, and the owner of the lock."""

    thread: Thread
    owner: Thread
    address: int


def lock_waits(proc: Path, threads: Iterable[Thread]) -> tuple[LockWait, ...] | None:
    """The waits of these threads for locks held by a thread of the same process. None if unknown: on other machines,
    and without the right to read."""
    call = _CALLS.get(platform.machine())
    if call is None:
        return None
    found, looked = [], False
    for thread in threads:
        files = Files(proc / str(thread[0]) / "task" / str(thread[1]))
        words = (files.text("syscall") or "").split()
        looked = looked or bool(words)
        if len(words) < 3 or words[0] != str(call):
            continue
        address, operation = int(words[1], 16), int(words[2], 16)
        owner = _owner(proc / str(thread[0]) / "mem", address, operation)
        if owner and (proc / str(thread[0]) / "task" / str(owner)).is_dir():
            found.append(LockWait(thread, (thread[0], owner), address))
    return tuple(found) if looked else None


def _owner(memory: Path, address: int, operation: int) -> int:
    """The thread that the lock's memory names as its owner; 0: none, or not a held mutex."""
    try:
        with memory.open("rb", buffering=0) as file:
            file.seek(address)
            data = file.read(_MUTEX.size)
    except (OSError, ValueError, OverflowError):
        return 0
    if len(data) < _MUTEX.size:
        return 0
    word, _, owner, users, kind = _MUTEX.unpack(data)
    command = operation & ~(_PRIVATE | _CLOCK_REALTIME)
    inherits, waits = command in (_LOCK_PI, _LOCK_PI2), command in (_WAIT, _WAIT_BITSET)
    if inherits or (waits and word & _WAITERS):
        return int(word & _TID_MASK)
    is_mutex = waits and word in (1, 2) and users and kind < _KINDS
    return int(owner) if is_mutex and owner > 0 else 0
