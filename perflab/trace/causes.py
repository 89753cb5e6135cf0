"""The causes of `why`: each once, with what it means, who is named for it, and how it is said.

The sentences of `why`, its tables with their published schema, the page of a run and the docs' table come from these.
In the words {group} is who is named (a program, a callback, a topic), {pids} its processes, {holder} both, {place} the
CPU, and {was} agrees with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

# perflab's own programs beside a workload, by the names that the kernel has of them, of 15 letters: what they hold up
# is perflab's doing, and not the system's. Not perflab-node, which is the workload, nor the programs of conditions.
OWN = frozenset({"perflab", "perflab-guard", "perflab-monitor", "perflab-schedul", "perflab-watchdo", "sched_recorder"})
ITSELF = "perflab itself"


class Who(Enum):
    """Who is named for a cause, in the docs' words."""

    NOBODY = ""
    HOLDER = "that thread, and the CPU"
    PROCESS = "its process"
    THREAD = "that thread"
    CALLBACK = "the callback, or the process"
    PUBLISHER = "the publisher's node"
    TOPIC = "the topic"
    REASON = "the reason"


@dataclass(frozen=True)
class Cause:
    """One cause. Where there are no words for many groups of it, or of slow callbacks, those before serve."""

    name: str
    short: str  # above a column
    who: Who
    help: str  # the thread whose time it was
    what: str  # in a row
    late: str  # the late messages ...
    late_unnamed: str = ""  # the same of many groups
    slow: str = ""  # the slow callbacks ...
    slow_unnamed: str = ""

    def described(self, row: Mapping[str, Any]) -> str:
        """A group of that cause in a table; `row` has group, group_cpu, host and pids."""
        return _worded(self.what, row)

    def told(self, row: Mapping[str, Any], n: int, *, slow: bool, named: bool) -> str:
        """What n messages (or slow callbacks) of a group did, in the sentence; `named`: with who it was."""
        of_slow = self.slow if named else self.slow_unnamed or self.slow
        words = (slow and of_slow) or (self.late if named else self.late_unnamed or self.late)
        return _worded(words, row, "was" if n == 1 else "were")


def _worded(words: str, row: Mapping[str, Any], was: str = "") -> str:
    cpu, host = row.get("group_cpu"), row.get("host")
    pids: Sequence[int] = row.get("pids") or ()
    place = ("a CPU" if cpu is None else f"CPU {cpu}") + ("" if host is None else f" of {host}")
    count = f"pid {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes" if pids else ""
    processes = f" ({count})" if count else ""
    group = row.get("group")
    holder = f"{group}{processes}"
    if group in OWN:
        which = ", ".join(filter(None, ("" if group == "perflab" else str(group), count)))
        holder = f"{ITSELF} ({which})" if which else ITSELF
    return words.format(place=place, group=group, pids=processes, holder=holder, was=was)


def _of_process(name: str, short: str, state: str, help: str, more: str = "") -> Cause:
    """What a process was, whatever it was doing. `more`: what that may come from."""
    late, slow = f"waited while {{group}}{{pids}} was {state}{more}", f"{{was}} mainly {state}{more}"
    unnamed = f"waited for processes that were {state}{more}"
    what = f"{{group}}{{pids}} {state}"
    return Cause(name, short, Who.PROCESS, help, what, late, unnamed, f"{slow}: {{group}}{{pids}}", slow)


