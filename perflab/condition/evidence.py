"""Functions shared by conditions: how to judge a window, and what to read from /proc beside the monitor."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perflab.condition import Companion, NotInEffect, Trial, Window
from perflab.errors import BadInput
from perflab.processes import PROC, descendants, describe_status
from perflab.units import NS_PER_S
from perflab.waiting import Wait

SETTLE_LIMIT_S = 15.0  # longest wait for a disturbance to take effect
SETTLE_STEP_S = 0.1
# A trial is judged second by second, to notice a load that dies in the middle. Minimum length of a part: in shorter
# ones a load of a few percent and the monitor's interval (some 100 ms) leave too few samples to judge.
PART_S = 1.0
# How far the monitor may be behind the end of the window; it samples several times a second even on a busy machine.
MONITOR_LIMIT_S = 5.0
_MONITOR_STEP_S = 0.05
# Between two samples nothing is known. If the monitor cannot get a CPU (real-time threads on all CPUs), or samples too
# rarely, the trial was not observed. A busy machine delays a sample by a few intervals; the lower bound is for
# intervals so short that a few time slices of other threads are many intervals.
LONGEST_GAP_INTERVALS = 5
# Bounds of the limit. The kernel lets real-time threads keep others from a CPU for nearly a second
# (sched_rt_period_us): a load that does so works well, and perflab-monitor is among the others.
LONGEST_GAP_S = (1.0, 2.0)
LONGEST_GAP_SHARE = 0.5  # share of the window: half of a short one must not pass unseen


def require_processes(name: str, runtime: str) -> None:
    """Raises BadInput on a runtime without operating system processes, which no condition here could disturb."""
    if runtime == "virtual":
        raise BadInput(f"{name}: the virtual runtime has no processes to disturb; use a middleware with processes")


def require_processes_of_a_graph(name: str, runtime: str) -> None:
    """Also rejects a command, whose processes perflab neither knows nor starts."""
    require_processes(name, runtime)
    if runtime == "command":
        raise BadInput(f"{name}: perflab does not start the processes of a command; use a graph")


def allowed_cpus() -> tuple[int, ...]:
    """The CPUs that perflab, and so its children, may use; ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def require_cpus(label: str, wanted: Iterable[int]) -> None:
    """Raises BadInput if one of these CPUs does not exist or is not allowed."""
    allowed = allowed_cpus()
    for cpu in wanted:
        if cpu not in allowed:
            raise BadInput(f"{label}: cpus {cpu}, but this machine allows {cpu_words(allowed)}")


def cpu_words(cpus: Iterable[int]) -> str:
    """For messages: "CPU 1", "CPUs 0,1,3"."""
    listed = sorted(cpus)
    return f"CPU{'' if len(listed) == 1 else 's'} {','.join(map(str, listed)) or 'none'}"


