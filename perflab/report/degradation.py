"""Pictures of the curves of a sweep: a metric over the levels of a factor, and how many trials succeeded at each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perflab.report import axes
from perflab.report.axes import Unit
from perflab.report.captions import Draft, interval_of, left_out_words, value_axis, value_unit
from perflab.report.figures import Axis, Ends, Figure, Key, Label, Series, Sign, ends_of, whiskers
from perflab.results.curve import BreakingPoint, Curve, CurveMetric, Knee, Saturation
from perflab.results.outcome import Outcomes
from perflab.results.trial import Median
from perflab.statistics.metrics import NS, Metric, find

MAX_VARIANTS = 7  # in one picture; more marks cannot be told apart
MAX_LABELS = 6
FIRST_METRICS = ("latency.p50", "latency.p99", "response.p99", "lost_share", "cpu_percent")
APART = 0.007  # of the axis, between the variants at one level
_ROOM = 0.05  # of a level axis, on either side

Named = tuple[str, Curve]  # with its label

KNEE, SATURATION = "knee", "saturation"
_SIGNS: dict[str, Sign] = {KNEE: "ring", SATURATION: "box"}


@dataclass(frozen=True)
class Levels:
    """The places of levels on an axis. On a logarithmic one 0 (a factor that is off) stands apart, at `zero`."""

    axis: Axis
    zero: float | None

    def at(self, level: float, nth: int = 0, of: int = 1) -> float:
        """Where a level stands, moved a little aside for the nth of several variants."""
        place = self.zero if self.zero is not None and level <= 0 else level
        aside = (nth - (of - 1) / 2) * APART
        if self.axis.scale == "log":
            return float(place * (self.axis.high / self.axis.low) ** aside)
        return float(place + aside * (self.axis.high - self.axis.low))


def curves(found: Sequence[Named]) -> list[Figure]:
    """The pictures of the entries `curves` of summaries, each with the name of its run, or "" where there is one.

    Those of one factor stand over each other: one picture per metric, and one of the success rates.
    """
    made = []
    for factor in dict.fromkeys(str(curve.factor) for _, curve in found):
        own = [(label_of(run, curve), curve) for run, curve in found if curve.factor == factor]
        names = dict.fromkeys(name for _, curve in own for name in curve.metrics)
        known = [name for name in FIRST_METRICS if name in names]
        for name in (*known, *(n for n in names if n not in known)):
            having = [(label, curve) for label, curve in own if name in curve.metrics]
            if (figure := _metric(factor, name, having)) is not None:
                made.append(figure)
        if (figure := _success(factor, own)) is not None:
            made.append(figure)
    return made


def levels_axis(title: str, scale: str, values: Sequence[float]) -> Levels:
    """An axis with all of these levels."""
    positive = [v for v in values if v > 0]
    if scale == "log" and positive:
        low, high = min(positive), max(positive)
        zero = None
        if len(positive) < len(values):
            zero = low / max((high / low) ** 0.12, 1.5)
            low = zero
        room = max(high / low, 2.0) ** _ROOM
        low, high = low / room, high * room
        ticks = axes.log_ticks(low, high)
        if zero is not None:
            ticks = ((zero, "0"), *(tick for tick in ticks if tick[0] > zero * (high / low) ** 0.05))
        return Levels(Axis(title, "log", low, high, ticks), zero)
    low, high = min(values), max(values)
    room = (high - low) * _ROOM or abs(high) * _ROOM or 1.0
    return Levels(Axis(title, "linear", low - room, high + room, axes.linear_ticks(low - room, high + room)), None)


def level_text(level: float) -> str:
    """A level with at most four significant digits: "1 500", "0.25"."""
    return axes.number(float(f"{level:.4g}"))


def slug(*parts: str) -> str:
    """A name for a file."""
    return re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")


def label_of(run: str, entry: Curve | BreakingPoint) -> str:
    return ", ".join(part for part in (run, entry.place) if part)


def _metric(factor: str, name: str, found: Sequence[Named]) -> Figure | None:
    shown = found[:MAX_VARIANTS]
    metric = find(name)
    of_unit = str(shown[0][1].metrics[name].unit)
    known = [p for _, curve in shown for p in curve.metrics[name].points if p is not None]
    values = [value for p in known for value in (p.value, p.low, p.high) if value is not None]
    if not known:
        return None
    unit = value_unit(of_unit, values)
    levels = _axis_of(factor, [curve for _, curve in shown])
    draft = Draft(notes=too_many(found, shown))
    labels: list[Label] = []
    for nth, (label, curve) in enumerate(shown):
        own = curve.metrics[name]
        draft.series += _curve(label, nth, len(shown), curve, own, levels, unit, metric)
        for word, sign in _SIGNS.items():
            found_point = own.knee if word == KNEE else own.saturation
            if found_point is not None and (
                series := _mark(label, nth, word, sign, curve, own, found_point, levels, unit)
            ):
                draft.series.append(series)
                x, y = series.x[0], series.y[0]
                if x is not None and y is not None:
                    labels.append(Label(f"{word} {level_text(found_point.level)}", x, y, nth, nth % 2 == 1))
        draft.notes += said(label if len(shown) > 1 else "", [*_words(own), *_left_out(curve)])
    if len(shown) > 1:
        draft.notes.append("What stands side by side was measured at the same level.")
    title = metric.words if metric is not None else name
    confidence = [curve.metrics[name].confidence for _, curve in shown]
    bare = [s for s in draft.series if s.shape == "whiskers" and not s.across]
    ends = [low for s in bare for low in s.low]
    keys = [Key(interval_of(confidence), None, sign="whisker")] if any(low is not None for low in ends) else []
    if None in ends:
        draft.notes.append("A mark without an interval is the median of too few trials for one.")
    keys += [
        Key(f"{word}, with its interval", None, sign=sign)
        for word, sign in _SIGNS.items()
        if any(s.sign == sign for s in draft.series)
    ]
    return Figure(
        name=slug("curve", factor, name),
        title=f"{title[:1].upper()}{title[1:]} over {factor}",
        subtitle=f"{len(levels_of(shown))} levels, {_trials([curve for _, curve in shown])}",
        x=levels.axis,
        y=value_axis(title, of_unit, unit, [s for s in draft.series if not s.across], "y"),
        series=tuple(draft.series),
        groups=tuple((nth, label) for nth, (label, _) in enumerate(shown)),
        keys=tuple(keys),
        notes=tuple(dict.fromkeys(draft.notes)),
        labels=tuple(labels) if len(labels) <= MAX_LABELS else (),
    )


def _curve(
    label: str, nth: int, of: int, curve: Curve, own: CurveMetric, levels: Levels, unit: Unit, metric: Metric | None
) -> list[Series]:
    """A line through the levels, broken where nothing is known and between "off" and the rest, and the intervals."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    marks: list[tuple[float, float, Ends, str]] = []
    for level, point in zip(curve.levels, own.points, strict=True):
        value = None if point is None else point.value
        place = levels.at(level.level, nth, of)
        xs.append(place)
        ys.append(None if value is None else unit.of(value))
        if levels.zero is not None and level.level <= 0:
            xs.append(place)
            ys.append(None)
        if point is not None and value is not None:
            ends = ends_of(unit.of, point.low, point.high)
            marks.append((place, unit.of(value), ends, _point_text(label, level.level, point, metric)))
    if not marks:
        return []
    return [Series(label, nth, "line", tuple(xs), tuple(ys)), whiskers(label, nth, marks, sign="full")]


