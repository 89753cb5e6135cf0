"""The workload `pingpong` with the real programs: exact in virtual time, and with real-time policies."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from .conftest import NATIVE, Json, Run

MS = 10**6
CPUS = sorted(os.sched_getaffinity(0))
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or len(CPUS) < 2, reason="real-time priorities above all need root, and the rest another CPU"
)
needs_cyclonedds = pytest.mark.skipif(
    not (Path(NATIVE) / "middleware/cyclonedds.so").is_file(), reason="the plug-in cyclonedds was not built"
)


def trials(run: Path) -> list[Json]:
    return [json.loads(path.read_text()) for path in sorted(run.glob("trials/*/trial.json"))]


def test_loops_decide_how_long_a_trial_measures(run: Run, tmp_path: Path) -> None:
    refused = run("run", "pingpong:loops=50,period=2ms", "--time", "3", "--middleware", "virtual")
    assert refused.returncode == 2
    assert "pingpong measures loops x period, 0.1 s here; leave it out" in refused.stderr
    out = tmp_path / "run"
    levels = ("--factor", "workload.loops=50,100", "--middleware", "virtual", "--output", out)
    assert run("run", "pingpong:period=2ms", *levels).returncode == 0
    trials = [json.loads(path.read_text()) for path in sorted(out.glob("trials/*/trial.json"))]
    assert sorted((t["factors"]["workload.loops"], t["duration_s"]) for t in trials) == [(50, 0.1), (100, 0.2)]
    assert json.loads((out / "manifest.json").read_text())["settings"]["duration_ns"] is None
    assert {t["own_outcome"]["name"] for t in trials} == {"unaffected"}
    tables = [pl.read_parquet(path) for path in out.glob("trials/*/loops.parquet")]
    assert sorted(len(table) for table in tables) == [50, 100]


@pytest.mark.parametrize("pattern", ["1e1n", "1e2n", "2e"])
def test_in_virtual_time_every_instant_of_a_loop_is_what_the_links_make_it(
    run: Run, tmp_path: Path, pattern: str
) -> None:
    options = ("--middleware", "virtual", "--middleware-option", "disturb.delay=1ms", "--output", tmp_path / "run")
    done = run("run", f"pingpong:loops=20,pattern={pattern}", *options, "--json")
    assert done.returncode == 0, done.stderr
    table = pl.read_parquet(next(tmp_path.glob("run/trials/*/loops.parquet")))
    assert table["loop"].to_list() == list(range(20))
    assert set((table["woken_ns"] - table["due_ns"]).to_list()) == {0}
    assert set((table["answered_ns"] - table["sent_ns"]).to_list()) == {MS}
    assert set((table["back_ns"] - table["due_ns"]).to_list()) == {2 * MS}
    figures = json.loads(done.stdout)["results"][0]["key_figures"]
    assert figures["ping_pong"]["of_ns"]["max"] == figures["ping_pong_due"]["of_ns"]["max"] == 2 * MS
    assert figures["ping_pong_restamped"]["of_ns"]["max"] == MS
    assert figures["wakeup_interval"]["of_ns"]["count"] == 19


@needs_root
@needs_cyclonedds
def test_executors_have_a_deadline_and_one_that_is_not_admitted_ends_with_exit_3(run: Run, tmp_path: Path) -> None:
    words = ("run", "pingpong:loops=50", "--middleware", "cyclonedds", "--cool-down", "0", "--output")
    done = run(*words, tmp_path / "run", "--thread", "executors=DEADLINE:1ms/10ms/10ms")
    assert done.returncode == 0, done.stderr
    readings = [
        json.loads(line)
        for path in (tmp_path / "run").glob("trials/*/processes/*.jsonl")
        for line in path.read_text().splitlines()
        if line.startswith('{"at_ns"') and '"type":"threads"' in line
    ]
    threads = [thread for reading in readings for thread in reading["threads"]]
    of_executors = [t for t in threads if t["role"] == "executor"]
    assert {(t["policy"], t["runtime_ns"], t["deadline_ns"], t["period_ns"]) for t in of_executors} == {
        ("DEADLINE", MS, 10 * MS, 10 * MS)
    }
    assert {t["policy"] for t in threads if t["role"] != "executor"} == {"OTHER"}
    refused = run(*words, tmp_path / "refused", "--thread", "executors=DEADLINE:9900us/10ms/10ms")
    assert refused.returncode == 3
    assert "the kernel refuses it" in refused.stderr


@needs_root
@needs_cyclonedds
@pytest.mark.alone
def test_threads_of_the_middleware_below_the_inhibitor_stall_the_loop(run: Run, tmp_path: Path) -> None:
    """On one CPU: executors above the inhibitor, the middleware's threads below it."""
    cpu = CPUS[-1]
    inhibitor = f"priority_inhibitor:policy=RR,priority=90,cpus={cpu},limit=60s"
    done = run(
        "run", "pingpong:loops=300", "--middleware", "cyclonedds", "--cool-down", "0", "--baseline", "off",
        "--thread", f"executors=RR:98@{cpu}", "--thread", f"middleware=OTHER@{cpu}", "--condition", inhibitor,
        "--output", tmp_path / "run",
    )  # fmt: skip
    (trial,) = trials(tmp_path / "run")
    if trial["outcome"] == "invalid":
        pytest.skip(f"the inhibitor did not have its CPU here: {trial['reason']}")
    assert trial["own_outcome"]["name"] in ("stalled", "hung"), (trial["reason"], done.stderr)
    assert "no loop was completed" in trial["reason"]


PLANTED = """
workload: {pingpong: {loops: 100}}
middlewares: [shm]
assignments:
  below: [ping.executors=RR:98@CPU, pong.executors=OTHER@CPU]
  above: [executors=RR:98@CPU]
factors: {workload.threads: [below, above]}
conditions: [{priority_inhibitor: {policy: RR, priority: 90, cpus: [CPU], limit: 60s}}]
baseline: off
observers: [{tracing: {trials: all}}]
"""


@needs_root
@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", [1, 20])
def test_a_thread_that_is_starved_on_purpose_is_named_and_without_one_none_is(
    run: Run, tmp_path: Path, times: int
) -> None:
    """Pong's executor below the inhibitor, or above it: who starves is known, and so is who has the CPU. Each
    time in a run of its own: one of all would take longer than a command of the tests may."""
    experiment = tmp_path / "planted.yaml"
    experiment.write_text(PLANTED.replace("CPU", str(CPUS[-1])))
    every: list[Json] = []
    for number in range(times):
        out = tmp_path / f"run_{number}"
        done = run("run", experiment, "--trials", "1", "--cool-down", "0", "--output", out)
        assert len(trials(out)) == 2, done.stderr
        every += trials(out)
    found = [t for t in every if t["outcome"] != "invalid"]
    if not found:
        pytest.skip(f"the inhibitor did not have its CPU here: {every[0]['reason']}")
    below, above = ([t for t in found if t["factors"]["workload.threads"] == level] for level in ("below", "above"))
    for trial in below:
        (thread,) = trial["starved"]
        assert (thread["process"], thread["name"], thread["role"], thread["policy"]) == (
            "pong", "pong", "executor", "OTHER",
        )  # fmt: skip
        (holder,) = thread["holders"]
        assert holder["name"] == "burn_1"
        assert (
            "starved meanwhile: thread pong (executor, OTHER) of pong, which was ready but did not run"
            in trial["reason"]
        )
    assert [trial["starved"] for trial in above] == [[]] * len(above)
    assert {trial["own_outcome"]["name"] for trial in above} <= {"unaffected"}, [t["reason"] for t in above]
