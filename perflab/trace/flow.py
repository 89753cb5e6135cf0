"""The message flow of a trace: what ran, which messages it published, and what ran because of them.

    runs       callbacks that ran; publications outside of callbacks; takes of nodes without callbacks in the trace
    vertices   what runs belong to: a timer, a subscription (with all of its callbacks), a service, the code of a node
               outside of callbacks
    messages   each publication once per subscription of its topic, with the run that it led to, or why it led to none
    steps      from a run along one message to the next run; `edge` is its place in the graph

Causality is by rules only (docs/tracing.md, What belongs together): publication and take by source time stamp and
topic, delivery by ring buffer and index, take and callback by thread, callback and publication by thread. Two kinds of
steps say more, and say so (`link`): `declared`, where the node itself says that what it publishes is made of what it
took (message_link_*), and `inferred`, the latest message of each other input of the node. Both lead from the run that
took a message to a publication in another run of the node (`via`). Nothing is ever joined because it is close in time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from perflab.trace import names
from perflab.trace.messages import SETTLING_NS
from perflab.trace.quality import Quality

if TYPE_CHECKING:
    from perflab.trace.source import Source

CAUSAL, DECLARED, INFERRED = "causal", "declared", "inferred"
LINKS = (CAUSAL, DECLARED, INFERRED)

# Why a message led to no run, or a run to no message.
REASONS = {
    "not_published": "a callback on the way ran and published nothing that goes on",
    "not_used": "a later message of the same input came before the node published",
    "not_taken": "published, and never taken: lost on the way, or dropped from a history",
    "overwritten": "replaced in a ring buffer by a later message, or cleared, before it was taken",
    "not_handled": "taken, and no callback of the subscription began with it",
    "unended": "a callback on the way was not seen to end, nor to publish",
    "before_first": "published before the first message that arrived there: perhaps the two had not found each other",
    "end_of_trace": "still on its way less than {settling} before the last event of the next process",
    "cut": "events of user space are missing there",
}
# Not the system's doing, or not known to be: in no share of misses.
NOT_JUDGED = ("before_first", "end_of_trace", "cut")

_EDGE = ("from_vertex", "via", "link", "topic", "to_vertex")


@dataclass(frozen=True)
class Flow:
    """See above. Rows of `vertices`, `runs` and `edges` are referred to by their number."""

    vertices: pl.DataFrame  # vertex, key, label, kind, node, name, process, pid, host, host_row
    runs: (
        pl.DataFrame
    )  # run, vertex, start_ns, end_ns, due_ns, root (local, outside, or null where a message led to it)
    edges: pl.DataFrame  # edge, from_vertex, via, link, topic, to_vertex, intra_process, delivered
    steps: pl.DataFrame  # edge, run, published_ns, to_run, status; sorted by edge
    settling_ns: int
    quality: Quality


def flow_of(trace: Source, quality: Quality, *, inferred: bool = False, settling_ns: int = SETTLING_NS) -> Flow:
    """The message flow of a trace; with `inferred` links also those."""
    callbacks = _callback_vertices(trace)
    messages = _messages(trace, quality, settling_ns)
    vertices, runs, messages = _runs(trace, callbacks, messages)
    steps = messages.with_columns(via=pl.lit(None, pl.Int32), link=pl.lit(CAUSAL), run=pl.col("from_run"))
    linked = _links(trace, vertices, runs, messages, inferred=inferred)
    columns = (
        "run",
        "publication",
        "published_ns",
        "via",
        "link",
        "topic",
        "to_vertex",
        "to_run",
        "status",
        "intra_process",
    )
    every = pl.concat([steps.select(columns), linked.select(columns)])
    every = every.with_columns(from_vertex=runs["vertex"].gather(every["run"]))
    edges = (
        every.lazy()
        .group_by(_EDGE, maintain_order=True)
        .agg(delivered=pl.col("to_run").count(), intra_process=pl.col("intra_process").any())
        .collect()
        .with_row_index("edge")
        .with_columns(pl.col("edge").cast(pl.Int32))
    )
    every = (
        every.join(edges.select("edge", *_EDGE), on=_EDGE, how="left", nulls_equal=True)
        .select("edge", "run", "publication", "published_ns", "to_run", "status")
        .sort("edge", "published_ns", maintain_order=True)
    )
    return Flow(vertices, runs, edges, every, settling_ns, quality)


# Messages -------------------------------------------------------------------------------------------------------------


def _messages(trace: Source, quality: Quality, settling_ns: int) -> pl.DataFrame:
    """Each publication once per subscription of its topic: `instance` is the callback that handled it.

    ROS's own topics are left out. `status` is null where a callback handled the message.
    """
    publishers = names.objects(trace, "publishers").filter(
        pl.col("topic").is_not_null(), ~names.is_internal(pl.col("topic"))
    )
    subscriptions = names.objects(trace, "subscriptions").filter(
        pl.col("topic").is_not_null(), ~names.is_internal(pl.col("topic"))
    )
    of_publisher = publishers.select(
        publisher=pl.col("row"), topic="topic", publisher_node="node_row", publisher_process="process_row"
    )
    end = pl.lit(trace.facts["end_ns"], pl.Int64)
    of_subscription = subscriptions.select(
        subscription=pl.col("row"), topic="topic",
        from_ns=pl.col("valid_from_ns"), to_ns=pl.coalesce("valid_to_ns", end),
        quiet_ns=pl.min_horizontal(pl.coalesce("valid_to_ns", "last_ns"), pl.col("last_ns")) - settling_ns,
    )  # fmt: skip
    publications = (
        trace.table("publications")
        .with_row_index("publication")
        .select(
            pl.col("publication").cast(pl.Int32), "publisher",
            pl.col("callback_instance").alias("from_instance"),
            pl.min_horizontal("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns", "dds_ns").alias("published_ns"),
            to_buffers=pl.col("intra_ns").is_not_null(),
            to_middleware=pl.any_horizontal(pl.col(c).is_not_null() for c in ("rcl_ns", "rmw_ns", "dds_ns")),
        )
        .join(of_publisher, on="publisher", how="inner")
    )  # fmt: skip
    arrivals = _arrivals(trace)
    # Within a process that delivers directly the middleware does not.
    direct = (
        arrivals.filter(pl.col("intra_process"))
        .join(publications.select("publication", "publisher"), on="publication")
        .select("publisher", "subscription", direct=pl.lit(True))
        .unique()
    )
    pairs = (
        of_publisher.select("publisher", "topic")
        .join(of_subscription, on="topic")
        .join(direct, on=["publisher", "subscription"], how="left")
        .with_columns(pl.col("direct").fill_null(False))
        .drop("topic")
    )
    expected = (
        publications.join(pairs, on="publisher")
        .join(arrivals, on=["publication", "subscription"], how="left")
        .filter(pl.col("intra_process").is_not_null() | pl.when("direct").then("to_buffers").otherwise("to_middleware"))
        .with_columns(pl.coalesce("intra_process", "direct").alias("intra_process"))
    )
    first = pl.col("published_ns").filter(pl.col("arrived_ns").is_not_null()).min().over("publisher", "subscription")
    expected = expected.with_columns(first_ns=first)
    cut = quality.touched(expected["published_ns"], expected["published_ns"] + settling_ns).fill_null(False)
    missing = (
        pl.when(pl.col("overwritten").fill_null(False)).then(pl.lit("overwritten"))
        .when(pl.col("published_ns") < pl.col("from_ns")).then(pl.lit("before_first"))
        .when(pl.coalesce("arrived_ns", "published_ns") > pl.col("quiet_ns")).then(pl.lit("end_of_trace"))
        .when(cut).then(pl.lit("cut"))
        .when(pl.col("arrived_ns").is_not_null()).then(pl.lit("not_handled"))
        .when(~pl.col("intra_process") & (pl.col("published_ns") < pl.col("first_ns"))).then(pl.lit("before_first"))
        .otherwise(pl.lit("not_taken"))
    )  # fmt: skip
    return expected.select(
        "publication", "publisher", "publisher_node", "publisher_process", "published_ns", "from_instance", "topic",
        "subscription", "arrived_ns", "instance", "intra_process",
        status=pl.when(pl.col("instance").is_null()).then(missing),
    )  # fmt: skip


def _arrivals(trace: Source) -> pl.DataFrame:
    """What was taken from the middleware, and all that was put into ring buffers, where the publication is known."""
    takes = (
        trace.table("takes")
        .filter(pl.col("publication").is_not_null(), pl.col("match") == "matched")
        .select(
            "publication", "subscription",
            pl.col("callback_instance").alias("instance"),
            pl.coalesce("rmw_ns", "rcl_ns", "rclcpp_ns").alias("arrived_ns"),
            intra_process=pl.lit(False), overwritten=pl.lit(False),
        )
    )  # fmt: skip
    deliveries = (
        trace.table("intra_deliveries")
        .filter(pl.col("publication").is_not_null(), pl.col("subscription").is_not_null())
        .select(
            "publication", "subscription",
            pl.col("callback_instance").alias("instance"),
            pl.col("dequeue_ns").alias("arrived_ns"),
            intra_process=pl.lit(True), overwritten=pl.col("lost").cast(pl.Boolean).fill_null(False),
        )
    )  # fmt: skip
    return pl.concat([takes, deliveries])


# Runs and vertices ----------------------------------------------------------------------------------------------------


def _callback_vertices(trace: Source) -> pl.DataFrame:
    """`callback` and the `key` of its vertex: one for all callbacks of a subscription, timer or service."""
    kind = pl.col("kind").cast(pl.String)
    owned = pl.col("owner").is_not_null() & kind.is_in(["subscription", "timer", "service"])
    return (
        trace.table("callbacks")
        .with_row_index("callback")
        .select(
            pl.col("callback").cast(pl.Int32),
            key=pl.when(owned).then(pl.format("{} {}", kind, "owner")).otherwise(pl.format("callback {}", "callback")),
        )
    )


def _runs(
    trace: Source, callbacks: pl.DataFrame, messages: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Vertices, runs, and the messages with `from_run`, `to_run` and `to_vertex`."""
    instances = trace.table("callback_instances")
    takes = trace.table("takes")
    n = instances.height
    due = pl.col("due_ns") if "due_ns" in instances.columns else pl.lit(None, pl.Int64)
    internal = names.objects(trace, "subscriptions").select(
        subscription=pl.col("row"), internal=names.is_internal(pl.col("topic"))
    )
    of_take = takes.select("subscription", "publication").join(
        internal, on="subscription", how="left", maintain_order="left"
    )
    # A message of which the publication is not known led to the run; ROS's own topics are not followed.
    unknown = of_take.select((pl.col("publication").is_null() & ~pl.col("internal").fill_null(False)).alias("outside"))
    delivered = trace.table("intra_deliveries").select(pl.col("publication").is_null().alias("outside"))
    ran = (
        instances.select("callback", "start_ns", "end_ns", "take", "delivery", due_ns=due)
        .join(callbacks, on="callback", how="left", maintain_order="left")
        .with_columns(
            outside=pl.coalesce(
                unknown["outside"].gather(instances["take"]),
                delivered["outside"].gather(instances["delivery"]),
            ).fill_null(False)
        )
        .select("key", "start_ns", "end_ns", "due_ns", "outside")
    )
    # Publications outside of callbacks: by the code of a node; where that is not known, of a publisher.
    alone = (
        messages.filter(pl.col("from_instance").is_null())
        .unique("publication", maintain_order=True)
        .select(
            "publication",
            key=pl.coalesce(pl.format("node {}", "publisher_node"), pl.format("publisher {}", "publisher")),
            start_ns="published_ns",
        )
        .with_row_index("place", offset=n)
    )
    # Takes of subscriptions no callback of which ever began with a message: rclpy's, or rcl's.
    handled = messages.group_by("subscription").agg(any=pl.col("instance").is_not_null().any())
    bare = (
        messages.with_row_index("message")
        .join(handled.filter(~pl.col("any")), on="subscription", how="semi")
        .filter(pl.col("arrived_ns").is_not_null())
        .select("message", key=pl.format("subscription {}", "subscription"), start_ns="arrived_ns")
        .with_row_index("place", offset=n + alone.height)
    )
    nothing = pl.lit(None, pl.Int64)
    runs = pl.concat(
        [
            ran,
            alone.select("key", "start_ns", end_ns=nothing, due_ns=nothing, outside=pl.lit(False)),
            bare.select("key", "start_ns", end_ns=nothing, due_ns=nothing, outside=pl.lit(False)),
        ]
    )
    vertices = _vertices(
        trace,
        pl.concat([runs["key"], messages.select(pl.format("subscription {}", "subscription").alias("key"))["key"]]),
        bare["key"],
    )
    ids = vertices.select("key", "vertex")
    runs = (
        runs.join(ids, on="key", how="left", maintain_order="left")
        .with_row_index("run")
        .with_columns(pl.col("run").cast(pl.Int32))
    )
    run_alone = alone.select("publication", alone_run=pl.col("place").cast(pl.Int32))
    run_bare = bare.select("message", bare_run=pl.col("place").cast(pl.Int32))
    messages = (
        messages.with_row_index("message")
        .join(run_alone, on="publication", how="left", maintain_order="left")
        .join(run_bare, on="message", how="left", maintain_order="left")
        .with_columns(key=pl.format("subscription {}", "subscription"))
        .join(ids, on="key", how="left", maintain_order="left")
        .select(
            "publication", "publisher", "publisher_node", "subscription", "published_ns", "topic", "intra_process",
            from_run=pl.coalesce("from_instance", "alone_run"),
            to_run=pl.coalesce("instance", "bare_run"),
            to_vertex="vertex",
            status=pl.when(pl.col("bare_run").is_null()).then("status"),
        )
    )  # fmt: skip
    led = (
        messages.filter(pl.col("to_run").is_not_null())
        .select(run=pl.col("to_run"))
        .unique()
        .with_columns(led=pl.lit(True))
    )
    runs = runs.join(led, on="run", how="left", maintain_order="left").select(
        "run", "vertex", "start_ns", "end_ns", "due_ns",
        root=pl.when(pl.col("led").is_null()).then(
            pl.when("outside").then(pl.lit("outside")).otherwise(pl.lit("local"))
        ),
    )  # fmt: skip
    return vertices, runs, messages


