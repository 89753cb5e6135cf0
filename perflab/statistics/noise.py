"""How much a baseline differs from itself: a meaningful comparison with it must exceed this.

The trials of the baseline are split into two halves in every way (at random if there are more than MAX_SPLITS), and the
shift between the halves is computed. The 95th percentile of its size is scaled by sqrt(1/n_a + 1/n_b) to the numbers of
trials in the comparison. It is the noise of *this* baseline: it includes drift between sessions only if the trials come
from several.

With blocks, halves are drawn within those that hold two baseline trials or more, from values minus the mean of their
block. If each block has one baseline trial, there is no floor: how the baseline differs from itself is unknown.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable

import numpy as np

from perflab.results.comparison import NoiseFloor
from perflab.statistics.difference import hodges_lehmann
from perflab.statistics.sample import Floats, Sample

MIN_TRIALS = 6  # ten splits of three against three
MAX_SPLITS = 2000
QUANTILE = 0.95
SPLITS_AT_ONCE = 100  # limits the memory that the pairs of two large halves take


@functools.lru_cache(maxsize=64)  # of one baseline, with which several treatments are compared
def noise_floor(baseline: Sample, n_baseline: int, n_treatment: int, seed: int = 0) -> NoiseFloor | None:
    """The 95th percentile of |shift| between two such samples of the baseline; None below MIN_TRIALS trials."""
    groups = _groups(baseline)
    trials = sum(map(len, groups))
    if trials < MIN_TRIALS or min(n_baseline, n_treatment) < 1:
        return None
    splits, exact = _splits(groups, seed)
    halves = np.asarray(splits)  # each has the same number of trials of each group
    rest = np.zeros((len(halves), baseline.n), bool)
    rest[:, [i for group in groups for i in group]] = True
    np.put_along_axis(rest, halves, False, axis=1)
    others = np.nonzero(rest)[1].reshape(len(halves), trials - halves.shape[1])
    scale = math.sqrt((1 / n_baseline + 1 / n_treatment) / (1 / halves.shape[1] + 1 / others.shape[1]))
    parts = np.array_split(np.arange(len(splits)), math.ceil(len(splits) / SPLITS_AT_ONCE))

    def floor(values: Floats) -> float:
        centred = values.copy()
        for group in groups:
            centred[group] -= values[group].mean()
        shifts = np.concatenate([hodges_lehmann(centred[halves[part]], centred[others[part]]) for part in parts])
        return float(np.quantile(np.abs(shifts) * scale, QUANTILE, method="higher"))

    ratio = math.exp(floor(np.log(baseline.array))) if baseline.positive else None
    return NoiseFloor(floor(baseline.array), ratio, trials, len(splits), exact, n_baseline, n_treatment)


def _groups(baseline: Sample) -> list[list[int]]:
    """Indices of exchangeable trials: all, or those of each block that has several."""
    if baseline.blocks is None:
        return [list(range(baseline.n))]
    blocks: dict[Hashable, list[int]] = {}
    for index, key in enumerate(baseline.blocks):
        blocks.setdefault(key, []).append(index)
    return [group for group in blocks.values() if len(group) > 1]


def _splits(groups: list[list[int]], seed: int) -> tuple[list[list[int]], bool]:
    """Indices of the first halves, and whether these are all that there are."""
    if math.prod(math.comb(len(group), len(group) // 2) for group in groups) <= MAX_SPLITS:
        halves = [[list(half) for half in itertools.combinations(group, len(group) // 2)] for group in groups]
        return [[i for half in chosen for i in half] for chosen in itertools.product(*halves)], True
    rng = np.random.default_rng(seed)
    drawn = [rng.permuted(np.tile(group, (MAX_SPLITS, 1)), axis=1)[:, : len(group) // 2] for group in groups]
    return np.concatenate(drawn, axis=1).tolist(), False
