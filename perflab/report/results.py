"""The data of pictures: the results of runs, each with the trials that count, and their merged histograms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perflab.errors import BadInput
from perflab.formats import checkpoints
from perflab.formats.checkpoints import Interval
from perflab.formats.records import RecordError
from perflab.formats.tables import histogram_of, histograms_of
from perflab.report.label import labels
from perflab.results.figure import OwnTimes
from perflab.results.run import UNKNOWN, RunData, TrialTables
from perflab.results.trial import Result
from perflab.runs import rundir
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import EDGE_HISTOGRAMS, PUBLISHER_HISTOGRAMS
from perflab.statistics.histogram import Histogram
from perflab.statistics.metrics import OBSERVED
from perflab.units import level_value
from perflab.workload import rounds

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

ROUND_TRIP = "round_trip"  # of services
FIGURES = (*EDGE_HISTOGRAMS[:2], *PUBLISHER_HISTOGRAMS, *EDGE_HISTOGRAMS[2:], ROUND_TRIP)


@dataclass(frozen=True)
class Trials:
    """Trials of one run under the same circumstances.

    `trials` are the measured ones, including those that missed a criterion of success; if there is none, all with
    records. `left_out` are the others.
    """

    label: str
    run: RunData
    trials: tuple[TrialTables, ...]
    left_out: tuple[TrialTables, ...] = ()

    @property
    def workload(self) -> str:
        return self.trials[0].workload


@dataclass(frozen=True)
class Numbers:
    """The known values of one edge, publisher or total in nanoseconds; without a histogram p50 and p99 are None."""

    count: int | None
    minimum: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    maximum: float | None


def results_of(runs: Sequence[RunData]) -> list[Trials]:
    """The results of runs, in order, named by what they differ in. Trials without data are left out."""
    groups: list[tuple[RunData, list[TrialTables]]] = []
    for run in runs:
        found: dict[tuple[object, ...], list[TrialTables]] = {}
        for trial in run.trials:
            found.setdefault(trial.circumstances, []).append(trial)
        groups += [(run, trials) for trials in found.values() if any(map(_has_data, trials))]
    names = labels([trials[0] for _, trials in groups], [run.name for run, _ in groups]) if groups else []
    if names == [UNKNOWN]:
        names = [groups[0][0].name]
    return [_result(name, run, trials) for name, (run, trials) in zip(names, groups, strict=True)]


def folder_of(result: Trials, number: int) -> Path | None:
    """The folder of a trial; None if it no longer exists."""
    return next(iter(sorted((result.run.path / rundir.TRIALS).glob(f"{number:04d}_*"))), None)


def by_level(results: Sequence[Trials]) -> list[Trials] | None:
    """Results of one factor with numeric levels, in the order of these, variant by variant; None for others.

    A result without the factor comes before the others.
    """
    factors = {path for result in results for path in result.trials[0].factors}
    if len(factors) != 1:
        return None
    (factor,) = factors
    levels = [level_value(result.trials[0].factors.get(factor)) for result in results]
    if not all(level is None or isinstance(level, float) for level in levels):
        return None

    def variant(result: Trials) -> tuple[object, ...]:
        return id(result.run), *result.trials[0].variant

    variants = list(dict.fromkeys(map(variant, results)))
    places = [
        (variants.index(variant(result)), level if isinstance(level, float) else -math.inf)
        for result, level in zip(results, levels, strict=True)
    ]
    return [results[i] for i in sorted(range(len(results)), key=places.__getitem__)]


def evenly(found: Sequence[T], count: int) -> list[T]:
    """At most this many in order, two or more, including the first and the last."""
    if len(found) <= count:
        return list(found)
    return [found[round(i * (len(found) - 1) / (count - 1))] for i in range(count)]


def histogram(trials: Iterable[TrialTables], figure: str) -> Histogram | None:
    """A figure merged over all edges (publishers, services) of trials; None if it has no values."""
    return merged(h for t in trials for h in histograms(t, figure).values())


def merged(histograms: Iterable[Histogram | None]) -> Histogram | None:
    """All values of all histograms; None if there are none."""
    parts = [h for h in histograms if h is not None]
    whole = hg.merge(parts) if parts else None
    return whole if whole is not None and whole.count else None


def histograms(trial: TrialTables, figure: str) -> dict[tuple[str, ...], Histogram]:
    """The histogram of each edge (publisher, topic, subscription), publisher (node, topic) or service (client, service,
    server) that has one; for times that belong to no message, the only one, under its name."""
    if figure not in FIGURES:
        return {(figure,): found} if (found := trial.times.get(figure)) is not None else {}
    rows = list(_owners(trial, figure).iter_rows(named=True))
    try:
        made = histograms_of(rows, figure)
    except hg.HistogramError:
        made = [_histogram(trial, row, figure) for row in rows]  # which defines its kind
    return {_key(row, figure): h for row, h in zip(rows, made, strict=True) if h is not None}


def _histogram(trial: TrialTables, row: dict[str, Any], figure: str) -> Histogram | None:
    try:
        return histogram_of(row, figure)
    except hg.HistogramError as error:
        raise BadInput(f"trial {trial.number} is damaged: {'/'.join(_key(row, figure))}: {error}") from error


def numbers(trials: Sequence[TrialTables], figure: str) -> dict[tuple[str, ...], Numbers]:
    """Each edge or publisher, merged over trials; without those that received nothing."""
    parts: dict[tuple[str, ...], list[Histogram]] = {}
    for trial in trials:
        for key, h in histograms(trial, figure).items():
            parts.setdefault(key, []).append(h)
    whole = {key: hg.merge(hs) for key, hs in parts.items()}
    found = {
        key: Numbers(h.count, h.min, hg.mean(h), quantile(h, 50.0), quantile(h, 99.0), h.max)
        for key, h in whole.items()
    }
    bare: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for trial in trials:
        for row in _owners(trial, figure).iter_rows(named=True):
            key = _key(row, figure)
            if key not in found and row.get(f"{figure}_max") is not None:
                bare.setdefault(key, []).append(row)
    found |= {key: _bare_numbers(rows, figure) for key, rows in bare.items()}
    return {key: n for key, n in found.items() if n.maximum is not None}


def was_measured(result: Trials, figure: str) -> bool:
    """Whether any edge, publisher or service has values of a figure, with or without a histogram."""
    if figure not in FIGURES:
        return any(figure in trial.times for trial in result.trials)
    column = f"{figure}_max"
    owners = (_owners(trial, figure) for trial in result.trials)
    return any(column in table.columns and table[column].null_count() < table.height for table in owners)


def own_times(results: Iterable[Trials]) -> dict[str, str]:
    """The times that belong to no message, in the order of their declarations, with their kinds: first those of a kind
    of workload, then those of observers."""
    results = list(results)
    found: dict[str, str] = {}
    entries = [entry for result in results if (entry := summary_of(result)) is not None]
    for entry in entries:
        found |= {name: of.words for name, of in entry.key_figures.items() if isinstance(of, OwnTimes)}
    if _have_loops(results):
        found = {name: words for name, words in _OF_LOOPS.items() if name not in found} | found
    return found | {name: OBSERVED[name] for entry in entries for name in entry.observed_ns if name in OBSERVED}


def drawn_times(results: Iterable[Trials]) -> list[str]:
    """Those that a report shows: for the workload's kind its own, each with its floor if that was measured; for loops
    of any other workload the usual ones."""
    results = list(results)
    found: dict[str, None] = {}
    for entry in (entry for result in results if (entry := summary_of(result)) is not None):
        for name, of in entry.key_figures.items():
            if isinstance(of, OwnTimes) and of.drawn:
                floor = [of.floor] if of.floor is not None and of.floor in entry.observed_ns else []
                found |= dict.fromkeys([name, *floor])
    return list(found) or (list(rounds.USUAL) if _have_loops(results) else [])


def _have_loops(results: Iterable[Trials]) -> bool:
    return any("loops" in result.run.manifest.settings.measure for result in results)


_OF_LOOPS = {name: name.replace("_", " ") for name in rounds.TIMES}


def timeline(result: Trials, trial: TrialTables, figure: str) -> tuple[Interval, ...]:
    """A figure between successive checkpoints, merged over processes; instants count from the start of the trial.

    Empty if the trial left no records (foreign runs have none). Raises BadInput if they are damaged.
    """
    if trial.started_ns is None:
        return ()
    sources = []
    for path in _record_files(result.run.path, trial.number):
        try:
            sources.append(checkpoints.intervals(checkpoints.read(path, figure)))
        except (RecordError, hg.HistogramError) as error:
            text = str(error)
            raise BadInput(text if str(path) in text else f"{path}: {text}") from error
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from error
    return checkpoints.shifted(checkpoints.merge(sources), -trial.started_ns)


def as_in_summary(results: Sequence[Trials]) -> list[Trials]:
    """Those of each run in the order of its summary, which begins with the baseline; the order of trials is random.
    Results unknown to the summary come last."""
    runs = list({id(result.run): None for result in results})

    def place(result: Trials) -> tuple[int, int]:
        entry, known = summary_of(result), result.run.summary.results
        number = next((i for i, one in enumerate(known) if one is entry), len(known))
        return runs.index(id(result.run)), number

    return sorted(results, key=place)


def summary_of(result: Trials) -> Result | None:
    """The entry of summary.json with the trials of a result; None if the summary lacks them."""
    numbers = {trial.number for trial in (*result.trials, *result.left_out)}
    for entry in result.run.summary.results:
        if any(trial.trial in numbers for trial in entry.trials_detail):
            return entry
    return None


def _record_files(run: Path, number: int) -> list[Path]:
    return sorted((run / rundir.TRIALS).glob(f"{number:04d}_*/processes/*.jsonl"))


def _result(label: str, run: RunData, trials: Sequence[TrialTables]) -> Trials:
    shown = [t for t in trials if t.measured and _has_data(t)] or [t for t in trials if _has_data(t)]
    return Trials(label, run, tuple(shown), tuple(t for t in trials if t not in shown))


def _has_data(trial: TrialTables) -> bool:
    return any(table.height for table in (trial.edges, trial.publishers, trial.services, trial.resources))


def _owners(trial: TrialTables, figure: str) -> pl.DataFrame:
    if figure == ROUND_TRIP:
        return trial.services
    return trial.publishers if figure in PUBLISHER_HISTOGRAMS else trial.edges


def _key(row: dict[str, Any], figure: str) -> tuple[str, ...]:
    names: tuple[str, ...] = ("publisher", "topic", "subscription")
    if figure == ROUND_TRIP:
        names = ("client", "service", "server")
    elif figure in PUBLISHER_HISTOGRAMS:
        names = ("node", "topic")
    return tuple(str(row[name]) if row[name] is not None else "" for name in names)


def quantile(h: Histogram, percentile: float) -> float | None:
    """Never above the exact maximum."""
    value = hg.value_at_percentile(h, percentile)
    return value if value is None or h.max is None else min(value, h.max)


def _bare_numbers(rows: Sequence[dict[str, Any]], figure: str) -> Numbers:
    """Counts, means and extremes can be merged without histograms; quantiles cannot."""

    def known(side: str) -> list[float]:
        return [row[f"{figure}_{side}"] for row in rows if row.get(f"{figure}_{side}") is not None]

    counts, means = known("count"), known("mean")
    weighted = len(counts) == len(means) == len(rows) and sum(counts) > 0
    only = means[0] if len(rows) == len(means) == 1 else None
    return Numbers(
        count=int(sum(counts)) if len(counts) == len(rows) else None,
        minimum=min(known("min"), default=None),
        mean=sum(m * n for m, n in zip(means, counts, strict=True)) / sum(counts) if weighted else only,
        p50=None,
        p99=None,
        maximum=max(known("max"), default=None),
    )
