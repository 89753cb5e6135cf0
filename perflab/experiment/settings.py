"""What the user asked for, checked and with every default filled in."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perflab.condition import Condition
from perflab.experiment.scheduling import ThreadRequest
from perflab.experiment.variant import Variant
from perflab.observer import Observer
from perflab.units import NS_PER_S
from perflab.workload import Workload

FIGURES = ("dispatch", "work")  # measured where asked; the others always are
CHECKPOINT_NS = 5 * NS_PER_S


@dataclass(frozen=True)
class Thresholds:
    """irobot_benchmark's: late is over the smaller of a percentage of the period and an absolute time."""

    late_percent: float = 20.0
    late_ns: int = 5_000_000
    too_late_percent: float = 100.0
    too_late_ns: int = 50_000_000


@dataclass(frozen=True)
class Limits:
    """How long perflab waits for a node. All bounds, none of them part of a measurement."""

    created_ns: int = 60 * NS_PER_S
    silence_ns: int = 30 * NS_PER_S
    done_ns: int = 30 * NS_PER_S
    farewell_ns: int = 5 * NS_PER_S
    drain_quiet_ns: int = NS_PER_S
    drain_limit_ns: int = 10 * NS_PER_S


@dataclass(frozen=True)
class Settings:
    """The settings of every trial of a run."""

    duration_ns: int
    warmup_ns: int = 0
    sampling_ns: int = NS_PER_S // 2
    checkpoint_ns: int = CHECKPOINT_NS
    discovery_timeout_ns: int = 30 * NS_PER_S
    measure: tuple[str, ...] = ()
    threads: tuple[ThreadRequest, ...] = ()
    lock_memory: bool | None = None  # None: as the graph says
    name_threads: bool = True
    network: str = "lo"
    seed: int = 1
    thresholds: Thresholds = field(default_factory=Thresholds)
    limits: Limits = field(default_factory=Limits)

    def document(self) -> dict[str, Any]:
        """As the manifest keeps them."""
        return asdict(self)


@dataclass(frozen=True)
class Experiment:
    """Everything that a run will do."""

    name: str
    workload: Workload
    variants: tuple[Variant, ...]
    conditions: tuple[Condition, ...]
    observers: tuple[Observer, ...]
    repetitions: int
    settings: Settings
    output: Path | None
    command_line: tuple[str, ...]

    def order(self) -> list[tuple[int, Variant]]:
        """(repetition from 1, variant) of every trial; interleaved, so that drifts of the machine meet all alike."""
        return [(n, variant) for n in range(1, self.repetitions + 1) for variant in self.variants]
