"""Curves in honest sentences: how far it goes from the first level to the last, its knee, where it saturates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perflab.results.comparison import Interval
from perflab.results.curve import Course, Knee, Saturation
from perflab.statistics.curves_trend import Trend
from perflab.statistics.difference import shift
from perflab.statistics.judgement import Judgement, Rules
from perflab.statistics.knee import NotShown
from perflab.statistics.metrics import RATIO, Metric
from perflab.statistics.sample import Sample
from perflab.statistics.verdicts import factor as ratio_words
from perflab.statistics.verdicts import p_in_words
from perflab.units import format_confidence

SAME = "the same in every trial"
DIFFERS = 0.5  # of alpha: where no trend is shown, a difference somewhere is a second claim, and held to more
UNITS = {"cpu_load.load": " %", "message_flood.rate": " msg/s"}  # of the levels of factors


def level_words(path: str, level: float) -> str:
    """ "60 %", "4"."""
    return f"{level_number(level)}{UNITS.get(path, '')}"


def level_number(level: float) -> str:
    return f"{level:.0f}" if level == int(level) and abs(level) < 1e15 else f"{level:.6g}"


@dataclass(frozen=True)
class OfLevels:
    """One metric over the levels of a factor, a sample each, with all that was found."""

    metric: Metric
    path: str
    levels: Sequence[float]
    samples: Sequence[Sample]
    change: Judgement | None
    """From the first level that measured it to the last; None where fewer than two did."""
    tested: Trend | None
    knee: Knee | NotShown
    saturation: Saturation | NotShown
    rules: Rules

    @property
    def measured(self) -> list[tuple[float, Sample]]:
        return [(level, s) for level, s in zip(self.levels, self.samples, strict=True) if s.n]

    @property
    def n(self) -> str:
        return numbers(s.n for _, s in self.measured)

    @property
    def is_same(self) -> bool:
        return len({v for _, s in self.measured for v in s.values}) == 1

    @property
    def margin(self) -> str:
        return "" if self.rules.margin is None else f"{100 * self.rules.margin.value:.3g} %"

    def level(self, level: float) -> str:
        return level_words(self.path, level)


def sentences(of: OfLevels) -> tuple[Course | None, list[str]]:
    """What it does over the levels; and in sentences the change, the knee, saturation, and what was not measured, each
    with its numbers of trials."""
    words, n, knee, saturation = of.metric.words, of.n, of.knee, of.saturation
    is_flat = isinstance(saturation, NotShown) and saturation.flat
    course: Course | None = None
    found = []
    if of.change is not None and is_flat and not of.is_same:
        course = "equivalent"
        ends = f"{level_number(of.measured[0][0])} to {of.level(of.measured[-1][0])}"
        found.append(
            f"{words}: flat: no difference larger than {of.margin} from the last level, from {ends} "
            f"({_size(of, of.change)} over all, {n})."
        )
    elif of.change is not None:
        course, said = _change(of, of.change)
        found.append(said)
    if isinstance(knee, Knee):
        between = f"{level_number(knee.low)}, {level_number(knee.high)}"
        found.append(f"{words}: knee at {of.level(knee.level)} [{between}], {n}.")
    elif not (of.is_same or is_flat):
        found.append(f"{words}: no knee: {knee.reason}.")
    if isinstance(saturation, Saturation):
        perhaps = ""
        if saturation.low < saturation.level:
            perhaps = f"; perhaps from {of.level(saturation.low)} on, which is not shown"
        where = f"{of.level(saturation.level)} on"
        found.append(f"{words}: no difference larger than {of.margin} from {where}, {n}{perhaps}.")
    elif of.metric.compared == RATIO and not (of.is_same or is_flat):
        found.append(f"{words}: no saturation: {saturation.reason}.")
    lacking = [level_number(level) for level, s in zip(of.levels, of.samples, strict=True) if not s.n]
    if lacking:
        found.append(f"{words}: no value at {', '.join(lacking)}.")
    return course, found


def numbers(counts: Iterable[int]) -> str:
    """ "n = 5 at each level", "n = 5 to 25 a level"."""
    each = sorted(set(counts))
    return f"n = {each[0]} at each level" if len(each) == 1 else f"n = {each[0]} to {each[-1]} a level"


def _change(of: OfLevels, change: Judgement) -> tuple[Course, str]:
    """What it does from the first level to the last, and that as a sentence."""
    (first, one), (last, other) = of.measured[0], of.measured[-1]
    start, end = of.level(first), of.level(last)
    words, n, tested, alpha = of.metric.words, of.n, of.tested, of.rules.alpha
    values = [of.metric.format(float(np.median(s.array))) for s in (one, other)]
    if of.is_same:
        return "same", f"{words}: {SAME}, {values[0]} ({n})."
    size = _size(of, change)
    if change.verdict == "equivalent":
        return "equivalent", f"{words}: no difference larger than {of.margin} between {start} and {end} ({size}, {n})."
    p = "" if tested is None else f", {p_in_words(tested.p)} of a trend"
    sign, course = _sign(change), f"{values[0]} at {start} to {values[1]} at {end}"
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
        return "too_few_trials", f"{words}: not enough trials to tell whether it changes ({all_of_it})."
    return "not_shown", f"{words}: no change is shown ({all_of_it})."


def _sign(change: Judgement) -> int:
    value = change.estimate.value or 0.0
    return (value > 0) - (value < 0)


def _interval(change: Judgement) -> tuple[Interval | None, str]:
    """That of the difference between the ends, or where too few trials have none of that confidence, one of less."""
    if change.estimate.interval is not None:
        return change.estimate.interval, ""
    less = 1 - 2 * change.rules.alpha
    return shift(change.design, less).interval, f"; {format_confidence(less)}"


def _may_be_none(change: Judgement) -> bool:
    """Whether the interval of the difference holds that there is none."""
    interval, _ = _interval(change)
    return interval is not None and interval.low <= 0 <= interval.high


def _size(of: OfLevels, change: Judgement) -> str:
    """ "27.1x [20.3, 35.0]", "+12 [3, 20]"; where there are too few trials for that interval, "[20.3, 35.0; 90 %]"."""
    value = change.estimate.value
    if value is None:
        return "–"
    interval, level = _interval(change)

    def form(x: float) -> str:
        return ratio_words(math.exp(x)) if of.rules.logarithms else of.metric.format(x)

    between = "" if interval is None else f" [{form(interval.low)}, {form(interval.high)}{level}]"
    return f"{form(value)}x{between}" if of.rules.logarithms else f"{'+' if value > 0 else ''}{form(value)}{between}"
