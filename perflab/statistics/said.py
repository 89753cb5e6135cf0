"""The reports of a trial's programs (docs/formats.md, section 4: `program`), over its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram


@dataclass(frozen=True, kw_only=True)
class SaidOutcome:
    process: str
    name: str
    reason: str
    at_ns: int


@dataclass(frozen=True, kw_only=True)
class Said:
    """By all processes together. Names are as the programs give them."""

    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """All values, of each process in the order in which it reported them."""
    times: Mapping[str, Histogram] = field(default_factory=dict)
    outcomes: tuple[SaidOutcome, ...] = ()
    """At most one from each process, the first one first."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.figures, *self.times)


def of(processes: Mapping[str, Iterable[Mapping[str, Any]]]) -> Said:
    """From the records of type `program` of each process by its name, in file order.

    Each figure is reported once; times are cumulative, so the last ones count. Raises HistogramError.
    """
    figures: dict[str, tuple[float, ...]] = {}
    times: dict[str, list[Histogram]] = {}
    outcomes = []
    for process, records in processes.items():
        last: Mapping[str, Any] = {}
        for record in records:
            for name, values in (record.get("figures") or {}).items():
                figures[name] = (*figures.get(name, ()), *map(float, values))
            last = record.get("times") or last
            if (told := record.get("outcome")) is not None:
                made = {key: str(told[key]) for key in ("name", "reason")}
                outcomes.append(SaidOutcome(process=process, at_ns=int(told["at_ns"]), **made))
        for name, histogram in zip(last, hg.from_records(list(last.values())), strict=True):
            times.setdefault(name, []).append(histogram)
    return Said(
        figures=figures,
        times={name: hg.merge(parts) for name, parts in times.items()},
        outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.at_ns)),
    )
