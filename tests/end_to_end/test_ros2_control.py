"""The arm on ros2_control itself, with its mock hardware: perflab's move_group plans, joint_trajectory_controller
executes. Skipped where no ROS 2 with ros2_control is sourced."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from perflab.workload.outside import has_package

from .conftest import NATIVE, SOURCE, Run
from .ros2_control_alone import RATE

NEEDED = ("controller_manager", "joint_trajectory_controller", "joint_state_broadcaster", "rmw_cyclonedds_cpp")
TOOL = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "ros2_controllers_tool"


def _missing() -> str:
    """Why there is nothing to test on; empty if there is."""
    if not os.access(Path(NATIVE) / "perflab-move-group", os.X_OK):
        return "no perflab-move-group in PERFLAB_NATIVE; `make manipulation` installs what it needs"
    if lacking := [package for package in NEEDED if not has_package(package)]:
        return f"no ROS 2 with {lacking[0]} is sourced"
    return "" if os.access(TOOL, os.X_OK) else f"no {TOOL.name} in PERFLAB_TEST_TOOLS; build it with `make test-ros2`"


pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")]


@pytest.fixture
def stack(tmp_path: Path) -> str:
    """The command line of ros2_control with the Panda on mock hardware."""
    return f"{sys.executable} {SOURCE}/tests/end_to_end/ros2_control_alone.py {TOOL} {tmp_path}"


def arm(run: Run, out: Path, stack: str, *more: str, parameters: str = "", status: int = 0) -> Any:
    workload = f"manipulation:stack=ros2,plans=perflab,warm_plans=0{parameters},launch={stack}"
    done = run("run", workload, "--trials", "1", "-o", out, "--cool-down", "0", "-q", *more)
    assert done.returncode == status, done.stdout + done.stderr
    (result,) = json.loads((out / "summary.json").read_text())["results"]
    return result


# perflab's side, and the package without which it meets no ros2_control.
SIDES = {"cyclonedds": "rmw_cyclonedds_cpp", "fastdds": "rmw_fastrtps_cpp", "rclcpp/rmw_cyclonedds_cpp": "moveit_msgs"}


@pytest.mark.parametrize("middleware", SIDES)
def test_its_controllers_execute_what_perflab_plans(run: Run, tmp_path: Path, stack: str, middleware: str) -> None:
    if not has_package(SIDES[middleware]):
        pytest.skip(f"this ROS 2 has no {SIDES[middleware]}")
    result = arm(run, tmp_path / "run", stack, "--middleware", middleware)
    (trial,) = result["trials_detail"]
    assert (trial["outcome"], trial["own_outcome"]["name"]) == ("success", "succeeded"), trial["reason"]
    figures = result["key_figures"]
    value = {name: figure["value"] for name, figure in figures.items() if "value" in figure}
    assert value["success"] == 100
    assert value["tip_error"] < 1
    # The arm reaches commanded positions at once: time beyond the trajectory is due to the controllers and move_group.
    assert 0 < value["execution_overhead"] < 1e9
    assert value["execution"] > value["execution_nominal"] > 0
    # T3, as the loop says it of itself.
    assert value["control_seen"] > 50
    assert figures["control_period"]["of_ns"]["p50"] == pytest.approx(1e9 / RATE, rel=0.2)
    assert 0 < figures["control_execution"]["of_ns"]["p50"] < 1e9 / RATE
    assert figures["control_lateness"]["of_ns"] is None


def test_a_cancelled_motion_stops_there(run: Run, tmp_path: Path, stack: str) -> None:
    result = arm(
        run, tmp_path / "run", stack, "--middleware", "cyclonedds", parameters=",cancel_after=300ms,statistics=off"
    )
    (trial,) = result["trials_detail"]
    assert (trial["outcome"], trial["own_outcome"]["name"]) == ("success", "succeeded"), trial["reason"]
    assert 0 < result["key_figures"]["stop_seen"]["value"] < 1e9
    assert result["key_figures"]["control_period"]["of_ns"] is None


@pytest.mark.skipif(not has_package("gripper_controllers"), reason="this ROS 2 has no gripper_controllers")
def test_the_hand_of_mock_hardware_closes_on_nothing(run: Run, tmp_path: Path, stack: str) -> None:
    """Its controller's action is driven: the hand opened, and what closed said that it did not stall."""
    task = ",task=pick_and_place,statistics=off"
    result = arm(run, tmp_path / "run", f"{stack} hand", "--middleware", "cyclonedds", parameters=task, status=1)
    (trial,) = result["trials_detail"]
    assert trial["own_outcome"]["name"] == "grasp_failed", trial["reason"]
