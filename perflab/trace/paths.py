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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from perflab.errors import BadInput
from perflab.trace import paths_named as named
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import (
    HOST,
    PID,
    PROCESS,
    Column,
    Table,
    because,
    count,
    distribution,
    flag,
    number,
    percent,
    text,
    time,
)
from perflab.trace.flow import CAUSAL, DECLARED, INFERRED, NOT_JUDGED, REASONS, Flow, flow_of, select_edges
from perflab.trace.flow_routes import Followed, Follower, Route, Words, found
from perflab.trace.names import plural
from perflab.trace.paths_named import CONFIDENCE
from perflab.trace.quality import quality_of
from perflab.trace.quantiles import MAX_AT, PER_MILLE, REASON_QUANTILE, columns_of, describe, needed
from perflab.trace.scope import EVERYTHING, Scope
from perflab.units import format_confidence, format_time

if TYPE_CHECKING:
    import numpy as np

    from perflab.trace.paths_file import Wanted
    from perflab.trace.source import Source

LARGEST = 100  # paths that are followed unless all are asked for
_SHORT = ("p50", "p99", "max")
_EDGE_STATISTICS = ("min", "p50", "p99", "max", MAX_AT, "mean")
_HOP = ("min", "p50", "p90", "p99", "max", "mean")

_NO_INSTANCE = "no instance came to its end with all events on its way in the trace"

_ID = text("id", "its name in the file, or p1, p2, ... of those that were found")
_PATH = text("path", "the callbacks and topics that it goes through")
_LINK = text("link", f"how its links are known: {CAUSAL}, {DECLARED} or {INFERRED}")


def _between_ends(figure: str, help: str, unknown: str) -> tuple[Column, ...]:
    """A latency between other ends, which not every trace has."""
    return tuple(
        replace(c, empty=f"{unknown}, or {REASON_QUANTILE if '_p' in c.name else _NO_INSTANCE}")
        for c in distribution(figure, help, _SHORT)
    )


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
        *distribution("latency", "start of the first callback to the start of the last", empty=_NO_INSTANCE),
        time("max_at", "when the slowest began, from the beginning of the trace", _NO_INSTANCE, of="latency"),
        *_between_ends("until_end", "start of the first callback to the end", "no last callback was seen to end"),
        *_between_ends(
            "from_due",
            "when the timer of the first was due to the start of the last",
            "the trace does not say when the source was due",
        ),
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

_NAMED_LATENCY = ("min", "p50", "p90", "p99", "p99_9", "max", "mean")
_FROM_TO = "from the start of the first callback to the end of the last"
_UNMEASURED = "the path was not measured: its column reason says why"
_NO_DEADLINE = f"the path has no deadline; or {_UNMEASURED}"

