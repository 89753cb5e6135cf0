"""`tracing`: every event of the workload's processes and of the scheduler, as a trace (docs/recording.md).

The session begins before the processes start, because a trace without their initialisation events has no names, and
ends after they have ended. perflab-node emits `ros2:*` only for this observer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from perflab import native
from perflab.condition import Trial
from perflab.errors import NotAsExpected, Unavailable
from perflab.host import Host
from perflab.native import Native
from perflab.observer import Artifact, Observation, Observer
from perflab.parameters import Bytes, Names, Switch
from perflab.registry import Kind
from perflab.tracer import AUTO, NONE, TRACEPOINTS, Recording, RecordingSettings, check, has_tracepoints, node_setting
from perflab.tracer.lttng import UserSpaceSettings
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.results import trial as results

FOLDER = "trace"
ARTIFACT = "trace"

_DEFAULT = UserSpaceSettings()


class Tracing(Observer):
    """Writes the folder trace/ of the trial."""

    name: ClassVar[str] = "tracing"
    on_virtual: ClassVar[str | None] = "virtual trials have nothing to trace"

    scheduler: Literal["auto", "perf_event", "ebpf", "lttng", "none"] = Field(
        default="auto",
        description="source of scheduler events: LTTng's kernel modules, ebpf or perf_event; auto: the first available",
    )
    processes: Literal["tree", "system"] = Field(
        default="tree",
        description="scheduler events of perflab's descendants and of threads that delayed them, or of all threads",
    )
    locks: Switch = Field(
        default=False,
        description="record where threads wait for locks and which threads hold them, with ebpf; this slows every "
        "system call of the machine",
    )
    trials: Literal["extra", "all"] = Field(
        default="extra", description="extra: one more trial per treatment, excluded from statistics; all: every trial"
    )
    events: Names = Field(
        default=_DEFAULT.events,
        description=f"user-space events, as LTTng patterns (default: {', '.join(_DEFAULT.events)})",
    )
    contexts: Names = Field(
        default=_DEFAULT.contexts,
        description="LTTng contexts (default: vpid, vtid); procname makes a third of the file",
    )
    buffer: Bytes = Field(default=_DEFAULT.buffer_bytes, gt=0, description="buffer size for user-space events, per CPU")
    scheduler_buffer: Bytes = Field(default=4 << 20, gt=0, description="buffer size for scheduler events, per CPU")
    snapshot: Switch = Field(
        default=False, description="flight recorder: the buffers are overwritten, and written at the end"
    )

    paths: str | None = Field(
        default=None,
        description="named paths with objectives to evaluate in each trace: a paths file, or a catalog name; "
        "default: those in the catalog under the workload's name",
    )

    @property
    def extra(self) -> bool:
        return self.trials == "extra"

    @property
    def settings(self) -> RecordingSettings:
        return RecordingSettings(
            user_space=UserSpaceSettings(
                events=self.events, contexts=self.contexts, buffer_bytes=self.buffer, snapshot=self.snapshot
            ),
            scheduler=self.scheduler,
            scheduler_buffer_bytes=self.scheduler_buffer,
            whole_system=self.processes == "system",
            flight_recorder_bytes=self.scheduler_buffer if self.snapshot else None,
            locks=self.locks,
        )

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        if self.paths is not None:
            from perflab.trace import paths_named

            paths_named.find(self.paths, f"{self.name}: paths")
        try:
            check(self.settings, native.find())
        except Unavailable as error:
            without = "; or measure without messages, with --tracing off" if runtime == "command" else ""
            raise Unavailable(f"{error}{without}") from error
        if not has_tracepoints(runtime, native.find()):
            raise Unavailable(
                f"{self.name}: {TRACEPOINTS} is not in {native.find().folder}: install LTTng's headers with "
                "`apt install liblttng-ust-dev` and build perflab again with `make`"
            )

    def possible(self, host: Host, runtime: str) -> tuple[Self | None, str | None]:
        """Without access to the scheduler's events, only user space."""
        found, missing = super().possible(host, runtime)
        if found is not None or self.scheduler != AUTO:
            return found, missing
        user_space = self.model_copy(update={"scheduler": NONE, "locks": False})
        rest, more = super(Tracing, user_space).possible(host, runtime)
        return rest, missing if rest is not None else more

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        configuration["tracing"] = node_setting(str(configuration.get("runtime")), native)

    def begin(self, trial: Trial) -> Observation:
        recording = Recording(trial.directory / FOLDER, self.settings, start=trial.start, native=trial.native)
        # Everything in a trial descends from perflab: the workload, the conditions, and other observers.
        recording.begin([os.getpid()])
        trial.launch.environment.update(recording.environment)
        return Traced(recording)

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        artifact(ARTIFACT)
        why, received = trial.why, trial.totals.received
        if why is None:
            raise NotAsExpected("the trace does not show why messages were late")
        if why.messages != received:
            raise NotAsExpected(f"{why.messages} messages in the trace, but {received} were received")
        return f"{format_count(why.messages)} messages in the trace, as many as were received"


class Traced(Observation):
    """One trial, recorded from its beginning."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def stop(self) -> list[Artifact]:
        self._recording.end()
        return [Artifact(self._recording.directory, ARTIFACT)]


KIND: Kind[Observer] = Kind(
    "tracing",
    "ros2:* events of the workload by LTTng, and the scheduler's: the input of `perflab trace`",
    Tracing,
    gently=("trials=all",),
)
