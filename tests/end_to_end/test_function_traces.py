"""An instrumented program is built, recorded with LTTng, and read: its executor is shown function by function."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lttng_daemon import session_daemon

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "traces" / "functions"
LIBRARY = "liblttng-ust-cyg-profile.so"
LIMIT_S = 120

# How often each function is called follows from the source.
EXPECTED = [
    (0, "thread", 1),
    (1, "rclcpp::Executor::spin", 1),
    (2, "rclcpp::Executor::get_next_executable", 151),
    (2, "rclcpp::Executor::execute_any_executable", 150),
    (3, "rclcpp::Executor::wait_for_work", 50),
    (3, "rclcpp::Executor::get_next_ready_executable", 201),
]


def ran(command: list[str], **more: object) -> str:
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)  # type: ignore[call-overload]
    assert run.returncode == 0, (command, run.stdout, run.stderr)
    return str(run.stdout)


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """One with a session daemon."""
    if shutil.which("g++") is None:
        pytest.skip("no g++: install g++")
    if LIBRARY not in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout:
        pytest.skip(f"no {LIBRARY}: install liblttng-ust-dev")
    with session_daemon() as answering:
        yield answering


def built(folder: Path) -> Path:
    """As record.sh of the recorded trace builds it."""
    script = (RECORDED / "record.sh").read_text().replace("\\\n", "")
    command = re.search(r"^g\+\+ (.*?) executor\.cpp", script, re.M)
    assert command is not None
    program = folder / "functions"
    ran(["g++", *command.group(1).split(), str(RECORDED / "executor.cpp"), "-o", str(program)])
    return program


@pytest.mark.native
def test_an_instrumented_executor_is_shown_function_by_function(environment: dict[str, str], tmp_path: Path) -> None:
    program, trace = built(tmp_path), tmp_path / "trace"
    name = f"perflab-{uuid.uuid4().hex}"
    session = ["--session", name]
    lttng = ["lttng", "--no-sessiond"]
    ran([*lttng, "create", name, f"--output={trace}"], env=environment)
    try:
        channel = ["--userspace", *session, "--channel=calls"]
        sizes = ["--subbuf-size=256k", "--num-subbuf=4"]
        ran([*lttng, "enable-channel", "--userspace", *session, *sizes, "calls"], env=environment)
        for events in ("lttng_ust_cyg_profile*", "lttng_ust_statedump*"):
            ran([*lttng, "enable-event", *channel, events], env=environment)
        ran([*lttng, "add-context", *channel, "--type=vpid", "--type=vtid", "--type=procname"], env=environment)
        ran([*lttng, "start", name], env=environment)
        # Wait for the daemon however long that takes: without it the program would not be recorded.
        registered = environment | {"LD_PRELOAD": LIBRARY, "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
        ran([str(program)], env=registered)
        ran([*lttng, "stop", name], env=environment)
    finally:
        ran([*lttng, "destroy", name], env=environment)

    command = [sys.executable, "-m", "perflab", "trace", "executor", str(trace), "--json"]
    answer = json.loads(ran(command, cwd=ROOT))
    rows = answer["executor_functions"]["rows"]
    assert sorted((row["depth"], row["function"], row["count"]) for row in rows) == sorted(EXPECTED)
    assert {row["process"] for row in rows} == {"functions"}
    by_name = {row["function"].rpartition("::")[2]: row for row in rows}
    spin = by_name["spin"]
    below = by_name["get_next_executable"]["wall_ns"] + by_name["execute_any_executable"]["wall_ns"]
    assert below + spin["self_ns"] == spin["wall_ns"]
    assert by_name["wait_for_work"]["wall_ns"] >= 50 * 2_000_000  # it sleeps at least that long
    assert spin["on_cpu_ns"] is None  # the scheduler was not recorded
    functions = {row["symbol"]: row["count"] for row in answer["functions"]["rows"]}
    assert functions["rclcpp::Executor::on_timer()"] == 300
    assert functions["main"] == 1
    assert not any("discarded" in line for line in answer["quality"])
