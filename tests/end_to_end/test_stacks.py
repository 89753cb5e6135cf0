"""The arm's runner on stacks that are not perflab's. The double of such a stack is perflab's own, run by another
process (graph_alone.py): the same names, types and actions as MoveIt's and ros2_control's."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perflab import native
from perflab.experiment import domain
from perflab.workload import manipulation, topology
from perflab.workload.manipulation import ManipulationParameters

from .conftest import NATIVE, SOURCE, Run, environment

QUIETLY = ("--cool-down", "0", "-q")

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        not os.access(Path(NATIVE) / "perflab-move-group", os.X_OK),
        reason="no perflab-move-group in PERFLAB_NATIVE; `make manipulation` installs what it needs",
    ),
]


def double(folder: Path, **parameters: Any) -> list[str]:
    """The command line of the double, which expects the processes that are perflab's in a trial."""
    made = manipulation.document(ManipulationParameters.model_validate({}))
    attached = {"stack": "attached", **(parameters or {"sim_time": True})}
    met = manipulation.document(ManipulationParameters.model_validate(attached))["processes"]
    expected = {p["name"]: {"name": p["name"], "program": "outside", "nodes": p["nodes"]} for p in met}
    expected.pop("stack")
    others = [p for p in made["processes"] if p["name"] not in expected]
    graph = {**made, "processes": [*others, *expected.values()]}
    del graph["limit"]
    programs = native.find()
    template = {
        "schema": 1,
        "graph": topology.resolved(graph, programs).document,
        "runtime": "dds",
        "middleware": {"name": "cyclonedds", "library": str(programs.folder / "middleware/cyclonedds.so")},
        "duration_ns": 120_000_000_000,
        "discovery_timeout_ns": 120_000_000_000,
    }
    path = folder / "template.json"
    path.write_text(json.dumps(template))
    return [sys.executable, str(SOURCE / "tests/end_to_end/graph_alone.py"), f"{NATIVE}/perflab-node", str(path)]


