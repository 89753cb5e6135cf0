"""`perflab advise`: what to do, by what a run showed."""

from __future__ import annotations

import typer

from perflab.cli.commands import LateCommand, late

app = typer.Typer(
    help="Say what to do, by what a run showed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("realtime", cls=LateCommand)(late("perflab.cli.advise.realtime", "realtime"))
