"""An exporter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from perflab.export import Exporter, Written
from perflab.option import Option
from perflab.parameters import Parameters
from perflab.registry import Kind
from perflab.results.run import RunData, TrialTables


class ListParameters(Parameters):
    bullet: Annotated[str, Option()] = Field("-", description="What begins a line.")


class ShoppingList(Exporter):
    def __init__(self, asked: ListParameters) -> None:
        self._asked = asked

    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "list.txt"
        path.write_text(f"{self._asked.bullet} {trial.edges['received'].sum()} messages\n")
        return Written([str(path)])


KIND: Kind[Exporter] = Kind("shopping_list", "what to buy", ListParameters, ShoppingList)
