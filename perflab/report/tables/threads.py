"""Every thread of the processes of a result: its name, its task, and its scheduling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perflab.columns import Column, Table
from perflab.kernel import cpu_list
from perflab.middleware import what_threads_do
from perflab.quantity import COUNT
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.trial import Result, ThreadGroup

TITLE = "Threads and their scheduling, as reported by the kernel"
_OF_ROLES = {
    "executor": "runs callbacks",
    "program": "runs code of the program",
    "perflab": "measures and reports",
    "tracer": "writes the trace",
}

Row = tuple[str | None, ThreadGroup]  # with the middleware of the result


def of_results(rows: Sequence[Of[Result]]) -> Table[Of[Row]]:
    """From the first trial of each result; threads with the same name and scheduling are one row."""
    return Table(
        "threads",
        TITLE,
        [
            result_column(1),
            RUN,
            Column("process", "process", lambda row: row.record[1].process, rank=0),
            Column("name", "thread", lambda row: row.record[1].name, rank=0),
            Column("number", "number", lambda row: len(row.record[1].tids), COUNT, rank=3),
            Column("role", "of", lambda row: row.record[1].role, rank=4),
            Column("does", "what it does", lambda row: what_it_does(*row.record), rank=1),
            Column("policy", "policy", lambda row: row.record[1].policy, rank=0),
            Column("priority", "priority", lambda row: row.record[1].priority or None, COUNT, rank=0),
            Column("cpus", "CPUs", lambda row: cpu_list(row.record[1].cpus), rank=2),
        ],
        [row for result in rows for row in result.parts(_threads)],
    )


def _threads(result: Result) -> Iterable[Row]:
    return ((result.middleware, thread) for thread in result.threads or ())


def what_it_does(middleware: str | None, thread: ThreadGroup) -> str | None:
    """In a few words; None if unknown."""
    if thread.role != "middleware":
        return _OF_ROLES.get(thread.role)
    return what_threads_do(middleware, thread.name)
