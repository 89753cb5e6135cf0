"""The arm without a planner: a client sends it a trajectory by FollowJointTrajectory, over DDS, in real time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from perflab.workload import manipulation

from .conftest import NATIVE, SOURCE, Run

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        not os.access(Path(NATIVE) / "perflab-simulator", os.X_OK),
        reason="perflab-simulator is not built; `make manipulation` installs what it needs",
    ),
]

SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
PATH_TOLERANCE_VIOLATED = -4


def graph(task: str = "reach", controller: str = "embedded", **client: Any) -> dict[str, Any]:
    """The workload's graph with tests/programs/arm_client.yaml instead of planner and runner, and these options of
    the client."""
    asked = manipulation.ManipulationParameters.model_validate({"task": task, "controller": controller})
    stack = manipulation.document(asked)
    other: dict[str, Any] = yaml.safe_load((SOURCE / "tests" / "programs" / "arm_client.yaml").read_text("utf-8"))
    other["processes"][0]["options"].update(client)
    kept = [process for process in stack["processes"] if process["name"] not in ("move_group", "benchmark_runner")]
    return {**stack, **other, "figures": stack["figures"] | other["figures"], "processes": kept + other["processes"]}


def figures_of(run: Run, folder: Path, document: dict[str, Any], middleware: str, code: int = 0) -> dict[str, Any]:
    """Each figure that a process told in the one trial, by its name, and the outcome where there was one."""
    path = folder / "arm.json"
    path.write_text(json.dumps(document), "utf-8")
    done = run("run", path, "--middleware", middleware, "--trials", "1", "--cool-down", "0", "--output", folder / "run")
    assert done.returncode == code, done.stdout + done.stderr
    told: dict[str, Any] = {}
    for file in (folder / "run").glob("trials/*/processes/*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            record = json.loads(line)
            for name, values in record.get("figures", {}).items() if record["type"] == "program" else ():
                told.setdefault(name, []).extend(values)
            if record.get("outcome"):
                told["outcome"] = record["outcome"]["name"]
    return told


def test_a_trajectory_is_followed_to_its_end(run: Run, tmp_path: Path) -> None:
    told = figures_of(run, tmp_path, graph(), "cyclonedds")
    assert (told["accepted"], told["status"], told["error_code"]) == ([1], [SUCCEEDED], [0])
    assert told["off"][0] < 1e-3
    assert told["described"] == [1]
    # 1.5 s of the robot's time, and some cycles of 2 ms until the joints stand still.
    assert 1.5 <= told["execution_controller"][0] < 1.6
    assert told["took"][0] >= told["execution_controller"][0] * 0.9
    assert told["tracking_max"][0] < 0.05
    assert 1 <= told["path_ratio"][0] + 1e-3 < 1.1
    assert told["feedbacks"][0] >= 1
    assert told["real_time_factor"][0] > 0
    assert "outcome" not in told


@pytest.mark.long
def test_controllers_of_a_process_of_their_own_stop_the_arm_where_its_goal_is_cancelled(
    run: Run, tmp_path: Path
) -> None:
    told = figures_of(run, tmp_path, graph(controller="split", cancel_after="500ms"), "fastdds")
    assert (told["accepted"], told["status"], told["error_code"]) == ([1], [CANCELED], [0])
    assert told["off"][0] > 0.01  # it was on its way
    assert told["execution_controller"][0] < 1.5
    assert told["stop_latency"][0] > 0
    assert told["stopping_distance"][0] > 0


def asking_the_manager(controller: str) -> dict[str, Any]:
    """The graph with a client of /controller_manager instead of the arm's."""
    document = graph(controller=controller)
    client = document["processes"][-1]
    nodes = (node for process in document["processes"] for node in process["nodes"])
    (manager,) = (node for node in nodes if node["name"] == "controller_manager")
    said = ("statistics/names", "statistics/values", "introspection_data/full")
    heard = [dict(of) for of in manager["publishers"] if of["topic"].removeprefix("~/") in said]
    node = {
        "name": "manager_client",
        "subscriptions": [of | {"topic": of["topic"].replace("~", "/controller_manager")} for of in heard],
        "clients": [of | {"service": of["service"].replace("~", "/controller_manager")} for of in manager["servers"]],
        "action_clients": client["nodes"][0]["action_clients"],
    }
    client.update({"program": "perflab-manager-client", "options": {}, "nodes": [node]})
    for name in ANSWERS:
        document["figures"][name] = {"words": "what the controller manager answered"}
    return document


def published(folder: Path, process: str) -> dict[str, int]:
    """How many messages the process sent, by topic."""
    (file,) = (folder / "run").glob(f"trials/*/processes/{process}.jsonl")
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    last = [record for record in records if record["type"] == "checkpoint"][-1]
    return {of["topic"]: of["publish_call"]["count"] for of in last["publishers"]}


ANSWERS = {"types": 2, "components": 1, "claimed": 7, "active": 2, "off": 1, "off_again": 0, "claimed_off": 0,
           "active_off": 1, "accepted": 0, "on": 1, "active_on": 2, "off_moving": 1, "status": ABORTED}  # fmt: skip
MEASURED = ("periodicity", "total_time", "joint")


@pytest.mark.parametrize("controller", ["embedded", pytest.param("split", marks=pytest.mark.long)])
def test_the_controller_manager_says_what_there_is_and_switches_it(run: Run, tmp_path: Path, controller: str) -> None:
    document = asking_the_manager(controller)
    for name in MEASURED:
        document["figures"][name] = {"words": "what it publishes"}
    told = figures_of(run, tmp_path, document, "cyclonedds" if controller == "embedded" else "fastdds", code=1)
    assert {name: told[name][0] for name in ANSWERS} == ANSWERS
    assert told["outcome"] == "goal_rejected"  # by the controller that was not active
    assert told["periodicity"][0] > 0
    assert told["total_time"][0] > 0
    assert told["joint"][0] == pytest.approx(-2.356, abs=0.01)  # panda_joint4 where the arm begins
    sent = published(tmp_path, "simulator" if controller == "embedded" else "controller_manager")
    assert sent["/controller_manager/statistics/values"] >= 200
    assert sent["/controller_manager/statistics/full"] == 0  # nobody listens


@pytest.mark.long
def test_a_joint_that_leaves_the_path_is_an_outcome_with_its_reason(run: Run, tmp_path: Path) -> None:
    told = figures_of(run, tmp_path, graph(path_tolerance=0.002), "cyclonedds", code=1)
    assert (told["status"], told["error_code"]) == ([ABORTED], [PATH_TOLERANCE_VIOLATED])
    assert told["outcome"] == "path_tolerance"


@pytest.mark.long
def test_the_hand_closes_on_a_box_and_stops_at_its_edges(run: Run, tmp_path: Path) -> None:
    above = [0.0394, -0.0654, 0.3329, -2.0054, 0.0229, 1.9435, 1.1487]
    around = [0.0546, 0.0535, 0.3285, -2.1907, -0.0220, 2.2412, 1.1818]
    document = graph("pick_and_place", via=above, to=around, within="3s", grip=0.01)
    action = {"action": manipulation.GRIPPER, "type": "control_msgs/action/GripperCommand"}
    document["processes"][-1]["nodes"][0]["action_clients"].append(action)
    told = figures_of(run, tmp_path, document, "cyclonedds")
    assert (told["status"], told["grip_status"], told["stalled"]) == ([SUCCEEDED], [SUCCEEDED], [1])
    assert told["opening"][0] == pytest.approx(0.025, abs=0.002)  # half of the box
    assert "outcome" not in told
