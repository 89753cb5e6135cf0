"""What executors cost: the tables of perflab.report.tables.costs for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflab.report.run_page.html import table_html
from perflab.report.run_page.runs import ReportRun
from perflab.report.tables.costs import tables


def section(runs: Sequence[ReportRun]) -> str:
    """Of every run that is about executors the costs, the families and the phases; empty where there is none."""
    found = [(f"{run.name}: " if len(runs) > 1 else "", table) for run in runs for table in tables(run.summary)]
    return "".join(table_html(replace(table, title=f"{before}{table.title}")) for before, table in found)
