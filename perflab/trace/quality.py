"""How good the data of a trace are: what was lost, what does not fit together, and how much each figure rests on.

Worked out once, for all answers (docs/tracing.md, Data quality). Nothing here corrects anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Rows, Table, because, count, flag, identity, percent, text, time
from perflab.trace.names import HANDLE, HOST, NO_SCHEDULER, PID, PROCESS, SILENT_EXECUTORS
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.source import Count, Reads, Source
from perflab.units import format_count, format_time, plural

if TYPE_CHECKING:
    import polars as pl
else:
    from perflab.late_modules import polars as pl

Json = dict[str, Any]

NO_SUBSCRIPTION = "the initialisation of the subscription is not in the trace"
NO_WAKE_UPS = "the trace has no wake-up events (sched_wakeup): waiting to be woken and waking up count as blocked"
NO_MIGRATIONS = "the trace has no migration events (sched_migrate_task)"
SERVICES_SINCE = (8, 5)  # of tracetools, ROS 2 Kilted

_SERVICE_KINDS = ("rmw_send_request", "rmw_take_request", "rmw_send_response", "rmw_take_response")
POOR_PERCENT = 90.0  # coverage below which an answer begins with a warning
_FOREVER = 2**62  # ns
_OF_SCHEDULER = frozenset(("thread states", "wake-ups", "migrations"))  # figures that rest on scheduler events
MATCH_WORDS = {
    "not_taken": "rmw_take found nothing to take",
    "no_timestamp": "the middleware gave no source time stamp (0)",
    "unknown_subscription": "the initialisation of the subscription is not in the trace, so neither is its topic",
    "no_publication": "no publication of that topic has this source time stamp: it, or the initialisation of its "
    "publisher, is outside of the trace or lost",
    "ambiguous": "several publications of that topic have this source time stamp",
}
_COUNTER_WORDS = {
    "callback_end_without_start": "ends of callbacks whose start was not seen (before the trace, or lost)",
    "callback_start_without_end": "callbacks that started and were not seen to end (an exception, the end, or lost)",
    "callbacks_without_owner": "callbacks of no known subscription, timer or service",
    "callbacks_without_symbol": "callbacks without a symbol",
    "publications_without_publisher": "publications of no known publisher",
    "nodes_without_initialisation": "nodes whose initialisation was not seen",
    "publishers_without_initialisation": "publishers whose initialisation was not seen (/rosout's are copies)",
    "subscriptions_without_initialisation": "subscriptions whose initialisation was not seen",
    "timers_without_initialisation": "timers whose initialisation was not seen",
    "services_without_initialisation": "services whose initialisation was not seen",
    "takes_of_unknown_subscriptions": "takes of subscriptions whose initialisation was not seen",
    "enqueues_into_unknown_buffers": "messages enqueued into ring buffers of no known subscription",
    "dequeues_without_enqueue": "messages dequeued that were not seen to be enqueued",
    "service_messages_of_unknown_clients": "requests and responses that do not say whose they are",
    "requests_taken_by_several_servers": "requests that another server of the same name had taken before",
    "incomplete_scheduler_events": "scheduler events without a field that they need",
    "functions_of_unknown_binaries": "functions at addresses of which the trace does not say what was loaded there",
    "functions_of_absent_files": "functions without a name: their program or library is not on this machine",
    "functions_of_other_builds": "functions without a name: the file on this machine is another build",
    "functions_without_symbols": "functions that their file's symbol tables do not name",
    "function_entries_without_exit": "calls of functions that were not seen to return",
    "function_exits_without_entry": "returns of functions that were not seen to be called",
    "writes_of_the_middleware": "writes of writers that no publisher of ROS has (discovery and the like)",
    "events_without_thread": "events that do not say their thread (context vtid)",
    "events_without_process": "events that do not say their process (context vpid)",
}

# What is read of the tables of what happened, where an answer is about all of a trace without a scheduler's events.
READS: Reads = {
    "callback_instances": ("callback", "end_ns?"),
    "takes": ("subscription", "rmw_ns", "match", "callback_instance?"),
    "intra_deliveries": ("publication?",),
    "phases": ("end_ns?",),
}


def and_reads(more: Reads) -> Reads:
    """What an answer reads, and what its data quality does."""
    return {table: (*READS.get(table, ()), *more.get(table, ())) for table in (*READS, *more)}


INSTANCES = Count("callback_instances", by=("callback",), counted=(("end_ns",),))


def _is_owned(callback: Mapping[str, Any]) -> bool:
    """Whether it is known whose a callback is; those of waitables and spans are their own."""
    return callback["owner"] is not None or callback["kind"] in ("waitable", "span")


COVERAGE = Table(
    "coverage",
    "What the figures rest on",
    (
        text("figure", "a figure with only partial coverage"),
        text("basis", "the covered part, in words"),
        *because(
            "the trace does not contain it (reason)",
            count("known", "how many are known"),
            count("of", "of how many"),
            percent("known", "covered share"),
        ),
        text("what", "what is counted"),
        text("reason", "why the figure is not known", "the figure is known"),
    ),
    shown=("figure", "basis"),
)

LEDGER = Table(
    "ledger",
    "What is missing or damaged",
    (
        text("kind", "kind of the loss"),
        count("count", "how many events, packets or streams"),
        flag("exact", "whether that number is exact; else it is a lower bound"),
        text("file", "where"),
        count("offset", "place in the file, in bytes", "not of one place in the file"),
        *because(
            "not known",
            time("begin", "when what is missing may begin, on the trace's clock"),
            time("end", "when it ended at the latest, on the trace's clock"),
        ),
        text("message", "the same in words"),
    ),
    shown=("message", "kind", "count"),
    spare=("kind",),
)

UNMATCHED = Table(
    "unmatched",
    "What does not fit together",
    (text("counter", "name of the counter"), count("n", "how often"), text("meaning", "what it counts")),
    shown=("meaning", "n"),
)

INITIALISATION = Table(
    "initialisation",
    "Missing initialisation",
    (
        text("what", "what is not known"),
        count("callbacks", "callbacks of which it is not"),
        count("instances", "times that these began"),
    ),
)

CLOCKS = Table(
    "clocks",
    "Clocks",
    (text("kind", "kind of the doubt"), text("message", "what may make figures across traces wrong")),
    shown=("message",),
)

THREADS_WITHOUT_SCHEDULER = Table(
    "threads_without_scheduler",
    "Threads without scheduler events",
    (
        text("process", "name of the process"),
        PID,
        text("thread", "name of the thread"),
        identity("tid", "number of the thread"),
        count("events", "its events of user space"),
        HOST,
    ),
)

TAKES_WITHOUT_PUBLICATION = Table(
    "takes_without_publication",
    "Takes without publication",
    (
        text("topic", "the topic", NO_SUBSCRIPTION),
        text("subscriber", "node of the subscription", names.NO_SUBSCRIBER),
        text("match", "why the publication is not known"),
        count("n", "takes"),
        count("handled", "of these, those that a callback began with"),
        *because(NO_SUBSCRIPTION, PROCESS, PID, HANDLE),
    ),
    shown=("topic", "subscriber", "match", "n", "handled"),
)


TABLES = (COVERAGE, LEDGER, UNMATCHED, TAKES_WITHOUT_PUBLICATION, INITIALISATION, CLOCKS, THREADS_WITHOUT_SCHEDULER)


# Kinds of loss, each with the sentence about all of it: `_losses` has the words that stand in it.
_LOSSES = {
    "discarded_events": "{events} discarded by the tracer in {files}{when}",
    "lost_packets": "{packets} lost in {files}{when}",
    "missing_begin": "{streams} without the beginning: {packets} before the first are not in the trace (a snapshot, "
    "overwritten, or deleted){until}",
    "missing_end": "{streams} without the end: what was recorded later than {first} after the beginning is not all in "
    "the trace",
    "missing_stream": "{absent} not in the trace ({which})",
    "truncated_packet": "{bytes} missing at the ends of cut files in {files}{when}",
    "corrupt_packet": "{bytes} of packets that make no sense in {files}{when}",
    "undecodable_event": "{bytes} after events that cannot be decoded in {files}{when}",
    "backwards_time": "{events} older than the one before {them} in {files}{when}",
    "unreadable_stream": "{files} that cannot be read{size}{when}",
    "foreign_uuid": "{packets} with the UUID of another trace, read all the same in {files}{when}",
    "unreadable_metadata": "{metadata_files} that cannot be parsed{when}",
}
# Those across which two events that follow each other need not be neighbours.
_GAPS = _LOSSES.keys() - {"backwards_time", "foreign_uuid", "unreadable_metadata"}


@dataclass(frozen=True)
class Coverage:
    """How much of what there is a figure knows: `known` of `of`; both null where it cannot be told, for a reason."""

    figure: str
    known: int | None
    of: int | None
    what: str  # "callbacks ended", "takes matched"
    reason: str | None = None
    is_time: bool = False  # known and of are ns
    others: str = ""  # what became of those that are not known

    @property
    def percent(self) -> float | None:
        return 100.0 * self.known / self.of if self.of and self.known is not None else None

    def basis(self) -> str:
        """ "3 994 of 4 060 takes matched (98.4 %)"."""
        if self.known is None or self.of is None:
            return f"null because {self.reason}"
        if self.is_time:
            others = f" ({self.others})" if self.others else ""
            return f"{share(self.known, self.of)} of {self.what}{others}"
        others = f"; others: {self.others}" if self.others else ""
        whole = "" if self.known == self.of else f" ({share(self.known, self.of)}{others})"
        return f"{format_count(self.known)} of {format_count(self.of)} {self.what}{whole}"


@dataclass(frozen=True)
class Quality:
    """What to know of a trace before its figures are believed."""

    losses: tuple[str, ...]  # sentences: what is missing in the trace
    contradictions: str | None  # a sentence: switches are missing, and the trace does not say where
    recovered: str | None  # a sentence: wake-ups that only the recorder knows of
    clocks: list[tuple[str, str]]  # kind and sentence of what may make figures across traces wrong
    coverage: tuple[Coverage, ...]
    ledger: Rows  # of LEDGER
    # Where events of user space may be missing: begin and end, ns; ascending and disjoint.
    gap_spans: list[tuple[int, int]]
    gaps_anywhere: bool  # some were lost, at an unknown time

    def lines(self, *figures: str) -> tuple[str, ...]:
        """Losses, clocks, and the coverage of these figures, one sentence each."""
        covered = [f"{c.figure}: {c.basis()}" for c in self.coverage if c.figure in figures]
        return (*self.doubts(with_scheduler=not _OF_SCHEDULER.isdisjoint(figures)), *covered)

    def answer(self, kind: str, sections: Sequence[Section], *figures: str, scope: Scope = EVERYTHING) -> Answer:
        """An answer that rests on these figures."""
        return Answer(kind, tuple(sections), self.lines(*figures), self.warnings(*figures), scope.words)

    def warnings(self, *figures: str) -> tuple[str, ...]:
        """What to read before the tables: that events are missing, and which of these figures rest on little."""
        missing = [f"events are missing in the trace: {'; '.join(self.losses)}"] if self.losses else []
        poor = (
            f"the figures of {c.figure} rest on a part of the data: {c.basis()}"
            for c in self.coverage
            if c.figure in figures and c.percent is not None and c.percent < POOR_PERCENT
        )
        return (*missing, *poor)

    def doubts(self, *, with_scheduler: bool = True) -> tuple[str, ...]:
        """What is missing and what does not fit together, one sentence each; of the scheduler only if it is used."""
        scheduler = (self.contradictions, self.recovered) if with_scheduler else ()
        return (*self.losses, *filter(None, scheduler), *(text for _, text in self.clocks))

    def reason(self, figure: str) -> str | None:
        """Why there is nothing of a figure; None where there is."""
        return next((c.reason for c in self.coverage if c.figure == figure), None)

    @property
    def has_losses(self) -> bool:
        """Whether events of user space are missing, so that counts are lower bounds."""
        return self.gaps_anywhere or bool(self.gap_spans)

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """`gap_spans` as begin_ns and end_ns."""
        return pl.DataFrame(self.gap_spans, schema={"begin_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")

    def touched(self, begin_ns: pl.Series, end_ns: pl.Series, *, anywhere: bool = True) -> pl.Series:
        """Whether events may be missing within [begin, end]; null where an end is.

        A loss at an unknown time may affect all of them; not with `anywhere`: then such losses are ignored.
        """
        unknown = anywhere and self.gaps_anywhere
        frame = pl.DataFrame({"begin": begin_ns, "end": end_ns}).with_columns(pl.col("begin", "end").cast(pl.Int64))
        if self.gaps.is_empty():
            found = pl.lit(unknown)
        else:
            # The latest gap that begins before the end; gaps are disjoint, so it also ends latest.
            last = self.gaps.get_column("begin_ns").search_sorted(frame["end"].fill_null(0), side="right")
            ends = pl.concat([pl.Series([None], dtype=pl.Int64), self.gaps["end_ns"]])
            frame = frame.with_columns(ends.gather(last).alias("gap_end"))
            found = (pl.col("gap_end") >= pl.col("begin")).fill_null(False) | pl.lit(unknown)
        known = pl.col("begin").is_not_null() & pl.col("end").is_not_null()
        return frame.select(pl.when(known).then(found).alias("touched"))["touched"]


def quality_of(trace: Source) -> Quality:
    """Reads all of the tables that it needs, and asks the scheduler once about all callbacks."""
    facts = trace.facts
    ledger = LEDGER.plain(facts["ledger"])
    coverage = tuple(_coverage(trace))
    return Quality(
        _losses(facts), _contradictions(facts), _recovered(facts), list(_clocks(facts)), coverage, ledger, *_gaps(facts)
    )


def sections(trace: Source, quality: Quality, scope: Scope) -> tuple[Section, ...]:
    """The data quality ledger."""
    basis = [
        (c.figure, None if c.reason else c.basis(), c.known, c.of, c.percent, c.what, c.reason)
        for c in quality.coverage
    ]
    nulls = tuple(f"{c.figure}: {c.basis()}" for c in quality.coverage if c.reason)
    counters = [
        (name, n, _COUNTER_WORDS.get(name, name.replace("_", " "))) for name, n in trace.facts["counters"].items()
    ]
    return (
        Section(COVERAGE, COVERAGE.plain(basis), nulls),
        _or_none(LEDGER, quality.ledger, "nothing of the trace is missing or damaged"),
        _or_none(
            UNMATCHED, UNMATCHED.plain(c for c in counters if c[1]), "every start has its end, every event its object"
        ),
        unmatched_takes(trace, quality, scope),
        _or_none(INITIALISATION, _initialisation(trace), "every callback has its owner, node and symbol"),
        _or_none(CLOCKS, CLOCKS.plain(quality.clocks), "nothing about the clocks is odd"),
        _threads_without_scheduler(trace),
    )


def _or_none(table: Table, rows: Rows, none: str) -> Section:
    """A section that says so where it has no rows."""
    return Section(table, rows, () if rows else (none,))


def share(part: int, whole: int) -> str:
    """ "98.4 %"; neither 0 nor 100 where it is not."""
    percent = 100.0 * part / whole if whole else 0.0
    if part > 0 and percent < 0.05:
        return "< 0.1 %"
    if part < whole and percent > 99.95:
        return "> 99.9 %"
    return f"{percent:.1f} %" if part != whole else "100 %"


def scheduler_reason(facts: Json) -> str | None:
    """Why nothing is known of the scheduler; None where something is."""
    return None if facts.get("scheduler") else NO_SCHEDULER


def wake_up_reason(facts: Json) -> str | None:
    return scheduler_reason(facts) or (None if facts["scheduler"].get("has_wakeups") else NO_WAKE_UPS)


def migration_reason(facts: Json) -> str | None:
    return scheduler_reason(facts) or (None if facts["scheduler"].get("has_migrations") else NO_MIGRATIONS)


def service_reason(facts: Json) -> str | None:
    """Why requests and responses are not known; None where the trace has some."""
    if any(event["kind"] in _SERVICE_KINDS and event["count"] for event in facts["events"]):
        return None
    versions = [str(v) for v in facts.get("tracetools_versions", ())]
    numbers = [_version(v) for v in versions]
    if numbers and all(n is not None and n < SERVICES_SINCE for n in numbers):
        which = f"tracetools {', '.join(versions)} records"
        return f"{which} no requests and responses of services (it needs 8.5, ROS 2 Kilted, or later)"
    return "the trace has no requests and responses of services (rmw_send_request, rmw_take_request, ...)"


def unmatched_takes(trace: Source, quality: Quality, scope: Scope) -> Section:
    """Takes without publication as they stand in several answers."""
    takes = [
        row
        for row in _takes_without_publication(trace, scope)
        if scope.has_topic(row["topic"]) and scope.has_node(row["subscriber"])
    ]
    found = [match for match in MATCH_WORDS if any(match == row["match"] for row in takes)]
    notes = tuple(f"{match}: {MATCH_WORDS[match]}" for match in found)
    table = TAKES_WITHOUT_PUBLICATION
    return Section(
        table, table.plain(takes), notes or (quality.reason("messages") or "every take has its publication",)
    )


def _takes(scope: Scope = EVERYTHING) -> Count:
    return Count(
        "takes",
        by=("subscription", "match"),
        counted=(("callback_instance",),),
        least=("rmw_ns",),
        instants=("rmw_ns",),
        begin_ns=scope.begin_ns,
        end_ns=scope.end_ns,
    )


def _takes_without_publication(trace: Source, scope: Scope) -> list[dict[str, Any]]:
    """One row per topic, subscription and reason: how many takes, how many of them were handled by a callback."""
    subscriptions, nodes = trace.rows("subscriptions"), trace.rows("nodes")
    processes = names.process_rows(trace)
    counts = [row for row in trace.count(_takes(scope)) if row[1] not in (None, "matched")]
    rows = []
    for subscription, match, n, handled, first_ns in counts:
        row = {"match": match, "n": n, "handled": handled, "first_ns": first_ns}
        if subscription is not None:
            known = subscriptions[subscription]
            row |= {"topic": known["topic"], "handle": names.handle_text(known["handle"])}
            row["subscriber"] = None if known["node"] is None else nodes[known["node"]]["name"]
            row |= {} if known["process"] is None else processes[known["process"]]
        rows.append({name: row.get(name) for name in (*TAKES_WITHOUT_PUBLICATION.names, "first_ns")})
    # Subscriptions without a recorded first take come last.
    return sorted(rows, key=lambda row: (-row["n"], row["first_ns"] is not None, row["first_ns"]))


def _version(text: str) -> tuple[int, ...] | None:
    parts = text.partition("+")[0].split(".")  # perflab says "8.2.2+perflab" of its own runs
    return tuple(int(p) for p in parts) if parts and all(p.isdigit() for p in parts) else None


def _losses(facts: Json) -> tuple[str, ...]:
    """One sentence per kind of loss."""
    by_kind: dict[str, list[Json]] = {}
    for entry in facts["ledger"]:
        by_kind.setdefault(entry["kind"], []).append(entry)
    return tuple(_loss(kind, entries, facts.get("begin_ns")) for kind, entries in by_kind.items())


def _loss(kind: str, entries: Sequence[Json], zero_ns: int | None) -> str:
    count = sum(entry["count"] for entry in entries)
    files = len({entry["file"] for entry in entries})
    least = "" if all(entry["exact"] for entry in entries) else "at least "
    begins, ends = ([e[end] for e in entries if e.get(end) is not None] for end in ("begin_ns", "end_ns"))
    # From the beginning of the trace on.
    first, last = (format_time(max(0, at - (zero_ns or 0))) for at in (min(begins, default=0), max(ends, default=0)))
    which = "; ".join(entry["message"] for entry in entries[:3])  # each is one buffer, usually that of a CPU
    counted = {noun: f"{least}{plural(count, noun)}" for noun in ("event", "packet", "byte")}
    return _LOSSES.get(kind, f"{least}{format_count(count)} {kind} in {{files}}{{when}}").format(
        **{f"{noun}s": words for noun, words in counted.items()},
        **{f"{noun.replace(' ', '_')}s": plural(files, noun) for noun in ("file", "stream", "metadata file")},
        absent=plural(len(entries), "stream is", "streams are"),
        which=which if len(entries) <= 3 else f"{which}; and {plural(len(entries) - 3, 'stream')} more",
        when=f", between {first} and {last} after the beginning" if begins and ends and zero_ns is not None else "",
        until=f"; the last begins {last} after the beginning" if ends else "",
        size=f" ({counted['byte']})" if count else "",  # which may be unknown
        first=first,
        them="it" if count == 1 else "them",
    )


def _contradictions(facts: Json) -> str | None:
    scheduler = facts.get("scheduler") or {}
    n = scheduler.get("contradictions", 0)
    if not n:
        return None
    verb = "does" if n == 1 else "do"
    inferred = scheduler.get("inferred_states", 0)
    but = f", but for {format_count(inferred)} that begin with the thread's first event in user space"
    return (
        f"{plural(n, 'context switch', 'context switches')} {verb} not follow from the one before on their CPU or of "
        f"their thread: the recording lacks switches; states there are unknown{but if inferred else ''}"
    )


def _recovered(facts: Json) -> str | None:
    n = (facts.get("scheduler") or {}).get("recovered_wakeups", 0)
    if not n:
        return None
    known = "is known" if n == 1 else "are known"
    return f"{plural(n, 'wake-up')} without an event {known} from the kernel, most to some µs; who woke is not"


def _clocks(facts: Json) -> Iterator[tuple[str, str]]:
    """What about the clocks of the parts of a trace may make figures across them wrong: kinds and sentences."""
    traces = [t for t in facts["traces"] if t.get("events")]
    frequencies = sorted({t["clock"]["frequency_hz"] for t in traces if t.get("clock")})
    if len(frequencies) > 1:
        words = ", ".join(f"{f:,} Hz".replace(",", " ") for f in frequencies)
        yield "frequencies", f"the traces have clocks of different frequencies ({words})"
    hosts: dict[str | None, list[Json]] = {}
    for trace in traces:
        hosts.setdefault(trace.get("host"), []).append(trace)
    for host, parts in hosts.items():
        # A clock that is not absolute and has the offset 0 says nothing of the epoch (perf without --tod).
        clocks = [t["clock"] for t in parts if t.get("clock")]
        offsets = [c["offset_ns"] for c in clocks if c.get("offset_ns") or c.get("absolute")]
        if len(offsets) > 1 and (difference := max(offsets) - min(offsets)):
            text = f"offsets of the clocks of {_of_host(host)} to the epoch differ by {format_time(difference)}; "
            yield "offsets", f"{text}their readings are joined without them"
    for trace in traces:
        if shift := trace.get("shift_ns"):
            yield "shift", f"the clock of {trace['path']} was shifted by {format_time(shift)} to fit the others"
    if len(hosts) > 1:
        words = ", ".join(sorted(map(_of_host, hosts)))
        yield "hosts", f"the trace has several hosts ({words}): figures across them are as good as their clocks"
    for host, parts in hosts.items():
        # User space and scheduler that were recorded one after the other say nothing of each other.
        user, kernel = (_span(t for t in parts if t.get("domain") == domain) for domain in ("ust", "kernel"))
        apart = max(user[0], kernel[0]) - min(user[1], kernel[1]) if user and kernel else 0
        if apart > 0:
            text = f"user space and kernel of {_of_host(host)} do not overlap: {format_time(apart)} lie between them"
            yield "no_overlap", f"{text}; were both recorded with CLOCK_MONOTONIC?"


def _span(traces: Iterable[Json]) -> tuple[int, int] | None:
    known = [(t["first_ns"], t["last_ns"]) for t in traces if t.get("first_ns") is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def _of_host(host: str | None) -> str:
    return host or "a host without a name"


def _gaps(facts: Json) -> tuple[list[tuple[int, int]], bool]:
    """When events of user space may be missing; and whether some are missing at an unknown time."""
    entries = [e for e in facts["ledger"] if e["kind"] in _GAPS and not _is_kernel(e, facts)]
    whole = (-_FOREVER, _FOREVER)
    spans = [whole if e["kind"] == "missing_stream" else (e.get("begin_ns"), e.get("end_ns")) for e in entries]
    anywhere = (None, None) in spans
    # What was lost before an instant may be as old as the trace, and what was lost after one as young.
    known = [
        (-_FOREVER if begin is None else begin, _FOREVER if end is None else end)
        for begin, end in spans
        if begin is not None or end is not None
    ]
    gaps: list[tuple[int, int]] = []
    for begin, end in sorted(known):
        if gaps and begin <= gaps[-1][1]:
            gaps[-1] = (gaps[-1][0], max(gaps[-1][1], end))
        else:
            gaps.append((begin, end))
    return gaps, anywhere


def _is_kernel(entry: Mapping[str, Any], facts: Json) -> bool:
    """Whether the file of a loss belongs to a trace of the kernel; where that is not clear, it does not."""
    candidates = [PurePosixPath(root) / entry["file"] for root in ("", *facts["paths"])]
    owners = [
        (len(str(t["path"])), t)
        for t in facts["traces"]
        if any(candidate.is_relative_to(t["path"]) for candidate in candidates)
    ]
    return bool(owners) and max(owners, key=lambda o: o[0])[1].get("domain") == "kernel"


def _initialisation(trace: Source) -> Rows:
    """Of callbacks and of their instances, how many lack an owner, a node or a symbol."""
    instances = {callback: n for callback, n, _ in trace.count(INSTANCES)}
    known: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "owner": _is_owned,
        "node": lambda callback: callback["node"] is not None,
        "symbol": lambda callback: callback["symbol"] is not None,
    }
    callbacks = trace.rows("callbacks")
    unknown = [row for row in instances if row is None or row >= len(callbacks)]
    rows = []
    for what, told in known.items():
        lacking = [row for row, callback in enumerate(callbacks) if not told(callback)] + unknown
        if lacking:
            rows.append((f"callbacks without {what}", len(lacking), sum(instances.get(row, 0) for row in lacking)))
    return INITIALISATION.plain(rows)


def _threads_without_scheduler(trace: Source) -> Section:
    """Threads of user space of which the scheduler's events say nothing."""
    table = THREADS_WITHOUT_SCHEDULER
    if (reason := scheduler_reason(trace.facts)) is not None:
        return Section(table, [], (reason,))
    threads = names.threads(trace).filter(pl.col("events") > 0, pl.col("process_row").is_not_null())
    seen = trace.table("thread_states")["thread"].unique()
    frame = threads.filter(~pl.col("thread_row").is_in(seen.implode())).sort("events", descending=True)
    note = "they never ran while the scheduler was recorded, or live in a PID name space of their own"
    if frame.is_empty():
        note = "every thread of user space has scheduler events"
    return Section(table, frame.select(table.names), (note,))


