"""Experiments with real conditions, observers and criteria: what is promised, what is seen, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import perflab
from tests.marks import long_but
from tests.schemas import published

from . import traces
from .conftest import NATIVE, PINGPONG, TIMEOUT_S, Json, Run, command, environment, kill, started

CPUS = len(os.sched_getaffinity(0))

# The machine may be busy with other things: what is tested here is not how quiet it is.
COMMON = ("--cool-down", "0", "--baseline", "off")
LOAD = "cpu_load:workers=1,load=30"
# A flood that a busy machine can offer, too.
FLOOD = "message_flood:publishers=2,rate=50,at_least=20"

needs_stress_ng = pytest.mark.skipif(shutil.which("stress-ng") is None, reason="stress-ng is not installed")


def result(summary: Json, treatment: str, purpose: str = "measured") -> Json:
    (found,) = (r for r in summary["results"] if (r["treatment"], r["purpose"]) == (treatment, purpose))
    assert isinstance(found, dict)
    return found


def checked(text: str) -> Json:
    """A summary as it was printed."""
    summary = json.loads(text)
    published("summary").validate(summary)
    assert isinstance(summary, dict)
    return summary


# -- conditions ------------------------------------------------------------------------------------------------------


@needs_stress_ng
@pytest.mark.alone
def test_conditions_alone_and_combined(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run(
        "run", "sierra_nevada", "-t", "1", "--cool-down", "0", "--condition", LOAD,
        "--condition", f"cpu_pinning:count=1+{FLOOD}", "-o", out, "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    summary = checked(done.stdout)
    assert summary["valid"] is True
    assert [(r["treatment"], r["conditions"], r["trials"]) for r in summary["results"]] == [
        ("baseline", [], 3),
        ("cpu_load", ["cpu_load"], 1),
        ("cpu_pinning+message_flood", ["cpu_pinning", "message_flood"], 1),
    ]
    for r in summary["results"]:
        assert r["totals"]["received"] == r["totals"]["sent"] == 1054 * r["trials"], (
            "a flood is no part of the workload"
        )
    load = result(summary, "cpu_load")["trials_detail"][0]["evidence"]["cpu_load"]
    assert (load["in_effect"], load["reason"], load["promised"]["load_percent"]) == (True, None, 30)
    assert load["achieved"]["cpus_wanted"] > 0.2
    both = result(summary, "cpu_pinning+message_flood")["trials_detail"][0]["evidence"]
    assert [evidence["in_effect"] for evidence in both.values()] == [True, True]
    assert both["message_flood"]["achieved"]["delivered"] > 0
    (pinned,) = both["cpu_pinning"]["achieved"]["processes"].values()
    assert len(pinned["affinities"]) == 1
    assert pinned["threads"] >= 2
    assert pinned["escapes"] == []
    traces.nothing_is_left(out)


@needs_stress_ng
@pytest.mark.alone
@pytest.mark.long
def test_a_baseline_again_follows_what_was_disturbed(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--condition", LOAD, "--condition", FLOOD, "--trials", "2", "--cool-down", "1", "--seed", "5")
    assert run("run", pingpong, "-t", "1", *options, "-o", out, "-q").returncode == 0
    found = traces.trials(out)
    planned = json.loads((out / "manifest.json").read_text())["trials"]
    keys = ("order", "block", "treatment", "after", "purpose", "factors")
    assert [[t[key] for key in keys] for t in found] == [[p[key] for key in keys] for p in planned]
    assert len(found) == 2 * (3 + 2)
    for before, after in pairwise(found):
        disturbed = before["treatment"] if before["conditions"] else None
        assert after["after"] == disturbed
        assert disturbed is None or after["treatment"] == "baseline"
    assert all(t["cool_down"]["reached"] in (True, False) for t in found)
    domains = [t["domain"] for t in found]
    assert all(a != b for a, b in pairwise(domains)), "no trial meets the one before it"
    pids = [p["pid"] for t in found for p in t["processes"].values()]
    assert len(set(pids)) == len(pids), "processes are fresh"


@pytest.mark.parametrize("middleware", long_but(["fastdds"], ["cyclonedds", "fastdds"]))
def test_a_flood_without_readers_delivers_nothing_and_says_so(run: Run, tmp_path: Path, middleware: str) -> None:
    flood = "message_flood:publishers=4,rate=200,at_least=20,readers=none"
    done = run(
        "run", "sierra_nevada", "-t", "2", *COMMON, "--middleware", middleware, "--condition", flood,
        "-o", tmp_path / "run", "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    only = result(checked(done.stdout), "message_flood")
    assert only["totals"]["received"] == only["totals"]["sent"] == 2 * 1054
    assert only["totals"]["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}
    evidence = only["trials_detail"][0]["evidence"]["message_flood"]
    assert evidence["in_effect"] is True
    assert evidence["achieved"]["sent"] > 0.2 * 2 * 800
    assert (evidence["achieved"]["delivered"], evidence["achieved"]["matched_readers"]) == (0, 0)
    assert evidence["notes"] == ["nothing was delivered: no reader"]


@pytest.mark.long
@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_readers_inside_get_more_where_more_is_sent(run: Run, tmp_path: Path, middleware: str) -> None:
    flood = "message_flood:publishers=2,at_least=10,readers=inside,work=50us"
    rates = [20, 640]
    done = run(
        "run", "sierra_nevada", "-t", "2", *COMMON, "--middleware", middleware, "--condition", flood,
        "--factor", f"message_flood.rate={','.join(map(str, rates))}", "-o", tmp_path / "run", "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    summary = checked(done.stdout)
    by_rate = {r["factors"]["message_flood.rate"]: r for r in summary["results"]}
    delivered = []
    for rate in rates:
        assert by_rate[rate]["totals"]["received"] == by_rate[rate]["totals"]["sent"] == 2 * 1054
        achieved = by_rate[rate]["trials_detail"][0]["evidence"]["message_flood"]["achieved"]
        assert achieved["delivered"] <= achieved["sent"] <= 2 * 2 * rate + 2
        delivered.append(achieved["delivered"])
    # A dose 32 times as high, of which at least a tenth arrives also on a machine that is busy.
    assert 0 < delivered[0] < delivered[1]


# -- invalid trials --------------------------------------------------------------------------------------------------


def stop_the_load(trial: Json) -> None:
    for pid in traces.children(traces.companion(trial, "cpu_load")["pid"]):
        os.kill(pid, signal.SIGSTOP)


def kill_the_load(trial: Json) -> None:
    kill(traces.companion(trial, "cpu_load")["pid"])


def kill_a_worker(trial: Json) -> None:
    kill(traces.children(traces.companion(trial, "cpu_load")["pid"])[-1])


def kill_the_flood(trial: Json) -> None:
    kill(trial["processes"]["message_flood"]["pid"])


def stop_the_flood(trial: Json) -> None:
    """Long enough for a second without messages, and back: the totals do not show it."""
    pid = trial["processes"]["message_flood"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(pid, signal.SIGCONT)


def let_a_thread_go(trial: Json) -> None:
    pid = trial["processes"]["pong"]["pid"]
    thread = max(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())
    os.sched_setaffinity(thread, os.sched_getaffinity(0))


@needs_stress_ng
@pytest.mark.alone
@pytest.mark.parametrize(
    ("condition", "sabotage", "reason"),
    [
        *long_but(
            [(FLOOD, kill_the_flood, "message_flood: process 'message_flood' (pid ")],
            [
                (LOAD, kill_the_load, "cpu_load: the program was killed by SIGKILL while it should run"),
                (LOAD, kill_a_worker, "cpu_load: "),
                (LOAD, stop_the_load, "cpu_load: "),
                (FLOOD, kill_the_flood, "message_flood: process 'message_flood' (pid "),
                (FLOOD, stop_the_flood, "message_flood: "),
            ],
        ),
        pytest.param(
            "cpu_pinning:count=1",
            let_a_thread_go,
            "cpu_pinning: thread ",
            marks=pytest.mark.skipif(CPUS < 2, reason="needs a CPU that is not among those pinned to"),
        ),
    ],
)
def test_what_was_not_in_effect_is_invalid(
    pingpong: Path, tmp_path: Path, condition: str, sabotage: Callable[[Json], None], reason: str
) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "5", *COMMON, "--condition", condition, "-o", out, "--json") as process:
        sabotage(traces.measuring(out, process))
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert stderr.count("\n") == 1
    assert "invalid: " + reason in stderr
    summary = checked(stdout)
    assert summary["valid"] is False
    (only,) = summary["results"]
    assert only["outcomes"] == {
        "success": 0,
        "failed": 0,
        "invalid": 1,
        "harness_error": 0,
        "interrupted": 0,
        "own": [],
    }
    (detail,) = only["trials_detail"]
    assert (detail["outcome"], detail["measured"]) == ("invalid", False)
    assert detail["reason"].startswith(reason)
    (evidence,) = detail["evidence"].values()
    assert evidence["in_effect"] is False
    assert evidence["reason"]
    traces.nothing_is_left(out)


@needs_stress_ng
@pytest.mark.alone
def test_an_invalid_trial_does_not_end_the_run_and_enters_no_result(pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("-t", "4", *COMMON, "--condition", LOAD, "--trials", "2")
    with started("run", pingpong, *options, "-o", out, "--json") as process:
        kill_the_load(traces.measuring(out, process))
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, stderr
    (only,) = checked(stdout)["results"]
    assert only["outcomes"] == {
        "success": 1,
        "failed": 0,
        "invalid": 1,
        "harness_error": 0,
        "interrupted": 0,
        "own": [],
    }
    assert [d["measured"] for d in only["trials_detail"]] == [False, True]
    assert only["totals"]["received"] == only["trials_detail"][1]["totals"]["received"] == 800


# -- criteria --------------------------------------------------------------------------------------------------------


def test_criteria_that_are_met(run: Run, pingpong: Path, tmp_path: Path) -> None:
    criteria = ("--success", "lost == 0", "--success", "latency.p50 < 10s")
    done = run("run", pingpong, "-t", "1", *criteria, "-o", tmp_path / "run", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (detail,) = result(checked(done.stdout), "baseline")["trials_detail"]
    assert [(c["criterion"], c["met"]) for c in detail["criteria"]] == [
        ("lost == 0", True),
        ("latency.p50 < 10s", True),
    ]


def test_a_criterion_that_is_missed_is_a_failure_in_all_distributions(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    criteria = ("--success", "lost == 0", "--success", "latency.p50 <= 1ns")
    done = run("run", pingpong, "-t", "1", "--trials", "2", *criteria, "-o", out, "--json")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "failed: latency p50 <= 1 ns: not met with " in done.stderr
    summary = checked(done.stdout)
    assert summary["valid"] is False
    only = result(summary, "baseline")
    assert only["outcomes"] == {
        "success": 0,
        "failed": 2,
        "invalid": 0,
        "harness_error": 0,
        "interrupted": 0,
        "own": [],
    }
    assert [d["measured"] for d in only["trials_detail"]] == [True, True]
    assert only["totals"]["received"] == only["totals"]["latency_ns"]["count"] == 2 * 200
    for trial in traces.trials(out):
        assert [(c["criterion"], c["met"]) for c in trial["criteria"]] == [
            ("lost == 0", True), ("latency.p50 <= 1ns", False),
        ]  # fmt: skip
    # The same from the records, and from the command that shows it again.
    (out / "summary.json").unlink()
    again = checked(run("show", out, "--json").stdout)
    assert again["results"][0]["outcomes"] == only["outcomes"]


# -- observers -------------------------------------------------------------------------------------------------------


def test_observers_write_their_tables_and_have_a_control(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    names = ["monitor", "hiccup", "allocations", "cyclictest"]
    observers = [word for name in (*names[:-1], "cyclictest:policy=OTHER") for word in ("--observer", name)]
    done = run("run", pingpong, "-t", "1.5", "--trials", "2", *observers, "--cool-down", "1", "-o", out, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = checked(done.stdout)
    observed, control = result(summary, "baseline"), result(summary, "baseline", "control")
    assert (observed["observers"], control["observers"]) == (names, [])
    assert (observed["trials"], control["trials"]) == (2, 2)
    for detail in observed["trials_detail"]:
        assert [detail["observed_ns"][name]["count"] > 100 for name in ("hiccup", "cyclictest")] == [True, True]
        assert detail["allocations"] >= 0
    for detail in control["trials_detail"]:
        assert (detail["observed_ns"], detail["allocations"]) == ({}, None), "what was not measured is null, not 0"
    opened = perflab.open(out)
    assert [t.number for t in opened.trials] == [1, 2, 3, 4]
    for trial, document in zip(opened.trials, traces.trials(out), strict=True):
        is_control = document["purpose"] == "control"
        counts = trial.resources["allocations"]
        assert counts.null_count() == (len(counts) if is_control else 0)
        tables = {Path(a["path"]).name for a in document["artifacts"]}
        if is_control:
            assert tables == set()
            continue
        assert tables == {"monitor_threads.parquet", "monitor_cpus.parquet", "histograms.json"}
        threads = pl.read_parquet(document["path"] / "monitor_threads.parquet")
        assert {"at_ns", "group", "pid", "tid", "name", "cpus"} <= set(threads.columns)
        assert set(threads["group"]) >= {"workload/ping", "workload/pong"}
        assert len(pl.read_parquet(document["path"] / "monitor_cpus.parquet")) > 0


def test_one_trial_has_no_control(run: Run, pingpong: Path, tmp_path: Path) -> None:
    done = run("run", pingpong, "-t", "0.5", "--observer", "hiccup:interval=2ms", "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    (only,) = checked(done.stdout)["results"]
    assert (only["purpose"], only["observers"], only["trials"]) == ("measured", ["hiccup"], 1)


# -- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (("--condition", f"cpu_pinning:count={CPUS + 6}"), 2, f"count {CPUS + 6}, but this machine allows {CPUS} CPU"),
        (("--condition", "cpu_pinning:count=1+cpu_laod"), 2, "did you mean cpu_load?"),
        (("--condition", "cpu_load:method=walking"), 2, "method 'walking' is not one of stress-ng's"),
        (("--middleware", "virtual", "--condition", "cpu_load"), 2, "virtual"),
        (("--middleware", "virtual", "--observer", "hiccup"), 3, "virtual"),
        (("--condition", "message_flood:readers=inside,process=nobody"), 2, "no process 'nobody'"),
        (("--success", "losses == 0"), 2, "did you mean lost_share?"),
        (("--metric", "latency.p98"), 2, "did you mean latency.p99?"),
        (("--factor", "cpu_load.load=20,80"), 2, "no treatment has the condition cpu_load"),
        (("--factor", "speed=1,2"), 2, "is not CONDITION.PARAMETER"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, complaint: str
) -> None:
    out = tmp_path / "new" / "run"
    done = run("run", "sierra_nevada", "-t", "30", *arguments, "-o", out)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr
    assert not out.parent.exists()


def test_a_delay_needs_a_kernel_that_can(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", pingpong, "-t", "1", *COMMON, "--condition", "network_shaping:delay=5ms", "-o", out, "--json")
    if done.returncode == 3:
        assert done.stderr.count("\n") == 1
        assert "network_shaping: " in done.stderr
        assert not out.exists()
        return
    assert done.returncode == 0, done.stderr
    totals = checked(done.stdout)["results"][0]["totals"]
    assert totals["latency_ns"]["min"] >= 5_000_000


def test_a_flood_in_virtual_time(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    flood = "message_flood:publishers=3,rate=100,readers=inside"
    options = ("--middleware", "virtual", "--condition", flood, "--condition", "message_flood:readers=none")
    done = run("run", "sierra_nevada", "-t", "10", "--trials", "2", *options, "-o", out, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = checked(done.stdout)
    assert {r["treatment"]: r["trials"] for r in summary["results"]}["baseline"] == 6
    for r in summary["results"]:
        assert r["totals"]["received"] == r["totals"]["sent"] == 10 * 1054 * r["trials"]
        for detail in r["trials_detail"]:
            for evidence in detail["evidence"].values():
                read = evidence["promised"]["readers"] == "inside"
                rate = 300 if read else 4000
                assert evidence["achieved"]["sent"] == 10 * rate
                assert evidence["achieved"]["delivered"] == (10 * rate if read else 0)
    assert [p["pid"] for t in traces.trials(out) for p in t["processes"].values() if p["condition"]] == []


# -- a stranger ------------------------------------------------------------------------------------------------------

# Topics that nobody else on this machine has.
LONELY = PINGPONG.replace("topic: ping", "topic: perflab_lonely_ping").replace(
    "topic: pong", "topic: perflab_lonely_pong"
)
LONELY = LONELY.replace("on: ping", "on: perflab_lonely_ping")
LONELY = LONELY.replace("publish: ping}", "publish: perflab_lonely_ping}")
LONELY = LONELY.replace("publish: pong}", "publish: perflab_lonely_pong}")


@pytest.mark.parametrize("who", long_but(["ping"], ["ping", "pong"]))  # the one sends by itself, the other only listens
def test_a_stranger_in_the_domain_is_an_error_of_the_laboratory(run: Run, tmp_path: Path, who: str) -> None:
    """In a network namespace of its own the run has the first domain, and a stranger can be there before it."""
    (tmp_path / "lonely.yaml").write_text(LONELY)
    first = tmp_path / "first"
    assert run("run", "lonely.yaml", "-t", "0.5", "-o", first, "-q").returncode == 0
    config = json.loads((first / "trials/0001_baseline/processes" / f"{who}.config.json").read_text())
    config["middleware"]["domain"] = 1
    config["duration_ns"] = 600_000_000_000
    config["discovery_timeout_ns"] = 0
    config["records"] = str(tmp_path / "stranger.jsonl")
    (tmp_path / "stranger.json").write_text(json.dumps(config))
    (tmp_path / "tmp").mkdir()
    script = (
        "ip link set lo up || exit 77\n"
        f'"{NATIVE}/perflab-node" --config stranger.json & stranger=$!\n'
        "while ! grep -q endpoints_created stranger.jsonl 2>/dev/null && kill -0 $stranger; do sleep 0.05; done\n"
        '"$@"; status=$?\n'
        "kill -9 $stranger; wait $stranger\n"
        "exit $status\n"
    )
    out = tmp_path / "run"
    perflab_run = command("run", "lonely.yaml", "-t", "0.5", "--discovery-timeout", "3", "-o", out, "--json")
    done = subprocess.run(
        ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", "sh", "-c", script, "sh", *perflab_run],
        cwd=tmp_path,
        env=environment(TMPDIR=str(tmp_path / "tmp")),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no network namespace: {done.stderr.strip()}")
    assert done.returncode == 1, (done.stdout, done.stderr)
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("perflab: ") and "harness error: " in line)
    assert "another program uses domain 1" in said
    (detail,) = checked(done.stdout)["results"][0]["trials_detail"]
    assert (detail["outcome"], detail["measured"]) == ("harness_error", False)


def test_a_stranger_that_comes_later_is_seen_as_well(tmp_path: Path) -> None:
    (tmp_path / "lonely.yaml").write_text(LONELY)
    out = tmp_path / "run"
    with started("run", tmp_path / "lonely.yaml", "-t", "6", "-o", out, "--json") as process:
        trial = traces.measuring(out, process)
        config = json.loads((trial["path"] / "processes/ping.config.json").read_text())
        config["discovery_timeout_ns"] = 0
        config["records"] = str(tmp_path / "stranger.jsonl")
        (tmp_path / "stranger.json").write_text(json.dumps(config))
        stranger = subprocess.Popen([Path(NATIVE) / "perflab-node", "--config", tmp_path / "stranger.json"])
        try:
            stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        finally:
            stranger.kill()
            stranger.wait()
    assert process.returncode == 1, (stdout, stderr)
    assert "harness error: " in stderr
    assert "another program uses domain" in stderr
    (detail,) = checked(stdout)["results"][0]["trials_detail"]
    assert detail["outcome"] == "harness_error"