NAMED = Table(
    "named",
    "Named paths",
    (
        text("name", "its name in the file"),
        *because(_UNMEASURED, text("route", "the callbacks and topics that it goes through"), _LINK),
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
        *(
            replace(c, empty=f"{REASON_QUANTILE if '_p' in c.name else 'no instance arrived'}; or {_UNMEASURED}")
            for c in distribution("latency", _FROM_TO, _NAMED_LATENCY)
        ),
        number("median_of_deadline", "p50 / deadline", f"{_NO_DEADLINE}; or fewer than 2 instances arrived"),
        number("p99_of_deadline", "p99 / deadline", f"{_NO_DEADLINE}; or fewer than 100 instances arrived"),
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
    limit: int | None = LARGEST
    scope: Scope = EVERYTHING  # paths through these nodes and topics; instances that begin in its stretch


@dataclass(frozen=True)
class Told:
    """A path with its name, what became of it, and its figures."""

    id: str  # its name in a file, or "p1", "p2", ... of those that were found
    name: str
    link: str
    source: str
    sink: str
    followed: Followed
    figures: dict[str, Any]


@dataclass(frozen=True)
class Paths:
    """Everything about the paths of one trace."""

    flow: Flow
    words: Words
    told: tuple[Told, ...]
    measured: tuple[named.Measured, ...]
    named: tuple[Told, ...]  # those of `measured` that have a route
    left_out: int  # paths that were found and not followed
    left_out_n: int  # their instances
    cut_short: bool
    outside: int  # callbacks that began with a message whose publication is not known
    without_topic: int  # publications of which the topic is not known: nothing can be said of where they went
    scope: Scope = EVERYTHING
    begin_ns: int = 0  # of the trace


def paths(trace: Source, asked: Asked | None = None, baseline: Source | None = None) -> Answer:
    """All paths, the named ones with their misses and objectives, the graph; beside a baseline, if there is one."""
    asked = asked or Asked()
    return answer_of(trace, paths_of(trace, asked), paths_of(baseline, asked, strict=False) if baseline else None)


def paths_of(trace: Source, asked: Asked, *, strict: bool = True) -> Paths:
    """The paths that are asked for, followed. Not `strict`: names that are not in this trace are not measured there."""
    quality = quality_of(trace)
    everything = flow_of(trace, quality, inferred=asked.inferred)
    flow = select_edges(everything, pl.col("link") != INFERRED)
    named_flow = everything
    routes: dict[str, Route | None] = {}
    reasons: dict[str, str] = {}
    if asked.wanted:
        if strict:
            named.check_names(asked.wanted, everything)
        words = Words(flow)
        if not asked.inferred and any(not named.routes_of(path, flow, words) for path in asked.wanted):
            named_flow = flow_of(trace, quality, inferred=True)
        words = Words(named_flow)
        for path in asked.wanted:
            if not strict and (error := named.name_error(path, named_flow)) is not None:
                routes[path.name], reasons[path.name] = None, error[2].partition(";")[0]
                continue
            routes[path.name] = named.the_route(path, named_flow, words)
    follower = Follower(flow, Words(flow), asked.scope)
    discovered = found(flow)
    chosen = [(route, follower) for route in discovered.routes]
    cut_short = discovered.cut_short
    if asked.inferred:
        with_links = Follower(everything, Words(everything), asked.scope)
        more = found(everything)
        cut_short |= more.cut_short
        chosen += [(r, with_links) for r in more.routes if with_links.words.link(r) == INFERRED]
    chosen = _between(chosen, asked)
    followed = chosen if asked.limit is None else chosen[: asked.limit]
    rest = chosen[len(followed) :]
    named_follower = Follower(named_flow, Words(named_flow), asked.scope)
    measured, named_told = [], []
    for path in asked.wanted:
        route = routes[path.name]
        if route is None:
            why = reasons.get(
                path.name, "no message can go this way: no publisher and subscription of the trace join it"
            )
            measured.append(named.Measured(path, why))
            continue
        done = named_follower.follow(route)
        measured.append(named.measure(path, done))
        named_told.append(_told(path.name, done, named_follower.words))
    outside = flow.runs.filter(pl.col("root") == "outside").height
    shown = named_flow
    if not asked.inferred:
        # Of the inferred links only those that a named path needs.
        used = [number for told in named_told for number in told.followed.route.edges]
        shown = select_edges(named_flow, (pl.col("link") != INFERRED) | pl.col("edge").is_in(used))
    return Paths(
        flow=shown,
        words=named_follower.words,
        told=tuple(_told(f"p{i}", f.follow(r), f.words) for i, (r, f) in enumerate(followed, 1)),
        measured=tuple(measured),
        named=tuple(named_told),
        left_out=len(rest),
        left_out_n=sum(route.n for route, _ in rest),
        cut_short=cut_short,
        outside=outside,
        without_topic=_without_topic(trace),
        scope=asked.scope,
        begin_ns=trace.facts["begin_ns"] or 0,
    )


def _without_topic(trace: Source) -> int:
    topics = trace.table("publishers")["topic"].gather(trace.table("publications")["publisher"])
    return topics.null_count()


def _between(chosen: list[tuple[Route, Follower]], asked: Asked) -> list[tuple[Route, Follower]]:
    """Routes cut to begin and end where that is asked for; those that do not pass there are left out."""
    if asked.scope.has_names:
        chosen = [(route, follower) for route, follower in chosen if _passes(route, follower.words, asked.scope)]
    if asked.source is None and asked.sink is None:
        return chosen
    from fnmatch import fnmatchcase

    known: set[str] = set()
    for _, follower in chosen[:1] + chosen[-1:]:
        known |= set(named.nodes_of(follower.flow)) | set(named.topics_of(follower.flow))
    for option, pattern in (("--from", asked.source), ("--to", asked.sink)):
        if pattern is not None and not any(fnmatchcase(name, pattern) for name in known):
            raise BadInput(f"{option} {pattern}: {named.unknown_name('node or topic', pattern, sorted(known))}")
    result: dict[tuple[int, tuple[int, ...]], tuple[Route, Follower]] = {}
    for route, follower in chosen:
        edges = list(route.edges)
        begin, end = 0, len(edges)
        if asked.source is not None:
            begin = next((i for i, e in enumerate(edges) if _begins(follower.words, e, asked.source)), len(edges))
        if asked.sink is not None:
            ends = [i + 1 for i, e in enumerate(edges) if _ends(follower.words, e, asked.sink)]
            end = ends[-1] if ends else 0
        if begin >= end:
            continue
        root = route.root if begin == 0 else None
        part = Route(tuple(edges[begin:end]), root, route.closes and end == len(edges), route.n)
        key = (id(follower), part.edges)
        if key in result:
            before = result[key][0]
            part = replace(before, n=before.n + part.n, root=before.root if before.root == part.root else None)
        result[key] = (part, follower)
    return list(result.values())


def _passes(route: Route, words: Words, scope: Scope) -> bool:
    """Whether a route goes through one of the nodes, and over one of the topics."""
    return any(_of_nodes(words, number, scope) for number in route.edges) and any(
        _of_topics(words, number, scope) for number in route.edges
    )


def _of_nodes(words: Words, number: int, scope: Scope) -> bool:
    edge = words.edges[number]
    ends = {words.vertices[edge[end]]["node"] for end in ("from_vertex", "to_vertex")}
    return scope.nodes is None or bool(scope.nodes & ends)


def _of_topics(words: Words, number: int, scope: Scope) -> bool:
    return scope.topics is None or words.edges[number]["topic"] in scope.topics


def _begins(words: Words, number: int, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    edge = words.edges[number]
    node = words.vertices[edge["from_vertex"]]["node"]
    return fnmatchcase(edge["topic"], pattern) or (node is not None and fnmatchcase(node, pattern))


def _ends(words: Words, number: int, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    edge = words.edges[number]
    node = words.vertices[edge["to_vertex"]]["node"]
    return fnmatchcase(edge["topic"], pattern) or (node is not None and fnmatchcase(node, pattern))


# Figures of a path ----------------------------------------------------------------------------------------------------


def _told(identity: str, followed: Followed, words: Words) -> Told:
    route = followed.route
    return Told(
        identity,
        words.route(route),
        words.link(route),
        words.source(route),
        words.sink(route),
        followed,
        _figures(followed),
    )


def _figures(followed: Followed) -> dict[str, Any]:
    """Statistics of the latencies, of every hop, and the bottlenecks; one dictionary.

    With arrays instead of `describe`, for a path has many figures and there are many paths; the definitions are those
    of perflab.trace.quantiles.
    """
    import numpy as np

    legs = [f"leg_{i}" for i in range(len(followed.hops))]
    frame = followed.complete.filter(~pl.col("left_out")).select(
        *legs,
        "start_ns",
        latency=pl.col("started_ns") - pl.col("start_ns"),
        until_end=pl.col("ended_ns") - pl.col("start_ns"),
        from_due=pl.col("started_ns") - pl.col("due_ns"),
    )
    # Shares are of the time until the end of the last callback, where that is seen.
    ended = frame["until_end"].count() > 0
    whole_name = "until_end" if ended else "latency"
    row: dict[str, Any] = {}
    for name in ("latency", "until_end", "from_due", *legs):
        row |= _statistics(name, frame[name].drop_nulls().to_numpy())
    slowest = frame["latency"].arg_max()
    row["latency_max_at_ns"] = None if slowest is None else frame["start_ns"][slowest]
    shared = frame.filter(pl.col(whole_name) > 0)
    whole = shared[whole_name].to_numpy()
    p99 = row[f"{whole_name}_p99_ns"]
    slow = whole >= p99 if p99 is not None else np.zeros(len(whole), dtype=bool)
    counted = range(len(legs) if ended else len(legs) - 1)
    for i, leg in enumerate(legs):
        share = 100.0 * shared[leg].to_numpy() / whole if i in counted else np.empty(0)
        of_share = _statistics(f"share_{i}", share)
        row |= {f"share_{i}_{s}_percent": of_share[f"share_{i}_{s}_ns"] for s in ("p50", "mean")}
        row[f"slow_share_{i}"] = float(share[slow].mean()) if len(share) and slow.any() else None
    for key, which in (("bottleneck", "share_{}_p50_percent"), ("bottleneck_slow", "slow_share_{}")):
        known = [(row[which.format(i)], -i) for i in counted if row[which.format(i)] is not None]
        row[key] = -max(known)[1] if known else None
    return row


def _statistics(name: str, values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """As `describe` has them: exact order statistics, null where there are too few values."""
    n = len(values)
    ordered = values.copy()
    ordered.sort()
    made: dict[str, Any] = {
        "n": n,
        "min": ordered[0].item() if n else None,
        "max": ordered[-1].item() if n else None,
        "mean": float(values.mean()) if n else None,
        "sd": float(values.std(ddof=1)) if n >= 2 else None,
    }
    for quantile, per_mille in PER_MILLE.items():
        made[quantile] = ordered[(n * per_mille + 999) // 1000 - 1].item() if n >= needed(per_mille) else None
    return {f"{name}_n": made.pop("n"), **{f"{name}_{key}_ns": value for key, value in made.items()}}


# Sections -------------------------------------------------------------------------------------------------------------


def answer_of(trace: Source, found_paths: Paths, baseline: Paths | None = None) -> Answer:
    """The sections of an answer."""
    sections: list[Section] = []
    if found_paths.measured:
        sections += [_named(found_paths), _objective(found_paths, baseline), _sensitivity(found_paths)]
    if baseline is not None:
        sections.append(_compared(found_paths, baseline))
    sections += [
        _paths(found_paths), _hops(found_paths), _incomplete(found_paths), _edges(found_paths), _vertices(found_paths),
    ]  # fmt: skip
    figures = ("messages", "handling", "intra-process", "callbacks")
    return found_paths.flow.quality.answer("paths", sections, *figures, scope=found_paths.scope)


def _judged(followed: Followed) -> tuple[int, int]:
    """How many did not arrive, and of how many that is not known."""
    unknown = followed.ended_by(*NOT_JUDGED)
    return int(followed.ended["n"].sum()) - unknown, unknown


def _row(told: Told, begin_ns: int) -> dict[str, Any]:
    f, figures = told.followed, told.figures
    at_ns = figures["latency_max_at_ns"]
    lost, unknown = _judged(f)
    row: dict[str, Any] = {
        "id": told.id, "path": told.name, "link": told.link, "source": told.source, "sink": told.sink,
        "messages": len(f.route.edges), "set_out": f.set_out, "complete": f.complete.height, "not_arrived": lost,
        "not_judged": unknown, "left_out": int(f.complete["left_out"].sum()),
    }  # fmt: skip
    row |= {c: figures[c] for c in columns_of("latency")}
    row["latency_max_at_ns"] = None if at_ns is None else at_ns - begin_ns
    row |= {c: figures[c] for name in ("until_end", "from_due") for c in columns_of(name, _SHORT)}
    for key, share in (("bottleneck", "share_{}_p50_percent"), ("bottleneck_slow", "slow_share_{}")):
        place = figures[key]
        row[key] = None if place is None else _hop_name(f, place)
        row[f"{key}_share_percent"] = None if place is None else figures[share.format(place)]
    return row


def _hop_name(followed: Followed, place: int) -> str:
    hop = followed.hops[place]
    return hop.what if hop.kind == "message" else f"in {hop.what}"


def _paths(p: Paths) -> Section:
    frame = PATHS.frame(_row(told, p.begin_ns) for told in p.told)
    notes = [
        "latency: start of the first callback (outside of callbacks: publish()) to the start of the last; until end: to"
        " its end; bottleneck: the hop with the largest share in the median, and in the slowest hundredth (slow)",
        "set out: messages that began the way; not arrived: a hop says where and why in the table of those that ended",
    ]
    if not p.told:
        notes.insert(0, "no message led from one callback to another")
    if p.left_out:
        notes.append(
            f"{plural(p.left_out, 'path')} with {plural(p.left_out_n, 'instance')} left out, the least travelled: --all"
        )
    if p.cut_short:
        notes.append(
            "there are more ways through this system than can be told apart: the longest are cut; name paths in a file"
        )
    if p.without_topic:
        notes.append(
            f"{plural(p.without_topic, 'publication')} of which the topic is not known, for the initialisation of the"
            " publisher is not in the trace (/rosout's are copies): not followed"
        )
    if p.outside:
        notes.append(
            f"{plural(p.outside, 'callback')} began with a message of which the publication is not known:"
            " their paths begin there, as (outside)"
        )
    if frame["left_out"].sum():
        notes.append("left out: events are missing on the way, so that their latency may be that of other messages")
    if (frame["link"] == INFERRED).any():
        notes.append(
            "inferred: by the latest message of each other input of a node before it published; that these belong"
            " together is a guess, not in the trace, and no other row rests on it"
        )
    if (frame["link"] == DECLARED).any():
        notes.append("declared: the node itself says what goes into what it publishes (message_link_*)")
    if p.flow.quality.has_losses:
        notes.append("events were lost: counts are lower bounds")
    return Section(PATHS, frame, tuple(notes))


def _hops(p: Paths) -> Section:
    rows = []
    for told in (*p.named, *p.told):
        figures = told.figures
        for i, hop in enumerate(told.followed.hops):
            marks = [
                words for key, words in (("bottleneck", "median"), ("bottleneck_slow", "slow")) if figures[key] == i
            ]
            row = {
                "id": told.id, "path": told.name, "hop": i + 1, "what": hop.what, "kind": hop.kind, "link": hop.link,
                "n": figures[f"leg_{i}_n"],
            }  # fmt: skip
            row |= {f"time_{s}_ns": figures[f"leg_{i}_{s}_ns"] for s in _HOP}
            row |= {
                "share_p50_percent": figures[f"share_{i}_p50_percent"],
                "share_mean_percent": figures[f"share_{i}_mean_percent"],
                "share_slow_percent": figures[f"slow_share_{i}"],
                "bottleneck": ", ".join(marks) or "no",
            }
            rows.append(row)
    note = (
        "callback: start to publication; message: publication to the next start; held: start of the callback that"
        " took it to the publication it went into; sink: the last callback. Shares are of the time until the end of"
        " the last callback, instance by instance; slow: means over the slowest hundredth"
    )
    return Section(HOPS, HOPS.frame(rows), (note if rows else "there is no path",))


def _incomplete(p: Paths) -> Section:
    rows = []
    for told in (*p.named, *p.told):
        set_out = told.followed.set_out
        by_edge = {h.edge: h.what for h in told.followed.hops if h.kind == "message"}
        for hop, edge, reason, n in told.followed.ended.iter_rows():
            rows.append(
                {
                    "id": told.id, "path": told.name, "message": hop, "where": by_edge[edge], "reason": reason, "n": n,
                    "of_set_out_percent": 100.0 * n / set_out, "judged": reason not in NOT_JUDGED,
                }
            )  # fmt: skip
    frame = INCOMPLETE.frame(rows)
    seen = [r for r in REASONS if r in frame["reason"].to_list()]
    settling = format_time(p.flow.settling_ns)
    notes = tuple(f"{reason}: {REASONS[reason].format(settling=settling)}" for reason in seen)
    return Section(INCOMPLETE, frame, notes or ("every instance came to its end",))


def _edges(p: Paths) -> Section:
    frame = edges_of(p.flow, p.words, p.scope, p.begin_ns)
    note = (
        "latency: publish() to the start of the callback; not arrived: published for this subscription and not"
        " handled, whatever the reason. ROS's own topics are not followed"
    )
    return Section(EDGES, frame, (note,))


def edges_of(flow: Flow, words: Words, scope: Scope = EVERYTHING, begin_ns: int = 0) -> pl.DataFrame:
    """Every edge with who it joins, how many messages went along it, and their latency."""
    arrived = flow.runs["start_ns"].gather(flow.steps["to_run"])
    steps = scope.within(flow.steps.with_columns(arrived.alias("arrived_ns")), "published_ns")
    cut = flow.quality.touched(steps["published_ns"], steps["arrived_ns"], anywhere=False).fill_null(False)
    steps = steps.with_columns(latency=pl.when(~cut).then(pl.col("arrived_ns") - pl.col("published_ns")))
    figures = describe(
        steps, ["edge"], {"latency": pl.col("latency")},
        [pl.len().cast(pl.Int64).alias("published"), pl.col("to_run").count().cast(pl.Int64).alias("arrived")],
        statistics=("min", "p50", "p99", "max", "mean"), at={"latency": pl.col("published_ns") - begin_ns},
    )  # fmt: skip
    labels = {row["vertex"]: row["label"] for row in words.vertices}
    hosts = {row["vertex"]: row["host_row"] for row in words.vertices}

    def delivery(row: dict[str, Any]) -> str:
        sender = row["from_vertex"] if row["via"] is None else row["via"]
        if row["intra_process"]:
            return "intra_process"
        a, b = words.vertices[sender], words.vertices[row["to_vertex"]]
        if hosts[sender] != hosts[row["to_vertex"]]:
            return "other_host"
        return "same_process" if (a["pid"], a["process"]) == (b["pid"], b["process"]) else "other_process"

    table = flow.edges.join(figures, on="edge", how="left").with_columns(pl.col("published", "arrived").fill_null(0))
    made = [
        {
            **row,
            "from": labels[row["from_vertex"]],
            "via": None if row["via"] is None else labels[row["via"]],
            "topic": row["topic"],
            "to": labels[row["to_vertex"]],
            "link": row["link"],
            "delivery": delivery(row),
            "not_arrived": row["published"] - row["arrived"],
        }
        for row in table.to_dicts()
        if _of_nodes(words, row["edge"], scope) and _of_topics(words, row["edge"], scope)
    ]
    frame = EDGES.frame({name: row[name] for name in EDGES.names} for row in made)
    rank = pl.col("link").replace_strict({CAUSAL: 0, DECLARED: 1, INFERRED: 2}, default=3, return_dtype=pl.Int8)
    return frame.sort(rank, pl.col("arrived"), "from", "topic", "to", descending=[False, True, False, False, False])


def vertices_of(flow: Flow, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Every vertex on an edge, how often it ran, and whether paths begin or end there."""
    edges = flow.edges.filter(pl.col("delivered") > 0)
    out = edges.group_by(vertex=pl.col("from_vertex")).agg(out=pl.len())
    into = edges.group_by(vertex=pl.col("to_vertex")).agg(into=pl.len())
    on_edge = pl.concat([flow.edges[c].drop_nulls() for c in ("from_vertex", "via", "to_vertex")]).unique()
    runs = describe(
        scope.within(flow.runs, "start_ns").with_columns(duration=pl.col("end_ns") - pl.col("start_ns")), ["vertex"],
        {"duration": pl.col("duration")}, [pl.len().cast(pl.Int64).alias("runs")], statistics=_SHORT,
    )  # fmt: skip
    return (
        flow.vertices.filter(pl.col("vertex").is_in(on_edge.implode()))
        .join(runs, on="vertex", how="left")
        .join(out, on="vertex", how="left")
        .join(into, on="vertex", how="left")
        .with_columns(
            pl.col("runs", "out", "into").fill_null(0).cast(pl.Int64),
            role=pl.when(pl.col("into").is_null() & pl.col("out").is_not_null()).then(pl.lit("source"))
            .when(pl.col("out").is_null() & pl.col("into").is_not_null()).then(pl.lit("sink"))
            .when(pl.col("out").is_not_null() & pl.col("into").is_not_null()).then(pl.lit("between"))
            .otherwise(pl.lit("nothing arrived")),
        )
        .sort("label")
    )  # fmt: skip


def _vertices(p: Paths) -> Section:
    frame = p.scope.of_nodes(vertices_of(p.flow, p.scope), "node").select(
        pl.col("label").alias("vertex"), "kind", "node", "process", "pid", "host", "role", "runs",
        pl.col("out").alias("edges_out"), pl.col("into").alias("edges_in"), *columns_of("duration", _SHORT),
    )  # fmt: skip
    note = (
        "code: publishes outside of callbacks; take: messages are taken, and no callback is in the trace (rclpy, or"
        " a client)"
    )
    return Section(VERTICES, frame, (note,))


# Named paths ----------------------------------------------------------------------------------------------------------


def _named(p: Paths) -> Section:
    told = {t.id: t for t in p.named}
    rows = []
    for m in p.measured:
        path = m.wanted.path
        known = told.get(m.wanted.name)
        figures = {} if m.latency is None else describe(
            pl.DataFrame({"x": m.latency}), [], {"latency": pl.col("x")}, statistics=_NAMED_LATENCY
        ).to_dicts()[0]  # fmt: skip
        interval = m.miss_interval
        share = named.score(m, "misses")
        rows.append(
            {
                "name": m.wanted.name,
                "route": None if known is None else p.words.route(known.followed.route),
                "link": None if known is None else known.link,
                "deadline_ns": path.deadline, "weight": m.wanted.weight, "since": path.since, "until": path.until,
                "set_out": None if m.followed is None else m.followed.set_out,
                "judged": m.judged, "never_arrived": m.never_arrived, "stopped": m.stopped, "late": m.late,
                "misses": m.misses,
                "misses_percent": None if share is None else 100.0 * share,
                "misses_low_percent": None if interval is None else 100.0 * interval[0],
                "misses_high_percent": None if interval is None else 100.0 * interval[1],
                "not_judged": m.not_judged,
                **{c: figures.get(c) for c in columns_of("latency", _NAMED_LATENCY)},
                "median_of_deadline": named.score(m, "median"), "p99_of_deadline": named.score(m, "p99"),
                "reason": m.reason,
            }
        )  # fmt: skip
    frame = NAMED.frame(rows)
    notes = [
        "misses: later than the deadline, or never arrived (lost, overwritten, not handled, or stopped by a callback"
        " that published nothing, unless the file says may_stop); "
        f"{format_confidence(CONFIDENCE)} interval of their share (Wilson), as if"
        " instances did not depend on each other, which they do: the truth is wider",
        "not judged: still on the way at the end, published before the two had met, or events missing there",
    ]
    notes += [f"{row['name']}: {row['route']}" for row in rows if row["route"] is not None]
    if (frame["link"] == INFERRED).any():
        notes.append("a path with link inferred rests on a guess: the latest message before the node published")
    notes += [f"{m.wanted.name}: not measured: {m.reason}" for m in p.measured if m.reason is not None]
    return Section(NAMED, frame, tuple(notes))


def _scores(p: Paths, measure: str) -> tuple[list[named.Measured], list[float | None], list[float]]:
    chosen = [m for m in p.measured if m.wanted.weight is not None]
    weights = [m.wanted.weight for m in chosen if m.wanted.weight is not None]
    return chosen, [named.score(m, measure) for m in chosen], weights


def _why_no_total(chosen: Sequence[named.Measured], scores: Sequence[float | None], measure: str) -> str:
    if not chosen:
        return "no path has a deadline"
    for m, s in zip(chosen, scores, strict=True):
        if s is None:
            if m.reason is not None:
                return f"{m.wanted.name} was not measured: {m.reason}"
            least = {"median": "2 instances", "p99": "100 instances", "misses": "an instance"}[measure]
            n = 0 if m.latency is None else len(m.latency)
            return f"{m.wanted.name}: {measure} needs {least} that arrived, and there {'is' if n == 1 else 'are'} {n}"
    return ""


_MEASURE_WORDS = {
    "median": "median latency / deadline",
    "p99": "p99 latency / deadline",
    "misses": "share of misses",
}


def _objective(p: Paths, baseline: Paths | None) -> Section:
    rows = []
    for measure in named.MEASURES:
        chosen, scores, weights = _scores(p, measure)
        value = named.total(scores, weights)
        row: dict[str, Any] = {
            "measure": measure, "what": _MEASURE_WORDS[measure], "paths": len(chosen), "weights": sum(weights),
            "total": value, "reason": None if value is not None else _why_no_total(chosen, scores, measure),
        }  # fmt: skip
        if baseline is not None:
            of_baseline, base_scores, base_weights = _scores(baseline, measure)
            before = named.total(base_scores, base_weights)
            row |= {"baseline_total": before, "ratio": value / before if value is not None and before else None}
            if before is None:
                text = f"baseline: {_why_no_total(of_baseline, base_scores, measure)}"
                row["reason"] = text if row["reason"] is None else f"{row['reason']}; {text}"
        rows.append(row)
    table = OBJECTIVE if baseline is not None else OBJECTIVE.without("baseline_total", "ratio")
    notes = ["sum of weight x score over all paths with a deadline / sum of their weights; smaller is better"]
    without = [m.wanted.name for m in p.measured if m.wanted.weight is None]
    if without:
        notes.append(f"without a deadline, and so in no objective: {', '.join(without)}")
    notes += [f"{row['measure']}: null because {row['reason']}" for row in rows if row["reason"] is not None]
    return Section(table, table.frame(rows), tuple(notes))


def _sensitivity(p: Paths) -> Section:
    rows = []
    for measure in named.MEASURES:
        chosen, scores, weights = _scores(p, measure)
        whole = named.total(scores, weights)
        for i, m in enumerate(chosen):
            for change, weight, value in named.changed_totals(scores, weights, i):
                shift = None if value is None or not whole else 100.0 * (value - whole) / whole
                rows.append(
                    {
                        "measure": measure, "name": m.wanted.name, "score": scores[i], "change": change,
                        "weight": weight, "total": value, "difference_percent": shift,
                    }
                )  # fmt: skip
    note = "what becomes of the total where the weight of one path changes, or the path is left out"
    return Section(SENSITIVITY, SENSITIVITY.frame(rows), (note if rows else "no path has a deadline",))


# Beside another trace -------------------------------------------------------------------------------------------------


def _side(followed: Followed, latency: dict[str, Any], misses: float | None) -> dict[str, Any]:
    percent = 100.0 * followed.complete.height / followed.set_out if followed.set_out else None
    figures = {f"latency_{s}_ns": latency[f"latency_{s}_ns"] for s in _SHORT}
    return {"n": latency["latency_n"], "complete_percent": percent, "misses_percent": misses, **figures}


def _sides_named(p: Paths) -> dict[str, dict[str, Any]]:
    """By what the file calls them, with the latency that the file asks for."""
    sides = {}
    for m in p.measured:
        if m.followed is not None and m.latency is not None:
            share = named.score(m, "misses")
            percent = None if share is None else 100.0 * share
            sides[m.wanted.name] = _side(m.followed, _statistics("latency", m.latency.to_numpy()), percent)
    return sides


def _sides_found(p: Paths) -> dict[str, dict[str, Any]]:
    return {told.name: _side(told.followed, told.figures, None) for told in p.told}


def _compared(p: Paths, baseline: Paths) -> Section:
    """Paths of the same name, named ones first; no verdict."""
    rows = []
    for a, b in ((_sides_named(p), _sides_named(baseline)), (_sides_found(p), _sides_found(baseline))):
        for name in dict.fromkeys((*a, *b)):
            x, y = a.get(name), b.get(name)
            row: dict[str, Any] = {"path": name}
            for prefix, side in (("", x), ("baseline_", y)):
                row |= {f"{prefix}{key}": value for key, value in (side or {}).items()}
            for s in _SHORT:
                one, other = row.get(f"latency_{s}_ns"), row.get(f"baseline_latency_{s}_ns")
                row[f"{s}_ratio"] = one / other if one is not None and other else None
            row["only_in"] = "this trace" if y is None else "the baseline" if x is None else "no"
            rows.append(row)
    note = (
        "ratio: this trace / baseline; no verdict: one trace of either is one trial of either, and how much trials"
        " of the same system differ cannot be seen in them"
    )
    frame = COMPARED.frame({name: row.get(name) for name in COMPARED.names} for row in rows)
    return Section(COMPARED, frame, (note,))
