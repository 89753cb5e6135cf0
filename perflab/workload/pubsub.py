"""The workload `pubsub`: publishers and subscribers of one topic, any message, any rate, any QoS, any layout.

What middlewares are compared by (docs/pubsub.md). The graph is written as a user could write it, and resolved by
perflab-graph, so that messages, sizes and policies have the rules of every graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, create_model, model_validator

from perflab import native, qos
from perflab.parameters import Bytes, Parameters
from perflab.units import NS_PER_S
from perflab.workload import PERIODIC, Made, WorkloadKind, topology

NAME = "pubsub"
THREAD, THREADS, PROCESSES, RELAY = "thread", "threads", "processes", "relay"
TOPIC, RELAYED = "/pubsub", "/pubsub/relayed"
ROUND_TRIP = "relay_round_trip"
MOST_ENDS = 1000


class PubSubEnds(Parameters):
    """Without QoS, whose parameters are those of qos.py."""

    message: str = Field("array1k", description="type of the message; `perflab list messages` shows them all")
    size: Bytes | None = Field(
        None, ge=0, description="of types of variable size: bytes, characters or elements of what varies"
    )
    rate: float = Field(
        1000, ge=0, le=1e6, description="messages per second of each publisher, on average; 0: as fast as it goes"
    )
    arrivals: Literal["periodic", "poisson"] = Field(
        "periodic", description="how messages are spread: one period after the other, or at random"
    )
    burst: int = Field(1, ge=1, le=100_000, description="messages that are due together; bursts are that much rarer")
    publishers: int = Field(1, ge=1, le=MOST_ENDS, description="nodes that publish on the topic")
    subscribers: int = Field(1, ge=1, le=MOST_ENDS, description="nodes that receive all that they publish")
    layout: Literal["thread", "threads", "processes", "relay"] = Field(
        "processes",
        description="thread: one thread for all nodes; threads: one for each; processes: a process for each; relay: a "
        "second process sends every message back",
    )

    @model_validator(mode="after")
    def _fits(self) -> PubSubEnds:
        if self.layout == RELAY and (self.publishers, self.subscribers) != (1, 1):
            raise ValueError(f"layout={RELAY} is of one publisher and one subscriber, for the round trip is theirs")
        if self.rate == 0 and (self.arrivals, self.burst) != (PERIODIC, 1):
            raise ValueError("rate=0 is as fast as it goes, which has neither arrivals nor bursts; leave them out")
        return self


PubSubParameters: type[PubSubEnds] = create_model("PubSubParameters", __base__=PubSubEnds, **qos.fields(depth=16))


def make(parameters: PubSubEnds, message_path: Sequence[str] = ()) -> Made:
    return Made(topology.resolved(document(parameters), native.find(), message_path))


def document(p: PubSubEnds) -> dict[str, Any]:
    """The graph as a file would have it."""
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
    size = {} if p.size is None else {"size": p.size}
    return {
        "topic": topic,
        "type": _type(p),
        **size,
        **(_pace(p) if timed else {}),
        "qos": qos.document(p, qos.PUBLISHERS),
    }


def _pace(p: PubSubEnds) -> dict[str, Any]:
    if p.rate == 0:
        return {"arrivals": "unthrottled"}
    period = {"period": f"{max(1, round(NS_PER_S / p.rate))}ns"}
    arrivals = {"arrivals": p.arrivals} if p.arrivals != PERIODIC else {}
    return period | arrivals | ({"burst": p.burst} if p.burst > 1 else {})


def _subscription(p: PubSubEnds, topic: str = TOPIC) -> dict[str, Any]:
    return {"topic": topic, "type": _type(p), "qos": qos.document(p, qos.SUBSCRIPTIONS)}


def _type(p: PubSubEnds) -> str:
    """A name as performance_test has them, Array1k, is that of one of perflab's own."""
    bare = "/" not in p.message and p.message[:1].isupper()
    return f"perflab_msgs/msg/{p.message}" if bare else p.message


KIND = WorkloadKind(
    NAME,
    "publishers and subscribers of one topic: what a middleware costs, for any message, rate, QoS and layout",
    PubSubParameters,
    make,
    by_second=True,
    create_with=make,
)
