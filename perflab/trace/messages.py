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

from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section, notes_of
from perflab.trace.columns import Column, Table, count, distribution, identity, percent, text, time
from perflab.trace.quality import (
    TAKES_WITHOUT_PUBLICATION,
    Quality,
    and_reads,
    quality_of,
    service_reason,
    unmatched_takes,
    wake_up_reason,
)
from perflab.trace.quantiles import PER_MILLE, REASON_QUANTILE, TIMED, columns_of, describe
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.units import format_time, plural

# A message that was published later than this before the last event of its subscriber may still have been on its way.
SETTLING_NS = 100_000_000

EDGE = ["publisher_row", "subscription_row", "intra_process"]
# The edge, and a publication on its way to a subscription, as one number each: by one column many rows are joined and
# grouped faster than by several. Null where an end is not known, and joined with nothing.
_WAY = 2 * pl.col("subscription_row").cast(pl.Int64) + pl.col("intra_process").cast(pl.Int64)
_PAIR = (pl.col("publisher_row").cast(pl.Int64) * (1 << 32) + _WAY).alias("pair")
_DELIVERY = (pl.col("publication").cast(pl.Int64) * (1 << 32) + _WAY).alias("delivery_number")
_LEG_STATISTICS = ("min", "p50", "p90", "p99", "p99_9", "max")
_OF_END, _SPAN = ("process", "pid", "handle"), ("valid_from_ns", "valid_to_ns", "first_ns", "last_ns")
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
        *distribution(
            "latency", "publish() to callback_start", TIMED,
            "no callback was seen to handle a message of this edge, or events are missing on the way of all of them",
            at="when it was published",
        ),
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


@dataclass(frozen=True)
class Leg:
    """A part of a way, from one instant to another; null of a message (or call) that has not both."""

    name: str
    begin: str  # columns, ns
    end: str
    help: str
    empty: str = ""

    @property
    def time(self) -> pl.Expr:
        return (pl.col(self.end) - pl.col(self.begin)).alias(self.name)

    @property
    def columns(self) -> tuple[Column, ...]:
        return distribution(self.name, self.help, (*_LEG_STATISTICS, "mean"), self.empty)


LATENCY = Leg("latency", "published_ns", "started_ns", "publish() to callback_start")
LEGS_OF_LATENCY = (
    Leg("publish_call", "published_ns", "sent_ns", "publish() until it is given to the middleware or to a ring buffer"),
    Leg("transport", "sent_ns", "arrived_ns", "from there until it is taken"),
    Leg(
        "take", "arrived_ns", "layer_ns", "rmw_take to rclcpp_take",
        "delivered within the process, or neither rcl_take nor rclcpp_take are in the trace",
    ),
    Leg("dispatch", "taken_ns", "started_ns", "from the end of the take to callback_start"),
)  # fmt: skip
_PARTS_OF_LEGS = (
    Leg(
        "write", "given_ns", "written_ns", "of the publish call: rmw_publish to dds:write",
        "no dds:write events: the call of the middleware's write is part of transport",
    ),
    Leg("wake_up", "wakeup_ns", "ran_ns", "of transport: the last wake-up of the taking thread until it ran"),
)  # fmt: skip
_CALLBACK = Leg(
    "callback", "started_ns", "ended_ns", "callback_start to callback_end",
    "no callback that handled a message was seen to end",
)  # fmt: skip
_NO_CALL = "no such call has both of its ends in the trace"
_LEGS_OF_CALLS = (
    Leg("round_trip", "send_request_ns", "take_response_ns", "request sent to response taken", _NO_CALL),
    Leg("request", "send_request_ns", "take_request_ns", "request sent to request taken", _NO_CALL),
    Leg("server", "take_request_ns", "send_response_ns", "request taken to response sent", _NO_CALL),
    Leg("reply", "send_response_ns", "take_response_ns", "response sent to response taken", _NO_CALL),
)
_SERVED = replace(
    _CALLBACK,
    help="the service's callback",
    empty="the service's callback was not seen to end without a loss of events",
)

