"""Ways through the message flow: which there are in the data, and what became of every message that set out on one.

A route is a chain of edges of the graph. `found` lists those that messages took from a root (a run that no message led
to) to where they led no further; `follow` takes one route and tells of every instance how long each hop took, or where
and why it ended.

An edge that closes a cycle ends a route: the run that it leads to is the last of that route and the root of another.
Which edge of a cycle that is depends on where one comes from: the one that leads back, from the roots on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from perflab.trace.flow import CAUSAL, DECLARED, INFERRED, Flow
from perflab.trace.scope import EVERYTHING, Scope

if TYPE_CHECKING:
    import numpy as np

MAX_PREFIXES = 100_000  # beginnings of routes that are told apart
MAX_CHAINS = 10_000_000  # ways that lead to runs, beyond one for each message

AGAIN = "again"  # root of a route that begins where a cycle closed
ROUTE_ARROW = " → "


@dataclass(frozen=True)
class Route:
    """Edges of a flow, one after the other."""

    edges: tuple[int, ...]
    root: str | None = None  # local, outside, again; None: any run of the first vertex
    closes: bool = False  # the last edge closes a cycle
    n: int = 0  # how many chains of the data came to its end


@dataclass(frozen=True)
class Found:
    routes: tuple[Route, ...]  # the most travelled first
    cut_short: bool  # there were more than can be told apart


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
    hops: tuple[Hop, ...]
    # One row per instance that came to the end: start_ns, due_ns, started_ns (of the sink), ended_ns, left_out, leg_i
    complete: pl.DataFrame
    ended: pl.DataFrame  # hop, edge, reason, n: of those that did not

    @property
    def set_out(self) -> int:
        return self.complete.height + int(self.ended["n"].sum())

    def ended_by(self, *reasons: str) -> int:
        return int(self.ended.filter(pl.col("reason").is_in(list(reasons)))["n"].sum())


def closing_edges(flow: Flow) -> set[int]:
    """The edges that lead back to a vertex on the way to them, found from the roots on."""
    out: dict[int, list[tuple[int, int]]] = {}
    rank = {v: i for i, v in enumerate(flow.vertices.sort("label")["vertex"].to_list())}
    reached = set()
    for edge, a, b in flow.edges.filter(pl.col("delivered") > 0).select("edge", "from_vertex", "to_vertex").iter_rows():
        out.setdefault(a, []).append((b, edge))
        reached.add(b)
    for targets in out.values():
        targets.sort(key=lambda t: (rank[t[0]], t[1]))
    closing: set[int] = set()
    state: dict[int, int] = {}  # 1: on the way, 2: done
    for first in sorted(out, key=lambda v: (v in reached, rank[v])):
        if first in state:
            continue
        state[first] = 1
        stack: list[tuple[int, Iterator[tuple[int, int]]]] = [(first, iter(out[first]))]
        while stack:
            vertex, targets_left = stack[-1]
            for target, edge in targets_left:
                if state.get(target) == 1:
                    closing.add(edge)
                elif target not in state:
                    state[target] = 1
                    stack.append((target, iter(out.get(target, ()))))
                    break
            else:
                state[vertex] = 2
                stack.pop()
    return closing


def found(flow: Flow) -> Found:
    """Every route that messages took, with how many came to its end."""
    import numpy as np

    closing = closing_edges(flow)
    steps = flow.steps.filter(pl.col("to_run").is_not_null()).sort("run", maintain_order=True)
    n = flow.runs.height
    if not steps.height:
        return Found((), False)
    run, to_run, edge = (steps[c].to_numpy().astype(np.int64) for c in ("run", "to_run", "edge"))
    first = np.searchsorted(run, np.arange(n + 1))
    degree = np.diff(first)
    is_closing = np.isin(edge, np.fromiter(closing, dtype=np.int64, count=len(closing)))
    vertex = flow.runs["vertex"].to_numpy()
    # A run that both a closing edge and none led to begins anew as well.
    root = np.full(n, -1, dtype=np.int64)
    names = ("local", "outside", AGAIN)
    for i, name in enumerate(names[:2]):
        root[(flow.runs["root"] == name).fill_null(False).to_numpy()] = i
    root[to_run[is_closing]] = 2
    rows = np.flatnonzero((root >= 0) & (degree > 0))
    trie = _Trie()
    at = trie.roots(vertex[rows], root[rows])
    room = MAX_CHAINS + steps.height
    while rows.size:
        counts = degree[rows]
        room -= int(counts.sum())
        if len(trie.parent) > MAX_PREFIXES or room < 0:
            return Found(trie.leaves(names, closing), True)
        index = np.repeat(first[rows] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        at = trie.children(np.repeat(at, counts), edge[index])
        on = ~is_closing[index]
        rows, at = to_run[index][on], at[on]
    return Found(trie.leaves(names, closing), False)


class _Trie:
    """Beginnings of routes, each with how many chains came along it."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.edge: list[int] = []
        self.n: list[int] = []
        self.root: list[int] = []

    def _add(self, parent: int, edge: int, n: int, root: int) -> int:
        self.parent.append(parent)
        self.edge.append(edge)
        self.n.append(n)
        self.root.append(root)
        return len(self.parent) - 1

    def roots(self, vertices: np.ndarray[Any, Any], roots: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import numpy as np

        keys, inverse, counts = np.unique(vertices * np.int64(4) + roots, return_inverse=True, return_counts=True)
        ids = [self._add(-1, -1, int(n), int(key % 4)) for key, n in zip(keys, counts, strict=True)]
        return np.asarray(ids, dtype=np.int64)[inverse]

    def children(self, parents: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import numpy as np

        width = np.int64(edges.max() + 1) if edges.size else np.int64(1)
        keys, inverse, counts = np.unique(parents * width + edges, return_inverse=True, return_counts=True)
        ids = []
        for key, n in zip(keys, counts, strict=True):
            parent = int(key // width)
            ids.append(self._add(parent, int(key % width), int(n), self.root[parent]))
        return np.asarray(ids, dtype=np.int64)[inverse]

    def leaves(self, names: Sequence[str], closing: set[int]) -> tuple[Route, ...]:
        inner = set(self.parent)
        routes = []
        for leaf in range(len(self.parent)):
            if leaf in inner or self.edge[leaf] < 0:
                continue
            edges = []
            place = leaf
            while self.edge[place] >= 0:
                edges.append(self.edge[place])
                place = self.parent[place]
            routes.append(
                Route(tuple(reversed(edges)), names[self.root[leaf]], self.edge[leaf] in closing, self.n[leaf])
            )
        return tuple(sorted(routes, key=lambda r: (-r.n, r.edges)))


# Names ----------------------------------------------------------------------------------------------------------------


class Words:
    """What routes and their parts are called."""

    def __init__(self, flow: Flow) -> None:
        self.vertices = flow.vertices.to_dicts()
        self.edges = {row["edge"]: row for row in flow.edges.to_dicts()}

    def vertex(self, vertex: int) -> str:
        return str(self.vertices[vertex]["label"])

    def _within(self, vertex: int, topic: str) -> str:
        """A subscriber behind its topic: what else its label says."""
        v = self.vertices[vertex]
        if v["kind"] in ("subscription", "take") and v["name"] == topic:
            prefix = f"{v['node']} {topic}"
            if v["node"] is not None and v["label"].startswith(prefix):
                return f"{v['node']}{v['label'][len(prefix) :]}"
        return str(v["label"])

    def route(self, route: Route) -> str:
        """ "/source timer 5 ms → /topic_a → /sync → /topic_b → /sink"."""
        first = self.edges[route.edges[0]]
        begin = {"outside": "(outside) → ", AGAIN: "(again) → "}.get(route.root or "", "")
        parts = [f"{begin}{self.vertex(first['from_vertex'])}"]
        for number in route.edges:
            edge = self.edges[number]
            if edge["link"] != CAUSAL:
                parts.append(f"({edge['link']}) {self.vertex(edge['via'])}")
            parts += [edge["topic"], self._within(edge["to_vertex"], edge["topic"])]
        return ROUTE_ARROW.join(parts) + (" (again)" if route.closes else "")

    def link(self, route: Route) -> str:
        """The weakest link of a route."""
        links = {self.edges[number]["link"] for number in route.edges}
        return next(link for link in (INFERRED, DECLARED, CAUSAL) if link in links)

    def source(self, route: Route) -> str:
        return self.vertex(self.edges[route.edges[0]]["from_vertex"])

    def sink(self, route: Route) -> str:
        return self.vertex(self.edges[route.edges[-1]]["to_vertex"])

    def edge(self, number: int) -> str:
        edge = self.edges[number]
        a = edge["from_vertex"] if edge["link"] == CAUSAL else edge["via"]
        sender = self.vertices[a]["node"] or self.vertex(a)
        return f"{edge['topic']}: {sender}{ROUTE_ARROW}{self._within(edge['to_vertex'], edge['topic'])}"


# Following ------------------------------------------------------------------------------------------------------------


class Follower:
    """Follows routes of one flow. Steps of an edge are looked up once."""

    def __init__(self, flow: Flow, words: Words, scope: Scope = EVERYTHING) -> None:
        self.flow = flow
        self.words = words
        self._scope = scope  # of the instances: those that begin in it
        bounds = flow.steps.lazy().with_row_index("row").group_by("edge").agg(pl.col("row").min(), n=pl.len()).collect()
        self._bounds = {edge: (row, n) for edge, row, n in bounds.iter_rows()}
        again = flow.steps.join(
            pl.DataFrame({"edge": sorted(closing_edges(flow))}, schema={"edge": pl.Int32}), on="edge", how="semi"
        )
        self._again = again.filter(pl.col("to_run").is_not_null()).select(run="to_run").unique()

    def steps(self, edge: int) -> pl.DataFrame:
        row, n = self._bounds.get(edge, (0, 0))
        return self.flow.steps.slice(row, n)

    def roots(self, route: Route) -> pl.DataFrame:
        first = self.words.edges[route.edges[0]]["from_vertex"]
        runs = self._scope.within(self.flow.runs.filter(pl.col("vertex") == first), "start_ns")
        if route.root == AGAIN:
            runs = runs.join(self._again, on="run", how="semi")
        elif route.root is not None:
            runs = runs.filter(pl.col("root") == route.root)
        return runs

    def hops(self, route: Route) -> tuple[Hop, ...]:
        made: list[Hop] = []
        for place, number in enumerate(route.edges):
            edge = self.words.edges[number]
            kind = self.words.vertices[edge["from_vertex"]]["kind"]
            if edge["link"] != CAUSAL:
                what = f"{self.words.vertex(edge['from_vertex'])}, until {self.words.vertex(edge['via'])} publishes"
                made.append(Hop("held", what, edge["link"], number))
            elif not (place == 0 and kind == "code"):
                made.append(Hop("callback", self.words.vertex(edge["from_vertex"]), CAUSAL, number))
            made.append(Hop("message", self.words.edge(number), CAUSAL, number))
        made.append(Hop("sink", self.words.sink(route), CAUSAL, None))
        return tuple(made)

    def follow(self, route: Route) -> Followed:
        """One row per instance that came to its end, and the others by where and why they ended."""
        hops = self.hops(route)
        runs = self.flow.runs
        current = self.roots(route).select("start_ns", "due_ns", "run", at_ns="start_ns")
        ended: list[dict[str, Any]] = []
        leg = 0
        for place, number in enumerate(route.edges):
            edge = self.words.edges[number]
            steps = self.steps(number).select("run", "published_ns", "to_run", "status")
            joined = current.join(steps, on="run", how="left")
            silent = joined.filter(pl.col("published_ns").is_null())
            # A run of the first vertex that publishes nothing on this route did not set out on it.
            if place:
                ended += self._silent(silent, edge, place)
            joined = joined.filter(pl.col("published_ns").is_not_null())
            lost = joined.filter(pl.col("to_run").is_null())
            for reason, n in lost.group_by("status").len("n").sort("status").iter_rows():
                ended.append({"hop": place + 1, "edge": number, "reason": reason, "n": n})
            current = joined.filter(pl.col("to_run").is_not_null())
            start = runs["start_ns"].gather(current["to_run"])
            legs = {}
            if hops[leg].kind != "message":
                legs[f"leg_{leg}"] = pl.col("published_ns") - pl.col("at_ns")
                leg += 1
            legs[f"leg_{leg}"] = pl.col("next_ns") - pl.col("published_ns")
            leg += 1
            current = (
                current.with_columns(start.alias("next_ns"))
                .with_columns(**legs)
                .drop("run", "at_ns", "published_ns", "status")
                .rename({"to_run": "run", "next_ns": "at_ns"})
            )
        end = runs["end_ns"].gather(current["run"])
        complete = current.rename({"at_ns": "started_ns"}).with_columns(end.alias("ended_ns"))
        touched = self.flow.quality.touched
        left_out = touched(complete["start_ns"], complete["started_ns"], anywhere=False).fill_null(False)
        unsure = touched(complete["started_ns"], complete["ended_ns"], anywhere=False).fill_null(False)
        complete = complete.with_columns(
            left_out.alias("left_out"), ended_ns=pl.when(~unsure).then("ended_ns")
        ).with_columns((pl.col("ended_ns") - pl.col("started_ns")).alias(f"leg_{leg}"))
        schema = {"hop": pl.Int64, "edge": pl.Int64, "reason": pl.String, "n": pl.Int64}
        frame = pl.DataFrame(ended, schema=schema, orient="row")
        frame = frame.group_by("hop", "edge", "reason", maintain_order=True).agg(pl.col("n").sum())
        return Followed(route, hops, complete, frame)

    def _silent(self, silent: pl.DataFrame, edge: dict[str, Any], place: int) -> list[dict[str, Any]]:
        """Why runs published nothing that goes on along the route."""
        if silent.is_empty():
            return []
        ends = self.flow.runs.select("end_ns").select(pl.all().gather(silent["run"]))["end_ns"]
        cut = self.flow.quality.touched(silent["at_ns"], ends.fill_null(2**62)).fill_null(False)
        is_link = edge["link"] != CAUSAL
        reason = (
            pl.when(pl.lit(cut)).then(pl.lit("cut"))
            .when(pl.lit(is_link)).then(pl.lit("not_used"))
            .when(pl.lit(ends).is_null()).then(pl.lit("unended"))
            .otherwise(pl.lit("not_published"))
        )  # fmt: skip
        counted = silent.select(reason.alias("reason")).group_by("reason").len("n").sort("reason")
        return [{"hop": place + 1, "edge": edge["edge"], "reason": r, "n": n} for r, n in counted.iter_rows()]
