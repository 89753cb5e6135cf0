"""Two samples compared, and a verdict that says no more than they show.

comparison = compare(Sample.of([5.1, 4.9, …], name="baseline"), Sample.of([6.0, 6.3, …], name="cpu_load"))
comparison.verdict, comparison.p_adjusted, comparison.estimate.interval
print(verdicts.in_words(comparison))

Every comparison is made again without each of its trials, which says what single ones do to the conclusion.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from perflab.models import as_json
from perflab.results.comparison import (
    ALPHA,
    MARGIN,
    Comparison,
    Described,
    Direction,
    Equivalence,
    Estimate,
    Influence,
    Lattice,
    LeftOut,
    Margin,
    NoiseFloor,
    Power,
    Verdict,
)
from perflab.statistics import difference, estimate, power
from perflab.statistics.judgement import Judgement, Rules, judge, verdict_of
from perflab.statistics.lattice import detect
from perflab.statistics.metrics import RATIO, Metric
from perflab.statistics.sample import Floats, Sample
from perflab.statistics.spread import compare_spread, judged_spread, spread_influence

Of = TypeVar("Of")

HISTOGRAM_CELLS = 1024  # at least, per doubling (docs/method.md): quantiles sit on lattices of their own
MAX_LEFT_OUT = 120  # trials of both samples; one of more carries no conclusion by ranks


@dataclass(frozen=True, kw_only=True)
class Analysed(Comparison):
    """With what it was made of, so that a family of comparisons can be corrected."""

    judged: Judgement = dataclasses.field(repr=False, compare=False)  # on the scale of the analysis
    left_out: tuple[LeftOut, ...] = dataclasses.field(repr=False, default=())  # the comparison without each trial

    def alone(self) -> Comparison:
        """The comparison itself, as it is written."""
        return Comparison(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Comparison)})

    def document(self) -> dict[str, Any]:
        """For json, with the comparison without each trial."""
        return {**as_json(self.alone()), "left_out": as_json(self.left_out)}


def compare(
    baseline: Sample,
    treatment: Sample,
    *,
    metric: str = "",
    alpha: float = ALPHA,
    margin: Margin | None = None,
    noise_floor: NoiseFloor | float | None = None,
    direction: Direction = "both",
    seed: int = 0,
    ratio: bool | None = None,
    find_lattice: Callable[[Sequence[float]], Lattice | None] = detect,
) -> Analysed:
    """Compares two samples by one value per trial, as a family of one.

    `ratio`: the result is a factor (the analysis is of logarithms); None: where all values are positive and the
    margin is not absolute. `noise_floor`: a difference up to it is not claimed; a bare number is one in the unit of the
    values, or for ratios a factor >= 1.
    `direction`: which difference the test looks for. Raises ValueError for what makes no sense.
    """
    positive = baseline.positive and treatment.positive
    if ratio and not positive:
        raise ValueError("a ratio needs positive values in both samples")
    # An absolute margin is one of differences.
    logarithms = positive and (margin is None or margin.relative) if ratio is None else ratio
    if logarithms and margin is not None and not margin.relative:
        raise ValueError("an absolute margin does not go with a ratio")
    rules = Rules(alpha, margin, _floor(noise_floor, logarithms), direction, logarithms)
    judged = plain = judge(baseline, treatment, replace(rules, logarithms=False))
    factor = Estimate(None, reason="a ratio needs positive values")
    if positive:
        in_logarithms = judge(baseline, treatment, replace(rules, logarithms=True))
        factor = in_logarithms.estimate.mapped(math.exp)
        judged = in_logarithms if logarithms else plain
    a, b = plain.design.a, plain.design.b
    to_scale = math.exp if logarithms else float
    t_test, mean_difference = difference.welch(plain.design, rules.confidence, direction)
    made = Analysed(
        verdict="not_shown",
        metric=metric,
        baseline=_described(baseline, "baseline", 1 - alpha, seed),
        treatment=_described(treatment, "treatment", 1 - alpha, seed),
        alpha=alpha,
        direction=direction,
        scale="ratio" if logarithms else "difference",
        estimate=judged.estimate.mapped(to_scale),
        shift=plain.estimate,
        ratio=factor,
        mean_difference=mean_difference,
        p=judged.test.p,
        p_adjusted=None,
        attainable_p=judged.attainable_p,
        attainable_adjusted=None,
        family_size=1,
        rank_test=judged.test,
        permutation=difference.permutation_test(plain.design, direction, seed),
        welch=t_test,
        hedges_g=difference.hedges_g(*_moments(a), *_moments(b), 1 - alpha),
        cliffs_delta=difference.cliffs_delta(a, b, 1 - alpha),
        blocks=len(judged.design.blocks) if judged.design.blocked else None,
        unused=judged.design.unused,
        noise_floor=None if rules.noise_floor is None else to_scale(rules.noise_floor),
        equivalence=_equivalence(judged),
        power=Power(None, None, None, None, None, alpha),
        spread=compare_spread(a, b, 1 - alpha, seed, scaled=(judged.design.a, judged.design.b)),
        influence=Influence(None, None, ()),
        spread_influence=spread_influence(baseline, treatment),
        lattice=find_lattice([*baseline.values, *treatment.values]),
        judged=judged,
        left_out=_without_each(baseline, treatment, judged),
    )
    return corrected([made])[0]


class Compared(NamedTuple, Generic[Of]):
    """A pair, or results of two runs, in one metric."""

    of: Of
    metric: Metric
    comparison: Analysed


def compare_all(
    asked: Iterable[tuple[Of, Metric, Sample, Sample, NoiseFloor | None]],
    alpha: float = ALPHA,
    margin: float = MARGIN,
    seed: int = 0,
) -> list[Compared[Of]]:
    """What both samples have values of, as one family."""
    made = [
        Compared(of, metric, compare_metric(metric, baseline, treatment, alpha, margin, floor, seed))
        for of, metric, baseline, treatment, floor in asked
        if baseline.n and treatment.n
    ]
    family = corrected([one.comparison for one in made])
    return [one._replace(comparison=comparison) for one, comparison in zip(made, family, strict=True)]


def corrected(comparisons: Sequence[Analysed]) -> list[Analysed]:
    """The same comparisons as one family: p adjusted by Holm, and the verdicts that follow.

    Differences, equivalences and differences of spread are three families. Intervals stay those of each comparison by
    itself. Power is planned at the level of Holm's first step: what is found there is found whatever the other
    comparisons show.
    """
    tests = [c.p for c in comparisons]
    equivalences = [None if c.equivalence is None else c.equivalence.p for c in comparisons]
    adjusted = zip(
        comparisons, holm(tests), holm(equivalences), holm([c.spread.scaled_test.p for c in comparisons]), strict=True
    )
    size = max(1, sum(p is not None for p in tests))
    out = []
    for i, (c, p, q, of_spread) in enumerate(adjusted):
        rules, equivalence = c.judged.rules, c.equivalence

        def verdict_without(trial: LeftOut, i: int = i, rules: Rules = rules) -> Verdict:
            """Were this comparison as it is without a trial, and all others of the family as they are."""
            q = _instead(equivalences, i, trial.equivalence_p)
            p, attainable = _instead(tests, i, trial.p), _instead(tests, i, trial.attainable_p)
            shift = _analysed(trial.estimate, rules)
            return verdict_of(shift, trial.test, p, attainable, rules, equivalent=q is not None and q <= rules.alpha)

        whole = LeftOut("", "", c.estimate.value, c.p, c.attainable_p, equivalences[i], c.rank_test, c.verdict)
        verdict = verdict_without(whole)
        trials = tuple(replace(trial, verdict=verdict_without(trial)) for trial in c.left_out)
        if equivalence is not None:
            equivalence = replace(equivalence, p_adjusted=q, shown=q is not None and q <= c.alpha)
        out.append(
            replace(
                c,
                verdict=verdict,
                p_adjusted=p,
                attainable_adjusted=_instead(tests, i, c.attainable_p),
                family_size=size,
                equivalence=equivalence,
                power=_planned(c.judged, c.alpha / size),
                influence=_influence(c, trials, verdict),
                left_out=trials,
                spread=judged_spread(c.spread, of_spread, c.alpha),
            )
        )
    return out


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """The p's adjusted by Holm (1979); what is None stays None and does not count.

    As statsmodels' multipletests does, which takes a hundred times as long; leaving out single trials asks for many.
    """
    known = np.asarray([p for p in ps if p is not None])
    order = np.argsort(known, kind="stable")
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(known[order] * np.arange(len(known), 0, -1)))
    rest = iter(adjusted.tolist())
    return [None if p is None else next(rest) for p in ps]


def _instead(ps: Sequence[float | None], index: int, p: float | None) -> float | None:
    """What Holm makes of one of the p's if it were another one."""
    return None if p is None else holm([*ps[:index], p, *ps[index + 1 :]])[index]


