"""The application: which verbs there are. Heavy modules are imported by the verbs when they run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from perflab import __version__
from perflab.cli import (
    archive,
    breaking_point,
    check,
    clean,
    compare,
    doctor,
    export,
    inventory,
    list_,
    plot,
    profile,
    report,
    run,
    show,
    smoke_test,
    statistics_,
    sweep,
    trace,
)
from perflab.cli.grouped import CommandAfterDashes

app = typer.Typer(
    name="perflab",
    help="A performance laboratory for ROS 2 and DDS.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.command(name="run", cls=CommandAfterDashes)(run.run)
app.command(name="sweep", cls=CommandAfterDashes)(sweep.sweep)
app.command(name="breaking-point", cls=CommandAfterDashes)(breaking_point.breaking_point)
app.command(name="show")(show.show)
app.command(name="compare")(compare.compare)
app.command(name="check")(check.check)
app.command(name="export")(export.export)
app.command(name="plot")(plot.plot)
app.command(name="report")(report.report)
app.command(name="statistics")(statistics_.statistics)
app.add_typer(trace.app, name="trace")
app.command(name="profile")(profile.profile)
app.command(name="archive")(archive.archive)
app.command(name="clean")(clean.clean)
app.command(name="doctor")(doctor.doctor)
app.command(name="list")(list_.list_)
app.command(name="inventory")(inventory.inventory)
app.command(name="smoke-test")(smoke_test.smoke_test)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"perflab {__version__}\n")
        raise typer.Exit


@app.callback()
def perflab(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """A performance laboratory for ROS 2 and DDS.

    Exit codes: 0 done, 1 a trial failed, 2 usage or bad input, 3 this machine cannot do it, 130 interrupted.
    """