LEGS = Table(
    "legs",
    "Where the time of messages went",
    (
        *_IDENTITY,
        count("n", "messages that a callback handled, without those left out"),
        time("mean", f"{LATENCY.help}: mean", of="latency", kind="number"),
        *(column for leg in (*LEGS_OF_LATENCY, *_PARTS_OF_LEGS, _CALLBACK) for column in leg.columns),
        count("woken", "messages whose taking thread was woken after they were sent"),
    ),
    shown=(
        "edge", "topic", "n", "latency_mean_ns", *(f"{leg.name}_mean_ns" for leg in LEGS_OF_LATENCY),
        "transport_p99_ns", "dispatch_p99_ns", "write_mean_ns", "woken", "wake_up_p50_ns", "wake_up_p99_ns",
        "callback_mean_ns",
    ),
    spare=("write_mean_ns", "woken", "dispatch_p99_ns", "callback_mean_ns", "transport_p99_ns", "take_mean_ns"),
)  # fmt: skip

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
        *(column for leg in (*_LEGS_OF_CALLS, _SERVED) for column in leg.columns),
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
_INSTANTS = ("rclcpp_ns", "intra_ns", "rcl_ns", "rmw_ns", "dds_ns")
READS = and_reads(
    {
        "callback_instances": ("start_ns", "end_ns"),
        "publications": ("publisher", "thread", "callback_instance", *_INSTANTS),
        "takes": ("thread", "rcl_ns", "rclcpp_ns", "publication", "callback_instance"),
        "intra_deliveries": (
            *("subscription", "publication", "enqueue_ns", "dequeue_ns"), "lost", "dequeue_thread", "callback_instance",
        ),
    }
)  # fmt: skip


def messages(trace: Source, scope: Scope = EVERYTHING) -> Answer:
    """Counts, losses, latency and its legs of every edge; takes without publication; services."""
    found = Deliveries(trace, quality_of(trace), scope)
    edges = scope.edges(_edges(found))
    handled = found.handled.with_columns(_PAIR)
    of_edges = handled["pair"].is_in(edges["pair"].implode()).fill_null(False)
    handled = _with_wake_ups(trace, handled if of_edges.all() else handled.filter(of_edges))
    sections = (
        _messages(found, edges, handled),
        _legs(trace, edges, handled),
        unmatched_takes(trace, found.quality, scope),
        _services(trace, found.quality, scope),
    )
    figures = ("messages", "handling", "intra-process", "wake-ups", "services")
    return found.quality.answer("messages", sections, *figures, scope=scope)


