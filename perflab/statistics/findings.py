"""What the trials of an experiment show: every treatment compared with its baseline, and what must be known about it.

All comparisons of the chosen metrics are one family, among which alpha is divided, so that all their intervals hold
together; carry-over is a family of its own at the same alpha. Checks of the experiment itself (carry-over,
lattices, outliers, influence) are no claims about the system under test and stand beside it. docs/findings.md says what
is compared with what and why.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from perflab.results.comparison import (
    ALPHA,
    CARRY_OVER,
    MARGIN,
    OBSERVER,
    Finding,
    Findings,
    FoundLattice,
    FoundOutlier,
    Looks,
    NoiseFloor,
    ShareInterval,
    SuccessRate,
    Verdict,
)
from perflab.results.trial import Median, Result
from perflab.statistics import estimate, remarks
from perflab.statistics.comparison import Compared, compare_all, lattice_of, verdict_alone
from perflab.statistics.estimate import find_outliers
from perflab.statistics.metrics import RATIO, Metric, chosen
from perflab.statistics.noise import noise_floor
from perflab.statistics.pairs import Entering, Pair, Place, pairs_of, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import design
from perflab.statistics.selection import sample_of
from perflab.statistics.verdicts import effect_of, in_words


def intervals(
    result: Result, metrics: Sequence[Metric] | None = None, confidence: float = 1 - ALPHA
) -> dict[str, Median]:
    """The median over the trials of a result for each metric that they measured."""
    samples = {metric: sample_of(result.entering, metric, result.label) for metric in metrics or chosen(None)}
    return {
        metric.name: estimate.median_of(sample, confidence, metric.unit)
        for metric, sample in samples.items()
        if sample.n
    }


def find(
    results: Sequence[Result],
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    metrics: Sequence[Metric] | None = None,
    seed: int = 0,
    looks: Looks | None = None,
) -> Findings:
    """What the trials of results show. `margin` 0.05: a factor of 1.05."""
    looks = looks or Looks()
    wanted = tuple(metrics or chosen(None))
    places = places_of(results)
    counts = [len(r.trials) for p in places for r in p.results]
    compared: list[Compared[Pair]] = []
    carried: list[Compared[Pair]] = []
    if max(counts, default=0) > 1:  # else there is nothing that statistics could say
        compared = _compared(pairs_of(places), wanted, alpha, margin, seed, looks)
        carried = _carry_over(places, wanted, alpha, seed, looks)
    lattices = _lattices(places, wanted)
    outliers = _outliers(places, wanted)
    return Findings(
        alpha=alpha,
        margin=margin,
        looks=looks,
        metrics=tuple(metric.name for metric in wanted),
        family_size=max((c.comparison.family_size for c in compared), default=0),
        noise_floor=_noise_floors(places, wanted, seed),
        comparisons=tuple(map(_finding, compared)),
        carry_over=tuple(map(_finding, carried)),
        success_rates=tuple(_success_rate(r, p, alpha) for p in places for r in p.results),
        lattices=lattices,
        outliers=outliers,
        more_trials=remarks.more_trials([c for c in compared if c.of.kind != OBSERVER]),
        remarks=tuple(remarks.all_of(places, wanted, compared, carried, lattices, outliers, alpha, margin)),
    )


def _compared(
    pairs: Sequence[Pair], metrics: Sequence[Metric], alpha: float, margin: float, seed: int, looks: Looks
) -> list[Compared[Pair]]:
    """Every pair in every metric that both sides measured, as one family."""
    asked = []
    for pair, metric in itertools.product(pairs, metrics):
        baseline, treatment = pair.samples(metric)
        asked.append((pair, metric, baseline, treatment, _floor(pair, metric, baseline.n, treatment.n, seed)))
    return compare_all(asked, alpha, margin, seed, looks.share, looks.next.share)


class Quick(NamedTuple):
    """What a pair shows in one metric. `decidable`: of systems, by a factor, so that a difference can be shown and that
    there is none."""

    pair: Pair
    metric: Metric
    verdict: Verdict
    decidable: bool


def verdicts(
    results: Sequence[Result], metrics: Sequence[Metric], *, alpha: float, margin: float, seed: int, looks: Looks
) -> list[Quick]:
    """The verdicts of `find`, which are had much sooner than all that it says of them."""
    asked = [
        (pair, metric, *pair.samples(metric))
        for pair, metric in itertools.product(pairs_of(places_of(results)), metrics)
    ]
    tested = [entry for entry in asked if design(*entry[2:]).blocks]
    found = []
    for pair, metric, baseline, treatment in tested:
        floor = partial(_floor, pair, metric, baseline.n, treatment.n, seed)
        verdict = verdict_alone(metric, baseline, treatment, alpha, margin, len(tested) / looks.share, floor)
        positive = baseline.positive and treatment.positive
        decidable = pair.kind != OBSERVER and metric.compared == RATIO and positive
        found.append(Quick(pair, metric, verdict, decidable))
    return found


def _floor(pair: Pair, metric: Metric, n_baseline: int, n_treatment: int, seed: int) -> NoiseFloor | None:
    """That of the noisier of the places' baselines, on either scale."""
    found = [
        floor
        for place in pair.places
        if (baseline := place.baseline) is not None
        and (floor := noise_floor(baseline.sample(metric, ""), n_baseline, n_treatment, seed)) is not None
    ]
    if not found:
        return None
    noisier = max(found, key=lambda f: f.difference)
    return replace(noisier, ratio=max((f.ratio for f in found if f.ratio is not None), default=None))


