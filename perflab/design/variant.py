"""Variants: the ways in which an experiment runs its workload, and their names on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from perflab.errors import BadInput
from perflab.middleware import Middleware, common_framing
from perflab.middleware.kind import Daemon
from perflab.units import duration_text, parse_duration

EXECUTORS = {
    "inline": "callbacks run in the middleware's receive thread",
    "single_threaded": "one thread waits for its subscriptions and timers, as in rclcpp's SingleThreadedExecutor",
    "static_single_threaded": "rclcpp's StaticSingleThreadedExecutor, in versions that still have it; only on rclcpp",
    "events": "one thread and a queue fed by arriving messages, as in iRobot's EventsExecutor",
    "polling": "one thread that polls without sleeping; not on rclcpp and virtual",
    "multi_threaded": "several threads, N in multi_threaded:N; callbacks of one node exclude each other",
    "priority": "one thread; runs the ready callback with the highest `priority` first, as in PiCAS' executor",
    "let": "one thread; takes everything that is ready and then runs it in a fixed order, as in rclc's executor "
    "with LET semantics; let:PERIOD does so at the beginning of each period",
}
OF_ROS = frozenset({"static_single_threaded"})  # options that only rclcpp has
# The middleware of a command without RMW_IMPLEMENTATION.
OWN = "own"
WITH_THREADS = "multi_threaded"
WITH_PERIOD = "let"
MAX_THREADS = 64
MIN_PERIOD_NS, MAX_PERIOD_NS = 1_000, 86_400 * 10**9
PASS_BY = ("shared", "unique", "loaned")
WITHIN = PASS_BY[:2]  # for messages that stay within a process; with rclcpp for every message
FRAMINGS = ("rmw_fastrtps", "rmw_cyclonedds")


@dataclass(frozen=True)
class Executor:
    """Replaces every executor of the graph; `threads`, `period_ns` None: as in the graph, or the node's default."""

    kind: str
    threads: int | None = None
    period_ns: int | None = None

    @property
    def name(self) -> str:
        if self.period_ns is not None:
            return f"{self.kind}:{duration_text(self.period_ns)}"
        return self.kind if self.threads is None else f"{self.kind}:{self.threads}"


@dataclass(frozen=True)
class Variant:
    """One way to run the workload. `middlewares` is one for all processes, or one for each process in the graph's
    order."""

    middlewares: tuple[Middleware, ...]
    executor: Executor | None = None  # None: as in the graph; likewise pass_by
    intra_process: bool = False
    pass_by: str | None = None
    service_framing: str | None = None  # None: the middleware's default
    # The middleware of a command; `middlewares` is then that of the nodes that conditions add.
    own_middleware: str | None = None

    @property
    def daemons(self) -> list[Daemon]:
        """The daemons that the processes' middlewares need."""
        return list(dict.fromkeys(m.daemon for m in self.middlewares if m.daemon is not None))

    def middleware_of(self, process: int) -> Middleware:
        """The middleware of the graph's process with this index; processes added by conditions use the first one's."""
        return self.middlewares[process] if 1 < len(self.middlewares) > process else self.middlewares[0]

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies it among the variants."""
        middlewares = tuple((m.name, tuple(sorted(m.options.items()))) for m in self.middlewares)
        return middlewares, self.executor_name, self.ipc, self.pass_by, self.service_framing, self.own_middleware

    @property
    def runtime(self) -> str:
        """perflab-node's middleware; the first process's, if part of a graph is ROS 2."""
        return self.middlewares[0].runtime

    @property
    def middleware_name(self) -> str:
        if self.own_middleware is not None:
            return self.own_middleware
        return "+".join(m.name for m in self.middlewares)

    @property
    def executor_name(self) -> str | None:
        return None if self.executor is None else self.executor.name

    @property
    def ipc(self) -> str | None:
        if self.own_middleware is not None:
            return None
        return "on" if self.intra_process else "off"

    @property
    def words(self) -> str:
        """The request in short: "cyclonedds, events, ipc on, by unique"."""
        asked = (
            self.middleware_name,
            self.executor_name,
            "ipc on" if self.intra_process else None,
            f"by {self.pass_by}" if self.pass_by else None,
        )
        return ", ".join(word for word in asked if word)

    def document(self) -> dict[str, Any]:
        """The keys by which results are grouped, as in trial.json and summary.json."""
        return {"executor": self.executor_name, "ipc": self.ipc, "pass_by": self.pass_by}


def product_of(
    middlewares: Sequence[tuple[Middleware, ...]],
    executors: Sequence[Executor | None] = (None,),
    ipc: Sequence[bool] = (False,),
    pass_by: Sequence[str | None] = (None,),
    framing: str | None = None,
    serving: Collection[int] | None = None,
) -> tuple[Variant, ...]:
    """Every combination of the requested values; the last one varies first. `serving` as of `common_framing`.

    Raises Unavailable.
    """
    framed = [(mixture, common_framing(mixture, framing, serving)) for mixture in middlewares]
    return tuple(
        Variant(mixture, executor, intra_process, passing, common)
        for (mixture, common), executor, intra_process, passing in product(framed, executors, ipc, pass_by)
    )


def parse_executors(text: str | None) -> tuple[Executor | None, ...]:
    """The executors in "inline,multi_threaded:4". Raises BadInput."""
    return (None,) if text is None else tuple(_executor(word) for word in _words(text, "--executor"))


def parse_ipc(text: str) -> tuple[bool, ...]:
    """False and True, from "off,on". Raises BadInput."""
    return tuple(word == "on" for word in _words(text, "--ipc", ("on", "off")))


def parse_pass_by(text: str | None) -> tuple[str | None, ...]:
    """The ways to pass a message in "shared,unique". Raises BadInput."""
    return (None,) if text is None else _words(text, "--pass-by", PASS_BY)


def parse_framing(text: str | None) -> str | None:
    """A service framing. Raises BadInput."""
    return None if text is None else _known(text, "--service-framing", FRAMINGS)


def _executor(word: str) -> Executor:
    kind, colon, number = word.partition(":")
    if kind not in EXECUTORS:
        raise BadInput(f"unknown executor {kind!r}; choose from {', '.join(EXECUTORS)}")
    if not colon:
        return Executor(kind)
    if kind == WITH_PERIOD:
        return Executor(kind, period_ns=_period(word, number))
    if kind != WITH_THREADS:
        raise BadInput(
            f"--executor {word!r}: only {WITH_THREADS} has a number of threads, and only {WITH_PERIOD} a period"
        )
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= MAX_THREADS):
        raise BadInput(f"--executor {word!r}: the number of threads is not within 1..{MAX_THREADS}")
    if number.startswith("0"):
        raise BadInput(f"--executor {word!r}: write the number of threads as {int(number)}")
    return Executor(kind, int(number))


def _period(word: str, text: str) -> int:
    period_ns = parse_duration(text, f"--executor {word}")
    if not MIN_PERIOD_NS <= period_ns <= MAX_PERIOD_NS:
        raise BadInput(f"--executor {word!r}: the period is not from 1us to 24h")
    return period_ns


def _known(word: str, option: str, known: Sequence[str]) -> str:
    if known and word not in known:
        raise BadInput(f"{option} {word!r} is not {', '.join(known[:-1])} or {known[-1]}")
    return word


def _words(text: str, option: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The words of "a,b" without duplicates, checked against the known ones if those are given. Raises BadInput."""
    words = tuple(_known(word.strip(), option, known) for word in text.split(","))
    if len(set(words)) != len(words):
        raise BadInput(f"{option} {text!r} names one twice; use --trials to repeat it")
    return words
