"""`perflab clean`: removes leftovers of killed perflab processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.options import complete_run
from perflab.errors import BadInput, PerflabError
from perflab.output import write_json
from perflab.runs import controller

if TYPE_CHECKING:
    from perflab.experiment.clean import Leftover
    from perflab.host import Host


def clean(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN...]",
            help="Run directories, or their names in runs/; default all in runs/.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="List leftovers, but remove nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> int:
    """Remove what runs left behind when their perflab was killed.

    Removes the processes, shared memory, temporary folders and half-written files that the run recorded; marks the
    trial that was running. Restores kernel settings; without RUN, those of all runs. Runs still in progress and all
    results are left alone.
    """
    from perflab.experiment import clean as cleaning
    from perflab.host import Host
    from perflab.runs import rundir

    host = Host()
    notes: list[str] = []
    if runs:
        paths = [rundir.open_run(word).path for word in runs]
    else:
        paths = sorted(m.parent for m in Path(rundir.RUNS).glob(f"*/{rundir.MANIFEST}"))
    found: list[Leftover] = []
    for path in dict.fromkeys(paths):
        found += _found(path, host, named=bool(runs), notes=notes)
    found += cleaning.find_settings(paths if runs else None)
    removals = [] if dry_run else cleaning.remove(found, host)
    if as_json:
        done = [r.document() for r in removals] or [cleaning.Removal(left, "").document() for left in found]
        _print_json(dry_run, done, notes)
    else:
        would = {cleaning.TRIAL_LEFT: "mark", cleaning.SETTING: "set back"}
        lines = (
            [f"would {would.get(left.kind, 'remove')} {left.what}" for left in found]
            if dry_run
            else [removal.text for removal in removals]
        )
        sys.stdout.write("".join(f"{line}\n" for line in [*notes, *(lines or ["nothing to clean"])]))
    problems = [removal for removal in removals if removal.problem is not None]
    if problems:
        raise PerflabError(f"{len(problems)} of {len(removals)} leftovers could not be removed: {problems[0].text}")
    return 0


def _found(path: Path, host: Host, *, named: bool, notes: list[str]) -> list[Leftover]:
    """Leftovers of one run; a damaged run does not keep the others from being cleaned."""
    from perflab.experiment import clean as cleaning
    from perflab.runs import rundir

    try:
        state = controller.controller_state(rundir.RunDirectory(path, created=False).read_manifest(), host)
        if state == controller.RUNNING:
            notes.append(f"{path} is still running: left alone")
        elif state == controller.ELSEWHERE and not (path / rundir.SUMMARY).exists():
            notes.append(f"{path} was started on another machine or in another container: left alone")
        return cleaning.find([path], host)
    except BadInput as error:
        if named:
            raise
        notes.append(f"{error}: left alone")
        return []


def _print_json(dry_run: bool, removed: list[dict[str, Any]], notes: list[str]) -> None:
    document = {"dry_run": dry_run, "leftovers": removed, "notes": notes}
    write_json(document)
