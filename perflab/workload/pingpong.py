"""The workload `pingpong`: a timer sends pings, each answered by a pong (docs/realtime.md).

The smallest control loop: the scheduling of threads determines how long a round takes. The patterns put its two halves
into one node, two nodes of one executor, or two processes. The number of loops determines how long a trial measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from perflab import native
from perflab.parameters import DurationNs
from perflab.results.figure import OwnFigure, OwnTimes
from perflab.results.outcome import FAILED, SUCCESS, OwnOutcome
from perflab.units import MAX_DURATION_S, NS_PER_S, format_duration
from perflab.workload import Ended, Judgement, Made, Pins, WorkloadKind, ends, rounds, topology
from perflab.workload.rounds import Stall

NAME = "pingpong"
ONE_NODE, TWO_NODES, TWO_PROCESSES = "1e1n", "1e2n", "2e"
PING, PONG = "ping", "pong"
MIN_PERIOD_NS = 10_000
NS = "ns"
DEFAULT_STALL: Any = "100ms"  # parsed like a user's value
DEFAULT_SLOW_START: Any = "5s"

UNAFFECTED, STALLED, BLOCKED, HUNG = "unaffected", "stalled", "blocked", "hung"


class PingPongEnds(ends.EndParameters):
    """Without QoS."""

    pattern: Literal["1e1n", "1e2n", "2e"] = Field(
        "2e",
        description="1e1n: one process with one node; 1e2n: one process and executor with a node for each half; 2e: a "
        "process and executor for each",
    )
    period: DurationNs = Field("10ms", ge=MIN_PERIOD_NS, description="time from one ping to the next")  # type: ignore[assignment]
    loops: int = Field(1000, ge=1, le=10_000_000, description="pings that count; a trial measures loops x period")
    overrun: Literal["catch_up", "skip"] = Field(
        "catch_up", description="pings for which the timer was late: sent at once, or skipped"
    )

    stall: DurationNs = Field(
        DEFAULT_STALL,
        gt=0,
        description="a loop that makes no progress for longer than a period and this has stalled; the default is "
        "twice what the kernel takes from real-time threads in one piece, for waiting threads of other policies",
    )
    slow_start: DurationNs = Field(
        DEFAULT_SLOW_START,
        gt=0,
        description="processes that need longer than this to find each other were stalled at the start",
    )

    @model_validator(mode="after")
    def _fits(self) -> PingPongEnds:
        if self.period * self.loops > MAX_DURATION_S * NS_PER_S:
            raise ValueError(f"loops x period exceeds {format_duration(MAX_DURATION_S)}")
        return self

    @property
    def duration_ns(self) -> int:
        return self.period * self.loops


# A history of 1, best effort, as in the experiment of docs/realtime.md.
PingPongParameters = ends.with_qos(PingPongEnds, "PingPongParameters", depth=1, reliability="best_effort")


def make(parameters: PingPongEnds, message_path: Sequence[str] = ()) -> Made:
    pins = Pins(
        duration_ns=parameters.duration_ns,
        measure=("loops",),
        why=f"{NAME} measures loops x period, {format_duration(parameters.duration_ns / NS_PER_S)} here",
    )
    return Made(topology.resolved(document(parameters), native.find(), message_path), pins)


def document(p: PingPongEnds) -> dict[str, Any]:
    """The graph, as in a graph file."""
    ping, pong = _ping(p), _pong(p)
    if p.pattern == TWO_PROCESSES:
        return {"name": NAME, "processes": [{"name": node["name"], "nodes": [node]} for node in (ping, pong)]}
    if p.pattern == TWO_NODES:
        return {"name": NAME, "nodes": [ping, pong]}
    both = {key: ping[key] + pong[key] for key in ("publishers", "subscriptions")}
    return {"name": NAME, "nodes": [{**ping, **pong, **both, "name": "ping_pong"}]}


def _ping(p: PingPongEnds) -> dict[str, Any]:
    return {
        "name": PING,
        "publishers": [ends.publisher(p, PING)],
        "subscriptions": [ends.subscription(p, PONG)],
        "timers": [{"name": PING, "period": f"{p.period}ns", "publish": PING, "overrun": p.overrun}],
    }


def _pong(p: PingPongEnds) -> dict[str, Any]:
    return {
        "name": PONG,
        "publishers": [ends.publisher(p, PONG)],
        "subscriptions": [ends.subscription(p, PING)],
        "reactions": [{"kind": "relay", "on": PING, "publish": PONG}],
    }


def judge(ended: Ended) -> Judgement:
    """The figures of the loops, and the outcome: whether they stalled."""
    figures = rounds.phases(ended.lives, ended.loops)
    times = rounds.times(ended.loops)
    found = _stalls(ended)
    figures |= {
        "stalls": float(len(found)) if ended.loops else None,
        "longest_stall": float(max((s.length_ns for s in found), default=0)) if ended.loops else None,
    }
    outcome, reason = _outcome(ended, found, figures["time_start"])
    if outcome is None or outcome == UNAFFECTED:
        return Judgement(figures, outcome, reason, times)
    stretch = _stretch(ended, found)
    starved = () if ended.starvation is None or stretch is None else ended.starvation.during(*stretch)
    if starved:
        more = f" (and {len(starved) - 1} more)" if len(starved) > 1 else ""
        reason = f"{reason}; starved meanwhile: {starved[0].words}{more}"
    return Judgement(figures, outcome, reason, times, starved, stretch)


def _stretch(ended: Ended, found: Sequence[Stall]) -> tuple[int, int] | None:
    """The longest stall, or the time that the processes needed to find each other; None if neither is known."""
    if found:
        longest = max(found, key=lambda stall: stall.length_ns)
        return longest.since_ns, longest.seen_ns if longest.until_ns is None else longest.until_ns
    began = [life.began_ns for life in ended.lives if life.began_ns is not None]
    until = [at for life in ended.lives if (at := life.matched_ns or life.last_ns) is not None]
    return (min(began), max(until)) if began and until else None


def _stalls(ended: Ended) -> list[Stall]:
    asked: PingPongEnds = ended.parameters
    from_ns = min((life.measured_from_ns for life in ended.lives if life.measured_from_ns is not None), default=None)
    seen = [life.last_ns for life in ended.lives if life.last_ns is not None]
    if from_ns is None or not seen:
        return []
    # A trial that reached its end was still waiting for lost messages; nothing was due any more.
    due_ns = from_ns + asked.duration_ns
    seen_ns = min(max(seen), due_ns) if ended.trial.drain == "rest" or ended.trial.outcome == SUCCESS else max(seen)
    return [s for loops in ended.loops for s in rounds.stalls(loops, asked.loops, from_ns, seen_ns, asked.stall)]


def _outcome(ended: Ended, found: Sequence[Stall], start_ns: float | None) -> tuple[str | None, str | None]:
    """The name of the outcome, and its evidence in words; None for both if the trial failed for another reason."""
    asked: PingPongEnds = ended.parameters
    failed = ended.trial.outcome == FAILED
    starved = ", ".join(thread.words for thread in ended.trial.starved)
    behind = f"; starved when it ended: {starved}" if starved else ""
    last = found[-1] if found else None
    if failed and (starved or (last is not None and last.until_ns is None)):
        return HUNG, f"{'no further loop was completed' if last is None else _words(last, found)}{behind}"
    if failed:
        return None, None
    if last is not None and last.until_ns is None:
        return HUNG, f"{_words(last, found)}{behind}"
    matched = [life.matched_ns for life in ended.lives if life.matched_ns is not None]
    slow = start_ns is not None and start_ns > asked.slow_start
    begun = f"the processes needed {format_duration((start_ns or 0) / NS_PER_S)} to find each other"
    for label, ended_ns in _ends(ended):
        waited = max(found, key=lambda stall: stall.length_ns, default=None)
        if waited is not None and waited.since_ns < ended_ns <= (waited.until_ns or 0) <= ended_ns + asked.stall:
            return BLOCKED, f"{_words(waited, found)}, until {label} ended"
        if slow and matched and ended_ns <= max(matched) <= ended_ns + asked.slow_start:
            return BLOCKED, f"{begun}, when {label} had ended"
    if found:
        return STALLED, _words(max(found, key=lambda stall: stall.length_ns), found)
    return (STALLED, begun) if slow else (UNAFFECTED, None)


def _ends(ended: Ended) -> list[tuple[str, int]]:
    """When finite conditions had finished their work, with their labels."""
    told = {label: (evidence.get("achieved") or {}).get("ended_ns") for label, evidence in ended.trial.evidence.items()}
    return [(label, int(at_ns)) for label, at_ns in told.items() if at_ns is not None]


def _words(stall: Stall, found: Sequence[Stall]) -> str:
    most = f", the longest of {len(found)}" if len(found) > 1 else ""
    how = "no loop was completed for" if stall.until_ns is not None else "no further loop was completed for"
    lasting = format_duration(stall.length_ns / NS_PER_S)
    return f"{how} {lasting}{most}, from loop {stall.loop} on: {stall.stage}"


FIGURES: Mapping[str, OwnFigure | OwnTimes] = {
    "time_total": OwnFigure(words="time until the benchmark ends (M1)", unit=NS),
    "time_start": OwnFigure(words="start and matching (of M1)", unit=NS),
    "time_loops": OwnFigure(words="loops (of M1)", unit=NS),
    "time_closing": OwnFigure(words="closing (of M1)", unit=NS),
    "stalls": OwnFigure(words="stalls", scale="difference"),
    "longest_stall": OwnFigure(words="longest stall", unit=NS, scale="difference"),
    "ping_sent": OwnTimes(words="wake-up to ping sent (M2)", drawn=True),
    "ping_call": OwnTimes(words="call that publishes (of M2)"),
    "ping_pong": OwnTimes(words="ping published to pong received (M3)", drawn=True),
    "ping_pong_restamped": OwnTimes(words="pong published to pong received (M3 of the original since July 2020)"),
    "ping_pong_due": OwnTimes(words="ping due to pong received (M3 corrected)"),
    "wakeup_interval": OwnTimes(words="between wake-ups (M4 and the period)"),
    "wakeup_jitter": OwnTimes(words="deviation of that from the period (|M4|)"),
    "wakeup_late": OwnTimes(words="wake-up after due time (M4 corrected)", drawn=True, floor="cyclictest"),
}

KIND = WorkloadKind(
    NAME,
    "a ping every period, and a pong in reply, in one node, two nodes or two processes",
    PingPongParameters,
    make,
    figures=FIGURES,
    outcomes=(
        OwnOutcome(name=UNAFFECTED, words="unaffected", of=SUCCESS),
        OwnOutcome(name=STALLED, words="stalled"),
        OwnOutcome(name=BLOCKED, words="blocked until the inhibitor ended"),
        OwnOutcome(name=HUNG, words="hung"),
    ),
    judge=judge,
    create_with=make,
)
