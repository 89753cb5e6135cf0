"""What the trials of an experiment show: every treatment compared with its baseline, and what must be known about it.

All comparisons of the chosen metrics are one family: Holm's correction holds the rate of false differences over all of
them together; carry-over is a family of its own at the same alpha. Checks of the experiment itself (carry-over,
lattices, outliers, influence) are no claims about the system under test and stand beside it. docs/findings.md says what
is compared with what and why.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perflab.statistics import estimate, remarks
from perflab.statistics.comparison import Comparison, corrected
from perflab.statistics.metric_comparison import ALPHA, MARGIN, compare_metric, effect_of, lattice_of
from perflab.statistics.metrics import Metric, chosen
from perflab.statistics.noise import NoiseFloor, noise_floor
from perflab.statistics.outliers import find_outliers
from perflab.statistics.pairs import CARRY_OVER, Compared, Pair, Place, Result, pairs_of, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import as_json
from perflab.statistics.selection import MEASURED, entering, purpose_of, sample_of, treatment_of
from perflab.statistics.words import in_words

Json = dict[str, Any]


def intervals(result: Json, metrics: Sequence[Metric] | None = None, confidence: float = 1 - ALPHA) -> Json:
    """The median over the trials of a result for each metric, with its interval; null where there is none."""
    trials = entering(result)
    found: Json = {}
    for metric in metrics or chosen(None):
        sample = sample_of(trials, metric, treatment_of(result))
        if not sample.n:
            continue
        middle = estimate.median(sample, confidence)
        interval = middle.interval
        found[metric.name] = {
            "value": middle.value,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "level": confidence,
            "n": sample.n,
            "unit": metric.unit,
        }
    return found


def add(
    summary: Json,
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    metrics: Sequence[Metric] | None = None,
    seed: int = 0,
) -> None:
    """Fills `intervals` of every result and `findings` of a summary."""
    for result in summary["results"]:
        result["intervals"] = intervals(result, metrics, 1 - alpha)
    summary["findings"] = find(summary["results"], alpha=alpha, margin=margin, metrics=metrics, seed=seed)


def find(
    results: Sequence[Json],
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    metrics: Sequence[Metric] | None = None,
    seed: int = 0,
) -> Json:
    """`findings` of a summary (docs/schema/summary.schema.json) from its results. `margin` 0.05: a factor of 1.05."""
    wanted = tuple(metrics or chosen(None))
    places = places_of(results)
    counts = [len(r.trials) for p in places for r in p.results]
    compared: list[Compared] = []
    carried: list[Compared] = []
    if max(counts, default=0) > 1:  # else there is nothing that statistics could say
        compared = _compared(pairs_of(places), places, wanted, alpha, margin, seed)
        carried = _carry_over(places, wanted, alpha, seed)
    lattices = _lattices(places, wanted)
    outliers = _outliers(places, wanted)
    return {
        "alpha": alpha,
        "margin": margin,
        "metrics": [metric.name for metric in wanted],
        "family_size": max((c.family_size for _, _, c in compared), default=0),
        "noise_floor": _noise_floors(places, wanted, seed),
        "comparisons": [_document(pair, metric, c) for pair, metric, c in compared],
        "carry_over": [_document(pair, metric, c) for pair, metric, c in carried],
        "success_rates": [_success_rate(r, p, alpha) for p in places for r in p.results],
        "lattices": lattices,
        "outliers": outliers,
        "remarks": remarks.all_of(places, wanted, compared, carried, lattices, outliers, alpha, margin),
    }


def _compared(
    pairs: Sequence[Pair], places: Sequence[Place], metrics: Sequence[Metric], alpha: float, margin: float, seed: int
) -> list[Compared]:
    """Every pair in every metric that both sides measured, as one family."""
    made: list[Compared] = []
    for pair, metric in itertools.product(pairs, metrics):
        baseline = pair.baseline.sample(metric, pair.names[0])
        treatment = pair.treatment.sample(metric, pair.names[1])
        if baseline.n and treatment.n:
            floor = _floor(pair, places, metric, baseline.n, treatment.n, seed)
            made.append((pair, metric, compare_metric(metric, baseline, treatment, alpha, margin, floor, seed)))
    return _as_family(made)


def _as_family(made: Sequence[Compared]) -> list[Compared]:
    family = corrected([c for _, _, c in made])
    return [(pair, metric, c) for (pair, metric, _), c in zip(made, family, strict=True)]


def _floor(
    pair: Pair, places: Sequence[Place], metric: Metric, n_baseline: int, n_treatment: int, seed: int
) -> NoiseFloor | None:
    """That of the noisier of the places' baselines, on either scale."""
    found = [
        floor
        for index in pair.places
        if (baseline := places[index].baseline) is not None
        and (floor := noise_floor(baseline.sample(metric, ""), n_baseline, n_treatment, seed)) is not None
    ]
    if not found:
        return None
    noisier = max(found, key=lambda f: f.difference)
    return replace(noisier, ratio=max((f.ratio for f in found if f.ratio is not None), default=None))


