"""Pictures of sweeps, over the levels of a factor: curves of metrics, the share of successful trials; for a search for
a breaking point, the share that met the criterion, and the course of the search."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from perflab.report import axes
from perflab.report.against_floor import FLOOR, floors_among
from perflab.report.captions import first_of, interval_of, left_out_words
from perflab.report.figures import AT_BOTTOM, Axis, Figure, Key, Label, Plot, Reference, Sign, fixed, of_metric
from perflab.results.curve import BreakingPoint, Curve, CurveMetric
from perflab.results.figure import Median
from perflab.results.outcome import Outcomes
from perflab.statistics.metrics import LOWER, NS, RATIO, Metric, find
from perflab.units import format_bytes

MAX_VARIANTS = 7  # in one picture; more marks are indistinguishable
MAX_LABELS = 6
MIN_TRIALS = 3  # a level with fewer has no interval in the picture: it would fill most of the axis
FIRST_METRICS = ("latency.p50", "latency.p99", "response.p99", "lost_share", "cpu_percent")
TICK_ROOM = 0.07  # of an axis of sizes, for the words at a level
APART = 0.007  # share of the axis, between the variants at one level
SIDE_BY_SIDE = "Marks side by side were measured at the same level."
_ROOM = 0.05  # of a level axis, on either side
_SMALLEST, _LARGEST = 0.6, 1.7  # marks, relative to their usual size
_SIGNS: dict[str, Sign] = {"knee": "ring", "saturation": "box"}
_OUTCOMES: tuple[tuple[bool | None, Sign, str], ...] = (
    (True, "full", "met the criterion"),
    (False, "hollow", "did not meet it"),
    (None, "cross", "invalid, shows nothing"),
)

Curves = Sequence[tuple[str, Curve]]  # with their labels
Searches = Sequence[tuple[str, BreakingPoint]]


# -- levels ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """The positions of levels on an axis. On a logarithmic axis, 0 (a factor that is off) is separate, at `zero`."""

    axis: Axis
    zero: float | None

    def at(self, level: float, nth: int = 0, of: int = 1) -> float:
        """The position of a level, shifted slightly for the nth of several variants."""
        place = self.zero if self.zero is not None and level <= 0 else level
        aside = (nth - (of - 1) / 2) * APART
        if self.axis.scale == "log":
            return float(place * (self.axis.high / self.axis.low) ** aside)
        return float(place + aside * (self.axis.high - self.axis.low))


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


def level_text(level: float, low: float | None = None, high: float | None = None) -> str:
    """A level with at most four significant digits: "1 500", "0.25"; with its interval, if there is one."""
    text, *ends = (axes.number(float(f"{v:.4g}")) for v in (level, low, high) if v is not None)
    return f"{text} [{', '.join(ends)}]" if len(ends) == 2 else text


def _share_axis(title: str) -> Axis:
    """0 to 100 %, with room for the marks at both ends."""
    return Axis(f"{title} (%)", "linear", -3.0, 103.0, axes.linear_ticks(0.0, 100.0, 5))


def _percent(*shares: float | None) -> tuple[float | None, ...]:
    return tuple(None if share is None else 100 * share for share in shares)


def _slug(*parts: str) -> str:
    """A name for a file."""
    return re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")


def _label(run: str, entry: Curve | BreakingPoint) -> str:
    return ", ".join(part for part in (run, entry.place) if part)


def _said(label: str, shown: Sequence[object], lines: Iterable[str]) -> list[str]:
    """Sentences, with the name of the variant if several are shown."""
    ended = [line if line.endswith(".") else f"{line}." for line in lines if line]
    return [f"{label}: {line}" if len(shown) > 1 else line for line in ended]


# -- curves ------------------------------------------------------------------------------------------------------------


def curves(found: Curves) -> list[Figure]:
    """The pictures of the entries `curves` of summaries, each with the name of its run, or "" if there is only one.

    Those of one factor share pictures: one per metric, and one of the success rates.
    """
    made = []
    for factor in dict.fromkeys(str(curve.factor) for _, curve in found):
        own = [(_label(run, curve), curve) for run, curve in found if curve.factor == factor]
        names = dict.fromkeys(name for _, curve in own for name in curve.metrics)
        known = [name for name in FIRST_METRICS if name in names]
        for name in (*known, *(n for n in names if n not in known)):
            having = [(label, curve) for label, curve in own if name in curve.metrics]
            made.append(_metric(factor, name, having))
        made.append(_success(factor, own))
    return [figure for figure in made if figure is not None]


def _metric(factor: str, name: str, found: Curves) -> Figure | None:
    shown = found[:MAX_VARIANTS]
    metric = find(name)
    floors = floors_among([curve for _, curve in shown])
    title = metric.words if metric is not None else name
    of_unit = str(shown[0][1].metrics[name].unit)
    levels = _axis_of(factor, shown)
    plot = Plot(fixed(levels.axis), of_metric(title, of_unit), notes=first_of(found, shown, "variants"))
    labels: list[Label] = []
    for nth, (label, curve) in enumerate(shown):
        own = curve.metrics[name]
        _curve(plot, label, nth, len(shown), curve, own, levels, metric, is_floor=curve in floors)
        labels += _bends(plot, label, nth, curve, own, levels)
        reasons = [f"No {word}: {why}" for word in _SIGNS if (why := getattr(own, f"{word}_reason"))]
        plot.notes += _said(label, shown, [*(own.words or reasons), _left_out(curve)])
    bare = [low for s in plot.series if s.shape == "whiskers" and not s.across for low in s.low]
    if not bare:
        return None
    alike = len({str(curve.others) for _, curve in shown}) == 1
    if floors and alike and metric is not None and (metric.better, metric.compared) == (LOWER, RATIO):
        _ground(plot, name, shown, floors, levels)
    if len(shown) > 1:
        plot.notes.append(SIDE_BY_SIDE)
    if None in bare:
        plot.notes.append("A mark without an interval is the median of too few trials for one.")
    return plot.figure(
        _slug("curve", factor, name),
        f"{title[:1].upper()}{title[1:]} over {factor}",
        _levels_and_trials(shown),
        [(nth, label) for nth, (label, _) in enumerate(shown)],
        [
            Key(FLOOR, "dashed"),
            Key("below every floor", None, sign="band"),
            Key(interval_of(curve.metrics[name].confidence for _, curve in shown), None, sign="whisker"),
            *(Key(f"{word}, with its interval", None, sign=sign) for word, sign in _SIGNS.items()),
        ],
        labels if len(labels) <= MAX_LABELS else (),
    )


def _curve(
    plot: Plot, label: str, nth: int, of: int, curve: Curve, own: CurveMetric, levels: Levels, metric: Metric | None,
    *, is_floor: bool,
) -> None:  # fmt: skip
    """A line through the levels, interrupted at unknown values and between "off" and the rest, and the intervals."""
    line: list[tuple[float, float | None]] = []
    marks = []
    for level, point in zip(curve.levels, own.points, strict=True):
        place = levels.at(level.level, nth, of)
        line.append((place, None if point is None else point.value))
        if levels.zero is not None and level.level <= 0:
            line.append((place, None))
        if point is not None and point.value is not None:
            said = f"{label}<br>at {level_text(level.level)}: {_point_text(point, metric)}, {point.n} trials"
            marks.append((place, point.value, (point.low, point.high), said))
    if marks:
        plot.line(label, nth, *zip(*line, strict=True), stroke="dashed" if is_floor else "solid")
        plot.whiskers(label, nth, marks, sign="hollow" if is_floor else "full")


def _ground(plot: Plot, name: str, shown: Curves, floors: Sequence[Curve], levels: Levels) -> None:
    """A shade below the lowest floor at each level: impossible for any middleware of this kind."""
    least: dict[float, tuple[float, int]] = {}  # by place: the value, and its variant
    for nth, (_, floor) in enumerate(shown):
        for level, point in zip(floor.levels, floor.metrics[name].points, strict=True) if floor in floors else ():
            if point is not None and point.value is not None:
                at = levels.at(level.level)
                least[at] = min(least.get(at, (math.inf, nth)), (point.value, nth))
    if len(least) < 2:
        return
    owners = [nth for _, nth in least.values()]
    group = max(owners, key=owners.count)
    x = sorted(least)
    high = [least[at][0] for at in x]
    plot.line("below every floor", group, x, high, shape="band", low=[AT_BOTTOM] * len(x), high=high)


def _point_text(point: Median, metric: Metric | None) -> str:
    write = axes.number if metric is None else metric.format
    text, *ends = (write(v) for v in (point.value, point.low, point.high) if v is not None)
    return f"{text} [{', '.join(ends)}]" if len(ends) == 2 else text


def _bends(plot: Plot, label: str, nth: int, curve: Curve, own: CurveMetric, levels: Levels) -> Iterator[Label]:
    """Knee and saturation point on a curve, with their intervals along the levels."""
    for word, sign in _SIGNS.items():
        found = getattr(own, word)
        value = None if found is None else value_at(curve, own, found.level, logarithmic=own.unit == NS)
        if value is None:
            continue
        place, ends = levels.at(found.level), (levels.at(found.low), levels.at(found.high))
        said = f"{label}<br>{word} at {level_text(found.level, found.low, found.high)}"
        mark = (place, value, ends, said)
        plot.whiskers(f"{label}, {word}", nth, [mark], weight="thick", sign=sign, across=True)
        yield Label(f"{word} {level_text(found.level)}", place, value, nth, nth % 2 == 1)


def value_at(curve: Curve, own: CurveMetric, level: float, *, logarithmic: bool) -> float | None:
    """The curve at a level, interpolated as drawn; None outside of it."""
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


def _success(factor: str, found: Curves) -> Figure | None:
    """Successes among the judged trials, with Wilson's intervals."""
    shown = [(label, c) for label, c in found if any(at.judged for at in c.levels)][:MAX_VARIANTS]
    if not shown:
        return None
    levels = _axis_of(factor, shown)
    plot = Plot(fixed(levels.axis), fixed(_share_axis("succeeded")), notes=first_of(found, shown, "variants"))
    for nth, (label, curve) in enumerate(shown):
        marks = [
            (
                levels.at(at.level, nth, len(shown)),
                100 * at.successes / at.judged,
                _percent(at.success_low, at.success_high),
                f"{label}<br>at {level_text(at.level)}: {at.successes} of {at.judged} trials",
            )
            for at in curve.levels
            if at.judged
        ]
        plot.line(label, nth, [x for x, *_ in marks], [y for _, y, *_ in marks])
        plot.whiskers(label, nth, marks, sign="full")
        plot.notes += _said(label, shown, [_left_out(curve)])
    if len(shown) > 1:
        plot.notes.append(SIDE_BY_SIDE)
    confidences = [c.success_confidence for _, c in shown if c.success_confidence is not None]
    return plot.figure(
        _slug("curve", factor, "success"),
        f"Success rate over {factor}",
        _levels_and_trials(shown, judged=True),
        [(nth, label) for nth, (label, _) in enumerate(shown)],
        [Key(f"{interval_of(confidences)} (Wilson)", None, sign="whisker")],
    )


