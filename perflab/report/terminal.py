"""Results on a terminal: a header, totals in words, a table of distributions, a table of edges, and what to know;
after several results one table that compares them.

Tables never wrap: where the terminal is narrow the columns that matter least are left out, and long names end in an
ellipsis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from perflab.models import as_json
from perflab.output import console
from perflab.report import key_figures
from perflab.report.label import NO_MIDDLEWARE, labels, levels, observers
from perflab.report.table import COLUMN_GAP, Column, print_table
from perflab.report.words import passing_in_words, replies_of, threads_in_words, totals_in_words
from perflab.results.summary import Summary
from perflab.results.trial import (
    FAILED,
    HARNESS_ERROR,
    INVALID,
    SUCCESS,
    Distribution,
    EdgeResult,
    Outcomes,
    Resources,
    Result,
    ServiceResult,
    Totals,
    Trial,
    counted,
    expected,
    least_lost,
    owners,
    received,
)
from perflab.statistics.metrics import cpu_per_message
from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

__all__ = ["COLUMN_GAP", "Column", "console", "print_summary", "print_table", "totals_in_words"]

Json = dict[str, Any]

MAX_EDGES = 60
MAX_TROUBLES = 5
MAX_RESULTS_WITH_EDGES = 2
MAX_WHOLE_RESULTS = 4  # of more the table that compares them is what can be read

WORST_FIRST = (HARNESS_ERROR, FAILED, INVALID)
LEFT_OUT = (INVALID, HARNESS_ERROR)  # trials that tell nothing of the system
_OUTCOME_STYLES = {"success": "green", "failed": "red", "invalid": "yellow", "harness_error": "red"}


_DRAIN_WORDS = {
    "quiet": "what is lost at the end had not arrived when nothing had moved for --drain-quiet",
    "limit": "messages still came when the drain reached --drain-limit; what is lost at the end may be merely late",
}


def print_summary(
    out: Console, summary: Summary, manifest: Json, notes: Sequence[str] = (), *, edges: bool | None = None
) -> None:
    """The report of a run. `edges` says whether to print the tables of edges; None: where there are few results."""
    for note in notes:
        _line(out, f"Note: {note}", "yellow")
    if notes:
        out.print()
    if summary.breaking_points:
        _print_search(out, summary, manifest)
        return
    versions = {m["name"]: m.get("version") for m in manifest.get("middlewares", ())}
    with_edges = len(summary.results) <= MAX_RESULTS_WITH_EDGES if edges is None else edges
    for result in summary.results:
        names = (result.middleware or NO_MIDDLEWARE).split("+")  # one for all processes, or one for each
        versioned = [f"{name} {versions[name]}" if versions.get(name) else name for name in names]
        if (len(summary.results) <= MAX_WHOLE_RESULTS and not summary.curves) or edges:
            _print_result(out, result, " + ".join(versioned), with_edges)
        else:
            _print_header(out, result, " + ".join(versioned))
            _print_troubles(out, result)
    if len(summary.results) > MAX_WHOLE_RESULTS and not edges:
        out.print()
    _print_answers(out, summary, manifest)
    if not summary.results:
        _line(out, "No trial was recorded.", "yellow")
        out.print()
    if any(result.middleware != "virtual" for result in summary.results):
        _print_noise(out, manifest.get("preflight", ()))


def _print_answers(out: Console, summary: Summary, manifest: Json) -> None:
    """What the results show together: beside each other, why messages were late, curves, findings."""
    swept = bool(summary.curves)
    several = len(summary.results) > 1
    if several and not swept and any(received(result) is not None for result in summary.results):
        _print_comparison(out, summary.results, judged=_has_comparisons(summary))
    if several:
        key_figures.print_compared(out, summary.results)
    from perflab.report.why import print_why

    print_why(out, summary.results)
    if summary.executor_costs:
        from perflab.report.executor_costs import print_costs

        print_costs(out, summary)
    for level in manifest.get("unavailable_levels") or ():
        _line(out, f"Left out: {level['factor']} at {level['level']}: {level['reason']}", "yellow")
    if swept:
        from perflab.report.sweep import print_curves

        print_curves(out, summary)
    if summary.findings:
        from perflab.report.findings import print_findings

        print_findings(out, summary, tables=not swept)


def _print_search(out: Console, summary: Summary, manifest: Json) -> None:
    """A search has tried many levels a few times each: what it found, and not each of them, is what is read."""
    from perflab.report.sweep import print_breaking_points

    results = summary.results
    outcomes = as_json(Outcomes.together([r.outcomes for r in results]))
    counts = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in outcomes.items() if n)
    if results:
        first = results[0]
        _line(out, f"{first.workload}, trials of {format_duration(first.duration_s or 0)}: {counts}", "bold")
        out.print()
    _print_reasons(out, [t for r in results for t in r.trials_detail if t.outcome in LEFT_OUT and t.reason])
    print_breaking_points(out, summary)
    if any(result.middleware != "virtual" for result in results):
        _print_noise(out, manifest.get("preflight", ()))


def _has_comparisons(summary: Summary) -> bool:
    return summary.findings is not None and bool(summary.findings.comparisons)


def _discovery(result: Result) -> str:
    """What is known of how long the parts of the graph took to find each other, in the slowest trial."""
    parts = []
    for what, words in (("participants", "all participants found"), ("endpoints", "all endpoints matched")):
        known = [ns for t in result.trials_detail if (ns := getattr(t.discovery_ns, what)) is not None]
        if known:
            parts.append(f"{words} after {format_time(max(known))}")
    return ", ".join(parts)


def _variant(result: Result) -> str:
    """What was asked for beside middleware and conditions: "events, ipc on, "."""
    asked = (
        result.executor,
        "ipc on" if result.ipc == "on" else None,
        f"by {result.pass_by}" if result.pass_by else None,
    )
    return "".join(f"{word}, " for word in asked if word)


def _print_header(out: Console, result: Result, middleware: str) -> None:
    conditions = ", ".join(word for word in (result.label, levels(result), observers(result)) if word)
    trials = result.trials
    how_often = "1 trial" if trials == 1 else f"{trials} trials"
    outcomes = {name: n for name, n in as_json(result.outcomes).items() if n}
    worst = next((o for o in WORST_FIRST if o in outcomes), SUCCESS)
    header = Text()
    header.append(result.workload, "bold")
    header.append(f" on {middleware}, {_variant(result)}{conditions}: {how_often} of ")
    header.append(f"{format_duration(result.duration_s or 0)}, ")
    words = [f"{n} {name}" if trials > 1 else name for name, n in outcomes.items()]
    header.append(", ".join(words), f"bold {_OUTCOME_STYLES[worst]}")
    out.print(header)


def _print_result(out: Console, result: Result, middleware: str, with_edges: bool) -> None:
    _print_header(out, result, middleware)
    _print_troubles(out, result)
    if not result.coverage.complete and result.coverage.trials_merged:
        _line(out, "The numbers are those of the last checkpoints: what was lost at the end is not known.", "yellow")
    for trial in result.trials_detail:
        if trial.drain in _DRAIN_WORDS and trial.totals.lost.tail:
            _line(out, f"trial {trial.trial}: {_DRAIN_WORDS[trial.drain]}", "yellow")
    totals, services = result.totals, result.services
    topics = totals.received is not None or totals.published is not None
    if not topics and not services:
        reasons = {str(m["reason"]) for t in result.trials_detail if (m := t.messages) and m.get("reason")}
        _line(out, f"No messages: {'; '.join(sorted(reasons))}." if reasons else "Nothing was recorded.", "yellow")
        _print_run_time(out, result)
        out.print()
        _print_resources(out, result.resources)
        return
    out.print()
    _print_words(out, result, topics)
    out.print()
    key_figures.print_of_result(out, result)
    if topics:
        _print_distributions(out, totals)
        out.print()
        if with_edges:
            _print_edges(out, result.edges)
            out.print()
    if services:
        _print_services(out, services)
        out.print()
    _print_resources(out, result.resources)


def _print_troubles(out: Console, result: Result) -> None:
    """Why trials were no successes."""
    _print_reasons(out, [t for t in result.trials_detail if t.outcome != "success" and t.reason])


def _print_reasons(out: Console, troubled: Sequence[Trial]) -> None:
    for trial in troubled[:MAX_TROUBLES]:
        _line(out, f"trial {trial.trial}: {trial.reason}", _OUTCOME_STYLES[trial.outcome])
    if len(troubled) > MAX_TROUBLES:
        _line(out, f"… and {len(troubled) - MAX_TROUBLES} more", "dim")


def _print_run_time(out: Console, result: Result) -> None:
    """How long a command ran that ends by itself."""
    known = [t.run_s for t in result.trials_detail if t.run_s is not None]
    if known:
        spread = f", {format_duration(min(known))} to {format_duration(max(known))}" if len(known) > 1 else ""
        _line(out, f"It ran for {format_duration(sum(known) / len(known))}{spread}.", "")


def _print_words(out: Console, result: Result, topics: bool) -> None:
    _print_run_time(out, result)
    if topics:
        out.print(totals_in_words(result.totals))
    if services := result.services:
        out.print(totals_in_words(replies_of(services), "replies"))
    if (discovery := _discovery(result)) and result.middleware != "virtual":
        _line(out, f"Discovery: {discovery}", "dim")
    for text, style in passing_in_words(result):
        _line(out, text, style)
    if threads := threads_in_words(result.threads or ()):
        _line(out, f"Threads: {threads}", "")


def _print_distributions(out: Console, totals: Totals) -> None:
    names = ("latency", "response", "publish_delay", "publish_call", "dispatch", "work")
    rows = [(name.replace("_", " "), q) for name in names if (q := getattr(totals, f"{name}_ns")) is not None]
    ranks = {"min": 7, "mean": 8, "p50": 3, "p90": 6, "p99": 1, "p99_9": 4, "p99_99": 5, "max": 2}
    columns = [Column("", 0, [Text(name) for name, _ in rows], right=False)]
    for key, rank in ranks.items():
        columns.append(Column(key.replace("_", "."), rank, [Text(format_time(getattr(q, key))) for _, q in rows]))
    when = [Text("–" if q.max_at_s is None else f"at {format_duration(q.max_at_s)}") for _, q in rows]
    columns.append(Column("", 9, when, right=False, called="when the maximum was"))
    print_table(out, columns)


def _print_edges(out: Console, edges: Sequence[EdgeResult]) -> None:
    if not edges:
        return
    shown = list(edges)
    if len(shown) > MAX_EDGES:
        shown = sorted(shown, key=lambda e: _of(e.latency_ns, "p99") or 0, reverse=True)[:MAX_EDGES]

    def ends(edge: EdgeResult) -> str:
        return f"{edge.publisher} → {edge.subscription}"

    def column(header: str, rank: int, cell: Callable[[EdgeResult], Text | str], *, right: bool = True) -> Column:
        return Column(header, rank, [c if isinstance(c := cell(e), Text) else Text(c) for e in shown], right)

    def times(owner: str, key: str, rank: int) -> Column:
        cells = [Text(format_time(_of(getattr(e, f"{owner}_ns"), key))) for e in shown]
        return Column(key, rank, cells, group=owner)

    print_table(
        out,
        [
            column("publisher → subscription", 0, ends, right=False),
            column("topic", 7, lambda e: e.topic, right=False),
            column("size", 14, lambda e: format_bytes(e.size_bytes)),
            column("Hz", 13, lambda e: format_rate(e.frequency_hz or None)),
            column("sent", 12, lambda e: format_count(e.sent)),
            column("received", 2, lambda e: format_count(e.received)),
            column("lost", 3, lambda e: _count(least_lost(e), "red")),
            column("late", 10, lambda e: _count(e.late, "yellow")),
            column("too late", 11, lambda e: _count(e.too_late, "red")),
            # A foreign run may have no percentiles.
            times("latency", "p50" if any(_of(e.latency_ns, "p50") is not None for e in shown) else "mean", 6),
            times("latency", "p99", 4),
            times("latency", "max", 5),
            times("response", "p50", 9),
            times("response", "p99", 8),
            times("response", "max", 9),
        ],
    )
    if len(edges) > len(shown):
        _line(out, f"… and {len(edges) - len(shown)} more with a lower p99; `--json` has all of them", "dim")


def _print_services(out: Console, services: Sequence[ServiceResult]) -> None:
    shown = list(services)
    if len(shown) > MAX_EDGES:
        shown = sorted(shown, key=lambda s: _of(s.round_trip_ns, "p99") or 0, reverse=True)[:MAX_EDGES]

    def column(header: str, rank: int, cell: Callable[[ServiceResult], Text | str], *, right: bool = True) -> Column:
        return Column(header, rank, [c if isinstance(c := cell(s), Text) else Text(c) for s in shown], right)

    def times(key: str, rank: int) -> Column:
        cells = [Text(format_time(_of(s.round_trip_ns, key))) for s in shown]
        return Column(key, rank, cells, group="round trip")

    print_table(
        out,
        [
            column("client → server", 0, lambda s: f"{s.client} → {s.server}", right=False),
            column("service", 7, lambda s: s.service, right=False),
            column("Hz", 10, lambda s: format_rate(s.frequency_hz or None)),
            column("sent", 9, lambda s: format_count(s.sent)),
            column("received", 2, lambda s: format_count(s.received)),
            column("lost", 3, lambda s: _count(least_lost(s), "red")),
            column("late", 8, lambda s: _count(s.late, "yellow")),
            times("p50" if any(_of(s.round_trip_ns, "p50") is not None for s in shown) else "mean", 6),
            times("p99", 4),
            times("max", 5),
        ],
    )
    if len(services) > len(shown):
        _line(out, f"… and {len(services) - len(shown)} more with a lower p99; `--json` has all of them", "dim")


def _print_comparison(out: Console, results: Sequence[Result], *, judged: bool) -> None:
    """One row per result, called by what it differs in; `judged` says whether findings follow."""

    def column(header: str, rank: int, cell: Callable[[Result], Text | str], group: str = "") -> Column:
        cells = [c if isinstance(c := cell(r), Text) else Text(c) for r in results]
        return Column(header, rank, cells, group=group)

    def times(owner: str, key: str, rank: int) -> Column:
        return column(key, rank, lambda r: format_time(_of(getattr(r.totals, f"{owner}_ns"), key)), owner)

    figures = [
        column("received/expected", 2, lambda r: f"{format_count(received(r))}/{format_count(expected(r))}"),
        column("lost", 3, lambda r: _count(least_lost(*owners(r)), "red")),
        column("late", 8, lambda r: _count(counted(r, lambda owner: owner.late), "yellow")),
        times("latency", "p50", 6),
        times("latency", "p99", 1),
        times("latency", "max", 5),
        times("response", "p99", 7),
        column("p99", 4, _slowest_round_trip, "round trip"),
        column("CPU", 9, lambda r: _percent(r.resources.cpu_percent_mean)),
        column("per message", 10, lambda r: format_time(_cpu_per_message_ns(r)), "CPU"),
        column("RSS peak", 11, lambda r: format_bytes(_bytes(r.resources.rss_kb_max))),
    ]
    # A treatment may have more trials than another, and its maximum is that of more messages.
    title = "Compared:"
    if judged:
        title = "All messages of all trials together (differences are judged below, one value per trial):"
    _line(out, title, "bold")
    measured = [figure for figure in figures if any(cell.plain != format_time(None) for cell in figure.cells)]
    names = Column("", 0, [Text(name) for name in labels(results)], right=False)
    trials = column("trials", 3, lambda r: str(r.coverage.trials_merged))
    print_table(out, [names, trials, *measured])
    out.print()


def _slowest_round_trip(result: Result) -> str:
    """Of the slowest service: percentiles of several cannot be merged from here."""
    return format_time(max((q for s in result.services if (q := _of(s.round_trip_ns, "p99"))), default=None))


def _cpu_per_message_ns(result: Result) -> int | None:
    """CPU time of all processes for each message that was delivered, over the merged trials."""
    value = cpu_per_message(result.merged).value
    return None if value is None else round(value)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g} %"


def _bytes(kilobytes: int | None) -> int | None:
    return None if kilobytes is None else kilobytes * 1024


def _of(times: Distribution | None, statistic: str) -> int | None:
    return None if times is None else getattr(times, statistic)


def _count(n: int | None, style: str) -> Text:
    return Text(format_count(n), style if n else "")


def _print_resources(out: Console, resources: Resources) -> None:
    parts = []
    for process in resources.processes:
        cpu, rss = process.cpu_percent_mean, process.rss_kb_max
        used = "CPU –" if cpu is None else f"CPU {cpu:.3g} %"
        peak = "RSS –" if rss is None else f"RSS {format_bytes(rss * 1024)} at most"
        parts.append(f"{process.process}: {used}, {peak}")
    if parts:
        out.print(Text(f"Resources (100 % is one CPU): {'; '.join(parts)}"), soft_wrap=False)
        out.print()


def _print_noise(out: Console, preflight: Sequence[Json]) -> None:
    warnings = [f"{c['name']} ({c['value']})" if c["value"] else c["name"] for c in preflight if c["status"] == "warn"]
    if warnings:
        out.print(Text(f"Noise on this machine: {', '.join(warnings)}; `perflab doctor` says what to do.", "yellow"))
        out.print()


def _line(out: Console, text: str, style: str) -> None:
    out.print(Text(text, style))
