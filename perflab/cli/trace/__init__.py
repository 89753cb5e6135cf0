"""`perflab trace`: answers about recorded traces of ROS 2 systems; one module per verb."""

from __future__ import annotations

import typer

from perflab.cli.commands import LateCommand, late
from perflab.cli.trace import callbacks, compare, executor, export, messages, paths, record, scheduling, summary, why

app = typer.Typer(
    help="Record traces of ROS 2 systems, and answer questions about them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command(name="record", cls=LateCommand)(late(record.record))
app.command(name="summary", cls=LateCommand)(late(summary.summary))
app.command(name="callbacks", cls=LateCommand)(late(callbacks.callbacks))
app.command(name="messages", cls=LateCommand)(late(messages.messages))
app.command(name="executor", cls=LateCommand)(late(executor.executor))
app.command(name="paths", cls=LateCommand)(late(paths.paths))
app.command(name="scheduling", cls=LateCommand)(late(scheduling.scheduling))
app.command(name="compare", cls=LateCommand)(late(compare.compare))
app.command(name="export", cls=LateCommand)(late(export.export))
app.command(name="why", cls=LateCommand)(late(why.why))
