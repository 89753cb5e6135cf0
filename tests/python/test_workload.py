"""Properties of a resolved graph."""

from __future__ import annotations

from typing import Any

from perflab.workload import Graph


def node(name: str, namespace: str = "/", **parts: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = ("publishers", "subscriptions", "clients", "servers", "timers", "reactions")
    return {"name": name, "namespace": namespace, "executor": 0} | {kind: parts.get(kind, []) for kind in kinds}


def graph(*processes: list[dict[str, Any]]) -> Graph:
    return Graph(
        {
            "schema": 1,
            "name": "g",
            "processes": [
                {"name": f"p{i}", "executors": [{"id": 0, "kind": "events"}], "nodes": nodes}
                for i, nodes in enumerate(processes)
            ],
        }
    )


def timer(period_ns: int, work_ns: int = 0, **does: list[int]) -> dict[str, Any]:
    return {"name": "t", "period_ns": period_ns, "publish": [], "request": [], "work_ns": work_ns} | does


def without_services(document: dict[str, Any]) -> dict[str, Any]:
    """The document as versions without services wrote it."""
    for process in document["processes"]:
        for entry in process["nodes"]:
            del entry["clients"], entry["servers"]
            for each in entry["timers"]:
                del each["request"]
    return document


def test_the_phase_of_a_graph_is_that_of_its_timers_and_cyclic_reactions() -> None:
    aligned = timer(500) | {"phase": "aligned"}
    cyclic = {"kind": "cyclic", "on": [], "publish": [], "work_ns": 0, "period_ns": 9, "phase": "random"}
    sink = {"kind": "sink", "on": [], "publish": [], "work_ns": 0, "period_ns": None}
    assert graph([node("a", timers=[aligned], reactions=[cyclic, sink])]).phase == "aligned+random"
    assert graph([node("a", timers=[timer(500) | {"phase": "as_created"}])]).phase == "as_created"
    assert graph([node("a", timers=[timer(500)])]).phase == "aligned", "of a graph from before there were phases"
    assert graph([node("a", reactions=[sink])]).phase is None
    flood = node("flood", timers=[aligned]) | {"condition": "message_flood"}
    assert graph([node("a", timers=[timer(1) | {"phase": "random"}]), flood]).phase == "random", (
        "a condition's is its own"
    )


MIXED = graph(
    [
        node("a", clients=[{"service": "/add"}, {"service": "/robot/stop"}], timers=[timer(500, request=[0])]),
        node("b", namespace="/robot", publishers=[{"topic": "/x"}], timers=[timer(900, publish=[0], work_ns=3)]),
    ],
    [
        node("c", servers=[{"service": "/add", "work_ns": 40}], subscriptions=[{"topic": "/x"}]),
        node(
            "d",
            namespace="/robot",
            clients=[{"service": "/add"}],
            servers=[{"service": "/robot/stop", "work_ns": 0}, {"service": "/unused", "work_ns": 7}],
        ),
    ],
)


def test_processes_that_serve_are_those_with_a_client_or_a_server() -> None:
    assert MIXED.serving == {0, 1}
    assert graph([node("a")], [node("b", servers=[{"service": "/s", "work_ns": 0}])], [node("c")]).serving == {1}


def test_services_join_each_client_with_its_server() -> None:
    assert MIXED.services() == [
        ("/a", "/add", "/c"),
        ("/a", "/robot/stop", "/robot/d"),
        ("/robot/d", "/add", "/c"),
    ]


def test_services_are_no_edges() -> None:
    assert MIXED.edges() == [("/robot/b", "/x", "/c")]


def test_the_shortest_period_may_be_that_of_a_client() -> None:
    assert MIXED.shortest_period_ns == 500


def test_the_longest_work_may_be_that_of_a_server() -> None:
    assert MIXED.longest_work_ns == 40


def test_a_graph_of_a_version_without_services_has_none() -> None:
    old = Graph(
        without_services(
            graph(
                [
                    node("b", publishers=[{"topic": "/x"}], timers=[timer(900, publish=[0], work_ns=3)]),
                    node("c", subscriptions=[{"topic": "/x"}]),
                ]
            ).document
        )
    )
    assert old.services() == []
    assert old.edges() == [("/b", "/x", "/c")]
    assert (old.shortest_period_ns, old.longest_work_ns) == (900, 3)
