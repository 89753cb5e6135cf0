"""`cpu_profile`: where the processes of the workload spend CPU time, recorded by perf.

perf begins when the workload is matched and ends when its processes have ended; then `perflab profile --show` can read
the trial's folder `profile` (docs/profiling.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from perflab.condition import Trial
from perflab.errors import BadInput, NotAsExpected, Unavailable
from perflab.host import Host
from perflab.observer import Artifact, Observation, Observer
from perflab.parameters import Bytes, Switch
from perflab.profile import (
    DEFAULT_CALL_GRAPH,
    DEFAULT_FREQUENCY_HZ,
    DEFAULT_STACK_BYTES,
    FILE,
    HIGHEST_FREQUENCY_HZ,
    LARGEST_STACK_BYTES,
    CallGraph,
)
from perflab.registry import Kind
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.profile.families import Families
    from perflab.profile.record import Attached, Plan
    from perflab.results import trial as results

FOLDER = "profile"


class CpuProfile(Observer):
    """Leaves flame graphs, a table of families and perf.data in the trial's folder."""

    name: ClassVar[str] = "cpu_profile"
    on_virtual: ClassVar[str | None] = "virtual time cannot be sampled"

    frequency: int = Field(
        default=DEFAULT_FREQUENCY_HZ,
        ge=1,
        le=HIGHEST_FREQUENCY_HZ,
        description="samples per second and CPU (default: 999)",
    )
    call_graph: CallGraph = Field(
        default=DEFAULT_CALL_GRAPH, description="how stacks are unwound: dwarf, fp or lbr (default: dwarf)"
    )
    stack: Bytes = Field(
        default=DEFAULT_STACK_BYTES,
        validate_default=False,
        description="bytes of each stack to copy for dwarf, up to 65528 (default: 8KiB)",
    )
    trials: Literal["extra", "all"] = Field(
        default="extra",
        description="extra: in its own trials, which are excluded from statistics; all: in all trials (default: extra)",
    )
    system: Switch = Field(default=False, description="all processes on all CPUs (default: off)")
    keep_raw: Switch = Field(default=True, description="keep perf.data (default: on)")
    families: str = Field(default="", description="a file with your own rules for families (default: none)")

    @field_validator("stack")
    @classmethod
    def _as_perf_takes_it(cls, size: int) -> int:
        if not 0 < size <= LARGEST_STACK_BYTES or size % 8:
            raise ValueError(f"{size} bytes are not a multiple of 8 up to {LARGEST_STACK_BYTES}")
        return size

    @property
    def extra(self) -> bool:
        return self.trials == "extra"

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        try:
            self.rules()
            self.plan()
        except (BadInput, Unavailable) as error:
            raise type(error)(f"{self.name}: {error}") from error

    def plan(self) -> Plan:
        """Raises Unavailable, BadInput."""
        from perflab.profile.record import Plan, Settings

        return Plan.of(Settings(self.frequency, self.call_graph, self.stack, self.system))

    def rules(self) -> Families:
        """Raises BadInput."""
        from perflab.profile.families import load

        return load(Path(self.families) if self.families else None, "families")

    def begin(self, trial: Trial) -> Observation:
        return Sampled(self, trial)

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        from perflab.formats.json_file import read_json
        from perflab.profile import result

        samples = read_json(artifact(result.KIND))["quality"]["samples"]
        if not samples:
            raise NotAsExpected("no sample was taken")
        return f"{format_count(samples)} samples"


class Sampled(Observation):
    """The processes of one trial under perf."""

    def __init__(self, asked: CpuProfile, trial: Trial) -> None:
        self._asked = asked
        self._trial = trial
        self._plan = asked.plan()
        self._attached: Attached | None = None  # None until the workload runs

    def start(self) -> None:
        from perflab.profile.record import Attached

        trial, pids = self._trial, list(self._trial.processes.values())
        self._attached = Attached(trial.directory / FOLDER, self._plan, pids, trial.start, trial.native)
        self._attached.begin(trial.wait)

    def stop(self) -> list[Artifact]:
        from perflab.profile import record, result

        attached, keep_raw = self._attached, self._asked.keep_raw
        if attached is None or attached.began_ns is None:
            return []  # the trial ended before the workload ran
        attached.end()
        folder, rules = self._trial.directory / FOLDER, self._asked.rules()
        profile = result.analyse(folder, self._plan.perf, attached.recording, rules, keep_raw=keep_raw)
        pages = [folder / process.page for process in profile.processes if process.page is not None]
        raw = [folder / record.DATA] if keep_raw else []
        return [
            Artifact(folder / FILE, result.KIND),
            Artifact(folder / result.PARQUET, "table"),
            Artifact(folder / result.FOLDED, "stacks"),
            *(Artifact(path, "page") for path in (folder / result.INDEX, *pages)),
            *(Artifact(path, "perf_data") for path in raw),
        ]


KIND: Kind[Observer] = Kind(
    "cpu_profile", "flame graphs and shares of families of functions, by perf", CpuProfile, gently=("trials=all",)
)
