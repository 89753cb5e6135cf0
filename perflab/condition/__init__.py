"""Conditions: what disturbs a workload. Each is one module and one entry of REGISTRY.

A condition is applied, verified from the kernel or the receiver, and removed; what it proved is its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perflab.errors import BadInput
from perflab.host import Host
from perflab.workload import Workload

Evidence = dict[str, Any]


class NotInEffect(Exception):
    """A condition did not take effect, or not as asked: the trial is invalid. One line."""


class Trial(Protocol):
    """What a condition or an observer may know of the trial it acts on."""

    @property
    def directory(self) -> Path: ...

    @property
    def domain(self) -> int | None: ...

    @property
    def pids(self) -> Mapping[str, int]: ...


class Condition(Protocol):
    """A controlled disturbance."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def when(self) -> str:
        """ "before" or "after" the workload starts."""
        ...

    def check(self, host: Host, workload: Workload) -> None:
        """Before anything starts: can it be done here? Raises Unavailable or BadInput."""
        ...

    def apply(self, trial: Trial) -> None: ...

    def verify(self, trial: Trial) -> Evidence:
        """Proof that it took effect, from the kernel or the receiver, never the request echoed. Raises NotInEffect."""
        ...

    def remove(self, trial: Trial) -> None:
        """Always called, idempotent."""
        ...


@dataclass(frozen=True)
class Kind:
    """A kind of condition: its name, one line about it, and how its parameters make one. `create` raises BadInput."""

    name: str
    summary: str
    create: Callable[[Mapping[str, str]], Condition]


REGISTRY: dict[str, Kind] = {}


def parse(words: list[str]) -> list[Condition]:
    """The conditions of "NAME[:key=value,...]". Raises BadInput."""
    conditions = []
    for word in words:
        name, parameters = split(word, "--condition")
        if name not in REGISTRY:
            known = ", ".join(sorted(REGISTRY)) or "none in this version"
            raise BadInput(f"no condition named {name!r}; there are: {known}")
        conditions.append(REGISTRY[name].create(parameters))
    return conditions


def split(word: str, option: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of "NAME[:key=value,...]". Raises BadInput, which names `option`."""
    name, colon, rest = word.partition(":")
    parameters: dict[str, str] = {}
    for pair in rest.split(",") if colon else []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"{option} {word!r} is not NAME:key=value,...; {pair!r} has no value")
        parameters[key.strip()] = value.strip()
    return name, parameters