def _coverage(trace: Source) -> list[Coverage]:
    facts = trace.facts
    instances, takes = trace.count(INSTANCES), [row for row in trace.count(_takes()) if row[1] != "not_taken"]
    callbacks = trace.rows("callbacks")
    started, ended = (sum(row[i] for row in instances) for i in (1, 2))
    owned = sum(n for row, n, _ in instances if row is not None and row < len(callbacks) and _is_owned(callbacks[row]))
    reasons = Counter[str]()
    for _, match, n, *_ in takes:
        reasons[match] += n
    taken, handled, matched = sum(reasons.values()), sum(row[3] for row in takes), reasons.pop("matched", 0)
    unmatched = ", ".join(f"{format_count(n)} {match}" for match, n in reasons.most_common())
    deliveries, joined = _with(trace, "intra_deliveries", "publication")
    calls, answered = _with(trace, "service_calls", "send_request_ns", "take_response_ns")
    phases, passed = _with(trace, "phases", "end_ns")
    silent = f"executor events (rclcpp_executor_*; {SILENT_EXECUTORS} have none)"
    missing = {"wake-ups": wake_up_reason(facts), "migrations": migration_reason(facts)}
    return [
        _count("callbacks", ended, started, "callbacks ended", "callbacks"),
        _count("callback owners", owned, started, "callbacks of a known owner", "callbacks"),
        _count("messages", matched, taken, "takes matched", "messages taken from the middleware", unmatched),
        _count("handling", handled, taken, "takes handled by a callback", "messages taken"),
        _count("intra-process", joined, deliveries, "deliveries matched", "intra-process deliveries"),
        _count("services", answered, calls, "calls answered", "service calls", reason=service_reason(facts)),
        _count("executor", passed, phases, "phases ended", silent),
        _scheduler_coverage(trace),
        *(Coverage(figure, None, None, figure, reason) for figure, reason in missing.items() if reason is not None),
    ]


