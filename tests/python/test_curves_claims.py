"""Knees and saturation points against sweeps whose truth is known: how often they are claimed, missed, and wrong.

The rates stand in docs/sweeps.md. Each limit leaves room for what so many sweeps scatter: two to three standard errors.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from perflab.results.curve import Knee, Saturation
from perflab.statistics import knee, saturation
from perflab.statistics.knee import NotShown
from perflab.statistics.sample import Sample

SWEEPS = 200
Shape = Callable[[float], float]


def flat(_: float) -> float:
    return 0.0


def straight(x: float) -> float:
    return x / 30


def parabola(x: float) -> float:
    return (x / 50) ** 2


def kinked(at: float) -> Shape:
    return lambda x: 0.002 * x + 0.03 * max(0.0, x - at)


def made(
    rng: np.random.Generator,
    means: Sequence[float],
    trials: int = 5,
    sd: float = 0.08,
    drift: float = 0.05,
    last_sd: float | None = None,
) -> list[Sample]:
    """Times whose logarithms have these means, a drift from block to block, and a noise that may grow to the last."""
    blocks = rng.normal(0, drift, trials)
    sds = np.linspace(sd, sd if last_sd is None else last_sd, len(means))
    return [
        Sample.of(list(np.exp(10 + mean + blocks + rng.normal(0, s, trials))), blocks=range(trials))
        for mean, s in zip(means, sds, strict=True)
    ]


def knees(levels: int, shape: Shape, seed: int = 1, sweeps: int = SWEEPS, **noise: Any) -> list[Knee | NotShown]:
    rng, at = np.random.default_rng(seed), np.linspace(0, 90, levels)
    return [
        knee.find(list(at), made(rng, [shape(x) for x in at], **noise), log_levels=False, logarithms=True, seed=n)
        for n in range(sweeps)
    ]


def claimed(found: Sequence[Knee | NotShown]) -> list[Knee]:
    return [k for k in found if isinstance(k, Knee)]


@pytest.mark.parametrize("levels", [5, 7, 9])
@pytest.mark.parametrize(("shape", "last_sd"), [(flat, None), (straight, None), (straight, 0.3)])
def test_flat_and_straight_lines_have_no_knee(levels: int, shape: Shape, last_sd: float | None) -> None:
    noise: dict[str, Any] = {} if last_sd is None else {"last_sd": last_sd}
    assert len(claimed(knees(levels, shape, **noise))) <= 0.04 * SWEEPS


@pytest.mark.parametrize("levels", [5, 9])
def test_an_even_bend_is_no_knee(levels: int) -> None:
    found = knees(levels, parabola)
    assert len(claimed(found)) <= 0.04 * SWEEPS
    reasons = Counter(k.reason.split(":")[0] for k in found if isinstance(k, NotShown))
    assert reasons["it bends, but a parabola fits as well as two lines"] >= 0.9 * SWEEPS


@pytest.mark.parametrize("levels", [5, 6, 7, 8, 9])
@pytest.mark.parametrize("at", [33.0, 45.0, 60.0])
@pytest.mark.long
def test_a_knee_is_found_and_its_interval_covers_it(levels: int, at: float) -> None:
    found = claimed(knees(levels, kinked(at), sweeps=60))
    assert len(found) >= 36
    assert sum(k.low <= at <= k.high for k in found) >= 0.93 * len(found)
    assert np.median([k.level for k in found]) == pytest.approx(at, abs=3)
    assert np.mean([k.high - k.low for k in found]) <= 55


@pytest.mark.long
def test_an_interval_of_noisy_trials_covers_too_and_fewer_knees_are_claimed() -> None:
    found = claimed(knees(7, kinked(40), sd=0.2))
    assert 0.2 * SWEEPS <= len(found) <= 0.8 * SWEEPS
    assert sum(k.low <= 40 <= k.high for k in found) >= 0.93 * len(found)


def test_a_line_without_noise_has_no_knee_and_a_kink_without_noise_has_one_there() -> None:
    levels = [0.0, 15, 30, 45, 60]
    quiet: dict[str, Any] = {"sd": 0.0, "drift": 0.0}
    rng = np.random.default_rng(1)
    line = knee.find(levels, made(rng, levels, **quiet), log_levels=False, logarithms=True)
    assert isinstance(line, NotShown)
    means = [max(0.0, x - 30) / 50 for x in levels]
    kink = knee.find(levels, made(rng, means, **quiet), log_levels=False, logarithms=True)
    assert isinstance(kink, Knee)
    assert (kink.level, kink.low, kink.high) == (30, 30, 30)


def one(levels: Sequence[float], means: Sequence[float], **options: Any) -> Knee | NotShown:
    samples = made(np.random.default_rng(3), means, sd=0.02)
    return knee.find(levels, samples, **{"log_levels": False, "logarithms": True, **options})


def test_a_curve_that_improves_has_its_knee_where_it_starts_to_get_worse() -> None:
    found = one([1, 2, 4, 8, 16], [3, 2, 1, 0, 0], log_levels=True)
    assert isinstance(found, Knee)
    assert found.level == pytest.approx(8, rel=0.1)


def test_what_flattens_towards_the_worse_end_is_no_knee() -> None:
    found = one([0, 20, 40, 60, 80], [0, 1, 2, 2, 2])
    assert isinstance(found, NotShown) and found.reason.startswith("it bends the other way")


def test_for_a_metric_of_which_more_is_better_a_knee_is_where_it_falls() -> None:
    found = one([0, 20, 40, 60, 80], [0, 0, 0, -1, -2], higher_is_worse=False)
    assert isinstance(found, Knee)
    assert found.level == pytest.approx(40, abs=3)
    assert isinstance(one([0, 20, 40, 60, 80], [0, 0, 0, 1, 2], higher_is_worse=False), NotShown)


def test_three_levels_and_four_blocks_are_too_few() -> None:
    assert one([0, 50, 90], [0, 0, 3]) == NotShown("it needs 4 levels with values, there are 3")
    samples = made(np.random.default_rng(1), [0, 0, 0, 3, 6], trials=4)
    found = knee.find([0, 20, 40, 60, 80], samples, log_levels=False, logarithms=True)
    assert isinstance(found, NotShown)
    assert found.reason.startswith("too few trials: 4 blocks")


def test_a_block_that_lacks_a_level_still_counts() -> None:
    samples = made(np.random.default_rng(1), [0, 0, 0, 1, 2], sd=0.03)
    samples[2] = samples[2].without(0)
    assert isinstance(knee.find([0, 20, 40, 60, 80], samples, log_levels=False, logarithms=True), Knee)


def test_a_level_that_stands_in_each_block_several_times_is_no_trouble() -> None:
    rng = np.random.default_rng(1)
    samples = made(rng, [0, 0, 0, 1, 2], sd=0.03)
    samples[0] = Sample.of(list(np.exp(10 + rng.normal(0, 0.03, 25))), blocks=[b % 5 for b in range(25)])
    found = knee.find([0, 20, 40, 60, 80], samples, log_levels=False, logarithms=True)
    assert isinstance(found, Knee)
    assert found.level == pytest.approx(40, abs=3)


def test_trials_without_blocks_are_taken_in_their_order() -> None:
    samples = [dataclasses.replace(s, blocks=None) for s in made(np.random.default_rng(1), [0, 0, 0, 1, 2], sd=0.03)]
    assert isinstance(knee.find([0, 20, 40, 60, 80], samples, log_levels=False, logarithms=True), Knee)


def test_values_that_never_vary_have_no_knee() -> None:
    samples = [Sample.of([7.0] * 5, blocks=range(5))] * 5
    assert knee.find([1, 2, 3, 4, 5], samples, log_levels=False, logarithms=True) == NotShown(
        "identical in every trial"
    )
    zeros = [Sample.of([0.0] * 5, blocks=range(5))] * 5
    assert knee.find([1, 2, 3, 4, 5], zeros, log_levels=False, logarithms=False) == NotShown("identical in every trial")


CPUS = [1.0, 2.0, 4.0, 8.0]
EDGE = float(np.log(1.05)) + 1e-9  # larger than the margin by a hair: the hardest case


def saturations(means: Sequence[float], sd: float, trials: int = 5, sweeps: int = 200) -> list[Saturation | NotShown]:
    rng = np.random.default_rng(2)
    return [saturation.find(CPUS, made(rng, means, trials=trials, sd=sd), margin=0.05) for _ in range(sweeps)]


def level_of(found: Saturation | NotShown) -> float | None:
    """What is claimed: a flat curve is claimed to be so from its first level on."""
    if isinstance(found, Saturation):
        return found.level
    return CPUS[0] if found.flat else None


@pytest.mark.parametrize("sd", [0.01, 0.03])
@pytest.mark.parametrize("trials", [5, 10])
@pytest.mark.parametrize(("means", "truth"), [([1.4, EDGE, 0, 0], 4), ([0, 0, 0, EDGE], 8), ([0, 0, EDGE, 0], 8)])
@pytest.mark.long
def test_no_more_than_alpha_saturate_too_early(sd: float, trials: int, means: list[float], truth: float) -> None:
    levels = [level_of(s) for s in saturations(means, sd, trials)]
    assert sum(level is not None and level < truth for level in levels) <= (0.05 + 0.03) * len(levels)


def test_saturation_is_found_where_trials_scatter_less_than_the_margin() -> None:
    found = saturations([1.4, 0, 0, 0], sd=0.01)
    assert sum(level_of(s) == 2 for s in found) >= 0.98 * len(found)
    assert all(s.low == 2 == s.high and s.confidence == 0.9 for s in found if isinstance(s, Saturation))


@pytest.mark.long
def test_the_interval_of_a_saturation_point_covers_it() -> None:
    found = [s for s in saturations([1.4, 2 * EDGE, 0, 0], sd=0.03, trials=8) if isinstance(s, Saturation)]
    assert len(found) >= 100
    assert sum(s.low <= 4 <= s.high for s in found) >= 0.9 * len(found)


def test_a_curve_that_goes_on_changing_does_not_saturate() -> None:
    found = saturations([0.9, 0.6, 0.3, 0], sd=0.02, sweeps=50)
    assert all(isinstance(s, NotShown) and s.reason.startswith("it still changes from 4 to 8") for s in found)


def test_what_is_not_shown_is_not_claimed() -> None:
    found = saturations([1.4, 0, 0, 0], sd=0.2, sweeps=50)
    assert (
        sum(isinstance(s, NotShown) and "it is not shown that 4 and 8 differ by no more" in s.reason for s in found)
        > 40
    )
    few = saturations([1.4, 0, 0, 0], sd=0.01, trials=4, sweeps=1)[0]
    assert isinstance(few, NotShown)
    assert few.reason.startswith("too few trials to show whether 4 differs from 8 (n = 4 and 4, at best p = 0.062")


def test_a_lower_level_that_is_close_again_is_no_saturation() -> None:
    found = saturations([0, 1, 0, 0], sd=0.01, sweeps=50)
    assert sum(level_of(s) == 4 for s in found) >= 48


def test_values_in_steps_coarser_than_the_margin_show_nothing() -> None:
    # Durations polled every 50 ms: at 2, 4 and 8 all trials agree, because there is nothing between 350 and 400.
    rng = np.random.default_rng(1)
    durations = [[900, 950, 900, 900, 950], [350, 350, 400, 350, 350], [350] * 5, [350] * 5]
    samples = [Sample.of([float(v) for v in values], blocks=range(5)) for values in durations]
    found = saturation.find(CPUS, samples, margin=0.05)
    assert isinstance(found, NotShown)
    assert "the values come in steps of 14 % of those at 8" in found.reason
    fine = made(rng, [1.4, 0, 0, 0], sd=0.005)
    assert isinstance(saturation.find(CPUS, fine, margin=0.05), Saturation)
    assert isinstance(saturation.find(CPUS, fine, margin=0.05, step=0.2 * fine[3].values[0]), NotShown)


def test_values_that_are_not_positive_and_missing_last_levels_do_not_saturate() -> None:
    zeros = [Sample.of([0.0] * 5, blocks=range(5))] * 4
    assert saturation.find(CPUS, zeros, margin=0.05) == NotShown("a margin by a factor needs positive values")
    samples = made(np.random.default_rng(1), [1, 0, 0, 0])
    samples[3] = Sample.of([])
    assert saturation.find(CPUS, samples, margin=0.05) == NotShown("there is no value at 8, the last level")
    assert saturation.find(CPUS[:2], samples[:2], margin=0.05) == NotShown("it needs 3 levels with values, there are 2")
