"""Slopes within a trial: known lines, a few odd seconds, and what is too little to tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perflab.statistics import trend

S = 1_000_000_000
FROM = 7 * S


def test_the_slope_of_a_line_is_found_in_spite_of_a_few_odd_points() -> None:
    at = [float(n) for n in range(60)]
    values = [3.0 * t + 5 for t in at]
    values[7] = values[50] = 1e6
    assert trend.slope(at, values) == pytest.approx(3.0)


def test_noise_without_a_trend_has_a_slope_of_about_nothing() -> None:
    rng = np.random.default_rng(3)
    slopes = [trend.slope(list(range(600)), rng.normal(100, 10, 600).tolist()) for _ in range(50)]
    # The standard error of a slope over n points is sigma * sqrt(12 / n^3) = 0.0024.
    assert max(abs(s) for s in slopes if s is not None) < 5 * 0.0024
    assert abs(np.mean([s for s in slopes if s is not None])) < 0.0024


@pytest.mark.parametrize("points", [0, 1, 4])
def test_of_few_points_there_is_none(points: int) -> None:
    assert trend.slope([float(n) for n in range(points)], [1.0] * points) is None


def told(at_s: float, count: int, total_ns: int) -> dict[str, Any]:
    return {"at_ns": FROM + round(at_s * S), "latency_count": count, "latency_sum": total_ns}


def test_the_latency_of_a_second_is_that_of_all_processes_in_it() -> None:
    """One process gets 100 messages a second, another one 300, which are slower by 10 µs in each second."""
    steady = [told(n + 0.98, 100 * (n + 1), 100 * (n + 1) * 50_000) for n in range(10)]
    slower = [told(n + 1.01, 300 * (n + 1), 300 * sum(20_000 + 10_000 * k for k in range(n + 1))) for n in range(10)]
    assert trend.of_latency([steady, slower], FROM, FROM + 10 * S) == pytest.approx(0.75 * 10_000)


def test_records_of_an_older_run_and_short_trials_have_no_slope() -> None:
    assert trend.of_latency([[{"at_ns": FROM + S}] * 10], FROM, FROM + 10 * S) is None
    assert trend.of_latency([[told(n + 1, n + 1, n) for n in range(3)]], FROM, FROM + 3 * S) is None
    assert trend.of_memory([], FROM, FROM + 10 * S) is None


def test_memory_is_that_of_all_processes_in_the_measured_part() -> None:
    def samples(per_s: float) -> list[dict[str, Any]]:
        before = [{"at_ns": FROM - S, "rss_kb": 1}]
        return before + [{"at_ns": FROM + n * S, "rss_kb": 1000 + per_s * n} for n in range(10)]

    assert trend.of_memory([samples(4), samples(0.5)], FROM, FROM + 10 * S) == pytest.approx(4.5)
    assert trend.of_memory([samples(4), []], FROM, FROM + 10 * S) is None
