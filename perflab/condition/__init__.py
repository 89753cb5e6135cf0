"""Conditions, which disturb a workload. Each is one module with a KIND (perflab/plugins.py).

A condition is a specification: what to disturb, and how much. In a trial it begins, takes effect, is verified from the
kernel or the receiver, and is removed; the verification is its evidence. An `Applied`, made for one trial, holds the
state for that. A trial whose condition was not in effect all the time is invalid, neither success nor failure.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import PrivateAttr

from perflab.host import Host
from perflab.native import Native
from perflab.real_time import RealTimeUse
from perflab.specification import Specification
from perflab.workload import Graph

if TYPE_CHECKING:
    from perflab.formats.monitor import MonitorReader

BEFORE, AFTER = "before", "after"


class NotInEffect(Exception):
    """A condition did not take effect, or not as promised: the trial is invalid. One line.

    `condition` is the label of the condition at fault, if it is not the one that raises this.
    """

    def __init__(self, reason: str, condition: str | None = None) -> None:
        super().__init__(reason)
        self.condition = condition


@dataclass(frozen=True)
class Shown:
    """Marks a field of evidence that tables show: its name, in `promised` as in `achieved`, and its unit.

    `per` plain numbers make one of `unit`. Without `zero`, a promise of 0 counts as no promise.
    """

    words: str
    unit: str = ""
    per: float = 1.0
    zero: bool = True


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was promised for a window and what was achieved in it, as measured by the kernel or the receiver, never an
    echo of the request.

    Each condition has its own records for both. A field's docstring says what it is and what measured it.
    """

    promised: Any
    achieved: Any
    """None if nothing is known."""
    in_effect: bool = field(init=False)
    reason: str | None = None
    """One line, if it was not in effect."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_effect", self.reason is None)


@dataclass(frozen=True)
class Window:
    """The part of a trial during which a condition must hold; CLOCK_MONOTONIC."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass
class Interruption:
    """A process of the workload is killed in the measured part, and started again; instants are CLOCK_MONOTONIC.

    A condition requests it; the system that runs the processes records the instants.
    """

    process: str  # added to the graph
    at_share: float  # from the start of the measured part
    back_after_ns: int  # from the end of the process
    killed_ns: int | None = None  # when its end was seen
    started_ns: int | None = None  # again
    ready_ns: int | None = None  # when all its endpoints were matched

    def due_ns(self, begin_ns: int, end_ns: int) -> int:
        """The instant of the kill, for a measured part."""
        return begin_ns + round(self.at_share * (end_ns - begin_ns))


@dataclass
class Launch:
    """How the workload's processes are started; conditions applied "before", and observers, may change it."""

    cpus: frozenset[int] | None = None  # for every process; None: the same as perflab
    cpus_of: dict[str, frozenset[int]] = field(default_factory=dict)  # by process of the graph, replaces `cpus`
    prefix: tuple[str, ...] = ()  # a command that executes the command after it, e.g. nsenter
    environment: dict[str, str] = field(default_factory=dict)  # added to perflab's own
    interruptions: list[Interruption] = field(default_factory=list)


@dataclass(frozen=True)
class Counts:
    """Messages that a condition's own publishers sent so far, in the whole trial without warm-up, as counted by its
    processes."""

    at_ns: int
    sent: float
    not_sent: float
    deliveries_expected: float
    received: float


