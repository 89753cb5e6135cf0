"""Simulated experiments with known truth: what the statistics claim of them must be what was injected.

Trials run on the virtual runtime, one perflab-node each, a hundred messages or so in a few milliseconds. One value per
trial enters, as everywhere. Rates are checked with their Monte Carlo error, from fixed seeds: the same everywhere.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab import native as native_programs
from perflab.formats import records
from perflab.results.comparison import Margin
from perflab.statistics import histogram as hg
from perflab.statistics import power
from perflab.statistics.comparison import compare, holm
from perflab.statistics.judgement import Judgement, Rules, judge
from perflab.statistics.sample import Sample
from perflab.workload import topology

PAIR = """
name: pair
nodes:
  - name: sender
    publishers: [{topic: data, type: stamped10b}]
    timers: [{name: tick, period: 10ms, publish: data}]
  - name: receiver
    subscriptions: [{topic: data, type: stamped10b}]
"""
pytestmark = pytest.mark.long
MS = 1_000_000
TRIALS = 6  # of each treatment in a simulated experiment
EXPERIMENTS = 1000
CHANGED_EXPERIMENTS = 200
WORKERS = 2

Values = dict[str, list[float]]
Pair = tuple[Sequence[float], Sequence[float]]
Simulate = Callable[[Mapping[str, str], int, int], Values]
Disturbed = Callable[[Mapping[str, str], str], list[Pair]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """simulate(options of the virtual links, first seed, trials) gives one value per trial and metric."""
    native = native_programs.find()
    folder = tmp_path_factory.mktemp("virtual")
    (folder / "pair.yaml").write_text(PAIR)
    graph = topology.load([str(folder / "pair.yaml")], native).graph.document
    program = native.program("perflab-node")

    def one(options: Mapping[str, str], seed: int) -> dict[str, float]:
        config, lines = folder / f"{seed}.json", folder / f"{seed}.jsonl"
        config.write_text(json.dumps(_configuration(graph, options, seed, lines)))
        subprocess.run([program, "--config", config], check=True, capture_output=True, timeout=60)
        checkpoint: Any = records.read(lines, "pair").checkpoint
        config.unlink()
        lines.unlink()
        (edge,) = checkpoint["edges"]
        (publisher,) = checkpoint["publishers"]
        latency = hg.from_record(edge["latency"])
        return {
            "mean": hg.mean(latency) or math.nan,
            "p90": float(hg.value_at_percentile(latency, 90.0) or math.nan),
            "lost": float(publisher["sent"] - edge["received"]),
        }

    def many(options: Mapping[str, str], first_seed: int, trials: int) -> Values:
        with ThreadPoolExecutor(WORKERS) as pool:
            found = list(pool.map(lambda seed: one(options, seed), range(first_seed, first_seed + trials)))
        return {metric: [trial[metric] for trial in found] for metric in found[0]}

    return many


def _configuration(graph: Any, options: Mapping[str, str], seed: int, lines: Path) -> dict[str, Any]:
    return {
        "schema": 1,
        "graph": graph,
        "process": None,
        "runtime": "virtual",
        "middleware": {
            "name": "virtual",
            "library": None,
            "domain": None,
            "network": "lo",
            "options": {f"disturb.{key}": value for key, value in {**options, "seed": str(seed)}.items()},
        },
        "duration_ns": 1000 * MS,
        "warmup_ns": 0,
        "sampling_ns": 500 * MS,
        "checkpoint_ns": 5000 * MS,
        "discovery_timeout_ns": 0,
        "thresholds": {
            "late_percent": 20.0,
            "late_ns": 5 * MS,
            "too_late_percent": 100.0,
            "too_late_ns": 50 * MS,
        },
        "seed": seed,
        "measure": [],
        "records": str(lines),
    }


QUIET = {"delay": "1ms", "jitter": "500us", "loss": "0.05"}
ALPHA = 0.05


@pytest.fixture(scope="module")
def quiet(simulate: Simulate) -> Values:
    """Trials enough that no two simulated experiments share one."""
    return simulate(QUIET, 1, 2 * TRIALS * EXPERIMENTS)


@pytest.fixture(scope="module")
def disturbed(simulate: Simulate, quiet: Values) -> Disturbed:
    """disturbed(changed options, metric): experiments that compare the quiet links with changed ones."""
    seeds = iter(range(10_000_000, 99_000_000, 100_000))

    def experiments(changed: Mapping[str, str], metric: str) -> list[Pair]:
        values = simulate({**QUIET, **changed}, next(seeds), TRIALS * CHANGED_EXPERIMENTS)[metric]
        return [
            (quiet[metric][n * TRIALS : (n + 1) * TRIALS], values[n * TRIALS : (n + 1) * TRIALS])
            for n in range(CHANGED_EXPERIMENTS)
        ]

    return experiments


def judged(pair: Pair, margin: Margin | None = None) -> Judgement:
    """By differences, so that what was injected can be found again."""
    baseline, treatment = (Sample.of(values, name=name) for values, name in zip(pair, ("a", "b"), strict=True))
    return judge(baseline, treatment, Rules(alpha=ALPHA, margin=margin))


def without_effect(values: Sequence[float]) -> list[Pair]:
    step = 2 * TRIALS
    return [(values[i : i + TRIALS], values[i + TRIALS : i + step]) for i in range(0, len(values), step)]


def at_most(rate: float, n: int) -> float:
    """The largest share that a true rate gives, but for one time in 10,000."""
    return rate + 3.9 * math.sqrt(rate * (1 - rate) / n)


@pytest.mark.parametrize("metric", ["mean", "p90", "lost"])
def test_without_an_effect_claims_are_no_more_frequent_than_stated(quiet: Values, metric: str) -> None:
    judgements = [judged(pair) for pair in without_effect(quiet[metric])]
    claims = sum(j.verdict in ("higher", "lower") for j in judgements)
    assert len(judgements) == EXPERIMENTS
    assert claims / EXPERIMENTS <= at_most(ALPHA, EXPERIMENTS)
    intervals = [j.estimate.interval for j in judgements]
    covered = sum(i is not None and i.low <= 0 <= i.high for i in intervals)
    assert 1 - covered / EXPERIMENTS <= at_most(ALPHA, EXPERIMENTS)


def test_without_an_effect_a_whole_family_makes_a_claim_no_more_often_than_stated(quiet: Values) -> None:
    families = zip(*(without_effect(quiet[metric]) for metric in ("mean", "p90", "lost")), strict=True)
    wrong = 0
    for family in families:
        adjusted = holm([judged(pair).test.p for pair in family])
        wrong += any(p is not None and p <= ALPHA for p in adjusted)
    assert wrong / EXPERIMENTS <= at_most(ALPHA, EXPERIMENTS)


def test_a_change_of_delay_is_found_with_the_planned_power_its_sign_and_its_size(
    quiet: Values, disturbed: Disturbed
) -> None:
    sd = float(np.std(quiet["mean"], ddof=1))
    detectable = power.detectable_shift(sd, TRIALS, TRIALS, ALPHA, 0.8)
    assert detectable is not None
    injected = round(detectable)
    judgements = [judged(pair) for pair in disturbed({"delay": f"{MS + injected}ns"}, "mean")]
    found = [j for j in judgements if j.verdict in ("higher", "lower")]
    # The sd of the plan is itself estimated, and the trials are no normal deviates: hence the band.
    assert len(found) / len(judgements) == pytest.approx(0.8, abs=0.1)
    assert sum(j.verdict == "lower" for j in found) == 0
    estimates = [j.estimate.value for j in judgements if j.estimate.value is not None]
    standard_error = sd * math.sqrt(2 / TRIALS / len(estimates))
    assert statistics.fmean(estimates) == pytest.approx(injected, abs=5 * standard_error)
    intervals = [j.estimate.interval for j in judgements]
    missed = sum(i is None or not i.low <= injected <= i.high for i in intervals)
    assert missed / len(intervals) <= at_most(ALPHA, len(intervals))


@pytest.mark.parametrize(
    ("changed", "metric", "size"),
    [
        ({"delay": "1100us"}, "mean", 100_000),
        ({"delay": "900us"}, "p90", -100_000),
        ({"jitter": "1ms"}, "mean", 250_000),
        ({"jitter": "1ms"}, "p90", 450_000),
        ({"loss": "0.3"}, "lost", 25),
    ],
)
def test_large_changes_are_always_found_with_their_sign_and_size(
    disturbed: Disturbed, changed: Mapping[str, str], metric: str, size: float
) -> None:
    judgements = [judged(pair) for pair in disturbed(changed, metric)]
    verdict = "higher" if size > 0 else "lower"
    assert sum(j.verdict == verdict for j in judgements) / len(judgements) >= 0.99
    middle = statistics.median(j.estimate.value for j in judgements if j.estimate.value is not None)
    assert middle == pytest.approx(size, rel=0.05)


def test_what_differs_by_the_margin_is_hardly_ever_called_equivalent(disturbed: Disturbed) -> None:
    margin = Margin(100_000.0)
    at_the_margin = [judged(pair, margin) for pair in disturbed({"delay": "1100us"}, "mean")]
    wrong = sum(j.verdict == "equivalent" for j in at_the_margin)
    assert wrong / len(at_the_margin) <= at_most(ALPHA, len(at_the_margin))


def test_no_effect_is_shown_where_the_trials_suffice(quiet: Values) -> None:
    judgements = [judged(pair, Margin(100_000.0)) for pair in without_effect(quiet["mean"])]
    assert sum(j.verdict == "equivalent" for j in judgements) / EXPERIMENTS >= 0.99


def test_a_whole_comparison_says_what_its_core_says(quiet: Values) -> None:
    for pair in without_effect(quiet["mean"])[:20]:
        whole = compare(Sample.of(pair[0], name="a"), Sample.of(pair[1], name="b"), ratio=False)
        assert (whole.verdict, whole.p) == (judged(pair).verdict, judged(pair).test.p)
