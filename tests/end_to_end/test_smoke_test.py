"""`perflab smoke-test` on this machine: nothing fails, nothing is left, and Ctrl-C ends it in order."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.observer.kinds import REGISTRY as OBSERVERS

from .conftest import TIMEOUT_S, Run, command, environment


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("perflab-smoke-test-*"))


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_S)
def test_nothing_fails_and_nothing_is_left(run: Run, tmp_path: Path) -> None:
    done = run("smoke-test", "--middleware", "cyclonedds,virtual", "--json", TMPDIR=str(tmp_path))
    document = json.loads(done.stdout)
    failed = [check for check in document["checks"] if check["state"] == "failed"]
    assert (done.returncode, failed) == (0, []), done.stderr
    by_name = {check["name"]: check for check in document["checks"]}
    assert {"cyclonedds", "virtual", "breaking point", *CONDITIONS, *OBSERVERS} <= set(by_name)
    assert by_name["cyclonedds"]["text"].startswith("1 054 of 1 054 messages")
    assert by_name["virtual"]["state"] == by_name["breaking point"]["state"] == "ok"
    assert by_name["cpu_pinning"]["state"] == by_name["message_flood"]["state"] == "ok"
    assert all(check["text"] for check in document["checks"])
    assert document["kept"] is None
    assert left(tmp_path) == []


def test_ctrl_c_ends_it_in_order(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("smoke-test", "--middleware", "cyclonedds"),
        env=environment(TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "One line per check, printed when it ends:\n"
            assert process.stdout.readline().startswith("ok          middleware cyclonedds: ")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert stderr.count("\n") == 1
    assert "interrupted" in stderr
    assert left(tmp_path) == []
