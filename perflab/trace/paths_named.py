"""Named paths in the message flow of a trace: which route each one is, its deadline misses, and objectives over all.

A path is one route through the graph. Where its names fit several, it is refused rather than guessed; where they fit
none, it is not measured, which makes every total that it belongs to unknown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from perflab.errors import BadInput
from perflab.statistics.proportion import wilson
from perflab.trace.flow import INFERRED, NOT_JUDGED, Flow
from perflab.trace.flow_routes import Followed, Route, Words
from perflab.trace.paths_file import Wanted

CONFIDENCE = 0.95
MAX_ROUTES = 20
MAX_SEARCH = 200_000  # steps of a search
CHANGES = (-50, -10, 10, 50)  # of a weight, in per cent
MEASURES = ("median", "p99", "misses")
_STOPPED = ("not_published", "not_used")


# Names ----------------------------------------------------------------------------------------------------------------


def nodes_of(flow: Flow) -> list[str]:
    return sorted(set(flow.vertices["node"].drop_nulls().to_list()))


def topics_of(flow: Flow) -> list[str]:
    return sorted(set(flow.edges["topic"].drop_nulls().to_list()))


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    """ "no node '/sinc' in the trace; did you mean /sink?"."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif known:
        more = f" and {len(known) - 8} more" if len(known) > 8 else ""
        hint = f"there are {', '.join(known[:8])}{more}"
    else:
        hint = "no message of it goes from a publisher to a subscription"
    return f"no {what} {name!r} on the ways of messages in the trace; {hint}"


def check_names(wanted: Iterable[Wanted], flow: Flow) -> None:
    """Raises BadInput for the first name that is not in the trace, with its place in the file."""
    for path in wanted:
        error = name_error(path, flow)
        if error is not None:
            key, place, text = error
            raise BadInput(f"{path.where(key, place)}: {text}")


def name_error(path: Wanted, flow: Flow) -> tuple[str, int, str] | None:
    key = "nodes" if path.path.nodes is not None else "topics"
    known = nodes_of(flow) if key == "nodes" else topics_of(flow)
    for place, name in enumerate((path.path.nodes if key == "nodes" else path.path.topics) or ()):
        if not any(fnmatchcase(each, name) for each in known):
            return key, place, unknown_name(key[:-1], name, known)
    return None


# Routes ---------------------------------------------------------------------------------------------------------------


def routes_of(path: Wanted, flow: Flow, words: Words) -> list[Route]:
    """The routes that the names of a path fit: along messages that arrived, else also along edges where none did, else
    with the fewest inferred links.
    """
    edges = list(words.edges.values())
    arrived = [e for e in edges if e["link"] != INFERRED and e["delivered"]]
    tiers = (
        arrived,
        [e for e in edges if e["link"] != INFERRED],
        [*arrived, *(e for e in edges if e["link"] == INFERRED and e["delivered"])],
    )
    for tier in tiers:
        found = list(_search(path, tier, words))
        if found:
            fewest = min(_inferred(route, words) for route in found)
            return [route for route in found if _inferred(route, words) == fewest]
    return []


def _inferred(route: Route, words: Words) -> int:
    return sum(words.edges[number]["link"] == INFERRED for number in route.edges)


def _search(path: Wanted, edges: Sequence[Mapping[str, Any]], words: Words) -> Iterator[Route]:
    by_nodes = path.path.nodes is not None
    patterns = (path.path.nodes if by_nodes else path.path.topics) or []
    out: dict[int, list[Mapping[str, Any]]] = {}
    for edge in edges:
        out.setdefault(edge["from_vertex"], []).append(edge)

    def fits(edge: Mapping[str, Any], place: int) -> bool:
        name = words.vertices[edge["to_vertex"]]["node"] if by_nodes else edge["topic"]
        return name is not None and fnmatchcase(name, patterns[place])

    steps = 0
    n = 0
    for first in sorted(out):
        node = words.vertices[first]["node"]
        if by_nodes and (node is None or not fnmatchcase(node, patterns[0])):
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
                is_next = fits(edge, met)
                # The tightest fit: what was just met does not come again before the next.
                if not is_next and (met == 0 or fits(edge, met - 1)):
                    continue
                if target in seen and met + is_next < len(patterns):
                    continue
                longer = (*so_far, edge["edge"])
                if met + is_next == len(patterns):
                    yield Route(longer, None, target in seen)
                    n += 1
                    if n > MAX_ROUTES:
                        return
                else:
                    stack.append((target, longer, seen | {target}, met + is_next))


