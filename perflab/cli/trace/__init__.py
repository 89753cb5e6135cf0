"""`perflab trace`: answers questions about recorded traces of ROS 2 systems."""

from __future__ import annotations

import typer

from perflab.cli.commands import LateCommand, late

app = typer.Typer(
    help="Record traces of ROS 2 systems, and answer questions about them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("record", cls=LateCommand)(late("perflab.cli.trace.record", "record"))
for _verb in (
    "summary",
    "callbacks",
    "messages",
    "executor",
    "paths",
    "scheduling",
    "compare",
    "export",
    "why",
    "starvation",
    "locks",
):
    app.command(_verb, cls=LateCommand)(late("perflab.cli.trace.answers", _verb))
