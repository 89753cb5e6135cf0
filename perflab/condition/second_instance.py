"""`second_instance`: a process of the workload runs twice, under the same names.

It is what a stack becomes whose last run was not ended, or that was started twice: two writers of each topic, two
servers of each service and action. A process of plain nodes does all that the first one does. Of a program only the
endpoints are known, so its second instance is one that hangs or was never activated: it subscribes to all that the
program does, rejects every goal as an inactive controller does, knows no goal that others have accepted, and is silent,
or publishes at `rate`.

Example:
    --condition second_instance:process=simulator
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from perflab.condition import Applied, Condition, Counts, Evidence, Shown, Trial, Window
from perflab.condition.evidence import require_processes
from perflab.condition.flood_graph import OFFERED_AT_LEAST_PERCENT, OVERRUN, Hertz
from perflab.errors import BadInput
from perflab.formats import records
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import NS_PER_S
from perflab.workload import Graph, extend

NAME = "second_instance"
_EVERY_GOAL = 1
_WRITERS = ("publishers", "servers", "action_servers")
_ENDPOINTS = (*_WRITERS, "subscriptions", "clients", "action_clients")

Endpoints = Annotated[int, Shown("endpoints of the second instance")]
Messages = Annotated[float | None, Shown("messages of the second instance", "1/s")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    process: str
    """Which process runs twice."""
    endpoints: Endpoints
    """Publishers, subscriptions, clients and servers that are there a second time."""
    messages_per_s: Messages = None
    """That it publishes; null where it does what the first one does."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    endpoints: Endpoints
    """That were there when the measured part began, as it and all processes of the workload saw them."""
    messages_per_s: Messages = None
    """As it counted them; null likewise."""


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
        default=None, description="process of the graph that runs twice; default: the first that publishes or serves"
    )
    rate: Hertz = Field(
        default=0.0,
        ge=0,
        le=10_000,
        description="of a program's second instance: messages per second of each publisher; 0: it is silent",
    )

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        del host
        require_processes(self.label, runtime)
        if runtime == "command":
            raise BadInput(f"{self.label}: the processes of a command are not started by perflab; name a graph")
        chosen = self.chosen(graph)
        if self.rate and chosen not in graph.programs:
            raise BadInput(
                f"{self.label}: {chosen!r} is no program, and its second instance publishes as it does; leave out rate"
            )

    def chosen(self, graph: Graph) -> str:
        """The process that runs twice. Raises BadInput where there is none, or not the one that was named."""
        able = [
            p["name"]
            for p in graph.document["processes"]
            if p["name"] in graph.own_processes and any(node.get(which) for node in p["nodes"] for which in _WRITERS)
        ]
        if self.process is None and able:
            return str(able[0])
        if self.process in able:
            return str(self.process)
        known = ", ".join(able) or "there is none"
        which = "no process" if self.process is None else f"no process {self.process!r}"
        raise BadInput(
            f"{self.label}: the workload has {which} that publishes or serves; those that could run twice: {known}"
        )

    def extend(self, graph: Graph) -> Graph:
        chosen = self.chosen(graph)
        return extend.with_processes(graph, second(graph, chosen, self.label, self.rate))

    def begin(self, trial: Trial) -> Doubled:
        return Doubled(self, trial)


def second(graph: Graph, name: str, label: str, rate: float) -> dict[str, Any]:
    """The second instance of a process, as a process of the graph whose nodes belong to the condition `label`."""
    of = extend.process_of(graph, name)
    program = bool(of.get("program"))
    taken = extend.names_in(graph)
    process = extend.process(extend.free_name(f"{label}_{name}", taken), of["executors"], [])
    for node in of["nodes"]:
        copied = _passive(node, rate) if program else _active(node)
        # Topics, services and actions keep their names; that of a node tells records apart.
        own = extend.free_name(extend.free_name(f"{node['name']}_{label}", taken), taken)
        process["nodes"].append({**copied, "name": own, "condition": label})
    return process


def _active(node: Mapping[str, Any]) -> dict[str, Any]:
    return {**node, "timers": [{**timer, "overrun": OVERRUN} for timer in node["timers"]]}


def _passive(node: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """Without what asks: a client that never asks is nobody's disturbance."""
    publishers = [{**publisher, "frequency_hz": rate} for publisher in node["publishers"]]
    timers = (
        [extend.timer("talk", round(NS_PER_S / rate), range(len(publishers)), OVERRUN)] if rate and publishers else []
    )
    servers = [{**server, "reject_every": _EVERY_GOAL} for server in node.get("action_servers") or ()]
    return {
        **{key: value for key, value in node.items() if key not in ("action_clients", "action_servers")},
        "publishers": publishers,
        "timers": timers,
        "reactions": [],
        "clients": [],
        **({"action_servers": servers} if servers else {}),
    }


class Doubled(Applied):
    def __init__(self, asked: SecondInstance, trial: Trial) -> None:
        self._asked = asked
        self._trial = trial

    def verify(self, window: Window) -> Evidence:
        trial, label = self._trial, self._asked.label
        (process,) = (name for name, of in trial.graph.condition_processes.items() if of == label)
        nodes = [node for _, node in trial.graph.nodes_of(label)]
        endpoints = sum(len(node.get(which) or ()) for node in nodes for which in _ENDPOINTS)
        publishers = sum(len(node["publishers"]) for node in nodes)
        rate = self._asked.rate * publishers if self._asked.chosen(trial.graph) in trial.graph.programs else None
        unmatched = _unmatched(trial, [*trial.graph.own_processes, process], window)
        sent = None if rate is None else _sent_per_s(trial.counts(label), window)
        reason = None
        if unmatched:
            reason = f"{unmatched[0]} had not found all endpoints when the measured part began"
        elif rate and (sent is None or sent < OFFERED_AT_LEAST_PERCENT / 100 * rate - publishers / window.seconds):
            said = "no messages" if sent is None else f"{sent:.0f} messages/s"
            reason = f"its second instance published {said} of {rate:.0f} promised"
        return SecondInstanceEvidence(
            promised=Promised(process=self._asked.chosen(trial.graph), endpoints=endpoints, messages_per_s=rate),
            achieved=Achieved(endpoints=0 if unmatched else endpoints, messages_per_s=sent),
            reason=reason,
        )


def _sent_per_s(counts: Counts | None, window: Window) -> float | None:
    return None if counts is None or window.seconds <= 0 else counts.sent / window.seconds


def _unmatched(trial: Trial, processes: Iterable[str], window: Window) -> list[str]:
    """Those of the processes that had not found all their peers when the window began."""
    return [name for name in processes if not _matched(trial, name, window.begin_ns)]


def _matched(trial: Trial, process: str, before_ns: int) -> bool:
    path = trial.directory / "processes" / f"{process}.jsonl"
    return any(
        record is not None and record.get("code") == "all_endpoints_matched" and record["at_ns"] <= before_ns
        for record in records.lines(path, "event")
    )


def words(given: Mapping[str, Any]) -> str:
    process = given.get("process") or "a process"
    return f"{process} running twice"


KIND: Kind[Condition] = Kind(
    NAME, "a process of the workload runs twice, under the same names", SecondInstance, words=words
)
