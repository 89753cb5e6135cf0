"""message_flood: the graph that it makes, and what its evidence says of made and of real counts."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial
from support import graph as graph_of
from support import node, two_processes

from perflab import registry
from perflab.condition import Counts, NotInEffect, Window, flood_churn, flood_evidence, message_flood
from perflab.condition.flood_evidence import Account, Curve
from perflab.condition.flood_graph import Flood, FloodParameters, MessageType, lay_out
from perflab.condition.message_flood import KIND, MessageFlood
from perflab.errors import BadInput, Unavailable
from perflab.experiment import domain as domains
from perflab.host import Host
from perflab.models import as_json
from perflab.native import Native
from perflab.workload import Graph, extend, topology
from tests.marks import long_but

S = 1_000_000_000
BEGIN = 100 * S
LIMIT_S = 60.0  # for what comes at once on a machine that is not busy

TYPES = (
    MessageType("stamped10b", 10),
    MessageType("stamped1kb", 1024),
    MessageType("stamped_int64", 8),
    MessageType("stamped_vector", None),
)

MODES = {
    "default": "",
    "none": "readers=none",
    "several processes": "publishers=5,processes=3,rate=100",
    "large": "payload=1MiB,rate=10",
    "odd size": "payload=1000",
    "slow reliable reader": "reliability=reliable,history=keep_all,work=2ms",
    "transient local": "durability=transient_local,reliability=reliable,depth=3",
    "several readers": "readers_per_topic=3",
    "inside": "readers=inside,process=pong,work=100us",
    "topics": "readers=topics,rate=100",
    "one topic": "readers=topics,topics=/ping,publishers=3",
    "without processes": "own_process=off,readers=external",
    "without processes and readers": "own_process=off,readers=none",
    "many": "publishers=40,rate=10",
    "churn alone": "publishers=0,churn=10",
}


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_flood, "known_types", lambda: TYPES)


def given(text: str = "") -> dict[str, str]:
    return registry.split(f"message_flood:{text}" if text else "message_flood", "--condition")[1]


def parameters(text: str = "") -> FloodParameters:
    return FloodParameters.model_validate(given(text))


def flooded(text: str = "", graph: Graph | None = None) -> Graph:
    return lay_out(graph or workload(), "message_flood", parameters(text), TYPES)


def flood(text: str = "", graph: Graph | None = None) -> Flood:
    return Flood.of(flooded(text, graph), "message_flood", parameters(text))


def workload() -> Graph:
    return Graph(two_processes())


def made(text: str = "") -> MessageFlood:
    return MessageFlood.model_validate(given(text))


# --- What a user may say ---


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rate=0", "rate: "),
        ("rate=fast", "rate: "),
        ("publishers=1000", "publishers: "),
        ("payload=0", "payload: "),
        ("payload=big", "payload: 'big' is not a size"),
        ("history=keep_all,depth=5", "depth: keep_all keeps every message; leave depth out"),
        ("own_process=off,processes=2", "processes: own_process=off gives the flood no process"),
        ("publishers=2,processes=3", "processes: 3 processes cannot share 2 publishers"),
        ("process=pong", "process: applies only to readers=inside"),
        ("readers=inside,topics=/ping", "topics: applies only to readers=topics"),
        ("readers=none,work=1ms", "work: has no effect: readers=none has no readers of the flood's own"),
        (
            "readers=topics,readers_per_topic=2",
            "readers_per_topic: has no effect: readers=topics has no readers of the flood's own",
        ),
        ("publishers=0", "churn: is required if publishers is 0"),
        ("churn_of=participants", "churn_of: applies only to churn"),
        ("reader=none", "no parameter 'reader'; did you mean readers?"),
    ],
)
def test_what_makes_no_sense_is_one_line_that_names_the_parameter(text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as refused:
        KIND.make(given(text), "--condition message_flood")
    assert f"--condition message_flood: {complaint}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_parameter_is_described() -> None:
    assert [name for name, field in FloodParameters.model_fields.items() if not field.description] == []


def test_parameters_have_every_default_filled_in() -> None:
    assert made().parameters | {"publishers": 4, "rate": 1000.0, "payload": 1024, "depth": 10} == made().parameters
    assert made("readers=topics").parameters["publishers"] == 1
    assert made("readers=topics").parameters["payload"] is None
    assert json.loads(json.dumps(made("readers=topics,topics=/ping").parameters))["topics"] == ["/ping"]


def test_on_and_off_of_yaml_are_understood() -> None:
    assert FloodParameters.model_validate({"own_process": False}).own_process == "off"
    assert FloodParameters.model_validate({"rate": "250Hz"}).rate == 250.0


# --- The graph ---


@pytest.mark.parametrize("text", MODES.values(), ids=MODES.keys())
def test_the_workload_stays_as_it_was(text: str) -> None:
    before = workload()
    document = copy.deepcopy(before.document)
    after = flooded(text, before)
    assert before.document == document
    assert (after.edges(), after.services()) == (before.edges(), before.services())
    assert (after.publishers(), after.subscriptions()) == (before.publishers(), before.subscriptions())
    assert after.own_processes == before.processes
    assert set(after.condition_nodes().values()) <= {"message_flood"}
    assert after.processes[: len(before.processes)] == before.processes


@pytest.mark.parametrize("text", MODES.values(), ids=MODES.keys())
def test_a_second_flood_takes_names_of_its_own(text: str) -> None:
    once = flooded(text)
    twice = lay_out(once, "message_flood_2", parameters(text), TYPES)
    assert len(set(twice.processes)) == len(twice.processes)
    assert len(twice.condition_nodes()) == 2 * len(once.condition_nodes())
    again = lay_out(once, "message_flood", parameters(text), TYPES)  # even with the same label
    assert len(again.condition_nodes()) == 2 * len(once.condition_nodes())


def test_publishers_and_readers_are_in_processes_of_their_own() -> None:
    graph = flooded("publishers=5,processes=2,readers_per_topic=2")
    assert graph.condition_processes == {
        "message_flood": "message_flood",
        "message_flood_2": "message_flood",
        "message_flood_readers": "message_flood",
    }
    sizes = {p["name"]: len(p["nodes"]) for p in graph.document["processes"]}
    assert [sizes[name] for name in graph.condition_processes] == [3, 2, 2]
    laid = flood("publishers=5,processes=2,readers_per_topic=2")
    assert (laid.publishers, laid.readers, laid.messages_per_s, laid.deliveries_per_s) == (5, 2, 5000, 10000)


def test_a_publisher_has_a_timer_that_leaves_out_what_it_missed() -> None:
    (publisher,) = [n for p in flooded("publishers=1,rate=300").document["processes"][2:3] for n in p["nodes"]]
    (timer,) = publisher["timers"]
    assert (timer["period_ns"], timer["overrun"]) == (3_333_333, "skip")
    assert publisher["publishers"][0]["frequency_hz"] == 1e9 / 3_333_333


def test_without_processes_of_its_own_the_flood_is_on_threads_of_its_own() -> None:
    graph = flooded("own_process=off,publishers=2")
    assert graph.condition_processes == {}
    process = extend.process_of(graph, "ping")
    workloads = {n["executor"] for n in process["nodes"] if not n.get("condition")}
    floods = [n["executor"] for n in process["nodes"] if n.get("condition")]
    assert workloads == {0}
    assert sorted(floods) == [1, 2, 3]
    assert [e["id"] for e in process["executors"]] == [0, 1, 2, 3]


def test_readers_inside_share_the_executor_of_the_workload() -> None:
    text = "readers=inside,process=pong,work=1ms"
    (reader,) = [n for n in extend.process_of(flooded(text), "pong")["nodes"] if n.get("condition")]
    assert reader["executor"] == 0
    assert [s["topic"] for s in reader["subscriptions"]] == [topic.name for topic in flood(text).topics]
    assert reader["reactions"] == [
        {"kind": "sink", "on": [0, 1, 2, 3], "publish": [], "work_ns": 1_000_000, "period_ns": None}
    ]


def test_readers_inside_need_a_process_where_there_are_several() -> None:
    with pytest.raises(BadInput, match="readers=inside needs process=NAME; choose from ping, pong"):
        flood("readers=inside")
    with pytest.raises(BadInput, match="the graph has no process 'pang'; choose from ping, pong"):
        flood("readers=inside,process=pang")
    with pytest.raises(BadInput, match="process 'ping' has no executor 7 with nodes on it; choose from 0"):
        flood("readers=inside,process=ping,executor=7")
    alone = Graph(graph_of({"one": [node("a", {"/a": 10}, ["/a"])]}))
    assert flood("readers=inside", alone).readers == 1


def test_topics_are_the_workloads_with_its_type_and_size() -> None:
    laid = flood("readers=topics,rate=100")
    assert [(t.name, t.type, t.size_bytes, t.subscriptions) for t in laid.topics] == [
        ("/pong", "stamped_int64", 8, 1),
        ("/ping", "stamped_int64", 8, 2),
    ]
    assert laid.deliveries_per_s == 300
    assert laid.readers == 0
    with pytest.raises(BadInput, match="the workload does not subscribe to /pang, but to /ping, /pong"):
        flood("readers=topics,topics=pang")
    with pytest.raises(BadInput, match="are stamped_int64, which always has 8 bytes"):
        flood("readers=topics,payload=100")


def test_a_relay_of_the_workload_keeps_its_size() -> None:
    document = graph_of({"one": [node("a", {"/a": 10}), node("b", {}, ["/a"])]})
    source, relay = document["processes"][0]["nodes"]
    source["publishers"][0] |= {"type": "stamped_vector", "size_bytes": 500}
    relay["subscriptions"][0]["type"] = "stamped_vector"
    assert flood("readers=topics,payload=100", Graph(document)).topics[0].size_bytes == 100
    relay["reactions"] = [{"kind": "relay", "on": [0], "publish": [], "work_ns": 0, "period_ns": None}]
    assert flood("readers=topics", Graph(document)).topics[0].size_bytes == 500
    with pytest.raises(BadInput, match="a relay of the workload forwards /a unchanged, with 500 bytes"):
        flood("readers=topics,payload=100", Graph(document))


def test_a_flood_on_a_topic_whose_messages_have_elements_is_as_long_as_the_workload_s() -> None:
    document = graph_of({"one": [node("a", {"/a": 10}), node("b", {}, ["/a"])]})
    source, reader = document["processes"][0]["nodes"]
    source["publishers"][0] |= {"type": "my_msgs/msg/Sweep", "size_bytes": 1640, "length": 40}
    reader["subscriptions"][0]["type"] = "my_msgs/msg/Sweep"
    graph = Graph(document)
    laid = lay_out(graph, "message_flood", parameters("readers=topics"), TYPES)
    (sends,) = [p for _, node in laid.nodes_of("message_flood") for p in node["publishers"]]
    assert (sends["type"], sends["size_bytes"], sends["length"]) == ("my_msgs/msg/Sweep", 1640, 40)
    with pytest.raises(
        BadInput, match="depends on its elements; leave payload out for the 1640 of the workload's on /a"
    ):
        flood("readers=topics,payload=100", graph)
    source["publishers"] = []
    source["timers"] = []
    with pytest.raises(BadInput, match="the workload has no publisher of /a"):
        flood("readers=topics", Graph(document))


def test_an_offer_is_raised_to_what_every_subscription_asks_for() -> None:
    offer = extend.offer_for(
        {"reliability": "best_effort", "depth": 3},
        [{"reliability": "best_effort", "deadline_ns": 5}, {"durability": "transient_local", "deadline_ns": 3}],
    )
    assert offer == extend.DEFAULT_QOS | {
        "depth": 3,
        "reliability": "reliable",
        "durability": "transient_local",
        "deadline_ns": 3,
    }
    assert extend.offer_for({"reliability": "best_effort"}, [{"reliability": "best_effort"}])["reliability"] == (
        "best_effort"
    )


def test_the_type_has_the_payload_exactly_or_lets_the_publisher_choose() -> None:
    assert {(t.type, t.size_bytes) for t in flood("payload=1kB").topics} == {("stamped_vector", 1000)}
    assert {(t.type, t.size_bytes) for t in flood("payload=1KiB").topics} == {("stamped1kb", 1024)}
    with pytest.raises(
        BadInput, match=r"no message type has 73400320 bytes; choose from 8, 10, 1024 or anything up to 64"
    ):
        flood("payload=70MiB")
    with pytest.raises(BadInput, match=r"no message type has 1000 bytes; choose from 8, 10, 1024$"):
        lay_out(workload(), "message_flood", parameters("payload=1kB"), TYPES[:3])


def test_virtual_time_has_no_churn() -> None:
    made().check(Host(), workload(), "virtual")
    with pytest.raises(Unavailable, match="churn: virtual time has no discovery"):
        made("churn=5").check(Host(), workload(), "virtual")


# --- The evidence, of made counts ---


def curve(
    name: str, rate: float, received: float, seconds: int, subscriptions: int, *, until: int | None = None
) -> Curve:
    """A process that reports every second and sends and receives evenly until `until`."""
    active = [min(t, seconds if until is None else until) for t in range(seconds + 1)]
    return Curve(
        name,
        tuple(Counts(BEGIN + t * S, rate * n, 0, rate * n * subscriptions, received * n) for t, n in enumerate(active)),
    )


def judged(text: str, *curves: Curve, last: Counts | None = None, seconds: int = 10, **known: Any) -> dict[str, Any]:
    window = Window(BEGIN, BEGIN + seconds * S)
    account = Account(curves, window.end_ns, last, **known)
    return dict(as_json(flood_evidence.judge(flood(text), account, window)))


def test_a_flood_that_flows_is_in_effect() -> None:
    evidence = judged("", curve("flood", 4000, 0, 10, 1), curve("readers", 0, 3990, 10, 1), matched_readers=4)
    assert (evidence["in_effect"], evidence["reason"], evidence["notes"]) == (True, None, [])
    assert evidence["promised"]["messages_per_s"] == evidence["promised"]["deliveries_per_s"] == 4000
    achieved = evidence["achieved"]
    assert (achieved["sent"], achieved["delivered"], achieved["messages_per_s"]) == (40000, 39900, 4000)
    assert achieved["megabytes_per_s"] == pytest.approx(4.096)
    assert achieved["sent_in_second"] == [4000] * 10
    assert achieved["delivered_in_second"] == [3990] * 10


def test_a_flood_that_falls_silent_half_way_is_not_in_effect() -> None:
    evidence = judged("", curve("flood", 4000, 0, 10, 1, until=5), curve("readers", 0, 4000, 10, 1, until=5))
    assert evidence["in_effect"] is False
    assert evidence["reason"].startswith("0 messages were sent in second 6, of 4000 promised")


def test_a_flood_that_pauses_for_a_second_is_not_in_effect() -> None:
    points = curve("flood", 4000, 4000, 10, 1).points
    paused = tuple(p if p.at_ns < BEGIN + 5 * S else dataclasses.replace(p, sent=p.sent - 4000) for p in points)
    assert judged("", Curve("flood", paused))["reason"].startswith("0 messages were sent in second 5")


def test_a_process_that_is_not_heard_of_any_more_ends_the_flood() -> None:
    heard = Curve("flood", curve("flood", 4000, 4000, 10, 1).points[:6])
    last = Counts(BEGIN + 10 * S, 40000, 0, 40000, 40000)
    assert "process flood last reported 5.0 s before the end" in judged("", heard, last=last)["reason"]


def test_a_silence_is_not_filled_with_a_line() -> None:
    points = curve("flood", 4000, 4000, 10, 1).points

    def without(*seconds: int) -> dict[str, Any]:
        return judged("", Curve("flood", tuple(p for n, p in enumerate(points) if n not in seconds)))

    assert without(4)["in_effect"]  # two seconds: a late word
    mute = without(4, 5)
    assert mute["reason"] == "process flood reported nothing for 3.0 s, from 3.0 s into the measured part"
    known, unknown = [4000] * 3, [None] * 3
    assert mute["achieved"]["sent_in_second"] == known + unknown + [4000] * 4
    assert mute["achieved"]["delivered_in_second"] == known + unknown + [4000] * 4
    assert without(1, 2, 3)["reason"] == "process flood reported nothing for 4.0 s, from 0.0 s into the measured part"


def test_one_mute_process_of_several_is_named() -> None:
    mute = Curve("readers", tuple(p for n, p in enumerate(curve("r", 0, 4000, 10, 1).points) if n not in (6, 7)))
    evidence = judged("", curve("flood", 4000, 0, 10, 1), mute)
    assert evidence["reason"].startswith("process readers reported nothing for 3.0 s")
    assert evidence["achieved"]["sent_in_second"][5:8] == [None] * 3


def test_totals_alone_are_no_evidence_of_a_long_window() -> None:
    def of(seconds: int) -> dict[str, Any]:
        n = 4000 * seconds
        return judged("", last=Counts(BEGIN + seconds * S, n, 0, n, n), seconds=seconds)

    assert of(2)["in_effect"]
    assert of(10)["reason"] == "no process of the flood reported anything in the 10 s of the measured part"


def test_a_flood_that_is_too_slow_is_not_in_effect() -> None:
    reason = judged("", curve("flood", 3790, 3790, 10, 1))["reason"]
    assert reason.startswith("3790.0 messages/s were sent, of 4000.0 promised; at least 95% is needed")
    assert judged("", curve("flood", 3810, 3810, 10, 1))["in_effect"]
    assert judged("at_least=80%", curve("flood", 3210, 3210, 10, 1))["in_effect"]
    reason = judged("at_least=80%", curve("flood", 3190, 3190, 10, 1))["reason"]
    assert reason.startswith("3190.0 messages/s were sent, of 4000.0 promised; at least 80% is needed")


def test_a_stall_at_the_end_of_a_second_moves_messages_into_the_next() -> None:
    points = curve("flood", 4000, 4000, 10, 1).points
    late = tuple(dataclasses.replace(p, sent=p.sent - 390) if p.at_ns == BEGIN + 5 * S else p for p in points)
    assert judged("", Curve("flood", late))["in_effect"]
    later = tuple(dataclasses.replace(p, sent=p.sent - 700) if p.at_ns == BEGIN + 5 * S else p for p in points)
    assert judged("", Curve("flood", later))["reason"].startswith("3300 messages were sent in second 5")


def test_readers_that_get_nothing_are_not_in_effect() -> None:
    evidence = judged("", curve("flood", 4000, 0, 10, 1))
    assert evidence["reason"] == "no message of the flood was delivered in second 1"
    reason = judged("", curve("flood", 4000, 10, 10, 1), matched_readers=0)["reason"]
    assert reason == "readers were promised, but no publisher of the flood had one"


def test_best_effort_may_lose_and_reliable_may_not() -> None:
    halved = curve("flood", 4000, 2000, 10, 1)
    assert judged("", halved)["in_effect"]
    reason = judged("reliability=reliable", halved)["reason"]
    assert reason == "20000 messages were delivered, of 40000 sent to reliable readers; at least 95% is needed"
    assert judged("reliability=reliable,readers=inside,process=ping", halved)["in_effect"]
    fewer = curve("flood", 4000, 1900, 10, 1)
    reason = judged("", fewer)["reason"]
    assert reason == "19000 messages were delivered, of 40000 sent to best-effort readers; at least 50% is needed"
    assert judged("work=2ms", curve("flood", 4000, 480, 10, 1))["in_effect"]  # as many as they can
    assert judged("readers=inside,process=ping", fewer)["in_effect"]


def test_without_readers_nothing_is_delivered_and_the_evidence_says_so() -> None:
    evidence = judged("readers=none", curve("flood", 4000, 0, 10, 0), matched_readers=0)
    assert evidence["in_effect"]
    assert evidence["notes"] == ["nothing was delivered: no reader"]
    assert evidence["achieved"]["delivered"] == 0
    assert evidence["promised"]["deliveries_per_s"] == 0
    stranger = judged("readers=none", curve("flood", 4000, 0, 10, 0), matched_readers=2)
    assert stranger["reason"].startswith("no reader was promised, but there are 2")


def test_a_slow_reader_limits_what_is_promised() -> None:
    slow = "reliability=reliable,history=keep_all,work=2ms"
    evidence = judged(slow, curve("flood", 700, 480, 10, 1))
    assert evidence["in_effect"]
    assert evidence["promised"]["deliveries_per_s"] == evidence["promised"]["reader_limit_per_s"] == 500
    assert "at most 500 of 4000 deliveries/s are possible" in evidence["notes"][0]
    assert "slow the publishers down" in evidence["notes"][1]
    stuck = curve("flood", 700, 480, 10, 1, until=6)
    assert judged(slow, stuck)["reason"].startswith("nothing was sent in second 7")
    # Where messages may be dropped instead, the rate is kept.
    assert judged("work=2ms", curve("flood", 700, 480, 10, 1))["in_effect"] is False


def test_several_processes_are_added_at_common_instants() -> None:
    late = Curve("b", tuple(dataclasses.replace(p, at_ns=p.at_ns + S // 2) for p in curve("b", 2000, 0, 10, 1).points))
    evidence = judged("", curve("a", 2000, 4000, 10, 1), late)
    # b began half a second later by its lines, which is half a second of its rate in the first second.
    assert evidence["achieved"]["sent_in_second"] == [3000] + [4000] * 9


def test_the_last_word_completes_what_the_records_do_not_hold_yet() -> None:
    points = curve("flood", 4000, 4000, 10, 1).points[:10]  # until second 9
    last = Counts(BEGIN + 10 * S + S // 2, 40000, 0, 40000, 40000)
    achieved = judged("", Curve("flood", points), last=last)["achieved"]
    # Sending ended with the window, though the word came later.
    assert achieved["sent_in_second"] == achieved["delivered_in_second"] == [4000] * 10


def test_nobody_who_counted_is_no_evidence() -> None:
    evidence = judged("")
    assert evidence["in_effect"] is False
    assert evidence["achieved"] is None


def test_the_measured_part_may_begin_behind_the_first_counts() -> None:
    window = Window(BEGIN + 2 * S, BEGIN + 8 * S)
    known = Account((curve("flood", 4000, 4000, 10, 1),), window.end_ns)
    achieved = as_json(flood_evidence.judge(flood(), known, window))["achieved"]
    assert (achieved["sent"], achieved["seconds"], achieved["sent_in_second"]) == (24000, 6.0, [4000] * 6)


# --- The evidence, from records ---


class FloodedTrial(MadeTrial):
    """With a flood in its graph, and its counts."""

    def __init__(
        self,
        directory: Path,
        counts: Counts | None,
        companion: MadeCompanion | None = None,
        *,
        graph: Graph | None = None,
        runtime: str = "dds",
    ) -> None:
        monitor = MadeMonitor(directory / "monitor.jsonl").samples(1).reader()
        super().__init__(directory, monitor, companion, graph or flooded(), runtime)
        self.last = counts

    def counts(self, condition: str) -> Counts | None:
        return self.last if condition == "message_flood" else None


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def progress(second: int, sent: int, received: int, label: str = "message_flood") -> dict[str, Any]:
    counts = {"sent": sent, "not_sent": 1, "deliveries_expected": sent, "received": received}
    return {"type": "progress", "at_ns": BEGIN + second * S, "conditions": {label: counts}}


def flooded_records(folder: Path, *, muted_from: int = 100, readers: int = 1) -> None:
    """Four seconds of a flood of 4 x 1000 Hz, and of its reader."""
    start = {"type": "start", "at_ns": BEGIN - S, "measured_from_ns": BEGIN, "measured_until_ns": BEGIN + 4 * S}
    names = [f"/perflab/message_flood/publisher_{n}" for n in (1, 2, 3, 4)]
    ways = [{"node": n, "topic": "/t", "intra_process": 0, "middleware": readers} for n in names]
    counted = [{"node": names[0], "topic": "/t", "write_errors": 3}]
    sent = [4000 * min(t, muted_from) for t in range(5)]
    write(
        folder / "processes" / "message_flood.jsonl",
        {"type": "passing", "publishers": [*ways, {"node": "/ping", "intra_process": 9, "middleware": 9}]},
        {**start, "matched": True},
        *(progress(t, sent[t], 0) for t in range(1, 5)),
        progress(4, 99, 99, "another_flood"),
        {"type": "checkpoint", "publishers": counted, "edges": []},
    )
    write(
        folder / "processes" / "message_flood_readers.jsonl",
        {**start, "matched": True},
        *(progress(t, 0, sent[t] * readers) for t in range(1, 5)),
    )


def test_the_condition_reads_what_the_processes_recorded(tmp_path: Path) -> None:
    flooded_records(tmp_path)
    trial = FloodedTrial(tmp_path, Counts(BEGIN + 4 * S, 16000, 2, 16000, 16000))
    evidence = as_json(made().begin(trial).verify(Window(BEGIN, BEGIN + 4 * S)))
    assert evidence["in_effect"], evidence["reason"]
    achieved = evidence["achieved"]
    assert (achieved["sent"], achieved["delivered"], achieved["not_sent"]) == (16000, 16000, 2)
    assert (achieved["matched_readers"], achieved["write_errors"]) == (4, 3)
    assert achieved["last_heard_s"] == {"message_flood": 4.0, "message_flood_readers": 4.0}


def test_a_muted_flood_is_seen_in_the_records(tmp_path: Path) -> None:
    flooded_records(tmp_path, muted_from=2)
    evidence = as_json(made().begin(FloodedTrial(tmp_path, None)).verify(Window(BEGIN, BEGIN + 4 * S)))
    assert evidence["reason"].startswith("0 messages were sent in second 3")


def test_damaged_records_are_no_evidence(tmp_path: Path) -> None:
    flooded_records(tmp_path)
    path = tmp_path / "processes" / "message_flood.jsonl"
    path.write_text("not JSON\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(NotInEffect, match="records cannot be read"):
        made().begin(FloodedTrial(tmp_path, None)).verify(Window(BEGIN, BEGIN + 4 * S))


def test_virtual_time_is_judged_by_its_totals(tmp_path: Path) -> None:
    window = Window(BEGIN, BEGIN + 4 * S)

    def verified(counts: Counts | None) -> dict[str, Any]:
        return dict(as_json(made().begin(FloodedTrial(tmp_path, counts, runtime="virtual")).verify(window)))

    good = verified(Counts(7, 16000, 0, 16000, 16000))
    assert (good["in_effect"], good["achieved"]["messages_per_s"]) == (True, 4000)
    assert good["achieved"]["sent_in_second"] is None
    few = verified(Counts(7, 8000, 0, 8000, 8000))
    assert few["reason"].startswith("2000.0 messages/s were sent, of 4000.0 promised")
    assert not verified(None)["in_effect"]


# --- Churn, of made counts ---


def churned(rate: int, until: int = 40) -> list[dict[str, int]]:
    """Reports of perflab-churn, five a second, for 8 s; from 2 s before the window on."""
    return [
        {
            "at_ns": BEGIN - 2 * S + i * S // 5,
            "created": rate * min(i, until) // 5,
            "deleted": rate * min(i, until) // 5,
            "skipped": 0,
        }
        for i in range(41)
    ]


def test_churn_is_judged_by_its_cycles_and_by_who_saw_them() -> None:
    window, asked = Window(BEGIN, BEGIN + 6 * S), parameters("churn=10")
    some = dict.fromkeys((*flood_churn.FOUND, *flood_churn.LOST), 3)
    churn, reason = flood_churn.judge(asked, churned(10), some, window)
    achieved = as_json(churn)
    assert (achieved["cycles"], achieved["cycles_per_s"], reason) == (60, 10.0, None)
    _, reason = flood_churn.judge(asked, churned(10, until=20), some, window)
    assert reason == "20 endpoints came and went in 6.0 s, of 60 promised; at least 95% is needed"
    _, reason = flood_churn.judge(asked, churned(10)[:20], some, window)
    assert reason is not None
    assert "last reported 4.2 s before the end" in reason
    _, reason = flood_churn.judge(asked, churned(10), dict.fromkeys(some, 0), window)
    assert reason == "60 endpoints came and went, but no process of the trial discovered any"
    assert flood_churn.judge(asked, churned(10), None, window)[1] is None  # events were dropped: not known
    assert flood_churn.judge(asked, [], some, window)[1] == "perflab-churn reported nothing in the measured part"


def test_only_the_topics_of_churn_count_as_seen(tmp_path: Path) -> None:
    def event(code: str, text: str, at: int = 1) -> dict[str, Any]:
        return {"type": "event", "at_ns": BEGIN + at * S, "code": code, "text": text}

    write(
        tmp_path / "a.jsonl",
        event("writer_found", "rt/perflab_churn_1 perflab_msgs::msg::dds_::Stamped10b_"),
        event("writer_found", "rt/ping t"),
        event("reader_found", "rt/perflab_churn_2 t", at=20),
        event("participant_found", ""),
    )
    window = Window(BEGIN, BEGIN + 6 * S)
    seen = flood_churn.seen([tmp_path / "a.jsonl"], window)
    assert seen is not None
    assert (seen["writer_found"], seen["reader_found"], seen["participant_found"]) == (1, 0, 1)
    write(tmp_path / "b.jsonl", event("events_dropped", "5"))
    assert flood_churn.seen([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], window) is None


def test_churn_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "native" / "perflab-churn"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PERFLAB_NATIVE", str(program.parent))
    companion = MadeCompanion("churn", 1, [{"type": "error", "kind": "unsupported", "text": "no such middleware"}])
    trial = FloodedTrial(tmp_path, None, companion)
    churning = made("churn=10").begin(trial)
    with pytest.raises(NotInEffect, match="message_flood: churn: no such middleware"):
        churning.settle()
    churning.remove()
    assert companion.stopped == 1
    config = json.loads((tmp_path / "message_flood" / "churn.json").read_text(encoding="utf-8"))
    assert trial.commands == [[str(program), "--config", str(tmp_path / "message_flood" / "churn.json")]]
    assert config["middleware"] == trial.middleware_configuration
    assert (config["what"], config["rate_hz"], config["topics"]) == ("endpoints", 10, 1)
    assert config["participants_expected"] == 5  # two processes, two of the flood, and churn itself


# --- With the real programs ---


@pytest.fixture(scope="session")
def native() -> Native:
    named = os.environ.get("PERFLAB_NATIVE")
    folder = Path(named) if named else Path(sys.prefix) / "lib" / "perflab"
    if not os.access(folder / "perflab-node", os.X_OK):
        pytest.skip(f"{folder / 'perflab-node'} is missing; build the native programs and set PERFLAB_NATIVE")
    return Native(folder)


@pytest.fixture
def dds_domain() -> Iterator[int]:
    with domains.hold() as held:
        yield held


def known_types(native: Native) -> tuple[MessageType, ...]:
    """As those of message_flood, of these programs."""
    return tuple(
        MessageType(t["name"], t["payload_bytes"], usual=t["family"] == "Stamped")
        for t in topology.message_types(native)
    )


def configuration(
    native: Native, graph: Graph, process: str | None, folder: Path, domain: int = 0, **more: Any
) -> Path:
    """A node's configuration: of a process on `sim`, or of all of them in virtual time."""
    middleware: dict[str, Any] = {"name": "virtual", "options": {}}
    if process is not None:
        library = native.middleware_library("shm")
        middleware = {"name": "shm", "library": str(library), "domain": domain, "network": "lo", "options": {}}
    path = folder / f"{process or 'all'}.config.json"
    path.write_text(
        json.dumps(
            {
                "schema": 1,
                "graph": graph.document,
                "process": process,
                "runtime": "virtual" if process is None else "dds",
                "middleware": middleware,
                "duration_ns": 3 * S,
                "records": str(folder / f"{process or 'all'}.jsonl"),
                **more,
            }
        ),
        encoding="utf-8",
    )
    return path


