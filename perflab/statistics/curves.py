"""Degradation curves: each metric over the levels of a numeric factor, with its knee, its saturation point, and its
change from the first level to the last, in cautious sentences.

Only trials that enter all statistics are used (selection.py); the others are counted beside them. docs/sweeps.md says
what is claimed, and how wrong that can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from perflab.results.comparison import ALPHA, MARGIN, Estimate, Interval, Margin
from perflab.results.curve import Course, Curve, CurveLevel, CurveMetric, Knee, Saturation
from perflab.results.outcome import Outcomes
from perflab.results.trial import Result
from perflab.statistics import estimate, knee, saturation
from perflab.statistics.comparison import lattice_of
from perflab.statistics.curves_trend import Trend, trend
from perflab.statistics.difference import shift
from perflab.statistics.judgement import Judgement, Rules, judge
from perflab.statistics.knee import NotShown
from perflab.statistics.metrics import LOWER, RATIO, Metric, chosen
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Sample
from perflab.statistics.selection import PAYLOAD, Placed, level_number, level_words, placed, sample_of
from perflab.statistics.verdicts import p_in_words, size_in_words
from perflab.units import format_confidence

LINEAR: Literal["linear"] = "linear"
LOG: Literal["log"] = "log"
WITH_FEW_TRIALS = 0.9
SAME = "identical in every trial"
DIFFERS = 0.5  # share of alpha: if no trend is shown, a difference somewhere is a second claim, with a stricter level


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
    curves = [(path, curve) for path in factors for curve in placed(path, measured) if len(curve.levels) > 1]
    return list(_told_apart([_curve(p, c, wanted, (alpha, margin, seed), OverLevels.record) for p, c in curves]))


def _told_apart(curves: Sequence[Curve]) -> Iterator[Curve]:
    """Curves that differ only in their conditions get the names of these."""
    called = [(c.variant, c.factor, str(c.others)) for c in curves]
    for curve, name in zip(curves, called, strict=True):
        if called.count(name) == 1:
            yield curve
            continue
        last = curve.levels[-1]
        level = f"{curve.factor.partition('.')[2]}={last.level}"
        words = [word for word in str(last.treatment).split(" ") if word != level]
        yield replace(curve, variant=f"{curve.variant}, {' '.join(words)}")


def outline(path: str, curve: Placed[Result], metrics: Sequence[Metric], alpha: float) -> Curve:
    """A curve while trials still arrive: medians, whose shape is not judged."""
    return _curve(path, curve, metrics, (alpha, MARGIN, 0), OverLevels.medians)


def _curve(
    path: str,
    curve: Placed[Result],
    metrics: Sequence[Metric],
    how: tuple[float, float, int],
    record: Callable[[OverLevels], CurveMetric],
) -> Curve:
    """`how`: alpha, margin and seed."""
    levels = list(curve.levels)
    scale = LOG if curve.called and levels[0] > 0 else scale_of(levels)
    levels_of = PAYLOAD if curve.called else path
    over = [OverLevels(metric, levels_of, levels, _samples(metric, curve), scale, *how) for metric in metrics]
    return Curve(
        variant=curve.words,
        factor=path,
        others=curve.others,
        scale=scale,
        middleware=curve.middleware,
        levels=tuple(
            _level(level, results, how[0], curve.called.get(level)) for level, results in curve.levels.items()
        ),
        success_confidence=1 - how[0],
        metrics={one.metric.name: record(one) for one in over if one.measured},
    )


def scale_of(levels: Sequence[float]) -> Literal["linear", "log"]:
    """The scale on which the levels are spaced more evenly; logarithms only of positive ones."""
    if len(levels) < 3 or levels[0] <= 0:
        return LINEAR

    def unevenness(positions: Sequence[float]) -> float:
        gaps = np.diff(positions)
        return float(np.std(gaps) / np.mean(gaps))

    return LOG if unevenness([math.log(level) for level in levels]) < unevenness(levels) else LINEAR


def _samples(metric: Metric, curve: Placed[Result]) -> list[Sample]:
    return [
        sample_of([t for r in of_level for t in r.entering], metric, f"{level:g}")
        for level, of_level in curve.levels.items()
    ]


def _level(level: float, results: Sequence[Result], alpha: float, called: str | None) -> CurveLevel:
    outcomes = Outcomes.together([r.outcomes for r in results])
    interval = wilson(outcomes.success, outcomes.judged, 1 - alpha)
    low, high = interval or (None, None)
    return CurveLevel(
        level=int(level) if level == int(level) else level,
        called=called,
        treatment=next((r for r in results if r.is_disturbed), results[0]).label,
        n=sum(len(r.entering) for r in results),
        successes=outcomes.success,
        judged=outcomes.judged,
        success_low=low,
        success_high=high,
        invalid=outcomes.invalid,
        harness_errors=outcomes.harness_error,
    )


@dataclass(frozen=True)
class OverLevels:
    """One metric over the levels of a factor, a sample each, and all results."""

    metric: Metric
    path: str
    levels: Sequence[float]
    samples: Sequence[Sample]
    scale: Literal["linear", "log"]
    alpha: float
    margin: float
    seed: int

    @cached_property
    def measured(self) -> list[tuple[float, Sample]]:
        return [(level, s) for level, s in zip(self.levels, self.samples, strict=True) if s.n]

    @cached_property
    def rules(self) -> Rules:
        is_ratio = self.metric.compared == RATIO
        logarithms = is_ratio and all(s.positive for _, s in self.measured)
        return Rules(self.alpha, Margin(self.margin, relative=True) if is_ratio else None, logarithms=logarithms)

    @cached_property
    def change(self) -> Judgement | None:
        """From the first level that measured it to the last; None if fewer than two did."""
        ends = self.measured
        return judge(ends[0][1], ends[-1][1], self.rules) if len(ends) > 1 else None

    @cached_property
    def trend(self) -> Trend | None:
        return trend([s for _, s in self.measured], self.seed)

    @cached_property
    def saturation(self) -> Saturation | NotShown:
        if self.metric.compared != RATIO:
            return NotShown("every difference of it matters, so none is ever called equivalent")
        lattice = lattice_of(self.metric, [v for s in self.samples for v in s.values])
        step = None if lattice is None else lattice.period
        return saturation.find(
            self.levels, self.samples, margin=self.margin, alpha=self.alpha, step=step, words=self.at
        )

    @cached_property
    def knee(self) -> Knee | NotShown:
        if isinstance(self.saturation, NotShown) and self.saturation.flat:
            return NotShown(f"flat: {self.saturation.reason}")
        bend = knee.find(
            self.levels, self.samples, log_levels=self.scale == LOG, logarithms=self.rules.logarithms,
            higher_is_worse=self.metric.better == LOWER, alpha=self.alpha, seed=self.seed,
        )  # fmt: skip
        if isinstance(bend, NotShown) and bend.flat and (self.trend is None or self.trend.p > self.alpha):
            return NotShown(f"no difference between the levels is shown, and {bend.reason}")
        return bend

    @property
    def confidence(self) -> float:
        """The wanted confidence, or less if no level has enough trials for it: five give an interval of 90 %."""
        wanted = 1 - self.alpha
        for tried in (wanted, WITH_FEW_TRIALS):
            if tried <= wanted and any(estimate.median(s, tried).interval is not None for _, s in self.measured):
                return tried
        return wanted

    @property
    def n(self) -> str:
        """ "n = 5 at each level", "n = 5 to 25 a level"."""
        each = sorted({s.n for _, s in self.measured})
        return f"n = {each[0]} at each level" if len(each) == 1 else f"n = {each[0]} to {each[-1]} a level"

    @property
    def is_same(self) -> bool:
        return len({v for _, s in self.measured for v in s.values}) == 1

    def at(self, level: float) -> str:
        return level_words(self.path, level)

    def medians(self) -> CurveMetric:
        confidence = self.confidence
        points = [estimate.median_of(s, confidence, self.metric.unit) if s.n else None for s in self.samples]
        return CurveMetric(
            unit=self.metric.unit,
            points=tuple(points),
            confidence=confidence,
            knee=None,
            knee_reason=None,
            saturation=None,
            saturation_reason=None,
            words=(),
        )

    def record(self) -> CurveMetric:
        course, words = sentences(self)
        bend, saturated = self.knee, self.saturation
        return replace(
            self.medians(),
            knee=None if isinstance(bend, NotShown) else bend,
            knee_reason=bend.reason if isinstance(bend, NotShown) else None,
            saturation=None if isinstance(saturated, NotShown) else saturated,
            saturation_reason=saturated.reason if isinstance(saturated, NotShown) else None,
            course=course,
            words=tuple(words),
        )


# -- in words --------------------------------------------------------------------------------------------------------


def sentences(of: OverLevels) -> tuple[Course | None, list[str]]:
    """Its change over the levels; and in sentences the change, the knee, saturation, and what was not measured, each
    with its numbers of trials."""
    words, n, bend, saturated = of.metric.words, of.n, of.knee, of.saturation
    margin = f"{100 * of.margin:.3g} %"
    is_flat = isinstance(saturated, NotShown) and saturated.flat
    course: Course | None = None
    found = []
    if of.change is not None and is_flat and not of.is_same:
        course = "equivalent"
        ends = f"{level_number(of.measured[0][0])} to {of.at(of.measured[-1][0])}"
        found.append(
            f"{words}: flat: no difference larger than {margin} from the last level, from {ends} "
            f"({_size(of, of.change)} over all, {n})."
        )
    elif of.change is not None:
        course, said = _change(of, of.change)
        found.append(said)
    if isinstance(bend, Knee):
        between = f"{level_number(bend.low)}, {level_number(bend.high)}"
        found.append(f"{words}: knee at {of.at(bend.level)} [{between}], {n}.")
    elif not (of.is_same or is_flat):
        found.append(f"{words}: no knee: {bend.reason}.")
    if isinstance(saturated, Saturation):
        perhaps = ""
        if saturated.low < saturated.level:
            perhaps = f"; perhaps from {of.at(saturated.low)} on, which is not shown"
        where = f"{of.at(saturated.level)} on"
        found.append(f"{words}: no difference larger than {margin} from {where}, {n}{perhaps}.")
    elif of.metric.compared == RATIO and not (of.is_same or is_flat):
        found.append(f"{words}: no saturation: {saturated.reason}.")
    lacking = [level_number(level) for level, s in zip(of.levels, of.samples, strict=True) if not s.n]
    if lacking:
        found.append(f"{words}: no value at {', '.join(lacking)}.")
    return course, found


def _change(of: OverLevels, change: Judgement) -> tuple[Course, str]:
    """Its change from the first level to the last, and a sentence about it."""
    (first, one), (last, other) = of.measured[0], of.measured[-1]
    start, end = of.at(first), of.at(last)
    words, n, tested, alpha, margin = of.metric.words, of.n, of.trend, of.alpha, f"{100 * of.margin:.3g} %"
    values = [of.metric.format(float(np.median(s.array))) for s in (one, other)]
    if of.is_same:
        return "same", f"{words}: {SAME}, {values[0]} ({n})."
    size = _size(of, change)
    if change.verdict == "equivalent":
        return "equivalent", f"{words}: no difference larger than {margin} between {start} and {end} ({size}, {n})."
    p = "" if tested is None else f", {p_in_words(tested.p)} of a trend"
    value = change.estimate.value or 0.0
    sign, course = (value > 0) - (value < 0), f"{values[0]} at {start} to {values[1]} at {end}"
    all_of_it = f"{course}, {size}, {n}{p}"
    if tested is not None and tested.p <= alpha and sign == tested.sign:
        if _may_be_none(change):
            way = "upwards" if sign > 0 else "downwards"
            ends = "the first and last levels are not significantly different"
            return "differs", f"{words} tends {way} over the levels, but {ends}: {all_of_it}."
        way = "rises" if sign > 0 else "falls"
        return ("higher" if sign > 0 else "lower"), f"{words} {way} from {course}: {size}, {n}{p}."
    if change.verdict in ("higher", "lower"):
        said = f"{words} is {change.verdict} at {end} than at {start}, but not steadily over the levels: {all_of_it}."
        return change.verdict, said
    if tested is not None and tested.p_differs <= DIFFERS * alpha:
        differs = p_in_words(tested.p_differs)
        return "differs", f"{words} differs between the levels ({differs}), not steadily: {all_of_it}."
    if change.verdict == "too_few_trials" and (tested is None or tested.attainable > alpha):
        return "too_few_trials", f"{words}: too few trials to show whether it changes ({all_of_it})."
    return "not_shown", f"{words}: no change is shown ({all_of_it})."


def _interval(change: Judgement) -> tuple[Interval | None, str]:
    """The interval of the difference between the ends, or if too few trials have none of that confidence, one of
    less."""
    if change.estimate.interval is not None:
        return change.estimate.interval, ""
    less = 1 - 2 * change.rules.alpha
    return shift(change.design, less).interval, f"; {format_confidence(less)}"


def _may_be_none(change: Judgement) -> bool:
    """Whether the interval of the difference includes no difference."""
    interval, _ = _interval(change)
    return interval is not None and interval.low <= 0 <= interval.high


def _size(of: OverLevels, change: Judgement) -> str:
    """ "27.1x [20.3, 35.0]", "+12 [3, 20]"; with too few trials for that interval, "[20.3, 35.0; 90 %]"."""
    interval, level = _interval(change)
    found, is_ratio = Estimate(change.estimate.value, interval), of.rules.logarithms
    on_scale = found.mapped(math.exp) if is_ratio else found
    return size_in_words(on_scale, of.metric.format, is_ratio=is_ratio, more=level) or "–"
