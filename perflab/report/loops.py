"""The picture of a time of loops over their number: disturbed beside undisturbed, a small picture for each variant and
level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perflab.formats import loops
from perflab.report import axes
from perflab.report.captions import durations, left_out, title_of, words, workloads
from perflab.report.figures import AT_BOTTOM, Axis, Figure, Key, Plot, times
from perflab.report.label import labels
from perflab.report.multiples import Panel, panelled
from perflab.report.results import Trials, evenly
from perflab.results.run import TrialTables
from perflab.results.trial import BASELINE, MEASURED
from perflab.units import format_count, format_time, plural
from perflab.workload import rounds

_Of = tuple[int, tuple[object, ...]]  # a run, and the place of a result in it

MAX_PANELS = 12
MAX_TRIALS = 3  # of a result
MAX_POINTS = 24_000  # of the picture
MIN_POINTS, MOST_POINTS = 60, 400  # of a line


@dataclass(frozen=True)
class _Line:
    """The loops of a timer in a trial: (loop, ns) of those that have the time, and the numbers of those that do not."""

    trial: TrialTables
    values: Sequence[rounds.Timed]
    missing: Sequence[int]
    last: int

    @property
    def most(self) -> int:
        return max((timed.value_ns for timed in self.values), default=0)


def over_loops(results: Sequence[Trials], name: str, own: Mapping[str, str]) -> Figure | None:
    """None if no loops were measured, or they do not have this time."""
    if name not in rounds.TIMES:
        return None
    lines = {id(result): found for result in results if (found := _lines(result, name))}
    having = [result for result in results if id(result) in lines]
    if not having:
        return None
    places = list(dict.fromkeys((id(result.run), result.trials[0].place) for result in having))
    shown = evenly(places, MAX_PANELS)
    kinds = list(dict.fromkeys(result.trials[0].label for result in having))
    plot = Plot(_numbers, times(words(name)))
    count = sum(len(lines[id(result)]) for result in having)
    points = min(max(MAX_POINTS // count, MIN_POINTS), MOST_POINTS)
    panels, titles = [], _titles(having, places)
    for place in shown:
        first = len(plot.series)
        here = [r for r in having if (id(r.run), r.trials[0].place) == place]
        for result in here:
            group = kinds.index(result.trials[0].label)
            worst = max(lines[id(result)], key=lambda line: line.most)
            for line in lines[id(result)]:
                _draw(plot, result.label, group, line, points, worst=line is worst)
        subtitle = _without([(result.trials[0].label, lines[id(result)]) for result in here])
        panels.append(Panel(titles[place], subtitle, first, len(plot.series)))
    stretch = _stretch(max(line.last for found in lines.values() for line in found), points)
    if stretch > 1:
        plot.notes.append(f"A point is the maximum of {stretch} loops.")
    if any(len(result.trials) > MAX_TRIALS for result in having):
        plot.notes.append(
            f"At most {MAX_TRIALS} trials of a result are drawn, including the one with the largest value of all."
        )
    if len(shown) < len(places):
        plot.notes.append(f"{len(shown)} of {len(places)} are drawn; choose others with --only.")
    plot.notes += left_out(having)
    figure = plot.figure(
        f"{name}_loops",
        f"{title_of(name, own)}: over the loops",
        f"{workloads(having)}: {durations(having)}",
        list(enumerate(kinds)),
        [
            Key("the trial with the largest value", "solid", "normal"),
            Key("other trials", "solid", "thin"),
            Key("loops without it: a message was lost, or late", None, sign="lost"),
        ],
    )  # fmt: skip
    return panelled(figure, panels)


def _titles(results: Sequence[Trials], places: Sequence[_Of]) -> dict[_Of, str]:
    """The label of each place: what places differ in."""
    of = {(id(result.run), result.trials[0].place): result for result in reversed(results)}
    alike = [
        replace(of[place].trials[0], conditions=(), treatment=BASELINE, observers=(), purpose=MEASURED)
        for place in places
    ]
    return dict(zip(places, labels(alike, [of[place].run.name for place in places]), strict=True))


def _lines(result: Trials, name: str) -> list[_Line]:
    """The drawn trials: some, including the one with the largest value."""
    found = [line for trial in result.trials for line in _of_trial(trial, name)]
    if len(found) <= MAX_TRIALS:
        return found
    worst = max(found, key=lambda line: line.most)
    return [*evenly([line for line in found if line is not worst], MAX_TRIALS - 1), worst]


def _of_trial(trial: TrialTables, name: str) -> list[_Line]:
    if trial.loops is None:
        return []
    made = []
    for timer in loops.of_table(trial.loops):
        values = rounds.over_loops(timer, name)
        known = {timed.loop for timed in values}
        # The first loop has no interval, and a loop that was not due does not count: neither is missing.
        due = [row.loop for row in timer.rows if row.due_ns is not None]
        missing = [loop for loop in due if loop not in known] if name in rounds.BETWEEN else []
        made.append(_Line(trial, values, missing, max((row.loop for row in timer.rows), default=0)))
    return [line for line in made if line.values or line.missing]


def _without(drawn: Sequence[tuple[str, Sequence[_Line]]]) -> str:
    """ "without it: baseline 0 %, inhibitor first 94 %": shares of the drawn loops."""
    if not any(line.missing for _, found in drawn for line in found):
        return ""
    shares = []
    for name, found in drawn:
        missing = sum(len(line.missing) for line in found)
        shares.append(f"{name} {100 * missing / (missing + sum(len(line.values) for line in found)):.2g} %")
    return f"without it: {', '.join(shares)}"


def _draw(plot: Plot, label: str, group: int, line: _Line, points: int, *, worst: bool) -> None:
    """The maximum of each stretch of loops; a stretch without values interrupts the line."""
    stretch = _stretch(line.last, points)
    most: dict[int, rounds.Timed] = {}
    for timed in line.values:
        place = timed.loop // stretch
        if place not in most or timed.value_ns > most[place].value_ns:
            most[place] = timed
    name = f"{label}, trial {line.trial.number}"
    x: list[float | None] = []
    y: list[float | None] = []
    hover = []
    start_ns = line.trial.started_ns
    for place in range(line.last // stretch + 1):
        found = most.get(place)
        x.append(None if found is None else float(found.loop))
        y.append(None if found is None else float(found.value_ns))
        at = (
            ""
            if found is None or start_ns is None
            else f", {format_time(max(0, found.at_ns - start_ns))} from the start"
        )
        hover.append("" if found is None else f"{name}<br>loop {found.loop}: {format_time(found.value_ns)}{at}")
    plot.line(name, group, x, y, hover=hover, weight="normal" if worst else "thin")
    # A line as short as a point is invisible, and in a stall only such lines remain.
    alone = [
        (float(found.loop), float(found.value_ns), hover[place])
        for place, found in sorted(most.items())
        if place - 1 not in most and place + 1 not in most
    ]
    plot.points(f"{name}, single loops", group, alone, sign="dot")
    lost: dict[int, int] = {}
    for loop in line.missing:
        lost[loop // stretch] = lost.get(loop // stretch, 0) + 1
    marks = [
        (float(place * stretch), AT_BOTTOM, f"{name}<br>{format_count(n)} of {plural(stretch, 'loop')} without it")
        for place, n in sorted(lost.items())
    ]
    plot.points(f"{name}, without it", group, marks, sign="lost", lane=group)


def _stretch(last: int, points: int) -> int:
    return max(1, -(-(last + 1) // points))


def _numbers(values: Sequence[float]) -> tuple[Axis, type[float]]:
    high = max([*values, 1.0]) * 1.01
    return Axis("loop", "linear", 0.0, high, axes.linear_ticks(0.0, high, 6)), float
