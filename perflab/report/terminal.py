"""Results on a terminal: a header, totals in words, a table of distributions, a table of edges, and remarks; after
several results one table that compares them.

Tables never wrap: on a narrow terminal the least important columns are left out, and long names end in an ellipsis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perflab.columns import Table
from perflab.models import as_json
from perflab.report import inventory
from perflab.report.label import NO_MIDDLEWARE, labels, levels, observers
from perflab.report.table import STYLES, print_declared, print_rows
from perflab.report.tables import floors, key_figures, messages, objectives
from perflab.report.tables import machine as machines
from perflab.report.tables import outcomes as own_outcomes
from perflab.report.tables.messages import Of
from perflab.results.files import Manifest
from perflab.results.outcome import SUCCESS, Outcomes
from perflab.results.summary import Summary
from perflab.results.trial import (
    Counts,
    EdgeResult,
    Lost,
    Passing,
    Resources,
    Result,
    ServiceResult,
    ThreadGroup,
    Totals,
    Trial,
    added,
    received,
)
from perflab.statistics.selection import variant_words
from perflab.statistics.trust import trust_of
from perflab.units import format_count, format_duration, format_time, plural

Json = dict[str, Any]
Timed = TypeVar("Timed", EdgeResult, ServiceResult)

MAX_EDGES = 60
MAX_TROUBLES = 5
MAX_RESULTS_WITH_EDGES = 2
MAX_WHOLE_RESULTS = 4  # with more, only the comparing table is readable

_COUNTED = ("sent", "received", "late", "too_late", "reordered", "duplicate", "not_sent", "write_errors")
_LOST_WORDS = {"pre_match": "before matching", "gap": "in gaps", "tail": "at the end"}
_DRAIN_WORDS = {
    "quiet": "losses at the end are messages that had not arrived when nothing had moved for --drain-quiet",
    "limit": "messages still arrived when the drain reached --drain-limit; losses at the end may be merely late",
}


def print_summary(
    out: Console,
    summary: Summary,
    manifest: Manifest,
    notes: Sequence[str] = (),
    *,
    edges: bool | None = None,
    threads: bool = False,
) -> None:
    """The report of a run. `edges`: whether to print the tables of edges; None: if there are few results. `threads`:
    also all threads."""
    for note in notes:
        _line(out, f"Note: {note}", "yellow")
    if notes:
        out.print()
    if summary.breaking_points:
        _print_search(out, summary, manifest)
        return
    versions = {m.name: m.version for m in manifest.middlewares}
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
    if threads:
        from perflab.report.tables.threads import of_results

        print_declared(out, of_results(_named(summary.results)))
        if (did := machines.of_results(_named(summary.results))).rows:
            print_declared(out, did)
    _print_answers(out, summary, manifest)
    if not summary.results:
        _line(out, "No trial was recorded.", "yellow")
        out.print()
    _print_trust(out, summary, manifest)


def _print_answers(out: Console, summary: Summary, manifest: Manifest) -> None:
    """The combined results: beside each other, why messages were late, curves, findings."""
    swept = bool(summary.curves)
    several = len(summary.results) > 1
    if several and not swept and any(received(result) is not None for result in summary.results):
        # A treatment may have more trials than another, and its maximum then covers more messages.
        title = "Compared:"
        if summary.findings is not None and summary.findings.comparisons:
            title = "All messages of all trials together (differences are judged below, one value per trial):"
        _line(out, title, "bold")
        print_rows(out, messages.all_messages(_named(summary.results)))
        out.print()
    if several:
        named = _named(summary.results)
        for table in (*own_outcomes.tables(named), *key_figures.in_short(named)):
            print_declared(out, table)
    for table in floors.tables(_named(summary.results)):
        print_declared(out, table)
    from perflab.report import answers

    answers.print_why(out, summary.results)
    for table in objectives.tables(_named(summary.results)):
        print_declared(out, table)
    if summary.executor_costs:
        from perflab.report.tables import costs

        for table in costs.tables(summary):
            print_declared(out, table)
    for words in (*(left.words for left in manifest.left_out), *(what.words for what in manifest.not_recorded)):
        _line(out, f"Note: {words}", "yellow")
    for level in manifest.unavailable_levels:
        _line(out, f"Left out: {level.factor} at {level.level}: {level.reason}", "yellow")
    answers.print_curves(out, summary)
    answers.print_findings(out, summary, with_tables=not swept)
    answers.print_claims(out, summary, inventory.in_words({**manifest.host, **manifest.inventory}))


def _print_search(out: Console, summary: Summary, manifest: Manifest) -> None:
    """A search has tried many levels a few times each: it shows what it found, not each of them."""
    from perflab.report.answers import print_breaking_points

    results = summary.results
    counts = Outcomes.together([r.outcomes for r in results]).words
    if results:
        first = results[0]
        _line(out, f"{first.workload}, trials of {format_duration(first.duration_s or 0)}: {counts}", "bold")
        out.print()
    _print_reasons(out, [t for r in results for t in r.trials_detail if not t.outcome.judged and t.reason])
    print_breaking_points(out, summary)
    _print_trust(out, summary, manifest)


def _discovery(result: Result) -> str:
    """How long the parts of the graph took to find each other, in the slowest trial."""
    parts = []
    for what, words in (("participants", "all participants found"), ("endpoints", "all endpoints matched")):
        known = [ns for t in result.trials_detail if (ns := getattr(t.discovery_ns, what)) is not None]
        if known:
            parts.append(f"{words} after {format_time(max(known))}")
    return ", ".join(parts)


def _print_header(out: Console, result: Result, middleware: str) -> None:
    conditions = ", ".join(word for word in (result.label, levels(result), observers(result)) if word)
    how_often, outcomes = plural(result.trials, "trial"), result.outcomes
    header = Text()
    header.append(result.workload, "bold")
    lasting = "" if result.duration_s is None else f" of {format_duration(result.duration_s)}"
    header.append(f" on {variant_words(replace(result, middleware=middleware))}, {conditions}: {how_often}{lasting}, ")
    words = outcomes.words if result.trials > 1 else result.trials_detail[0].ended
    header.append(words, f"bold {STYLES[outcomes.worst.tone]}")
    out.print(header)


def _print_result(out: Console, result: Result, middleware: str, with_edges: bool) -> None:
    _print_header(out, result, middleware)
    _print_troubles(out, result)
    if not result.coverage.complete and result.coverage.trials_merged:
        _line(out, "The numbers are those of the last checkpoints: losses at the end are unknown.", "yellow")
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
    if result.key_figures:
        print_rows(out, key_figures.of_result(result))
        out.print()
    if topics:
        if (times := messages.distributions(totals)).rows:
            print_rows(out, times)
            out.print()
        if with_edges:
            _print_slowest(out, messages.edges, result.edges)
    _print_slowest(out, messages.services, services)
    _print_resources(out, result.resources)
    if sites := messages.sites_of(result):
        print_declared(out, messages.allocation_sites([Of(site) for site in sites]))


def _print_troubles(out: Console, result: Result) -> None:
    """Why trials were not successful."""
    _print_reasons(out, [t for t in result.trials_detail if t.outcome != SUCCESS and t.reason])


def _print_reasons(out: Console, troubled: Sequence[Trial]) -> None:
    for trial in troubled[:MAX_TROUBLES]:
        _line(out, f"trial {trial.trial}: {trial.reason}", STYLES[trial.outcome.tone])
    if len(troubled) > MAX_TROUBLES:
        _line(out, f"… and {len(troubled) - MAX_TROUBLES} more", "dim")


def _print_run_time(out: Console, result: Result) -> None:
    """How long a command that ends by itself ran."""
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
    if did := machines.in_words(result):
        _line(out, f"Machine: {did}", "dim")


def _print_slowest(
    out: Console, declared: Callable[[Sequence[Of[Timed]]], Table[Of[Timed]]], parts: Sequence[Timed]
) -> None:
    """A table of edges or services; if there are very many, those with the highest p99."""
    if not parts:
        return
    shown = list(parts)
    if len(shown) > MAX_EDGES:
        shown.sort(key=lambda part: 0 if part.times_ns is None else part.times_ns.p99 or 0, reverse=True)
    print_rows(out, declared([Of(part) for part in shown[:MAX_EDGES]]))
    if len(parts) > MAX_EDGES:
        _line(out, f"… and {len(parts) - MAX_EDGES} more with a lower p99; `--json` has all of them", "dim")
    out.print()


def _named(results: Sequence[Result]) -> list[Of[Result]]:
    """Labelled by what they differ in."""
    return [Of(result, label) for label, result in zip(labels(results), results, strict=True)]


def _print_resources(out: Console, resources: Resources) -> None:
    if resources.processes:
        print_rows(out, messages.processes([Of(process) for process in resources.processes]))
        _line(out, messages.ONE_CPU, "dim")
        out.print()


def _print_trust(out: Console, summary: Summary, manifest: Manifest) -> None:
    """Whether to trust the results, and why; details of single trials are above."""
    if not summary.results:
        return
    trust = trust_of(summary, manifest)
    out.print(Text(f"{trust.sign} {trust.words}", f"bold {STYLES[trust.grade]}"))
    for reason in trust.reasons:
        out.print(Padding(Text(f"{reason.sign} {reason.words}", STYLES[reason.grade]), (0, 0, 0, 2)))
    out.print()


def _line(out: Console, text: str, style: str) -> None:
    out.print(Text(text, style))


# -- in words --------------------------------------------------------------------------------------------------------


def threads_in_words(threads: Sequence[ThreadGroup]) -> str:
    """ "ping executor_0 RR 98 on CPU 1; middleware (5 threads) OTHER"; empty if nothing was requested."""
    parts = []
    for process in dict.fromkeys(t.process for t in threads if t.asked is not None):
        counts: Counter[tuple[str, str]] = Counter()
        for thread in threads:
            if thread.process == process:
                name = f"{process} {thread.name} " if thread.role == "executor" else ""
                counts[thread.role, f"{name}{_scheduling(thread)}"] += len(thread.tids)
        of_role = {role: [(words, n) for (own, words), n in counts.items() if own == role] for role, _ in counts}
        parts += [words if n == 1 else f"{words} ({n} threads)" for words, n in of_role.get("executor", ())]
        parts += [f"middleware ({plural(n, 'thread')}) {words}" for words, n in of_role.get("middleware", ())]
    return "; ".join(parts)


def _scheduling(thread: ThreadGroup) -> str:
    """As reported by the kernel; with the CPUs if these were requested."""
    asked = thread.asked or {}
    if not asked.get("cpus"):
        return thread.scheduled
    cpus = ",".join(map(str, thread.cpus))
    return f"{thread.scheduled} on CPU{'s' if len(thread.cpus) > 1 else ''} {cpus}"


def passing_in_words(result: Result) -> list[tuple[str, str]]:
    """The effective ways to pass messages, of those that were requested, as lines with their styles."""
    passing = result.passing
    if not passing:
        return []
    lines = []
    if result.ipc == "on":
        direct = sum(p.intra_process for p in passing)
        total = direct + sum(p.middleware for p in passing)
        if direct:
            what = f"Intra-process: {format_count(direct)} of {format_count(total)} subscriptions"
            copies = _copies_per_message(result.edges, [p for p in passing if p.intra_process])
            lines.append((f"{what}{'' if copies is None else f', {copies:.2f} copies per message'}", ""))
        else:
            lines.append(("Note: --ipc on had no effect: no subscription is in the process of its publisher", "yellow"))
    asked = result.pass_by
    if asked or any(p.asked == "loaned" for p in passing):
        loaned = sum(bool(p.loaned) for p in passing)
        wanted = sum(p.asked == "loaned" for p in passing)
        if wanted:
            text = f"Loaned: {loaned} of {wanted} publishers write into memory of the middleware"
            lines.append((text if loaned else f"Note: {text[0].lower()}{text[1:]}", "" if loaned else "yellow"))
        else:
            handed = sum(p.asked == asked for p in passing)
            lines.append((f"Passing: {handed} of {len(passing)} publishers by {asked}", ""))
    return lines


def _copies_per_message(edges: Sequence[EdgeResult], passing: Sequence[Passing]) -> float | None:
    """Mean over the messages of these publishers; None if their number is unknown."""
    published = {(e.publisher, e.topic): e.published for e in edges}
    known = [(p.copies, n) for p in passing if (n := published.get((p.node, p.topic))) is not None]
    messages = sum(n for _, n in known)
    return sum(copies * n for copies, n in known) / messages if messages and len(known) == len(passing) else None


def replies_of(services: Sequence[ServiceResult]) -> Counts:
    """The counts of all services together; None if one is unknown."""
    lost = {kind: added(getattr(s.lost, kind) for s in services) for kind in _LOST_WORDS}
    return Counts(**{key: added(getattr(s, key) for s in services) for key in _COUNTED}, lost=Lost(**lost))


def totals_in_words(totals: Counts, what: str = "messages") -> Text:
    """ "10 540 of 10 540 messages received, 0 lost, 12 late (0.11 %), 0 too late"; only the known parts."""
    received = totals.received
    text = Text()
    if received is None and isinstance(totals, Totals) and totals.published is not None:
        text.append(f"{format_count(totals.published)} {what} published", "bold")
        text.append(", receivers unknown", "yellow")
        return text
    of = f" of {format_count(totals.sent)}" if totals.sent is not None else ""
    text.append(f"{format_count(received)}{of} {what} received", "bold")
    lost = totals.lost
    known = [n for n in lost.classes if n is not None]
    amount = sum(known)
    kinds = ", ".join(f"{format_count(n)} {_LOST_WORDS[kind]}" for kind, n in as_json(lost).items() if n)
    text.append(", ")
    if not known or (not amount and len(known) < len(lost.classes)):  # "at least 0" would say nothing
        text.append("losses unknown", "yellow")
    else:
        least = "" if len(known) == len(lost.classes) else "at least "
        style = "red" if amount else "green" if not least else ""
        text.append(f"{least}{format_count(amount)} lost{f' ({kinds})' if kinds else ''}", style)
    for n, word, style in ((totals.late, "late", "yellow"), (totals.too_late, "too late", "red")):
        if n is not None:
            share = f" ({100 * n / received:.3g} %)" if n and received else ""
            text.append(", ")
            text.append(f"{format_count(n)} {word}{share}", style if n else "")
    extras = (
        (totals.reordered, "reordered"),
        (totals.duplicate, "duplicates"),
        (totals.not_sent, "ticks not sent"),
        (totals.write_errors, "write errors"),
    )
    for n, word in extras:
        if n:
            text.append(f", {format_count(n)} {word}", "yellow")
    return text
