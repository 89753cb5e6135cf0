"""What tests on ROS 2 itself need. Where no ROS 2 is sourced, or perflab was built without it, they are skipped and
say so; `make test-ros2` requires them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflab.middleware import rclcpp

from .conftest import NATIVE, PINGPONG, Run

REQUIRED = os.environ.get("PERFLAB_REQUIRE_ROS2") == "1"
RMWS = ("rmw_cyclonedds_cpp", "rmw_fastrtps_cpp")
# Humble has no EventsExecutor, and Rolling no StaticSingleThreadedExecutor any more.
MAY_LACK = ("events", "static_single_threaded")

_lacking: dict[str, str | None] = {}


def missing(rmw: str | None = None) -> str | None:
    """Why there is nothing to test on."""
    if not rclcpp.sourced():
        return rclcpp.NOT_SOURCED
    if not (Path(NATIVE) / "runtime" / "rclcpp.so").is_file():
        return f"no runtime/rclcpp.so in {NATIVE}: built without ROS 2"
    if rmw is not None and rmw not in rclcpp.installed():
        return f"this ROS 2 has no {rmw}"
    return None


def need(request: pytest.FixtureRequest) -> None:
    """Skips the test where there is none, or not the RMW of its parameter `rmw`; fails it where that is required."""
    callspec = getattr(request.node, "callspec", None)
    rmw = None if callspec is None else callspec.params.get("rmw")
    if (reason := missing(rmw)) is None:
        return
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def lacking(run: Run, folder: Path, executor: str) -> str | None:
    """Why this rclcpp does not run it. Asked once, of perflab, which refuses it before anything is written."""
    if executor not in MAY_LACK:
        return None
    if executor not in _lacking:
        graph = folder / "lacking.yaml"
        graph.write_text(PINGPONG)
        where = folder / f"lacking_{executor}"
        done = run("run", graph, "-t", "1", "--middleware", "rclcpp", "--executor", executor, "--output", where)
        if done.returncode == 0:
            _lacking[executor] = None
        else:
            assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
            assert executor in done.stderr, done.stderr
            assert "has no" in done.stderr, done.stderr
            assert not where.exists()
            _lacking[executor] = done.stderr.strip()
    return _lacking[executor]
