"""Workloads, which run under test. Each kind is one module that makes a graph or a command from the user's input."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from perflab import models
from perflab.registry import Kind
from perflab.results.outcome import Outcome, OwnOutcome
from perflab.results.phase import ALIGNED
from perflab.results.source import Source as Source  # the kinds of workloads
from perflab.units import format_duration

if TYPE_CHECKING:
    from perflab.results.figure import OwnFigure, OwnTimes
    from perflab.results.loops import Life, Loops
    from perflab.results.outcome import BrokenOff
    from perflab.results.starvation import Starvation
    from perflab.results.trial import StarvedThread, Trial
    from perflab.statistics.histogram import Histogram
    from perflab.statistics.said import Said, SaidOutcome
    from perflab.workload.command import Command

FACTOR = "workload."  # prefix of factors of a workload

THREAD_ROLES = ("executors", "middleware")  # roles of a process's threads; its program has others

OUTSIDE = "outside"  # the program of a process that is not perflab's (native/graph/model.h)

PERIODIC = "periodic"  # default arrivals of a timer


@dataclass(frozen=True)
class Graph:
    """A resolved graph (docs/formats.md, section 1). `document` is passed to the native programs unchanged.

    Nodes that a condition added are marked with its label. Properties are about the workload's own nodes, unless their
    name or docstring says otherwise.
    """

    document: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def processes(self) -> list[str]:
        """The names of all its OS processes, including those that conditions added."""
        return [p["name"] for p in self.document["processes"]]

    @property
    def with_nodes(self) -> Graph:
        """Without processes that have no known node, like a command, which runs no perflab-node."""
        return Graph({**self.document, "processes": [p for p in self.document["processes"] if p["nodes"]]})

    @property
    def programs(self) -> dict[str, str]:
        """The processes that run a program of perflab's interface instead of perflab-node, with its name or path."""
        programs = {p["name"]: p["program"] for p in self.document["processes"] if p.get("program")}
        return {name: program for name, program in programs.items() if program != OUTSIDE}

    @property
    def outside(self) -> dict[str, dict[str, Any]]:
        """The processes that are not perflab's, with their settings (workload/outside.py)."""
        known = [p for p in self.document["processes"] if p.get("program") == OUTSIDE]
        return {p["name"]: p.get("options") or {} for p in known}

    @property
    def started_outside(self) -> tuple[str, ...]:
        """Those of them that perflab starts; others run already."""
        return tuple(name for name, said in self.outside.items() if said.get("command"))

    @property
    def _outside_nodes(self) -> frozenset[str]:
        return frozenset(
            qualified_name(node)
            for process in self.document["processes"]
            if process.get("program") == OUTSIDE
            for node in process["nodes"]
        )

    def threads_of_program(self, process: str) -> tuple[str, ...]:
        """The names of the threads of a process's program."""
        of = next((p.get("threads") or {} for p in self.document["processes"] if p["name"] == process), {})
        return tuple(name for name in of if name not in THREAD_ROLES)

    @property
    def limit_ns(self) -> int | None:
        """The time within which one of its processes ends the measured part; None if none does."""
        return self.document.get("limit_ns")

    @property
    def enders(self) -> list[str]:
        """The processes that end the measured part."""
        return [p["name"] for p in self.document["processes"] if p.get("ends")]

    @property
    def own_processes(self) -> list[str]:
        """The names of perflab's OS processes that hold a node of the workload."""
        outside = self.outside
        return [p["name"] for p in self.document["processes"] if not _condition_of(p) and p["name"] not in outside]

    @property
    def condition_processes(self) -> dict[str, str]:
        """The processes all of whose nodes were added by conditions, with the label of the first node's condition."""
        return {p["name"]: label for p in self.document["processes"] if (label := _condition_of(p))}

    def condition_nodes(self) -> dict[str, str]:
        """The nodes that conditions added, by their qualified names, with the label of the condition."""
        return {name: node["condition"] for name, node in self.nodes() if node.get("condition")}

    @property
    def executors(self) -> list[str]:
        """The kinds of its executors, without duplicates, sorted."""
        return sorted({e["kind"] for p in self.document["processes"] for e in p["executors"]})

    @property
    def activations_ns(self) -> list[int]:
        """The periods of its `let` executors."""
        executors = [e for p in self.document["processes"] for e in p["executors"]]
        return [period_ns for e in executors if (period_ns := e.get("period_ns"))]

    @property
    def phase(self) -> str | None:
        """The phase of its periodic timers: one word, or several like "aligned+random"; None without such timers."""
        periodic = [entry for entry in self._cyclic() if entry.get("arrivals", PERIODIC) == PERIODIC]
        return "+".join(sorted({entry.get("phase") or ALIGNED for entry in periodic})) or None

    @property
    def shortest_period_ns(self) -> int | None:
        """The shortest time between two bursts of a timer (including clients) or cyclic reaction; 0 for an unthrottled
        one, None if there is none."""
        return min(((entry["period_ns"] or 0) * entry.get("burst", 1) for entry in self._cyclic()), default=None)

    def _cyclic(self) -> list[dict[str, Any]]:
        nodes = [node for _, node in self.nodes_of(None)]
        timers = [timer for node in nodes for timer in node["timers"]]
        return timers + [reaction for node in nodes for reaction in node["reactions"] if reaction["period_ns"]]

    @property
    def longest_work_ns(self) -> int:
        """The CPU time of its longest callback, as programmed."""
        return max(
            (
                entry["work_ns"]
                for _, node in self.nodes_of(None)
                for entry in (*node["timers"], *node["reactions"], *node.get("servers", ()))
            ),
            default=0,
        )

    def publishers(self) -> list[tuple[str, str]]:
        """(node, topic) of every publisher."""
        return [(node, p["topic"]) for node, entry in self.nodes_of(None) for p in entry["publishers"]]

    def subscriptions(self) -> list[tuple[str, str]]:
        """(node, topic) of every subscription; a node's second subscription to a topic is "NODE#2"."""
        return [(_reader(node, s), s["topic"]) for node, entry in self.nodes_of(None) for s in entry["subscriptions"]]

    @property
    def longest_action_ns(self) -> int:
        """The programmed duration of its longest action, without the time of its messages."""
        return max((s["duration_ns"] + s["step_ns"] for _, s in self._action_ends(None, "action_servers")), default=0)

    def _action_ends(self, condition: str | None, which: str) -> list[tuple[str, dict[str, Any]]]:
        return [(name, end) for name, node in self.nodes_of(condition) for end in node.get(which) or ()]

    def topics(self) -> set[str]:
        """Every topic, including those that conditions added, and the two topics of each service by their names on the
        wire (native/message/names.cpp); services and topics of actions likewise."""
        found: set[str] = set()
        services: list[str] = []
        for _, node in self.nodes():
            found.update(end["topic"] for end in (*node["publishers"], *node["subscriptions"]))
            services += [end["service"] for end in (*node.get("servers", ()), *node.get("clients", ()))]
            for end in (*(node.get("action_servers") or ()), *(node.get("action_clients") or ())):
                found |= {_part(end["action"], topic) for topic in ("feedback", "status")}
                services += [_part(end["action"], part) for part in ("send_goal", "get_result", "cancel_goal")]
        for service in services:
            found |= {f"rq{service}Request", f"rr{service}Reply"}
        return found

    def edges(self) -> list[tuple[str, str, str]]:
        """(publisher, topic, subscription) of every edge with both ends in perflab's processes; the feedback of an
        action goes to each of its clients."""
        readers: dict[str, list[str]] = {}
        outside = self._outside_nodes
        for to, topic in self.subscriptions():
            if to.partition("#")[0] not in outside:
                readers.setdefault(topic, []).append(to)
        writers = [(node, topic) for node, topic in self.publishers() if node not in outside]
        of_topics = [(node, topic, to) for node, topic in writers for to in readers.get(topic, ())]
        servers = {s["action"]: node for node, s in self._action_ends(None, "action_servers") if s["feedback"]}
        return of_topics + [
            (servers[c["action"]], _part(c["action"], "feedback"), node)
            for node, c in self._action_ends(None, "action_clients")
            if c["action"] in servers
        ]

    @property
    def within_a_process(self) -> bool:
        """Whether both ends of a topic, service or action are in one process."""
        return any(_both_ends(process["nodes"]) for process in self.document["processes"])

    @property
    def serving(self) -> frozenset[int]:
        """The indexes of the processes that have a client or server of a service or action."""
        ends = ("clients", "servers", "action_clients", "action_servers")
        return frozenset(
            index
            for index, process in enumerate(self.document["processes"])
            if any(node.get(which) for node in process["nodes"] for which in ends)
        )

    def services(self) -> list[tuple[str, str, str]]:
        """(client, service, server) of every client of perflab's whose service has a server; an action has several
        services."""
        servers = {s["service"]: node for node, entry in self.nodes_of(None) for s in entry.get("servers", ())}
        outside = self._outside_nodes
        of_services = [
            (node, c["service"], servers[c["service"]])
            for node, entry in self.nodes_of(None)
            for c in entry.get("clients", ())
            if c["service"] in servers and node not in outside
        ]
        acting = {s["action"]: node for node, s in self._action_ends(None, "action_servers")}
        return of_services + [
            (node, _part(c["action"], part), acting[c["action"]])
            for node, c in self._action_ends(None, "action_clients")
            if c["action"] in acting and node not in outside
            for part in ("send_goal", "get_result", *(("cancel_goal",) if c.get("cancel_after_ns") else ()))
        ]

    def nodes(self) -> list[tuple[str, dict[str, Any]]]:
        """All nodes, including those that conditions added, each with its qualified name."""
        return [(qualified_name(node), node) for process in self.document["processes"] for node in process["nodes"]]

    def nodes_of(self, condition: str | None) -> list[tuple[str, dict[str, Any]]]:
        """The nodes that the condition of this label added; for None the workload's own."""
        return [(name, node) for name, node in self.nodes() if (node.get("condition") or None) == condition]


