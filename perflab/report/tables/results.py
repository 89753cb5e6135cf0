"""Results beside each other, one value per trial: medians, and how treatments differ from their baselines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Read, Table, Tone
from perflab.quantity import FACTOR, NUMBER, PLAIN, P
from perflab.report.tables.messages import RUN
from perflab.results.comparison import (
    ALPHA,
    BETTER,
    CONDITION,
    DIFFERENCES,
    MITIGATION,
    OBSERVER,
    VARIANT,
    WORSE,
    Effect,
    Finding,
    Kind,
    Verdict,
)
from perflab.results.comparison import (
    FACTOR as OF_FACTOR,
)
from perflab.results.figure import Median
from perflab.results.outcome import FAILED, Outcomes
from perflab.results.summary import Summary
from perflab.results.trial import BASELINE, Result
from perflab.statistics.metrics import DEFAULT, RATIO, Metric, find, named
from perflab.statistics.pairs import Entering, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.verdicts import SAME, effect_words, no_difference_of

# Beside every colour there is a sign: ▲ is worse, whatever the direction of the metric.
SIGNS: Mapping[Tone, str] = {"bad": "▲", "good": "▼", "warn": "!", "faint": "", "": ""}
_TONES: Mapping[Effect | None, Tone] = {WORSE: "bad", BETTER: "good", None: ""}
_MARKS = {"higher": " *", "lower": " *", "equivalent": " ="}
# Which metrics stay on a narrow terminal: the lower, the longer.
_RANKS = {"latency.p99": 1, "response.p99": 2, "round_trip.p99": 2, "lost": 3, "latency.p50": 4, "cpu_percent": 5}
_N_RANK, _SUCCESS_RANK, _FIRST_OTHER_RANK = 7, 6, 8


@dataclass(frozen=True)
class Beside:
    """A result, its label, and by metric its difference from its baseline."""

    record: Result
    result: str
    findings: Mapping[str, Finding]
    run: str = ""


@dataclass(frozen=True)
class Between:
    """How two results differ, by metric."""

    result: str
    findings: Mapping[str, Finding]


N: Column[Beside] = Column(
    "n", "n", lambda row: len(row.record.entering), PLAIN, rank=_N_RANK, help="number of trials that count"
)


def _successes(row: Beside) -> Cell:
    outcomes = row.record.outcomes
    n = outcomes.judged
    more = ", ".join(f"+{n} {words}" for _, n, words, _ in outcomes.left_out.counts)
    tone: Tone = "bad" if outcomes.failed else "warn" if more else ""
    text = f"{outcomes.success}/{n}{f' ({more})' if more else ''}"
    how = tuple(f"{own.trials} {own.words}" for own in outcomes.own if own.of == FAILED)
    return Cell(text, outcomes.success / n if n else None, tone, how, sign={"bad": "✖", "warn": "!"}.get(tone, ""))


SUCCESS: Column[Beside] = Column("success", "success", _successes, PLAIN, rank=_SUCCESS_RANK)


def results(rows: Sequence[Beside]) -> Table[Beside]:
    """The median over trials of every compared metric with its interval, and its difference from the baseline."""
    names = dict.fromkeys(name for row in rows for name in row.record.intervals)
    metrics = [metric for name in names if (metric := find(name)) is not None]
    note = "Medians over trials, one value per trial, with their intervals"
    if any(row.findings for row in rows):
        note += (
            "; below them the change from the baseline: ▲ worse, ▼ better, = no difference that matters, ≈ within "
            "the noise, ? not decided"
        )
    some = any(median.value is not None for row in rows for median in row.record.intervals.values())
    columns = [Column("result", "result", lambda row: row.result), RUN, N, SUCCESS, *map(_median, metrics)]
    return Table("results", "Results", columns, rows if some else [], [f"{note}."])


def _median(metric: Metric) -> Column[Beside]:
    def read(row: Beside) -> Read:
        found, finding = row.record.intervals.get(metric.name), row.findings.get(metric.name)
        if found is None or found.value is None or finding is None:
            return found
        tone = _TONES[finding.effect]
        alike = finding.verdict == "equivalent" or no_difference_of(finding) == SAME
        sign = SIGNS[tone] if tone else "=" if alike else "≈" if finding.verdict == "below_noise_floor" else "?"
        words = effect_words(metric, finding)
        change = words.replace("x", "×", 1) if finding.scale == "ratio" else words
        text = metric.format(found.value)
        return Cell(text, found.value, tone, (f"{sign} {change}",), low=found.low, high=found.high)

    return Column(metric.name, metric.words, read, metric.quantity, help="median over trials [interval]")


def of_place(title: str, rows: Sequence[Beside], metrics: Sequence[Metric]) -> Table[Beside]:
    """For undisturbed results the median; for others their difference from the baseline."""
    measured = [m for m in metrics if any(m.name in row.record.intervals for row in rows)]
    return Table("place", title, [_name(), N, SUCCESS, *map(_median_or_difference, measured, _ranks(measured))], rows)


def between(title: str, rows: Sequence[Between], metrics: Sequence[Metric]) -> Table[Between]:
    """How baselines differ from each other."""
    return Table("baselines", title, [_name(), *map(_difference, metrics, _ranks(metrics))], rows)


def _name() -> Column[Any]:
    return Column("treatment", "", lambda row: row.result, rank=0)


def _median_or_difference(metric: Metric, rank: int) -> Column[Beside]:
    def read(row: Beside) -> Read:
        finding, median = row.findings.get(metric.name), row.record.intervals.get(metric.name)
        return median if finding is None else _change(metric, finding)

    return Column(metric.name, metric.words, read, metric.quantity, rank=rank)


def _difference(metric: Metric, rank: int) -> Column[Between]:
    def read(row: Between) -> Read:
        finding = row.findings.get(metric.name)
        return None if finding is None else _change(metric, finding)

    return Column(metric.name, metric.words, read, metric.quantity, rank=rank)


def _change(metric: Metric, finding: Finding) -> Cell:
    """In a separate column, to align the marks."""
    words = f"{effect_words(metric, finding)}{_MARKS.get(finding.verdict, '  ')}"
    return Cell(words, finding.estimate.value, _TONES[finding.effect])


def _ranks(metrics: Sequence[Metric]) -> list[int]:
    """Other columns than those of `_RANKS` are left out one by one, the last of them first."""
    return [_RANKS.get(metric.name, _FIRST_OTHER_RANK + place) for place, metric in enumerate(metrics)]


# -- for papers ------------------------------------------------------------------------------------------------------

_VERDICTS: Mapping[Verdict, str] = {
    "equivalent": "no difference",
    "below_noise_floor": "within noise",
}
_KINDS: Mapping[Kind, str] = {
    CONDITION: "compared with the baseline",
    MITIGATION: "benefit of mitigations",
    OBSERVER: "cost of observers",
    VARIANT: "baselines of variants",
    OF_FACTOR: "baselines at levels of a factor",
}


@dataclass(frozen=True)
class Treatment:
    """A result at its place; `place` is "" if the label contains it."""

    name: str
    place: str
    entering: Entering


def metrics_of(summary: Summary) -> list[Metric]:
    """The metrics that the run compared; for a run without findings, the usual ones."""
    names = (() if summary.findings is None else summary.findings.metrics) or DEFAULT
    return [named(name) for name in names if find(name) is not None]


def confidence_of(summary: Summary) -> float:
    return 1 - (ALPHA if summary.findings is None else summary.findings.alpha)


def median_of(result: Entering, metric: Metric) -> Median | None:
    """The median over trials; for a summary without one, the median without an interval."""
    stored = result.result.intervals.get(metric.name)
    if stored is not None and stored.value is not None:
        return stored
    values = result.sample(metric, "").values
    return Median(value=statistics.median(values), low=None, high=None, n=len(values)) if values else None


def treatments(summary: Summary) -> Table[Treatment]:
    """Treatments and metrics: medians over trials, and how many trials succeeded, with Wilson's interval."""
    places = places_of(summary.results)
    found = [(place.words, r) for place in places for r in place.results if r.result.trials]
    rows = [
        Treatment(f"{r.treatment}, no observers" if r.result.is_control else r.treatment, place, r)
        for place, r in found
    ]
    if len({row.place for row in rows}) == len(rows) > 1:
        # One treatment everywhere, such as the baselines at levels of a factor.
        rows = [Treatment(r.place if r.name == BASELINE else f"{r.place}: {r.name}", "", r.entering) for r in rows]
    level = confidence_of(summary)
    columns: list[Column[Treatment]] = [
        Column("treatment", "treatment", lambda row: row.name, rank=0),
        Column("trials", "trials", lambda row: len(row.entering.trials), PLAIN, rank=0),
        Column("success", "success", lambda row: success(row.entering, level), PLAIN, rank=0),
        Column("left_out", "left out", _left_out, rank=0),
        *(_of_treatment(metric) for metric in metrics_of(summary)),
    ]
    grouped = (lambda row: row.place) if len(places) > 1 else None
    return Table("results", "Results", columns, rows, grouped=grouped)


