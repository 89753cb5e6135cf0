"""Pictures of breaking points: the share of trials that met a criterion over levels, and the course of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflab.report import axes
from perflab.report.captions import Draft, interval_of
from perflab.report.degradation import (
    MAX_VARIANTS,
    Levels,
    label_of,
    level_text,
    levels_axis,
    percent,
    said,
    share_axis,
    slug,
    too_many,
)
from perflab.report.figures import Axis, Figure, Key, Label, Reference, Series, Sign, ends_of, points, whiskers
from perflab.results.curve import BreakingPoint

MIN_TRIALS = 3  # a level with fewer has no interval in the picture: it would be most of the axis
_SMALLEST, _LARGEST = 0.6, 1.7  # marks, of their usual size

Named = tuple[str, BreakingPoint]  # with its label


def breaking_points(found: Sequence[Named]) -> list[Figure]:
    """The pictures of the entries `breaking_points` of summaries, each with the name of its run, or "".

    Those of one factor and criterion stand over each other: one picture of the shares, one of the course.
    """
    searches: dict[tuple[object, ...], list[Named]] = {}
    for run, entry in found:
        key = (entry.factor, entry.criterion, entry.share, entry.scale)
        searches.setdefault(key, []).append((label_of(run, entry), entry))
    made = []
    for number, ((factor, criterion, *_), own) in enumerate(searches.items(), start=1):
        shown = own[:MAX_VARIANTS]
        name = slug("breaking_point", str(factor), *([str(number)] if len(searches) > 1 else []))
        made.append(_shares(name, str(factor), str(criterion), shown, too_many(own, shown)))
        for nth, (label, entry) in enumerate(shown):
            several = len(shown) > 1
            file = f"{name}_course_{nth + 1}" if several else f"{name}_course"
            made.append(_course(file, str(factor), nth, label, entry, label if several else ""))
    return made


def _axis_of(factor: str, shown: Sequence[Named]) -> Levels:
    levels = [float(v) for _, entry in shown for v in (entry.low, entry.high)]
    levels += [float(at.level) for _, entry in shown for at in entry.levels]
    return levels_axis(factor, str(shown[0][1].scale), levels)


def _shares(name: str, factor: str, criterion: str, shown: Sequence[Named], notes: Sequence[str]) -> Figure:
    levels = _axis_of(factor, shown)
    most = max((int(at.n) for _, entry in shown for at in entry.levels), default=1)
    share = 100 * float(shown[0][1].share)
    draft = Draft(notes=list(notes))
    labels = []
    for nth, (label, entry) in enumerate(shown):
        draft.series += _fit(label, nth, entry, levels)
        draft.series += _measured(label, nth, len(shown), entry, levels, most)
        if (point := _point(label, nth, entry, levels, share)) is not None:
            draft.series.append(point)
            value = entry.value or 0
            labels.append(Label(level_text(value), levels.at(value), share, nth, nth % 2 == 1))
        draft.notes += said(label if len(shown) > 1 else "", entry.words)
    known = [at for _, entry in shown for at in entry.levels if at.n]
    if any(at.n < MIN_TRIALS for at in known):
        draft.notes.append(f"Levels with fewer than {MIN_TRIALS} trials are drawn without an interval.")
    keys = [Key("share of the trials at a level; larger marks stand for more trials", None, sign="full")]
    if any(s.shape == "whiskers" and not s.across for s in draft.series):
        known_levels = [entry.confidence for _, entry in shown if entry.confidence is not None]
        keys.append(Key(f"its {interval_of(known_levels)} (Wilson)", None, sign="whisker"))
    if any(s.shape == "band" for s in draft.series):
        keys += [Key("fitted curve", "solid", "thick"), Key("its interval", None, sign="band")]
    if labels:
        keys.append(Key("breaking point, with its interval", None, sign="ring"))
    trials = sum(int(entry.trials) for _, entry in shown)
    return Figure(
        name=name,
        title=f"{'Breaking points' if len(shown) > 1 else 'Breaking point'} over {factor}",
        subtitle=f"{criterion}: {trials} trials",
        x=levels.axis,
        y=share_axis("criterion met"),
        series=tuple(draft.series),
        groups=tuple((nth, label) for nth, (label, _) in enumerate(shown)),
        keys=tuple(keys),
        references=(Reference(f"{share:g} % wanted", share),),
        notes=tuple(dict.fromkeys(draft.notes)),
        labels=tuple(labels),
    )


def _fit(label: str, nth: int, entry: BreakingPoint, levels: Levels) -> list[Series]:
    fit = entry.fit
    if not fit:
        return []
    x = tuple(levels.at(level) for level in fit.level)
    middle, low, high = (tuple(100 * v for v in values) for values in (fit.share, fit.low, fit.high))
    return [
        Series(f"{label}, interval of the fit", nth, "band", x, middle, low=low, high=high),
        Series(f"{label}, fit", nth, "line", x, middle, weight="thick"),
    ]


def _measured(label: str, nth: int, of: int, entry: BreakingPoint, levels: Levels, most: int) -> list[Series]:
    series = []
    for bare in (False, True):
        chosen = [at for at in entry.levels if at.n and (at.n < MIN_TRIALS) is bare]
        if not chosen:
            continue
        sizes = tuple(_SMALLEST + (_LARGEST - _SMALLEST) * (at.n / most) ** 0.5 for at in chosen)
        rows = [
            (
                levels.at(at.level, nth, of),
                100 * at.met / at.n,
                (None, None) if bare else ends_of(percent, at.low, at.high),
                f"{label}<br>at {level_text(at.level)}: {at.met} of {at.n} trials met it",
            )
            for at in chosen
        ]
        drawn = whiskers(label, nth, rows, weight="thin", sign="full", sizes=sizes)
        series.append(replace(drawn, shape="points", low=(), high=()) if bare else drawn)
    return series


def _point(label: str, nth: int, entry: BreakingPoint, levels: Levels, share: float) -> Series | None:
    if entry.value is None:
        return None
    low, high = (None, None) if entry.interval is None else (entry.interval.low, entry.interval.high)
    text = level_text(entry.value)
    if low is not None and high is not None:
        text += f" [{level_text(low)}, {level_text(high)}]"
    ends = ends_of(levels.at, low, high)
    row = (levels.at(entry.value), share, ends, f"{label}<br>breaking point {text}")
    return whiskers(f"{label}, breaking point", nth, [row], sign="ring", weight="thick", across=True)


def _course(name: str, factor: str, group: int, label: str, entry: BreakingPoint, whose: str) -> Figure:
    """The level of each trial, in their order: what the search asked, and what it was told."""
    levels = _axis_of(factor, [(label, entry)])
    course = sorted(entry.course, key=lambda step: int(step.order))
    last = max((int(step.order) for step in course), default=1)
    series = _found(label, group, entry, levels, last)
    places = [(float(step.order), levels.at(step.level)) for step in course]
    series.append(Series(label, group, "line", tuple(x for x, _ in places), tuple(y for _, y in places), weight="thin"))
    for met, sign, word in _OUTCOMES:
        chosen = [
            (
                float(step.order),
                levels.at(step.level),
                f"{label}<br>trial {step.order} at {level_text(step.level)}: {word}",
            )
            for step in course
            if step.met is met
        ]
        if chosen:
            series.append(points(f"{label}, {word}", group, chosen, sign=sign))
    signs = {s.sign for s in series}
    keys = [Key(word, None, sign=sign) for _, sign, word in _OUTCOMES if sign in signs]
    if any(s.stroke == "dashed" for s in series):
        keys.append(Key("breaking point", "dashed", "normal"))
    if any(s.shape == "band" for s in series):
        keys.append(Key("its interval", None, sign="band"))
    stopped = str(entry.stopped)
    high = last + 0.5 + 0.02 * last
    return Figure(
        name=name,
        title=f"Course of the search over {factor}{f': {whose}' if whose else ''}",
        subtitle=f"{len(course)} trials between {level_text(entry.low)} and {level_text(entry.high)}",
        x=Axis("trial", "linear", 0.0, high, axes.linear_ticks(0.0, high, 8)),
        y=levels.axis,
        series=tuple(series),
        groups=((group, label),),
        keys=tuple(keys),
        notes=tuple(said("", [f"{stopped[:1].upper()}{stopped[1:]}"])),
    )


_OUTCOMES: tuple[tuple[bool | None, Sign, str], ...] = (
    (True, "full", "met the criterion"),
    (False, "hollow", "did not meet it"),
    (None, "cross", "invalid, says nothing"),
)


def _found(label: str, nth: int, entry: BreakingPoint, levels: Levels, last: int) -> list[Series]:
    """The breaking point across the course, with its interval."""
    if entry.value is None:
        return []
    x = (0.0, last + 0.5)
    line = Series(f"{label}, breaking point", nth, "line", x, (levels.at(entry.value),) * 2, stroke="dashed")
    if entry.interval is None:
        return [line]
    low, high = ((levels.at(end),) * 2 for end in (entry.interval.low, entry.interval.high))
    return [Series(f"{label}, interval", nth, "band", x, line.y, low=low, high=high), line]
