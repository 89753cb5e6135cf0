"""The probability of finding a difference of a given size, and how many trials that needs.

By Student's t (the noncentral t) with 3/pi of the trials: the efficiency of the rank test relative to t for
normal values (Hodges and Lehmann 1956; it is never below 0.864, and above 1 for long tails). The observed spread is
treated as if it were known: with few trials it is not, and neither is the power. Tests verify it by simulation.

There is no power "of the observed effect": it is a function of p and adds nothing (Hoenig and Heisey 2001). How many
more trials would decide a comparison is another question: the result of future trials together with the present ones is
predicted from these, with the present error of the estimate (Spiegelhalter, Freedman and Blackburn 1986).
"""

from __future__ import annotations

import bisect
import math

import numpy as np
import scipy

from perflab.results.comparison import MAX_TIMES, Power
from perflab.statistics.sample import Design, Floats

EFFICIENCY = 3 / math.pi
TARGET = 0.8
PROBABLY = 0.6  # predicted; 0.58 to 0.67 in simulations
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
    freedom, noncentrality = a + b - 2, abs(effect) / sd * math.sqrt(a * b / (a + b))
    limit = -scipy.special.stdtrit(freedom, alpha / 2)
    below = scipy.special.nctdtr(freedom, noncentrality, np.array([-limit, limit]))
    power = float(1 - below[1] + below[0])
    return power if math.isfinite(power) else 1.0  # the noncentral t overflows where the result is certain


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
    return float(scipy.optimize.brentq(excess, 0, high, xtol=1e-6)) * sd


def plan(design: Design, effect: float | None, alpha: float, target: float = TARGET) -> Power:
    """What these trials could find. Blocks of different sizes are treated as two samples with the spread within
    blocks."""
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


def more_to_decide(design: Design, value: float | None, margin: float | None, level: float) -> int | None:
    """Further trials of either, or blocks like the present ones, after which the interval of confidence 1 - `level`
    excludes 0 or lies within the margin, with the probability PROBABLY; None if they are more than MAX_TIMES the
    present number, or if the spread is unknown. `value` and `margin` are shifts on the scale of the analysis.
    """
    spread = residual_sd(design)
    if spread is None or value is None:
        return None
    sd, freedom = spread
    now = len(design.blocks) if design.said else min(len(design.a), len(design.b))
    more = np.arange(1.0, MAX_TIMES * now + 1)
    had = _information(design, np.zeros(1))
    times = _information(design, more) / had
    error = sd / np.sqrt(EFFICIENCY * had)
    half = scipy.special.stdtrit(freedom * times, 1 - level / 2) * error / np.sqrt(times)
    moves = np.sqrt(error**2 * (1 - 1 / times))
    chance = _chance_outside(value, moves, half)
    if margin is not None:
        chance = np.minimum(1.0, chance + np.where(half < margin, 1 - _chance_outside(value, moves, margin - half), 0))
    decided = (chance >= PROBABLY) & (_log_arrangements(design, more) >= math.log(2 / level) - 1e-9)
    return int(more[np.argmax(decided)]) if decided.any() else None


def _information(design: Design, more: Floats) -> Floats:
    """The precision of the shift, in units of 1 / variance of a trial, after that many more repetitions."""
    n_a, n_b = len(design.a), len(design.b)
    if not design.said:
        return (n_a + more) * (n_b + more) / (n_a + n_b + 2 * more)
    of_blocks = sum(len(block.a) * len(block.b) / (len(block.a) + len(block.b)) for block in design.blocks)
    return of_blocks * (1 + more / len(design.blocks))


def _log_arrangements(design: Design, more: Floats) -> Floats:
    if design.said:
        return math.log(design.arrangements) * (1 + more / len(design.blocks))
    n_a, n_b = len(design.a) + more, len(design.b) + more
    found: Floats = (
        scipy.special.gammaln(n_a + n_b + 1) - scipy.special.gammaln(n_a + 1) - scipy.special.gammaln(n_b + 1)
    )
    return found


def _chance_outside(value: float, moves: Floats, limit: Floats) -> Floats:
    """Probability that a normal value about `value` with that standard deviation is farther from 0 than the limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (limit - value) / moves, (limit + value) / moves
    sure = np.where(np.abs(value) > limit, 1.0, 0.0)
    found: Floats = np.where(moves > 0, scipy.special.ndtr(-above) + scipy.special.ndtr(-below), sure)
    return found