def _axis_of(factor: str, found: Curves) -> Levels:
    scale = "log" if any(curve.scale == "log" for _, curve in found) else "linear"
    values = sorted({float(at.level) for _, curve in found for at in curve.levels})
    if not any(curve.by_payload for _, curve in found):
        return levels_axis(factor, scale, values)
    levels = levels_axis(f"{factor}: payload", scale, values)
    return replace(levels, axis=replace(levels.axis, ticks=_payload_ticks(values, levels)))


def _payload_ticks(values: Sequence[float], levels: Levels) -> axes.Ticks:
    """The levels as sizes, as far as there is room for words."""
    least = (levels.axis.high / levels.axis.low) ** TICK_ROOM
    ticks: list[tuple[float, str]] = []
    for value in values:
        if value > 0 and (not ticks or value >= ticks[-1][0] * least):
            ticks.append((value, format_bytes(value)))
    return tuple(ticks)


def _left_out(curve: Curve) -> str:
    return left_out_words(Outcomes.together([level.left_out for level in curve.levels]))


def _levels_and_trials(found: Curves, *, judged: bool = False) -> str:
    """ "7 levels, 3 to 5 trials at each"."""
    levels = [at for _, curve in found for at in curve.levels]
    counts = sorted({at.judged if judged else at.n for at in levels})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{len({at.level for at in levels})} levels, {each} {'trial' if counts == [1] else 'trials'} at each"


