"""adaptive_throttling: publishers send less when the readers of their messages fall behind.

Readers acknowledge every n-th handled message, with the time when it was due. The publisher's timer judges the
acknowledgements at each interval: if they are too late or too few, it multiplies its rate by a factor below 1; else it
adds a share of the full rate. TCP does the same (additive increase, multiplicative decrease); native/graph/throttle.h
is the controller.

Example:
    --condition message_flood:rate=2000,readers=inside --mitigation adaptive_throttling:target=20ms
"""

from __future__ import annotations

import copy
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from perflab.condition import Applied, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition.evidence import rounded
from perflab.condition.message_flood import NAME as FLOOD
from perflab.errors import BadInput, instead
from perflab.formats import records
from perflab.formats.records import RecordError
from perflab.host import Host
from perflab.mitigation import Mitigation
from perflab.parameters import DurationNs, Names, Percent
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_duration, plural
from perflab.workload import Graph, extend, qualified_name

NAME = "adaptive_throttling"
NAMESPACE = f"/perflab/{NAME}"
ACKNOWLEDGEMENT, ITS_BYTES = "stamped10b", 10
# Acknowledgements must not hold back the reader that sends them.
QOS = {**extend.DEFAULT_QOS, "reliability": "best_effort", "depth": 100}
LATEST_STEPS = 3  # intervals that may be missing at the end: a slow publisher judges only at its next message
WRITTEN_WITHIN_S = 5.0  # processes write their throttles' records every second, later on a busy machine
LOOK_S = 0.2