@pytest.mark.native
@pytest.mark.parametrize("text", MODES.values(), ids=MODES.keys())
def test_perflab_node_accepts_the_graph_with_the_flood(native: Native, tmp_path: Path, text: str) -> None:
    file = tmp_path / "two.json"
    file.write_text(
        json.dumps(
            {
                "name": "two",
                "processes": [
                    {"name": "ping", "nodes": [user_node("ping", "/ping", "/pong")]},
                    {"name": "pong", "nodes": [user_node("pong", "/pong", "/ping")]},
                ],
            }
        ),
        encoding="utf-8",
    )
    for graph in (topology.load([str(file)], native).graph, topology.load(["sierra_nevada"], native).graph):
        asked = text if graph.name == "two" else text.replace("process=pong,", "").replace("topics=/ping,", "")
        laid = lay_out(graph, "message_flood", parameters(asked), known_types(native))
        config = configuration(native, laid, None, tmp_path)
        done = subprocess.run(
            [native.program("perflab-node"), "--config", config, "--check"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def user_node(name: str, publishes: str, subscribes: str) -> dict[str, Any]:
    """As a user writes it, with a deadline and durability that the flood must meet."""
    return {
        "name": name,
        "publishers": [
            {
                "topic": publishes,
                "type": "stamped_vector",
                "size": "300B",
                "period": "20ms",
                "qos": {"durability": "transient_local", "deadline": "100ms"},
            }
        ],
        "subscriptions": [
            {
                "topic": subscribes,
                "type": "stamped_vector",
                "qos": {"durability": "transient_local", "deadline": "200ms"},
            }
        ],
    }


Say = Callable[[dict[str, Any]], None]


@contextmanager
def started(program: Path, config: Path) -> Iterator[tuple[subprocess.Popen[bytes], Say, Iterator[dict[str, Any]]]]:
    """A program with a control channel, which is gone behind the block."""
    mine, its = socket.socketpair()
    mine.settimeout(LIMIT_S)
    with mine, its:
        command = [str(program), "--config", str(config), "--control-fd", str(its.fileno())]
        process = subprocess.Popen(command, pass_fds=[its.fileno()])
        its.close()
        lines = (json.loads(line) for line in mine.makefile("r", encoding="utf-8"))
        try:
            yield process, lambda body: mine.sendall(json.dumps(body).encode() + b"\n"), lines
        finally:
            process.kill()
            process.wait()


def heard(lines: Iterator[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The next line of that kind."""
    return next(line for line in lines if line["type"] == kind)


def nothing(pids: dict[str, int]) -> None:
    """What happens meanwhile where nothing does."""


def run_flooded(
    native: Native, graph: Graph, folder: Path, meanwhile: Callable[[dict[str, int]], None] = nothing
) -> tuple[Window, Counts]:
    """All processes of a graph on `sim` for three seconds; `meanwhile` begins with the measured part."""
    (folder / "processes").mkdir()
    program = native.program("perflab-node")
    with ExitStack() as stack:
        domain = stack.enter_context(domains.hold())
        configs = [configuration(native, graph, name, folder / "processes", domain) for name in graph.processes]
        nodes = [stack.enter_context(started(program, config)) for config in configs]
        writers = [writer for _, _, lines in nodes for writer in heard(lines, "created")["writers"]]
        for _, _, lines in nodes:
            ready = heard(lines, "ready")
            assert ready["matched"], ready["unmatched"]
        at_ns = time.monotonic_ns() + S
        for _, say, _ in nodes:
            say({"type": "start", "at_ns": at_ns, "writers": writers})
        time.sleep(max(0, at_ns - time.monotonic_ns()) / S)
        meanwhile({name: node[0].pid for name, node in zip(graph.processes, nodes, strict=True)})
        last = [
            next(line for line in lines if line["type"] == "progress" and not line["publishing"])
            for _, _, lines in nodes
        ]
        for _, say, _ in nodes:
            say({"type": "stop"})
        for process, _, lines in nodes:
            heard(lines, "done")
            assert process.wait(LIMIT_S) == 0
    return Window(at_ns, at_ns + 3 * S), summed(last)


def summed(last: list[dict[str, Any]]) -> Counts:
    own = [line["conditions"]["message_flood"] for line in last]
    return Counts(
        at_ns=min(line["at_ns"] for line in last),
        sent=sum(c["sent"] for c in own),
        not_sent=sum(c["not_sent"] for c in own),
        deliveries_expected=sum(c["deliveries_expected"] for c in own),
        received=sum(c["received"] for c in own),
    )


# Gentle: the machine that tests run on may be busy.
GENTLE = "publishers=2,rate=50"


@pytest.mark.native
@pytest.mark.parametrize(
    ("text", "deliveries"),
    long_but(
        [(GENTLE, 1)],
        [
            (GENTLE, 1),
            (f"{GENTLE},readers=none", 0),
            (f"{GENTLE},readers=inside,process=pong,reliability=reliable", 1),
            ("publishers=1,rate=50,readers=topics,topics=/ping", 2),
            (f"{GENTLE},own_process=off,readers_per_topic=2", 2),
        ],
    ),
)
def test_a_real_flood_is_counted_by_those_who_got_it(
    native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, deliveries: int
) -> None:
    monkeypatch.setattr(message_flood, "known_types", lambda: known_types(native))
    graph = made(text).extend(workload())
    laid = Flood.of(graph, "message_flood", parameters(text))
    window, counts = run_flooded(native, graph, tmp_path)
    evidence = as_json(made(text).begin(FloodedTrial(tmp_path, counts, graph=graph)).verify(window))
    achieved = evidence["achieved"]
    expected = round(laid.messages_per_s * 3)
    assert counts.sent + counts.not_sent == expected
    assert counts.deliveries_expected == counts.sent * deliveries
    assert achieved["delivered"] == counts.received
    assert achieved["matched_readers"] == laid.publishers * deliveries
    assert (achieved["delivered"] > 0) == (deliveries > 0)
    assert (flood_evidence.NO_READER in evidence["notes"]) == (deliveries == 0)


@pytest.mark.native
def test_a_real_flood_that_is_muted_for_a_second_is_not_in_effect(
    native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mute(pids: dict[str, int]) -> None:
        time.sleep(0.5)
        os.kill(pids["message_flood"], signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(pids["message_flood"], signal.SIGCONT)

    monkeypatch.setattr(message_flood, "known_types", lambda: known_types(native))
    condition = made(f"{GENTLE},at_least=60")
    graph = condition.extend(workload())
    window, counts = run_flooded(native, graph, tmp_path, mute)
    evidence = as_json(condition.begin(FloodedTrial(tmp_path, counts, graph=graph)).verify(window))
    assert evidence["in_effect"] is False
    assert counts.not_sent >= 100  # two publishers, 50 Hz, 1.5 s, less what the last tick of each makes up for


@pytest.mark.native
@pytest.mark.parametrize("what", ["endpoints", "participants"])
def test_real_churn_comes_goes_and_leaves_nothing(native: Native, tmp_path: Path, dds_domain: int, what: str) -> None:
    program = native.folder / "perflab-churn"
    if not program.exists():
        pytest.skip(f"{program} is missing; build the native programs")
    config = tmp_path / "churn.json"
    library = str(native.middleware_library("shm"))
    middleware = {"name": "shm", "library": library, "domain": dds_domain, "network": "lo", "options": {}}
    asked = {"what": what, "rate_hz": 20, "topics": 3, "type": "stamped10b", "participants_expected": 2}
    config.write_text(json.dumps({"middleware": middleware, **asked}), encoding="utf-8")
    with started(program, config) as (process, say, lines):
        heard(lines, "ready")
        while heard(lines, "progress")["created"] < 10:
            pass
        say({"type": "stop"})
        done = heard(lines, "done")
        assert process.wait(LIMIT_S) == 0
    assert done["created"] == done["deleted"] >= 10


@pytest.mark.native
@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"what": "topics"}, 2, "what: unknown 'topics', known are endpoints and participants"),
        ({"rate_hz": 0}, 2, "rate_hz: must be from 0.01 to 10000"),
        ({"type": "stamped11b"}, 2, "type 'stamped11b' is unknown; did you mean stamped10b?"),
        ({"middleware": {"library": "/nowhere.so", "domain": 1}}, 1, "/nowhere.so"),
    ],
)
def test_what_churn_refuses_is_one_line(
    native: Native, tmp_path: Path, dds_domain: int, change: dict[str, Any], code: int, text: str
) -> None:
    program = native.folder / "perflab-churn"
    if not program.exists():
        pytest.skip(f"{program} is missing; build the native programs")
    library = str(native.middleware_library("shm"))
    asked = {"what": "endpoints", "rate_hz": 5, "topics": 1, "type": "stamped10b"}
    middleware = {"name": "shm", "library": library, "domain": dds_domain, "network": "lo", "options": {}}
    config = tmp_path / "churn.json"
    config.write_text(json.dumps({"middleware": middleware, **asked, **change}), encoding="utf-8")
    with started(program, config) as (process, _, lines):
        error = heard(lines, "error")
        assert process.wait(LIMIT_S) == code
    assert text in error["text"]
