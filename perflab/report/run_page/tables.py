"""The tables of a report: results, messages, trials, costs of executors, curves, breaking points, causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from perflab.columns import AnyTable, Column, Table
from perflab.quantity import COUNT, PERCENT, TIME
from perflab.report.run_page.blocks import Block, Facts, Fold, Heading, Known, Picture, Sheet, Text
from perflab.report.run_page.effects import plain
from perflab.report.runs import ReportRun, of_all, trials_of
from perflab.report.tables import costs as executor_costs
from perflab.report.tables import curves as of_levels
from perflab.report.tables import floors, key_figures, messages, objectives, outcomes
from perflab.report.tables.messages import Of
from perflab.report.tables.mitigations import mitigations
from perflab.report.tables.results import Beside, results
from perflab.report.tables.trials import trials
from perflab.results.comparison import CONDITION, Finding
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.trial import Result
from perflab.statistics.breaking_point_verdicts import STATES
from perflab.statistics.selection import place_words
from perflab.trace.causes import CAUSES
from perflab.units import format_confidence, plural

MOST_WAITS = 12  # rows of the table of threads before the rest is folded


def weighed(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """How long the named paths of traced trials took, and the objectives formed from them."""
    yield from (Sheet(table, table.title) for table in objectives.tables(rows_of(runs)))


def became(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """The outcomes of a kind of workload with its own outcomes: they are the main result of its trials."""
    measured = [row for row in rows_of(runs) if not row.record.is_extra]
    yield from (Sheet(table, table.title) for table in outcomes.tables(measured))


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """From trials without a strongly disturbing observer; if there are none, from those."""
    yield from _tables(runs, extra=not any(not result.is_extra for _, _, result in of_all(runs)))


def _tables(runs: Sequence[ReportRun], *, extra: bool) -> Iterator[Block]:
    chosen = [result.is_extra is extra for _, _, result in of_all(runs)]
    found = list(compress(rows_of(runs), chosen))
    several = len(chosen) > 1
    edges = [edge for row in found for edge in row.parts(lambda result: result.edges, named=several)]
    services = [service for row in found for service in row.parts(lambda result: result.services, named=several)]
    processes = [process for row in found for process in row.parts(lambda result: result.resources.processes)]
    sites = [site for row in found for site in row.parts(messages.sites_of)]
    compared = [_compared(run, result) for run, _, result in compress(of_all(runs), chosen)]
    besides = [Beside(row.record, row.result, own, row.run) for row, own in zip(found, compared, strict=True)]
    tables: list[AnyTable] = [
        results(besides),
        *(() if extra else bought(runs)),
        *floors.tables(found),
        *key_figures.in_short(found, "below"),
    ]
    by_themselves = key_figures.tables(found) if key_figures.are_many(found) else []
    more: list[AnyTable] = [
        messages.all_messages(found),
        messages.services(services),
        messages.edges(edges),
        messages.processes(processes),
        *([messages.allocation_sites(sites)] if sites else []),
        trials([row for row in trials_of(runs) if row.of.is_extra is extra]),
    ]
    # Distinguishes figures of the same name for screen-reader users.
    apart = ", extra trials" if extra and not all(chosen) else ""
    yield from (Sheet(table, f"{table.title}{apart}") for table in tables)
    yield Fold(
        f"Each key figure separately{apart}", [Sheet(t, f"{t.title}{apart}") for t in by_themselves], on_paper=False
    )
    yield from (Sheet(table, f"{table.title}{apart}") for table in more)


def bought(runs: Sequence[ReportRun]) -> Iterator[AnyTable]:
    """For every run with mitigations."""
    for run in runs:
        if (table := mitigations(run.summary)).rows:
            yield replace(table, title=f"{run.name}: {table.title}") if len(runs) > 1 else table


def rows_of(runs: Sequence[ReportRun]) -> list[Of[Result]]:
    """Every result, with the name of its run if there are several."""
    return [Of(result, label, run.name if len(runs) > 1 else "") for run, label, result in of_all(runs)]


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


def costs(runs: Sequence[ReportRun]) -> Iterator[Sheet]:
    """The costs, families and phases of every run about executors."""
    for run in runs:
        before = f"{run.name}: " if len(runs) > 1 else ""
        yield from (Sheet(replace(t, title=f"{before}{t.title}")) for t in executor_costs.tables(run.summary))


# -- levels -----------------------------------------------------------------------------------------------------------


def curves(runs: Sequence[ReportRun]) -> Iterator[Block]:
    for run in runs:
        for curve in run.summary.curves:
            title = _title(run, curve, len(runs) > 1)
            yield Heading(title)
            yield Sheet(of_levels.curve(curve, f"{title}: levels").without(of_levels.BARS))
            yield Sheet(of_levels.knees(curve, f"{title}: knee and saturation"))
        before = f"{run.name}: " if len(runs) > 1 else ""
        for factor in dict.fromkeys(curve.factor for curve in run.summary.curves):
            of_factor = [curve for curve in run.summary.curves if curve.factor == factor]
            if (above := of_levels.above_floors(of_factor, f"{before}above the floor, over {factor}")) is not None:
                yield Sheet(above)


def breaking_points(runs: Sequence[ReportRun]) -> Iterator[Block]:
    for run in runs:
        for search in run.summary.breaking_points:
            title = _title(run, search, len(runs) > 1)
            yield Heading(title)
            yield Known(_found(search))
            yield Sheet(of_levels.tried(search, f"{title}: tried levels").without(of_levels.BARS))


def _title(run: ReportRun, part: Curve | BreakingPoint, several: bool) -> str:
    others = ", ".join(f"{path} = {plain(level)}" for path, level in part.others.items())
    return " · ".join(filter(None, (run.name if several else "", part.factor, part.variant, others)))


def _found(search: BreakingPoint) -> Facts:
    at, left = search.interval, search.left_out
    between = "" if at is None else f" [{plain(at.low)}, {plain(at.high)}] at {format_confidence(at.level)}"
    out = ", ".join(f"{n} {words}" for _, n, words, _ in left.outcomes.counts)
    return [
        ("criterion", search.criterion),
        ("result", STATES[search.state]),
        ("breaking point", None if search.value is None else f"{plain(search.value)}{between}"),
        ("is where the criterion is met in", f"{100 * search.share:.3g} % of trials"),
        ("searched", f"{plain(search.low)} to {plain(search.high)}, {search.scale}"),
        ("trials", f"{search.trials}{f'; left out: {out}' if out else ''}"),
        ("ended because", search.stopped),
    ]


# -- traced trials ----------------------------------------------------------------------------------------------------


Lanes = Mapping[tuple[str, int], Picture]  # the slowest message of a traced trial, by run and trial number


def traced(runs: Sequence[ReportRun], lanes: Lanes | None = None) -> Iterator[Block]:
    """Folded: why messages were late in them, and their figures, which an observer disturbed."""
    results = [result for _, _, result in of_all(runs)]
    apart = any(r.is_extra for r in results) and any(not r.is_extra for r in results)
    blocks = [*_why(runs, lanes or {}), *(_tables(runs, extra=True) if apart else ())]
    count = sum(t.why is not None or r.is_extra for run in runs for _, r, t in run.trials)
    yield Fold(f"{plural(count, 'trial')}: why messages were late, and figures that tracing disturbed", blocks)


def _why(runs: Sequence[ReportRun], lanes: Lanes) -> Iterator[Block]:
    """For every traced trial a sentence, the causes of its late messages' time, and their amounts."""
    for run in runs:
        for label, _, trial in run.trials:
            if (found := trial.why) is not None:
                title = f"{f'{run.name}, ' if len(runs) > 1 else ''}{label}, trial {trial.trial}"
                yield Heading(title)
                yield Text(f"{found.sentence.rstrip('.')}.")
                if (picture := lanes.get((run.name, trial.trial))) is not None:
                    yield Fold("The slowest message: its path, on threads and on CPUs", [picture], on_paper=False)
                causes = Table("causes", f"{title}: by cause", [_CAUSE, *_LATENESS], found.causes)
                totals = Table("totals", f"{title}: by thread", [_WHAT, *_LATENESS], found.totals)
                yield from (Sheet(table, long=MOST_WAITS) for table in (causes, totals))


def _cause(row: Mapping[str, Any]) -> str:
    return CAUSES[row["cause"]].short if row["cause"] in CAUSES else str(row["cause"])


_CAUSE: Column[Mapping[str, Any]] = Column("cause", "cause", _cause)
_WHAT: Column[Mapping[str, Any]] = Column("what", "what it was")
_LATENESS: list[Column[Mapping[str, Any]]] = [
    Column("messages", "decided", None, COUNT, help="late messages of which it is the largest part"),
    Column("messages_percent", "share of those", None, PERCENT),
    Column("total_ns", "time", None, TIME),
    Column("total_percent", "share of the time", None, PERCENT),
    Column("having", "took part in", None, COUNT),
    Column("each_p50_ns", "median each", None, TIME),
    Column("each_max_ns", "max each", None, TIME),
]
