"""What programs said of a trial, merged over its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflab.results.said import Said
from perflab.statistics import histogram as hg


def of(processes: Iterable[Sequence[Mapping[str, Any]]]) -> Said:
    """Of the records of type `program` of each process, in the order of its file.

    Figures are told once, times as they were by then, of which the last ones count. Raises histogram.HistogramError.
    """
    figures: dict[str, tuple[float, ...]] = {}
    times: dict[str, list[hg.Histogram]] = {}
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
