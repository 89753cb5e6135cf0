"""`memory_pressure`: stress-ng workers that hold resident memory and keep rewriting it, or leave it alone."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab.condition import Condition, Evidence, Trial, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.evidence import (
    PROC,
    allowed_cpus,
    available_memory,
    catch_up,
    kilobytes,
    longest_gap_s,
    outcome,
    recent,
    require_processes,
    rounded,
    table,
    wait_until,
)
from perflab.condition.stress_ng import Load, find
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.parameters import Bytes, Parameters, Percent
from perflab.registry import Kind
from perflab.units import format_bytes, is_zero
from perflab.workload import Graph

# What stays free for the workload and the machine, so that the kernel does not begin to kill.
RESERVE_BYTES = 256 << 20
RESERVE_SHARE = 0.05  # of MemAvailable
# The pages of the load are all there or the worker is gone; the rest is for what its helper processes give back.
TOLERANCE = 0.02
# Rewriting is bound by memory, the worker never sleeps but for page faults.
REWRITE_SHARE = 1.0
SETTLED_S = 0.5
MIN_BYTES_PER_WORKER = 1 << 20


class MemoryPressureParameters(Parameters):
    workers: int = Field(default=1, ge=1, le=1024, description="processes that share the memory evenly")
    bytes: Bytes | None = Field(default=None, ge=1 << 20, description="resident memory in all, e.g. 512MiB")
    percent: Percent | None = Field(
        default=None, ge=1, le=95, description="instead of bytes: share of the memory available before the first trial"
    )
    access: Literal["rewrite", "hold"] = Field(
        default="rewrite",
        description="rewrite: they write it again and again, each on a CPU; hold: they write it once and sleep",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> MemoryPressureParameters:
        if (self.bytes is None) == (self.percent is None):
            raise ValueError("give exactly one of bytes and percent")
        if self.bytes is not None and self.bytes < self.workers * MIN_BYTES_PER_WORKER:
            raise ValueError(f"bytes {self.bytes} is less than {MIN_BYTES_PER_WORKER >> 20} MiB for each worker")
        return self


class MemoryPressure(Condition):
    """Holds that much resident memory, all the time."""

    name: ClassVar[str] = "memory_pressure"

    def __init__(self, parameters: MemoryPressureParameters) -> None:
        self.label = self.name
        self._asked = parameters
        self._bytes = parameters.bytes
        self._load: Load | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self._asked.model_dump(mode="json")

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        find()
        available = available_memory(host)
        if available is None:
            raise Unavailable(f"{self.label}: /proc/meminfo does not say how much memory is available")
        reserve = max(RESERVE_BYTES, round(RESERVE_SHARE * available))
        wanted = self._asked.bytes
        if self._asked.percent is not None:
            wanted = round(available * self._asked.percent / 100)
        assert wanted is not None
        if wanted > available - reserve:
            raise BadInput(
                f"{self.label}: {format_bytes(wanted)}, and {format_bytes(max(0, available - reserve))} can be taken "
                f"here: {format_bytes(available)} are available, {format_bytes(reserve)} of them stay free"
            )
        if self._bytes is None or self._asked.bytes is None:
            self._bytes = wanted

    def apply(self, trial: Trial) -> None:
        hold = ["--vm-hang", "0"] if self._asked.access == "hold" else []
        self._load = Load(
            trial,
            self.label,
            "vm",
            self._asked.workers,
            # stress-ng divides the bytes among the workers. Without --oomable it starts a killed worker again unseen;
            # without --vm-madvise it gives the kernel random advice, MADV_DONTNEED among it.
            [
                *("--vm-bytes", str(self._total)),
                *("--vm-keep", "--oomable", "--vm-method", "write64", "--vm-madvise", "normal"),
                *hold,
            ],
        )

    def settle(self, trial: Trial) -> None:
        load = self._started()
        load.find_workers(trial)

        def filled() -> str | None:
            held = _held(load)
            if held >= (1 - TOLERANCE) * self._total:
                return load.lost()
            return load.lost() or f"stress-ng holds {format_bytes(held)} of {format_bytes(self._total)}"

        wait_until(trial, filled)
        since_ns = time.monotonic_ns()

        def working() -> str | None:
            window = recent(trial, since_ns, SETTLED_S)
            if window is None:
                return "the monitor has not seen the load yet"
            return self._judge(trial, load, window)[1]

        wait_until(trial, working)
        load.note_scheduling(trial)

    def verify(self, trial: Trial, window: Window) -> Evidence:
        load = self._started()
        late = catch_up(trial, window, [self.label])
        achieved, weak = self._judge(trial, load, window)
        held = _held(load)
        reason = load.lost() or load.rescheduled(trial, window) or late or weak
        if reason is None and held < (1 - TOLERANCE) * self._total:
            reason = f"it held {format_bytes(held)} of {format_bytes(self._total)} at the end"
        return outcome(
            {"resident_bytes": self._total, "workers": self._asked.workers, "access": self._asked.access},
            {
                "resident_bytes_at_end": held,
                "workers_alive": load.alive,
                "monitor_gap_s": rounded(longest_gap_s(trial, [self.label], window)),
                **achieved,
            },
            reason,
            **load.document(),
        )

    def remove(self, trial: Trial) -> None:
        if self._load is not None:
            self._load.stop()
            self._load = None

    @property
    def _total(self) -> int:
        assert self._bytes is not None, "check comes first"
        return self._bytes

    def _judge(self, trial: Trial, load: Load, window: Window) -> tuple[dict[str, Any], str | None]:
        """What the monitor saw in the window. A group's figure holds stress-ng's helper processes, too."""
        resident = [kb * 1024 for _, kb in trial.monitor.rss_kb(self.label, window.begin_ns, window.end_ns)]
        overhead = _overhead(load)
        achieved: dict[str, Any] = {
            "resident_bytes": min(resident) - overhead if resident else None,
            "resident_bytes_max": max(resident) - overhead if resident else None,
            "helpers_bytes": overhead,
            "samples": len(resident),
        }
        reason = None
        if not resident:
            reason = "the monitor has no sample of its memory"
        elif min(resident) - overhead < (1 - TOLERANCE) * self._total:
            reason = f"it held {format_bytes(max(0, min(resident) - overhead))} of {format_bytes(self._total)}"
        if self._asked.access == "rewrite":
            cpus = allowed_cpus()
            use, idle = demand.judge(trial, self.label, load.threads, cpus, REWRITE_SHARE, window)
            achieved |= use
            if reason is None and idle is not None:
                reason = f"it did not rewrite its memory: {idle}"
        else:
            spent = trial.monitor.cpu_seconds(self.label, window.begin_ns, window.end_ns)
            achieved["cpus_used"] = rounded(None if spent is None else spent / window.seconds)
        return achieved, reason

    def _started(self) -> Load:
        assert self._load is not None, "apply comes first"
        return self._load


def _held(load: Load) -> int:
    """Resident bytes of the workers' own memory, now."""
    return sum(_figure(pid, "RssAnon") for pid in load.threads)


def _overhead(load: Load) -> int:
    """Resident bytes of stress-ng that are no load: its other processes, and what is mapped from files."""
    root = [] if load.companion.pid is None else [load.companion.pid]
    helpers = sum(_figure(pid, "VmRSS") for pid in (*root, *(helper.pid for helper in load.helpers)))
    return helpers + sum(_figure(pid, "RssFile") + _figure(pid, "RssShmem") for pid in load.threads)


def _figure(pid: int, key: str) -> int:
    return kilobytes(table(PROC / str(pid) / "status").get(key)) or 0


KIND: Kind[Condition] = Kind(
    "memory_pressure",
    "stress-ng workers that hold resident memory",
    MemoryPressureParameters,
    MemoryPressure,
    is_off=lambda written: any(is_zero(written.get(key)) for key in ("workers", "bytes", "percent")),
)
