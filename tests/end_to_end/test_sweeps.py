"""Sweeps and searches for breaking points with the real programs: on the virtual middleware with known answers, and on
real ones."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import published

from .conftest import Json, Run, command, environment

# A callback of 1 ms for each message of a timer of 100 Hz, in one thread: from ten times the rate on it cannot keep up.
# After T s at r times the rate the backlog is T (r / 10 - 1): 90 % of the responses of a trial of 1 s stay below 5 ms
# up to r = 10 (1 + 0.005 / 0.9).
BUSY = """\
name: busy
nodes:
  - name: source
    publishers: [{topic: t, type: stamped_int64, period: 10ms}]
  - name: sink
    subscriptions: [{topic: t, type: stamped_int64}]
    reactions: [{kind: sink, on: t, work: 1ms}]
"""
BREAKS_AT = 10 * (1 + 0.005 / 0.9)
VIRTUAL = ("--middleware", "virtual", "--time", "1s")
SEARCH = ("--factor", "workload.timer_speed", "--low", "1", "--high", "100", "--criterion", "response.p90 <= 5ms")
BOUND_S = 120


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    path = tmp_path / "busy.yaml"
    path.write_text(BUSY)
    return path


def summary(run: Path) -> Json:
    found: Json = json.loads((run / "summary.json").read_text())
    published("summary").validate(found)
    assert "curves" in found or "breaking_points" in found
    return found


@pytest.mark.long
def test_a_sweep_has_a_curve_with_every_level_in_every_block(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--factor", "workload.timer_speed=1,5,9..11/3,20", "--trials", "4", "--success", "response.max <= 100ms"]
    refused = run("sweep", busy, *VIRTUAL, *options, "-o", out)
    assert refused.returncode == 2, "a list and a range are two things"
    options[1] = "workload.timer_speed=1,5,9,12"
    done = run("sweep", busy, *VIRTUAL, *options, "-o", out)
    assert done.returncode == 0, f"trials that fail are results: {done.stderr}"
    manifest = json.loads((out / "manifest.json").read_text())
    blocks = Counter((t["block"], t["factors"]["workload.timer_speed"]) for t in manifest["trials"])
    assert blocks == Counter((block, level) for block in range(1, 5) for level in (1, 5, 9, 12))
    orders = [
        [t["factors"]["workload.timer_speed"] for t in manifest["trials"] if t["block"] == b] for b in range(1, 5)
    ]
    assert len({tuple(order) for order in orders}) > 1, "the order is drawn for each block"
    (curve,) = summary(out)["curves"]
    assert (curve["factor"], curve["variant"]) == ("workload.timer_speed", "virtual")
    assert [level["level"] for level in curve["levels"]] == [1, 5, 9, 12]
    # At 9 times the rate a trial has no backlog, at 12 times one of up to 200 ms.
    assert [level["successes"] for level in curve["levels"]] == [4, 4, 4, 0]
    assert all(level["judged"] == 4 and level["invalid"] == 0 for level in curve["levels"])
    shown = run("show", out)
    assert "workload.timer_speed" in shown.stdout
    (out / "summary.json").unlink()
    again = run("show", out, "--json")
    assert json.loads(again.stdout)["curves"] == [curve], "made of the records"


@pytest.mark.long
def test_a_run_is_read_that_calls_the_speed_of_timers_a_rate(run: Run, busy: Path, tmp_path: Path) -> None:
    """As those before the name was changed do: manifest, trial.json, summary."""
    out = tmp_path / "run"
    factor = ("--factor", "workload.timer_speed=1,5")
    assert run("sweep", busy, *factor, "--trials", "2", *VIRTUAL, "-o", out).returncode == 0
    before = summary(out)["curves"]
    for path in (out / "manifest.json", out / "summary.json", *out.glob("trials/*/trial.json")):
        path.write_text(path.read_text().replace("workload.timer_speed", "workload.rate"))
    shown = run("show", out)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "workload.rate" in shown.stdout
    (out / "summary.json").unlink()
    (again,) = json.loads(run("show", out, "--json").stdout)["curves"]
    assert [{**again, "factor": "workload.timer_speed"}] == before, "made of the records"
    resumed = run("run", "--resume", out)
    assert resumed.returncode == 2
    assert "factor workload.rate is called workload.timer_speed now" in resumed.stderr
    assert resumed.stderr.count("\n") == 1


@pytest.mark.long
def test_an_interrupted_sweep_goes_on(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--factor", "workload.timer_speed=1,5,20", "--trials", "6", *VIRTUAL, "-o", out]
    interrupt(["sweep", busy, *options], out, after=4)
    done = run("run", "--resume", out)
    assert done.returncode == 0, done.stderr
    (curve,) = summary(out)["curves"]
    assert [level["n"] for level in curve["levels"]] == [6, 6, 6]


def test_the_breaking_point_of_a_known_system_is_found(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("breaking-point", busy, *VIRTUAL, *SEARCH, "-o", out)
    assert done.returncode == 0, done.stderr
    (found,) = summary(out)["breaking_points"]
    assert found["state"] == "found"
    assert found["interval"]["low"] <= BREAKS_AT <= found["interval"]["high"]
    assert found["interval"]["level"] == 0.95
    assert found["low"] <= found["interval"]["low"]
    assert found["interval"]["high"] <= found["high"]
    assert found["trials"] == sum(level["n"] for level in found["levels"]) == len(found["course"])
    for level in found["levels"]:
        assert level["met"] == (level["n"] if level["level"] < BREAKS_AT else 0), "it has no noise"
    assert found["left_out"] == {"invalid": 0, "harness_error": 0}
    assert found["words"][0].rstrip(".") in " ".join(done.stdout.split()), "what was found is printed"
    assert summary(out)["findings"] is None


@pytest.mark.long
@pytest.mark.long
def test_each_variant_has_a_search_of_its_own_and_they_take_turns(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    experiment = tmp_path / "search.yaml"
    asked = "{factor: workload.timer_speed, low: 1, high: 100, criterion: 'response.p90 <= 5ms', max_trials: 30}"
    options = "middlewares: virtual\ntime: 1s\nfactors: {virtual.service: [0ms, 1ms]}"
    experiment.write_text(f"workload: {busy}\n{options}\nbreaking_point: {asked}\n")
    done = run("breaking-point", experiment, "-o", out)
    assert done.returncode == 0, done.stderr
    free, slow = summary(out)["breaking_points"]
    assert (free["others"], slow["others"]) == ({"virtual.service": "0ms"}, {"virtual.service": "1ms"})
    # Every callback, the timer's too, costs 1 ms more: 3 ms instead of 1 for each message.
    assert free["interval"]["low"] <= BREAKS_AT <= free["interval"]["high"]
    assert slow["interval"]["low"] <= BREAKS_AT / 3 <= slow["interval"]["high"]
    orders = sorted((step["order"], name) for name, f in (("free", free), ("slow", slow)) for step in f["course"])
    shorter = min(len(free["course"]), len(slow["course"]))
    assert [name for _, name in orders[: 2 * shorter]] == ["free", "slow"] * shorter


@pytest.mark.long
def test_an_interrupted_search_goes_on_as_if_nothing_had_been(run: Run, busy: Path, tmp_path: Path) -> None:
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    assert run("breaking-point", busy, *VIRTUAL, *SEARCH, "-o", whole).returncode == 0
    interrupt(["breaking-point", busy, *VIRTUAL, *SEARCH, "-o", halved], halved, after=5)
    refused = run("breaking-point", "--resume", halved, "--high", "50")
    assert refused.returncode == 2
    assert "--high cannot be changed" in refused.stderr
    done = run("breaking-point", "--resume", halved)
    assert done.returncode == 0, done.stderr
    assert summary(halved)["breaking_points"] == summary(whole)["breaking_points"]


@pytest.mark.long
def test_what_no_level_reaches_and_what_breaks_at_once(run: Run, busy: Path, tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    low, high = ("--factor", "workload.timer_speed", "--low", "1", "--high", "8"), "response.p90 <= 5ms"
    assert run("breaking-point", busy, *VIRTUAL, *low, "--criterion", high, "-o", far).returncode == 0
    (found,) = summary(far)["breaking_points"]
    assert (found["state"], found["value"]) == ("not_reached", None)
    assert "ot reached" in found["words"][0]
    # A callback of 1 ms after the message: no response is shorter, whatever the rate.
    never = ("--criterion", "work.p50 <= 1us", "--measure", "work")
    done = run("breaking-point", busy, *VIRTUAL, *low, *never, "-o", near)
    assert done.returncode == 0, done.stderr
    (found,) = summary(near)["breaking_points"]
    assert (found["state"], found["value"]) == ("below_low", None)


def test_a_criterion_that_cannot_be_judged_ends_the_search(run: Run, busy: Path, tmp_path: Path) -> None:
    options = ["--factor", "workload.timer_speed", "--low", "1", "--high", "8", "--criterion", "latency.p99_9 <= 5ms"]
    done = run("breaking-point", busy, *VIRTUAL, *options, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert "cannot be judged: p99.9 needs 10 000 messages" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists(), "no trial at any level told anything"


@pytest.mark.long
def test_that_nothing_arrives_is_breaking(run: Run, busy: Path, tmp_path: Path) -> None:
    """Lost messages have no latency; the search must not end there."""
    out = tmp_path / "run"
    options = ["--factor", "virtual.loss", "--low", "0", "--high", "1", "--criterion", "latency.p50 <= 5ms"]
    done = run("breaking-point", busy, *VIRTUAL, *options, "-o", out)
    assert done.returncode == 0, done.stderr
    (found,) = summary(out)["breaking_points"]
    assert (found["state"], found["integer"]) == ("found", False)
    # A median takes 20 of the 100 messages.
    assert found["interval"]["low"] <= 0.8 + 0.1
    assert found["interval"]["high"] >= 0.8 - 0.1


@pytest.mark.long
def test_levels_may_have_a_unit(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--factor", "virtual.delay", "--low", "1ms", "--high", "20ms", "--criterion", "latency.p50 <= 5ms"]
    done = run("breaking-point", busy, *VIRTUAL, *options, "-o", out)
    assert done.returncode == 0, done.stderr
    (found,) = summary(out)["breaking_points"]
    assert (found["state"], found["unit"]) == ("found", "ms")
    assert found["interval"]["low"] <= 5 <= found["interval"]["high"]
    assert " ms [" in " ".join(done.stdout.split())
    before = summary(out)
    (out / "summary.json").unlink()
    assert json.loads(run("show", out, "--json").stdout) == before, "made of the records"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("--factor virtual.delay --low 1us --high 9ms", "different units; write both in one"),
        (
            "--factor virtual.delay --low 1 --high 9",
            "option 'disturb.delay' is '1'; right would be a duration",
        ),
        ("--factor workload.timer_speed --low -5 --high 9", "-5 must be at least 0.001"),
        ("--factor workload.timer_speed --low fast --high 9", "--low 'fast' is not a number, with or without a unit"),
        ("", "--factor, --low, --high missing"),
        ("--factor workload.timer_speed --low 1", "--high missing"),
        ("--factor workload.timer_speed --low 9 --high 1", "--low 9 is not below --high 1"),
        ("--factor virtual.loss --low 0 --high 0.9 --scale log", "a logarithmic scale must begin above 0"),
        ("--factor workload.rat --low 1 --high 9", "of a workload are workload.depth"),
        ("--factor mesage_flood.rate --low 1 --high 9", "did you mean message_flood?"),
        ("--factor message_flood.rat --low 1 --high 9", "did you mean rate?"),
        ("--factor message_flood.rate --low 1 --high 1e9", "must be at most 100000"),
        ("--factor message_flood.rate --low 0 --high 9", "is the baseline"),
        ("--factor workload.depth --low 1 --high 9.5", "9.5 is not a whole number"),
        ("--factor workload.timer_speed --low 1 --high 9 --criterion fast", "write success, a bound like"),
        ("--factor workload.timer_speed --low 1 --high 9 --criterion latency.p98<=5ms", "no metric 'latency.p98'"),
        ("--factor workload.timer_speed --low 1 --high 9 --criterion target:none", "is neither a file nor a target"),
        ("--factor workload.timer_speed --low 1 --high 9 --share 1.5", "share"),
        ("--factor workload.timer_speed --low 1 --high 9 --max-trials 2", "max-trials"),
        ("--factor workload.timer_speed --low nan --high 9", "--low"),
    ],
)
def test_bad_input_of_a_search_is_one_line(run: Run, busy: Path, tmp_path: Path, options: str, line: str) -> None:
    done = run("breaking-point", busy, *VIRTUAL, *options.split(), "-o", tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert line in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_what_is_running_is_called_with_its_level(run: Run, busy: Path, tmp_path: Path) -> None:
    done = run(
        "sweep", busy, *VIRTUAL, "--factor", "workload.timer_speed=1,5", "--progress", "lines", "-o", tmp_path / "run"
    )
    assert done.stderr.count("virtual  baseline timer_speed=5  ") == 5


@pytest.mark.parametrize(
    ("factor", "line"),
    [
        ("workload.timer_speed=5..5:1", "is empty"),
        ("workload.timer_speed=1..5", "lacks the number of levels"),
        ("workload.timer_speed=1", "has one level; a sweep needs two or more"),
        ("cpu_lod.load=1,2", "did you mean cpu_load?"),
        ("workload.timer_speed=1,", "is not a number"),
    ],
)
def test_bad_input_of_a_sweep_is_one_line(run: Run, busy: Path, tmp_path: Path, factor: str, line: str) -> None:
    done = run("sweep", busy, *VIRTUAL, "--factor", factor, "-o", tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert line in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.native
def test_a_real_sweep_under_a_flood(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    flood = "message_flood:publishers=2,payload=64,readers=inside,at_least=20"
    options = ["--factor", "message_flood.rate=0,50,200", "--condition", flood, "--trials", "2", "--time", "1s"]
    done = run("sweep", "sierra_nevada", *options, "--cool-down", "0", "-o", out)
    assert done.returncode == 0, done.stderr
    (curve,) = summary(out)["curves"]
    assert [level["level"] for level in curve["levels"]] == [0, 50, 200]
    assert curve["levels"][0]["treatment"] == "baseline"
    assert [level["n"] for level in curve["levels"]] == [2, 2, 2]
    for trial in out.glob("trials/*/trial.json"):
        document = json.loads(trial.read_text())
        assert all(e["in_effect"] for e in document["evidence"].values()), document["evidence"]


@pytest.mark.native
@pytest.mark.long
def test_levels_that_cannot_be_produced_are_no_breaking(run: Run, tmp_path: Path) -> None:
    """No machine sends this much in messages of this size: each such trial is invalid, and the search says so."""
    out = tmp_path / "run"
    flood = "message_flood:publishers=8,payload=64kB,processes=2"
    options = ["--factor", "message_flood.rate", "--low", "90000", "--high", "100000", "--condition", flood]
    options += ["--time", "500ms", "--cool-down", "0", "--max-trials", "8"]
    done = run("breaking-point", "sierra_nevada", *options, "-o", out)
    assert done.returncode == 1, "nothing was learned"
    (found,) = summary(out)["breaking_points"]
    assert found["state"] == "not_producible"
    assert (found["trials"], found["value"], found["interval"]) == (0, None, None)
    assert found["left_out"]["invalid"] + found["left_out"]["harness_error"] == len(found["course"]) >= 3


def interrupt(arguments: list[Any], out: Path, after: int) -> None:
    """Ends a run by SIGINT once so many trials have begun."""
    with subprocess.Popen(
        command(*arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        end = time.monotonic() + BOUND_S
        while len(list(out.glob("trials/*"))) < after and process.poll() is None:
            assert time.monotonic() < end, "no trial began"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=BOUND_S)
        assert process.returncode in (130, 0, -signal.SIGINT)
