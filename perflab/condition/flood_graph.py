"""The flood as a part of the graph: its publishers, its readers, and where they run. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.condition.flood_parameters import FloodParameters
from perflab.errors import BadInput
from perflab.units import NS_PER_S
from perflab.workload import Graph, extend

DEFAULT_PAYLOAD = 1024
DEFAULT_PUBLISHERS = 4
# The largest message of a type whose size a publisher chooses, as perflab-node's.
LARGEST_PAYLOAD = 64 << 20
# What could not be offered in time is counted as not sent: a flood that falls behind must not outlive its trial.
OVERRUN = "skip"
# More publishers than this in a process share threads: a flood is messages, not context switches.
MOST_THREADS = 16
# A reader that needs more of its thread than this falls behind sooner or later, whatever the middleware does.
KEEPS_UP_BELOW = 0.8


@dataclass(frozen=True)
class MessageType:
    """`payload_bytes` is None where the publisher chooses it."""

    name: str
    payload_bytes: int | None


@dataclass(frozen=True)
class FloodTopic:
    """A topic that is flooded; `subscriptions` read it: the flood's own, or on the workload's topics the workload's."""

    name: str
    type: str
    size_bytes: int
    publishers: int
    subscriptions: int
    qos: Mapping[str, Any]  # of its publishers; likewise of the flood's own subscriptions


@dataclass(frozen=True)
class Flood:
    """What a flood that was laid out in a graph is to do."""

    asked: FloodParameters
    topics: tuple[FloodTopic, ...]
    readers: int  # nodes of the flood that read, each one callback at a time

    @classmethod
    def of(cls, graph: Graph, label: str, parameters: FloodParameters) -> Flood:
        """Of the nodes in a graph that are marked with `label`."""
        nodes = [n for process in graph.document["processes"] for n in process["nodes"] if n.get("condition") == label]
        ends = [publisher for node in nodes for publisher in node["publishers"]]
        # On topics of the workload those of other floods read nothing.
        read = [s["topic"] for node in (*extend.own_nodes(graph), *nodes) for s in node["subscriptions"]]
        sent = [end["topic"] for end in ends]
        topics = (
            FloodTopic(name, end["type"], end["size_bytes"], sent.count(name), read.count(name), end["qos"])
            for name, end in zip(sent, ends, strict=True)
        )
        readers = sum(bool(node["subscriptions"]) for node in nodes)
        return cls(parameters, tuple({topic.name: topic for topic in topics}.values()), readers)

    @property
    def publishers(self) -> int:
        return sum(topic.publishers for topic in self.topics)

    @property
    def rate_hz(self) -> float:
        """Of every publisher."""
        return 1e9 / _period_ns(self.asked)

    @property
    def messages_per_s(self) -> float:
        return self.publishers * self.rate_hz

    @property
    def bytes_per_s(self) -> float:
        return sum(topic.publishers * topic.size_bytes for topic in self.topics) * self.rate_hz

    @property
    def deliveries_per_s(self) -> float:
        """Where readers keep up."""
        return sum(topic.publishers * topic.subscriptions for topic in self.topics) * self.rate_hz

    @property
    def reader_limit_per_s(self) -> float | None:
        """How many messages its own readers can work on; each is one callback at a time. None without work."""
        return self.readers * NS_PER_S / self.asked.work if self.readers and self.asked.work else None

    @property
    def is_reliable(self) -> bool:
        return all(topic.qos["reliability"] == "reliable" for topic in self.topics)

    @property
    def falls_behind(self) -> bool:
        """Whether its own readers have more to do than they can."""
        limit = self.reader_limit_per_s
        return limit is not None and self.deliveries_per_s > KEEPS_UP_BELOW * limit

    @property
    def is_held_back(self) -> bool:
        """Whether publishers must wait for readers: nothing may be lost, and readers are, or may be, too slow."""
        waits = self.is_reliable and self.asked.history == "keep_all" and self.deliveries_per_s > 0
        return waits and (self.falls_behind or self.asked.readers in ("inside", "topics"))


def type_for(payload: int, types: Sequence[MessageType]) -> MessageType:
    """A type whose messages have exactly that many bytes; else one whose publisher chooses. Raises BadInput."""
    for candidate in types:
        if candidate.payload_bytes == payload:
            return candidate
    for candidate in types:
        if candidate.payload_bytes is None and payload <= LARGEST_PAYLOAD:
            return candidate
    sizes = sorted({t.payload_bytes for t in types if t.payload_bytes is not None})
    other = " or anything up to 64MiB" if any(t.payload_bytes is None for t in types) else ""
    raise BadInput(f"message_flood: payload: no message type has {payload} bytes; there are {_listed(sizes)}{other}")


