"""`cpu_profile`: where the processor's time goes in the processes of the workload, by perf.

perf begins when the workload is matched and ends when its processes have ended; the folder `profile` of the trial then
is what `perflab profile --show` reads (docs/profiling.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from perflab import native
from perflab.condition import Trial
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.observer import Artifact, Observer
from perflab.parameters import Bytes, Parameters, Switch
from perflab.profile import families, record, result
from perflab.profile.record import Attached, Plan, Settings
from perflab.registry import Kind

FOLDER = "profile"


class CpuProfileParameters(Parameters):
    frequency: int = Field(
        default=record.DEFAULT_FREQUENCY_HZ,
        ge=1,
        le=record.HIGHEST_FREQUENCY_HZ,
        description="samples per second and CPU (default: 999)",
    )
    call_graph: Literal["dwarf", "fp", "lbr"] = Field(
        default=record.DEFAULT_CALL_GRAPH, description="how stacks are found: dwarf, fp or lbr (default: dwarf)"
    )
    stack: Bytes = Field(
        default=record.DEFAULT_STACK_BYTES,
        validate_default=False,
        description="how much of each stack is copied for dwarf, up to 65528 (default: 8KiB)",
    )
    trials: Literal["extra", "all"] = Field(
        default="extra",
        description="extra: in trials of its own, which enter no statistics; all: in all trials (default: extra)",
    )
    system: Switch = Field(default=False, description="all processes on all CPUs (default: off)")
    keep_raw: Switch = Field(default=True, description="keep perf.data (default: on)")
    families: str = Field(default="", description="a file with rules of yours for families (default: none)")

    @field_validator("stack")
    @classmethod
    def _as_perf_takes_it(cls, size: int) -> int:
        if not 0 < size <= record.LARGEST_STACK_BYTES or size % 8:
            raise ValueError(f"{size} bytes are not a multiple of 8 up to {record.LARGEST_STACK_BYTES}")
        return size


class CpuProfile(Observer):
    """Leaves flame graphs, a table of families and perf.data in the trial's folder."""

    name: ClassVar[str] = "cpu_profile"

    def __init__(self, parameters: CpuProfileParameters) -> None:
        self.label = self.name
        self.extra = parameters.trials == "extra"
        self._parameters = parameters
        self._settings = Settings(parameters.frequency, parameters.call_graph, parameters.stack, parameters.system)
        self._plan: Plan | None = None
        self._attached: Attached | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self._parameters.model_dump(mode="json")

    def check(self, host: Host, runtime: str) -> None:
        if runtime == "virtual":
            raise Unavailable(f"{self.label}: on virtual no time passes that could be sampled; use a real middleware")
        try:
            self._rules()
            self._plan = Plan.of(self._settings)
        except (BadInput, Unavailable) as error:
            raise type(error)(f"{self.label}: {error}") from error

    def start(self, trial: Trial) -> None:
        self._plan = self._plan or Plan.of(self._settings)
        pids = list(trial.processes.values())
        self._attached = Attached(trial.directory / FOLDER, self._plan, pids, trial.start, native.find())
        self._attached.begin(trial.wait)

    def stop(self, trial: Trial) -> list[Artifact]:
        attached, self._attached = self._attached, None
        if attached is None or self._plan is None or attached.began_ns is None:
            return []  # the trial ended before the workload was there
        attached.end()
        recorded = result.Recorded(
            None,
            list(trial.processes.values()),
            attached.began_ns,
            attached.ended_ns,
            attached.perf_cpu_ns,
            attached.notes,
        )
        folder = trial.directory / FOLDER
        document = result.analyse(folder, self._plan, recorded, self._rules(), keep_raw=self._parameters.keep_raw)
        pages = [folder / process["page"] for process in document["processes"] if process["page"] is not None]
        raw = [folder / record.DATA] if self._parameters.keep_raw else []
        return [
            Artifact(folder / result.FILE, result.KIND),
            Artifact(folder / result.PARQUET, "table"),
            Artifact(folder / result.FOLDED, "stacks"),
            *(Artifact(path, "page") for path in (folder / result.INDEX, *pages)),
            *(Artifact(path, "perf_data") for path in raw),
        ]

    def _rules(self) -> families.Families:
        return families.load(Path(self._parameters.families) if self._parameters.families else None, "families")


KIND: Kind[Observer] = Kind(
    "cpu_profile", "flame graphs and shares of families of functions, by perf", CpuProfileParameters, CpuProfile
)
