"""What executors cost: the tables of perflab.report.executor_costs for the page."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report import executor_costs
from perflab.report.executor_costs import CostColumn
from perflab.report.run_page.elements import Column, Table
from perflab.report.run_page.runs import ReportRun
from perflab.report.tables.model import Cell
from perflab.units import format_confidence


def section(runs: Sequence[ReportRun]) -> str:
    """Of every run that is about executors the costs, the families and the phases; empty where there is none."""
    made = []
    for run in runs:
        found, rows = run.summary.executor_costs, executor_costs.shown(run.summary)
        if found is None or not rows:
            continue
        before = f"{run.name}: " if len(runs) > 1 else ""
        level = format_confidence(found.level)
        explained = f"Medians over trials with their {level} intervals; 100 % is one CPU."
        for title, columns, notes in (
            (executor_costs.TITLE, executor_costs.costs(rows), [explained, *executor_costs.notes(rows)]),
            (executor_costs.FAMILIES_TITLE, executor_costs.families(rows), [executor_costs.FAMILIES_NOTE]),
            (executor_costs.PHASES_TITLE, executor_costs.phases(rows), [executor_costs.PHASES_NOTE]),
        ):
            if columns:
                made.append(_table(f"{before}{title}", columns, notes).html())
    return "".join(made)


def _table(title: str, columns: Sequence[CostColumn], notes: Sequence[str]) -> Table:
    heads = [Column(c.name, c.numeric, c.title) for c in columns]
    rows = [
        [
            Cell(f.text, f.value if c.numeric else f.text, below=(f.interval,) if f.interval else ())
            for c, f in zip(columns, cells, strict=True)
        ]
        for cells in zip(*(c.cells for c in columns), strict=True)
    ]
    return Table(title, heads, rows, notes)
