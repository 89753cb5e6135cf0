"""Paths: how long it takes from a source to a sink, through all that lies between; what was lost and where; objectives.

Definitions (docs/tracing.md, Paths). Of an instance of a path that came to its end:

    latency     from the start of the first callback (outside of callbacks: the publication) to the start of the last
    until end   from there to the end of the last
    from due    from when the timer of the first was due, where the trace says so, to the start of the last
    hops        within callbacks from the start to the publication, between them from the publication to the next start,
                and the last callback: they add up to `until end`

What is inferred is never among what is causal: a path with an inferred link is a row of its own and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import polars as pl

from perflab.errors import BadInput
from perflab.statistics.histogram import Histogram
from perflab.statistics.objectives import CONFIDENCE, MEASURES, changed_totals
from perflab.trace import paths_named as named
from perflab.trace.answer import Answer, Section, notes_of
from perflab.trace.columns import Column, Table, because, count, distribution, flag, number, percent, text, time
from perflab.trace.flow import CAUSAL, DECLARED, INFERRED, NOT_JUDGED, REASONS, Flow, Followed, Route, flow_of, found
from perflab.trace.messages import Leg
from perflab.trace.names import HOST, PID, PROCESS
from perflab.trace.paths_named import TIMES, Measured, Objective, Wanted
from perflab.trace.quality import quality_of
from perflab.trace.quantiles import MAX_AT, columns_of, describe, quantile
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.source import Source
from perflab.units import format_confidence, plural

LARGEST = 100  # paths that are followed unless all are asked for
_SHORT = ("p50", "p99", "max")
_EDGE_STATISTICS = ("min", "p50", "p99", "max", MAX_AT, "mean")
_HOP = ("min", "p50", "p90", "p99", "max", "mean")
# Where a hop is the bottleneck, and the share by which it is.
_BOTTLENECKS = {"median": "share_p50_percent", "slow": "share_slow_percent"}

_NO_INSTANCE = "no instance came to its end with all events on its way in the trace"

_ID = text("id", "its name in the file, or p1, p2, ... of those that were found")
_PATH = text("path", "the callbacks and topics that it goes through")
_LINK = text("link", f"how its links are known: {CAUSAL}, {DECLARED} or {INFERRED}")


_LATENCIES = (
    Leg("latency", "start_ns", "started_ns", "start of the first callback to the start of the last", _NO_INSTANCE),
    # Between other ends, which not every trace has.
    Leg(
        "until_end", "start_ns", "ended_ns", "start of the first callback to the end",
        f"no last callback was seen to end, or {_NO_INSTANCE}",
    ),
    Leg(
        "from_due", "due_ns", "started_ns", "when the timer of the first was due to the start of the last",
        f"the trace does not say when the source was due, or {_NO_INSTANCE}",
    ),
)  # fmt: skip


def _bottleneck(name: str, words: str, least: int) -> tuple[Column, ...]:
    return because(
        f"it needs {least} instances that took any time",
        text(name, f"the hop with the largest share in {words}"),
        percent(f"{name}_share", "its share"),
    )


PATHS = Table(
    "paths",
    "Paths from source to sink",
    (
        _ID,
        _PATH,
        _LINK,
        text("source", "where it begins"),
        text("sink", "where it ends"),
        count("messages", "messages on the way"),
        count("set_out", "messages that began the way"),
        count("complete", "instances that came to its end"),
        count("not_arrived", "those that ended on the way"),
        count("not_judged", "those of which that is not known"),
        count("left_out", "instances whose latency is left out, for events are missing on the way"),
        *distribution("latency", _LATENCIES[0].help, empty=_NO_INSTANCE),
        time("max_at", "when the slowest began, from the beginning of the trace", _NO_INSTANCE, of="latency"),
        *(column for leg in _LATENCIES[1:] for column in distribution(leg.name, leg.help, _SHORT, leg.empty)),
        *_bottleneck("bottleneck", "the median", 2),
        *_bottleneck("bottleneck_slow", "the slowest hundredth", 100),
    ),
    shown=(
        "id", "source", "sink", "messages", "link", "set_out", "complete", "not_arrived", "not_judged",
        "latency_min_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns", "latency_max_at_ns",
        "until_end_p50_ns", "bottleneck", "bottleneck_share_percent",
    ),
    spare=(
        "until_end_p50_ns", "latency_min_ns", "messages", "link", "bottleneck", "bottleneck_share_percent",
        "not_judged", "latency_max_at_ns", "latency_max_ns",
    ),
)  # fmt: skip

HOPS = Table(
    "hops",
    "Where the time of paths went",
    (
        _ID,
        _PATH,
        count("hop", "place of the hop on the path"),
        text("what", "the callback or the topic"),
        text("kind", "callback, message, held or sink"),
        text("link", "how it is known"),
        count("n", "instances whose time is known"),
        *distribution("time", "time of the hop", _HOP, _NO_INSTANCE),
        percent("p50", "median share", f"a median needs 2 instances that took any time; or {_NO_INSTANCE}", of="share"),
        percent("mean", "mean share", f"no instance took any time; or {_NO_INSTANCE}", of="share"),
        percent(
            "share_slow",
            "mean share in the slowest hundredth",
            "the slowest hundredth needs 100 instances, and the last callback must have ended",
        ),
        text("bottleneck", "where it is the bottleneck: in the median, in the slowest hundredth (slow), or no"),
    ),
    shown=(
        "id", "hop", "kind", "what", "n", "time_p50_ns", "time_p99_ns", "time_max_ns", "share_p50_percent",
        "share_slow_percent", "bottleneck",
    ),
    spare=("n", "time_max_ns", "share_slow_percent", "kind"),
)  # fmt: skip

INCOMPLETE = Table(
    "incomplete",
    "Instances that did not come to the end of their path",
    (
        _ID,
        _PATH,
        count("message", "place of the message at which they ended"),
        text("where", "its topic"),
        text("reason", "why they ended"),
        count("n", "instances"),
        percent("of_set_out", "share of those that set out"),
        flag("judged", "whether they count as not arrived"),
    ),
    shown=("id", "message", "where", "reason", "n", "of_set_out_percent"),
)

EDGES = Table(
    "edges",
    "Message flow: edges",
    (
        text("from", "what publishes"),
        text("via", "where in it the publication is", "the publication is in the run that took the message"),
        text("topic", "the topic"),
        text("to", "what handles the messages"),
        _LINK,
        text("delivery", "the way between them"),
        count("published", "messages published for this subscription"),
        count("arrived", "of these, those that were handled"),
        count("not_arrived", "of these, those that were not, whatever the reason"),
        *distribution(
            "latency",
            "publish() to the start of the callback",
            _EDGE_STATISTICS,
            "nothing arrived on it",
            at="when it was published",
        ),
    ),
    shown=(
        "from", "topic", "to", "link", "delivery", "published", "arrived", "not_arrived", "latency_p50_ns",
        "latency_p99_ns", "latency_max_ns", "latency_max_at_ns",
    ),
    spare=("delivery", "latency_max_at_ns", "latency_max_ns", "published", "link"),
)  # fmt: skip

VERTICES = Table(
    "vertices",
    "Message flow: vertices",
    (
        text("vertex", "a short name"),
        text("kind", "kind of the callback, code or take"),
        text("node", "its node", "its initialisation is not in the trace"),
        *because("the trace does not say what the process is called", PROCESS),
        PID,
        *because("the trace does not say what the host is called", HOST),
        text("role", "whether paths begin or end there"),
        count("runs", "times that it ran"),
        count("edges_out", "edges that leave it"),
        count("edges_in", "edges that lead to it"),
        *because(
            "it is no callback, or too few of its callbacks were seen to end",
            *distribution("duration", "start to end", _SHORT),
        ),
    ),
    shown=(
        "vertex", "kind", "process", "role", "runs", "edges_in", "edges_out", "duration_p50_ns", "duration_p99_ns",
    ),
    spare=("process", "duration_p99_ns"),
)  # fmt: skip

_FROM_TO = "from the start of the first callback to the end of the last"
_UNMEASURED = "the path was not measured: its column reason says why"
_NO_DEADLINE = f"the path has no deadline; or {_UNMEASURED}"

NAMED = Table(
    "named",
    "Named paths",
    (
        text("name", "its name in the file"),
        *because(
            _UNMEASURED,
            text("route", "the callbacks and topics that it goes through, or the times in place of them"),
            text("link", f"{CAUSAL}, {DECLARED} or {INFERRED}; {TIMES}: the processes of the run measured it"),
        ),
        time("deadline", "the longest latency that is no miss", "the file gives none"),
        number("weight", "its weight in the objectives", "the file gives no deadline"),
        text("since", "what the latency begins with"),
        text("until", "what it ends with"),
        *because(
            _UNMEASURED,
            count("set_out", "messages that began the way"),
            count("judged", "instances with a known latency + never arrived"),
            count("never_arrived", "those that ended on their way, but for those not judged"),
            count("stopped", "stopped by a callback that published nothing"),
        ),
        *because(
            _NO_DEADLINE,
            count("late", "instances whose latency is more than the deadline"),
            count("misses", "late + never arrived"),
            percent("misses", "share of the judged"),
            percent("misses_low", f"low end of its {format_confidence(CONFIDENCE)} interval (Wilson)"),
            percent("misses_high", "high end of that"),
        ),
        *because(_UNMEASURED, count("not_judged", "on the way at the end, published too early, or events missing")),
        *distribution("latency", _FROM_TO, named.STATISTICS, f"no instance arrived; or {_UNMEASURED}"),
        number("median_of_deadline", "p50 / deadline", f"{_NO_DEADLINE}; or fewer than 2 instances arrived"),
        number("p99_of_deadline", "p99 / deadline", f"{_NO_DEADLINE}; or fewer than 100 instances arrived"),
        number("max_of_deadline", "largest latency / deadline", f"{_NO_DEADLINE}; or no instance arrived"),
        text("reason", "why it was not measured", "the path was measured"),
    ),
    shown=(
        "name", "link", "deadline_ns", "weight", "judged", "never_arrived", "late", "misses_percent",
        "misses_low_percent", "misses_high_percent", "not_judged", "latency_p50_ns", "latency_p99_ns",
        "latency_max_ns",
    ),
    spare=("not_judged", "latency_max_ns", "link", "misses_low_percent", "misses_high_percent", "weight"),
    always=False,
)  # fmt: skip

_NO_TOTAL = "a path was not measured, or too few of its instances: the column reason says which"
OBJECTIVE = Table(
    "objective",
    "Objectives",
    (
        text("measure", "the measure"),
        text("what", "what is summed up"),
        count("paths", "paths with a deadline"),
        number("weights", "sum of their weights"),
        number("total", "sum of weight x score / sum of the weights; smaller is better", _NO_TOTAL),
        *(
            replace(column, optional=True)
            for column in (
                number("baseline_total", "that of the baseline", _NO_TOTAL),
                number("ratio", "total / that of the baseline", "a total is not known, or that of the baseline is 0"),
            )
        ),
        text("reason", "why a total is not known", "the total is known"),
    ),
    always=False,
)

SENSITIVITY = Table(
    "sensitivity",
    "Sensitivity of the objectives to the weights",
    (
        text("measure", "the measure"),
        text("name", "the path"),
        number("score", "its score", "the path was not measured, or too few of its instances"),
        text("change", "what changes"),
        number("weight", "its weight then", "the path is left out"),
        number("total", "the total then", "a path that belongs to it was not measured, or none is left"),
        percent("difference", "how much that differs from the whole", "a total is not known, or the whole is 0"),
    ),
    always=False,
)


_NO_MISSES = "the path has no deadline, or was not measured in that trace"
_NOT_THERE = "the path is not in that trace, or was not measured there; or too few instances for the quantile"


def _side_columns(prefix: str, whose: str) -> tuple[Column, ...]:
    return (
        *because(_NOT_THERE, count(f"{prefix}n", f"instances with a latency{whose}")),
        percent(f"{prefix}complete", f"share of those that set out that came to the end{whose}", _NOT_THERE),
        percent(f"{prefix}misses", f"share of misses{whose}", _NO_MISSES),
    )


COMPARED = Table(
    "compared",
    "Beside the baseline",
    (
        text("path", "the path"),
        *_side_columns("", ""),
        *_side_columns("baseline_", " in the baseline"),
        *(
            column
            for statistic in _SHORT
            for column in because(
                _NOT_THERE,
                time(statistic, f"latency: {statistic}", of="latency"),
                time(statistic, f"latency in the baseline: {statistic}", of="baseline_latency"),
                number(f"{statistic}_ratio", "this trace / baseline"),
            )
        ),
        text("only_in", "this trace, the baseline, or no"),
    ),
    shown=(
        "path", "n", "baseline_n", "latency_p50_ns", "baseline_latency_p50_ns", "p50_ratio", "latency_p99_ns",
        "baseline_latency_p99_ns", "p99_ratio", "max_ratio", "only_in",
    ),
    spare=("max_ratio", "only_in", "baseline_n", "n"),
    always=False,
)  # fmt: skip

TABLES = (NAMED, OBJECTIVE, SENSITIVITY, COMPARED, PATHS, HOPS, INCOMPLETE, EDGES, VERTICES)


@dataclass(frozen=True)
class Asked:
    """What is asked about paths."""

    wanted: tuple[Wanted, ...] = ()
    source: str | None = None  # node or topic, or a pattern
    sink: str | None = None
    inferred: bool = False
    limit: int | None = LARGEST  # of those that are found; 0: only named ones are asked for
    scope: Scope = EVERYTHING  # paths through these nodes and topics; instances that begin in its stretch
    times: Mapping[str, Histogram] | None = None  # that the processes of the trial measured; None: of no trial


@dataclass(frozen=True)
class Told:
    """A path that was followed."""

    id: str  # its name in a file, or "p1", "p2", ... of those that were found
    followed: Followed

    @property
    def route(self) -> Route:
        return self.followed.route

    @cached_property
    def _instances(self) -> pl.DataFrame:
        """Those with all events on their way in the trace."""
        return self.followed.complete.filter(~pl.col("left_out")).with_columns(leg.time for leg in _LATENCIES)

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Statistics of its latencies, as `describe` names them."""
        latencies = {leg.name: pl.col(leg.name) for leg in _LATENCIES}
        at = {"latency": pl.col("start_ns") - self.route.flow.begin_ns}
        return describe(self._instances, [], latencies, at=at).row(0, named=True)

    @cached_property
    def hops(self) -> pl.DataFrame:
        """One row per hop, as in HOPS."""
        made = self.route.hops
        # Shares are of the time until the end of the last callback, where that is seen.
        ended = self.figures["until_end_n"] > 0
        whole = "until_end" if ended else "latency"
        legs = self._instances.select(whole, *(f"leg_{i}" for i in range(len(made))))
        legs = legs.unpivot(index=whole, variable_name="leg", value_name="time")
        shared = (pl.col(whole) > 0) & (ended | (pl.col("leg") != f"leg_{len(made) - 1}"))
        share = pl.when(shared).then(100.0 * pl.col("time") / pl.col(whole))
        slow = pl.col(whole) >= pl.lit(self.figures[f"{whole}_p99_ns"], pl.Int64)
        shares = [
            quantile(share, 500).alias("share_p50_percent"),
            share.mean().alias("share_mean_percent"),
            share.filter(slow).mean().alias("share_slow_percent"),
        ]
        found = describe(legs, ["leg"], {"time": pl.col("time")}, shares, statistics=_HOP)
        frame = pl.DataFrame([{**vars(hop), "hop": i, "leg": f"leg_{i - 1}"} for i, hop in enumerate(made, 1)])
        frame = frame.join(found, on="leg", how="left", maintain_order="left")
        worst = {word: frame[column].arg_max() for word, column in _BOTTLENECKS.items()}
        marks = [", ".join(word for word, at in worst.items() if at == i) or "no" for i in range(frame.height)]
        return frame.with_columns(
            pl.lit(self.id).alias("id"),
            pl.lit(self.route.name).alias("path"),
            pl.Series("bottleneck", marks),
            n=pl.col("time_n").fill_null(0),
        )

    def bottleneck(self, word: str) -> dict[str, Any] | None:
        """The row of the hop that is it in the median, or in the slowest hundredth (slow); None where none is known."""
        share = self.hops[_BOTTLENECKS[word]]
        place = share.arg_max()
        return None if place is None else self.hops.row(place, named=True)


