"""Which threads of processes get no CPU: looked at from outside, for a moment, when a workload does not come on.

A thread that is ready (state R of proc(5)) runs or waits for a CPU. How long it ran its CPU time says; the rest of the
time in which it was ready it waited. The kernel's own count of that, the run delay, counts a wait when it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perflab.experiment.machine import POLICIES, POLICY, PRIORITY, STATE
from perflab.kernel import Files, parse_cpu_list
from perflab.processes import PROC, stat_fields
from perflab.results.trial import StarvedThread

LOOKS = 20
INTERVAL_S = 0.05  # 1 s in all: a period of the kernel's real-time throttling and of its fair server
LEAST_SHARE = 0.5  # of the time; a thread that shares a busy CPU with one other waits half of it
READY = "R"
KERNEL = "the kernel"


@dataclass(frozen=True)
class Look:
    """One look at a thread."""

    ready: bool
    ran_ns: int


def starved(
    processes: Mapping[str, int],
    kernel_threads: Iterable[int] = (),
    *,
    proc: Path = PROC,
    wait: Callable[[], None] = lambda: time.sleep(INTERVAL_S),
    clock: Callable[[], int] = time.monotonic_ns,
) -> tuple[StarvedThread, ...]:
    """The threads of processes (pids by name), and of the kernel, that wait for a CPU for most of a second from now on,
    the longest first.

    Threads that began or ended meanwhile are left out.
    """
    seen: dict[tuple[str, int, int], list[Look]] = {}
    looked_at = [*processes.items(), *((KERNEL, tid) for tid in kernel_threads)]
    began_ns = clock()
    for number in range(LOOKS):
        if number:
            wait()
        for name, pid in looked_at:
            for tid, look in _looks(proc, pid):
                seen.setdefault((name, pid, tid), []).append(look)
    passed_ns = max(1, clock() - began_ns)
    found = []
    for (name, pid, tid), looks in seen.items():
        if len(looks) < LOOKS:
            continue
        ran = (looks[-1].ran_ns - looks[0].ran_ns) / passed_ns
        waited = sum(look.ready for look in looks) / LOOKS - ran
        if waited >= LEAST_SHARE and (thread := _thread(proc, name, pid, tid, min(1.0, waited))) is not None:
            found.append(thread)
    return tuple(sorted(found, key=lambda thread: -thread.waiting_share))


def _looks(proc: Path, pid: int) -> Iterator[tuple[int, Look]]:
    files = Files(proc)
    for folder in files.folders(f"{pid}/task", "*"):
        tid = int(Path(folder).name)
        fields = stat_fields(proc / str(pid) / "task" / str(tid) / "stat")
        ran = (files.text(f"{pid}/task/{tid}/schedstat") or "").split()
        if fields and ran:
            yield tid, Look(fields[STATE] == READY, int(ran[0]))


def _thread(proc: Path, process: str, pid: int, tid: int, share: float) -> StarvedThread | None:
    files = Files(proc)
    fields, name = stat_fields(proc / str(pid) / "task" / str(tid) / "stat"), files.text(f"{pid}/task/{tid}/comm")
    if fields is None or name is None:
        return None
    allowed = files.table(f"{pid}/task/{tid}/status").get("Cpus_allowed_list", "")
    return StarvedThread(
        process=process,
        tid=tid,
        name=name.strip(),
        policy=POLICIES.get(int(fields[POLICY])),
        priority=int(fields[PRIORITY]) or None,
        cpus=tuple(parse_cpu_list(allowed)),
        waiting_share=round(share, 3),
    )
