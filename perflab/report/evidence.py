"""The evidence of conditions as quantities: promised and achieved, in units for people."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from perflab.condition import Evidence, Shown
from perflab.condition.kinds import evidence_of
from perflab.mitigation.kinds import PARTS
from perflab.units import format_rate

Json = Mapping[str, Any]
Values = dict[tuple[str, str], float | None]  # by words and unit


@dataclass(frozen=True)
class Quantity:
    """A number in a condition's evidence, over the trials that promised or measured it."""

    words: str
    unit: str
    promised: Sequence[float]
    achieved: Sequence[float]

    @property
    def wanted(self) -> float | None:
        return next(iter(self.promised), None)

    @property
    def middle(self) -> float | None:
        return statistics.median(self.achieved) if self.achieved else None

    @property
    def ends(self) -> tuple[float, ...]:
        """The smallest and the largest achieved value."""
        return (min(self.achieved), max(self.achieved)) if self.achieved else ()


def over_trials(label: str, evidence: Iterable[Json]) -> list[Quantity]:
    """The numbers of one condition's evidence; `label` is its name, with a number if a trial has several.

    A quantity that neither side has in a run is left out.
    """
    found: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for one in evidence:
        for side, values in enumerate(_sides(label, one)):
            for key, value in values.items():
                found.setdefault(key, ([], []))[side].extend([] if value is None else [value])
    return [Quantity(*key, *sides) for key, sides in found.items() if any(sides)]


def _sides(label: str, evidence: Json) -> tuple[Values, Values]:
    """What one trial promised, and what it achieved."""
    promised, achieved = evidence.get("promised") or {}, evidence.get("achieved") or {}
    if (declared := _declared(label)) is None:  # fields that both sides have under one name
        wanted, found = ({(k.replace("_", " "), ""): _number(v) for k, v in of.items()} for of in (promised, achieved))
        both = [key for key, value in wanted.items() if None not in (value, found.get(key))]
        return {key: wanted[key] for key in both}, {key: found[key] for key in both}
    return _values(declared[0], promised, is_promise=True), _values(declared[1], achieved, is_promise=False)


def _values(fields: Mapping[str, Shown], given: Json, *, is_promise: bool) -> Values:
    values: Values = {}
    for name, shown in fields.items():
        value = _number(given.get(name))
        is_told = value is not None and (shown.zero or value or not is_promise)
        values[(shown.words, shown.unit)] = value / shown.per if value is not None and is_told else None
    return values


@cache
def _declared(label: str) -> tuple[dict[str, Shown], dict[str, Shown]] | None:
    """The fields of both sides that are in tables; None if the condition is unknown here, or declares none."""
    record = next((evidence_of(name, PARTS) for name in (label, label.rpartition("_")[0]) if name in PARTS), Evidence)
    if record is Evidence:
        return None
    sides = get_type_hints(record)
    return _fields(sides["promised"]), _fields(sides["achieved"])


def _fields(side: Any) -> dict[str, Shown]:
    """For a side that may be null, the fields of its record."""
    record = next(filter(is_dataclass, (side, *get_args(side))), None)
    hints = {} if record is None else get_type_hints(record, include_extras=True)
    found = {
        name: [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Shown)] for name, hint in hints.items()
    }
    return {name: shown[0] for name, shown in found.items() if shown}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def in_words(label: str, evidence: Json) -> str:
    """ "CPUs wanted 1.66 (1.2 promised), CPUs used 0.572"; the reason if it was not in effect."""
    if evidence.get("in_effect") is not True:
        return str(evidence.get("reason") or "not in effect")
    parts = []
    for q in over_trials(label, [evidence]):
        unit = f" {q.unit}" if q.unit else ""
        wanted, found = q.wanted, q.middle
        beside = "" if None in (wanted, found) or wanted == found == 0 else f" ({format_rate(wanted)} promised)"
        parts.append(f"{q.words} {format_rate(wanted if found is None else found)}{unit}{beside}")
    return ", ".join(parts) or "in effect"