@dataclass(frozen=True)
class Paths:
    """Everything about the paths of one trace."""

    flow: Flow
    told: tuple[Told, ...]
    measured: tuple[Measured, ...]
    left_out: tuple[Route, ...]  # that were found and not followed
    cut_short: bool
    outside: int  # callbacks that began with a message whose publication is not known
    without_topic: int  # publications of which the topic is not known: nothing can be said of where they went
    scope: Scope

    @cached_property
    def named(self) -> tuple[Told, ...]:
        """Those of `measured` that have a route."""
        return tuple(Told(m.wanted.name, m.followed) for m in self.measured if m.followed)


def paths(trace: Source, asked: Asked | None = None, baseline: Source | None = None) -> Answer:
    """All paths, the named ones with their misses and objectives, the graph; beside a baseline, if there is one."""
    asked = asked or Asked()
    return answer_of(paths_of(trace, asked), paths_of(baseline, asked, strict=False) if baseline else None)


def paths_of(trace: Source, asked: Asked, *, strict: bool = True) -> Paths:
    """The paths that are asked for, followed. Not `strict`: names that are not in this trace are not measured there."""
    everything = flow_of(trace, quality_of(trace), inferred=asked.inferred or bool(asked.wanted))
    flow = everything.select(pl.col("link") != INFERRED)
    measured = []
    for path in asked.wanted:
        if path.path.times is not None:
            measured.append(named.measure_times(path, asked.times))
            continue
        error = named.name_error(path, everything)
        if error is not None and strict:
            raise BadInput(": ".join(error))
        if error is not None:
            measured.append(Measured(path, error[1].partition(";")[0]))
        else:
            measured.append(_measured(path, everything, asked.scope, strict=strict))
    discovered = [found(flow)] if asked.limit != 0 else []
    routes = [route for each in discovered for route in each.routes]
    if asked.inferred and discovered:
        discovered.append(found(everything))
        routes += [route for route in discovered[1].routes if route.link == INFERRED]
    routes = _between(routes, asked)
    # Of the inferred links only those that a named path needs, unless all are asked for.
    used = [number for path in measured if path.followed for number in path.followed.route.edges]
    shown = everything.select((pl.col("link") != INFERRED) | pl.col("edge").is_in(used) | asked.inferred)
    topics = trace.table("publishers")["topic"].gather(trace.table("publications")["publisher"])
    return Paths(
        flow=shown,
        told=tuple(Told(f"p{i}", route.follow(asked.scope)) for i, route in enumerate(routes[: asked.limit], 1)),
        measured=tuple(measured),
        left_out=tuple(routes[asked.limit :] if asked.limit is not None else ()),
        cut_short=any(each.cut_short for each in discovered),
        outside=everything.runs.filter(pl.col("root") == "outside").height,
        without_topic=topics.null_count(),
        scope=asked.scope,
    )


