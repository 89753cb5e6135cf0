"""Results in words: one line each, of what a summary says."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from perflab.models import as_json
from perflab.results.trial import Counts, EdgeResult, Lost, Passing, Result, ServiceResult, ThreadGroup, added
from perflab.units import format_count


def threads_in_words(threads: Sequence[ThreadGroup]) -> str:
    """ "ping executor_0 RR 98 on CPU 1; middleware (5 threads) OTHER"; empty where nothing was asked for."""
    parts = []
    for process in dict.fromkeys(t.process for t in threads if t.asked is not None):
        mine = [t for t in threads if t.process == process]
        alike: dict[str, int] = {}
        for thread in mine:
            if thread.role == "executor":
                alike[f"{thread.name} {_scheduling(thread)}"] = len(thread.tids)
        for words, count in alike.items():
            parts.append(f"{process} {words}" if count == 1 else f"{process} {words} ({count} threads)")
        others: dict[str, int] = {}
        for thread in mine:
            if thread.role == "middleware":
                words = _scheduling(thread)
                others[words] = others.get(words, 0) + len(thread.tids)
        for words, count in others.items():
            parts.append(f"middleware ({'1 thread' if count == 1 else f'{count} threads'}) {words}")
    return "; ".join(parts)


def _scheduling(thread: ThreadGroup) -> str:
    """As the kernel says it; the CPUs where these were asked for."""
    priority = f" {thread.priority}" if thread.priority else ""
    asked = thread.asked or {}
    if not asked.get("cpus"):
        return f"{thread.policy}{priority}"
    cpus = ",".join(map(str, thread.cpus))
    return f"{thread.policy}{priority} on CPU{'s' if len(thread.cpus) > 1 else ''} {cpus}"


def passing_in_words(result: Result) -> list[tuple[str, str]]:
    """What took effect of the ways to hand over messages that were asked for, as lines with their styles."""
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
    """Mean over the messages of these publishers; None where it is not known how many there were."""
    published = {(e.publisher, e.topic): e.published for e in edges}
    known = [(p.copies, n) for p in passing if (n := published.get((p.node, p.topic))) is not None]
    messages = sum(n for _, n in known)
    return sum(copies * n for copies, n in known) / messages if messages and len(known) == len(passing) else None


def replies_of(services: Sequence[ServiceResult]) -> Counts:
    """The counts of all services together; None where one is not known."""
    lost = {kind: added(getattr(s.lost, kind) for s in services) for kind in _LOST_WORDS}
    return Counts(**{key: added(getattr(s, key) for s in services) for key in _COUNTED}, lost=Lost(**lost))


def totals_in_words(totals: Counts, what: str = "messages") -> Text:
    """ "10 540 of 10 540 messages received, 0 lost, 12 late (0.11 %), 0 too late"; only what is known."""
    received = totals.received
    text = Text()
    of = f" of {format_count(totals.sent)}" if totals.sent is not None else ""
    text.append(f"{format_count(received)}{of} {what} received", "bold")
    lost = totals.lost
    known = [n for n in lost.classes if n is not None]
    amount = sum(known)
    kinds = ", ".join(f"{format_count(n)} {_LOST_WORDS[kind]}" for kind, n in as_json(lost).items() if n)
    text.append(", ")
    if not known or (not amount and len(known) < len(lost.classes)):  # "at least 0" would say nothing
        text.append("losses not known", "yellow")
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


_COUNTED = ("sent", "received", "late", "too_late", "reordered", "duplicate", "not_sent", "write_errors")
_LOST_WORDS = {"pre_match": "before matching", "gap": "in gaps", "tail": "at the end"}
