"""Degradation curves: each metric over the levels of a numeric factor, with its knee and its saturation point.

There is one curve for each place and each combination of what else was varied: the variant, the levels of the other
factors, and the other parameters of the conditions. A baseline stands at the level at which it says that the condition
is off. Only trials enter that enter all statistics (selection.py); the others are counted beside them.
docs/sweeps.md says what is claimed, and how wrong that can be.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from perflab.results.comparison import Margin
from perflab.results.curve import Curve, CurveLevel, CurveMetric, Knee, Saturation
from perflab.results.outcome import Outcomes
from perflab.results.trial import Circumstances, Result, level_values
from perflab.statistics import curve_verdicts, estimate, knee, saturation
from perflab.statistics.comparison import ALPHA, MARGIN, lattice_of
from perflab.statistics.curves_trend import trend
from perflab.statistics.judgement import Rules, judge
from perflab.statistics.knee import NotShown
from perflab.statistics.metrics import LOWER, RATIO, Metric, chosen
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Sample
from perflab.statistics.selection import (
    sample_of,
    variant_words,
)
from perflab.units import is_zero, level_value

LINEAR: Literal["linear"] = "linear"
LOG: Literal["log"] = "log"
WITH_FEW_TRIALS = 0.9

R = TypeVar("R", bound=Circumstances)


@dataclass(frozen=True)
class _Curve(Generic[R]):
    """Results by level, ascending."""

    words: str
    others: Mapping[str, Any]
    levels: Mapping[float, list[R]]


def of(
    results: Sequence[Result],
    factors: Mapping[str, Sequence[Any]],
    metrics: Sequence[Metric] | None = None,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    seed: int = 0,
) -> list[Curve]:
    """The curves of a summary, from its results and the levels of its factors by path."""
    wanted = tuple(metrics or chosen(None))
    measured = [r for r in results if r.is_regular]
    return [
        _curve(path, curve, wanted, alpha, margin, seed)
        for path in factors
        for curve in _curves(path, measured)
        if len(curve.levels) > 1
    ]


def scale_of(levels: Sequence[float]) -> Literal["linear", "log"]:
    """That on which the levels are spaced more evenly; logarithms only of positive ones."""
    if len(levels) < 3 or levels[0] <= 0:
        return LINEAR

    def unevenness(positions: Sequence[float]) -> float:
        gaps = np.diff(positions)
        return float(np.std(gaps) / np.mean(gaps))

    return LOG if unevenness([math.log(level) for level in levels]) < unevenness(levels) else LINEAR


def placed(path: str, results: Sequence[R]) -> list[tuple[str, Mapping[str, Any], dict[float, list[R]]]]:
    """The curves of a factor without figures: the variant, levels of the other factors, results by level."""
    return [(curve.words, dict(curve.others), dict(curve.levels)) for curve in _curves(path, results)]


def _curves(path: str, results: Sequence[R]) -> list[_Curve[R]]:
    """Results that differ in nothing but the level of this factor."""
    found: list[tuple[R, dict[float, list[R]]]] = []
    # What has the most conditions makes the curves; what has some of them off joins every curve that it fits.
    for result in sorted(results, key=lambda r: -len(r.conditions)):
        level = _level_of(path, result)
        if level is None:
            continue
        mine = [levels for first, levels in found if _belongs(path, first, result)]
        if not mine:
            mine = [{}]
            found.append((result, mine[0]))
        for levels in mine:
            levels.setdefault(level, []).append(result)
    order = {id(r): n for n, r in enumerate(results)}
    several = len({first.workload for first, _ in found}) > 1
    return [
        _Curve(
            words=f"{first.workload}, {variant_words(first)}" if several else variant_words(first),
            others=_others(path, first),
            levels=dict(sorted(levels.items())),
        )
        for first, levels in sorted(found, key=lambda entry: order[id(entry[0])])
    ]


def _level_of(path: str, result: Circumstances) -> float | None:
    """The level at which a result stands; of a condition that is off it is only that which switches it off."""
    level = level_value(result.factors.get(path))
    if not isinstance(level, float) or (path.partition(".")[0] in result.conditions_off and level != 0):
        return None
    return level


def _belongs(path: str, first: Circumstances, result: Circumstances) -> bool:
    """Whether a result is on the curve of another: all else is alike, but for parameters of a condition that is off."""
    if first.variant != result.variant:
        return False
    name = path.partition(".")[0]
    skipped = {name} & result.conditions_off
    return _surroundings(path, first, skipped) == _surroundings(path, result, skipped)


def _surroundings(path: str, result: Circumstances, skipped: set[str]) -> dict[str, str]:
    """What else was set: levels of outer factors, the parameters of conditions, and which conditions are off."""
    found = {k: repr(v) for k, v in level_values(result.outer_factors).items() if k != path}
    found |= dict.fromkeys(result.conditions_off - skipped, "off")
    names = result.conditions
    for name, (label, parameters) in zip(names, result.condition_parameters.items(), strict=False):
        if name not in skipped:
            rest = {k: v for k, v in (parameters or {}).items() if f"{name}.{k}" != path}
            found[label] = json.dumps(rest, sort_keys=True, default=str)
    return found


def _others(path: str, result: Circumstances) -> dict[str, Any]:
    """The levels of the other factors, but for those that mean nothing."""
    off = result.conditions_off
    factors = result.factors.items()
    return {k: v for k, v in factors if k != path and (k.partition(".")[0] not in off or is_zero(v))}


def _curve(
    path: str, curve: _Curve[Result], metrics: Sequence[Metric], alpha: float, margin: float, seed: int
) -> Curve:
    levels = list(curve.levels)
    scale = scale_of(levels)
    found: dict[str, CurveMetric] = {}
    for metric in metrics:
        samples = [
            sample_of([t for r in of_level for t in r.entering], metric, f"{level:g}")
            for level, of_level in curve.levels.items()
        ]
        if any(s.n for s in samples):
            found[metric.name] = _metric(metric, path, levels, samples, scale, alpha, margin, seed)
    return Curve(
        variant=curve.words,
        factor=path,
        others=curve.others,
        scale=scale,
        levels=tuple(_level(level, of_level, alpha) for level, of_level in curve.levels.items()),
        success_confidence=1 - alpha,
        metrics=found,
    )


def _level(level: float, results: Sequence[Result], alpha: float) -> CurveLevel:
    outcomes = Outcomes.together([r.outcomes for r in results])
    interval = wilson(outcomes.success, outcomes.judged, 1 - alpha)
    low, high = interval or (None, None)
    return CurveLevel(
        level=int(level) if level == int(level) else level,
        treatment=next((r for r in results if r.is_disturbed), results[0]).label,
        n=sum(len(r.entering) for r in results),
        successes=outcomes.success,
        judged=outcomes.judged,
        success_low=low,
        success_high=high,
        invalid=outcomes.invalid,
        harness_errors=outcomes.harness_error,
    )


def _metric(
    metric: Metric,
    path: str,
    levels: Sequence[float],
    samples: Sequence[Sample],
    scale: Literal["linear", "log"],
    alpha: float,
    margin: float,
    seed: int,
) -> CurveMetric:
    with_values = [s for s in samples if s.n]
    is_ratio = metric.compared == RATIO
    logarithms = is_ratio and all(s.positive for s in with_values)
    lattice = lattice_of(metric, [v for s in samples for v in s.values])
    saturated: Saturation | NotShown
    if is_ratio:
        step = None if lattice is None else lattice.period
        saturated = saturation.find(levels, samples, margin=margin, alpha=alpha, step=step)
    else:
        saturated = NotShown("no difference of it is too small to matter, so none is ever called equivalent")
    tested = trend(with_values, seed)
    bend: Knee | NotShown
    if isinstance(saturated, NotShown) and saturated.flat:
        bend = NotShown(f"flat: {saturated.reason}")
    else:
        bend = knee.find(
            levels, samples, log_levels=scale == LOG, logarithms=logarithms,
            higher_is_worse=metric.better == LOWER, alpha=alpha, seed=seed,
        )  # fmt: skip
        if isinstance(bend, NotShown) and bend.flat and (tested is None or tested.p > alpha):
            bend = NotShown(f"no difference between the levels is shown, and {bend.reason}")
    rules = Rules(alpha, Margin(margin, relative=True) if is_ratio else None, logarithms=logarithms)
    change = None
    if len(with_values) > 1:
        change = judge(with_values[0], with_values[-1], rules)
    confidence = _confidence(with_values, 1 - alpha)
    found = curve_verdicts.OfLevels(metric, path, levels, samples, change, tested, bend, saturated, rules)
    course, words = curve_verdicts.sentences(found)
    return CurveMetric(
        unit=metric.unit,
        points=tuple(estimate.median_of(s, confidence, metric.unit) if s.n else None for s in samples),
        confidence=confidence,
        knee=None if isinstance(bend, NotShown) else bend,
        knee_reason=bend.reason if isinstance(bend, NotShown) else None,
        saturation=None if isinstance(saturated, NotShown) else saturated,
        saturation_reason=saturated.reason if isinstance(saturated, NotShown) else None,
        course=course,
        words=tuple(words),
    )


def _confidence(samples: Sequence[Sample], wanted: float) -> float:
    """What is wanted, or less where no level has trials enough for it: of five there is an interval of 90 %."""
    if any(estimate.median(s, wanted).interval is not None for s in samples) or wanted <= WITH_FEW_TRIALS:
        return wanted
    few = any(estimate.median(s, WITH_FEW_TRIALS).interval is not None for s in samples)
    return WITH_FEW_TRIALS if few else wanted
