"""chain_priorities: threads on important chains get real-time priorities that rise along each chain.

The order is that of PiCAS (Choi, Xiang, Kim 2021): a more important chain is above a less important one, and within a
chain a callback is above those before it, so that a chain finishes before it starts again. Threads on no chain keep
their scheduling.

Example:
    --mitigation chain_priorities:paths=manipulation
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab.condition import Applied, Evidence, Shown, Trial, Window
from perflab.condition.evidence import catch_up, require_processes_of_a_graph
from perflab.errors import BadInput, Unavailable, instead
from perflab.host import Host
from perflab.mitigation import Mitigation
from perflab.parameters import Switch
from perflab.registry import Kind
from perflab.workload import THREAD_ROLES, Graph, qualified_name

NAME = "chain_priorities"
EXECUTORS, MIDDLEWARE = THREAD_ROLES
GROUP = "workload"  # of the monitor: workload/<process>
MOST_CHAINS = 200  # the executors of a graph when all chains are asked for
HIGHEST, LOWEST = 80, 20

Threads = Annotated[int, Shown("threads with a chain's priority")]


@dataclass(frozen=True)
class Thread:
    """An executor of a process, by its id, or a thread of its program, by its name."""

    process: str
    executor: int | None = None
    role: str = EXECUTORS

    @property
    def words(self) -> str:
        return f"{self.process}.{self.role}" if self.executor is None else f"{self.process} executor {self.executor}"


@dataclass(frozen=True)
class Chain:
    """Threads in the order in which a message passes them."""

    name: str
    threads: tuple[Thread, ...]


@dataclass(frozen=True, kw_only=True)
class Promised:
    policy: str
    """FIFO or RR."""
    chains: Mapping[str, tuple[str, ...]]
    """Threads of each chain, the most important chain first, in the order in which a message passes them."""
    priorities: Mapping[str, int]
    """By executor, program thread, or middleware of a process."""
    threads: Threads
    """How many of these exist, without program threads that come and go."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """Read by perflab-monitor, from the kernel's scheduling of every thread."""

    threads: Threads
    """How many of the promised threads had that priority during the whole measured part."""
    real_time_threads: Mapping[str, Mapping[str, int]]
    """Threads of each process with the policy, by priority."""


@dataclass(frozen=True, kw_only=True)
class PrioritiesEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class ChainPriorities(Mitigation):
    """Sets policies and priorities in the graph, which has them for its own threads, too."""

    name: ClassVar[str] = NAME
    evidence: ClassVar[type[Evidence]] = PrioritiesEvidence

    paths: str | None = Field(
        None,
        description="a paths file, or its catalog name (`perflab list paths`): its paths by weight, then deadline "
        "(all chains of the graph, the shortest period first)",
    )
    policy: Literal["FIFO", "RR"] = Field("FIFO", description="FIFO or RR")
    highest: int = Field(HIGHEST, ge=1, le=98, description="priority of the last thread of the most important chain")
    lowest: int = Field(LOWEST, ge=1, le=98, description="lowest priority to use: the remaining threads share it")
    middleware: Switch = Field(
        True, description="whether a process's middleware threads get the highest priority of its chain threads"
    )

    @model_validator(mode="after")
    def _in_order(self) -> ChainPriorities:
        if self.lowest > self.highest:
            raise ValueError(f"lowest: {self.lowest} is above highest, {self.highest}")
        return self

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes_of_a_graph(self.label, runtime)
        self.chains(graph)
        if not host.may_be_real_time(self.highest):
            raise Unavailable(
                f"{self.label}: this user may not use {self.policy} {self.highest}; run as root, or set `rtprio "
                f"{self.highest}` in /etc/security/limits.d/perflab.conf"
            )

    def chains(self, graph: Graph) -> list[Chain]:
        """The chains, the most important first. Raises BadInput if there is none, or a name is unknown."""
        found = of_graph(graph) if self.paths is None else self._of_file(graph, self.paths)
        chains = [chain for chain in found if chain.threads]
        if not chains:
            where = "the graph" if self.paths is None else self.paths
            raise BadInput(
                f"{self.label}: {where} has no chain through this workload's threads; name a file that has one as paths"
            )
        return chains

    def _of_file(self, graph: Graph, word: str) -> list[Chain]:
        from perflab.trace import paths_named  # imported late: it needs the trace reader

        wanted = paths_named.find(word, f"{self.label}: paths")
        # Threads in no objective are least important.
        order = sorted(wanted, key=lambda path: (-(path.weight or 0.0), path.path.deadline or float("inf"), path.place))
        return [Chain(path.name, tuple(_threads_of(graph, path, self.label))) for path in order]

    def priorities(self, graph: Graph) -> dict[Thread, int]:
        """By thread. Priorities fall from the first chain to the last, and rise from the beginning to the end of
        each."""
        priority, given = self.highest, {}
        for chain in self.chains(graph):
            for thread in reversed(chain.threads):
                if thread not in given:
                    given[thread] = priority
                    priority = max(self.lowest, priority - 1)
        return given

    def extend(self, graph: Graph) -> Graph:
        given = self.priorities(graph)
        document = copy.deepcopy(graph.document)
        for process in document["processes"]:
            mine = {thread: level for thread, level in given.items() if thread.process == process["name"]}
            if not mine:
                continue
            roles = process["threads"] = {**dict.fromkeys(THREAD_ROLES), **(process.get("threads") or {})}
            of_all = roles[EXECUTORS]
            for thread, level in mine.items():
                if thread.executor is None:
                    roles[thread.role] = self._settings(level, roles.get(thread.role))
            for executor in process["executors"]:
                level_of = mine.get(Thread(process["name"], executor["id"]))
                if level_of is not None:
                    executor["thread"] = self._settings(level_of, executor.get("thread") or of_all)
            if self.middleware:
                roles[MIDDLEWARE] = self._settings(max(mine.values()), roles.get(MIDDLEWARE))
        return Graph(document)

    def _settings(self, priority: int, before: Mapping[str, Any] | None) -> dict[str, Any]:
        """Keeps the CPUs that the thread already had."""
        return {"policy": self.policy, "priority": priority, "cpus": list((before or {}).get("cpus") or ())}

    def begin(self, trial: Trial) -> Applied:
        return Prioritised(self, trial)