def _noise_floors(places: Sequence[Place], metrics: Sequence[Metric], seed: int) -> dict[str, dict[str, NoiseFloor]]:
    """By variant and metric, for a comparison of all baseline trials with the largest treatment."""
    floors: dict[str, dict[str, NoiseFloor]] = {}
    for place in places:
        if place.baseline is None:
            continue
        sizes = [len(r.trials) for r in place.disturbed] or [len(place.baseline.trials)]
        for metric in metrics:
            sample = place.baseline.sample(metric, "")
            floor = noise_floor(sample, sample.n, max(sizes), seed)
            if floor is not None:
                floors.setdefault(place.words, {})[metric.name] = floor
    return floors


def _carry_over(
    places: Sequence[Place], metrics: Sequence[Metric], alpha: float, seed: int, looks: Looks
) -> list[Compared[Pair]]:
    """Baselines that ran right after a disturbing treatment against those that did not: a family of its own."""
    names = ("baselines after no disturbance", "baselines right after a disturbance")
    pairs = []
    for place in places:
        if place.baseline is not None:
            after = Entering(place.baseline.result, [t for t in place.baseline.trials if t.after])
            others = Entering(place.baseline.result, [t for t in place.baseline.trials if not t.after])
            pairs.append(Pair(CARRY_OVER, place.words, others, after, names, (), place.only))
    asked = ((pair, metric, *pair.samples(metric), None) for pair in pairs for metric in metrics)
    return compare_all(asked, alpha, seed=seed, share=looks.share, next_share=looks.next.share)


def _lattices(places: Sequence[Place], metrics: Sequence[Metric]) -> tuple[FoundLattice, ...]:
    """Of all trial values of a variant together."""
    return tuple(
        FoundLattice(**vars(lattice), variant=place.words, metric=metric.name)
        for place, metric in itertools.product(places, metrics)
        if (lattice := lattice_of(metric, [v for r in place.results for v in r.sample(metric, "").values])) is not None
    )


def _outliers(places: Sequence[Place], metrics: Sequence[Metric]) -> tuple[FoundOutlier, ...]:
    return tuple(
        FoundOutlier(**vars(outlier), variant=place.words, metric=metric.name)
        for place in places
        for result in place.results
        if result.result.is_regular
        for metric in metrics
        for outlier in find_outliers(result.sample(metric, result.treatment))
    )


def _finding(compared: Compared[Pair]) -> Finding:
    pair, metric, comparison = compared
    return Finding(
        **{**vars(comparison.alone()), "metric": metric.name},
        kind=pair.kind,
        variant=pair.place or None,
        unit=metric.unit,
        better=metric.better,
        effect=effect_of(metric, comparison),
        words=in_words(comparison, metric.format),
    )


def _success_rate(entering: Entering, place: Place, alpha: float) -> SuccessRate:
    """Successes of the trials that tell something of the system."""
    outcomes = entering.result.outcomes
    interval = wilson(outcomes.success, outcomes.judged, 1 - alpha)
    return SuccessRate(
        variant=place.words,
        treatment=entering.treatment,
        purpose=entering.result.purpose,
        successes=outcomes.success,
        n=outcomes.judged,
        interval=None if interval is None else ShareInterval(*interval, 1 - alpha),
        invalid=outcomes.invalid,
        harness_errors=outcomes.harness_error,
    )
