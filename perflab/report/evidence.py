"""The evidence of conditions as quantities: what was promised and what was achieved, in units that people read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from perflab.units import format_rate

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One number of a condition's evidence. What was not promised, or not measured, is None."""

    words: str
    unit: str
    promised: float | None
    achieved: float | None


@dataclass(frozen=True)
class _Kind:
    words: str
    unit: str
    promised: Callable[[Json], Any]
    achieved: Callable[[Json], Any]
    per: float = 1.0


def _of(key: str) -> Callable[[Json], Any]:
    return lambda part: part.get(key)


def _none(_: Json) -> None:
    return None


def _positive(key: str) -> Callable[[Json], Any]:
    """0 of a promise means that nothing was promised."""
    return lambda part: part.get(key) or None


def _wanted_by_inhibitors(promised: Json) -> float | None:
    load, cpus = promised.get("load_percent"), promised.get("cpus")
    return None if load is None or not cpus else load / 100 * len(cpus)


def _sum_of_threads(key: str) -> Callable[[Json], Any]:
    def read(achieved: Json) -> float | None:
        values = [thread.get(key) for thread in achieved.get("threads") or ()]
        return sum(values) if values and None not in values else None

    return read


def _escapes(achieved: Json) -> int | None:
    processes = achieved.get("processes")
    return None if not processes else sum(len(p["escapes"]) + len(p["ran_outside"]) for p in processes.values())


# By condition; a quantity that neither side has in a run is left out.
_KINDS: dict[str, tuple[_Kind, ...]] = {
    "cpu_load": (
        _Kind("CPUs wanted", "", _of("demand_cpus"), _of("cpus_wanted")),
        _Kind("CPUs used", "", _none, _of("cpus_used")),
    ),
    "cpu_pinning": (
        _Kind("CPUs of the workload", "", _of("count"), _none),
        _Kind("threads seen outside them", "", lambda _: 0, _escapes),
    ),
    "memory_pressure": (_Kind("resident memory", "MiB", _of("resident_bytes"), _of("resident_bytes"), 1 << 20),),
    "io_load": (
        _Kind("written", "MB/s", _of("written_mb_per_s"), _of("written_mb_per_s")),
        _Kind("longest pause", "s", _none, _of("longest_pause_s")),
    ),
    "network_shaping": (
        _Kind("rate at most", "Mbit/s", _of("rate_bytes_per_s"), _of("bytes_per_s"), 125_000),
        _Kind("delay", "ms", _positive("delay_ns"), _of("delay_ns"), 1e6),
        _Kind("jitter", "ms", _positive("jitter_ns"), _of("jitter_ns"), 1e6),
        _Kind("packets lost", "%", _positive("loss"), _of("loss"), 0.01),
        _Kind("packets dropped", "", _none, _of("drops")),
    ),
    "priority_inhibitor": (
        _Kind("CPUs wanted", "", _wanted_by_inhibitors, _sum_of_threads("cpus_wanted")),
        _Kind("CPUs used", "", _none, _sum_of_threads("cpus_used")),
    ),
    "message_flood": (
        _Kind("messages offered", "1/s", _of("messages_per_s"), _of("messages_per_s")),
        _Kind("messages delivered", "1/s", _positive("deliveries_per_s"), _of("deliveries_per_s")),
        _Kind("offered", "MB/s", _of("megabytes_per_s"), _of("megabytes_per_s")),
    ),
}


def quantities(label: str, evidence: Json) -> list[Quantity]:
    """The numbers of one condition's evidence; `label` is its name, with a number where a trial has several."""
    promised, achieved = evidence.get("promised") or {}, evidence.get("achieved") or {}
    kinds = _KINDS.get(label) or _KINDS.get(label.rpartition("_")[0]) or _alike(promised, achieved)
    found = [
        Quantity(kind.words, kind.unit, _scaled(kind.promised(promised), kind), _scaled(kind.achieved(achieved), kind))
        for kind in kinds
    ]
    return [q for q in found if q.promised is not None or q.achieved is not None]


def by_quantity(label: str, evidence: Iterable[Json]) -> dict[tuple[str, str], list[Quantity]]:
    """The same of several trials, by words and unit."""
    found: dict[tuple[str, str], list[Quantity]] = {}
    for one in evidence:
        for quantity in quantities(label, one):
            found.setdefault((quantity.words, quantity.unit), []).append(quantity)
    return found


def _alike(promised: Json, achieved: Json) -> tuple[_Kind, ...]:
    """Of a condition that is not known here: what both sides have under one name."""
    names = [k for k, v in promised.items() if _is_number(v) and _is_number(achieved.get(k))]
    return tuple(_Kind(name.replace("_", " "), "", _of(name), _of(name)) for name in names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scaled(value: Any, kind: _Kind) -> float | None:
    return float(value) / kind.per if _is_number(value) else None


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
