"""The user's parameters of a flood, and the flood as a part of the graph: its publishers, its readers, and their
processes.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from perflab.errors import BadInput
from perflab.parameters import Bytes, DurationNs, Names, Parameters, Percent
from perflab.units import NS_PER_S
from perflab.workload import Graph, extend

DEFAULT_PAYLOAD = 1024
DEFAULT_PUBLISHERS = 4
# The largest message of a type whose publisher chooses the size; the same as perflab-node's.
LARGEST_PAYLOAD = 64 << 20
# Messages that could not be offered in time count as not sent: a flood that falls behind must not outlive its trial.
OVERRUN = "skip"
# With more publishers than this in a process, they share threads: a flood consists of messages, not context switches.
MOST_THREADS = 16
# A reader that needs more of its thread than this falls behind sooner or later, on any middleware.
KEEPS_UP_BELOW = 0.8


Readers = Literal["none", "external", "inside", "topics"]


def _on_or_off(value: Any) -> Any:
    """YAML reads on and off as true and false."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _hertz(value: Any) -> Any:
    return value.strip().removesuffix("Hz").strip() if isinstance(value, str) else value


Hertz = Annotated[
    float, BeforeValidator(_hertz), Field(allow_inf_nan=False), WithJsonSchema({"type": ["number", "string"]})
]
OwnProcess = Annotated[
    Literal["auto", "on", "off"],
    BeforeValidator(_on_or_off),
    WithJsonSchema({"enum": ["auto", "on", "off", True, False]}),
]


# Share of the promised messages. A missing twentieth is a smaller change of dose than any that an experiment would
# vary, and more than a flood misses on a machine with a CPU to spare.
OFFERED_AT_LEAST_PERCENT = 95.0


