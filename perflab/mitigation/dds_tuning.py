"""dds_tuning: deeper queues, larger buffers, shared memory, as far as the middleware has them.

Each middleware's module lists what it supports, as `tuning`; a setting that it lacks is rejected in one line.

Example:
    --mitigation dds_tuning:depth=1,receive_buffer=1MiB,shared_memory=on
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from perflab import qos
from perflab.condition import Applied, Evidence, Shown, Trial, Window
from perflab.condition.evidence import require_processes
from perflab.errors import BadInput
from perflab.host import Host
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.middleware import Middleware
from perflab.mitigation import Mitigation
from perflab.mitigation.sockets import buffers_of, shared_files_of
from perflab.parameters import Bytes, Switch
from perflab.registry import Kind
from perflab.units import format_bytes
from perflab.workload import Graph, extend

NAME = "dds_tuning"
DEPTH = "depth"  # which is QoS of the graph; the others are middleware options
KEEP_ALL = "keep_all"

Buffer = Annotated[int | None, Shown("receive buffer of a socket", "KiB", per=1024)]
Processes = Annotated[int | None, Shown("processes with shared memory")]
Queue = Annotated[int | None, Shown("depth of queues")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    depth: Queue = None
    """History of every publisher and subscription of the workload that keeps the last messages; null: as in the
    graph."""
    endpoints: int | None = None
    """Number of these publishers and subscriptions."""
    receive_buffer_bytes: Buffer = None
    """Receive buffer of a socket, as setsockopt(2) takes it; null: the middleware's default."""
    send_buffer_bytes: int | None = None
    """Send buffer of a socket; null: the middleware's default."""
    shared_memory_processes: Processes = None
    """Processes of the workload that map shared memory; null: not asked for."""
    options: Mapping[str, Mapping[str, str]]
    """Options that each middleware got in addition to its own."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    depth: Queue = None
    """Depth in the graph that the trial's processes received; null: not requested."""
    endpoints: int | None = None
    """Number of endpoints with that depth."""
    receive_buffer_bytes: Buffer = None
    """The process with the smallest buffers: the largest of its UDP sockets, from the kernel (sock_diag); null:
    not requested."""
    send_buffer_bytes: int | None = None
    """Likewise for send buffers."""
    shared_memory_processes: Processes = None
    """From /proc/PID/maps; null: not requested."""
    shared_memory_files: tuple[str, ...] = ()
    """Shared memory that the processes mapped."""


@dataclass(frozen=True, kw_only=True)
class TuningEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class DdsTuning(Mitigation):
    """Sets queues, buffers and transports before the processes start."""

    name: ClassVar[str] = NAME
    evidence: ClassVar[type[Evidence]] = TuningEvidence

    depth: int | None = Field(
        None, ge=1, le=1_000_000, description="history of every publisher and subscription that keeps the last messages"
    )
    receive_buffer: Bytes | None = Field(None, gt=0, description="receive buffer of sockets, requested from the kernel")
    send_buffer: Bytes | None = Field(None, gt=0, description="send buffer of sockets, requested from the kernel")
    high_water: Bytes | None = Field(
        None, gt=0, description="unacknowledged bytes that a reliable writer keeps before it waits"
    )
    shared_memory: Switch | None = Field(None, description="on or off: messages through memory that processes share")

    @model_validator(mode="after")
    def _something(self) -> DdsTuning:
        if not self.asked:
            raise ValueError(f"nothing is set; name {', '.join(type(self).model_fields)}")
        return self

    @property
    def asked(self) -> dict[str, Any]:
        return {key: value for key in type(self).model_fields if (value := getattr(self, key)) is not None}

    @property
    def of_middlewares(self) -> dict[str, Any]:
        return {key: value for key, value in self.asked.items() if key != DEPTH}

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        if runtime == "command":
            raise BadInput(f"{self.label}: a command sets its own middleware; use a graph")
        if self.of_middlewares:
            require_processes(self.label, runtime)
        if self.receive_buffer or self.send_buffer:
            buffers_of(())  # whether the kernel can report what it granted
        if self.depth is not None and not self.changed(graph):
            raise BadInput(f"{self.label}: depth: every queue of the workload already has a depth of {self.depth}")

    def tuned(self, middlewares: tuple[Middleware, ...]) -> tuple[Middleware, ...]:
        return tuple(replace(m, options={**m.options, **self.options_for(m)}) for m in middlewares)

    def options_for(self, middleware: Middleware) -> dict[str, str]:
        """The middleware options that it sets. Raises BadInput for options that the middleware lacks, or already
        has."""
        known = MIDDLEWARES[middleware.kind].tuning if middleware.kind in MIDDLEWARES else {}
        options: dict[str, str] = {}
        for key, value in self.of_middlewares.items():
            if key not in known:
                has = f"it has {', '.join((DEPTH, *known))}"
                raise BadInput(f"{self.label}: {key}: middleware {middleware.name} has no such setting; {has}")
            options |= known[key](value)
        if options and all(middleware.options.get(key) == value for key, value in options.items()):
            given = ", ".join(f"{key}={value}" for key, value in options.items())
            raise BadInput(f"{self.label}: middleware {middleware.name} already has {given}; leave one of both out")
        return options

    def extend(self, graph: Graph) -> Graph:
        if self.depth is None:
            return graph
        document = copy.deepcopy(graph.document)
        for endpoint, ends in _queues(document):
            qos.with_levels(endpoint["qos"], {DEPTH: self.depth}, ends)
        return Graph(document)

    def changed(self, graph: Graph) -> int:
        """How many queues have a different depth in the graph."""
        return sum(depth_of(endpoint) != self.depth for endpoint, _ in _queues(graph.document))

    def begin(self, trial: Trial) -> Applied:
        return Tuned(self, trial)


