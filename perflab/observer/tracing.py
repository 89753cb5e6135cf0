"""`tracing`: what the processes of the workload and the scheduler did, event by event, as a trace (docs/recording.md).

The session begins before the processes start, because a trace without their events of initialisation has no names, and
ends after they have ended. perflab-node emits `ros2:*` only where this observer asks for it.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

from pydantic import Field

from perflab import native
from perflab.condition import Trial
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.observer import Artifact, Observer
from perflab.parameters import Bytes, Names, Parameters, Switch
from perflab.registry import Kind
from perflab.tracer import TRACEPOINTS, Recording, RecordingSettings, check, has_tracepoints, node_setting
from perflab.tracer.lttng import UserSpaceSettings

FOLDER = "trace"
ARTIFACT = "trace"

_DEFAULT = UserSpaceSettings()


class TracingParameters(Parameters):
    scheduler: Literal["auto", "perf_event", "ebpf", "lttng", "none"] = Field(
        default="auto",
        description="scheduler events by LTTng's kernel modules, ebpf or perf_event; auto: the first that is there",
    )
    processes: Literal["tree", "system"] = Field(
        default="tree", description="scheduler events of what perflab started and of who stood in its way, or of all"
    )
    trials: Literal["extra", "all"] = Field(
        default="extra", description="extra: one more trial per treatment, in no statistics; all: every trial"
    )
    events: Names = Field(
        default=_DEFAULT.events,
        description=f"of user space, as LTTng's patterns (default: {', '.join(_DEFAULT.events)})",
    )
    contexts: Names = Field(
        default=_DEFAULT.contexts, description="LTTng's (default: vpid, vtid); procname is a third of the file"
    )
    buffer: Bytes = Field(default=_DEFAULT.buffer_bytes, gt=0, description="of user space, per CPU")
    scheduler_buffer: Bytes = Field(default=4 << 20, gt=0, description="of scheduler events, per CPU")
    snapshot: Switch = Field(
        default=False, description="flight recorder: the buffers are overwritten, and written at the end"
    )


class Tracing(Observer):
    """Writes the folder trace/ of the trial."""

    name: ClassVar[str] = "tracing"

    def __init__(self, parameters: TracingParameters) -> None:
        self.label = self.name
        self.extra = parameters.trials == "extra"
        self._parameters = parameters
        self._recording: Recording | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self._parameters.model_dump(mode="json")

    @property
    def settings(self) -> RecordingSettings:
        given = self._parameters
        return RecordingSettings(
            user_space=UserSpaceSettings(
                events=given.events, contexts=given.contexts, buffer_bytes=given.buffer, snapshot=given.snapshot
            ),
            scheduler=given.scheduler,
            scheduler_buffer_bytes=given.scheduler_buffer,
            whole_system=given.processes == "system",
            flight_recorder_bytes=given.scheduler_buffer if given.snapshot else None,
        )

    def check(self, host: Host, runtime: str) -> None:
        if runtime == "virtual":
            raise Unavailable(f"{self.label}: on virtual there is nothing to trace; use a real middleware")
        check(self.settings, native.find())
        if not has_tracepoints(runtime, native.find()):
            raise Unavailable(
                f"{self.label}: {TRACEPOINTS} is not in {native.find().folder}: install LTTng's headers with "
                "`apt install liblttng-ust-dev` and build perflab again with `make`"
            )

    def configure(self, configuration: dict[str, Any]) -> None:
        configuration["tracing"] = node_setting(str(configuration.get("runtime")), native.find())

    def prepare(self, trial: Trial) -> None:
        directory = trial.directory / FOLDER
        self._recording = Recording(directory, self.settings, start=trial.start, native=native.find())
        # Everything of a trial descends from us: the workload, the conditions, and other observers.
        self._recording.begin([os.getpid()])
        trial.launch.environment.update(self._recording.environment)

    def stop(self, trial: Trial) -> list[Artifact]:
        if self._recording is None:
            return []
        recording, self._recording = self._recording, None
        recording.end()
        return [Artifact(recording.directory, ARTIFACT)]


KIND: Kind[Observer] = Kind(
    "tracing",
    "ros2:* events of the workload by LTTng, and the scheduler's: what `perflab trace` reads",
    TracingParameters,
    Tracing,
)
