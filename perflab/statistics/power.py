"""How likely a difference of a given size is found, and how many trials that takes.

By Student's t (statsmodels' noncentral t) with 3/pi of the trials: the efficiency of the rank test relative to t for
normal values (Hodges and Lehmann 1956; it is never below 0.864, and above 1 for long tails). The spread is the one
seen, taken as if it were known: with few trials it is not, and neither is the power. Tests simulate it.

There is no power "of the effect that was seen": it is a function of p and says nothing more (Hoenig and Heisey 2001).
"""

from __future__ import annotations

import bisect
import math
import warnings

import numpy as np
from scipy import optimize
from statsmodels.stats.power import TTestIndPower

from perflab.results.comparison import Power
from perflab.statistics.sample import Design

EFFICIENCY = 3 / math.pi
TARGET = 0.8
MAX_TRIALS = 1_000_000


def residual_sd(design: Design) -> tuple[float, int] | None:
    """The standard deviation of a trial about the mean of its sample, and of its block, with its degrees of freedom."""
    if not design.blocks:
        return None
    if not design.blocked:
        freedom = len(design.a) + len(design.b) - 2
        squares = sum(float(((x - x.mean()) ** 2).sum()) for x in (design.a, design.b))
    else:
        rows, values = [], []
        for number, block in enumerate(design.blocks):
            for side, members in enumerate((block.a, block.b)):
                for value in members:
                    row = np.zeros(len(design.blocks) + 1)
                    row[number], row[-1] = 1, side
                    rows.append(row)
                    values.append(value)
        matrix, seen = np.asarray(rows), np.asarray(values)
        solution = np.linalg.lstsq(matrix, seen, rcond=None)[0]
        freedom = len(seen) - len(design.blocks) - 1
        squares = float(((seen - matrix @ solution) ** 2).sum())
    return (math.sqrt(squares / freedom), freedom) if freedom > 0 else None


def t_power(effect: float, sd: float, n_a: float, n_b: float, alpha: float, *, efficiency: float = EFFICIENCY) -> float:
    """The power of a two-sided test for a shift; efficiency 1: Student's t."""
    if not effect:
        return alpha
    a, b = n_a * efficiency, n_b * efficiency
    if a + b <= 2:
        return alpha
    if sd == 0:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        power = float(TTestIndPower().power(abs(effect) / sd, nobs1=a, alpha=alpha, ratio=b / a))
    return power if math.isfinite(power) else 1.0  # the noncentral t overflows where there is no doubt


def trials_needed(
    effect: float, sd: float, alpha: float, target: float = TARGET, *, efficiency: float = EFFICIENCY
) -> int | None:
    """Trials of either sample that find the shift with that power; None above MAX_TRIALS."""
    if not effect:
        return None
    # Fewer cannot reach alpha at all; by ranks, 2 / (2n over n) is the least p.
    low = 2 if efficiency == 1 else next(n for n in range(2, MAX_TRIALS) if 2 / math.comb(2 * n, n) <= alpha)

    def finds(n: int) -> bool:
        return t_power(effect, sd, n, n, alpha, efficiency=efficiency) >= target

    high = low
    while not finds(high):
        high *= 2
        if high > MAX_TRIALS:
            return None
    return bisect.bisect_left(range(high), True, lo=max(low, high // 2), key=finds)


def detectable_shift(
    sd: float, n_a: int, n_b: int, alpha: float, target: float = TARGET, *, efficiency: float = EFFICIENCY
) -> float | None:
    """The smallest shift that is found with that power; None where these numbers cannot find any."""
    if min(n_a, n_b) < 1 or (efficiency != 1 and 2 / math.comb(n_a + n_b, n_b) > alpha):
        return None
    if sd == 0:
        return 0.0

    def excess(effect: float) -> float:
        return t_power(effect * sd, sd, n_a, n_b, alpha, efficiency=efficiency) - target

    high = 1.0
    while excess(high) < 0:
        high *= 2
        if high > 1e6:
            return None
    return float(optimize.brentq(excess, 0, high, xtol=1e-6)) * sd


def plan(design: Design, effect: float | None, alpha: float, target: float = TARGET) -> Power:
    """What these trials could find. Blocks of several sizes are taken as two samples with the spread within blocks."""
    spread = residual_sd(design)
    if spread is None:
        return Power(None, None, effect, None, None, alpha, target)
    sd, n_a, n_b = spread[0], len(design.a), len(design.b)
    power = needed = None
    reachable = 2 / design.arrangements <= alpha
    if effect is not None:
        power = t_power(effect, sd, n_a, n_b, alpha) if reachable else 0.0
        needed = trials_needed(effect, sd, alpha, target)
    detectable = detectable_shift(sd, n_a, n_b, alpha, target) if reachable else None
    return Power(sd, detectable, effect, power, needed, alpha, target)