def lay_out(graph: Graph, label: str, parameters: FloodParameters, types: Sequence[MessageType]) -> Graph:
    """The graph with the flood in it, its nodes marked with `label`. Raises BadInput where it does not fit."""
    names = _Names(graph, label)
    topics = _topics(graph, parameters, types, names)
    publishers = _publisher_nodes(topics, _period_ns(parameters), label, names)
    readers = _reader_nodes(topics, label, parameters, names)
    flooded = graph
    if parameters.separate:
        for share in (publishers[i :: parameters.processes] for i in range(parameters.processes)):
            if share:
                flooded = extend.with_processes(flooded, _process(names.process(names.base), share))
    else:
        flooded = _beside(flooded, graph.own_processes[0], publishers)
    if readers and parameters.readers == "inside":
        process, executor = _place_of(graph, parameters)
        flooded = extend.with_nodes(flooded, process, [{**node, "executor": executor} for node in readers])
    elif readers and parameters.separate:
        flooded = extend.with_processes(flooded, _process(names.process(f"{names.base}_readers"), readers))
    elif readers:
        flooded = _beside(flooded, graph.own_processes[0], readers)
    return flooded


def _period_ns(parameters: FloodParameters) -> int:
    return round(1e9 / parameters.rate)


class _Names:
    """Names that nobody in the graph has."""

    def __init__(self, graph: Graph, label: str) -> None:
        self.base = re.sub(r"[^A-Za-z0-9_]+", "_", label).strip("_")
        self.namespace = f"/perflab/{self.base}"
        self._nodes = extend.node_names(graph)
        self._topics = extend.topic_names(graph)
        self._processes = set(graph.processes)

    def node(self, kind: str, number: int) -> str:
        taken = {name.rpartition("/")[2] for name in self._nodes if name.rpartition("/")[0] == self.namespace}
        return self._take(f"{kind}_{number}", taken, self._nodes, f"{self.namespace}/")

    def topic(self, number: int) -> str:
        return self._take(f"{self.namespace}/topic_{number}", self._topics, self._topics)

    def process(self, wanted: str) -> str:
        return self._take(wanted, self._processes, self._processes)

    @staticmethod
    def _take(wanted: str, taken: set[str], into: set[str], prefix: str = "") -> str:
        name = extend.free_name(wanted, taken)
        into.add(f"{prefix}{name}")
        return name


def _topics(graph: Graph, parameters: FloodParameters, types: Sequence[MessageType], names: _Names) -> list[FloodTopic]:
    if parameters.readers == "topics":
        return _workload_topics(graph, parameters, types)
    payload = DEFAULT_PAYLOAD if parameters.payload is None else parameters.payload
    chosen = type_for(payload, types)
    count = DEFAULT_PUBLISHERS if parameters.publishers is None else parameters.publishers
    subscriptions = 0 if parameters.readers == "none" else parameters.readers_per_topic
    return [
        FloodTopic(names.topic(i + 1), chosen.name, payload, 1, subscriptions, parameters.qos) for i in range(count)
    ]


def _workload_topics(graph: Graph, parameters: FloodParameters, types: Sequence[MessageType]) -> list[FloodTopic]:
    nodes = extend.own_nodes(graph)
    subscribed: dict[str, list[dict[str, Any]]] = {}
    for subscription in (s for node in nodes for s in node["subscriptions"]):
        subscribed.setdefault(subscription["topic"], []).append(subscription)
    if not subscribed:
        raise BadInput("message_flood: readers=topics: the workload subscribes to no topic; use readers=external")
    wanted = [topic if topic.startswith("/") else f"/{topic}" for topic in parameters.topics] or list(subscribed)
    for topic in wanted:
        if topic not in subscribed:
            raise BadInput(
                f"message_flood: topics: the workload does not subscribe to {topic}; "
                f"it does to {_listed(sorted(subscribed))}"
            )
    count = 1 if parameters.publishers is None else parameters.publishers
    return [
        FloodTopic(
            topic,
            subscribed[topic][0]["type"],
            _size_on(topic, subscribed[topic][0]["type"], nodes, parameters.payload, types),
            count,
            len(subscribed[topic]),
            extend.offer_for(parameters.qos, [s["qos"] for s in subscribed[topic]]),
        )
        for topic in dict.fromkeys(wanted)
    ]


