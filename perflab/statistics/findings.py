"""What the trials of an experiment show: every treatment compared with its baseline, with remarks.

All comparisons of the chosen metrics are one family, among which alpha is divided, so that all their intervals hold
simultaneously; carry-over is a separate family at the same alpha. Checks of the experiment itself (carry-over,
lattices, outliers, influence) are not claims about the system under test and are additional. docs/findings.md says what
is compared with what and why.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from perflab.results.comparison import (
    ALPHA,
    CARRY_OVER,
    CLAIMS,
    MARGIN,
    OBSERVER,
    EarlierLook,
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
from perflab.results.figure import Median
from perflab.results.trial import Result
from perflab.statistics import estimate, remarks
from perflab.statistics.comparison import Compared, compare_all, lattice_of, verdicts_alone
from perflab.statistics.difference import attainable_p
from perflab.statistics.estimate import find_outliers
from perflab.statistics.metrics import RATIO, Metric, chosen
from perflab.statistics.noise import noise_floor
from perflab.statistics.pairs import Entering, Pair, Place, pairs_of, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Sample, design
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
    """The findings from the trials of results. `margin` 0.05: a factor of 1.05."""
    looks = looks or Looks()
    wanted = tuple(metrics or chosen(None))
    places = places_of(results)
    counts = [len(r.trials) for p in places for r in p.results]
    compared: list[Compared[Pair]] = []
    carried: list[Compared[Pair]] = []
    if max(counts, default=0) > 1:  # otherwise statistics could not show anything
        compared = _compared(results, partial(_all_pairs, wanted), alpha, margin, seed, looks)
        carried = _compared(results, partial(_carry_over, wanted), alpha, MARGIN, seed, looks)
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


class _Asked(NamedTuple):
    """A pair to compare in one metric; `floor` is its noise floor."""

    pair: Pair
    metric: Metric
    baseline: Sample
    treatment: Sample
    floor: Callable[[], NoiseFloor | None]


# Comparisons in a fixed order, whatever trials the results have.
_Ask = Callable[[Sequence[Result], int], list[_Asked]]


def _all_pairs(metrics: Sequence[Metric], results: Sequence[Result], seed: int) -> list[_Asked]:
    """Every pair in every metric."""
    asked = []
    for pair, metric in itertools.product(pairs_of(places_of(results)), metrics):
        baseline, treatment = pair.samples(metric)
        floor = partial(_floor, pair, metric, baseline.n, treatment.n, seed)
        asked.append(_Asked(pair, metric, baseline, treatment, floor))
    return asked


class _Stands(NamedTuple):
    """The verdict on a comparison at the look `at`, None: the last one. `too_few`: the last look had too few trials to
    show anything about it."""

    verdict: Verdict
    at: EarlierLook | None
    too_few: bool


def _standing(
    results: Sequence[Result], ask: _Ask, alpha: float, margin: float, seed: int, looks: Looks
) -> dict[int, _Stands]:
    """By their places among the comparisons, those that have trials: the last look's claim, else the latest claim of an
    earlier look; without one, the result of the latest look with enough trials to show something.

    With probability 1 - alpha all claims of all looks are true (`Looks`), so that a claim need not be repeated at the
    smaller level of a later look.
    """
    now = _at_look(ask(results, seed), alpha, margin, looks)
    found = {n: _Stands(verdict, None, too_few) for n, (verdict, too_few) in now.items()}
    for then, at in looks.before:
        if all(stands.verdict in CLAIMS for stands in found.values()):
            break
        for n, (verdict, too_few) in _at_look(ask(_until(results, at.trials), seed), alpha, margin, then).items():
            stands = found.get(n)
            if stands is None or stands.verdict in CLAIMS:
                continue
            if verdict in CLAIMS or (stands.verdict == "too_few_trials" and not too_few):
                found[n] = stands._replace(verdict=verdict, at=at)
    return found


def _until(results: Sequence[Result], trials: int) -> list[Result]:
    """The results as of the first this many trials of the run."""
    return [replace(r, trials_detail=tuple(t for t in r.trials_detail if t.order <= trials)) for r in results]


def _at_look(asked: Sequence[_Asked], alpha: float, margin: float, looks: Looks) -> dict[int, tuple[Verdict, bool]]:
    """By place the verdicts of those that have trials, and whether these are too few to show anything."""
    designs = {n: made for n, one in enumerate(asked) if (made := design(one.baseline, one.treatment)).blocks}
    correction = len(designs) / looks.share
    found = verdicts_alone([asked[n][1:] for n in designs], alpha, margin, correction)
    return {
        n: (verdict, (attainable_p(made) or 1.0) * correction > alpha)
        for (n, made), verdict in zip(designs.items(), found, strict=True)
    }


def _compared(
    results: Sequence[Result], ask: _Ask, alpha: float, margin: float, seed: int, looks: Looks
) -> list[Compared[Pair]]:
    """What both sides measured, as one family, each as of the last look."""

    def at_look(some: Sequence[Result], these: Looks) -> dict[int, Compared[tuple[int, Pair]]]:
        asked = [
            ((n, pair), metric, baseline, treatment, floor() if baseline.n and treatment.n else None)
            for n, (pair, metric, baseline, treatment, floor) in enumerate(ask(some, seed))
        ]
        made = compare_all(asked, alpha, margin, seed, these.share, looks.next.share)
        return {one.of[0]: one for one in made}

    found = at_look(results, looks)
    standing = _standing(results, ask, alpha, margin, seed, looks) if looks.before else {}
    for then, at in looks.before:
        mine = [n for n, stands in standing.items() if stands.at == at]
        earlier = at_look(_until(results, at.trials), then) if mine else {}
        for n in mine:
            more = None if earlier[n].comparison.verdict in CLAIMS else found[n].comparison.more_trials
            found[n] = earlier[n]._replace(comparison=replace(earlier[n].comparison, look=at, more_trials=more))
    return [Compared(of[1], metric, comparison) for of, metric, comparison in found.values()]


class Quick(NamedTuple):
    """The result of a pair in one metric. `too_few`: this look had too few trials to show anything about it.
    `decidable`: compares systems, by a factor, so that either a difference or its absence can be shown."""

    pair: Pair
    metric: Metric
    verdict: Verdict
    too_few: bool
    decidable: bool


def verdicts(
    results: Sequence[Result], metrics: Sequence[Metric], *, alpha: float, margin: float, seed: int, looks: Looks
) -> list[Quick]:
    """The verdicts of `find`, which are computed much faster than its other results."""
    ask = partial(_all_pairs, metrics)
    asked = ask(results, seed)
    found = []
    for n, stands in _standing(results, ask, alpha, margin, seed, looks).items():
        pair, metric, baseline, treatment, _ = asked[n]
        positive = baseline.positive and treatment.positive
        decidable = pair.kind != OBSERVER and metric.compared == RATIO and positive
        found.append(Quick(pair, metric, stands.verdict, stands.too_few, decidable))
    return found


def _floor(pair: Pair, metric: Metric, n_baseline: int, n_treatment: int, seed: int) -> NoiseFloor | None:
    """The noise floor of the noisier of the places' baselines, on either scale."""
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


def _carry_over(metrics: Sequence[Metric], results: Sequence[Result], _seed: int) -> list[_Asked]:
    """Baselines right after a disturbing treatment against the others: a separate family."""
    names = ("baselines after no disturbance", "baselines right after a disturbance")
    pairs = []
    for place in places_of(results):
        if place.baseline is not None:
            after = Entering(place.baseline.result, [t for t in place.baseline.trials if t.after])
            others = Entering(place.baseline.result, [t for t in place.baseline.trials if not t.after])
            pairs.append(Pair(CARRY_OVER, place.words, others, after, names, (), place.only))
    return [_Asked(pair, metric, *pair.samples(metric), lambda: None) for pair in pairs for metric in metrics]


def _lattices(places: Sequence[Place], metrics: Sequence[Metric]) -> tuple[FoundLattice, ...]:
    """All trial values of a variant together."""
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
    """Successes among the trials that show something about the system."""
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
