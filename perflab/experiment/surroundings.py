"""The conditions and observers of one trial: applied, waited for, verified, and always removed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perflab.condition import AFTER, BEFORE, Applied, Condition, Evidence, NotInEffect, Window
from perflab.errors import PerflabError
from perflab.experiment.liveness import Watchdog
from perflab.experiment.running import MONITOR_INTERVAL_NS, RunningTrial
from perflab.models import as_json
from perflab.observer import Artifact, Observation, Observer
from perflab.observer.monitor import Monitor
from perflab.results.files import ConditionTimes


@dataclass
class Surroundings:
    """Everything around the workload. `close` undoes whatever was begun, in reverse order, once."""

    conditions: Sequence[Condition]
    observers: Sequence[Observer]
    trial: RunningTrial
    evidence: dict[str, dict[str, Any]] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    times: dict[str, ConditionTimes] = field(default_factory=dict)  # of the started conditions, by label
    _applied: list[tuple[Condition, Applied]] = field(default_factory=list)
    _observed: list[tuple[Observer, Observation]] = field(default_factory=list)
    _watchdog: Watchdog | None = None

    def prepare(self) -> None:
        """Everything that comes before the workload's processes. Raises the errors of conditions and observers."""
        self.trial.enter("preparing", "what comes before the processes: observers, conditions")
        for observer in self.observers:
            if isinstance(observer, Monitor):
                # Conditions are judged by parts of a second.
                longest_ns = MONITOR_INTERVAL_NS if self.conditions else observer.interval
                self.trial.monitor_interval_ns = min(observer.interval, longest_ns)
        if self.trial.plan.monitored:
            self.trial.start_monitor()
        self._watchdog = Watchdog(self.trial)
        for observer in self.observers:
            self._observed.append((observer, observer.begin(self.trial)))
        self._begin(BEFORE)

    def surround(self) -> None:
        """Once the workload is matched: the other conditions, the observers, and the wait until everything is in
        effect."""
        self.trial.enter("conditions", "observers to record and conditions to be in effect")
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

        Messages were published until `until_ns`, which is later than `planned` if the workload was behind.
        """
        if not self.conditions:
            return
        self.trial.waits_for("evidence that the conditions were in effect")
        self.trial.monitored_until(until_ns)
        complaint = self.trial.monitor_complaint()
        failed = None if complaint is None else f"the measurement is incomplete: {complaint}"
        for condition, applied in self._in_order:
            window = planned if condition.ends_by_schedule else Window(planned.begin_ns, until_ns)
            try:
                evidence = applied.verify(window)
            except NotInEffect as error:
                self._not_in_effect(condition, str(error))
                failed = failed or f"{condition.label}: {error}"
                continue
            self.evidence[condition.label] = as_json(evidence)
            if not evidence.in_effect:
                failed = failed or f"{condition.label}: {evidence.reason}"
        if failed is not None:
            raise NotInEffect(failed)

    def locked(self) -> str | None:
        """Whether the trial kept perflab from running, and what the watchdog did about it: one line."""
        return None if self._watchdog is None else self._watchdog.fired()

    def note_failure(self, reason: str, guilty: str | None) -> None:
        """The trial ended before its conditions could be verified: records this for each. `guilty` is the label of the
        condition at fault."""
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
        """Stops the observers and removes the conditions; returns the errors, one line each."""
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
                self.times[condition.label] = replace(self.times[condition.label], removed_ns=time.monotonic_ns())
            except (PerflabError, OSError) as error:
                problems.append(f"condition {condition.label} could not be removed: {error}")
        return problems + self.trial.close()

    @property
    def _in_order(self) -> list[tuple[Condition, Applied]]:
        """In the order in which the conditions were named, whenever each began."""
        return sorted(self._applied, key=lambda pair: self.conditions.index(pair[0]))

    def _begin(self, when: str) -> None:
        for condition in self.conditions:
            if condition.begins != when:
                continue
            try:
                self._applied.append((condition, condition.begin(self.trial)))
                self.times[condition.label] = ConditionTimes(begun_ns=time.monotonic_ns())
            except NotInEffect as error:
                self._not_in_effect(condition, str(error))
                raise

    def _not_in_effect(self, condition: Condition, reason: str) -> None:
        self.evidence[condition.label] = as_json(Evidence(promised=condition.parameters, achieved=None, reason=reason))


def needs_monitor(conditions: Sequence[Condition], observers: Sequence[Observer]) -> bool:
    """Whether any part of an experiment needs perflab-monitor; then every trial has it, so that it favours none."""
    return bool(conditions) or any(isinstance(o, Monitor) for o in observers)
