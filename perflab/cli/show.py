"""`perflab show`: the results of a run, even if it is still running or ended before it wrote its summary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from perflab import models, output
from perflab.cli.options import MeasuredRun
from perflab.output import Styled, write_json

if TYPE_CHECKING:
    from perflab.results.run import RunData

UNKNOWN = "an unrecorded middleware"


def show(
    run: MeasuredRun,
    edges: Annotated[bool, typer.Option("--edges", help="Print every edge, even with more than two results.")] = False,
    threads: Annotated[
        bool,
        typer.Option(
            "--threads",
            help="Print every thread with its scheduling, and what the machine did.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only summary.json.")] = False,
) -> int:
    """Show the results of a run."""
    from perflab.runs.rundata import open_run

    data = open_run(run, with_tables=False)
    if as_json:
        write_json(models.as_json(data.summary))
    else:
        output.write_captured(_report(data, edges, threads))
    return 0


def _report(data: RunData, edges: bool, threads: bool) -> Styled:
    """Builds the whole report before printing any of it; for a foreign run, states what is not recorded."""
    from perflab.report import terminal
    from perflab.results.run import PERFLAB

    summary = data.summary
    if data.origin != PERFLAB:
        edges = True
        summary = replace(
            summary, results=tuple(replace(r, middleware=r.middleware or UNKNOWN) for r in summary.results)
        )
    out = output.console()
    with output.captured(out) as report:
        terminal.print_summary(out, summary, data.manifest, data.notes, edges=edges or None, threads=threads)
    return report[0]
