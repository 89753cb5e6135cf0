"""`perflab trace`: answers about recorded traces of ROS 2 systems; one module per verb."""

from __future__ import annotations

import typer

from perflab.cli.trace import callbacks, compare, executor, export, messages, paths, record, scheduling, summary, why

app = typer.Typer(
    help="Record traces of ROS 2 systems, and answer questions about them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command(name="record")(record.record)
app.command(name="summary")(summary.summary)
app.command(name="callbacks")(callbacks.callbacks)
app.command(name="messages")(messages.messages)
app.command(name="executor")(executor.executor)
app.command(name="paths")(paths.paths)
app.command(name="scheduling")(scheduling.scheduling)
app.command(name="compare")(compare.compare)
app.command(name="export")(export.export)
app.command(name="why")(why.why)