def depth_of(endpoint: Mapping[str, Any]) -> int:
    """A graph may omit ROS 2's defaults."""
    return int(endpoint["qos"].get(DEPTH) or extend.DEFAULT_QOS[DEPTH])


def _queues(document: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The publishers and subscriptions of the workload that keep the last messages."""
    nodes = [node for process in document["processes"] for node in process["nodes"] if not node.get("condition")]
    return [
        (endpoint, ends)
        for node in nodes
        for ends in (qos.PUBLISHERS, qos.SUBSCRIPTIONS)
        for endpoint in node[ends]
        if endpoint["qos"].get("history") != KEEP_ALL
    ]


class Tuned(Applied):
    """Nothing to undo: the tuning ends with the trial's processes."""

    def __init__(self, asked: DdsTuning, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial

    def verify(self, window: Window) -> Evidence:
        promised, achieved = self._promised(), self._achieved()
        return TuningEvidence(promised=promised, achieved=achieved, reason=self._problem(promised, achieved))

    def _promised(self) -> Promised:
        asked, queues = self.asked, _queues(self.trial.graph.document)
        wanted = None if asked.shared_memory is None else len(self.trial.processes) if asked.shared_memory else 0
        configuration = self.trial.middleware_configuration
        return Promised(
            depth=asked.depth,
            endpoints=None if asked.depth is None else len(queues),
            receive_buffer_bytes=asked.receive_buffer,
            send_buffer_bytes=asked.send_buffer,
            shared_memory_processes=wanted,
            options={str(configuration["name"]): dict(configuration["options"])},
        )

    def _achieved(self) -> Achieved:
        asked, pids = self.asked, self.trial.processes
        depths = [depth_of(endpoint) for endpoint, _ in _queues(self.trial.graph.document)]
        buffers = buffers_of(pids.values()) if asked.receive_buffer or asked.send_buffer else {}
        mapped = {name: shared_files_of(pid) for name, pid in pids.items()} if asked.shared_memory is not None else {}
        return Achieved(
            depth=min(depths, default=None) if asked.depth is not None else None,
            endpoints=None if asked.depth is None else sum(depth == asked.depth for depth in depths),
            receive_buffer_bytes=_least_of_largest(buffers, 0) if asked.receive_buffer else None,
            send_buffer_bytes=_least_of_largest(buffers, 1) if asked.send_buffer else None,
            shared_memory_processes=sum(map(bool, mapped.values())) if asked.shared_memory is not None else None,
            shared_memory_files=tuple(sorted(set().union(*mapped.values()))),
        )

    def _problem(self, promised: Promised, achieved: Achieved) -> str | None:
        for what, key in (("receive", "receive_buffer_bytes"), ("send", "send_buffer_bytes")):
            wanted, got = getattr(promised, key), getattr(achieved, key)
            if wanted is not None and (got is None or got < wanted):
                if got is None:
                    return f"a process has no UDP socket that could have a {what} buffer of {format_bytes(wanted)}"
                return (
                    f"a process has {what} buffers of at most {format_bytes(got)}, but {format_bytes(wanted)} "
                    f"were promised; net.core.{what[0] if what == 'receive' else 'w'}mem_max limits them"
                )
        wanted, got = promised.shared_memory_processes, achieved.shared_memory_processes
        if wanted is not None and got != wanted:
            return f"{got} processes have mapped shared memory, but {wanted} were promised to"
        if promised.depth is not None and achieved.endpoints != promised.endpoints:
            return f"{achieved.endpoints} of {promised.endpoints} queues have a depth of {promised.depth}"
        return None


def _least_of_largest(buffers: Mapping[int, list[tuple[int, int]]], which: int) -> int | None:
    """The largest buffer, since discovery sockets may have smaller ones; None if a process has no socket."""
    largest = [max((of[which] for of in sockets), default=None) for sockets in buffers.values()]
    known = [size for size in largest if size is not None]
    return min(known) if known and len(known) == len(largest) else None


def words(given: Mapping[str, Any]) -> str:
    parts = [f"queues of {given['depth']}" if given.get("depth") else ""]
    sizes = (("receive_buffer", "receive buffers of"), ("send_buffer", "send buffers of"), ("high_water", "at most"))
    parts += [f"{what} {format_bytes(given[key])}" for key, what in sizes if given.get(key)]
    if given.get("shared_memory") is not None:
        parts.append("shared memory" if given["shared_memory"] else "no shared memory")
    return f"DDS tuned: {', '.join(filter(None, parts))}"


KIND: Kind[Any] = Kind(
    NAME,
    "queue depth, socket buffers, a writer's high-water mark, shared memory: as far as each middleware supports them",
    DdsTuning,
    words=words,
    gently=("depth=20",),
)
