"""The real command line over the real native programs. Skipped only where PERFLAB_NATIVE does not name them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.said import finished, without_waits

SOURCE = Path(__file__).resolve().parent.parent.parent
NATIVE = os.environ.get("PERFLAB_NATIVE", "")
TIMEOUT_S = 240

# Deep queues: a machine that stands still for some tenths of a second shall lose nothing.
PINGPONG = """\
name: pingpong
processes:
  - name: ping
    nodes:
      - name: ping
        timers: [{name: tick, period: 10ms, publish: ping}]
        publishers: [{topic: ping, type: stamped100b, qos: {depth: 1000}}]
        subscriptions: [{topic: pong, type: stamped100b, qos: {depth: 1000}}]
  - name: pong
    nodes:
      - name: pong
        publishers: [{topic: pong, type: stamped100b, qos: {depth: 1000}}]
        subscriptions: [{topic: ping, type: stamped100b, qos: {depth: 1000}}]
        reactions: [{on: ping, publish: pong}]
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Json = dict[str, Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.access(Path(NATIVE) / "perflab-node", os.X_OK) and NATIVE:
        return
    reason = f"no perflab-node in PERFLAB_NATIVE ({NATIVE or 'not set'}); build it with `make` and set it"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `perflab ARGUMENTS...` in a folder of the test's own; what it waited for is not in its stderr."""

    def perflab(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        return finished(
            command(*arguments),
            cwd=tmp_path,
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
        )

    return perflab


@pytest.fixture
def pingpong(tmp_path: Path) -> Path:
    path = tmp_path / "pingpong.yaml"
    path.write_text(PINGPONG)
    return path


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "perflab", *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), **changes}


class Perflab(subprocess.Popen[str]):
    """A process of perflab. What it said that it waited for, as it does on a busy machine, is not in its stderr."""

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        stdout, stderr = super().communicate(input, timeout)
        return stdout, without_waits(stderr)


@contextmanager
def started(*arguments: str | Path) -> Iterator[Perflab]:
    """A `perflab` that runs meanwhile; killed at the end if it still does."""
    process = Perflab(command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def measuring(out: Path, process: subprocess.Popen[str], begun: Callable[[Path], bool] | None = None) -> dict[str, int]:
    """The processes of the trial, as soon as each has written a checkpoint with a received message; or `begun` says of
    the records of each that it has."""
    begun = begun or has_received
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        trials = sorted(out.glob("trials/*/trial.json"))
        if trials:
            processes = json.loads(trials[-1].read_text())["processes"]
            records = [trials[-1].parent / "processes" / f"{name}.jsonl" for name in processes]
            if all(begun(record) for record in records):
                return {name: p["pid"] for name, p in processes.items()}
        time.sleep(0.05)
    raise AssertionError("the trial never began to measure")


def has_received(record: Path) -> bool:
    """Whether a process has written a checkpoint with a received message."""
    return any(edge["received"] for checkpoint in checkpoints(record) for edge in checkpoint["edges"])


def checkpoints(record: Path) -> list[Json]:
    """Those that a process has written so far."""
    whole = record.read_text().split("\n")[:-1] if record.exists() else []
    return [c for c in map(json.loads, whole) if c["type"] == "checkpoint"]


def wait_until_gone(pids: dict[str, int]) -> None:
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids.values()):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.02)


def edges_by_name(summary: Json) -> dict[tuple[str, str, str], Json]:
    return {(e["publisher"], e["topic"], e["subscription"]): e for e in summary["results"][0]["edges"]}


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
