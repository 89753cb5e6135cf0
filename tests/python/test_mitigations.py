"""Mitigations: the treatments with them, what each does to a graph, what it refuses, what it is compared with."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, cast

import pytest
from made_experiment import Effect, Made, read_results
from support import graph, node

from perflab import registry
from perflab.condition import Window
from perflab.condition.flood_graph import MessageType, lay_out
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.condition.message_flood import MessageFlood
from perflab.design import treatments as design
from perflab.design.document import Document, Written, validate
from perflab.design.treatments import BASELINE, Treatment
from perflab.design.variant import Variant
from perflab.errors import BadInput
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.mitigation.adaptive_throttling import Record, Step, judge, read_records
from perflab.mitigation.chain_priorities import Thread
from perflab.mitigation.kinds import PARTS
from perflab.mitigation.kinds import REGISTRY as MITIGATIONS
from perflab.report.tables.mitigations import mitigations
from perflab.results.comparison import MITIGATION
from perflab.results.summary import Summary
from perflab.statistics import findings
from perflab.statistics.metrics import named
from perflab.statistics.pairs import pairs_of, places_of
from perflab.workload import Graph
from perflab.workload import Made as Workload

MS = 1_000_000
S = 1_000_000_000
CYCLONEDDS = Middleware("cyclonedds", "dds", None, None)
ONE = Variant((CYCLONEDDS,))
# /camera sends a picture every 20 ms that /detector makes objects of, and /planner reads; /log listens.
CHAIN = Graph(
    graph(
        {
            "sensing": [node("camera", {"/image": 20})],
            "driving": [
                {**node("detector", {}, ["/image"]), "executor": 0},
                {**node("planner", {}, ["/objects"]), "executor": 1},
                {**node("log", {"/status": 100}, ["/objects"]), "executor": 2},
            ],
        }
    )
)
driving = CHAIN.document["processes"][1]
driving["executors"] = [{"id": n, "kind": "single_threaded", "thread": None} for n in range(3)]
(image,) = CHAIN.document["processes"][0]["nodes"][0]["publishers"]
driving["nodes"][0]["publishers"] = [{**image, "topic": "/objects"}]


def document(**keys: Any) -> Document:
    return validate(Written({"workload": "w", **keys}))


def treatments(**keys: Any) -> list[Treatment]:
    return design.treatments(document(**keys), [(ONE, {})], Workload(CHAIN))


def made(text: str) -> Any:
    name, given = registry.split(text, "--mitigation")
    return registry.make(name, given, "mitigation", MITIGATIONS, text)


def flood(text: str) -> Graph:
    """The chain with a flood."""
    name, given = registry.split(f"message_flood:{text}", "--condition")
    asked = registry.make(name, given, "condition", CONDITIONS, text)
    assert isinstance(asked, MessageFlood)
    return lay_out(CHAIN, asked.label, asked, [MessageType("stamped1kb", 1024)])


def nodes(of: Graph) -> dict[str, dict[str, Any]]:
    return dict(of.nodes())


# -- treatments ------------------------------------------------------------------------------------------------------


def test_every_treatment_runs_with_and_without_each_mitigation() -> None:
    found = treatments(
        conditions=[{"name": "flood", "message_flood": {}}, "cpu_load"],
        mitigations=[{"name": "throttle", "adaptive_throttling": {}}, "dds_tuning:depth=20"],
    )
    assert [t.label for t in found] == [
        BASELINE, "throttle", "dds_tuning",
        "flood", "flood + throttle", "flood + dds_tuning",
        "cpu_load", "cpu_load + throttle", "cpu_load + dds_tuning",
    ]  # fmt: skip
    mitigated = found[4]
    assert [c.name for c in mitigated.conditions] == ["message_flood", "adaptive_throttling"]
    said = mitigated.document()
    assert said["mitigations"] == ["adaptive_throttling"]
    assert list(said["condition_parameters"]) == ["message_flood", "adaptive_throttling"]
    assert [t.disturbed for t in found[:4]] == [False, False, False, True]
    assert len({t.place for t in found}) == 1


def test_a_condition_and_a_mitigation_of_one_name_are_refused() -> None:
    with pytest.raises(
        BadInput, match=r"^mitigations: 'x' would be the name of two treatments, dds_tuning and cpu_load"
    ):
        treatments(conditions=[{"name": "x", "cpu_load": {}}], mitigations=[{"name": "x", "dds_tuning": {"depth": 20}}])


def test_without_a_baseline_a_mitigation_does_not_stand_alone() -> None:
    found = treatments(conditions="cpu_load", mitigations="dds_tuning:depth=20", baseline="off")
    assert [t.label for t in found] == ["cpu_load", "cpu_load + dds_tuning"]


def test_levels_of_a_mitigation_are_treatments_of_one_place() -> None:
    found = treatments(mitigations="dds_tuning:depth=1", factors={"dds_tuning.depth": [20, 50]})
    assert [t.label for t in found] == [BASELINE, "dds_tuning depth=20", "dds_tuning depth=50"]
    assert len({t.place for t in found}) == 1


def test_a_baseline_follows_disturbances_and_not_mitigations() -> None:
    said = document(conditions="cpu_load", mitigations="dds_tuning:depth=20", order="as_written")
    found = design.treatments(said, [(ONE, {})], Workload(CHAIN))
    order = design.plan(said, found)
    assert [p.treatment.label for p in order] == [
        BASELINE, "dds_tuning", "cpu_load", BASELINE, "cpu_load + dds_tuning", BASELINE,
    ]  # fmt: skip
    assert [p.after for p in order] == [None, None, None, "cpu_load", None, "cpu_load + dds_tuning"]


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"mitigations": "prayer"}, "no mitigation named 'prayer'; there are"),
        ({"mitigations": "cpu_load"}, "no mitigation named 'cpu_load'"),
        ({"mitigations": "dds_tuning"}, "mitigation dds_tuning: nothing is set; name depth, receive_buffer"),
        ({"mitigations": "chain_priorities:lowest=90"}, "lowest: 90 is above highest, 80"),
        ({"mitigations": ["dds_tuning:depth=2"] * 2}, "mitigations: dds_tuning is there twice"),
        (
            {"factors": {"adaptive_throttling.target": ["1ms"]}},
            "no treatment has the mitigation adaptive_throttling; name it in `mitigations`",
        ),
    ],
)
def test_what_is_wrong_is_one_line(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        design.check_factors(document(**keys))
        treatments(**keys)
    assert complaint in str(error.value)


@pytest.mark.parametrize("name", list(MITIGATIONS))
def test_a_kind_is_a_part_of_treatments(name: str) -> None:
    assert PARTS[name] is MITIGATIONS[name]
    assert name not in CONDITIONS


# -- dds_tuning ------------------------------------------------------------------------------------------------------


def test_depth_is_that_of_the_workload_and_not_of_its_flood() -> None:
    tuned = made("dds_tuning:depth=33").extend(flood("depth=7"))
    depths = {
        name: {end["qos"].get("depth") for end in (*entry["publishers"], *entry["subscriptions"])}
        for name, entry in tuned.nodes()
    }
    assert depths.pop("/camera") == depths.pop("/detector") == {33}
    assert depths["/perflab/message_flood/publisher_1"] == {7}


@pytest.mark.parametrize(
    ("middleware", "text", "options"),
    [
        ("cyclonedds", "receive_buffer=1MiB", {"socket_receive_buffer": "1048576"}),
        ("cyclonedds", "shared_memory=on", {"shared_memory": "on"}),
        ("fastdds", "shared_memory=off,send_buffer=64kB", {"transport": "udp", "socket_send_buffer": "64000"}),
        ("fastdds", "shared_memory=on", {"transport": "udp+shm", "data_sharing": "on"}),
        ("zenoh", "shared_memory=off", {"shared_memory": "off"}),
    ],
)
def test_a_middleware_says_what_it_has(middleware: str, text: str, options: dict[str, str]) -> None:
    before = Middleware(middleware, "dds", None, None, {"lease_duration": "5s"})
    (tuned,) = made(f"dds_tuning:{text}").tuned((before,))
    assert tuned.options == {"lease_duration": "5s", **options}


def test_what_a_middleware_has_not_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^dds_tuning: shared_memory: middleware udp has no such setting; it has depth"):
        made("dds_tuning:shared_memory=on").tuned((Middleware("udp", "dds", None, None),))
    given = Middleware("cyclonedds", "dds", None, None, {"shared_memory": "on"})
    with pytest.raises(BadInput, match=r"^dds_tuning: middleware cyclonedds already has shared_memory=on; leave"):
        made("dds_tuning:shared_memory=on").tuned((given,))
    with pytest.raises(BadInput, match=r"^dds_tuning: depth: every queue of the workload already has a depth of 10$"):
        made("dds_tuning:depth=10").check(Host(), CHAIN, "dds")


def test_a_trial_has_the_tuned_middleware_and_its_place_the_asked_one() -> None:
    baseline, tuned = treatments(mitigations="dds_tuning:receive_buffer=1MiB")
    assert baseline.place == tuned.place
    assert baseline.in_trial is baseline.variant
    assert tuned.in_trial.middlewares[0].options == {"socket_receive_buffer": "1048576"}


# -- chain_priorities ------------------------------------------------------------------------------------------------


def test_all_chains_of_a_graph_the_shortest_period_first_and_ends_above_begins() -> None:
    given = made("chain_priorities").priorities(CHAIN)
    # camera > detector > planner, then camera > detector > log.
    assert given == {
        Thread("driving", 1): 80,
        Thread("driving", 0): 79,
        Thread("sensing", 0): 78,
        Thread("driving", 2): 77,
    }
    assert made("chain_priorities:highest=50,lowest=49").priorities(CHAIN)[Thread("driving", 2)] == 49


def test_priorities_are_those_of_the_graph_s_threads_and_keep_their_cpus() -> None:
    before = json.loads(json.dumps(CHAIN.document))
    before["processes"][1]["threads"] = {
        "executors": {"policy": "OTHER", "priority": 0, "cpus": [1]},
        "middleware": {"policy": "OTHER", "priority": 0, "cpus": [0]},
    }
    sensing, driving = made("chain_priorities:policy=RR").extend(Graph(before)).document["processes"]
    assert [executor["thread"] for executor in driving["executors"]] == [
        {"policy": "RR", "priority": level, "cpus": [1]} for level in (79, 80, 77)
    ]
    assert driving["threads"]["middleware"] == {"policy": "RR", "priority": 80, "cpus": [0]}
    assert sensing["threads"]["middleware"] == {"policy": "RR", "priority": 78, "cpus": []}
    alone = made("chain_priorities:middleware=off").extend(CHAIN).document["processes"][0]
    assert alone["threads"] == {"executors": None, "middleware": None}


def paths(folder: Path, text: str) -> str:
    file = folder / "paths.yaml"
    file.write_text(f"paths:\n{text}")
    return str(file)


def by(file: str) -> Any:
    return made(f"chain_priorities:paths={file}")


def test_paths_go_by_weight_then_by_deadline(tmp_path: Path) -> None:
    file = paths(
        tmp_path,
        "  - {name: status, nodes: [/camera, /log], deadline: 1s}\n"
        "  - {name: plan, nodes: [/camera, /planner], deadline: 10ms}\n"
        "  - {name: objects, topics: [/image], deadline: 1s, weight: 3}\n",
    )
    asked = by(file)
    assert [chain.name for chain in asked.chains(CHAIN)] == ["objects", "plan", "status"]
    assert asked.priorities(CHAIN) == {
        Thread("driving", 0): 80,
        Thread("sensing", 0): 79,
        Thread("driving", 1): 78,
        Thread("driving", 2): 77,
    }


@pytest.mark.parametrize("way", ["topics: [/objects, /plan]", "nodes: ['/[dl]*', /driver]"])
def test_a_path_goes_by_the_readers_that_lead_on(tmp_path: Path, way: str) -> None:
    before = json.loads(json.dumps(CHAIN.document))
    driving = before["processes"][1]["nodes"]
    driving.reverse()  # /log, which sends nothing to anybody, reads /objects before /planner does
    driving[1]["publishers"] = [{**image, "topic": "/plan"}]
    before["processes"].append(graph({"acting": [node("driver", {}, ["/plan"])]})["processes"][0])
    (chain,) = by(paths(tmp_path, f"  - {{name: plan, {way}, deadline: 1s}}\n")).chains(Graph(before))
    assert [thread.words for thread in chain.threads] == [
        "driving executor 0", "driving executor 1", "acting executor 0",
    ]  # fmt: skip


def test_threads_of_programs_stand_for_the_executor_of_the_first_node(tmp_path: Path) -> None:
    before = json.loads(json.dumps(CHAIN.document))
    before["processes"][0] |= {"program": "camera", "threads": {"executors": None, "middleware": None, "grab": None}}
    graph_ = Graph(before)
    file = paths(tmp_path, "  - {name: plan, nodes: [/camera, /planner], threads: ['*.grab'], deadline: 10ms}\n")
    asked = by(file)
    assert asked.priorities(graph_) == {
        Thread("driving", 1): 80,
        Thread("driving", 0): 79,
        Thread("sensing", role="grab"): 78,
    }
    assert asked.extend(graph_).document["processes"][0]["threads"]["grab"]["priority"] == 78


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{name: a, nodes: [/camera, /nobody]}", "paths.yaml:2: chain_priorities: no node '/nobody'"),
        (
            "{name: a, nodes: [/planner, /camera]}",
            "no message goes from /planner to /camera through the graph's topics",
        ),
        ("{name: a, topics: [/nothing]}", "no publisher sends '/nothing' to a node of the graph"),
        ("{name: a, times: t, threads: [x.y]}", "no thread 'x.y'; this workload has no programs with named threads"),
        ("{name: a, times: t}", "has no chain through this workload's threads"),
    ],
)
def test_names_of_paths_are_those_of_the_graph(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        by(paths(tmp_path, f"  - {text}\n")).chains(CHAIN)
    assert complaint in str(error.value)


# -- adaptive_throttling ---------------------------------------------------------------------------------------------


def test_readers_of_a_flood_acknowledge_and_its_timers_listen() -> None:
    flooded = flood("publishers=2,readers=external")
    found = made("adaptive_throttling:target=20ms,every=5").extend(flooded)
    by_name = nodes(found)
    reader = by_name["/perflab/message_flood/reader_1"]
    acknowledged = [one for s in reader["subscriptions"] for one in s["acknowledge"]]
    assert acknowledged == [
        {
            "from": f"/perflab/message_flood/publisher_{n}",
            "node": f"/perflab/adaptive_throttling/acknowledgement_{n}",
            "topic": f"/perflab/adaptive_throttling/acknowledgement_{n}",
            "every": 5,
        }
        for n in (1, 2)
    ]
    (timer,) = by_name["/perflab/message_flood/publisher_2"]["timers"]
    listener = "/perflab/adaptive_throttling/listener_message_flood"
    assert timer["throttle"] == {
        "sources": [{"node": listener, "topic": acknowledged[1]["topic"], "every": 5, "counted": True}],
        "target_ns": 20 * MS,
        "interval_ns": 100 * MS,
        "accepted": 0.9,
        "decrease": 0.5,
        "increase": 0.05,
        "lowest": 0.01,
    }
    assert [s["topic"] for s in by_name[listener]["subscriptions"]] == [one["topic"] for one in acknowledged]
    readers = next(p for p in found.document["processes"] if p["name"] == "message_flood_readers")
    assert [n["name"] for n in readers["nodes"]] == ["reader_1", "acknowledgement_1", "acknowledgement_2"]
    assert {n["condition"] for n in (by_name[listener], readers["nodes"][1])} == {"adaptive_throttling"}
    assert all("acknowledge" not in s for _, n in flooded.nodes() for s in n["subscriptions"])


def test_topics_of_the_workload_can_be_watched() -> None:
    found = made("adaptive_throttling:watch=image").extend(flood("publishers=1,readers=external"))
    (subscription,) = nodes(found)["/detector"]["subscriptions"]
    assert [one["from"] for one in subscription["acknowledge"]] == ["/camera"]
    (timer,) = nodes(found)["/perflab/message_flood/publisher_1"]["timers"]
    assert [source["counted"] for source in timer["throttle"]["sources"]] == [True, False]


def test_timers_of_the_workload_can_be_throttled() -> None:
    found = made("adaptive_throttling:publishers=timers").extend(CHAIN)
    assert nodes(found)["/camera"]["timers"][0]["throttle"]["sources"]
    assert "throttle" not in nodes(found)["/log"]["timers"][0]  # nobody reads /status


def test_without_a_flood_nobody_is_held_back() -> None:
    asked = made("adaptive_throttling")
    asked.check(Host(), CHAIN, "dds")
    assert asked.extend(CHAIN) is CHAIN
    evidence = judge(asked, CHAIN, {}, Window(0, S))
    assert evidence.in_effect
    assert (evidence.promised.publishers, evidence.notes) == (0, ("no publisher is throttled",))


@pytest.mark.parametrize(
    ("text", "on", "complaint"),
    [
        ("", "readers=none", "the flood has no readers to report how late it is; use readers=external"),
        ("watch=imagine", "", "watch: the workload does not subscribe to /imagine; "),
    ],
)
def test_throttling_refuses_what_nobody_could_answer(text: str, on: str, complaint: str) -> None:
    asked = made(f"adaptive_throttling:{text}" if text else "adaptive_throttling")
    with pytest.raises(BadInput) as error:
        asked.check(Host(), flood(on or "publishers=1"), "dds")
    assert complaint in str(error.value)


THROTTLED = made("adaptive_throttling").extend(flood("publishers=1,rate=1000,readers=external"))
PUBLISHER = "/perflab/message_flood/publisher_1"


def steps(*rates: float, accepted: int = 50, worst_age_ns: int | None = 2 * MS) -> tuple[Step, ...]:
    """One for each half of a second."""
    return tuple(Step(n * S // 2, rate, 60, accepted, worst_age_ns) for n, rate in enumerate(rates, 1))


def test_evidence_says_what_was_withheld_and_how_the_rate_went() -> None:
    found = {PUBLISHER: Record(1000.0, 900, steps(500, 250, 300, 350))}
    evidence = judge(made("adaptive_throttling"), THROTTLED, found, Window(0, 2 * S))
    assert evidence.in_effect, evidence.reason
    assert (evidence.promised.publishers, evidence.promised.full_rate_hz, evidence.promised.readers) == (1, 1000.0, 1)
    achieved = evidence.achieved
    assert (achieved.withheld, achieved.withheld_percent, achieved.decreases) == (900, 45.0, 2)
    assert (achieved.lowest_rate_hz, achieved.rate_in_second) == (250.0, (375.0, 325.0))
    assert (achieved.acknowledged, achieved.worst_age_ms) == (200, 2.0)


def test_a_rate_that_was_lowered_before_the_measured_part_is_no_decrease_in_it() -> None:
    found = {PUBLISHER: Record(1000.0, 900, steps(500, 250, 300, 350, 300, 350))}
    achieved = judge(made("adaptive_throttling"), THROTTLED, found, Window(S, 3 * S)).achieved
    assert (achieved.decreases, achieved.lowest_rate_hz) == (1, 300.0)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, f"the throttle of {PUBLISHER} did not judge until the end of the measured part"),
        ({PUBLISHER: Record(1000.0, 0, steps(1000))}, "did not judge until the end"),
        ({PUBLISHER: Record(1000.0, 0, steps(*[1000.0] * 20, accepted=0))}, "no reader acknowledged any message"),
    ],
)
def test_a_throttle_that_did_not_work_is_seen(found: dict[str, Record], reason: str) -> None:
    evidence = judge(made("adaptive_throttling"), THROTTLED, found, Window(0, 10 * S))
    assert not evidence.in_effect
    assert reason in str(evidence.reason)


def test_records_of_a_throttle_are_joined(tmp_path: Path) -> None:
    line = {"type": "throttle", "at_ns": 1, "node": PUBLISHER, "timer": "flood", "full_hz": 10.0, "beyond": 0}
    row = {"step_at_ns": [1], "rate_hz": [9.0], "sent": [1], "accepted": [0], "worst_age_ns": [None]}
    lines = [{**line, **row, "withheld": 1}, {**line, **row, "withheld": 3, "step_at_ns": [2]}]
    (tmp_path / "flood.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    found = read_records(tmp_path)[PUBLISHER]
    assert (found.withheld, [step.at_ns for step in found.steps]) == (3, [1, 2])


# -- what is compared ------------------------------------------------------------------------------------------------


@functools.cache
def summary() -> Summary:
    """A flood makes everything five times as slow, a throttle takes most of that, and costs a tenth alone."""
    effects = {"flood": Effect(5.0), "throttle": Effect(1.1), "flood + throttle": Effect(1.5)}
    document = Made(effects, spread=0.01).summary()
    given = {"flood": ["message_flood"], "throttle": ["adaptive_throttling"]}
    for made_ in document["results"][1:]:
        names = [name for part in made_["treatment"].split(" + ") for name in given[part]]
        made_["conditions"] = names
        made_["mitigations"] = [name for name in names if name in MITIGATIONS]
        made_["condition_parameters"] = {name: {} for name in names}
    results = read_results(document["results"])
    return Summary(
        run="made", valid=True, results=results, findings=findings.find(results, metrics=[named("latency.p99")])
    )


def test_a_mitigated_treatment_is_compared_with_the_one_without_it() -> None:
    found = summary()
    (place,) = places_of(found.results)
    pairs = [(pair.kind, *pair.names) for pair in pairs_of([place])]
    assert [names for kind, *names in pairs if kind == MITIGATION] == [["flood", "flood + throttle"]]
    assert len(pairs) == 4
    bought = next(c for c in cast(Any, found.findings).comparisons if c.kind == MITIGATION)
    assert bought.effect == "better"
    assert bought.estimate.value == pytest.approx(0.3, rel=0.1)
    said = {remark.kind: remark.words for remark in cast(Any, found.findings).remarks}
    assert said["mitigation"].startswith("throttle, under flood, buys latency p99 0.30x [")
    assert "; alone it costs latency p99 1.09x [" in said["mitigation"]


def test_the_table_has_what_a_mitigation_buys_and_costs_beside_each_other() -> None:
    table = mitigations(summary())
    (row,) = table.rows
    assert row.what == "throttle, under flood"
    values = [round(cast(Any, c).estimate.value, 1) for c in (row.does, row.buys, row.left, row.costs)]
    assert values == [5.0, 0.3, 1.5, 1.1]
    cells = {column.name: column.cell(row) for column in table.columns}
    assert cells["buys"].tone == "good"
    assert cells["costs"].text.endswith("*")