def _mark(
    label: str,
    nth: int,
    word: str,
    sign: Sign,
    curve: Curve,
    own: CurveMetric,
    found: Knee | Saturation,
    levels: Levels,
    unit: Unit,
) -> Series | None:
    """A knee or a saturation point on its curve, with its interval along the levels."""
    level = found.level
    value = value_at(curve, own, level, logarithmic=own.unit == NS)
    if value is None:
        return None
    text = f"{level_text(level)} [{level_text(found.low)}, {level_text(found.high)}]"
    ends = (levels.at(found.low), levels.at(found.high))
    row = (levels.at(level), unit.of(value), ends, f"{label}<br>{word} at {text}")
    return whiskers(f"{label}, {word}", nth, [row], weight="thick", sign=sign, across=True)


def value_at(curve: Curve, own: CurveMetric, level: float, *, logarithmic: bool) -> float | None:
    """The curve at a level, between its points as it is drawn; None outside of them."""
    known = [
        (float(at.level), p.value)
        for at, p in zip(curve.levels, own.points, strict=True)
        if p is not None and p.value is not None
    ]
    for (x0, y0), (x1, y1) in pairwise(known):
        if not x0 <= level <= x1:
            continue
        by_ratio = curve.scale == "log" and x0 > 0
        part = math.log(level / x0) / math.log(x1 / x0) if by_ratio else (level - x0) / (x1 - x0)
        if logarithmic:
            return float(max(y0, 1.0) * (max(y1, 1.0) / max(y0, 1.0)) ** part)
        return y0 + (y1 - y0) * part
    return known[0][1] if len(known) == 1 and known[0][0] == level else None


