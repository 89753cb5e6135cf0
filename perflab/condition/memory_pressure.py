"""`memory_pressure`: stress-ng workers that hold resident memory, and either keep rewriting it or leave it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab.condition import Condition, Shown, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.cpu_demand import CpuDemand
from perflab.condition.evidence import allowed_cpus, rounded
from perflab.condition.stress_ng import Load, LoadEvidence, StressNg, WorkersSeen
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.kernel import Files
from perflab.parameters import Bytes, Percent
from perflab.registry import Kind
from perflab.units import format_bytes, is_zero
from perflab.workload import Graph

# Memory that stays free for the workload and the machine, so that the kernel does not start killing.
RESERVE_BYTES = 256 << 20
RESERVE_SHARE = 0.05  # of MemAvailable
# The load's pages are all resident or the worker is gone; the tolerance is for memory that its helper processes
# release.
TOLERANCE = 0.02
# Rewriting is bound by memory; the worker sleeps only for page faults.
REWRITE_SHARE = 1.0
MIN_BYTES_PER_WORKER = 1 << 20


Resident = Annotated[int | None, Shown("resident memory", "MiB", 1 << 20)]


@dataclass(frozen=True, kw_only=True)
class Promised:
    resident_bytes: Resident
    """Memory of all workers together."""
    workers: int
    """Processes that share it evenly."""
    access: str
    """Whether they keep writing it (rewrite) or sleep (hold)."""


@dataclass(frozen=True, kw_only=True)
class Achieved(CpuDemand, WorkersSeen):
    """With `access` hold, the only figure of CPU time is `cpus_used`, which is of the whole load."""

    resident_bytes: Resident
    """The smallest value in a sample of the monitor, without stress-ng's own memory; null without a sample."""
    resident_bytes_max: int | None
    """The largest value in a sample."""
    helpers_bytes: int
    """Memory subtracted from these: stress-ng's other processes, and mapped files."""
    samples: int
    """Number of samples."""
    resident_bytes_at_end: int
    """After the measured part, from /proc."""


@dataclass(frozen=True, kw_only=True)
class MemoryEvidence(LoadEvidence):
    promised: Promised
    achieved: Achieved


