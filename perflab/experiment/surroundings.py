"""The conditions and observers of one trial: applied, waited for, verified, and always taken away again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflab.condition import (
    AFTER,
    BEFORE,
    Applied,
    Companion,
    Condition,
    Counts,
    Evidence,
    Launch,
    NotInEffect,
    Window,
)
from perflab.errors import PerflabError
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.process import Supervisor
from perflab.formats.monitor import MonitorReader
from perflab.native import Native
from perflab.observer import Artifact, Observation, Observer
from perflab.observer.monitor import Monitor
from perflab.units import NS_PER_S
from perflab.workload import Graph

COMPANIONS = "companions"
MONITOR_FILE = "monitor.jsonl"
MONITOR_INTERVAL_NS = 100_000_000
MONITOR_START_S = 20.0
# Between the end of the measured part and the monitor's next sample at most.
MONITOR_LAG_S = 5.0


@dataclass
class TrialView:
    """What conditions and observers may know of the trial and do in it (perflab.condition.Trial)."""

    directory: Path
    graph: Graph
    runtime: str
    native: Native
    supervisor: Supervisor
    pass_time: Callable[[float], None]
    middleware_configuration: Mapping[str, Any]
    started: Callable[[GuardedCompanion], None]  # told of every companion
    processes: dict[str, int] = field(default_factory=dict)
    condition_processes: dict[str, int] = field(default_factory=dict)
    launch: Launch = field(default_factory=Launch)
    companions: list[GuardedCompanion] = field(default_factory=list)
    ended: list[dict[str, Any]] = field(default_factory=list)  # the documents of those that were closed
    latest_counts: dict[str, Counts] = field(default_factory=dict)
    monitored: bool = False
    monitor_interval_ns: int = MONITOR_INTERVAL_NS
    _monitor: GuardedCompanion | None = None
    _reader: MonitorReader | None = None

    @property
    def monitor(self) -> MonitorReader:
        if self._reader is None:
            raise PerflabError("this trial has no monitor: its condition or observer did not ask for it")
        return self._reader

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, log: str | None = None
    ) -> Companion:
        companion = self._start(name, command, control=control, log=log)
        if companion.pid is not None:
            self.watch(name, companion.pid)
        return companion

    def counts(self, condition: str) -> Counts | None:
        return self.latest_counts.get(condition)

    def wait(self, seconds: float) -> None:
        self.pass_time(seconds)

    def start_monitor(self) -> None:
        """Raises Unavailable where it does not start."""
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
        """Waits, for a bounded time, until the monitor has looked at the instant."""
        if self._reader is None:
            return
        deadline = time.monotonic() + MONITOR_LAG_S + self.monitor_interval_ns / NS_PER_S
        while time.monotonic() < deadline:
            self._reader.refresh()
            if self._reader.last_at_ns is not None and self._reader.last_at_ns >= at_ns:
                return
            self.wait(0.02)
        raise PerflabError("perflab-monitor has fallen silent: whether the conditions held cannot be told")

    def monitor_complaint(self) -> str | None:
        """What the monitor could not do, if it said so: what it saw is then not all there was."""
        while self._monitor is not None and (line := self._monitor.receive(0.0)) is not None:
            if line.get("type") == "error":
                return str(line.get("text"))
        return None

    def close(self) -> list[str]:
        """Ends every companion; what could not be ended, one line each."""
        problems = []
        while self.companions:
            companion = self.companions.pop()
            self.supervisor.forget(companion)
            try:
                companion.stop()
            except (PerflabError, OSError) as error:
                problems.append(f"{companion.name} could not be ended: {error}")
            self.ended.insert(0, companion.document())
        return problems

    def _start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, log: str | None = None
    ) -> GuardedCompanion:
        folder = self.directory / COMPANIONS
        folder.mkdir(exist_ok=True)
        number = sum(c.name == name for c in self.companions)
        stem = log or (f"{name}_{number + 1}" if number else name)
        companion = GuardedCompanion(
            name, command, guard=self.native.program("perflab-guard"), log=folder / f"{stem}.log", control=control
        )
        self.companions.append(companion)
        self.supervisor.watch(companion)
        self.started(companion)
        return companion


@dataclass
class Surroundings:
    """Everything around the workload. `close` undoes whatever was begun, in reverse order, once."""

    conditions: Sequence[Condition]
    observers: Sequence[Observer]
    trial: TrialView
    evidence: dict[str, Evidence] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    _applied: list[tuple[Condition, Applied]] = field(default_factory=list)
    _observed: list[tuple[Observer, Observation]] = field(default_factory=list)

    def prepare(self) -> None:
        """Everything that comes before the workload's processes. Raises what conditions and observers raise."""
        for observer in self.observers:
            if isinstance(observer, Monitor):
                # Conditions are judged by parts of a second.
                longest_ns = MONITOR_INTERVAL_NS if self.conditions else observer.interval
                self.trial.monitor_interval_ns = min(observer.interval, longest_ns)
        if self.trial.monitored:
            self.trial.start_monitor()
        for observer in self.observers:
            self._observed.append((observer, observer.begin(self.trial)))
        self._begin(BEFORE)

    def surround(self) -> None:
        """Once the workload is matched: the other conditions, the observers, and the wait until all is in effect."""
        self._begin(AFTER)
        for _, observation in self._observed:
            observation.start()
        for condition, applied in self._in_order:
            try:
                applied.settle()
            except NotInEffect as error:
                self._not_in_effect(condition, str(error))
                raise

    def verify(self, planned: Window, until_ns: int) -> None:
        """Collects the evidence of every condition. Raises NotInEffect for the first that was not in effect.

        Messages were published until `until_ns`, which is later than `planned` where the workload was behind.
        """
        self.trial.monitored_until(until_ns)
        complaint = self.trial.monitor_complaint()
        failed = None if complaint is None else f"what happened cannot be told: {complaint}"
        for condition, applied in self._in_order:
            window = planned if condition.ends_by_schedule else Window(planned.begin_ns, until_ns)
            try:
                evidence = applied.verify(window)
            except NotInEffect as error:
                self._not_in_effect(condition, str(error))
                failed = failed or f"{condition.label}: {error}"
                continue
            self.evidence[condition.label] = evidence
            if not evidence["in_effect"]:
                failed = failed or f"{condition.label}: {evidence['reason']}"
        if failed is not None:
            raise NotInEffect(failed)

    def note_failure(self, reason: str) -> None:
        """The trial ended as invalid before its conditions could be verified: says so of each."""
        # "cpu_load_2: ..." is of that one and not of cpu_load; a companion may be called LABEL_more.
        named = [c.label for c in self.conditions if reason.startswith((f"{c.label}:", f"{c.label}_"))]
        guilty = max(named, key=len, default=None)
        for condition in self.conditions:
            if condition.label in self.evidence:
                continue
            blamed = condition.label == guilty
            self.evidence[condition.label] = {
                "promised": condition.parameters,
                "achieved": None,
                "in_effect": False if blamed else None,
                "reason": reason if blamed else "the trial ended before this was verified",
            }

    def close(self) -> list[str]:
        """Stops the observers and removes the conditions; returns what went wrong, one line each."""
        problems = []
        while self._observed:
            observer, observation = self._observed.pop()
            try:
                self.artifacts.extend(observation.stop())
            except (PerflabError, OSError) as error:
                problems.append(f"observer {observer.name} could not be stopped: {error}")
        while self._applied:
            condition, applied = self._applied.pop()
            try:
                applied.remove()
            except (PerflabError, OSError) as error:
                problems.append(f"condition {condition.label} could not be removed: {error}")
        return problems + self.trial.close()

    @property
    def _in_order(self) -> list[tuple[Condition, Applied]]:
        """As the conditions were named, whenever each began."""
        return sorted(self._applied, key=lambda pair: self.conditions.index(pair[0]))

    def _begin(self, when: str) -> None:
        for condition in self.conditions:
            if condition.begins != when:
                continue
            try:
                self._applied.append((condition, condition.begin(self.trial)))
            except NotInEffect as error:
                self._not_in_effect(condition, str(error))
                raise

    def _not_in_effect(self, condition: Condition, reason: str) -> None:
        evidence = {"promised": condition.parameters, "achieved": None, "in_effect": False, "reason": reason}
        self.evidence[condition.label] = evidence


def needs_monitor(conditions: Sequence[Condition], observers: Sequence[Observer]) -> bool:
    """Whether somebody in an experiment needs perflab-monitor; then every trial has it, so that it favours none."""
    return bool(conditions) or any(isinstance(o, Monitor) for o in observers)
