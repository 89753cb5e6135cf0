"""Loads made by stress-ng (https://github.com/ColinIanKing/stress-ng), whose workers are known by process id."""

from __future__ import annotations

import functools
import re
import subprocess
from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from perflab import programs
from perflab.condition import Applied, Companion, Condition, Evidence, Trial, Window, temporary
from perflab.condition.evidence import (
    catch_up,
    differing,
    has_ended,
    longest_gap_s,
    require_processes,
    rounded,
    wait_until,
    wait_until_seen,
)
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.processes import Process, descendants
from perflab.units import plural
from perflab.workload import Graph

_ANSWER_LIMIT_S = 20.0


def find() -> Path:
    """Raises Unavailable."""
    return programs.find("stress-ng", "apt-get install stress-ng")


@functools.cache
def cpu_methods() -> tuple[str, ...]:
    """The CPU methods of the installed stress-ng. Raises Unavailable."""
    # stress-ng lists them only in the error about a wrong one.
    said = _said("--cpu", "1", "--cpu-method", "which", "--dry-run")
    match = re.search(r"(?:must be one of|choices are):([ \w]+)", said)  # of 0.15, of 0.19
    if match is None:
        raise Unavailable("stress-ng lists no CPU methods; install another version of it")
    return tuple(match.group(1).split())


@functools.cache
def version() -> str | None:
    """The version of the installed stress-ng, for evidence."""
    match = re.search(r"version ([0-9][\w.]*)", _said("--version"))
    return match.group(1) if match else None


def _said(*arguments: str) -> str:
    try:
        done = programs.ask([find(), *arguments], limit_s=_ANSWER_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"stress-ng does not run: {error}; install it again: apt-get install stress-ng") from error
    return done.stdout + done.stderr


@dataclass(frozen=True, kw_only=True)
class WorkersSeen:
    workers_alive: int
    """Workers of stress-ng alive at the end of the measured part, from /proc."""
    monitor_gap_s: float | None
    """Longest time without a sample of perflab-monitor."""


@dataclass(frozen=True, kw_only=True)
class LoadEvidence(Evidence):
    program: str = "stress-ng"
    """The program that made the load."""
    version: str | None = field(default_factory=version)
    """Version of the program."""


class StressNg(Condition):
    """Workers of stress-ng of one kind."""

    stressor: ClassVar[str]  # "cpu", "vm", "hdd"
    settled_s: ClassVar[float] = 0.5  # the load must be as promised for this long before the measured part begins
    evidence: ClassVar[type[LoadEvidence]]

    if TYPE_CHECKING:  # a parameter of each load

        @property
        def workers(self) -> int: ...

    @property
    @abstractmethod
    def arguments(self) -> list[str]:
        """Arguments of stress-ng, beside the number of workers."""

    @property
    @abstractmethod
    def promised(self) -> Any: ...

    @property
    def bound_to(self) -> tuple[int, ...] | None:
        """CPUs that the workers are promised to use."""
        return None

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        find()

    def begin(self, trial: Trial) -> Load:
        return Load(self, trial)

    def missing(self, load: Load) -> str | None:
        """What is still missing although all workers run."""
        del load
        return None

    @abstractmethod
    def judge(self, load: Load, window: Window) -> tuple[WorkersSeen, str | None]:
        """What was achieved in a window, and why it was not enough."""

    def beside(self, load: Load, achieved: Any) -> dict[str, Any]:
        """Further evidence; `achieved` is from `judge`."""
        del load, achieved
        return {}