_PAIRS = (
    ("topic", "publishers", "subscriptions"),
    ("service", "clients", "servers"),
    ("action", "action_clients", "action_servers"),
)


def _both_ends(nodes: Sequence[Mapping[str, Any]]) -> bool:
    def named(by: str, which: str) -> set[str]:
        return {end[by] for node in nodes for end in node.get(which) or ()}

    return any(named(by, one) & named(by, other) for by, one, other in _PAIRS)


def _part(action: str, part: str) -> str:
    """The ROS 2 name of a service or topic of an action."""
    return f"{action}/_action/{part}"


@dataclass(frozen=True)
class Pins:
    """What a workload fixes of its variant and its trials, because it would be another workload otherwise; `why` tells
    the user."""

    executor: str | None = None
    middleware: str | None = None
    duration_ns: int | None = None
    """How long a trial measures."""
    measure: tuple[str, ...] = ()
    """Figures that are measured in addition to those that were asked for."""
    why: str = ""


@dataclass(frozen=True)
class Ended:
    """A trial that ran to its end, or in which the workload failed, for its kind to judge."""

    parameters: Any  # of the kind, at the levels of the trial
    trial: Trial  # its measurements and outcome
    directory: Path  # of the trial; `processes` has the records and log of each process
    loops: tuple[Loops, ...] = ()  # of each timer whose loops were measured
    lives: tuple[Life, ...] = ()  # of each process that wrote records
    starvation: Starvation | None = None  # from the trial's trace; None without one
    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # reported by programs: all values of each
    several: Mapping[str, str] = field(
        default_factory=dict
    )  # by figure, how a trial's value is formed from these; default the median
    times: Mapping[str, Histogram] = field(default_factory=dict)  # reported by programs, merged over processes
    said: tuple[SaidOutcome, ...] = ()  # outcomes that programs reported, at most one each, the first one first
    broken_off: BrokenOff | None = None  # what ended the trial early, if anything

    @property
    def outcome(self) -> str | None:
        """The first one that a program reported."""
        return self.said[0].name if self.said else None

    @property
    def reason(self) -> str | None:
        """With this outcome."""
        return self.said[0].reason if self.said else None

    def passed_on(self) -> Judgement:
        """The programs' reports, with figures combined as the graph declares."""
        figures = {
            name: _combined(values, self.several.get(name, "median")) for name, values in self.figures.items() if values
        }
        return Judgement(figures=figures, times=self.times, outcome=self.outcome, reason=self.reason)


