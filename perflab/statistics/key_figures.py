"""Key figures: the figures by which a graph declares that it is judged (docs/reference_graph.md), as numbers of trials
and results.

- path: the response at the end of the path, i.e. the age of its oldest input; and how many updates did not arrive.
Possible updates are counted along the path: a transform sends as many as it receives, a fusion as many as its slowest
input;
- lost: messages lost on some topics, or on all;
- jitter: the deviation of the intervals between a node's publications from its period.

They are computed from what edges and publishers record in any case, so they cost nothing.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perflab import models
from perflab.errors import BadInput
from perflab.results.figure import (
    OF_A_TRIAL,
    Distribution,
    JitterFigure,
    KeyFigureResult,
    LostFigure,
    OwnFigure,
    OwnTimes,
    PathFigure,
    know,
)
from perflab.results.summary import Summary
from perflab.results.trial import Result, added
from perflab.statistics import metrics
from perflab.statistics.accounting import Accounts, Edge, EdgeKey, Publisher, PublisherKey
from perflab.statistics.histogram import Histogram
from perflab.statistics.metrics import METRICS, Metric

PATH, LOST, JITTER, VALUE, TIMES = metrics.PATH, metrics.LOST, metrics.JITTER, metrics.VALUE, metrics.TIMES

# Columns in tables for each kind.
SHOWN = {
    PATH: ("mean", "p50", "p99", "max", "missed"),
    LOST: ("", "share"),
    JITTER: ("mean", "p50", "p99", "max"),
    VALUE: ("",),
    TIMES: ("mean", "p50", "p99", "max"),
}
OVER_FLOOR = ("p50", "p99")  # for times with a floor: compared with it
Trials = Sequence[tuple[Accounts, int | None]]
Merged = Callable[[Sequence[tuple[Edge | Publisher, int | None]], str], Distribution | None]
_LOST_CLASSES = ("pre_match", "gap", "tail")


@dataclass(frozen=True)
class Pace:
    """How many messages a publisher sends if nothing is lost: its own count, or the count derived from its inputs."""

    publisher: PublisherKey | None = None  # if a timer or a cyclic reaction sends
    slowest: bool = False  # of a fusion
    inputs: tuple[Pace, ...] = ()

    def of(self, sent: Mapping[PublisherKey, int | None]) -> int | None:
        """None if a source's count is unknown."""
        if self.publisher is not None:
            return sent.get(self.publisher)
        counts = [pace.of(sent) for pace in self.inputs]
        known = [n for n in counts if n is not None]
        if len(known) != len(counts):
            return None
        return min(known, default=0) if self.slowest else sum(known)


@dataclass(frozen=True)
class KeyFigure:
    """A key figure that a graph declares. Names in the form of records: "/lidar", ("/lidar", "/points",
    "/detector")."""

    name: str
    kind: str
    begins: tuple[str, ...] = ()  # of a path
    ends: str = ""
    edges: tuple[EdgeKey, ...] = ()
    paces: tuple[Pace, ...] = ()  # for these edges
    topics: tuple[str, ...] | None = None  # topics whose losses count; None: all
    publishers: tuple[PublisherKey, ...] = ()  # of a jitter
    periods_ns: tuple[int, ...] = ()  # for these publishers
    own: OwnFigure | OwnTimes | None = None  # from the workload's kind, without a value

    def at_rate(self, rate: float) -> KeyFigure:
        """The same for a graph all of whose timers and cyclic reactions fire this many times as often."""
        return replace(self, periods_ns=tuple(round(period / rate) for period in self.periods_ns))

    @property
    def words(self) -> str:
        """A short description."""
        if self.own is not None:
            return self.own.words
        if self.kind == PATH:
            return f"response from {' and '.join(map(_short, self.begins))} to {_short(self.ends)}"
        if self.kind == LOST:
            return f"messages lost on {'all topics' if self.topics is None else ', '.join(map(_short, self.topics))}"
        return f"jitter of {' and '.join(dict.fromkeys(_short(node) for node, _ in self.publishers))}"


