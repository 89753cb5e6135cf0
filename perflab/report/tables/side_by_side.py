"""The figures of several results side by side, each with its ratio to that of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from perflab import models
from perflab.columns import Cell, Column, Table
from perflab.quantity import COUNT, FACTOR, KILOBYTES, PER_MESSAGE, PERCENT, PLAIN, TIME
from perflab.report.label import labels
from perflab.report.tables.plain import records
from perflab.results.run import RunData
from perflab.results.trial import Result, counted, least_lost, owners, received
from perflab.statistics.target import machine_cpus


@dataclass(frozen=True)
class Side:
    run: RunData
    result: Result


def _of_total(figure: str, statistic: str) -> Column[Side]:
    def read(side: Side) -> float | None:
        times = getattr(side.result.totals, f"{figure}_ns")
        return None if times is None else getattr(times, statistic)

    return Column(f"{figure}_{statistic}_ns", f"{figure} {statistic}", read, TIME)


def _of_slowest(statistic: str) -> Column[Side]:
    """Percentiles of several services cannot be merged."""

    def read(side: Side) -> float | None:
        found = [getattr(s.round_trip_ns, statistic) for s in side.result.services if s.round_trip_ns is not None]
        return max((ns for ns in found if ns is not None), default=None)

    return Column(f"round_trip_{statistic}_ns", f"round trip {statistic}", read, TIME)


def _of_machine(side: Side) -> float | None:
    resources, cpus = side.result.resources, machine_cpus(side.run.manifest.host)
    if resources.cpu_percent_of_machine is None and resources.cpu_percent_mean is not None and cpus is not None:
        return resources.cpu_percent_mean / cpus
    return resources.cpu_percent_of_machine


COUNTS: tuple[Column[Side], ...] = (
    Column("delivered", "delivered", lambda side: received(side.result), COUNT),
    Column("late", "late", lambda side: counted(side.result, lambda owner: owner.late), COUNT),
    Column("too_late", "too late", lambda side: counted(side.result, lambda owner: owner.too_late), COUNT),
    Column("lost", "lost", lambda side: least_lost(*owners(side.result)), COUNT),
)
FIGURES: tuple[Column[Side], ...] = (
    *(_of_total(figure, key) for figure in ("latency", "response") for key in ("mean", "p50", "p99", "max")),
    *map(_of_slowest, ("p99", "max")),
    *COUNTS,
    Column("cpu_percent", "CPU, of one", lambda side: side.result.resources.cpu_percent_mean, PERCENT),
    Column("cpu_percent_of_machine", "CPU, of all", _of_machine, PERCENT),
    Column("rss_kb_max", "RSS, largest", lambda side: side.result.resources.rss_kb_max, KILOBYTES),
)
_TRIALS: Column[Side] = Column("trials", "trials", quantity=PLAIN)
_MAXIMA = ("latency_max_ns", "response_max_ns", "round_trip_max_ns", "rss_kb_max")
_ABOUT = ("workload", "middleware", "executor", "ipc", "pass_by", "conditions", "phase", "duration_s")


@dataclass(frozen=True)
class Beside:
    """A result beside the first one."""

    label: str
    side: Side
    figures: Mapping[str, float | None]
    ratios: Mapping[str, float | None]

    @property
    def trials(self) -> int:
        return self.side.result.coverage.trials_merged

    def document(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "run": self.side.run.name,
            "origin": self.side.run.origin,
            **{key: models.as_json(getattr(self.side.result, key)) for key in _ABOUT},
            "trials_merged": self.trials,
            "complete": self.side.result.coverage.complete,
            "outcomes": models.as_json(self.side.result.outcomes),
            "figures": dict(self.figures),
            "ratios": dict(self.ratios),
        }


def differ_in_trials(sides: Sequence[Side]) -> bool:
    """Then counts are means over trials, and maxima, which grow with the number of trials, have no ratio."""
    return len({side.result.coverage.trials_merged for side in sides}) > 1


def beside(sides: Sequence[Side]) -> list[Beside]:
    """All of them; the others are divided by the first."""
    figures: list[dict[str, Any]] = records(Table("figures", "Figures", FIGURES, sides))
    without: Sequence[str] = ()
    if differ_in_trials(sides):
        without = _MAXIMA
        for side, own in zip(sides, figures, strict=True):
            trials = side.result.coverage.trials_merged
            counts = {column.name: own[column.name] for column in COUNTS}
            own |= {name: n / trials if trials and n is not None else None for name, n in counts.items()}
    names = labels([side.result for side in sides], [side.run.name for side in sides])
    return [
        Beside(name, side, own, {key: None if key in without else _ratio(own[key], figures[0][key]) for key in own})
        for name, side, own in zip(names, sides, figures, strict=True)
    ]


def _ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def table(shown: Sequence[tuple[str, Beside]], *, per_trial: bool) -> Table[Column[Side]]:
    """A row for each known figure, with the results under their headers."""
    figures = [
        replace(c, header=f"{c.header} per trial", quantity=PER_MESSAGE) if per_trial and c in COUNTS else c
        for c in FIGURES
        if any(b.figures[c.name] is not None for _, b in shown)
    ]
    columns: list[Column[Column[Side]]] = [Column("figure", "", lambda figure: figure.header, rank=0)]
    for header, b in shown:
        columns.append(Column(header, header, partial(_cell, {**b.figures, _TRIALS.name: b.trials}), PLAIN, rank=0))
        if b is not shown[0][1]:
            columns.append(Column("ratio", "ratio", partial(_ratio_of, b), FACTOR, rank=1))
    return Table("side_by_side", "Side by side", columns, [_TRIALS, *figures])


def _cell(figures: Mapping[str, float | None], figure: Column[Side]) -> Cell:
    return Cell(figure.quantity.text(figures[figure.name]), figures[figure.name])


def _ratio_of(shown: Beside, figure: Column[Side]) -> float | None:
    return shown.ratios.get(figure.name)
