"""An observer."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from perflab.condition import Trial
from perflab.observer import Artifact, Observation, Observer
from perflab.registry import Kind


class Notebook(Observer):
    name: ClassVar[str] = "notebook"

    colour: Literal["blue", "red"] = Field("blue", description="of the ink")

    def begin(self, trial: Trial) -> Observation:
        return Writing(trial.directory / "notebook.txt", self.colour)


class Writing(Observation):
    def __init__(self, path: Path, colour: str) -> None:
        self._path, self._colour = path, colour

    def stop(self) -> list[Artifact]:
        self._path.write_text(self._colour)
        return [Artifact(self._path, "note")]


KIND: Kind[Observer] = Kind("notebook", "writes a word down", Notebook)
