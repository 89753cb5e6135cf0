"""`perflab show`: what a run measured, also one that still goes on or was ended before it could write its summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab import models, output
from perflab.cli.options import MeasuredRun
from perflab.errors import BadInput
from perflab.formats import json_file
from perflab.models import Damaged
from perflab.output import Styled, write_json
from perflab.results import summary as summaries
from perflab.results.summary import Summary

if TYPE_CHECKING:
    from perflab.results.files import Manifest
    from perflab.results.run import RunData


def show(
    run: MeasuredRun,
    edges: Annotated[bool, typer.Option("--edges", help="Print every edge, also of more than two results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json and nothing else.")] = False,
) -> int:
    """Show the results of a run."""
    from perflab.host import Host
    from perflab.runs import rundir
    from perflab.runs.collect import collect_run
    from perflab.runs.controller import RUNNING, controller_state

    if (foreign := _foreign(run)) is not None:
        if as_json:
            _write_json(foreign.summary)
        else:
            output.write_captured(_foreign_report(foreign))
        return 0
    directory = rundir.open_run(run)
    manifest = directory.read_manifest()
    running = not directory.summary.exists() and controller_state(manifest, Host()) == RUNNING
    summary: Summary | None = None
    notes: list[str] = []
    if not directory.summary.exists():
        notes.append("the run is still going on; these are its numbers so far" if running else _ENDED_EARLY)
    else:
        try:
            summary = summaries.read(json_file.read_json(directory.summary))
        except BadInput as problem:
            notes.append(f"{problem}; these numbers are made from the records")
        except Damaged as problem:
            notes.append(f"{directory.summary} is damaged: {problem}; these numbers are made from the records")
    if summary is None:
        summary, found = collect_run(directory)
        notes += found
    if as_json:
        _write_json(summary)
    else:
        output.write_captured(_report(summary, manifest, notes, edges))
    return 0


def _write_json(summary: Summary) -> None:
    write_json(models.as_json(summary))


def _foreign(run: str) -> RunData | None:
    """The run, where it is one of another program. Raises BadInput."""
    from perflab.runs import rundata

    if rundata.is_perflab_run(run):
        return None
    from perflab.formats import irobot

    found = irobot.find(Path(run))
    return None if found is None else irobot.read(Path(run), found)


def _foreign_report(run: RunData) -> Styled:
    """A report has words where the source does not say."""
    unknown = "a middleware that is not recorded"
    results = tuple(replace(result, middleware=result.middleware or unknown) for result in run.summary.results)
    return _report(replace(run.summary, results=results), run.manifest, run.notes, True)


def _report(summary: Summary, manifest: Manifest, notes: Sequence[str], edges: bool) -> Styled:
    """The whole report, before any of it is printed."""
    from perflab.report import terminal

    out = output.console()
    with output.captured(out) as report:
        terminal.print_summary(out, summary, manifest, notes, edges=edges or None)
    return report[0]


_ENDED_EARLY = "perflab was ended before this run was; the numbers are what its processes had recorded"