def _combined(values: Sequence[float], by: str) -> float:
    import statistics

    ways: Mapping[str, Callable[[Sequence[float]], float]]
    ways = {"median": statistics.median, "sum": sum, "mean": statistics.fmean}
    return float(ways[by](values))


@dataclass(frozen=True)
class Judgement:
    """`figures` and `times` by name; None means not measured. `outcome` is the name of a declared outcome, for
    `reason`."""

    figures: Mapping[str, float | None] = field(default_factory=dict)
    outcome: str | None = None
    reason: str | None = None
    times: Mapping[str, Histogram] = field(default_factory=dict)
    starved: tuple[StarvedThread, ...] = ()
    """The threads that starved while the trial made no progress, if its trace shows them."""
    stretch: tuple[int, int] | None = None
    """The time without progress (CLOCK_MONOTONIC), which is drawn from its trace."""


def _nothing(_: Ended) -> Judgement:
    return Judgement()


@dataclass(frozen=True)
class Need:
    """What a part of a workload needs beside perflab."""

    name: str  # the part as the user writes it: stack=ros2
    summary: str  # its description
    available: bool
    install: str  # how to get it


def _needs_nothing() -> Sequence[Need]:
    return ()


@dataclass(frozen=True)
class WorkloadKind(Kind["Workload"]):
    """Makes a workload from its parameters. `judge` gives a trial's outcome, and its values of the figures declared by
    the kind and, for programs, by its graph."""

    figures: Mapping[str, OwnFigure | OwnTimes] = field(default_factory=dict)
    outcomes: tuple[OwnOutcome, ...] = ()
    judge: Callable[[Ended], Judgement] = _nothing
    by_second: bool = False
    """Reports show each second of each trial."""
    create_with: Callable[[Any, Sequence[str]], Workload] | None = None
    """Replaces `create` if parameters name message types; it also receives the folders of the user's own types."""
    tried: bool = False
    """Whether the smoke test runs it, because it needs parts that others do not."""
    needs: Callable[[], Sequence[Need]] = _needs_nothing
    """For `perflab doctor`."""

    def workload(self, given: Mapping[str, Any], message_path: Sequence[str] = ()) -> Workload:
        """The workload with these parameters. Raises BadInput for an unknown or wrong one."""
        folders = tuple(message_path)
        with_them = self.create_with
        kind = self if with_them is None else replace(self, create=lambda parameters: with_them(parameters, folders))
        return replace(kind.make(given, f"workload {self.name}"), origin=Origin(self, dict(given), folders))


