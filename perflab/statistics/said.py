"""What the programs of a trial said of it (docs/formats.md, section 4: `program`), over its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram


@dataclass(frozen=True, kw_only=True)
class Said:
    """By all processes together. Names are as the programs give them."""

    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """All values, of each process in the order in which it said them."""
    times: Mapping[str, Histogram] = field(default_factory=dict)
    outcome: str | None = None
    """The one that was said first."""
    reason: str | None = None
    """Of the outcome."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.figures, *self.times)


def of(processes: Iterable[Sequence[Mapping[str, Any]]]) -> Said:
    """Of the records of type `program` of each process, in the order of its file.

    Figures are told once, times as they were by then, of which the last ones count. Raises HistogramError.
    """
    figures: dict[str, tuple[float, ...]] = {}
    times: dict[str, list[Histogram]] = {}
    outcomes = []
    for records in processes:
        last: Mapping[str, Any] = {}
        for record in records:
            for name, values in (record.get("figures") or {}).items():
                figures[name] = (*figures.get(name, ()), *map(float, values))
            last = record.get("times") or last
            if record.get("outcome") is not None:
                outcomes.append(record["outcome"])
        for name, histogram in zip(last, hg.from_records(list(last.values())), strict=True):
            times.setdefault(name, []).append(histogram)
    first = min(outcomes, key=lambda outcome: int(outcome["at_ns"]), default=None)
    return Said(
        figures=figures,
        times={name: hg.merge(parts) for name, parts in times.items()},
        outcome=None if first is None else str(first["name"]),
        reason=None if first is None else str(first["reason"]),
    )
