"""The messages of a command, from its trace: publishers and edges in the form of a node's checkpoint (docs/formats.md,
4).

Only messages published in the measured part, by processes of the command, on topics that are not ROS's own. A message
that was overwritten in a ring buffer is lost. For one that was never taken it is unknown whether it was lost, came
after the last take, or had no match: such an edge has `sent` and `received`, and its losses are null.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl

from perflab.condition import Window
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.trace import names
from perflab.trace.messages import Deliveries
from perflab.trace.quality import quality_of
from perflab.trace.source import Source
from perflab.units import NS_PER_S

Json = dict[str, Any]

_PUBLISHER, _EDGE = ["publisher", "topic"], ["publisher", "topic", "subscription"]


@dataclass(frozen=True)
class TracedMessages:
    """`publishers`, `edges` and `progress` are records; `counts` is trial.json's record of them."""

    publishers: tuple[Json, ...]
    edges: tuple[Json, ...]
    progress: tuple[Json, ...]
    counts: Json
    notes: tuple[str, ...]


def read(trace: Source, window: Window, pids: Collection[int] | None = None) -> TracedMessages:
    """The messages published in the window and their delivery. `pids`: the command's processes; None: all are."""
    quality = quality_of(trace)
    notes: list[str] = []
    deliveries = Deliveries(trace, quality)
    named, counts = _named(trace, deliveries.publications, window, pids, notes)
    lossy = bool(quality.touched(pl.Series([window.begin_ns]), pl.Series([window.end_ns]))[0])
    if lossy:
        notes.append("the tracer lost events in the measured part: counts of sent and lost messages are unknown")
    left_out = deliveries.handled.filter("left_out").select("publication", "subscription_row")
    received = _received(named, deliveries.all, left_out, _ends(trace, "subscriptions", pids))
    frame = _edges(trace, named, received, pids)
    edges = tuple(_edge(row, received, lossy) for row in frame.iter_rows(named=True))
    counts |= {
        "edges": len(edges),
        "taken": int(frame["received"].sum()),
        "overwritten": int(frame["overwritten"].sum()),
        "not_taken": None if lossy else int(frame["not_taken"].sum()),
        "latencies_left_out": int(received["left_out"].sum()),
        "events_lost": lossy,
    }
    if left := counts["latencies_left_out"]:
        notes.append(f"{left} latencies are left out: events are missing between publish() and the callback")
    if missing := counts["not_taken"]:
        notes.append(f"{missing} messages were published and not seen to be taken: whether they were lost is unknown")
    return TracedMessages(
        publishers=tuple(_publisher(row, named, lossy) for row in _publishers(named).iter_rows(named=True)),
        edges=edges,
        progress=tuple(_progress(named, received, window)),
        counts=counts,
        notes=tuple(notes),
    )


def _ends(trace: Source, table: str, pids: Collection[int] | None) -> pl.DataFrame:
    """Named publishers or subscriptions of the command's processes: row, node, topic, and when they existed."""
    frame = names.objects(trace, table).filter(pl.col("node").is_not_null(), pl.col("topic").is_not_null())
    if pids is not None:
        frame = frame.filter(pl.col("pid").is_in(list(pids)))
    return frame.select("row", "node", "topic", "valid_from_ns", "valid_to_ns")


def _named(
    trace: Source, publications: pl.DataFrame, window: Window, pids: Collection[int] | None, notes: list[str]
) -> tuple[pl.DataFrame, Json]:
    """The publications that count, with node and topic of their publisher, and their due times."""
    # Due time of the timer in whose callback it was published.
    due = trace.table("callback_instances")["due_ns"].gather(trace.table("publications")["callback_instance"])
    inside = publications.with_columns(due).filter(
        pl.col("published_ns") >= window.begin_ns, pl.col("published_ns") < window.end_ns
    )
    objects = names.objects(trace, "publishers").select(
        pl.col("row").alias("publisher_row"), pl.col("node").alias("publisher"), "topic", "pid"
    )
    frame = inside.join(objects, on="publisher_row", how="left")
    own = pl.lit(True) if pids is None else pl.col("pid").is_in(list(pids)).fill_null(False)
    internal = names.is_internal(pl.col("topic"))
    named = pl.col("publisher").is_not_null() & pl.col("topic").is_not_null()
    counts: Json = {
        "publications": frame.filter(own & ~internal & named).height,
        "of_ros_itself": frame.filter(own & internal).height,
        "without_name": frame.filter(own & ~internal & ~named).height,
        "of_others": frame.filter(~own).height,
    }
    if unnamed := counts["without_name"]:
        notes.append(f"{unnamed} publications are left out: the trace does not name their publishers")
    if others := counts["of_others"]:
        notes.append(f"{others} publications are left out: their processes do not belong to the command")
    return frame.filter(own & ~internal & named).drop("pid"), counts


def _received(
    named: pl.DataFrame, deliveries: pl.DataFrame, left_out: pl.DataFrame, subscriptions: pl.DataFrame
) -> pl.DataFrame:
    """The delivery of each of these publications to each subscription; a message taken twice counts once."""
    to = subscriptions.select(pl.col("row").alias("subscription_row"), pl.col("node").alias("subscription"))
    marked = left_out.unique().with_columns(left_out=pl.lit(True))
    return (
        deliveries.select("publication", "subscription_row", "arrived_ns", "started_ns", "overwritten", "intra_process")
        .join(named.select("publication", "publisher_row", *_PUBLISHER, "published_ns", "due_ns"), on="publication")
        .join(to, on="subscription_row")
        .group_by("publication", "subscription_row", maintain_order=True)
        .agg(
            pl.col("publisher_row", *_EDGE, "published_ns", "due_ns").first(),
            pl.col("arrived_ns", "started_ns").min(),
            pl.col("overwritten").any(),
        )
        .join(marked, on=["publication", "subscription_row"], how="left")
        .with_columns(
            pl.col("left_out").fill_null(False),
            overwritten=pl.col("overwritten") & pl.col("arrived_ns").is_null(),
        )
        .with_columns(
            latency=pl.when(~pl.col("left_out")).then(pl.col("started_ns") - pl.col("published_ns")),
            response=pl.when(~pl.col("left_out")).then(pl.col("started_ns") - pl.col("due_ns")),
        )
    )


