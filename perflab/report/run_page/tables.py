"""The tables of a report: results, edges, services, trials, resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perflab.report.run_page import key_figures
from perflab.report.run_page.elements import SIGNS, Cell, Column, Table, Tone, number, word
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.run_page.words import metric_of, size
from perflab.statistics.metric_comparison import BETTER, WORSE
from perflab.statistics.metrics import Metric
from perflab.statistics.pairs import CONDITION
from perflab.statistics.remarks import SAME, no_difference_of
from perflab.statistics.selection import CONTROL, place_words, purpose_of
from perflab.statistics.totals import all_lost, counted, delivered, expected, lost
from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

Json = dict[str, Any]

OUTCOMES: dict[str, tuple[str, str, Tone]] = {
    "success": ("✔", "success", "good"),
    "failed": ("✖", "failed", "bad"),
    "invalid": ("!", "invalid", "warn"),
    "harness_error": ("!", "harness error", "warn"),
}
_QUANTILES = ("p50", "p90", "p99", "p99_9", "max")


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


def outcome(name: str) -> Cell:
    sign, words, tone = OUTCOMES.get(name, ("?", name, ""))
    return Cell(words, words, tone, sign=sign)


# ---- results


def results(runs: Sequence[ReportRun]) -> Table:
    """The median over trials of every compared metric with its interval, and how it differs from the baseline."""
    names = dict.fromkeys(name for run in runs for name in _metric_names(run))
    metrics = [metric for name in names if (metric := metric_of(name)) is not None]
    columns = [Column("result", False), *run_column(runs), Column("n", title="trials that enter"), Column("success")]
    columns += [Column(metric.words, title="median over trials [interval]") for metric in metrics]
    rows = []
    for run, label, result in of_all(runs):
        compared = _compared(run, result)
        cells = [word(label), *run_cell(runs, run), _entered(result), _successes(result)]
        cells += [_interval(result, metric, compared.get(metric.name)) for metric in metrics]
        rows.append(cells)
    told = any(c["kind"] == CONDITION for run in runs for c in _comparisons(run))
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
    return list(dict.fromkeys(name for result in run.results for name in result.get("intervals") or ()))


def _comparisons(run: ReportRun) -> list[Json]:
    comparisons: list[Json] = (run.summary.get("findings") or {}).get("comparisons") or []
    return comparisons


def _compared(run: ReportRun, result: Json) -> dict[str, Json]:
    """The comparisons of a disturbed result with its baseline, by metric."""
    if not result.get("conditions") or purpose_of(result) == CONTROL:
        return {}
    place = place_words(result)
    return {
        c["metric"]: c
        for c in _comparisons(run)
        if c["kind"] == CONDITION
        and c["treatment"]["name"] == result["treatment"]
        and str(c["variant"]) in (place, f"{result.get('workload')}, {place}")
    }


def _interval(result: Json, metric: Metric, comparison: Json | None) -> Cell:
    found = (result.get("intervals") or {}).get(metric.name)
    if found is None:
        return number("–", None)
    text = metric.format(found["value"])
    between = "" if found["low"] is None else f"[{metric.format(found['low'])}, {metric.format(found['high'])}]"
    if comparison is None:
        return Cell(text, float(found["value"]), below=(between,))
    tones: dict[str | None, Tone] = {WORSE: "bad", BETTER: "good"}
    tone = tones.get(comparison["effect"], "")
    alike = comparison["verdict"] == "equivalent" or no_difference_of(comparison) == SAME
    sign = SIGNS[tone] if tone else "=" if alike else "≈" if comparison["verdict"] == "below_noise_floor" else "?"
    return Cell(text, float(found["value"]), tone, (between, f"{sign} {size(metric, comparison)}"))


def _entered(result: Json) -> Cell:
    from perflab.statistics.selection import entering

    n = len(entering(result))
    return number(str(n), n)


def _successes(result: Json) -> Cell:
    outcomes = result["outcomes"]
    n = outcomes["success"] + outcomes["failed"]
    kinds = (("invalid", "invalid"), ("harness_error", "harness error"))
    more = ", ".join(f"+{outcomes[kind]} {what}" for kind, what in kinds if outcomes[kind])
    text = f"{outcomes['success']}/{n}" + (f" ({more})" if more else "")
    tone: Tone = "bad" if outcomes["failed"] else "warn" if more else ""
    return Cell(text, outcomes["success"] / n if n else None, tone, sign={"bad": "✖", "warn": "!"}.get(tone, ""))


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
        *(Column(f"latency {_dotted(q)}") for q in ("mean", *_QUANTILES)),
        Column("response p99"),
        Column("response max"),
        Column("round trip p99", title="of the slowest service"),
        Column("CPU", title="100 % is one CPU"),
        Column("RSS peak"),
    ]
    rows = []
    for run, label, result in of_all(runs):
        latency, response = result["totals"].get("latency_ns") or {}, result["totals"].get("response_ns") or {}
        trips = [q for s in result["services"] if (q := (s.get("round_trip_ns") or {}).get("p99")) is not None]
        merged = result["coverage"]["trials_merged"]
        rows.append(
            [
                word(label),
                *run_cell(runs, run),
                number(str(merged), merged),
                count(delivered(result)),
                count(expected(result)),
                count(all_lost(result), "bad"),
                count(counted(result, lambda owner: owner["late"]), "warn"),
                count(counted(result, lambda owner: owner["too_late"]), "bad"),
                *(time(latency.get(q)) for q in ("mean", *_QUANTILES)),
                time(response.get("p99")),
                time(response.get("max")),
                time(max(trips, default=None)),
                _cpu(result["resources"]),
                size_of(result["resources"].get("rss_kb_max")),
            ]
        )
    note = "All messages of all trials together: a maximum is that of more messages where there are more trials."
    return Table("All messages together", columns, rows, [note] if len(rows) > 1 else [])


def _dotted(quantile: str) -> str:
    return quantile.replace("_", ".")


def _cpu(resources: Json) -> Cell:
    """Per cent of one CPU; of foreign runs, of all CPUs, as they say it."""
    if resources.get("cpu_percent_mean") is None and resources.get("cpu_percent_of_machine") is not None:
        share = float(resources["cpu_percent_of_machine"])
        return number(f"{share:.3g} % of all", share)
    return percent(resources.get("cpu_percent_mean"))


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
        *(Column(f"latency {q}") for q in ("mean", "p50", "p99", "max")),
        Column("response p50"),
        Column("response p99"),
        Column("response max"),
    ]
    rows = []
    for run, label, result in of_all(runs):
        for edge in result["edges"]:
            latency, response = edge.get("latency_ns") or {}, edge.get("response_ns") or {}
            rows.append(
                [
                    word(f"{edge.get('publisher') or '?'} → {edge.get('subscription') or '?'}"),
                    word(edge.get("topic")),
                    *run_cell(runs, run),
                    *([word(label)] if several else []),
                    number(format_bytes(edge.get("size_bytes")), edge.get("size_bytes")),
                    number(format_rate(edge.get("frequency_hz") or None), edge.get("frequency_hz") or None),
                    *_counts(edge),
                    *(time(latency.get(q)) for q in ("mean", "p50", "p99", "max")),
                    *(time(response.get(q)) for q in ("p50", "p99", "max")),
                ]
            )
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
        *(Column(f"round trip {q}") for q in ("mean", "p50", "p99", "max")),
    ]
    rows = []
    for run, label, result in of_all(runs):
        for service in result["services"]:
            trip = service.get("round_trip_ns") or {}
            rows.append(
                [
                    word(f"{service.get('client') or '?'} → {service.get('server') or '?'}"),
                    word(service.get("service")),
                    *run_cell(runs, run),
                    *([word(label)] if several else []),
                    number(format_rate(service.get("frequency_hz") or None), service.get("frequency_hz") or None),
                    *_counts(service),
                    *(time(trip.get(q)) for q in ("mean", "p50", "p99", "max")),
                ]
            )
    return Table("Services", columns, rows)


def _counts(owner: Json) -> list[Cell]:
    return [
        count(owner.get("sent")),
        count(owner.get("received")),
        count(lost(owner), "bad"),
        count(owner.get("late"), "warn"),
        count(owner.get("too_late"), "bad"),
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
        [word(p["process"]), *run_cell(runs, run), word(label), _cpu(p), size_of(p.get("rss_kb_max"))]
        for run, label, result in of_all(runs)
        for p in result["resources"].get("processes") or ()
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
            document, latency = run.file(trial), (trial.get("totals") or {}).get("latency_ns") or {}
            owner = {"totals": trial["totals"], "services": trial.get("services") or [], "edges": []}
            purpose = "" if trial.get("purpose") in (None, "measured") else f"{trial['purpose']} trial"
            result = Cell(label, label, below=() if purpose in label or purpose == "control trial" else (purpose,))
            judged = outcome(trial["outcome"])
            rows.append(
                [
                    number(str(trial["trial"]), trial["trial"]),
                    *run_cell(runs, run),
                    number(_plain(trial.get("order")), trial.get("order")),
                    number(_plain(trial.get("block")), trial.get("block")),
                    result,
                    word(trial.get("after")),
                    Cell(judged.text, judged.by, judged.tone, (str(trial.get("reason") or ""),), judged.sign),
                    time(latency.get("p50")),
                    time(latency.get("p99")),
                    time(latency.get("max")),
                    _over(owner, delivered),
                    _over(owner, all_lost, "bad"),
                    _over(owner, lambda o: counted(o, lambda part: part["late"]), "warn"),
                    _cpu(trial["resources"]),
                    cooled(document.get("cool_down")),
                    word(_clock(document.get("started_utc"))),
                ]
            )
    return Table("Trials", columns, rows)


def _over(owner: Json, read: Callable[[Json], int | None], tone: Tone = "") -> Cell:
    """A count over topics and services of a trial; not known where it recorded nothing."""
    return count(read(owner) if owner["totals"] else None, tone)


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
