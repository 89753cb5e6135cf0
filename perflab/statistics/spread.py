"""Whether the values of a treatment scatter more or less than those of its baseline.

A standard deviation of few values is at the mercy of one of them; so the ratio of the median absolute deviations stands
beside it, and it is said whether one trial makes the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from perflab.results.comparison import NOTABLE_RATIO, Estimate, Interval, Spread, SpreadInfluence, SpreadLeftOut, Test
from perflab.statistics.estimate import RESAMPLES, bootstrap, mad
from perflab.statistics.sample import Floats, Sample

LEFT = 0.5  # what must be left of the logarithm of a notable ratio without any one trial


def compare_spread(
    a: Floats, b: Floats, confidence: float = 0.95, seed: int = 0, *, scaled: tuple[Floats, Floats] | None = None
) -> Spread:
    """Everything about the spreads of two samples; blocks are not regarded. `scaled` are the values on the scale of the
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
        permutation_sd=_permutation("permutation of the SD ratio", a, b, partial(np.std, ddof=1), seed),
        permutation_mad=_permutation("permutation of the MAD ratio", a, b, scipy.stats.median_abs_deviation, seed),
        scaled_sd_baseline=_sd(scaled_a),
        scaled_sd_treatment=_sd(scaled_b),
        scaled_test=brown_forsythe(scaled_a, scaled_b),
    )


def judged_spread(spread: Spread, p_adjusted: float | None, alpha: float) -> Spread:
    """With the verdict that this p, adjusted for its family, allows."""
    first, second = spread.scaled_sd_baseline, spread.scaled_sd_treatment
    if p_adjusted is None or first is None or second is None:
        return replace(spread, p_adjusted=p_adjusted, verdict="too_few_trials")
    if p_adjusted > alpha or first == second:
        return replace(spread, p_adjusted=p_adjusted, verdict="not_shown")
    return replace(spread, p_adjusted=p_adjusted, verdict="more" if second > first else "less")


def brown_forsythe(a: Floats, b: Floats) -> Test:
    """Levene's test about the medians."""
    name = "Brown-Forsythe"
    if min(len(a), len(b)) < 3:
        return Test(name, None, reason="it needs 3 trials of either")
    deviations = [np.abs(x - np.median(x)) for x in (a, b)]
    if all(np.ptp(d) == 0 for d in deviations):
        return Test(name, None, reason="the deviations do not vary")
    result = scipy.stats.levene(a, b, center="median")
    return Test(name, float(result.pvalue), float(result.statistic))


def _ratio(spreads: Sequence[float | None], interval_of: Callable[[], tuple[Interval | None, str | None]]) -> Estimate:
    of_a, of_b = spreads
    if of_a is None or of_b is None:
        return Estimate(None, reason="it needs 2 trials of either")
    if not of_a or not of_b:
        return Estimate(None, reason="one of the samples does not scatter")
    return Estimate(of_b / of_a, *interval_of())


def _permutation(name: str, a: Floats, b: Floats, spread: Callable[..., Any], seed: int) -> Test:
    """Of |log ratio| of the spreads."""
    if min(len(a), len(b)) < 3:
        return Test(name, None, reason="it needs 3 trials of either")

    def statistic(a: Floats, b: Floats, axis: int = -1) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(np.log(spread(b, axis=axis)) - np.log(spread(a, axis=axis)))

    deviations = (a - np.median(a), b - np.median(b))
    observed = float(statistic(*deviations, axis=-1))
    if not math.isfinite(observed):
        return Test(name, None, reason="one of the samples does not scatter")
    result = scipy.stats.permutation_test(
        deviations, statistic, vectorized=True, n_resamples=RESAMPLES, alternative="greater",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    exact = math.comb(len(a) + len(b), len(b)) <= RESAMPLES
    return Test(name, float(result.pvalue), observed, exact)


def _sd_ratio(a: Floats, b: Floats, axis: int = -1) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.std(b, axis=axis, ddof=1) / np.std(a, axis=axis, ddof=1)


def _sd(values: Floats) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def spread_influence(baseline: Sample, treatment: Sample) -> SpreadInfluence:
    """What single trials do to the ratio of standard deviations; nothing where a sample has fewer than 4 values or no
    scatter."""
    if min(baseline.n, treatment.n) < 4:
        return SpreadInfluence(None, None)
    whole = _log_ratio(baseline.array, treatment.array)
    if whole is None:
        return SpreadInfluence(None, None)
    trials = []
    for sample, side in ((baseline, "baseline"), (treatment, "treatment")):
        for index, label in enumerate(sample.labels):
            rest = sample.without(index).array
            a, b = (rest, treatment.array) if side == "baseline" else (baseline.array, rest)
            if (ratio := _log_ratio(a, b)) is not None:
                trials.append(SpreadLeftOut(side, label, math.exp(ratio), brown_forsythe(a, b).p))
    largest = max(trials, key=lambda trial: abs(math.log(trial.sd_ratio) - whole), default=None)
    carrying = [trial for trial in trials if math.log(trial.sd_ratio) / whole < LEFT] if whole else []
    notable = abs(whole) >= math.log(NOTABLE_RATIO)
    return SpreadInfluence(largest, carrying[0] if notable and len(carrying) == 1 else None)


def _log_ratio(a: Floats, b: Floats) -> float | None:
    of_a, of_b = float(np.std(a, ddof=1)), float(np.std(b, ddof=1))
    return math.log(of_b / of_a) if of_a > 0 and of_b > 0 else None
