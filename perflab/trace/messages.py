"""Messages from publish() to the callback: how many arrived, how long they took, and in which leg of their way.

Definitions (docs/tracing.md, Messages). An edge is a publisher, a subscription, and the way between them: through the
middleware, or through a ring buffer of intra-process delivery. Of a message that a callback handled:

    published   the first layer of the publisher that saw it (rclcpp_publish, or rclcpp_intra_publish)
    sent        dds:write where the trace has it, else rmw_publish; intra-process: ring_buffer_enqueue
    arrived     rmw_take; intra-process: ring_buffer_dequeue
    taken       the last layer of the take (rclcpp_take); intra-process as arrived
    started     callback_start

    latency = publish_call (published to sent) + transport (sent to arrived) + take (arrived to taken)
            + dispatch (taken to started)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Column, Table, count, distribution, identity, percent, text, time
from perflab.trace.names import plural
from perflab.trace.quality import (
    TAKES_WITHOUT_PUBLICATION,
    Quality,
    quality_of,
    service_reason,
    unmatched_takes,
    wake_up_reason,
)
from perflab.trace.quantiles import MAX_AT, PER_MILLE, REASON_QUANTILE, TIMED, columns_of, describe
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.units import format_time

if TYPE_CHECKING:
    from perflab.trace.source import Source

# A message that was published later than this before the last event of its subscriber may still have been on its way.
SETTLING_NS = 100_000_000

_EDGE = ["publisher_row", "subscription_row", "intra_process"]
_LEGS = ("publish_call", "transport", "take", "dispatch")
_PARTS = ("write", "wake_up")  # of publish_call; of transport
_LEG_STATISTICS = ("min", "p50", "p90", "p99", "p99_9", "max")
_CALL_LEGS = ("round_trip", "request", "server", "reply")
_QUANTILES = tuple(PER_MILLE)
_DELIVERIES = ("intra_process", "same_process", "other_process", "other_host")

_IDENTITY = (
    text("edge", "who publishes, and who subscribes"),
    text("topic", "the topic"),
    text("publisher", "node of the publisher", names.NO_PUBLISHER),
    text("subscription", "node of the subscription", names.NO_SUBSCRIBER),
    text("delivery", f"the way between them: {', '.join(_DELIVERIES)}"),
    text("publisher_process", "process of the publisher", names.NO_PROCESS_NAME),
    identity("publisher_pid", "its number"),
    text("publisher_handle", "address of the publisher in its process"),
    text("subscription_process", "process of the subscription", names.NO_PROCESS_NAME),
    identity("subscription_pid", "its number"),
    text("subscription_handle", "address of the subscription in its process"),
)

MESSAGES = Table(
    "messages",
    "Messages: from publish to callback",
    (
        *_IDENTITY,
        count("published", "publications since the subscription was initialised, to the end of the trace"),
        count("taken", "publications that were taken"),
        count("handled", "publications that a callback began with"),
        count("not_taken", "published in the judged time and not taken"),
        percent(
            "not_taken",
            "share of those published in the judged time",
            "nothing was published in the time that is judged",
        ),
        count("not_taken_at_least", "not taken, only of messages around which no event is missing"),
        count("overwritten", "in a ring buffer: replaced by a later one, or cleared, before it was taken"),
        count("before_first", "published before the first message that was taken"),
        count("pending", "not taken, and published less than 100 ms before the subscriber's last event, or after it"),
        count("taken_earlier", "taken, though published before the subscription existed"),
        count("latency_left_out", "latencies left out, for events are missing on the way"),
        *distribution("latency", "publish() to callback_start", TIMED, at="when it was published"),
    ),
    shown=(
        "edge", "topic", "delivery", "published", "taken", "handled", "not_taken", "before_first", "pending",
        "overwritten", "latency_min_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns", "latency_max_at_ns",
        "latency_mean_ns",
    ),
    spare=(
        "latency_mean_ns", "overwritten", "latency_min_ns", "delivery", "handled", "before_first", "taken", "pending",
        "latency_max_at_ns", "latency_max_ns",
    ),
)  # fmt: skip


def _leg(name: str, help: str, empty: str = "") -> tuple[Column, ...]:
    return distribution(name, help, (*_LEG_STATISTICS, "mean"), empty)


LEGS = Table(
    "legs",
    "Where the time of messages went",
    (
        *_IDENTITY,
        count("n", "messages that a callback handled, without those left out"),
        time("mean", "publish() to callback_start: mean", of="latency", kind="number"),
        *_leg("publish_call", "publish() until it is given to the middleware, or to a ring buffer"),
        *_leg("transport", "from there until it is taken"),
        *_leg(
            "take",
            "rmw_take to rclcpp_take",
            "delivered within the process, or neither rcl_take nor rclcpp_take are in the trace",
        ),
        *_leg("dispatch", "from the end of the take to callback_start"),
        *_leg(
            "write",
            "of the publish call: rmw_publish to dds:write",
            "no dds:write events: the call of the middleware's write is part of transport",
        ),
        *_leg("wake_up", "of transport: the last wake-up of the taking thread until it ran"),
        *_leg("callback", "callback_start to callback_end", "no callback that handled a message was seen to end"),
        count("woken", "messages whose taking thread was woken after they were sent"),
    ),
    shown=(
        "edge", "topic", "n", "latency_mean_ns", *(f"{leg}_mean_ns" for leg in _LEGS), "transport_p99_ns",
        "dispatch_p99_ns", "write_mean_ns", "woken", "wake_up_p50_ns", "wake_up_p99_ns", "callback_mean_ns",
    ),
    spare=("write_mean_ns", "woken", "dispatch_p99_ns", "callback_mean_ns", "transport_p99_ns", "take_mean_ns"),
)  # fmt: skip

_NO_CALL = "no such call has both of its ends in the trace"
SERVICES = Table(
    "services",
    "Services",
    (
        text(
            "service",
            "name of the service",
            "neither the initialisation of the client nor that of the service is in the trace",
        ),
        text("client", "node of the client", "the initialisation of the client or of its node is not in the trace"),
        text(
            "server",
            "node of the service",
            "the initialisation of the service or of its node is not in the trace, or nobody took the request",
        ),
        count("n", "requests"),
        count("answered", "of these, those whose response was taken", _NO_CALL),
        *_leg("round_trip", "request sent to response taken", _NO_CALL),
        *_leg("request", "request sent to request taken", _NO_CALL),
        *_leg("server", "request taken to response sent", _NO_CALL),
        *_leg("reply", "response sent to response taken", _NO_CALL),
        *_leg(
            "callback",
            "the service's callback",
            "the service's callback was not seen to end without a loss of events",
        ),
        time("max_at", "when the slowest was sent, from the beginning of the trace", _NO_CALL, of="round_trip"),
    ),
    shown=(
        "service", "client", "server", "n", "answered", "round_trip_p50_ns", "round_trip_p99_ns", "round_trip_max_ns",
        "round_trip_max_at_ns", "request_mean_ns", "server_mean_ns", "reply_mean_ns", "callback_p50_ns",
        "callback_max_ns",
    ),
    spare=("callback_p50_ns", "round_trip_p99_ns", "round_trip_max_at_ns", "answered"),
)  # fmt: skip

TABLES = (MESSAGES, LEGS, TAKES_WITHOUT_PUBLICATION, SERVICES)


def messages(trace: Source, settling_ns: int = SETTLING_NS, scope: Scope = EVERYTHING) -> Answer:
    """Counts, losses, latency and its legs of every edge; takes without publication; services."""
    quality = quality_of(trace)
    publications = publications_of(trace)
    deliveries = deliveries_of(trace, publications)
    publications, deliveries = (scope.within(frame, "published_ns") for frame in (publications, deliveries))
    edges = scope.edges(_edges(trace, publications, deliveries, quality, settling_ns))
    handled = _with_wake_ups(trace, handled_of(deliveries, quality).join(edges, on=_EDGE, how="semi"))
    sections = (
        _messages(trace, edges, handled, quality, settling_ns),
        _legs(trace, edges, handled),
        unmatched_takes(trace, quality, scope),
        _services(trace, quality, scope),
    )
    figures = ("messages", "handling", "intra-process", "wake-ups", "services")
    return quality.answer("messages", sections, *figures, scope=scope)


def publications_of(trace: Source) -> pl.DataFrame:
    """Every publication with its row, its publisher, and when it was published, sent, and given to a ring buffer."""
    layers = ("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns", "dds_ns")
    return (
        trace.table("publications")
        .with_row_index("publication")
        .select(
            pl.col("publication").cast(pl.Int32),
            pl.col("publisher").alias("publisher_row"),
            pl.min_horizontal(*layers).alias("published_ns"),
            "intra_ns",
            pl.coalesce("dds_ns", "rmw_ns").alias("sent_ns"),
            write_ns=pl.col("dds_ns") - pl.col("rmw_ns"),
            to_middleware=pl.any_horizontal(pl.col(layer).is_not_null() for layer in ("rcl_ns", "rmw_ns", "dds_ns")),
        )
    )


def _with_ends(trace: Source, frame: pl.DataFrame, publications: pl.DataFrame) -> pl.DataFrame:
    """Takes or deliveries with their publications and the callbacks that handled them, both found by their rows."""
    published = publications.select("publisher_row", "published_ns", "sent_ns", "write_ns")
    callbacks = trace.table("callback_instances").select(
        pl.col("start_ns").alias("started_ns"), (pl.col("end_ns") - pl.col("start_ns")).alias("callback_ns")
    )
    found = published.select(pl.all().gather(frame["publication"]))
    handled = callbacks.select(pl.all().gather(frame["callback_instance"]))
    return pl.concat([frame, found, handled], how="horizontal")


_DELIVERY_COLUMNS = (
    *_EDGE, "publication", "published_ns", "sent_ns", "write_ns", "arrived_ns", "layer_ns", "thread", "started_ns",
    "callback_ns", "overwritten", "callback_instance",
)  # fmt: skip


def deliveries_of(trace: Source, publications: pl.DataFrame) -> pl.DataFrame:
    """Every delivery of a known publication, through the middleware or within a process."""
    return pl.concat([_through_middleware(trace, publications), _within_process(trace, publications)])


def _through_middleware(trace: Source, publications: pl.DataFrame) -> pl.DataFrame:
    """Every take whose publication is known."""
    takes = trace.table("takes").filter(pl.col("publication").is_not_null(), pl.col("match") == "matched")
    return (
        _with_ends(trace, takes, publications)
        .select(
            "publisher_row",
            pl.col("subscription").alias("subscription_row"),
            pl.lit(False).alias("intra_process"),
            "publication",
            "published_ns",
            pl.coalesce("sent_ns", "published_ns").alias("sent_ns"),
            "write_ns",
            pl.coalesce("rmw_ns", "rcl_ns", "rclcpp_ns").alias("arrived_ns"),
            # The last layer of the take, where another one than rmw saw it.
            pl.when(pl.col("rmw_ns").is_not_null()).then(pl.coalesce("rclcpp_ns", "rcl_ns")).alias("layer_ns"),
            "thread",
            "started_ns",
            "callback_ns",
            pl.lit(False).alias("overwritten"),
            "callback_instance",
        )
        .select(_DELIVERY_COLUMNS)
    )


def _within_process(trace: Source, publications: pl.DataFrame) -> pl.DataFrame:
    """Every message of a ring buffer whose publication is known; not arrived where nobody took it out."""
    nothing = pl.lit(None, pl.Int64)
    deliveries = trace.table("intra_deliveries").filter(pl.col("publication").is_not_null())
    return (
        _with_ends(trace, deliveries, publications)
        .select(
            "publisher_row",
            pl.col("subscription").alias("subscription_row"),
            pl.lit(True).alias("intra_process"),
            "publication",
            "published_ns",
            pl.col("enqueue_ns").alias("sent_ns"),
            nothing.alias("write_ns"),
            pl.col("dequeue_ns").alias("arrived_ns"),
            nothing.alias("layer_ns"),
            pl.col("dequeue_thread").alias("thread"),
            "started_ns",
            "callback_ns",
            pl.col("lost").fill_null(False).alias("overwritten"),
            "callback_instance",
        )
        .select(_DELIVERY_COLUMNS)
    )


def handled_of(deliveries: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """The messages that a callback handled, and whether to leave their latency out (`left_out`).

    That is where events are missing between its ends: what looks like the callback of this message may be that of a
    later one. Neither has a callback a duration in which events are missing.
    """
    frame = deliveries.filter(pl.col("started_ns").is_not_null())
    ended = frame["started_ns"] + frame["callback_ns"]
    unsure = quality.touched(frame["started_ns"], ended, anywhere=False).fill_null(False)
    return frame.with_columns(
        callback_ns=pl.when(~unsure).then("callback_ns"),
        left_out=quality.touched(frame["published_ns"], frame["started_ns"], anywhere=False).fill_null(False),
    )


# Counts ---------------------------------------------------------------------------------------------------------------


def _edges(
    trace: Source, publications: pl.DataFrame, deliveries: pl.DataFrame, quality: Quality, settling_ns: int
) -> pl.DataFrame:
    """One row per edge: who its ends are, and what became of the messages published while the subscription existed.

    published + taken_earlier = taken + not_taken + before_first + pending
    """
    pairs = pairs_of(trace, deliveries).with_columns(
        judged_to_ns=pl.min_horizontal("to_ns", pl.col("last_ns") - settling_ns)
    )
    to_middleware = publications.filter(pl.col("to_middleware"))
    to_buffers = publications.filter(pl.col("intra_ns").is_not_null())
    counted = [
        _counts(pairs.filter(pl.col("intra_process") == intra), times, deliveries, quality, settling_ns)
        for intra, times in ((False, to_middleware), (True, to_buffers))
    ]
    edges = pl.concat(counted)
    return edges.filter((pl.col("published") > 0) | (pl.col("taken") > 0))


def not_taken(trace: Source, quality: Quality, settling_ns: int = SETTLING_NS) -> pl.DataFrame:
    """The messages that `not_taken` counts, of edges through the middleware: publication, subscription_row.

    Only of edges on which something was taken: of others nobody knows whether they are in one domain.
    """
    publications = publications_of(trace)
    deliveries = deliveries_of(trace, publications)
    edges = _edges(trace, publications, deliveries, quality, settling_ns)
    some = edges.filter(~pl.col("intra_process") & (pl.col("not_taken") > 0) & (pl.col("taken") > 0))
    bounds = some.select("publisher_row", "subscription_row", "from_ns", "judged_to_ns", "first_taken_ns")
    taken = deliveries.filter(~pl.col("intra_process") & pl.col("arrived_ns").is_not_null())
    from_ns = pl.max_horizontal("from_ns", "first_taken_ns")
    return (
        publications.lazy()
        .filter("to_middleware")
        .join(bounds.lazy(), on="publisher_row", how="inner")
        .filter(pl.col("published_ns").is_between(from_ns, "judged_to_ns"))
        .select("publication", "subscription_row")
        .join(taken.lazy(), on=["publication", "subscription_row"], how="anti")
        .sort("publication", "subscription_row")
        .collect()
    )


def pairs_of(trace: Source, deliveries: pl.DataFrame) -> pl.DataFrame:
    """Publishers and subscriptions of one topic, with the time during which the subscription is known to exist.

    Within a process that delivers directly the middleware does not: such a pair is there once, as that. What is on
    different hosts may be in different domains, and so may processes: where nothing was taken, nobody can tell.
    """

    def ends(table: str, prefix: str) -> pl.DataFrame:
        frame = names.objects(trace, table)
        return frame.select(
            pl.col("row").alias(f"{prefix}_row"), "topic", pl.col("node").alias(prefix),
            pl.col("process_row").alias(f"{prefix}_process_row"), pl.col("host_row").alias(f"{prefix}_host_row"),
            pl.col("process").alias(f"{prefix}_process"), pl.col("pid").alias(f"{prefix}_pid"),
            pl.col("handle").alias(f"{prefix}_handle"),
            *(("valid_from_ns", "valid_to_ns", "first_ns", "last_ns") if prefix == "subscription" else ()),
        )  # fmt: skip

    publishers, subscriptions = ends("publishers", "publisher"), ends("subscriptions", "subscription")
    seen = deliveries.lazy().select(_EDGE).unique().collect()
    by_topic = publishers.join(subscriptions, on="topic", how="inner").select("publisher_row", "subscription_row")
    direct = seen.filter(pl.col("intra_process")).select("publisher_row", "subscription_row")
    possible = by_topic.join(direct, on=["publisher_row", "subscription_row"], how="anti").with_columns(
        intra_process=pl.lit(False)
    )
    return (
        pl.concat([seen, possible])
        .unique(maintain_order=True)
        .join(publishers, on="publisher_row", how="left")
        .join(subscriptions.drop("topic"), on="subscription_row", how="left")
        .with_columns(
            from_ns=pl.coalesce("valid_from_ns", "first_ns"),
            to_ns=pl.coalesce("valid_to_ns", pl.lit(trace.facts["end_ns"], pl.Int64), "last_ns"),
            delivery=pl.when("intra_process")
            .then(pl.lit("intra_process"))
            .when(pl.col("publisher_host_row") != pl.col("subscription_host_row"))
            .then(pl.lit("other_host"))
            .when(pl.col("publisher_process_row") != pl.col("subscription_process_row"))
            .then(pl.lit("other_process"))
            .otherwise(pl.lit("same_process"))
            .cast(pl.Enum(_DELIVERIES)),
        )
        .pipe(_with_labels)
    )


def _with_labels(pairs: pl.DataFrame) -> pl.DataFrame:
    """`edge`: its two nodes; where several edges of a topic are called so, with their processes, then their handles."""

    def ends(*more: str) -> pl.Expr:
        labels = []
        for end in ("publisher", "subscription"):
            name = pl.coalesce(end, f"{end}_handle", pl.lit("(unknown)"))
            added = [pl.col(f"{end}_{what}").cast(pl.String).fill_null("–") for what in more]
            labels.append(pl.format("{} ({})", name, pl.concat_str(added, separator=" ")) if more else name)
        return pl.format("{} → {}", *labels)

    steps = [(True, ends("pid")), (True, ends("pid", "handle"))]
    return names.told_apart(pairs.with_columns(edge=ends()), "edge", *steps, among=("topic", "intra_process"))


def _counts(
    pairs: pl.DataFrame, times: pl.DataFrame, deliveries: pl.DataFrame, quality: Quality, settling_ns: int
) -> pl.DataFrame:
    """`pairs` with the counts of their messages."""
    bounds = pairs.select(*_EDGE, "from_ns", "to_ns", "judged_to_ns").with_row_index("edge_row")
    per_message = (
        deliveries.lazy()
        .join(bounds.lazy(), on=_EDGE, how="inner")
        .select(
            (pl.col("edge_row").cast(pl.Int64) * 2**32 + pl.col("publication")).alias("key"),
            *_EDGE,
            "published_ns",
            taken=pl.col("arrived_ns").is_not_null(),
            handled=pl.col("started_ns").is_not_null(),
            overwritten=pl.col("overwritten"),
            earlier=pl.col("published_ns") < pl.col("from_ns"),
            judged=pl.col("published_ns").is_between("from_ns", "judged_to_ns"),
        )
        .collect()
    )
    if per_message["key"].n_unique() < per_message.height:  # a publication that was taken twice is one
        happened = pl.col("taken", "handled", "overwritten").any()
        known = pl.col(*_EDGE, "published_ns", "earlier", "judged").first()
        per_message = per_message.group_by("key").agg(known, happened)
    taken = per_message.filter(pl.col("taken"))
    of_edge = (
        per_message.lazy()
        .group_by(_EDGE)
        .agg(
            taken=pl.col("taken").sum(),
            handled=pl.col("handled").sum(),
            taken_earlier=(pl.col("taken") & pl.col("earlier")).sum(),
            overwritten=pl.col("overwritten").sum(),
            first_taken_ns=pl.col("published_ns").filter(pl.col("taken") & ~pl.col("earlier")).min(),
        )
        .collect()
    )
    counts = ("taken", "handled", "taken_earlier", "overwritten")
    frame = pairs.join(of_edge, on=_EDGE, how="left").with_columns(
        pl.col(count).cast(pl.Int64).fill_null(0) for count in counts
    )
    # What was published before the first message that arrived, perhaps before the two had found each other. Where none
    # did arrive, all are simply not taken.
    before = pl.min_horizontal("judged_to_ns", pl.col("first_taken_ns") - 1)
    found = ~pl.col("intra_process") & pl.col("first_taken_ns").is_not_null()
    frame = frame.with_columns(found_ns=pl.when(found).then(before))
    everything = times.select("publisher_row", "published_ns")
    sure = ~quality.touched(everything["published_ns"], everything["published_ns"] + settling_ns).fill_null(False)
    judged_taken = taken.filter(pl.col("judged"))
    sure_taken = judged_taken.filter(
        ~quality.touched(judged_taken["published_ns"], judged_taken["published_ns"] + settling_ns).fill_null(False)
    )
    certain = everything.filter(sure)
    frame = frame.with_columns(
        published=_published(frame, everything, "to_ns"),
        judged=_published(frame, everything, "judged_to_ns"),
        before_first=_published(frame, everything, "found_ns"),
        sure=_published(frame, certain, "judged_to_ns") - _published(frame, certain, "found_ns"),
        judged_taken=_per_edge(frame, judged_taken),
        sure_taken=_per_edge(frame, sure_taken),
    )
    return frame.with_columns(
        not_taken=pl.col("judged") - pl.col("before_first") - pl.col("judged_taken"),
        not_taken_at_least=pl.col("sure") - pl.col("sure_taken"),
        pending=(pl.col("published") - pl.col("judged"))
        - (pl.col("taken") - pl.col("taken_earlier") - pl.col("judged_taken")),
    ).with_columns(
        not_taken_percent=pl.when(pl.col("judged") > pl.col("before_first")).then(
            100.0 * pl.col("not_taken") / (pl.col("judged") - pl.col("before_first"))
        )
    )


def _published(pairs: pl.DataFrame, times: pl.DataFrame, until: str) -> pl.Series:
    """How many messages the publisher of each pair published from `from_ns` to `until`, both included."""
    ranked = (
        times.filter(pl.col("publisher_row").is_not_null())
        .sort("published_ns")
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("publisher_row"))
    )

    def ranks(at: pl.Expr, *, included: bool) -> pl.Series:
        asked = pairs.select("publisher_row", at.alias("at")).with_row_index("place").sort("at", nulls_last=False)
        joined = asked.join_asof(
            ranked,
            left_on="at",
            right_on="published_ns",
            by="publisher_row",
            strategy="backward",
            allow_exact_matches=included,
            check_sortedness=False,
        )
        return joined.sort("place")["rank"].fill_null(0)

    until_rank = ranks(pl.max_horizontal(until, pl.col("from_ns") - 1), included=True)
    counted = until_rank - ranks(pl.col("from_ns"), included=False)
    return pl.select(pl.when(pairs[until].is_not_null()).then(counted).otherwise(0)).to_series()


def _per_edge(pairs: pl.DataFrame, per_message: pl.DataFrame) -> pl.Series:
    counted = per_message.lazy().group_by(_EDGE).agg(n=pl.len().cast(pl.Int64)).collect()
    joined = pairs.select(_EDGE).join(counted, on=_EDGE, how="left", maintain_order="left")
    return joined["n"].fill_null(0)


# Latency --------------------------------------------------------------------------------------------------------------


def _with_wake_ups(trace: Source, handled: pl.DataFrame) -> pl.DataFrame:
    """Legs of every message that was handled, and the wake-up of the thread that took it.

    That is its last wake-up, if it began after the message was sent; a thread that was awake by then has none (null).
    """
    taken = pl.coalesce("layer_ns", "arrived_ns")
    frame = handled.with_columns(
        latency=pl.col("started_ns") - pl.col("published_ns"),
        publish_call=pl.col("sent_ns") - pl.col("published_ns"),
        write=pl.col("write_ns"),
        transport=pl.col("arrived_ns") - pl.col("sent_ns"),
        take=pl.col("layer_ns") - pl.col("arrived_ns"),
        dispatch=pl.col("started_ns") - taken,
        callback=pl.col("callback_ns"),
    ).sort("arrived_ns")
    if wake_up_reason(trace.facts) is not None:
        return frame.with_columns(wake_up=pl.lit(None, pl.Int64))
    wake_ups = (
        trace.table("wake_ups")
        .filter(~pl.col("already_running"), pl.col("switch_ns").is_not_null())
        .select("thread", "wakeup_ns", "switch_ns")
        .sort("switch_ns")
    )
    joined = frame.join_asof(
        wake_ups.with_columns(ran_ns=pl.col("switch_ns")),
        left_on="arrived_ns",
        right_on="switch_ns",
        by="thread",
        strategy="backward",
        check_sortedness=False,
    )
    after = pl.col("wakeup_ns") >= pl.col("sent_ns")
    return joined.with_columns(wake_up=pl.when(after).then(pl.col("ran_ns") - pl.col("wakeup_ns")))


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """Busy edges first, ROS's own topics last, and of these last where nothing was taken."""
    internal = names.is_internal(pl.col("topic"))
    return frame.sort(
        internal, internal & (pl.col("taken") == 0), "published", "topic", "publisher", "subscription",
        descending=[False, False, True, False, False, False], nulls_last=True,
    )  # fmt: skip


