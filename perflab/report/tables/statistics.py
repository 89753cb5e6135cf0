"""Groups of values and their differences, as tables: from single values, or from only mean, sd and n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflab.columns import Cell, Column, Table
from perflab.quantity import NUMBER, PLAIN, P, Quantity
from perflab.results.comparison import Comparison, Estimate, Outlier
from perflab.statistics import verdicts
from perflab.statistics.sample import Sample
from perflab.statistics.summary_data import Moments, SummaryComparison

RATIO = Quantity("", verdicts.factor)
DIFFERENCE = Quantity("", lambda value: f"{value:+.3g}")
EFFECT = Quantity("", lambda value: f"{value:+.2f}")


@dataclass(frozen=True)
class Group:
    """The statistics of a group's values; estimates by quantity."""

    sample: Sample
    estimates: Mapping[str, Estimate]
    outliers: Sequence[Outlier]


def groups(what: str, rows: Sequence[Group]) -> Table[Group]:
    return Table(
        "groups",
        what,
        [
            Column("group", what, lambda g: g.sample.name, rank=0),
            Column("n", "n", lambda g: g.sample.n, PLAIN, rank=1),
            Column("missing", "missing", lambda g: g.sample.missing or None, PLAIN, rank=5),
            Column("median", "median", lambda g: g.estimates["median"], NUMBER, rank=1, beside=True),
            Column("mean", "mean", lambda g: g.estimates["mean"], NUMBER, rank=2, beside=True),
            Column("sd", "sd", lambda g: g.estimates["sd"].value, NUMBER, rank=3),
            Column("min", "min", lambda g: min(g.sample.values), NUMBER, rank=4),
            Column("max", "max", lambda g: max(g.sample.values), NUMBER, rank=4),
        ],
        rows,
    )


def comparisons(rows: Sequence[Comparison]) -> Table[Comparison]:
    return Table(
        "comparisons",
        "Comparisons",
        [
            Column("compared", "", lambda c: f"{c.treatment.name} : {c.baseline.name}", rank=0),
            Column("ratio", "ratio", lambda c: _cell(c.ratio, RATIO, 1.0), RATIO, rank=2, beside=True),
            Column("shift", "shift", lambda c: _cell(c.shift, DIFFERENCE, 0.0), DIFFERENCE, rank=3, beside=True),
            Column("p", "rank p", lambda c: c.p, P, rank=2),
            Column("p_adjusted", "all p", lambda c: c.p_adjusted, P, rank=1),
            Column("permutation", "perm. p", lambda c: c.permutation.p, P, rank=5),
            Column("welch", "t p", lambda c: c.welch.p, P, rank=5),
            Column("hedges_g", "g", lambda c: c.hedges_g.value, EFFECT, rank=6),
            Column("cliffs_delta", "delta", lambda c: c.cliffs_delta.value, EFFECT, rank=6),
            Column("sd_ratio", "sd ratio", lambda c: c.spread.sd_ratio.value, RATIO, rank=4),
            Column("spread", "spread p", lambda c: c.spread.brown_forsythe.p, P, rank=4),
            Column("verdict", "verdict", lambda c: c.verdict.replace("_", " "), rank=0),
        ],
        rows,
    )


def _cell(found: Estimate, quantity: Quantity, nothing: float) -> Cell:
    """An estimate for which `nothing` would be no difference."""
    excluded = nothing if found.interval is not None and not found.interval.contains(nothing) else None
    text = quantity.text(found.value)
    return Cell(text, found.value, low=found.low, high=found.high, excluded=excluded, reason=found.reason)


def _difference(c: SummaryComparison) -> Cell:
    return _cell(c.difference, DIFFERENCE, 0.0)


def moments(what: str, rows: Sequence[Moments], confidence: float) -> Table[Moments]:
    return Table(
        "groups",
        what,
        [
            Column("group", what, lambda g: g.name, rank=0),
            Column("n", "n", lambda g: g.n, PLAIN, rank=1),
            Column("mean", "mean", lambda g: g.interval(confidence), NUMBER, rank=1, beside=True),
            Column("sd", "sd", lambda g: g.sd, NUMBER, rank=1),
        ],
        rows,
    )


def of_moments(rows: Sequence[SummaryComparison]) -> Table[SummaryComparison]:
    return Table(
        "comparisons",
        "Comparisons",
        [
            Column("compared", "", lambda c: f"{c.treatment.name} : {c.baseline.name}", rank=0),
            Column("difference", "difference", _difference, DIFFERENCE, rank=1, beside=True),
            Column("p", "Welch p", lambda c: c.p, P, rank=1),
            Column("p_adjusted", "all p", lambda c: c.p_adjusted, P, rank=1),
            Column("hedges_g", "g", lambda c: c.hedges_g.value, EFFECT, rank=2),
            Column("detectable", "found with 0.8", lambda c: c.power.detectable, NUMBER, rank=3),
            Column("verdict", "verdict", lambda c: c.verdict.replace("_", " "), rank=0),
        ],
        rows,
    )