def _with(trace: Source, table: str, *columns: str) -> tuple[int, int]:
    """How many rows a table has, and in how many of them none of these columns is null."""
    rows = trace.count(Count(table, counted=(columns,)))
    return rows[0] if rows else (0, 0)


def _count(
    figure: str, known: int, of: int, what: str, whats: str, others: str = "", reason: str | None = None
) -> Coverage:
    if reason is None and of == 0:
        reason = f"the trace has no {whats}"
    if reason is not None:
        return Coverage(figure, None, None, what, reason)
    return Coverage(figure, known, of, what, others=others)


def _scheduler_coverage(trace: Source) -> Coverage:
    what = "callback time has known thread states"
    if (reason := scheduler_reason(trace.facts)) is not None:
        return Coverage("thread states", None, None, what, reason)
    ended = trace.table("callback_instances").filter(pl.col("end_ns").is_not_null())
    if ended.is_empty():
        return Coverage("thread states", None, None, what, "the trace has no callbacks that ended")
    split = trace.split(ended["thread"], ended["start_ns"], ended["end_ns"])
    length = ended["end_ns"] - ended["start_ns"]
    is_known = split["on_cpu_ns"].is_not_null()
    known = int(length.filter(is_known).sum())
    inferred = _inferred_ns(trace, ended.filter(is_known))
    others = f"{share(inferred, known)} of it by states that begin with an event of user space" if inferred else ""
    return Coverage("thread states", known, int(length.sum()), what, is_time=True, others=others)


def _inferred_ns(trace: Source, instances: pl.DataFrame) -> int:
    """How much of the time of these instances lies in states of which the switch to the thread was not seen."""
    if not trace.facts["scheduler"].get("inferred_states") or instances.is_empty():
        return 0
    states = (
        trace.table("thread_states").filter(pl.col("inferred")).select(of="thread", since="start_ns", until="end_ns")
    )
    within = pl.min_horizontal("end_ns", "until") - pl.max_horizontal("start_ns", "since")
    inside = instances.lazy().join_where(
        states.lazy(), pl.col("thread") == pl.col("of"), pl.col("start_ns") < pl.col("until"),
        pl.col("since") < pl.col("end_ns"),
    )  # fmt: skip
    return int(inside.select(within.sum()).collect().item() or 0)
