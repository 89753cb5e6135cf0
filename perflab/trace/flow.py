"""The message flow of a trace: what ran, which messages it published, and what ran because of them.

    runs       callbacks that ran; publications outside of callbacks; takes of nodes without callbacks in the trace
    vertices   what runs belong to: a timer, a subscription (with all of its callbacks), a service, a client, the code
               of a node outside of callbacks
    messages   each publication once per subscription of its topic, with the run that it led to, or why it led to none;
               likewise each request and each reply of a service, and of those that an action is made of
    steps      from a run along one message to the next run; `edge` is its place in the graph

Causality is by rules only (docs/tracing.md, What belongs together): publication and take by source time stamp and
topic, delivery by ring buffer and index, take and callback by thread, callback and publication by thread; request and
reply by the client and its number, whatever thread sends the reply. Two kinds of
steps say more, and say so (`link`): `declared`, where the node itself says that what it publishes is made of what it
took (message_link_*), and `inferred`, the latest message of each other input of the node. Both lead from the run that
took a message to a publication in another run of the node (`via`). Nothing is ever joined because it is close in time.

A route is a chain of edges. `found` lists the routes that messages took from a root (a run without a triggering
message) to where they ended; `Route.follow` gives for every instance how long each hop took, or where and why it ended.
An edge that closes a cycle ends a route: the run that it leads to is the last of that route and the root of another.
Which edge of a cycle that is depends on where one comes from: the one that leads back, from the roots on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from perflab.trace import names
from perflab.trace.messages import EDGE, SETTLING_NS, Deliveries
from perflab.trace.quality import Quality
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.source import Source
from perflab.units import format_time

CAUSAL, DECLARED, INFERRED = "causal", "declared", "inferred"

# Why a message led to no run, or a run to no message.
REASONS = {
    "not_published": "a callback on the way ran and published nothing that goes on",
    "not_used": "a later message of the same input came before the node published",
    "not_taken": "published, and never taken: lost on the way, or dropped from a history",
    "overwritten": "replaced in a ring buffer by a later message, or cleared, before it was taken",
    "not_handled": "taken, and no callback of the subscription began with it",
    "unended": "a callback on the way was not seen to end, nor to publish",
    "before_first": "published before the first message that arrived there: perhaps the two had not found each other",
    "end_of_trace": f"still on its way less than {format_time(SETTLING_NS)} before the last event of the next process",
    "cut": "events of user space are missing there",
}
# Not the system's doing, or not known to be: in no share of misses.
NOT_JUDGED = ("before_first", "end_of_trace", "cut")

MAX_PREFIXES = 100_000  # number of distinct beginnings of routes
MAX_CHAINS = 10_000_000  # ways that lead to runs, beyond one for each message

NONE = -1  # no edge
AGAIN = "again"  # root of a route that begins where a cycle closed
ROUTE_ARROW = " → "

_EDGE = ("from_vertex", "via_vertex", "link", "topic", "to_vertex")


@dataclass(frozen=True, eq=False)
class Flow:
    """See above. Rows of `vertices`, `runs` and `edges` are referred to by their number."""

    vertices: pl.DataFrame  # vertex, key, label, kind, node, name, process, pid, host, handle
    # run, vertex, start_ns, end_ns, due_ns, root (local, outside, or null where a message led to it)
    runs: pl.DataFrame
    # edge, from_vertex, via_vertex, link, topic, to_vertex, publisher, subscription (nodes), delivery, delivered
    edges: pl.DataFrame
    steps: pl.DataFrame  # edge, run, publication, published_ns, to_run, status; sorted by edge
    begin_ns: int  # of the trace
    quality: Quality

    @cached_property
    def vertex(self) -> list[dict[str, Any]]:
        """The vertices, by their number."""
        return self.vertices.to_dicts()

    @cached_property
    def edge(self) -> dict[int, dict[str, Any]]:
        """The edges, by their number."""
        return {row["edge"]: row for row in self.edges.to_dicts()}

    def label(self, vertex: int) -> str:
        return str(self.vertex[vertex]["label"])

    @property
    def nodes(self) -> list[str]:
        return self.vertices["node"].drop_nulls().unique().sort().to_list()

    @property
    def topics(self) -> list[str]:
        return self.edges["topic"].unique().sort().to_list()

    @cached_property
    def closing(self) -> set[int]:
        """The edges that lead back to a vertex on the way to them, found from the roots on."""
        labels = self.vertices["label"]
        edges = self.edges.with_columns(label=labels.gather(self.edges["to_vertex"])).filter(pl.col("delivered") > 0)
        out: dict[int, list[tuple[int, int]]] = {}
        for source, target, edge in edges.sort("label", "edge").select("from_vertex", "to_vertex", "edge").iter_rows():
            out.setdefault(source, []).append((target, edge))
        reached = set(edges["to_vertex"])
        closing, on_the_way, done = set[int](), set[int](), set[int]()
        # Depth first. A vertex is put back without an edge (NONE), to be left when all behind it is done.
        left = [(vertex, NONE) for vertex in sorted(out, key=lambda v: (v in reached, labels[v]), reverse=True)]
        while left:
            vertex, edge = left.pop()
            if vertex in on_the_way and edge != NONE:
                closing.add(edge)
            elif vertex in on_the_way:
                on_the_way.remove(vertex)
                done.add(vertex)
            elif vertex not in done:
                on_the_way.add(vertex)
                left += [(vertex, NONE), *reversed(out.get(vertex, []))]
        return closing

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        places = self.steps.with_row_index("row").group_by("edge").agg(pl.col("row").min(), n=pl.len())
        return {edge: (row, n) for edge, row, n in places.iter_rows()}

    def steps_of(self, edge: int) -> pl.DataFrame:
        return self.steps.slice(*self._places.get(edge, (0, 0)))

    def select(self, edges: pl.Expr) -> Flow:
        """The same flow with these edges, and the steps along them, alone; edges keep their numbers."""
        chosen = self.edges.filter(edges)
        steps = self.steps.join(chosen.select("edge"), on="edge", how="semi", maintain_order="left")
        return replace(self, edges=chosen, steps=steps)


def flow_of(trace: Source, quality: Quality, *, inferred: bool = False) -> Flow:
    """The message flow of a trace; with `inferred` links also those."""
    published = _messages(trace, quality)
    calls = _calls(trace, quality).select(pl.col(name).cast(of, strict=False) for name, of in published.schema.items())
    vertices, runs, messages = _runs(trace, pl.concat([published, calls]))
    steps = messages.with_columns(via_vertex=pl.lit(None, pl.Int32), link=pl.lit(CAUSAL), run=pl.col("from_run"))
    linked = _links(trace, vertices, runs, messages, inferred=inferred)
    every = pl.concat([steps, linked.select(steps.columns)])
    every = every.with_columns(from_vertex=runs["vertex"].gather(every["run"]))
    edges = every.group_by(_EDGE, maintain_order=True).agg(
        delivered=pl.col("to_run").count(), delivery=pl.col("delivery").min().cast(pl.String)
    )
    edges = edges.with_columns(
        edge=pl.int_range(pl.len(), dtype=pl.Int32),
        publisher=vertices["node"].gather(edges["from_vertex"]),
        subscription=vertices["node"].gather(edges["to_vertex"]),
    )
    steps = (
        every.join(edges.select("edge", *_EDGE), on=_EDGE, how="left", nulls_equal=True)
        .select("edge", "run", "publication", "published_ns", "to_run", "status")
        .sort("edge", "published_ns", maintain_order=True)
    )
    return Flow(vertices, runs, edges, steps, trace.facts["begin_ns"] or 0, quality)


# Messages -------------------------------------------------------------------------------------------------------------


def _messages(trace: Source, quality: Quality) -> pl.DataFrame:
    """Each publication once per subscription of its topic: `callback_instance` is the callback that handled it.

    ROS's own topics are left out. `status` is null where a callback handled the message.
    """
    deliveries = Deliveries(trace, quality)
    topic = pl.col("topic")
    pairs = deliveries.pairs.filter(topic.is_not_null(), ~names.is_internal(topic))
    # Within a process that delivers directly the middleware does not.
    direct = pl.col("intra_process").any().over("publisher_row", "subscription_row")
    arrivals = deliveries.all.select("publication", *EDGE, "arrived_ns", "overwritten", "callback_instance")
    expected = (
        deliveries.expected(deliveries.publications, pairs.with_columns(direct=direct), arrivals)
        .filter(pl.col("overwritten").is_not_null() | pl.col("intra_process") | ~pl.col("direct"))
        .sort("publication", "subscription_row")
        .collect()
    )
    first = pl.col("published_ns").filter(pl.col("arrived_ns").is_not_null()).min()
    quiet = pl.min_horizontal("valid_to_ns", "last_ns") - SETTLING_NS
    cut = quality.touched(expected["published_ns"], expected["published_ns"] + SETTLING_NS).fill_null(False)
    missing = (
        pl.when(pl.col("overwritten").fill_null(False)).then(pl.lit("overwritten"))
        .when(pl.col("published_ns") < pl.col("valid_from_ns")).then(pl.lit("before_first"))
        .when(pl.coalesce("arrived_ns", "published_ns") > quiet).then(pl.lit("end_of_trace"))
        .when(cut).then(pl.lit("cut"))
        .when(pl.col("arrived_ns").is_not_null()).then(pl.lit("not_handled"))
        .when(~pl.col("intra_process") & (pl.col("published_ns") < first.over("publisher_row", "subscription_row")))
        .then(pl.lit("before_first"))
        .otherwise(pl.lit("not_taken"))
    )  # fmt: skip
    return expected.select(
        "publication", "published_ns", "topic", "arrived_ns", "delivery", "published_in", "callback_instance",
        publisher_node=trace.table("publishers")["node"].gather(expected["publisher_row"]),
        status=pl.when(pl.col("callback_instance").is_null()).then(missing),
        output=pl.format("publisher {}", "publisher_row"),
        key=pl.format("subscription {}", "subscription_row"),
    )  # fmt: skip


def _calls(trace: Source, quality: Quality) -> pl.DataFrame:
    """Requests and replies of services, as `_messages` has publications; numbered from there on. Of a reply no other
    input can be the cause (`output` is null): it belongs to its request."""
    calls = trace.table("service_calls").with_row_index("call")
    # A client has one server; a request that nobody took went to the one that took others.
    calls = calls.with_columns(service=pl.coalesce("service", pl.col("service").drop_nulls().first().over("client")))
    calls = calls.filter(pl.col("client").is_not_null() & pl.col("service").is_not_null())
    whose = ("node_row", "process_row", "host_row", "name")
    client, server = (
        names.objects(trace, table).select(pl.col(whose).gather(calls[end]))
        for table, end in (("clients", "client"), ("services", "service"))
    )
    of_ends = pl.concat([client, server.rename(lambda name: f"{name}_of_server")], how="horizontal")
    calls = pl.concat([calls, of_ends], how="horizontal").with_columns(
        name=pl.coalesce("name", "name_of_server"),
        delivery=pl.when(pl.col("process_row") == pl.col("process_row_of_server")).then(pl.lit("same_process"))
        .when(pl.col("host_row") == pl.col("host_row_of_server")).then(pl.lit("other_process"))
        .otherwise(pl.lit("other_host")),
        first=pl.lit(trace.table("publications").height, pl.Int32) + 2 * pl.col("call").cast(pl.Int32),
    )  # fmt: skip
    requests = calls.select(
        publication="first", published_ns="send_request_ns", topic=pl.format("{} request", "name"),
        arrived_ns="take_request_ns", delivery="delivery", published_in="request_in",
        callback_instance="callback_instance", publisher_node="node_row", output=pl.format("client {}", "client"),
        key=pl.format("service {}", "service"),
    )  # fmt: skip
    replies = calls.select(
        publication=pl.col("first") + 1, published_ns="send_response_ns", topic=pl.format("{} reply", "name"),
        arrived_ns="take_response_ns", delivery="delivery", published_in="callback_instance",
        callback_instance=pl.lit(None, pl.Int32), publisher_node="node_row_of_server",
        output=pl.lit(None, pl.String), key=pl.format("client {}", "client"),
    )  # fmt: skip
    known = pl.any_horizontal(pl.col("published_in", "publisher_node", "output").is_not_null())
    sent = pl.concat([requests, replies]).filter(pl.col("published_ns").is_not_null() & known)
    cut = quality.touched(sent["published_ns"], sent["published_ns"] + SETTLING_NS).fill_null(False)
    missing = (
        pl.when(pl.col("published_ns") > (trace.facts["end_ns"] or 0) - SETTLING_NS).then(pl.lit("end_of_trace"))
        .when(cut).then(pl.lit("cut"))
        .when(pl.col("arrived_ns").is_not_null()).then(pl.lit("not_handled"))
        .otherwise(pl.lit("not_taken"))
    )  # fmt: skip
    return sent.with_columns(status=pl.when(pl.col("callback_instance").is_null()).then(missing))


# Runs and vertices ----------------------------------------------------------------------------------------------------


def _runs(trace: Source, messages: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Vertices, runs, and the messages with `from_run`, `to_run` and `to_vertex`."""
    instances, takes = trace.table("callback_instances"), trace.table("takes")
    # One vertex for all callbacks of a subscription, timer or service.
    kind = pl.col("kind").cast(pl.String)
    owned = pl.col("owner").is_not_null() & kind.is_in(["subscription", "timer", "service"])
    vertex = pl.when(owned).then(pl.format("{} {}", kind, "owner")).otherwise(pl.format("callback {}", "row"))
    of_callback = trace.table("callbacks").with_row_index("row").select(key=vertex)["key"]
    # A message of which the publication is not known led to the run; ROS's own topics are not followed.
    internal = trace.table("subscriptions").select(names.is_internal(pl.col("topic")))["topic"]
    unknown = takes["publication"].is_null() & ~internal.gather(takes["subscription"]).fill_null(False)
    delivered = trace.table("intra_deliveries")["publication"].is_null()
    ran = instances.select(
        "start_ns", "end_ns", "due_ns",
        key=of_callback.gather(instances["callback"]),
        outside=pl.coalesce(unknown.gather(instances["take"]), delivered.gather(instances["delivery"])),
    )  # fmt: skip
    messages = messages.with_row_index("message")
    # Publications outside of callbacks: by the code of a node; where that is not known, of a publisher.
    code = pl.coalesce(pl.format("node {}", "publisher_node"), "output")
    alone = (
        messages.filter(pl.col("published_in").is_null())
        .unique("publication", maintain_order=True)
        .select("publication", key=code, start_ns="published_ns")
        .with_columns(alone_run=pl.int_range(pl.len(), dtype=pl.Int32) + instances.height)
    )
    # Takes of subscriptions no callback of which ever began with a message: rclpy's, or rcl's.
    handled = pl.col("callback_instance").is_not_null().any().over("key")
    bare = (
        messages.filter(pl.col("arrived_ns").is_not_null(), ~handled)
        .select("message", "key", start_ns="arrived_ns")
        .with_columns(bare_run=pl.int_range(pl.len(), dtype=pl.Int32) + instances.height + alone.height)
    )
    runs = pl.concat([ran, alone.select("key", "start_ns"), bare.select("key", "start_ns")], how="diagonal")
    vertices = _vertices(trace, pl.concat([runs["key"], messages["key"]]), bare["key"])
    ids = vertices.select("key", "vertex")
    messages = (
        messages.join(alone.select("publication", "alone_run"), on="publication", how="left", maintain_order="left")
        .join(bare.select("message", "bare_run"), on="message", how="left", maintain_order="left")
        .join(ids, on="key", how="left", maintain_order="left")
        .select(
            "publication", "output", "publisher_node", "published_ns", "topic", "delivery",
            from_run=pl.coalesce("published_in", "alone_run"),
            to_run=pl.coalesce("callback_instance", "bare_run"),
            to_vertex="vertex",
            status=pl.when(pl.col("bare_run").is_null()).then("status"),
        )
    )  # fmt: skip
    root = pl.when("outside").then(pl.lit("outside")).otherwise(pl.lit("local"))
    runs = (
        runs.join(ids, on="key", how="left", maintain_order="left")
        .with_columns(run=pl.int_range(pl.len(), dtype=pl.Int32))
        .select(
            "run", "vertex", "start_ns", "end_ns", "due_ns",
            root=pl.when(~pl.col("run").is_in(messages["to_run"].drop_nulls().unique().implode())).then(root),
        )
    )  # fmt: skip
    return vertices, runs, messages


