"""Quantities: the unit that a value has as a plain number, and how it is written for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

UNKNOWN = "–"


@dataclass(frozen=True)
class Quantity:
    """`write` formats a plain number, which is in `unit`, for people.

    `units` are those for people, with the size of each in `unit`; empty: a plain number. If the numbers of a column
    share one unit, it is one of `scales`, each with its size in `unit`; other values are written as they are.
    """

    unit: str
    write: Callable[[float], str]
    numeric: bool = True
    units: Mapping[str, float] = field(default_factory=dict, compare=False)
    scales: tuple[tuple[str, float], ...] = ()
    exact: bool = False  # a count: it has only its own decimals
    signed: bool = False  # a + is written, too
    decimals: int = 0  # minimum number of decimals, for numbers below 10

    def text(self, value: float | str | None) -> str:
        """ "45.2 µs"; "–" for an unknown value.

        >>> TIME.text(45_200), PERCENT.text(0.1111), COUNT.text(None)
        ('45.2 µs', '0.111 %', '–')
        """
        if value is None or value == "":
            return UNKNOWN
        return value if isinstance(value, str) else self.write(value)

    def scale(self, values: Iterable[float | None]) -> tuple[float, str]:
        """The divisor that makes most of these values readable, and the name of that unit.

        >>> TIME.scale([45_000, 91_000, 2_500_000]), COUNT.scale([3])
        ((1000.0, 'µs'), (1.0, ''))
        """
        sizes = sorted(abs(v) for v in values if v) or [0.0]
        usual, largest = sizes[len(sizes) // 2], sizes[-1]
        fitting = [(per, name) for name, per in self.scales if usual >= per or largest >= 1e5 * per]
        return fitting[-1] if fitting else (self.scales[0][1], self.scales[0][0])

    @property
    def change(self) -> Quantity:
        """For a difference between two values."""
        return replace(self, signed=True)


def _count(value: float) -> str:
    return format_count(int(value)) if value == int(value) else f"{value:.4g}"


def _data_rate(value: float) -> str:
    per, name = DATA_RATE.scale([value])
    return f"{_number(value / per)} {name}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _per_message(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else format_count(round(value))


def _factor(value: float) -> str:
    if value < 0.095:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.995 else "1.0"


def _part(value: float) -> str:
    """Never 100 % if something is missing."""
    return f"{value:.3g} %" if value < 99.95 or value >= 100 else "> 99.9 %"


TEXT = Quantity("", str, numeric=False)
PLAIN = Quantity("", str)  # the number of a trial: not a count, so without groups of digits
_TIMES = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIME = Quantity("ns", format_time, units={"ns": 1, "us": 1e3, **_TIMES}, scales=tuple(_TIMES.items()))
DURATION = Quantity("s", format_duration)
COUNT = Quantity("", _count, scales=(("", 1.0),), exact=True)
NUMBER = Quantity("", _number, scales=(("", 1.0),))
PERCENT = Quantity("%", lambda value: f"{value:.3g} %", units={"%": 1}, scales=(("%", 1.0),))
PER_MESSAGE = Quantity("per message", _per_message, scales=(("", 1.0),))
# The kernel's kilobytes, which have 1024 bytes.
KILOBYTES = Quantity(
    "kB", lambda value: format_bytes(value * 1024), scales=(("MiB", 1024.0),),
    units={"kB": 1e3 / 1024, "MB": 1e6 / 1024, "GB": 1e9 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1 << 20},
)  # fmt: skip
PER_SECOND = Quantity("1/s", lambda value: f"{_number(value) if value < 1000 else format_count(round(value))}/s")
_RATES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
DATA_RATE = Quantity("B/s", _data_rate, units=_RATES, scales=tuple(_RATES.items()))
DRIFT = Quantity("ns/s", lambda value: f"{'-' if value < 0 else ''}{format_time(abs(value))}/s")
GROWTH = Quantity("kB/s", lambda value: f"{value:.3g} kB/s")  # of the kernel's kilobytes
BYTES = Quantity("B", format_bytes)
FREQUENCY = Quantity("Hz", format_rate)
_CLOCKS = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
CLOCK = Quantity("Hz", lambda value: f"{value / 1e9:.3g} GHz", units=_CLOCKS, scales=tuple(_CLOCKS.items()))
SHARE = Quantity("", lambda value: f"{100 * value:.1f} %")  # of 1
FACTOR = Quantity("", _factor, scales=(("×", 1.0),), decimals=2)
P = Quantity("", _p)  # of a test
PART = Quantity("%", _part)  # of a whole
POINTS = Quantity("percentage points", lambda value: f"{value:.4g}")
SYMBOL = Quantity("", str, numeric=False)  # of C++: template arguments are dropped for lack of room
FLAG = Quantity("", lambda value: "yes" if value else "no", numeric=False)


# Lengths and angles, each in a suitable unit, whatever the unit of plain numbers.
_SIZES: tuple[Mapping[str, float], ...] = (
    {"µm": 1e-6, "mm": 1e-3, "m": 1.0},
    {"µrad": 1e-6, "mrad": 1e-3, "rad": 1.0},
)


def _size(unit: str, sizes: Mapping[str, float]) -> Quantity:
    scales = [(name, size / sizes[unit]) for name, size in sizes.items()]

    def write(value: float) -> str:
        name, per = next((scale for scale in scales if abs(value) < 999.5 * scale[1]), scales[-1])
        return f"{_number(value / per)} {name}"

    typed = {name.replace("µ", "u"): per for name, per in scales}
    return Quantity(unit, write, units=typed | dict(scales), scales=tuple(scales))


def of_unit(unit: str) -> Quantity:
    """For plain numbers in a unit, whether or not a quantity here has it.

    >>> of_unit("mm").text(0.0123), of_unit("mm").text(12.3), of_unit("m").text(0.0000004), of_unit("mrad").text(2500)
    ('12.3 µm', '12.3 mm', '0.4 µm', '2.5 rad')
    """
    known = next((q for q in (TIME, COUNT, PERCENT, KILOBYTES) if q.unit == unit), None)
    known = known or next((_size(unit, sizes) for sizes in _SIZES if unit in sizes), None)
    return known or Quantity(unit, lambda value: f"{format_rate(value)} {unit}", units={unit: 1}, scales=((unit, 1.0),))


def ends(low: float, high: float, excluded: float | None, write: Callable[[float], str]) -> tuple[str, str]:
    """Both ends of an interval for people. `excluded`, if any, is a value beyond them or at an open end; an end that
    would look equal to it is marked as different.

    >>> ends(1.001, 1.02, 1.0, FACTOR.write)
    ('>1.00', '1.02')
    """
    first, last = write(low), write(high)
    if excluded is not None and excluded <= low and first == write(excluded):
        first = f">{first}"
    if excluded is not None and excluded >= high and last == write(excluded):
        last = f"<{last}"
    return first, last
