"""Recorded traces that are part of the repository (tests/data/traces): what answers say of them, beside babeltrace2."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from both_readers import SYSTEM_PYTHON, TIMEOUT_S, need_babeltrace2
from opened import needs_library

from perflab.trace import open_trace
from perflab.trace.executor import executor
from perflab.trace.scheduling import scheduling
from perflab.trace.source import NativeTrace
from perflab.trace.summary import summary

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "data" / "traces" / "functions"
BUILD_ID = "1bc20a8d6dd9c5ba6de873d64e684d596b4fdf0c"
PROGRAM = b"/tmp/perflab_functions/functions"  # where it was when it was recorded
NAMES = {  # how often each function is called follows from the source
    "main": 1, "rclcpp::Executor::Executor(int)": 1, "rclcpp::Executor::spin()": 1,
    "rclcpp::Executor::get_next_executable(rclcpp::AnyExecutable&)": 151,
    "rclcpp::Executor::get_next_ready_executable(rclcpp::AnyExecutable&)": 201,
    "rclcpp::Executor::wait_for_work()": 50,
    "rclcpp::Executor::execute_any_executable(rclcpp::AnyExecutable const&)": 150,
    "rclcpp::Executor::on_timer()": 300,
}  # fmt: skip


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
    return found


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A copy of the trace in which the program is in a folder of this test, under a path of the same length: whatever
    is in the folder in which it was recorded has no part in this."""
    with tempfile.TemporaryDirectory(prefix="perflab_t", dir="/tmp") as own:
        program = f"{own}/functions".encode()
        assert len(program) == len(PROGRAM)
        copy = Path(own) / "trace"
        shutil.copytree(FOLDER, copy)
        replaced = 0
        for stream in copy.glob("ust/uid/*/*/calls_*"):
            content = stream.read_bytes()
            replaced += content.count(PROGRAM)
            stream.write_bytes(content.replace(PROGRAM, program))
        assert replaced == 1
        yield copy


@pytest.fixture(scope="module")
def trace(folder: Path) -> NativeTrace:
    needs_library()
    return open_trace([folder])


