"""Intervals of a share of trials, such as that of successes, and of the difference of two."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(successes: int, n: int, confidence: float) -> tuple[float, float] | None:
    """Wilson's interval of a proportion; None without trials.

    It stays within 0 and 1 and covers well for few trials, even if all or none succeeded (Brown, Cai and DasGupta,
    Statistical Science 16, 2001).
    """
    if not n:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / n
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def newcombe(first: tuple[int, int], second: tuple[int, int], confidence: float) -> tuple[float, float] | None:
    """The interval of the second share minus the first, each given as successes of n; None where one has no trials.

    From Wilson's intervals of both (Newcombe, Statistics in Medicine 17, 1998, method 10).
    """
    of_first, of_second = wilson(*first, confidence), wilson(*second, confidence)
    if of_first is None or of_second is None:
        return None
    p, q = first[0] / first[1], second[0] / second[1]
    below = math.hypot(q - of_second[0], of_first[1] - p)
    above = math.hypot(of_second[1] - q, p - of_first[0])
    return max(-1.0, q - p - below), min(1.0, q - p + above)
