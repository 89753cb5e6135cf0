"""Exporters: the results of a run in the files of other programs. Each is a module with a KIND (perflab/plugins.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from perflab.option import Option
from perflab.parameters import Parameters
from perflab.plugins import Registry
from perflab.registry import Kind

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables


class AccountingParameters(Parameters):
    """Of formats of programs that count otherwise than perflab."""

    accounting: Annotated[Literal["original", "corrected"], Option()] = Field(
        "corrected", description="original: as the other program counts; corrected: perflab's figures."
    )


@dataclass(frozen=True)
class Written:
    """What was written of a trial: the files, what `--json` says of them, what a person reads below them."""

    files: list[str]
    document: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


class Exporter(ABC):
    """Writes trials. The fields of its kind's model are options of `perflab export` where they have an `Option`."""

    def check(self, data: RunData) -> None:
        """Whether this run can be written in this format. Raises BadInput."""

    def takes(self, trial: TrialTables) -> bool:
        """Whether there is something to write of this trial."""
        return True

    def note(self, trial: TrialTables) -> str | None:
        """What a reader of the files must know beside them."""
        return None

    @abstractmethod
    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        """Writes a trial into a directory of its own, which it makes. Raises OSError."""

    def write_together(self, data: RunData, numbers: Container[int], directory: Path) -> list[str]:
        """Writes what trials of these numbers have in common, those that recorded nothing too, into the directory that
        holds them all; the files. Raises OSError."""
        return []


REGISTRY: Registry[Kind[Exporter]] = Registry("exporter", "perflab.export", Kind)
