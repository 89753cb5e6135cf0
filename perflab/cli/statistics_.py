"""`perflab statistics`: statistics of a table from elsewhere, with one row per trial, or with mean, sd and n per
treatment."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import AfterValidator, BaseModel, Field

from perflab import output
from perflab.cli import options
from perflab.cli.options import AsJson, with_options
from perflab.errors import BadInput
from perflab.option import Form, Option, declared
from perflab.output import write_json

OF_SUMMARY = ("mean", "sd", "n")


def _rate(alpha: float) -> float:
    if not 0 < alpha < 0.5:
        raise ValueError(f"{alpha:g} is not a valid rate of false claims; use a number between 0 and 0.5, such as 0.05")
    return alpha


_OfTable = Annotated[str | None, Option(), Form("COLUMN")]


class Asked(BaseModel):
    """The options for a table."""

    value: Annotated[list[str], Option(many=True), Form("COLUMN")] = Field(
        [],
        description="Column with the measured value, one per trial. With --from-summary, COLUMN_mean and COLUMN_sd.",
    )
    where: Annotated[str | None, Option(), Form("EXPR")] = Field(
        None, description="Rows to use: \"status == 'success' and not trial endswith '_x'\"."
    )
    baseline: Annotated[str | None, Option(), Form("GROUP")] = Field(
        None, description="The group to compare the others with [baseline; else every pair is compared]."
    )
    label: _OfTable = Field(None, description="Column with the trials' names [trial_id, trial, …, or line numbers].")
    block: _OfTable = Field(None, description="Column that groups related trials: pairs, repetitions, sessions.")
    from_summary: Annotated[bool, Option()] = Field(
        False, description="Rows are treatments, with columns for mean, sd and n."
    )
    mean: _OfTable = Field(None, description="With --from-summary.")
    sd: _OfTable = Field(None, description="With --from-summary.")
    n: _OfTable = Field(None, description="With --from-summary.")
    margin: Annotated[str | None, Option(), Form("D")] = Field(
        None, description="The largest difference that does not matter: 5%, 10, or 10ms for a column …_ms."
    )
    alpha: Annotated[float, AfterValidator(_rate), Option()] = Field(0.05, description="The rate of false claims.")
    seed: Annotated[int, Option()] = Field(0, ge=0, description="Seed for resampling.")

    def check(self) -> None:
        """Raises BadInput for options that exclude each other."""
        if not self.from_summary and not self.value:
            raise BadInput("--value is missing: name the column with the measured value")
        for name in ("label", "block") if self.from_summary else OF_SUMMARY:
            if getattr(self, name) is not None:
                raise BadInput(f"--{name} goes {'without' if self.from_summary else 'with'} --from-summary")
        if self.from_summary and self.value and (self.mean or self.sd):
            raise BadInput("--value already implies COLUMN_mean and COLUMN_sd; leave out --mean and --sd, or --value")


def _parameters() -> list[inspect.Parameter]:
    return options.parameters(declared(Asked))


@with_options(_parameters)
def statistics_(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV or TSV file with a header.", show_default=False)
    ],
    group: Annotated[
        str, typer.Option("--group", metavar="COLUMN", help="Column with the treatments' names.", show_default=False)
    ],
    as_json: AsJson = False,
    **values: Any,
) -> int:
    """Compare the groups of a table: intervals, tests, equivalence, influence of single trials, lattices."""
    from rich.text import Text

    from perflab.cli.statistics_table import report_of
    from perflab.formats.table_file import parse_where, read_table

    asked: Asked = options.read(Asked, declared(Asked), values)
    asked.check()
    read = read_table(table)
    read.require(group, "--group")
    chosen = read if asked.where is None else read.where(parse_where(asked.where, read))
    if not chosen.rows:
        raise BadInput(f"--where {asked.where!r} matches none of the {len(read.rows)} rows of {table}")
    report = report_of(chosen, group, asked)
    if as_json:
        head = {
            "schema": 1,
            "table": str(table),
            "group": group,
            "where": asked.where,
            "rows": len(chosen.rows),
            "rows_of_table": len(read.rows),
            "alpha": asked.alpha,
            "seed": asked.seed,
        }
        write_json({**head, **report.document})
        return 0
    out = output.console()
    with output.captured(out) as printed:
        of = "" if chosen is read else f" of {len(read.rows)}, where {asked.where}"
        out.print(Text(f"{table}: {len(chosen.rows)} rows{of}; by {group}", "bold"))
        out.print()
        report.draw(out)
    output.write_captured(printed[0])
    return 0
