"""`perflab run manipulation` as users run it: disturbed, with its threads scheduled, again and again, and killed."""

from __future__ import annotations

import json
import math
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from perflab.host import Host
from perflab.report.film import document
from perflab.runs.film import film

from . import traces
from .conftest import NATIVE, TIMEOUT_S, Run, kill, started

KILLS = 30

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        not os.access(Path(NATIVE) / "perflab-move-group", os.X_OK),
        reason="no perflab-move-group in PERFLAB_NATIVE; `make manipulation` installs what it needs",
    ),
]


def results_of(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())["results"]


def told(folder: Path, figure: str) -> list[float]:
    """Each value that a program reported for a figure, in its own unit."""
    lines = [line for file in folder.glob("trials/*/processes/*.jsonl") for line in file.read_text().splitlines()]
    records = [record for record in map(json.loads, lines) if record["type"] == "program"]
    return [value for record in records for value in record.get("figures", {}).get(figure, ())]


def value(result: Any, figure: str) -> float:
    return float(result["key_figures"][figure]["value"])


@pytest.mark.skipif(not Host().may_be_real_time(50), reason="needs RTPRIO 50")
def test_it_reaches_its_goal_under_a_condition_with_its_control_thread_scheduled(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = (
        "--condition",
        "cpu_load:workers=1,load=20",
        "--baseline",
        "off",
        "--thread",
        "simulator.control=FIFO:50",
    )
    workload = "manipulation:attempts=1,collision=fcl"
    done = run("run", workload, "--middleware", "fastdds", *options, "--trials", "1", "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = results_of(out)
    trial = result["trials_detail"][0]
    assert trial["outcome"] == "success"
    assert trial["own_outcome"]["name"] == "succeeded"
    assert value(result, "tip_error") < 1.0
    assert result["key_figures"]["control_period"]["of_ns"]["count"] > 500
    (control,) = [t for t in result["threads"] if t["process"] == "simulator" and t["name"] == "control"]
    assert (control["policy"], control["priority"]) == ("FIFO", 50)
    the_film_ends_at_the_goal(*(out / "trials").iterdir())


def the_film_ends_at_the_goal(trial: Path) -> None:
    """Bodies are where the simulator had them, and the tip where it was to go."""
    found = film(trial)
    assert found is not None
    assert found.tip is not None
    by_physics = dict(zip(found.tip.at_ns, found.tip.rows, strict=True))
    by_joints = dict(zip(found.joints.at_ns, document.tips(found), strict=True))
    assert len(by_physics) > 50
    # The simulator knows where bodies are at the beginning of its last step, 1 ms before.
    assert max(math.dist(by_physics[at_ns], by_joints[at_ns]) for at_ns in by_physics) < 2e-3
    assert math.dist(found.tip.rows[-1], document.tips(found)[-1]) < 1e-4
    assert math.dist(document.tips(found)[-1], found.scene.marks[0].position) < 0.02
    assert [moment.words for moment in found.moments][-1] == "goal: there"
    assert max(math.dist(document.planned_tips(found)[-1][-1], tip) for tip in by_joints.values()) > 0.2
    assert math.dist(document.planned_tips(found)[-1][-1], document.tips(found)[-1]) < 1e-3


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_it_goes_home_and_to_its_goal_twenty_times(run: Run, tmp_path: Path, middleware: str) -> None:
    out = tmp_path / "run"
    done = run("run", "manipulation:motions=20,limit=10min", "--middleware", middleware, "--trials", "1", "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = results_of(out)
    assert value(result, "success") == 100
    assert len(tips := told(out, "tip_error")) == 20
    assert max(tips) < 1e-3  # m, of each motion
    assert result["key_figures"]["total_times"]["of_ns"]["count"] == 20


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_traced_trial_tells_its_paths_its_loops_and_who_is_who(run: Run, tmp_path: Path) -> None:
    """Named paths and objectives beside a baseline; loops and the work on goals as callbacks of nodes; processes by
    their names in the graph."""
    out = tmp_path / "run"
    options = (
        "--condition",
        "cpu_load:workers=1,load=20",
        "--observer",
        "tracing:scheduler=none,trials=all,contexts=vpid,vtid,procname",
    )
    done = run("run", "manipulation:motions=2", *options, "--observer-control", "off", "--trials", "1", "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Named paths of traced trials" in done.stdout and "Objectives" in done.stdout
    baseline, loaded = results_of(out)
    paths = {path["name"]: path for path in loaded["trials_detail"][0]["paths"]}
    assert {name: path["reason"] for name, path in paths.items()} == dict.fromkeys(paths)
    assert paths["control"]["judged"] > 500 and paths["planning"]["judged"] == 2 and paths["feedback"]["judged"] > 500
    assert paths["goal"]["judged"] >= 4  # two motions, each from home
    for measure in ("median", "max", "misses"):
        found = loaded["objectives"][measure]
        assert found["baseline_total"] == baseline["objectives"][measure]["total"]
        assert found["verdict"] in ("worse", "better", "same")
        assert found["least"] is None or found["least"] <= found["ratio"] <= (found["most"] or math.inf)
    (trace,) = out.glob("trials/*cpu_load/trace")
    asked = run("trace", "callbacks", trace, "--json")
    callbacks = {row["callback"]: row for row in json.loads(asked.stdout)["callbacks"]["rows"]}
    assert {"/panda_arm_controller timer 2 ms", "/simulator timer 1 ms", "/move_group span plan"} <= set(callbacks)
    processes = {row["process"] for row in callbacks.values()}
    assert {"simulator", "move_group", "clock_bridge", "benchmark_runne", "robot_state_pub"} <= processes
    asked = run("trace", "paths", trace, "--paths", "manipulation", "--json")
    named = {row["name"]: row for row in json.loads(asked.stdout)["named"]["rows"]}
    assert {name: row["judged"] for name, row in named.items()} == {n: p["judged"] for n, p in paths.items()}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_whatever_is_killed_the_trial_has_an_outcome_and_nothing_is_left(run: Run, tmp_path: Path) -> None:
    generator = random.Random(3)
    for number in range(KILLS):
        kill_one(generator, tmp_path / f"run_{number}")


def pids(out: Path) -> dict[str, int]:
    """Of the processes of the trial that have said it."""
    return {name: p["pid"] for name, p in traces.trials(out)[-1]["processes"].items() if p["pid"] is not None}


def kill_one(generator: random.Random, out: Path) -> None:
    seen: set[traces.Identity] = set()
    workload = generator.choice(["manipulation:controller=split", "manipulation:task=sequence"])
    with started("run", workload, "--trials", "1", "--cool-down", "0", "-q", "-o", out) as process:
        traces.wait_for("a trial runs", lambda: traces.running(out), process)
        traces.wait_for("it has processes", lambda: pids(out) or None, process)
        time.sleep(generator.uniform(0.0, 4.0))
        seen |= traces.living_below(process.pid)
        running = pids(out)
        name = generator.choice(sorted(running))
        kill(running[name])
        process.communicate(timeout=TIMEOUT_S)
    traces.nothing_is_left(out, seen)
    (trial,) = traces.trials(out)
    assert (trial["status"], trial["outcome"]) == ("finished", "failed"), (name, trial["reason"])
    assert name in trial["reason"], trial["reason"]
    assert trial["own_outcome"]["name"] == f"ended_{name}", trial
    assert trial["broken_off"]["process"] == name
