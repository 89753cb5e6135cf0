"""Whether the values of a treatment scatter more or less than those of its baseline.

A standard deviation of few values may depend on one of them; so the ratio of the median absolute deviations is given
beside it, and a remark if one trial makes the difference.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from perflab.results.comparison import (
    NOTABLE_RATIO,
    Estimate,
    Interval,
    Side,
    Spread,
    SpreadInfluence,
    SpreadLeftOut,
    Test,
)
from perflab.statistics.estimate import RESAMPLES, bootstrap, mad, without_each
from perflab.statistics.sample import Floats, Sample

_ROUNDING = 100 * np.finfo(float).eps  # relative difference up to which statistics of arrangements count as equal
LEFT = 0.5  # share of the logarithm of a notable ratio that must remain without any one trial


def compare_spread(
    a: Floats, b: Floats, confidence: float = 0.95, seed: int = 0, *, scaled: tuple[Floats, Floats] | None = None
) -> Spread:
    """The comparison of the spreads of two samples; blocks are ignored. `scaled` are the values on the scale of the
    comparison."""
    sds, mads = (_sd(a), _sd(b)), [mad(x) if len(x) > 1 else None for x in (a, b)]
    scaled_a, scaled_b = scaled or (a, b)
    return Spread(
        sd_baseline=sds[0],
        sd_treatment=sds[1],
        mad_baseline=mads[0],
        mad_treatment=mads[1],
        sd_ratio=_ratio(sds, lambda: bootstrap([a, b], _sd_ratio, confidence, seed)),
        mad_ratio=_ratio(mads, lambda: (None, "no interval is computed for it")),
        brown_forsythe=brown_forsythe(a, b),
        permutation_sd=_permutation("permutation of the SD ratio", a, b, _sds, seed),
        permutation_mad=_permutation("permutation of the MAD ratio", a, b, _mads, seed),
        scaled_sd_baseline=_sd(scaled_a),
        scaled_sd_treatment=_sd(scaled_b),
        scaled_test=brown_forsythe(scaled_a, scaled_b),
    )


def judged_spread(
    spread: Spread, p_adjusted: float | None, alpha: float, scaled: tuple[Floats, Floats], confidence: float, seed: int
) -> Spread:
    """With the ratio of the spreads on the scale of the comparison, and the verdict from both: p, adjusted for its
    family, and the interval of the ratio at the confidence of the family, which must exclude 1.

    Bootstrap intervals of few values are too narrow, so that none decides alone; without one because of too few values,
    the test decides.
    """
    first, second = spread.scaled_sd_baseline, spread.scaled_sd_treatment
    ratio = _ratio([first, second], lambda: bootstrap(scaled, _sd_ratio, confidence, seed))
    judged = replace(spread, p_adjusted=p_adjusted, scaled_ratio=ratio)
    if p_adjusted is None or first is None or second is None:
        return replace(judged, verdict="too_few_trials")
    between = ratio.interval
    if p_adjusted > alpha or first == second or (between is not None and between.contains(1.0)):
        return replace(judged, verdict="not_shown")
    return replace(judged, verdict="more" if second > first else "less")


def brown_forsythe(a: Floats, b: Floats) -> Test:
    """Levene's test with medians."""
    name = "Brown-Forsythe"
    if min(len(a), len(b)) < 3:
        return Test(name, None, reason="it needs 3 trials of either")
    p, statistic = _levene(a, b)
    if not math.isfinite(p):
        return Test(name, None, reason="the deviations do not vary")
    return Test(name, float(p), float(statistic))