def _measured(path: Wanted, flow: Flow, scope: Scope, *, strict: bool) -> Measured:
    try:
        route = named.the_route(path, flow)
    except BadInput as error:
        if strict:
            raise
        return Measured(path, str(error))
    if route is None:
        return Measured(path, "no message can go this way: no publisher and subscription of the trace join it")
    return named.measure(path, route.follow(scope))


def _between(routes: list[Route], asked: Asked) -> list[Route]:
    """Routes through the scope's nodes and over its topics, cut to begin and end where that is asked for; those that do
    not pass there are left out."""
    if asked.scope.has_names:
        of_routes = [route.flow.edges.filter(pl.col("edge").is_in(route.edges)) for route in routes]
        nodes = [asked.scope.of_nodes(edges, "publisher", "subscription").height for edges in of_routes]
        topics = [asked.scope.of_topics(edges).height for edges in of_routes]
        routes = [route for route, *both in zip(routes, nodes, topics, strict=True) if all(both)]
    if asked.source is None and asked.sink is None:
        return routes
    known = sorted({name for route in routes[:1] + routes[-1:] for name in (*route.flow.nodes, *route.flow.topics)})
    for option, pattern in (("--from", asked.source), ("--to", asked.sink)):
        if pattern is not None and not any(fnmatchcase(name, pattern) for name in known):
            raise BadInput(f"{option} {pattern}: {named.unknown_name('node or topic', pattern, known)}")

    def places(route: Route, end: str, pattern: str | None) -> list[int]:
        """Of the edges with a topic, or a node at that end, that the pattern fits; of all without a pattern."""
        of_edges = ([name for name in (edge["topic"], edge[end]) if name is not None] for edge in route.rows)
        return [i for i, n in enumerate(of_edges) if pattern is None or any(fnmatchcase(name, pattern) for name in n)]

    result: dict[tuple[int, tuple[int, ...]], Route] = {}
    for route in routes:
        begins, ends = places(route, "publisher", asked.source), places(route, "subscription", asked.sink)
        if not begins or not ends or begins[0] > ends[-1]:
            continue
        begin, end = begins[0], ends[-1] + 1
        root = route.root if begin == 0 else None
        key = (id(route.flow), route.edges[begin:end])
        n = route.n
        if (before := result.get(key)) is not None:
            root, n = root if before.root == root else None, n + before.n
        result[key] = replace(route, edges=key[1], root=root, closes=route.closes and end == len(route.edges), n=n)
    return list(result.values())


