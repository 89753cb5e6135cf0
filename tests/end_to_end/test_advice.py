"""Advice on priorities with the real programs: what it says of a short sweep; its file for Cyclone DDS holds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perflab.middleware import thread_settings
from perflab.middleware.kind import ThreadsWanted

from .conftest import NATIVE, Run

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0 or len(CPUS) < 2, reason="real-time priorities above all need root, and the rest another CPU"
    ),
    pytest.mark.skipif(
        not (Path(NATIVE) / "middleware/cyclonedds.so").is_file(), reason="the plug-in cyclonedds was not built"
    ),
]


def test_cyclone_dds_takes_the_file_and_all_its_threads_have_the_priority(run: Run, tmp_path: Path) -> None:
    names = ("gc", "dq.builtins", "dq.user", "tev", "recv", "recvUC")
    (settings,) = thread_settings("cyclonedds", ThreadsWanted("RR", 41, (), names, "0.10.2"))
    (tmp_path / "cyclonedds.xml").write_text(settings.text)
    done = run(
        "run", "pingpong:loops=20", "--middleware", "cyclonedds", "--cool-down", "0",
        "--middleware-option", "cyclonedds.config=cyclonedds.xml", "--output", tmp_path / "run", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    threads = [thread for thread in result["threads"] if thread["role"] == "middleware"]
    assert {thread["name"] for thread in threads} == {*names} - {"recvUC"}
    assert {(thread["policy"], thread["priority"]) for thread in threads} == {("FIFO", 41)}


@pytest.mark.alone
@pytest.mark.long
def test_a_short_sweep_gives_advice_that_is_tried_again(run: Run, tmp_path: Path) -> None:
    cpu = CPUS[-1]
    experiment = {
        "workload": {"pingpong": {"pattern": "2e", "loops": 100}},
        "middlewares": ["cyclonedds"],
        "trials": 1,
        "assignments": {
            "below": [f"executors=RR:98@{cpu}", f"middleware=OTHER@{cpu}"],
            "above": [f"executors=RR:98@{cpu}", f"middleware=RR:98@{cpu}"],
        },
        "factors": {"workload.threads": ["below", "above"]},
        "conditions": [
            {"priority_inhibitor": {"policy": "RR", "priority": 90, "cpus": cpu, "when": "after", "amount": "8s"}}
        ],
        "baseline": False,
        "cool_down": {"limit": 0},
    }
    (tmp_path / "sweep.yaml").write_text(json.dumps(experiment))
    run("run", "sweep.yaml", "--output", tmp_path / "run")
    said = run("advise", "realtime", tmp_path / "run", "--below", "90%", "--try", "--trials", "1", "--json")
    document = json.loads(said.stdout)
    (situation,) = document["situations"]
    by_name = {one["assignment"]: one for one in situation["tried"]}
    if not all(one["trials"]["judged"] for one in by_name.values()):
        pytest.skip("the inhibitor did not have its CPU here")
    assert by_name["below"]["verdict"] != "avoids"
    assert by_name["above"]["verdict"] == "avoids", by_name["above"]["outcomes"]
    assert situation["advised"] == "above"
    (proof,) = document["proofs"]
    assert (proof["assignment"], proof["trials"]["judged"]) == ("above", 1)