def _messages(trace: Source, edges: pl.DataFrame, handled: pl.DataFrame, quality: Quality, settling_ns: int) -> Section:
    latency = pl.when(~pl.col("left_out")).then("latency")
    left_out = [pl.col("left_out").sum().cast(pl.Int64).alias("latency_left_out")]
    at = {"latency": since_begin(trace, "published_ns")}
    figures = describe(handled, _EDGE, {"latency": latency}, left_out, at=at)
    joined = edges.join(figures, on=_EDGE, how="left").with_columns(pl.col("latency_left_out").fill_null(0))
    frame = _sorted(joined).select(MESSAGES.names)
    settling = format_time(settling_ns)
    notes = [
        "latency: publish() to callback_start; published: since the subscription was initialised, to the end of the"
        f" trace; not taken: of those between the first taken message and {settling} before the last event of the"
        " subscriber's process; before first: before that, perhaps before the two had found each other; pending: not"
        " taken and later than that, perhaps on their way, perhaps for a subscriber that was gone; max at: when the"
        " slowest was published, from the beginning of the trace"
    ]
    if (frame["published"].gt(0) & frame["taken"].eq(0)).any():
        notes.append(
            "where nothing was taken, publisher and subscription may also be of different domains or have QoS that do"
            " not fit; the trace does not say. Nor does it say who is reliable and who is best effort"
        )
    if quality.has_losses:
        notes.append(
            "events were lost: published, taken and handled are lower bounds; not taken is an upper bound,"
            " not_taken_at_least counts messages around which nothing is missing"
        )
    if missing := int(frame["latency_left_out"].sum()):
        notes.append(
            f"{plural(missing, 'latency', 'latencies')} left out, with their legs: events are missing between"
            " publish() and callback_start, so that the callback may be that of another message"
        )
    if quality.gaps_anywhere and handled.height:
        notes.append("nobody knows when some events were lost: single latencies may be those of other messages")
    if (frame["delivery"] == "other_host").any():
        notes.append(
            "latencies between hosts contain the difference of their clocks; believe them as far as those were"
            " synchronised"
        )
    if early := handled.filter(pl.col("arrived_ns") < pl.col("sent_ns")).height:
        notes.append(f"{plural(early, 'message')} arrived before the event of the write: transport is negative there")
    none = "no callback was seen to handle a message of this edge"
    if frame["latency_left_out"].sum():
        none += ", or events are missing on the way of all of them"
    why = dict.fromkeys(columns_of("latency", tuple(PER_MILLE)), f"{REASON_QUANTILE}; or {none}")
    why |= dict.fromkeys(columns_of("latency", ("min", "max", MAX_AT, "mean")), none)
    # Where it takes the delivery to tell two rows apart, a narrow terminal has it too.
    told = frame.select("edge", "topic").is_duplicated().any()
    table = replace(MESSAGES, spare=tuple(c for c in MESSAGES.spare if c != "delivery")) if told else MESSAGES
    return Section(table, frame, tuple(notes), why)