# Sections -------------------------------------------------------------------------------------------------------------


def answer_of(p: Paths, baseline: Paths | None = None) -> Answer:
    """The sections of an answer."""
    hops = [told.hops.select(HOPS.names) for told in (*p.named, *p.told)]
    of_hops = (
        "callback: start to publication; message: publication to the next start; held: start of the callback that"
        " took it to the publication it went into; sink: the last callback. Shares are of the time until the end of"
        " the last callback, instance by instance; slow: means over the slowest hundredth"
    )
    of_edges = (
        "latency: publish() to the start of the callback; not arrived: published for this subscription and not"
        " handled, whatever the reason. ROS's own topics are not followed"
    )
    of_vertices = (
        "code: publishes outside of callbacks; take: messages are taken, and no callback is in the trace (rclpy, or"
        " a client)"
    )
    vertices = p.scope.of_nodes(vertices_of(p.flow, p.scope), "node").with_columns(vertex="label")
    sections = (
        *([_named(p), *_objectives(p, baseline)] if p.measured else []),
        *([_compared(p, baseline)] if baseline is not None else []),
        _paths(p),
        Section(
            HOPS,
            pl.concat([HOPS.frame([]), *hops], how="vertical_relaxed"),
            (of_hops if hops else "there is no path",),
        ),
        _incomplete(p),
        Section(EDGES, edges_of(p.flow, p.scope).select(EDGES.names), (of_edges,)),
        Section(VERTICES, vertices.select(VERTICES.names), (of_vertices,)),
    )
    figures = ("messages", "handling", "intra-process", "callbacks")
    return p.flow.quality.answer("paths", sections, *figures, scope=p.scope)


