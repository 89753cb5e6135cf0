"""Which pictures can be made of runs, and why the others cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from perflab.report import executor_costs
from perflab.report.captions import words
from perflab.report.cpus import affinity, cores
from perflab.report.degradation import curves
from perflab.report.distributions import edges, percentiles
from perflab.report.figures import Figure, Target
from perflab.report.per_trial import per_trial
from perflab.report.resources import cpu, rss
from perflab.report.results import ROUND_TRIP, Trials, evenly, histogram, numbers
from perflab.report.thresholds import breaking_points
from perflab.report.timelines import time
from perflab.results.run import PERFLAB, RunData
from perflab.results.trial import EXTRA
from perflab.statistics import histogram as hg

T = TypeVar("T")

MAX_RESULTS = 12  # in one picture; more cannot be told apart
OF_FIGURES = ("percentiles", "edges", "time", "distributions")  # the others do not depend on a figure
# What most runs do not have, because nobody asked for it: that is said where such a picture is named.
SPECIAL = ("distributions", "curves", "breaking_points", "executor_costs", "cores", "affinity")
PER_TRIAL = ("p50", "p99")


@dataclass(frozen=True)
class Pictures:
    """The figures that could be made of runs, one line for each that could not, and what to know of all of them."""

    figures: tuple[Figure, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


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
) -> Pictures:
    """The pictures of `kinds`, of at most MAX_RESULTS results; those with a row for each have rows for more.

    `chosen` are the results that are drawn where there are too many; None: evenly from the fastest to the slowest.
    The slowest one is always among them. Results of extra trials, which an observer disturbed, are drawn only where
    there are no others.

    Curves and breaking points are those of `runs`; None: of the runs of the results. `others` says how to see results
    that are not drawn.

    Percentiles show the figures `measured` together, or each by itself; edges and time always show one in each picture.
    """
    every, results = results, measured_ones(results)
    shown = _shown(results, measured[0] if measured else None, chosen)
    made: list[tuple[Figure | None, str]] = []  # each with what to say where it is None
    several = list({id(result.run): result.run for result in results}.values()) if runs is None else runs
    for kind in kinds:
        if kind == "distributions":
            made += _per_trial(results, measured)
        elif kind in ("curves", "breaking_points"):
            made += _of_sweeps(kind, several)
        elif kind == "executor_costs":
            made += _of_costs(several)
        elif kind == "cores":
            made.append((cores(results), f"cores: {_UNWATCHED}"))
        elif kind == "affinity":
            made.append((affinity(results), f"affinity: {_UNWATCHED}"))
        elif kind in OF_FIGURES:
            made += _of_figures(kind, shown, measured, together)
        elif kind == "cpu":
            made.append((cpu(shown, target), "cpu: no CPU time was sampled"))
        elif kind == "rss":
            made.append((rss(shown, target), "rss: no memory was sampled"))
        else:
            raise ValueError(f"no picture {kind!r}")
    figures = [figure for figure, _ in made if figure is not None]
    missing = dict.fromkeys(otherwise for figure, otherwise in made if figure is None)
    notes = _notes(every, results, shown, f"p99 of {words(measured[0])}" if measured else None, chosen, others)
    if notes:
        figures = [f if f.kind in SPECIAL else replace(f, notes=(*notes, *f.notes)) for f in figures]
    return Pictures(tuple(figures), tuple(missing), tuple(notes))


def _shown(results: Sequence[Trials], name: str | None, chosen: Sequence[Trials] | None) -> list[Trials]:
    if chosen is None:
        return from_fastest_to_slowest(results, name)
    kept = {id(result) for result in results}
    return with_slowest([result for result in chosen if id(result) in kept], results, name)


def _notes(
    every: Sequence[Trials],
    results: Sequence[Trials],
    shown: Sequence[Trials],
    figure: str | None,
    chosen: Sequence[Trials] | None,
    others: str,
) -> list[str]:
    """Which results are not drawn. `every`: those of extra trials, too."""
    notes = []
    if len(shown) < len(results):
        over = "their levels" if chosen is not None else f"their {figure}" if figure else "their order"
        slowest = ", the slowest among them" if figure else ""
        notes.append(f"{len(shown)} of {len(results)} results are drawn, evenly over {over}{slowest}; {others}.")
    if extra := len(every) - len(results):
        count = "1 result" if extra == 1 else f"{extra} results"
        notes.append(f"{count} of extra trials not drawn: an observer (tracing, a profiler) disturbed them.")
    return notes


_UNWATCHED = "no trial was watched by perflab-monitor; run with --observer monitor"
_NOT_ASKED = {
    "curves": "curves: no factor was swept in these runs; `perflab sweep` does it",
    "breaking_points": "breaking_points: none was searched in these runs; `perflab breaking-point` does it",
}


def _per_trial(results: Sequence[Trials], measured: Sequence[str]) -> list[tuple[Figure | None, str]]:
    # A search has a trial or two at each of many levels.
    results = [r for r in results if not r.run.summary.breaking_points]
    if not measured:
        return [(None, "distributions: neither latency nor round trips were measured")]
    return [
        (per_trial(results, f"{name}.{statistic}"), "distributions: no result has several trials that count")
        for name in measured
        for statistic in PER_TRIAL
    ]


def _of_sweeps(kind: str, runs: Sequence[RunData]) -> list[tuple[Figure | None, str]]:
    if kind == "curves":
        figures = curves(_named((run.name, run.summary.curves) for run in runs))
    else:
        figures = breaking_points(_named((run.name, run.summary.breaking_points) for run in runs))
    return [(figure, "") for figure in figures] or [(None, _NOT_ASKED[kind])]


def _named(found: Iterable[tuple[str, Sequence[T]]]) -> list[tuple[str, T]]:
    """Each with the name of its run, where several runs have some."""
    having = [(name, entries) for name, entries in found if entries]
    return [(name if len(having) > 1 else "", entry) for name, entries in having for entry in entries]


def _of_costs(runs: Sequence[RunData]) -> list[tuple[Figure | None, str]]:
    found = [executor_costs.figure(run.summary) for run in runs]
    named = [(figure, run.name) for figure, run in zip(found, runs, strict=True) if figure is not None]
    if len(named) > 1:
        named = [(replace(f, name=f"{f.name}_{run}", title=f"{f.title}: {run}"), run) for f, run in named]
    return [(figure, "") for figure, _ in named] or [
        (None, "executor_costs: these runs do not have several executors whose CPU time was measured")
    ]


def _of_figures(
    kind: str, results: Sequence[Trials], measured: Sequence[str], together: bool
) -> list[tuple[Figure | None, str]]:
    if not measured:
        return [(None, f"{kind}: neither latency nor round trips were measured")]
    if kind == "percentiles":
        sets = [tuple(measured)] if together else [(name,) for name in measured]
        return [(percentiles(results, names), f"percentiles: {_no_histograms(results)}") for names in sets]
    if kind == "edges":
        return [(edges(results, name), f"edges: no {words(name)} was measured") for name in measured]
    return [
        (None, "time: of round trips there is no picture over time")
        if name == ROUND_TRIP
        else (time(results, name), f"time: {_no_histograms(results, 'records over time')}")
        for name in measured
    ]


def measured_ones(results: Sequence[Trials]) -> list[Trials]:
    """Results without those of extra trials; these where there are no others."""
    kept = [result for result in results if result.trials[0].purpose != EXTRA]
    return kept or list(results)


def from_fastest_to_slowest(results: Sequence[Trials], name: str | None) -> list[Trials]:
    """At most MAX_RESULTS results in their order, which lie evenly between the lowest and the highest p99 of a figure,
    both among them."""
    if len(results) <= MAX_RESULTS:
        return list(results)
    order = sorted(range(len(results)), key=lambda i: _p99(results[i], name))
    kept = {id(result) for result in evenly([results[i] for i in order], MAX_RESULTS)}
    return [result for result in results if id(result) in kept]


def with_slowest(chosen: Sequence[Trials], results: Sequence[Trials], name: str | None) -> list[Trials]:
    """`chosen` with the slowest of all in place of the one that lies next to it, where it is not among them."""
    if name is None or not chosen or len(chosen) >= len(results):
        return list(chosen)
    places = {id(result): place for place, result in enumerate(results)}
    slowest = max(results, key=lambda result: _p99(result, name))
    if any(result is slowest for result in chosen):
        return list(chosen)
    nearest = min(chosen, key=lambda result: abs(places[id(result)] - places[id(slowest)]))
    return [slowest if result is nearest else result for result in chosen]


def _p99(result: Trials, name: str | None) -> float:
    """Where nothing of it was recorded, the lowest."""
    if name is None:
        return 0.0
    if (merged := histogram(result.trials, name)) is not None:
        value = hg.value_at_percentile(merged, 99.0)
        return math.inf if value is None else float(value)
    # Without histograms the slowest edge has to do.
    return max((n.maximum or 0.0 for n in numbers(result.trials, name).values()), default=-math.inf)


def _no_histograms(results: Sequence[Trials], what: str = "histograms") -> str:
    foreign = [r for r in results if r.run.origin != PERFLAB]
    if foreign and len(foreign) == len(results):
        return f"irobot_benchmark leaves no {what}"
    return f"there are no {what} of it in these runs"
