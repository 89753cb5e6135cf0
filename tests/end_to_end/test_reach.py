"""The whole arm on real processes: home, plan, execute, and what its failures are called (docs/manipulation.md)."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from perflab.design.variant import EXECUTORS, OF_ROS
from perflab.workload import manipulation
from tests.marks import long_but

from .conftest import NATIVE, SOURCE, Run

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def _programs() -> None:
    if not os.access(Path(NATIVE) / "perflab-move-group", os.X_OK):
        pytest.skip(f"no perflab-move-group in {NATIVE}; `make manipulation` installs what it needs")


def reach(folder: Path, *, move_group: Any = None, simulator: Any = None, task: str = "reach", **runner: Any) -> Path:
    """The graph of the workload as a file, with these options of the runner, and further ones of other processes."""
    graph = manipulation.document(manipulation.ManipulationParameters.model_validate({"task": task}))
    processes = {process["name"]: process for process in graph["processes"]}
    processes["benchmark_runner"]["options"] = runner
    processes["move_group"]["options"] |= move_group or {}
    processes["simulator"]["options"] |= simulator or {}
    path = folder / "reach.json"
    path.write_text(json.dumps(graph))
    return path


def result_of(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())["results"][0]


def said_by_move_group(folder: Path, figure: str) -> list[float]:
    """All values of the one trial."""
    (file,) = folder.glob("trials/*/processes/move_group.jsonl")
    records = map(json.loads, file.read_text("utf-8").splitlines())
    return [value for record in records for value in record.get("figures", {}).get(figure, ())]


def figures_of(folder: Path) -> dict[str, float]:
    return {name: figure.get("value") for name, figure in result_of(folder)["key_figures"].items()}


def test_the_arm_goes_home_reaches_its_goal_and_tells_the_parts(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result_of(out)["trials_detail"][0]["outcome"] == "success"
    figures = figures_of(out)
    assert figures["success"] == 100
    assert figures["tip_error"] < 1  # mm
    # From home to this goal it takes no less, whatever plans and drives.
    assert figures["execution_nominal"] > 1.7e9  # ns
    assert figures["execution"] > figures["execution_nominal"]
    assert figures["total"] > figures["planning"] + figures["execution"]
    parts = ["state_wait", "ik", "solve", "simplify", "parameterize", "validate"]
    assert 0 < sum(figures[f"planning_{part}"] for part in parts) <= figures["planning"]
    assert figures["execution_overhead"] == pytest.approx(figures["execution"] - figures["execution_nominal"])
    cold, warm, motions = (said_by_move_group(out, f"planning{kind}") for kind in ("_cold", "_warm", ""))
    assert (len(cold), len(warm)) == (1, 3)
    assert min(*cold, *warm) > 0
    assert len(motions) == 1  # plans that nobody executes are none


LOANED = ("--middleware", "fastdds", "--middleware-option", "data_sharing=on", "--pass-by", "loaned")


@pytest.mark.parametrize(
    ("variant", "code", "words"),
    long_but(
        [(LOANED, 3, "has messages of variable size, which cannot be loaned")],
        [
            (LOANED, 3, "has messages of variable size, which cannot be loaned"),
            (("--ipc", "off,on"), 2, "--ipc on has no effect: no topic, service or action of manipulation"),
            (("--pass-by", "unique"), 2, "--pass-by unique has no effect: no message of manipulation"),
            (("--serialization", "once"), 2, "is a program, whose messages differ from each other"),
            (("--measure", "loops"), 2, "--measure loops: the graph has no loops"),
            (("--factor", "workload.keyed=on"), 2, "no type of its topics declares a key"),
            (("--middleware", "udp"), 3, "udp refuses reliability reliable"),
        ],
    ),
)
def test_what_does_not_hold_for_the_arm_is_refused_before_anything_is_written(
    run: Run, tmp_path: Path, variant: tuple[str, ...], code: int, words: str
) -> None:
    out = tmp_path / "made"
    done = run("run", "manipulation", *variant, "--output", out)
    assert (done.returncode, done.stdout, out.exists()) == (code, "", False), done.stdout + done.stderr
    assert words in done.stderr


@pytest.mark.long
def test_every_executor_holds(run: Run, tmp_path: Path) -> None:
    executors = [kind for kind in EXECUTORS if kind not in OF_ROS]
    out = tmp_path / "made"
    done = run("run", "manipulation", "--executor", ",".join(executors), "--trials", "1", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((out / "summary.json").read_text())["results"]
    assert {r["executor"]: r["key_figures"]["success"]["value"] for r in results} == dict.fromkeys(executors, 100)


@pytest.mark.long
def test_the_hand_takes_the_workpiece_into_the_bin(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run(
        "run", "manipulation:task=pick_and_place", "--trials", "1", "--middleware", "cyclonedds", "--output", out
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert figures_of(out)["success"] == 100


@pytest.mark.long
def test_a_hand_that_closes_on_nothing_is_an_outcome(run: Run, tmp_path: Path) -> None:
    scene = json.loads((SOURCE / "catalog" / "scenes" / "pick_and_place.json").read_text())
    (workpiece,) = (each for each in scene["objects"] if each["name"] == "workpiece")
    workpiece["position"][1] += 0.25
    (tmp_path / "elsewhere.json").write_text(json.dumps(scene))
    workload = f"manipulation:task=pick_and_place,scene={tmp_path / 'elsewhere.json'}"
    out = tmp_path / "made"
    done = run("run", workload, "--trials", "1", "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = result_of(out)["trials_detail"]
    assert trial["own_outcome"]["name"] == "grasp_failed", trial


@pytest.mark.long
def test_without_home_motions_are_those_within_the_goals_tolerance(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path, home=False, motions=3), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    # From home to the goal it takes 1.7 s at least; after the warm-up the arm is there.
    assert figures_of(out)["execution_nominal"] < 1.7e9


@pytest.mark.long
def test_a_motion_that_is_cancelled_ends_with_a_standstill(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run("run", reach(tmp_path, cancel_after="500ms"), "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = figures_of(out)
    assert figures["success"] == 100
    for figure in ("stop_latency", "stopping_distance", "stop_seen", "stopping_distance_seen"):
        assert figures[figure] > 0, figure


@pytest.mark.parametrize(
    ("move_group", "runner", "outcome"),
    [
        ({}, {"goal": [0.0, 0.0, 1.5], "workspace": 2.0}, "planning_failed"),
        pytest.param({}, {"goal": [0.65, 0.0, 0.18]}, "would_collide", marks=pytest.mark.long),
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


def failed(run: Run, folder: Path, workload: Path | str, *options: str) -> Any:
    """The one trial of a run that failed."""
    out = folder / "made"
    done = run("run", workload, "--trials", "1", "--middleware", "cyclonedds", *options, "--output", out)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = result_of(out)["trials_detail"]
    return trial


def test_a_motion_without_a_result_is_an_outcome(run: Run, tmp_path: Path) -> None:
    trial = failed(run, tmp_path, reach(tmp_path, timeout="1ms"))
    assert trial["own_outcome"]["name"] == "no_result", trial
    assert "move_group gave no result within 0.001" in trial["reason"]


@pytest.mark.long
def test_a_change_of_the_scene_that_cannot_be_is_an_outcome(run: Run, tmp_path: Path) -> None:
    trial = failed(run, tmp_path, reach(tmp_path, task="pick_and_place", steps=[{"attach": "nothing"}]))
    assert trial["own_outcome"]["name"] == "scene_rejected", trial
    assert "nothing" in trial["reason"]


@pytest.mark.long
def test_an_arm_that_is_not_heard_is_an_outcome(run: Run, tmp_path: Path) -> None:
    options = ("--middleware-option", "disturb.loss=1", "--middleware-option", "disturb.topic=joint_states")
    trial = failed(run, tmp_path, reach(tmp_path, ready_limit="500ms"), *options)
    assert trial["own_outcome"]["name"] == "no_state", trial
    assert "no fresh state of the joints came within 0.5" in trial["reason"]


def weaker(folder: Path, upper: float) -> str:
    """The robot with less room for its first joint, of which the simulator alone knows."""
    made = folder / "robot"
    shutil.copytree(SOURCE / "catalog" / "robots" / "panda", made)
    urdf = made / "panda.urdf"
    text = urdf.read_text()
    begin = text.index('<joint name="panda_joint1"')
    urdf.write_text(text[:begin] + text[begin:].replace('upper="2.8973"', f'upper="{upper}"', 1))
    return str(made)


@pytest.mark.long
def test_an_arm_that_does_not_come_home_is_an_outcome(run: Run, tmp_path: Path) -> None:
    trial = failed(run, tmp_path, reach(tmp_path, simulator={"robot": weaker(tmp_path, -0.05)}))
    assert trial["own_outcome"]["name"] == "home_failed", trial
    assert "panda_joint1 is 0.05" in trial["reason"]


@pytest.mark.long
def test_a_tip_that_ends_beside_its_goal_is_an_outcome(run: Run, tmp_path: Path) -> None:
    trial = failed(run, tmp_path, reach(tmp_path, simulator={"robot": weaker(tmp_path, 0.1)}))
    assert trial["own_outcome"]["name"] == "goal_missed", trial
    assert "m from the goal" in trial["reason"]


@pytest.mark.long
def test_a_box_in_the_hand_that_meets_something_is_a_collision_with_both_names(run: Run, tmp_path: Path) -> None:
    """A beam of which the simulator alone knows, below the fingers and in the way of the box."""
    scene = json.loads((SOURCE / "catalog" / "scenes" / "pick_and_place.json").read_text())
    scene["objects"].append({"name": "beam", "box": [0.4, 0.02, 0.02], "position": [0.5, 0.08, 0.35]})
    (tmp_path / "beam.json").write_text(json.dumps(scene))
    graph = manipulation.document(manipulation.ManipulationParameters.model_validate({"task": "pick_and_place"}))
    graph["processes"][0]["options"]["scene"] = str(tmp_path / "beam.json")
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    trial = failed(run, tmp_path, tmp_path / "graph.json")
    assert trial["own_outcome"]["name"] == "collision", trial
    assert "workpiece touched beam" in trial["reason"]


@pytest.mark.long
def test_a_trial_whose_limit_comes_says_which_step_had_not_ended(run: Run, tmp_path: Path) -> None:
    trial = failed(run, tmp_path, "manipulation:limit=3s,velocity_scaling=0.01,warm_plans=0")
    assert trial["own_outcome"]["name"] == "unended_execution", trial
    assert "did not end the measured part within its limit of 3 s" in trial["reason"]
    assert re.search(r"move_group: at \d+ % of a trajectory of \d+ ms to goal", trial["reason"])


@pytest.mark.long
def test_a_second_writer_of_the_joints_is_named(run: Run, tmp_path: Path) -> None:
    """What a stale controller of another stack does: positions of two arms, one after the other."""
    path = reach(tmp_path)
    graph = json.loads(path.read_text())
    second = {"topic": "/joint_states", "type": "sensor_msgs/msg/JointState", "size": 1, "period": "5ms"}
    graph["processes"].insert(0, {"name": "stale", "nodes": [{"name": "stale_broadcaster", "publishers": [second]}]})
    path.write_text(json.dumps(graph))
    out = tmp_path / "made"
    done = run("run", path, "--trials", "1", "--middleware", "cyclonedds", "--output", out)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = result_of(out)["trials_detail"]
    assert trial["own_outcome"]["name"] == "stack_not_ready", trial
    assert "joint_state_broadcaster and /stale_broadcaster" in trial["reason"]
