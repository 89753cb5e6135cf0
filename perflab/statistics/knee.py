"""The knee of a curve: the level beyond which a metric gets worse faster, if one is shown.

The curve consists of the trials' values over the levels, times as logarithms; a knee is where two straight lines meet
of which the second rises more steeply (or falls less: seen from its worse end, a curve that improves has its knee where
it starts to get worse). A knee is claimed if all of this holds:

- The curve is not straight. For each block, the kink at an inner level is the deviation from a straight line: a
contrast whose mean is 0 for every straight line, whatever the noise at each level and however much the blocks drift.
Its
  largest standardised sum over the inner levels is compared with its distribution when the signs of whole blocks are
  flipped: a test that is exact if these contrasts are symmetric about 0. Five blocks can reach p = 1/32.
- Two lines fit better than a parabola, by CLEARLY: otherwise the curve bends, but at no particular level.

The greatest distance to the chord (Satopaa et al. 2011, Kneedle) finds a knee in every curve, flat and straight ones
too; it is not used here.

The place of the knee: least squares of two lines that meet (Hinkley 1971), over the mean logarithms. Interval: the
places at which the excess misfit of two lines over the best place is exceeded in more than alpha of the bootstrap
samples of this curve; residuals are resampled within levels, after the blocks' means are subtracted. It is then
widened to the next levels: between two of them, the straight curve is an assumption of the model and was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from perflab.results.curve import Knee
from perflab.statistics.sample import Floats, Sample

MIN_LEVELS = 4
CLEARLY = 4.0  # in squared standard errors of a trial: about the 95th percentile of chance for one more parameter
MAX_COMPLETE = 12  # number of blocks up to which all sign combinations are used; beyond, RESAMPLES random ones
RESAMPLES = 999
GRID = 121  # places that are tried for a knee
_NOISE = 1e-9  # floating-point tolerance, relative to the largest value


@dataclass(frozen=True)
class NotShown:
    """Why nothing is claimed; `flat`: because these trials show no difference between the levels."""

    reason: str
    flat: bool = False


@dataclass(frozen=True)
class _Curve:
    """For the levels with values; positions within [0, 1], values oriented so that higher is worse."""

    levels: Floats
    x: Floats
    values: list[Floats]
    blocks: list[list[Hashable]]


def find(
    levels: Sequence[float],
    samples: Sequence[Sample],
    *,
    log_levels: bool,
    logarithms: bool,
    higher_is_worse: bool = True,
    alpha: float = 0.05,
    seed: int = 0,
) -> Knee | NotShown:
    """The knee for one sample per level (ascending), or why none is claimed.

    `logarithms` of the values, which must then all be positive; `log_levels`: positions are logarithms of the levels.
    """
    curve = _curve(levels, samples, log_levels, logarithms, higher_is_worse)
    if len(curve.x) < MIN_LEVELS:
        return NotShown(f"it needs {MIN_LEVELS} levels with values, there are {len(curve.x)}")
    together = np.concatenate(curve.values)
    if np.ptp(together) <= _NOISE * float(np.abs(together).max()):
        return NotShown("identical in every trial")
    bends = _Bends.of(curve)
    if 0.5**bends.blocks > alpha:
        needed = math.ceil(math.log2(1 / alpha) - 1e-9)
        return NotShown(f"too few trials: {bends.blocks} blocks have a trial at 3 levels or more, it needs {needed}")
    p = bends.p(1, seed)
    if p > alpha:
        if bends.p(-1, seed) <= alpha:
            return NotShown("it bends the other way: towards higher levels it worsens less")
        return NotShown(f"not distinguishable from a straight line (p = {p:.2g})", flat=True)
    fit = _Fit.of(curve)
    rss = fit.residuals(fit.means)
    best = int(np.argmin(rss))
    if not math.isfinite(rss[best]):
        return NotShown("no two lines fit of which the second is steeper")
    # Deviations from two lines beyond the noise count as noise, so that a smooth bend does not look sharp.
    spare = len(curve.x) - MIN_LEVELS
    variance = max(fit.variance, float(rss[best]) / spare) if spare else fit.variance
    if fit.parabola() - rss[best] <= CLEARLY * variance:
        return NotShown("it bends, but a parabola fits as well as two lines: the bend has no particular level")
    allowed = _allowed(fit, best, alpha, seed)
    kept = np.flatnonzero(rss - rss[best] <= allowed * variance + _NOISE * fit.size)
    # Nothing was measured between levels, and before the second one all places are equivalent.
    first = 0 if kept[0] == 0 else int(np.searchsorted(curve.x, fit.at[kept[0]], side="right")) - 1
    last = len(curve.x) - 1 if kept[-1] == len(fit.at) - 1 else int(np.searchsorted(curve.x, fit.at[kept[-1]]))
    level = _level(float(fit.at[best]), curve, log_levels)
    return Knee(level, float(curve.levels[first]), float(curve.levels[last]), 1 - alpha, p)


def _curve(
    levels: Sequence[float], samples: Sequence[Sample], log_levels: bool, logarithms: bool, higher_is_worse: bool
) -> _Curve:
    kept = [(level, s) for level, s in zip(levels, samples, strict=True) if s.n]
    at = np.asarray([level for level, _ in kept], dtype=np.float64)
    x = np.log(at) if log_levels else at
    x = (x - x[0]) / (x[-1] - x[0]) if len(x) > 1 else x
    sign = 1.0 if higher_is_worse else -1.0
    values = [sign * (np.log(s.array) if logarithms else s.array) for _, s in kept]
    # Trials without blocks are paired in their order: any pairing is as good as another.
    blocked = all(s.blocks is not None for _, s in kept)
    blocks: list[list[Hashable]] = [list(s.blocks or ()) if blocked else list(range(s.n)) for _, s in kept]
    return _Curve(at, x, values, blocks)


def _level(at: float, curve: _Curve, log_levels: bool) -> float:
    first, last = float(curve.levels[0]), float(curve.levels[-1])
    if len(exact := np.flatnonzero(curve.x == at)):
        return float(curve.levels[exact[0]])
    return float(f"{first * (last / first) ** at if log_levels else first + (last - first) * at:.3g}")


@dataclass(frozen=True)
class _Bends:
    """For each block (rows) the kink at each inner level (columns)."""

    kinks: Floats

    @property
    def blocks(self) -> int:
        return len(self.kinks)

    @staticmethod
    def of(curve: _Curve) -> _Bends:
        size = max(float(np.abs(v).max()) for v in curve.values)
        members: dict[Hashable, tuple[list[float], list[float]]] = {}
        for x, values, blocks in zip(curve.x, curve.values, curve.blocks, strict=True):
            for value, block in zip(values, blocks, strict=True):
                xs, ys = members.setdefault(block, ([], []))
                xs.append(float(x))
                ys.append(float(value))
        rows = []
        for xs, ys in members.values():
            if len(set(xs)) < 3:
                continue
            at = np.asarray(xs)
            line = np.column_stack([np.ones(len(at)), at])
            hinges = np.maximum(0.0, np.subtract.outer(at, curve.x[1:-1]))
            beyond = hinges - line @ np.linalg.lstsq(line, hinges, rcond=None)[0]
            kinks = beyond.T @ np.asarray(ys)
            rows.append(np.where(np.abs(kinks) <= _NOISE * size, 0.0, kinks))
        return _Bends(np.asarray(rows).reshape(len(rows), len(curve.x) - 2))

    def p(self, sign: int, seed: int) -> float:
        """Probability of a kink at least this large upwards (1) or downwards (-1) on a straight curve."""
        norms = np.sqrt((self.kinks**2).sum(axis=0))
        kinks = np.divide(sign * self.kinks, norms, out=np.zeros_like(self.kinks), where=norms > 0)
        n = self.blocks
        if n <= MAX_COMPLETE:
            signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        else:
            signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(RESAMPLES + 1, n))
            signs[0] = 1.0
        largest = (signs @ kinks).max(axis=1)
        return float(np.mean(largest >= largest[0] - _NOISE))


@dataclass(frozen=True)
class _Fit:
    """Two lines that meet, by weighted least squares through the means of the levels, for each place of the knee.

    A knee explains, beyond one straight line, the square of one contrast of the means: the hinge at its place, minus
    its projection on lines, normalised.
    """

    x: Floats
    at: Floats  # the places
    means: Floats  # of the levels, after subtracting the blocks'
    root: Floats  # inverse of the numbers of trials at the levels
    noise: list[Floats]  # residuals of the trials at each level, scaled to the variance
    variance: float  # of a trial about the mean of its level
    line: Floats  # projects weighted means on straight lines
    contrasts: Floats  # places x levels, of weighted means

    @staticmethod
    def of(curve: _Curve) -> _Fit:
        means, noise, variance = _two_way(curve)
        root = np.sqrt(np.asarray([len(v) for v in curve.values], dtype=np.float64))
        at = np.union1d(np.linspace(curve.x[1], curve.x[-2], GRID), curve.x[1:-1])
        basis = np.linalg.qr(np.column_stack([root, root * curve.x]))[0]
        line = basis @ basis.T
        hinges = np.maximum(0.0, np.subtract.outer(curve.x, at)).T * root
        beyond = hinges - hinges @ line
        return _Fit(
            curve.x, at, means, root, noise, variance, line, beyond / np.linalg.norm(beyond, axis=1, keepdims=True)
        )

    @property
    def size(self) -> float:
        return float(((self.root * self.means) ** 2).sum())

    def residuals(self, means: Floats) -> Floats:
        """The residual sum of squares of two lines, by place; infinite if the second is not steeper."""
        weighted = means * self.root
        straight = ((weighted - weighted @ self.line) ** 2).sum(axis=-1)[..., None]
        explained = weighted @ self.contrasts.T
        found: Floats = np.where(explained > 0, np.maximum(0.0, straight - explained**2), np.inf)
        return found

    def fitted(self, index: int) -> Floats:
        """The means as fitted by two lines with the knee at that place."""
        weighted, contrast = self.means * self.root, self.contrasts[index]
        value: Floats = (weighted @ self.line + (weighted @ contrast) * contrast) / self.root
        return value

    def parabola(self) -> float:
        """The residual sum of squares of a parabola."""
        basis, target = np.vander(self.x, 3) * self.root[:, None], self.root * self.means
        return float(((target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0]) ** 2).sum())


def _two_way(curve: _Curve) -> tuple[Floats, list[Floats], float]:
    """Means of the levels and of the blocks, by least squares; residuals, and their variance."""
    names = {b: i for i, b in enumerate(dict.fromkeys(b for blocks in curve.blocks for b in blocks))}
    counts = [len(v) for v in curve.values]
    n, k = sum(counts), len(counts)
    of_levels, of_blocks = np.zeros((n, k)), np.zeros((n, len(names)))
    of_levels[np.arange(n), np.repeat(np.arange(k), counts)] = 1
    of_blocks[np.arange(n), [names[b] for blocks in curve.blocks for b in blocks]] = 1
    # Effects of the blocks sum to 0, so that means of levels are not changed.
    basis = np.hstack([of_levels, of_blocks[:, 1:] - of_blocks[:, :1]])
    y = np.concatenate(curve.values)
    found, _, rank, _ = np.linalg.lstsq(basis, y, rcond=None)
    left = y - basis @ found
    degrees = max(1, n - int(rank))
    variance = float((left**2).sum() / degrees)
    noise: list[Floats] = np.split(left * math.sqrt(n / degrees), np.cumsum(counts)[:-1])
    means: Floats = np.asarray(found[:k], dtype=np.float64)
    return means, noise, variance


def _allowed(fit: _Fit, best: int, alpha: float, seed: int) -> float:
    """By how many variances the true place fits worse than the best one in 1 - alpha of the bootstrap samples."""
    rng = np.random.default_rng(seed)
    n = sum(map(len, fit.noise))
    means, squares = np.empty((RESAMPLES, len(fit.x))), np.zeros(RESAMPLES)
    expected = fit.fitted(best)
    for i, noise in enumerate(fit.noise):
        drawn = noise[rng.integers(0, len(noise), (RESAMPLES, len(noise)))]
        means[:, i] = expected[i] + drawn.mean(axis=1)
        squares += ((drawn - drawn.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    variances = squares / max(1, n - len(fit.x))
    rss = fit.residuals(means)
    usable = np.isfinite(rss[:, best]) & (variances > 0)
    if not usable.any():
        return 0.0
    worse = rss[usable, best] - rss[usable].min(axis=1)
    return float(np.quantile(worse / variances[usable], 1 - alpha))