def free_domain() -> str:
    """One that no run holds now, nor soon: runs take the lowest ones first."""
    with domain.hold(random.choice(domain.DOMAINS[len(domain.DOMAINS) // 2 :])) as number:
        return str(number)


def the_result(out: Path) -> Any:
    (result,) = json.loads((out / "summary.json").read_text())["results"]
    return result


def check(result: Any, own_planner: bool = False) -> None:
    """It reached its goal, with the figures that a client can tell, and no others."""
    (trial,) = result["trials_detail"]
    assert (trial["outcome"], trial["own_outcome"]["name"]) == ("success", "succeeded"), trial["reason"]
    figures = {name: figure["value"] for name, figure in result["key_figures"].items() if "value" in figure}
    assert figures["success"] == 100 and figures["tip_error"] < 1
    assert 0 < figures["planning_seen"] < figures["total"]
    assert figures["execution_seen"] > figures["execution_overhead_seen"] > 0
    assert {figures.get(name) is not None for name in ("planning", "execution")} == {own_planner}
    assert figures.get("real_time_factor") is None
    # The loop's 2 ms, as its statistics say it.
    assert figures["control_seen"] > 50
    loop = {name: result["key_figures"][name]["of_ns"] for name in ("control_period", "control_execution")}
    assert loop["control_period"]["p50"] == pytest.approx(2e6, rel=0.2)
    assert 0 < loop["control_execution"]["p50"] < 2e6
    assert result["key_figures"]["control_lateness"]["of_ns"] is None


def test_a_stack_that_a_command_line_starts_is_discovered_moves_and_is_ended(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    workload = f"manipulation:stack=ros2,sim_time=on,warm_plans=0,launch={' '.join(double(tmp_path))}"
    done = run("run", workload, "--trials", "1", "-o", out, *QUIETLY)
    assert done.returncode == 0, done.stdout + done.stderr
    check(the_result(out))
    (trial,) = (path for path in out.glob("trials/*/trial.json"))
    (stack,) = (c for c in json.loads(trial.read_text())["companions"] if c["name"] == "stack")
    assert stack["status"] == 0
    records = [str(path) for path in trial.parent.glob("own/*.jsonl")]
    assert len(records) == 4
    alive = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not [line for line in alive if str(trial.parent / "own").encode() in line]


@pytest.mark.long
def test_perflabs_move_group_plans_for_controllers_that_a_command_line_starts(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    stack = " ".join(double(tmp_path, plans="perflab", sim_time=True))
    workload = f"manipulation:stack=ros2,plans=perflab,sim_time=on,warm_plans=0,launch={stack}"
    done = run("run", workload, "--trials", "1", "-o", out, *QUIETLY)
    assert done.returncode == 0, done.stdout + done.stderr
    check(the_result(out), own_planner=True)


@pytest.mark.long
def test_perflabs_controllers_execute_what_a_command_line_plans(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    stack = " ".join(double(tmp_path, executes="perflab"))
    workload = f"manipulation:stack=ros2,executes=perflab,warm_plans=0,launch={stack}"
    done = run("run", workload, "--trials", "1", "-o", out, *QUIETLY)
    assert done.returncode == 0, done.stdout + done.stderr
    result = the_result(out)
    (trial,) = result["trials_detail"]
    assert (trial["outcome"], trial["own_outcome"]["name"]) == ("success", "succeeded"), trial["reason"]
    figures = {name: figure["value"] for name, figure in result["key_figures"].items() if "value" in figure}
    assert figures["success"] == 100
    assert figures["planning"] is None
    assert figures["real_time_factor"] == pytest.approx(1, abs=0.2)
    assert result["key_figures"]["control_lateness"]["of_ns"]["p50"] > 0


@pytest.mark.long
def test_a_stack_that_runs_already_is_used_and_left_alone(run: Run, tmp_path: Path) -> None:
    number = free_domain()
    (tmp_path / "theirs").mkdir()
    variables = environment(ROS_DOMAIN_ID=number, PERFLAB_TRIAL=str(tmp_path / "theirs"))
    with subprocess.Popen(double(tmp_path), env=variables, stdout=subprocess.DEVNULL) as stack:
        try:
            out = tmp_path / "run"
            workload = "manipulation:stack=attached,sim_time=on,warm_plans=0"
            done = run("run", workload, "--domain", number, "--trials", "1", "-o", out, *QUIETLY)
            assert done.returncode == 0, done.stdout + done.stderr
            check(the_result(out))
            assert stack.poll() is None
        finally:
            stack.send_signal(2)


def test_a_stack_that_is_not_there_is_one_line(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    workload = "manipulation:stack=attached,ready_within=1s"
    done = run("run", workload, "--trials", "1", "-o", out, *QUIETLY)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "name its domain with --domain" in done.stderr
    number = free_domain()
    done = run("run", workload, "--domain", number, "--trials", "1", "-o", out, *QUIETLY)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = the_result(out)["trials_detail"]
    assert trial["outcome"] == "failed"
    assert "not matched within 1 s: /benchmark_runner" in trial["reason"]
    assert "stack should already run in domain" in trial["reason"]
    assert "needs statistics=off" in trial["reason"]


def test_a_stack_that_ends_while_it_should_run_is_a_failure(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    workload = "manipulation:stack=ros2,launch=sh -c 'echo no controller; exit 3'"
    done = run("run", workload, "--trials", "1", "-o", out, *QUIETLY)
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = the_result(out)["trials_detail"]
    assert trial["outcome"] == "failed"
    assert "exited with 3" in trial["reason"] and "no controller" in trial["reason"]


def test_what_is_not_installed_is_said_before_the_first_trial(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", "manipulation:stack=ros2,launch=no_such_stack now", "--trials", "1", "-o", out)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "unavailable: stack of manipulation: no program 'no_such_stack' in PATH" in done.stderr
    assert not out.exists()