def _noise_floors(places: Sequence[Place], metrics: Sequence[Metric], seed: int) -> Json:
    """By variant and metric, for a comparison of all baseline trials with the largest treatment."""
    floors: Json = {}
    for place in places:
        if place.baseline is None:
            continue
        sizes = [len(r.trials) for r in place.disturbed] or [len(place.baseline.trials)]
        for metric in metrics:
            sample = place.baseline.sample(metric, "")
            floor = noise_floor(sample, sample.n, max(sizes), seed)
            if floor is not None:
                floors.setdefault(place.words, {})[metric.name] = as_json(floor)
    return floors


def _carry_over(places: Sequence[Place], metrics: Sequence[Metric], alpha: float, seed: int) -> list[Compared]:
    """Baselines that ran right after a disturbing treatment against those that did not: a family of its own."""
    made: list[Compared] = []
    for place in places:
        if place.baseline is None:
            continue
        after = Result(place.baseline.result, [t for t in place.baseline.trials if t.get("after")])
        others = Result(place.baseline.result, [t for t in place.baseline.trials if not t.get("after")])
        names = ("baselines after no disturbance", "baselines right after a disturbance")
        pair = Pair(CARRY_OVER, place.words, others, after, names, ())
        for metric in metrics:
            baseline, treatment = others.sample(metric, names[0]), after.sample(metric, names[1])
            if baseline.n and treatment.n:
                made.append((pair, metric, compare_metric(metric, baseline, treatment, alpha, seed=seed)))
    return _as_family(made)


def _lattices(places: Sequence[Place], metrics: Sequence[Metric]) -> list[Json]:
    """Of all trial values of a variant together."""
    found = []
    for place, metric in itertools.product(places, metrics):
        lattice = lattice_of(metric, [v for r in place.results for v in r.sample(metric, "").values])
        if lattice is not None:
            found.append({"variant": place.words, "metric": metric.name, **as_json(lattice)})
    return found


def _outliers(places: Sequence[Place], metrics: Sequence[Metric]) -> list[Json]:
    return [
        {"variant": place.words, "metric": metric.name, **as_json(outlier)}
        for place in places
        for result in place.results
        if purpose_of(result.result) == MEASURED
        for metric in metrics
        for outlier in find_outliers(result.sample(metric, result.treatment))
    ]


def _document(pair: Pair, metric: Metric, comparison: Comparison) -> Json:
    document = comparison.to_dict()
    del document["influence"]["trials"]  # every trial left out once: long, and what matters of it stands beside it
    return {
        "kind": pair.kind,
        "variant": pair.place or None,
        **document,
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "effect": effect_of(metric, comparison),
        "words": in_words(comparison, metric.format),
    }


def _success_rate(result: Result, place: Place, alpha: float) -> Json:
    """Successes of the trials that tell something of the system: neither invalid nor failed by the laboratory."""
    outcomes = result.result["outcomes"]
    n = outcomes["success"] + outcomes["failed"]
    interval = wilson(outcomes["success"], n, 1 - alpha)
    return {
        "variant": place.words,
        "treatment": result.treatment,
        "purpose": purpose_of(result.result),
        "successes": outcomes["success"],
        "n": n,
        "interval": None
        if interval is None
        else {"low": interval[0], "high": interval[1], "level": 1 - alpha, "method": "Wilson"},
        "invalid": outcomes["invalid"],
        "harness_errors": outcomes["harness_error"],
    }