@dataclass(frozen=True)
class Origin:
    """The kind that made a workload, its parameters as the user wrote them, and the folders of the user's messages."""

    kind: WorkloadKind
    given: Mapping[str, Any]
    message_path: tuple[str, ...] = ()

    @property
    def parameters(self) -> Any:
        return self.kind.model.model_validate(dict(self.given))


@dataclass(frozen=True)
class Workload:
    """What runs in every trial of an experiment: a graph, or a command (see `command`)."""

    _: KW_ONLY
    origin: Origin | None = None
    sources: tuple[Source, ...] = ()

    if TYPE_CHECKING:  # fields of some subclasses, and computed by others

        @property
        def name(self) -> str: ...

        @property
        def drawn(self) -> Graph: ...

        @property
        def plain_kind(self) -> str: ...

    @property
    def shown_by_second(self) -> bool:
        return self.origin is not None and self.origin.kind.by_second

    @property
    def kind(self) -> str:
        return self.plain_kind if self.origin is None else self.origin.kind.name

    @property
    def graph(self) -> Graph:
        """With the figures of its kind in addition to those that it declares."""
        if self.origin is None or not self.origin.kind.figures:
            return self.drawn
        of_kind = models.as_json(dict(self.origin.kind.figures))
        return Graph({**self.drawn.document, "own_figures": self._declared("own_figures") | of_kind})

    def _declared(self, what: str) -> dict[str, Any]:
        return self.drawn.document.get(what) or {}

    @property
    def own_figures(self) -> Collection[str]:
        """The names of the figures that its graph or its kind declares."""
        of_kind: Mapping[str, object] = {} if self.origin is None else self.origin.kind.figures
        return {*self._declared("own_figures"), *of_kind}

    @property
    def own_outcomes(self) -> tuple[OwnOutcome, ...]:
        """The outcomes that its graph or its kind declares."""
        declared = self._declared("own_outcomes").items()
        of_graph = tuple(OwnOutcome(name=name, words=o["words"], of=Outcome(o["of"])) for name, o in declared)
        return of_graph if self.origin is None else (*of_graph, *self.origin.kind.outcomes)

    @property
    def command(self) -> Command | None:
        """The program that is started instead of perflab's own nodes."""
        return None

    @property
    def pins(self) -> Pins:
        return Pins()

    @property
    def own_factors(self) -> Collection[str]:
        """The keys of `workload.KEY` that are parameters of its kind; others are set in its graph or its command."""
        return () if self.origin is None else self.origin.kind.model.model_fields

    def at(self, factors: Mapping[str, Any]) -> Workload:
        """The workload at these levels of factors; those that are not its own are ignored. Raises BadInput."""
        keys = {path.removeprefix(FACTOR): level for path, level in factors.items() if path.startswith(FACTOR)}
        mine = {key: level for key, level in keys.items() if key in self.own_factors}
        if self.origin is None or not mine:
            return self.set_to(factors)
        again = self.origin.kind.workload({**self.origin.given, **mine}, self.origin.message_path)
        return again.set_to(factors)

    def set_to(self, factors: Mapping[str, Any]) -> Workload:
        """The same for factors that are no parameters of its kind."""
        del factors
        return self

    def document(self) -> dict[str, Any]:
        """What the manifest records of it in addition to its graph; times in nanoseconds."""
        return {} if self.origin is None else {"parameters": self.origin.parameters.model_dump(mode="json")}

    def judged(
        self,
        trial: Trial,
        directory: Path,
        loops: Sequence[Loops] = (),
        lives: Sequence[Life] = (),
        starvation: Starvation | None = None,
        said: Said | None = None,
        broken_off: BrokenOff | None = None,
    ) -> tuple[Judgement, OwnOutcome | None]:
        """The judgement of its kind on a trial, and the declared outcome that it names. Raises the kind's errors, and
        ValueError if the kind or a program (`said`) names a figure or outcome that is not declared."""
        figures, outcomes = self.own_figures, self.own_outcomes
        parameters = None if self.origin is None else self.origin.parameters
        ended = Ended(parameters, trial, directory, tuple(loops), tuple(lives), starvation, broken_off=broken_off)
        if said is not None:
            if strange := [name for name in said.names if name not in figures]:
                raise ValueError(f"a program reports the figure {strange[0]!r}, which is not declared")
            if strange := [one.name for one in said.outcomes if one.name not in {own.name for own in outcomes}]:
                raise ValueError(f"a program reports the outcome {strange[0]!r}, which is not declared")
            declared = {name: figure for name, figure in self._declared("own_figures").items() if name in said.figures}
            factors = {name: figure.get("factor", 1.0) for name, figure in declared.items()}
            ended = replace(
                ended,
                figures={n: tuple(factors.get(n, 1.0) * v for v in values) for n, values in said.figures.items()},
                several={name: figure["several"] for name, figure in declared.items() if "several" in figure},
                times=said.times,
                said=said.outcomes,
            )
        found = ended.passed_on() if self.origin is None else self.origin.kind.judge(ended)
        if strange := [name for name in (*found.figures, *found.times) if name not in figures]:
            raise ValueError(f"it has no figure {strange[0]!r}")
        outcome = next((own for own in outcomes if own.name == found.outcome), None)
        if found.outcome is not None and outcome is None:
            raise ValueError(f"it has no outcome {found.outcome!r}")
        return found, outcome


