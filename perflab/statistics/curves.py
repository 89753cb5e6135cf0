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
from typing import Any

import numpy as np

from perflab.statistics import curves_words, estimate, knee, saturation
from perflab.statistics.curves_trend import trend
from perflab.statistics.equivalence import Margin
from perflab.statistics.judgement import Rules, judge
from perflab.statistics.metric_comparison import ALPHA, MARGIN, lattice_of
from perflab.statistics.metrics import LOWER, RATIO, Metric, chosen
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Sample, as_json
from perflab.statistics.selection import (
    MEASURED,
    conditions_off,
    entering,
    is_disturbed,
    level_values,
    outer_factors,
    purpose_of,
    sample_of,
    treatment_of,
    variant_of,
    variant_words,
)
from perflab.units import is_zero, level_value

Json = dict[str, Any]

OUTCOMES = ("success", "failed", "invalid", "harness_error")
LINEAR, LOG = "linear", "log"
WITH_FEW_TRIALS = 0.9


@dataclass(frozen=True)
class _Curve:
    """Results by level, ascending."""

    words: str
    others: Mapping[str, Any]
    levels: Mapping[float, list[Json]]


def of(
    results: Sequence[Json],
    factors: Mapping[str, Sequence[Any]],
    metrics: Sequence[Metric] | None = None,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    seed: int = 0,
) -> list[Json]:
    """`curves` of a summary, from its results and the levels of its factors by path."""
    wanted = tuple(metrics or chosen(None))
    measured = [r for r in results if purpose_of(r) == MEASURED]
    return [
        _document(path, curve, wanted, alpha, margin, seed)
        for path in factors
        for curve in _curves(path, measured)
        if len(curve.levels) > 1
    ]


def scale_of(levels: Sequence[float]) -> str:
    """That on which the levels are spaced more evenly; logarithms only of positive ones."""
    if len(levels) < 3 or levels[0] <= 0:
        return LINEAR

    def unevenness(positions: Sequence[float]) -> float:
        gaps = np.diff(positions)
        return float(np.std(gaps) / np.mean(gaps))

    return LOG if unevenness([math.log(level) for level in levels]) < unevenness(levels) else LINEAR


def placed(path: str, results: Sequence[Json]) -> list[tuple[str, Json, dict[float, list[Json]]]]:
    """The curves of a factor without figures: the variant, levels of the other factors, results by level."""
    return [(curve.words, dict(curve.others), dict(curve.levels)) for curve in _curves(path, results)]


def _curves(path: str, results: Sequence[Json]) -> list[_Curve]:
    """Results that differ in nothing but the level of this factor."""
    found: list[tuple[Json, dict[float, list[Json]]]] = []
    # What has the most conditions makes the curves; what has some of them off joins every curve that it fits.
    for result in sorted(results, key=lambda r: -len(r.get("conditions") or ())):
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
    several = len({first.get("workload") for first, _ in found}) > 1
    return [
        _Curve(
            words=f"{first.get('workload')}, {variant_words(first)}" if several else variant_words(first),
            others=_others(path, first),
            levels=dict(sorted(levels.items())),
        )
        for first, levels in sorted(found, key=lambda entry: order[id(entry[0])])
    ]


def _level_of(path: str, result: Json) -> float | None:
    """The level at which a result stands; of a condition that is off it is only that which switches it off."""
    level = level_value((result.get("factors") or {}).get(path))
    if not isinstance(level, float) or (path.partition(".")[0] in conditions_off(result) and level != 0):
        return None
    return level


def _belongs(path: str, first: Json, result: Json) -> bool:
    """Whether a result is on the curve of another: all else is alike, but for parameters of a condition that is off."""
    if variant_of(first) != variant_of(result):
        return False
    name = path.partition(".")[0]
    skipped = {name} & conditions_off(result)
    return _surroundings(path, first, skipped) == _surroundings(path, result, skipped)


def _surroundings(path: str, result: Json, skipped: set[str]) -> dict[str, str]:
    """What else was set: levels of outer factors, the parameters of conditions, and which conditions are off."""
    found = {k: repr(v) for k, v in level_values(outer_factors(result)).items() if k != path}
    found |= dict.fromkeys(conditions_off(result) - skipped, "off")
    names = result.get("conditions") or ()
    for name, (label, parameters) in zip(names, (result.get("condition_parameters") or {}).items(), strict=False):
        if name not in skipped:
            rest = {k: v for k, v in (parameters or {}).items() if f"{name}.{k}" != path}
            found[label] = json.dumps(rest, sort_keys=True, default=str)
    return found


def _others(path: str, result: Json) -> Json:
    """The levels of the other factors, but for those that mean nothing."""
    off = conditions_off(result)
    factors = (result.get("factors") or {}).items()
    return {k: v for k, v in factors if k != path and (k.partition(".")[0] not in off or is_zero(v))}