def parts(window: Window) -> list[Window]:
    """The window in equal parts of at least a second each; a shorter window is one part."""
    n = max(1, int(window.seconds / PART_S))
    edges = [window.begin_ns + (window.end_ns - window.begin_ns) * i // n for i in range(n + 1)]
    return [Window(begin, end) for begin, end in itertools.pairwise(edges)]


def part_words(number: int, of: int) -> str:
    """For messages: the place in the window; empty if it has only one part."""
    return f" in part {number} of {of} of the measured time" if of > 1 else ""


def catch_up(trial: Trial, window: Window, groups: Sequence[str]) -> str | None:
    """Waits, for a bounded time, until the monitor has sampled the whole window; returns what it missed otherwise.

    Not through trial.wait(): the evidence must not be lost because programs of the trial end.
    """
    wait = Wait("perflab-monitor to have sampled the whole measured part", MONITOR_LIMIT_S)
    while True:
        trial.monitor.refresh()
        last_ns = trial.monitor.last_at_ns
        if last_ns is not None and last_ns >= window.end_ns:
            return next((gap for group in groups if (gap := _gap(trial, group, window)) is not None), None)
        if wait.is_over:
            behind = "never sampled" if last_ns is None else f"ended {(window.end_ns - last_ns) / 1e9:.2f} s too early"
            return f"the monitor {behind}: part of the measured time is unknown"
        wait.pause(_MONITOR_STEP_S)


def _gap(trial: Trial, group: str, window: Window) -> str | None:
    """Where in the window the monitor took no sample of a group for too long."""
    longest_s = longest_gap_s(trial, [group], window)
    if longest_s is None:
        return f"the monitor has no sample of {group}"
    limit_s = _gap_limit_s(trial.monitor.interval_ns, window)
    return f"the monitor took no sample of {group} for {longest_s:.2g} s" if longest_s > limit_s else None


def _gap_limit_s(interval_ns: int | None, window: Window) -> float:
    shortest_s, longest_s = LONGEST_GAP_S
    usual_s = LONGEST_GAP_INTERVALS * (interval_ns or 0) / NS_PER_S
    return min(max(shortest_s, usual_s), longest_s, LONGEST_GAP_SHARE * window.seconds)


def longest_gap_s(trial: Trial, groups: Iterable[str], window: Window) -> float | None:
    """The longest part of the window without a sample of one of these groups; None if one was never sampled."""
    longest_ns = 0
    for group in groups:
        sampled = [at_ns for at_ns, _ in trial.monitor.rss_kb(group, window.begin_ns, window.end_ns)]
        if not sampled:
            return None
        edges = [window.begin_ns, *sampled, window.end_ns]
        longest_ns = max(longest_ns, *(after - before for before, after in itertools.pairwise(edges)))
    return longest_ns / NS_PER_S


def wait_until(trial: Trial, problem: Callable[[], str | None], limit_s: float = SETTLE_LIMIT_S) -> None:
    """Waits until `problem` returns None. Raises NotInEffect with the last problem when the time is over."""
    end_s = time.monotonic() + limit_s
    while (reason := problem()) is not None:
        if time.monotonic() >= end_s:
            raise NotInEffect(f"{reason}, {limit_s:.0f} s after it was started")
        trial.wait(SETTLE_STEP_S)


def wait_until_seen(
    trial: Trial, what: str, seconds: float, lost: Callable[[], str | None], weak: Callable[[Window], str | None]
) -> None:
    """Waits until the latest `seconds` sampled by the monitor from now on are as promised. Raises NotInEffect.

    `lost` returns why the disturbance is absent, `weak` why it is too weak in a window.
    """
    since_ns = time.monotonic_ns()

    def problem() -> str | None:
        if (reason := lost()) is not None:
            return reason
        trial.monitor.refresh()
        last_ns, length_ns = trial.monitor.last_at_ns, round(seconds * NS_PER_S)
        if last_ns is None or last_ns - length_ns < since_ns:
            return f"the monitor has no sample of {what} yet"
        return weak(Window(last_ns - length_ns, last_ns))

    wait_until(trial, problem)


def differing(
    trial: Trial, group: str, window: Window, promised: Mapping[int, Mapping[str, Any]], program: str
) -> str | None:
    """Which thread's scheduling differed from the promise in the window, by its number: `policy`, `priority`, `nice`
    and `cpus`."""
    for seen in trial.monitor.threads(group, window.begin_ns, window.end_ns):
        for key, value in promised.get(seen.tid, {}).items():
            if (found := getattr(seen, key)) != value:
                offset_s = max(0, seen.first_seen_ns - window.begin_ns) / NS_PER_S
                shown = [",".join(map(str, v)) if isinstance(v, tuple) else v for v in (found, value)]
                return (
                    f"thread {seen.tid} of {program} had {key} {shown[0]} instead of {shown[1]}, "
                    f"{offset_s:.1f} s into the measured time"
                )
    return None


def ready(companion: Companion, program: str, limit_s: float) -> dict[str, Any]:
    """The program's message that it is ready, or its error. Raises NotInEffect if it ends, or sends neither."""
    deadline_s = time.monotonic() + limit_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        said = companion.receive(min(left_s, 0.2))
        if said is not None and said.get("type") in ("ready", "error"):
            return said
        if said is None and companion.status is not None:
            raise NotInEffect(f"{has_ended(companion, program)}; see {companion.log}")
    raise NotInEffect(f"{program} was not ready within {limit_s:.0f} s")


def has_ended(companion: Companion | None, what: str) -> str | None:
    """How a program that had to run until now ended; None if it still runs."""
    if companion is None:
        return f"{what} was not started"
    return None if companion.status is None else f"{what} {describe_status(companion.status)} during the trial"


def network_namespace(pid: int) -> int | None:
    """The inode of a process's network namespace; None if it has ended."""
    try:
        return (PROC / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return None


def outside_namespace(processes: Mapping[str, int], namespace: int | None) -> tuple[str, ...]:
    """The names of the processes with a descendant in another network namespace; without processes that have ended."""
    found = []
    for name, root in processes.items():
        tree = [root, *(t.pid for t in descendants(root))]
        if any(network_namespace(pid) not in (None, namespace) for pid in tree):
            found.append(name)
    return tuple(sorted(found))


def rounded(value: float | None, digits: int = 4) -> float | None:
    """For evidence."""
    return None if value is None else round(value, digits)
