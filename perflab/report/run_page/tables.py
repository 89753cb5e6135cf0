"""The tables of a report: results, edges, services, trials, resources."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.run_page.elements import SIGNS, Column, Table, number, table_html, word
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.run_page.words import size
from perflab.report.tables import key_figures, messages
from perflab.report.tables.messages import Of
from perflab.report.tables.model import Cell, Tone
from perflab.report.tables.trials import TrialOf, trials
from perflab.results.comparison import BETTER, CONDITION, WORSE, Effect, Finding
from perflab.results.trial import Result
from perflab.statistics.metrics import Metric, find
from perflab.statistics.remarks import SAME, no_difference_of
from perflab.statistics.selection import place_words


def section(runs: Sequence[ReportRun]) -> str:
    found = rows_of(runs)
    several = len(found) > 1
    edges = [edge for row in found for edge in row.parts(lambda result: result.edges, named=several)]
    services = [service for row in found for service in row.parts(lambda result: result.services, named=several)]
    processes = [process for row in found for process in row.parts(lambda result: result.resources.processes)]
    made = [
        results(runs).html(),
        *map(table_html, key_figures.tables(found)),
        table_html(messages.all_messages(found)),
        table_html(messages.services(services)),
        table_html(messages.edges(edges)),
        table_html(messages.processes(processes)),
        table_html(trials(trials_of(runs))),
    ]
    return "".join(made)


def run_column(runs: Sequence[ReportRun]) -> list[Column]:
    return [Column("run", False)] if len(runs) > 1 else []


def run_cell(runs: Sequence[ReportRun], run: ReportRun) -> list[Cell]:
    return [word(run.name)] if len(runs) > 1 else []


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


# ---- results


def results(runs: Sequence[ReportRun]) -> Table:
    """The median over trials of every compared metric with its interval, and how it differs from the baseline."""
    names = dict.fromkeys(name for run in runs for name in _metric_names(run))
    metrics = [metric for name in names if (metric := find(name)) is not None]
    columns = [Column("result", False), *run_column(runs), Column("n", title="trials that enter"), Column("success")]
    columns += [Column(metric.words, title="median over trials [interval]") for metric in metrics]
    rows = []
    for run, label, result in of_all(runs):
        compared = _compared(run, result)
        cells = [word(label), *run_cell(runs, run), _entered(result), _successes(result)]
        cells += [_interval(result, metric, compared.get(metric.name)) for metric in metrics]
        rows.append(cells)
    told = any(c.kind == CONDITION for run in runs for c in run.comparisons)
    notes = (
        [
            "Medians over trials, one value per trial, with their intervals; below them the change against the "
            "baseline: ▲ worse, ▼ better, = no difference that matters, ≈ within the noise, ? not decided."
        ]
        if told
        else ["Medians over trials, one value per trial, with their intervals."]
    )
    some = any(cell.text != "–" for row in rows for cell in row[-len(metrics) :]) if metrics else False
    return Table("Results", columns, rows if some else [], notes)


def _metric_names(run: ReportRun) -> list[str]:
    return list(dict.fromkeys(name for result in run.results for name in result.intervals))


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


def _interval(result: Result, metric: Metric, comparison: Finding | None) -> Cell:
    found = result.intervals.get(metric.name)
    if found is None or found.value is None:
        return number("–", None)
    text = metric.format(found.value)
    between = "" if found.low is None else f"[{metric.format(found.low)}, {metric.format(found.high)}]"
    if comparison is None:
        return Cell(text, found.value, below=(between,))
    tones: dict[Effect | None, Tone] = {WORSE: "bad", BETTER: "good", None: ""}
    tone = tones[comparison.effect]
    alike = comparison.verdict == "equivalent" or no_difference_of(comparison) == SAME
    sign = SIGNS[tone] if tone else "=" if alike else "≈" if comparison.verdict == "below_noise_floor" else "?"
    return Cell(text, found.value, tone, (between, f"{sign} {size(metric, comparison)}"))


def _entered(result: Result) -> Cell:
    n = len(result.entering)
    return number(str(n), n)


def _successes(result: Result) -> Cell:
    outcomes = result.outcomes
    n = outcomes.judged
    kinds = ((outcomes.invalid, "invalid"), (outcomes.harness_error, "harness error"))
    more = ", ".join(f"+{count} {what}" for count, what in kinds if count)
    text = f"{outcomes.success}/{n}" + (f" ({more})" if more else "")
    tone: Tone = "bad" if outcomes.failed else "warn" if more else ""
    return Cell(text, outcomes.success / n if n else None, tone, sign={"bad": "✖", "warn": "!"}.get(tone, ""))