@dataclass(frozen=True, eq=False)
class Deliveries:
    """The messages of a trace that were published in the scope's stretch, from publish() to the callback."""

    trace: Source
    quality: Quality
    scope: Scope = EVERYTHING

    @cached_property
    def _published(self) -> pl.DataFrame:
        middleware = ("rcl_ns", "rmw_ns", "dds_ns")
        return (
            self.trace.table("publications")
            .with_row_index("publication")
            .select(
                pl.col("publication").cast(pl.Int32), "intra_ns",
                publisher_row="publisher", publisher_thread="thread", published_in="callback_instance",
                published_ns=pl.min_horizontal("intra_ns", "rclcpp_ns", *middleware), given_ns="rmw_ns",
                written_ns="dds_ns", sent_ns=pl.coalesce("dds_ns", "rmw_ns"),
                to_middleware=pl.any_horizontal(pl.col(layer).is_not_null() for layer in middleware),
            )
        )  # fmt: skip

    @property
    def publications(self) -> pl.DataFrame:
        """Every publication with its row, its publisher, and when it was published, given to the middleware, written,
        sent (the later of the two that the trace has), and given to a ring buffer."""
        return self.scope.within(self._published, "published_ns")

    @cached_property
    def all(self) -> pl.DataFrame:
        """Every take whose publication is known, and every such message of a ring buffer (not arrived where nobody took
        it out), with the publication and the callback that handled it.

        `layer_ns` is the last layer of the take, where another one than rmw saw it.
        """
        nothing = pl.lit(None, pl.Int64)
        last = pl.when(pl.col("rmw_ns").is_not_null()).then(pl.coalesce("rclcpp_ns", "rcl_ns"))
        through_middleware = (
            self.trace.table("takes")
            .filter(pl.col("publication").is_not_null(), pl.col("match") == "matched")
            .select(
                "publication", "callback_instance", "thread",
                subscription_row="subscription", intra_process=pl.lit(False), overwritten=pl.lit(False),
                enqueue_ns=nothing, arrived_ns=pl.coalesce("rmw_ns", "rcl_ns", "rclcpp_ns"), layer_ns=last,
            )
        )  # fmt: skip
        within_process = (
            self.trace.table("intra_deliveries")
            .filter(pl.col("publication").is_not_null())
            .select(
                "publication", "callback_instance",
                thread="dequeue_thread", subscription_row="subscription", intra_process=pl.lit(True),
                overwritten=pl.col("lost").fill_null(False),
                enqueue_ns="enqueue_ns", arrived_ns="dequeue_ns", layer_ns=nothing,
            )
        )  # fmt: skip
        found = pl.concat([through_middleware, within_process])
        published = self._published.drop("publication", "intra_ns", "to_middleware")
        callbacks = self.trace.table("callback_instances").select(started_ns="start_ns", ended_ns="end_ns")
        ends = ((published, "publication"), (callbacks, "callback_instance"))
        frames = [frame.select(pl.all().gather(found[row])) for frame, row in ends]
        deliveries = pl.concat([found, *frames], how="horizontal").with_columns(
            sent_ns=pl.coalesce("enqueue_ns", "sent_ns", "published_ns"),
            written_ns=pl.when(~pl.col("intra_process")).then("written_ns"),
            taken_ns=pl.coalesce("layer_ns", "arrived_ns"),
        )
        return self.scope.within(deliveries, "published_ns")

    @cached_property
    def handled(self) -> pl.DataFrame:
        """The messages that a callback handled, and whether to leave their latency out (`left_out`).

        That is where events are missing between its ends: what looks like the callback of this message may be that of a
        later one. Neither has a callback a duration in which events are missing.
        """
        frame = self.all.filter(pl.col("started_ns").is_not_null())
        unsure = self.quality.touched(frame["started_ns"], frame["ended_ns"], anywhere=False).fill_null(False)
        return frame.with_columns(
            ended_ns=pl.when(~unsure).then("ended_ns"),
            left_out=self.quality.touched(frame["published_ns"], frame["started_ns"], anywhere=False).fill_null(False),
        )

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """Publishers and subscriptions of one topic, with the time during which the subscription is known to exist.

        Within a process that delivers directly the middleware does not: such a pair is there once, as that. What is on
        different hosts may be in different domains, and so may processes: where nothing was taken, nobody can tell.
        """
        publishers, subscriptions = (
            names.objects(self.trace, f"{end}s").select(
                pl.col("row").alias(f"{end}_row"), "topic", pl.col("node").alias(end),
                *(pl.col(column).alias(f"{end}_{column}") for column in ("process_row", "host_row", *_OF_END)),
                *more,
            )
            for end, more in (("publisher", ()), ("subscription", _SPAN))
        )  # fmt: skip
        seen = self.all.lazy().select(EDGE).unique().collect()
        by_topic = publishers.join(subscriptions, on="topic", how="inner").select("publisher_row", "subscription_row")
        direct = seen.filter(pl.col("intra_process")).select("publisher_row", "subscription_row")
        possible = by_topic.join(direct, on=["publisher_row", "subscription_row"], how="anti").with_columns(
            intra_process=pl.lit(False)
        )
        delivery = (
            pl.when("intra_process").then(pl.lit("intra_process"))
            .when(pl.col("publisher_host_row") != pl.col("subscription_host_row")).then(pl.lit("other_host"))
            .when(pl.col("publisher_process_row") != pl.col("subscription_process_row")).then(pl.lit("other_process"))
            .otherwise(pl.lit("same_process"))
        )  # fmt: skip
        pairs = (
            pl.concat([seen, possible])
            .unique(maintain_order=True)
            .join(publishers, on="publisher_row", how="left")
            .join(subscriptions.drop("topic"), on="subscription_row", how="left")
            .with_columns(
                from_ns=pl.coalesce("valid_from_ns", "first_ns"),
                to_ns=pl.coalesce("valid_to_ns", pl.lit(self.trace.facts["end_ns"], pl.Int64), "last_ns"),
                delivery=delivery.cast(pl.Enum(_DELIVERIES)),
            )
        )
        # Its two nodes; where several edges of a topic are called so, with their processes, then their handles.
        first, *more = (_edge(*told) for told in ((), ("pid",), ("pid", "handle")))
        steps = [(True, label) for label in more]
        return names.told_apart(pairs.with_columns(edge=first), "edge", *steps, among=("topic", "intra_process"))

    def expected(self, publications: pl.DataFrame, pairs: pl.DataFrame, arrivals: pl.DataFrame) -> pl.LazyFrame:
        """Every publication once per pair that it was `given` to, or of which it is among the arrivals: these are
        deliveries, or sums of those of one publication and pair, and have `overwritten`."""
        given = pl.when("intra_process").then(pl.col("intra_ns").is_not_null()).otherwise("to_middleware")
        return (
            publications.lazy()
            .join(pairs.lazy(), on="publisher_row")
            .with_columns(_DELIVERY)
            .join(arrivals.lazy().with_columns(_DELIVERY).drop("publication", *EDGE), on="delivery_number", how="left")
            .drop("delivery_number")
            .with_columns(given=given)
            .filter(pl.col("given") | pl.col("overwritten").is_not_null())
        )

    @property
    def judged(self) -> pl.LazyFrame:
        """The messages that are expected of each pair, with what became of them as flags."""
        published, taken, handled = (
            pl.col("published_ns"), pl.col("arrived_ns").is_not_null(), pl.col("started_ns").is_not_null()
        )  # fmt: skip
        pairs = self.pairs.with_columns(_PAIR)
        first = (
            self.all.lazy()
            .filter(taken)
            .select(_PAIR, published)
            .join(pairs.lazy().select("pair", "from_ns"), on="pair")
            .filter(published >= pl.col("from_ns"))
            .group_by("pair")
            .agg(first_taken_ns=published.min())
            .collect()
        )
        bounds = pairs.join(first, on="pair", how="left").select(
            "pair", *EDGE, "from_ns", "to_ns", "first_taken_ns",
            judged_to_ns=pl.min_horizontal("to_ns", pl.col("last_ns") - SETTLING_NS),
        )  # fmt: skip
        arrivals = self.all.select("publication", *EDGE, "overwritten", taken=taken, handled=handled)
        taken_once = arrivals.select(_DELIVERY).to_series()
        if taken_once.n_unique() < len(taken_once):
            # A publication that was taken twice is one.
            arrivals = arrivals.group_by("publication", *EDGE).agg(pl.col("taken", "handled", "overwritten").any())
        times = self.publications["published_ns"]
        sure = ~self.quality.touched(times, times + SETTLING_NS).fill_null(False)
        return (
            self.expected(self.publications.with_columns(sure=sure), bounds, arrivals)
            .with_columns(
                pl.col("taken", "handled", "overwritten").fill_null(False),
                earlier=published < pl.col("from_ns"),
                exists=pl.col("given") & published.is_between("from_ns", "to_ns"),
                judged=published.is_between("from_ns", "judged_to_ns"),
                # Perhaps before the two had found each other. Where none did arrive, all are simply not taken.
                before_first=(~pl.col("intra_process") & (published < pl.col("first_taken_ns"))).fill_null(False),
            )
            .with_columns(
                not_taken=pl.col("given") & pl.col("judged") & ~pl.col("before_first") & ~pl.col("taken"),
            )
        )


