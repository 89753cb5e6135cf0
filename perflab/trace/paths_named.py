"""Named paths in the message flow of a trace: which route each one is, its deadline misses, and objectives over all.

A path is one route through the graph. Where its names fit several, it is refused rather than guessed; where they fit
none, it is not measured, which makes every total that it belongs to unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from perflab.errors import BadInput
from perflab.statistics.proportion import wilson
from perflab.trace import names
from perflab.trace.flow import INFERRED, NOT_JUDGED, Flow, Followed, Route
from perflab.trace.paths_file import Wanted
from perflab.trace.quantiles import describe

CONFIDENCE = 0.95
MAX_ROUTES = 20
MAX_SEARCH = 200_000  # steps of a search
CHANGES = (-50, -10, 10, 50)  # of a weight, in per cent
# What is summed up, and how many instances it needs.
MEASURES = {
    "median": ("median latency / deadline", "2 instances"),
    "p99": ("p99 latency / deadline", "100 instances"),
    "misses": ("share of misses", "an instance"),
}
STATISTICS = ("min", "p50", "p90", "p99", "p99_9", "max", "mean")
_STOPPED = ("not_published", "not_used")


# Routes ---------------------------------------------------------------------------------------------------------------


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    none = "no message of it goes from a publisher to a subscription"
    return names.unknown(what, name, known, "on the ways of messages in the trace", none)


def name_error(path: Wanted, flow: Flow) -> tuple[str, str] | None:
    """Where the file has a name that is not in the trace, and what is wrong with it."""
    key, known = ("nodes", flow.nodes) if path.path.nodes is not None else ("topics", flow.topics)
    for place, name in enumerate(path.names):
        if not any(fnmatchcase(each, name) for each in known):
            return path.where(key, place), unknown_name(key[:-1], name, known)
    return None


def the_route(path: Wanted, flow: Flow) -> Route | None:
    """The route of a path; None where there is none. Raises BadInput where there are several."""
    routes = _routes(path, flow)
    if len(routes) > 1:
        shown = "; ".join(route.name for route in sorted(routes, key=lambda r: (len(r.edges), r.edges))[:3])
        many = f"{len(routes)}" if len(routes) <= MAX_ROUTES else f"more than {MAX_ROUTES}"
        more = "; …" if len(routes) > 3 else ""
        raise BadInput(
            f"{path.where()}: path {path.name!r} fits {many} ways through the graph ({shown}{more}); name what lies"
            " between, or the topics"
        )
    return routes[0] if routes else None


def _routes(path: Wanted, flow: Flow) -> list[Route]:
    """The routes that the names of a path fit: along messages that arrived, else also along edges where none did, else
    with the fewest inferred links.
    """
    edges = list(flow.edge.values())
    known = [e for e in edges if e["link"] != INFERRED]
    for tier in ([e for e in known if e["delivered"]], known, [e for e in edges if e["delivered"]]):
        found = list(_search(path, tier, flow))
        inferred = [sum(edge["link"] == INFERRED for edge in route.rows) for route in found]
        if found:
            return [route for route, n in zip(found, inferred, strict=True) if n == min(inferred)]
    return []


def _search(path: Wanted, edges: Sequence[dict[str, Any]], flow: Flow) -> Iterator[Route]:
    by_nodes, patterns = path.path.nodes is not None, path.names
    out: dict[int, list[dict[str, Any]]] = {}
    for edge in edges:
        out.setdefault(edge["from_vertex"], []).append(edge)

    def fits(name: str | None, place: int) -> bool:
        return name is not None and fnmatchcase(name, patterns[place])

    steps = n = 0
    for first in sorted(out):
        if by_nodes and not fits(flow.vertex[first]["node"], 0):
            continue
        # vertex, edges so far, vertices so far, how many names were met
        stack: list[tuple[int, tuple[int, ...], frozenset[int], int]] = [
            (first, (), frozenset((first,)), int(by_nodes))
        ]
        while stack:
            vertex, so_far, seen, met = stack.pop()
            for edge in out.get(vertex, ()):
                steps += 1
                if steps > MAX_SEARCH:
                    raise BadInput(
                        f"{path.where()}: path {path.name!r} fits too many ways through the graph; name more of what"
                        " lies between"
                    )
                target = edge["to_vertex"]
                name = flow.vertex[target]["node"] if by_nodes else edge["topic"]
                is_next = fits(name, met)
                # The tightest fit: what was just met does not come again before the next.
                if not is_next and (met == 0 or fits(name, met - 1)):
                    continue
                if target in seen and met + is_next < len(patterns):
                    continue
                longer = (*so_far, edge["edge"])
                if met + is_next == len(patterns):
                    yield Route(flow, longer, None, target in seen)
                    n += 1
                    if n > MAX_ROUTES:
                        return
                else:
                    stack.append((target, longer, seen | {target}, met + is_next))


# Figures --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A named path in one trace. `reason` says why it was not measured; then it has no figures."""

    wanted: Wanted
    reason: str | None = None
    followed: Followed | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)  # columns of perflab.trace.paths.NAMED, and latency_n

    @property
    def row(self) -> dict[str, Any]:
        """Of perflab.trace.paths.NAMED."""
        path, followed = self.wanted.path, self.followed
        route = {} if followed is None else {"route": followed.route.name, "link": followed.route.link}
        told = {"name": self.wanted.name, "weight": self.wanted.weight, "since": path.since, "until": path.until}
        figures = {name: value for name, value in self.figures.items() if name != "latency_n"}
        set_out = None if followed is None else followed.set_out
        return {**told, "deadline_ns": path.deadline, **route, "set_out": set_out, "reason": self.reason, **figures}

    def score(self, measure: str) -> float | None:
        """By a measure of MEASURES; dimensionless, smaller is better."""
        if measure == "misses":
            return self.figures["misses"] / self.figures["judged"] if "misses" in self.figures else None
        score: float | None = self.figures.get(f"{measure}_of_deadline")
        return score


