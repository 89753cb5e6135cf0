"""Conditions and observers around a trial: applied in order, verified before the start, always removed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_trial import plan

from perflab.condition import Condition, Evidence, NotInEffect, Trial, Window
from perflab.errors import PerflabError, Unavailable
from perflab.experiment.process import Signals
from perflab.experiment.rundir import TrialDirectory
from perflab.experiment.trial import TrialOutcome, run_trial
from perflab.host import Host
from perflab.observer import Artifact, Observer
from perflab.workload import Graph


class Recorder:
    """What notes everything that is asked of it, with the number of processes that there are then."""

    def __init__(
        self, log: list[str], name: str, when: str = "before", fails_in: str = "", error: Exception | None = None
    ) -> None:
        self.log, self.label, self.when, self.fails_in = log, name, when, fails_in
        self.error = error or PerflabError("on purpose")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"share": 0.5}

    def note(self, what: str, trial: Trial) -> None:
        self.log.append(f"{what} {self.label} {len(trial.processes)}")
        if self.fails_in == what:
            raise self.error


class Disturbance(Recorder, Condition):
    name = "disturbance"

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        self.log.append(f"check {self.label}")

    def apply(self, trial: Trial) -> None:
        self.note("apply", trial)

    def settle(self, trial: Trial) -> None:
        self.note("settle", trial)

    def verify(self, trial: Trial, window: Window) -> Evidence:
        self.note("verify", trial)
        assert window.seconds == pytest.approx(0.6)
        reason = "too weak" if self.fails_in == "in_effect" else None
        return {"promised": self.parameters, "achieved": {}, "in_effect": reason is None, "reason": reason}

    def remove(self, trial: Trial) -> None:
        self.note("remove", trial)


class Watcher(Recorder, Observer):
    name = "watcher"

    def check(self, host: Host, runtime: str) -> None:
        self.log.append(f"check {self.label}")

    def configure(self, configuration: dict[str, Any]) -> None:
        self.log.append(f"configure {configuration['process']}")

    def prepare(self, trial: Trial) -> None:
        self.note("prepare", trial)
        trial.launch.environment["FAKE_SEEN"] = "yes"

    def start(self, trial: Trial) -> None:
        self.note("start", trial)

    def stop(self, trial: Trial) -> list[Artifact]:
        self.note("stop", trial)
        return [Artifact(trial.directory / "trace", "trace")]


def run(
    native: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
    fake: str = "",
    **changes: Any,
) -> TrialOutcome:
    trial = plan(native, fake)
    treatment = replace(
        trial.treatment,
        conditions=(Disturbance(log, "first"), Disturbance(log, "second", when="after", **changes)),
        observers=(Watcher(log, "watcher"),),
    )
    return run_trial(replace(trial, treatment=treatment), directory, signals, lambda progress: None)


def test_the_order_of_a_good_trial(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log)
    assert outcome.outcome == "success"
    assert log == [
        "prepare watcher 0",
        "apply first 0",
        "configure ping",
        "configure pong",
        "apply second 2",
        "start watcher 2",
        "settle first 2",
        "settle second 2",
        "verify first 2",
        "verify second 2",
        "stop watcher 2",
        "remove second 2",
        "remove first 2",
    ]
    assert {label: e["in_effect"] for label, e in outcome.evidence.items()} == {"first": True, "second": True}
    assert [a.kind for a in outcome.artifacts] == ["trace"]


@pytest.mark.parametrize("phase", ["apply", "settle", "verify", "in_effect"])
def test_a_condition_that_is_not_in_effect_makes_the_trial_invalid(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    phase: str,
) -> None:
    log: list[str] = []
    outcome = run(native_folder, directory, signals, log, fails_in=phase, error=NotInEffect("no load seen"))
    assert outcome.outcome == "invalid"
    assert re.fullmatch(r"(second: )?(no load seen|too weak)", outcome.reason or "")
    assert outcome.evidence["second"]["in_effect"] is False
    assert outcome.evidence["second"]["reason"] in ("no load seen", "too weak")
    assert (outcome.start_at_ns is None) == (phase in ("apply", "settle"))
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
    assert log[-4:] == ["apply second 2", "stop watcher 2", "remove second 2", "remove first 2"]


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