def _legs(trace: Source, edges: pl.DataFrame, handled: pl.DataFrame) -> Section:
    """Means are over all handled messages of the edge: those of the four legs add up to that of the latency."""
    left_out = int(handled["left_out"].sum())
    handled = handled.filter(~pl.col("left_out"))
    figures = {leg: pl.col(leg) for leg in (*_LEGS, *_PARTS, "callback")}
    # A leg that a message does not have took none of its time; one that no message has is not known.
    means = [
        pl.when(pl.col(leg).count() > 0).then(pl.col(leg).fill_null(0).sum() / pl.len()).alias(f"{leg}_mean_ns")
        for leg in (*_LEGS, *_PARTS)
    ]
    others = [
        pl.len().alias("n"),
        pl.col("latency").mean().alias("latency_mean_ns"),
        *means,
        pl.col("callback").mean().alias("callback_mean_ns"),
    ]
    statistics = describe(handled, _EDGE, figures, others, statistics=_LEG_STATISTICS)
    frame = _sorted(edges.join(statistics, on=_EDGE, how="inner"))
    frame = frame.rename({"wake_up_n": "woken"}).select(LEGS.names)
    no_wake_ups = wake_up_reason(trace.facts)
    if no_wake_ups is not None:
        frame = frame.with_columns(pl.lit(None, pl.Int64).alias("woken"))
    woken = no_wake_ups or "the thread was awake whenever a message was sent"
    why = dict.fromkeys(columns_of("wake_up", _QUANTILES), f"{REASON_QUANTILE}; or {woken}")
    why |= dict.fromkeys(columns_of("wake_up", ("min", "max", "mean")), woken) | {"woken": woken}
    notes = (
        "latency, publish call, transport, take and dispatch are means over all n messages that a callback handled, and"
        " the last four add up to the first. The columns after them do not: write is a part of publish call; wake-up is"
        " a part of transport, that of the taking thread after the message was sent, and its p50 and p99 are of the"
        " messages that had one (woken); callback is the mean of those that were seen to end",
    )
    if not frame.height:
        lost = "events are missing on the way of every message that was handled"
        notes = (lost if left_out else "no callback was seen to handle a message",)
    return Section(LEGS, frame, notes, why)


