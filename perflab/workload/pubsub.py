"""The workload `pubsub`: publishers and subscribers of one topic, any message, any rate, any QoS, any layout.

For comparing middlewares (docs/pubsub.md). The graph is written as a user could write it and resolved by perflab-graph,
so the rules for messages, sizes and policies are those of every graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from perflab import native
from perflab.units import NS_PER_S
from perflab.workload import PERIODIC, Made, WorkloadKind, ends, topology

NAME = "pubsub"
THREAD, THREADS, PROCESSES, RELAY = "thread", "threads", "processes", "relay"
TOPIC, RELAYED = "/pubsub", "/pubsub/relayed"
ROUND_TRIP = "relay_round_trip"
MOST_ENDS = 1000


class PubSubEnds(ends.EndParameters):
    """Without QoS."""

    rate: float = Field(
        1000, ge=0, le=1e6, description="messages per second of each publisher, on average; 0: unthrottled"
    )
    arrivals: Literal["periodic", "poisson"] = Field("periodic", description="spacing of messages: periodic, or random")
    burst: int = Field(
        1, ge=1, le=100_000, description="number of messages that are due together; bursts are that much rarer"
    )
    publishers: int = Field(1, ge=1, le=MOST_ENDS, description="number of nodes that publish on the topic")
    subscribers: int = Field(1, ge=1, le=MOST_ENDS, description="number of nodes that receive all messages")
    instances: int = Field(
        1,
        ge=1,
        le=2**32 - 1,
        description="for types with an integer key: number of different keys, used in turn",
    )
    filter: str | None = Field(
        None,
        min_length=1,
        description='content filter of all subscribers (docs/graphs.md), like "key < 3"; none: all messages',
    )
    layout: Literal["thread", "threads", "processes", "relay"] = Field(
        "processes",
        description="thread: one thread for all nodes; threads: one for each; processes: a process for each; relay: a "
        "second process sends every message back",
    )

    @model_validator(mode="after")
    def _fits(self) -> PubSubEnds:
        if self.layout == RELAY and (self.publishers, self.subscribers) != (1, 1):
            raise ValueError(f"layout={RELAY} needs one publisher and one subscriber, to measure their round trip")
        if self.rate == 0 and (self.arrivals, self.burst) != (PERIODIC, 1):
            raise ValueError("rate=0 is unthrottled, without arrivals or bursts; leave them out")
        return self


PubSubParameters = ends.with_qos(PubSubEnds, "PubSubParameters", depth=16)


def make(parameters: PubSubEnds, message_path: Sequence[str] = ()) -> Made:
    return Made(topology.resolved(document(parameters), native.find(), message_path))


def document(p: PubSubEnds) -> dict[str, Any]:
    """The graph, as in a graph file."""
    publishers = [_node("publisher", n, p.publishers, publishers=[_publisher(p)]) for n in range(p.publishers)]
    subscribers = [
        _node("subscriber", n, p.subscribers, subscriptions=[_subscription(p)]) for n in range(p.subscribers)
    ]
    nodes = [*publishers, *subscribers]
    if p.layout == RELAY:
        return _relay(p)
    if p.layout == PROCESSES:
        return {"name": NAME, "processes": [{"name": node["name"], "nodes": [node]} for node in nodes]}
    if p.layout == THREADS:
        nodes = [{**node, "executor": n} for n, node in enumerate(nodes)]
    return {"name": NAME, "nodes": nodes}


def _relay(p: PubSubEnds) -> dict[str, Any]:
    main = {"name": "main", "publishers": [_publisher(p)], "subscriptions": [_subscription(p, RELAYED)]}
    relay = {
        "name": "relay",
        "subscriptions": [_subscription(p)],
        "publishers": [_publisher(p, RELAYED, timed=False)],
        "reactions": [{"kind": "relay", "on": TOPIC, "publish": RELAYED}],
    }
    processes = [{"name": node["name"], "nodes": [node]} for node in (main, relay)]
    return {"name": NAME, "processes": processes, "key_figures": {ROUND_TRIP: {"from": "main", "to": "main"}}}


def _node(role: str, number: int, of: int, **ends: Any) -> dict[str, Any]:
    return {"name": role if of == 1 else f"{role}_{number + 1}", **ends}


def _publisher(p: PubSubEnds, topic: str = TOPIC, *, timed: bool = True) -> dict[str, Any]:
    instances = {"instances": p.instances} if p.instances > 1 else {}
    return ends.publisher(p, topic, **instances, **(_pace(p) if timed else {}))


def _pace(p: PubSubEnds) -> dict[str, Any]:
    if p.rate == 0:
        return {"arrivals": "unthrottled"}
    period = {"period": f"{max(1, round(NS_PER_S / p.rate))}ns"}
    arrivals = {"arrivals": p.arrivals} if p.arrivals != PERIODIC else {}
    return period | arrivals | ({"burst": p.burst} if p.burst > 1 else {})


def _subscription(p: PubSubEnds, topic: str = TOPIC) -> dict[str, Any]:
    wanted = {} if p.filter is None else {"filter": p.filter}
    return ends.subscription(p, topic, **wanted)


KIND = WorkloadKind(
    NAME,
    "publishers and subscribers of one topic: the cost of a middleware, for any message, rate, QoS and layout",
    PubSubParameters,
    make,
    by_second=True,
    create_with=make,
)
