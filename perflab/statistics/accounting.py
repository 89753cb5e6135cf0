"""The fate of every message: publishers and subscriptions of a trial compared, edge by edge.

An edge is one (publisher, topic, subscription). A publisher's measured messages are numbered without holes from its
`first_sequence`; per edge, what it sent is either received or missing, and what is missing is missing

- before the first received: `gap` where the edge was matched at the start, else `pre_match`;
- between the first and the last received: `gap`, as counted by the subscription;
- after the last received: `tail`; so is everything where nothing was received (`pre_match` where never matched).

Conservation: sent = received + pre_match + gap + tail. Duplicates are separate; a reordered message was received.

A subscription with a content filter is sent only matching messages, which publishers count and number for each filter;
others are `filtered`, and neither lost nor received: published = sent + filtered. So a matching message that did not
arrive is found like any other.

A client of a service counts its requests as a publisher its messages, and its replies as an edge its received messages;
the same rules apply, and they are kept apart from topics. For an action, the same holds for requests to its server; its
feedback is an edge to each client, on which the server numbers what goes to that client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perflab.results.trial import added
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram

EDGE_HISTOGRAMS = ("latency", "response", "dispatch", "work", "deserialize")
PUBLISHER_HISTOGRAMS = ("publish_delay", "publish_call", "serialize")
PERIOD_HISTOGRAMS = ("period", "period_jitter")  # for publishers driven by a timer or a cyclic reaction

PublisherKey = tuple[str, str]
EdgeKey = tuple[str, str, str]
ServiceKey = tuple[str, str, str]


# Fields of publishers and edges in a checkpoint, and those that accounts add.
PUBLISHER_COUNTS = ("sent", "not_sent", "write_errors", "warmup_sent", "first_sequence")
_EDGE_COUNTS = (
    "received", "first_sequence", "highest_sequence", "gap", "reordered", "duplicate", "beyond_window",
    "warmup_received", "on_time", "late", "too_late",
)  # fmt: skip
_CONTINUED = ("reordered", "beyond_window", "warmup_received", "on_time", "late", "too_late")
_ACCOUNTED = ("sent", "pre_match", "tail")


class AccountingError(ValueError):
    """The records cannot be read as accounts: something is missing, or occurs twice."""


@dataclass(frozen=True)
class Publisher:
    """What one publisher of a trial did in the measured part; None if the recorder could not know it."""

    node: str
    topic: str
    sent: int | None
    not_sent: int | None
    write_errors: int | None
    warmup_sent: int | None
    first_sequence: int | None
    histograms: dict[str, Histogram | None]
    final: bool
    wanted: Mapping[str, int] = field(default_factory=dict)
    """How many of `sent` pass the content filters of its subscriptions, by their expressions."""

    @property
    def key(self) -> PublisherKey:
        return self.node, self.topic

    @property
    def words(self) -> str:
        return f"publisher {self.node} {self.topic}"


@dataclass(frozen=True)
class Edge:
    """What one subscription received from one publisher, and what is missing.

    `sent`, `filtered`, `pre_match`, `gap` and `tail` are None if the last report of a side is missing; other counts if
    the recorder could not know them: a trace has neither sequence numbers nor periods.
    """

    publisher: str
    topic: str
    subscription: str
    size_bytes: int | None
    frequency_hz: float | None
    sent: int | None
    received: int
    first_sequence: int | None
    highest_sequence: int | None
    pre_match: int | None
    gap: int | None
    tail: int | None
    reordered: int | None
    duplicate: int | None
    beyond_window: int | None
    warmup_received: int | None
    on_time: int | None
    late: int | None
    too_late: int | None
    histograms: dict[str, Histogram | None]
    final: bool
    filter: str | None = None
    """Filter of the subscription: `sent` are the matching messages, and sequences are their numbers among these."""
    filtered: int | None = None
    """Published, but rejected by the filter."""

    @property
    def key(self) -> EdgeKey:
        return self.publisher, self.topic, self.subscription

    @property
    def words(self) -> str:
        return f"edge {self.publisher} -> {self.subscription} on {self.topic}"


@dataclass(frozen=True)
class Service:
    """One client's requests to one service, and the replies that it received; losses are listed with the replies.

    Node and publisher are the client, the topic is the service, and the subscription is the server.
    """

    requests: Publisher
    replies: Edge
    answers: Mapping[str, int] = field(default_factory=dict)
    """For a part of an action: the contents of replies, and how often."""

    @property
    def key(self) -> ServiceKey:
        """Client, service, server."""
        return self.replies.key

    @property
    def words(self) -> str:
        return _service_words(self.key)


@dataclass(frozen=True)
class Accounts:
    """All publishers, edges and services of one trial.

    `complete`: every process wrote its final checkpoint, and everything adds up. `problems`: contradictions, one line
    each, with the name of the edge or publisher; such a trial must not be trusted.
    """

    publishers: tuple[Publisher, ...]
    edges: tuple[Edge, ...]
    complete: bool
    problems: tuple[str, ...]
    foreign_messages: int
    malformed_messages: int
    services: tuple[Service, ...] = ()


def account(
    checkpoints: Sequence[Mapping[str, Any] | None],
    expected_edges: Iterable[EdgeKey] = (),
    expected_services: Iterable[ServiceKey] = (),
    *,
    matched_at_start: bool = True,
    drained: bool = True,
    earlier: Sequence[Mapping[str, Any] | None] = (),
) -> Accounts:
    """Joins the last checkpoints of all processes of a trial (None for a process that wrote none).

    `earlier` are the last checkpoints of processes that crashed and came back: their messages come before those of
    their successors on the same edges, and messages missing between the two are a gap.

    `expected_edges` are those of the graph: one without a checkpoint has lost everything if the trial is complete, and
    is left out if not; a service that is only in the graph contradicts a complete trial. In a trial that was ended
    before it was `drained`, missing messages at the end may still have been under way, so they are unknown. An edge
    with contradictory counts keeps only its own view. Raises AccountingError.
    """
    publishers, edges, services = _recorded(checkpoints, drained=drained)
    before = {edge.key: edge for edge in _recorded(earlier)[1]}
    edges = [_continued(before[edge.key], edge) if edge.key in before else edge for edge in edges]
    complete = _all_final(checkpoints) and all(c is not None for c in earlier) and drained
    counts = Counter(owner.words for owners in (publishers, edges, services) for owner in owners)
    if (twice := next((words for words, n in counts.items() if n > 1), None)) is not None:
        raise AccountingError(f"{twice} is recorded twice")
    if complete:
        recorded = {edge.key for edge in edges}
        edges += [_silent_edge(key) for key in expected_edges if key not in recorded]
    by_key = {p.key: p for p in publishers}
    problems = _damaged([*publishers, *edges])
    joined = [_joined(e.words, e, by_key.get((e.publisher, e.topic)), matched_at_start, problems) for e in edges]
    problems += _damaged(services)
    answered = [
        replace(s, replies=_joined(s.words, s.replies, s.requests, matched_at_start, problems)) for s in services
    ]
    problems += [
        f"{_service_words(key)} is in the graph, but its client recorded nothing about it"
        for key in (expected_services if complete else ())
        if key not in {service.key for service in services}
    ]
    known = [c for c in checkpoints if c is not None]
    if (unwanted := sum(int(c.get("unwanted_messages", 0)) for c in known)) > 0:
        problems.append(
            f"{unwanted} messages were received although the content filters of their subscriptions reject them"
        )
    return Accounts(
        publishers=tuple(publishers),
        edges=tuple(joined),
        complete=complete and not problems,
        problems=tuple(problems),
        foreign_messages=sum(int(c.get("foreign_messages", 0)) for c in known),
        malformed_messages=sum(int(c.get("malformed_messages", 0)) for c in known),
        services=tuple(answered),
    )


def missed_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """How many messages no edge of a process received between the last one before its crash and the first one after it.

    For edges that received messages in both lives. Raises AccountingError.
    """
    first = {edge.key: edge for edge in _recorded([before])[1]}
    pairs = [(first[edge.key], edge) for edge in _recorded([after])[1] if edge.key in first]
    return sum(max(0, _distance(one, other)) for one, other in pairs)


def _distance(before: Edge, after: Edge) -> int:
    """Numbers between the last message of one and the first of the other; negative if some reached both."""
    if before.highest_sequence is None or after.first_sequence is None:
        return 0
    return after.first_sequence - before.highest_sequence - 1


def _continued(before: Edge, after: Edge) -> Edge:
    """The edge of a process that crashed and came back, over both of its lives."""
    if not before.received or not after.received:
        one, other = (before, after) if before.received else (after, before)
        return replace(
            one, final=after.final, warmup_received=added((one.warmup_received, other.warmup_received)),
        )  # fmt: skip
    twice = max(0, -_distance(before, after))  # messages that the new one received again
    counts: dict[str, Any] = {name: added((getattr(before, name), getattr(after, name))) for name in _CONTINUED}
    histograms = {
        name: hg.merge([h for h in (before.histograms.get(name), after.histograms.get(name)) if h is not None])
        if before.histograms.get(name) is not None or after.histograms.get(name) is not None
        else None
        for name in after.histograms
    }
    return replace(
        after,
        **counts,
        received=before.received + after.received - twice,
        first_sequence=before.first_sequence,
        gap=added((before.gap, after.gap, max(0, _distance(before, after)))),
        duplicate=added((before.duplicate, after.duplicate, twice)),
        histograms=histograms,
    )


def counted(checkpoints: Sequence[Mapping[str, Any] | None]) -> Accounts:
    """The accounts of checkpoints whose edges already have their sent and lost counts: those made from a trace.

    Raises AccountingError.
    """
    publishers, edges, _ = _recorded(checkpoints, (*_EDGE_COUNTS, *_ACCOUNTED))
    problems = _damaged([*publishers, *edges])
    complete = _all_final(checkpoints) and not problems
    return Accounts(tuple(publishers), tuple(edges), complete, tuple(problems), 0, 0)


def _recorded(
    checkpoints: Sequence[Mapping[str, Any] | None], counts: Sequence[str] = _EDGE_COUNTS, *, drained: bool = True
) -> tuple[list[Publisher], list[Edge], list[Service]]:
    """The checkpoints' data, with these counts of edges. Raises AccountingError."""
    known = [(c, drained and bool(c.get("final"))) for c in checkpoints if c is not None]
    try:
        return (
            [_publisher(p, final) for c, final in known for p in c["publishers"]],
            [_edge(e, final, counts) for c, final in known for e in c["edges"]],
            [_service(s, final) for c, final in known for s in c.get("services", ())],
        )
    except (KeyError, TypeError) as error:
        raise AccountingError(f"a checkpoint lacks {error}") from error
    except hg.HistogramError as error:
        raise AccountingError(str(error)) from error