# -- breaking points ---------------------------------------------------------------------------------------------------


def breaking_points(found: Searches) -> list[Figure]:
    """The pictures of the entries `breaking_points` of summaries, each with the name of its run, or "".

    Those of one factor and criterion share two pictures: the shares, and the course.
    """
    searches: dict[tuple[object, ...], list[tuple[str, BreakingPoint]]] = {}
    for run, entry in found:
        key = (entry.factor, entry.criterion, entry.share, entry.scale)
        searches.setdefault(key, []).append((_label(run, entry), entry))
    made = []
    for number, own in enumerate(searches.values(), start=1):
        shown = own[:MAX_VARIANTS]
        name = _slug("breaking_point", shown[0][1].factor, *([str(number)] if len(searches) > 1 else []))
        made.append(_shares(name, shown, first_of(own, shown, "variants")))
        files = [f"{name}_course_{nth}" for nth in range(1, len(shown) + 1)] if len(shown) > 1 else [f"{name}_course"]
        made += [_course(file, nth, shown) for nth, file in enumerate(files)]
    return made


def _axis_of_search(shown: Searches) -> Levels:
    levels = [float(v) for _, entry in shown for v in (entry.low, entry.high, *(at.level for at in entry.levels))]
    return levels_axis(str(shown[0][1].factor), str(shown[0][1].scale), levels)


