"""`hiccup`: how much longer a sleeping thread of each process sleeps than it asked for.

It shows what the machine does to a thread that has nothing to do with the middleware: latencies of that size are not
the middleware's. perflab-node does it itself (docs/formats.md, section 2); this observer switches it on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator

from perflab.errors import BadInput, NotAsExpected, Unavailable
from perflab.host import Host
from perflab.native import Native
from perflab.observer import Observer
from perflab.parameters import DurationNs
from perflab.registry import Kind
from perflab.results import trial as results
from perflab.units import NS_PER_S, format_count, format_time

SHORTEST_NS = 10_000
LONGEST_NS = NS_PER_S


class Hiccup(Observer):
    """Adds `hiccup_ns` to the configuration of every perflab-node; the histogram is in its checkpoints."""

    name: ClassVar[str] = "hiccup"

    interval: DurationNs = Field(
        default=1_000_000,
        validate_default=False,
        description="how long the thread sleeps again and again, 10us to 1s (default: 1ms)",
    )

    @field_validator("interval")
    @classmethod
    def _in_range(cls, interval_ns: int) -> int:
        if not SHORTEST_NS <= interval_ns <= LONGEST_NS:
            raise ValueError(f"{interval_ns / 1e6:g} ms is not within 10us and 1s")
        return interval_ns

    def check(self, host: Host, runtime: str) -> None:
        if runtime == "virtual":
            raise Unavailable(f"{self.name}: nothing sleeps in virtual time; use a real middleware")
        if runtime == "command":
            raise BadInput(f"{self.name}: it is a thread of perflab-node, and this workload is a command")

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        configuration["hiccup_ns"] = self.interval

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        found = trial.hiccup_ns
        if not found or not found.count:
            raise NotAsExpected("no wake-up was recorded")
        return f"{format_count(found.count)} wake-ups, p99 {format_time(found.p99)}"


KIND: Kind[Observer] = Kind("hiccup", "how much too long a sleeping thread of each process sleeps", Hiccup)
