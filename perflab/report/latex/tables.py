"""The tables of a run for papers: results, comparisons, curves, breaking points, conditions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perflab.report.evidence import Quantity, by_quantity
from perflab.report.latex.table import Names, Table, Texts, Value, Values, declared, own_decimals, unit_of, value_of
from perflab.report.latex.text import escape, listed, number
from perflab.report.tables import curves as declared_curves
from perflab.results.comparison import (
    CONDITION,
    DIFFERENCES,
    FACTOR,
    OBSERVER,
    VARIANT,
    Finding,
    Kind,
    Verdict,
)
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.outcome import Outcomes
from perflab.results.summary import Summary
from perflab.results.trial import BASELINE, Median, Result
from perflab.statistics.breaking_point_verdicts import STATES
from perflab.statistics.metric_comparison import ALPHA
from perflab.statistics.metrics import COUNT, DEFAULT, Metric, find, named
from perflab.statistics.pairs import Entering, Place, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.verdicts import p_in_words
from perflab.units import format_confidence

_VERDICTS: dict[Verdict, str] = {
    "higher": "higher",
    "lower": "lower",
    "equivalent": "no difference",
    "below_noise_floor": "within noise",
    "not_shown": "not shown",
    "too_few_trials": "too few trials",
}


# -- results ---------------------------------------------------------------------------------------------------------


def results(summary: Summary) -> Table | None:
    """Treatments and metrics: medians over trials with their intervals, and how many trials succeeded."""
    places = places_of(summary.results)
    rows = [(place, r) for place in places for r in place.results if r.result.trials]
    if not rows:
        return None
    metrics = [m for m in metrics_of(summary) if any(median_of(r, m) is not None for _, r in rows)]
    groups = []
    for i, (place, _) in enumerate(rows):
        if i == 0 or rows[i - 1][0] is not place:
            groups.append((i, place.words))
    names = [_name(r) for _, r in rows]
    if len(groups) == len(rows) > 1:  # one treatment everywhere, such as the baselines at levels of a factor
        names = [
            place.words if name == BASELINE else f"{place.words}: {name}"
            for (place, _), name in zip(rows, names, strict=True)
        ]
        groups = []
    level = confidence_of(summary)
    columns: list[Names | Texts | Values] = [
        Names("treatment", names),
        Texts("trials", [str(len(r.trials)) for _, r in rows], right=True),
        Texts("success", [success(r, level) for _, r in rows], unit=f"{format_confidence(level)} interval"),
        *(_metric_column(m, [median_of(r, m) for _, r in rows]) for m in metrics),
    ]
    outcomes = [r.result.outcomes for _, r in rows]
    columns[3:3] = _left_out([o.left_out for o in outcomes])
    medians = [median_of(r, m) for _, r in rows for m in metrics]
    with_interval = any(median is not None and median.low is not None for median in medians)
    between = (
        f" with {format_confidence(level)} intervals in brackets"
        if with_interval
        else "; there are too few trials for intervals of them"
    )
    caption = (
        f"{_workloads(rows)}: median over trials{between}. Success: trials that met all criteria of those that "
        "count, with Wilson's interval."
    )
    return Table("results", escape(caption), columns, tuple(groups) if len(places) > 1 else ())


def metrics_of(summary: Summary) -> list[Metric]:
    """Those that the run compared; of one without findings those that are compared as a rule."""
    names = (() if summary.findings is None else summary.findings.metrics) or DEFAULT
    return [named(name) for name in names if find(name) is not None]


def confidence_of(summary: Summary) -> float:
    return 1 - (ALPHA if summary.findings is None else summary.findings.alpha)


def median_of(result: Entering, metric: Metric) -> Median | None:
    """The median over trials; of a summary that has none the median without an interval."""
    stored = result.result.intervals.get(metric.name)
    if stored is not None and stored.value is not None:
        return stored
    values = result.sample(metric, "").values
    return Median(value=statistics.median(values), low=None, high=None, n=len(values)) if values else None


def _metric_column(metric: Metric, found: Sequence[Median | None]) -> Values:
    per, unit = unit_of(metric.quantity, [None if f is None else f.value for f in found])
    return Values(metric.words, unit, [Value(None) if f is None else value_of(metric.quantity, f, per) for f in found])


def _name(result: Entering) -> str:
    return f"{result.treatment}, no observers" if result.result.is_control else result.treatment


def success(result: Entering, level: float) -> str:
    r""" "9/9 [70, 100]\,\%" """
    outcomes = result.result.outcomes
    return _share(outcomes.success, outcomes.judged, wilson(outcomes.success, outcomes.judged, level))


def _share(successes: int, n: int, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"{successes}/{n}"
    low, high = (number(100 * x, 0) for x in interval)
    return rf"{successes}/{n} [{low}, {high}]\,\%"


def _left_out(outcomes: Sequence[Outcomes]) -> list[Texts]:
    """A column of how many trials of each row tell nothing of the system, if any of them does not."""
    words = [", ".join(f"{n} {outcome.words}" for outcome, n in left) for left in outcomes]
    return [Texts("left out", [escape(text) or "--" for text in words])] if any(words) else []


def _workloads(rows: Sequence[tuple[Place, Entering]]) -> str:
    return listed(list(dict.fromkeys(r.result.workload for _, r in rows)))


# -- comparisons -----------------------------------------------------------------------------------------------------

_TITLES: dict[Kind, str] = {
    CONDITION: "against the baseline",
    OBSERVER: "what observing costs",
    VARIANT: "baselines of variants",
    FACTOR: "baselines at levels of a factor",
}


def comparisons(summary: Summary) -> Table | None:
    """Every comparison: how large the difference is, and what may be said of it."""
    findings = summary.findings
    if findings is None:
        return None
    found = [c for c in findings.comparisons if find(c.metric) is not None]
    if not found:
        return None
    found.sort(key=lambda c: (list(_TITLES).index(c.kind) if c.kind in _TITLES else 9, c.variant or ""))
    groups: list[tuple[int, str]] = []
    for i, c in enumerate(found):
        name = ": ".join(filter(None, (c.variant, _TITLES.get(c.kind, c.kind))))
        if not groups or groups[-1][1] != name:
            groups.append((i, name))
    caption = (
        f"Differences, one value per trial: of times and resources a factor, of counts and shares a difference, "
        f"each with the {format_confidence(confidence_of(summary))} interval of this comparison by itself. p is "
        "adjusted by Holm over "
        f"{findings.family_size} comparisons; no difference: none larger than {100 * findings.margin:.3g} % is "
        "shown."
    )
    return Table(
        "comparisons",
        escape(caption),
        [
            Names("compared", [_compared(c) for c in found], once=frozenset(row for row, _ in groups)),
            Names("metric", [_in_unit(c) for c in found]),
            Values("effect", "", [effect(c)[0] for c in found]),
            Texts("p", [_p(c.p_adjusted) for c in found], right=True),
            Texts("n", [rf"{c.baseline.n}, {c.treatment.n}" for c in found], right=True),
            Texts(
                "verdict",
                [
                    rf"\textbf{{{words}}}" if c.verdict in DIFFERENCES else words
                    for c in found
                    for words in [escape(_VERDICTS[c.verdict])]
                ],
            ),
        ],
        tuple(groups),
    )


def _compared(c: Finding) -> str:
    if c.kind in (CONDITION, OBSERVER):
        return c.treatment.name
    return f"{c.treatment.name} against {c.baseline.name}"


def _in_unit(c: Finding) -> str:
    metric = named(c.metric)
    if c.scale == "ratio":
        return f"{metric.words} (×)"
    unit = effect(c)[1]
    return f"{metric.words} (difference{f', {unit}' if unit else ''})"


def effect(c: Finding) -> tuple[Value, str]:
    """A factor, or a difference and its unit."""
    is_ratio, metric = c.scale == "ratio", named(c.metric)
    per, unit = (1.0, "") if is_ratio else unit_of(metric.quantity, [c.estimate.value])
    scaled = c.estimate.mapped(lambda x: x / per)
    interval = scaled.interval
    value = Value(
        scaled.value,
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        signed=not is_ratio,
        exact=not is_ratio and metric.unit == COUNT,
        factor=is_ratio,
    )
    return value, unit


def _p(p: float | None) -> str:
    if p is None:
        return "--"
    sign, _, value = p_in_words(p).removeprefix("p ").partition(" ")
    return f"{escape('<') if sign == '<' else ''}{value}"


# -- curves and breaking points --------------------------------------------------------------------------------------


def curves(summary: Summary) -> list[Table]:
    """One table of levels for each curve."""
    found = [c for c in summary.curves if c.levels]
    return [_curve(c, n if len(found) > 1 else None, summary) for n, c in enumerate(found, start=1)]


def _curve(curve: Curve, number_: int | None, summary: Summary) -> Table:
    confidences = [m.confidence for m in curve.metrics.values()]
    level = format_confidence(*(confidences or [confidence_of(summary)]))
    of_success = format_confidence(curve.success_confidence or confidence_of(summary))
    caption = (
        f"{curve.factor} ({curve.place}): median over trials with {level} intervals at each level, "
        f"and trials that succeeded with Wilson's {of_success} interval."
    )
    columns = declared_curves.curve(curve, "").without(declared_curves.BARS)
    said = [s for of in curve.metrics.values() for s in of.words]
    named_ = replace(columns, name="curve" if number_ is None else f"curve_{number_}", notes=said)
    return declared(named_, caption, most=len(named_.columns))


def breaking_points(summary: Summary) -> Table | None:
    """Every search, what it found, and from how many trials."""
    found = summary.breaking_points
    if not found:
        return None
    levels = sorted({p.interval.level for p in found if p.interval})
    words = f", with its {listed([format_confidence(lv) for lv in levels])} interval" if levels else ""
    caption = (
        "Breaking points: the level of the factor at which the share of trials that meet the criterion falls to the "
        f"one given{words}. Only valid trials count."
    )
    return Table(
        "breaking_points",
        escape(caption),
        [
            Names("search", [f"{p.place}, {p.factor}" for p in found]),
            Texts("range", [f"{_plain(p.low)} to {_plain(p.high)}" for p in found]),
            Names("criterion", [p.criterion for p in found]),
            Texts("share", [rf"{number(100 * p.share, 0)}\,\%" for p in found], right=True),
            Values("breaking point", "", [point(p) for p in found]),
            Texts("state", [escape(STATES[p.state]) for p in found]),
            Texts("trials", [str(p.trials) for p in found], right=True),
        ],
        notes=tuple(escape(s) for p in found for s in p.words),
    )


def point(p: BreakingPoint) -> Value:
    low, high = (None, None) if p.interval is None else (p.interval.low, p.interval.high)
    return Value(p.value, low, high, exact=p.integer)


def _plain(value: float) -> str:
    return number(value, own_decimals(value))


# -- conditions ------------------------------------------------------------------------------------------------------


def conditions(summary: Summary) -> Table | None:
    """What each condition promised and achieved, over the trials of each treatment."""
    rows: list[tuple[str, str, list[Quantity], int, int]] = []
    groups: list[tuple[int, str]] = []
    for place in places_of(summary.results):
        for result in place.results:
            begin = len(rows)
            for label, evidence in _evidence(result.result).items():
                held = sum(e.get("in_effect") is True for e in evidence)
                for (words, unit), found in by_quantity(label, evidence).items() or [(("", ""), [])]:
                    rows.append((label, f"{words} ({unit})" if unit else words, found, held, len(evidence)))
            if len(rows) > begin:
                groups.append((begin, f"{place.words}: {result.treatment}"))
    if not rows:
        return None
    caption = (
        "Conditions: what was promised, and what the kernel or the receivers saw: median over trials, and in "
        "brackets the smallest and largest of them."
    )
    return Table(
        "conditions",
        escape(caption),
        [
            Names("condition", [row[0] for row in rows], once=frozenset(row for row, _ in groups)),
            Names("quantity", [row[1] for row in rows]),
            Values("promised", "", [_over(row[2], lambda q: q.promised, alone=True) for row in rows]),
            Values("achieved", "", [_over(row[2], lambda q: q.achieved) for row in rows]),
            Texts("in effect", [f"{row[3]}/{row[4]}" for row in rows], right=True),
        ],
        tuple(groups),
    )


def _evidence(result: Result) -> dict[str, list[Mapping[str, Any]]]:
    """By condition that of each trial that has any."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for trial in result.trials_detail:
        for label, evidence in trial.evidence.items():
            found.setdefault(label, []).append(evidence)
    return found


def _over(found: Sequence[Quantity], side: Callable[[Quantity], float | None], *, alone: bool = False) -> Value:
    values = sorted(v for q in found if (v := side(q)) is not None)
    if not values:
        return Value(None)
    middle = statistics.median(values)
    whole = all(v == round(v, 2) for v in values)
    if alone or values[0] == values[-1]:
        return Value(middle, exact=whole)
    return Value(middle, values[0], values[-1], exact=all(v == int(v) for v in values))