def _edge(*more: str) -> pl.Expr:
    """ "/talker → /listener", with more of both."""
    labels = []
    for end in ("publisher", "subscription"):
        name = pl.coalesce(end, f"{end}_handle", pl.lit("(unknown)"))
        added = [pl.col(f"{end}_{what}").cast(pl.String).fill_null("–") for what in more]
        labels.append(pl.format("{} ({})", name, pl.concat_str(added, separator=" ")) if more else name)
    return pl.format("{} → {}", *labels)


def not_taken(trace: Source, quality: Quality) -> pl.DataFrame:
    """The messages that `not_taken` counts, of edges through the middleware: publication, subscription_row.

    Only for edges with taken messages: for others it is unknown whether they are in one domain.
    """
    found = Deliveries(trace, quality)
    some = found.all.filter(~pl.col("intra_process"), pl.col("arrived_ns").is_not_null())
    return (
        found.judged.filter("not_taken", ~pl.col("intra_process"))
        .join(some.lazy(), on=EDGE, how="semi")
        .select("publication", "subscription_row")
        .sort("publication", "subscription_row")
        .collect()
    )


# Counts ---------------------------------------------------------------------------------------------------------------


def _edges(found: Deliveries) -> pl.DataFrame:
    """One row per edge: who its ends are, and what became of the messages published while the subscription existed.

    published + taken_earlier = taken + not_taken + before_first + pending
    """
    exists, judged, taken, earlier = (pl.col(name) for name in ("exists", "judged", "taken", "earlier"))
    sums = {
        "published": exists,
        "taken": taken,
        "handled": pl.col("handled"),
        "overwritten": pl.col("overwritten"),
        "taken_earlier": taken & earlier,
        "judged": exists & judged,
        "before_first": exists & judged & pl.col("before_first"),
        "not_taken": pl.col("not_taken"),
        "not_taken_at_least": pl.col("not_taken") & pl.col("sure"),
        "given_later": exists & ~judged,
        "taken_later": taken & ~earlier & ~judged,
    }
    counted = (
        found.judged.group_by("pair")
        .agg(flag.sum().cast(pl.Int64).alias(name) for name, flag in sums.items())
        .filter((pl.col("published") > 0) | (pl.col("taken") > 0))
        .collect(engine="streaming")
    )
    settled = pl.col("judged") - pl.col("before_first")
    return (
        found.pairs.with_columns(_PAIR)
        .join(counted, on="pair", maintain_order="left")
        .with_columns(
            pending=pl.col("given_later") - pl.col("taken_later"),
            not_taken_percent=pl.when(settled > 0).then(100.0 * pl.col("not_taken") / settled),
        )
    )