def _row(told: Told) -> dict[str, Any]:
    f, route = told.followed, told.route
    unknown = f.ended_by(*NOT_JUDGED)
    row: dict[str, Any] = {
        "id": told.id, "path": route.name, "link": route.link, "source": route.source, "sink": route.sink,
        "messages": len(route.edges), "set_out": f.set_out, "complete": f.complete.height,
        "not_arrived": f.set_out - f.complete.height - unknown, "not_judged": unknown,
        "left_out": int(f.complete["left_out"].sum()),
    }  # fmt: skip
    row |= {name: value for name, value in told.figures.items() if name in PATHS.of}
    for key, word in (("bottleneck", "median"), ("bottleneck_slow", "slow")):
        if (hop := told.bottleneck(word)) is not None:
            row[key] = hop["what"] if hop["kind"] == "message" else f"in {hop['what']}"
            row[f"{key}_share_percent"] = hop[_BOTTLENECKS[word]]
    return row


def _paths(p: Paths) -> Section:
    frame = PATHS.frame(_row(told) for told in p.told)
    left_out = plural(sum(route.n for route in p.left_out), "instance")
    notes = notes_of(
        (not p.told, "no message led from one callback to another"),
        (True, "latency: start of the first callback (outside of callbacks: publish()) to the start of the last; until"
               " end: to its end; bottleneck: the hop with the largest share in the median, and in the slowest"
               " hundredth (slow)"),
        (True, "set out: messages that began the way; not arrived: a hop says where and why in the table of those that"
               " ended"),
        (p.left_out, f"{plural(len(p.left_out), 'path')} with {left_out} left out, the least travelled: --all"),
        (p.cut_short, "there are more ways through this system than can be told apart: the longest are cut; name paths"
                      " in a file"),
        (p.without_topic, f"{plural(p.without_topic, 'publication')} of which the topic is not known, for the"
                          " initialisation of the publisher is not in the trace (/rosout's are copies): not followed"),
        (p.outside, f"{plural(p.outside, 'callback')} began with a message of which the publication is not known:"
                    " their paths begin there, as (outside)"),
        (frame["left_out"].sum(), "left out: events are missing on the way, so that their latency may be that of other"
                                  " messages"),
        ((frame["link"] == INFERRED).any(),
         "inferred: by the latest message of each other input of a node before it published; that these belong"
         " together is a guess, not in the trace, and no other row rests on it"),
        ((frame["link"] == DECLARED).any(),
         "declared: the node itself says what goes into what it publishes (message_link_*)"),
        (p.flow.quality.has_losses, "events were lost: counts are lower bounds"),
    )  # fmt: skip
    return Section(PATHS, frame, notes)


