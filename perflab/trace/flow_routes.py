"""Ways through the message flow: which there are in the data, and what became of every message that set out on one.

A route is a chain of edges of the graph. `found` lists those that messages took from a root (a run that no message led
to) to where they led no further; `Route.follow` tells of every instance how long each hop took, or where and why it
ended.

An edge that closes a cycle ends a route: the run that it leads to is the last of that route and the root of another.
Which edge of a cycle that is depends on where one comes from: the one that leads back, from the roots on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from perflab.trace.flow import CAUSAL, DECLARED, INFERRED, Flow
from perflab.trace.scope import EVERYTHING, Scope

MAX_PREFIXES = 100_000  # beginnings of routes that are told apart
MAX_CHAINS = 10_000_000  # ways that lead to runs, beyond one for each message

AGAIN = "again"  # root of a route that begins where a cycle closed
ROUTE_ARROW = " → "


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
