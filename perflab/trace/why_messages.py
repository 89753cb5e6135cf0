"""The messages of a trace that `why` is asked about: when they began, were sent, taken and handled, and by whom.

A message that is published within a timer's callback begins when the timer's tick was due: by `due_ns` where the trace
has it, else by the grid of the timer's period. Any other message begins when it is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.messages import EDGE, deliveries_of, pairs_of, publications_of
from perflab.trace.quality import Quality
from perflab.trace.quantiles import rank
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.why_layers import FOREVER, Ints, Layer, ints
from perflab.trace.why_path import Messages
from perflab.trace.why_threads import Threads, Within
from perflab.units import format_count, format_time

if TYPE_CHECKING:
    from perflab.trace.source import Source

# A grid is fitted to the starts of a timer's callback if there are so many of them, if in a stretch of this share of
# the period none starts, and if of nine in ten blocks of ten the earliest is this close to the end of that stretch.
LEAST_STARTS = 20
LEAST_FREE = 0.1
BLOCK, MOST_OFF = 10, 0.05
PER_MILLE = 990  # of every edge the messages that are at least as long as this quantile, unless something else is asked

ENDS = ("publisher", "subscription")
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

    @property
    def _quantile(self) -> int:
        return PER_MILLE if self.per_mille is None else self.per_mille

    def limit(self, group: str) -> str:
        """What is late, in words; `group` is what quantiles are of."""
        if self.later_than_ns is not None:
            return f"longer than {format_time(self.later_than_ns)}"
        if self.later_than_by_topic is not None:
            return "response above the limit of their topic"
        if self.slowest is not None:
            return f"the {format_count(self.slowest)} slowest"
        return f"the slowest {(1000 - self._quantile) / 10:g} % of every {group}"

    def late(self, frame: pl.DataFrame, value: str, group: str) -> pl.Series:
        """Which rows are late."""
        if self.later_than_ns is not None:
            late = pl.col(value) > self.later_than_ns
        elif self.later_than_by_topic is not None:
            limit = pl.col("topic").replace_strict(self.later_than_by_topic, default=None, return_dtype=pl.Int64)
            late = (pl.col(value) > limit).fill_null(False)
        elif self.slowest is not None:
            late = pl.col(value).rank("ordinal", descending=True) <= self.slowest
        else:
            place = rank(pl.len(), self._quantile).clip(0, None)
            late = pl.col(value).rank("ordinal").over(group) > place.over(group)
        return frame.select(late).to_series()


@dataclass(frozen=True)
class Considered:
    """All messages that the selection is made of, one row each, with the flag `late`; and what was left out."""

    frame: pl.DataFrame
    edges: pl.DataFrame  # of EDGE: edge, topic, delivery, publisher, subscription, ...
    left_out: int  # events are missing between publish() and callback_start
    backwards: int  # the callback began before the message, by two clocks


def considered(trace: Source, selection: Selection, quality: Quality) -> Considered:
    """The messages of a selection that a callback handled."""
    publications = publications_of(trace)
    deliveries = deliveries_of(trace, publications)
    edges = pairs_of(trace, deliveries).with_row_index("edge_row")
    edges = _chosen(trace, edges, selection)
    handled = deliveries.filter(pl.col("callback_instance").is_not_null(), pl.col("arrived_ns").is_not_null())
    within = trace.table("callback_instances")["parent"].gather(handled["callback_instance"])
    frame = handled.with_columns(within.alias("handled_within")).rename({"thread": "reader_thread"})
    frame = frame.join(edges.select(*EDGE, "edge_row", "delivery", "topic"), on=EDGE, maintain_order="left")
    frame = selection.scope.within(frame, "published_ns")
    missing = quality.touched(frame["published_ns"], frame["started_ns"], anywhere=False).fill_null(False)
    left_out = int(missing.sum())
    frame = _with_begin(trace, frame.filter(~missing), quality)
    response = pl.col("started_ns") - pl.col("begin_ns")
    backwards = int(frame.select((response <= 0).sum()).item())
    frame = frame.with_columns(response_ns=response, latency_ns=pl.col("started_ns") - pl.col("published_ns"))
    frame = frame.filter(pl.col("response_ns") > 0).sort("started_ns", maintain_order=True)
    late = selection.late(frame, "response_ns", "edge_row")
    return Considered(frame.with_columns(late=late), edges, left_out, backwards)


def _chosen(trace: Source, edges: pl.DataFrame, selection: Selection) -> pl.DataFrame:
    edges = selection.scope.edges(edges)
    if selection.later_than_by_topic is not None:
        edges = edges.filter(pl.col("topic").is_in(list(selection.later_than_by_topic)))
    elif selection.scope.topics is None:
        edges = edges.filter(~names.is_internal(pl.col("topic")))
    if selection.pids:
        pid, mine = trace.table("processes")["pid"], list(selection.pids)
        sender, reader = (pid.gather(trace.table(f"{e}s")["process"].gather(edges[f"{e}_row"])) for e in ENDS)
        edges = edges.filter((sender.is_in(mine) | reader.is_in(mine)).fill_null(False))
    return edges


# When they began ------------------------------------------------------------------------------------------------------


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


# As columns -----------------------------------------------------------------------------------------------------------


def as_messages(trace: Source, late: pl.DataFrame, threads: Threads) -> Messages:
    """The late messages for the way's search. Times ascend: what two clocks or a fast reader put before the event that
    it follows is put at that event."""
    begin, work, published, sent, arrived, taken, started = (
        ints(late[c])
        for c in ("begin_ns", "work_ns", "published_ns", "sent_ns", "arrived_ns", "taken_ns", "started_ns")
    )
    arrived = np.clip(arrived, published, started)
    sent = np.clip(sent, published, arrived)
    taken = np.clip(taken, arrived, started)
    publisher, reader = ints(late["publisher_thread"]), ints(late["reader_thread"])
    instances = trace.table("callback_instances")
    ends = ints(instances["end_ns"].gather(late["published_in"]), FOREVER)
    publications = trace.table("publications")
    layers = ("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns")
    starts = publications.select("thread", start=pl.min_horizontal(*layers)).drop_nulls()
    next_one = Layer(ints(starts["thread"]), ints(starts["start"]), ints(starts["start"])).next_start(publisher, sent)
    # Called within the publish call: not by an executor that the callback spins, which would be the innermost.
    kind, row = threads.within(reader, arrived - 1)
    published_in = ints(late["published_in"])
    inline = (kind == Within.CALLBACK) & (row == published_in) & (ints(late["handled_within"]) == published_in)
    return Messages(
        begin=begin, work=work, published=published, sent=sent, arrived=arrived, started=started, taken=taken,
        publisher_thread=publisher,
        publisher_process=np.where(publisher >= 0, threads.process[np.maximum(publisher, 0)], -1),
        write_until=np.minimum(next_one, np.where(ends >= sent, ends, FOREVER)),
        reader_thread=reader,
        inline=inline,
        absent=_absent(trace, late, threads),
    )  # fmt: skip


def _absent(trace: Source, late: pl.DataFrame, threads: Threads) -> Ints:
    """Until when the message was certainly not there for the executor; -FOREVER where that is not known.

    An executor of one thread that waited for work finds everything that is there, and takes one message of each
    subscription before it waits again. So where it took nothing of a subscription after a wait, nothing of it was
    there when that ended; where it did, a later message may have stood behind that one.
    """
    waits = threads.waits_for_work
    ends = Layer(waits.thread, waits.end, np.full(len(waits), FOREVER))
    columns = ["subscription_row", "intra_process", "thread", "arrived_ns"]
    takes = trace.table("takes").filter(pl.col("match") != "not_taken", pl.col("subscription").is_not_null())
    dequeued = trace.table("intra_deliveries").filter(pl.col("dequeue_ns").is_not_null())
    found = pl.concat(
        [
            takes.select(
                pl.col("subscription").alias("subscription_row"), pl.lit(False).alias("intra_process"), "thread",
                pl.coalesce("rmw_ns", "rcl_ns", "rclcpp_ns").alias("arrived_ns"),
            ),
            dequeued.select(
                pl.col("subscription").alias("subscription_row"), pl.lit(True).alias("intra_process"),
                pl.col("dequeue_thread").alias("thread"), pl.col("dequeue_ns").alias("arrived_ns"),
            ),
        ]
    ).sort(columns)  # fmt: skip
    # The last wait that had ended; the waits of one thread are numbered without a gap.
    wait = ends.at(ints(found["thread"]), ints(found["arrived_ns"]))
    numbered = found.with_columns(wait=pl.Series(wait, dtype=pl.Int64))
    of_reader = ("subscription_row", "intra_process", "thread")
    new = (pl.col("wait") - pl.col("wait").shift(1).over(of_reader) > 1).fill_null(True)
    numbered = numbered.with_columns(first=pl.when(new).then("wait").forward_fill().over(of_reader)).unique(
        columns, keep="first", maintain_order=True
    )
    mine = late.select("subscription_row", "intra_process", pl.col("reader_thread").alias("thread"), "arrived_ns")
    first = ints(mine.join(numbered, on=columns, how="left", maintain_order="left")["first"])
    before = first - 1
    thread = ints(mine["thread"])
    if not len(ends):
        return np.full(len(thread), -FOREVER)
    at = np.maximum(before, 0)
    of_thread = (before >= 0) & (ends.thread[at] == thread)
    known = of_thread & threads.alone[np.maximum(thread, 0)] & late["handled_within"].is_null().to_numpy()
    return np.where(known, ends.start[at], -FOREVER)
