"""Why messages were late: the time of each late one cut into parts that add up to it, each with a cause and who it was.

    why(trace, Selection(later_than_ns=5_000_000))     what the late messages of a trace waited for
    why(trace, Selection(slow_callbacks=True))         the same of callbacks

Definitions (docs/tracing.md, Why a message was late). Response: from when the tick was due of the timer in
whose callback the message was published (else from its publication) to callback_start. The tick was due at `due_ns`
where the trace has it, else by the grid of the timer's period. The way of a message is followed backwards, its pieces
get names (`why_path`), and what threads did and who had their CPUs cuts it into these (`why_threads`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, notes_of
from perflab.trace.messages import EDGE, Deliveries
from perflab.trace.names import NO_SCHEDULER
from perflab.trace.quality import Quality, quality_of, wake_up_reason
from perflab.trace.quantiles import quantile, rank
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.why_path import Role, as_messages, parts_of, stretches_of
from perflab.trace.why_sections import TABLES, Late
from perflab.trace.why_threads import FOREVER, Collected, Ints, Threads, ints
from perflab.units import format_count, format_time, plural

__all__ = ["TABLES", "Selection", "why"]

# A grid is fitted to the starts of a timer's callback if there are so many of them, if in a stretch of this share of
# the period none starts, and if of nine in ten blocks of ten the earliest is this close to the end of that stretch.
LEAST_STARTS = 20
LEAST_FREE = 0.1
BLOCK, MOST_OFF = 10, 0.05
PER_MILLE = 990  # of every edge the messages that are at least as long as this quantile, unless something else is asked

BEGINS = ("due", "due_estimated", "published", "published_due_unknown")


@dataclass(frozen=True)
class Selection:
    """Which messages (or callbacks) are asked about: of those of a scope, the ones that are late.

    Without any of the four ways to say what is late: of every edge (or callback) the slowest hundredth.
    """

    later_than_ns: int | None = None
    later_than_by_topic: Mapping[str, int] | None = None  # ns; topics that are not in it are not asked about
    slowest: int | None = None  # so many of all
    per_mille: int | None = None  # of every edge, those from this quantile on
    pids: frozenset[int] = frozenset()  # of processes at either end; none: all
    scope: Scope = EVERYTHING  # messages of its topics, from and to its nodes; without topics all but ROS's own
    slow_callbacks: bool = False  # about callbacks and their durations instead

    def __post_init__(self) -> None:
        ways = (self.later_than_ns, self.later_than_by_topic, self.slowest, self.per_mille)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("a selection has one of: a threshold, thresholds by topic, a number, a quantile")

    def late(self, value: str, group: str) -> tuple[str, pl.Expr]:
        """What is late, in words, and whether a row is. Quantiles are of every group, whose column is GROUP_row."""
        if self.later_than_ns is not None:
            return f"longer than {format_time(self.later_than_ns)}", pl.col(value) > self.later_than_ns
        if self.later_than_by_topic is not None:
            limit = pl.col("topic").replace_strict(self.later_than_by_topic, default=None, return_dtype=pl.Int64)
            return "response above the limit of their topic", (pl.col(value) > limit).fill_null(False)
        if self.slowest is not None:
            place = pl.col(value).rank("ordinal", descending=True)
            return f"the {format_count(self.slowest)} slowest", place <= self.slowest
        per_mille = PER_MILLE if self.per_mille is None else self.per_mille
        row, quantile_at = f"{group}_row", rank(pl.len(), per_mille).clip(0, None)
        late = pl.col(value).rank("ordinal").over(row) > quantile_at.over(row)
        return f"the slowest {(1000 - per_mille) / 10:g} % of every {group}", late


def why(trace: Source, selection: Selection = Selection()) -> Answer:
    """What the late messages (or the slow callbacks) of a trace waited for."""
    quality = quality_of(trace)
    threads = Threads(trace)
    if selection.slow_callbacks:
        kind, found = "why_callbacks", _slow_callbacks(trace, selection, quality, threads)
        figures: tuple[str, ...] = ("callbacks",)
    else:
        kind, found = "why", _late_messages(trace, selection, quality, threads)
        figures = ("messages", "handling", "intra-process")
    return quality.answer(kind, found.sections(), *figures, "thread states", "wake-ups", scope=selection.scope)


# Callbacks ------------------------------------------------------------------------------------------------------------


def _slow_callbacks(trace: Source, selection: Selection, quality: Quality, threads: Threads) -> Late:
    """The slow ones of the callbacks that ended, and what kept them from running."""
    known = names.callbacks(trace).select(
        callback_row="row", of="label", node="node", topic=pl.when(pl.col("kind") == "subscription").then("name")
    )
    who = names.threads(trace).select("tid", thread="thread_row", of_thread="thread")
    ended = (
        trace.table("callback_instances")
        .select(pl.col("callback").alias("callback_row"), "thread", "start_ns", "end_ns")
        .join(known, on="callback_row", how="left", maintain_order="left")
        .join(who, on="thread", how="left", maintain_order="left")
        .with_columns(
            pl.col("of").fill_null("(unknown)"),
            since_begin(trace, "start_ns").alias("at_ns"),
            total_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        .filter(pl.col("total_ns") > 0)
    )
    if (chosen := selection.scope.callbacks(trace)) is not None:
        ended = ended.filter(pl.col("callback_row").is_in(chosen))
    ended = selection.scope.within(ended, "start_ns")
    lost = quality.touched(ended["start_ns"], ended["end_ns"], anywhere=False).fill_null(False)
    ended = ended.filter(~lost)
    limit, late = selection.late("total_ns", "callback")
    rows = _numbered(ended.filter(late).sort("start_ns", maintain_order=True))
    stretches = Collected()
    columns = {"subject": "subject", "thread": "thread", "start": "start_ns", "end": "end_ns"}
    stretches.put({name: ints(rows[column]) for name, column in columns.items()}, role=Role.SLOW)
    subjects = rows.select(
        "subject", "topic", publisher="node", own_callback="callback_row", between_hosts=pl.lit(False)
    )
    notes = [f"callbacks from callback_start to callback_end, wall time; {limit}"]
    if n := int(lost.sum()):
        notes.append(f"{plural(n, 'callback')} left out: events are missing within")
    parts = parts_of(trace, subjects, stretches.all(), threads)
    return Late("callback", rows, parts, ended.height, limit, tuple(notes))


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_row_index("subject").with_columns(pl.col("subject").cast(pl.Int32))


# Messages -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Considered:
    """All messages that the selection is made of, one row each, with the flag `late`; and what was left out."""

    frame: pl.DataFrame
    limit: str  # what is late, in words
    edges: pl.DataFrame  # of EDGE: edge, topic, delivery, publisher, subscription, ...
    left_out: int  # events are missing between publish() and callback_start
    backwards: int  # the callback began before the message, by two clocks


def considered(trace: Source, selection: Selection, quality: Quality) -> Considered:
    """The messages of a selection that a callback handled."""
    deliveries = Deliveries(trace, quality)
    edges = selection.scope.edges(deliveries.pairs.with_row_index("edge_row"))
    if selection.later_than_by_topic is not None:
        edges = edges.filter(pl.col("topic").is_in(list(selection.later_than_by_topic)))
    elif selection.scope.topics is None:
        edges = edges.filter(~names.is_internal(pl.col("topic")))
    if selection.pids:
        ends = (pl.col(f"{end}_pid").is_in(list(selection.pids)) for end in ("publisher", "subscription"))
        edges = edges.filter(pl.any_horizontal(ends).fill_null(False))
    handled = deliveries.handled.filter(pl.col("arrived_ns").is_not_null())
    frame = handled.with_columns(
        trace.table("callback_instances")["parent"].gather(handled["callback_instance"]).alias("handled_within")
    ).rename({"thread": "reader_thread"})
    frame = frame.join(edges.select(*EDGE, "edge_row", "delivery", "topic"), on=EDGE, maintain_order="left")
    frame = selection.scope.within(frame, "published_ns")
    left_out = int(frame["left_out"].sum())
    frame = _with_begin(trace, frame.filter(~pl.col("left_out")), quality)
    response = pl.col("started_ns") - pl.col("begin_ns")
    backwards = int(frame.select((response <= 0).sum()).item())
    frame = frame.with_columns(response_ns=response, latency_ns=pl.col("started_ns") - pl.col("published_ns"))
    frame = frame.filter(pl.col("response_ns") > 0).sort("started_ns", maintain_order=True)
    limit, late = selection.late("response_ns", "edge")
    return Considered(frame.with_columns(late=late), limit, edges, left_out, backwards)


def _with_begin(trace: Source, frame: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """`begin_ns`, `work_ns` (when the callback that published started; else published) and `begin`, what that is."""
    due = due_times(trace).select(pl.all().gather(frame["published_in"]))
    lost = quality.touched(due["due_ns"], frame["published_ns"], anywhere=False).fill_null(False)
    known = pl.col("due_ns").is_not_null() & ~lost & (pl.col("start_ns") <= pl.col("published_ns"))
    begin = (
        pl.when(known & pl.col("is_estimated")).then(pl.lit("due_estimated"))
        .when(known).then(pl.lit("due"))
        .when("of_timer").then(pl.lit("published_due_unknown"))
        .otherwise(pl.lit("published"))
    )  # fmt: skip
    return (
        pl.concat([frame, due], how="horizontal")
        .with_columns(
            begin_ns=pl.when(known).then(pl.min_horizontal("due_ns", "start_ns")).otherwise("published_ns"),
            work_ns=pl.when(known).then("start_ns").otherwise("published_ns"),
            begin=begin.cast(pl.Enum(BEGINS)),
        )
        .drop(due.columns)
    )


def due_times(trace: Source) -> pl.DataFrame:
    """Of each callback instance `start_ns`, `of_timer`, and of timers' `due_ns` and whether that `is_estimated`."""
    timers = names.callbacks(trace).filter(pl.col("kind") == "timer")
    frame = (
        trace.table("callback_instances")
        .select("callback", "start_ns", "due_ns")
        .join(
            timers.select("period_ns", callback="row", of_timer=pl.lit(True)), on="callback", how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("of_timer").fill_null(False))
    )  # fmt: skip
    estimated = np.full(frame.height, -FOREVER, dtype=np.int64)
    rows = frame.with_row_index("row").filter(pl.col("due_ns").is_null(), pl.col("period_ns") > 0)
    for of_timer in rows.sort("start_ns").partition_by("callback"):
        starts, period = ints(of_timer["start_ns"]), int(of_timer["period_ns"][0])
        phase = phase_of(starts, period)
        if phase is not None:
            estimated[ints(of_timer["row"])] = phase + (starts - phase) // period * period
    fitted = pl.Series("fitted", estimated)
    return frame.select(
        "start_ns",
        "of_timer",
        pl.coalesce("due_ns", pl.when(fitted > -FOREVER).then(fitted)).alias("due_ns"),
        is_estimated=pl.col("due_ns").is_null() & (fitted > -FOREVER),
    )