class MemoryPressure(StressNg):
    """Holds this much resident memory, all the time."""

    name: ClassVar[str] = "memory_pressure"
    evidence: ClassVar[type[LoadEvidence]] = MemoryEvidence
    stressor: ClassVar[str] = "vm"

    workers: int = Field(default=1, ge=1, le=1024, description="processes that share the memory evenly")
    bytes: Bytes | None = Field(default=None, ge=1 << 20, description="total resident memory, e.g. 512MiB")
    percent: Percent | None = Field(
        default=None, ge=1, le=95, description="instead of bytes: share of the memory available before the first trial"
    )
    access: Literal["rewrite", "hold"] = Field(
        default="rewrite",
        description="rewrite: keep writing it, each worker on a CPU; hold: write it once and sleep",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> MemoryPressure:
        if (self.bytes is None) == (self.percent is None):
            raise ValueError("give exactly one of bytes and percent")
        if self.bytes is not None and self.bytes < self.workers * MIN_BYTES_PER_WORKER:
            raise ValueError(f"bytes {self.bytes} is less than {MIN_BYTES_PER_WORKER >> 20} MiB for each worker")
        return self

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        super().check(host, graph, runtime)
        available = self._available(host)
        reserve = max(RESERVE_BYTES, round(RESERVE_SHARE * available))
        wanted = self._wanted(available)
        if wanted > available - reserve:
            raise BadInput(
                f"{self.label}: {format_bytes(wanted)} exceed the {format_bytes(max(0, available - reserve))} "
                f"that can be taken here: {format_bytes(available)} are available, {format_bytes(reserve)} of "
                "them stay free"
            )

    def resolved(self, host: Host) -> MemoryPressure:
        """A share of the memory available now as a number of bytes."""
        return self.model_copy(update={"bytes": self._wanted(self._available(host)), "percent": None})

    @property
    def total(self) -> int:
        """Bytes that all workers hold together."""
        assert self.bytes is not None, "call resolved first"
        return self.bytes

    @property
    def arguments(self) -> list[str]:
        hold = ["--vm-hang", "0"] if self.access == "hold" else []
        # stress-ng divides the bytes among the workers. Without --oomable it silently restarts a killed worker; without
        # --vm-madvise it gives the kernel random advice, including MADV_DONTNEED.
        kept = ["--vm-keep", "--oomable", "--vm-method", "write64", "--vm-madvise", "normal"]
        return ["--vm-bytes", str(self.total), *kept, *hold]

    @property
    def promised(self) -> Promised:
        return Promised(resident_bytes=self.total, workers=self.workers, access=self.access)

    def missing(self, load: Load) -> str | None:
        held = _held(load)
        if held >= (1 - TOLERANCE) * self.total:
            return None
        return f"stress-ng holds {format_bytes(held)} of {format_bytes(self.total)}"

    def judge(self, load: Load, window: Window) -> tuple[Achieved, str | None]:
        """What the monitor saw in the window. A group's figure includes stress-ng's helper processes."""
        resident = [kb * 1024 for _, kb in load.trial.monitor.rss_kb(self.label, window.begin_ns, window.end_ns)]
        overhead = _overhead(load)
        reason = None
        if not resident:
            reason = "the monitor has no sample of its memory"
        elif min(resident) - overhead < (1 - TOLERANCE) * self.total:
            reason = f"it held {format_bytes(max(0, min(resident) - overhead))} of {format_bytes(self.total)}"
        if self.access == "rewrite":
            cpus = allowed_cpus()
            use, idle = demand.judge(load.trial, self.label, load.threads, cpus, REWRITE_SHARE, window)
            if reason is None and idle is not None:
                reason = f"it did not rewrite its memory: {idle}"
        else:
            spent = load.trial.monitor.cpu_seconds(self.label, window.begin_ns, window.end_ns)
            use = CpuDemand(cpus_used=rounded(None if spent is None else spent / window.seconds))
        achieved = Achieved(
            **load.seen(window),
            **vars(use),
            resident_bytes=min(resident) - overhead if resident else None,
            resident_bytes_max=max(resident) - overhead if resident else None,
            helpers_bytes=overhead,
            samples=len(resident),
            resident_bytes_at_end=_held(load),
        )
        if reason is None and achieved.resident_bytes_at_end < (1 - TOLERANCE) * self.total:
            reason = f"it held {format_bytes(achieved.resident_bytes_at_end)} of {format_bytes(self.total)} at the end"
        return achieved, reason

    def _available(self, host: Host) -> int:
        (available_kb,) = host.kb("proc/meminfo", "MemAvailable")
        if available_kb is None:
            raise Unavailable(f"{self.label}: /proc/meminfo lacks the available memory")
        return available_kb * 1024

    def _wanted(self, available: int) -> int:
        return self.bytes if self.bytes is not None else round(available * (self.percent or 0.0) / 100)


def _held(load: Load) -> int:
    """Resident bytes of the workers' own memory, now."""
    return sum(_figure(pid, "RssAnon") for pid in load.threads)


def _overhead(load: Load) -> int:
    """Resident bytes of stress-ng that are not load: its other processes, and mapped files."""
    root = [] if load.companion.pid is None else [load.companion.pid]
    helpers = sum(_figure(pid, "VmRSS") for pid in (*root, *(helper.pid for helper in load.helpers)))
    return helpers + sum(_figure(pid, "RssFile") + _figure(pid, "RssShmem") for pid in load.threads)


def _figure(pid: int, key: str) -> int:
    return (Files().kb(f"proc/{pid}/status", key)[0] or 0) * 1024


def words(given: Mapping[str, Any]) -> str:
    percent = given.get("percent")
    amount = format_bytes(given["bytes"]) if percent is None else f"{percent:g} % of memory"
    return f"{amount} {'rewritten' if given['access'] == 'rewrite' else 'held'} by {given['workers']} worker(s)"


KIND: Kind[Condition] = Kind(
    "memory_pressure",
    "stress-ng workers that hold resident memory",
    MemoryPressure,
    words=words,
    is_off=lambda written: any(is_zero(written.get(key)) for key in ("workers", "bytes", "percent")),
    gently=("bytes=32MiB",),
)
