"""`hiccup`: how much longer than requested a thread of each process sleeps.

It shows what the machine does to a thread that is independent of the middleware: latencies of that size are not the
middleware's. perflab-node measures it (docs/formats.md, section 2); this observer enables it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from perflab.errors import NotAsExpected
from perflab.native import Native
from perflab.observer import Observer
from perflab.parameters import DurationNs
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_count, format_time

if TYPE_CHECKING:
    from perflab.results import trial as results
    from perflab.statistics.histogram import Histogram


PARTS = ("hiccup_waited", "hiccup_woken_late")
"""Parts of its oversleep, if the kernel reports them: it was ready, but another thread had its CPU; and the
rest, before it was woken: the timer was late, because interrupts were off, or because hardware or a
hypervisor had the CPU."""


class Hiccup(Observer):
    """Adds `hiccup_ns` to the configuration of every perflab-node; the histogram is in its checkpoints."""

    name: ClassVar[str] = "hiccup"
    on_virtual: ClassVar[str | None] = "nothing sleeps in virtual time"
    on_command: ClassVar[str | None] = "it is a thread of perflab-node"

    interval: DurationNs = Field(
        default=1_000_000,
        validate_default=False,
        ge=10_000,
        le=NS_PER_S,
        description="length of each sleep of the thread, 10us to 1s (default: 1ms)",
    )

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        configuration["hiccup_ns"] = self.interval

    @classmethod
    def histograms(cls, directory: Path, checkpoints: Sequence[Mapping[str, Any]]) -> Mapping[str, Histogram]:
        """All processes together."""
        from perflab.statistics import histogram as hg

        del directory
        found = {name: [h for c in checkpoints if (h := c.get(name)) is not None] for name in (cls.name, *PARTS)}
        # The parts of one process alone would cover fewer wake-ups than the whole.
        whole = {name: of for name, of in found.items() if of and len(of) == len(found[cls.name])}
        return {name: hg.merge(hg.from_records(of)) for name, of in whole.items()}

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        found = trial.observed_ns.get(cls.name)
        if not found or not found.count:
            raise NotAsExpected("no wake-up was recorded")
        return f"{format_count(found.count)} wake-ups, p99 {format_time(found.p99)}"


KIND: Kind[Observer] = Kind("hiccup", "how much longer than requested a thread of each process sleeps", Hiccup)
