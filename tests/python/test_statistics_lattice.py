"""The quantisation detector: what it finds, and what it must not find."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perflab.results.comparison import Margin
from perflab.statistics.comparison import compare
from perflab.statistics.lattice import detect
from perflab.statistics.sample import Floats, Sample
from perflab.statistics.summary_data import Moments, compare_moments

Rng = np.random.Generator


def on_lattice(rng: Rng, n: int, period: float, offset: float, jitter: float, ticks: int = 12) -> Floats:
    return offset + period * rng.integers(0, ticks, n) + rng.uniform(0, jitter, n)


@pytest.mark.parametrize(
    ("n", "period", "offset", "jitter"),
    [(12, 50.0, 10.3, 1.5), (20, 4.0, 1.0, 0.3), (30, 16.667, 3.0, 2.0), (60, 1e6, 2.5e5, 1e5), (15, 10.0, 0.2, 0.0)],
)
def test_period_and_offset_are_found(n: int, period: float, offset: float, jitter: float) -> None:
    for seed in range(5):
        found = detect(on_lattice(np.random.default_rng(seed), n, period, offset, jitter))
        assert found is not None
        assert found.kind == "lattice"
        assert found.period == pytest.approx(period, rel=0.01)
        assert found.fitted_period == pytest.approx(period, abs=max(4 * found.period_error, 1e-9 * period))
        slack = 6 * abs(found.period - period) + 1e-9 * period
        assert offset - 12 * slack <= found.offset_low <= found.offset_high <= offset + jitter + 12 * slack
        assert found.p < 0.01


def test_what_floating_point_leaves_of_an_offset_of_0_is_0() -> None:
    found = detect([i - 4 for i in range(8)] + [i - 4.1 for i in range(8)])
    assert found is not None
    assert found.period == pytest.approx(0.1)
    assert (found.offset, found.offset_low, found.offset_high) == (0, 0, 0)


@pytest.mark.parametrize("scale", [1e-59, 1e-9, 1.0, 1e9, 1e59])
def test_every_figure_of_a_table_is_a_number_up_to_the_ends_of_what_it_may_hold(scale: float) -> None:
    a, b = ([scale * (k + x / 10) for x in range(9)] for k in (1, 2))
    found = compare(Sample.of(a), Sample.of(b), margin=Margin(0.1, relative=True)).document()
    for figure in ("p", "shift.value", "ratio.value", "welch.p", "hedges_g.value", "power.sd", "spread.sd_ratio.value"):
        value: Any = found
        for key in figure.split("."):
            value = value[key]
        assert value is not None, figure
        assert math.isfinite(value), figure
    moments = compare_moments(Moments("a", scale, scale / 10, 9), Moments("b", 2 * scale, scale / 10, 9))
    assert moments.verdict == "higher"
    assert moments.p is not None


def test_a_tenth_of_the_values_may_be_elsewhere() -> None:
    rng = np.random.default_rng(1)
    values = on_lattice(rng, 30, 50.0, 10.0, 1.0)
    values[:3] += (17.0, 31.0, 24.0)
    found = detect(values)
    assert found is not None
    assert (found.period, found.on_lattice, found.n) == (50.0, 27, 30)


def test_the_whole_period_is_named_and_not_a_part_of_it() -> None:
    for seed in range(20):
        found = detect(on_lattice(np.random.default_rng(seed), 25, 100.0, 7.0, 2.0))
        assert found is not None
        assert found.period == pytest.approx(100.0, rel=0.005)


def test_rounded_values_have_a_resolution_and_no_lattice() -> None:
    values: Floats = np.round(np.random.default_rng(0).normal(50, 10, 25))
    found = detect(values)
    assert found is not None
    assert (found.kind, found.period, found.resolution) == ("resolution", 1.0, 1.0)
    in_tens: Floats = np.round(np.random.default_rng(0).normal(500, 100, 25), -1)
    tens = detect(in_tens)
    assert tens is not None
    assert (tens.kind, tens.period) == ("resolution", 10.0)


def test_a_resolution_that_shows_nowhere_is_not_reported() -> None:
    fine: Floats = np.round(np.random.default_rng(0).normal(500, 100, 25), 2)
    assert detect(fine) is None


def test_known_bins_are_not_taken_for_a_finding() -> None:
    values = [1024.0 * int(k) for k in np.random.default_rng(0).integers(1000, 1030, 20)]
    found = detect(values, resolution=1024.0)
    assert found is not None
    assert (found.kind, found.period) == ("resolution", 1024.0)


@pytest.mark.parametrize("values", [[], [1.0], [5.0] * 20, [10.0, 60.0, 110.0], [0.0, 0.0, 50.0, 50.0, 100.0, 100.0]])
def test_few_or_equal_values_say_nothing(values: list[float]) -> None:
    assert detect(values) is None


_CONTINUOUS: dict[str, Callable[[Rng, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(500, 100, n),
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "three clusters": lambda rng, n: rng.choice(rng.uniform(0, 100, 3), n) + rng.normal(0, 0.1, n),
    "six clusters": lambda rng, n: rng.choice(rng.uniform(0, 100, 6), n) + rng.normal(0, 0.1, n),
    "rounded": lambda rng, n: rng.normal(500, 100, n).round(),
    "rounded to 0.25": lambda rng, n: (rng.normal(50, 10, n) * 4).round() / 4,
}


@pytest.mark.parametrize("name", _CONTINUOUS)
@pytest.mark.long
def test_false_findings_are_as_rare_as_stated(name: str) -> None:
    rng = np.random.default_rng(42)
    found = 0
    for n in (6, 10, 25):
        for _ in range(100):
            lattice = detect(_CONTINUOUS[name](rng, n))
            found += lattice is not None and lattice.kind == "lattice" and lattice.period != 0.25
    assert found <= 9  # of 300 at alpha = 0.01: more than that has a chance of 0.1 %
