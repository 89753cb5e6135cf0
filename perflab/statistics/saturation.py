"""The saturation point of a curve: the smallest level from which on none differs from the last by more than a margin.

It is claimed from shown equivalences (two one-sided tests, judgement.py), never from tests that found no difference.
Levels are tested against the last one downwards from the one before it, and the first that is not shown to be
equivalent ends the sequence: a fixed sequence, so that the probability of a saturation point that is too low is at most
alpha although several levels are tested (Maurer, Hothorn and Lehmacher 1995).

The lower end of its interval is found the same way from the first level upwards, by one-sided tests that a level
differs from the last by more than the margin. So the true point is missed on either side with probability at most
alpha: the interval's confidence is 1 - 2 alpha. A bootstrap of a choice among a handful of levels would promise more
coverage than it has with five trials.

Values that come in steps larger than the margin (polled durations) agree because of the step and not because of the
system: nothing is claimed of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from perflab.results.comparison import Margin
from perflab.results.curve import Saturation
from perflab.statistics.difference import attainable_p, rank_p, shift
from perflab.statistics.judgement import Judgement, Rules
from perflab.statistics.knee import NotShown
from perflab.statistics.sample import Design, Sample, design
from perflab.units import format_confidence

MIN_LEVELS = 3


def find(
    levels: Sequence[float],
    samples: Sequence[Sample],
    *,
    margin: float,
    alpha: float = 0.05,
    step: float | None = None,
    words: Callable[[float], str] = "{:g}".format,
) -> Saturation | NotShown:
    """For one sample of positive values per level, ascending; `margin` 0.05: a factor of 1.05 either way.

    `step`: that of the values' lattice, if one is known. `words` formats a level.
    """
    kept = [(level, s) for level, s in zip(levels, samples, strict=True) if s.n]
    if len(kept) < MIN_LEVELS:
        return NotShown(f"it needs {MIN_LEVELS} levels with values, there are {len(kept)}")
    if kept[-1][0] != levels[-1]:
        return NotShown(f"there is no value at {words(levels[-1])}, the last level")
    if not all(s.positive for _, s in kept):
        return NotShown("a margin by a factor needs positive values")
    last = kept[-1][1]
    coarse = step or _step([v for _, s in kept for v in s.values])
    if coarse is not None and coarse > margin * float(np.median(last.array)):
        share = 100 * coarse / float(np.median(last.array))
        return NotShown(
            f"the values come in steps of {share:.2g} % of those at {words(levels[-1])}, more than the margin: "
            "their agreement would mean nothing"
        )
    limit = math.log1p(margin)
    designs = [design(last.mapped(math.log), s.mapped(math.log)) for _, s in kept[:-1]]
    reached = len(designs)
    within = Rules(margin=Margin(margin, relative=True), logarithms=True)
    while reached and (p := Judgement(designs[reached - 1], within).equivalence_p) is not None and p <= alpha:
        reached -= 1
    if reached == len(designs):
        return NotShown(_why_not(designs[-1], words(kept[-2][0]), words(kept[-1][0]), limit, alpha))
    if reached == 0:
        return NotShown(f"no level differs from the last by more than {100 * margin:.3g} %", flat=True)
    below = 0
    while below < reached and _differs(designs[below], limit, alpha):
        below += 1
    return Saturation(kept[reached][0], kept[below][0], kept[reached][0], 1 - 2 * alpha)


def _differs(of: Design, limit: float, alpha: float) -> bool:
    """Whether the shift is shown to be outside of the limits; it can be on one side of them only."""
    above, below = rank_p(of.shifted(-limit), "higher"), rank_p(of.shifted(limit), "lower")
    return above is not None and below is not None and min(above, below) <= alpha


def _why_not(of: Design, level: str, last: str, limit: float, alpha: float) -> str:
    """For the level before the last."""
    attainable = attainable_p(of, "higher")
    n = f"n = {len(of.b)} and {len(of.a)}"
    if attainable is None or attainable > alpha:
        least = "" if attainable is None else f", at best p = {attainable:.2g}"
        return f"too few trials to show whether {level} differs from {last} ({n}{least})"
    change = shift(of, 1 - 2 * alpha)
    factor = math.exp(-(change.value or 0.0))
    between = ""
    if change.interval is not None:
        ends = f"{math.exp(-change.interval.high):#.3g}, {math.exp(-change.interval.low):#.3g}"
        between = f" [{ends}; {format_confidence(1 - 2 * alpha)}]"
    size = f"{factor:#.3g}x{between}, {n}"
    if _differs(of, limit, alpha):
        return f"it still changes from {level} to {last} ({size})"
    margin = 100 * math.expm1(limit)
    return f"it is not shown that {level} and {last} differ by no more than {margin:.3g} % ({size})"


def _step(values: Sequence[float]) -> float | None:
    """The smallest difference between distinct values, if at most half of the values are distinct."""
    different = np.unique(np.asarray(values))
    if len(different) < 2 or 2 * len(different) > len(values):
        return None
    return float(np.diff(different).min())