def _shares(name: str, shown: Searches, notes: list[str]) -> Figure:
    first, levels = shown[0][1], _axis_of_search(shown)
    share = 100 * float(first.share)
    plot = Plot(fixed(levels.axis), fixed(_share_axis("criterion met")), notes=notes)
    labels = []
    for nth, (label, entry) in enumerate(shown):
        if (fit := entry.fit) is not None:
            x, y = [levels.at(level) for level in fit.level], _percent(*fit.share)
            low, high = _percent(*fit.low), _percent(*fit.high)
            plot.line(f"{label}, interval of the fit", nth, x, y, shape="band", low=low, high=high)
            plot.line(f"{label}, fit", nth, x, y, weight="thick")
        _measured(plot, label, nth, shown, levels)
        if entry.value is not None:
            low_end, high_end = (None, None) if entry.interval is None else (entry.interval.low, entry.interval.high)
            said = f"{label}<br>breaking point {level_text(entry.value, low_end, high_end)}"
            ends = tuple(None if end is None else levels.at(end) for end in (low_end, high_end))
            place = levels.at(entry.value)
            plot.whiskers(
                f"{label}, breaking point", nth, [(place, share, ends, said)], sign="ring", weight="thick", across=True
            )
            labels.append(Label(level_text(entry.value), place, share, nth, nth % 2 == 1))
        plot.notes += _said(label, shown, entry.words)
    if any(0 < at.n < MIN_TRIALS for _, entry in shown for at in entry.levels):
        plot.notes.append(f"Levels with fewer than {MIN_TRIALS} trials are drawn without an interval.")
    confidences = [entry.confidence for _, entry in shown if entry.confidence is not None]
    return plot.figure(
        name,
        f"{'Breaking points' if len(shown) > 1 else 'Breaking point'} over {first.factor}",
        f"{first.criterion}: {sum(int(entry.trials) for _, entry in shown)} trials",
        [(nth, label) for nth, (label, _) in enumerate(shown)],
        [
            Key("share of the trials at a level; larger marks stand for more trials", None, sign="full"),
            Key(f"its {interval_of(confidences)} (Wilson)", None, sign="whisker"),
            Key("fitted curve", "solid", "thick"),
            Key("its interval", None, sign="band"),
            Key("breaking point, with its interval", None, sign="ring"),
        ],
        labels,
        references=(Reference(f"{share:g} % wanted", share),),
    )