def the_route(path: Wanted, flow: Flow, words: Words) -> Route | None:
    """The route of a path; None where there is none. Raises BadInput where there are several."""
    routes = routes_of(path, flow, words)
    if len(routes) > 1:
        shown = "; ".join(words.route(route) for route in sorted(routes, key=lambda r: (len(r.edges), r.edges))[:3])
        many = f"{len(routes)}" if len(routes) <= MAX_ROUTES else f"more than {MAX_ROUTES}"
        more = "; …" if len(routes) > 3 else ""
        raise BadInput(
            f"{path.where()}: path {path.name!r} fits {many} ways through the graph ({shown}{more}); name what lies"
            " between, or the topics"
        )
    return routes[0] if routes else None


# Figures --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A named path in one trace. `reason` says why it was not measured; then all figures are None."""

    wanted: Wanted
    reason: str | None = None
    followed: Followed | None = None
    latency: pl.Series | None = None  # ns, of the instances that came to their end and whose latency is known
    never_arrived: int | None = None
    stopped: int | None = None  # of set out: a callback chose not to publish
    not_judged: int | None = None

    @property
    def late(self) -> int | None:
        deadline = self.wanted.path.deadline
        return None if self.latency is None or deadline is None else int((self.latency > deadline).sum())

    @property
    def judged(self) -> int | None:
        return None if self.latency is None or self.never_arrived is None else len(self.latency) + self.never_arrived

    @property
    def misses(self) -> int | None:
        return None if self.late is None or self.never_arrived is None else self.late + self.never_arrived

    @property
    def miss_interval(self) -> tuple[float, float] | None:
        return None if self.misses is None or not self.judged else wilson(self.misses, self.judged, CONFIDENCE)


def measure(wanted: Wanted, followed: Followed) -> Measured:
    """Latencies and misses of a path that was followed."""
    complete = followed.complete
    known = complete.filter(~pl.col("left_out"))
    begin = "due_ns" if wanted.path.since == "due" else "start_ns"
    end = "ended_ns" if wanted.path.until == "end" else "started_ns"
    latency = (known[end] - known[begin]).drop_nulls()
    stopped = followed.ended_by(*_STOPPED)
    lost = int(followed.ended.filter(~pl.col("reason").is_in([*NOT_JUDGED, *_STOPPED]))["n"].sum())
    never = lost + (0 if wanted.path.may_stop else stopped)
    reason = None
    if not followed.set_out:
        reason = "no message set out on it"
    elif not len(latency):
        if complete.height and known[begin].null_count() == known.height and begin == "due_ns":
            reason = "the trace does not say when its timer was due"
        elif complete.height and known.height and end == "ended_ns":
            reason = "the end of its last callback was never seen"
        elif not never:
            reason = "no instance of it came to its end, and none is known to have failed"
    if reason is not None:
        return Measured(wanted, reason, followed)
    not_judged = followed.set_out - len(latency) - lost - stopped
    return Measured(wanted, None, followed, latency, never, stopped, not_judged)


# Objectives -----------------------------------------------------------------------------------------------------------


def score(measured: Measured, what: str) -> float | None:
    """Dimensionless, smaller is better: median or p99 of the latency over the deadline, or the share of misses."""
    from perflab.trace.quantiles import quantile

    deadline = measured.wanted.path.deadline
    if measured.latency is None or deadline is None:
        return None
    if what == "misses":
        return None if not measured.judged or measured.misses is None else measured.misses / measured.judged
    per_mille = 500 if what == "median" else 990
    value = pl.DataFrame({"x": measured.latency}).select(quantile(pl.col("x"), per_mille)).item()
    return None if value is None else float(value) / deadline


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
