"""Observers, which record beside the workload's own measurement. Each is one module with a KIND."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from perflab.condition import Trial
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.native import Native
from perflab.parameters import Switch
from perflab.specification import Specification

if TYPE_CHECKING:
    from perflab.results import trial as results
    from perflab.statistics.histogram import Histogram


@dataclass(frozen=True)
class Artifact:
    """A file that an observer left in the trial's directory."""

    path: Path
    kind: str


class Observation:
    """An observer in one trial. This one does nothing: perflab-node itself records."""

    def start(self) -> None:
        """Called when all processes run and are matched."""

    def stop(self) -> list[Artifact]:
        """Called once after the measured part, in any case."""
        return []


class Observer(Specification, ABC):
    """A recorder for trials, as a value: any number of trials may have it.

    The order within a trial: begin - the workload starts and is matched - start - the measured part - stop.
    """

    required: Switch = Field(
        default=True,
        description="off: run without what this machine does not allow, and report what is missing",
    )

    on_virtual: ClassVar[str | None] = None  # why it cannot run in virtual time
    on_command: ClassVar[str | None] = None  # why it cannot run with a command

    @property
    def extra(self) -> bool:
        """Whether it disturbs so much that it gets its own trials, which are excluded from statistics."""
        return False

    def check(self, host: Host, runtime: str) -> None:
        """Checks, before anything starts, whether it can run here, on this runtime. Raises Unavailable or BadInput."""
        if runtime == "virtual" and self.on_virtual is not None:
            raise Unavailable(f"{self.name}: {self.on_virtual}; use a real middleware")
        if runtime == "command" and self.on_command is not None:
            raise BadInput(f"{self.name}: {self.on_command}, but this workload is a command")

    def possible(self, host: Host, runtime: str) -> tuple[Self | None, str | None]:
        """The part of it that can run here, and what is missing for the rest. Raises BadInput."""
        try:
            self.check(host, runtime)
        except Unavailable as error:
            return None, str(error)
        return self, None

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        """Adds what perflab-node itself must record to a node's configuration (docs/formats.md, section 2)."""

    def begin(self, trial: Trial) -> Observation:
        """Called before the processes start, e.g. to change `trial.launch`. Raises Unavailable, leaving nothing
        behind."""
        del trial
        return Observation()

    @classmethod
    def histograms(cls, directory: Path, checkpoints: Sequence[Mapping[str, Any]]) -> Mapping[str, Histogram]:
        """The times that it recorded in a trial, by the names of their metrics, from the trial's folder and the last
        checkpoints of its processes; without missing ones. Raises HistogramError, or one of DAMAGE."""
        del directory, checkpoints
        return {}

    @classmethod
    def remarks(cls, directory: Path, threads: Sequence[results.ThreadGroup]) -> Sequence[str]:
        """Remarks on what it recorded in a trial, from the trial's folder and its threads. Raises one of DAMAGE,
        BadInput, OSError."""
        del directory, threads
        return ()

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str | None:
        """A description of its records of a trial, for a smoke test; None if only the trial itself can be judged.

        `artifact` finds one of its files, by kind. Raises NotAsExpected, also if something is missing.
        """
        del trial, artifact
        return None
