"""Small simulations with fixed seeds: does the interval of a breaking point cover, is monotone said rightly?

benchmarks/breaking_point.py makes the large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from perflab.results.curve import Found
from perflab.statistics import breaking_point_monotone as monotone
from perflab.statistics.breaking_point import Aim, Search, Space
from perflab.statistics.breaking_point_model import posterior

Curve = Callable[[float], float]


def searched(aim: Aim, curve: Curve, seed: int) -> Found:
    generator = np.random.default_rng([seed, 77])
    search = Search(Space(0, 1), aim, seed)
    while (level := search.next()) is not None:
        search.add(level, bool(generator.random() < curve(level)))
    return search.result()


def step(t: float, lapse: float) -> Curve:
    return lambda u: 1 - lapse if u < t else 0.0


def logistic(t: float, share: float, spread: float) -> Curve:
    z = math.log(1 / share - 1)
    return lambda u: 1 / (1 + math.exp((u - t) / spread + z))


def weibull(t: float, share: float, k: float) -> Curve:
    return lambda u: math.exp(math.log(share) * (u / t) ** k)


@pytest.mark.parametrize(
    ("share", "make"),
    [
        (0.5, lambda t: step(t, 0.02)),
        (0.9, lambda t: step(t, 0.03)),
        (0.5, lambda t: logistic(t, 0.5, 0.05)),
        (0.9, lambda t: weibull(t, 0.9, 8.0)),
    ],
)
@pytest.mark.long
def test_the_interval_covers_at_least_as_stated(share: float, make: Callable[[float], Curve]) -> None:
    from scipy import stats

    searches, covered = 40, 0
    for seed in range(searches):
        threshold = 0.05 + 0.9 * (seed + 0.5) / searches
        found = searched(Aim(share, max_trials=40), make(threshold), seed)
        covered += found.interval is not None and found.interval.low <= threshold <= found.interval.high
    assert stats.binom.cdf(covered, searches, 0.95) > 0.005, f"{covered} of {searches}"


@pytest.mark.long
def test_a_falling_share_is_rarely_called_not_monotone() -> None:
    curves = [logistic(0.5, 0.5, 0.1), step(0.4, 0.05), weibull(0.6, 0.5, 2.0), logistic(0.3, 0.5, 0.02)]
    alarms = sum(
        searched(Aim(max_trials=36, precision=0.02), curve, seed).state == "not_monotone"
        for curve in curves
        for seed in range(8)
    )
    assert alarms <= 2  # at 1 % three or more of 32 have a chance of 0.4 %


def test_the_test_of_monotony_keeps_its_level_for_fixed_levels() -> None:
    from scipy import stats

    generator = np.random.default_rng(3)
    n = np.full(12, 3.0)
    true = np.linspace(0.97, 0.05, 12)
    p_values = []
    for seed in range(150):
        met = generator.binomial(3, true).astype(float)
        p_values.append(monotone.p_value(met, n, monotone.falling_fit(met, n), seed))
    assert sum(p <= 0.05 for p in p_values) <= stats.binom.ppf(0.999, 150, 0.05)


def test_the_greatest_dip_is_where_it_was_put() -> None:
    met = np.array([5, 5, 0, 0, 5, 5, 0, 0], dtype=float)
    found = monotone.dip(met, np.full(8, 5.0))
    assert found is not None and (found.lower, found.upper) == ((2, 3), (4, 5))
    assert found.statistic == pytest.approx(20 * math.log(2))  # 10 of 10 and 0 of 10, against 10 of 20
    assert monotone.dip(np.array([5.0, 4.0, 0.0]), np.full(3, 5.0)) is None


def test_neighbours_that_rise_are_pooled() -> None:
    fitted = monotone.falling_fit(np.array([4.0, 1.0, 3.0, 0.0]), np.full(4, 4.0))
    assert fitted == pytest.approx([4.5 / 5, 4.5 / 9, 4.5 / 9, 0.5 / 5])


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_every_curve_has_the_share_at_its_threshold_and_falls(share: float) -> None:
    grid = posterior(share, 0.01)
    assert grid.shapes.at(0.0) == pytest.approx(share)
    values = grid.shapes.at(np.linspace(-1, 1, 201))
    assert np.all(np.diff(values, axis=0) <= 1e-12) and values.min() > 0 and values.max() < 1


def test_the_information_of_a_trial_is_what_it_takes_from_the_entropy_of_the_threshold() -> None:
    grid = posterior(0.5, 0.01)
    for place, met in ((0.5, True), (0.75, False)):
        grid.add(place, met)

    def entropy(weights: np.ndarray) -> float:
        marginal = weights.sum(axis=1) / weights.sum()
        return float(-(marginal * np.log(marginal)).sum())

    p = grid.shapes.at(0.62 - grid.thresholds)
    told = entropy(grid.weights)
    for likelihood in (p, 1 - p):
        joint = grid.weights * likelihood
        told -= joint.sum() * entropy(joint)
    assert grid.information()[62] == pytest.approx(told, rel=1e-9)


def test_searches_do_not_share_what_they_learn() -> None:
    one, other = posterior(0.5, 0.01), posterior(0.5, 0.01)
    one.add(0.5, False)
    assert other.beyond(0.5) == pytest.approx(0.5)
    assert one.beyond(0.5) < 0.3
