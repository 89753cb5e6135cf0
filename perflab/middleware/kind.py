"""The declaration of a middleware in its module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

SWITCH = ("on", "off")
REFUSED, HINT, SUPPORTED = "refused", "hint", "supported"


@dataclass(frozen=True)
class Option:
    """An option of a middleware, for `perflab list middlewares`; the plug-in itself checks keys and values.

    `values` are its completions if there are only a few.
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
        """Raises Unavailable if it is not installed."""
        ...

    def require_none(self) -> None:
        """Raises Unavailable if one runs that perflab has not started."""
        ...

    def command(self, graph: Mapping[str, Any], folder: Path) -> list[str]:
        """Its command line for a resolved graph; files that it needs are written to the folder. Raises Unavailable."""
        ...

    def ready(self) -> bool: ...

    def left_over(self, pids: Iterable[int]) -> list[Path]:
        """Files that it and these processes left behind when they were killed."""
        ...


# Converts a mitigation's value to middleware options.
Tuning = Callable[[Any], Mapping[str, str]]


def as_option(key: str) -> Tuning:
    """Sets the option of this key to a number of bytes or a switch."""

    def options(value: Any) -> Mapping[str, str]:
        return {key: ("on" if value else "off") if isinstance(value, bool) else str(value)}

    return options


@dataclass(frozen=True)
class ThreadsWanted:
    """The scheduling for all threads of a middleware. `names` are the observed names of its threads, and `version` is
    the library's; None if unknown."""

    policy: str  # FIFO or RR
    priority: int
    cpus: tuple[int, ...]
    names: tuple[str, ...]
    version: str | None


@dataclass(frozen=True)
class ThreadSettings:
    """A middleware's own configuration for that scheduling, to be copied; `notes` are its limits."""

    title: str
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MiddlewareKind:
    """A kind of middleware. `runtime` is perflab-node's; `install` says how to make it available.

    `wire` names the protocol between processes: two middlewares with the same one can share a graph; None if there is
    none. `library` is the plug-in if it is not beside perflab's own. `service_framings` are the ways to match replies
    to requests that it can carry, its default first.
    """

    name: str
    summary: str
    runtime: str
    install: str
    options: tuple[Option, ...] = ()
    disturbed: bool = True  # whether the disturbance layer (disturbance.py) can be applied to it
    without_prefix: bool = False  # ... and its options also have their names without the prefix
    wire: str | None = None
    library: Path | None = None
    plugin: str | None = None  # the kind whose plug-in it uses, if not its own
    service_framings: tuple[str, ...] = ("rmw_cyclonedds",)
    rmw: str | None = None  # its RMW of ROS 2
    over_network: Mapping[str, str] | None = None  # options that make messages use the network; None: impossible
    floor: bool = False  # the cheapest way to carry messages of its kind, with which others are compared
    reliable: bool = True  # whether it can guarantee delivery
    daemon: Daemon | None = None
    secured: bool = False  # it has the option of security.py
    threads: tuple[tuple[str, str], ...] = ()  # patterns of thread names, as in fnmatch(3), and what such threads do
    thread_settings: Callable[[ThreadsWanted], ThreadSettings] | None = None  # None: it has none, threads inherit
    tuning: Mapping[str, Tuning] = field(default_factory=dict)  # its support for the mitigation dds_tuning
    libraries: tuple[str, ...] = ()  # names of the libraries that another build replaces, without ".so"


@dataclass(frozen=True)
class PolicySupport:
    """How a middleware treats a QoS policy: `supported` has an effect that its tests prove, a `hint` is passed to the
    library, and a `refused` one fails in one line."""

    support: str
    note: str | None = None


@dataclass(frozen=True)
class Availability:
    """Whether a middleware can be used here; `text` is its description, or why not and the remedy."""

    usable: bool
    library: Path | None
    version: str | None
    text: str
    across_processes: bool = True
    instances: bool = False  # topics may have keys
    filters: bool = False  # subscriptions may have a content filter
    libraries: tuple[Path, ...] = ()
    """Libraries of the requested installation, as loaded."""
    policies: Mapping[str, PolicySupport] = field(default_factory=dict)  # of QoS; without unknown ones
