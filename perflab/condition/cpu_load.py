"""`cpu_load`: stress-ng workers that each want a share of a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from perflab.condition import Condition, Trial, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.cpu_demand import CpuDemand, CpusWanted
from perflab.condition.evidence import allowed_cpus, require_cpus, require_processes
from perflab.condition.stress_ng import Load, LoadEvidence, StressNg, WorkersSeen, cpu_methods
from perflab.errors import BadInput
from perflab.host import Host
from perflab.parameters import Cpus, Percent
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph

# stress-ng works for a slice and sleeps for the rest of the period. Its default is 64 iterations of the method, several
# hundred milliseconds of matrixprod: so coarse that the load comes in bursts longer than the measured effects.
SLICE_MS = 10


@dataclass(frozen=True, kw_only=True)
class Promised:
    workers: int
    """Processes that load a CPU."""
    load_percent: float
    """Share of a CPU that each worker wants."""
    demand_cpus: CpusWanted
    """Demand of all workers, in CPUs."""
    cpus: tuple[int, ...]
    """CPUs that they may use."""
    method: str
    """Method of computation."""


@dataclass(frozen=True, kw_only=True)
class Achieved(CpuDemand, WorkersSeen):
    cpus_shared_with_workload: tuple[int, ...]
    """CPUs of the load that a process of the workload may use, too."""


@dataclass(frozen=True, kw_only=True)
class CpuLoadEvidence(LoadEvidence):
    promised: Promised
    achieved: Achieved
    note: str | None = None
    """Whether the load and the workload have no CPU in common."""


class CpuLoad(StressNg):
    """Each worker wants `load` percent of a CPU all the time."""

    name: ClassVar[str] = "cpu_load"
    evidence: ClassVar[type[LoadEvidence]] = CpuLoadEvidence
    stressor: ClassVar[str] = "cpu"

    workers: int = Field(
        default_factory=lambda: len(allowed_cpus()),
        ge=1,
        le=1024,
        description="processes that load a CPU (default: one per CPU that perflab may use)",
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
        description="method of computation: a --cpu-method of stress-ng",
    )
    cpus: Cpus = Field(
        default_factory=allowed_cpus,
        description="CPUs that the workers may use, e.g. 0,2-3 (default: all that perflab may use)",
    )

    @property
    def share(self) -> float:
        return self.load / 100

    @property
    def bound_to(self) -> tuple[int, ...]:
        return self.cpus

    @property
    def arguments(self) -> list[str]:
        load = ["--cpu-load", f"{self.load:.0f}", "--cpu-load-slice", str(SLICE_MS), "--cpu-method", self.method]
        return [*load, "--taskset", ",".join(map(str, self.cpus))]

    @property
    def promised(self) -> Promised:
        return Promised(
            workers=self.workers,
            load_percent=self.load,
            demand_cpus=self.workers * self.share,
            cpus=self.cpus,
            method=self.method,
        )

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        require_cpus(self.label, self.cpus)
        known = cpu_methods()
        if self.method not in known:
            raise BadInput(f"{self.label}: method {self.method!r} is not one of stress-ng's: {', '.join(known)}")

    def judge(self, load: Load, window: Window) -> tuple[Achieved, str | None]:
        use, weak = demand.judge(
            load.trial, self.label, load.threads, self.cpus, self.share, window, slice_s=SLICE_MS / 1000
        )
        shared = self._shared_with_workload(load.trial)
        return Achieved(**load.seen(window), **vars(use), cpus_shared_with_workload=shared), weak

    def beside(self, load: Load, achieved: Achieved) -> dict[str, Any]:
        shared = achieved.cpus_shared_with_workload
        return {} if shared else {"note": "the load and the workload have no CPU in common"}

    def _shared_with_workload(self, trial: Trial) -> tuple[int, ...]:
        """The CPUs of the load that some process of the workload may use, too."""
        everywhere = frozenset(allowed_cpus()) if trial.launch.cpus is None else trial.launch.cpus
        of_workload = (trial.launch.cpus_of.get(name, everywhere) for name in trial.processes)
        return tuple(sorted(frozenset(self.cpus) & frozenset().union(*of_workload)))


def words(given: Mapping[str, Any]) -> str:
    return f"{given['workers']} × {given['load']:g} % CPU load"


KIND: Kind[Condition] = Kind(
    "cpu_load",
    "stress-ng workers that each want a share of a CPU",
    CpuLoad,
    words=words,
    is_off=lambda written: is_zero(written.get("load")) or is_zero(written.get("workers")),
    gently=("workers=1,load=30",),
)
