"""Distributions of many groups at once: exact order statistics, no interpolation.

The q-quantile of n values is the ceil(q n)-th smallest of them. Of fewer than 1 / (1 - q) values it would be the
maximum under another name, and is null: p50 needs 2 values, p90 10, p99 100, p99.9 1,000. The standard deviation is
that of a sample (divided by n - 1) and null for fewer than 2 values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl
else:
    from perflab.late_modules import polars as pl

PER_MILLE = {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999}
STATISTICS = ("min", *PER_MILLE, "max", "mean", "sd")
MAX_AT = "max_at"  # when the maximum happened: of figures that `describe` is given instants of
TIMED = ("min", *PER_MILLE, "max", MAX_AT, "mean", "sd")

REASON_QUANTILE = "a quantile q needs 1 / (1 - q) values: p50 2, p90 10, p99 100, p99.9 1,000"
REASON_SD = "a standard deviation needs 2 values"


def needed(per_mille: int) -> int:
    """How many values a quantile needs at least."""
    return -(-1000 // (1000 - per_mille))


def rank(n: pl.Expr, per_mille: int) -> pl.Expr:
    """The place, from 0, of the quantile among n ascending values."""
    return (n.cast(pl.Int64) * per_mille + 999) // 1000 - 1


def quantile(values: pl.Expr, per_mille: int) -> pl.Expr:
    """One quantile of the values of a group; nulls are no values. For an aggregation, or a whole column."""
    known = values.drop_nulls()
    n = known.len()
    enough = n >= needed(per_mille)
    return pl.when(enough).then(known.sort().get(rank(n, per_mille).clip(0, None), null_on_oob=True))


def describe(
    frame: pl.DataFrame | pl.LazyFrame,
    by: Sequence[str],
    figures: Mapping[str, pl.Expr],
    others: Iterable[pl.Expr] = (),
    *,
    statistics: Sequence[str] = STATISTICS,
    unit: str = "ns",
    at: Mapping[str, pl.Expr] | None = None,
) -> pl.DataFrame:
    """One row per group: the columns of `by`, `others` (aggregations), and of each figure its statistics.

    A figure called "duration" becomes duration_n, duration_min_ns, duration_p50_ns, ... Nulls are no values: they are
    not counted in duration_n. Without `by` there is one row. Each figure is sorted once for all its quantiles. Rows
    come in the order of the groups' first appearance. `at` are the instants of figures' values: the one of the
    maximum becomes duration_max_at_ns.
    """
    keys = list(by)
    first_maxima = (
        instant.filter(figures[name] == figures[name].max()).first().alias(f"{name}_{MAX_AT}_ns")
        for name, instant in (at or {}).items()
    )
    others = [*others, *first_maxima]
    lists = [values.drop_nulls().alias(_list(name)) for name, values in figures.items()]
    lazy = frame.lazy()
    if keys:
        grouped = lazy.group_by(keys, maintain_order=True).agg(*others, *lists)
    else:
        grouped = lazy.select(*others, *(values.implode() for values in lists))
    # Sorted as lists, values alone are moved; within groups their places would be, too, which takes twice as long.
    grouped = grouped.with_columns(pl.col(_list(name)).list.sort() for name in figures)
    statistics = [statistic for statistic in statistics if statistic != MAX_AT]  # made above
    columns = [column for name in figures for column in _statistics(name, statistics, unit)]
    found = grouped.with_columns(columns).drop([_list(name) for name in figures]).collect()
    instants = [f"{name}_{MAX_AT}_ns" for name in at or {}]
    order = [column for column in found.columns if column not in instants]
    for instant in instants:
        largest = instant.replace(MAX_AT, "max")
        order.insert(order.index(largest) + 1, instant)
    return found.select(order)


def columns_of(name: str, statistics: Sequence[str] = STATISTICS, unit: str = "ns") -> tuple[str, ...]:
    """The columns that `describe` makes of a figure, without its n."""
    return tuple(f"{name}_{statistic}_{unit}" for statistic in statistics)


def _list(name: str) -> str:
    return f"__{name}_sorted"


def _statistics(name: str, statistics: Sequence[str], unit: str) -> list[pl.Expr]:
    values = pl.col(_list(name))
    n = values.list.len()
    made: dict[str, pl.Expr] = {
        "min": values.list.first(),
        "max": values.list.last(),
        "mean": values.list.mean(),
        "sd": pl.when(n >= 2).then(values.list.std()),
    }
    for quantile_name, per_mille in PER_MILLE.items():
        place = rank(n, per_mille).clip(0, None)
        made[quantile_name] = pl.when(n >= needed(per_mille)).then(values.list.get(place, null_on_oob=True))
    return [n.alias(f"{name}_n"), *(made[s].alias(f"{name}_{s}_{unit}") for s in statistics)]