def _vertices(trace: Source, keys: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """One row per key: what it is, and a label that no other has."""
    place, name = names.place(), pl.coalesce("name", "handle")
    code = pl.format("{} (no callback)", place)
    callbacks = names.callbacks(trace)
    timers = callbacks.filter(pl.col("kind") == "timer").unique("owner", keep="last")
    symbols = pl.Series([names.short_symbol(symbol) for symbol in timers["symbol"]], dtype=pl.String)
    timers = timers.select(key=pl.format("timer {}", "owner"), symbol=symbols)
    written = names.written(trace.table("timers")["period_ns"])
    nothing = pl.lit(None, pl.String)
    tables: dict[str, tuple[pl.DataFrame, pl.Expr | pl.Series, pl.Expr]] = {
        "subscription": (names.objects(trace, "subscriptions"), pl.col("topic"), pl.format("{} {}", place, name)),
        "timer": (names.objects(trace, "timers"), written, pl.format("{} timer {}", place, name)),
        "service": (names.objects(trace, "services"), pl.col("name"), pl.format("{} service {}", place, name)),
        "client": (names.objects(trace, "clients"), pl.col("name"), pl.format("{} client {}", place, name)),
        "callback": (callbacks, pl.col("name"), pl.col("label")),
        "node": (names.objects(trace, "nodes").with_columns(node="name"), nothing, code),
        "publisher": (names.objects(trace, "publishers"), nothing, code),
    }
    columns = ("key", "kind", "node", "name", "process", "pid", "host", "handle", "label")
    every = [
        frame.with_columns(key=pl.format(f"{kind} {{}}", "row"), kind=pl.lit(kind), name=called)
        .with_columns(label=label)
        .select(columns)
        for kind, (frame, called, label) in tables.items()
    ]
    kind = (
        pl.when(pl.col("key").is_in(bare.unique().implode())).then(pl.lit("take"))
        .when(pl.col("kind").is_in(["node", "publisher"])).then(pl.lit("code"))
        .otherwise("kind")
    )  # fmt: skip
    frame = (
        keys.drop_nulls().unique(maintain_order=True).to_frame("key")
        .join(pl.concat(every), on="key", how="left", maintain_order="left")
        .join(timers, on="key", how="left", maintain_order="left")
        .with_columns(kind=kind, vertex=pl.int_range(pl.len(), dtype=pl.Int32))
    )  # fmt: skip
    # Timers of one node and period: what the program calls them.
    symbols_differ = (pl.col("symbol").is_unique() & pl.col("symbol").is_not_null()).all()
    return names.told_apart(
        frame,
        "label",
        (symbols_differ.over("label", "process", "pid"), pl.format("{} {}", "label", "symbol")),
        *((True, pl.format("{} ({})", "label", _text(more))) for more in ("pid", "host", "handle", "vertex")),
    ).select("vertex", *columns)


def _text(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null("–")


# Links ----------------------------------------------------------------------------------------------------------------


def _links(
    trace: Source, vertices: pl.DataFrame, runs: pl.DataFrame, messages: pl.DataFrame, *, inferred: bool
) -> pl.DataFrame:
    """Steps from a run that took a message to a publication of the node in another run.

    For each publication and each subscription that goes into it: the latest run of that subscription which started
    before the publication. Declared pairs are those of the links table; inferred ones all subscriptions and services of
    the node, into whatever it publishes or requests.
    """
    links = trace.table("links").select("publisher", "subscription").drop_nulls().unique()
    declared = links.select(
        output=pl.format("publisher {}", "publisher"), key=pl.format("subscription {}", "subscription")
    )
    pairs = declared.with_columns(link=pl.lit(DECLARED))
    if inferred:
        row = pl.int_range(pl.len())
        subscriptions = trace.table("subscriptions").select(
            "node", key=pl.format("subscription {}", row), internal=names.is_internal(pl.col("topic"))
        )
        services = trace.table("services").select("node", key=pl.format("service {}", row))
        inputs = pl.concat([subscriptions.filter(~pl.col("internal")).drop("internal"), services])
        outputs = messages.select("output", node="publisher_node").drop_nulls().unique()
        every = outputs.join(inputs, on="node").select("output", "key")
        every = every.join(declared, on=["output", "key"], how="anti")
        pairs = pl.concat([pairs, every.with_columns(link=pl.lit(INFERRED))])
    if pairs.is_empty():
        return messages.clear().with_columns(via_vertex=pl.lit(None, pl.Int32), link=pl.lit(""), run=pl.col("from_run"))
    pairs = pairs.join(vertices.select("key", input_vertex="vertex"), on="key")
    published = messages.select("publication", "output", "published_ns", "from_run").unique("publication")
    published = published.with_columns(via_vertex=runs["vertex"].gather(published["from_run"]))
    asked = published.join(pairs, on="output").sort("published_ns")
    asked = asked.filter(pl.col("via_vertex") != pl.col("input_vertex"))
    started = runs.select("run", "start_ns", input_vertex="vertex").sort("start_ns")
    latest = asked.join_asof(
        started,
        left_on="published_ns",
        right_on="start_ns",
        by="input_vertex",
        strategy="backward",
        check_sortedness=False,
    ).filter(pl.col("run").is_not_null())
    return messages.join(latest.select("publication", "via_vertex", "link", "run"), on="publication")


# Routes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hop:
    """A part of a route: from the start of a run to its publication, or from there to the start of the next run."""

    kind: str  # callback, message, held, sink
    what: str
    link: str
    edge: int | None


@dataclass(frozen=True)
class Followed:
    """What became of all that set out on a route."""

    route: Route
    # One row per instance that came to the end: start_ns, due_ns, started_ns (of the sink), ended_ns, left_out, leg_i
    complete: pl.DataFrame
    ended: pl.DataFrame  # hop, edge, reason, n: of those that did not

    @property
    def set_out(self) -> int:
        return self.complete.height + int(self.ended["n"].sum())

    def ended_by(self, *reasons: str) -> int:
        return int(self.ended.filter(pl.col("reason").is_in(list(reasons)))["n"].sum())


@dataclass(frozen=True, eq=False)
class Route:
    """Edges of a flow, one after the other."""

    flow: Flow
    edges: tuple[int, ...]
    root: str | None = None  # local, outside, again; None: any run of the first vertex
    closes: bool = False  # the last edge closes a cycle
    n: int = 0  # how many chains of the data came to its end

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The edges of the flow's table."""
        return tuple(self.flow.edge[number] for number in self.edges)

    # What it is called ------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        return self.flow.label(self.rows[0]["from_vertex"])

    @property
    def sink(self) -> str:
        return self.flow.label(self.rows[-1]["to_vertex"])

    @property
    def link(self) -> str:
        """The weakest link."""
        links = {edge["link"] for edge in self.rows}
        return next(link for link in (INFERRED, DECLARED, CAUSAL) if link in links)

    @cached_property
    def name(self) -> str:
        """ "/source timer 5 ms → /topic_a → /sync → /topic_b → /sink"."""
        begin = f"({self.root}){ROUTE_ARROW}" if self.root in ("outside", AGAIN) else ""
        parts = [f"{begin}{self.source}"]
        for edge in self.rows:
            if edge["link"] != CAUSAL:
                parts.append(f"({edge['link']}) {self.flow.label(edge['via_vertex'])}")
            parts += [edge["topic"], self._taker(edge)]
        return ROUTE_ARROW.join(parts) + (" (again)" if self.closes else "")

    def _taker(self, edge: dict[str, Any]) -> str:
        """Who takes the messages of an edge, behind its topic: what else the label says."""
        vertex = self.flow.vertex[edge["to_vertex"]]
        label, node, prefix = str(vertex["label"]), vertex["node"], f"{vertex['node']} {edge['topic']}"
        of_topic = vertex["kind"] in ("subscription", "take") and vertex["name"] == edge["topic"]
        return f"{node}{label.removeprefix(prefix)}" if of_topic and label.startswith(prefix) else label

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        made: list[Hop] = []
        for place, edge in enumerate(self.rows):
            number, sender = edge["edge"], self.flow.vertex[edge["from_vertex"]]
            if edge["link"] != CAUSAL:
                publisher = self.flow.vertex[edge["via_vertex"]]
                what = f"{sender['label']}, until {publisher['label']} publishes"
                made.append(Hop("held", what, edge["link"], number))
                sender = publisher
            elif not (place == 0 and sender["kind"] == "code"):
                made.append(Hop("callback", sender["label"], CAUSAL, number))
            what = f"{edge['topic']}: {sender['node'] or sender['label']}{ROUTE_ARROW}{self._taker(edge)}"
            made.append(Hop("message", what, CAUSAL, number))
        made.append(Hop("sink", self.sink, CAUSAL, None))
        return tuple(made)

    # What became of its instances -------------------------------------------------------------------------------------

    def _roots(self, scope: Scope) -> pl.DataFrame:
        """The runs that may set out on it."""
        flow = self.flow
        runs = scope.within(flow.runs.filter(pl.col("vertex") == self.rows[0]["from_vertex"]), "start_ns")
        if self.root == AGAIN:
            led = flow.steps.filter(pl.col("edge").is_in(list(flow.closing)))["to_run"].drop_nulls()
            return runs.filter(pl.col("run").is_in(led.unique().implode()))
        return runs if self.root is None else runs.filter(pl.col("root") == self.root)

    def follow(self, scope: Scope = EVERYTHING) -> Followed:
        """One row per instance that began in the scope's stretch and came to its end, and the others by where and why
        they ended."""
        flow, hops = self.flow, self.hops
        current = self._roots(scope).select("start_ns", "due_ns", "run", at_ns="start_ns")
        ended: list[pl.DataFrame] = []
        leg = 0
        for place, edge in enumerate(self.rows):
            steps = flow.steps_of(edge["edge"]).select("run", "published_ns", "to_run", "status")
            joined = current.join(steps, on="run", how="left")
            silent = pl.col("published_ns").is_null()
            lost = joined.filter(~silent, pl.col("to_run").is_null()).select(reason="status").sort("reason")
            # A run of the first vertex that publishes nothing on this route did not set out on it.
            if place:
                lost = pl.concat([self._silent(joined.filter(silent), edge).sort("reason"), lost])
            counted = lost.group_by("reason", maintain_order=True).agg(n=pl.len().cast(pl.Int64))
            ended.append(counted.select(hop=pl.lit(place + 1), edge=pl.lit(edge["edge"]), reason="reason", n="n"))
            current = joined.filter(pl.col("to_run").is_not_null())
            legs = {f"leg_{leg}": pl.col("next_ns") - pl.col("published_ns")}
            if hops[leg].kind != "message":
                legs = {f"leg_{leg}": pl.col("published_ns") - pl.col("at_ns"), f"leg_{leg + 1}": legs[f"leg_{leg}"]}
            leg += len(legs)
            current = (
                current.with_columns(next_ns=flow.runs["start_ns"].gather(current["to_run"]))
                .with_columns(**legs)
                .drop("run", "at_ns", "published_ns", "status")
                .rename({"to_run": "run", "next_ns": "at_ns"})
            )
        end = flow.runs["end_ns"].gather(current["run"])
        touched = flow.quality.touched
        left_out = touched(current["start_ns"], current["at_ns"], anywhere=False).fill_null(False)
        unsure = touched(current["at_ns"], end, anywhere=False).fill_null(False)
        complete = (
            current.rename({"at_ns": "started_ns"})
            .with_columns(left_out=left_out, ended_ns=pl.when(~unsure).then(end))
            .with_columns((pl.col("ended_ns") - pl.col("started_ns")).alias(f"leg_{leg}"))
        )
        return Followed(self, complete, pl.concat(ended))

    def _silent(self, silent: pl.DataFrame, edge: dict[str, Any]) -> pl.DataFrame:
        """Why runs published nothing that goes on along the route."""
        ends = self.flow.runs["end_ns"].gather(silent["run"])
        cut = self.flow.quality.touched(silent["at_ns"], ends.fill_null(2**62)).fill_null(False)
        return silent.select(
            reason=pl.when(cut).then(pl.lit("cut"))
            .when(edge["link"] != CAUSAL).then(pl.lit("not_used"))
            .when(ends.is_null()).then(pl.lit("unended"))
            .otherwise(pl.lit("not_published"))
        )  # fmt: skip


# Which there are ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    routes: tuple[Route, ...]  # the most travelled first
    cut_short: bool  # there were more than can be told apart


def found(flow: Flow) -> Found:
    """Every route that messages took, with how many came to its end."""
    steps = flow.steps.filter(pl.col("to_run").is_not_null()).select("run", "edge", "to_run")
    degree = steps.group_by("run").agg(degree=pl.len())
    closes = pl.col("edge").is_in(list(flow.closing))
    # A run that both a closing edge and none led to begins anew as well.
    again = pl.col("run").is_in(steps.filter(closes)["to_run"].unique().implode())
    root = pl.when(again).then(pl.lit(AGAIN)).otherwise("root")
    begin = flow.runs.select("run", "vertex", root=root).filter(pl.col("root").is_not_null())
    begin = begin.join(degree, on="run", how="semi")
    first = begin.group_by("vertex", "root").agg("run").with_row_index("prefix")
    # Beginnings of routes: root, edges, and how many chains came along them; `ends` are those that go no further.
    prefixes: list[tuple[str, tuple[int, ...], int]] = [(root, (), 0) for root in first["root"]]
    ends = set(range(len(prefixes)))
    chains = first.select("prefix", "run").explode("run")
    room = MAX_CHAINS + steps.height
    cut_short = False
    while chains.height:
        room -= int(chains.join(degree, on="run")["degree"].sum())
        cut_short = len(prefixes) > MAX_PREFIXES or room < 0
        if cut_short:
            break
        chains = chains.join(steps, on="run")
        grown = chains.group_by("prefix", "edge").agg(n=pl.len()).sort("prefix", "edge")
        ids = grown.with_row_index("next", offset=len(prefixes))
        for prefix, edge, n in grown.iter_rows():
            before, edges, _ = prefixes[prefix]
            prefixes.append((before, (*edges, edge), n))
        ends |= set(ids["next"])
        ends -= set(grown["prefix"])
        chains = chains.filter(~closes).join(ids, on=["prefix", "edge"]).select(prefix="next", run="to_run")
    ways = (prefixes[end] for end in ends)
    routes = [Route(flow, edges, root, edges[-1] in flow.closing, n) for root, edges, n in ways if edges]
    return Found(tuple(sorted(routes, key=lambda route: (-route.n, route.edges))), cut_short)