# Latency --------------------------------------------------------------------------------------------------------------


def _with_wake_ups(trace: Source, handled: pl.DataFrame) -> pl.DataFrame:
    """With `wakeup_ns` and `ran_ns` of the thread that took a message.

    That is its last wake-up, if it began after the message was sent; a thread that was awake by then has none (null).
    """
    if wake_up_reason(trace.facts) is not None:
        return handled.with_columns(wakeup_ns=pl.lit(None, pl.Int64), ran_ns=pl.lit(None, pl.Int64))
    wake_ups = (
        trace.table("wake_ups")
        .filter(~pl.col("already_running"), pl.col("switch_ns").is_not_null())
        .select("thread", "wakeup_ns", "switch_ns", ran_ns="switch_ns")
        .sort("switch_ns")
    )
    joined = handled.sort("arrived_ns").join_asof(
        wake_ups,
        left_on="arrived_ns",
        right_on="switch_ns",
        by="thread",
        strategy="backward",
        check_sortedness=False,
    )
    return joined.with_columns(wakeup_ns=pl.when(pl.col("wakeup_ns") >= pl.col("sent_ns")).then("wakeup_ns"))


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """Busy edges first, ROS's own topics last, and of these last where nothing was taken."""
    internal = names.is_internal(pl.col("topic"))
    return frame.sort(
        internal, internal & (pl.col("taken") == 0), "published", "topic", "publisher", "subscription",
        descending=[False, False, True, False, False, False], nulls_last=True,
    )  # fmt: skip


def _messages(found: Deliveries, edges: pl.DataFrame, handled: pl.DataFrame) -> Section:
    latency = pl.when(~pl.col("left_out")).then(LATENCY.time)
    left_out = [pl.col("left_out").sum().cast(pl.Int64).alias("latency_left_out")]
    at = {"latency": since_begin(found.trace, "published_ns")}
    figures = describe(handled, ["pair"], {"latency": latency}, left_out, at=at)
    joined = edges.join(figures, on="pair", how="left").with_columns(pl.col("latency_left_out").fill_null(0))
    frame = _sorted(joined).select(MESSAGES.names)
    settling = format_time(SETTLING_NS)
    missing = int(frame["latency_left_out"].sum())
    early = handled.filter(pl.col("arrived_ns") < pl.col("sent_ns")).height
    notes = notes_of(
        (True, "latency: publish() to callback_start; published: since the subscription was initialised, to the end of"
               f" the trace. Not taken: of those between the first taken message and {settling} before the last event"
               " of the subscriber's process; before first: before that, perhaps before the two had found each other."
               " Pending: not taken and later than that, perhaps on their way, perhaps for a subscriber that was gone;"
               " max at: when the slowest was published, from the beginning of the trace"),
        ((frame["published"].gt(0) & frame["taken"].eq(0)).any(),
         "where nothing was taken, publisher and subscription may also be of different domains or have QoS that do not"
         " fit; the trace does not say. Nor does it say who is reliable and who is best effort"),
        (found.quality.has_losses,
         "events were lost: published, taken and handled are lower bounds; not taken is an upper bound,"
         " not_taken_at_least counts messages around which nothing is missing"),
        (missing, f"{plural(missing, 'latency', 'latencies')} left out, with their legs: events are missing between"
                  " publish() and callback_start, so that the callback may be that of another message"),
        (found.quality.gaps_anywhere and handled.height,
         "for some lost events it is unknown when: single latencies may be those of other messages"),
        ((frame["delivery"] == "other_host").any(),
         "latencies between hosts contain the difference of their clocks; believe them as far as those were"
         " synchronised"),
        (early, f"{plural(early, 'message')} arrived before the event of the write: transport is negative there"),
    )  # fmt: skip
    # Where it takes the delivery to tell two rows apart, a narrow terminal has it too.
    told = frame.select("edge", "topic").is_duplicated().any()
    table = replace(MESSAGES, spare=tuple(c for c in MESSAGES.spare if c != "delivery")) if told else MESSAGES
    return Section(table, frame, notes)