def _all_final(checkpoints: Sequence[Mapping[str, Any] | None]) -> bool:
    return bool(checkpoints) and all(c is not None and c.get("final") for c in checkpoints)


def _damaged(owners: Sequence[Publisher | Edge | Service]) -> list[str]:
    """Errors in the histograms of final checkpoints, which were written at rest, so that their counts must match."""
    problems = []
    for owner in owners:
        for part in (owner.requests, owner.replies) if isinstance(owner, Service) else (owner,):
            for name, histogram in part.histograms.items() if part.final else ():
                try:
                    if histogram is not None:
                        hg.check(histogram)
                except hg.HistogramError as error:
                    problems.append(f"{owner.words}: {name}: {error}")
    return problems


def _joined(words: str, edge: Edge, publisher: Publisher | None, matched: bool, problems: list[str]) -> Edge:
    """Like _join(); contradictions are added to the problems."""
    whole, problem = _join(edge, publisher, matched)
    if problem is not None:
        problems.append(f"{words} does not add up: {problem}")
    return whole


def _join(edge: Edge, publisher: Publisher | None, matched: bool) -> tuple[Edge, str | None]:
    """The edge with its publisher's sent count and every missing message accounted for; or the contradiction."""
    own_view = replace(edge, sent=None, filtered=None, pre_match=None, tail=None)
    if publisher is None or not (publisher.final and edge.final):
        # One side was still running, or was killed, at the other's last report.
        return own_view, None
    if edge.filter is None:
        edge = replace(edge, filtered=0)
    else:
        wanted = publisher.wanted.get(edge.filter)
        if wanted is None or publisher.sent is None or wanted > publisher.sent:
            return own_view, f"{publisher.sent} sent, of which {wanted} pass the content filter {edge.filter!r}"
        edge = replace(edge, filtered=publisher.sent - wanted)
        publisher = replace(publisher, sent=wanted, first_sequence=0)
    if not publisher.sent or publisher.first_sequence is None:
        if edge.received:
            return own_view, f"{edge.received} received from a publisher that sent none"
        return replace(edge, sent=0, pre_match=0, gap=0, tail=0), None
    if edge.received == 0:
        # Nothing arrived, so nothing lies between: everything is missing at the end, or was never expected.
        pre_match, tail = (0, publisher.sent) if matched else (publisher.sent, 0)
        return replace(edge, sent=publisher.sent, pre_match=pre_match, gap=0, tail=tail), None
    if edge.first_sequence is None or edge.highest_sequence is None or edge.gap is None:
        return own_view, f"{edge.received} received without sequence numbers"
    head = edge.first_sequence - publisher.first_sequence
    tail = publisher.first_sequence + publisher.sent - 1 - edge.highest_sequence
    pre_match, gap = (0, edge.gap + head) if matched else (head, edge.gap)
    if head < 0 or tail < 0 or publisher.sent != edge.received + pre_match + gap + tail:
        return own_view, (
            f"{publisher.sent} sent from {publisher.first_sequence} on, {edge.received} received from "
            f"{edge.first_sequence} to {edge.highest_sequence}, {edge.gap} missing between them"
        )
    return replace(edge, sent=publisher.sent, pre_match=pre_match, gap=gap, tail=tail), None


