"""One running trial: the common state of its system, its conditions and its observers."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perflab.condition import Companion, Counts, Launch, NotInEffect, temporary
from perflab.errors import Interrupted, PerflabError, ProtocolError
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.supervisor import CompanionEnded, Event, Supervisor, Tick
from perflab.experiment.trial_plan import TrialPlan
from perflab.formats.monitor import MONITOR_FILE, MonitorReader
from perflab.middleware import security
from perflab.native import Native
from perflab.processes import describe_status, last_words, log_tail, on_cpus
from perflab.results.files import TrialFile, TrialProcess
from perflab.runs.display import LiveProgress
from perflab.runs.rundir import TrialDirectory
from perflab.units import NS_PER_S
from perflab.waiting import Wait
from perflab.workload import Graph

COMPANIONS = "companions"
MONITOR_INTERVAL_NS = 100_000_000
# At most between the end of the measured part and the monitor's next sample.
MONITOR_LAG_S = 5.0

Report = Callable[[LiveProgress], None]


@dataclass(frozen=True)
class Ended:
    """The result of a trial: trial.json, as far as the trial itself knows it."""

    file: TrialFile
    last: bool = False  # further trials are pointless
    error: PerflabError | None = None  # the command's exit code, if not "a trial failed"


class Keeper:
    """trial.json of a running trial: a clean-up after a crash identifies its processes by it."""

    def __init__(self, directory: TrialDirectory, file: TrialFile) -> None:
        self.directory = directory
        self.file = file

    def note(self, **known: Any) -> None:
        """Members of trial.json that are known by now."""
        self.file = replace(self.file, **known)

    def note_process(self, name: str, **known: Any) -> None:
        """Members of a process, by file name."""
        processes = self.file.processes
        self.note(processes={**processes, name: replace(processes.get(name, TrialProcess()), **known)})

    def add_note(self, *notes: str) -> None:
        self.note(notes=(*self.file.notes, *notes))

    def write(self) -> None:
        """Raises OSError."""
        self.directory.write(self.file)


@dataclass
class RunningTrial:
    """A `Trial` of perflab.condition, and for its system the events of all processes."""

    plan: TrialPlan
    files: TrialDirectory
    supervisor: Supervisor
    report: Report
    keeper: Keeper
    processes: dict[str, int] = field(default_factory=dict)
    condition_processes: dict[str, int] = field(default_factory=dict)
    launch: Launch = field(default_factory=Launch)
    latest_counts: dict[str, Counts] = field(default_factory=dict)
    monitor_interval_ns: int = MONITOR_INTERVAL_NS
    credentials: Path | None = None  # a folder
    hear: Callable[[Event], bool] = lambda event: False  # of the system
    _companions: list[GuardedCompanion] = field(default_factory=list)
    _condition_of: dict[str, str] = field(default_factory=dict)  # labels, by name of the companion
    _calls: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _monitor: GuardedCompanion | None = None
    _reader: MonitorReader | None = None

    # -- the part for conditions and observers
    # --------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        return self.files.path

    @property
    def start_at_ns(self) -> int | None:
        """The common start of all processes; None before it is known."""
        return self.keeper.file.start_at_ns

    @property
    def graph(self) -> Graph:
        return self.plan.graph

    @property
    def runtime(self) -> str:
        return self.plan.variant.runtime

    @property
    def native(self) -> Native:
        return self.plan.native

    @property
    def middleware_configuration(self) -> Mapping[str, Any]:
        plan = self.plan
        return plan.variant.middlewares[0].configuration(
            plan.domain, plan.settings.network, plan.seed, credentials=self.credentials
        )

    def make_credentials(self) -> None:
        """Credentials for DDS Security, if a middleware needs them; after a killed run, `perflab clean` removes
        them."""
        if any(middleware.secured for middleware in self.plan.variant.middlewares):
            self.credentials = temporary.make(self, security.OPTION).absolute()
            security.make(self.credentials, self.plan.domain or 0)

    def remove_credentials(self) -> None:
        if self.credentials is not None:
            temporary.remove(self.credentials)

    @property
    def middleware_environment(self) -> Mapping[str, str]:
        return self.plan.variant.middlewares[0].environment

    @property
    def monitor(self) -> MonitorReader:
        if self._reader is None:
            raise PerflabError("this trial has no monitor: its condition or observer did not request it")
        return self._reader

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, condition: str | None = None
    ) -> Companion:
        companion = self._start(name, command, control=control)
        self._condition_of[name] = condition or name
        if companion.pid is not None:
            self.watch(name, companion.pid)
        return companion

    def start_outside(
        self, name: str, command: Sequence[str | Path], *, environment: Mapping[str, str], directory: Path | None
    ) -> GuardedCompanion:
        """A process of the graph that is not perflab's, launched as conditions and observers require."""
        launch = self.launch
        words = [*launch.prefix, *command]
        with on_cpus(launch.cpus_of.get(name, launch.cpus)):
            companion = self._start(name, words, environment={**environment, **launch.environment}, directory=directory)
        assert companion.pid is not None, "it was started"
        self.processes[name] = companion.pid
        self.watch(f"workload/{name}", companion.pid)
        return companion

    def counts(self, condition: str) -> Counts | None:
        return self.latest_counts.get(condition)

    def wait(self, seconds: float) -> None:
        self.until(lambda: False, time.monotonic() + seconds)

    # -- what happens --------------------------------------------------------------------------------------------------

    def enter(self, phase: str, what: str | Callable[[], str]) -> None:
        """Begins an unmeasured part of the trial; `what` describes the wait if it takes long."""
        self.report(LiveProgress(phase, 0, 0, 0, 0))
        self.waits_for(what)

    def waits_for(self, what: str | Callable[[], str], limit_s: float | None = None) -> None:
        """From now on, if it takes long."""
        self.supervisor.waiting = Wait(what, limit_s)

    def until(self, done: Callable[[], bool], deadline_s: float = math.inf, step_s: float = math.inf) -> bool:
        """Handles events until `done`, which is called at least every `step_s`; False if the time is over first.

        Time is CLOCK_MONOTONIC. Raises the system's failures, Interrupted, ProtocolError.
        """
        while not done():
            self._call_due()
            due_s = min((at_ns / NS_PER_S for at_ns, _ in self._calls), default=math.inf)
            event = self.supervisor.poll(min(deadline_s, time.monotonic() + step_s, due_s))
            if not isinstance(event, Tick):
                self._hear(event)
            elif time.monotonic() >= deadline_s:
                return False
        return True

    def call_at(self, at_ns: int, what: Callable[[], None]) -> None:
        """Calls it once, at that instant or as soon as the trial waits after it."""
        self._calls.append((at_ns, what))

    def _call_due(self) -> None:
        due = [call for call in self._calls if call[0] <= time.monotonic_ns()]
        self._calls = [call for call in self._calls if call not in due]
        for _, what in due:
            what()

    def until_stopped(self, waits: Callable[[], object], *, begin_ns: int) -> None:
        """For a measured part without an end of its own: a signal ends `waits` and is then handled.

        Before the measured part begins, it interrupts as usual.
        """
        try:
            waits()
        except Interrupted:
            if time.monotonic_ns() < begin_ns:
                raise
            self.supervisor.heed_signal()

    def outlast(self, running: Callable[[], object], limit_s: float) -> None:
        """Lets processes write their data, for a bounded time in which their reports are ignored."""
        deadline_s = time.monotonic() + limit_s
        with contextlib.suppress(Interrupted, ProtocolError):
            while running() and not isinstance(self.supervisor.poll(deadline_s), Tick):
                pass

    def note_end(self, name: str, status: int | None, log: Path) -> None:
        """How a process of the system ended, with the end of its log if there was an error."""
        self.keeper.note_process(name, status=status, log_tail=() if status == 0 else tuple(log_tail(log)))

    def _hear(self, event: Event) -> None:
        if self.hear(event) or not isinstance(event, CompanionEnded):
            return
        companion = event.companion
        how = "was ended" if companion.status is None else describe_status(companion.status)
        text = f"{companion.name}: the program {how} while it should run{last_words(companion.log)}"
        raise NotInEffect(text, self._condition_of.get(companion.name))

    # -- programs beside the workload ----------------------------------------------------------------------------------

    def start_monitor(self) -> None:
        """Raises Unavailable if it does not start."""
        path = (self.directory / MONITOR_FILE).absolute()
        program = self.native.program("perflab-monitor")
        command: list[str | Path] = [program, "--interval-ns", str(self.monitor_interval_ns), "--output", path]
        self._monitor = self._start("monitor", command, control=True)
        self._reader = MonitorReader(path)

    def watch(self, group: str, pid: int) -> None:
        """Lets the monitor watch a process and all its descendants."""
        if self._monitor is not None:
            self._monitor.send({"type": "watch", "group": group, "root": pid})

    def monitored_until(self, at_ns: int) -> None:
        """Waits, for a bounded time, until the monitor has sampled the instant."""
        if self._reader is None:
            return
        deadline = time.monotonic() + MONITOR_LAG_S + self.monitor_interval_ns / NS_PER_S
        while time.monotonic() < deadline:
            self._reader.refresh()
            if self._reader.last_at_ns is not None and self._reader.last_at_ns >= at_ns:
                return
            self.wait(0.02)
        raise PerflabError("perflab-monitor sends no more samples: whether the conditions held is unknown")

    def monitor_complaint(self) -> str | None:
        """The monitor's complaint, if any: its samples are then incomplete."""
        while self._monitor is not None and (line := self._monitor.receive(0.0)) is not None:
            if line.get("type") == "error":
                return str(line.get("text"))
        return None

    def close(self) -> list[str]:
        """Ends every companion; returns what could not be ended, one line each."""
        problems = []
        for companion in reversed(self._companions):
            self.supervisor.forget(companion)
            try:
                companion.stop()
            except (PerflabError, OSError) as error:
                problems.append(f"{companion.name} could not be ended: {error}")
        self._note_companions()
        return problems

    def _note_companions(self) -> None:
        self.keeper.note(companions=tuple(companion.recorded for companion in self._companions))

    def _start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, **how: Any
    ) -> GuardedCompanion:
        folder = self.directory / COMPANIONS
        folder.mkdir(exist_ok=True)
        number = sum(c.name == name for c in self._companions)
        stem = f"{name}_{number + 1}" if number else name
        guard, log = self.native.program("perflab-guard"), folder / f"{stem}.log"
        companion = GuardedCompanion(name, command, guard=guard, log=log, control=control, **how)
        self._companions.append(companion)
        self.supervisor.watch(companion)
        self._note_companions()
        self.keeper.write()
        return companion
