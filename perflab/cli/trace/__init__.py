"""`perflab trace`: answers about recorded traces of ROS 2 systems."""

from __future__ import annotations

import typer

from perflab.cli.commands import LateCommand, late

# The verbs and the modules that they are in, in the order of the help.
_VERBS = {
    "record": "record",
    **dict.fromkeys(("summary", "callbacks", "messages", "executor"), "answers"),
    "paths": "paths",
    **dict.fromkeys(("scheduling", "compare"), "answers"),
    "export": "export",
    "why": "why",
}

app = typer.Typer(
    help="Record traces of ROS 2 systems, and answer questions about them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _verb, _module in _VERBS.items():
    app.command(_verb, cls=LateCommand)(late(f"perflab.cli.trace.{_module}", _verb))