class FloodParameters(Parameters):
    """The user's parameters of a message flood."""

    publishers: int | None = Field(
        None,
        ge=0,
        le=256,
        description="publishers, each on a topic of its own (4); with readers=topics, publishers per topic (1)",
    )
    rate: Hertz = Field(1000.0, ge=0.1, le=100_000, description="messages per second of each publisher")
    payload: Bytes | None = Field(
        None, gt=0, description="bytes of a message (1024); with readers=topics, the size of the workload's messages"
    )
    reliability: Literal["best_effort", "reliable"] = Field(
        "best_effort",
        description="QoS of publishers and readers; with readers=topics, reliable where the subscriptions require it",
    )
    history: Literal["keep_last", "keep_all"] = Field("keep_last", description="QoS: keep_last or keep_all")
    depth: int | None = Field(None, ge=1, le=100_000, description="QoS: how many messages keep_last keeps (10)")
    durability: Literal["volatile", "transient_local"] = Field(
        "volatile", description="QoS: volatile or transient_local"
    )
    at_least: Percent = Field(
        OFFERED_AT_LEAST_PERCENT,
        gt=0,
        le=100,
        description="share of the rate that must be sent in every second; choose a lower one beside a load that "
        "takes the CPUs",
    )
    own_process: OwnProcess = Field(
        "auto",
        description="off: on its own threads in the workload's first process, for middlewares within one process",
    )
    processes: int = Field(1, ge=1, le=64, description="number of processes that the publishers are spread over")
    readers: Readers = Field(
        "external",
        description="none; external: a process of its own; inside: on an executor of the workload; topics: the "
        "workload itself, whose topics are flooded",
    )
    process: str | None = Field(None, description="with readers=inside: the process (default: the only one)")
    executor: int | None = Field(
        None, ge=0, description="with readers=inside: the id of the executor (default: the first)"
    )
    topics: Names = Field(
        (), description="with readers=topics: the topics to flood (default: all that the workload subscribes to)"
    )
    readers_per_topic: int = Field(1, ge=1, le=64, description="with readers=external or inside: readers of a topic")
    work: DurationNs = Field(
        0, le=10_000_000_000, description="with readers=external or inside: CPU time that a reader spends on a message"
    )
    churn: Hertz = Field(
        0.0, ge=0, le=1000, description="endpoints or participants created and deleted per second beside the flood"
    )
    churn_of: Literal["endpoints", "participants"] = Field(
        "endpoints", description="what churn creates and deletes: a writer and a reader, or a participant with them"
    )
    churn_topics: int = Field(1, ge=1, le=100, description="number of its own topics that churn uses in turn")

    @property
    def separate(self) -> bool:
        """Whether the flood has processes of its own."""
        return self.own_process != "off"

    @property
    def qos(self) -> dict[str, Any]:
        """The QoS in the form of a resolved graph."""
        keep_last = self.history == "keep_last"
        own = {"history": self.history, "reliability": self.reliability, "durability": self.durability}
        return {**extend.DEFAULT_QOS, **own, "depth": (self.depth or 10) if keep_last else None}

    @model_validator(mode="after")
    def _goes_together(self) -> FloodParameters:
        """Parameters must fit together, and each must have an effect."""
        own_readers = self.readers in ("external", "inside")
        none_of_its_own = f"has no effect: readers={self.readers} has no readers of the flood's own; leave it out"
        inside, topics = (f"applies only to readers={word}; leave it out" for word in ("inside", "topics"))
        without_churn = "applies only to churn; leave it out, or give churn a rate"
        too_many = f"{self.processes} processes cannot share {self.publishers} publishers; use at most as many"
        for key, may_be_given, why_not in (
            ("depth", self.history == "keep_last", "keep_all keeps every message; leave depth out, or use keep_last"),
            ("processes", self.separate, "own_process=off gives the flood no process; leave processes out"),
            ("processes", self.publishers is None or self.processes <= self.publishers, too_many),
            ("process", self.readers == "inside", inside),
            ("executor", self.readers == "inside", inside),
            ("topics", self.readers == "topics", topics),
            ("readers_per_topic", own_readers, none_of_its_own),
            ("work", own_readers, none_of_its_own),
            ("churn_of", self.churn, without_churn),
            ("churn_topics", self.churn, without_churn),
        ):
            if not may_be_given and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key}: {why_not}")
        if self.churn == 0 and self.publishers == 0:
            raise ValueError("churn: is required if publishers is 0; otherwise there is no flood")
        if 0 < self.churn < 0.1:
            raise ValueError("churn: must be at least 0.1 per second")
        return self


@dataclass(frozen=True)
class MessageType:
    """`payload_bytes` is None if the publisher chooses the size. `usual`: a flood on its own topics may choose it."""

    name: str
    payload_bytes: int | None
    usual: bool = True


@dataclass(frozen=True)
class FloodTopic:
    """A flooded topic; its readers are `subscriptions` of the flood, or on the workload's topics of the workload."""

    name: str
    type: str
    size_bytes: int
    publishers: int
    subscriptions: int
    qos: Mapping[str, Any]  # QoS of its publishers; likewise of the flood's own subscriptions
    length: int | None = None  # number of elements that make that size, if these are not bytes


