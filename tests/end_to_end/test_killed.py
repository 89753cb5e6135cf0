"""Killed at any instant: the trial says so, nothing keeps running, what had finished stays, and the run can be resumed.

The instants are random, from seeds that are written here.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.schemas import published

from . import traces
from .conftest import TIMEOUT_S, Json, Run, kill, started

BOTH = "cpu_load:workers=1,load=30+message_flood:publishers=2,rate=50,at_least=20"
KILLS = 5

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("stress-ng") is None, reason="stress-ng is not installed"),
]


def whole(run: Run, out: Path, planned: int) -> Json:
    """The summary of a run that is complete."""
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    details = [detail for r in summary["results"] for detail in r["trials_detail"]]
    assert sorted(d["order"] for d in details) == list(range(1, planned + 1))
    assert (done := run("clean", out)).returncode == 0, done.stderr
    assert done.stdout == "nothing to clean\n"
    assert isinstance(summary, dict)
    return summary


def cleaned(run: Run, out: Path) -> None:
    """`perflab clean` ends with 0, and a second one finds nothing."""
    assert (first := run("clean", out)).returncode == 0, first.stderr
    assert (second := run("clean", out)).returncode == 0, second.stderr
    assert second.stdout == "nothing to clean\n"


@pytest.mark.long
def test_perflab_itself_again_and_again(run: Run, pingpong: Path, tmp_path: Path) -> None:
    generator = random.Random(1)
    out = tmp_path / "run"
    options = ("-t", "1", "--condition", BOTH, "--trials", "2", "--cool-down", "0", "-o", out, "-q")
    finished: dict[str, str] = {}
    seen: set[traces.Identity] = set()
    for number in range(KILLS):
        arguments = ("--resume", out, "-q") if number else (pingpong, *options)
        with started("run", *arguments) as process:
            # The first time at any instant of a trial; then also while the run is being taken up again.
            if number == 0:
                traces.wait_for("a trial runs", lambda: traces.running(out), process)
            time.sleep(generator.uniform(0, 3.0))
            seen |= traces.living_below(process.pid)
            if process.poll() is not None:
                assert process.returncode == 0, process.communicate()
                break
            process.kill()
            process.wait(timeout=TIMEOUT_S)
        traces.nothing_is_left(out, seen)
        assert finished.items() <= traces.sums_of_finished(out).items(), "what had finished is as it was"
        finished = traces.sums_of_finished(out)
        found = traces.trials(out)
        assert all(t["status"] == "finished" for t in found[:-1])
        shown = run("show", out, "--json")
        assert shown.returncode == 0, shown.stderr
        if found[-1]["status"] == "running":
            assert "perflab ended before the trial did" in shown.stdout
    done = run("run", "--resume", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert finished.items() <= traces.sums_of_finished(out).items()
    assert whole(run, out, planned=2 * 3)["valid"] is True
    interrupted = [t for t in traces.trials(out) if t["interrupted"]]
    assert interrupted
    for trial in interrupted:
        assert (trial["status"], trial["outcome"]) == ("finished", "harness_error")
        assert trial["reason"] == "perflab ended before the trial did"
    traces.nothing_is_left(out, seen)


def node(trial: Json) -> int | None:
    return pid_of(trial["processes"].get("pong"))


def flood(trial: Json) -> int | None:
    return pid_of(trial["processes"].get("message_flood"))


def stress_ng(trial: Json) -> int | None:
    return pid_of(beside(trial, "cpu_load"))


def monitor(trial: Json) -> int | None:
    return pid_of(beside(trial, "monitor"))


def guard_of_the_load(trial: Json) -> int | None:
    return pid_of((beside(trial, "cpu_load") or {}).get("guard"))


def guard_of_the_monitor(trial: Json) -> int | None:
    return pid_of((beside(trial, "monitor") or {}).get("guard"))


def beside(trial: Json, name: str) -> Json | None:
    return next((c for c in trial["companions"] if c["name"] == name), None)


def pid_of(process: Json | None) -> int | None:
    return None if process is None else process["pid"]


@dataclass(frozen=True)
class Victim:
    """Whom to kill in a trial, and what the trial then is and says."""

    pid: Callable[[Json], int | None]
    outcome: str
    reason: str


VICTIMS = (
    Victim(node, "failed", "process 'pong' (pid {pid}) was killed by SIGKILL"),
    Victim(flood, "invalid", "message_flood: process 'message_flood' (pid {pid}) was killed by SIGKILL"),
    Victim(stress_ng, "invalid", "cpu_load: "),
    Victim(monitor, "invalid", "monitor: "),
    Victim(guard_of_the_load, "invalid", "cpu_load: "),
    Victim(guard_of_the_monitor, "invalid", "monitor: "),
)


@pytest.mark.long
def test_each_part_of_a_trial_twice(run: Run, pingpong: Path, tmp_path: Path) -> None:
    generator = random.Random(2)
    victims = [*VICTIMS, *VICTIMS]
    generator.shuffle(victims)
    out = tmp_path / "run"
    planned = len(victims) + 1
    options = ("-t", "3", "--condition", BOTH, "--baseline", "off", "--trials", str(planned), "--cool-down", "0")
    reasons: list[str] = []
    seen: set[traces.Identity] = set()
    with started("run", pingpong, *options, "-o", out, "--json") as process:
        for number, victim in enumerate(victims):

            def found(number: int = number, victim: Victim = victim) -> int | None:
                trial = traces.running(out, past=number)
                return None if trial is None else victim.pid(trial)

            pid = traces.wait_for(f"trial {number + 1} has a {victim.pid.__name__}", found, process)
            time.sleep(generator.uniform(0, 2.0))
            seen |= traces.living_below(process.pid)
            kill(pid)
            reasons.append(victim.reason.format(pid=pid))
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, stderr
    assert stderr.count("\n") == 1, stderr
    published("summary").validate(json.loads(stdout))
    traces.nothing_is_left(out, seen)
    trials = traces.trials(out)
    assert [t["outcome"] for t in trials] == [*(v.outcome for v in victims), "success"], [t["reason"] for t in trials]
    for trial, reason in zip(trials, reasons, strict=False):
        assert trial["status"] == "finished"
        assert trial["reason"].startswith(reason)
    before = traces.sums_of_finished(out)
    # Nothing is tried again: a run that has all its trials has nothing left to do.
    assert run("run", "--resume", out, "-q").stdout == f"{out}\n"
    assert traces.sums_of_finished(out) == before
    (only,) = whole(run, out, planned)["results"]
    assert only["outcomes"] == {
        "success": 1,
        "failed": 2,
        "invalid": 10,
        "harness_error": 0,
        "interrupted": 0,
        "own": [],
    }
    assert only["totals"]["received"] == 600, "of the one trial that went well"


@pytest.mark.long
def test_an_interrupted_experiment_goes_on(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("-t", "2", "--condition", BOTH, "--trials", "1", "--order", "as_written", "--cool-down", "0")
    with started("run", pingpong, *options, "-o", out, "--json") as process:
        traces.measuring(out, process, past=1)
        finished = traces.sums_of_finished(out)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGINT
    assert stderr == "perflab: interrupted by SIGINT\n"
    traces.nothing_is_left(out)
    assert json.loads(stdout)["valid"] is False
    interrupted = traces.trials(out)[1]
    assert (interrupted["interrupted"], interrupted["outcome"]) == (True, "harness_error")
    assert run("clean", out).stdout == "nothing to clean\n"
    done = run("run", "--resume", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert finished.items() <= traces.sums_of_finished(out).items()
    assert whole(run, out, 3)["valid"] is True
    assert len(traces.trials(out)) == 4
    assert traces.trials(out)[1]["interrupted"] is True


def test_a_run_that_goes_on_is_neither_resumed_nor_cleaned(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "600", "-o", out) as process:
        trial = traces.measuring(out, process)
        refused = run("run", "--resume", out)
        assert refused.returncode == 2
        assert "is still running (pid" in refused.stderr
        assert "still running" in run("clean", out).stdout
        assert all(traces.lives((p["pid"], p["start_ticks"])) for p in trial["processes"].values())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    traces.nothing_is_left(out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "perflab-test", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Takes all space but so many bytes."""
    path = disk / "filler"
    status = os.statvfs(disk)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, status.f_bavail * status.f_frsize - leave))
    return path


@pytest.mark.long
def test_a_disk_that_is_full_for_a_while(run: Run, small_disk: Path) -> None:
    out = small_disk / "run"
    flooded = "message_flood:publishers=2,rate=50,at_least=20"
    options = ("-t", "2", "-s", "10ms", "--condition", flooded, "--order", "as_written", "--cool-down", "0")
    with started("run", "sierra_nevada", *options, "-o", out, "-q") as process:
        traces.measuring(out, process, past=1)
        finished = traces.sums_of_finished(out)
        filler = fill(small_disk, 16 << 10)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, stderr
    assert stderr.count("\n") == 1
    assert "No space left on device" in stderr
    traces.nothing_is_left(out)
    assert finished.items() <= traces.sums_of_finished(out).items()
    assert run("show", out).returncode == 0
    filler.unlink()
    done = run("run", "--resume", out, "-q")
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    assert finished.items() <= traces.sums_of_finished(out).items()
    details = [d for r in summary["results"] for d in r["trials_detail"]]
    assert sorted(d["order"] for d in details) == list(range(1, 4)), (done.returncode, done.stderr)
    for detail in details:
        if detail["order"] != 2:
            assert detail["outcome"] == "success", detail["reason"]
    cleaned(run, out)