def _analysed(value: float | None, rules: Rules) -> float | None:
    """A ratio or difference as a shift on the scale of the analysis."""
    return value if value is None or not rules.logarithms else math.log(value)


def _floor(floor: NoiseFloor | float | None, logarithms: bool) -> float | None:
    if isinstance(floor, NoiseFloor):
        floor = floor.ratio if logarithms else floor.difference
    if floor is None or not logarithms:
        return floor
    if floor < 1:
        raise ValueError(f"the noise floor of a ratio is a factor of at least 1, not {floor}")
    return math.log(floor)


def _described(sample: Sample, name: str, confidence: float, seed: int) -> Described:
    return Described(
        name=sample.name or name,
        n=sample.n,
        missing=sample.missing,
        median=estimate.median(sample, confidence),
        mean=estimate.mean(sample, confidence, seed),
        sd=float(sample.array.std(ddof=1)) if sample.n > 1 else None,
        smallest=min(sample.values, default=None),
        largest=max(sample.values, default=None),
        outliers=estimate.find_outliers(sample),
    )


def _moments(values: Floats) -> tuple[float, float, int]:
    """Mean, standard deviation and number; NaN where there are fewer than two."""
    n = len(values)
    return (float(values.mean()), float(values.std(ddof=1)), n) if n > 1 else (math.nan, math.nan, n)