@dataclass(frozen=True)
class Flood:
    """The task of a flood that was added to a graph."""

    asked: FloodParameters
    topics: tuple[FloodTopic, ...]
    readers: int  # nodes of the flood that read, one callback at a time each
    throttled: bool = False  # a mitigation lets readers slow its publishers down

    @classmethod
    def of(cls, graph: Graph, label: str, parameters: FloodParameters) -> Flood:
        """Read from the nodes of a graph that are marked with `label`."""
        nodes = [node for _, node in graph.nodes_of(label)]
        own = [node for _, node in graph.nodes_of(None)]
        ends = [publisher for node in nodes for publisher in node["publishers"]]
        # Nodes of other floods on the workload's topics do not count as readers.
        read = [s["topic"] for node in (*own, *nodes) for s in node["subscriptions"]]
        sent = [end["topic"] for end in ends]
        topics = (
            FloodTopic(
                name, end["type"], end["size_bytes"], sent.count(name), read.count(name), end["qos"], end.get("length")
            )
            for name, end in zip(sent, ends, strict=True)
        )
        readers = sum(bool(node["subscriptions"]) for node in nodes)
        throttled = any(timer.get("throttle") for node in nodes for timer in node["timers"])
        return cls(parameters, tuple({topic.name: topic for topic in topics}.values()), readers, throttled)

    @property
    def publishers(self) -> int:
        return sum(topic.publishers for topic in self.topics)

    @property
    def rate_hz(self) -> float:
        """Messages per second of every publisher."""
        return 1e9 / _period_ns(self.asked)

    @property
    def messages_per_s(self) -> float:
        return self.publishers * self.rate_hz

    @property
    def bytes_per_s(self) -> float:
        return sum(topic.publishers * topic.size_bytes for topic in self.topics) * self.rate_hz

    @property
    def deliveries_per_s(self) -> float:
        """If readers keep up."""
        return sum(topic.publishers * topic.subscriptions for topic in self.topics) * self.rate_hz

    @property
    def reader_limit_per_s(self) -> float | None:
        """How many messages its own readers can process; each runs one callback at a time. None without work."""
        return self.readers * NS_PER_S / self.asked.work if self.readers and self.asked.work else None

    @property
    def is_reliable(self) -> bool:
        return all(topic.qos["reliability"] == "reliable" for topic in self.topics)

    @property
    def falls_behind(self) -> bool:
        """Whether its own readers have more work than they can do."""
        limit = self.reader_limit_per_s
        return limit is not None and self.deliveries_per_s > KEEPS_UP_BELOW * limit

    @property
    def is_held_back(self) -> bool:
        """Whether publishers must wait for readers: because of a mitigation, or because nothing may be lost and readers
        are, or may be, too slow."""
        if self.throttled:
            return True
        waits = self.is_reliable and self.asked.history == "keep_all" and self.deliveries_per_s > 0
        return waits and (self.falls_behind or self.asked.readers in ("inside", "topics"))


def type_for(payload: int, types: Sequence[MessageType]) -> MessageType:
    """A type whose messages have exactly this many bytes; else one whose publisher chooses the size. Raises
    BadInput."""
    usual = [candidate for candidate in types if candidate.usual]
    for candidate in usual:
        if candidate.payload_bytes == payload:
            return candidate
    for candidate in usual:
        if candidate.payload_bytes is None and payload <= LARGEST_PAYLOAD:
            return candidate
    sizes = sorted({t.payload_bytes for t in usual if t.payload_bytes is not None})
    other = " or anything up to 64MiB" if any(t.payload_bytes is None for t in usual) else ""
    raise BadInput(f"message_flood: payload: no message type has {payload} bytes; choose from {_listed(sizes)}{other}")


def lay_out(graph: Graph, label: str, parameters: FloodParameters, types: Sequence[MessageType]) -> Graph:
    """The graph with the flood added, its nodes marked with `label`. Raises BadInput if it does not fit."""
    names = _Names(graph, label)
    topics = _topics(graph, parameters, types, names)
    publishers = _publisher_nodes(topics, _period_ns(parameters), label, names)
    readers = _reader_nodes(topics, label, parameters, names)
    flooded = graph
    if parameters.separate:
        for share in (publishers[i :: parameters.processes] for i in range(parameters.processes)):
            if share:
                flooded = extend.with_processes(flooded, _process(names.free(names.base), share))
    else:
        flooded = _beside(flooded, graph.own_processes[0], publishers)
    if readers and parameters.readers == "inside":
        process, executor = _place_of(graph, parameters)
        flooded = extend.with_nodes(flooded, process, [{**node, "executor": executor} for node in readers])
    elif readers and parameters.separate:
        flooded = extend.with_processes(flooded, _process(names.free(f"{names.base}_readers"), readers))
    elif readers:
        flooded = _beside(flooded, graph.own_processes[0], readers)
    return flooded


def _period_ns(parameters: FloodParameters) -> int:
    return round(1e9 / parameters.rate)