class Load(Applied):
    """One running stress-ng, whose workers are known by process id."""

    def __init__(self, asked: StressNg, trial: Trial) -> None:
        """Starts it. Raises Unavailable."""
        self.asked = asked
        self.trial = trial
        self.label = asked.label  # also the name of its monitor group
        self.scheduling: dict[int, dict[str, Any]] = {}  # of each worker, when the load had settled
        self.workers: list[Process] = []
        self.helpers: list[Process] = []  # its processes that are not workers, e.g. that watch one
        self.folder = temporary.make(trial, asked.label)
        # A timeout of 0 disables it: perflab-guard ends the program.
        words: list[str | Path] = [
            f"--{asked.stressor}",
            str(asked.workers),
            "--timeout",
            "0",
            "--temp-path",
            self.folder,
        ]
        try:
            self.companion: Companion = trial.start(asked.label, [find(), *words, *asked.arguments])
        except BaseException:
            temporary.remove(self.folder)
            raise

    def seen(self, window: Window) -> dict[str, Any]:
        """The figures of `WorkersSeen`."""
        gap_s = rounded(longest_gap_s(self.trial, [self.label], window))
        return {"workers_alive": self.alive, "monitor_gap_s": gap_s}

    def settle(self) -> None:
        self.find_workers()
        wait_until(self.trial, lambda: self.lost() or self.asked.missing(self))
        asked = self.asked
        wait_until_seen(self.trial, "the load", asked.settled_s, self.lost, lambda window: asked.judge(self, window)[1])
        self.note_scheduling()

    def verify(self, window: Window) -> Evidence:
        late = catch_up(self.trial, window, [self.label])
        achieved, weak = self.asked.judge(self, window)
        reason = self.lost() or self.rescheduled(window) or late or weak
        beside = self.asked.beside(self, achieved)
        return self.asked.evidence(promised=self.asked.promised, achieved=achieved, reason=reason, **beside)

    def remove(self) -> None:
        try:
            self.companion.stop()  # an interrupt during its end is raised when it has ended
        finally:
            temporary.remove(self.folder)

    def find_workers(self) -> None:
        """Waits until every worker runs. Raises NotInEffect."""
        wait_until(self.trial, self._missing)

    def lost(self) -> str | None:
        """Which worker has disappeared, or does not run."""
        if (reason := has_ended(self.companion, "stress-ng")) is not None:
            return reason
        for worker in self.workers:
            if not worker.alive:
                return f"worker {worker.pid} of stress-ng ended during the trial"
        for worker in self.workers:
            if worker.stopped:
                return f"worker {worker.pid} of stress-ng is stopped"
        return None

    def note_scheduling(self) -> None:
        """The workers' policies in the monitor's last sample; called when the load has settled."""
        monitor = self.trial.monitor
        for seen in monitor.threads(self.label, 0, monitor.last_at_ns or 0):
            if seen.tid in self.threads:
                settled = {"policy": seen.policy, "priority": seen.priority, "nice": seen.nice}
                cpus = self.asked.bound_to
                self.scheduling[seen.tid] = settled if cpus is None else {**settled, "cpus": cpus}

    def rescheduled(self, window: Window) -> str | None:
        """Which worker's scheduling in the window differed from when it had settled: that is another load."""
        for tid in self.threads:
            if tid not in self.scheduling:
                return f"the scheduling policy of worker {tid} of stress-ng was not recorded before the measured time"
        return differing(self.trial, self.label, window, self.scheduling, "stress-ng")

    @property
    def alive(self) -> int:
        return sum(worker.alive for worker in self.workers)

    @property
    def threads(self) -> list[int]:
        """The worker threads: a worker is a process with a single thread."""
        return [worker.pid for worker in self.workers]

    def _missing(self) -> str | None:
        if (reason := has_ended(self.companion, "stress-ng")) is not None:
            return reason
        root = self.companion.pid
        below = [] if root is None else list(descendants(root))
        name = f"stress-ng-{self.asked.stressor}"[:15]
        parents = {process.parent for process in below}
        self.workers = [process for process in below if process.name == name and process.pid not in parents]
        self.helpers = [process for process in below if process not in self.workers]
        found = len(self.workers)
        if found == self.asked.workers:
            return None
        return f"stress-ng has {plural(found, 'worker')} instead of {self.asked.workers}"