def declared(graph: Mapping[str, Any]) -> tuple[KeyFigure, ...]:
    """The key figures of a resolved graph, in its order, and of the kind of workload that made it.

    Raises BadInput if one has the name of a metric.
    """
    pace = _paces(graph)
    own = {name: _own(figure) for name, figure in (graph.get("own_figures") or {}).items()}
    for name, declared_by_kind in own.items():
        if isinstance(declared_by_kind, OwnFigure):
            know(name, declared_by_kind)
    figures = (
        *(_figure(written, pace) for written in graph.get("key_figures") or ()),
        *(KeyFigure(name, figure.kind, own=figure) for name, figure in own.items()),
    )
    taken = {name.partition(".")[0] for name in METRICS}
    if (figure := next((f for f in figures if f.name in taken), None)) is not None:
        raise BadInput(f"key_figures: {figure.name!r} is a metric of every graph; give the key figure another name")
    return figures


def _own(written: Mapping[str, Any]) -> OwnFigure | OwnTimes:
    declared = {key: value for key, value in written.items() if key not in OF_A_TRIAL}
    return models.read(OwnTimes, declared) if declared.get("kind") == TIMES else models.read(OwnFigure, declared)


def kinds(figures: Iterable[KeyFigure]) -> dict[str, str]:
    """By name, as metrics are looked up."""
    return {figure.name: figure.kind for figure in figures}


def kinds_in(*summaries: Summary) -> dict[str, str]:
    """The same, for the results of summaries."""
    found = [result.key_figures for summary in summaries for result in summary.results]
    return {name: entry.kind for figures in found for name, entry in figures.items()}


def metrics_of(figure: KeyFigure) -> list[Metric]:
    """All metrics of a figure, and its ratios to its floor."""
    names = metrics.made_by({figure.name: figure.kind})
    if isinstance(figure.own, OwnTimes) and figure.own.floor is not None:
        names += [metrics.over_floor(figure.name, figure.own.floor, statistic) for statistic in OVER_FLOOR]
    found = [metrics.find(name) for name in names]
    return [metric for metric in found if metric is not None]


def of_trials(
    figures: Sequence[KeyFigure],
    trials: Trials,
    merged: Merged,
    own: Sequence[Mapping[str, float | None]],
    own_times: Sequence[tuple[Mapping[str, Histogram], int | None]] = (),
    distribution: Callable[[Sequence[tuple[Histogram, int | None]]], Distribution | None] = lambda _: None,
) -> dict[str, KeyFigureResult]:
    """Their numbers over some trials, each with the start of its measured part, by name.

    `merged` merges a histogram of some edges or publishers into one distribution. `own` and `own_times` are each
    trial's values from the workload's kind, and `distribution` makes one of the latter.
    """
    made: dict[str, KeyFigureResult] = {}
    for figure in figures:
        if isinstance(figure.own, OwnTimes):
            parts = [(times[figure.name], started) for times, started in own_times if figure.name in times]
            made[figure.name] = replace(figure.own, of_ns=distribution(parts))
        elif figure.own is None:
            made[figure.name] = _MAKE[figure.kind](figure, trials, merged)
        else:
            known = [value for values in own if (value := values.get(figure.name)) is not None]
            made[figure.name] = replace(figure.own, value=statistics.median(known) if known else None)
    return made


def with_medians(result: Result, figures: Sequence[KeyFigure], confidence: float) -> Result:
    """With the median over trials of every metric of its figures."""
    from perflab.statistics import findings  # scipy takes a second to import

    found = {
        figure.name: replace(entry, metrics=findings.intervals(result, metrics_of(figure), confidence))
        for figure in figures
        if (entry := result.key_figures.get(figure.name)) is not None
    }
    return replace(result, key_figures={**result.key_figures, **found})


# ---- numbers


def _path(figure: KeyFigure, trials: Trials, merged: Merged) -> PathFigure:
    chosen = [(e, started) for a, started in trials for e in a.edges if e.key in figure.edges]
    # In a trial that was ended before all updates could arrive, the number of possible ones is unknown.
    sent = [{p.key: p.sent for p in a.publishers} if a.complete else None for a, _ in trials]
    possible = [None if counts is None else added([pace.of(counts) for pace in figure.paces]) for counts in sent]
    arrived = [sum(e.received for e in a.edges if e.key in figure.edges) for a, _ in trials]
    missed = [None if n is None else max(0, n - came) for n, came in zip(possible, arrived, strict=True)]
    return PathFigure(
        words=figure.words,
        from_=tuple(map(_short, figure.begins)),
        to=_short(figure.ends),
        edges=tuple(tuple(map(_short, key)) for key in figure.edges),
        response_ns=merged(chosen, "response"),
        possible=added(possible),
        arrived=sum(arrived) if trials else None,
        missed=added(missed),
    )


