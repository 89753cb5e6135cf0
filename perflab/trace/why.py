"""Why messages were late: the time of each late one cut into parts that add up to it, each with a cause and who it was.

    why(trace, Selection(later_than_ns=5_000_000))     what the late messages of a trace waited for
    why(trace, Selection(slow_callbacks=True))         the same of callbacks

Definitions (docs/tracing.md, Why a message was late). Response: from when the tick was due of the timer in
whose callback the message was published (else from its publication) to callback_start. Its way is followed backwards
(`why_path`), its stretches are cut by what threads did and by who had their CPUs (`why_threads`), and the pieces get
names (`why_parts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, notes_of
from perflab.trace.names import NO_SCHEDULER
from perflab.trace.quality import Quality, quality_of, wake_up_reason
from perflab.trace.quantiles import quantile
from perflab.trace.scope import since_begin
from perflab.trace.why_layers import Collected, Columns, Flags, Ints, ints
from perflab.trace.why_messages import Considered, Selection, as_messages, considered
from perflab.trace.why_parts import parts_of, with_names
from perflab.trace.why_path import Role, stretches_of
from perflab.trace.why_sections import TABLES, Late
from perflab.trace.why_threads import Threads
from perflab.units import plural

if TYPE_CHECKING:
    from perflab.trace.source import Source

__all__ = ["TABLES", "Selection", "why"]


def why(trace: Source, selection: Selection = Selection()) -> Answer:  # noqa: B008 - it is frozen
    """What the late messages (or the slow callbacks) of a trace waited for."""
    quality = quality_of(trace)
    threads = Threads(trace)
    if selection.slow_callbacks:
        found = _slow_callbacks(trace, selection, quality, threads)
        figures: tuple[str, ...] = ("callbacks", "thread states", "wake-ups")
        return quality.answer("why_callbacks", found.sections(), *figures, scope=selection.scope)
    found = _late_messages(trace, selection, quality, threads)
    figures = ("messages", "handling", "intra-process", "thread states", "wake-ups")
    return quality.answer("why", found.sections(), *figures, scope=selection.scope)


def _late_messages(trace: Source, selection: Selection, quality: Quality, threads: Threads) -> Late:
    found = considered(trace, selection, quality)
    subjects = _numbered(found.frame.filter("late")).join(
        found.edges.select("edge_row", "edge", "publisher", "subscription"), on="edge_row", how="left",
        maintain_order="left",
    )  # fmt: skip
    instances = trace.table("callback_instances")["callback"]
    parts = _parts(
        trace, "message", subjects.select("subject", "topic", "publisher"), threads,
        stretches_of(as_messages(trace, subjects, threads), threads),
        ints(instances.gather(subjects["published_in"])), (subjects["delivery"] == "other_host").to_numpy(),
    )  # fmt: skip
    rows = subjects.select(
        pl.col("subject").alias("message"), "edge_row", "edge", "topic", "delivery",
        since_begin(trace, "started_ns").alias("at_ns"),
        pl.col("response_ns").alias("total_ns"), "latency_ns", pl.col("begin").cast(pl.String), "begin_ns",
        "published_ns", "sent_ns", "arrived_ns", "started_ns",
    )  # fmt: skip
    counts = found.frame.group_by("edge_row").agg(
        messages=pl.len().cast(pl.Int64), response_p50_ns=quantile(pl.col("response_ns"), 500)
    )
    return Late(
        "message", rows, parts, found.frame.height, selection.limit("edge"), _notes(trace, found),
        found.edges.join(counts, on="edge_row", how="left"),
    )  # fmt: skip


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
    slow = ended.filter(selection.late(ended, "total_ns", "callback_row"))
    subjects = _numbered(slow.sort("start_ns", maintain_order=True))
    thread, start, end, callback = (ints(subjects[c]) for c in ("thread", "start_ns", "end_ns", "callback_row"))
    stretches = Collected()
    stretches.put({"subject": np.arange(len(start)), "thread": thread, "start": start, "end": end}, role=Role.SLOW)
    parts = _parts(
        trace, "callback", subjects.select("subject", "topic", publisher="node"), threads, stretches.all(), callback,
        np.zeros(len(start), dtype=np.bool_),
    )  # fmt: skip
    limit = selection.limit("callback")
    notes = [f"callbacks from callback_start to callback_end, wall time; {limit}"]
    if n := int(lost.sum()):
        notes.append(f"{plural(n, 'callback')} left out: events are missing within")
    rows = subjects.rename({"subject": "callback"})
    return Late("callback", rows, parts, ended.height, limit, tuple(notes))


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_row_index("subject").with_columns(pl.col("subject").cast(pl.Int32))


def _parts(
    trace: Source, kind: str, subjects: pl.DataFrame, threads: Threads, stretches: Columns, own: Ints, far: Flags
) -> pl.DataFrame:
    """The section `parts` of subjects; see parts_of and with_names."""
    parts = with_names(trace, parts_of(trace, stretches, threads, own, far), subjects)
    several = trace.table("hosts").height > 1
    of_cpu = pl.col("cause").cast(pl.String).is_in(["cpu", "wake_up"]) & several
    return parts.select(
        pl.col("subject").alias(kind), "stage", "cause", "who", "cpu", pl.col("ns").alias("part_ns"),
        pl.coalesce("during", "callback").alias("during"), "reason", "pieces", "first_ns",
        pl.col("thread").alias("of_thread"), pl.col("tid").alias("of_tid"), pl.col("process").alias("of_process"),
        pl.col("pid").alias("of_pid"), "by_thread", "by_tid", "by_process", "by_pid", "group", "group_pid",
        pl.when(of_cpu).then("host").alias("host"),
    )  # fmt: skip


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