def _levene(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """p and statistic of Levene's test with medians; for many pairs of samples, each along the last axis. NaN if the
    deviations do not vary."""
    sizes = a.shape[-1], b.shape[-1]
    total = sum(sizes)
    deviations = [np.abs(x - np.median(x, axis=-1, keepdims=True)) for x in (a, b)]
    means = [d.mean(axis=-1, keepdims=True) for d in deviations]
    mean = sum(m * n for m, n in zip(means, sizes, strict=True)) / total
    between = sum((n * (m - mean) ** 2)[..., 0] for m, n in zip(means, sizes, strict=True))
    within = sum(((d - m) ** 2).sum(axis=-1) for d, m in zip(deviations, means, strict=True))
    vary = sum(np.ptp(d, axis=-1) > 0 for d in deviations) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic: Floats = np.where(vary, (total - 2) * between / within, np.nan)
    return scipy.special.fdtrc(1, total - 2, statistic), statistic


def _ratio(spreads: Sequence[float | None], interval_of: Callable[[], tuple[Interval | None, str | None]]) -> Estimate:
    of_a, of_b = spreads
    if of_a is None or of_b is None:
        return Estimate(None, reason="it needs 2 trials of either")
    if not of_a or not of_b:
        return Estimate(None, reason="one of the samples does not scatter")
    return Estimate(of_b / of_a, *interval_of())


def _permutation(name: str, a: Floats, b: Floats, spread: Callable[[Floats], Floats], seed: int) -> Test:
    """Test of |log ratio| of the spreads, which are computed along the last axis."""
    if min(len(a), len(b)) < 3:
        return Test(name, None, reason="it needs 3 trials of either")

    def statistic(a: Floats, b: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            apart: Floats = np.abs(np.log(spread(b)) - np.log(spread(a)))
        return apart

    deviations = (a - np.median(a), b - np.median(b))
    observed = float(statistic(*deviations))
    if not math.isfinite(observed):
        return Test(name, None, reason="one of the samples does not scatter")
    exact = math.comb(len(a) + len(b), len(b)) <= RESAMPLES
    arranged = np.concatenate(deviations)[_arrangements(len(a), len(b), None if exact else seed)]
    null = statistic(arranged[:, : len(a)], arranged[:, len(a) :])
    as_large = np.count_nonzero(null >= observed * (1 - _ROUNDING))
    added = 0 if exact else 1  # the observed one
    return Test(name, (as_large + added) / (len(null) + added), observed, exact)


@functools.lru_cache(maxsize=2)  # all comparisons of a family have similar numbers of trials
def _arrangements(n_a: int, n_b: int, seed: int | None) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Indices of all trials in each arrangement, those of a first: all arrangements, or RESAMPLES from a seed."""
    n = n_a + n_b
    number = np.min_scalar_type(n)  # minimum: with thousands of values these are many
    if seed is None:
        chosen = np.asarray(list(itertools.combinations(range(n), n_a)), number)
        mine = np.zeros((len(chosen), n), bool)
        np.put_along_axis(mine, chosen.astype(np.intp), True, axis=1)
        rest = np.broadcast_to(np.arange(n, dtype=number), mine.shape)[~mine].reshape(len(chosen), n_b)
        return np.concatenate([chosen, rest], axis=1)
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n, dtype=number), (RESAMPLES, 1)), axis=1)


def _mads(values: Floats) -> Floats:
    """mad() along the last axis. In sorted values, the k that are closest to the median are neighbours."""
    n = values.shape[-1]
    ordered = np.sort(values, axis=-1)
    middle = _middle(ordered)
    return (_kth_distance(ordered, middle, (n + 1) // 2) + _kth_distance(ordered, middle, n // 2 + 1)) / 2


def _middle(ordered: Floats) -> Floats:
    n = ordered.shape[-1]
    middle: Floats = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2
    return middle


def _kth_distance(ordered: Floats, middle: Floats, k: int) -> Floats:
    """The k-th smallest distance from there."""
    first, last = ordered[..., : ordered.shape[-1] - k + 1], ordered[..., k - 1 :]
    found: Floats = np.maximum(middle[..., None] - first, last - middle[..., None]).min(axis=-1)
    return found


def _sds(values: Floats) -> Floats:
    found: Floats = np.std(values, axis=-1, ddof=1)
    return found


def _sd_ratio(a: Floats, b: Floats, axis: int = -1) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.std(b, axis=axis, ddof=1) / np.std(a, axis=axis, ddof=1)


def _sd(values: Floats) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def spread_influence(baseline: Sample, treatment: Sample) -> SpreadInfluence:
    """The effect of single trials on the ratio of standard deviations; nothing if a sample has fewer than 4 values or
    no scatter."""
    if min(baseline.n, treatment.n) < 4:
        return SpreadInfluence(None, None)
    whole = _log_ratio(baseline.array, treatment.array)
    if whole is None:
        return SpreadInfluence(None, None)
    trials = []
    sides: tuple[tuple[Side, Sample], ...] = (("baseline", baseline), ("treatment", treatment))
    for side, sample in sides:
        rest = without_each(sample.array)
        a, b = (rest, treatment.array) if side == "baseline" else (baseline.array, rest)
        ps = _levene(a, b)[0].tolist()
        sds = [np.broadcast_to(_sds(x), len(rest)).tolist() for x in (a, b)]
        for label, of_a, of_b, p in zip(sample.labels, *sds, ps, strict=True):
            if of_a > 0 and of_b > 0:
                trials.append(SpreadLeftOut(side, label, math.exp(math.log(of_b / of_a)), None if math.isnan(p) else p))
    largest = max(trials, key=lambda trial: abs(math.log(trial.sd_ratio) - whole), default=None)
    carrying = [trial for trial in trials if math.log(trial.sd_ratio) / whole < LEFT] if whole else []
    notable = abs(whole) >= math.log(NOTABLE_RATIO)
    return SpreadInfluence(largest, carrying[0] if notable and len(carrying) == 1 else None)


def _log_ratio(a: Floats, b: Floats) -> float | None:
    of_a, of_b = float(np.std(a, ddof=1)), float(np.std(b, ddof=1))
    return math.log(of_b / of_a) if of_a > 0 and of_b > 0 else None
