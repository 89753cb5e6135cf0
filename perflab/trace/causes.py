"""The causes of `why`: what each is called, and how it is said of late messages, of slow callbacks and in tables.

In the sentences {group} is who is named (a program, a callback, a topic), {pids} its processes, {place} the CPU, and
{was} agrees with their number. docs/tracing.md defines each cause.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """One cause. A sentence without names stands for many groups of it; where there is none, `late` needs no names."""

    name: str
    short: str  # above a column
    what: str  # in a row
    late: str  # the late messages ...
    late_unnamed: str | None = None
    slow: str | None = None  # the slow callbacks ...; None: as the late messages
    slow_unnamed: str | None = None
    of_process: bool = False  # it is a state of a process, which is named with its number


_ALL = (
    Cause(
        "cpu",
        short="CPU of others",
        what="{place}: {group}{pids}",
        late="waited for {place} behind {group}{pids}",
        late_unnamed="waited for a CPU behind others",
    ),
    Cause(
        "wake_up",
        short="wake-up",
        what="woken, and nobody seen on the CPU",
        late="waited for a CPU on which nobody was seen",
    ),
    Cause(
        "callback_ahead",
        short="callbacks ahead",
        what="behind {group}",
        late="waited behind callback {group}",
        late_unnamed="waited behind other callbacks",
    ),
    Cause(
        "own_work",
        short="sender's work",
        what="work of {group}",
        late="waited for callback {group} to publish",
        late_unnamed="waited for the callbacks that published",
        slow="mainly ran ({group})",
        slow_unnamed="mainly ran",
    ),
    Cause(
        "publish_call",
        short="publish call",
        what="publish call of {group}",
        late="{was} in the publish call of {group}",
        late_unnamed="{was} in publish calls",
    ),
    Cause(
        "blocked",
        short="slept",
        what="{group} slept",
        late="waited while {group} slept",
        late_unnamed="waited for threads that slept",
        slow="mainly slept ({group})",
        slow_unnamed="mainly slept",
    ),
    Cause(
        "timer_late",
        short="timer late",
        what="{group} slept past its tick",
        late="began late: {group} slept past its tick",
        late_unnamed="began late: timers slept past their ticks",
    ),
    Cause(
        "middleware",
        short="middleware",
        what="middleware of {group} ran",
        late="{was} in the middleware of {group}",
        late_unnamed="{was} in the middleware",
    ),
    Cause("on_the_way", short="on the way", what="on the way", late="{was} on the way"),
    Cause("transport", short="transport", what="transport as a whole", late="{was} in transport"),
    Cause(
        "executor",
        short="executor",
        what="executor of {group} ran",
        late="{was} in the executor of {group}",
        late_unnamed="{was} in executors",
    ),
    Cause(
        "throttled",
        short="CPU quota",
        what="CPU quota of {group}{pids}",
        late="waited while the CPU quota of its cgroup held {group}{pids} back",
        late_unnamed="waited for threads that the CPU quotas of their cgroups held back",
        slow="mainly were held back by the CPU quota of their cgroup: {group}{pids}",
        of_process=True,
    ),
    Cause(
        "held_back",
        short="held back",
        what="{group}{pids} held back from an idle CPU",
        late="waited while {group}{pids} was held back from an idle CPU (a CPU quota, or a limit of real time)",
        late_unnamed="waited for threads that were held back from idle CPUs (a CPU quota, or a limit of real time)",
        slow="mainly were held back from an idle CPU (a CPU quota, or a limit of real time): {group}{pids}",
        of_process=True,
    ),
    Cause(
        "frozen",
        short="frozen",
        what="{group}{pids} frozen with its cgroup",
        late="waited while {group}{pids} was frozen with its cgroup",
        late_unnamed="waited for processes that were frozen with their cgroups",
        slow="mainly were frozen with their cgroup: {group}{pids}",
        of_process=True,
    ),
    Cause(
        "uninterruptible",
        short="slept uninterruptibly",
        what="{group}{pids} slept uninterruptibly",
        late="waited while {group}{pids} slept uninterruptibly (a disk, memory, or a frozen cgroup)",
        late_unnamed="waited for threads that slept uninterruptibly (a disk, memory, or a frozen cgroup)",
        slow="mainly slept uninterruptibly (a disk, or memory): {group}{pids}",
        of_process=True,
    ),
    Cause(
        "stopped",
        short="stopped",
        what="{group}{pids} stopped by a signal",
        late="waited while {group}{pids} was stopped by a signal (SIGSTOP, SIGTSTP)",
        late_unnamed="waited for processes that were stopped by a signal (SIGSTOP, SIGTSTP)",
        slow="mainly were stopped by a signal: {group}{pids}",
        of_process=True,
    ),
    Cause(
        "traced",
        short="held by debugger",
        what="{group}{pids} held by a debugger",
        late="waited while a debugger held {group}{pids} (ptrace)",
        late_unnamed="waited for processes that a debugger held (ptrace)",
        slow="mainly were held by a debugger: {group}{pids}",
        of_process=True,
    ),
    Cause(
        "unknown",
        short="not known",
        what="the trace does not tell",
        late="waited for what the trace does not tell",
        slow="took time of which the trace does not tell what it was",
    ),
)
CAUSES = {cause.name: cause for cause in _ALL}
OF_PROCESSES = tuple(cause.name for cause in _ALL if cause.of_process)
