"""The tables of a report: results, edges, services, trials, resources."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.run_page.html import table_html
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.tables import key_figures, messages
from perflab.report.tables.messages import Of
from perflab.report.tables.results import Beside, results
from perflab.report.tables.trials import TrialOf, trials
from perflab.results.comparison import CONDITION, Finding
from perflab.results.trial import Result
from perflab.statistics.selection import place_words


def section(runs: Sequence[ReportRun]) -> str:
    found = rows_of(runs)
    several = len(found) > 1
    edges = [edge for row in found for edge in row.parts(lambda result: result.edges, named=several)]
    services = [service for row in found for service in row.parts(lambda result: result.services, named=several)]
    processes = [process for row in found for process in row.parts(lambda result: result.resources.processes)]
    made = [
        table_html(results(_compared_results(runs))),
        *map(table_html, key_figures.tables(found)),
        table_html(messages.all_messages(found)),
        table_html(messages.services(services)),
        table_html(messages.edges(edges)),
        table_html(messages.processes(processes)),
        table_html(trials(trials_of(runs))),
    ]
    return "".join(made)


# ---- rows of the tables that are declared in perflab.report.tables


def rows_of(runs: Sequence[ReportRun]) -> list[Of[Result]]:
    """Every result, with the name of its run where there are several."""
    return [Of(result, label, run.name if len(runs) > 1 else "") for run, label, result in of_all(runs)]


def trials_of(runs: Sequence[ReportRun]) -> list[TrialOf]:
    return [
        TrialOf(trial, result, label, run.file(trial), run.name if len(runs) > 1 else "")
        for run in runs
        for label, result, trial in run.trials
    ]


def _compared_results(runs: Sequence[ReportRun]) -> list[Beside]:
    return [
        Beside(result, label, _compared(run, result), run.name if len(runs) > 1 else "")
        for run, label, result in of_all(runs)
    ]


def _compared(run: ReportRun, result: Result) -> dict[str, Finding]:
    """The comparisons of a disturbed result with its baseline, by metric."""
    if not result.is_disturbed or result.is_control:
        return {}
    place = place_words(result)
    return {
        c.metric: c
        for c in run.comparisons
        if c.kind == CONDITION
        and c.treatment.name == result.treatment
        and c.variant in (place, f"{result.workload}, {place}")
    }