def _size_on(
    topic: str, type_name: str, nodes: Sequence[Mapping[str, Any]], payload: int | None, types: Sequence[MessageType]
) -> int:
    """The payload of the flood's messages on a topic of the workload."""
    fixed = next((t.payload_bytes for t in types if t.name == type_name), None)
    sizes = [p["size_bytes"] for node in nodes for p in node["publishers"] if p["topic"] == topic]
    usual = fixed if fixed is not None else int(sizes[0]) if sizes else DEFAULT_PAYLOAD
    if payload is None or payload == usual:
        return usual
    if fixed is not None:
        raise BadInput(
            f"message_flood: payload: messages on {topic} are {type_name}, which always has {fixed} bytes; leave "
            "payload out, or name other topics"
        )
    if any(
        reaction["kind"] == "relay" and any(node["subscriptions"][i]["topic"] == topic for i in reaction["on"])
        for node in nodes
        for reaction in node["reactions"]
    ):
        raise BadInput(
            f"message_flood: payload: a relay of the workload forwards {topic} as it is, with {usual} bytes; leave "
            "payload out, or name other topics"
        )
    if payload > LARGEST_PAYLOAD:
        raise BadInput(f"message_flood: payload: {payload} bytes is more than the 64MiB that a message may have")
    return payload


def _publisher_nodes(topics: Sequence[FloodTopic], period_ns: int, label: str, names: _Names) -> list[dict[str, Any]]:
    """One per publisher, as a flood of programs has them."""
    ends = [topic for topic in topics for _ in range(topic.publishers)]
    return [
        extend.node(
            names.node("publisher", number),
            names.namespace,
            0,
            label,
            publishers=[extend.publisher(topic.name, topic.type, topic.size_bytes, period_ns, topic.qos)],
            timers=[extend.timer("flood", period_ns, [0], OVERRUN)],
        )
        for number, topic in enumerate(ends, start=1)
    ]


def _reader_nodes(
    topics: Sequence[FloodTopic], label: str, parameters: FloodParameters, names: _Names
) -> list[dict[str, Any]]:
    """Each reads all topics of the flood, one message at a time."""
    if parameters.readers not in ("external", "inside") or not topics:
        return []
    return [
        extend.node(
            names.node("reader", number + 1),
            names.namespace,
            0,
            label,
            subscriptions=[extend.subscription(topic.name, topic.type, topic.qos) for topic in topics],
            reactions=[extend.sink(range(len(topics)), parameters.work)],
        )
        for number in range(parameters.readers_per_topic)
    ]


def _process(name: str, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A process of these nodes, with a thread for each as far as there may be as many."""
    threads = min(len(nodes), MOST_THREADS)
    placed = [{**node, "executor": i % threads} for i, node in enumerate(nodes)]
    return extend.process(name, [extend.executor(i) for i in range(threads)], placed)


def _beside(graph: Graph, process: str, nodes: Sequence[Mapping[str, Any]]) -> Graph:
    """The nodes on executors of their own in a process of the workload."""
    if not nodes:
        return graph
    first = extend.free_executor_id(extend.process_of(graph, process))
    threads = min(len(nodes), MOST_THREADS)
    placed = [{**node, "executor": first + i % threads} for i, node in enumerate(nodes)]
    return extend.with_nodes(graph, process, placed, [extend.executor(first + i) for i in range(threads)])


def _place_of(graph: Graph, parameters: FloodParameters) -> tuple[str, int]:
    """The process and the id of the executor that the readers inside go to."""
    processes = graph.own_processes
    name = parameters.process
    if name is None and len(processes) > 1:
        raise BadInput(f"message_flood: readers=inside needs process=NAME; there are {_listed(processes)}")
    if name is None:
        name = processes[0]
    if name not in processes:
        raise BadInput(f"message_flood: process: the graph has no process {name!r}; there are {_listed(processes)}")
    # An executor that another condition brought along is not the workload's.
    entry = extend.process_of(graph, name)
    own = {node["executor"] for node in entry["nodes"] if not node.get("condition")}
    ids = [int(executor["id"]) for executor in entry["executors"] if executor["id"] in own]
    if not ids:  # of a command nothing is known
        raise BadInput(f"message_flood: readers=inside: {name!r} has no executor of a graph; use readers=external")
    if parameters.executor is None:
        return name, ids[0]
    if parameters.executor not in ids:
        raise BadInput(
            f"message_flood: executor: process {name!r} has no executor {parameters.executor} with nodes on it; "
            f"there are {_listed(ids)}"
        )
    return name, parameters.executor


def _listed(items: Sequence[object]) -> str:
    return ", ".join(map(str, items)) or "none"
