"""Curves in honest sentences: how far it goes from the first level to the last, its knee, where it saturates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from perflab.results.comparison import Interval
from perflab.results.curve import Course, Knee, Saturation
from perflab.statistics.curves_trend import Trend
from perflab.statistics.difference import shift
from perflab.statistics.judgement import Judgement, Rules
from perflab.statistics.metrics import RATIO, Metric
from perflab.statistics.sample import Sample
from perflab.statistics.saturation import NotShown
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


def sentences(
    metric: Metric,
    path: str,
    levels: Sequence[float],
    samples: Sequence[Sample],
    change: Judgement | None,
    tested: Trend | None,
    knee: Knee | str,
    saturation: Saturation | NotShown,
    rules: Rules,
) -> tuple[Course | None, list[str]]:
    """What it does over the levels; and in sentences the change, the knee, saturation, and what was not measured, each
    with its numbers of trials."""
    measured = [(level, s) for level, s in zip(levels, samples, strict=True) if s.n]
    n = numbers(s.n for _, s in measured)
    is_same = len({v for _, s in measured for v in s.values}) == 1
    is_flat = isinstance(saturation, NotShown) and saturation.flat
    course: Course | None = None
    found = []
    if change is not None and is_flat and not is_same:
        course = "equivalent"
        (first, _), (last, _) = measured[0], measured[-1]
        ends = f"{level_number(first)} to {level_words(path, last)}"
        found.append(
            f"{metric.words}: flat: no difference larger than {_margin(rules)} from the last level, "
            f"from {ends} ({_size(metric, change, rules)} over all, {n})."
        )
    elif change is not None:
        course, words = _change(metric, path, measured, change, tested, rules)
        found.append(words)
    if isinstance(knee, Knee):
        between = f"{level_number(knee.low)}, {level_number(knee.high)}"
        found.append(f"{metric.words}: knee at {level_words(path, knee.level)} [{between}], {n}.")
    elif not (is_same or is_flat):
        found.append(f"{metric.words}: no knee: {knee}.")
    if isinstance(saturation, Saturation):
        where = f"{level_words(path, saturation.level)} on"
        perhaps = ""
        if saturation.low < saturation.level:
            perhaps = f"; perhaps from {level_words(path, saturation.low)} on, which is not shown"
        found.append(f"{metric.words}: no difference larger than {_margin(rules)} from {where}, {n}{perhaps}.")
    elif metric.compared == RATIO and not (is_same or is_flat):
        found.append(f"{metric.words}: no saturation: {saturation.reason}.")
    lacking = [level_number(level) for level, s in zip(levels, samples, strict=True) if not s.n]
    if lacking:
        found.append(f"{metric.words}: no value at {', '.join(lacking)}.")
    return course, found


def numbers(counts: Iterable[int]) -> str:
    """ "n = 5 at each level", "n = 5 to 25 a level"."""
    each = sorted(set(counts))
    return f"n = {each[0]} at each level" if len(each) == 1 else f"n = {each[0]} to {each[-1]} a level"


def _change(
    metric: Metric,
    path: str,
    measured: Sequence[tuple[float, Sample]],
    change: Judgement,
    tested: Trend | None,
    rules: Rules,
) -> tuple[Course, str]:
    """What it does from the first level to the last, and that as a sentence."""
    (first, one), (last, other) = measured[0], measured[-1]
    start, end = level_words(path, first), level_words(path, last)
    n = numbers(s.n for _, s in measured)
    values = [metric.format(float(np.median(s.array))) for s in (one, other)]
    if len({v for _, s in measured for v in s.values}) == 1:
        return "same", f"{metric.words}: {SAME}, {values[0]} ({n})."
    size = _size(metric, change, rules)
    if change.verdict == "equivalent":
        between = f"between {start} and {end} ({size}, {n})"
        return "equivalent", f"{metric.words}: no difference larger than {_margin(rules)} {between}."
    course = f"{values[0]} at {start} to {values[1]} at {end}"
    sign = _sign(change)
    p = "" if tested is None else f", {p_in_words(tested.p)} of a trend"
    if tested is not None and tested.p <= rules.alpha and sign == tested.sign:
        if _may_be_none(change, rules):
            way = "upwards" if sign > 0 else "downwards"
            which = f"{metric.words} tends {way} over the levels, but its ends do not differ for sure"
            return "differs", f"{which}: {course}, {size}, {n}{p}."
        way = "rises" if sign > 0 else "falls"
        return ("higher" if sign > 0 else "lower"), f"{metric.words} {way} from {course}: {size}, {n}{p}."
    if change.verdict in ("higher", "lower"):
        return change.verdict, (
            f"{metric.words} is {change.verdict} at {end} than at {start}, but not steadily over the levels: "
            f"{course}, {size}, {n}{p}."
        )
    if tested is not None and tested.p_differs <= DIFFERS * rules.alpha:
        differs = p_in_words(tested.p_differs)
        words = f"{metric.words} differs between the levels ({differs}), not steadily: {course}, {size}, {n}{p}."
        return "differs", words
    if change.verdict == "too_few_trials" and (tested is None or tested.attainable > rules.alpha):
        return (
            "too_few_trials",
            f"{metric.words}: not enough trials to tell whether it changes ({course}, {size}, {n}{p}).",
        )
    return "not_shown", f"{metric.words}: no change is shown ({course}, {size}, {n}{p})."


def _sign(change: Judgement) -> int:
    value = change.estimate.value or 0.0
    return (value > 0) - (value < 0)


def _interval(change: Judgement, rules: Rules) -> tuple[Interval | None, str]:
    """That of the difference between the ends, or where too few trials have none of that confidence, one of less."""
    if change.estimate.interval is not None:
        return change.estimate.interval, ""
    return shift(change.design, 1 - 2 * rules.alpha).interval, f"; {format_confidence(1 - 2 * rules.alpha)}"


def _may_be_none(change: Judgement, rules: Rules) -> bool:
    """Whether the interval of the difference holds that there is none."""
    interval, _ = _interval(change, rules)
    return interval is not None and interval.low <= 0 <= interval.high


def _margin(rules: Rules) -> str:
    return "" if rules.margin is None else f"{100 * rules.margin.value:.3g} %"


def _size(metric: Metric, change: Judgement, rules: Rules) -> str:
    """ "27.1x [20.3, 35.0]", "+12 [3, 20]"; where there are too few trials for that interval, "[20.3, 35.0; 90 %]"."""
    value = change.estimate.value
    if value is None:
        return "–"
    interval, level = _interval(change, rules)

    def form(x: float) -> str:
        return ratio_words(math.exp(x)) if rules.logarithms else metric.format(x)

    between = "" if interval is None else f" [{form(interval.low)}, {form(interval.high)}{level}]"
    return f"{form(value)}x{between}" if rules.logarithms else f"{'+' if value > 0 else ''}{form(value)}{between}"
