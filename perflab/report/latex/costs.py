"""What executors cost, as tables for papers."""

from __future__ import annotations

from perflab.report.latex.table import Table, declared
from perflab.report.tables.costs import TITLE, shown
from perflab.report.tables.costs import tables as tables_of
from perflab.results.summary import Summary


def tables(summary: Summary) -> list[Table]:
    """The costs, the families and the phases of a run that is about executors; those that it has."""
    rows = shown(summary)
    captions = {TITLE: f"{rows[0].workload}: what executors cost, medians over trials."} if rows else {}
    return [declared(table, captions.get(table.title, f"{table.title}.")) for table in tables_of(summary)]
