"""Two samples compared, and a verdict that says no more than they show.

comparison = compare(Sample.of([5.1, 4.9, …], name="baseline"), Sample.of([6.0, 6.3, …], name="cpu_load"))
comparison.verdict, comparison.p_adjusted, comparison.estimate.interval
print(verdicts.in_words(comparison))
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from perflab.models import as_json
from perflab.results.comparison import (
    BETTER,
    DIFFERENCES,
    WORSE,
    Comparison,
    Described,
    Direction,
    Effect,
    Equivalence,
    Estimate,
    Lattice,
    LeftOut,
    Margin,
    NoiseFloor,
    Power,
)
from perflab.statistics import effect, estimate, influence, power
from perflab.statistics.difference import permutation_test, shift, welch
from perflab.statistics.estimate import find_outliers
from perflab.statistics.judgement import Judgement, Rules, judge, verdict_of
from perflab.statistics.lattice import detect
from perflab.statistics.metrics import LOWER, RATIO, Metric
from perflab.statistics.sample import Design, Floats, Sample, design
from perflab.statistics.spread import compare_spread, judged_spread, on_scale

Of = TypeVar("Of")

ALPHA = 0.05
MARGIN = 0.05  # a difference by a smaller factor is called none
HISTOGRAM_CELLS = 1024  # at least, per doubling (docs/method.md): quantiles sit on lattices of their own


@dataclass(frozen=True, kw_only=True)
class Analysed(Comparison):
    """With what it was made of, so that a family of comparisons can be corrected."""

    rules: Rules = dataclasses.field(repr=False)
    design: Design = dataclasses.field(repr=False, compare=False)  # on the scale of the analysis
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
    alpha: float = 0.05,
    margin: Margin | None = None,
    noise_floor: NoiseFloor | float | None = None,
    direction: Direction = "both",
    seed: int = 0,
    ratio: bool | None = None,
) -> Analysed:
    """Compares two samples by one value per trial.

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
    judged = judge(baseline, treatment, rules)
    plain = judged if not logarithms else judge(baseline, treatment, dataclasses.replace(rules, logarithms=False))
    compared = plain.design
    t_test, mean_difference = welch(compared, rules.confidence, direction)
    a, b = compared.a, compared.b
    to_scale = math.exp if logarithms else float
    spread = on_scale(compare_spread(a, b, 1 - alpha, seed), judged.design.a, judged.design.b)
    left_out = influence.without_each(baseline, treatment, rules, judged)
    return Analysed(
        verdict=judged.verdict,
        metric=metric,
        baseline=_described(baseline, "baseline", 1 - alpha, seed),
        treatment=_described(treatment, "treatment", 1 - alpha, seed),
        alpha=alpha,
        direction=direction,
        scale="ratio" if logarithms else "difference",
        estimate=judged.estimate.mapped(to_scale),
        shift=plain.estimate,
        ratio=_ratio(baseline, treatment, judged, rules),
        mean_difference=mean_difference,
        p=judged.test.p,
        p_adjusted=judged.test.p,
        attainable_p=judged.attainable_p,
        attainable_adjusted=judged.attainable_p,
        family_size=1,
        rank_test=judged.test,
        permutation=permutation_test(compared, direction, seed),
        welch=t_test,
        hedges_g=_hedges_g(a, b, 1 - alpha),
        cliffs_delta=effect.cliffs_delta(a, b, 1 - alpha),
        blocks=len(compared.blocks) if compared.blocked else None,
        unused=compared.unused,
        noise_floor=None if rules.noise_floor is None else to_scale(rules.noise_floor),
        equivalence=_on_scale(judged.equivalence, logarithms),
        power=_planned(judged.design, rules, rules.alpha),
        spread=judged_spread(spread, spread.scaled_test.p, alpha),
        influence=influence.of_location(left_out, rules, judged),
        spread_influence=influence.of_spread(baseline, treatment),
        lattice=detect([*baseline.values, *treatment.values]),
        rules=rules,
        design=judged.design,
        left_out=left_out,
    )


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
    ps = [c.p for c in comparisons]
    equivalences = [None if c.equivalence is None else c.equivalence.p for c in comparisons]
    adjusted, adjusted_equivalences = holm(ps), holm(equivalences)
    spreads = holm([c.spread.scaled_test.p for c in comparisons])
    size = max(1, sum(p is not None for p in ps))
    out = []
    for i, c in enumerate(comparisons):
        attainable = _instead(ps, i, c.attainable_p)
        equivalence = c.equivalence
        if equivalence is not None:
            q = adjusted_equivalences[i]
            equivalence = dataclasses.replace(equivalence, p_adjusted=q, shown=q is not None and q <= c.alpha)
        value = _analysed(c.estimate.value, c.rules)
        shown = equivalence is not None and equivalence.shown
        verdict = verdict_of(value, c.rank_test, adjusted[i], attainable, c.rules, equivalent=shown)
        trials = []
        for t in c.left_out:
            q = _instead(equivalences, i, t.equivalence_p)
            without = verdict_of(
                _analysed(t.estimate, c.rules), t.test, _instead(ps, i, t.p), _instead(ps, i, t.attainable_p), c.rules,
                equivalent=c.equivalence is not None and q is not None and q <= c.alpha,
            )  # fmt: skip
            trials.append(dataclasses.replace(t, verdict=without))
        out.append(
            dataclasses.replace(
                c,
                verdict=verdict,
                p_adjusted=adjusted[i],
                attainable_adjusted=attainable,
                family_size=size,
                equivalence=equivalence,
                power=c.power if size == 1 else _planned(c.design, c.rules, c.alpha / size),
                influence=dataclasses.replace(
                    influence.collected(trials, value, c.p, verdict, logarithms=c.rules.logarithms),
                    reason=c.influence.reason,
                ),
                left_out=tuple(trials),
                spread=judged_spread(c.spread, spreads[i], c.alpha),
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
    values = sample.values
    return Described(
        name=sample.name or name,
        n=sample.n,
        missing=sample.missing,
        median=estimate.median(sample, confidence),
        mean=estimate.mean(sample, confidence, seed),
        sd=float(sample.array.std(ddof=1)) if sample.n > 1 else None,
        smallest=min(values, default=None),
        largest=max(values, default=None),
        outliers=find_outliers(sample),
    )


def _hedges_g(a: Floats, b: Floats, confidence: float) -> Estimate:
    if min(len(a), len(b)) < 2:
        return Estimate(None, reason="it needs 2 trials of either")
    moments = [(float(x.mean()), float(x.std(ddof=1)), len(x)) for x in (a, b)]
    return effect.hedges_g(*moments[0], *moments[1], confidence)


def _ratio(baseline: Sample, treatment: Sample, judged: Judgement, rules: Rules) -> Estimate:
    if not (baseline.positive and treatment.positive):
        return Estimate(None, reason="a ratio needs positive values")
    if not rules.logarithms:
        in_logarithms = design(baseline.mapped(math.log), treatment.mapped(math.log))
        return shift(in_logarithms, rules.confidence).mapped(math.exp)
    return judged.estimate.mapped(math.exp)


def _on_scale(equivalence: Equivalence | None, logarithms: bool) -> Equivalence | None:
    if equivalence is None or not logarithms or equivalence.low is None or equivalence.high is None:
        return equivalence
    interval = equivalence.interval
    return dataclasses.replace(
        equivalence,
        low=math.exp(equivalence.low),
        high=math.exp(equivalence.high),
        interval=None if interval is None else interval.mapped(math.exp),
    )


def _planned(compared: Design, rules: Rules, alpha: float) -> Power:
    """Power for a difference as large as the margin; shifts as factors where the analysis is of logarithms.

    `alpha` is the level at which p is judged, so less than that of the rules in a family.
    """
    wanted = None if isinstance(rules.bounds, str) else rules.bounds[1]
    found = power.plan(compared, wanted, alpha)
    if not rules.logarithms:
        return found
    return dataclasses.replace(
        found,
        detectable=None if found.detectable is None else math.exp(found.detectable),
        effect=None if found.effect is None else math.exp(found.effect),
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
    comparison = compare(
        baseline,
        treatment,
        metric=f"{metric.words},",  # as verdicts.py puts it in front of what is compared
        alpha=alpha,
        margin=Margin(margin, relative=True) if is_ratio else None,
        noise_floor=floor,
        seed=seed,
        ratio=None if is_ratio else False,
    )
    return dataclasses.replace(comparison, lattice=lattice_of(metric, [*baseline.values, *treatment.values]))


def effect_of(metric: Metric, comparison: Comparison) -> Effect | None:
    """Whether what is shown is worse or better; None where no difference is."""
    if comparison.verdict not in DIFFERENCES:
        return None
    return WORSE if (comparison.verdict == "higher") == (metric.better == LOWER) else BETTER


def effect_words(metric: Metric, comparison: Comparison) -> str:
    """ "1.80x [1.50, 2.20]", "+12 [+3, +20]"; without brackets where there is no interval."""
    value, interval = comparison.estimate.value, comparison.estimate.interval
    if value is None:
        return "–"

    def form(x: float | None) -> str:
        if x is None:
            return "–"
        if comparison.scale == "ratio":
            return f"{x:.2f}" if x < 9.995 else f"{x:.1f}" if x < 99.95 else f"{x:.0f}"
        return f"{'+' if x > 0 else '−' if x < 0 else ''}{metric.format(abs(x))}"

    if comparison.scale == "difference" and interval is not None and interval.low == interval.high == value:
        return form(value)
    unit = "x" if comparison.scale == "ratio" else ""
    between = "" if interval is None else f" [{form(interval.low)}, {form(interval.high)}]"
    return f"{form(value)}{unit}{between}"


def lattice_of(metric: Metric, values: Sequence[float]) -> Lattice | None:
    """That on which trial values sit for another reason than the cells of the histograms or the unit of counts."""
    if metric.compared != RATIO or not values:
        return None
    is_quantile = metric.name.rpartition(".")[2].startswith("p")
    found = detect(values, resolution=max(values) / HISTOGRAM_CELLS if is_quantile else None)
    return found if found is not None and found.kind == "lattice" else None
