"""The tables of a run for papers, each with its caption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perflab.report import inventory
from perflab.report.label import labels
from perflab.report.latex.table import Table
from perflab.report.latex.text import listed
from perflab.report.tables import costs, curves, floors, objectives, outcomes
from perflab.report.tables.conditions import conditions
from perflab.report.tables.messages import Of
from perflab.report.tables.results import comparisons, confidence_of, median_of, metrics_of, treatments
from perflab.results.summary import Summary
from perflab.results.trial import Result
from perflab.units import format_confidence

Json = Mapping[str, Any]

MOST_COSTS = 8  # columns that fit a page


def tables(summary: Summary) -> list[Table]:
    """The tables that are not empty."""
    made = (_results, _outcomes, _floors, _objectives, _comparisons, of_curves, of_costs, _breaking_points, _conditions)
    return [table for make in made for table in make(summary) if table.declared.rows]


def _results(summary: Summary) -> Iterator[Table]:
    table, level = treatments(summary), format_confidence(confidence_of(summary))
    workloads = listed(list(dict.fromkeys(row.entering.result.workload for row in table.rows)))
    medians = [median_of(row.entering, metric) for row in table.rows for metric in metrics_of(summary)]
    between = "; there are too few trials for their intervals"
    if any(median is not None and median.low is not None for median in medians):
        between = f" with {level} intervals in brackets"
    yield Table(
        table,
        f"{workloads}: median over trials{between}. Success: trials that met all criteria, of those that count, "
        f"with Wilson's {level} interval.",
    )


def _outcomes(summary: Summary) -> Iterator[Table]:
    for table in outcomes.tables(_named(summary)):
        level = format_confidence(outcomes.LEVEL)
        words = f"Outcomes of the judged trials, with Wilson's {level} intervals."
        yield Table(replace(table, notes=()), words)


def _objectives(summary: Summary) -> Iterator[Table]:
    """Including extra trials: most traced ones are."""
    named = [Of(result, name) for result, name in zip(summary.results, labels(summary.results), strict=True)]
    for table in objectives.tables(named):
        yield Table(replace(table, notes=()), f"{table.title}. {'; '.join(note.rstrip('.') for note in table.notes)}.")


def _floors(summary: Summary) -> Iterator[Table]:
    for table in floors.tables(_named(summary)):
        said = "Times compared with their floor, which was observed in the same trials."
        yield Table(replace(table, notes=()), f"{said} {table.notes[0]}")


def _named(summary: Summary) -> list[Of[Result]]:
    """Without extra trials."""
    results = [result for result in summary.results if not result.is_extra]
    return [Of(result, name) for name, result in zip(labels(results), results, strict=True)]


def _comparisons(summary: Summary) -> Iterator[Table]:
    if (findings := summary.findings) is not None:
        yield Table(
            comparisons(summary),
            "Differences, one value per trial: for times and resources a factor, for counts and shares a "
            f"difference, each with an interval; all {findings.family_size} of them hold simultaneously with "
            f"{format_confidence(confidence_of(summary))} confidence, and p is corrected likewise. No difference: none "
            f"larger than {100 * findings.margin:.3g} % is shown.",
        )


def of_curves(summary: Summary) -> Iterator[Table]:
    """One table of levels for each curve."""
    found = [c for c in summary.curves if c.levels]
    for number, curve in enumerate(found, start=1):
        confidences = [m.confidence for m in curve.metrics.values()]
        level = format_confidence(*(confidences or [confidence_of(summary)]))
        of_success = format_confidence(curve.success_confidence or confidence_of(summary))
        table = replace(
            curves.curve(curve, "").without(curves.BARS),
            name=f"curve_{number}" if len(found) > 1 else "curve",
            notes=[words for of in curve.metrics.values() for words in of.words],
        )
        yield Table(
            table,
            f"{curve.factor} ({curve.place}): median over trials with {level} intervals at each level, and "
            f"successful trials with Wilson's {of_success} interval.",
        )
    for factor in dict.fromkeys(curve.factor for curve in found):
        above = curves.above_floors([curve for curve in found if curve.factor == factor], "")
        if above is not None:
            yield Table(above, f"Over {factor}, each variant as a multiple of a floor.")


def of_costs(summary: Summary) -> Iterator[Table]:
    """The costs, families and phases of a run about executors, as far as it has them."""
    for table in costs.tables(summary):
        workload = costs.shown(summary)[0].workload
        said = f"{workload}: costs of executors, medians over trials." if table.title == costs.TITLE else table.title
        yield Table(table, f"{said.removesuffix('.')}.", MOST_COSTS)


def _breaking_points(summary: Summary) -> Iterator[Table]:
    levels = sorted({p.interval.level for p in summary.breaking_points if p.interval})
    words = f", with its {listed([format_confidence(lv) for lv in levels])} interval" if levels else ""
    yield Table(
        curves.breaking_points(summary.breaking_points),
        "Breaking points: the level of the factor at which the share of trials that meet the criterion falls to "
        f"the given one{words}. Only valid trials count.",
    )


def _conditions(summary: Summary) -> Iterator[Table]:
    yield Table(
        conditions(summary),
        "Conditions: promised values, and those measured by the kernel or the receivers: median over trials, with "
        "the smallest and largest in brackets.",
    )


# Too long for a table in a paper, and meaningless to its readers; `perflab inventory` and the manifest have them.
_LEFT_OUT = ("kernel build", "kernel command line", "Python packages")


def machine(found: Json, *, whole: bool = False) -> Table:
    """A machine and its software, without what could not be determined."""
    table = inventory.table(found)
    known = [row for row in table.rows if row.value is not None and (whole or row.label not in _LEFT_OUT)]
    return Table(replace(table, name="machine", rows=known), "Machine and software.")
