"""Conditions and observers around a trial: applied in order, verified before the start, always removed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from test_trial import plan

from perflab.condition import Applied, Condition, Evidence, NotInEffect, Trial, Window
from perflab.errors import PerflabError, Unavailable
from perflab.experiment.running import Ended
from perflab.experiment.trial import run_trial
from perflab.host import Host
from perflab.native import Native
from perflab.observer import Artifact, Observation, Observer
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals
from perflab.specification import Specification
from perflab.workload import Graph

# What was asked of whom, with the number of processes that there were then.
LOG: list[str] = []


class Recorder(Specification):
    """What notes everything that is asked of it."""

    called: str
    fails_in: str = ""
    error: str = ""

    def note(self, what: str, trial: Trial) -> None:
        LOG.append(f"{what} {self.called} {len(trial.processes)}")
        if self.fails_in == what:
            raise ERRORS.get(self.error, PerflabError("on purpose"))


class Disturbance(Recorder, Condition):
    name: ClassVar[str] = "disturbance"

    when: str = "before"

    @property
    def begins(self) -> str:
        return self.when

    @property
    def label(self) -> str:
        return self.called

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        LOG.append(f"check {self.called}")

    def begin(self, trial: Trial) -> Applied:
        self.note("begin", trial)
        return Disturbing(self, trial)


class Disturbing(Applied):
    def __init__(self, asked: Disturbance, trial: Trial) -> None:
        self.asked, self.trial = asked, trial

    def settle(self) -> None:
        self.asked.note("settle", self.trial)

    def verify(self, window: Window) -> Evidence:
        self.asked.note("verify", self.trial)
        assert window.seconds == pytest.approx(0.6)
        reason = "too weak" if self.asked.fails_in == "in_effect" else None
        return Evidence(promised=self.asked.parameters, achieved={}, reason=reason)

    def remove(self) -> None:
        self.asked.note("remove", self.trial)


class Watcher(Recorder, Observer):
    name: ClassVar[str] = "watcher"

    def check(self, host: Host, runtime: str) -> None:
        LOG.append("check watcher")

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        LOG.append(f"configure {configuration['process']}")

    def begin(self, trial: Trial) -> Observation:
        self.note("begin", trial)
        trial.launch.environment["FAKE_SEEN"] = "yes"
        return Watching(self, trial)


class Watching(Observation):
    def __init__(self, asked: Watcher, trial: Trial) -> None:
        self.asked, self.trial = asked, trial

    def start(self) -> None:
        self.asked.note("start", self.trial)

    def stop(self) -> list[Artifact]:
        self.asked.note("stop", self.trial)
        return [Artifact(self.trial.directory / "trace", "trace")]


ERRORS: dict[str, Exception] = {
    "not in effect": NotInEffect("no load seen"),
    "broken": PerflabError("broken"),
    "unavailable": Unavailable("no stress-ng"),
}


@pytest.fixture
def log() -> list[str]:
    LOG.clear()
    return LOG


def run(native: Path, directory: TrialDirectory, signals: Signals, fake: str = "", **changes: str) -> Ended:
    trial = replace(
        plan(native, fake),
        conditions=(Disturbance(called="first"), Disturbance(called="second", when="after", **changes)),
        observers=(Watcher(called="watcher"),),
    )
    return run_trial(trial, directory, signals, lambda progress: None)


def test_the_order_of_a_good_trial(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
) -> None:
    outcome = run(native_folder, directory, signals)
    assert outcome.file.outcome == "success"
    assert log == [
        "begin watcher 0",
        "begin first 0",
        "configure ping",
        "configure pong",
        "begin second 2",
        "start watcher 2",
        "settle first 2",
        "settle second 2",
        "verify first 2",
        "verify second 2",
        "stop watcher 2",
        "remove second 2",
        "remove first 2",
    ]
    assert {label: e["in_effect"] for label, e in outcome.file.evidence.items()} == {"first": True, "second": True}
    assert [a.kind for a in outcome.file.artifacts] == ["trace"]


@pytest.mark.parametrize("phase", ["begin", "settle", "verify", "in_effect"])
def test_a_condition_that_is_not_in_effect_makes_the_trial_invalid(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
    phase: str,
) -> None:
    outcome = run(native_folder, directory, signals, fails_in=phase, error="not in effect")
    assert outcome.file.outcome == "invalid"
    assert re.fullmatch(r"(second: )?(no load seen|too weak)", outcome.file.reason or "")
    assert outcome.file.evidence["second"]["in_effect"] is False
    assert outcome.file.evidence["second"]["reason"] in ("no load seen", "too weak")
    assert (outcome.file.start_at_ns is None) == (phase in ("begin", "settle"))
    # Of one that did not begin there is nothing to remove.
    removed = ["remove second 2", "remove first 2"] if phase != "begin" else ["remove first 2"]
    assert log[-1 - len(removed) :] == ["stop watcher 2", *removed]


@pytest.mark.parametrize(("error", "kind"), [("broken", None), ("unavailable", Unavailable)])
def test_where_a_condition_cannot_begin_the_others_are_removed(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
    error: str,
    kind: type | None,
) -> None:
    outcome = run(native_folder, directory, signals, fails_in="begin", error=error)
    assert (outcome.file.outcome, outcome.file.reason) == ("harness_error", str(ERRORS[error]))
    assert kind is None or isinstance(outcome.error, kind)
    assert [line for line in log if not line.startswith("configure")][-4:] == [
        "begin first 0",
        "begin second 2",
        "stop watcher 2",
        "remove first 2",
    ]


def test_a_condition_that_stays_makes_the_trial_a_harness_error(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
) -> None:
    outcome = run(native_folder, directory, signals, fails_in="remove")
    assert outcome.file.outcome == "harness_error"
    assert outcome.file.reason == "condition second could not be removed: on purpose"
    assert log[-1] == "remove first 2"


def test_conditions_are_removed_when_the_workload_dies(
    native_folder: Path,
    directory: TrialDirectory,
    signals: Signals,
    log: list[str],
) -> None:
    assert run(native_folder, directory, signals, fake="die:pong").file.outcome == "failed"
    assert log[-3:] == ["stop watcher 2", "remove second 2", "remove first 2"]
