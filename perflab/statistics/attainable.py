"""How many trials a rank test needs to show anything: its smallest p follows from their numbers alone."""

from __future__ import annotations

import itertools
import math

from perflab.results.comparison import Comparison
from perflab.units import plural

_ROUNDING = 1e-9


def needed_repetitions(level: float, arrangements: float) -> int:
    """Number of blocks with this many arrangements from which a two-sided p can be as small as `level`."""
    return math.ceil(math.log(2 / level) / math.log(arrangements) - _ROUNDING)


def enough(c: Comparison) -> int | None:
    """Trials of either sample, or blocks like the existing ones, that could show something at the level at which these
    were judged; None if there is nothing to compare."""
    if c.attainable_p is None or not c.power.alpha:
        return None
    sides = 2 if c.direction == "both" else 1
    level = 2 * c.power.alpha / sides
    if c.blocks is not None:
        return needed_repetitions(level, (sides / c.attainable_p) ** (1 / c.blocks))
    return next(n for n in itertools.count(1) if 2 / math.comb(2 * n, n) <= level)


def family_words(repetitions: int, enough: int, comparisons: int) -> str:
    """ "with 5 repetitions nothing can be shown among 16 comparisons, with 10 it can"."""
    among = f" among {comparisons} comparisons" if comparisons > 1 else ""
    return f"with {plural(repetitions, 'repetition')} nothing can be shown{among}, with {enough} it can"
