"""The interval of a share of trials, such as that of successes."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(successes: int, n: int, confidence: float) -> tuple[float, float] | None:
    """Wilson's interval of a proportion; None without trials.

    It stays within 0 and 1 and covers well for few trials, also where all or none succeeded (Brown, Cai and DasGupta,
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
