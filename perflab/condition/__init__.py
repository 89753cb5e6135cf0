"""Conditions: what disturbs a workload. Each is one module with a KIND (perflab/plugins.py).

A condition is a specification: what is to disturb, and how much. In a trial it begins, is waited for, verified from the
kernel or the receiver, and removed; what it proved is its evidence. What it needs for that is in an `Applied`, made for
one trial. A trial whose condition was not in effect all the time is invalid, neither success nor failure.
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

    `condition` is the label of the one that is to blame, where who raises it knows another than itself.
    """

    def __init__(self, reason: str, condition: str | None = None) -> None:
        super().__init__(reason)
        self.condition = condition


@dataclass(frozen=True)
class Shown:
    """That tables have a field of evidence: what it is called, in `promised` as in `achieved`, and in which unit.

    `per` plain numbers are one of `unit`. Without `zero` a promise of 0 is none.
    """

    words: str
    unit: str = ""
    per: float = 1.0
    zero: bool = True


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was promised for a window and what was achieved in it, from the kernel or the receiver, never an echo.

    A condition has records of its own for both. The docstring of a field says what it is and who saw it.
    """

    promised: Any
    achieved: Any
    """None where nothing is known."""
    in_effect: bool = field(init=False)
    reason: str | None = None
    """One line, where it was not in effect."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_effect", self.reason is None)


@dataclass(frozen=True)
class Window:
    """The part of a trial in which a condition must hold; CLOCK_MONOTONIC."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass
class Interruption:
    """That a process of the workload is killed in the measured part, and started again; instants are CLOCK_MONOTONIC.

    A condition asks for it, and whoever runs the processes notes what came of it.
    """

    process: str  # of the graph
    at_share: float  # of the measured part
    back_after_ns: int  # from its end on
    killed_ns: int | None = None  # when its end was seen
    started_ns: int | None = None  # again
    ready_ns: int | None = None  # all its endpoints are matched

    def due_ns(self, begin_ns: int, end_ns: int) -> int:
        """When it is killed, of a measured part."""
        return begin_ns + round(self.at_share * (end_ns - begin_ns))


@dataclass
class Launch:
    """How the workload's processes are started; conditions applied "before" and observers may change it."""

    cpus: frozenset[int] | None = None  # of every process; None: as perflab itself
    cpus_of: dict[str, frozenset[int]] = field(default_factory=dict)  # by process of the graph, instead of `cpus`
    prefix: tuple[str, ...] = ()  # a command that executes the one after it, e.g. nsenter
    environment: dict[str, str] = field(default_factory=dict)  # beside perflab's own
    interruptions: list[Interruption] = field(default_factory=list)


@dataclass(frozen=True)
class Counts:
    """Messages of a condition's own publishers so far, in the whole trial without warm-up, as its processes counted."""

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
        """Of the program itself; None before it was started."""
        ...

    @property
    def status(self) -> int | None:
        """Exit status, or minus the signal that killed it; None while it runs."""
        ...

    @property
    def log(self) -> Path: ...

    def send(self, body: Mapping[str, Any]) -> None:
        """A line on the program's control channel; only where it was started with `control`."""
        ...

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next line the program said, waiting at most that long; None where nothing came."""
        ...

    def stop(self, grace_s: float = 2.0) -> int | None:
        """Ends it and its descendants: SIGTERM, then SIGKILL; waits until they are gone. Idempotent."""
        ...


class Start(Protocol):
    """Starts a program that ends with perflab, whatever is killed (`Trial.start`)."""

    def __call__(self, name: str, command: Sequence[str | Path], *, control: bool = False) -> Companion: ...


class Trial(Protocol):
    """What a condition or an observer may know of the trial it acts on, and do in it."""

    @property
    def directory(self) -> Path:
        """Of the trial; what a condition or an observer keeps goes to a folder of its name in it."""
        ...

    @property
    def runtime(self) -> str:
        """What runs the graph: "dds", "virtual", or another one of perflab-node's."""
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
        """Variables that a program needs which uses the same middleware."""
        ...

    @property
    def graph(self) -> Graph:
        """With everything that the conditions of the trial add."""
        ...

    @property
    def processes(self) -> Mapping[str, int]:
        """The pids of the workload's processes, by their names in the graph; filled as they start."""
        ...

    @property
    def condition_processes(self) -> Mapping[str, int]:
        """Likewise of the processes that conditions added to the graph."""
        ...

    @property
    def launch(self) -> Launch: ...

    @property
    def monitor(self) -> MonitorReader:
        """What perflab-monitor has seen so far of the threads of all processes of the trial and of the CPUs."""
        ...

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, condition: str | None = None
    ) -> Companion:
        """Starts a program under perflab-guard and lets the monitor watch its tree as group `name`.

        With `control` the program gets `--control-fd N`. That a companion ends by itself makes the trial invalid, which
        `condition` is to blame for, or the one that is called `name`.
        Raises Unavailable where it cannot be started.
        """
        ...

    def counts(self, condition: str) -> Counts | None:
        """What the workload's and the condition's processes last said of the nodes that this condition added."""
        ...

    def wait(self, seconds: float) -> None:
        """Lets time pass while the trial's processes are watched. Raises Interrupted, or what the trial fails with."""
        ...


