"""`perflab show`: what a run measured, also one that still goes on or was ended before it could write its summary."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perflab.errors import BadInput


def _complete_run(incomplete: str) -> list[str]:
    return sorted(str(m.parent) for m in Path("runs").glob("*/manifest.json") if str(m.parent).startswith(incomplete))


def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run directory, or its name in runs/.", autocompletion=_complete_run)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json and nothing else.")] = False,
) -> int:
    """Show the results of a run."""
    from perflab.experiment import rundir

    directory = rundir.open_run(run)
    notes: list[str] = []
    if directory.summary.exists():
        summary = _checked(rundir.read_json(directory.summary), directory.summary)
    else:
        from perflab.experiment.collect import collect_run
        from perflab.experiment.run import still_running
        from perflab.host import Host

        summary, found = collect_run(directory)
        running = still_running(rundir.read_json(directory.manifest), Host())
        notes.append("the run is still going on; these are its numbers so far" if running else _ENDED_EARLY)
        notes.extend(found)
    if as_json:
        sys.stdout.write(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
        return 0
    from perflab.report import terminal

    terminal.print_summary(terminal.console(), summary, rundir.read_json(directory.manifest), notes)
    return 0


def _checked(summary: dict[str, Any], path: Path) -> dict[str, Any]:
    """The summary, if it is one of this version. Raises BadInput."""
    if summary.get("schema") != 1:
        raise BadInput(f"{path} is damaged, or of another version: schema {summary.get('schema')!r} instead of 1")
    if not isinstance(summary.get("results"), list):
        raise BadInput(f"{path} is damaged: it has no results")
    return summary


_ENDED_EARLY = "perflab was ended before this run was; the numbers are what its processes had recorded"
