"""Adds nodes and processes to a resolved graph (docs/formats.md, section 1).

Pure functions: each returns a new graph and does not change its argument.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from perflab.results.phase import ALIGNED
from perflab.workload import Graph

Document = dict[str, Any]

# ROS 2's defaults, for policies that a resolved graph leaves out.
DEFAULT_QOS: Document = {
    "history": "keep_last",
    "depth": 10,
    "reliability": "reliable",
    "durability": "volatile",
    "deadline_ns": None,
    "lifespan_ns": None,
    "liveliness": "automatic",
    "lease_duration_ns": None,
}


def with_processes(graph: Graph, *processes: Document) -> Graph:
    """The graph with these processes after its own."""
    return Graph({**graph.document, "processes": [*graph.document["processes"], *copy.deepcopy(processes)]})


def with_nodes(graph: Graph, process: str, nodes: Sequence[Document], executors: Sequence[Document] = ()) -> Graph:
    """The graph with these nodes and their executors in that process. Raises KeyError for an unknown process."""
    if process not in graph.processes:
        raise KeyError(process)
    return Graph(
        {
            **graph.document,
            "processes": [
                {
                    **entry,
                    "executors": [*entry["executors"], *copy.deepcopy(list(executors))],
                    "nodes": [*entry["nodes"], *copy.deepcopy(list(nodes))],
                }
                if entry["name"] == process
                else entry
                for entry in graph.document["processes"]
            ],
        }
    )


def process_of(graph: Graph, name: str) -> Document:
    """The process of that name, in the graph's form. Raises KeyError."""
    for entry in graph.document["processes"]:
        if entry["name"] == name:
            return dict(entry)
    raise KeyError(name)


def names_in(graph: Graph) -> set[str]:
    """The names of all processes, nodes and topics."""
    nodes = graph.nodes()
    topics = {end["topic"] for _, node in nodes for end in (*node["publishers"], *node["subscriptions"])}
    return topics | {name for name, _ in nodes} | set(graph.processes)


def free_executor_id(process: Mapping[str, Any]) -> int:
    """An unused executor id of the process."""
    return 1 + max((int(executor["id"]) for executor in process["executors"]), default=-1)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, with the lowest number appended that makes it unique, if it is taken.

    >>> free_name("flood", {"flood", "flood_2"})
    'flood_3'
    """
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def process(name: str, executors: Sequence[Document], nodes: Sequence[Document]) -> Document:
    return {
        "name": name,
        "executors": list(executors),
        "threads": {"executors": None, "middleware": None},
        "lock_memory": False,
        "nodes": list(nodes),
    }


def executor(number: int, kind: str = "single_threaded") -> Document:
    return {"id": number, "kind": kind, "threads": None, "thread": None}


def node(
    name: str,
    namespace: str,
    executor: int,
    condition: str | None = None,
    *,
    publishers: Iterable[Document] = (),
    subscriptions: Iterable[Document] = (),
    timers: Iterable[Document] = (),
    reactions: Iterable[Document] = (),
    clients: Iterable[Document] = (),
    servers: Iterable[Document] = (),
    waitables: Iterable[Document] = (),
) -> Document:
    """`condition` is the label of the condition that it belongs to."""
    more = {"waitables": list(waitables)}
    return {
        "name": name,
        "namespace": namespace,
        "executor": executor,
        "condition": condition,
        "publishers": list(publishers),
        "subscriptions": list(subscriptions),
        "clients": list(clients),
        "servers": list(servers),
        **(more if more["waitables"] else {}),
        "timers": list(timers),
        "reactions": list(reactions),
    }


def publisher(
    topic: str, message_type: str, size_bytes: int, period_ns: int, qos: Mapping[str, Any], *, length: int | None = None
) -> Document:
    """`length`: the number of elements of this size, for types whose elements are not bytes."""
    return {
        "topic": topic,
        "type": message_type,
        "size_bytes": size_bytes,
        **({} if length is None else {"length": length}),
        "frequency_hz": 1e9 / period_ns,
        "pass_by": None,
        "qos": dict(qos),
    }


def subscription(topic: str, message_type: str, qos: Mapping[str, Any]) -> Document:
    """Leaves out policies in `qos` that only publishers have."""
    return {"topic": topic, "type": message_type, "pass_by": None, "qos": {**qos, "lifespan_ns": None}}


def client(service: str, message_type: str, period_ns: int) -> Document:
    return {"service": service, "type": message_type, "frequency_hz": 1e9 / period_ns, "qos": dict(DEFAULT_QOS)}


def server(service: str, message_type: str) -> Document:
    return {"service": service, "type": message_type, "qos": dict(DEFAULT_QOS), "work_ns": 0}


def waitable(name: str) -> Document:
    return {"name": name, "work_ns": 0}


def timer(
    name: str,
    period_ns: int,
    publish: Sequence[int],
    overrun: str,
    *,
    request: Sequence[int] = (),
    trigger: Sequence[int] = (),
) -> Document:
    return {
        "name": name,
        "period_ns": period_ns,
        "publish": list(publish),
        "request": list(request),
        **({"trigger": list(trigger)} if trigger else {}),
        "work_ns": 0,
        "overrun": overrun,
        "phase": ALIGNED,
    }


def sink(subscriptions: Sequence[int], work_ns: int) -> Document:
    """A reaction that uses CPU time for every message of these subscriptions of its node."""
    return {"kind": "sink", "on": list(subscriptions), "publish": [], "work_ns": work_ns, "period_ns": None}


def offer_for(asked: Mapping[str, Any], requested: Iterable[Mapping[str, Any]]) -> Document:
    """The QoS `asked` for a publisher, raised as far as needed to match all subscriptions (DDS 1.4, 2.2.3)."""
    offer = {**DEFAULT_QOS, **asked}
    for request in ({**DEFAULT_QOS, **each} for each in requested):
        if request["reliability"] == "reliable":
            offer["reliability"] = "reliable"
        if request["durability"] == "transient_local":
            offer["durability"] = "transient_local"
        if request["liveliness"] == "manual_by_topic":
            offer["liveliness"] = "manual_by_topic"
        for limit in ("deadline_ns", "lease_duration_ns"):
            given = [ns for ns in (offer[limit], request[limit]) if ns is not None]
            offer[limit] = min(given, default=None)
    return offer
