"""The conditions and observers of one trial: applied, verified, and always taken away again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perflab.condition import Condition, Evidence, NotInEffect
from perflab.errors import PerflabError
from perflab.observer import Artifact, Observer


@dataclass
class TrialView:
    """What conditions and observers may know of the trial; `pids` fills as its processes start."""

    directory: Path
    domain: int | None
    pids: Mapping[str, int]


@dataclass
class Surroundings:
    """Everything around the workload. `close` undoes whatever was begun, in reverse order, once."""

    conditions: Sequence[Condition]
    observers: Sequence[Observer]
    trial: TrialView
    evidence: dict[str, Evidence] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    _applied: list[Condition] = field(default_factory=list)
    _started: list[Observer] = field(default_factory=list)

    def apply(self, when: str) -> None:
        """Applies the conditions that belong "before" or "after" the start of the workload. Raises what they raise."""
        for condition in self.conditions:
            if condition.when == when:
                self._applied.append(condition)  # first: one that fails half-way must be removed as well
                condition.apply(self.trial)

    def observe(self) -> None:
        """Starts the observers."""
        for observer in self.observers:
            self._started.append(observer)
            observer.start(self.trial)

    def verify(self) -> None:
        """Collects the evidence of every condition. Raises NotInEffect for the first that has none."""
        for condition in self.conditions:
            try:
                self.evidence[condition.name] = condition.verify(self.trial)
            except NotInEffect as error:
                self.evidence[condition.name] = {"in_effect": False, "reason": str(error)}
                raise

    def close(self) -> list[str]:
        """Stops the observers and removes the conditions; returns what went wrong, one line each."""
        problems = []
        while self._started:
            observer = self._started.pop()
            try:
                self.artifacts.extend(observer.stop(self.trial))
            except (PerflabError, OSError) as error:
                problems.append(f"observer {observer.name} could not be stopped: {error}")
        while self._applied:
            condition = self._applied.pop()
            try:
                condition.remove(self.trial)
            except (PerflabError, OSError) as error:
                problems.append(f"condition {condition.name} could not be removed: {error}")
        return problems
