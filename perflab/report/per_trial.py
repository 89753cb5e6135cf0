"""The picture of one metric, trial by trial: what the conditions did, and how much trials differ without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.report.axes import Unit
from perflab.report.captions import Draft, durations, interval_of, value_axis, value_unit, workloads
from perflab.report.figures import Figure, Key, Series, Sign, ends_of, points, rows_axis, whiskers
from perflab.report.results import Trials, by_level, summary_of
from perflab.results.trial import Median, Trial
from perflab.statistics.metrics import Metric, named

MAX_ROWS = 40  # results in one picture
MAX_OWN_COLORS = 12
MAX_NAMED = 6  # results in a note

_TOP, _SPREAD, _BELOW = -0.4, 0.46, 0.3  # within a row: trials from here on, over so much; the interval below them


@dataclass(frozen=True)
class _Row:
    """A result: (trial, value, whether it counts), and the median of those that count with its interval."""

    result: Trials
    trials: list[tuple[Trial, float, bool]]
    missing: int
    median: float | None
    low: float | None
    high: float | None
    level: float | None

    @property
    def n(self) -> int:
        return sum(counts for *_, counts in self.trials)


def per_trial(results: Sequence[Trials], name: str) -> Figure | None:
    """One row per result, one mark per trial from top to bottom in their order, the median below them."""
    metric = named(name)
    found = [row for result in results if (row := _row(result, metric)) is not None]
    if not any(row.n > 1 for row in found):
        return None
    draft = Draft()
    rows = [row for row in found if len(row.trials) + row.missing > 1]
    if alone := len(found) - len(rows):
        draft.notes.append(f"{alone} {'result' if alone == 1 else 'results'} of a single trial: left out.")
    if (ordered := by_level([row.result for row in rows])) is not None:
        rows = [next(row for row in rows if row.result is result) for result in ordered]
    shown = rows[:MAX_ROWS]
    if len(shown) < len(rows):
        draft.notes.append(f"The first {len(shown)} of {len(rows)} results.")
    unit = value_unit(metric.unit, [v for row in shown for _, v, _ in row.trials])
    own = len(results) <= MAX_OWN_COLORS
    for place, row in enumerate(shown):
        group = next(i for i, result in enumerate(results) if result is row.result) if own else 0
        draft.series += _row_series(row, place, group, metric, unit)
        draft.notes += _missing(row, metric)
    interval = interval_of(row.level for row in shown if row.level is not None)
    signs = {s.sign for s in draft.series}
    keys = [Key("a trial", None, sign="full")]
    if "cross" in signs:
        keys.append(Key("a trial that does not count: it was invalid, or did not end", None, sign="cross"))
    keys.append(Key("median of the trials", None, sign="bar"))
    if any(s.shape == "whiskers" and any(v is not None for v in s.low) for s in draft.series):
        keys.append(Key(f"its {interval}", None, sign="whisker"))
    if bare := [row for row in shown if row.median is not None and row.low is None]:
        names = "; ".join(f"{row.result.label} ({row.n})" for row in bare)
        names = names if len(bare) <= MAX_NAMED else f"{len(bare)} results"
        draft.notes.append(f"Too few trials for an interval: {names}.")
    count = sum(len(row.trials) for row in shown)
    return Figure(
        name=f"{name.replace('.', '_')}_per_trial",
        title=f"{metric.words[:1].upper()}{metric.words[1:]} of each trial",
        subtitle=f"{workloads([row.result for row in shown])}: {count} trials of {_each(shown)}",
        x=value_axis(metric.words, metric.unit, unit, draft.series, "x"),
        y=rows_axis([_name(row, metric) for row in shown]),
        series=tuple(draft.series),
        groups=(),
        keys=tuple(keys),
        notes=tuple(draft.notes),
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
    interval = entry.intervals.get(metric.name) or Median(value=None, low=None, high=None, n=0)
    median = interval.value
    if median is None and counted:
        median = float(np.median(counted))
    low, high = interval.low, interval.high
    return _Row(result, known, len(readings) - len(known), median, low, high, interval.level)


def _row_series(row: _Row, place: int, group: int, metric: Metric, unit: Unit) -> list[Series]:
    series = []
    steps = max(len(row.trials) - 1, 1)
    at = [place + _TOP + _SPREAD * (i / steps if len(row.trials) > 1 else 0.5) for i in range(len(row.trials))]
    signs: tuple[tuple[Sign, bool], ...] = (("full", True), ("cross", False))
    for sign, counts in signs:
        chosen = [
            (
                unit.of(value),
                y,
                f"{row.result.label}<br>trial {trial.trial}: {metric.format(value)}, {trial.outcome.words}",
            )
            for y, (trial, value, c) in zip(at, row.trials, strict=True)
            if c is counts
        ]
        if not chosen:
            continue
        series.append(points(f"{row.result.label}, trials", group, chosen, sign=sign, sizes=(0.9,) * len(chosen)))
    if row.median is not None:
        said = f"{row.result.label}<br>median {_median(row, metric)} of {row.n} trials"
        median = (unit.of(row.median), place + _BELOW, ends_of(unit.of, row.low, row.high), said)
        series.append(whiskers(f"{row.result.label}, median", group, [median], sign="bar", weight="thick", across=True))
    return series


def _median(row: _Row, metric: Metric) -> str:
    text = metric.format(row.median)
    return (
        text if row.low is None or row.high is None else f"{text} [{metric.format(row.low)}, {metric.format(row.high)}]"
    )


def _name(row: _Row, metric: Metric) -> str:
    return f"{row.result.label}: {_median(row, metric)}, n {row.n}"


def _each(rows: Sequence[_Row]) -> str:
    """How long the trials were."""
    return durations([row.result for row in rows]).rpartition(" trials of ")[2]


def _missing(row: _Row, metric: Metric) -> list[str]:
    if not row.missing:
        return []
    trials = "1 trial has" if row.missing == 1 else f"{row.missing} trials have"
    return [f"{row.result.label}: {trials} no {metric.words}."]
