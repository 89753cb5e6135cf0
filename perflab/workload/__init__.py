"""Workloads: what runs. Each kind is one module that turns the user's words into a resolved graph."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from perflab.results.trial import ALIGNED, AS_CREATED

# Where in their periods timers tick (native/graph/phase.h).
PHASES = (AS_CREATED, ALIGNED, "staggered", "random")


@dataclass(frozen=True)
class Source:
    """A file that the user named, as it was when it was read."""

    path: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Graph:
    """A resolved graph (docs/formats.md, section 1). `document` is passed to the native programs unchanged.

    Nodes that a condition added are marked with its label. Whatever is asked of the graph is said of the workload's
    own nodes, unless the name says otherwise.
    """

    document: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def processes(self) -> list[str]:
        """The names of its OS processes, those that conditions added included."""
        return [p["name"] for p in self.document["processes"]]

    @property
    def with_nodes(self) -> Graph:
        """Without the processes of which no node is known: a command is one, and runs no perflab-node."""
        return Graph({**self.document, "processes": [p for p in self.document["processes"] if p["nodes"]]})

    @property
    def own_processes(self) -> list[str]:
        """The names of the OS processes that hold a node of the workload."""
        return [p["name"] for p in self.document["processes"] if not _condition_of(p)]

    @property
    def condition_processes(self) -> dict[str, str]:
        """The processes that consist of nodes which conditions added, with the label of the first one's condition."""
        return {p["name"]: label for p in self.document["processes"] if (label := _condition_of(p))}

    def condition_nodes(self) -> dict[str, str]:
        """The nodes that conditions added, by their qualified names, with the label of the condition."""
        return {
            _qualified(node["namespace"], node["name"]): node["condition"]
            for process in self.document["processes"]
            for node in process["nodes"]
            if node.get("condition")
        }

    @property
    def executors(self) -> list[str]:
        """The kinds of executors in it, each once, sorted."""
        return sorted({e["kind"] for p in self.document["processes"] for e in p["executors"]})

    @property
    def phase(self) -> str | None:
        """Where in their periods its timers tick: one word, or several as "aligned+random"; None without timers."""
        words = {
            entry.get("phase") or ALIGNED
            for _, node in self._nodes()
            for entry in (*node["timers"], *node["reactions"])
            if entry["period_ns"]
        }
        return "+".join(sorted(words)) or None

    @property
    def shortest_period_ns(self) -> int | None:
        """Of its timers, those of clients included, and cyclic reactions; None where there is none."""
        return min(
            (
                entry["period_ns"]
                for _, node in self._nodes()
                for entry in (*node["timers"], *node["reactions"])
                if entry["period_ns"]
            ),
            default=None,
        )

    @property
    def longest_work_ns(self) -> int:
        """The CPU time of its longest callback."""
        return max(
            (
                entry["work_ns"]
                for _, node in self._nodes()
                for entry in (*node["timers"], *node["reactions"], *node.get("servers", ()))
            ),
            default=0,
        )

    def publishers(self) -> list[tuple[str, str]]:
        """(node, topic) of every publisher."""
        return [(node, p["topic"]) for node, entry in self._nodes() for p in entry["publishers"]]

    def subscriptions(self) -> list[tuple[str, str]]:
        """(node, topic) of every subscription; a node's second one of a topic is "NODE#2"."""
        return [(_reader(node, s), s["topic"]) for node, entry in self._nodes() for s in entry["subscriptions"]]

    def edges(self) -> list[tuple[str, str, str]]:
        """(publisher, topic, subscription) of every connection."""
        readers: dict[str, list[str]] = {}
        for to, topic in self.subscriptions():
            readers.setdefault(topic, []).append(to)
        return [(node, topic, to) for node, topic in self.publishers() for to in readers.get(topic, ())]

    @property
    def serving(self) -> frozenset[int]:
        """The indexes of the processes that have a client or a server."""
        return frozenset(
            index
            for index, process in enumerate(self.document["processes"])
            if any(node.get("clients") or node.get("servers") for node in process["nodes"])
        )

    def services(self) -> list[tuple[str, str, str]]:
        """(client, service, server) of every client whose service has a server."""
        servers = {s["service"]: node for node, entry in self._nodes() for s in entry.get("servers", ())}
        return [
            (node, c["service"], servers[c["service"]])
            for node, entry in self._nodes()
            for c in entry.get("clients", ())
            if c["service"] in servers
        ]

    def _nodes(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (_qualified(node["namespace"], node["name"]), node)
            for process in self.document["processes"]
            for node in process["nodes"]
            if not node.get("condition")
        ]


@dataclass(frozen=True)
class Pins:
    """What a workload demands of its variant: it would be another one otherwise. `why` says so, after the name."""

    executor: str | None = None
    middleware: str | None = None
    why: str = ""


class Workload:
    """What runs in every trial of an experiment."""

    runtime: ClassVar[str | None] = None  # what conditions and observers are asked about; None: that of the variant

    if TYPE_CHECKING:  # fields of some, and computed by others

        @property
        def kind(self) -> str: ...

        @property
        def name(self) -> str: ...

        @property
        def graph(self) -> Graph: ...

        @property
        def sources(self) -> tuple[Source, ...]: ...

    @property
    def pins(self) -> Pins:
        return Pins()

    @property
    def own_factors(self) -> Collection[str]:
        """The keys of `workload.KEY` that `at` understands; other keys are set in its graph."""
        return ()

    def at(self, factors: Mapping[str, Any]) -> Workload:
        """At these levels of factors, of which its own count. Raises BadInput."""
        del factors
        return self

    def document(self) -> dict[str, Any]:
        """What the manifest says of it beside its graph."""
        return {}


@dataclass(frozen=True)
class Kind:
    """A kind of workload, for `perflab list workloads`."""

    name: str
    summary: str


KINDS = (
    Kind("topology", "a graph of nodes, from the catalog or from files (perflab YAML/JSON, irobot_benchmark JSON)"),
    Kind("command", "any command line or launch file, as it is: `perflab run -- ros2 launch my_robot up.launch.py`"),
)


def file_name(name: str) -> str:
    """`name` with every character that does not belong into a file name as `_`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".") or "unnamed"


def _condition_of(process: dict[str, Any]) -> str | None:
    """The label of the first node's condition where the whole process is of conditions; else None."""
    labels = [node.get("condition") for node in process["nodes"]]
    return str(labels[0]) if labels and all(labels) else None


def _reader(node: str, subscription: dict[str, Any]) -> str:
    """As records name it (native/graph/model.h, name_of)."""
    number = subscription.get("number", 1)
    return node if number == 1 else f"{node}#{number}"


def _qualified(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"
