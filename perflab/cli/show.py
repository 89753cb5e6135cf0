"""`perflab show`: what a run measured, also one that still goes on or was ended before it could write its summary."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from perflab.errors import DAMAGE, BadInput

Json = dict[str, Any]


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
    from perflab.experiment.collect import collect_run
    from perflab.experiment.run import still_running
    from perflab.host import Host

    directory = rundir.open_run(run)
    manifest = _checked(rundir.read_json(directory.manifest), directory.manifest)
    try:
        running = not directory.summary.exists() and still_running(manifest, Host())
        _check_shown(manifest)
    except DAMAGE as error:
        raise _damaged(directory.manifest, error) from error
    summary: Json | None = None
    notes: list[str] = []
    if not directory.summary.exists():
        notes.append("the run is still going on; these are its numbers so far" if running else _ENDED_EARLY)
    else:
        try:
            summary = _checked(rundir.read_json(directory.summary), directory.summary)
            if not isinstance(summary["results"], list):
                raise BadInput(f"{directory.summary} is damaged: it has no results")
            report = _report(summary, manifest, ())
        except BadInput as problem:
            summary = None
            notes.append(f"{problem}; these numbers are made from the records")
        except DAMAGE as error:
            summary = None
            notes.append(f"{_damaged(directory.summary, error)}; these numbers are made from the records")
    if summary is None:
        summary, found = collect_run(directory)
        try:
            report = _report(summary, manifest, [*notes, *found])
        except DAMAGE as error:
            raise _damaged(directory.path / rundir.TRIALS, error) from error
    sys.stdout.write(json.dumps(summary, indent=1, ensure_ascii=False) + "\n" if as_json else report)
    return 0


def _checked(document: Json, path: Path) -> Json:
    """The manifest or summary, if it is one of this version. Raises BadInput."""
    if document.get("schema") != 1:
        raise BadInput(f"{path} is damaged, or of another version: schema {document.get('schema')!r} instead of 1")
    return document


def _check_shown(manifest: Json) -> None:
    """Raises one of DAMAGE where the manifest does not have what a report shows of it."""
    words = [m["name"] for m in manifest["middlewares"]]
    words += [check[key] for check in manifest["preflight"] for key in ("name", "status")]
    values = [check["value"] for check in manifest["preflight"]]
    if not all(isinstance(word, str) for word in words) or not all(isinstance(v, str | None) for v in values):
        raise TypeError("a middleware or check is not described in words")


def _report(summary: Json, manifest: Json, notes: Sequence[str]) -> str:
    """The whole report, before any of it is printed. Raises one of DAMAGE."""
    from perflab.report import terminal

    out = terminal.console()
    with out.capture() as report:
        terminal.print_summary(out, summary, manifest, notes)
    return report.get()


def _damaged(path: Path, error: Exception) -> BadInput:
    return BadInput(f"{path} is damaged: {type(error).__name__}: {error}")


_ENDED_EARLY = "perflab was ended before this run was; the numbers are what its processes had recorded"
