"""chain_priorities: threads on the chains that matter get real-time priorities, later ones of a chain higher.

As PiCAS orders them (Choi, Xiang, Kim 2021): a chain that counts more is above one that counts less, and within a chain
a callback is above those before it, so that a chain which has begun is finished before it begins again. What is on no
chain stays as it is.

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
MOST_CHAINS = 200  # of a graph of which all are asked for
HIGHEST, LOWEST = 80, 20

Threads = Annotated[int, Shown("threads with a priority of a chain")]


@dataclass(frozen=True)
class Thread:
    """One executor of a process, by its id, or a thread of its program, by its name."""

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
    """By executor, thread of a program, or middleware of a process."""
    threads: Threads
    """How many of these there are, without threads of programs that come and go."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """From perflab-monitor, which reads the kernel's scheduling of every thread."""

    threads: Threads
    """How many of the promised ones had a thread of that priority all the measured part long."""
    real_time_threads: Mapping[str, Mapping[str, int]]
    """Threads of each process with the policy, by their priorities."""


@dataclass(frozen=True, kw_only=True)
class PrioritiesEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class ChainPriorities(Mitigation):
    """Sets policies and priorities in the graph, as its own threads have them."""

    name: ClassVar[str] = NAME
    evidence: ClassVar[type[Evidence]] = PrioritiesEvidence

    paths: str | None = Field(
        None,
        description="a paths file, or its name in the catalog (`perflab list paths`): its paths by weight, then "
        "deadline (all chains of the graph, those of the shortest period first)",
    )
    policy: Literal["FIFO", "RR"] = Field("FIFO", description="FIFO or RR")
    highest: int = Field(HIGHEST, ge=1, le=98, description="priority of the last thread of the most important chain")
    lowest: int = Field(LOWEST, ge=1, le=98, description="below it nothing is given: what is left shares it")
    middleware: Switch = Field(
        True, description="whether the middleware's threads of a process are as high as its highest one on a chain"
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
                f"{self.label}: this user may not have {self.policy} {self.highest}; run as root, or set `rtprio "
                f"{self.highest}` in /etc/security/limits.d/perflab.conf"
            )

    def chains(self, graph: Graph) -> list[Chain]:
        """The chains, the most important first. Raises BadInput where there is none, or a name is none."""
        found = of_graph(graph) if self.paths is None else self._of_file(graph, self.paths)
        chains = [chain for chain in found if chain.threads]
        if not chains:
            where = "the graph" if self.paths is None else self.paths
            raise BadInput(
                f"{self.label}: {where} has no chain of this workload's threads; name a file with some as paths"
            )
        return chains

    def _of_file(self, graph: Graph, word: str) -> list[Chain]:
        from perflab.trace import paths_named  # which needs what reads traces

        wanted = paths_named.find(word, f"{self.label}: paths")
        # Least important are those that are in no objective.
        order = sorted(wanted, key=lambda path: (-(path.weight or 0.0), path.path.deadline or float("inf"), path.place))
        return [Chain(path.name, tuple(_threads_of(graph, path, self.label))) for path in order]

    def priorities(self, graph: Graph) -> dict[Thread, int]:
        """By thread. The first chain is above the second, and the end of each above its begin."""
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
        """On the CPUs where the thread was to be before."""
        return {"policy": self.policy, "priority": priority, "cpus": list((before or {}).get("cpus") or ())}

    def begin(self, trial: Trial) -> Applied:
        return Prioritised(self, trial)


# -- chains ------------------------------------------------------------------------------------------------------------


def _threads_of(graph: Graph, path: Any, label: str) -> Iterator[Thread]:
    """Those of a named path: of programs as it names them, then the executors of the nodes on its way."""
    named = path.path.threads or []
    for place, pattern in enumerate(named):
        known = [f"{p}.{t}" for p in graph.own_processes for t in graph.threads_of_program(p)]
        fitting = [name for name in known if fnmatchcase(name, pattern)]
        if not fitting:
            why = instead(pattern, known) if known else "this workload has no programs with threads of a name"
            raise BadInput(f"{path.where('threads', place)}: {label}: no thread {pattern!r}; {why}")
        for name in fitting:
            process, _, role = name.rpartition(".")
            yield Thread(process, role=role)
    way = _way(graph, path, label)
    # What a program's thread publishes, its node's executor does not.
    yield from _executors(graph, way[1:] if named else way)


def _executors(graph: Graph, nodes: Iterable[str]) -> Iterator[Thread]:
    places = {
        qualified_name(node): Thread(process["name"], int(node["executor"]))
        for process in graph.document["processes"]
        for node in process["nodes"]
    }
    yield from dict.fromkeys(places[node] for node in nodes)


def _way(graph: Graph, path: Any, label: str) -> list[str]:
    """The nodes that a path passes, in order; none of one that is times alone. Raises BadInput."""
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
            gap = f"no message goes from {asked.nodes[place - 1]} to {pattern} by the graph's topics and services"
            raise BadInput(f"{path.where('nodes', place)}: {label}: {gap}")
    return next(iter(ways.values()), [])


def _along(graph: Graph, topics: Sequence[str], path: Any, label: str) -> list[str]:
    """From who publishes the first topic to who takes the last one."""
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
            gap = f"nobody sends {pattern!r}{after} to a node of the graph"
            raise BadInput(f"{path.where('topics', place)}: {label}: {gap}")
    return next(iter(ways.values()), [])


def _edges(graph: Graph) -> list[tuple[str, str, str]]:
    """(publisher, topic, subscription) by the names of nodes, and (client, "SERVICE request", server), as in traces."""
    messages = [(a, topic, b.partition("#")[0]) for a, topic, b in graph.edges()]
    return messages + [(client, f"{service} request", server) for client, service, server in graph.services()]


def _successors(graph: Graph, topics: Sequence[str] | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for a, topic, b in _edges(graph):
        if topics is None or any(fnmatchcase(topic, pattern) for pattern in topics):
            found[a].append(b)
    return found


def _shortest(successors: Mapping[str, list[str]], start: str, ends: set[str]) -> list[str] | None:
    """The nodes behind `start` on the shortest way to one of these; None where there is none."""
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
    """Every chain from a node with a timer to one that nobody reads; those of the shortest period first."""
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
    """Every way on from here that comes nowhere twice."""
    following = [node for node in dict.fromkeys(successors.get(way[-1], ())) if node not in way]
    if not following:
        yield way
    for node in following:
        yield from _ways(successors, [*way, node])


# -- in a trial --------------------------------------------------------------------------------------------------------


class Prioritised(Applied):
    """There is nothing to take back: threads end with their processes."""

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
            reason = reason or f"no thread had {asked.policy} {lasting[missing]}, that of {missing.words}"
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
        """How many threads of the process had each priority with the policy, and no other scheduling meanwhile."""
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
    "real-time priorities for threads on the chains that matter, higher towards the end of each (PiCAS)",
    ChainPriorities,
    words=words,
)