def test_the_figures_beside_the_trace_are_those_of_babeltrace2(expected: dict[str, Any]) -> None:
    need_babeltrace2()
    command = [SYSTEM_PYTHON, str(HERE / "babeltrace2_recorded.py"), str(FOLDER)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == expected


def test_the_summary_counts_what_babeltrace2_counts(trace: NativeTrace, expected: dict[str, Any]) -> None:
    answer = summary(trace)
    assert {row["event"]: row["n"] for row in answer.section("events").frame.to_dicts()} == expected["events"]
    assert rows(answer.section("processes").frame, "process", "pid") == [("functions", 30930)]
    traces = answer.section("traces").frame.sort("tracer")
    assert rows(traces, "domain", "tracer", "host", "events") == [
        ("ust", "lttng-ust 2.13", "robot", 1746),
        ("kernel", "perf", "robot", 676),
    ]
    assert answer.section("ledger").frame.is_empty()
    assert answer.section("clocks").frame.is_empty()  # perf's offset of 0 is none


def test_functions_without_their_program_have_addresses_and_a_reason(
    trace: NativeTrace, expected: dict[str, Any]
) -> None:
    assert trace.facts["counters"]["functions_of_absent_files"] == len(NAMES)
    assert trace.table("functions")["symbol"].null_count() == len(NAMES)
    answer = executor(trace)
    assert answer.section("executor_functions").frame.is_empty()
    assert any("8 functions of 8 without a name" in note for note in answer.section("call_tree").notes)
    by_address = {row["function"]: row for row in answer.section("functions").frame.to_dicts()}
    base = min(int(address, 16) for address in by_address) & ~0xFFF
    base -= min(row["offset"] for row in expected["functions"]) & ~0xFFF
    found = {int(address, 16) - base: (row["count"], row["wall_ns"]) for address, row in by_address.items()}
    assert found == {row["offset"]: (row["count"], row["wall_ns"]) for row in expected["functions"]}


def test_calls_are_nested_as_they_were_made(trace: NativeTrace, expected: dict[str, Any]) -> None:
    calls, functions = trace.table("function_calls"), trace.table("functions")
    addresses = functions["address"].to_list()
    base = min(addresses) & ~0xFFF
    base -= min(row["offset"] for row in expected["functions"]) & ~0xFFF
    offset = [addresses[row] - base for row in calls["function"]]
    callers: dict[int, set[int]] = {}
    lengths: dict[int, list[int]] = {}
    for row, (start, end, parent) in enumerate(calls.select("start_ns", "end_ns", "parent").rows()):
        lengths.setdefault(offset[row], []).append(end - start)
        known = callers.setdefault(offset[row], set())
        if parent is not None:
            known.add(offset[parent])
            assert calls["start_ns"][parent] <= start <= end <= calls["end_ns"][parent]
    for function in expected["functions"]:
        assert sorted(callers[function["offset"]]) == function["callers"]
        assert min(lengths[function["offset"]]) == function["shortest_ns"]
        assert max(lengths[function["offset"]]) == function["longest_ns"]
    assert Counter(offset) == {row["offset"]: row["count"] for row in expected["functions"]}


def test_threads_run_and_wake_up_as_babeltrace2_says(trace: NativeTrace, expected: dict[str, Any]) -> None:
    answer = scheduling(trace)
    threads = {row["tid"]: row for row in answer.section("threads").frame.to_dicts()}
    wake_ups = {row["tid"]: row for row in answer.section("wake_up_latency").frame.to_dicts()}
    for text, figures in expected["threads"].items():
        thread, woken = threads[int(text)], wake_ups[int(text)]
        assert (thread["thread"], thread["switches"], thread["on_cpu_ns"]) == (
            figures["name"], figures["switches"], figures["on_cpu_ns"],
        )  # fmt: skip
        assert (woken["wake_up_n"], woken["wake_up_max_ns"]) == (figures["wake_ups"], figures["wake_up_max_ns"])
        if figures["wake_ups"] >= 2:
            assert woken["wake_up_p50_ns"] == figures["wake_up_p50_ns"]
    # It sleeps 50 times for 2 ms, and some times while it starts.
    periodic = {row["tid"]: row for row in answer.section("periodic").frame.to_dicts()}
    assert periodic[30930]["regular"]
    assert 2_000_000 < periodic[30930]["period_p50_ns"] < 2_500_000


def test_functions_have_their_names_where_the_very_program_is_here_and_only_there(folder: Path) -> None:
    needs_library()
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    program = folder.parent / "functions"
    command = re.search(r"^g\+\+ (.*?) executor\.cpp", (FOLDER / "record.sh").read_text().replace("\\\n", ""), re.M)
    assert command is not None
    options = [*command.group(1).split(), str(FOLDER / "executor.cpp"), "-o", str(program)]
    subprocess.run([compiler, *options], check=True, timeout=TIMEOUT_S, cwd=folder.parent)
    try:
        trace = open_trace([folder])
    finally:
        is_the_one = bytes.fromhex(BUILD_ID) in program.read_bytes()
        program.unlink()
    functions = trace.table("functions")
    if not is_the_one:  # another compiler: addresses of this build would be names of other functions
        assert trace.facts["counters"]["functions_of_other_builds"] == len(NAMES)
        assert functions["symbol"].null_count() == len(NAMES)
        return
    calls = trace.table("function_calls").group_by("function").agg(n=pl.len()).sort("function")
    assert dict(zip(functions["symbol"], calls["n"], strict=True)) == NAMES
    answer = executor(trace).section("executor_functions").frame
    assert [(d, f.rpartition("::")[2], n) for d, f, n in answer.select("depth", "function", "count").rows()] == [
        (0, "thread", 1), (1, "spin", 1), (2, "get_next_executable", 151), (3, "wait_for_work", 50),
        (3, "get_next_ready_executable", 201), (2, "execute_any_executable", 150),
    ]  # fmt: skip
    spin = answer.filter(pl.col("function") == "rclcpp::Executor::spin")
    below = answer.filter(pl.col("depth") == 2)["wall_ns"].sum()
    assert spin["wall_ns"][0] - below == spin["self_ns"][0]
    # Executing is burning a CPU, waiting is not.
    usage = dict(answer.select("function", "cpu_usage_percent").rows())
    assert usage["rclcpp::Executor::wait_for_work"] < 5
    assert usage["rclcpp::Executor::execute_any_executable"] > 95


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return frame.select(columns).rows()
