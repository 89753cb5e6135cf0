"""What conditions promised and what they achieved, as a table: over the trials of each treatment."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Table
from perflab.quantity import COUNT, NUMBER, PLAIN
from perflab.report.evidence import Quantity, over_trials
from perflab.results.summary import Summary
from perflab.results.trial import Result
from perflab.statistics.pairs import places_of


@dataclass(frozen=True)
class Effect:
    """One quantity of a condition over the trials of a treatment."""

    treatment: str
    condition: str
    of: Quantity
    in_effect: str  # "8/8"

    @property
    def quantity(self) -> str:
        return f"{self.of.words} ({self.of.unit})" if self.of.unit else self.of.words


def conditions(summary: Summary) -> Table[Effect]:
    rows = [
        effect
        for place in places_of(summary.results)
        for result in place.results
        for effect in _effects(f"{place.words}: {result.treatment}", result.result)
    ]
    return Table(
        "conditions",
        "Conditions",
        [
            Column("condition", "condition", lambda row: row.condition, rank=0, once=True),
            Column("quantity", "quantity", lambda row: row.quantity, rank=0),
            Column("promised", "promised", lambda row: _over(row.of.promised, alone=True), NUMBER, rank=0),
            Column("achieved", "achieved", lambda row: _over(row.of.achieved), NUMBER, rank=0),
            Column("in_effect", "in effect", lambda row: row.in_effect, PLAIN, rank=0),
        ],
        rows,
        grouped=lambda row: row.treatment,
    )


def _effects(treatment: str, result: Result) -> Iterator[Effect]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for trial in result.trials_detail:
        for label, evidence in trial.evidence.items():
            found.setdefault(label, []).append(evidence)
    for label, parts in found.items():
        held = f"{sum(part.get('in_effect') is True for part in parts)}/{len(parts)}"
        for quantity in over_trials(label, parts) or [Quantity("", "", (), ())]:
            yield Effect(treatment, label, quantity, held)


def _over(values: Sequence[float], *, alone: bool = False) -> Cell | None:
    """The median, and beside it the smallest and the largest, unless it is the only value."""
    if not values:
        return None
    middle, low, high = statistics.median(values), min(values), max(values)
    if alone or low == high:
        exact = all(v == round(v, 2) for v in values)
        return Cell(NUMBER.text(middle), middle, quantity=COUNT if exact else NUMBER)
    exact = all(v == int(v) for v in values)
    return Cell(NUMBER.text(middle), middle, low=low, high=high, quantity=COUNT if exact else NUMBER)