def _vertices(trace: Source, keys: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """One row per key: what it is, and a label that no other has."""
    found = keys.drop_nulls().unique(maintain_order=True).to_list()
    without_callback = set(bare.to_list())
    tables = {
        "subscription": names.objects(trace, "subscriptions").rename({"topic": "name"}),
        "timer": names.objects(trace, "timers"),
        "service": names.objects(trace, "services"),
        "callback": names.callbacks(trace),
        "publisher": names.objects(trace, "publishers"),
    }
    nodes = names.objects(trace, "nodes")
    looked_up: dict[str, dict[int, dict[str, object]]] = {
        kind: {row["row"]: row for row in frame.iter_rows(named=True)} for kind, frame in tables.items()
    }
    symbols = {
        f"timer {row['owner']}": names.short_symbol(row["symbol"])
        for row in tables["callback"].filter(pl.col("kind") == "timer").iter_rows(named=True)
    }
    looked_up["node"] = {row["row"]: {**row, "node": row["name"]} for row in nodes.iter_rows(named=True)}
    rows = []
    for key in found:
        kind, _, number = key.partition(" ")
        row = looked_up[kind][int(number)]
        name: object = row.get("name")
        if kind == "timer":
            name = names.period(row["period_ns"]) if isinstance(row["period_ns"], int) else None
        place = row["node"] or f"({row['process'] or 'process'} {row['pid']})"
        if kind == "callback":
            kind, short = "callback", str(row["label"])
        elif kind in ("node", "publisher"):
            kind, name, short = "code", None, f"{place} (no callback)"
        elif kind == "subscription":
            kind, short = ("take" if key in without_callback else kind), f"{place} {name or row['handle']}"
        else:
            short = f"{place} {kind} {name or row['handle']}"
        rows.append(
            {
                "key": key, "kind": kind, "node": row["node"], "name": name, "process": row["process"],
                "pid": row["pid"], "host": row["host"], "host_row": row["host_row"], "handle": row.get("handle"),
                "label": short, "symbol": symbols.get(key),
            }
        )  # fmt: skip
    text = pl.String
    schema = {
        "key": text, "kind": text, "node": text, "name": text, "process": text, "pid": pl.Int32, "host": text,
        "host_row": pl.Int32, "handle": text, "label": text, "symbol": text,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("vertex")
    frame = frame.with_columns(pl.col("vertex").cast(pl.Int32))
    # Timers of one node and period: what the program calls them.
    named = pl.col("label").is_duplicated() & (
        pl.col("symbol").is_unique() & pl.col("symbol").is_not_null()
    ).all().over("label", "process", "pid")
    frame = frame.with_columns(label=pl.when(named).then(pl.format("{} {}", "label", "symbol")).otherwise("label"))
    frame = frame.drop("symbol")
    for more in ("pid", "host", "handle", "vertex"):
        several = pl.col("label").is_duplicated()
        added = pl.format("{} ({})", "label", pl.col(more).cast(text).fill_null("–"))
        frame = frame.with_columns(label=pl.when(several).then(added).otherwise("label"))
    return frame


# Links ----------------------------------------------------------------------------------------------------------------


def _links(
    trace: Source, vertices: pl.DataFrame, runs: pl.DataFrame, messages: pl.DataFrame, *, inferred: bool
) -> pl.DataFrame:
    """Steps from a run that took a message to a publication of the node in another run.

    For each publication and each subscription that goes into it: the latest run of that subscription which started
    before the publication. Declared pairs are those of the links table; inferred ones all subscriptions of the node.
    """
    declared = trace.table("links").select("subscription", "publisher").drop_nulls().unique()
    pairs = declared.with_columns(link=pl.lit(DECLARED))
    if inferred:
        inputs = trace.table("subscriptions").with_row_index("subscription").select(
            pl.col("subscription").cast(pl.Int32), node="node",
            internal=names.is_internal(pl.col("topic")),
        ).filter(~pl.col("internal"), pl.col("node").is_not_null())  # fmt: skip
        outputs = messages.select("publisher", node="publisher_node").drop_nulls().unique()
        every = inputs.join(outputs, on="node").select("subscription", "publisher")
        every = every.join(declared, on=["subscription", "publisher"], how="anti")
        pairs = pl.concat([pairs, every.with_columns(link=pl.lit(INFERRED))])
    empty = messages.clear().with_columns(via=pl.lit(None, pl.Int32), link=pl.lit(""), run=pl.col("from_run"))
    if pairs.is_empty():
        return empty
    pairs = (
        pairs.with_columns(key=pl.format("subscription {}", "subscription"))
        .join(vertices.select("key", input_vertex="vertex"), on="key")
        .select("publisher", "link", "input_vertex")
    )
    published = messages.select("publication", "publisher", "published_ns", "from_run").unique("publication")
    published = published.with_columns(via=runs["vertex"].gather(published["from_run"]))
    asked = published.join(pairs, on="publisher").filter(pl.col("via") != pl.col("input_vertex")).sort("published_ns")
    started = runs.select(pl.col("vertex").alias("input_vertex"), "start_ns", run="run").sort("start_ns")
    latest = asked.join_asof(
        started,
        left_on="published_ns",
        right_on="start_ns",
        by="input_vertex",
        strategy="backward",
        check_sortedness=False,
    ).filter(pl.col("run").is_not_null())
    return messages.join(latest.select("publication", "via", "link", "run"), on="publication").select(*empty.columns)


def select_edges(flow: Flow, chosen: pl.Expr) -> Flow:
    """The same flow with these edges, and the steps along them, alone; edges keep their numbers."""
    edges = flow.edges.filter(chosen)
    steps = flow.steps.join(edges.select("edge"), on="edge", how="semi", maintain_order="left")
    return replace(flow, edges=edges, steps=steps)
