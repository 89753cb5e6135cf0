"""Tests whether the shares of met trials fall with the level, as a breaking point implies.

The statistic looks for a stretch of levels in which the criterion is met less often than in the stretch right above it:
the greatest log likelihood ratio, over all pairs of neighbouring stretches, of two shares against one. It is small if
the share falls. Its p value comes from a parametric bootstrap at the tried levels, from a fitted falling curve, with as
many draws as needed (Besag and Clifford, Biometrika 78, 1991).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from perflab.statistics.sample import Floats

Ints = npt.NDArray[np.intp]

DRAWS = 1999
ENOUGH = 20  # the bootstrap ends after this many draws as extreme as the data: p is then known to a fifth of itself


@dataclass(frozen=True)
class Dip:
    """Two neighbouring stretches of levels, by index from first to last, of which the lower has the smaller share."""

    statistic: float  # in nats
    lower: tuple[int, int]
    upper: tuple[int, int]


def dip(met: Floats, n: Floats) -> Dip | None:
    """The pair of stretches that contradicts a falling share most; levels ascend. None: the shares do fall."""
    if len(met) < 2:
        return None
    first, split, last = _stretches(len(met))
    ratios = _ratios(met[None, :], n, first, split, last)[0]
    best = int(np.argmax(ratios))
    if ratios[best] <= 1e-12:
        return None
    lower = (int(first[best]), int(split[best]) - 1)
    return Dip(float(ratios[best]), lower, (int(split[best]), int(last[best])))


def p_value(met: Floats, n: Floats, falling: Floats, seed: int) -> float:
    """p of the greatest dip, under trials with the shares `falling`; 1 if there is none."""
    found = dip(met, n)
    if found is None:
        return 1.0
    generator = np.random.default_rng(seed)
    first, split, last = _stretches(len(met))
    batch = max(1, min(64, 400_000 // len(first)))
    extreme = drawn = 0
    while drawn < DRAWS:
        made = generator.binomial(n.astype(np.int64), falling, size=(min(batch, DRAWS - drawn), len(n)))
        for value in _ratios(made.astype(np.float64), n, first, split, last).max(axis=1):
            drawn += 1
            extreme += value >= found.statistic - 1e-9
            if extreme == ENOUGH:
                return float(extreme / drawn)
    return float((extreme + 1) / (drawn + 1))


def falling_fit(met: Floats, n: Floats) -> Floats:
    """The maximum likelihood shares that do not rise: neighbours that violate this are pooled (Ayer et al. 1955).

    Each pool counts half a trial more on either side, so that no share is exactly 0 or 1.
    """
    pools: list[list[float]] = []  # met, n, levels
    for m, count in zip(met, n, strict=True):
        pools.append([float(m), float(count), 1])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] <= pools[-1][0] * pools[-2][1]:
            above = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], above, strict=True)]
    shares = np.concatenate([np.full(int(levels), (m + 0.5) / (count + 1)) for m, count, levels in pools])
    return np.asarray(np.minimum.accumulate(shares))


@functools.lru_cache(maxsize=64)
def _stretches(levels: int) -> tuple[Ints, Ints, Ints]:
    """All (first, split, last) with first < split <= last: stretches first … split - 1 and split … last."""
    first, split, last = np.meshgrid(*(np.arange(levels),) * 3, indexing="ij")
    chosen = (first < split) & (split <= last)
    return first[chosen], split[chosen], last[chosen]


def _ratios(met: Floats, n: Floats, first: Ints, split: Ints, last: Ints) -> Floats:
    """For each row of `met` and each pair of stretches: the log likelihood ratio, 0 if the share does not rise."""
    above = np.concatenate([np.zeros((len(met), 1)), np.cumsum(met, axis=1)], axis=1).astype(np.intp)
    trials = np.concatenate([[0.0], np.cumsum(n)]).astype(np.intp)
    a, b = above[:, split] - above[:, first], above[:, last + 1] - above[:, split]
    m, k = trials[split] - trials[first], trials[last + 1] - trials[split]
    counts = np.arange(trials[-1] + 1, dtype=np.float64)
    entropy = xlogy(counts, counts)  # n log n of all counts that occur

    def likelihood(met: Ints, n: Ints) -> Floats:
        return np.asarray(entropy[met] + entropy[n - met] - entropy[n])

    ratio = likelihood(a, m) + likelihood(b, k) - likelihood(a + b, m + k)
    return np.where(a * k < b * m, ratio, 0.0)