class _Names:
    """Names that are not used in the graph."""

    def __init__(self, graph: Graph, label: str) -> None:
        self.base = re.sub(r"[^A-Za-z0-9_]+", "_", label).strip("_")
        self.namespace = f"/perflab/{self.base}"
        self._taken = extend.names_in(graph)

    def free(self, wanted: str) -> str:
        name = extend.free_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def within(self, wanted: str) -> str:
        """The name of a node or a topic in the flood's namespace, including the namespace."""
        return self.free(f"{self.namespace}/{wanted}")

    def node(self, wanted: str) -> str:
        """The name without the namespace, which is a separate member of a node."""
        return self.within(wanted).rpartition("/")[2]


def _topics(graph: Graph, parameters: FloodParameters, types: Sequence[MessageType], names: _Names) -> list[FloodTopic]:
    if parameters.readers == "topics":
        return _workload_topics(graph, parameters, types)
    payload = DEFAULT_PAYLOAD if parameters.payload is None else parameters.payload
    chosen = type_for(payload, types)
    count = DEFAULT_PUBLISHERS if parameters.publishers is None else parameters.publishers
    subscriptions = 0 if parameters.readers == "none" else parameters.readers_per_topic
    return [
        FloodTopic(names.within(f"topic_{i + 1}"), chosen.name, payload, 1, subscriptions, parameters.qos)
        for i in range(count)
    ]


def _workload_topics(graph: Graph, parameters: FloodParameters, types: Sequence[MessageType]) -> list[FloodTopic]:
    nodes = [node for _, node in graph.nodes_of(None)]
    subscribed: dict[str, list[dict[str, Any]]] = {}
    for subscription in (s for node in nodes for s in node["subscriptions"]):
        subscribed.setdefault(subscription["topic"], []).append(subscription)
    if not subscribed:
        raise BadInput("message_flood: readers=topics: the workload subscribes to no topic; use readers=external")
    wanted = [topic if topic.startswith("/") else f"/{topic}" for topic in parameters.topics] or list(subscribed)
    for topic in wanted:
        if topic not in subscribed:
            raise BadInput(
                f"message_flood: topics: the workload does not subscribe to {topic}, but to "
                f"{_listed(sorted(subscribed))}"
            )
    count = 1 if parameters.publishers is None else parameters.publishers
    return [
        FloodTopic(
            topic,
            subscribed[topic][0]["type"],
            size,
            count,
            len(subscribed[topic]),
            extend.offer_for(parameters.qos, [s["qos"] for s in subscribed[topic]]),
            length,
        )
        for topic in dict.fromkeys(wanted)
        for size, length in [_size_on(topic, subscribed[topic][0]["type"], nodes, parameters.payload, types)]
    ]


def _size_on(
    topic: str, type_name: str, nodes: Sequence[Mapping[str, Any]], payload: int | None, types: Sequence[MessageType]
) -> tuple[int, int | None]:
    """The payload of the flood's messages on a topic of the workload, and the number of elements if it differs."""
    known = next((t for t in types if t.name == type_name), None)
    fixed = None if known is None else known.payload_bytes
    ends = [p for node in nodes for p in node["publishers"] if p["topic"] == topic]
    usual, length = fixed, None
    if ends:
        usual, length = int(ends[0]["size_bytes"]), ends[0].get("length")
    elif usual is None and known is not None and known.usual:
        usual = DEFAULT_PAYLOAD
    if usual is None:
        raise BadInput(
            f"message_flood: topics: the workload has no publisher of {topic}, so the size of its {type_name} is "
            "unknown; name other topics"
        )
    if payload is None or payload == usual:
        return usual, length
    if fixed is not None:
        raise BadInput(
            f"message_flood: payload: messages on {topic} are {type_name}, which always has {fixed} bytes; leave "
            "payload out, or name other topics"
        )
    if length is not None:
        raise BadInput(
            f"message_flood: payload: the size of a {type_name} depends on its elements; leave payload out for "
            f"the {usual} of the workload's on {topic}, or name other topics"
        )
    if any(
        reaction["kind"] == "relay" and any(node["subscriptions"][i]["topic"] == topic for i in reaction["on"])
        for node in nodes
        for reaction in node["reactions"]
    ):
        raise BadInput(
            f"message_flood: payload: a relay of the workload forwards {topic} unchanged, with {usual} bytes; "
            "leave payload out, or name other topics"
        )
    if payload > LARGEST_PAYLOAD:
        raise BadInput(f"message_flood: payload: {payload} bytes exceed the limit of 64MiB for a message")
    return payload, None


