"""Units: durations in, readable quantities out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from perflab.errors import BadInput

NS_PER_S = 1_000_000_000
MAX_DURATION_S = 7 * 24 * 3600
MAX_DURATION_LETTERS = 32

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_S,
    "min": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zµ]*)")


_SIZES: dict[str | None, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
SIZE_UNITS: dict[str | None, int] = {None: 1, **_SIZES}
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_QUANTITY = re.compile(rf"({NUMBER})\s*([A-Za-zµ%]*)")

Scalar = bool | int | float | str  # a level of a factor, as written


def quantity(value: Scalar) -> tuple[float, str]:
    """The number and the unit of a level: 20.0 and "ms" of "20ms", 20.0 and "" of 20. Raises ValueError.

    >>> quantity("20ms"), quantity("1.5 MiB"), quantity(3)
    ((20.0, 'ms'), (1.5, 'MiB'), (3.0, ''))
    """
    match = _QUANTITY.fullmatch(str(value).strip())
    if isinstance(value, bool) or match is None or not math.isfinite(float(match[1])):
        raise ValueError(f"{value!r} is not a number, with or without a unit")
    return float(match[1]), match[2]


def level_value(level: object) -> object:
    """A common value for levels that mean the same: 20, 20.0, "20" and "20 %"; "10ms" and "0.01s"; "on" and True.

    It does not know whether a bare number means seconds or bytes, so that 10 and "10s" are different.

    >>> level_value("0 %") == level_value(0), level_value("1KiB") == level_value("1024B")
    (True, True)
    """
    if isinstance(level, bool):
        return "on" if level else "off"
    if not isinstance(level, int | float | str):
        return level
    try:
        number, unit = quantity(level)
    except ValueError:
        return level
    if unit in ("", "%"):
        return number
    if unit in _SIZES:
        return number * _SIZES[unit], "B"
    ns = _UNIT_NS.get(unit.lower())
    return (number, unit) if ns is None else (round(number * ns), "ns")


def is_zero(level: object) -> bool:
    """Whether a level written by a user is the number 0, in any unit: 0, 0.0, "0", "0 %", "0MiB"."""
    try:
        return not isinstance(level, bool) and isinstance(level, Scalar) and quantity(level)[0] == 0
    except ValueError:
        return False


def parse_duration(text: str, option: str, *, zero_allowed: bool = False) -> int:
    """Nanoseconds of "10", "2.5", "500ms", "10s", "2min", "1h"; a bare number is seconds.

    Raises BadInput, which names `option`, for anything else, and for what is not within (0, 7 days].
    """
    match = _DURATION.fullmatch(text.strip().lower()) if len(text) <= MAX_DURATION_LETTERS else None
    unit_ns = _UNIT_NS.get(match.group(2) or "s") if match else None
    if match is None or unit_ns is None:
        raise BadInput(f"{option} {text!r} is not a duration; use seconds (10, 2.5) or a unit (500ms, 10s, 2min, 1h)")
    duration_ns = round(float(match.group(1)) * unit_ns)
    if duration_ns <= 0 and not zero_allowed:
        raise BadInput(f"{option} {text!r} must be longer than 0")
    if duration_ns > MAX_DURATION_S * NS_PER_S:
        raise BadInput(f"{option} {text!r} is longer than the 7 days that a trial may last")
    return duration_ns


def format_duration(seconds: float) -> str:
    """A duration for people: "3 s", "2 min 5 s", "1 h 30 min"."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{n} {unit}" for n, unit in parts if n)


def format_confidence(*confidences: float) -> str:
    """The level of intervals for people, for one or several: "95 %", "99.9 %", "90 % or 95 %"."""
    return " or ".join(f"{100 * confidence:.6g} %" for confidence in sorted(set(confidences)))


def format_time(ns: float | None) -> str:
    """A time with three significant digits and a suitable unit: "812 ns", "45.2 µs", "1.30 ms"."""
    if ns is None:
        return "–"
    magnitude = abs(ns)
    if magnitude < 999.5:
        return f"{ns:.0f} ns"
    for unit, unit_ns in (("µs", 1e3), ("ms", 1e6)):
        if magnitude < 999.5 * unit_ns:
            return f"{_three_digits(ns / unit_ns)} {unit}"
    return f"{_three_digits(ns / 1e9)} s"


def plural(n: int, noun: str, plural_noun: str | None = None) -> str:
    """ "1 trial", "1 200 trials"."""
    return f"{format_count(n)} {noun if n == 1 else plural_noun or f'{noun}s'}"


def on_cpus(cpus: Sequence[int] | None) -> str:
    """ " on CPU 3", " on CPUs 0, 2"; empty if none are named."""
    return f" on CPU{'s' if len(cpus) > 1 else ''} {', '.join(map(str, cpus))}" if cpus else ""


def format_count(n: int | None) -> str:
    """A count with thin grouping: "126 480"."""
    return "–" if n is None else f"{n:,}".replace(",", " ")


def format_bytes(n: float | None) -> str:
    """A size in binary units: "36 B", "9.77 KiB", "1 MiB"."""
    if n is None:
        return "–"
    if n < 1024:
        return f"{n:.0f} B"
    for unit in ("KiB", "MiB"):
        n /= 1024
        if n < 1024:
            return f"{_three_digits(n).rstrip('0').rstrip('.') if n < 100 else _three_digits(n)} {unit}"
    return f"{_three_digits(n / 1024)} GiB"


def format_rate(hz: float | None) -> str:
    """A frequency without needless digits: "100", "2", "0.5", "66.7"."""
    return "–" if hz is None or not math.isfinite(hz) else f"{hz:.3g}" if hz < 1000 else f"{hz:.0f}"


def _three_digits(x: float) -> str:
    decimals = 2 if abs(x) < 9.995 else 1 if abs(x) < 99.95 else 0
    return f"{x:.{decimals}f}"


def duration_text(ns: int) -> str:
    """A duration in the user's notation, exactly: "10ms". A bare number would be read as seconds."""
    for unit, unit_ns in (("s", NS_PER_S), ("ms", 10**6), ("us", 10**3)):
        if ns % unit_ns == 0:
            return f"{ns // unit_ns}{unit}"
    return f"{ns}ns"


def numbered(trials: Sequence[int], most: int = 8) -> str:
    """ "trial 3", "trials 3, 5 and 9", "trials 1, 2, 3, … (24 of them)"."""
    if len(trials) == 1:
        return f"trial {trials[0]}"
    if len(trials) > most:
        return f"trials {', '.join(map(str, trials[:most]))}, … ({len(trials)} of them)"
    return f"trials {listed([str(trial) for trial in trials])}"


def listed(words: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