# Services ----------------------------------------------------------------------------------


def _services(trace: Source, quality: Quality, scope: Scope) -> Section:
    reason = service_reason(trace.facts)
    instances = trace.table("callback_instances")
    unsure = quality.touched(instances["start_ns"], instances["end_ns"], anywhere=False).fill_null(False)
    instances = instances.with_columns(end_ns=pl.when(~unsure).then("end_ns"))
    if reason is not None or trace.table("service_calls").is_empty():
        frame = _service_callbacks(trace, scope.within(instances, "start_ns"))
        reason = reason or "the trace has no calls of services"
    else:
        frame = _calls(trace, instances, scope)
    frame = scope.of_topics(scope.of_nodes(frame, "client", "server"), "service")
    frame = frame.sort(
        names.is_internal(pl.col("service")), "n", "service", "client",
        descending=[False, True, False, False], nulls_last=True,
    ).select(SERVICES.names)  # fmt: skip
    why = {}
    if reason is not None:
        calls = [c for leg in _CALL_LEGS for c in columns_of(leg, (*_LEG_STATISTICS, "mean"))]
        why = dict.fromkeys(("client", "answered", "round_trip_max_at_ns", *calls), reason)
    notes = [reason] if reason else []
    if frame.height and not reason:
        notes.append(
            "round trip: request sent to response taken = request (sent to taken) + server (request taken to response"
            " sent) + reply (sent to taken)"
        )
    if frame.is_empty():
        notes.append("no callback of a service ran" if reason else "no service was called")
    return Section(SERVICES, frame, tuple(notes), why)


