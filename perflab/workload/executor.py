"""The workload `executor`: what an executor costs (docs/executors.md).

Ten nodes exchange many small messages, so that nearly all CPU time is spent on finding the next callback. The workload
`executor`: the cost of an executor (docs/executors.md).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from perflab.parameters import Bytes, DurationNs, Parameters
from perflab.workload import Graph, Made, Pins, WorkloadKind, extend

NAME = "executor"
ROS, ONE_NODE, NO_PUB, MIDDLEWARE, PLAIN = "ros", "rosonenode", "nopub", "middleware", "plain"
INLINE, DIRECT = "inline", "direct"
MESSAGE = "stamped_vector"
REQUEST = "stamped10b"
PROCESS = "executor"
MAX_PARTS = 100_000  # endpoints and timers, as perflab-graph's of a graph


class ExecutorParameters(Parameters):
    case: Literal["ros", "rosonenode", "nopub", "middleware", "plain"] = Field(
        "ros",
        description="ros: one executor, a participant for each node; rosonenode: the same traffic in one node; nopub: "
        "timers alone; middleware: the same traffic without an executor; plain: by function calls",
    )
    nodes: int = Field(10, ge=1, le=1000, description="number of nodes; in rosonenode, one node has all their traffic")
    timers: int = Field(1, ge=1, le=1000, description="timers per node")
    publishers: int = Field(2, ge=1, le=1000, description="publishers per node, each with a topic of its own")
    subscriptions: int | None = Field(
        None, ge=1, le=1000, description="subscriptions of each topic; default one in every node"
    )
    participants: int | None = Field(
        None, ge=1, le=1000, description="DDS participants; default one for each node of ros and nopub, else one"
    )
    interval: DurationNs = Field("20ms", description="period of the timers")  # type: ignore[assignment]
    size: Bytes = Field(68, ge=0, description="payload of a message")
    depth: int = Field(10, ge=1, le=100_000, description="history of every publisher and subscription")
    reliability: Literal["reliable", "best_effort"] = Field("best_effort", description="of all of them")
    durability: Literal["volatile", "transient_local"] = Field("transient_local", description="of all of them")
    services: int = Field(0, ge=0, le=1000, description="services per node; without clients they get no requests")
    clients: int = Field(
        0, ge=0, le=1000, description="clients per node; each calls a service of the next node at every interval"
    )
    waitables: int = Field(0, ge=0, le=1000, description="waitables per node; those not triggered are idle")
    triggered: int = Field(0, ge=0, le=1000, description="number of these that each node triggers at every interval")

    @model_validator(mode="after")
    def _fits(self) -> ExecutorParameters:
        if self.interval < 1000:
            raise ValueError("interval must be at least 1us")
        if self.clients > self.services:
            raise ValueError(f"clients {self.clients} are more than the services of a node, {self.services}")
        if self.triggered > self.waitables:
            raise ValueError(f"triggered {self.triggered} are more than the waitables of a node, {self.waitables}")
        entities = self.timers + self.services + self.clients + self.waitables
        parts = self.nodes * entities + self.topics * (1 + self.readers)
        if parts > MAX_PARTS:
            raise ValueError(f"{parts} timers and endpoints are more than the {MAX_PARTS} that a graph may have")
        if self.participants is not None and self.participants > self.node_count:
            raise ValueError(f"participants {self.participants} are more than the nodes, {self.node_count}")
        return self

    @property
    def topics(self) -> int:
        return 0 if self.case == NO_PUB else self.nodes * self.publishers

    @property
    def readers(self) -> int:
        """Subscriptions of each topic."""
        return self.nodes if self.subscriptions is None else self.subscriptions

    @property
    def node_count(self) -> int:
        return 1 if self.case == ONE_NODE else self.nodes

    @property
    def participant_count(self) -> int:
        if self.participants is not None:
            return self.participants
        return self.nodes if self.case in (ROS, NO_PUB) else 1


_PINS = {
    MIDDLEWARE: Pins(INLINE, why=f"case {MIDDLEWARE} runs without an executor"),
    PLAIN: Pins(INLINE, DIRECT, why=f"case {PLAIN} runs without executor and middleware"),
}


def make(parameters: ExecutorParameters) -> Made:
    pins = _PINS.get(parameters.case, Pins())
    executor = extend.executor(0, pins.executor or "single_threaded")
    process = extend.process(PROCESS, [executor], [_node(parameters, n) for n in range(parameters.node_count)])
    process["participants"] = parameters.participant_count
    return Made(Graph({"schema": 1, "name": NAME, "processes": [process]}), pins)


def _node(p: ExecutorParameters, index: int) -> dict[str, Any]:
    """Publishes the topics index, index + nodes, ...; a topic is read by its own node and the ones after it."""
    qos = {**extend.DEFAULT_QOS, "depth": p.depth, "reliability": p.reliability, "durability": p.durability}
    own = range(index, p.topics, p.node_count)
    publishers = [extend.publisher(f"/topic_{t}", MESSAGE, p.size, p.interval, qos) for t in own]
    subscriptions = []
    for topic in range(p.topics):
        first = (index - topic) % p.node_count
        for number, _ in enumerate(range(first, p.readers, p.node_count), 1):
            subscription = extend.subscription(f"/topic_{topic}", MESSAGE, qos)
            subscriptions.append(subscription if number == 1 else {**subscription, "number": number})
    mine = range(index, p.nodes, p.node_count)
    services = [extend.server(f"/service_{n * p.services + s}", REQUEST) for n in mine for s in range(p.services)]
    asked = [((n + 1) * p.services + c) % (p.nodes * p.services) for n in mine for c in range(p.clients)]
    clients = [extend.client(f"/service_{s}", REQUEST, p.interval) for s in asked]
    timers = [
        extend.timer(
            f"timer_{n}",
            p.interval,
            range(n, len(publishers), p.timers),
            "catch_up",
            request=range(n, len(clients), p.timers),
            trigger=range(n, len(mine) * p.triggered, p.timers),
        )
        for n in range(p.timers)
    ]
    name = "node" if p.case == ONE_NODE else f"node_{index}"
    return extend.node(
        name,
        "/",
        0,
        publishers=publishers,
        subscriptions=subscriptions,
        timers=timers,
        clients=clients,
        servers=services,
        waitables=[extend.waitable(f"waitable_{n}") for n in range(len(mine) * p.waitables)],
    )


KIND = WorkloadKind(
    NAME,
    "the cost of an executor: many small messages between nodes, with and without executor and middleware",
    ExecutorParameters,
    make,
)
