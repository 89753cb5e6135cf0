"""Observers: what records beside the workload's own measurement. Each is one module and one entry of REGISTRY."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perflab.condition import Trial, split
from perflab.errors import BadInput
from perflab.host import Host


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


@dataclass(frozen=True)
class Kind:
    """A kind of observer: its name, one line about it, and how its parameters make one. `create` raises BadInput."""

    name: str
    summary: str
    create: Callable[[Mapping[str, str]], Observer]


REGISTRY: dict[str, Kind] = {}


def parse(words: list[str]) -> list[Observer]:
    """The observers of "NAME[:key=value,...]". Raises BadInput."""
    observers = []
    for word in words:
        name, parameters = split(word, "--observer")
        if name not in REGISTRY:
            known = ", ".join(sorted(REGISTRY)) or "none in this version"
            raise BadInput(f"no observer named {name!r}; there are: {known}")
        observers.append(REGISTRY[name].create(parameters))
    return observers
