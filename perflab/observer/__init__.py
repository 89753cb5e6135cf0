"""Observers: what records beside the workload's own measurement. Each is one module and one entry of REGISTRY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perflab import registry
from perflab.condition import Trial
from perflab.host import Host
from perflab.registry import Kind


@dataclass(frozen=True)
class Artifact:
    """A file that an observer left in the trial's directory."""

    path: Path
    kind: str


class Observer(Protocol):
    """Something that records during a trial."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    def check(self, host: Host) -> None:
        """Before anything starts: can it be done here? Raises Unavailable or BadInput."""
        ...

    def start(self, trial: Trial) -> None: ...

    def stop(self, trial: Trial) -> list[Artifact]: ...


REGISTRY: dict[str, Kind[Observer]] = {}


def parse(words: Sequence[str]) -> list[Observer]:
    """The observers of "NAME[:key=value,...]". Raises BadInput."""
    return registry.parse(words, "observer", REGISTRY)
