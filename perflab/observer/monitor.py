"""`monitor`: activity of the trial's threads and of the CPUs, as tables.

perflab-monitor runs in every trial with conditions to verify; this observer requests it for all trials, chooses its
interval, and keeps its samples. The trial starts it with `interval_ns`, or with a shorter interval if conditions need
one; the tables have the requested interval.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from perflab import native
from perflab.condition import Trial
from perflab.errors import NotAsExpected
from perflab.formats import monitor as monitor_files
from perflab.host import Host
from perflab.observer import Artifact, Observation, Observer
from perflab.parameters import DurationNs
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_count

if TYPE_CHECKING:
    from perflab.results import trial as results


class Monitor(Observer):
    """Writes monitor_threads.parquet and monitor_cpus.parquet."""

    name: ClassVar[str] = "monitor"
    on_virtual: ClassVar[str | None] = "virtual trials have no threads to sample"

    interval: DurationNs = Field(
        default=100_000_000,
        validate_default=False,
        ge=10_000_000,
        le=10 * NS_PER_S,
        description="time between two samples, 10ms to 10s (default: 100ms)",
    )

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        native.find().program("perflab-monitor")

    def begin(self, trial: Trial) -> Observation:
        return Samples(self.interval, trial)

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        import polars as pl

        table = pl.read_parquet(artifact("table"))
        if not table.height:
            raise NotAsExpected("no thread was sampled")
        return f"{format_count(table.height)} rows on threads"


class Samples(Observation):
    """The samples of one trial, as tables."""

    def __init__(self, interval_ns: int, trial: Trial) -> None:
        self._interval_ns = interval_ns
        self._trial = trial

    def stop(self) -> list[Artifact]:
        reader = self._trial.monitor
        reader.refresh()
        if reader.last_at_ns is None:
            return []  # the trial ended before anything was sampled
        tables = monitor_files.write_tables(self._trial.directory, reader, self._interval_ns)
        return [Artifact(path, "table") for path in tables]


KIND: Kind[Observer] = Kind(
    "monitor",
    "CPU time, run delay, policy and CPUs of every thread, and the CPUs' idle time",
    Monitor,
)
