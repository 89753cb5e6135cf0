"""Exporters: the results of a run in the file formats of other programs. Each is a module with a KIND
(perflab/plugins.py)."""

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
    """For formats of programs that count differently from perflab."""

    accounting: Annotated[Literal["original", "corrected"], Option()] = Field(
        "corrected", description="original: as the other program counts; corrected: perflab's figures."
    )


@dataclass(frozen=True)
class Written:
    """The output for a trial: the files, their description for `--json`, and a remark for people."""

    files: list[str]
    document: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


class Exporter(ABC):
    """Writes trials. The fields of its kind's model are options of `perflab export` where they have an `Option`."""

    def check(self, data: RunData) -> None:
        """Checks that this run can be written in this format. Raises BadInput."""

    def takes(self, trial: TrialTables) -> bool:
        """Whether this trial has data to write."""
        return True

    def note(self, trial: TrialTables) -> str | None:
        """Remarks for readers of the files."""
        return None

    @abstractmethod
    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        """Writes a trial into its own directory, which it creates. Raises OSError."""

    def write_together(self, data: RunData, numbers: Container[int], directory: Path) -> list[str]:
        """Writes the common files of trials with these numbers, including those without records, into the directory
        that holds them all; returns the files. Raises OSError."""
        return []


REGISTRY: Registry[Kind[Exporter]] = Registry("exporter", "perflab.export", Kind)
