"""Levels of a factor as people write them: one by one, or as a range.

0,25,50,90 these levels 0..90:15 from 0 to 90 in steps of 15 100..3000/6 6 levels, evenly spread 100..3000/6log 6
levels, each the same number of times the one before; to three significant digits
"""

from __future__ import annotations

import math
import re
from typing import Any

from perflab.units import NUMBER, Scalar, quantity

__all__ = ["MAX_LEVELS", "Scalar", "listed", "quantity", "scalar", "spread", "with_unit"]

MAX_LEVELS = 1000

_RANGE = re.compile(rf"\s*({NUMBER})\s*\.\.\s*({NUMBER})\s*(?:([:/])\s*({NUMBER})\s*(log)?)?\s*")
_HOW = "write LOW..HIGH:STEP, LOW..HIGH/NUMBER or LOW..HIGH/NUMBERlog, e.g. 0..90:15 or 100..3000/6log"


def listed(value: Any) -> Any:
    """A list of levels is returned unchanged; text is parsed into levels. Raises ValueError."""
    if not isinstance(value, str):
        return value
    if ".." in value:
        return spread(value)
    return [scalar(word.strip()) for word in value.split(",")]


def with_unit(number: float, unit: str) -> Scalar:
    """A level in the form that a condition or a program takes; whole numbers are int."""
    if not unit:
        return int(number) if number == int(number) else number
    return f"{_plain(number)}{unit}"


def _plain(number: float) -> str:
    """Formats without an exponent, which readers do not expect with units."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def scalar(text: str) -> int | float | str:
    """The text as a number if it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def spread(text: str) -> list[int | float]:
    """The levels of a range, in the direction in which it is written; whole numbers are int.

    Raises ValueError if the text is not a range, the range is empty, or it has too many levels.

    >>> spread("0..90:30"), spread("100..10000/3log")
    ([0, 30, 60, 90], [100, 1000, 10000])
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.strip()!r} is not a range; {_HOW}")
    low, high = float(match[1]), float(match[2])
    if match[3] is None:
        raise ValueError(f"{text.strip()!r} lacks the number of levels; {_HOW}")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{text.strip()!r} has an end that is too large")
    if low == high:
        raise ValueError(f"{text.strip()!r} is empty: both ends are the same")
    found = _stepped(low, high, match) if match[3] == ":" else _numbered(low, high, match)
    return list(dict.fromkeys(int(level) if level == int(level) else level for level in found))


def _stepped(low: float, high: float, match: re.Match[str]) -> list[float]:
    if match[5]:
        raise ValueError(f"{match[0].strip()!r}: log needs a number of levels, as in 100..3000/6log")
    step = float(match[4])
    if not math.isfinite(step) or step == 0 or (step > 0) != (high > low):
        way = "is 0" if step == 0 else "leads away from the end"
        raise ValueError(f"{match[0].strip()!r} is empty: a step of {match[4]} {way}")
    # An end that a whole number of steps reaches up to rounding is included.
    steps = (high - low) / step * (1 + 1e-12)
    if steps >= MAX_LEVELS:
        raise ValueError(f"{match[0].strip()!r} has more than {MAX_LEVELS} levels")
    return [_rounded(low + i * step, 12) for i in range(math.floor(steps) + 1)]


def _numbered(low: float, high: float, match: re.Match[str]) -> list[float]:
    number = float(match[4])
    if number != int(number) or not 2 <= number <= MAX_LEVELS:
        raise ValueError(f"{match[0].strip()!r}: {match[4]} is not a number of levels within 2..{MAX_LEVELS}")
    shares = [i / (int(number) - 1) for i in range(int(number))]
    if not match[5]:
        return [_rounded(low + share * (high - low), 12) for share in shares]
    if low <= 0 or high <= 0:
        raise ValueError(f"{match[0].strip()!r}: a logarithmic range must begin and end above 0")
    inner = [_rounded(low * (high / low) ** share, 3) for share in shares[1:-1]]
    return [low, *inner, high]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