# -- chains ------------------------------------------------------------------------------------------------------------


def _threads_of(graph: Graph, path: Any, label: str) -> Iterator[Thread]:
    """The threads of a named path: program threads by their names, then the executors of the nodes on the path."""
    named = path.path.threads or []
    for place, pattern in enumerate(named):
        known = [f"{p}.{t}" for p in graph.own_processes for t in graph.threads_of_program(p)]
        fitting = [name for name in known if fnmatchcase(name, pattern)]
        if not fitting:
            why = instead(pattern, known) if known else "this workload has no programs with named threads"
            raise BadInput(f"{path.where('threads', place)}: {label}: no thread {pattern!r}; {why}")
        for name in fitting:
            process, _, role = name.rpartition(".")
            yield Thread(process, role=role)
    way = _way(graph, path, label)
    # A topic published by a program's thread is not published by its node's executor.
    yield from _executors(graph, way[1:] if named else way)


def _executors(graph: Graph, nodes: Iterable[str]) -> Iterator[Thread]:
    places = {
        qualified_name(node): Thread(process["name"], int(node["executor"]))
        for process in graph.document["processes"]
        for node in process["nodes"]
    }
    yield from dict.fromkeys(places[node] for node in nodes)


def _way(graph: Graph, path: Any, label: str) -> list[str]:
    """The nodes that a path passes, in order; none for a path that only has times. Raises BadInput."""
    asked = path.path
    nodes = [name for name, _ in graph.nodes_of(None)]
    successors = _successors(graph, asked.topics if asked.nodes else None)
    if asked.nodes is None:
        return _along(graph, asked.topics or [], path, label)
    ways: dict[str, list[str]] = {}  # by the node to which each leads
    for place, pattern in enumerate(asked.nodes):
        fitting = [name for name in nodes if fnmatchcase(name, pattern)]
        if not fitting:
            raise BadInput(f"{path.where('nodes', place)}: {label}: no node {pattern!r}; {instead(pattern, nodes)}")
        if not place:
            ways = {node: [node] for node in fitting}
            continue
        before, ways = ways, {}
        for last, way in before.items():
            if (between := _shortest(successors, last, set(fitting))) is not None:
                ways.setdefault(between[-1], [*way, *between])
        if not ways:
            gap = f"no message goes from {asked.nodes[place - 1]} to {pattern} through the graph's topics and services"
            raise BadInput(f"{path.where('nodes', place)}: {label}: {gap}")
    return next(iter(ways.values()), [])


def _along(graph: Graph, topics: Sequence[str], path: Any, label: str) -> list[str]:
    """From the publisher of the first topic to the subscriber of the last one."""
    ways: dict[str, list[str]] = {}  # by the node to which each leads
    for place, pattern in enumerate(topics):
        edges = [(a, b) for a, topic, b in _edges(graph) if fnmatchcase(topic, pattern)]
        before = ways if place else {a: [a] for a, _ in edges}
        ways = {}
        for last, way in before.items():
            for a, b in edges:
                if a == last:
                    ways.setdefault(b, [*way, b])
        if not ways:
            after = f" from {' or '.join(before)}" if place else ""
            gap = f"no publisher sends {pattern!r}{after} to a node of the graph"
            raise BadInput(f"{path.where('topics', place)}: {label}: {gap}")
    return next(iter(ways.values()), [])