Publishers = Annotated[int, Shown("throttled publishers")]
Held = Annotated[float | None, Shown("messages withheld", "%")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    publishers: Publishers
    """Publishers whose timers are throttled; 0: none, as in a trial without a flood."""
    full_rate_hz: float | None
    """Messages per second of all of them at their timers' rates; null: none are throttled."""
    target_ms: float
    """Age at which an acknowledged message is late."""
    readers: int
    """Subscriptions that acknowledge their messages."""
    watched: int
    """Subscriptions of the workload whose messages' age counts as well."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """As recorded by the throttles."""

    publishers: Publishers
    """Publishers whose throttle judged until the end of the measured part."""
    withheld: int | None = None
    """Messages that were due in the measured part and not sent; null: no publisher is throttled, likewise below."""
    withheld_percent: Held = None
    """Share of the messages that were due."""
    lowest_rate_hz: float | None = None
    """The lowest rate of a publisher."""
    decreases: int | None = None
    """How often a rate was lowered."""
    acknowledged: int | None = None
    """Messages that readers acknowledged, for the slowest reader of each publisher."""
    worst_age_ms: float | None = None
    """Age of the oldest acknowledged message."""
    rate_in_second: tuple[float | None, ...] = ()
    """Messages per second that all throttles together permit at most, by second; null: none judged in that second."""


@dataclass(frozen=True, kw_only=True)
class ThrottlingEvidence(Evidence):
    promised: Promised
    achieved: Achieved
    notes: tuple[str, ...] = ()
    """What its evidence must contain."""


class AdaptiveThrottling(Mitigation):
    """Makes readers of floods acknowledge, and floods listen."""

    name: ClassVar[str] = NAME
    evidence: ClassVar[type[Evidence]] = ThrottlingEvidence
    ends_by_schedule: ClassVar[bool] = True

    target: DurationNs = Field(
        "50ms",  # type: ignore[assignment]
        ge=1_000_000,
        description="age at which an acknowledged message is late",
    )
    interval: DurationNs = Field(
        "100ms",  # type: ignore[assignment]
        ge=1_000_000,
        description="time between two judgements of the rate",
    )
    accepted: Percent = Field(90.0, gt=0, le=100, description="share of the sent messages that must be acknowledged")
    decrease: Percent = Field(50.0, gt=0, lt=100, description="factor for the rate when readers fall behind")
    increase: Percent = Field(5.0, gt=0, le=100, description="share of the full rate that is added when they do not")
    lowest: Percent = Field(1.0, gt=0, le=100, description="share of the full rate that is always sent")
    every: int = Field(10, ge=1, le=10_000, description="messages per acknowledgement")
    watch: Names = Field((), description="topics of the workload whose messages must not be older than target, either")
    publishers: Literal["floods", "timers"] = Field(
        "floods",
        description="the throttled publishers: those of message_flood; timers: also the workload's own that a "
        "timer drives",
    )

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        if runtime == "command":
            raise BadInput(f"{self.label}: the processes of a command do not acknowledge messages; use a graph")
        known = sorted({s["topic"] for _, node in graph.nodes_of(None) for s in node["subscriptions"]})
        for topic in self.watched_topics:
            if topic not in known:
                hint = instead(topic, known)
                raise BadInput(f"{self.label}: watch: the workload does not subscribe to {topic}; {hint}")
        if self.publishers == "timers" and not self.throttled(graph):
            raise BadInput(f"{self.label}: publishers=timers: no timer publishes on a topic with a subscription")
        unread = [name for name, _ in _floods(graph) if name not in self.throttled(graph)]
        if unread and not self.throttled(graph):
            raise BadInput(
                f"{self.label}: the flood has no readers to report how late it is; use readers=external, inside "
                "or topics of message_flood"
            )

    @property
    def watched_topics(self) -> tuple[str, ...]:
        return tuple(topic if topic.startswith("/") else f"/{topic}" for topic in self.watch)

    def throttled(self, graph: Graph) -> dict[str, float]:
        """The nodes whose publisher is throttled, and the rate of its timer in Hz."""
        read = {s["topic"] for _, node in graph.nodes() for s in node["subscriptions"]}
        candidates = [*_floods(graph), *(graph.nodes_of(None) if self.publishers == "timers" else ())]
        return {name: 1e9 / timer["period_ns"] for name, node in candidates for timer in _timers_of(node, read)}

    def extend(self, graph: Graph) -> Graph:
        throttled = self.throttled(graph)
        if not throttled:
            return graph
        return _Layout(self, graph, throttled).graph()

    def begin(self, trial: Trial) -> Applied:
        return Throttled(self, trial)


def _floods(graph: Graph) -> list[tuple[str, dict[str, Any]]]:
    """The publishing nodes of floods; a trial may have several floods."""
    return [
        (name, node) for name, node in graph.nodes() if node["timers"] and _is_of_flood(node.get("condition") or "")
    ]


def _is_of_flood(label: str) -> bool:
    return label == FLOOD or label.startswith(f"{FLOOD}_")


def _timers_of(node: Mapping[str, Any], read: set[str]) -> list[dict[str, Any]]:
    """The timer of a node that only publishes on one topic with a reader, and does nothing else."""
    return [
        timer
        for timer in node["timers"]
        if timer["period_ns"] and len(timer["publish"]) == 1 and not timer.get("request") and not timer.get("goal")
        if node["publishers"][timer["publish"][0]]["topic"] in read
    ][:1]


class _Layout:
    """Adds acknowledgements, listeners and throttled timers to a graph."""

    def __init__(self, asked: AdaptiveThrottling, graph: Graph, throttled: Mapping[str, float]) -> None:
        self.asked = asked
        self.document = copy.deepcopy(graph.document)
        self.throttled = throttled
        self.number = 0
        # The additions by process: nodes that acknowledge, and the topics that their throttles listen to.
        self.acknowledging: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.heard: dict[str, list[str]] = defaultdict(list)

    def graph(self) -> Graph:
        watched = [
            topic
            for wanted in self.asked.watched_topics
            for name, _, node in self._nodes()
            if not node.get("condition") and any(p["topic"] == wanted for p in node["publishers"])
            for topic in self._acknowledged(name, wanted, own=True)
        ]
        for name, process, node in list(self._nodes()):
            if name not in self.throttled:
                continue
            read = {s["topic"] for _, _, one in self._nodes() for s in one["subscriptions"]}
            (timer,) = _timers_of(node, read)
            own = self._acknowledged(name, node["publishers"][timer["publish"][0]]["topic"])
            sources = [(topic, True) for topic in own] + [(topic, False) for topic in watched]
            self.heard[process["name"]] += [t for t, _ in sources if t not in self.heard[process["name"]]]
            timer["throttle"] = self._throttle(process["name"], sources)
        for process in self.document["processes"]:
            process["nodes"] += self.acknowledging[process["name"]]
            if topics := self.heard[process["name"]]:
                number = extend.free_executor_id(process)
                process["executors"].append(extend.executor(number))
                process["nodes"].append(self._listener(process["name"], topics, number))
        return Graph(self.document)

    def _nodes(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Qualified name, process and node."""
        for process in self.document["processes"]:
            for node in process["nodes"]:
                yield qualified_name(node), process, node

    def _acknowledged(self, publisher: str, topic: str, *, own: bool = False) -> list[str]:
        """Makes each subscription of the topic, or each of the workload's own, acknowledge this node's messages;
        returns the acknowledgement topics."""
        topics = []
        for _, process, node in self._nodes():
            for subscription in node["subscriptions"]:
                if subscription["topic"] != topic or (own and node.get("condition")):
                    continue
                self.number += 1
                name = f"acknowledgement_{self.number}"
                said = {"topic": f"{NAMESPACE}/{name}", "type": ACKNOWLEDGEMENT, "size_bytes": ITS_BYTES}
                ends = [{**said, "frequency_hz": 0.0, "pass_by": None, "qos": dict(QOS)}]
                added = extend.node(name, NAMESPACE, node["executor"], self.asked.label, publishers=ends)
                self.acknowledging[process["name"]].append(added)
                by = {"node": f"{NAMESPACE}/{name}", "topic": said["topic"]}
                asked = {"from": publisher, **by, "every": self.asked.every}
                subscription.setdefault("acknowledge", []).append(asked)
                topics.append(str(said["topic"]))
        return topics

    def _listener(self, process: str, topics: list[str], executor: int) -> dict[str, Any]:
        ends = [extend.subscription(topic, ACKNOWLEDGEMENT, QOS) for topic in topics]
        name = _listener_name(process)
        return extend.node(name, NAMESPACE, executor, self.asked.label, subscriptions=ends)

    def _throttle(self, process: str, sources: list[tuple[str, bool]]) -> dict[str, Any]:
        asked = self.asked
        node = f"{NAMESPACE}/{_listener_name(process)}"
        return {
            "sources": [{"node": node, "topic": t, "every": asked.every, "counted": counted} for t, counted in sources],
            "target_ns": asked.target,
            "interval_ns": asked.interval,
            "accepted": asked.accepted / 100,
            "decrease": asked.decrease / 100,
            "increase": asked.increase / 100,
            "lowest": asked.lowest / 100,
        }


def _listener_name(process: str) -> str:
    return f"listener_{''.join(c if c.isalnum() else '_' for c in process)}"


@dataclass(frozen=True)
class Step:
    """An interval judged by a throttle."""

    at_ns: int
    rate_hz: float
    sent: int
    accepted: int
    worst_age_ns: int | None


@dataclass(frozen=True)
class Record:
    """The record of one throttle."""

    full_hz: float
    withheld: int
    steps: tuple[Step, ...]


class Throttled(Applied):
    def __init__(self, asked: AdaptiveThrottling, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial

    def verify(self, window: Window) -> Evidence:
        folder, virtual = self.trial.directory / "processes", self.trial.runtime == "virtual"
        until_s = time.monotonic() + WRITTEN_WITHIN_S
        while True:
            try:
                found = read_records(folder)
            except (RecordError, OSError) as error:
                raise NotInEffect(f"records cannot be read: {error}") from error
            evidence = judge(self.asked, self.trial.graph, found, window, written=not virtual)
            if evidence.in_effect or time.monotonic() > until_s:
                return evidence
            self.trial.wait(LOOK_S)


def read_records(folder: Path) -> dict[str, Record]:
    """The throttles' records by publishing node. Raises RecordError, OSError."""
    found: dict[str, Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in records.lines(path, "throttle"):
            if line is None or line.get("type") != "throttle":
                continue
            columns = ("step_at_ns", "rate_hz", "sent", "accepted", "worst_age_ns")
            rows = zip(*(line[column] for column in columns), strict=True)
            before = found.get(line["node"])
            steps = (*(before.steps if before else ()), *(Step(*row) for row in rows))
            found[line["node"]] = Record(float(line["full_hz"]), int(line["withheld"]), steps)
    return found


def judge(
    asked: AdaptiveThrottling, graph: Graph, found: Mapping[str, Record], window: Window, *, written: bool = True
) -> ThrottlingEvidence:
    """The throttles' activity, and whether each of them worked until the end. `written`: the records exist already; in
    virtual time they come after the trial, where nothing can prevent them."""
    throttled = asked.throttled(graph)
    acknowledged = [one for _, node in graph.nodes() for s in node["subscriptions"] for one in s.get("acknowledge", ())]
    counted = sum(one["from"] in throttled for one in acknowledged)
    promised = Promised(
        publishers=len(throttled),
        full_rate_hz=sum(throttled.values()) or None,
        target_ms=asked.target / 1e6,
        readers=counted,
        watched=len(acknowledged) - counted,
    )
    known = {name: found[name] for name in throttled if name in found}
    within = {name: [s for s in r.steps if window.begin_ns < s.at_ns <= window.end_ns] for name, r in known.items()}
    late_ns = LATEST_STEPS * asked.interval + NS_PER_S
    judged = [name for name, steps in within.items() if steps and steps[-1].at_ns >= window.end_ns - late_ns]
    every = [step for steps in within.values() for step in steps]
    heard = sum(step.accepted for step in every)
    ages = [step.worst_age_ns for step in every if step.worst_age_ns is not None]
    withheld = sum(record.withheld for record in known.values())
    due = sum(record.full_hz for record in known.values()) * window.seconds
    achieved = Achieved(publishers=len(judged))
    if known:
        achieved = Achieved(
            publishers=len(judged),
            withheld=withheld,
            withheld_percent=rounded(100 * withheld / due, 2) if due else None,
            lowest_rate_hz=rounded(min((step.rate_hz for step in every), default=None), 1),
            decreases=sum(_decreases(record, window) for record in known.values()),
            acknowledged=heard if every else None,
            worst_age_ms=rounded(max(ages) / 1e6, 3) if ages else None,
            rate_in_second=_by_second(list(within.values()), window),
        )
    reason = None
    if not written:
        achieved = replace(achieved, publishers=len(throttled))
    elif len(judged) < len(throttled):
        silent = next(name for name in throttled if name not in judged)
        reason = f"the throttle of {silent} did not judge until the end of the measured part"
    elif throttled and not heard:
        reason = "no reader acknowledged any message"
    notes = () if throttled else ("no publisher is throttled",)
    return ThrottlingEvidence(promised=promised, achieved=achieved, reason=reason, notes=notes)


def _decreases(record: Record, window: Window) -> int:
    """Rates in the window, which may begin with a lowered rate."""
    rates = [(window.begin_ns, record.full_hz), *((step.at_ns, step.rate_hz) for step in record.steps)]
    return sum(
        after < before and window.begin_ns < at_ns <= window.end_ns
        for (_, before), (at_ns, after) in itertools.pairwise(rates)
    )


def _by_second(throttles: list[list[Step]], window: Window) -> tuple[float | None, ...]:
    """The mean over the steps of each second, summed over throttles."""
    seconds: list[float | None] = []
    for number in range(int(window.seconds)):
        begin_ns = window.begin_ns + number * NS_PER_S
        means = []
        for steps in throttles:
            rates = [step.rate_hz for step in steps if begin_ns < step.at_ns <= begin_ns + NS_PER_S]
            if rates:
                means.append(sum(rates) / len(rates))
        seconds.append(rounded(sum(means), 1) if means else None)
    return tuple(seconds)


def words(given: Mapping[str, Any]) -> str:
    target = given["target"]
    shown = target if isinstance(target, str) else format_duration(target)
    watched = f" and of {plural(len(given['watch']), 'topic')}" if given.get("watch") else ""
    return f"throttling by readers' lag{watched} above {shown}"


KIND: Kind[Any] = Kind(
    NAME,
    "publishers of floods, or all publishers that timers drive, send less while their readers fall behind (AIMD, "
    "as TCP)",
    AdaptiveThrottling,
    words=words,
    gently=("target=200ms",),
)
