"""Compares two samples, with a verdict that claims no more than they show.

comparison = compare(Sample.of([5.1, 4.9, …], name="baseline"), Sample.of([6.0, 6.3, …], name="cpu_load"))
comparison.verdict, comparison.p_adjusted, comparison.estimate.interval
print(verdicts.in_words(comparison))

Every comparison is repeated without each of its trials, which shows the effect of single ones on the conclusion.
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
    CLAIMS,
    DIFFERENCES,
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
    Side,
    Test,
    Verdict,
)
from perflab.statistics import difference, estimate, power
from perflab.statistics.judgement import (
    Judgement,
    Rules,
    estimated_together,
    judge,
    judge_without_each,
    ranked_together,
    verdict_of,
)
from perflab.statistics.lattice import detect
from perflab.statistics.metrics import RATIO, Metric
from perflab.statistics.sample import Floats, Sample
from perflab.statistics.spread import compare_spread, judged_spread, spread_influence

Of = TypeVar("Of")

HISTOGRAM_CELLS = 1024  # minimum number, per doubling (docs/method.md): quantiles have lattices of their own
MAX_LEFT_OUT = 120  # trials of both samples; beyond that, no single trial affects a conclusion by ranks


@dataclass(frozen=True, kw_only=True)
class Analysed(Comparison):
    """Includes its inputs, so that a family of comparisons can be corrected."""

    plain: Judgement = dataclasses.field(repr=False, compare=False)
    of_logarithms: Judgement | None = dataclasses.field(repr=False, compare=False)  # None: not all are positive
    left_out: tuple[LeftOut, ...] = dataclasses.field(repr=False, default=())  # the comparison without each trial
    seed: int = dataclasses.field(repr=False, default=0)  # of bootstraps

    @property
    def judged(self) -> Judgement:
        """On the scale of the analysis."""
        return self.of_logarithms if self.scale == "ratio" and self.of_logarithms is not None else self.plain

    def judged_with(self, correction: float) -> tuple[Judgement, Judgement | None]:
        """As one of a family: of differences, and of logarithms."""
        of_logarithms = None if self.of_logarithms is None else self.of_logarithms.corrected(correction)
        return self.plain.corrected(correction), of_logarithms

    def alone(self) -> Comparison:
        """The comparison itself, in the form of a record."""
        return Comparison(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Comparison)})

    def document(self) -> dict[str, Any]:
        """For JSON, with the comparison without each trial."""
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
    alone: bool = True,
) -> Analysed:
    """Compares two samples by one value per trial, as a family of one; unless `alone`, as one that `corrected` will
    judge with others of its family.

    `ratio`: the result is a factor (the analysis uses logarithms); None: if all values are positive and the margin is
    not absolute. `noise_floor`: a difference up to it is not claimed; a bare number is in the unit of the values, or
    for ratios a factor >= 1. `direction`: the difference that the test looks for. Raises ValueError for invalid
    combinations.
    """
    positive = baseline.positive and treatment.positive
    if ratio and not positive:
        raise ValueError("a ratio needs positive values in both samples")
    # An absolute margin implies differences.
    logarithms = positive and (margin is None or margin.relative) if ratio is None else ratio
    if logarithms and margin is not None and not margin.relative:
        raise ValueError("an absolute margin excludes a ratio")
    rules = Rules(alpha, margin, _floor(noise_floor, logarithms), direction, logarithms)
    plain = judge(baseline, treatment, replace(rules, logarithms=False))
    of_logarithms = judge(baseline, treatment, replace(rules, logarithms=True)) if positive else None
    ranked_together([plain] if of_logarithms is None else [plain, of_logarithms])
    judged = of_logarithms if logarithms and of_logarithms is not None else plain
    a, b = plain.design.a, plain.design.b
    unknown = Estimate(None)
    made = Analysed(
        verdict="not_shown",
        metric=metric,
        baseline=_described(baseline, "baseline", 1 - alpha, seed),
        treatment=_described(treatment, "treatment", 1 - alpha, seed),
        alpha=alpha,
        direction=direction,
        scale="ratio" if logarithms else "difference",
        estimate=unknown,
        shift=unknown,
        ratio=unknown,
        mean_difference=unknown,
        p=judged.test.p,
        p_adjusted=None,
        attainable_p=judged.attainable_p,
        attainable_adjusted=None,
        family_size=1,
        rank_test=judged.test,
        permutation=difference.permutation_test(plain.design, direction, seed),
        welch=Test("", None),
        hedges_g=difference.hedges_g(*_moments(a), *_moments(b), 1 - alpha),
        cliffs_delta=difference.cliffs_delta(a, b, 1 - alpha),
        blocks=len(judged.design.blocks) if judged.design.blocked else None,
        unused=judged.design.unused,
        noise_floor=None if rules.noise_floor is None else (math.exp if logarithms else float)(rules.noise_floor),
        equivalence=None,
        power=Power(None, None, None, None, None, alpha),
        more_trials=None,
        spread=compare_spread(a, b, 1 - alpha, seed, scaled=(judged.design.a, judged.design.b)),
        influence=Influence(None, None, ()),
        spread_influence=spread_influence(baseline, treatment),
        lattice=find_lattice([*baseline.values, *treatment.values]),
        plain=plain,
        of_logarithms=of_logarithms,
        left_out=_without_each(baseline, treatment, judged),
        seed=seed,
    )
    return corrected([made])[0] if alone else made


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
    share: float = 1.0,
    next_share: float = 1.0,
) -> list[Compared[Of]]:
    """Everything that both samples have values of, as one family; shares as in `corrected`."""
    made = [
        Compared(of, metric, compare_metric(metric, baseline, treatment, alpha, margin, floor, seed, alone=False))
        for of, metric, baseline, treatment, floor in asked
        if baseline.n and treatment.n
    ]
    family = corrected([one.comparison for one in made], share, next_share)
    return [one._replace(comparison=comparison) for one, comparison in zip(made, family, strict=True)]


def corrected(comparisons: Sequence[Analysed], share: float = 1.0, next_share: float = 1.0) -> list[Analysed]:
    """The same comparisons as one family, which shares alpha (Bonferroni), and the resulting verdicts.

    `share` is the part of alpha that may be spent now, `next_share` with more trials; the rest is for other looks at
    the same trials. All intervals hold simultaneously with confidence 1 - share alpha, and each agrees with its
    verdict; so at most that share of experiments makes a false claim of any kind. Differences of spread are a separate
    family (Holm).
    """
    size = max(1, sum(c.p is not None for c in comparisons))
    if all(c.attainable_p is None or c.attainable_p * size > c.alpha * share for c in comparisons):
        next_share = share  # this look can show nothing, and so it spends nothing
    spreads = [None if p is None else min(1.0, p / share) for p in holm([c.spread.scaled_test.p for c in comparisons])]
    judged = [c.judged_with(size / share) for c in comparisons]
    estimated_together([one for both in judged for one in both if one is not None])
    return [_of_family(c, *both, size, next_share, p) for c, both, p in zip(comparisons, judged, spreads, strict=True)]


def _of_family(
    c: Analysed,
    plain: Judgement,
    of_logarithms: Judgement | None,
    size: int,
    next_share: float,
    of_spread: float | None,
) -> Analysed:
    judged = of_logarithms if c.scale == "ratio" and of_logarithms is not None else plain
    factor = Estimate(None, reason="a ratio needs positive values")
    if of_logarithms is not None:
        factor = of_logarithms.estimate.mapped(math.exp)
    t_test, mean_difference = difference.welch(plain.design, judged.rules.confidence, c.direction)
    trials = tuple(replace(t, verdict=_verdict_without(t, judged.rules)) for t in c.left_out)
    return replace(
        c,
        verdict=judged.verdict,
        estimate=factor if c.scale == "ratio" else plain.estimate,
        shift=plain.estimate,
        ratio=factor,
        mean_difference=mean_difference,
        welch=t_test,
        p_adjusted=judged.rules.adjusted(c.p),
        attainable_adjusted=judged.rules.adjusted(c.attainable_p),
        family_size=size,
        equivalence=_equivalence(judged),
        power=_planned(judged),
        more_trials=_more(judged, c.alpha * next_share / size),
        influence=_influence(c, judged, trials),
        left_out=trials,
        spread=judged_spread(
            c.spread, of_spread, c.alpha, (judged.design.a, judged.design.b), judged.rules.confidence, c.seed
        ),
    )


def _verdict_without(trial: LeftOut, rules: Rules) -> Verdict:
    """As if this comparison were made without a trial."""
    if rules.rejects(rules.adjusted_one_sided(trial.equivalence_p)):
        return "equivalent"
    return verdict_of(_analysed(trial.estimate, rules), trial.test, trial.attainable_p, rules)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """The p values adjusted by Holm (1979); None stays None and does not count.

    As statsmodels' multipletests does, which takes a hundred times as long; leaving out single trials needs many.
    """
    known = np.asarray([p for p in ps if p is not None])
    order = np.argsort(known, kind="stable")
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(known[order] * np.arange(len(known), 0, -1)))
    rest = iter(adjusted.tolist())
    return [None if p is None else next(rest) for p in ps]


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
    """Mean, standard deviation and number; NaN with fewer than two."""
    n = len(values)
    return (float(values.mean()), float(values.std(ddof=1)), n) if n > 1 else (math.nan, math.nan, n)


def _equivalence(judged: Judgement) -> Equivalence | None:
    """With limits as factors if the analysis uses logarithms."""
    found = judged.equivalence
    if found is None or not judged.rules.logarithms or found.low is None or found.high is None:
        return found
    return replace(found, low=math.exp(found.low), high=math.exp(found.high))


def _planned(judged: Judgement) -> Power:
    """Power for a difference as large as the margin; shifts as factors if the analysis uses logarithms."""
    bounds = judged.rules.bounds
    found = power.plan(judged.design, None if isinstance(bounds, str) else bounds[1], judged.rules.level)
    if not judged.rules.logarithms:
        return found
    detectable, effect = (None if shift is None else math.exp(shift) for shift in (found.detectable, found.effect))
    return replace(found, detectable=detectable, effect=effect)


def _more(judged: Judgement, level: float) -> int | None:
    if judged.verdict in CLAIMS:
        return None
    bounds = judged.rules.bounds
    return power.more_to_decide(judged.design, judged.value, None if isinstance(bounds, str) else bounds[1], level)


# -- without single trials -------------------------------------------------------------------------------------------


def _without_each(baseline: Sample, treatment: Sample, whole: Judgement) -> tuple[LeftOut, ...]:
    """Leaves out each trial in turn; a trial that is in no shared block changes nothing and is not listed. Empty for
    more than MAX_LEFT_OUT trials."""
    if whole.trials > MAX_LEFT_OUT:
        return ()
    sides: tuple[tuple[Side, Sample], ...] = (("baseline", baseline), ("treatment", treatment))
    unused = set(whole.design.unused)
    left = [
        (side, at, label) for side, sample in sides for at, label in enumerate(sample.labels) if label not in unused
    ]
    judgements = judge_without_each(baseline, treatment, whole.rules, [(side, at) for side, at, _ in left])
    trials = []
    for (side, _, label), judged in zip(left, judgements, strict=True):
        value = judged.value if judged.value is None or not whole.rules.logarithms else math.exp(judged.value)
        found = (judged.test.p, judged.attainable_p, judged.equivalence_p, judged.test)
        trials.append(LeftOut(side, label, value, *found, verdict="not_shown"))
    return tuple(trials)


def _influence(whole: Analysed, judged: Judgement, trials: Sequence[LeftOut]) -> Influence:
    """The extremes among the comparisons without one trial, and those with another verdict."""
    rules, p, estimated = judged.rules, whole.p, judged.value

    def moved(trial: LeftOut) -> float:
        shift = _analysed(trial.estimate, rules)
        return -1.0 if shift is None or estimated is None else _without_noise(abs(shift - estimated))

    def changed(trial: LeftOut) -> float:
        return -1.0 if trial.p is None or p is None else _without_noise(abs(trial.p - p))

    counted = judged.trials
    return Influence(
        max(trials, key=moved, default=None),
        max(trials, key=changed, default=None),
        tuple(trial for trial in trials if trial.verdict not in (judged.verdict, "too_few_trials")),
        None
        if counted <= MAX_LEFT_OUT
        else f"{counted} trials are more than the {MAX_LEFT_OUT} that are left out in turn",
    )


def _without_noise(value: float) -> float:
    """Without rounding noise: among trials that are equal in this, the first one is named."""
    return float(f"{value:.12g}")


# -- by the kind of metric -------------------------------------------------------------------------------------------


def verdicts_alone(
    asked: Sequence[tuple[Metric, Sample, Sample, Callable[[], NoiseFloor | None]]],
    alpha: float,
    margin: float,
    correction: float,
) -> list[Verdict]:
    """The verdicts of `compare_metric` as a family, which are computed much faster; a noise floor is requested if it
    matters."""
    judged = []
    for metric, baseline, treatment, _ in asked:
        is_ratio = metric.compared == RATIO
        logarithms = is_ratio and baseline.positive and treatment.positive
        within = Margin(margin, relative=True) if is_ratio else None
        judged.append(judge(baseline, treatment, Rules(alpha, within, None, "both", logarithms, correction)))
    ranked_together(judged)
    return [
        one.verdict if one.verdict not in DIFFERENCES else one.above(_floor(floor(), one.rules.logarithms)).verdict
        for one, (_, _, _, floor) in zip(judged, asked, strict=True)
    ]


def compare_metric(
    metric: Metric,
    baseline: Sample,
    treatment: Sample,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    floor: NoiseFloor | None = None,
    seed: int = 0,
    *,
    alone: bool = True,
) -> Analysed:
    """Times and the like as factors with a margin; counts and shares as differences, where every difference matters, so
    that none is ever called equivalent."""
    is_ratio = metric.compared == RATIO
    return compare(
        baseline,
        treatment,
        metric=f"{metric.words},",  # as in verdicts.py, before what is compared
        alpha=alpha,
        margin=Margin(margin, relative=True) if is_ratio else None,
        noise_floor=floor,
        seed=seed,
        ratio=None if is_ratio else False,
        find_lattice=partial(lattice_of, metric),
        alone=alone,
    )


def lattice_of(metric: Metric, values: Sequence[float]) -> Lattice | None:
    """The lattice of trial values that is not due to the bins of histograms or the unit of counts."""
    if metric.compared != RATIO or not values:
        return None
    is_quantile = metric.name.rpartition(".")[2].startswith("p")
    found = detect(values, resolution=max(values) / HISTOGRAM_CELLS if is_quantile else None)
    return found if found is not None and found.kind == "lattice" else None