def _document(path: str, curve: _Curve, metrics: Sequence[Metric], alpha: float, margin: float, seed: int) -> Json:
    levels = list(curve.levels)
    scale = scale_of(levels)
    found: Json = {
        "variant": curve.words,
        "factor": path,
        "others": dict(curve.others),
        "scale": scale,
        "levels": [_level(level, of_level, alpha) for level, of_level in curve.levels.items()],
        "success_confidence": 1 - alpha,
        "metrics": {},
    }
    for metric in metrics:
        samples = [
            sample_of([t for r in of_level for t in entering(r)], metric, f"{level:g}")
            for level, of_level in curve.levels.items()
        ]
        if any(s.n for s in samples):
            found["metrics"][metric.name] = _metric(metric, path, levels, samples, scale, alpha, margin, seed)
    return found


def _level(level: float, results: Sequence[Json], alpha: float) -> Json:
    outcomes = {o: sum(r["outcomes"].get(o, 0) for r in results) for o in OUTCOMES}
    judged = outcomes["success"] + outcomes["failed"]
    interval = wilson(outcomes["success"], judged, 1 - alpha)
    return {
        "level": int(level) if level == int(level) else level,
        "treatment": treatment_of(next((r for r in results if is_disturbed(r)), results[0])),
        "n": sum(len(entering(r)) for r in results),
        "successes": outcomes["success"],
        "judged": judged,
        "success_low": None if interval is None else interval[0],
        "success_high": None if interval is None else interval[1],
        "invalid": outcomes["invalid"],
        "harness_errors": outcomes["harness_error"],
    }


def _metric(
    metric: Metric,
    path: str,
    levels: Sequence[float],
    samples: Sequence[Sample],
    scale: str,
    alpha: float,
    margin: float,
    seed: int,
) -> Json:
    with_values = [s for s in samples if s.n]
    is_ratio = metric.compared == RATIO
    logarithms = is_ratio and all(s.positive for s in with_values)
    lattice = lattice_of(metric, [v for s in samples for v in s.values])
    saturated: saturation.Saturation | saturation.NotShown
    if is_ratio:
        step = None if lattice is None else lattice.period
        saturated = saturation.find(levels, samples, margin=margin, alpha=alpha, step=step)
    else:
        saturated = saturation.NotShown("no difference of it is too small to matter, so none is ever called equivalent")
    tested = trend(with_values, seed)
    knee_found: knee.Knee | str
    if isinstance(saturated, saturation.NotShown) and saturated.flat:
        knee_found = f"flat: {saturated.reason}"
    else:
        knee_found = knee.find(
            levels, samples, log_levels=scale == LOG, logarithms=logarithms,
            higher_is_worse=metric.better == LOWER, alpha=alpha, seed=seed,
        )  # fmt: skip
        if isinstance(knee_found, str) and "straight line" in knee_found and (tested is None or tested.p > alpha):
            knee_found = f"no difference between the levels is shown, and {knee_found}"
    shown_knee = None if isinstance(knee_found, str) else knee_found
    shown_saturation = saturated if isinstance(saturated, saturation.Saturation) else None
    rules = Rules(alpha, Margin(margin, relative=True) if is_ratio else None, logarithms=logarithms)
    change = None
    if len(with_values) > 1:
        change = judge(with_values[0], with_values[-1], rules)
    confidence = _confidence(with_values, 1 - alpha)
    return {
        "unit": metric.unit,
        "points": [_point(s, confidence) for s in samples],
        "confidence": confidence,
        "knee": None if shown_knee is None else _without_p(shown_knee),
        "knee_reason": knee_found if isinstance(knee_found, str) else None,
        "saturation": as_json(shown_saturation),
        "saturation_reason": saturated.reason if isinstance(saturated, saturation.NotShown) else None,
        "words": curves_words.sentences(metric, path, levels, samples, change, tested, knee_found, saturated, rules),
    }


def _without_p(found: knee.Knee) -> Json:
    return {key: value for key, value in as_json(found).items() if key != "p"}


def _confidence(samples: Sequence[Sample], wanted: float) -> float:
    """What is wanted, or less where no level has trials enough for it: of five there is an interval of 90 %."""
    if any(estimate.median(s, wanted).interval is not None for s in samples) or wanted <= WITH_FEW_TRIALS:
        return wanted
    few = any(estimate.median(s, WITH_FEW_TRIALS).interval is not None for s in samples)
    return WITH_FEW_TRIALS if few else wanted


def _point(sample: Sample, confidence: float) -> Json | None:
    if not sample.n:
        return None
    middle = estimate.median(sample, confidence)
    interval = middle.interval
    return {
        "value": middle.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "n": sample.n,
    }
