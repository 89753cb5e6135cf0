"""A graph on rclcpp itself, recorded (tests/data/traces/rclcpp): the trace says what the process measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from measured import (
    OF_RCLCPP,
    Json,
    messages_of,
    only,
    process_of,
    records_in,
    same_edges_as_measured,
    same_publications_as_measured,
)
from opened import needs_library
from reference_traces import unpack
from why_system import assert_conserved

from perflab.design.document import Thresholds
from perflab.runs import traced
from perflab.trace import open_trace
from perflab.trace.callbacks import callbacks
from perflab.trace.executor import executor
from perflab.trace.messages import messages
from perflab.trace.source import NativeTrace
from perflab.trace.summary import summary
from perflab.trace.why import Selection, why
from perflab.workload import Graph

FOLDER = Path(__file__).resolve().parents[2] / "data" / "traces" / "rclcpp"
CYCLONE_DDS, FAST_DDS, WITHIN = "rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_fastrtps_cpp_ipc"
EDGES = 17


class Recorded:
    """A trace, and what its process measured meanwhile."""

    def __init__(self, name: str, folder: Path) -> None:
        needs_library()
        unpack(FOLDER / f"{name}.tar.xz", folder)
        self.folder = folder
        self.within_process = name == WITHIN
        own = records_in(folder / "measured.jsonl")
        self.process_record = only(own, "process")
        self.final: Json = only(own, "checkpoint")
        self.trace: NativeTrace = open_trace([folder / "ust"])
        self.process = process_of(self.trace, self.process_record["pid"])

    @property
    def received(self) -> int:
        return sum(edge["received"] + edge["warmup_received"] for edge in self.final["edges"])

    def of_graph(self, table: str) -> pl.DataFrame:
        """Takes or deliveries of the graph's own topics."""
        topics = self.trace.table("subscriptions")["topic"]
        own = (~topics.is_in(OF_RCLCPP)).arg_true().to_list()
        return self.trace.table(table).filter(pl.col("subscription").is_in(own))


@pytest.fixture(scope="module", params=[CYCLONE_DDS, FAST_DDS, WITHIN])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(request.param, tmp_path_factory.mktemp(request.param))


def test_it_is_rclcpp_s_own(recorded: Recorded) -> None:
    assert recorded.process_record["middleware"]["name"].startswith("rclcpp/")
    assert recorded.process_record["intra_process"] == recorded.within_process
    trace = recorded.trace
    assert trace.facts["tracetools_versions"] == ["8.2.2"]
    assert trace.facts["ledger"] == []
    # What an RMW itself writes about the graph (ros_discovery_info) is of no publisher that rcl knows.
    assert {k for k, n in trace.facts["counters"].items() if n} == {"publications_without_publisher"}
    assert trace.table("nodes").height == 10


def test_every_message_is_counted_as_the_process_counted_it(recorded: Recorded) -> None:
    same_publications_as_measured(recorded.trace, recorded.process, recorded.final)
    handled = messages_of(recorded.trace, recorded.process)
    assert handled.height == recorded.received > 400
    same_edges_as_measured(handled, recorded.final)


def test_messages_go_the_way_that_was_chosen(recorded: Recorded) -> None:
    takes, within = recorded.of_graph("takes"), recorded.of_graph("intra_deliveries")
    assert (takes.height, within.height) == (
        (0, recorded.received) if recorded.within_process else (recorded.received, 0)
    )
    assert set(takes["match"].cast(pl.String)) <= {"matched"}
    assert within["dequeue_ns"].null_count() == 0


def test_messages_answers_with_the_same_edges(recorded: Recorded) -> None:
    edges = messages(recorded.trace).section("messages").frame
    edges = edges.filter(~pl.col("topic").is_in(OF_RCLCPP))
    assert edges.height == EDGES
    asked = {(e["publisher"], e["topic"], e["subscription"]): e["handled"] for e in edges.to_dicts()}
    measured = {
        (e["publisher"], e["topic"], e["subscription"]): e["received"] + e["warmup_received"]
        for e in recorded.final["edges"]
    }
    assert asked == measured


