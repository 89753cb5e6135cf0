"""`cpu_load`: stress-ng workers that want a share of a CPU each."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from pydantic import Field

from perflab.condition import Condition, Evidence, Trial, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.evidence import (
    allowed_cpus,
    catch_up,
    longest_gap_s,
    outcome,
    recent,
    require_cpus,
    require_processes,
    rounded,
    wait_until,
)
from perflab.condition.stress_ng import Load, cpu_methods
from perflab.errors import BadInput
from perflab.host import Host
from perflab.parameters import Cpus, Parameters, Percent
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph

# stress-ng works for a slice and sleeps for what is left of the period. Its own default is 64 iterations of the method,
# some hundred milliseconds of matrixprod: so coarse that the load comes in bursts longer than what is measured.
SLICE_MS = 10
# The load must be as promised for this long before the measured part begins.
SETTLED_S = 0.5


class CpuLoadParameters(Parameters):
    workers: int | None = Field(
        default=None, ge=1, le=1024, description="processes that load a CPU (default: one per CPU that perflab may use)"
    )
    load: Percent = Field(
        default=100.0,
        ge=1,
        le=100,
        multiple_of=1,
        description="share of a CPU that each worker wants, in whole percent",
    )
    method: str = Field(
        default="matrixprod",
        pattern=r"^[a-z0-9]+$",
        description="what the workers compute: a --cpu-method of stress-ng",
    )
    cpus: Cpus | None = Field(
        default=None, description="CPUs that the workers may use, e.g. 0,2-3 (default: all that perflab may use)"
    )


class CpuLoad(Condition):
    """Each worker wants `load` percent of a CPU, all the time."""

    name: ClassVar[str] = "cpu_load"

    def __init__(self, parameters: CpuLoadParameters) -> None:
        self.label = self.name
        self.cpus = allowed_cpus() if parameters.cpus is None else parameters.cpus
        self.workers = len(allowed_cpus()) if parameters.workers is None else parameters.workers
        self.load_percent = parameters.load
        self.method = parameters.method
        self._load: Load | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "workers": self.workers,
            "load": self.load_percent,
            "method": self.method,
            "cpus": list(self.cpus),
        }

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        require_cpus(self.label, self.cpus)
        known = cpu_methods()
        if self.method not in known:
            raise BadInput(f"{self.label}: method {self.method!r} is not one of stress-ng's: {', '.join(known)}")

    def apply(self, trial: Trial) -> None:
        self._load = Load(
            trial,
            self.label,
            "cpu",
            self.workers,
            [
                *("--cpu-load", f"{self.load_percent:.0f}"),
                *("--cpu-load-slice", str(SLICE_MS)),
                *("--cpu-method", self.method),
                *("--taskset", ",".join(map(str, self.cpus))),
            ],
        )

    def settle(self, trial: Trial) -> None:
        load = self._started()
        load.find_workers(trial)
        since_ns = time.monotonic_ns()

        def problem() -> str | None:
            if (reason := load.lost()) is not None:
                return reason
            window = recent(trial, since_ns, SETTLED_S)
            if window is None:
                return "the monitor has not seen the load yet"
            return demand.judge(trial, self.label, load.threads, self.cpus, self._share, window)[1]

        wait_until(trial, problem)
        load.note_scheduling(trial)

    def verify(self, trial: Trial, window: Window) -> Evidence:
        load = self._started()
        late = catch_up(trial, window, [self.label])
        achieved, weak = demand.judge(trial, self.label, load.threads, self.cpus, self._share, window)
        reason = (
            load.lost()
            or demand.moved(trial, self.label, load.threads, self.cpus, window)
            or load.rescheduled(trial, window)
            or late
            or weak
        )
        shared = _shared_with_workload(trial, self.cpus)
        return outcome(
            {
                "workers": self.workers,
                "load_percent": self.load_percent,
                "demand_cpus": self.workers * self._share,
                "cpus": list(self.cpus),
                "method": self.method,
            },
            {
                "workers_alive": load.alive,
                "cpus_shared_with_workload": shared,
                "monitor_gap_s": rounded(longest_gap_s(trial, [self.label], window)),
                **achieved,
            },
            reason,
            note=None if shared else "the load and the workload have no CPU in common",
            **load.document(),
        )

    def remove(self, trial: Trial) -> None:
        if self._load is not None:
            self._load.stop()
            self._load = None

    @property
    def _share(self) -> float:
        return self.load_percent / 100

    def _started(self) -> Load:
        assert self._load is not None, "apply comes first"
        return self._load


def _shared_with_workload(trial: Trial, cpus: tuple[int, ...]) -> list[int]:
    """The CPUs of a load that some process of the workload may use, too."""
    everywhere = frozenset(allowed_cpus()) if trial.launch.cpus is None else trial.launch.cpus
    of_workload = (trial.launch.cpus_of.get(name, everywhere) for name in trial.processes)
    return sorted(frozenset(cpus) & frozenset().union(*of_workload))


KIND: Kind[Condition] = Kind(
    "cpu_load",
    "stress-ng workers that want a share of a CPU each",
    CpuLoadParameters,
    CpuLoad,
    is_off=lambda written: is_zero(written.get("load")) or is_zero(written.get("workers")),
)
