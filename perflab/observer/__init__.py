"""Observers: what records beside the workload's own measurement. Each is one module and one entry of kinds.REGISTRY."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from perflab.condition import Trial
from perflab.host import Host


@dataclass(frozen=True)
class Artifact:
    """A file that an observer left in the trial's directory."""

    path: Path
    kind: str


class Observer(ABC):
    """Something that records during a trial. One object serves all trials of one treatment, one after the other.

    The order within a trial: prepare - the workload starts and is matched - start - the measured part - stop.
    """

    name: ClassVar[str]
    label: str  # the name, and a number where there are several
    extra: bool = False  # disturbs so much that it gets trials of its own, which enter no statistics

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """As the user gave them with every default filled in; JSON."""

    @abstractmethod
    def check(self, host: Host, runtime: str) -> None:
        """Before anything starts: can it be done here, on this runtime? Raises Unavailable or BadInput."""

    def configure(self, configuration: dict[str, Any]) -> None:
        """Adds what perflab-node itself shall record to a node's configuration (docs/formats.md, section 2)."""

    def prepare(self, trial: Trial) -> None:
        """Before the processes start, e.g. to change `trial.launch`."""

    def start(self, trial: Trial) -> None:
        """All processes run and are matched."""

    def stop(self, trial: Trial) -> list[Artifact]:
        """After the measured part; always called, idempotent."""
        return []