def _legs(trace: Source, edges: pl.DataFrame, handled: pl.DataFrame) -> Section:
    """Means are over all handled messages of the edge: those of the four legs add up to that of the latency."""
    left_out = int(handled["left_out"].sum())
    handled = handled.filter(~pl.col("left_out"))
    parts = (*LEGS_OF_LATENCY, *_PARTS_OF_LEGS)
    # A leg that a message does not have took none of its time; one that no message has is not known.
    means = [
        pl.when(leg.time.count() > 0).then(leg.time.fill_null(0).sum() / pl.len()).alias(f"{leg.name}_mean_ns")
        for leg in parts
    ]
    means += [leg.time.mean().alias(f"{leg.name}_mean_ns") for leg in (LATENCY, _CALLBACK)]
    figures = {leg.name: leg.time for leg in (*parts, _CALLBACK)}
    statistics = describe(handled, ["pair"], figures, [pl.len().alias("n"), *means], statistics=_LEG_STATISTICS)
    frame = _sorted(edges.join(statistics, on="pair", how="inner"))
    frame = frame.rename({"wake_up_n": "woken"}).select(LEGS.names)
    no_wake_ups = wake_up_reason(trace.facts)
    if no_wake_ups is not None:
        frame = frame.with_columns(pl.lit(None, pl.Int64).alias("woken"))
    woken = no_wake_ups or "the thread was awake whenever a message was sent"
    why = dict.fromkeys(columns_of("wake_up", tuple(PER_MILLE)), f"{REASON_QUANTILE}; or {woken}")
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
    calls = trace.table("service_calls")
    reason = service_reason(trace.facts) or ("the trace has no calls of services" if calls.is_empty() else None)
    instances = trace.table("callback_instances").select("callback", started_ns="start_ns", ended_ns="end_ns")
    unsure = quality.touched(instances["started_ns"], instances["ended_ns"], anywhere=False).fill_null(False)
    instances = instances.with_columns(ended_ns=pl.when(~unsure).then("ended_ns"))
    if reason is None:
        ran = instances.select(pl.all().gather(calls["callback_instance"]))
        calls = scope.within(pl.concat([calls, ran], how="horizontal"), "send_request_ns")
    else:
        # Figures without requests and responses: how long the callbacks of services ran.
        services = names.callbacks(trace).filter(pl.col("kind") == "service").select(callback="row", service="owner")
        served = scope.within(instances, "started_ns").join(services, on="callback", maintain_order="left")
        calls = pl.concat([calls.clear(), served], how="diagonal")
    answered = pl.col("take_response_ns").count() if reason is None else pl.lit(None, pl.Int64)
    statistics = describe(
        calls, ["client", "service"], {leg.name: leg.time for leg in (*_LEGS_OF_CALLS, _SERVED)},
        [pl.len().alias("n"), answered.alias("answered")],
        statistics=(*_LEG_STATISTICS, "mean"), at={"round_trip": since_begin(trace, "send_request_ns")},
    )  # fmt: skip
    clients, servers = (names.objects(trace, table).select("row", "node", "name") for table in ("clients", "services"))
    frame = (
        statistics.join(clients, left_on="client", right_on="row", how="left")
        .join(servers, left_on="service", right_on="row", how="left", suffix="_of_server")
        .with_columns(service=pl.coalesce("name", "name_of_server"), client="node", server="node_of_server")
    )
    frame = scope.of_topics(scope.of_nodes(frame, "client", "server"), "service")
    frame = frame.sort(
        names.is_internal(pl.col("service")), "n", "service", "client",
        descending=[False, True, False, False], nulls_last=True,
    ).select(SERVICES.names)  # fmt: skip
    if reason is not None:
        unknown = [column.name for leg in _LEGS_OF_CALLS for column in leg.columns]
        why = dict.fromkeys(("client", "answered", "round_trip_max_at_ns", *unknown), reason)
        notes = [reason] if frame.height else [reason, "no callback of a service ran"]
        return Section(SERVICES, frame, tuple(notes), why)
    note = (
        "round trip: request sent to response taken = request (sent to taken) + server (request taken to response"
        " sent) + reply (sent to taken)"
    )
    return Section(SERVICES, frame, (note if frame.height else "no service was called",))
