"""What conditions promised beside what they achieved, over all trials: rows of texts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from perflab.report.run_page.effects import plain
from perflab.units import format_bytes, format_duration, format_time

Json = Mapping[str, Any]

# By the unit at the end of a key, how a number is written; the unit then leaves the name.
_UNITS = (
    ("_megabytes_per_s", " MB/s"),
    ("megabytes_per_s", " MB/s"),
    ("_mb_per_s", " MB/s"),
    ("_bits_per_s", " bit/s"),
    ("_per_s", " /s"),
    ("_hz", " Hz"),
    ("_percent", " %"),
    ("_cpus", " CPUs"),
    ("_kb", " KiB"),
)
# Promised under one name, achieved under another.
_ALIKE = {"demand_cpus": "cpus_wanted", "workers": "workers_alive"}


def observed(promised: Sequence[Json], achieved: Sequence[Json]) -> list[tuple[str, str, str, str]]:
    """A row per figure: its name, what was promised, the median of what was achieved, and the range over trials.

    Figures of both come first. Lists of numbers (per second, per thread) are taken as their values together.
    """
    wanted = _flat(promised[0]) if promised else {}
    known = [_flat(one) for one in achieved]
    keys = list(dict.fromkeys(key for one in known for key in one))
    rows = []
    used: set[str] = set()
    for key, promise in wanted.items():
        other = key if key in keys else _ALIKE.get(key, key)
        if other in keys:
            used.add(other)
            rows.append((_name(other), _value(key, promise), *_over_trials(other, known)))
    rows += [
        (_name(k), _value(k, p), "–", "–") for k, p in wanted.items() if k not in used and _ALIKE.get(k) not in used
    ]
    rows += [(_name(key), "–", *_over_trials(key, known)) for key in keys if key not in used]
    return [row for row in rows if row[1:] != ("–", "–", "–")]


def _flat(document: Json, prefix: str = "") -> dict[str, Any]:
    """Members of members as "name: member"; what is a list of objects is left to trial.json."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}: ")
        elif not (isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)):
            found[f"{prefix}{key}"] = value
    return found


def _over_trials(key: str, known: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    values = [one[key] for one in known if one.get(key) is not None]
    numbers: list[float] = []
    for value in values:
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in parts if v is not None):
            told = dict.fromkeys(_value(key, v) for v in values)
            return "; ".join(told) or "–", "–"
        numbers += [float(v) for v in parts if v is not None]
    if key == "cpus" or key.startswith("cpus_shared"):
        return "; ".join(dict.fromkeys(_value(key, v) for v in values)), "–"
    if not numbers:
        return "–", "–"
    low, high = min(numbers), max(numbers)
    whole = all(n == int(n) for n in numbers)
    form = [_value(key, int(n) if whole and n == int(n) else n) for n in (statistics.median(numbers), low, high)]
    return form[0], form[1] if low == high else f"{form[1]} to {form[2]}"


def _name(key: str) -> str:
    for suffix, _ in _UNITS:
        if key.endswith(suffix) and key != suffix and suffix not in ("_cpus", "_kb"):
            name = key.removesuffix(suffix)
            return (name if name not in ("", "messages") else "messages").replace("_", " ")
    for suffix in ("_bytes", "_ns", "_s"):
        if key.endswith(suffix):
            return key.removesuffix(suffix).replace("_", " ")
    return {"megabytes_per_s": "data"}.get(key, key).replace("_", " ")


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value)
    if key.endswith("_bytes"):
        return format_bytes(value)
    if key.endswith("_ns"):
        return format_time(value)
    for suffix, unit in _UNITS:
        if key.endswith(suffix):
            return f"{plain(value)}{unit}"
    if key.endswith("_s"):
        return format_duration(value) if value >= 1 else format_time(value * 1e9)
    if key.endswith("share"):
        return f"{100 * value:.3g} %"
    return plain(value)
