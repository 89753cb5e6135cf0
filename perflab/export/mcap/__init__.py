"""A trial as an MCAP file for Foxglove and PlotJuggler: its figures over time, and its messages if the observer
`messages` recorded them (docs/runs.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from perflab.errors import BadInput
from perflab.export import Exporter, Written
from perflab.option import Option
from perflab.parameters import Parameters, Switch
from perflab.registry import Kind

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables


class McapParameters(Parameters):
    compression: Annotated[Literal["zstd", "lz4", "none"], Option()] = Field(
        "zstd", description="Compression of a file's chunks."
    )
    contents: Annotated[Switch, Option()] = Field(
        True, description="The content of messages, if it was recorded; off: only numbers."
    )


class Mcap(Exporter):
    def __init__(self, asked: McapParameters) -> None:
        self._asked = asked

    def check(self, data: RunData) -> None:
        from perflab.results.run import PERFLAB

        if data.origin != PERFLAB:
            raise BadInput(
                f"{data.path} is from {data.program}, whose files have no instants; `--format csv` writes its tables"
            )

    def note(self, trial: TrialTables) -> str | None:
        from perflab.export.mcap.trial import is_virtual

        return "its instants are virtual time" if is_virtual(trial) else None

    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        from perflab.export.mcap import figures, messages
        from perflab.export.mcap.trial import ExportedTrial
        from perflab.formats.json_file import replaced
        from perflab.formats.mcap import McapFile
        from perflab.version import __version__
        from perflab.workload import file_name

        of = ExportedTrial.read(data, trial)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{file_name(data.name)}_{trial.number:04d}.mcap"
        with replaced(path) as stream:
            file = McapFile(stream, self._asked.compression, f"perflab {__version__}")
            # First, so that topics of the workload keep their own names.
            single = messages.of(of, file, contents=self._asked.contents)
            count = file.write(*figures.of(of, file), *single)
            of.describe(file)
            file.finish()
        missing = of.missing
        return Written([str(path)], {"messages": count, "missing": missing}, "".join(f"Note: {m}\n" for m in missing))


KIND: Kind[Exporter] = Kind("mcap", "a file for Foxglove and PlotJuggler", McapParameters, Mcap)