def phase_of(starts: Ints, period_ns: int) -> int | None:
    """A point of the grid on which ascending starts of a timer with that period were due: their lower envelope.

    None where it is not credible: too few starts, starts all over the period, or an envelope that moves.
    """
    if len(starts) < LEAST_STARTS:
        return None
    after = np.sort((starts - starts[0]) % period_ns)
    free = np.diff(after, append=after[0] + period_ns)  # after each of them, until the next one
    # The tick is due at the end of a stretch in which none starts; of several at that after which most start at once.
    candidates = after[(np.flatnonzero(free >= LEAST_FREE * period_ns) + 1) % len(after)]
    if not len(candidates):
        return None
    at_once = [np.count_nonzero((after - first) % period_ns <= MOST_OFF * period_ns) for first in candidates]
    phase = int(starts[0] + candidates[int(np.argmax(at_once))])
    late = (starts - phase) % period_ns
    blocks = late[: len(late) // BLOCK * BLOCK].reshape(-1, BLOCK).min(axis=1)
    close = np.count_nonzero(blocks <= MOST_OFF * period_ns)
    return phase if close >= 0.9 * len(blocks) else None


def _late_messages(trace: Source, selection: Selection, quality: Quality, threads: Threads) -> Late:
    found = considered(trace, selection, quality)
    late = numbered(found, pl.col("late"))
    rows = late.select(
        "subject", "edge_row", "edge", "topic", "delivery", since_begin(trace, "started_ns").alias("at_ns"),
        pl.col("response_ns").alias("total_ns"), "latency_ns", pl.col("begin").cast(pl.String), "begin_ns",
        "published_ns", "sent_ns", "arrived_ns", "started_ns",
    )  # fmt: skip
    counts = found.frame.group_by("edge_row").agg(
        messages=pl.len().cast(pl.Int64), response_p50_ns=quantile(pl.col("response_ns"), 500)
    )
    parts = parts_of_messages(trace, late, threads)
    edges = found.edges.join(counts, on="edge_row", how="left")
    return Late("message", rows, parts, found.frame.height, found.limit, _notes(trace, found), edges)


def numbered(found: Considered, which: pl.Expr) -> pl.DataFrame:
    """Those of the messages, each with its number `subject` and its edge."""
    return _numbered(found.frame.filter(which)).join(
        found.edges.select("edge_row", "edge", "publisher", "subscription"), on="edge_row", how="left",
        maintain_order="left",
    )  # fmt: skip


def parts_of_messages(trace: Source, messages: pl.DataFrame, threads: Threads) -> pl.DataFrame:
    """The parts of messages with numbers, from when the tick was due to the callback (`why_path.parts_of`)."""
    subjects = messages.select(
        "subject", "topic", "publisher", between_hosts=pl.col("delivery") == "other_host",
        own_callback=trace.table("callback_instances")["callback"].gather(messages["published_in"]),
    )  # fmt: skip
    return parts_of(trace, subjects, stretches_of(as_messages(trace, messages, threads), threads), threads)


def _notes(trace: Source, found: Considered) -> tuple[str, ...]:
    counts = dict(found.frame.group_by("begin").agg(pl.len()).iter_rows())
    estimated, unknown = (counts.get(begin, 0) for begin in ("due_estimated", "published_due_unknown"))
    scheduler = trace.facts.get("scheduler") or {}
    reason = wake_up_reason(trace.facts)
    return notes_of(
        (True, "total: from when the tick was due of the timer in whose callback the message was published, else from"
               " its publication, to callback_start; latency: from its publication"),
        (estimated, f"of {plural(estimated, 'message')} the tick is estimated: the latest point of a grid of the"
                    " timer's period that is the lower envelope of its starts"),
        (unknown, f"{plural(unknown, 'message')} of timers begin at the publication: when the tick was due is not"
                  " known, nor is what the sender waited for"),
        (found.left_out, f"{plural(found.left_out, 'message')} left out: events are missing between publish() and"
                         " callback_start, so that the callback may be that of another message"),
        (found.backwards, f"{plural(found.backwards, 'message')} left out: handled before published, by the hosts'"
                          " clocks"),
        ((found.frame["delivery"] == "other_host").any(),
         "between hosts transport contains the difference of the hosts' clocks"),
        (not scheduler, f"{NO_SCHEDULER}: nothing is known of waits for a CPU, and transport and wake-up are one part"),
        (scheduler and reason, reason or ""),
        (scheduler and reason is None and not scheduler.get("has_waking"),
         "the trace has no sched_waking: who woke a thread on an idle CPU is not known, and the way is not followed"
         " beyond it"),
    )  # fmt: skip
