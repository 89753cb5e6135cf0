"""`perflab run`: a workload in one or more variants, trial by trial."""

from __future__ import annotations

import inspect
import shlex
import sys
from typing import TYPE_CHECKING, Any

import typer

from perflab import models
from perflab.cli.options import with_options
from perflab.output import console, write_json

if TYPE_CHECKING:
    from perflab.experiment.run import RunResult
    from perflab.runs.display import Display


_WITHOUT = ("breaking_point",)


def _parameters() -> list[inspect.Parameter]:
    from perflab.cli.run_options import takes

    return takes(without=_WITHOUT)


@with_options(_parameters)
def run(context: typer.Context, **values: Any) -> int:
    """Run a workload, or an experiment, and measure it.

    Options of an experiment replace what its file says.

    Example: perflab run sierra_nevada --time 60

    Example: perflab run sierra_nevada --executor single_threaded,events --ipc off,on --trials 3

    Example: perflab run sierra_nevada --condition cpu_load:workers=2,load=80 --trials 5

    Example: perflab run --trials 5 --condition cpu_load:load=80 -- ros2 launch my_robot bringup.launch.py
    """
    return carry_out(context, values, verb="run", without=_WITHOUT)


def carry_out(context: typer.Context, values: dict[str, Any], **how: Any) -> int:
    """Runs what the options of a verb mean, and prints what came of it; `how` goes to `experiment_of`."""
    from perflab import native as native_programs
    from perflab.cli.run_options import experiment_of, shown
    from perflab.experiment.run import execute
    from perflab.host import Host

    native, host, show = native_programs.find(), Host(), shown(values)
    experiment, earlier = experiment_of(context, values, native, host, **how)
    result = execute(experiment, native, host, _display(show.progress, show.quiet), earlier)
    _print(result, as_json=show.as_json, quiet=show.quiet, edges=show.edges)
    if result.error is not None:
        raise result.error
    return 0


def _display(progress: str, quiet: bool) -> Display:
    from perflab.report import live

    if progress == "lines":
        return live.lines()
    return live.on_terminal() if progress == "auto" and sys.stderr.isatty() and not quiet else live.silent(quiet=quiet)


def _print(result: RunResult, *, as_json: bool, quiet: bool, edges: bool) -> None:
    path = shlex.quote(str(result.directory.path))
    if as_json:
        write_json(models.as_json(result.summary))
    elif quiet:
        sys.stdout.write(f"{path}\n")
    else:
        from perflab.formats.json_file import read_json
        from perflab.report import terminal

        manifest = read_json(result.directory.manifest) if result.directory.manifest.exists() else {}
        terminal.print_summary(console(), result.summary, manifest, edges=edges or None)
        for page in sorted(result.directory.path.glob("trials/*/profile/index.html")):
            sys.stdout.write(f"Flame graphs:  {shlex.quote(str(page))}\n")
        sys.stdout.write(f"Run directory: {path}\nSee it again:  perflab show {path}\n")
    sys.stdout.flush()
