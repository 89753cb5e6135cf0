"""priority_inhibitor on made monitor data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial, S, graph_of

from perflab.condition import AFTER, BEFORE, NotInEffect, Window
from perflab.condition import priority_inhibitor as module
from perflab.condition.priority_inhibitor import KIND, PriorityInhibitor
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.models import as_json
from perflab.real_time import RealTimeLimits

WINDOW = Window(S, 4 * S)
READY = {"type": "ready", "threads": [{"tid": 31, "policy": "FIFO", "priority": 80, "cpus": [1]}]}


@pytest.fixture(autouse=True)
def native_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "native"
    folder.mkdir()
    (folder / "perflab-burn").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "perflab-burn").chmod(0o755)
    monkeypatch.setenv("PERFLAB_NATIVE", str(folder))
    monkeypatch.setattr("perflab.condition.evidence.allowed_cpus", lambda: (0, 1))
    monkeypatch.setattr(module, "allowed_cpus", lambda: (0, 1))
    monkeypatch.setattr(module, "real_time_limits", lambda: RealTimeLimits(0.95, None, 0.0, True))


def made(**parameters: Any) -> PriorityInhibitor:
    condition = KIND.make(parameters, "priority_inhibitor")
    assert isinstance(condition, PriorityInhibitor)
    return condition


def state(**changed: Any) -> dict[str, Any]:
    return {"policy": "FIFO", "priority": 80, "nice": 0, "cpus": [1], **changed}


def verified(
    tmp_path: Path, monitor: MadeMonitor, condition: PriorityInhibitor | None = None, **samples: Any
) -> dict[str, Any]:
    condition = condition or made(priority=80, load=50)
    companion = MadeCompanion(condition.label, 30, [READY])
    trial = MadeTrial(tmp_path, monitor.samples(51, **samples).reader(), companion)
    return dict(as_json(condition.begin(trial).verify(WINDOW)))


def monitor(tmp_path: Path, **changed: Any) -> MadeMonitor:
    return MadeMonitor(tmp_path / "m.jsonl").thread("priority_inhibitor", 31, **state(**changed))


def test_a_burner_with_its_policy_priority_and_load_is_in_effect(tmp_path: Path) -> None:
    evidence = verified(tmp_path, monitor(tmp_path), cpu=lambda tid, i: 0.5)
    assert evidence["in_effect"], evidence
    assert evidence["promised"]["cpus"] == [1]
    assert evidence["achieved"]["threads"][0]["cpus_used"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"policy": "OTHER", "priority": 0},
            "thread 31 of perflab-burn had policy OTHER instead of FIFO, 1.5 s into the measured time",
        ),
        ({"priority": 5}, "thread 31 of perflab-burn had priority 5 instead of 80, 1.5 s into the measured time"),
        ({"cpus": [0]}, "thread 31 of perflab-burn had cpus 0 instead of 1, 1.5 s into the measured time"),
        ({"cpus": [0, 1]}, "thread 31 of perflab-burn had cpus 0,1 instead of 1, 1.5 s into the measured time"),
    ],
)
def test_another_state_for_a_moment_is_seen(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    made_monitor = monitor(tmp_path)
    made_monitor.thread("priority_inhibitor", 31, at=25, **state(**changed))
    made_monitor.thread("priority_inhibitor", 31, at=26, **state())
    assert verified(tmp_path, made_monitor, cpu=lambda tid, i: 0.5)["reason"] == reason


def test_a_burner_that_slept_for_a_second_is_seen(tmp_path: Path) -> None:
    evidence = verified(tmp_path, monitor(tmp_path), cpu=lambda tid, i: 0.5 if i <= 20 or i > 30 else 0.0)
    assert evidence["reason"].startswith("CPU 1: thread 31 of it wanted 0% of a CPU instead of 50% in part 2 of 3")


def test_real_time_throttling_is_allowed_for(tmp_path: Path) -> None:
    full = made(priority=80)
    assert verified(tmp_path, monitor(tmp_path), full, cpu=lambda tid, i: 0.95)["in_effect"]
    assert verified(tmp_path, monitor(tmp_path), full, cpu=lambda tid, i: 0.95 * 0.84)["in_effect"] is False


@pytest.mark.parametrize(
    ("limits", "least"),
    [
        (RealTimeLimits(0.95, None, 0.05, True), 0.95),
        (RealTimeLimits(1.0, None, 0.2, False), 0.8),  # not throttled, and the fair server takes more than it does
        (RealTimeLimits(1.0, None, 0.0, False), 1.0),
        (RealTimeLimits(1.0, None, None, False), 0.95),
        (RealTimeLimits(None, None, None, None), 0.95),
    ],
)
def test_what_the_kernel_may_keep_from_real_time_threads_is_not_asked_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: RealTimeLimits, least: float
) -> None:
    monkeypatch.setattr(module, "real_time_limits", lambda: limits)
    full = made(priority=80)
    evidence = verified(tmp_path, monitor(tmp_path), full, cpu=lambda tid, i: least)
    assert evidence["in_effect"], evidence
    assert evidence["achieved"]["real_time_share"] == limits.throttle
    assert evidence["achieved"]["fair_server_share"] == limits.fair_server
    assert verified(tmp_path, monitor(tmp_path), full, cpu=lambda tid, i: least * 0.84)["in_effect"] is False


def test_a_thread_that_the_monitor_did_not_see_is_named(tmp_path: Path) -> None:
    other = MadeMonitor(tmp_path / "m.jsonl").thread("priority_inhibitor", 99, **state())
    reason = verified(tmp_path, other, cpu=lambda tid, i: 0.5)["reason"]
    assert reason == "the monitor has no sample of thread 31 of perflab-burn"


def test_the_watchdog_is_named(tmp_path: Path) -> None:
    condition = made(priority=80, load=50, limit="5s")
    companion = MadeCompanion(condition.label, 30, [READY])
    trial = MadeTrial(tmp_path, monitor(tmp_path).samples(51, cpu=lambda tid, i: 0.5).reader(), companion)
    burning = condition.begin(trial)
    companion.status = 0
    companion.said.append({"type": "done", "cpu_ns": 1, "limit_reached": True})
    reason = as_json(burning.verify(WINDOW))["reason"]
    assert reason == "the watchdog ended perflab-burn after 5 s: raise limit"
    burning.remove()
    assert companion.stopped == 1


def test_what_the_kernel_refuses_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_LIMIT_S", 1.0)
    said = [{"type": "error", "kind": "unsupported", "text": "policy FIFO: Operation not permitted"}]
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), MadeCompanion("x", 30, said))
    with pytest.raises(Unavailable, match="priority_inhibitor: policy FIFO: Operation not permitted"):
        made().begin(trial)
    silent = MadeTrial(tmp_path, trial.monitor, MadeCompanion("x", 30))
    with pytest.raises(NotInEffect, match="perflab-burn was not ready within 1 s"):
        made().begin(silent)


def test_before_or_after_the_workload() -> None:
    assert made().begins == BEFORE
    assert made(when="after").begins == AFTER


def test_defaults_are_filled_in_and_can_be_given_again() -> None:
    parameters = made().parameters
    assert parameters == {
        "policy": "FIFO",
        "priority": 50,
        "nice": 0,
        "cpus": [1],
        "load": 100.0,
        "when": "before",
        "amount": None,
        "limit": "600s",
    }
    assert made(**parameters).parameters == parameters
    assert made(policy="OTHER").priority == 0


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"policy": "FIFO", "priority": 0}, "priority of FIFO must be 1 to 99, not 0"),
        ({"policy": "OTHER", "priority": 5}, "priority of OTHER must be 0, not 5; use nice"),
        ({"policy": "RR", "nice": 5}, "nice has no effect with RR; use priority"),
        ({"policy": "IDLE"}, "policy: 'IDLE' is not OTHER, FIFO or RR"),
        ({"priority": 100}, "priority: 100 must be at most 99"),
        ({"limit": "10ms"}, "limit: 10ms must be at least 1s"),
        ({"when": "never"}, "when: 'never' is not before or after"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=f"^priority_inhibitor: {complaint}"):
        made(**parameters)


@pytest.mark.parametrize(
    ("capabilities", "limit", "allowed"),
    [
        ("000001ffffffffff", "0", True),
        ("0", "0", False),
        ("0", "98", True),
        ("0", "79", False),
        ("0", "unlimited", True),
    ],
)
def test_who_may_have_real_time_priorities(tmp_path: Path, capabilities: str, limit: str, allowed: bool) -> None:
    folder = tmp_path / "proc/self"
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tx\nCapEff:\t{capabilities}\n", encoding="utf-8")
    (folder / "limits").write_text(f"Max realtime priority     {limit}   {limit}\n", encoding="utf-8")
    assert Host(tmp_path).may_be_real_time(80) is allowed
    if not allowed:
        with pytest.raises(Unavailable, match="this user may not use FIFO 80"):
            made(priority=80).check(Host(tmp_path), graph_of("a"), "dds")