class Applied(ABC):
    """A condition in one trial, from when it begins to disturb until it is removed."""

    def settle(self) -> None:
        """Waits, for a bounded time, until the disturbance is there. Raises NotInEffect where it does not come."""

    @abstractmethod
    def verify(self, window: Window) -> Evidence:
        """Whether it was in effect all the time of `window`."""

    def remove(self) -> None:
        """Ends the disturbance and takes away what it left behind. Always called, idempotent."""


class Condition(Specification, ABC):
    """A controlled disturbance, as a value: any number of trials may have it, also at the same time.

    The order within a trial: begin ("before") - the workload starts and is matched - begin ("after") - settle - the
    measured part - verify - remove.
    """

    from_beside: ClassVar[bool] = False  # what reaches the workload comes from processes beside it
    over_network: ClassVar[bool] = False  # what it changes is on its way over the network
    evidence: ClassVar[type[Evidence]] = Evidence  # what it proves, with the types of both sides
    changes_peers: ClassVar[bool] = False  # processes of the workload end and come back
    mitigates: ClassVar[bool] = False  # it helps instead of disturbing (perflab/mitigation)
    ends_by_schedule: ClassVar[bool] = False  # with the planned end, even where the workload is behind and goes on

    _number: int = PrivateAttr(default=1)

    @property
    def label(self) -> str:
        """In evidence and file names: the name, and a number where a trial has several of that name."""
        return self.name if self._number == 1 else f"{self.name}_{self._number}"

    @property
    def number(self) -> int:
        """Of those of its name in a trial, from 1."""
        return self._number

    def numbered(self, number: int) -> Self:
        """The same as this one of several in a trial."""
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
        """Its threads that may keep others from running; None where it has none."""
        return None

    @abstractmethod
    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        """Before anything starts: can it be done here, to this graph, on this runtime ("dds", "virtual", "command")?

        Raises Unavailable or BadInput.
        """

    def check_network(self, network: str) -> None:
        """Likewise of the network interface that the middlewares will use. Raises BadInput."""

    def resolved(self, host: Host) -> Self:
        """With what it takes from this machine once, so that it is the same in all trials; after `check`."""
        del host
        return self

    def extend(self, graph: Graph) -> Graph:
        """The graph with the nodes and processes that the condition adds, each marked with its label."""
        return graph

    @abstractmethod
    def begin(self, trial: Trial) -> Applied:
        """Begins to disturb. Raises NotInEffect, Unavailable; the trial then ends the programs that were started."""


def extended(graph: Graph, conditions: Iterable[Condition]) -> Graph:
    """The graph with what each of the conditions adds."""
    return functools.reduce(lambda graph, condition: condition.extend(graph), conditions, graph)
