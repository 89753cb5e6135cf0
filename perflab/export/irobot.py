"""The files of irobot_benchmark, one DIR/<process>_log per process, as input for its scripts.

irobot-legacy has the column names that these scripts expect.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from perflab.errors import BadInput
from perflab.export import AccountingParameters, Exporter, Written
from perflab.option import Option
from perflab.parameters import Switch
from perflab.registry import Kind

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables


class IrobotParameters(AccountingParameters):
    tracking: Annotated[Switch, Option()] = Field(
        True, description="Like irobot_benchmark's --tracking; off: no classes, no events."
    )
    csv: Annotated[bool, Option()] = Field(False, description="Commas instead of columns.")


class Irobot(Exporter):
    def __init__(self, asked: IrobotParameters, *, legacy: bool) -> None:
        self._asked, self._legacy = asked, legacy

    def check(self, data: RunData) -> None:
        from perflab.results.run import PERFLAB

        if data.origin != PERFLAB:
            raise BadInput(f"{data.path} is already output of {data.program}; `--format csv` writes its tables")
        if data.manifest.workload.command is not None:
            raise BadInput(
                f"{data.path} measured a command: which of its messages were late, which the format needs, is "
                "unknown; `--format csv` writes its tables"
            )

    def takes(self, trial: TrialTables) -> bool:
        return any(table.height for table in (trial.edges, trial.publishers, trial.services))

    def note(self, trial: TrialTables) -> str | None:
        from perflab.statistics.selection import beside_irobot

        return beside_irobot([trial.phase])

    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        """All processes of a trial, and the total of all processes if there are several."""
        from perflab.formats.irobot import dialect
        from perflab.formats.irobot.accounts import Accounting, aggregate, outputs_of
        from perflab.formats.irobot.write import total_table, write

        legacy, csv, kind = self._legacy, self._asked.csv, Accounting(self._asked.accounting)
        whole_us = kind is Accounting.ORIGINAL
        outputs = outputs_of(data, trial, kind, tracking=self._asked.tracking, legacy=legacy, csv=csv)
        files: list[str] = []
        for process in outputs:
            folder = directory / f"{process.process}{dialect.LOG_SUFFIX}"
            folder.mkdir(parents=True, exist_ok=True)
            for name in dialect.FILES:
                (folder / name).unlink(missing_ok=True)  # from an earlier export, which may have had more files
            names = write(process, folder, legacy=legacy, csv=csv, whole_us=whole_us)
            files += [str(folder / name) for name in names]
        if len(outputs) < 2:
            return Written(files, {"system_total": None})
        total = aggregate(outputs, kind)
        figures = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(total).items()}
        table = total_table(total, legacy=legacy, csv=csv, whole_us=whole_us)
        return Written(files, {"system_total": figures}, f"\nSystem total:\n{table}")


KINDS: tuple[Kind[Exporter], ...] = (
    Kind("irobot", "in irobot_benchmark's format", IrobotParameters, partial(Irobot, legacy=False)),
    Kind(
        "irobot-legacy",
        "the same, with the column names that its scripts expect",
        IrobotParameters,
        partial(Irobot, legacy=True),
    ),
)
