"""Conditions and observers around a trial: applied in order, verified before the start, always removed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from test_trial import plan

from perflab import condition as conditions
from perflab import observer as observers
from perflab.condition import Evidence, NotInEffect, Trial
from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.experiment.process import Signals
from perflab.experiment.rundir import TrialDirectory
from perflab.experiment.trial import TrialOutcome, run_trial
from perflab.host import Host
from perflab.observer import Artifact
from perflab.registry import Kind
from perflab.workload import Workload


@dataclass
class Recorder:
    """A condition and an observer that note what is asked of them."""

    log: list[str]
    name: str = "recorder"
    when: str = "before"
    fails_in: str = ""
    error: Exception = field(default_factory=lambda: PerflabError("on purpose"))
    parameters: dict[str, Any] = field(default_factory=dict)

    def _note(self, what: str, trial: Trial) -> None:
        self.log.append(f"{what} {self.name} {len(trial.pids)}")
        if self.fails_in == what:
            raise self.error

    def check(self, host: Host, workload: Workload | None = None) -> None:
        self.log.append(f"check {self.name}")

    def apply(self, trial: Trial) -> None:
        self._note("apply", trial)

    def verify(self, trial: Trial) -> Evidence:
        self._note("verify", trial)
        return {"seen": True}

    def remove(self, trial: Trial) -> None:
        self._note("remove", trial)

    def start(self, trial: Trial) -> None:
        self._note("start", trial)

    def stop(self, trial: Trial) -> list[Artifact]:
        self._note("stop", trial)
        return [Artifact(trial.directory / "trace", "trace")]


def run(
    native: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
    fake: str = "",
    **changes: Any,
) -> TrialOutcome:
    around = (Recorder(log, "first"), Recorder(log, "second", when="after", **changes))
    trial = replace(plan(native, fake), conditions=around, observers=(Recorder(log, "watcher"),))
    return run_trial(trial, directory, signals, lambda progress: None)


def test_the_order_of_a_good_trial(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log)
    assert outcome.outcome == "success"
    assert log == [
        "apply first 0",
        "apply second 2",
        "start watcher 2",
        "verify first 2",
        "verify second 2",
        "stop watcher 2",
        "remove second 2",
        "remove first 2",
    ]
    assert outcome.evidence == {"first": {"seen": True}, "second": {"seen": True}}
    assert [a.kind for a in outcome.artifacts] == ["trace"]


def test_a_condition_that_is_not_in_effect_makes_the_trial_invalid(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log, fails_in="verify", error=NotInEffect("no load seen"))
    assert (outcome.outcome, outcome.reason, outcome.start_at_ns) == ("invalid", "no load seen", None)
    assert outcome.evidence["second"] == {"in_effect": False, "reason": "no load seen"}
    assert log[-3:] == ["stop watcher 2", "remove second 2", "remove first 2"]


@pytest.mark.parametrize(
    ("error", "kind"), [(PerflabError("broken"), None), (Unavailable("no stress-ng"), Unavailable)]
)
def test_a_condition_that_cannot_be_applied_is_removed_nevertheless(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    error: PerflabError,
    kind: type | None,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log, fails_in="apply", error=error)
    assert (outcome.outcome, outcome.reason) == ("harness_error", str(error))
    assert kind is None or isinstance(outcome.error, kind)
    assert log == ["apply first 0", "apply second 2", "remove second 2", "remove first 2"]


def test_a_condition_that_stays_makes_the_trial_a_harness_error(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log, fails_in="remove")
    assert outcome.outcome == "harness_error"
    assert outcome.reason == "condition second could not be removed: on purpose"
    assert log[-1] == "remove first 2"


def test_conditions_are_removed_when_the_workload_dies(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
) -> None:
    log: list[str] = []
    assert run(native_folder, directory, signals, log, fake="die:pong").outcome == "failed"
    assert log[-3:] == ["stop watcher 2", "remove second 2", "remove first 2"]


def test_words_become_conditions_and_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(parameters: Any) -> Recorder:
        return Recorder([], parameters=dict(parameters))

    monkeypatch.setitem(conditions.REGISTRY, "load", Kind("load", "CPU load", create))
    monkeypatch.setitem(observers.REGISTRY, "trace", Kind("trace", "traces", create))
    assert conditions.parse(["load:cpus=2, share=0.5", "load"])[0].parameters == {"cpus": "2", "share": "0.5"}
    assert observers.parse(["trace"])[0].parameters == {}
    for word in ("load:", "load:cpus", "load:=2", "loud"):
        with pytest.raises(BadInput, match="condition"):
            conditions.parse([word])