class Companion(Protocol):
    """A program that runs beside the workload, under perflab-guard: it and all its descendants end with perflab."""

    @property
    def name(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """Process id of the program itself; None before its start."""
        ...

    @property
    def status(self) -> int | None:
        """Exit status, or minus the signal that killed it; None while it runs."""
        ...

    @property
    def log(self) -> Path: ...

    def send(self, body: Mapping[str, Any]) -> None:
        """Sends a line on the program's control channel; only with `control`."""
        ...

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next line from the program; None if none comes in this time."""
        ...

    def stop(self, grace_s: float = 2.0) -> int | None:
        """Ends it and its descendants with SIGTERM, then SIGKILL; waits until they are gone. Idempotent."""
        ...


class Start(Protocol):
    """Starts a program that ends with perflab, even if perflab is killed (`Trial.start`)."""

    def __call__(self, name: str, command: Sequence[str | Path], *, control: bool = False) -> Companion: ...


class Trial(Protocol):
    """The parts of a trial that a condition or an observer may read and use."""

    @property
    def directory(self) -> Path:
        """The trial's folder; a condition or an observer keeps its files in a subfolder with its name."""
        ...

    @property
    def runtime(self) -> str:
        """The runtime of the graph: "dds", "virtual", or another one of perflab-node's."""
        ...

    @property
    def native(self) -> Native:
        """The native programs of the trial."""
        ...

    @property
    def middleware_configuration(self) -> Mapping[str, Any]:
        """The `middleware` member of the first node's configuration (docs/formats.md, section 2)."""
        ...

    @property
    def middleware_environment(self) -> Mapping[str, str]:
        """Environment variables for a program that uses the same middleware."""
        ...

    @property
    def graph(self) -> Graph:
        """The graph with all additions of the trial's conditions."""
        ...

    @property
    def processes(self) -> Mapping[str, int]:
        """The pids of the workload's processes, by name in the graph; filled as they start."""
        ...

    @property
    def condition_processes(self) -> Mapping[str, int]:
        """Likewise for the processes that conditions added to the graph."""
        ...

    @property
    def launch(self) -> Launch: ...

    @property
    def monitor(self) -> MonitorReader:
        """perflab-monitor's samples so far: threads of all processes of the trial, and CPUs."""
        ...

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, condition: str | None = None
    ) -> Companion:
        """Starts a program under perflab-guard, whose process tree the monitor samples as group `name`.

        With `control`, the program receives `--control-fd N`. A companion that ends by itself makes the trial invalid;
        the fault is that of `condition`, or of the condition called `name`. Raises Unavailable if it cannot be started.
        """
        ...

    def counts(self, condition: str) -> Counts | None:
        """The latest counts of the nodes that this condition added, from all processes that run some."""
        ...

    def wait(self, seconds: float) -> None:
        """Waits while watching the trial's processes. Raises Interrupted, or the error that ends the trial."""
        ...


class Applied(ABC):
    """A condition in one trial, from its start until it is removed."""

    def settle(self) -> None:
        """Waits, for a bounded time, until the disturbance is in effect. Raises NotInEffect if it is not."""

    @abstractmethod
    def verify(self, window: Window) -> Evidence:
        """Whether it was in effect all the time of `window`."""

    def remove(self) -> None:
        """Ends the disturbance and removes what it left behind. Always called, idempotent."""


class Condition(Specification, ABC):
    """A controlled disturbance, as a value: any number of trials may have it, even at the same time.

    The order within a trial: begin ("before") - the workload starts and is matched - begin ("after") - settle - the
    measured part - verify - remove.
    """

    from_beside: ClassVar[bool] = False  # its effect reaches the workload from processes beside it
    over_network: ClassVar[bool] = False  # its effect is on network traffic
    evidence: ClassVar[type[Evidence]] = Evidence  # the types of its evidence, promised and achieved
    changes_peers: ClassVar[bool] = False  # processes of the workload end and come back
    mitigates: ClassVar[bool] = False  # it helps instead of disturbing (perflab/mitigation)
    ends_by_schedule: ClassVar[bool] = False  # ends as planned, even if the workload is behind and continues

    _number: int = PrivateAttr(default=1)

    @property
    def label(self) -> str:
        """In evidence and file names: the name, and a number if a trial has several with that name."""
        return self.name if self._number == 1 else f"{self.name}_{self._number}"

    @property
    def number(self) -> int:
        """Number among those with its name in a trial, from 1."""
        return self._number

    def numbered(self, number: int) -> Self:
        """The same condition with this number in a trial."""
        if number == self._number:
            return self
        other = self.model_copy()
        other._number = number
        return other

    @property
    def begins(self) -> str:
        """Before or after the workload's processes are started."""
        return BEFORE

    @property
    def real_time(self) -> RealTimeUse | None:
        """Its threads that may keep others from running; None if it has none."""
        return None

    @abstractmethod
    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        """Checks, before anything starts, whether it can run here, on this graph and runtime ("dds", "virtual",
        "command").

        Raises Unavailable or BadInput.
        """

    def check_network(self, network: str) -> None:
        """Checks the network interface that the middlewares will use. Raises BadInput."""

    def resolved(self, host: Host) -> Self:
        """Reads values from this machine once, so that they are the same in all trials; called after `check`."""
        del host
        return self

    def extend(self, graph: Graph) -> Graph:
        """The graph with the condition's nodes and processes, each marked with its label."""
        return graph

    @abstractmethod
    def begin(self, trial: Trial) -> Applied:
        """Starts the disturbance. Raises NotInEffect, Unavailable; the trial then ends the started programs."""


def extended(graph: Graph, conditions: Iterable[Condition]) -> Graph:
    """The graph with the additions of each condition."""
    return functools.reduce(lambda graph, condition: condition.extend(graph), conditions, graph)
