"""No run may lock up the machine: which CPUs real-time threads of a trial may take, and the watchdog that ends them.

If the kernel limits real-time threads, other threads always get a share of every CPU. If nothing limits them, a trial
must leave a CPU to perflab and to the rest of the machine, and a priority to the watchdog (native/programs/watchdog).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.condition import Companion, Condition
from perflab.condition.evidence import allowed_cpus, ready
from perflab.condition.realtime_limits import RealtimeLimits
from perflab.design import scheduling
from perflab.design.scheduling import ThreadRequest
from perflab.errors import BadInput, Unavailable
from perflab.experiment.running import RunningTrial
from perflab.host import Host
from perflab.real_time import BOUNDLESS, RealTimeLimits, RealTimeUse, real_time_limits
from perflab.results.files import Watchdog as Got
from perflab.units import NS_PER_S, format_duration, listed
from perflab.workload import Graph

PROGRAM = "perflab-watchdog"
NAME = "watchdog"
LIMIT_S = 5.0  # time in which perflab cannot run although it is ready; the fair server lets it run each second
READY_LIMIT_S = 20.0
HEARD_WITHIN_S = 0.2  # of its report, through its guard
PRIORITY = 99
LOCKED = "perflab had no CPU for"


def uses(graph: Graph, requests: Sequence[ThreadRequest], conditions: Sequence[Condition]) -> list[RealTimeUse]:
    """The parts of a trial that run with FIFO or RR, as far as requested."""
    return [*_of_graph(graph, requests), *(use for c in conditions if (use := c.real_time) is not None)]


def _of_graph(graph: Graph, requests: Sequence[ThreadRequest]) -> Iterator[RealTimeUse]:
    for process in graph.document["processes"]:
        name = process["name"]
        of_graph = process.get("threads") or {}
        asked = scheduling.of_process(() if name in graph.condition_processes else requests, name)
        for role in (*scheduling.ROLES, *graph.threads_of_program(name)):
            chosen = [asked.get(role) or of_graph.get(role)]
            if role == "executors" and asked.get(role) is None:
                chosen += [executor.get("thread") for executor in process["executors"]]
            for thread in chosen:
                if thread is not None and thread["policy"] in BOUNDLESS:
                    yield _use(f"{role} of {name}", thread)


def _use(who: str, thread: Mapping[str, Any]) -> RealTimeUse:
    return RealTimeUse(who, thread["policy"], int(thread["priority"]), tuple(thread["cpus"]))


def limits_of(conditions: Sequence[Condition], host: Host) -> RealTimeLimits:
    """The limits of real-time threads in a trial with these conditions."""
    changing = next((c for c in conditions if isinstance(c, RealtimeLimits)), None)
    return real_time_limits(host.root) if changing is None else changing.limits_of(host)


def check(
    label: str, graph: Graph, requests: Sequence[ThreadRequest], conditions: Sequence[Condition], host: Host
) -> None:
    """Checks before the first trial that it leaves a CPU to others, if nothing limits real-time threads.

    Raises BadInput if it does not, Unavailable if the watchdog could not end it.
    """
    if not limits_of(conditions, host).off:
        return
    found = uses(graph, requests, conditions)
    off = f"{label}: nothing limits real-time threads (throttling and fair server are off), and"
    if found and not free_cpus(found):
        right = "leave out one CPU: @CPUS of --thread, cpus= of the condition"
        raise BadInput(f"{off} {listed([use.words for use in found])} leave no CPU to anybody else; {right}")
    if highest := next((use for use in found if use.priority >= PRIORITY), None):
        raise BadInput(f"{off} {highest.words} leaves no priority above it to the watchdog; use at most {PRIORITY - 1}")
    if not host.may_be_real_time(PRIORITY):
        raise Unavailable(
            f"{off} this user may not use RR {PRIORITY}, which the watchdog needs; run as root, or set `rtprio "
            "99` in /etc/security/limits.d/perflab.conf"
        )


def free_cpus(found: Sequence[RealTimeUse], allowed: Sequence[int] | None = None) -> tuple[int, ...]:
    """The CPUs that no real-time thread may use; a thread without CPUs takes all."""
    all_ = allowed_cpus() if allowed is None else allowed
    return tuple(cpu for cpu in all_ if not any(cpu in use.cpus or not use.cpus for use in found))


class Watchdog:
    """Runs beside one trial, if it has real-time threads, or a command that may have them while nothing limits them."""

    def __init__(self, trial: RunningTrial) -> None:
        plan = trial.plan
        found = uses(plan.graph, plan.settings.threads, plan.conditions)
        wanted = bool(found) or (plan.command is not None and limits_of(plan.conditions, Host()).off)
        self._companion: Companion | None = None
        self._said: list[Mapping[str, Any]] = []
        if wanted and plan.variant.runtime != "virtual":
            self._companion = self._start(trial, free_cpus(found))

    @staticmethod
    def _start(trial: RunningTrial, cpus: Sequence[int]) -> Companion:
        limit_ns = str(round(LIMIT_S * NS_PER_S))
        command: list[str | Path] = [
            trial.native.program(PROGRAM),
            "--perflab",
            str(os.getpid()),
            "--limit-ns",
            limit_ns,
        ]
        command += ["--cpus", ",".join(map(str, cpus))] if cpus else []
        companion = trial.start(NAME, command, control=True)
        said = ready(companion, PROGRAM, READY_LIMIT_S)
        if said["type"] == "error":
            raise Unavailable(f"{NAME}: {said['text']}")
        got = Got(policy=said["policy"], priority=said["priority"], cpus=tuple(said["cpus"]))
        trial.keeper.note(watchdog=got)
        return companion

    def fired(self) -> str | None:
        """What it did, if it had to act: one line."""
        if self._companion is None:
            return None
        while (said := self._companion.receive(HEARD_WITHIN_S)) is not None:
            self._said.append(said)
        for line in self._said:
            if line.get("type") == "fired":
                killed = listed([f"{p['name']} (pid {p['pid']})" for p in line["killed"]])
                waited = format_duration(line["waited_ns"] / NS_PER_S)
                return f"{LOCKED} {waited}; the watchdog killed {killed or 'nobody: no real-time thread was left'}"
        return None
