"""Times beside their floor: an observer's measurement of the kernel alone in the same trials, on the same CPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perflab.columns import Column, Read, Table
from perflab.quantity import FACTOR, TIME
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.figure import Distribution, Median, OwnTimes
from perflab.results.trial import Result
from perflab.statistics.key_figures import OVER_FLOOR
from perflab.statistics.metrics import named, over_floor


@dataclass(frozen=True)
class Beside:
    """Times of a result with their floor; the ratios are medians over its trials, one value per trial."""

    figure: str
    times: OwnTimes
    floor: str
    floor_ns: Distribution
    result: Result

    def ratio(self, statistic: str) -> Read:
        """For a single trial its value, without an interval."""
        name = over_floor(self.figure, self.floor, statistic)
        median: Median | None = self.times.metrics.get(name)
        if median is not None or len(self.result.merged) != 1:
            return median
        return named(name).read(self.result.merged[0]).value


def tables(rows: Sequence[Of[Result]]) -> list[Table[Of[Beside]]]:
    """One table, with a row for each figure with a measured floor; none if there is no such figure."""
    found = [beside for row in rows for beside in row.parts(_beside)]
    if not found:
        return []
    columns: list[Column[Of[Beside]]] = [
        result_column(0),
        RUN,
        Column("figure", "times", lambda row: row.record.figure.replace("_", " "), rank=3),
        Column("floor", "against", lambda row: row.record.floor, rank=2),
    ]
    for group, of in (("times", _own), ("floor", _floor)):
        columns += [Column(f"{group}_{name}", name, _of(name, of), TIME, rank=1, group=group) for name in OVER_FLOOR]
    columns += [
        Column(f"over_floor_{name}", f"{name} / floor", _over(name), FACTOR, rank=0, beside=True) for name in OVER_FLOOR
    ]
    note = (
        "Ratios are those of one trial, or for several the medians with their intervals; times are over all "
        "trials together."
    )
    return [Table("floors", "Compared with the floor", columns, found, [note])]


def _beside(result: Result) -> list[Beside]:
    return [
        Beside(name, entry, entry.floor, floor_ns, result)
        for name, entry in result.key_figures.items()
        if isinstance(entry, OwnTimes)
        and entry.floor is not None
        and entry.of_ns is not None
        and (floor_ns := result.observed_ns.get(entry.floor)) is not None
    ]


def _own(beside: Beside) -> Distribution | None:
    return beside.times.of_ns


def _floor(beside: Beside) -> Distribution | None:
    return beside.floor_ns


def _of(statistic: str, of: Callable[[Beside], Distribution | None]) -> Callable[[Of[Beside]], float | None]:
    return lambda row: getattr(of(row.record), statistic, None)


def _over(statistic: str) -> Callable[[Of[Beside]], Read]:
    return lambda row: row.record.ratio(statistic)
