"""rclcpp's own tracepoints: a graph on ROS 2 is traced, and the trace says what the process measured (which of these
tests run where: ros2.py)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from measured import (
    messages_of,
    only,
    process_of,
    records_in,
    same_edges_as_measured,
    same_publications_as_measured,
)
from why_system import assert_conserved

from perflab.trace import open_trace
from perflab.trace.source import NativeTrace
from perflab.trace.why import Selection, why

from .conftest import Json, Run
from .ros2 import RMWS, lacking, need
from .test_combinations import results, sierra_nevada
from .traces import trials

# Of rclcpp's executors, those that have tracepoints; with how many threads that wait for work.
PHASES = {"single_threaded": 1, "multi_threaded": 2}
EXECUTORS = ("inline", "single_threaded", "events", "multi_threaded:2")
# Without the scheduler's events, so that a busy machine makes no large traces.
TRACED = "tracing:trials=all,scheduler=none"


def _tells_source_times() -> bool:
    """Whether rmw_publish has the source time stamp, by which a message is found again where it was taken."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        package = Path(prefix) / "share/tracetools/package.xml"
        if package.is_file():
            version = ElementTree.parse(package).findtext("version", "0")
            return int(version.partition(".")[0]) >= 8
    return True


@pytest.fixture(autouse=True)
def _ros2(request: pytest.FixtureRequest) -> None:
    need(request)
    if not _tells_source_times():
        pytest.skip("tracetools before 8.0 (Humble) does not say which message was published")
    if shutil.which("lttng-sessiond") is None:
        pytest.skip("no lttng-sessiond: install lttng-tools")


@pytest.fixture(params=RMWS)
def rmw(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("ipc", ["off", "on"])
def test_a_trace_says_what_the_process_measured(run: Run, tmp_path: Path, rmw: str, ipc: str) -> None:
    executors = [executor for executor in EXECUTORS if not lacking(run, tmp_path, executor)]
    results(
        run, sierra_nevada(tmp_path), "-t", "1", "--middleware", f"rclcpp/{rmw}", "--executor", ",".join(executors),
        "--ipc", ipc, "--observer", TRACED, "--output", tmp_path / "out",
    )  # fmt: skip
    found = set()
    for trial in trials(tmp_path / "out"):
        config = json.loads((trial["path"] / "processes" / "sierra_nevada.config.json").read_text())
        assert config["tracing"] == {"library": None}
        found.add(config["executor"])
        own = records_in(trial["path"] / "processes" / "sierra_nevada.jsonl")
        with open_trace([trial["path"] / "trace"]) as trace:
            as_measured(trace, own, config["executor"])
    assert found == {executor.partition(":")[0] for executor in executors}


def as_measured(trace: NativeTrace, own: list[Json], executor: str) -> None:
    final = only(own, "checkpoint")
    assert final["final"]
    process = process_of(trace, only(own, "process")["pid"])
    # rclcpp's, not those of perflab's own runtime.
    assert "perflab" not in str(trace.table("processes")["tracetools_version"][process])
    assert trace.facts["ledger"] == []
    same_publications_as_measured(trace, process, final)
    handled = messages_of(trace, process)
    # perflab's own thread calls the timers where there is no executor.
    same_edges_as_measured(handled, final, in_callbacks=executor != "inline")
    threads_have_phases(trace, process, executor)


def threads_have_phases(trace: NativeTrace, process: int, executor: str) -> None:
    threads = (trace.table("threads")["process"] == process).arg_true().to_list()
    phases = trace.table("phases").filter(pl.col("thread").is_in(threads))
    if executor not in PHASES:
        assert phases.height == 0
        return
    assert phases["thread"].n_unique() == PHASES[executor]
    assert phases["end_ns"].null_count() <= PHASES[executor]  # the last one of each thread
    assert {"get_next_ready", "wait_for_work", "execute"} <= set(map(str, phases["phase"].unique()))
    # Every callback is in a phase that says so.
    ran = phases.filter(pl.col("callback").is_not_null())
    assert ran.height == trace.table("callback_instances").filter(pl.col("thread").is_in(threads)).height
    assert set(map(str, ran["phase"].unique())) <= {"execute", "dispatch"}


def test_why_messages_were_late_is_asked_of_this_graph(run: Run, tmp_path: Path, rmw: str) -> None:
    results(
        run, sierra_nevada(tmp_path), "-t", "1", "--middleware", f"rclcpp/{rmw}", "--executor", "single_threaded",
        "--observer", TRACED, "--output", tmp_path / "out",
    )  # fmt: skip
    (trial,) = trials(tmp_path / "out")
    why_late = json.loads((trial["path"] / "trace" / "why.json").read_text())
    (verdict,) = why_late["why"]["rows"]
    # Messages of the warm-up are in the trace too; other programs' are not counted.
    final = only(records_in(trial["path"] / "processes" / "sierra_nevada.jsonl"), "checkpoint")
    assert verdict["messages"] == sum(edge["received"] + edge["warmup_received"] for edge in final["edges"]) > 0
    pid = trial["processes"]["sierra_nevada"]["pid"]
    with open_trace([trial["path"] / "trace"]) as trace:
        answer = why(trace, Selection(per_mille=0, pids=frozenset({pid})))
        assert answer.section("messages").frame.height == verdict["messages"]
        assert_conserved(answer)
    phases = json.loads((trial["path"] / "trace" / "executor.json").read_text())
    assert {row["pid"] for row in phases["executor"]["rows"]} == {pid}
