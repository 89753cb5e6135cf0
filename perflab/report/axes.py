"""Scales of pictures: units, ranges, ticks. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

PERCENTILE_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999)

MIN_TICKS = 3

T = TypeVar("T")

Ticks = tuple[tuple[float, str], ...]


class Unit(NamedTuple):
    """A unit of time, and how many nanoseconds it has."""

    name: str
    ns: float


TIME_UNITS = (Unit("ns", 1.0), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9))


def time_unit(values_ns: Iterable[float]) -> Unit:
    """The unit in which the middle of a logarithmic axis over these values is a convenient number."""
    known = [max(v, 1.0) for v in values_ns]
    middle = math.sqrt(min(known) * max(known)) if known else 1e3
    return next((unit for unit in reversed(TIME_UNITS) if middle >= unit.ns), TIME_UNITS[0])


def log_range(values: Iterable[float]) -> tuple[float, float]:
    """A range around positive values with some room on both sides, at least from 1 to 2."""
    known = [v for v in values if v > 0]
    if not known:
        return 0.1, 10.0
    low, high = min(known), max(known)
    room = max(high / low, 2.0) ** 0.06
    if high / low < 2:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(2), middle * math.sqrt(2)
    return low / room, high * room


def log_ticks(low: float, high: float) -> Ticks:
    """Decades, with 2 and 5 between them if there are few; evenly spaced round numbers on a short axis."""
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades <= 3 else (1,)
    ticks = []
    for exponent in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1):
        for step in steps:
            at = step * 10.0**exponent
            if low <= at <= high:
                ticks.append((at, number(at)))
    return tuple(ticks) if len(ticks) >= MIN_TICKS else linear_ticks(low, high, 5)


def linear_ticks(low: float, high: float, wanted: int = 6) -> Ticks:
    """About `wanted` round numbers within a range."""
    span = high - low
    if span <= 0:
        return ((low, number(low)),)
    raw = span / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(s * magnitude for s in (1, 2, 5, 10) if s * magnitude >= raw * 0.8)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple((k * step, number(k * step)) for k in range(first, last + 1))


def nines(percentile: float) -> float:
    """The position of a percentile on HdrHistogram's scale: 0 → 0, 90 → 1, 99 → 2, 99.9 → 3."""
    return -math.log10(1.0 - percentile / 100.0)


def percentile_ticks(high: float) -> Ticks:
    """The labelled percentiles of an axis up to a percentile."""
    return tuple((p, f"{p:.10g}") for p in PERCENTILE_TICKS if p <= high + 1e-12)


def number(value: float) -> str:
    """A number without needless digits, thousands separated: "0.5", "20", "10 000"."""
    if value and abs(value) < 1e-3:
        return f"{value:.3g}"
    text = f"{value:,.6f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace(",", "\u2009")


def runs(values: Sequence[T | None]) -> Iterator[tuple[int, int, T]]:
    """Merges equal neighbours: the first index, the one after the last, and the value; without those of None."""
    start = 0
    for value, equal in itertools.groupby(values):
        end = start + len(list(equal))
        if value is not None:
            yield start, end, value
        start = end


def spread(count: int, wanted: int, offset: int = 0) -> Sequence[int]:
    """Up to `wanted` indices evenly within `count`; an `offset` keeps the marks of several lines apart."""
    if count <= 0:
        return ()
    step = max(1, math.ceil(count / wanted))
    return tuple(range(offset % step, count, step))
