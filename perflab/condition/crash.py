"""`crash`: a process of the workload is killed in the measured part, and comes back.

It ends as by SIGKILL, at an instant that nothing in it knows in advance: it closes nothing, notifies no peer, and
leaves what it shared as it was. Its last act is to write down its counts, so that messages which nobody received can be
assigned to the gap between its two lives. It comes back as a new process with the same endpoints, while the others
continue.

Only a process that does nothing but receive can come back: a restarted publisher is another writer, and its subscribers
would take its messages for a stranger's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from perflab.condition import BEFORE, Applied, Condition, Evidence, Interruption, Shown, Trial, Window
from perflab.condition.evidence import require_processes_of_a_graph, rounded
from perflab.errors import BadInput
from perflab.host import Host
from perflab.parameters import DurationNs, Percent
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_duration
from perflab.workload import Graph

DEFAULT_DOWN: Any = "500ms"  # in the form that users write
Down = Annotated[float | None, Shown("down", "s")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    process: str
    """Who crashes."""
    at_s: float | None
    """Instant of the kill, from the start of the measured part."""
    down_s: Down
    """Time from its end until it is started again."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    at_s: float | None
    """When its end was seen, by its pidfd; null: it was not killed."""
    down_s: Down
    """Time from its end until it was started again."""
    matched_s: Annotated[float | None, Shown("until matched again", "s")]
    """Time from the restart until all its endpoints were matched."""


@dataclass(frozen=True, kw_only=True)
class CrashEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class Crash(Condition):
    """Kills a process that only receives, and starts it again."""

    name: ClassVar[str] = "crash"
    evidence: ClassVar[type[Evidence]] = CrashEvidence
    changes_peers: ClassVar[bool] = True

    process: str | None = Field(
        default=None,
        description="the graph's process to kill; default: the first that only receives",
    )
    at: Percent = Field(default=30.0, gt=0, lt=100, description="when to kill it, in percent of the measured part")
    back_after: DurationNs = Field(
        default=DEFAULT_DOWN, ge=0, le=3600 * NS_PER_S, description="time from its end until it is started again"
    )

    @property
    def begins(self) -> str:
        return BEFORE

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        del host
        require_processes_of_a_graph(self.label, runtime)
        self.chosen(graph)

    def chosen(self, graph: Graph) -> str:
        """The process to kill. Raises BadInput if no process can be killed, or the named one cannot."""
        own = [p for p in graph.document["processes"] if p["name"] in graph.own_processes]
        able = [p["name"] for p in own if _only_receives(p)]
        if self.process is None and able:
            return str(able[0])
        known = ", ".join(able) or "there is none"
        if self.process is not None and self.process not in graph.own_processes:
            raise BadInput(f"{self.label}: the workload has no process {self.process!r}; choose from {known}")
        if self.process is not None and self.process in able:
            return self.process
        who = "a process that only receives" if self.process is None else f"{self.process!r}"
        raise BadInput(
            f"{self.label}: {who} is needed, because peers do not recognise a process that publishes, serves or "
            f"has timers after its return; choose from {known}"
        )

    def begin(self, trial: Trial) -> Crashing:
        process = self.chosen(trial.graph)
        crash = Interruption(process=process, at_share=self.at / 100, back_after_ns=self.back_after)
        trial.launch.interruptions.append(crash)
        return Crashing(crash)


class Crashing(Applied):
    def __init__(self, crash: Interruption) -> None:
        self._crash = crash

    def verify(self, window: Window) -> Evidence:
        crash = self._crash
        due_ns = crash.due_ns(window.begin_ns, window.end_ns)

        def since(begin_ns: int | None, end_ns: int | None) -> float | None:
            return None if begin_ns is None or end_ns is None else rounded((end_ns - begin_ns) / NS_PER_S)

        return CrashEvidence(
            promised=Promised(
                process=crash.process,
                at_s=rounded((due_ns - window.begin_ns) / NS_PER_S),
                down_s=crash.back_after_ns / NS_PER_S,
            ),
            achieved=Achieved(
                at_s=since(window.begin_ns, crash.killed_ns),
                down_s=since(crash.killed_ns, crash.started_ns),
                matched_s=since(crash.started_ns, crash.ready_ns),
            ),
            reason=_missing(crash, window),
        )


def _missing(crash: Interruption, window: Window) -> str | None:
    if crash.killed_ns is None:
        return f"process {crash.process!r} was not killed"
    if crash.ready_ns is None or crash.ready_ns > window.end_ns:
        gone = format_duration(max(0, window.end_ns - crash.killed_ns) / NS_PER_S)
        return f"process {crash.process!r} had not come back by the end of the measured part, {gone} after its crash"
    return None


def _only_receives(process: Mapping[str, Any]) -> bool:
    more = ("publishers", "timers", "clients", "servers", "action_clients", "action_servers", "waitables")
    nodes = process["nodes"]
    return any(n["subscriptions"] for n in nodes) and not any(n.get(what) for n in nodes for what in more)


def words(given: Mapping[str, Any]) -> str:
    who = f"process {given['process']}" if given.get("process") else "a process"
    return f"{who} crashes and comes back after {given.get('back_after', DEFAULT_DOWN)}"


KIND: Kind[Condition] = Kind(
    "crash",
    "a process that receives is killed in the measured part, as by SIGKILL, and comes back",
    Crash,
    words=words,
    gently=("at=10,back_after=50ms",),
)
