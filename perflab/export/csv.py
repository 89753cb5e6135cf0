"""perflab's own tables of each trial, and one with a row per trial, as CSV."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from perflab.export import Exporter, Written
from perflab.parameters import Parameters
from perflab.registry import Kind

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables


class Csv(Exporter):
    def __init__(self, _: Parameters) -> None:
        pass

    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        from perflab.results.run import TABLES

        directory.mkdir(parents=True, exist_ok=True)
        files = []
        tables = {name: getattr(trial, name) for name in TABLES}
        if trial.seconds is not None:
            tables["seconds"] = trial.seconds
        for name, table in tables.items():
            path = directory / f"{name}.csv"
            # The encoded histograms are in the Parquet files; in a table for people they would be a hindrance.
            table.select([column for column in table.columns if not column.endswith("_v2")]).write_csv(path)
            files.append(str(path))
        return Written(files)

    def write_together(self, data: RunData, numbers: Container[int], directory: Path) -> list[str]:
        """A row per trial, and the meaning of the columns."""
        from perflab.report.runs import read, trials_of
        from perflab.report.tables import plain
        from perflab.report.tables.trials import measurements

        table = measurements([row for row in trials_of([read(data)]) if row.record.trial in numbers])
        path, columns = directory / "trials.csv", directory / "trials_columns.csv"
        plain.write(table, path)
        plain.write_columns(table, columns)
        return [str(path), str(columns)]


KIND: Kind[Exporter] = Kind("csv", "perflab's tables", Parameters, Csv)
