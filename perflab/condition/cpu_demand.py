"""Judges from the monitor whether threads that should burn CPU time did.

A thread that wants a share of a CPU either runs or waits for a CPU for that share of the time. The time it ran is its
CPU time, the time it waited is the kernel's run delay (/proc/PID/task/TID/schedstat, second field); their sum is its
*demand*, which does not depend on other threads. CPU time alone cannot distinguish a load that the workload squeezed
out (its purpose) from one that slept.

If the kernel keeps no run delay, CPU time is compared with what the CPUs could give: what the load got plus what was
left idle. A load that got less than its share of full CPUs cannot be distinguished from one that slept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from perflab.condition import Shown, Trial, Window
from perflab.condition.evidence import part_words, parts, rounded

# Tolerance over the whole window. At loads of 10 to 90 % and with the slices used here, stress-ng's workers wanted up
# to 0.08 of a CPU more than requested on a busy machine, never less; the tolerance is for stolen time, which is neither
# run time nor run delay, and for the sampling itself.
TOLERANCE = 0.15
# Tolerance of one part: a slice of the load and a monitor sample may fall into the neighbouring second, and a wait that
# continues past the second is counted in the next one.
PART_TOLERANCE = 0.5
# CPUs with less idle time than this are full: their idle time cannot show what a load wanted.
SATURATED_IDLE_SHARE = 0.03


CpusWanted = Annotated[float | None, Shown("CPUs wanted")]


@dataclass(frozen=True, kw_only=True)
class CpuDemand:
    """All threads together, in CPUs (CPU seconds per second); null if the kernel or the monitor does not report it."""

    cpus_used: Annotated[float | None, Shown("CPUs used")] = None
    """CPU time of the worker threads."""
    cpus_wanted: CpusWanted = None
    """CPU time and run delay of these threads."""
    capacity_cpus: float | None = None
    """CPU time that was available: what they used plus what their CPUs left idle."""
    idle_share: float | None = None
    """Idle time of the CPUs that they may use, 0 to 1."""
    part_s: float | None = None
    """Length of the parts that are judged separately."""
    cpus_used_by_part: tuple[float | None, ...] | None = None
    """CPU time in each part."""
    cpus_wanted_by_part: tuple[float | None, ...] | None = None
    """CPU time and run delay in each part."""
    cpus_used_by_thread: tuple[float | None, ...] | None = None
    """CPU time of each thread."""


@dataclass(frozen=True)
class CpuUse:
    """What the threads of a load did in a window, in CPUs (CPU seconds per second)."""

    used: Mapping[int, float]  # by thread
    wanted: Mapping[int, float] | None  # likewise; None if the kernel keeps no run delay
    idle_share: float | None  # of the CPUs that it may use
    cpus: int

    @property
    def total_used(self) -> float:
        return sum(self.used.values())

    @property
    def total_wanted(self) -> float | None:
        return None if self.wanted is None else sum(self.wanted.values())

    @property
    def capacity(self) -> float | None:
        """What the CPUs could give this load: everything but what others used."""
        return None if self.idle_share is None else self.total_used + self.idle_share * self.cpus

    def shortfall(self, share: float, tolerance: float, outside: float = 0.0) -> str | None:
        """Why these threads did not each want `share` of a CPU; None if they did.

        `outside`: how much of that share may lie before or after the window, limited to half of it.
        """
        enough = (1 - tolerance) * max(share - outside, share / 2)
        if self.wanted is not None:
            thread, least = min(self.wanted.items(), key=lambda item: item[1])
            if least >= enough:
                return None
            return f"thread {thread} of it wanted {least:.0%} of a CPU instead of {share:.0%}"
        asleep = [thread for thread, used in self.used.items() if used <= 0]
        if asleep:
            return f"thread {asleep[0]} of it used no CPU time"
        demand = share * len(self.used)
        if self.total_used >= enough * len(self.used):
            return None
        if self.capacity is None:
            return "the monitor has no idle time of its CPUs"
        if self.idle_share is not None and self.idle_share < SATURATED_IDLE_SHARE:
            return (
                f"it used {self.total_used:.2f} CPUs instead of {demand:.2f}; whether it wanted more is unknown, "
                "since the kernel gives no run delay and the CPUs were full"
            )
        due = min(demand, self.capacity)
        if self.total_used >= (1 - tolerance) * due:
            return None
        return f"it used {self.total_used:.2f} CPUs, but {due:.2f} were due"


def measure(trial: Trial, group: str, threads: Sequence[int], cpus: Sequence[int], window: Window) -> CpuUse:
    """What these threads of a group did; 0 if the monitor missed one of them."""
    monitor = trial.monitor
    seconds = window.seconds
    cpu_s = monitor.thread_cpu_seconds(group, window.begin_ns, window.end_ns)
    delay_s = monitor.thread_run_delay_seconds(group, window.begin_ns, window.end_ns)
    known = any(delay is not None for delay in delay_s.values())
    used = {tid: cpu_s.get(tid, 0.0) / seconds for tid in threads}
    wanted = {tid: used[tid] + (delay_s.get(tid) or 0.0) / seconds for tid in threads} if known else None
    return CpuUse(used, wanted, monitor.idle_share(cpus, window.begin_ns, window.end_ns), len(cpus))


def judge(
    trial: Trial,
    group: str,
    threads: Sequence[int],
    cpus: Sequence[int],
    share: float,
    window: Window,
    slice_s: float = 0.0,
) -> tuple[CpuDemand, str | None]:
    """What was achieved of `share` of a CPU per thread, and why it was not enough.

    A load that alternates between a slice of work and sleep may have one slice less than its share of a window.
    """
    whole = measure(trial, group, threads, cpus, window)
    pieces = [measure(trial, group, threads, cpus, part) for part in parts(window)]
    achieved = CpuDemand(
        cpus_used=rounded(whole.total_used),
        cpus_wanted=rounded(whole.total_wanted),
        capacity_cpus=rounded(whole.capacity),
        idle_share=rounded(whole.idle_share),
        part_s=rounded(window.seconds / len(pieces)),
        cpus_used_by_part=tuple(rounded(piece.total_used) for piece in pieces),
        cpus_wanted_by_part=tuple(rounded(piece.total_wanted) for piece in pieces),
        cpus_used_by_thread=tuple(rounded(whole.used[thread]) for thread in threads),
    )
    if not threads:
        return achieved, "it has no threads"
    for number, piece in enumerate(pieces, 1):
        if (reason := piece.shortfall(share, PART_TOLERANCE, slice_s / (window.seconds / len(pieces)))) is not None:
            return achieved, reason + part_words(number, len(pieces))
    return achieved, whole.shortfall(share, TOLERANCE, slice_s / window.seconds)
