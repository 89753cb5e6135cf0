"""`perflab advise`: recommendations from the results of a run."""

from __future__ import annotations

import typer

from perflab.cli.commands import LateCommand, late

app = typer.Typer(
    help="Recommend settings from the results of a run.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("realtime", cls=LateCommand)(late("perflab.cli.advise.realtime", "realtime"))