def _of_treatment(metric: Metric) -> Column[Treatment]:
    return Column(metric.name, metric.words, lambda row: median_of(row.entering, metric), metric.quantity, rank=0)


def success(result: Entering, level: float) -> Cell:
    """ "9/9 [70, 100] %"."""
    outcomes = result.result.outcomes
    interval = wilson(outcomes.success, outcomes.judged, level)
    between = "" if interval is None else f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}] %"
    return Cell(f"{outcomes.success}/{outcomes.judged}{between}", outcomes.success)


def _left_out(row: Treatment) -> Cell:
    return left_out(row.entering.result.outcomes.left_out)


def left_out(outcomes: Outcomes) -> Cell:
    """ "1 invalid, 1 harness error": those that are neither success nor failure."""
    return Cell(", ".join(f"{n} {words}" for _, n, words, _ in outcomes.counts), outcomes.total, "warn")


def comparisons(summary: Summary) -> Table[Finding]:
    """Every comparison: the size of the difference, and the verdict."""
    kinds = list(_KINDS)
    found = () if summary.findings is None else summary.findings.comparisons
    rows = [c for c in found if find(c.metric) is not None]
    rows.sort(key=lambda c: (kinds.index(c.kind) if c.kind in kinds else len(kinds), c.variant or ""))
    return Table(
        "comparisons",
        "Comparisons",
        [
            Column("compared", "compared", _compared, rank=0, once=True),
            Column("metric", "metric", _in_unit, rank=0),
            Column("effect", "effect", effect, NUMBER, rank=0),
            Column("p", "p", lambda c: c.p_adjusted, P, rank=0),
            Column("n", "n", lambda c: f"{c.baseline.n}, {c.treatment.n}", PLAIN, rank=0),
            Column("verdict", "verdict", _verdict, rank=0),
        ],
        rows,
        grouped=lambda c: ": ".join(filter(None, (c.variant, _KINDS.get(c.kind, c.kind)))),
    )


def _compared(c: Finding) -> str:
    return c.treatment.name if c.kind in (CONDITION, OBSERVER) else f"{c.treatment.name} against {c.baseline.name}"


def _in_unit(c: Finding) -> str:
    metric = named(c.metric)
    if c.scale == RATIO:
        return f"{metric.words} (×)"
    _, unit = metric.quantity.scale([c.estimate.value])
    return f"{metric.words} (difference{f', {unit}' if unit else ''})"


def effect(c: Finding) -> Cell:
    """A factor, or a difference in the metric's quantity."""
    quantity = FACTOR if c.scale == RATIO else named(c.metric).quantity.change
    found, nothing = c.estimate, c.excluded
    text = quantity.text(found.value)
    return Cell(text, found.value, low=found.low, high=found.high, excluded=nothing, quantity=quantity)


def _verdict(c: Finding) -> Cell:
    words = _VERDICTS.get(c.verdict, c.verdict.replace("_", " "))
    return Cell(words, words, "strong" if c.verdict in DIFFERENCES else "")
