"""Why messages were late: the time of each late one cut into parts that add up to it, each with a cause and who it was.

    why(trace, Selection(later_than_ns=5_000_000))     what the late messages of a trace waited for
    late(trace, {"/scan": 2_000_000})                  the same with a limit per topic
    merge_totals([answer, answer])                     several traces as one

Definitions (docs/tracing.md, Why a message was late). Response: from when the tick was due of the timer in
whose callback the message was published (else from its publication) to callback_start. Its way is followed backwards
(`why_path`), its stretches are cut by what threads did and by who had their CPUs (`why_threads`), and the pieces get
names (`why_parts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import TID, Table, because, count, identity, percent, text, time
from perflab.trace.names import NO_SCHEDULER, plural
from perflab.trace.quality import Quality, quality_of, wake_up_reason
from perflab.trace.quantiles import quantile
from perflab.trace.why_layers import Collected, Stretches
from perflab.trace.why_messages import PER_MILLE, Considered, Selection, as_messages, considered, is_late
from perflab.trace.why_parts import parts_of, with_names
from perflab.trace.why_path import Note, Role, stretches_of
from perflab.trace.why_threads import Threads, ints
from perflab.trace.why_totals import SUBJECTS, TABLES, Late, causes_section, totals_section, verdict
from perflab.units import format_count, format_time

if TYPE_CHECKING:
    from perflab.trace.source import Source

__all__ = ["Selection", "late", "merge_totals", "why"]

_EDGE = (text("edge", "who publishes, and who subscribes"), text("topic", "the topic"))
_DELIVERY = text("delivery", "the way between them")

BY_EDGE = Table(
    "by_edge",
    "By edge",
    (
        *_EDGE,
        _DELIVERY,
        count("messages", "messages that a callback handled"),
        count("late", "of these, those that were asked about"),
        time("p50", "median of the responses of all messages", "a median needs 2 values", of="response"),
        time("longest", "the longest response"),
        time("longest_at", "when that message was handled, from the beginning of the trace"),
        time("total", "responses of the late messages"),
        text("mostly", "the main cause of most of the late messages"),
        count("of_these", "of how many of them"),
        text("publisher", "node of the publisher", names.NO_PUBLISHER),
        text("subscription", "node of the subscription", names.NO_SUBSCRIBER),
    ),
    shown=(
        "edge", "topic", "messages", "late", "response_p50_ns", "longest_ns", "longest_at_ns", "mostly", "of_these",
    ),
    spare=("response_p50_ns", "of_these", "longest_at_ns"),
)  # fmt: skip

_MAIN = (
    time("at", "when it was over, from the beginning of the trace"),
    time("total", "its whole time"),
    time("main", "the part of its main cause"),
    text("main", "the main cause, and who it was"),
    *because(
        "all of it has one cause", time("second", "the part of the next cause"), text("second", "that, and who it was")
    ),
    percent("main", "share of the main cause"),
    text("parts", "its longest parts"),
)
_SHOWN = ("at_ns", "total_ns", "main_ns", "main", "second_ns", "second")
_MAIN_CAUSE = text("main_cause", "the main cause alone")
SUBJECT_TABLES = {
    "message": Table(
        "messages",
        "Late messages, the longest first",
        (
            *_EDGE,
            *_MAIN,
            count("message", "number of the message"),
            _DELIVERY,
            time("latency", "publish() to callback_start"),
            text("begin", "what its time begins with"),
            time("begin", "when that was, on the trace's clock"),
            time("published", "publish(), on the trace's clock"),
            time("sent", "the write, on the trace's clock"),
            time("arrived", "the take, on the trace's clock"),
            time("started", "callback_start, on the trace's clock"),
            _MAIN_CAUSE,
        ),
        shown=("edge", "topic", *_SHOWN),
        spare=("second", "second_ns", "at_ns", "topic"),
    ),
    "callback": Table(
        "callbacks",
        "Slow callbacks, the longest first",
        (
            text("of", "the callback"),
            *_MAIN,
            count("callback", "number of the instance"),
            text("node", "its node", "the owner of the callback is not in the trace"),
            text("topic", "its topic", "only subscriptions have a topic"),
            time("start", "callback_start, on the trace's clock"),
            time("end", "callback_end, on the trace's clock"),
            text("of_thread", "its thread", "the name of the thread is not in the trace"),
            TID,
            _MAIN_CAUSE,
        ),
        shown=("of", *_SHOWN),
        spare=("second", "second_ns", "at_ns"),
    ),
}


def _parts_table(kind: str) -> Table:
    nobody = "no thread was held up, or had the CPU"
    return Table(
        "parts",
        f"Parts of the {SUBJECTS[kind][0]}",
        (
            count(kind, f"number of the {kind}"),
            text("stage", "where on the way"),
            text("cause", "the cause"),
            text("who", "who it was", "nobody is named for this cause"),
            identity("cpu", "the CPU that was waited for", "not a wait for a CPU, or the CPU is not known"),
            time("part", "how long"),
            text(
                "during", "in which callback or phase", "neither a callback nor a phase of an executor is known there"
            ),
            text("reason", "what is to be said of it", "nothing is to be said of it"),
            count("pieces", "pieces that the part has"),
            time("first", "when the first of them began, on the trace's clock"),
            *because(
                "the way was not in the hands of a thread",
                text("of_thread", "the thread that had the way in its hands"),
                identity("of_tid", "its number"),
                text("of_process", "its process"),
                identity("of_pid", "number of that"),
            ),
            *because(
                nobody,
                text("by_thread", "the thread that had the CPU, or held it up"),
                identity("by_tid", "its number"),
                text("by_process", "its process"),
                identity("by_pid", "number of that"),
            ),
            text("group", "who it was, at the level of processes and callbacks", "nobody is named for this cause"),
            identity("group_pid", "number of that process", nobody),
            text("host", "host of the CPU", "the trace has one host, or as cpu"),
        ),
        shown=(kind, "stage", "cause", "who", "cpu", "part_ns", "during", "of_thread", "of_tid", "reason"),
        spare=("of_tid", "reason", "of_thread"),
    )


PARTS = {kind: _parts_table(kind) for kind in SUBJECTS}


def tables(kind: str) -> tuple[Table, ...]:
    """What is said of late messages, or of slow callbacks."""
    of = TABLES[kind]
    by_edge = (BY_EDGE,) if kind == "message" else ()
    return (of.why, of.totals, of.causes, *by_edge, SUBJECT_TABLES[kind], PARTS[kind])


def why(trace: Source, selection: Selection = Selection()) -> Answer:  # noqa: B008 - it is frozen
    """What the late messages (or the slow callbacks) of a trace waited for.

    Raises BadInput where the selection names what the trace does not have.
    """
    quality = quality_of(trace)
    threads = Threads(trace)
    if selection.slow_callbacks:
        return _slow_callbacks(trace, selection, quality, threads)
    found = considered(trace, selection, quality)
    subjects = (
        found.frame.filter("late").drop("late").with_row_index("subject").with_columns(pl.col("subject").cast(pl.Int32))
    )
    subjects = subjects.join(
        found.edges.select("edge_row", "edge", "publisher", "subscription"), on="edge_row", how="left",
        maintain_order="left",
    )  # fmt: skip
    instances = trace.table("callback_instances")["callback"]
    own_callback = ints(instances.gather(subjects["published_in"]))
    stretches = stretches_of(as_messages(trace, subjects, threads), threads)
    between_hosts = (subjects["delivery"] == "other_host").to_numpy()
    parts = parts_of(trace, stretches, threads, own_callback, between_hosts)
    parts = with_names(trace, parts, subjects.select("subject", "topic", "publisher"))
    parts = _as_columns(trace, parts, "message")
    those = Late("message", _message_rows(trace, subjects), parts)
    sections = (
        verdict(those, found.frame.height, _limit(selection, "edge")),
        totals_section(those),
        causes_section(those),
        _by_edge(found, those),
        _subjects_section(those, _message_notes(trace, found)),
        _parts_section(those),
    )
    figures = ("messages", "handling", "intra-process", "thread states", "wake-ups")
    return quality.answer("why", sections, *figures, scope=selection.stretch)


def late(trace: Source, thresholds: Mapping[str, int] | None = None, nodes: Sequence[str] = ()) -> Answer:
    """`why` of the messages that took longer than their topic's threshold (ns); of topics without one nothing is asked.

    Without thresholds of the slowest hundredth of every edge. Topics that the trace does not have are passed over.
    """
    return why(trace, Selection(later_than_by_topic=thresholds, nodes=tuple(nodes)))


def merge_totals(answers: Sequence[Answer]) -> Answer:
    """Answers of several traces about one thing as one: the sentence and the totals over all their messages.

    Raises ValueError where there are none, or some are about messages and some about callbacks.
    """
    kinds = {_kind(answer) for answer in answers}
    if len(kinds) != 1:
        raise ValueError("totals are merged of at least one answer, and of answers of one kind")
    (kind,) = kinds
    rows, parts = [], []
    for number, answer in enumerate(answers):
        trace = pl.lit(number, pl.Int32).alias("trace")
        rows.append(answer.section(SUBJECTS[kind][0]).frame.with_columns(trace))
        parts.append(answer.section("parts").frame.with_columns(trace))
    # Numbers of messages are of their trace.
    all_rows, all_parts = pl.concat(rows), pl.concat(parts)
    keys = all_rows.select("trace", kind).with_row_index("merged").with_columns(pl.col("merged").cast(pl.Int32))
    all_rows = all_rows.join(keys, on=["trace", kind], maintain_order="left").with_columns(pl.col("merged").alias(kind))
    all_parts = all_parts.join(keys, on=["trace", kind], maintain_order="left").with_columns(
        pl.col("merged").alias(kind)
    )
    those = Late(kind, all_rows, all_parts)
    verdicts = [answer.section("why").frame for answer in answers]
    of = sum(int(v[SUBJECTS[kind][0]][0]) for v in verdicts)
    limits = sorted({v["limit"][0] for v in verdicts})
    limit = limits[0] if len(limits) == 1 else "the limits of their traces"
    quality = tuple(dict.fromkeys(line for answer in answers for line in answer.quality))
    return Answer(
        answers[0].kind,
        (
            verdict(those, of, limit),
            totals_section(those),
            causes_section(those),
        ),
        quality,
    )


def _kind(answer: Answer) -> str:
    return "message" if answer.kind == "why" else "callback"


# Slow callbacks -------------------------------------------------------------------------------------------------------


def _slow_callbacks(trace: Source, selection: Selection, quality: Quality, threads: Threads) -> Answer:
    """The slow ones of the callbacks that ended, and what kept them from running."""
    known = names.callbacks(trace).select(
        pl.col("row").alias("callback_row"), pl.col("label").alias("of"), "node",
        pl.when(pl.col("kind") == "subscription").then("name").alias("topic"),
    )  # fmt: skip
    for column, asked in (("topic", selection.topics), ("node", selection.nodes)):
        _refuse_unknown(known[column], column, asked)
    instances = (
        trace.table("callback_instances")
        .select(pl.col("callback").alias("callback_row"), "thread", "start_ns", "end_ns")
        .join(known, on="callback_row", how="left", maintain_order="left")
        .with_columns(pl.col("of").fill_null("(unknown)"), duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    )
    if selection.topics:
        instances = instances.filter(pl.col("topic").is_in(list(selection.topics)))
    if selection.nodes:
        instances = instances.filter(pl.col("node").is_in(list(selection.nodes)))
    ended = selection.stretch.within(instances, "start_ns").filter(pl.col("duration_ns") > 0)
    lost = quality.touched(ended["start_ns"], ended["end_ns"], anywhere=False).fill_null(False)
    ended = ended.filter(~lost)
    slow = is_late(ended, selection, "duration_ns", "callback_row")
    subjects = ended.filter(slow).sort("start_ns", maintain_order=True).with_row_index("subject")
    subjects = subjects.with_columns(pl.col("subject").cast(pl.Int32))
    collected = Collected()
    thread, start, end = (ints(subjects[c]) for c in ("thread", "start_ns", "end_ns"))
    collected.add(np.arange(len(start), dtype=np.int64), thread, start, end, Role.SLOW, Note.NOTHING)
    stretches: Stretches = collected.all()
    parts = parts_of(trace, stretches, threads, ints(subjects["callback_row"]), np.zeros(len(start), dtype=np.bool_))
    topics = subjects.select("subject", "topic", pl.col("node").alias("publisher"))
    parts = _as_columns(trace, with_names(trace, parts, topics), "callback")
    rows = subjects.select(
        pl.col("subject").alias("callback"), "of", "node", "topic",
        (pl.col("start_ns") - trace.facts["begin_ns"]).alias("at_ns"), "start_ns", "end_ns",
        pl.col("duration_ns").alias("total_ns"), "thread",
    )  # fmt: skip
    who = names.threads(trace).select(pl.col("thread_row").alias("thread"), pl.col("thread").alias("of_thread"), "tid")
    rows = rows.join(who, on="thread", how="left", maintain_order="left").drop("thread")
    those = Late("callback", rows, parts)
    notes = [_duration_words(selection)]
    if n := int(lost.sum()):
        notes.append(f"{plural(n, 'callback')} left out: events are missing within")
    sections = (
        verdict(those, ended.height, _limit(selection, "callback")),
        totals_section(those),
        causes_section(those),
        _subjects_section(those, notes),
        _parts_section(those),
    )
    figures = ("callbacks", "thread states", "wake-ups")
    return quality.answer("why_callbacks", sections, *figures, scope=selection.stretch)


def _refuse_unknown(values: pl.Series, what: str, asked: Sequence[str]) -> None:
    from perflab.errors import BadInput

    for name in asked:
        if name not in values:
            known = sorted(values.drop_nulls().unique().to_list())
            raise BadInput(f"no callback of {what} {name!r} is in the trace; it has {', '.join(known[:10]) or 'none'}")


def _duration_words(selection: Selection) -> str:
    return f"callbacks from callback_start to callback_end, wall time; {_limit(selection, 'callback')}"


# Sections -------------------------------------------------------------------------------------------------------------


def _limit(selection: Selection, group: str) -> str:
    """What was asked for, in words."""
    if selection.later_than_ns is not None:
        return f"longer than {format_time(selection.later_than_ns)}"
    if selection.later_than_by_topic is not None:
        return "response above the limit of their topic"
    if selection.slowest is not None:
        return f"the {format_count(selection.slowest)} slowest"
    per_mille = PER_MILLE if selection.per_mille is None else selection.per_mille
    return f"the slowest {(1000 - per_mille) / 10:g} % of every {group}"


def _as_columns(trace: Source, parts: pl.DataFrame, kind: str) -> pl.DataFrame:
    if trace.table("hosts").height < 2:
        parts = parts.with_columns(host=pl.lit(None, pl.String))
    of_cpu = pl.col("cause").cast(pl.String).is_in(["cpu", "wake_up"])
    return parts.select(
        pl.col("subject").alias(kind), "stage", "cause", "who", "cpu", pl.col("ns").alias("part_ns"),
        pl.coalesce("during", "callback").alias("during"), "reason", "pieces", "first_ns",
        pl.col("thread").alias("of_thread"), pl.col("tid").alias("of_tid"), pl.col("process").alias("of_process"),
        pl.col("pid").alias("of_pid"), "by_thread", "by_tid", "by_process", "by_pid", "group", "group_pid",
        pl.when(of_cpu).then("host").alias("host"),
    )  # fmt: skip


def _by_edge(found: Considered, those: Late) -> Section:
    counts = found.frame.group_by("edge_row").agg(
        messages=pl.len().cast(pl.Int64), response_p50_ns=quantile(pl.col("response_ns"), 500)
    )
    main = those.rows.select("message", "edge_row", "total_ns", "at_ns").join(those.main, on="message", how="left")
    grouped = main.group_by("edge_row", "main").agg(n=pl.len().cast(pl.Int64), ns=pl.col("main_ns").sum())
    grouped = grouped.sort("edge_row", "n", "ns", "main", descending=[False, True, True, False])
    first = grouped.group_by("edge_row", maintain_order=True).agg(
        main=pl.col("main").first(), of_main=pl.col("n").first()
    )
    lateness = main.group_by("edge_row").agg(
        late=pl.len().cast(pl.Int64),
        total_ns=pl.col("total_ns").sum(),
        longest_ns=pl.col("total_ns").max(),
        longest_at_ns=pl.col("at_ns").get(pl.col("total_ns").arg_max()),
    )
    frame = (
        lateness.join(counts, on="edge_row", how="left")
        .join(first, on="edge_row", how="left")
        .join(found.edges, on="edge_row", how="left")
        .sort("late", "total_ns", "edge", "topic", descending=[True, True, False, False], nulls_last=True)
        .rename({"main": "mostly", "of_main": "of_these"})
        .select(BY_EDGE.names)
    )
    note = "mostly: the main cause of most of the late messages of the edge, of_these of them"
    return Section(BY_EDGE, frame, (note if frame.height else "no message was late",))


def _message_rows(trace: Source, subjects: pl.DataFrame) -> pl.DataFrame:
    return subjects.select(
        pl.col("subject").alias("message"), "edge_row", "edge", "topic", "delivery",
        (pl.col("started_ns") - trace.facts["begin_ns"]).alias("at_ns"),
        pl.col("response_ns").alias("total_ns"), "latency_ns", pl.col("begin").cast(pl.String), "begin_ns",
        "published_ns", "sent_ns", "arrived_ns", "started_ns",
    )  # fmt: skip


def _message_notes(trace: Source, found: Considered) -> list[str]:
    notes = [
        "total: from when the tick was due of the timer in whose callback the message was published, else from its"
        " publication, to callback_start; latency: from its publication"
    ]
    counts = dict(found.frame.group_by("begin").agg(pl.len()).iter_rows())
    if n := counts.get("due_estimated"):
        notes.append(
            f"of {plural(n, 'message')} the tick is estimated: the latest point of a grid of the timer's period that is"
            " the lower envelope of its starts"
        )
    if n := counts.get("published_due_unknown"):
        notes.append(
            f"{plural(n, 'message')} of timers begin at the publication: when the tick was due is not known, nor is"
            " what the sender waited for"
        )
    if found.left_out:
        notes.append(
            f"{plural(found.left_out, 'message')} left out: events are missing between publish() and callback_start, so"
            " that the callback may be that of another message"
        )
    if found.backwards:
        notes.append(f"{plural(found.backwards, 'message')} left out: handled before published, by the hosts' clocks")
    if (found.frame["delivery"] == "other_host").any():
        notes.append("between hosts transport contains the difference of the hosts' clocks")
    if not trace.facts.get("scheduler"):
        notes.append(f"{NO_SCHEDULER}: nothing is known of waits for a CPU, and transport and wake-up are one part")
    elif (reason := wake_up_reason(trace.facts)) is not None:
        notes.append(reason)
    elif not trace.facts["scheduler"].get("has_waking"):
        notes.append(
            "the trace has no sched_waking: who woke a thread on an idle CPU is not known, and the way is not followed"
            " beyond it"
        )
    return notes


def _subjects_section(those: Late, notes: Sequence[str]) -> Section:
    kind = those.kind
    _, late_ = SUBJECTS[kind]
    frame = (
        those.rows.join(those.main, on=kind, how="left", maintain_order="left")
        .with_columns(main_percent=100.0 * pl.col("main_ns") / pl.col("total_ns"))
        .sort("total_ns", kind, descending=[True, False])
    )
    if frame.is_empty():
        notes = [f"no {kind} was {late_}"]
    table = SUBJECT_TABLES[kind]
    return Section(table, frame.select(table.names), tuple(notes))


def _parts_section(those: Late) -> Section:
    kind, parts = those.kind, those.parts
    _, late_ = SUBJECTS[kind]
    note = f"the parts of a {kind} add up to its total" if parts.height else f"no {kind} was {late_}"
    return Section(PARTS[kind], parts, (note,))
