"""The evidence of conditions as quantities: what was promised and what was achieved, in units that people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_type_hints

from perflab.condition import Evidence, Shown
from perflab.condition.kinds import REGISTRY, evidence_of
from perflab.units import format_rate

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One number of a condition's evidence. What was not promised, or not measured, is None."""

    words: str
    unit: str
    promised: float | None
    achieved: float | None


def quantities(label: str, evidence: Json) -> list[Quantity]:
    """The numbers of one condition's evidence; `label` is its name, with a number where a trial has several.

    A quantity that neither side has in a run is left out.
    """
    promised, achieved = evidence.get("promised") or {}, evidence.get("achieved") or {}
    record = next((evidence_of(name) for name in (label, label.rpartition("_")[0]) if name in REGISTRY), Evidence)
    if record is Evidence:  # nothing is declared here: what both sides have under one name
        names = [k for k, v in promised.items() if _is_number(v) and _is_number(achieved.get(k))]
        return [Quantity(n.replace("_", " "), "", float(promised[n]), float(achieved[n])) for n in names]
    sides = get_type_hints(record)
    wanted = _shown(sides["promised"], promised, is_promise=True)
    found = _shown(sides["achieved"], achieved, is_promise=False)
    both = [Quantity(*key, wanted.get(key), found.get(key)) for key in {**wanted, **found}]
    return [q for q in both if q.promised is not None or q.achieved is not None]


def _shown(side: Any, given: Json, *, is_promise: bool) -> dict[tuple[str, str], float | None]:
    """The values of the fields that tables have, by words and unit; of a side that may be null those of its record."""
    record = next(filter(is_dataclass, (side, *get_args(side))), None)
    values = {}
    for name, hint in get_type_hints(record, include_extras=True).items() if record is not None else ():
        shown = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Shown)), None)
        if shown is not None:
            value = given.get(name)
            if not _is_number(value) or (is_promise and not shown.zero and not value):
                value = None
            values[(shown.words, shown.unit)] = None if value is None else float(value) / shown.per
    return values


def by_quantity(label: str, evidence: Iterable[Json]) -> dict[tuple[str, str], list[Quantity]]:
    """The same of several trials, by words and unit."""
    found: dict[tuple[str, str], list[Quantity]] = {}
    for one in evidence:
        for quantity in quantities(label, one):
            found.setdefault((quantity.words, quantity.unit), []).append(quantity)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_words(label: str, evidence: Json) -> str:
    """ "CPUs wanted 1.66 (1.2 promised), CPUs used 0.572"; the reason where it was not in effect."""
    if evidence.get("in_effect") is not True:
        return str(evidence.get("reason") or "not in effect")
    parts = []
    for q in quantities(label, evidence):
        unit = f" {q.unit}" if q.unit else ""
        if q.achieved is None:
            parts.append(f"{q.words} {_short(q.promised)}{unit}")
        elif q.promised is None or q.promised == q.achieved == 0:
            parts.append(f"{q.words} {_short(q.achieved)}{unit}")
        else:
            parts.append(f"{q.words} {_short(q.achieved)}{unit} ({_short(q.promised)} promised)")
    return ", ".join(parts) or "in effect"


def _short(value: float | None) -> str:
    return format_rate(value)