def _service(record: Mapping[str, Any], final: bool) -> Service:
    client, service, server = record["client"], record["service"], record["server"]
    return Service(
        requests=_publisher({**record["requests"], "node": client, "topic": service}, final),
        replies=_edge({**record["replies"], "publisher": client, "topic": service, "subscription": server}, final),
        answers=dict(record.get("answers", {})),
    )


def _service_words(key: ServiceKey) -> str:
    client, service, server = key
    return f"service {service} of {client} at {server}"


def _publisher(record: Mapping[str, Any], final: bool) -> Publisher:
    return Publisher(
        **_picked(record, ("node", "topic")),
        **_counts(record, PUBLISHER_COUNTS),
        histograms=_histograms(record, (*PUBLISHER_HISTOGRAMS, *PERIOD_HISTOGRAMS)),
        final=final,
        wanted=dict(record.get("wanted", {})),
    )


def _edge(record: Mapping[str, Any], final: bool, counts: Sequence[str] = _EDGE_COUNTS) -> Edge:
    return Edge(
        **_picked(record, ("publisher", "topic", "subscription", "size_bytes", "frequency_hz")),
        **{**dict.fromkeys(_ACCOUNTED), **_counts(record, counts)},
        histograms=_histograms(record, EDGE_HISTOGRAMS),
        final=final,
        filter=record.get("filter"),
    )


def _picked(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: record[name] for name in names}


def _counts(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: None if record[name] is None else int(record[name]) for name in names}


def _silent_edge(key: EdgeKey) -> Edge:
    """An edge without a checkpoint."""
    names = dict(zip(("publisher", "topic", "subscription"), key, strict=True))
    unknown = dict.fromkeys(("size_bytes", "frequency_hz", "first_sequence", "highest_sequence"))
    edge = _edge({**dict.fromkeys(_EDGE_COUNTS, 0), **names, **unknown}, final=True)
    return replace(edge, histograms=edge.histograms | {"latency": hg.empty(), "response": hg.empty()})


def _histograms(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Histogram | None]:
    return dict(zip(names, hg.from_each([record.get(name) for name in names]), strict=True))
