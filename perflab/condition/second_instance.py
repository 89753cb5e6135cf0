"""`second_instance`: a process of the workload runs twice, under the same names.

This happens if the last run of a stack did not end, or if it was started twice: two writers of each topic, two servers
of each service and action. The second instance does everything that the first one does, or it hangs, like a process
that was never activated: its endpoints exist, but it publishes nothing, sends no replies except to reject each goal,
and knows no goal that the first one has accepted.

Example:
    --condition second_instance:process=simulator,does=hang
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from perflab.condition import Applied, Condition, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition.evidence import require_processes_of_a_graph
from perflab.condition.flood_graph import OVERRUN
from perflab.errors import BadInput
from perflab.formats import records
from perflab.host import Host
from perflab.registry import Kind
from perflab.workload import THREAD_ROLES, Graph, extend, qualified_name

NAME = "second_instance"
_EVERY_GOAL = 1
_WRITERS = ("publishers", "servers", "action_servers")
_ENDPOINTS = (*_WRITERS, "subscriptions", "clients", "action_clients")

Endpoints = Annotated[int | None, Shown("endpoints of the second instance")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    process: str
    """The process that runs twice."""
    endpoints: Endpoints
    """Publishers, subscriptions, clients and servers that exist twice."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    endpoints: Endpoints
    """Endpoints found by it and all processes of the workload when the measured part began; null: one had not
    found all."""


@dataclass(frozen=True, kw_only=True)
class SecondInstanceEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class SecondInstance(Condition):
    """A process of the workload runs twice, under the same names."""

    name: ClassVar[str] = NAME
    from_beside: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = SecondInstanceEvidence
    ends_by_schedule: ClassVar[bool] = True

    process: str | None = Field(
        default=None, description="the graph's process that runs twice; default: the first that publishes or serves"
    )
    does: Literal["run", "hang"] = Field(
        default="run",
        description="run: it does everything that the first one does; hang: its endpoints exist, and it rejects "
        "each goal",
    )

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        del host
        require_processes_of_a_graph(self.label, runtime)
        self.chosen(graph)

    def chosen(self, graph: Graph) -> str:
        """The process that runs twice. Raises BadInput if there is none, or the named one does not exist."""
        able = [
            p["name"]
            for p in graph.document["processes"]
            if p["name"] in graph.own_processes
            and p["name"] not in graph.enders
            and any(node.get(which) for node in p["nodes"] for which in _WRITERS)
        ]
        if self.process is None and able:
            return str(able[0])
        if self.process in able:
            return str(self.process)
        known = ", ".join(able) or "there is none"
        which = "no process" if self.process is None else f"no process {self.process!r}"
        raise BadInput(f"{self.label}: the workload has {which} that publishes or serves; choose from {known}")

    def extend(self, graph: Graph) -> Graph:
        return extend.with_processes(graph, second(graph, self.chosen(graph), self.label, hangs=self.does == "hang"))

    def begin(self, trial: Trial) -> Doubled:
        return Doubled(self, trial)


def second(graph: Graph, name: str, label: str, *, hangs: bool) -> dict[str, Any]:
    """The second instance of a process, as a process of the graph whose nodes belong to the condition `label`.

    Topics, services and actions keep their names; the names of nodes change, to distinguish their records.
    """
    first = extend.process_of(graph, name)
    taken = extend.names_in(graph)
    without = {"program", "options"} if hangs else ()
    process = {key: value for key, value in first.items() if key not in without}
    process["name"] = extend.free_name(f"{label}_{name}", taken)
    if hangs:
        process["threads"] = {role: process["threads"].get(role) for role in THREAD_ROLES}
    process["nodes"] = [
        {
            **(_silent(node) if hangs else _running(node)),
            **({} if hangs or not first.get("program") else {"stands_for": qualified_name(node)}),
            "name": extend.free_name(f"{node['name']}_{label}", taken),
            "condition": label,
        }
        for node in first["nodes"]
    ]
    return process


def _running(node: Mapping[str, Any]) -> dict[str, Any]:
    return {**node, "timers": [{**timer, "overrun": OVERRUN} for timer in node["timers"]]}


def _silent(node: Mapping[str, Any]) -> dict[str, Any]:
    """Without clients, since one that never calls disturbs nothing, and without servers of services, which would
    reply."""
    publishers = [{**publisher, "frequency_hz": 0.0} for publisher in node["publishers"]]
    actions = [{**server, "reject_every": _EVERY_GOAL} for server in node.get("action_servers") or ()]
    silent = {"publishers": publishers, "timers": [], "reactions": [], "clients": [], "servers": []}
    kept = {key: value for key, value in node.items() if key not in ("action_clients", "action_servers", "waitables")}
    return {**kept, **silent, **({"action_servers": actions} if actions else {})}


class Doubled(Applied):
    def __init__(self, asked: SecondInstance, trial: Trial) -> None:
        self._asked = asked
        self._trial = trial

    def verify(self, window: Window) -> Evidence:
        trial, label = self._trial, self._asked.label
        (process,) = (name for name, of in trial.graph.condition_processes.items() if of == label)
        nodes = [node for _, node in trial.graph.nodes_of(label)]
        endpoints = sum(len(node.get(which) or ()) for node in nodes for which in _ENDPOINTS)
        try:
            unmatched = _unmatched(trial, [*trial.graph.own_processes, process], window)
        except (records.RecordError, OSError) as error:
            raise NotInEffect(f"records cannot be read: {error}") from error
        return SecondInstanceEvidence(
            promised=Promised(process=self._asked.chosen(trial.graph), endpoints=endpoints),
            achieved=Achieved(endpoints=None if unmatched else endpoints),
            reason=f"{unmatched[0]} had not found all endpoints when the measured part began" if unmatched else None,
        )


def _unmatched(trial: Trial, processes: Iterable[str], window: Window) -> list[str]:
    """The processes that had not found all their peers when the window began."""
    return [name for name in processes if not _matched(trial, name, window.begin_ns)]


def _matched(trial: Trial, process: str, before_ns: int) -> bool:
    path = trial.directory / "processes" / f"{process}.jsonl"
    return any(
        record is not None and record.get("code") == "all_endpoints_matched" and record["at_ns"] <= before_ns
        for record in records.lines(path, "event")
    )


def words(given: Mapping[str, Any]) -> str:
    process = given.get("process") or "a process"
    return f"{process} running twice" if given["does"] == "run" else f"a second {process} that hangs"


KIND: Kind[Condition] = Kind(
    NAME, "a process of the workload runs twice, under the same names", SecondInstance, words=words
)