def test_every_callback_is_in_a_phase_of_the_one_executor(recorded: Recorded) -> None:
    phases = recorded.trace.table("phases")
    assert phases["thread"].n_unique() == 1
    assert phases["end_ns"].null_count() == 1  # waits for work until the end
    ran = phases.filter(pl.col("callback").is_not_null())
    instances = recorded.trace.table("callback_instances")
    assert ran.height == instances.height
    kinds = recorded.trace.table("callbacks")["kind"].cast(pl.String)
    by_kind = Counter(kinds.gather(instances["callback"]))
    # Between processes rclcpp takes a message in execute; within one, its waitable's execute is not told.
    dispatched = by_kind["subscription"] if recorded.within_process else 0
    assert Counter(ran["phase"].cast(pl.String)) == Counter(
        {"execute": instances.height - dispatched, "dispatch": dispatched}
    ) - Counter({"dispatch": 0})


def test_the_executor_has_its_table_of_phases(recorded: Recorded) -> None:
    rows = {row["function"]: row for row in executor(recorded.trace).section("executor").frame.to_dicts()}
    assert rows["thread"]["count"] == rows["spin"]["count"] == 1
    phases = Counter(recorded.trace.table("phases")["phase"].cast(pl.String))
    assert rows["get_next_ready_executable"]["count"] == phases["get_next_ready"]
    assert rows["wait_for_work"]["count"] in (phases["wait_for_work"], phases["wait_for_work"] - 1)
    assert rows["execute"]["count"] == phases["execute"]
    assert rows["wait_for_work"]["wall_ns"] > 0
    assert executor(recorded.trace).section("without_phases").frame.height == 0


def test_timers_ran_as_often_as_they_published(recorded: Recorded) -> None:
    timers = callbacks(recorded.trace).section("callbacks").frame.filter(pl.col("kind") == "timer")
    sent = sum(p["sent"] + p["warmup_sent"] for p in recorded.final["publishers"])
    assert int(timers["n"].sum()) == sent


@pytest.mark.parametrize("selection", [Selection(per_mille=0), Selection(), Selection(slowest=50, slow_callbacks=True)])
def test_why_tells_of_all_the_time(recorded: Recorded, selection: Selection) -> None:
    answer = why(recorded.trace, selection)
    assert_conserved(answer)
    if selection.per_mille == 0:
        assert answer.section("messages").frame.height == recorded.received


def test_why_of_a_process_that_is_not_there_has_no_messages(recorded: Recorded) -> None:
    pid = recorded.process_record["pid"]
    everything, none = (why(recorded.trace, Selection(pids=frozenset({n}))) for n in (pid, pid + 1))
    assert everything.section("why").frame["messages"].item() == recorded.received
    assert none.section("why").frame["messages"].item() == 0


def test_a_trial_s_answers_are_of_its_own_processes(recorded: Recorded, tmp_path: Path) -> None:
    (tmp_path / traced.FOLDER).symlink_to(recorded.folder / "ust")
    node = {"name": "montreal", "namespace": "/", "publishers": [{"topic": "/danube"}]}
    graph = Graph({"name": "g", "processes": [{"name": "p", "nodes": [node]}]})
    pid = recorded.process_record["pid"]
    found = []
    for pids in ({pid}, {pid, pid + 1}, {pid + 1}):
        # Nothing is later than that, so it is asked about every edge.
        assert traced.explain(tmp_path, graph, Thresholds.model_construct(late_ns=10**12), pids) == []
        answers = [json.loads((tmp_path / traced.FOLDER / f).read_text()) for f in (traced.FILE, traced.EXECUTOR)]
        found.append((answers[0]["why"]["rows"][0]["messages"], traced.phases(tmp_path) is not None))
    assert found == [(recorded.received, True), (recorded.received, True), (0, False)]


def test_the_summary_counts_the_graph(recorded: Recorded) -> None:
    (row,) = summary(recorded.trace).section("processes").frame.to_dicts()
    assert (row["pid"], row["nodes"], row["timers"]) == (recorded.process_record["pid"], 10, 13)
