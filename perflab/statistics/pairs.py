"""The comparisons of an experiment: treatments with their baseline, baselines of different places."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.results.comparison import CONDITION, FACTOR, MITIGATION, OBSERVER, VARIANT, Kind
from perflab.results.trial import Result, Trial, level_values
from perflab.statistics.metrics import Metric
from perflab.statistics.sample import Sample
from perflab.statistics.selection import (
    place_words,
    sample_of,
    text_of,
    variant_words,
)

MAX_PAIRWISE = 4  # number of variants up to which all are compared with each other; beyond, each with the first


@dataclass(frozen=True)
class Entering:
    """A result with the trials that count."""

    result: Result
    trials: list[Trial]

    @property
    def treatment(self) -> str:
        return self.result.label

    def sample(self, metric: Metric, name: str) -> Sample:
        return sample_of(self.trials, metric, name)


@dataclass(frozen=True)
class Place:
    """Results that share variant and outer factors. `baseline` is None if the experiment has none."""

    words: str
    first: Result
    baseline: Entering | None
    control: Entering | None
    disturbed: list[Entering]
    only: bool = False  # the experiment has no other place, so it need not be named

    def named(self, result: Entering) -> str:
        """The label of one of its results."""
        name = f"{result.treatment} without observers" if result.result.is_control else result.treatment
        return name if self.only else f"{self.words}, {name}"

    @property
    def results(self) -> list[Entering]:
        return [r for r in (self.baseline, self.control, *self.disturbed) if r is not None]


@dataclass(frozen=True)
class Pair:
    """The two sides of a comparison. `place` is empty between variants; `places` are those whose noise counts."""

    kind: Kind
    place: str
    baseline: Entering
    treatment: Entering
    names: tuple[str, str]
    places: tuple[Place, ...]
    only: bool = False  # as of a place

    @property
    def words(self) -> str:
        against = f"{self.names[1]} against {self.names[0]}"
        if self.kind == VARIANT:
            return against
        words = against if self.kind in (FACTOR, MITIGATION) else self.names[1]
        return words if self.only else f"{self.place}, {words}"

    def said(self, words: str) -> str:
        """A sentence with the place before it, if there are several."""
        return words if self.only or not self.place else f"{self.place}: {words}"

    def samples(self, metric: Metric) -> tuple[Sample, Sample]:
        return self.baseline.sample(metric, self.names[0]), self.treatment.sample(metric, self.names[1])


def places_of(results: Sequence[Result]) -> list[Place]:
    groups: dict[tuple[object, ...], list[Entering]] = {}
    for result in results:
        if not result.is_extra:
            groups.setdefault(result.place, []).append(Entering(result, result.entering))
    several = len({members[0].result.workload for members in groups.values()}) > 1
    found = []
    for members in groups.values():
        first = members[0].result
        undisturbed = [m for m in members if not m.result.is_disturbed]
        found.append(
            Place(
                words=f"{first.workload}, {place_words(first)}" if several else place_words(first),
                first=first,
                baseline=next((m for m in undisturbed if m.result.is_regular), None),
                control=next((m for m in undisturbed if m.result.is_control), None),
                disturbed=[m for m in members if m.result.is_disturbed],
                only=len(groups) == 1,
            )
        )
    return found


def observers_of(entering: Entering) -> str:
    return " + ".join(entering.result.observers) or "the observers"


def pairs_of(places: Sequence[Place]) -> list[Pair]:
    pairs: list[Pair] = []
    for place in places:
        if place.baseline is None:
            continue
        for other in place.disturbed:
            names = (place.baseline.treatment, other.treatment)
            pairs.append(Pair(CONDITION, place.words, place.baseline, other, names, (place,), place.only))
        for other in place.disturbed:
            if (without := without_mitigation(place, other)) is not None:
                names = (without.treatment, other.treatment)
                pairs.append(Pair(MITIGATION, place.words, without, other, names, (place,), place.only))
        if place.control is not None:
            observers = observers_of(place.baseline)
            names = (f"without {observers}", f"with {observers}")
            pairs.append(Pair(OBSERVER, place.words, place.control, place.baseline, names, (place,), place.only))
    return pairs + _between(places)


def without_mitigation(place: Place, mitigated: Entering) -> Entering | None:
    """The reference of a mitigated treatment, to show the mitigation's benefit: the one with the same conditions and no
    mitigation. None for the baseline with a mitigation, whose comparison with the baseline shows its cost."""
    its = mitigated.result
    if not its.mitigations or not its.disturbances:
        return None
    return next(
        (other for other in place.disturbed if _disturbs(other.result) == _disturbs(its, its.mitigations)), None
    )


def alone(place: Place, mitigated: Entering) -> Entering | None:
    """The baseline with the same mitigations: their cost without a disturbance."""

    def helped_by(result: Result) -> tuple[object, ...]:
        return result.mitigations, _helps(result)

    at_rest = (other for other in place.disturbed if not other.result.disturbances)
    return next((other for other in at_rest if helped_by(other.result) == helped_by(mitigated.result)), None)


def mitigation_words(place: Place, mitigated: Entering, without: Entering) -> str:
    """ "throttle, under flood"."""
    by_itself = alone(place, mitigated)
    own = mitigated.treatment.removeprefix(f"{without.treatment} + ") if by_itself is None else by_itself.treatment
    return f"{own}, under {without.treatment}"


def _helps(result: Result) -> list[object]:
    """The parameters of its mitigations."""
    return [given for label, given in result.condition_parameters.items() if _name(label) in result.mitigations]


def _disturbs(result: Result, mitigations: Sequence[str] = ()) -> tuple[object, ...]:
    """The disturbances of a result, without these mitigations."""
    labels = {label: given for label, given in result.condition_parameters.items() if _name(label) not in mitigations}
    return (
        tuple(name for name in result.conditions if name not in mitigations),
        labels,
        result.purpose,
        result.observers,
    )


def _name(label: str) -> str:
    """The name of a condition that a trial has several of."""
    name, _, number = label.rpartition("_")
    return name if name and number.isdecimal() else label


def _between(places: Sequence[Place]) -> list[Pair]:
    """Baselines of different places: levels of a factor with the first level, variants with each other."""
    pairs = []
    with_baseline = [(p, p.baseline) for p in places if p.baseline is not None]
    compared = [p for p, _ in with_baseline]
    all_pairs = len({p.first.variant for p in compared}) <= MAX_PAIRWISE
    for (one, baseline), (other, treatment) in itertools.combinations(with_baseline, 2):
        if one.first.workload != other.first.workload:
            continue
        first, second = one.first.outer_factors, other.first.outer_factors
        values, others = level_values(first), level_values(second)
        names: tuple[str, str] | None
        if one.first.variant == other.first.variant:
            differing = [k for k in first if values[k] != others.get(k)]
            start = next(p for p in compared if p.first.variant == one.first.variant)
            kind, names = FACTOR, _levels(differing, first, second) if one is start else None
        elif names := _pinned(one, other, compared):
            kind = FACTOR
        elif all(others[k] == value for k, value in values.items() if k in others) and (all_pairs or one is places[0]):
            kind, names = VARIANT, (one.words, other.words)
        if names is not None:
            place = variant_words(other.first) if kind == FACTOR else ""
            pairs.append(Pair(kind, place, baseline, treatment, names, (one, other)))
    return pairs


def _levels(differing: Sequence[str], first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, str] | None:
    """Labels for two levels of the only factor that differs."""
    if len(differing) != 1:
        return None
    path = differing[0]
    return f"{path}={text_of(first[path])}", f"{path}={text_of(second[path])}"


def _pinned(one: Place, other: Place, places: Sequence[Place]) -> tuple[str, str] | None:
    """Labels for two levels of a factor with different variants because a level leaves no choice of variant.

    E.g. a workload's case without an executor, beside others that ran with every executor. `one` must be at the first
    level of all factors, and among the places there, the one whose variant is most similar to the other's.
    """
    start, second = places[0].first.outer_factors, other.first.outer_factors
    at_start = level_values(start)
    differing = [k for k, value in at_start.items() if value != level_values(second).get(k)]
    if level_values(one.first.outer_factors) != at_start or len(differing) != 1 or start.keys() != second.keys():
        return None
    candidates = [
        p for p in places if level_values(p.first.outer_factors) == at_start and p.first.workload == one.first.workload
    ]
    own = other.first.variant
    if any(p.first.variant == own for p in candidates):
        return None
    alike = [sum(a == b for a, b in zip(p.first.variant, own, strict=True)) for p in candidates]
    if candidates[alike.index(max(alike))] is not one:
        return None
    return _levels(differing, start, second)
