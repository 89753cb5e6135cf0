"""Small multiples: a picture of many results as one small picture for each, beside its reference.

All of them have the axes of the whole picture, and lines have their names beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.report.figures import Figure, Label, Series
from perflab.report.results import Trials

HEIGHT_PX = 230
FIRST_HEIGHT_PX = 165  # number on the first screen of a report
BESIDE = 0.18  # half height of a row
REFERENCE, RESULT = 0, 1  # the groups, and so the colours, in each of them


@dataclass(frozen=True)
class Against:
    """The reference of a result with this `group`; names are as short as possible."""

    group: int
    name: str
    reference: int
    reference_name: str


def against(results: Sequence[Trials]) -> tuple[Against, ...]:
    """Each result with its baseline; a baseline, and a result without one, with the first baseline of its run. Results
    of one baseline are together."""
    found = []
    for group, result in enumerate(results):
        own = [i for i, other in enumerate(results) if other.run is result.run]
        first = next((i for i in own if not results[i].trials[0].is_disturbed), own[0])
        reference = next((i for i in own if _is_baseline(results[i], result)), first)
        if reference != group:
            alike = results[reference].trials[0].place == result.trials[0].place
            names = [r.trials[0].label if alike else r.label for r in (result, results[reference])]
            found.append(Against(group, names[0], reference, names[1]))
    return tuple(sorted(found, key=lambda pair: pair.reference))


def _is_baseline(other: Trials, result: Trials) -> bool:
    one, its = other.trials[0], result.trials[0]
    alike = one.place == its.place and one.is_regular == its.is_regular
    return alike and its.is_disturbed and not one.is_disturbed


def apart(figure: Figure, pairs: Sequence[Against]) -> list[Figure]:
    """A small picture for each pair of which both are drawn; none if that would not cover all results of the picture,
    or if only one is drawn. The groups of the figure are results."""
    drawn = {group for group, _ in figure.groups}
    shown = [pair for pair in pairs if {pair.group, pair.reference} <= drawn]
    if drawn - {group for pair in shown for group in (pair.group, pair.reference)} or figure.spans or figure.cells:
        return []
    return [_of(figure, pair) for pair in shown]


@dataclass(frozen=True)
class Panel:
    """A small picture of the series `first` to before `end` of a picture."""

    title: str
    subtitle: str
    first: int
    end: int


def panelled(figure: Figure, panels: Sequence[Panel]) -> Figure:
    """A picture as small ones with some of its series each, with one legend; a single one stays as it is."""
    if len(panels) < 2:
        return figure
    made = [
        replace(
            figure, name=f"{figure.name}_{i}", title=panel.title, subtitle=panel.subtitle,
            series=figure.series[panel.first : panel.end], groups=(), keys=(), notes=(), height=HEIGHT_PX,
        )
        for i, panel in enumerate(panels)
    ]  # fmt: skip
    return replace(figure, series=(), panels=tuple(made))


def small(figure: Figure) -> Figure:
    """A picture of the same small size, with the names of several groups at the ends of their lines."""
    named = [(group, name, _end([s for s in figure.series if s.group == group])) for group, name in figure.groups]
    ends = tuple(Label(name, *end, group) for group, name, end in named if end is not None and len(named) > 1)
    return replace(
        figure, name=f"{figure.name}_first", groups=(), keys=(), notes=(), labels=(*figure.labels, *ends),
        height=FIRST_HEIGHT_PX,
    )  # fmt: skip


def _of(figure: Figure, pair: Against) -> Figure:
    groups = {pair.reference: REFERENCE, pair.group: RESULT}
    in_rows = figure.y.scale == "rows"
    series = tuple(replace(s, group=groups[s.group]) for s in figure.series if s.group in groups)
    if in_rows:
        series = tuple(replace(s, y=tuple(_in_row(y, s.group) for y in s.y)) for s in series)
    ends = {group: _end([s for s in series if s.group == group]) for group in (REFERENCE, RESULT)}
    names = {REFERENCE: pair.reference_name, RESULT: pair.name}
    down = -1.0 if in_rows else 1.0  # rows count from the top
    lower = min((group for group in ends if ends[group]), key=lambda g: down * (ends[g] or (0, 0))[1], default=None)
    labels = tuple(
        Label(names[group], *end, group, below=group == lower) for group, end in ends.items() if end is not None
    )
    full = dict(figure.groups)[pair.group]
    return replace(
        figure,
        name=f"{figure.name}_{pair.group}",
        title=full,
        subtitle=f"against {pair.reference_name}",
        series=series, groups=(), keys=(), notes=(), labels=labels, height=HEIGHT_PX, lanes=2 if in_rows else None,
    )  # fmt: skip


def _in_row(y: float | None, group: int) -> float | None:
    """Within its row the reference is above, the result below."""
    return None if y is None else round(y) + (BESIDE if group == RESULT else -BESIDE)


def _end(series: Sequence[Series]) -> tuple[float, float] | None:
    """The end of a result's most important line: the first thick one, or else the first; for rows, the range in the
    first one."""
    lines = sorted((s for s in series if s.shape in ("line", "ranges")), key=lambda s: s.weight != "thick")
    for line in lines:
        known = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x is not None and y is not None]
        if known:
            return known[-1] if line.shape == "line" else known[1]
    return None
