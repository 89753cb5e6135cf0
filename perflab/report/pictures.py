"""Every kind of picture, declared once: its name, its data, and why it may be missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from perflab.report import (
    course,
    cpus,
    distributions,
    executor_costs,
    histograms,
    levels,
    loops,
    outcomes,
    resources,
    stretch_lanes,
    timelines,
)
from perflab.report.against_target import against_target
from perflab.report.captions import words
from perflab.report.figures import Figure, Target
from perflab.report.multiples import Against, against, apart
from perflab.report.per_trial import per_trial
from perflab.report.results import (
    FIGURES,
    ROUND_TRIP,
    Trials,
    as_in_summary,
    by_level,
    drawn_times,
    evenly,
    folder_of,
    histogram,
    numbers,
    own_times,
    results_of,
    was_measured,
)
from perflab.results.run import PERFLAB, RunData
from perflab.results.trial import EXTRA
from perflab.runs import traced
from perflab.statistics import histogram as hg
from perflab.statistics.metrics import METRICS
from perflab.units import plural
from perflab.workload import rounds

T = TypeVar("T")

MAX_RESULTS = 12  # in one picture; more are indistinguishable
PER_TRIAL = ("p50", "p99")
MAX_STRETCHES = 4  # in which trials made no progress, the longest ones
COSTS = ("cpu_per_message", "rss_kb")


@dataclass(frozen=True)
class Subject:
    """The data of pictures. `shown` are at most MAX_RESULTS of the `results`, `measured` the figures to draw.

    `together`: percentiles show all figures in one picture, not each in its own.
    """

    results: Sequence[Trials]
    shown: Sequence[Trials]
    measured: Sequence[str]
    runs: Sequence[RunData]
    target: Target | None
    together: bool
    everything: Sequence[Trials]  # with the results of extra trials
    own: Sequence[str] = ()  # times that belong to no message, and are to draw

    @property
    def of_messages(self) -> list[str]:
        """The figures that edges, publishers and services have."""
        return [name for name in self.measured if name in FIGURES]

    @cached_property
    def own_times(self) -> Mapping[str, str]:
        """All of them, with their kinds."""
        return own_times(self.results)

    @cached_property
    def watch(self) -> cpus.Watch:
        return cpus.watch(self.results)


@dataclass(frozen=True)
class Kind:
    """One kind of picture. `draw` makes its figures; a text instead of one is the reason why there is none.

    Those `of_figures` are drawn for each measured figure. Most runs lack a `special` one, because it needs an option:
    the reason is shown only if it was named. `in_report`: a report has it. `of_results`: each result is a group over
    the same axes, and so may have its own small picture beside its baseline.
    """

    name: str
    title: str
    draw: Callable[[Subject], Iterable[Figure | str]]
    of_figures: bool = False
    special: bool = False
    in_report: bool = True
    of_results: bool = False


@dataclass(frozen=True)
class Missing:
    """Why a kind has no picture, or not all possible ones."""

    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(frozen=True)
class Pictures:
    """The figures of runs with their kinds, why others could not be made, and notes on all of them."""

    drawn: tuple[tuple[str, Figure], ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...] = ()
    against: tuple[Against, ...] = ()  # the reference of each result

    def apart(self, kind: str, figure: Figure) -> list[Figure]:
        """The small pictures that replace one of these; none if it stays whole."""
        if figure.panels:
            return list(figure.panels)
        return apart(figure, self.against) if BY_NAME[kind].of_results else []

    @property
    def every(self) -> list[Figure]:
        """Small ones instead of those that they replace."""
        return [part for kind, figure in self.drawn for part in self.apart(kind, figure) or [figure]]

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for _, figure in self.drawn)


# -- the kinds -------------------------------------------------------------------------------------------------------

_UNWATCHED = "no trial was watched by perflab-monitor; run with --observer monitor"


def _per_trial(subject: Subject) -> Iterator[Figure | str]:
    # A search has a trial or two at each of many levels.
    results = [r for r in subject.results if not r.run.summary.breaking_points]
    for name in subject.measured:
        for statistic in PER_TRIAL:
            yield per_trial(results, f"{name}.{statistic}") or "no result has several trials that count"


def _costs(subject: Subject) -> Iterator[Figure | str]:
    results = [r for r in subject.results if not r.run.summary.breaking_points]
    for name in COSTS:
        yield per_trial(results, name) or f"no result has several trials with {METRICS[name].words}"


def _percentiles(subject: Subject) -> Iterator[Figure | str]:
    for names in [tuple(subject.measured)] if subject.together else [(name,) for name in subject.measured]:
        yield distributions.percentiles(subject.shown, names) or _no_histograms(subject.shown)


def _outcomes(subject: Subject) -> list[Figure | str]:
    return [outcomes.outcomes(subject.runs) or "the workload has no outcomes of its own"]


def _loops(subject: Subject) -> Iterator[Figure | str]:
    having = [name for name in subject.own if name in rounds.TIMES]
    for name in having:
        yield loops.over_loops(subject.results, name, subject.own_times) or f"no loops have a {words(name)}"
    if not having:
        yield "no times of loops were measured; use `--measure loops`"


def _histograms(subject: Subject) -> list[Figure | str]:
    made = histograms.histograms(subject.shown, subject.own, subject.own_times) if subject.own else None
    if made is None:
        return [_no_histograms(subject.shown)]
    shown, there = len(subject.shown), len(subject.results)
    note = f"{shown} of {there} results are drawn; `perflab plot --only` draws others."
    return [replace(made, notes=(*((note,) if shown < there else ()), *made.notes))]


def _edges(subject: Subject) -> Iterator[Figure | str]:
    for name in subject.of_messages:
        yield distributions.edges(subject.shown, name) or f"no {words(name)} was measured"


def _time(subject: Subject) -> Iterator[Figure | str]:
    for name in subject.of_messages:
        if name == ROUND_TRIP:
            yield "round trips have no picture over time"
        else:
            yield timelines.time(subject.shown, name) or _no_histograms(subject.shown, "records over time")


def _curves(subject: Subject) -> Iterable[Figure | str]:
    found = levels.curves(_named((run.name, run.summary.curves) for run in subject.runs))
    return found or ["no factor was swept in these runs; use `perflab sweep`"]


def _breaking_points(subject: Subject) -> Iterable[Figure | str]:
    found = levels.breaking_points(_named((run.name, run.summary.breaking_points) for run in subject.runs))
    return found or ["no breaking point was searched in these runs; use `perflab breaking-point`"]


def _executor_costs(subject: Subject) -> Iterable[Figure | str]:
    drawn = [(figure, run.name) for run in subject.runs if (figure := executor_costs.figure(run.summary)) is not None]
    if len(drawn) > 1:
        drawn = [(replace(f, name=f"{f.name}_{run}", title=f"{f.title}: {run}"), run) for f, run in drawn]
    found = [figure for figure, _ in drawn]
    return found or ["these runs lack several executors with measured CPU time"]


def _course(subject: Subject) -> list[Figure | str]:
    return [course.course(subject.everything) or "fewer than two trials recorded when they ran"]


def _cpu(subject: Subject) -> list[Figure | str]:
    return [resources.cpu(subject.shown, subject.target) or "no CPU time was sampled"]


def _rss(subject: Subject) -> list[Figure | str]:
    return [resources.rss(subject.shown, subject.target) or "no memory was sampled"]


def _target(subject: Subject) -> list[Figure | str]:
    if subject.target is None:
        return ["no target was named; use --target"]
    return [
        against_target(subject.results, subject.target) or f"nothing that {subject.target.name} bounds was measured"
    ]


def _stretch(subject: Subject) -> list[Figure | str]:
    """For each result the trial with the longest time without progress; for many results the worst."""
    found: list[tuple[int, Figure]] = []
    for result in subject.everything:
        kept = [(trial, folder) for trial in result.trials if (folder := folder_of(result, trial.number)) is not None]
        told = [(trial.number, of) for trial, folder in kept if (of := traced.stretch(folder)) is not None]
        if told:
            number, of = max(told, key=lambda one: stretch_lanes.length_ns(one[1]))
            drawn = stretch_lanes.lanes(
                f"stretch_{len(found) + 1}", f"{result.label}, trial {number}: who ran when", of
            )
            if drawn is not None:
                found.append((stretch_lanes.length_ns(of), drawn))
    longest = sorted(found, key=lambda one: -one[0])[:MAX_STRETCHES]
    if len(longest) > 1:
        longest = [(ns, replace(f, name=f"{f.name}_{number}")) for number, (ns, f) in enumerate(longest, start=1)]
    return [figure for _, figure in longest] or ["no traced trial had a starved thread"]


KINDS = (
    Kind("course", "The run", _course, special=True),
    Kind("outcomes", "Outcomes", _outcomes, special=True),
    Kind("loops", "Over the loops", _loops, special=True),
    Kind("histograms", "Times on one axis", _histograms, special=True),
    Kind("distributions", "Distributions", _per_trial, of_figures=True, special=True),
    Kind("costs", "CPU per message and memory", _costs, special=True),
    Kind("percentiles", "Percentiles", _percentiles, of_figures=True, of_results=True),
    Kind("edges", "Edges", _edges, of_figures=True, in_report=False, of_results=True),
    Kind("time", "Over time", _time, of_figures=True, of_results=True),
    Kind("curves", "Curves", _curves, special=True),
    Kind("breaking_points", "Breaking points", _breaking_points, special=True),
    Kind("executor_costs", "Executor costs", _executor_costs, special=True),
    Kind("target", "Against a target", _target, special=True, in_report=False),
    Kind("cores", "CPUs", lambda subject: [cpus.cores(subject.watch) or _UNWATCHED], special=True),
    Kind("affinity", "Where threads ran", lambda subject: [cpus.affinity(subject.watch) or _UNWATCHED], special=True),
    Kind("stretch", "When threads starved", _stretch, special=True),
    Kind("cpu", "CPU use", _cpu, of_results=True),
    Kind("rss", "Memory", _rss, of_results=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}


# -- drawing them ----------------------------------------------------------------------------------------------------


def of_report(runs: Sequence[RunData]) -> Pictures:
    """The pictures of a report: everything that runs have, in reading order.

    Raises BadInput if files of a run are damaged.
    """
    results = as_in_summary(results_of(runs))
    measured = [name for name in ("latency", ROUND_TRIP) if any(was_measured(result, name) for result in results)]
    # With too many levels of a factor, evenly spaced ones including the first and the last.
    ordered = by_level(results) if len(results) > MAX_RESULTS else None
    return build(
        results,
        [kind.name for kind in KINDS if kind.in_report],
        measured,
        together=False,
        runs=runs,
        chosen=None if ordered is None else evenly(ordered, MAX_RESULTS),
        others="`perflab plot --only` draws others",
        own=drawn_times(results),
    )


def of_watched(runs: Sequence[RunData]) -> Pictures:
    """Results of extra trials, which an observer disturbed, are separate if there are others.

    Raises BadInput if files of a run are damaged.
    """
    results = as_in_summary(results_of(runs))
    extra = [result for result in results if result.trials[0].purpose == EXTRA]
    if not extra or len(extra) == len(results):
        return Pictures((), ())
    made = build(extra, ["percentiles", "time"], ["latency"], together=False)
    drawn = [(kind, replace(f, name=f"{f.name}_extra", title=f"{f.title}, extra trials")) for kind, f in made.drawn]
    return replace(made, drawn=tuple(drawn))


def build(
    results: Sequence[Trials],
    kinds: Sequence[str],
    measured: Sequence[str],
    target: Target | None = None,
    *,
    together: bool = True,
    runs: Sequence[RunData] | None = None,
    chosen: Sequence[Trials] | None = None,
    others: str = "choose others with --only",
    own: Sequence[str] = (),
) -> Pictures:
    """The pictures of `kinds`, with at most MAX_RESULTS results; those with a row for each have rows for more.

    `chosen` are the results to draw if there are too many; None: evenly from the fastest to the slowest. The slowest
    one is always included. Results of extra trials, which an observer disturbed, are drawn only if there are no others.

    Curves and breaking points are those of `runs`; None: of the runs of the results. `others` says how to see results
    that are not drawn. `own` are times that belong to no message: over the loops, and on one axis.
    """
    kept = [result for result in results if result.trials[0].purpose != EXTRA] or list(results)
    shown = _shown(kept, measured[0] if measured else None, chosen)
    several = list({id(result.run): result.run for result in kept}.values()) if runs is None else runs
    subject = Subject(kept, shown, measured, several, target, together, results, own)
    notes = []
    if len(shown) < len(kept) and not all(BY_NAME[name].special for name in kinds):  # these have their own note
        figure = f"p99 of {words(measured[0])}" if measured else "order"
        over = "levels" if chosen is not None else figure
        slowest = ", including the slowest" if measured else ""
        notes.append(f"{len(shown)} of {len(kept)} results are drawn, evenly over their {over}{slowest}; {others}.")
    if extra := len(results) - len(kept):
        count = plural(extra, "result")
        notes.append(f"{count} of extra trials not drawn: an observer (tracing, a profiler) disturbed them.")
    drawn: list[tuple[str, Figure]] = []
    missing: dict[Missing, None] = {}
    for kind in (BY_NAME[name] for name in kinds):
        made = kind.draw(subject)
        if kind.of_figures and not measured:
            made = ["neither latency nor round trips were measured"]
        for found in made:
            if isinstance(found, str):
                missing[Missing(kind.name, found)] = None
            else:
                picture = found if kind.special else replace(found, notes=(*notes, *found.notes))
                drawn.append((kind.name, picture))
    return Pictures(tuple(drawn), tuple(missing), tuple(notes), against(shown))


def _shown(results: Sequence[Trials], name: str | None, chosen: Sequence[Trials] | None) -> list[Trials]:
    """At most MAX_RESULTS results in their order, including the slowest by the p99 of a figure.

    It replaces its neighbour among the `chosen` ones.
    """
    if len(results) <= MAX_RESULTS and chosen is None:
        return list(results)
    places = {id(result): place for place, result in enumerate(results)}
    by_p99 = sorted(results, key=lambda result: _p99(result, name))
    if chosen is None:
        return sorted(evenly(by_p99, MAX_RESULTS), key=lambda result: places[id(result)])
    kept = [result for result in chosen if id(result) in places]
    slowest = by_p99[-1]
    if name is None or not kept or len(kept) >= len(results) or any(result is slowest for result in kept):
        return kept
    nearest = min(kept, key=lambda result: abs(places[id(result)] - places[id(slowest)]))
    return [slowest if result is nearest else result for result in kept]


def _named(found: Iterable[tuple[str, Sequence[T]]]) -> list[tuple[str, T]]:
    """Each with the name of its run, if several runs have some."""
    having = [(name, entries) for name, entries in found if entries]
    return [(name if len(having) > 1 else "", entry) for name, entries in having for entry in entries]


def _p99(result: Trials, name: str | None) -> float:
    """Without records, the lowest."""
    if name is None:
        return 0.0
    if (merged := histogram(result.trials, name)) is not None:
        value = hg.value_at_percentile(merged, 99.0)
        return math.inf if value is None else float(value)
    # Without histograms, the slowest edge is used.
    return max((n.maximum or 0.0 for n in numbers(result.trials, name).values()), default=-math.inf)


def _no_histograms(results: Sequence[Trials], what: str = "histograms") -> str:
    if results and all(r.run.origin != PERFLAB for r in results):
        return f"{' and '.join(dict.fromkeys(r.run.program for r in results))} leaves no {what}"
    return f"there are no {what} of it in these runs"