def _lost(figure: KeyFigure, trials: Trials, merged: Merged) -> LostFigure:
    chosen = [e for a, _ in trials for e in a.edges if figure.topics is None or e.topic in figure.topics]
    lost = added([getattr(edge, name) for edge in chosen for name in _LOST_CLASSES])
    sent = added([edge.sent for edge in chosen])
    return LostFigure(
        words=figure.words,
        topics=None if figure.topics is None else tuple(map(_short, figure.topics)),
        sent=sent,
        lost=lost,
        share_percent=100 * lost / sent if lost is not None and sent else None,
    )


def _jitter(figure: KeyFigure, trials: Trials, merged: Merged) -> JitterFigure:
    chosen = [(p, started) for a, started in trials for p in a.publishers if p.key in figure.publishers]
    return JitterFigure(
        words=figure.words,
        publishers=tuple(tuple(map(_short, key)) for key in figure.publishers),
        periods_ns=figure.periods_ns,
        jitter_ns=merged(chosen, "period_jitter"),
        # Several periods have no common value.
        period_ns=merged(chosen, "period") if len(set(figure.periods_ns)) == 1 else None,
    )


_MAKE: Mapping[str, Callable[[KeyFigure, Trials, Merged], KeyFigureResult]] = {
    PATH: _path,
    LOST: _lost,
    JITTER: _jitter,
}


def _short(qualified: str) -> str:
    """A name in the form of a graph file: relative to the root namespace."""
    return qualified.removeprefix("/")


# ---- declarations


def _figure(written: Mapping[str, Any], pace: Callable[[PublisherKey], Pace]) -> KeyFigure:
    name, kind = str(written["name"]), str(written["kind"])
    if kind == PATH:
        edges = tuple((str(p), str(t), str(s)) for p, t, s in written["edges"])
        made = tuple(pace((p, t)) for p, t, _ in edges)
        return KeyFigure(name, kind, tuple(written["from"]), str(written["to"]), edges, made)
    if kind == LOST:
        topics = written["topics"]
        return KeyFigure(name, kind, topics=None if topics is None else tuple(topics))
    if kind == JITTER:
        sources = written["publishers"]
        return KeyFigure(
            name,
            kind,
            publishers=tuple((str(s["node"]), str(s["topic"])) for s in sources),
            periods_ns=tuple(int(s["period_ns"]) for s in sources),
        )
    raise ValueError(f"the key figure {name} is of an unknown kind, {kind}")


def _paces(graph: Mapping[str, Any]) -> Callable[[PublisherKey], Pace]:
    """The periods of the publishers of a resolved graph."""
    nodes: dict[str, Mapping[str, Any]] = {}
    on_topic: dict[str, list[PublisherKey]] = {}
    for process in graph["processes"] if graph.get("key_figures") else ():
        for node in process["nodes"]:
            name = f"{node['namespace'].rstrip('/')}/{node['name']}"
            nodes[name] = node
            for publisher in node["publishers"]:
                on_topic.setdefault(publisher["topic"], []).append((name, publisher["topic"]))

    @functools.cache
    def pace(key: PublisherKey) -> Pace:
        node = nodes[key[0]]
        index = next(i for i, p in enumerate(node["publishers"]) if p["topic"] == key[1])
        reactions = [r for r in node["reactions"] if index in r["publish"]]
        if not reactions or any(r["kind"] == "cyclic" for r in reactions):
            return Pace(key)
        made = []
        for reaction in reactions:
            topics = [node["subscriptions"][i]["topic"] for i in reaction["on"]]
            inputs = tuple(Pace(inputs=tuple(map(pace, on_topic.get(topic, ())))) for topic in topics)
            made.append(Pace(slowest=reaction["kind"] == "fusion", inputs=inputs))
        return Pace(inputs=tuple(made))

    return pace
