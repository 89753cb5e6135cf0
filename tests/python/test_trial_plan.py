"""The plan of a trial, to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import two_processes
from test_specifications import ASKED
from test_trial import plan

from perflab.condition import Condition
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design.document import Thresholds
from perflab.design.scheduling import ThreadRequest
from perflab.design.variant import Executor, Variant
from perflab.errors import BadInput
from perflab.experiment.trial_plan import TrialPlan
from perflab.middleware import Middleware
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.runs.rundir import TrialDirectory
from perflab.workload import Graph
from perflab.workload.command import Command, CommandParameters


@pytest.fixture
def folder(tmp_path: Path) -> TrialDirectory:
    return TrialDirectory(tmp_path)


def again(trial: TrialPlan, folder: TrialDirectory) -> TrialPlan:
    trial.write(folder)
    return TrialPlan.read(folder)


def test_everything_that_a_trial_has_comes_back(folder: TrialDirectory, tmp_path: Path) -> None:
    conditions: list[Condition] = [CONDITIONS[name].make(ASKED[name][1], name) for name in CONDITIONS]
    middlewares = (
        Middleware("one", "dds", tmp_path / "one.so", "1.0", {"transport": "udp"}, wire="rtps"),
        Middleware("other", "dds", None, None, {"disturb.delay": "5ns"}, service_framings=("rmw_fastrtps",)),
    )
    trial = replace(
        plan(tmp_path, name_threads=False, threads=(ThreadRequest("ping", "executors", "FIFO", 3, (0, 1)),),
             thresholds=Thresholds(late_percentage=12.5), measure=("work",), lock_memory=True, quiet_threshold=3.5),
        variant=Variant(middlewares, Executor("multi_threaded", 2), intra_process=True, pass_by="unique"),
        conditions=(*conditions, conditions[0].numbered(2)),
        observers=tuple(OBSERVERS[name].make(ASKED[name][1], name) for name in OBSERVERS),
        seed=17,
        domain=None,
        monitored=True,
    )  # fmt: skip
    found = again(trial, folder)
    assert found == trial
    assert [c.label for c in found.conditions][-1] == f"{conditions[0].name}_2"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "sleep 1", "ready": "log:up", "stop": "SIGTERM:10s"},
        {"command": ["a", "b c"], "ready": 1.5, "environment": {"A": 1}, "ends": "itself", "tracing": False},
        {"command": "x --rate={rate}"},
    ],
)
def test_a_command_comes_back(folder: TrialDirectory, tmp_path: Path, given: dict[str, object]) -> None:
    command = Command("x", CommandParameters.model_validate(given)).set_to({"workload.argument.rate": 5})
    found = again(replace(plan(tmp_path), command=command), folder).command
    assert found == command
    assert found.parameters.directory == str(Path.cwd())  # wherever the plan is read


def test_what_is_damaged_is_one_line(folder: TrialDirectory, tmp_path: Path) -> None:
    trial = replace(plan(tmp_path), graph=Graph(two_processes()))
    trial.write(folder)
    whole = json.loads(folder.plan.read_text(encoding="utf-8"))
    for key, value, said in (
        ("schema", 99, "has schema 99, but this perflab reads 1"),
        ("settings", {"duration_ns": "long"}, "is damaged: "),
        ("conditions", [{"name": "no such", "number": 1, "parameters": {}}], "is damaged: 'no such'"),
        ("conditions", [{"name": "cpu_load", "number": 1, "parameters": {"load": 0}}], "cpu_load: load: "),
    ):
        folder.plan.write_text(json.dumps({**whole, key: value}), encoding="utf-8")
        with pytest.raises(BadInput, match=said):
            TrialPlan.read(folder)
    folder.plan.unlink()
    with pytest.raises(BadInput, match="cannot read"):
        TrialPlan.read(folder)