def _publisher_nodes(topics: Sequence[FloodTopic], period_ns: int, label: str, names: _Names) -> list[dict[str, Any]]:
    """One node per publisher, as a flood from programs would have."""
    ends = [topic for topic in topics for _ in range(topic.publishers)]
    return [
        extend.node(
            names.node(f"publisher_{number}"),
            names.namespace,
            0,
            label,
            publishers=[
                extend.publisher(topic.name, topic.type, topic.size_bytes, period_ns, topic.qos, length=topic.length)
            ],
            timers=[extend.timer("flood", period_ns, [0], OVERRUN)],
        )
        for number, topic in enumerate(ends, start=1)
    ]


def _reader_nodes(
    topics: Sequence[FloodTopic], label: str, parameters: FloodParameters, names: _Names
) -> list[dict[str, Any]]:
    """Each node reads all topics of the flood, one message at a time."""
    if parameters.readers not in ("external", "inside") or not topics:
        return []
    return [
        extend.node(
            names.node(f"reader_{number + 1}"),
            names.namespace,
            0,
            label,
            subscriptions=[extend.subscription(topic.name, topic.type, topic.qos) for topic in topics],
            reactions=[extend.sink(range(len(topics)), parameters.work)],
        )
        for number in range(parameters.readers_per_topic)
    ]


def _process(name: str, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    placed, executors = _on_threads(nodes, 0)
    return extend.process(name, executors, placed)


def _beside(graph: Graph, process: str, nodes: Sequence[Mapping[str, Any]]) -> Graph:
    """The nodes on their own executors in a process of the workload."""
    if not nodes:
        return graph
    first = extend.free_executor_id(extend.process_of(graph, process))
    return extend.with_nodes(graph, process, *_on_threads(nodes, first))


def _on_threads(nodes: Sequence[Mapping[str, Any]], first: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes, and executors with ids from `first` on, one for each node up to the limit of threads."""
    threads = min(len(nodes), MOST_THREADS)
    placed = [{**node, "executor": first + i % threads} for i, node in enumerate(nodes)]
    return placed, [extend.executor(first + i) for i in range(threads)]


def _place_of(graph: Graph, parameters: FloodParameters) -> tuple[str, int]:
    """The process and executor id for the readers inside."""
    processes = graph.own_processes
    name = parameters.process
    if name is None and len(processes) > 1:
        raise BadInput(f"message_flood: readers=inside needs process=NAME; choose from {_listed(processes)}")
    if name is None:
        name = processes[0]
    if name not in processes:
        raise BadInput(f"message_flood: process: the graph has no process {name!r}; choose from {_listed(processes)}")
    # An executor that another condition added is not the workload's.
    entry = extend.process_of(graph, name)
    own = {node["executor"] for node in entry["nodes"] if not node.get("condition")}
    ids = [int(executor["id"]) for executor in entry["executors"] if executor["id"] in own]
    if not ids:  # unknown for a command
        raise BadInput(f"message_flood: readers=inside: {name!r} has no executor of a graph; use readers=external")
    if parameters.executor is None:
        return name, ids[0]
    if parameters.executor not in ids:
        raise BadInput(
            f"message_flood: executor: process {name!r} has no executor {parameters.executor} with nodes on it; "
            f"choose from {_listed(ids)}"
        )
    return name, parameters.executor


def _listed(items: Sequence[object]) -> str:
    return ", ".join(map(str, items)) or "none"
