"""A condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from perflab.condition import Applied, Condition, Evidence, Shown, Trial, Window
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph

NAME = "solar_flare"


@dataclass(frozen=True, kw_only=True)
class Strength:
    strength: Annotated[int, Shown("strength of the flare")]
    """From 1 to 9."""


@dataclass(frozen=True, kw_only=True)
class FlareEvidence(Evidence):
    promised: Strength
    achieved: Strength


class SolarFlare(Condition):
    name: ClassVar[str] = NAME
    evidence: ClassVar[type[Evidence]] = FlareEvidence

    strength: int = Field(1, ge=1, le=9, description="how strong it is")

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        pass

    def begin(self, trial: Trial) -> Applied:
        return Flare(self)


class Flare(Applied):
    def __init__(self, asked: SolarFlare) -> None:
        self._strength = Strength(strength=asked.strength)

    def verify(self, window: Window) -> Evidence:
        return FlareEvidence(promised=self._strength, achieved=self._strength)


KIND: Kind[Condition] = Kind(
    NAME, "disturbs nothing, and says so", SolarFlare, is_off=lambda given: is_zero(given["strength"])
)