def _edges(trace: Source, named: pl.DataFrame, received: pl.DataFrame, pids: Collection[int] | None) -> pl.DataFrame:
    """Every publisher with the subscriptions of its topic: messages sent while these existed, taken, overwritten, not
    taken."""
    to = _ends(trace, "subscriptions", pids).rename({"row": "subscription_row", "node": "subscription"})
    became = received.select(
        "publication", "subscription_row", "overwritten", received=pl.col("arrived_ns").is_not_null()
    )
    exists = (pl.col("valid_from_ns").fill_null(0) <= pl.col("published_ns")) & (
        pl.col("published_ns") < pl.col("valid_to_ns").fill_null(2**62)
    )
    return (
        named.lazy()
        .select("publication", *_PUBLISHER, "published_ns")
        .join(to.lazy(), on="topic")
        .join(became.lazy(), on=["publication", "subscription_row"], how="left")
        .with_columns(pl.col("received", "overwritten").fill_null(False))
        # A message taken from before the subscription existed (transient local) was nevertheless sent to it.
        .filter(exists | pl.col("received") | pl.col("overwritten"))
        .group_by(_EDGE)
        .agg(pl.len().alias("sent"), pl.col("received", "overwritten").sum())
        .with_columns(not_taken=pl.col("sent") - pl.col("received") - pl.col("overwritten"))
        .sort(_EDGE)
        .collect()
    )


def _publishers(named: pl.DataFrame) -> pl.DataFrame:
    return named.group_by(_PUBLISHER).agg(sent=pl.len()).sort(_PUBLISHER)


def _publisher(row: Json, named: pl.DataFrame, lossy: bool) -> Json:
    own = named.filter(pl.col("publisher") == row["publisher"], pl.col("topic") == row["topic"])
    call = own.select(value=pl.col("sent_ns") - pl.col("published_ns"), at="published_ns")
    delay = own.select(value=pl.col("published_ns") - pl.col("due_ns"), at="published_ns")
    return {
        "node": row["publisher"],
        "topic": row["topic"],
        "sent": None if lossy else int(row["sent"]),
        "not_sent": None,
        "write_errors": None,
        "warmup_sent": None,
        "first_sequence": None,
        "publish_delay": _record(_histogram(delay)),
        "publish_call": _record(_histogram(call)),
    }


def _edge(row: Json, received: pl.DataFrame, lossy: bool) -> Json:
    own = received.filter(*(pl.col(key) == row[key] for key in _EDGE))
    # Either every missing message was seen to be lost, or the losses are unknown.
    known = not lossy and row["not_taken"] == 0
    return {
        **{key: row[key] for key in _EDGE},
        "size_bytes": None,
        "frequency_hz": None,
        "sent": None if lossy else int(row["sent"]),
        "received": int(row["received"]),
        "pre_match": 0 if known else None,
        "gap": int(row["overwritten"]) if known else None,
        "tail": 0 if known else None,
        "not_taken": None if lossy else int(row["not_taken"]),
        **dict.fromkeys(("first_sequence", "highest_sequence", "reordered", "duplicate", "beyond_window")),
        **dict.fromkeys(("warmup_received", "on_time", "late", "too_late")),
        "latency": _record(_histogram(own.select(value="latency", at="started_ns"))),
        "response": _record(_histogram(own.select(value="response", at="started_ns"))),
        "dispatch": None,
        "work": None,
    }


def _histogram(values: pl.DataFrame) -> Histogram | None:
    """Histogram of `value`, with the times `at`; None if no value is known."""
    known = values.drop_nulls("value")
    return hg.from_values(known["value"].to_numpy(), known["at"].to_numpy()) if known.height else None


def _record(histogram: Histogram | None) -> Json | None:
    return None if histogram is None else hg.to_record(histogram)


def _progress(named: pl.DataFrame, received: pl.DataFrame, window: Window) -> list[Json]:
    """One line per second, cumulative, as a node writes them; a message counts when its callback begins."""
    lines = []
    seconds = (window.end_ns - window.begin_ns) // NS_PER_S
    for second in range(1, seconds + 1):
        at_ns = window.begin_ns + second * NS_PER_S
        started = received.filter(pl.col("started_ns") <= at_ns)
        latency = _histogram(started.select(value="latency", at="started_ns"))
        response = _histogram(started.select(value="response", at="started_ns"))
        lines.append(
            {
                "type": "progress",
                "at_ns": at_ns,
                "elapsed_ns": at_ns - window.begin_ns,
                "publishing": True,
                "sent": named.filter(pl.col("published_ns") <= at_ns).height,
                "deliveries_expected": None,
                "received": received.filter(pl.col("arrived_ns") <= at_ns).height,
                "completed": started.height,
                "lost": None,
                "latency": None if latency is None else hg.encode(latency),
                "response": None if response is None else hg.encode(response),
            }
        )
    return lines