def _equivalence(judged: Judgement) -> Equivalence | None:
    """With limits as factors where the analysis is of logarithms."""
    found = judged.equivalence
    if found is None or not judged.rules.logarithms or found.low is None or found.high is None:
        return found
    interval = None if found.interval is None else found.interval.mapped(math.exp)
    return replace(found, low=math.exp(found.low), high=math.exp(found.high), interval=interval)


def _planned(judged: Judgement, alpha: float) -> Power:
    """Power for a difference as large as the margin; shifts as factors where the analysis is of logarithms.

    `alpha` is the level at which p is judged, so less than that of the rules in a family.
    """
    bounds = judged.rules.bounds
    found = power.plan(judged.design, None if isinstance(bounds, str) else bounds[1], alpha)
    if not judged.rules.logarithms:
        return found
    detectable, effect = (None if shift is None else math.exp(shift) for shift in (found.detectable, found.effect))
    return replace(found, detectable=detectable, effect=effect)


# -- without single trials -------------------------------------------------------------------------------------------


def _without_each(baseline: Sample, treatment: Sample, whole: Judgement) -> tuple[LeftOut, ...]:
    """Leaves out each trial in turn; a trial that is in no shared block changes nothing and is not listed. Empty where
    there are more than MAX_LEFT_OUT."""
    trials: list[LeftOut] = []
    for side, sample in (("baseline", baseline), ("treatment", treatment)) if whole.trials <= MAX_LEFT_OUT else ():
        for index, label in enumerate(sample.labels):
            if label in whole.design.unused:
                continue
            rest = sample.without(index)
            pair = (rest, treatment) if side == "baseline" else (baseline, rest)
            judged = judge(*pair, whole.rules)
            value = judged.value if judged.value is None or not whole.rules.logarithms else math.exp(judged.value)
            found = (judged.test.p, judged.attainable_p, judged.equivalence_p, judged.test)
            trials.append(LeftOut(side, label, value, *found, verdict="not_shown"))
    return tuple(trials)


def _influence(whole: Analysed, trials: Sequence[LeftOut], verdict: Verdict) -> Influence:
    """The extremes among the comparisons without one trial, and those whose verdict is another one."""
    rules, p, estimated = whole.judged.rules, whole.p, _analysed(whole.estimate.value, whole.judged.rules)

    def moved(trial: LeftOut) -> float:
        shift = _analysed(trial.estimate, rules)
        return -1.0 if shift is None or estimated is None else abs(shift - estimated)

    def changed(trial: LeftOut) -> float:
        return -1.0 if trial.p is None or p is None else abs(trial.p - p)

    counted = whole.judged.trials
    return Influence(
        max(trials, key=moved, default=None),
        max(trials, key=changed, default=None),
        tuple(trial for trial in trials if trial.verdict not in (verdict, "too_few_trials")),
        None
        if counted <= MAX_LEFT_OUT
        else f"{counted} trials are more than the {MAX_LEFT_OUT} that are left out by turns",
    )


# -- as befits a metric ----------------------------------------------------------------------------------------------


def compare_metric(
    metric: Metric,
    baseline: Sample,
    treatment: Sample,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    floor: NoiseFloor | None = None,
    seed: int = 0,
) -> Analysed:
    """Times and the like as factors with a margin; counts and shares as differences, where no difference is too small
    to matter, so that none is ever called equivalent."""
    is_ratio = metric.compared == RATIO
    return compare(
        baseline,
        treatment,
        metric=f"{metric.words},",  # as verdicts.py puts it in front of what is compared
        alpha=alpha,
        margin=Margin(margin, relative=True) if is_ratio else None,
        noise_floor=floor,
        seed=seed,
        ratio=None if is_ratio else False,
        find_lattice=partial(lattice_of, metric),
    )


def lattice_of(metric: Metric, values: Sequence[float]) -> Lattice | None:
    """That on which trial values sit for another reason than the cells of the histograms or the unit of counts."""
    if metric.compared != RATIO or not values:
        return None
    is_quantile = metric.name.rpartition(".")[2].startswith("p")
    found = detect(values, resolution=max(values) / HISTOGRAM_CELLS if is_quantile else None)
    return found if found is not None and found.kind == "lattice" else None