def _success(factor: str, found: Sequence[Named]) -> Figure | None:
    """Successes among the trials that were judged, with Wilson's intervals."""
    shown = [(label, c) for label, c in found if any(at.judged for at in c.levels)][:MAX_VARIANTS]
    if not shown:
        return None
    levels = _axis_of(factor, [curve for _, curve in shown])
    draft = Draft(notes=too_many(found, shown))
    for nth, (label, curve) in enumerate(shown):
        rows = [
            (
                levels.at(at.level, nth, len(shown)),
                100 * at.successes / at.judged,
                ends_of(percent, at.success_low, at.success_high),
                f"{label}<br>at {level_text(at.level)}: {at.successes} of {at.judged} trials",
            )
            for at in curve.levels
            if at.judged
        ]
        draft.series.append(Series(label, nth, "line", tuple(row[0] for row in rows), tuple(row[1] for row in rows)))
        draft.series.append(whiskers(label, nth, rows, sign="full"))
        draft.notes += said(label if len(shown) > 1 else "", _left_out(curve))
    if len(shown) > 1:
        draft.notes.append("What stands side by side was measured at the same level.")
    confidences = [c.success_confidence for _, c in shown if c.success_confidence is not None]
    return Figure(
        name=slug("curve", factor, "success"),
        title=f"Success rate over {factor}",
        subtitle=f"{len(levels_of(shown))} levels, {_trials([curve for _, curve in shown], judged=True)}",
        x=levels.axis,
        y=share_axis("succeeded"),
        series=tuple(draft.series),
        groups=tuple((nth, label) for nth, (label, _) in enumerate(shown)),
        keys=(Key(f"{interval_of(confidences)} (Wilson)", None, sign="whisker"),),
        notes=tuple(dict.fromkeys(draft.notes)),
    )


def percent(share: float) -> float:
    return 100 * share


def share_axis(title: str) -> Axis:
    """0 to 100 %, with room for the marks at both ends."""
    return Axis(f"{title} (%)", "linear", -3.0, 103.0, axes.linear_ticks(0.0, 100.0, 5))


def levels_of(found: Sequence[Named]) -> list[float]:
    return sorted({float(at.level) for _, curve in found for at in curve.levels})


def _axis_of(factor: str, found: Sequence[Curve]) -> Levels:
    scale = "log" if any(curve.scale == "log" for curve in found) else "linear"
    return levels_axis(factor, scale, levels_of([("", curve) for curve in found]))


def _point_text(label: str, level: float, point: Median, metric: Metric | None) -> str:
    def text(value: float | None) -> str:
        return metric.format(value) if metric is not None else "–" if value is None else axes.number(value)

    words = f"{label}<br>at {level_text(level)}: {text(point.value)}"
    if point.low is not None and point.high is not None:
        words += f" [{text(point.low)}, {text(point.high)}]"
    return f"{words}, {point.n} trials"


def said(label: str, lines: Iterable[str]) -> list[str]:
    """Sentences, with the name of the variant where there are several."""
    ended = [line if line.endswith(".") else f"{line}." for line in lines]
    return [f"{label}: {line}" if label else line for line in ended]


def _words(own: CurveMetric) -> list[str]:
    """What was found of knee and saturation, or why nothing was."""
    reasons = {KNEE: own.knee_reason, SATURATION: own.saturation_reason}
    return list(own.words) or [f"No {word}: {reason}" for word, reason in reasons.items() if reason]


def _left_out(curve: Curve) -> list[str]:
    text = left_out_words(Outcomes.together([level.left_out for level in curve.levels]))
    return [text] if text else []


def too_many(found: Sequence[object], shown: Sequence[object]) -> list[str]:
    return [f"The first {len(shown)} of {len(found)} variants."] if len(shown) < len(found) else []


def _trials(found: Sequence[Curve], *, judged: bool = False) -> str:
    counts = sorted({at.judged if judged else at.n for curve in found for at in curve.levels})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{each} {'trial' if counts == [1] else 'trials'} at each"
