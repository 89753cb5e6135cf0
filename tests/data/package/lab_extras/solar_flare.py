"""A condition."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from perflab.condition import Applied, Condition, Evidence, Trial, Window
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph

NAME = "solar_flare"


class SolarFlare(Condition):
    name: ClassVar[str] = NAME

    strength: int = Field(1, ge=1, le=9, description="how strong it is")

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        pass

    def begin(self, trial: Trial) -> Applied:
        return Flare(self)


class Flare(Applied):
    def __init__(self, asked: SolarFlare) -> None:
        self._asked = asked.written

    def verify(self, window: Window) -> Evidence:
        return {"promised": self._asked, "achieved": self._asked, "in_effect": True, "reason": None}


KIND: Kind[Condition] = Kind(
    NAME, "disturbs nothing, and says so", SolarFlare, is_off=lambda given: is_zero(given["strength"])
)