def _measured(plot: Plot, label: str, nth: int, shown: Searches, levels: Levels) -> None:
    """The shares at the levels; without an interval for few trials."""
    most = max((int(at.n) for _, entry in shown for at in entry.levels), default=1)
    tried = [at for at in shown[nth][1].levels if at.n]
    for own, bare in (([at for at in tried if (at.n < MIN_TRIALS) is bare], bare) for bare in (False, True)):
        sizes = tuple(_SMALLEST + (_LARGEST - _SMALLEST) * (at.n / most) ** 0.5 for at in own)
        marks = [
            (
                levels.at(at.level, nth, len(shown)),
                100 * at.met / at.n,
                _percent(at.low, at.high),
                f"{label}<br>at {level_text(at.level)}: {at.met} of {at.n} trials met it",
            )
            for at in own
        ]
        if bare:
            plot.points(label, nth, [(x, y, said) for x, y, _, said in marks], weight="thin", sign="full", sizes=sizes)
        else:
            plot.whiskers(label, nth, marks, weight="thin", sign="full", sizes=sizes)


def _course(name: str, nth: int, shown: Searches) -> Figure:
    """The level of each trial, in order: what the search tried, and the answer."""
    label, entry = shown[nth]
    levels = _axis_of_search([shown[nth]])
    course = sorted(entry.course, key=lambda step: int(step.order))
    last = max((int(step.order) for step in course), default=1)
    high = last + 0.5 + 0.02 * last
    plot = Plot(
        fixed(Axis("trial", "linear", 0.0, high, axes.linear_ticks(0.0, high, 8))),
        fixed(levels.axis),
        notes=_said("", [], [f"{entry.stopped[:1].upper()}{entry.stopped[1:]}"]),
    )
    if entry.value is not None:
        across, at = (0.0, last + 0.5), (levels.at(entry.value),) * 2
        if (interval := entry.interval) is not None:
            low, top = ((levels.at(end),) * 2 for end in (interval.low, interval.high))
            plot.line(f"{label}, interval", nth, across, at, shape="band", low=low, high=top)
        plot.line(f"{label}, breaking point", nth, across, at, stroke="dashed")
    plot.line(label, nth, [step.order for step in course], [levels.at(step.level) for step in course], weight="thin")
    for met, sign, word in _OUTCOMES:
        marks = [
            (
                float(step.order),
                levels.at(step.level),
                f"{label}<br>trial {step.order} at {level_text(step.level)}: {word}",
            )
            for step in course
            if step.met is met
        ]
        plot.points(f"{label}, {word}", nth, marks, sign=sign)
    return plot.figure(
        name,
        f"Course of the search over {entry.factor}{f': {label}' if len(shown) > 1 else ''}",
        f"{len(course)} trials between {level_text(entry.low)} and {level_text(entry.high)}",
        [(nth, label)],
        [
            *(Key(word, None, sign=sign) for _, sign, word in _OUTCOMES),
            Key("breaking point", "dashed", "normal"),
            Key("its interval", None, sign="band"),
        ],
    )