_ALL = (
    Cause(
        "cpu", "CPU of others", Who.HOLDER,
        "was ready, but another thread had the CPU; also within callbacks, which are not the cause",
        what="{place}: {holder}",
        late="waited for {place} behind {holder}", late_unnamed="waited for a CPU behind others",
    ),
    Cause(
        "wake_up", "wake-up", Who.NOBODY,
        "was woken, and its CPU was idle until it ran: it left an idle state slowly, or is a virtual CPU that the"
        " hypervisor did not run",
        what="{place} idle, slow to start the thread", late="waited for {place} to leave idle",
        late_unnamed="waited for a CPU to leave idle",
    ),
    Cause(
        "callback_ahead", "callbacks ahead", Who.CALLBACK, "ran in another callback of the executor, or slept in it",
        what="behind {group}",
        late="waited behind callback {group}", late_unnamed="waited behind other callbacks",
    ),
    Cause(
        "own_work", "sender's work", Who.CALLBACK, "ran in the callback, before it published",
        what="work of {group}",
        late="waited for callback {group} to publish", late_unnamed="waited for the callbacks that published",
        slow="mainly ran ({group})", slow_unnamed="mainly ran",
    ),
    Cause(
        "publish_call", "publish call", Who.PUBLISHER, "ran in the publish call, up to the wake-up of the next thread",
        what="publish call of {group}",
        late="{was} in the publish call of {group}", late_unnamed="{was} in publish calls",
    ),
    Cause(
        "blocked", "slept", Who.CALLBACK,
        "slept within its own callback, its publish call, or the take, or its executor slept, but not to wait for work",
        what="{group} slept",
        late="waited while {group} slept", late_unnamed="waited for threads that slept",
        slow="mainly slept ({group})", slow_unnamed="mainly slept",
    ),
    Cause(
        "timer_late", "timer late", Who.CALLBACK, "slept, although the tick was due",
        what="{group} slept past its tick",
        late="began late: {group} slept past its tick", late_unnamed="began late: timers slept past their ticks",
    ),
    Cause(
        "middleware", "middleware", Who.THREAD, "of the middleware, ran",
        what="middleware of {group} ran",
        late="{was} in the middleware of {group}", late_unnamed="{was} in the middleware",
    ),
    Cause(
        "on_the_way", "on the way", Who.TOPIC, "none: all that was to carry the message on slept. Network, a delay",
        what="on the way", late="{was} on the way",
    ),
    Cause(
        "transport", "transport", Who.TOPIC, "not known: the whole transport, of which the trace has no more",
        what="transport as a whole", late="{was} in transport",
    ),
    Cause(
        "executor", "executor", Who.THREAD, "ran in its executor: looked for work, took the message, dispatched it",
        what="executor of {group} ran",
        late="{was} in the executor of {group}", late_unnamed="{was} in executors",
    ),
    _of_process(
        "throttled", "CPU quota", "held back by a CPU quota",
        "could run, and the CPU quota of its cgroup (`cpu.max`, `cpu.cfs_quota_us`) held it back. The group's counters"
        " in `recording.json` say so; another thread may have had the CPU meanwhile",
    ),
    _of_process(
        "held_back", "held back", "held back from an idle CPU",
        "was preempted, and its CPU idled: a quota that nobody watched, or a limit of real-time threads, kept it from"
        " running on. Only where migrations are recorded",
        " (a CPU quota, or a limit of real time)",
    ),
    _of_process(
        "frozen", "frozen", "in a frozen cgroup",
        "was in a frozen cgroup (`cgroup.freeze`, `freezer.state`), by `recording.json`",
    ),
    _of_process(
        "uninterruptible", "slept uninterruptibly", "in uninterruptible sleep",
        "slept so that nothing but what it waited for ends it: a disk, a page that is read in, a lock of the kernel; in"
        " a trace without `recording.json` also a frozen cgroup of version 1. Which of them the trace does not tell",
        " (a disk, memory, or a frozen cgroup)",
    ),
    _of_process(
        "stopped", "stopped", "stopped by a signal",
        "was stopped by a signal of job control (SIGSTOP, SIGTSTP), whatever it was doing", " (SIGSTOP, SIGTSTP)",
    ),
    _of_process("traced", "held by debugger", "held by a debugger", "was held by a debugger (ptrace)", " (ptrace)"),
    Cause(
        "unknown", "not known", Who.REASON, "the scheduler's events do not tell",
        what="the trace does not tell: {group}",
        late="waited for what the trace does not tell ({group})",
        late_unnamed="waited for what the trace does not tell",
        slow="took time of which the trace does not tell what it was ({group})",
        slow_unnamed="took time of which the trace does not tell what it was",
    ),
)  # fmt: skip
CAUSES = {cause.name: cause for cause in _ALL}