def measure(wanted: Wanted, followed: Followed) -> Measured:
    """Latencies and misses of a path that was followed."""
    complete, deadline = followed.complete, wanted.path.deadline
    known = complete.filter(~pl.col("left_out"))
    begin = "due_ns" if wanted.path.since == "due" else "start_ns"
    end = "ended_ns" if wanted.path.until == "end" else "started_ns"
    latency = known.select(latency=pl.col(end) - pl.col(begin)).drop_nulls()
    stopped = followed.ended_by(*_STOPPED)
    lost = followed.set_out - complete.height - stopped - followed.ended_by(*NOT_JUDGED)
    never = lost + (0 if wanted.path.may_stop else stopped)
    reason = None
    if not followed.set_out:
        reason = "no message set out on it"
    elif latency.is_empty():
        if complete.height and known[begin].null_count() == known.height and begin == "due_ns":
            reason = "the trace does not say when its timer was due"
        elif complete.height and known.height and end == "ended_ns":
            reason = "the end of its last callback was never seen"
        elif not never:
            reason = "no instance of it came to its end, and none is known to have failed"
    if reason is not None:
        return Measured(wanted, reason, followed)
    judged = latency.height + never
    figures = describe(latency, [], {"latency": pl.col("latency")}, statistics=STATISTICS).row(0, named=True)
    figures |= {
        "judged": judged, "never_arrived": never, "stopped": stopped,
        "not_judged": followed.set_out - latency.height - lost - stopped,
    }  # fmt: skip
    if deadline is not None:
        late = latency.filter(pl.col("latency") > deadline).height
        ends = [100.0 * end for end in wilson(late + never, judged, CONFIDENCE) or ()]
        p50, p99 = figures["latency_p50_ns"], figures["latency_p99_ns"]
        figures |= {
            "late": late, "misses": late + never, "misses_percent": 100.0 * (late + never) / judged,
            **dict(zip(("misses_low_percent", "misses_high_percent"), ends, strict=True)),
            "median_of_deadline": None if p50 is None else p50 / deadline,
            "p99_of_deadline": None if p99 is None else p99 / deadline,
        }  # fmt: skip
    return Measured(wanted, None, followed, figures)


# Objectives -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """The paths with a deadline by one measure: their scores and weights."""

    measure: str
    paths: tuple[Measured, ...]

    @classmethod
    def of(cls, measure: str, measured: Sequence[Measured]) -> Objective:
        return cls(measure, tuple(path for path in measured if path.wanted.weight is not None))

    @property
    def scores(self) -> list[float | None]:
        return [path.score(self.measure) for path in self.paths]

    @property
    def weights(self) -> list[float]:
        return [path.wanted.weight or 0.0 for path in self.paths]

    @property
    def total(self) -> float | None:
        return total(self.scores, self.weights)

    @property
    def reason(self) -> str | None:
        """Why there is no total."""
        if not self.paths:
            return "no path has a deadline"
        for path, score in zip(self.paths, self.scores, strict=True):
            if score is None and path.reason is not None:
                return f"{path.wanted.name} was not measured: {path.reason}"
            if score is None:
                n = path.figures["latency_n"]
                needs = f"{self.measure} needs {MEASURES[self.measure][1]} that arrived"
                return f"{path.wanted.name}: {needs}, and there {'is' if n == 1 else 'are'} {n}"
        return None


def total(scores: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """The weighted mean; None where any is unknown."""
    known = [s for s in scores if s is not None]
    if len(known) < len(scores) or not known:
        return None
    return sum(s * w for s, w in zip(known, weights, strict=True)) / sum(weights)


def changed_totals(
    scores: Sequence[float | None], weights: Sequence[float], place: int
) -> Iterator[tuple[str, float | None, float | None]]:
    """What becomes of the total where the weight of one path changes: the change, the new weight, the new total."""
    for percent in CHANGES:
        new = [*weights[:place], weights[place] * (1 + percent / 100), *weights[place + 1 :]]
        yield f"{percent:+d} %", new[place], total(scores, new)
    rest = [*scores[:place], *scores[place + 1 :]]
    yield "left out", None, total(rest, [*weights[:place], *weights[place + 1 :]])
