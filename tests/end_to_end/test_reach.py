"""The whole arm on real processes: home, plan, execute, and what its failures are called (docs/manipulation.md)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import NATIVE, SOURCE, Run

pytestmark = pytest.mark.alone

REACH = SOURCE / "tests" / "programs" / "reach.yaml"


@pytest.fixture(autouse=True)
def _programs() -> None:
    if not os.access(Path(NATIVE) / "perflab-move-group", os.X_OK):
        pytest.skip(f"no perflab-move-group in {NATIVE}; `make manipulation` installs what it needs")


def reach(folder: Path, *, move_group: dict[str, Any] | None = None, **runner: Any) -> Path:
    """The graph with these options of the runner, and of move_group."""
    graph = yaml.safe_load(REACH.read_text())
    processes = {process["name"]: process for process in graph["processes"]}
    processes["runner"]["options"] = runner
    processes["move_group"]["options"] |= move_group or {}
    path = folder / "reach.yaml"
    path.write_text(yaml.safe_dump(graph))
    return path


def result_of(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())["results"][0]


def figures_of(folder: Path) -> dict[str, float]:
    return {name: figure.get("value") for name, figure in result_of(folder)["key_figures"].items()}


def test_the_arm_goes_home_reaches_its_goal_and_tells_the_parts(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result_of(out)["trials_detail"][0]["outcome"] == "success"
    figures = figures_of(out)
    assert figures["success"] == 1
    assert figures["tip_error"] < 0.001
    # From home to this goal it takes no less, whatever plans and drives.
    assert figures["execution_nominal"] > 1.7
    assert figures["execution"] > figures["execution_nominal"]
    assert figures["total"] > figures["planning"] + figures["execution"]
    parts = ["state_wait", "ik", "solve", "simplify", "parameterize", "validate"]
    assert 0 < sum(figures[f"planning_{part}"] for part in parts) <= figures["planning"]
    assert figures["execution_overhead"] == pytest.approx(figures["execution"] - figures["execution_nominal"])


def step(name: str, *at: float) -> dict[str, Any]:
    """The hand looks down at a place between its fingers."""
    pose = {"link": "panda_hand_tcp", "orientation": [1, 0, 0, 0], "radius": 0.002, "orientation_tolerance": 0.01}
    return {"name": name, "goal": list(at)} | pose


def pick_and_place(folder: Path) -> Path:
    """The graph with a gripper, and steps that put the workpiece into the bin."""
    graph = yaml.safe_load(REACH.read_text())
    processes = {process["name"]: process for process in graph["processes"]}
    gripper = "control_msgs/action/GripperCommand"
    processes["simulator"]["options"] = {"scene": "pick_and_place", "gripper": True}
    processes["simulator"]["nodes"].append(
        {"name": "panda_hand_controller", "action_servers": [{"action": "~/gripper_cmd", "type": gripper}]}
    )
    processes["move_group"]["options"]["scene"] = "pick_and_place"
    (runner,) = processes["runner"]["nodes"]
    runner["action_clients"].append({"action": "/panda_hand_controller/gripper_cmd", "type": gripper})
    runner["clients"] = [{"service": "/apply_planning_scene", "type": "moveit_msgs/srv/ApplyPlanningScene"}]
    steps: list[dict[str, Any]] = [{"grip": 0.04}, step("above", 0.5, 0.2, 0.37), step("grasp", 0.5, 0.2, 0.26)]
    steps += [{"grip": 0.0}, {"attach": "workpiece"}, {"allow": ["workpiece", "table"]}, step("lift", 0.5, 0.2, 0.4)]
    steps += [{"forbid": ["workpiece", "table"]}, step("over", 0.5, -0.3, 0.45), step("place", 0.5, -0.3, 0.275)]
    steps += [{"grip": 0.04}, {"detach": "workpiece"}, step("retreat", 0.5, -0.3, 0.45)]
    # What does not pass validation is planned again.
    processes["runner"]["options"] = {"steps": steps, "replan": 10}
    path = folder / "pick.yaml"
    path.write_text(yaml.safe_dump(graph))
    return path


@pytest.mark.long
def test_the_hand_takes_the_workpiece_into_the_bin(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", pick_and_place(tmp_path), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert figures_of(out)["success"] == 1


@pytest.mark.long
def test_without_home_motions_are_those_within_the_goals_tolerance(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path, home=False, motions=3), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    # From home to the goal it takes 1.7 s at least; after the warm-up the arm is there.
    assert figures_of(out)["execution_nominal"] < 1.7


@pytest.mark.long
def test_a_motion_that_is_cancelled_ends_with_a_standstill(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path, cancel_after="500ms"), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = figures_of(out)
    assert figures["success"] == 1
    assert figures["stop_latency"] > 0
    assert figures["stopping_distance"] >= 0


@pytest.mark.parametrize(
    ("move_group", "runner", "outcome"),
    [
        ({}, {"goal": [0.0, 0.0, 1.5], "workspace": 2.0}, "planning_failed"),
        pytest.param({}, {"goal": [0.65, 0.0, 0.18]}, "collision", marks=pytest.mark.long),
        pytest.param({"duration_scaling": 0.0}, {}, "execution_timeout", marks=pytest.mark.long),
        pytest.param({}, {"planner": "RRTstar", "planning_time": 0.001}, "planning_timeout", marks=pytest.mark.long),
    ],
)
def test_what_fails_is_an_outcome_with_moveits_code(
    run: Run, tmp_path: Path, move_group: dict[str, Any], runner: dict[str, Any], outcome: str
) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path, move_group=move_group, **runner), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = result_of(out)["trials_detail"]
    assert outcome in json.dumps(trial), trial
