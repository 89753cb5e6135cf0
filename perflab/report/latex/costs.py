"""What executors cost, as tables for papers."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report import executor_costs
from perflab.report.executor_costs import DEEPER, CostColumn
from perflab.report.latex.table import Names, Table, Texts, Values
from perflab.report.latex.text import escape
from perflab.results.summary import Summary

SHOWN = 8  # columns that fit a page


def tables(summary: Summary) -> list[Table]:
    """The costs, the families and the phases of a run that is about executors; those that it has."""
    rows = executor_costs.shown(summary)
    if not rows:
        return []
    found = [
        ("executor_costs", executor_costs.TITLE, executor_costs.costs(rows), executor_costs.notes(rows)),
        (
            "executor_families",
            executor_costs.FAMILIES_TITLE,
            executor_costs.families(rows),
            [executor_costs.FAMILIES_NOTE],
        ),
        ("executor_phases", executor_costs.PHASES_TITLE, executor_costs.phases(rows), [executor_costs.PHASES_NOTE]),
    ]
    captions = {"executor_costs": f"{rows[0].workload}: what executors cost, medians over trials."}
    return [
        Table(name, escape(captions.get(name, f"{title}.")), _columns(columns), notes=tuple(escape(n) for n in notes))
        for name, title, columns, notes in found
        if columns
    ]


def _columns(columns: Sequence[CostColumn]) -> list[Names | Texts | Values]:
    kept = {id(column) for column in sorted(columns, key=lambda c: c.rank)[:SHOWN]}
    made: list[Names | Texts | Values] = []
    for column in columns:
        if id(column) not in kept:
            continue
        header = column.name
        if column.numeric:
            cells = [escape(" ".join(t for t in (c.text, c.interval) if t)) for c in column.cells]
            made.append(Texts(header, cells, right=True))
        elif any(c.text.startswith(DEEPER) for c in column.cells):
            made.append(Texts(header, [_indented(c.text) for c in column.cells]))
        else:
            made.append(Names(header, [cell.text for cell in column.cells]))
    return made


def _indented(text: str) -> str:
    depth = 0
    while text.startswith(DEEPER):
        text, depth = text.removeprefix(DEEPER), depth + 1
    return r"\quad " * depth + escape(text)
