"""Results beside each other, one value per trial: medians, and how treatments differ from their baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Read, Table, Tone
from perflab.quantity import PLAIN
from perflab.report.tables.messages import RUN
from perflab.results.comparison import BETTER, WORSE, Effect, Finding
from perflab.results.trial import Result
from perflab.statistics.metric_comparison import effect_words
from perflab.statistics.metrics import Metric, find
from perflab.statistics.remarks import SAME, no_difference_of

# Beside every colour stands a sign: ▲ is worse, whatever the direction of the metric.
SIGNS: Mapping[Tone, str] = {"bad": "▲", "good": "▼", "warn": "!", "faint": "", "": ""}
_TONES: Mapping[Effect | None, Tone] = {WORSE: "bad", BETTER: "good", None: ""}
_MARKS = {"higher": " *", "lower": " *", "equivalent": " ="}
# Which metrics stay on a narrow terminal: the lower, the longer.
_RANKS = {"latency.p99": 1, "response.p99": 2, "round_trip.p99": 2, "lost": 3, "latency.p50": 4, "cpu_percent": 5}
_OTHER_RANK, _N_RANK, _SUCCESS_RANK = 6, 8, 7


@dataclass(frozen=True)
class Beside:
    """A result, how it is called, and by metric how it differs from its baseline."""

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
    "n", "n", lambda row: len(row.record.entering), PLAIN, rank=_N_RANK, help="trials that enter"
)


def _successes(row: Beside) -> Cell:
    outcomes = row.record.outcomes
    n = outcomes.judged
    more = ", ".join(f"+{count} {outcome.words}" for outcome, count in outcomes.left_out)
    tone: Tone = "bad" if outcomes.failed else "warn" if more else ""
    text = f"{outcomes.success}/{n}{f' ({more})' if more else ''}"
    return Cell(text, outcomes.success / n if n else None, tone, sign={"bad": "✖", "warn": "!"}.get(tone, ""))


SUCCESS: Column[Beside] = Column("success", "success", _successes, PLAIN, rank=_SUCCESS_RANK)


def results(rows: Sequence[Beside]) -> Table[Beside]:
    """The median over trials of every compared metric with its interval, and how it differs from the baseline."""
    names = dict.fromkeys(name for row in rows for name in row.record.intervals)
    metrics = [metric for name in names if (metric := find(name)) is not None]
    note = "Medians over trials, one value per trial, with their intervals"
    if any(row.findings for row in rows):
        note += (
            "; below them the change against the baseline: ▲ worse, ▼ better, = no difference that matters, ≈ within "
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
    """The median of what nothing disturbed; of others how they differ from the baseline."""
    measured = [m for m in metrics if any(m.name in row.record.intervals for row in rows)]
    return Table("place", title, [_name(), N, SUCCESS, *map(_median_or_difference, measured)], rows)


def between(title: str, rows: Sequence[Between], metrics: Sequence[Metric]) -> Table[Between]:
    """How baselines differ from each other."""
    return Table("baselines", title, [_name(), *map(_difference, metrics)], rows)


def _name() -> Column[Any]:
    return Column("treatment", "", lambda row: row.result, rank=0)


def _median_or_difference(metric: Metric) -> Column[Beside]:
    def read(row: Beside) -> Read:
        finding, median = row.findings.get(metric.name), row.record.intervals.get(metric.name)
        return median if finding is None else _change(metric, finding)

    return Column(metric.name, metric.words, read, metric.quantity, rank=_rank(metric))


def _difference(metric: Metric) -> Column[Between]:
    def read(row: Between) -> Read:
        finding = row.findings.get(metric.name)
        return None if finding is None else _change(metric, finding)

    return Column(metric.name, metric.words, read, metric.quantity, rank=_rank(metric))


def _change(metric: Metric, finding: Finding) -> Cell:
    """In a column of its own, so that marks stand below each other."""
    words = f"{effect_words(metric, finding)}{_MARKS.get(finding.verdict, '  ')}"
    return Cell(words, finding.estimate.value, _TONES[finding.effect])


def _rank(metric: Metric) -> int:
    return _RANKS.get(metric.name, _OTHER_RANK)
