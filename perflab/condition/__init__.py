"""Conditions: what disturbs a workload. Each is one module and one entry of REGISTRY.

A condition is applied, verified from the kernel or the receiver, and removed; what it proved is its evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from perflab import registry
from perflab.host import Host
from perflab.registry import Kind
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


REGISTRY: dict[str, Kind[Condition]] = {}


def parse(words: Sequence[str]) -> list[Condition]:
    """The conditions of "NAME[:key=value,...]". Raises BadInput."""
    return registry.parse(words, "condition", REGISTRY)
