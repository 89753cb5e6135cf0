"""The key figures that graphs declare, as tables of a report."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.key_figures import Shown, explained, names_in, shown
from perflab.report.run_page.elements import Column, Table, number, word
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.tables.model import Cell
from perflab.statistics.key_figures import SHOWN


def tables(runs: Sequence[ReportRun]) -> list[Table]:
    """One for each key figure, with one row per result; none where no graph declares one."""
    results = [result for run in runs for result in run.results]
    return [_table(runs, name) for name in names_in(results)]


def _table(runs: Sequence[ReportRun], name: str) -> Table:
    having = [found for found in of_all(runs) if name in found[2].key_figures]
    entries = [result.key_figures[name] for _, _, result in having]
    over_trials = any(entry.metrics for entry in entries)
    columns = [Column("result", False), *([Column("run", False)] if len(runs) > 1 else []), Column("trials")]
    values = [shown(name, entry, over_trials=over_trials) for entry in entries]
    statistics = SHOWN[entries[0].kind]
    # A statistic may have too few messages in every trial.
    known = [i for i in range(len(statistics)) if any(row[i].value is not None for row in values)]
    columns += [Column((statistics[i] or "lost").replace("_", ".")) for i in known]
    rows = []
    for (run, label, result), row in zip(having, values, strict=True):
        merged = result.coverage.trials_merged
        cells = [word(label), *([word(run.name)] if len(runs) > 1 else []), number(str(merged), merged)]
        rows.append([*cells, *(_cell(row[i]) for i in known)])
    note = (
        "Medians over trials, one value per trial, with their intervals."
        if over_trials
        else "All messages of all trials together."
    )
    return Table(f"Key figure {name}: {explained(entries)}", columns, rows, [note])


def _cell(one: Shown) -> Cell:
    return Cell(one.text, one.value, "bad" if one.bad else "", below=(one.interval,) if one.interval else ())