def _incomplete(p: Paths) -> Section:
    rows = []
    for told in (*p.named, *p.told):
        set_out = told.followed.set_out
        by_edge = {hop.edge: hop.what for hop in told.route.hops if hop.kind == "message"}
        for hop, edge, reason, n in told.followed.ended.iter_rows():
            rows.append(
                {
                    "id": told.id, "path": told.route.name, "message": hop, "where": by_edge[edge], "reason": reason,
                    "n": n, "of_set_out_percent": 100.0 * n / set_out, "judged": reason not in NOT_JUDGED,
                }
            )  # fmt: skip
    frame = INCOMPLETE.frame(rows)
    seen = [r for r in REASONS if r in frame["reason"].to_list()]
    notes = tuple(f"{reason}: {REASONS[reason]}" for reason in seen)
    return Section(INCOMPLETE, frame, notes or ("every instance came to its end",))


def edges_of(flow: Flow, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Every edge with who it joins, how many messages went along it, and their latency."""
    arrived = flow.runs["start_ns"].gather(flow.steps["to_run"])
    steps = scope.within(flow.steps.with_columns(arrived.alias("arrived_ns")), "published_ns")
    cut = flow.quality.touched(steps["published_ns"], steps["arrived_ns"], anywhere=False).fill_null(False)
    latency = pl.when(~pl.lit(cut)).then(pl.col("arrived_ns") - pl.col("published_ns"))
    figures = describe(
        steps.with_columns(latency=latency), ["edge"], {"latency": pl.col("latency")},
        [pl.len().cast(pl.Int64).alias("published"), pl.col("to_run").count().cast(pl.Int64).alias("arrived")],
        statistics=("min", "p50", "p99", "max", "mean"), at={"latency": pl.col("published_ns") - flow.begin_ns},
    )  # fmt: skip
    label = flow.vertices["label"]
    ends = {name: label.gather(flow.edges[f"{name}_vertex"]) for name in ("from", "via", "to")}
    edges = flow.edges.with_columns(**ends)
    rank = pl.col("link").replace_strict({CAUSAL: 0, DECLARED: 1, INFERRED: 2}, return_dtype=pl.Int8)
    return (
        scope.edges(edges)
        .join(figures, on="edge", how="left", maintain_order="left")
        .with_columns(pl.col("published", "arrived").fill_null(0))
        .with_columns(not_arrived=pl.col("published") - pl.col("arrived"))
        .sort(rank, pl.col("arrived"), "from", "topic", "to", descending=[False, True, False, False, False])
    )


def vertices_of(flow: Flow, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Every vertex on an edge, how often it ran, and whether paths begin or end there."""
    edges = flow.edges.filter(pl.col("delivered") > 0)
    out = edges.group_by(vertex="from_vertex").agg(edges_out=pl.len().cast(pl.Int64))
    into = edges.group_by(vertex="to_vertex").agg(edges_in=pl.len().cast(pl.Int64))
    on_edge = pl.concat([flow.edges[c].drop_nulls() for c in ("from_vertex", "via_vertex", "to_vertex")]).unique()
    runs = describe(
        scope.within(flow.runs, "start_ns"), ["vertex"], {"duration": pl.col("end_ns") - pl.col("start_ns")},
        [pl.len().cast(pl.Int64).alias("runs")], statistics=_SHORT,
    )  # fmt: skip
    role = (
        pl.when(edges_out=0, edges_in=0).then(pl.lit("nothing arrived"))
        .when(edges_in=0).then(pl.lit("source"))
        .when(edges_out=0).then(pl.lit("sink"))
        .otherwise(pl.lit("between"))
    )  # fmt: skip
    return (
        flow.vertices.filter(pl.col("vertex").is_in(on_edge.implode()))
        .join(runs, on="vertex", how="left")
        .join(out, on="vertex", how="left")
        .join(into, on="vertex", how="left")
        .with_columns(pl.col("runs", "edges_out", "edges_in").fill_null(0))
        .with_columns(role=role)
        .sort("label")
    )


# Named paths ----------------------------------------------------------------------------------------------------------


def _named(p: Paths) -> Section:
    rows = [m.row for m in p.measured]
    frame = NAMED.frame(rows)
    notes = [
        "misses: later than the deadline, or never arrived (lost, overwritten, not handled, or stopped by a callback"
        " that published nothing, unless the file says may_stop); "
        f"{format_confidence(CONFIDENCE)} interval of their share (Wilson), as if"
        " instances did not depend on each other, which they do: the truth is wider",
        "not judged: still on the way at the end, published before the two had met, or events missing there",
    ]
    notes += [f"{told.id}: {told.route.name}" for told in p.named]
    if (frame["link"] == INFERRED).any():
        notes.append("a path with link inferred rests on a guess: the latest message before the node published")
    notes += [f"{m.wanted.name}: not measured: {m.reason}" for m in p.measured if m.reason is not None]
    return Section(NAMED, frame, tuple(notes))


def _objectives(p: Paths, baseline: Paths | None) -> tuple[Section, Section]:
    """The objectives, and what becomes of them where the weights change."""
    rows, changes = [], []
    for measure, (what, _) in MEASURES.items():
        objective = Objective.of(measure, p.measured)
        whole, reasons = objective.total, [objective.reason]
        row: dict[str, Any] = {
            "measure": measure, "what": what, "paths": len(objective.paths), "weights": sum(objective.weights),
            "total": whole,
        }  # fmt: skip
        if baseline is not None:
            beside = Objective.of(measure, baseline.measured)
            before = beside.total
            row |= {"baseline_total": before, "ratio": whole / before if whole is not None and before else None}
            reasons.append(beside.reason and f"baseline: {beside.reason}")
        rows.append(row | {"reason": "; ".join(reason for reason in reasons if reason) or None})
        for i, path in enumerate(objective.paths):
            for change, weight, value in changed_totals(objective.scores, objective.weights, i):
                shift = None if value is None or not whole else 100.0 * (value - whole) / whole
                changes.append((measure, path.wanted.name, objective.scores[i], change, weight, value, shift))
    table = OBJECTIVE if baseline is not None else OBJECTIVE.without("baseline_total", "ratio")
    without = [m.wanted.name for m in p.measured if m.wanted.weight is None]
    notes = notes_of(
        (True, "sum of weight x score over all paths with a deadline / sum of their weights; smaller is better"),
        (without, f"without a deadline, and so in no objective: {', '.join(without)}"),
        *((row["reason"], f"{row['measure']}: null because {row['reason']}") for row in rows),
    )
    of_weights = "what becomes of the total where the weight of one path changes, or the path is left out"
    return (
        Section(table, table.frame(rows), notes),
        Section(SENSITIVITY, SENSITIVITY.frame(changes), (of_weights if changes else "no path has a deadline",)),
    )


def _compared(p: Paths, baseline: Paths) -> Section:
    """Beside another trace paths of the same name, named ones first, with the latency that the file asks for; no
    verdict."""

    def side(of: Paths) -> dict[tuple[bool, str], dict[str, Any]]:
        measured = [((False, m.wanted.name), m.followed, m.figures) for m in of.measured if m.followed and m.figures]
        told = [((True, t.route.name), t.followed, t.figures) for t in of.told]
        return {
            key: {
                "n": figures["latency_n"],
                "complete_percent": 100.0 * followed.complete.height / followed.set_out if followed.set_out else None,
                "misses_percent": figures.get("misses_percent"),
                **{name: figures[name] for name in columns_of("latency", _SHORT)},
            }
            for key, followed, figures in (*measured, *told)
        }

    here, there = side(p), side(baseline)
    rows = []
    for key in sorted(dict.fromkeys((*here, *there)), key=lambda key: key[0]):
        a, b = here.get(key, {}), there.get(key, {})
        row = {"path": key[1], **a, **{f"baseline_{name}": value for name, value in b.items()}}
        for statistic, column in zip(_SHORT, columns_of("latency", _SHORT), strict=True):
            known = a.get(column) is not None and b.get(column)
            row[f"{statistic}_ratio"] = a[column] / b[column] if known else None
        rows.append(row | {"only_in": "no" if a and b else "this trace" if a else "the baseline"})
    note = (
        "ratio: this trace / baseline; no verdict: one trace of either is one trial of either, and how much trials"
        " of the same system differ cannot be seen in them"
    )
    return Section(COMPARED, COMPARED.frame(rows), (note,))
