"""Killed, interrupted, out of disk: the command says what happened, nothing keeps running, what was recorded opens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marks import long_but
from tests.said import finished
from tests.schemas import published

from .conftest import (
    PINGPONG,
    TIMEOUT_S,
    Run,
    checkpoints,
    command,
    environment,
    kill,
    measuring,
    started,
    wait_until_gone,
)


def test_a_killed_node_is_named_and_the_rest_stays_readable(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "600", "-o", out, "--json") as process:
        pids = measuring(out, process)
        kill(pids["pong"])
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert stderr.count("\n") == 1
    assert f"process 'pong' (pid {pids['pong']}) was killed by SIGKILL" in stderr
    wait_until_gone(pids)
    summary = json.loads(stdout)
    published("summary").validate(summary)
    detail = summary["results"][0]["trials_detail"][0]
    assert (detail["outcome"], detail["complete"]) == ("failed", False)
    assert detail["totals"]["received"] > 0
    assert "SIGKILL" in run("show", out).stdout


def test_a_killed_perflab_leaves_nothing_running_and_its_run_opens(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "600", "-o", out) as process:
        pids = measuring(out, process)
        assert "the run is still in progress" in run("show", out).stdout
        process.kill()
        process.wait(timeout=TIMEOUT_S)
    wait_until_gone(pids)
    shown = run("show", out)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "perflab ended before the run was" in shown.stdout
    summary = json.loads(run("show", out, "--json").stdout)
    published("summary").validate(summary)
    assert summary["valid"] is False
    assert summary["results"][0]["totals"]["received"] > 0


@pytest.mark.parametrize("signum", long_but([signal.SIGINT], [signal.SIGINT, signal.SIGTERM]))
def test_an_interrupt_finalises_the_run(run: Run, pingpong: Path, tmp_path: Path, signum: signal.Signals) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "600", "-o", out, "--json") as process:
        pids = measuring(out, process)
        process.send_signal(signum)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signum
    assert stderr == f"perflab: interrupted by {signum.name}\n"
    wait_until_gone(pids)
    detail = json.loads(stdout)["results"][0]["trials_detail"][0]
    assert detail["reason"] == f"interrupted by {signum.name}"
    totals = detail["totals"]
    assert totals["received"] > 0, "the nodes had time for their last checkpoints"
    assert totals["lost"]["tail"] is None, "what was still under way is not lost"
    assert run("show", out).returncode == 0


def test_a_run_without_an_end_is_whole_when_it_is_stopped(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", pingpong, "-t", "0", "-o", out, "--json") as process:
        pids = measuring(out, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stderr) == (0, "")
    wait_until_gone(pids)
    summary = json.loads(stdout)
    published("summary").validate(summary)
    result = summary["results"][0]
    detail = result["trials_detail"][0]
    totals = detail["totals"]
    assert (detail["outcome"], detail["complete"], totals["lost"]["tail"]) == ("success", True, 0)
    assert totals["received"] > 0
    assert detail["measured_s"] == pytest.approx(result["duration_s"], abs=1e-6) and result["duration_s"] > 0


def test_who_stops_a_run_twice_does_not_wait_for_messages_on_their_way(
    run: Run, pingpong: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    late = ("--middleware", "sim", "--middleware-option", "delay=100s")
    with started("run", pingpong, "-t", "0", *late, "-o", out) as process:
        pids = measuring(out, process, lambda record: bool(checkpoints(record)))
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        for line in process.stderr:
            if "waiting for messages under way" in line:
                break
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGINT
    assert stderr.endswith("perflab: interrupted by SIGINT\n")
    wait_until_gone(pids)
    assert run("show", out).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds the first checkpoints of a trial that samples often, and not much more."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "perflab-test", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_a_disk_that_fills_up_ends_the_run_and_what_was_complete_opens(
    run: Run, small_disk: Path, tmp_path: Path
) -> None:
    out = small_disk / "run"
    with started("run", "mont_blanc", "-t", "600", "-s", "10ms", "-o", out) as process:
        pids = measuring(out, process)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, stdout
    assert stderr.count("\n") == 1
    assert "No space left on device" in stderr
    wait_until_gone(pids)
    shown = run("show", out, "--json")
    assert shown.returncode == 0, shown.stderr
    summary = json.loads(shown.stdout)
    published("summary").validate(summary)
    detail = summary["results"][0]["trials_detail"][0]
    assert detail["outcome"] == "harness_error"
    assert "No space left on device" in detail["reason"]
    assert detail["totals"]["received"] > 0


def test_a_file_size_limit_is_named_and_the_run_opens(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    limited = (
        "import resource, signal, sys, runpy\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n"
        "sys.argv = ['perflab', *sys.argv[1:]]\n"
        "runpy.run_module('perflab', run_name='__main__')\n"
    )
    arguments = command("run", "mont_blanc", "-t", "600", "-s", "10ms", "-o", out)[3:]
    done = finished([sys.executable, "-c", limited, *arguments], env=environment())
    assert done.returncode == 1, done
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr or "SIGXFSZ" in done.stderr
    assert run("show", out).returncode == 0


def test_an_output_that_cannot_be_made_is_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("run", "sierra_nevada", "-o", tmp_path / "file/below/run")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert os.fspath(tmp_path / "file") in done.stderr


def test_endpoints_without_a_peer_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "alone.yaml").write_text(
        PINGPONG.replace(
            "publishers: [{topic: ping, type: stamped100b, qos: {",
            "publishers: [{topic: ping, type: stamped100b, qos: {reliability: best_effort, ",
        ).replace(
            "subscriptions: [{topic: ping, type: stamped100b, qos: {",
            "subscriptions: [{topic: ping, type: stamped100b, qos: {reliability: reliable, ",
        )
    )
    done = run("run", tmp_path / "alone.yaml", "-t", "1", "--discovery-timeout", "2", "-o", tmp_path / "run")
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1
    assert "ping" in done.stderr


@pytest.mark.parametrize("victim", ["perflab", "pong"])
def test_shared_memory_of_what_was_killed_is_gone(pingpong: Path, tmp_path: Path, victim: str) -> None:
    out = tmp_path / "run"
    options = ["--middleware", "fastdds", "--middleware-option", "data_sharing=on"]
    with started("run", pingpong, "-t", "600", *options, "-o", out, "-q") as process:
        pids = measuring(out, process)
        processes = json.loads((out / "trials/0001_baseline/trial.json").read_text())["processes"]
        files = [Path("/dev/shm") / name for p in processes.values() for name in p["shared_memory"]]
        assert files
        assert any(file.exists() for file in files)
        kill(process.pid if victim == "perflab" else pids[victim])
        process.wait(timeout=TIMEOUT_S)
    wait_until_gone(pids)
    assert [file for file in files if file.exists()] == []
