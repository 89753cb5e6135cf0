"""The tables of a report: results, edges, services, trials, resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from perflab.report.run_page import key_figures
from perflab.report.run_page.elements import SIGNS, Cell, Column, Table, Tone, number, word
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.run_page.words import size
from perflab.results.comparison import BETTER, CONDITION, WORSE, Effect, Finding
from perflab.results.trial import (
    MEASURED,
    Counts,
    Distribution,
    Outcome,
    ProcessResources,
    Resources,
    Result,
    counted,
    expected,
    least_lost,
    owners,
    received,
)
from perflab.statistics.metrics import Metric, find
from perflab.statistics.remarks import SAME, no_difference_of
from perflab.statistics.selection import place_words
from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

Json = Mapping[str, Any]

OUTCOMES: dict[Outcome, tuple[str, str, Tone]] = {
    "success": ("✔", "success", "good"),
    "failed": ("✖", "failed", "bad"),
    "invalid": ("!", "invalid", "warn"),
    "harness_error": ("!", "harness error", "warn"),
}
_Quantile = Callable[[Distribution], float | None]
_QUANTILES: dict[str, _Quantile] = {
    "mean": attrgetter("mean"),
    "p50": attrgetter("p50"),
    "p90": attrgetter("p90"),
    "p99": attrgetter("p99"),
    "p99.9": attrgetter("p99_9"),
    "max": attrgetter("max"),
}
_FEW = ("mean", "p50", "p99", "max")


def section(runs: Sequence[ReportRun]) -> str:
    made = [
        results(runs),
        *key_figures.tables(runs),
        everything(runs),
        services(runs),
        edges(runs),
        resources(runs),
        trials(runs),
    ]
    return "".join(table.html() for table in made)


def run_column(runs: Sequence[ReportRun]) -> list[Column]:
    return [Column("run", False)] if len(runs) > 1 else []


def run_cell(runs: Sequence[ReportRun], run: ReportRun) -> list[Cell]:
    return [word(run.name)] if len(runs) > 1 else []


def time(ns: float | None, tone: Tone = "") -> Cell:
    return number(format_time(ns), ns, tone)


def count(n: int | None, tone: Tone = "") -> Cell:
    """Toned where it is not 0."""
    return number(format_count(n), n, tone if n else "")


def percent(value: float | None) -> Cell:
    return number("–" if value is None else f"{value:.3g} %", value)


def size_of(kilobytes: float | None) -> Cell:
    return number(format_bytes(None if kilobytes is None else kilobytes * 1024), kilobytes)


def outcome(name: Outcome) -> Cell:
    sign, words, tone = OUTCOMES[name]
    return Cell(words, words, tone, sign=sign)


# ---- results


def results(runs: Sequence[ReportRun]) -> Table:
    """The median over trials of every compared metric with its interval, and how it differs from the baseline."""
    names = dict.fromkeys(name for run in runs for name in _metric_names(run))
    metrics = [metric for name in names if (metric := find(name)) is not None]
    columns = [Column("result", False), *run_column(runs), Column("n", title="trials that enter"), Column("success")]
    columns += [Column(metric.words, title="median over trials [interval]") for metric in metrics]
    rows = []
    for run, label, result in of_all(runs):
        compared = _compared(run, result)
        cells = [word(label), *run_cell(runs, run), _entered(result), _successes(result)]
        cells += [_interval(result, metric, compared.get(metric.name)) for metric in metrics]
        rows.append(cells)
    told = any(c.kind == CONDITION for run in runs for c in run.comparisons)
    notes = (
        [
            "Medians over trials, one value per trial, with their intervals; below them the change against the "
            "baseline: ▲ worse, ▼ better, = no difference that matters, ≈ within the noise, ? not decided."
        ]
        if told
        else ["Medians over trials, one value per trial, with their intervals."]
    )
    some = any(cell.text != "–" for row in rows for cell in row[-len(metrics) :]) if metrics else False
    return Table("Results", columns, rows if some else [], notes)


def _metric_names(run: ReportRun) -> list[str]:
    return list(dict.fromkeys(name for result in run.results for name in result.intervals))


def _compared(run: ReportRun, result: Result) -> dict[str, Finding]:
    """The comparisons of a disturbed result with its baseline, by metric."""
    if not result.is_disturbed or result.is_control:
        return {}
    place = place_words(result)
    return {
        c.metric: c
        for c in run.comparisons
        if c.kind == CONDITION
        and c.treatment.name == result.treatment
        and c.variant in (place, f"{result.workload}, {place}")
    }


def _interval(result: Result, metric: Metric, comparison: Finding | None) -> Cell:
    found = result.intervals.get(metric.name)
    if found is None or found.value is None:
        return number("–", None)
    text = metric.format(found.value)
    between = "" if found.low is None else f"[{metric.format(found.low)}, {metric.format(found.high)}]"
    if comparison is None:
        return Cell(text, found.value, below=(between,))
    tones: dict[Effect | None, Tone] = {WORSE: "bad", BETTER: "good", None: ""}
    tone = tones[comparison.effect]
    alike = comparison.verdict == "equivalent" or no_difference_of(comparison) == SAME
    sign = SIGNS[tone] if tone else "=" if alike else "≈" if comparison.verdict == "below_noise_floor" else "?"
    return Cell(text, found.value, tone, (between, f"{sign} {size(metric, comparison)}"))


def _entered(result: Result) -> Cell:
    n = len(result.entering)
    return number(str(n), n)


def _successes(result: Result) -> Cell:
    outcomes = result.outcomes
    n = outcomes.judged
    kinds = ((outcomes.invalid, "invalid"), (outcomes.harness_error, "harness error"))
    more = ", ".join(f"+{count} {what}" for count, what in kinds if count)
    text = f"{outcomes.success}/{n}" + (f" ({more})" if more else "")
    tone: Tone = "bad" if outcomes.failed else "warn" if more else ""
    return Cell(text, outcomes.success / n if n else None, tone, sign={"bad": "✖", "warn": "!"}.get(tone, ""))


def everything(runs: Sequence[ReportRun]) -> Table:
    """All messages of all trials of a result together."""
    columns = [
        Column("result", False),
        *run_column(runs),
        Column("trials"),
        Column("received"),
        Column("expected"),
        Column("lost"),
        Column("late"),
        Column("too late"),
        *(Column(f"latency {quantile}") for quantile in _QUANTILES),
        Column("response p99"),
        Column("response max"),
        Column("round trip p99", title="of the slowest service"),
        Column("CPU", title="100 % is one CPU"),
        Column("RSS peak"),
    ]
    rows = []
    for run, label, result in of_all(runs):
        response = result.totals.response_ns or Distribution()
        round_trips = [s.round_trip_ns.p99 for s in result.services if s.round_trip_ns is not None]
        slowest = max((p99 for p99 in round_trips if p99 is not None), default=None)
        merged = result.coverage.trials_merged
        rows.append(
            [
                word(label),
                *run_cell(runs, run),
                number(str(merged), merged),
                count(received(result)),
                count(expected(result)),
                count(least_lost(*owners(result)), "bad"),
                count(counted(result, lambda owner: owner.late), "warn"),
                count(counted(result, lambda owner: owner.too_late), "bad"),
                *_times(result.totals.latency_ns, _QUANTILES),
                time(response.p99),
                time(response.max),
                time(slowest),
                _cpu(result.resources),
                size_of(result.resources.rss_kb_max),
            ]
        )
    note = "All messages of all trials together: a maximum is that of more messages where there are more trials."
    return Table("All messages together", columns, rows, [note] if len(rows) > 1 else [])


def _times(distribution: Distribution | None, quantiles: Iterable[str]) -> list[Cell]:
    return [time(_QUANTILES[quantile](distribution or Distribution())) for quantile in quantiles]


def _cpu(resources: Resources | ProcessResources) -> Cell:
    """Per cent of one CPU; of foreign runs, of all CPUs, as they say it."""
    if resources.cpu_percent_mean is None and resources.cpu_percent_of_machine is not None:
        return number(f"{resources.cpu_percent_of_machine:.3g} % of all", resources.cpu_percent_of_machine)
    return percent(resources.cpu_percent_mean)


# ---- edges and services


def edges(runs: Sequence[ReportRun]) -> Table:
    several = sum(len(run.results) for run in runs) > 1
    columns = [
        Column("publisher → subscription", False),
        Column("topic", False),
        *run_column(runs),
        *([Column("result", False)] if several else []),
        Column("size"),
        Column("Hz"),
        Column("sent"),
        Column("received"),
        Column("lost"),
        Column("late"),
        Column("too late"),
        *(Column(f"latency {quantile}") for quantile in _FEW),
        *(Column(f"response {quantile}") for quantile in _FEW[1:]),
    ]
    rows = [
        [
            word(f"{edge.publisher or '?'} → {edge.subscription or '?'}"),
            word(edge.topic),
            *run_cell(runs, run),
            *([word(label)] if several else []),
            number(format_bytes(edge.size_bytes), edge.size_bytes),
            number(format_rate(edge.frequency_hz or None), edge.frequency_hz or None),
            *_counts(edge),
            *_times(edge.latency_ns, _FEW),
            *_times(edge.response_ns, _FEW[1:]),
        ]
        for run, label, result in of_all(runs)
        for edge in result.edges
    ]
    return Table("Edges", columns, rows)


def services(runs: Sequence[ReportRun]) -> Table:
    several = sum(len(run.results) for run in runs) > 1
    columns = [
        Column("client → server", False),
        Column("service", False),
        *run_column(runs),
        *([Column("result", False)] if several else []),
        Column("Hz"),
        Column("sent"),
        Column("received"),
        Column("lost"),
        Column("late"),
        Column("too late"),
        *(Column(f"round trip {quantile}") for quantile in _FEW),
    ]
    rows = [
        [
            word(f"{service.client or '?'} → {service.server or '?'}"),
            word(service.service),
            *run_cell(runs, run),
            *([word(label)] if several else []),
            number(format_rate(service.frequency_hz or None), service.frequency_hz or None),
            *_counts(service),
            *_times(service.round_trip_ns, _FEW),
        ]
        for run, label, result in of_all(runs)
        for service in result.services
    ]
    return Table("Services", columns, rows)


def _counts(owner: Counts) -> list[Cell]:
    return [
        count(owner.sent),
        count(owner.received),
        count(least_lost(owner), "bad"),
        count(owner.late, "warn"),
        count(owner.too_late, "bad"),
    ]


def resources(runs: Sequence[ReportRun]) -> Table:
    columns = [
        Column("process", False),
        *run_column(runs),
        Column("result", False),
        Column("CPU", title="100 % is one CPU"),
        Column("RSS peak"),
    ]
    rows = [
        [word(p.process), *run_cell(runs, run), word(label), _cpu(p), size_of(p.rss_kb_max)]
        for run, label, result in of_all(runs)
        for p in result.resources.processes
    ]
    return Table("Resources of each process", columns, rows)


# ---- trials


def trials(runs: Sequence[ReportRun]) -> Table:
    columns = [
        Column("trial"),
        *run_column(runs),
        Column("order", title="where it stood in the plan"),
        Column("block"),
        Column("result", False),
        Column("after", False, "the disturbance right before it"),
        Column("outcome", False),
        Column("latency p50"),
        Column("latency p99"),
        Column("latency max"),
        Column("received"),
        Column("lost"),
        Column("late"),
        Column("CPU", title="100 % is one CPU"),
        Column("cool-down", title="how long it waited for a quiet machine"),
        Column("began", False, "time of day, UTC"),
    ]
    rows = []
    for run in runs:
        for label, _, trial in run.trials:
            document, latency = run.file(trial), trial.totals.latency_ns or Distribution()
            purpose = "" if trial.purpose in (None, MEASURED) else f"{trial.purpose} trial"
            result = Cell(label, label, below=() if purpose in label or purpose == "control trial" else (purpose,))
            judged = outcome(trial.outcome)
            rows.append(
                [
                    number(str(trial.trial), trial.trial),
                    *run_cell(runs, run),
                    number(_plain(trial.order), trial.order),
                    number(_plain(trial.block), trial.block),
                    result,
                    word(trial.after),
                    Cell(judged.text, judged.by, judged.tone, (trial.reason or "",), judged.sign),
                    time(latency.p50),
                    time(latency.p99),
                    time(latency.max),
                    count(received(trial)),
                    count(least_lost(*owners(trial)), "bad"),
                    count(counted(trial, lambda owner: owner.late), "warn"),
                    _cpu(trial.resources),
                    cooled(document.get("cool_down")),
                    word(_clock(document.get("started_utc"))),
                ]
            )
    return Table("Trials", columns, rows)


def _plain(value: object) -> str:
    return "–" if value is None else str(value)


def cooled(cool_down: Json | None) -> Cell:
    if not cool_down:
        return number("–", None)
    waited = cool_down.get("waited_s")
    text = "–" if waited is None else format_duration(waited) if waited >= 0.0005 else "0 s"
    if cool_down.get("reached") is False:
        return Cell(text, waited, "warn", (_busy(cool_down),), "!")
    return number(text, waited)


def _busy(cool_down: Json) -> str:
    busy = cool_down.get("busy_percent")
    return "not quiet" if busy is None else f"not quiet: {busy:.3g} % busy"


def _clock(text: object) -> str | None:
    """The time of day of an instant as trial.json writes it."""
    return str(text)[11:19] if isinstance(text, str) and len(text) >= 19 else None