def _calls(trace: Source, instances: pl.DataFrame, scope: Scope) -> pl.DataFrame:
    def ends(table: str, prefix: str) -> pl.DataFrame:
        return names.objects(trace, table).select(
            pl.col("row").alias(prefix), pl.col("node").alias(f"{prefix}_node"), pl.col("name").alias(f"{prefix}_name")
        )

    calls = trace.table("service_calls")
    ran = instances.select(
        (pl.col("end_ns") - pl.col("start_ns")).alias("callback_ns").gather(calls["callback_instance"])
    )
    calls = (
        scope.within(pl.concat([calls, ran], how="horizontal"), "send_request_ns")
        .with_columns(
            round_trip=pl.col("take_response_ns") - pl.col("send_request_ns"),
            request=pl.col("take_request_ns") - pl.col("send_request_ns"),
            server=pl.col("send_response_ns") - pl.col("take_request_ns"),
            reply=pl.col("take_response_ns") - pl.col("send_response_ns"),
        )
        .rename({"server": "server_time"})
    )
    figures = {leg: pl.col(leg) for leg in ("round_trip", "request", "reply")}
    figures |= {"server": pl.col("server_time"), "callback": pl.col("callback_ns")}
    statistics = (*_LEG_STATISTICS, "mean")
    others = [pl.len().alias("n"), pl.col("take_response_ns").count().alias("answered")]
    at = {"round_trip": since_begin(trace, "send_request_ns")}
    frame = describe(calls, ["client", "service"], figures, others, statistics=statistics, at=at)
    return (
        frame.join(ends("clients", "client"), on="client", how="left")
        .join(ends("services", "service"), on="service", how="left")
        .drop("client", "service")
        .with_columns(
            service=pl.coalesce("client_name", "service_name"),
            client=pl.col("client_node"),
            server=pl.col("service_node"),
        )
    )


