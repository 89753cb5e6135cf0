"""The application and its list of verbs. A verb's module is imported when the verb is used."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from perflab.cli import advise, trace
from perflab.cli.commands import CommandAfterDashes, GroupedCommand, late
from perflab.errors import Unavailable
from perflab.version import __version__

# Reports reserve up to 1.5 GB on two CPUs; each thread of OpenBLAS and of polars reserves more address space, and uses
# little of it.
LEAST_ADDRESS_SPACE = 2 << 30
ADDRESS_SPACE_PER_CPU = 128 << 20

app = typer.Typer(
    name="perflab",
    help="A performance laboratory for ROS 2 and DDS.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

for _verb in ("run", "sweep", "breaking_point"):
    app.command(_verb.replace("_", "-"), cls=CommandAfterDashes)(late("perflab.cli.run", _verb))
for _verb in (
    *("show", "compare", "check", "export", "plot", "report", "statistics_", "profile", "archive", "clean"),
    *("doctor", "list_", "inventory", "smoke_test"),
):
    app.command(_verb.strip("_").replace("_", "-"), cls=GroupedCommand)(late(f"perflab.cli.{_verb}", _verb))
app.add_typer(trace.app, name="trace")
app.add_typer(advise.app, name="advise")


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"perflab {__version__}\n")
        raise typer.Exit


# These verbs need little memory: they list what exists, what is missing, and leftovers.
_LIGHT = ("list", "doctor", "clean")


def _check_address_space() -> None:
    """Numerical libraries abort the process when they run out of address space. Raises Unavailable."""
    import os
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    least = LEAST_ADDRESS_SPACE + (os.cpu_count() or 1) * ADDRESS_SPACE_PER_CPU
    if limit not in (resource.RLIM_INFINITY, -1) and limit < least:
        raise Unavailable(
            f"this process is limited to {limit >> 20} MiB of address space, and needs {least >> 20}: raise the "
            f"limit with `ulimit -v {least >> 10}` or `ulimit -v unlimited`"
        )


@app.callback()
def perflab(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """A performance laboratory for ROS 2 and DDS.

    Exit codes: 0 done, 1 a trial failed, 2 usage or bad input, 3 this machine cannot do it, 130 interrupted.
    """
    if context.invoked_subcommand not in _LIGHT:
        _check_address_space()
