"""`perflab run`, `sweep` and `breaking-point`: run a workload in variants, at levels of factors, or until it breaks."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from perflab import models, phases
from perflab.cli.options import with_options
from perflab.output import console, write_json

if TYPE_CHECKING:
    from perflab.experiment.run import RunResult


# For each verb, the experiment options that it lacks, and its own defaults.
MOST_BY_SECOND = 10  # largest number of trials shown second by second by default

_TAKEN: dict[str, Any] = {
    "run": {"without": ("breaking_point",)},
    "sweep": {"without": ("breaking_point",), "defaults": {"trials": "5", "baseline_again": "off"}},
    "breaking-point": {
        "without": ("factors", "trials", "order", "baseline_again", "observer_control", "until_decided", "at_most")
    },
}


def _of_experiments(verb: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def parameters() -> list[inspect.Parameter]:
        from perflab.cli.run_options import takes

        return takes(**_TAKEN[verb])

    return with_options(parameters)


@_of_experiments("run")
def run(context: typer.Context, **values: Any) -> int:
    """Run a workload, or an experiment, and measure it.

    Options on the command line replace those in the file.

    Example: perflab run sierra_nevada --time 60

    Example: perflab run sierra_nevada --executor single_threaded,events --ipc off,on --trials 3

    Example: perflab run sierra_nevada --condition cpu_load:workers=2,load=80 --trials 5

    Example: perflab run --trials 5 --condition cpu_load:load=80 -- ros2 launch my_robot bringup.launch.py
    """
    return _carry_out(context, values, "run")


@_of_experiments("sweep")
def sweep(context: typer.Context, **values: Any) -> int:
    """Run a workload at every level of one or several factors, and show how it degrades.

    Conditions that a factor names need no --condition; other conditions stay in effect during the whole sweep. Level 0
    of a load is the baseline. Levels are skipped if this machine cannot produce them, and reported. Failed trials are
    results; exit code 1 means that trials could not be judged.

    Example: perflab sweep sierra_nevada --factor cpu_load.load=0..90:15

    Example: perflab sweep sierra_nevada --factor message_flood.rate=100..3000/6log --condition
    message_flood:readers=inside --success 'lost == 0'

    Example: perflab sweep sierra_nevada --factor workload.timer_speed=1,2,5,10 --middleware cyclonedds,fastdds
    """
    from perflab.design.sweep import as_sweep

    return _carry_out(context, values, "sweep", also={"sweep": True}, changed=as_sweep)


@_of_experiments("breaking-point")
def breaking_point(context: typer.Context, **values: Any) -> int:
    """Search for the level at which a system breaks; each trial runs at the level that is most informative.

    Prints the level with its interval, or that the range does not contain it, or that there is no such level. One
    search per variant. Invalid trials, and trials that failed because of a perflab error, never count as breaking.

    Example: perflab breaking-point sierra_nevada --factor message_flood.rate --low 100 --high 4000 --condition
    message_flood:readers=inside,work=100us --criterion 'latency.p50 <= 200us'

    Example: perflab breaking-point sierra_nevada --factor workload.timer_speed --low 1 --high 100 --criterion
    'response.p99 <= 5ms' --time 2
    """
    from perflab.design.sweep import as_search

    return _carry_out(context, values, "breaking-point", changed=as_search)


def _carry_out(context: typer.Context, values: dict[str, Any], verb: str, **more: Any) -> int:
    """Runs what the verb's options describe, and prints the results; `more` goes to `experiment_of`."""
    from perflab import native as native_programs
    from perflab.cli.run_options import experiment_of, shown
    from perflab.experiment.run import execute
    from perflab.host import Host
    from perflab.report import live

    native, host, show = native_programs.find(), Host(), shown(values)
    if show.quiet:
        phases.choose(phases.OFF)
    with phases.phase("reading the experiment"):
        experiment, earlier = experiment_of(context, values, native, host, verb=verb, **_TAKEN[verb], **more)
    by_second = verb == "run" and len(experiment.order) <= MOST_BY_SECOND and experiment.workload.shown_by_second
    display = live.chosen(phases.chosen(), quiet=show.quiet, by_second=by_second)
    result = execute(experiment, native, host, display, earlier)
    _print(result, as_json=show.as_json, quiet=show.quiet, edges=show.edges)
    if result.error is not None:
        raise result.error
    return 0


def _print(result: RunResult, *, as_json: bool, quiet: bool, edges: bool) -> None:
    path = shlex.quote(str(result.directory.path))
    if as_json:
        write_json(models.as_json(result.summary))
    elif quiet:
        sys.stdout.write(f"{path}\n")
    else:
        from perflab.report import terminal
        from perflab.runs.rundata import said_in
        from perflab.runs.trials import OF_OBSERVER

        notes = [result.manifest.rough] if result.manifest.rough is not None else []
        notes += said_in(result.directory, (OF_OBSERVER,))  # settings that failed were reported before
        terminal.print_summary(console(), result.summary, result.manifest, notes, edges=edges or None)
        for page in sorted(result.directory.path.glob("trials/*/profile/index.html")):
            sys.stdout.write(f"Flame graphs:  {shlex.quote(str(page))}\n")
        sys.stdout.write(f"Run directory: {path}\nSee it again:  perflab show {path}\n")
    sys.stdout.flush()
