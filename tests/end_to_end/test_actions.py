"""Actions of a graph: what becomes of every goal is recorded, and looked at like services and topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Json, Run

# In 2 s: 8 goals of one client, each of which ends by itself, and 4 of the other one, which calls each off.
ANSWERS = {
    ("planner", "send_goal"): {"accepted": 8},
    ("planner", "get_result"): {"succeeded": 8},
    ("operator", "send_goal"): {"accepted": 4},
    ("operator", "get_result"): {"canceled": 4},
    ("operator", "cancel_goal"): {"accepted": 4},
}


def only(run: Run, out: Path, *options: str) -> Json:
    done = run("run", "action_loop", "-t", "2", *options, "-o", out)
    assert done.returncode == 0, done.stderr
    result: Json
    (result,) = json.loads((out / "summary.json").read_text())["results"]
    return result


def answers(result: Json) -> dict[tuple[str, str], Json]:
    return {(s["client"], s["service"].removeprefix("move/_action/")): s["answers"] for s in result["services"]}


def test_every_goal_is_accounted_for_on_virtual(run: Run, tmp_path: Path) -> None:
    result = only(run, tmp_path / "run", "--middleware", "virtual", "--middleware-option", "disturb.delay=1ms")
    assert answers(result) == ANSWERS
    services = {(s["client"], s["service"].removeprefix("move/_action/")): s for s in result["services"]}
    assert all(s["sent"] == s["received"] == sum(s["answers"].values()) for s in services.values())
    acceptance = services["planner", "send_goal"]["round_trip_ns"]
    assert (acceptance["min"], acceptance["max"]) == (2_000_000, 2_000_000)
    # Each of the planner's goals ends at the sixth step of 20 ms.
    feedback = {e["subscription"]: (e["sent"], e["received"], e["latency_ns"]["max"]) for e in result["edges"]}
    assert feedback["planner"][:2] == (48, 48)
    assert feedback["operator"][0] == feedback["operator"][1] > 0
    assert feedback["planner"][2] == 1_000_000
    shown = run("show", tmp_path / "run")
    assert "move/_action/get_result" in shown.stdout and "succeeded 8" in shown.stdout
    described = run("list", "topologies")
    assert "2 clients of 1 action" in described.stdout


@pytest.mark.alone  # if the cancel is 50 ms late, the goal has ended by itself
@pytest.mark.parametrize("middleware", ["cyclonedds", "shm"])
def test_the_same_goals_end_on_a_middleware(run: Run, tmp_path: Path, middleware: str) -> None:
    result = only(run, tmp_path / "run", "--middleware", middleware)
    assert answers(result) == ANSWERS
    assert sum(result["totals"]["lost"].values()) == 0
