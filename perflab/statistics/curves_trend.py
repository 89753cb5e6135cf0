"""Tests whether a metric rises or falls over the levels, with all of its trials: a test of trend within blocks.

With five blocks a comparison of two levels cannot reach p = 0.05 (two arrangements of each block), but the order of all
levels can: the levels of each block are exchanged at random, and the sum of rank times level is compared with the
resulting distribution. It is Page's test (1963) for trials whose block means are subtracted before ranking. A jump to a
plateau is not a trend: so the same exchanges also test whether any level differs from the others at all (Friedman's
statistic, 1937).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from perflab.statistics.sample import Floats, Sample

RESAMPLES = 4999
_NOISE = 1e-9  # floating-point tolerance, relative to the largest value


@dataclass(frozen=True)
class Trend:
    """`sign` 1: rising, -1: falling. `attainable` is the smallest p that is possible with these numbers of trials."""

    sign: int
    p: float  # two-sided
    attainable: float
    p_differs: float  # test that any level differs from the others


def trend(samples: Sequence[Sample], seed: int = 0) -> Trend | None:
    """Over levels in the order of the samples; None if no test is possible, e.g. for constant values."""
    blocked = all(s.blocks is not None for s in samples)
    members: dict[Hashable, list[tuple[int, float]]] = {}
    for level, sample in enumerate(samples):
        blocks = sample.blocks if blocked and sample.blocks else [0] * sample.n
        for value, block in zip(sample.values, blocks, strict=True):
            members.setdefault(block, []).append((level, value))
    usable = [m for m in members.values() if len({level for level, _ in m}) > 1]
    if not usable:
        return None
    levels = [np.asarray([level for level, _ in m], dtype=np.float64) for m in usable]
    values = [np.asarray([value for _, value in m]) for m in usable]
    size = max(float(np.abs(v).max()) for v in values) or 1.0
    aligned = np.concatenate([np.round((v - v.mean()) / (size * _NOISE)) for v in values])
    if np.ptp(aligned) == 0:
        return None
    ranks = np.split(scipy.stats.rankdata(aligned), np.cumsum(list(map(len, values)))[:-1])
    rng = np.random.default_rng(seed)
    observed, null = 0.0, np.zeros(RESAMPLES)
    sums, null_sums = np.zeros(len(samples)), np.zeros((RESAMPLES, len(samples)))
    for of_block, of_ranks in zip(levels, ranks, strict=True):
        centred = of_block - of_block.mean()
        observed += float(centred @ of_ranks)
        exchanged = rng.permuted(np.broadcast_to(of_ranks, (RESAMPLES, len(of_ranks))), axis=1)
        null += exchanged @ centred
        at = (of_block[:, None] == np.arange(len(samples))[None, :]).astype(np.float64)
        sums += (of_ranks - of_ranks.mean()) @ at
        null_sums += (exchanged - of_ranks.mean()) @ at
    counts = np.bincount(np.concatenate(levels).astype(int), minlength=len(samples))
    weights = np.divide(1.0, counts, out=np.zeros(len(samples)), where=counts > 0)
    spread, null_spread = float(sums**2 @ weights), null_sums**2 @ weights
    p_differs = (np.count_nonzero(null_spread >= spread * (1 - 1e-9)) + 1) / (RESAMPLES + 1)
    slack = 1e-9 * abs(observed)
    higher = (np.count_nonzero(null >= observed - slack) + 1) / (RESAMPLES + 1)
    lower = (np.count_nonzero(null <= observed + slack) + 1) / (RESAMPLES + 1)
    arrangements = sum(_log_arrangements(of_block) for of_block in levels)
    attainable = min(1.0, 2 * max(math.exp(-arrangements), 1 / (RESAMPLES + 1)))
    return Trend(1 if higher < lower else -1, float(min(1.0, 2 * min(higher, lower))), attainable, float(p_differs))


def _log_arrangements(levels: Floats) -> float:
    """The logarithm of the number of ways to assign these levels to the trials of a block."""
    counts = np.unique(levels, return_counts=True)[1]
    return math.lgamma(len(levels) + 1) - sum(math.lgamma(count + 1) for count in counts)
