"""Quantities: the unit that a value has as a plain number, and how it is written for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

UNKNOWN = "–"


@dataclass(frozen=True)
class Quantity:
    """`write` makes of a plain number, which is in `unit`, what people read.

    `units` are those in which people write it, with what each is in `unit`; empty: a plain number.
    """

    unit: str
    write: Callable[[float], str]
    numeric: bool = True
    units: Mapping[str, float] = field(default_factory=dict, compare=False)

    def text(self, value: float | str | None) -> str:
        """ "45.2 µs"; of what is not known "–".

        >>> TIME.text(45_200), PERCENT.text(0.1111), COUNT.text(None)
        ('45.2 µs', '0.111 %', '–')
        """
        if value is None or value == "":
            return UNKNOWN
        return value if isinstance(value, str) else self.write(value)


def _count(value: float) -> str:
    return format_count(int(value)) if value == int(value) else f"{value:.4g}"


def _per_message(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else format_count(round(value))


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.995 else "1.0"


def _part(value: float) -> str:
    """Never 100 % where something is missing."""
    return f"{value:.3g} %" if value < 99.95 or value >= 100 else "> 99.9 %"


TEXT = Quantity("", str, numeric=False)
PLAIN = Quantity("", str)  # the number of a trial: no count, so without groups of digits
TIME = Quantity("ns", format_time, units={"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9})
DURATION = Quantity("s", format_duration)
COUNT = Quantity("", _count)
PERCENT = Quantity("%", lambda value: f"{value:.3g} %", units={"%": 1})
PER_MESSAGE = Quantity("per message", _per_message)
# The kernel's kilobytes, which have 1024 bytes.
KILOBYTES = Quantity(
    "kB", lambda value: format_bytes(value * 1024),
    units={"kB": 1e3 / 1024, "MB": 1e6 / 1024, "GB": 1e9 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1 << 20},
)  # fmt: skip
BYTES = Quantity("B", format_bytes)
FREQUENCY = Quantity("Hz", format_rate)
SHARE = Quantity("", lambda value: f"{100 * value:.1f} %")  # of 1
FACTOR = Quantity("", _factor)
P = Quantity("", _p)  # of a test
PART = Quantity("%", _part)  # of a whole
POINTS = Quantity("percentage points", lambda value: f"{value:.4g}")
SYMBOL = Quantity("", str, numeric=False)  # of C++: where there is no room its template arguments go
FLAG = Quantity("", lambda value: "yes" if value else "no", numeric=False)


def of_unit(unit: str) -> Quantity:
    """Of plain numbers in a unit, whether or not a quantity here has it."""
    known = next((q for q in (TIME, DURATION, COUNT, PERCENT, KILOBYTES, BYTES) if q.unit == unit), None)
    return known or Quantity(unit, lambda value: f"{format_rate(value)} {unit}", units={unit: 1})
