"""`cpu_load`: stress-ng workers that want a share of a CPU each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from perflab.condition import Condition, Evidence, Trial, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.cpu_demand import CpuDemand, CpusWanted
from perflab.condition.evidence import allowed_cpus, require_cpus, require_processes
from perflab.condition.stress_ng import Load, LoadEvidence, WorkersSeen, cpu_methods
from perflab.errors import BadInput
from perflab.host import Host
from perflab.parameters import Cpus, Percent
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph

# stress-ng works for a slice and sleeps for what is left of the period. Its own default is 64 iterations of the method,
# some hundred milliseconds of matrixprod: so coarse that the load comes in bursts longer than what is measured.
SLICE_MS = 10


@dataclass(frozen=True, kw_only=True)
class Promised:
    workers: int
    """Processes that load a CPU."""
    load_percent: float
    """Share of a CPU that each of them wants."""
    demand_cpus: CpusWanted
    """What they want together, in CPUs."""
    cpus: tuple[int, ...]
    """CPUs that they may use."""
    method: str
    """What they compute."""


@dataclass(frozen=True, kw_only=True)
class Achieved(CpuDemand, WorkersSeen):
    cpus_shared_with_workload: tuple[int, ...]
    """CPUs of the load that a process of the workload may use, too."""


@dataclass(frozen=True, kw_only=True)
class CpuLoadEvidence(LoadEvidence):
    promised: Promised
    achieved: Achieved
    note: str | None = None
    """That the load and the workload have no CPU in common."""


class CpuLoad(Condition):
    """Each worker wants `load` percent of a CPU, all the time."""

    name: ClassVar[str] = "cpu_load"
    evidence: ClassVar[type[Evidence]] = CpuLoadEvidence

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
        description="what the workers compute: a --cpu-method of stress-ng",
    )
    cpus: Cpus = Field(
        default_factory=allowed_cpus,
        description="CPUs that the workers may use, e.g. 0,2-3 (default: all that perflab may use)",
    )

    @property
    def share(self) -> float:
        return self.load / 100

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        require_cpus(self.label, self.cpus)
        known = cpu_methods()
        if self.method not in known:
            raise BadInput(f"{self.label}: method {self.method!r} is not one of stress-ng's: {', '.join(known)}")

    def begin(self, trial: Trial) -> CpuWorkers:
        return CpuWorkers(self, trial)


class CpuWorkers(Load):
    """Those of one trial."""

    def __init__(self, asked: CpuLoad, trial: Trial) -> None:
        self.asked, self.cpus = asked, asked.cpus
        super().__init__(
            trial,
            asked.label,
            "cpu",
            asked.workers,
            [
                *("--cpu-load", f"{asked.load:.0f}"),
                *("--cpu-load-slice", str(SLICE_MS)),
                *("--cpu-method", asked.method),
                *("--taskset", ",".join(map(str, asked.cpus))),
            ],
        )

    def judge(self, window: Window) -> tuple[Achieved, str | None]:
        use, weak = demand.judge(self.trial, self.label, self.threads, self.asked.cpus, self.asked.share, window)
        shared = self._shared_with_workload()
        return Achieved(**self.seen(window), **vars(use), cpus_shared_with_workload=shared), weak

    def evidence(self, achieved: Achieved, reason: str | None) -> CpuLoadEvidence:
        asked = self.asked
        promised = Promised(
            workers=asked.workers,
            load_percent=asked.load,
            demand_cpus=asked.workers * asked.share,
            cpus=asked.cpus,
            method=asked.method,
        )
        apart = None if achieved.cpus_shared_with_workload else "the load and the workload have no CPU in common"
        return CpuLoadEvidence(promised=promised, achieved=achieved, reason=reason, note=apart)

    def _shared_with_workload(self) -> tuple[int, ...]:
        """The CPUs of the load that some process of the workload may use, too."""
        launch = self.trial.launch
        everywhere = frozenset(allowed_cpus()) if launch.cpus is None else launch.cpus
        of_workload = (launch.cpus_of.get(name, everywhere) for name in self.trial.processes)
        return tuple(sorted(frozenset(self.asked.cpus) & frozenset().union(*of_workload)))


def words(given: Mapping[str, Any]) -> str:
    return f"{given['workers']} × {given['load']:g} % CPU load"


KIND: Kind[Condition] = Kind(
    "cpu_load",
    "stress-ng workers that want a share of a CPU each",
    CpuLoad,
    words=words,
    is_off=lambda written: is_zero(written.get("load")) or is_zero(written.get("workers")),
    gently=("workers=1,load=30",),
)
