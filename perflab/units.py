"""Units: durations in, readable quantities out."""

from __future__ import annotations

import math
import re

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
    """The level of intervals for people, of several each: "95 %", "99.9 %", "90 % or 95 %"."""
    return " or ".join(f"{100 * confidence:.6g} %" for confidence in sorted(set(confidences)))


def format_time(ns: float | None) -> str:
    """A time with three significant digits and the unit that suits it: "812 ns", "45.2 µs", "1.30 ms"."""
    if ns is None:
        return "–"
    magnitude = abs(ns)
    if magnitude < 999.5:
        return f"{ns:.0f} ns"
    for unit, unit_ns in (("µs", 1e3), ("ms", 1e6)):
        if magnitude < 999.5 * unit_ns:
            return f"{_three_digits(ns / unit_ns)} {unit}"
    return f"{_three_digits(ns / 1e9)} s"


def format_count(n: int | None) -> str:
    """A count with a thin grouping: "126 480"."""
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
