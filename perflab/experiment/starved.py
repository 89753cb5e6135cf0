"""Which threads get no CPU, and which have it: sampled from outside, for a moment, when a workload makes no progress.

A thread that is ready (state R of proc(5)) runs or waits for a CPU. Its CPU time is how long it ran; for the rest of
its ready time it waited. The kernel's own count of that, the run delay, only includes completed waits. Which threads
had the CPUs that it may use follows from the CPU time of all threads of the machine, each assigned to its CPU at the
last sample.

A thread that waits for a lock held by a starved one is named with it (lock_waits.py).

The threads are those of the given processes, and the kernel's that serve only CPUs which these may use (ksoftirqd,
rcuc, ktimers): a workload needs them as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.experiment.lock_waits import LockWait, Thread, lock_waits
from perflab.experiment.machine import POLICIES, POLICY, PRIORITY, STATE
from perflab.kernel import Files, parse_cpu_list
from perflab.processes import PROC, stat_fields
from perflab.results.starvation import LEAST_HELD, LEAST_SHARE
from perflab.results.trial import CpuHolder, LockWaiter, StarvedThread

LOOKS = 20
INTERVAL_S = 0.05  # 1 s in all: a period of the kernel's real-time throttling and of its fair server
MOST_HOLDERS = 3
READY = "R"
OF_KERNEL = 0x00200000  # PF_KTHREAD of the kernel's sched.h
KERNEL = "kernel"  # the role of its threads
_FLAGS, _CPU = 6, 36  # in `stat_fields`


@dataclass(frozen=True)
class Look:
    """One sample of a thread."""

    ready: bool
    ran_ns: int
    cpu: int
    of_kernel: bool


@dataclass(frozen=True)
class Known:
    """Identity of a thread: its scheduling may change."""

    name: str
    policy: str | None
    priority: int | None
    cpus: tuple[int, ...]


def starved(
    processes: Mapping[str, int],
    *,
    proc: Path = PROC,
    wait: Callable[[], None] = lambda: time.sleep(INTERVAL_S),
    clock: Callable[[], int] = time.monotonic_ns,
) -> tuple[StarvedThread, ...]:
    """The threads of processes (pids by name) that wait for a CPU for most of a second from now on, the longest first,
    with the threads that had their CPUs; the kernel's follow.

    Threads that began or ended meanwhile are left out.
    """
    names = {pid: name for name, pid in processes.items()}
    began_ns = clock()
    seen = {thread: [look] for thread in _threads(proc) if (look := _look(proc, thread)) is not None}
    known = {thread: of for thread in seen if (of := _known(proc, thread)) is not None}
    allowed = {cpu for (pid, _), of in known.items() if pid in names for cpu in of.cpus}
    asked = {
        thread
        for thread, of in known.items()
        if thread[0] in names or (seen[thread][0].of_kernel and allowed.issuperset(of.cpus))
    }
    for number in range(1, LOOKS):
        wait()
        # For all others, how long they ran is enough.
        for thread in asked if number < LOOKS - 1 else seen:
            if (look := _look(proc, thread)) is not None:
                seen[thread].append(look)
    passed_ns = max(1, clock() - began_ns)
    waits = lock_waits(proc, [thread for thread in asked if thread[0] in names])
    found = []
    for thread in asked:
        looks = seen[thread]
        if len(looks) < LOOKS or (share := _waited(looks, passed_ns)) < LEAST_SHARE:
            continue
        if (of := _known(proc, thread)) is not None:
            holders = _holders(proc, seen, thread, frozenset(of.cpus), passed_ns)
            waiters = None if waits is None else _waiters(waits, thread, known, names)
            found.append(_starved(names.get(thread[0]), thread, of, share, holders, waiters))
    return tuple(sorted(found, key=lambda thread: (thread.process is None, -thread.waiting_share, thread.tid)))


def _threads(proc: Path) -> Iterator[Thread]:
    """Every thread of the machine."""
    for folder in Files(proc).folders("", "[0-9]*/task/[0-9]*"):
        pid, _, tid = folder.split("/")
        yield int(pid), int(tid)


def _look(proc: Path, thread: Thread) -> Look | None:
    """None if it has ended."""
    folder = proc / str(thread[0]) / "task" / str(thread[1])
    fields = stat_fields(folder / "stat")
    ran = (Files(folder).text("schedstat") or "").split()
    if not fields or not ran:
        return None
    return Look(fields[STATE] == READY, int(ran[0]), int(fields[_CPU]), bool(int(fields[_FLAGS]) & OF_KERNEL))


def _waited(looks: Sequence[Look], passed_ns: int) -> float:
    """The share of the time in which a thread was ready and did not run."""
    ran = (looks[-1].ran_ns - looks[0].ran_ns) / passed_ns
    return sum(look.ready for look in looks) / len(looks) - ran


def _known(proc: Path, thread: Thread) -> Known | None:
    """None if it has ended."""
    files, folder = Files(proc), f"{thread[0]}/task/{thread[1]}"
    fields, name = stat_fields(proc / folder / "stat"), files.text(f"{folder}/comm")
    if fields is None or name is None:
        return None
    cpus = parse_cpu_list(files.table(f"{folder}/status").get("Cpus_allowed_list", ""))
    return Known(name.strip(), POLICIES.get(int(fields[POLICY])), int(fields[PRIORITY]) or None, tuple(cpus))


def _holders(
    proc: Path, seen: Mapping[Thread, Sequence[Look]], starving: Thread, cpus: frozenset[int], passed_ns: int
) -> tuple[CpuHolder, ...]:
    """The threads that ran on these CPUs, the longest first."""
    found = []
    for thread, looks in seen.items():
        share, last = (looks[-1].ran_ns - looks[0].ran_ns) / passed_ns, looks[-1]
        if thread == starving or last.cpu not in cpus or share < LEAST_HELD:
            continue
        if (who := _known(proc, thread)) is None:
            continue
        holder = CpuHolder(
            process=None if last.of_kernel else Files(proc).text(f"{thread[0]}/comm"),
            pid=None if last.of_kernel else thread[0],
            tid=thread[1],
            name=who.name,
            policy=who.policy,
            priority=who.priority,
            cpu=last.cpu,
            share=round(min(1.0, share), 3),
        )
        found.append(holder)
    return tuple(sorted(found, key=lambda holder: -holder.share)[:MOST_HOLDERS])


def _waiters(
    waits: Sequence[LockWait], owner: Thread, known: Mapping[Thread, Known], names: Mapping[int, str]
) -> tuple[LockWaiter, ...]:
    """The threads that wait for that thread's lock."""
    return tuple(
        LockWaiter(
            process=names[wait.thread[0]],
            tid=wait.thread[1],
            name=known[wait.thread].name,
            policy=known[wait.thread].policy,
            priority=known[wait.thread].priority,
            address=f"{wait.address:#x}",
        )
        for wait in waits
        if wait.owner == owner
    )


def _starved(
    process: str | None,
    thread: Thread,
    of: Known,
    share: float,
    holders: tuple[CpuHolder, ...],
    lock_waiters: tuple[LockWaiter, ...] | None,
) -> StarvedThread:
    return StarvedThread(
        process=process,
        tid=thread[1],
        name=of.name,
        role=KERNEL if process is None else None,
        policy=of.policy,
        priority=of.priority,
        cpus=of.cpus,
        waiting_share=round(min(1.0, share), 3),
        holders=holders,
        lock_waiters=lock_waiters,
    )