def _service_callbacks(trace: Source, instances: pl.DataFrame) -> pl.DataFrame:
    """What is known without requests and responses: how long the callbacks of services ran."""
    services = names.callbacks(trace).filter(pl.col("kind") == "service")
    served = instances.join(services.select(pl.col("row").alias("callback")), on="callback", how="semi")
    figures = {"callback_time": pl.col("end_ns") - pl.col("start_ns")}
    statistics: Sequence[str] = (*_LEG_STATISTICS, "mean")
    frame = describe(served, ["callback"], figures, [pl.len().alias("n")], statistics=statistics)
    renamed = dict(zip(columns_of("callback_time", statistics), columns_of("callback", statistics), strict=True))
    missing = [
        pl.lit(None, pl.Float64 if c.endswith("mean_ns") else pl.Int64).alias(c)
        for leg in _CALL_LEGS
        for c in columns_of(leg, statistics)
    ]
    return (
        frame.rename(renamed)
        .join(services.select(pl.col("row").alias("callback"), "name", "node"), on="callback", how="left")
        .with_columns(
            *missing,
            pl.lit(None, pl.Int64).alias("round_trip_max_at_ns"),
            pl.col("name").alias("service"),
            pl.col("node").alias("server"),
            pl.lit(None, pl.String).alias("client"),
            pl.lit(None, pl.Int64).alias("answered"),
        )
    )
