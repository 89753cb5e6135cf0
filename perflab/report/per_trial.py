"""The picture of one metric, trial by trial: the effect of the conditions, and how much trials differ without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.report.captions import durations, first_of, interval_of, workloads
from perflab.report.figures import Figure, Key, Plot, Sign, of_metric, rows
from perflab.report.results import Trials, by_level, summary_of
from perflab.results.figure import Median
from perflab.results.trial import Trial
from perflab.statistics.metrics import LOWER, Metric, named

MAX_ROWS = 40  # results in one picture
MAX_OWN_COLORS = 12
MAX_NAMED = 6  # results in a note

_TOP, _SPREAD, _BELOW = -0.4, 0.46, 0.3  # within a row: trials begin here, over this height; the interval is below them
_SIGNS: tuple[tuple[Sign, bool], ...] = (("full", True), ("cross", False))  # for trials that count, and for others


@dataclass(frozen=True)
class _Row:
    """A result: (trial, value, whether it counts), and the median of those that count with its interval."""

    result: Trials
    trials: list[tuple[Trial, float, bool]]
    missing: int
    median: Median

    @property
    def n(self) -> int:
        return sum(counts for *_, counts in self.trials)

    def said(self, metric: Metric) -> str:
        """The median, with its interval."""
        text, low, high = (metric.format(value) for value in (self.median.value, self.median.low, self.median.high))
        return text if self.median.low is None or self.median.high is None else f"{text} [{low}, {high}]"


def per_trial(results: Sequence[Trials], name: str) -> Figure | None:
    """One row per result, with one mark per trial from top to bottom in order, and the median below them."""
    metric = named(name)
    found = [row for result in results if (row := _row(result, metric)) is not None]
    if not any(row.n > 1 for row in found):
        return None
    having = [row for row in found if len(row.trials) + row.missing > 1]
    if (ordered := by_level([row.result for row in having])) is not None:
        having = [next(row for row in having if row.result is result) for result in ordered]
    worst = max(having, key=lambda row: (row.median.value or 0.0) * (1 if metric.better == LOWER else -1))
    shown = having[:MAX_ROWS]
    if all(row is not worst for row in shown):
        shown[-1] = worst  # it is never left out
    plot = Plot(
        of_metric(metric.words, metric.unit),
        rows([f"{row.result.label}: {row.said(metric)}, n {row.n}" for row in shown]),
    )
    if alone := len(found) - len(having):
        plot.notes.append(f"{alone} {'result' if alone == 1 else 'results'} with a single trial: left out.")
    plot.notes += first_of(having, shown, "results, the worst among them")
    own = len(results) <= MAX_OWN_COLORS
    for place, row in enumerate(shown):
        group = next(i for i, result in enumerate(results) if result is row.result) if own else 0
        _draw(plot, row, place, group, metric)
        if row.missing:
            trials = "1 trial has" if row.missing == 1 else f"{row.missing} trials have"
            plot.notes.append(f"{row.result.label}: {trials} no {metric.words}.")
    if bare := [row for row in shown if row.median.value is not None and row.median.low is None]:
        names = "; ".join(f"{row.result.label} ({row.n})" for row in bare)
        names = names if len(bare) <= MAX_NAMED else f"{len(bare)} results"
        plot.notes.append(f"Too few trials for an interval: {names}.")
    each = durations([row.result for row in shown]).rpartition(" trials of ")[2]
    return plot.figure(
        f"{name.replace('.', '_')}_per_trial",
        f"{metric.words[:1].upper()}{metric.words[1:]} of each trial",
        f"{workloads([row.result for row in shown])}: {sum(len(row.trials) for row in shown)} trials of {each}",
        keys=[
            Key("a trial", None, sign="full"),
            Key("a trial that does not count: it was invalid, or did not finish", None, sign="cross"),
            Key("median of the trials", None, sign="bar"),
            Key(
                f"its {interval_of(row.median.level for row in shown if row.median.level is not None)}",
                None,
                sign="whisker",
            ),
        ],
        lanes=3,
    )


def _row(result: Trials, metric: Metric) -> _Row | None:
    entry = summary_of(result)
    details = [] if entry is None else entry.trials_detail
    readings = [(trial, metric.read(trial).value) for trial in details]
    known = [(trial, value, trial.is_measured) for trial, value in readings if value is not None]
    if entry is None or not known:
        return None
    counted = [value for _, value, counts in known if counts]
    median = entry.intervals.get(metric.name)
    if median is None or median.value is None:
        middle = float(np.median(counted)) if counted else None
        median = Median(value=middle, low=None, high=None, n=len(counted))
    return _Row(result, known, len(readings) - len(known), median)


def _draw(plot: Plot, row: _Row, place: int, group: int, metric: Metric) -> None:
    """Trials from top to bottom, the median and its interval below them."""
    label, steps = row.result.label, max(len(row.trials) - 1, 1)
    at = [place + _TOP + _SPREAD * (i / steps if len(row.trials) > 1 else 0.5) for i in range(len(row.trials))]
    for sign, counts in _SIGNS:
        marks = [
            (value, y, f"{label}<br>trial {trial.trial}: {metric.format(value)}, {trial.outcome.words}")
            for y, (trial, value, c) in zip(at, row.trials, strict=True)
            if c is counts
        ]
        plot.points(f"{label}, trials", group, marks, sign=sign, sizes=(0.9,) * len(marks))
    if row.median.value is not None:
        said = f"{label}<br>median {row.said(metric)} of {row.n} trials"
        mark = (row.median.value, place + _BELOW, (row.median.low, row.median.high), said)
        plot.whiskers(f"{label}, median", group, [mark], sign="bar", weight="thick", across=True)
