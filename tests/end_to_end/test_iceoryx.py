"""Cyclone DDS with iceoryx: perflab starts its daemon for a trial, and leaves nothing behind, whatever is killed."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from perflab import waiting
from perflab.middleware import iceoryx

from .conftest import TIMEOUT_S, Run, has_received, kill, started

pytestmark = [
    pytest.mark.alone,  # a machine has one
    pytest.mark.skipif(shutil.which(iceoryx.PROGRAM) is None, reason="iox-roudi is not installed"),
]
PUBSUB = ("run", "pubsub:message=array64k,rate=200", "--middleware", "cyclonedds", "--cool-down", "0")
SHARED = ("--middleware-option", "cyclonedds.shared_memory=on")


def said(out: Path, process: str) -> dict[str, Any]:
    """What the plug-in says of itself at the end of a process."""
    lines = (out / "trials/0001_baseline/processes" / f"{process}.jsonl").read_text().splitlines()
    effective: dict[str, Any] = json.loads(lines[-1])["middleware"]["effective"]
    return effective


def nothing_is_left(out: Path) -> None:
    for process in json.loads((out / "trials/0001_baseline/trial.json").read_text())["processes"].values():
        assert not list(iceoryx.MADE.glob(iceoryx.OF_PROCESS.format(pid=process["pid"])))
    assert not (iceoryx.SHARED / iceoryx.MANAGEMENT).exists()
    assert not iceoryx.is_held()


def test_loaned_messages_go_through_shared_memory_and_the_daemon_is_gone_afterwards(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run(*PUBSUB, *SHARED, "--pass-by", "loaned", "--time", "0.5", "--output", out)
    assert done.returncode == 0, done.stderr
    (writer,), (reader,) = said(out, "publisher")["writers"], said(out, "subscriber")["readers"]
    assert writer["samples"] == writer["samples_in_shared_memory"] == reader["samples_in_shared_memory"] >= 100
    trial = json.loads((out / "trials/0001_baseline/trial.json").read_text())
    assert iceoryx.PROGRAM in [companion["name"] for companion in trial["companions"]]
    nothing_is_left(out)


def test_a_killed_daemon_makes_the_trial_invalid_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started(*PUBSUB, *SHARED, "--time", "60", "--output", out) as process:
        wait = waiting.Wait("messages", TIMEOUT_S)
        while not has_received(out / "trials/0001_baseline/processes/subscriber.jsonl"):
            assert process.poll() is None, process.communicate()
            assert not wait.is_over
            time.sleep(wait.step_s)
        trial = json.loads((out / "trials/0001_baseline/trial.json").read_text())
        kill(next(c["pid"] for c in trial["companions"] if c["name"] == iceoryx.PROGRAM))
        _, errors = process.communicate()
    trial = json.loads((out / "trials/0001_baseline/trial.json").read_text())
    assert (trial["outcome"], process.returncode) == ("invalid", 1), errors
    assert "iox-roudi" in trial["reason"]
    nothing_is_left(out)
