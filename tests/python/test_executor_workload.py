"""The workload `executor`: the graph of each case, its parameters and factors, and what it demands of variants."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from completion import completed
from made_experiment import Effect, read_results, result, trial
from typer.testing import CliRunner

from perflab import catalog
from perflab.cli.app import app
from perflab.design import treatments as design
from perflab.design.document import Written, read, validate, with_options
from perflab.design.settings import Experiment
from perflab.design.treatments import is_whole
from perflab.errors import BadInput
from perflab.experiment import build as building
from perflab.experiment.build import build
from perflab.middleware import Middleware
from perflab.native import Native
from perflab.results.comparison import FACTOR, VARIANT
from perflab.results.files import UsedWorkload
from perflab.runs.collect import expected_of
from perflab.runs.rundir import TrialDirectory
from perflab.statistics.pairs import pairs_of, places_of
from perflab.workload import Workload, generated

# The middleware virtual is part of perflab-node, and a generated graph needs no perflab-graph to be made.
NOWHERE = Native(Path("/nowhere"))
VIRTUAL = {"middlewares": "virtual"}


def made(word: str) -> Workload:
    return generated.load(generated.parse(word))


def experiment(workload: Any, **keys: Any) -> Experiment:
    written = with_options(Written({}), {"workload": workload, **VIRTUAL, **keys})
    return build(written, NOWHERE, output=None, command_line=())


def process(workload: Workload) -> dict[str, Any]:
    (one,) = workload.graph.document["processes"]
    return dict(one)


def delivered_per_s(workload: Workload) -> float:
    """By the periods of the publishers."""
    rates = {
        (f"/{node['name']}", p["topic"]): p["frequency_hz"]
        for node in process(workload)["nodes"]
        for p in node["publishers"]
    }
    return float(sum(rates[publisher, topic] for publisher, topic, _ in workload.graph.edges()))


# -- the graphs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "nodes", "timers", "publishers", "subscriptions", "participants", "executor"),
    [
        ("ros", 10, 10, 20, 200, 10, "single_threaded"),
        ("rosonenode", 1, 1, 20, 200, 1, "single_threaded"),
        ("nopub", 10, 10, 0, 0, 10, "single_threaded"),
        ("middleware", 10, 10, 20, 200, 1, "inline"),
        ("plain", 10, 10, 20, 200, 1, "inline"),
    ],
)
def test_each_case_has_its_counts(
    case: str, nodes: int, timers: int, publishers: int, subscriptions: int, participants: int, executor: str
) -> None:
    workload = made(f"executor:case={case}")
    found = process(workload)
    assert len(found["nodes"]) == nodes
    assert sum(len(node["timers"]) for node in found["nodes"]) == timers
    assert len(workload.graph.publishers()) == publishers
    assert len(workload.graph.subscriptions()) == subscriptions
    assert found["participants"] == participants
    assert [e["kind"] for e in found["executors"]] == [executor]
    assert {t["period_ns"] for node in found["nodes"] for t in node["timers"]} == {20_000_000}
    edges = workload.graph.edges()
    assert len(set(edges)) == len(edges) == subscriptions, "every subscription has one publisher and a name of its own"
    assert delivered_per_s(workload) == (10_000 if publishers else 0)


def test_each_node_of_ros_publishes_two_topics_and_subscribes_to_all() -> None:
    everything = {f"/topic_{n}" for n in range(20)}
    nodes = process(made("executor"))["nodes"]
    assert len(nodes) == 10
    for number, node in enumerate(nodes):
        assert [p["topic"] for p in node["publishers"]] == [f"/topic_{number}", f"/topic_{number + 10}"]
        assert {s["topic"] for s in node["subscriptions"]} == everything
        assert len(node["subscriptions"]) == 20
        assert [timer["publish"] for timer in node["timers"]] == [[0, 1]]


def test_messages_and_qos_are_those_of_the_published_measurement() -> None:
    (node, *_) = process(made("executor"))["nodes"]
    for end in (*node["publishers"], *node["subscriptions"]):
        assert end["type"] == "stamped_vector"
        assert (end["qos"]["history"], end["qos"]["depth"]) == ("keep_last", 10)
        assert (end["qos"]["reliability"], end["qos"]["durability"]) == ("best_effort", "transient_local")
    assert {p["size_bytes"] for p in node["publishers"]} == {68}


def test_one_node_numbers_its_subscriptions_of_a_topic() -> None:
    workload = made("executor:case=rosonenode,nodes=3")
    of_first = [name for name, topic in workload.graph.subscriptions() if topic == "/topic_0"]
    assert of_first == ["/node", "/node#2", "/node#3"]
    (node,) = process(workload)["nodes"]
    assert [s.get("number", 1) for s in node["subscriptions"][:3]] == [1, 2, 3]
    assert [timer["publish"] for timer in node["timers"]] == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize(("nodes", "wanted"), [(5, 2), (3, 7), (4, 4)])
def test_subscriptions_are_spread_over_the_nodes(nodes: int, wanted: int) -> None:
    workload = made(f"executor:nodes={nodes},subscriptions={wanted}")
    edges = workload.graph.edges()
    assert len(set(edges)) == len(edges) == 2 * nodes * wanted
    each = [len(node["subscriptions"]) for node in process(workload)["nodes"]]
    assert each == [2 * wanted] * nodes


def test_timers_share_the_publishers_and_those_left_over_only_tick() -> None:
    (node, *_) = process(made("executor:timers=3,publishers=2"))["nodes"]
    assert [timer["publish"] for timer in node["timers"]] == [[0], [1], []]
    (node, *_) = process(made("executor:timers=2,publishers=5"))["nodes"]
    assert [timer["publish"] for timer in node["timers"]] == [[0, 2, 4], [1, 3]]


def test_a_case_without_an_executor_may_have_the_participants_of_ros() -> None:
    assert process(made("executor:case=middleware,participants=10"))["participants"] == 10


@pytest.mark.parametrize(("case", "nodes"), [("ros", 10), ("rosonenode", 1), ("nopub", 10), ("middleware", 10)])
def test_services_and_clients_are_entities_beside_the_messages(case: str, nodes: int) -> None:
    without, workload = made(f"executor:case={case}"), made(f"executor:case={case},services=3,clients=2")
    found = process(workload)["nodes"]
    assert len(found) == nodes
    assert [len(node["servers"]) for node in found] == [30 // nodes] * nodes
    assert [len(node["clients"]) for node in found] == [20 // nodes] * nodes
    assert {s["service"] for node in found for s in node["servers"]} == {f"/service_{n}" for n in range(30)}
    assert workload.graph.edges() == without.graph.edges()
    assert delivered_per_s(workload) == delivered_per_s(without)
    for node in found:
        asked = [client["service"] for client in node["clients"]]
        assert len(set(asked)) == len(asked), "a node has one client of a service"
        assert sorted(n for timer in node["timers"] for n in timer["request"]) == list(range(len(asked)))
        assert {client["frequency_hz"] for client in node["clients"]} == {50}


def test_a_client_asks_the_next_node() -> None:
    services = made("executor:nodes=3,services=2,clients=2").graph.services()
    assert services == [
        ("/node_0", "/service_2", "/node_1"),
        ("/node_0", "/service_3", "/node_1"),
        ("/node_1", "/service_4", "/node_2"),
        ("/node_1", "/service_5", "/node_2"),
        ("/node_2", "/service_0", "/node_0"),
        ("/node_2", "/service_1", "/node_0"),
    ]


@pytest.mark.parametrize(("case", "nodes"), [("ros", 10), ("rosonenode", 1), ("nopub", 10), ("plain", 10)])
def test_waitables_are_idle_but_for_those_that_are_triggered(case: str, nodes: int) -> None:
    without = made(f"executor:case={case},timers=2")
    workload = made(f"executor:case={case},timers=2,waitables=5,triggered=3")
    assert workload.graph.edges() == without.graph.edges()
    each = 10 // nodes
    for node in process(workload)["nodes"]:
        assert len({w["name"] for w in node["waitables"]}) == len(node["waitables"]) == 5 * each
        triggered = [n for timer in node["timers"] for n in timer.get("trigger", ())]
        assert sorted(triggered) == list(range(3 * each)), "each by one timer"
    for node in process(without)["nodes"]:
        assert "waitables" not in node
        assert all("trigger" not in timer for timer in node["timers"])


# -- how it is named -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workload",
    [
        "executor:case=nopub,nodes=3,interval=10ms",
        ["executor:case=nopub,nodes=3,interval=10ms"],
        {"executor": {"case": "nopub", "nodes": 3, "interval": "10ms"}},
        {"executor": {"case": "nopub", "nodes": 3, "interval": 0.01}},
    ],
)
def test_words_and_mappings_say_the_same(workload: Any) -> None:
    found = experiment(workload).workload
    assert found.name == "executor_nopub"
    parameters = found.document()["parameters"]
    assert (parameters["case"], parameters["nodes"], parameters["interval"]) == ("nopub", 3, 10**7)
    assert found.graph == made("executor:case=nopub,nodes=3,interval=10ms").graph


@pytest.mark.parametrize("workload", ["executor", {"executor": None}, {"executor": {}}])
def test_without_parameters_it_is_ros(workload: Any) -> None:
    assert experiment(workload).workload.graph == made("executor:case=ros").graph


def test_the_document_of_a_run_has_every_default() -> None:
    document = experiment("executor:nodes=3").document.model_dump(mode="json")
    assert document["workload"]["executor"]["nodes"] == 3
    assert document["workload"]["executor"]["interval"] == 20_000_000


def test_a_file_with_parameters_is_no_list_of_graphs(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text('time: 1\nworkload: "executor:case=ros,nodes=2"\n')
    assert validate(read(path)).workload == generated.parse("executor:case=ros,nodes=2")


@pytest.mark.parametrize(
    ("workload", "complaint"),
    [
        ("executor:node=3", "workload executor: no parameter 'node'; did you mean nodes?"),
        ("executor:nodes", "workload 'executor:nodes' is not NAME:key=value,...; 'nodes' has no value"),
        ("executor:nodes=many", "workload executor: nodes: 'many' is not a whole number"),
        ("executor:nodes=0", "workload executor: nodes: 0 must be at least 1"),
        ("executor:interval=0", "workload executor: interval must be at least 1us"),
        ("executor:clients=1", "workload executor: clients 1 are more than the services of a node, 0"),
        ("executor:triggered=1", "workload executor: triggered 1 are more than the waitables of a node, 0"),
        ("executor:participants=11", "workload executor: participants 11 are more than the nodes, 10"),
        ("executor:nodes=1000", "workload executor: 2003000 timers and endpoints are more than the 100000 that a"),
        (
            ["executor", "sierra_nevada"],
            "workload executor is a whole graph and cannot be combined; leave out sierra_nevada",
        ),
        ({"executor": {}, "ready": "2s"}, "workload executor is a whole graph and cannot be combined; leave out ready"),
        ({"executor": "ros"}, "workload executor: 'ros' is not a mapping of parameters"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(workload: Any, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        experiment(workload)
    assert str(error.value).startswith(complaint)
    assert "\n" not in str(error.value)


def test_complaints_of_a_file_name_the_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("time: 1\nworkload:\n  executor: {nods: 3}\n")
    with pytest.raises(BadInput, match=r"wrong\.yaml:2: workload executor: no parameter 'nods'; did you mean nodes\?"):
        build(read(path), NOWHERE, output=None, command_line=())


def test_a_file_of_that_name_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("executor").write_text("nodes: []\n")
    with pytest.raises(BadInput, match=r"write \./executor for the file, executor:key=value for the other"):
        experiment("executor")
    assert experiment("executor:case=ros").workload.name == "executor_ros"
    assert validate(Written({"workload": "./executor"})).workload == ["./executor"]


def test_nothing_of_the_catalog_has_the_name_of_a_generated_workload() -> None:
    names = {entry.name for entry in (*catalog.topologies(), *catalog.experiments())}
    assert not names & generated.REGISTRY.keys()


def test_it_is_listed_with_its_parameters_and_completed() -> None:
    listed = json.loads(CliRunner().invoke(app, ["list", "workloads", "--json"]).stdout)
    (entry,) = (row for row in listed if row["name"] == "executor")
    assert {option["key"] for option in entry["options"]} == generated.REGISTRY["executor"].model.model_fields.keys()
    assert completed("run", "exec") == ["executor_cases", "executor_nodes", "executors", "executors_rclcpp", "executor"]
    assert completed("run", "executor:case=ros,no") == ["executor:case=ros,nodes="]
    assert completed("run", "executor:case=no") == ["executor:case=nopub"]
    assert completed("run", "--factor", "workload.cas") == ["workload.case="]


# -- factors ---------------------------------------------------------------------------------------------------------


def test_every_level_makes_the_graph_anew() -> None:
    found = experiment("executor", factors={"workload.nodes": [2, 5], "workload.interval": ["10ms", "20ms"]}).treatments
    counts = [(t.factors["workload.nodes"], t.factors["workload.interval"], len(t.graph.edges())) for t in found]
    assert counts == [(2, "10ms", 8), (2, "20ms", 8), (5, "10ms", 50), (5, "20ms", 50)]
    assert [t.graph.shortest_period_ns for t in found] == [10_000_000, 20_000_000] * 2


def test_factors_of_any_graph_are_its_own_too() -> None:
    (_, faster) = experiment("executor:nodes=2", factors={"workload.timer_speed": [1, 2]}).treatments
    assert faster.graph.shortest_period_ns == 10_000_000


@pytest.mark.parametrize(
    ("path", "levels", "complaint"),
    [
        ("workload.node", [2], "factor workload.node: workload executor has no parameter 'node'; did you mean nodes"),
        ("workload.nodes", [2, "x"], "factor workload.nodes: nodes: 'x' is not a whole number"),
        (
            "workload.case",
            ["rso"],
            "factor workload.case: case: 'rso' is not ros, rosonenode",
        ),
        ("workload.interval", ["20ms", 0.02], "factor workload.interval: level 0.02 is given twice, once as '20ms'"),
        ("workload.participants", [1, 11], "workload executor: participants 11 are more than the nodes, 10"),
    ],
)
def test_levels_are_judged(path: str, levels: list[Any], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        experiment("executor", factors={path: levels})
    assert str(error.value).startswith(complaint)


def test_other_graphs_have_no_such_factors() -> None:
    with pytest.raises(BadInput, match=r"of a workload are workload\.depth"):
        design.check_factors(validate(Written({"workload": "w", "factors": {"workload.nodes": [1, 2]}})))


def test_a_search_knows_which_parameters_are_whole_numbers() -> None:
    workload = generated.parse("executor")
    assert is_whole("workload.nodes", 1, 20, workload)
    assert not is_whole("workload.interval", "1ms", "20ms", workload)


def test_a_search_runs_along_a_parameter() -> None:
    asked = {"factor": "workload.nodes", "low": 2, "high": 20, "criterion": "lost == 0"}
    found = experiment("executor", breaking_point=asked)
    assert found.search is not None
    (treatment,) = found.search.at_level(7)
    assert len(treatment.graph.edges()) == 2 * 7 * 7


def test_a_run_goes_on_with_the_graph_that_it_had() -> None:
    document = experiment("executor:nodes=3").document
    before, other = made("executor:nodes=3"), made("executor:nodes=4")
    assert building._same("r", "executor", document, Native(Path()), before).graph == before.graph
    with pytest.raises(BadInput, match="generates another graph; run it again"):
        building._same("r", "executor", document, Native(Path()), other)


def test_what_a_trial_should_have_is_read_from_its_own_graph(tmp_path: Path) -> None:
    trial_directory = TrialDirectory(tmp_path)
    workload = UsedWorkload(kind="executor", name="w", edges=(("/a", "/t", "/b"),))
    assert expected_of(trial_directory, workload) == ([], [])
    small = made("executor:nodes=2").graph
    trial_directory.processes.mkdir(exist_ok=True)
    trial_directory.config("executor").write_text(json.dumps({"graph": small.document}))
    assert expected_of(trial_directory, workload) == (small.edges(), [])
    assert expected_of(trial_directory, replace(workload, kind="topology")) == ([("/a", "/t", "/b")], [])


# -- what it demands of variants -------------------------------------------------------------------------------------


def runs(found: Experiment) -> list[tuple[str, str | None, Any]]:
    return [
        (t.variant.middleware_name, t.variant.executor_name, t.factors.get("workload.case")) for t in found.treatments
    ]


def test_a_case_without_an_executor_runs_once_whatever_executors_are_named() -> None:
    cases = {"workload.case": ["middleware", "ros", "nopub"]}
    found = experiment("executor", executors="single_threaded,inline,events", factors=cases, trials=2)
    assert runs(found) == [
        ("virtual", "inline", "middleware"),
        ("virtual", "single_threaded", "ros"),
        ("virtual", "single_threaded", "nopub"),
        ("virtual", "inline", "ros"),
        ("virtual", "inline", "nopub"),
        ("virtual", "events", "ros"),
        ("virtual", "events", "nopub"),
    ]
    assert len(found.order) == 2 * 7
    assert len({t.key for t in found.treatments}) == 7


def test_where_no_executor_is_named_the_graph_says_which() -> None:
    found = experiment("executor", factors={"workload.case": ["middleware", "ros"]})
    assert [t.variant.executor for t in found.treatments] == [None, None]
    assert [t.graph.executors for t in found.treatments] == [["inline"], ["single_threaded"]]


def test_plain_runs_without_a_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    def select(names: str, options: Any, native: Native) -> list[tuple[Middleware, ...]]:
        return [(Middleware(name, "dds", None, None),) for name in names.split(",")]

    monkeypatch.setattr(building, "select", select)
    cases = {"workload.case": ["middleware", "plain"]}
    found = experiment("executor", middlewares="cyclonedds,fastdds", executors="inline", factors=cases)
    assert runs(found) == [
        ("cyclonedds", "inline", "middleware"),
        ("direct", "inline", "plain"),
        ("fastdds", "inline", "middleware"),
    ]


@pytest.mark.parametrize(
    ("workload", "keys", "complaint"),
    [
        ("executor:case=middleware", {"executors": "events"}, "--executor events: case middleware runs"),
        ("executor:case=middleware", {"executors": "inline,events"}, "--executor events: case middleware runs"),
        ("executor:case=plain", {}, "--middleware virtual: case plain runs without executor and middleware"),
        ("executor", {"executors": "events", "factors": {"workload.case": ["middleware"]}}, "--executor events: case"),
    ],
)
def test_what_contradicts_the_only_case_is_refused(workload: str, keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        experiment(workload, **keys)
    assert str(error.value).startswith(complaint)
    assert str(error.value).endswith("; leave it out")


def test_rclcpp_takes_encoded_messages_through_the_middleware_and_not_within_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def select(names: str, *_: Any) -> list[tuple[Middleware, ...]]:
        return [(Middleware(n, "rclcpp", None, None),) for n in names.split(",")]

    monkeypatch.setattr(building, "select", select)
    asked = {"middlewares": "rclcpp/rmw_cyclonedds_cpp", "executors": "single_threaded"}
    factor = {"factors": {"workload.serialization": ["once", "every"]}}
    for once in ({"serialization": "once"}, factor):
        assert experiment("executor", **asked, **once).treatments
        with pytest.raises(BadInput, match=r"serialization once: rclcpp .* within a process; .* --ipc off"):
            experiment("executor", **asked, **once, ipc="off,on")
    assert experiment("executor", **asked, serialization="every", ipc="on").treatments


@pytest.mark.parametrize("ros", [(), ("rclcpp/rmw_cyclonedds_cpp",)])
def test_an_executor_of_rclcpp_is_refused_where_another_middleware_is_listed(
    ros: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def select(names: str, *_: Any) -> list[tuple[Middleware, ...]]:
        return [(Middleware(n, "rclcpp" if n in ros else "virtual", None, None),) for n in names.split(",")]

    monkeypatch.setattr(building, "select", select)
    names = ",".join(("virtual", *ros))
    with pytest.raises(BadInput) as error:
        experiment("executor", middlewares=names, executors="inline,static_single_threaded")
    text = str(error.value)
    assert text.startswith("--executor static_single_threaded is rclcpp's")
    assert "virtual has no such executor" in text
    assert f"--middleware {ros[0] if ros else 'rclcpp'} alone" in text
    if ros:
        found = experiment("executor", middlewares=ros[0], executors="inline,static_single_threaded")
        assert [t.variant.executor_name for t in found.treatments] == ["inline", "static_single_threaded"]


def test_a_graph_that_sends_nothing_may_run_and_too_short_a_trial_may_not() -> None:
    assert [t.graph.edges() for t in experiment("executor:case=nopub").treatments] == [[]]
    with pytest.raises(BadInput, match="shorter than the shortest period of 'executor'"):
        experiment("executor:interval=2s", time=1)


# -- what is compared ------------------------------------------------------------------------------------------------


def at(case: str, middleware: str, executor: str | None) -> dict[str, Any]:
    trials = [trial(n, n, Effect()) for n in range(1, 4)]
    return result(trials, middleware=middleware, executor=executor, factors={"workload.case": case})


def compared(*results: dict[str, Any]) -> list[tuple[str, str | None, str, str]]:
    pairs = pairs_of(places_of(read_results(results)))
    return [(p.kind, p.baseline.result.executor, p.place, p.names[1]) for p in pairs if p.kind in (FACTOR, VARIANT)]


def test_cases_of_each_executor_are_compared_with_the_case_without_one() -> None:
    found = compared(
        at("middleware", "cyclonedds", "inline"),
        at("ros", "cyclonedds", "single_threaded"),
        at("ros", "cyclonedds", "events"),
    )
    assert found == [
        (FACTOR, "inline", "cyclonedds, single_threaded", "workload.case=ros"),
        (FACTOR, "inline", "cyclonedds, events", "workload.case=ros"),
        (VARIANT, "single_threaded", "", "cyclonedds, events, workload.case=ros"),
    ]


def test_the_baseline_is_that_of_the_variant_most_alike() -> None:
    results = [at("middleware", m, "inline") for m in ("cyclonedds", "fastdds")] + [at("ros", "fastdds", "events")]
    pairs = [p for p in pairs_of(places_of(read_results(results))) if p.kind == FACTOR]
    assert [(p.baseline.result.middleware, p.treatment.result.middleware) for p in pairs] == [("fastdds", "fastdds")]


def test_a_level_that_each_variant_has_is_compared_within_it() -> None:
    cases, executors = ("middleware", "ros"), ("a", "b")
    found = compared(*(at(case, "m", executor) for executor in executors for case in cases))
    assert [(kind, baseline) for kind, baseline, _, _ in found if kind == FACTOR] == [(FACTOR, "a"), (FACTOR, "b")]


def test_the_experiments_of_the_catalog_are_what_they_say() -> None:
    cases = {"factors": {"workload.case": ["middleware", "ros", "nopub"]}}
    for name, trials, keys in (("executors", 12, {}), ("executor_cases", 10, cases)):
        (path,) = (entry.path for entry in catalog.experiments() if entry.name == name)
        written = with_options(read(path), {**VIRTUAL, **keys})
        found = build(written, NOWHERE, output=None, command_line=())
        assert found.document.trials == trials
        assert len(found.order) == trials * len(found.treatments) == trials * (4 if name == "executors" else 3)
    assert validate(dataclasses.replace(read(path))).factors["workload.case"][0] == "middleware"