def _edges(graph: Graph) -> list[tuple[str, str, str]]:
    """(publisher, topic, subscription) by node names, and (client, "SERVICE request", server), as in traces."""
    messages = [(a, topic, b.partition("#")[0]) for a, topic, b in graph.edges()]
    return messages + [(client, f"{service} request", server) for client, service, server in graph.services()]


def _successors(graph: Graph, topics: Sequence[str] | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for a, topic, b in _edges(graph):
        if topics is None or any(fnmatchcase(topic, pattern) for pattern in topics):
            found[a].append(b)
    return found


def _shortest(successors: Mapping[str, list[str]], start: str, ends: set[str]) -> list[str] | None:
    """The nodes behind `start` on the shortest way to one of these; None if there is no way."""
    ways: dict[str, list[str]] = {start: []}
    open_ = [start]
    while open_:
        node = open_.pop(0)
        for following in successors.get(node, ()):
            if following in ways:
                continue
            ways[following] = [*ways[node], following]
            if following in ends:
                return ways[following]
            open_.append(following)
    return None


def of_graph(graph: Graph) -> list[Chain]:
    """Every chain from a node with a timer to a node without readers; the shortest period first."""
    successors = _successors(graph)
    sources = [
        (min(timer["period_ns"] for timer in node["timers"] if timer["period_ns"]), name)
        for name, node in graph.nodes_of(None)
        if any(timer["period_ns"] for timer in node["timers"])
    ]
    found: list[Chain] = []
    for _, source in sorted(sources):
        for way in _ways(successors, [source]):
            if len(found) == MOST_CHAINS:
                return found
            if len(way) > 1:
                found.append(Chain(" > ".join(way), tuple(_executors(graph, way))))
    return found


def _ways(successors: Mapping[str, list[str]], way: list[str]) -> Iterator[list[str]]:
    """Every continuation from here that passes no node twice."""
    following = [node for node in dict.fromkeys(successors.get(way[-1], ())) if node not in way]
    if not following:
        yield way
    for node in following:
        yield from _ways(successors, [*way, node])


# -- in a trial --------------------------------------------------------------------------------------------------------


class Prioritised(Applied):
    """Nothing to undo: threads end with their processes."""

    def __init__(self, asked: ChainPriorities, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial

    def verify(self, window: Window) -> Evidence:
        asked, graph = self.asked, self.trial.graph
        given = asked.priorities(graph)
        lasting = {thread: level for thread, level in given.items() if thread.executor is not None}
        by_process: dict[str, dict[Thread, int]] = defaultdict(dict)
        for thread, level in given.items():
            by_process[thread.process][thread] = level
        words = {thread.words: level for thread, level in given.items()}
        if asked.middleware:
            words |= {f"{name}.{MIDDLEWARE}": max(levels.values()) for name, levels in by_process.items()}
        groups = [f"{GROUP}/{name}" for name in by_process]
        reason = catch_up(self.trial, window, groups)
        seen = {name: self._seen(name, window) for name in by_process}
        held = [thread for thread, level in lasting.items() if level in seen[thread.process]]
        missing = next((thread for thread in lasting if thread not in held), None)
        if missing is not None:
            reason = reason or f"no thread had {asked.policy} {lasting[missing]}, the priority of {missing.words}"
        promised = Promised(
            policy=asked.policy,
            chains={chain.name: tuple(thread.words for thread in chain.threads) for chain in asked.chains(graph)},
            priorities=words,
            threads=len(lasting),
        )
        achieved = Achieved(
            threads=len(held),
            real_time_threads={n: {str(level): count for level, count in sorted(of.items())} for n, of in seen.items()},
        )
        return PrioritiesEvidence(promised=promised, achieved=achieved, reason=reason)

    def _seen(self, process: str, window: Window) -> dict[int, int]:
        """How many threads of the process had each priority with the policy all the time."""
        found: dict[int, set[int]] = defaultdict(set)
        changed: set[int] = set()
        known: dict[int, tuple[str, int]] = {}
        for thread in self.trial.monitor.threads(f"{GROUP}/{process}", window.begin_ns, window.end_ns):
            scheduling = (thread.policy, thread.priority)
            if known.setdefault(thread.tid, scheduling) != scheduling:
                changed.add(thread.tid)
            if thread.policy == self.asked.policy:
                found[thread.priority].add(thread.tid)
        return {level: len(tids - changed) for level, tids in found.items() if tids - changed}


def words(given: Mapping[str, Any]) -> str:
    of = f" of {given['paths']}" if given.get("paths") else ""
    return f"{given['policy']} priorities by chains{of}"


KIND: Kind[Any] = Kind(
    NAME,
    "real-time priorities for threads on important chains, rising along each chain (PiCAS)",
    ChainPriorities,
    words=words,
)