@dataclass(frozen=True)
class Made(Workload):
    """A graph that perflab's own nodes run."""

    drawn: Graph
    demands: Pins = Pins()
    called: str | None = None  # other than the graph
    plain_kind: ClassVar[str] = "topology"

    @property
    def pins(self) -> Pins:
        """A graph one of whose processes ends the measured part has its limit as duration."""
        limit_ns = self.drawn.limit_ns
        if limit_ns is None:
            return self.demands
        why = f"{self.drawn.enders[0]} of {self.name} ends the measured part, within {format_duration(limit_ns / 1e9)}"
        return replace(self.demands, duration_ns=limit_ns, why=why)

    @property
    def name(self) -> str:
        """With the case, if one was named, since other cases are other workloads."""
        case = None if self.origin is None else self.origin.given.get("case")
        return self.called or (self.drawn.name if case is None else f"{self.drawn.name}_{case}")


# Those without a kind of their own, for `perflab list workloads`.
PLAIN_KINDS = {
    "topology": "a graph of nodes, from the catalog or from files (perflab YAML/JSON, irobot_benchmark JSON)",
    "command": "any command line or launch file, unchanged: `perflab run -- ros2 launch my_robot up.launch.py`",
}


def file_name(name: str) -> str:
    """`name` with every character that is invalid in a file name replaced by `_`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".") or "unnamed"


def _condition_of(process: dict[str, Any]) -> str | None:
    """The label of the first node's condition if all nodes of the process belong to conditions; else None."""
    labels = [node.get("condition") for node in process["nodes"]]
    return str(labels[0]) if labels and all(labels) else None


def _reader(node: str, subscription: dict[str, Any]) -> str:
    """Its name in records (native/graph/model.h, name_of)."""
    number = subscription.get("number", 1)
    return node if number == 1 else f"{node}#{number}"


def qualified_name(node: Mapping[str, Any]) -> str:
    """For a node of a graph: "/robot/camera"."""
    return f"{node['namespace'].rstrip('/')}/{node['name']}"
