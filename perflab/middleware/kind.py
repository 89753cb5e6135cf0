"""What every middleware module says about its middleware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

SWITCH = ("on", "off")
REFUSED, HINT, SUPPORTED = "refused", "hint", "supported"


@dataclass(frozen=True)
class Option:
    """An option of a middleware, for `perflab list middlewares`; the plug-in itself judges keys and values.

    `values` complete it where there are but a few.
    """

    key: str
    help: str
    values: tuple[str, ...] = ()


class Daemon(Protocol):
    """A program that the processes of a middleware need beside them, one for all; perflab starts and ends it."""

    @property
    def name(self) -> str: ...

    def wanted(self, options: Mapping[str, str]) -> bool:
        """Whether the middleware needs it with these options."""
        ...

    def require(self) -> None:
        """Raises Unavailable where it is not installed."""
        ...

    def require_none(self) -> None:
        """Raises Unavailable where one runs that perflab has not started."""
        ...

    def command(self, graph: Mapping[str, Any], folder: Path) -> list[str]:
        """That starts it for a resolved graph; files that it needs are written to the folder. Raises Unavailable."""
        ...

    def ready(self) -> bool: ...

    def left_over(self, pids: Iterable[int]) -> list[Path]:
        """Files that it and these processes left behind, if they were killed."""
        ...


# What a value of a mitigation is as options of a middleware.
Tuning = Callable[[Any], Mapping[str, str]]


def as_option(key: str) -> Tuning:
    """The option of this key, with a number of bytes or a switch."""

    def options(value: Any) -> Mapping[str, str]:
        return {key: ("on" if value else "off") if isinstance(value, bool) else str(value)}

    return options


@dataclass(frozen=True)
class ThreadsWanted:
    """How all threads of a middleware shall be scheduled. `names` are those that its threads were seen to have, and
    `version` is the library's; None where it is not known."""

    policy: str  # FIFO or RR
    priority: int
    cpus: tuple[int, ...]
    names: tuple[str, ...]
    version: str | None


@dataclass(frozen=True)
class ThreadSettings:
    """How a middleware is told that in its own format, to be copied; `notes` say what it does not do."""

    title: str
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MiddlewareKind:
    """A middleware as such. `runtime` is perflab-node's; `install` tells what makes it available.

    `wire` names the protocol by which processes meet: two middlewares with the same one can share a graph; None where
    there is none. `library` is the plug-in where it does not lie with perflab's own. `service_framings` are the ways to
    tie replies to requests that it can carry, its default first.
    """

    name: str
    summary: str
    runtime: str
    install: str
    options: tuple[Option, ...] = ()
    disturbed: bool = True  # whether the disturbance (disturbance.py) can lie over it
    without_prefix: bool = False  # ... and its options have their names without the prefix as well
    wire: str | None = None
    library: Path | None = None
    plugin: str | None = None  # whose plug-in it uses where that is not its own
    service_framings: tuple[str, ...] = ("rmw_cyclonedds",)
    rmw: str | None = None  # the RMW of ROS 2 that it is
    over_network: Mapping[str, str] | None = None  # options with which messages go by the network's way; None: no way
    floor: bool = False  # the least that carries messages in its way: others are compared with it
    reliable: bool = True  # whether it can promise that messages arrive
    daemon: Daemon | None = None
    secured: bool = False  # it has the option of security.py
    threads: tuple[tuple[str, str], ...] = ()  # patterns of names, as fnmatch(3) has them, and what such threads do
    thread_settings: Callable[[ThreadsWanted], ThreadSettings] | None = None  # None: it has none, threads inherit
    tuning: Mapping[str, Tuning] = field(default_factory=dict)  # what of the mitigation dds_tuning it has
    libraries: tuple[str, ...] = ()  # names of what another build of it replaces, without ".so"


@dataclass(frozen=True)
class PolicySupport:
    """What a middleware does with a QoS policy: `supported` has an effect that its tests prove, a `hint` is handed to
    the library, and what is `refused` fails in one line."""

    support: str
    note: str | None = None


@dataclass(frozen=True)
class Availability:
    """Whether a middleware can be used here; `text` is its description, or why not and what to do."""

    usable: bool
    library: Path | None
    version: str | None
    text: str
    across_processes: bool = True
    instances: bool = False  # topics may have keys
    filters: bool = False  # subscriptions may have a content filter
    libraries: tuple[Path, ...] = ()
    """Those of the installation that was asked for, as they were loaded."""
    policies: Mapping[str, PolicySupport] = field(default_factory=dict)  # of QoS; none that is not known
