"""The workload `pingpong`: a timer sends pings, each is answered by a pong (docs/realtime.md).

The smallest control loop: who is scheduled when decides how long a round takes. The patterns place its two halves in
one node, in two nodes of one executor, or in two processes. How many loops there are decides how long a trial measures.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from perflab import native
from perflab.parameters import DurationNs
from perflab.units import MAX_DURATION_S, NS_PER_S, format_duration
from perflab.workload import Made, Pins, WorkloadKind, ends, topology

NAME = "pingpong"
ONE_NODE, TWO_NODES, TWO_PROCESSES = "1e1n", "1e2n", "2e"
PING, PONG = "ping", "pong"
MIN_PERIOD_NS = 10_000


class PingPongEnds(ends.EndParameters):
    """Without QoS."""

    pattern: Literal["1e1n", "1e2n", "2e"] = Field(
        TWO_PROCESSES,
        description="1e1n: one process with one node; 1e2n: one process and executor with a node for each half; 2e: a "
        "process and executor for each",
    )
    period: DurationNs = Field("10ms", ge=MIN_PERIOD_NS, description="from one ping to the next")  # type: ignore[assignment]
    loops: int = Field(1000, ge=1, le=10_000_000, description="pings that count; a trial measures loops x period")
    overrun: Literal["catch_up", "skip"] = Field(
        "catch_up", description="what becomes of pings that the timer was late for: sent at once, or left out"
    )

    @model_validator(mode="after")
    def _fits(self) -> PingPongEnds:
        if self.period * self.loops > MAX_DURATION_S * NS_PER_S:
            raise ValueError(f"loops x period is longer than {format_duration(MAX_DURATION_S)}")
        return self

    @property
    def duration_ns(self) -> int:
        return self.period * self.loops


# A history of 1, best effort, as the experiment of docs/realtime.md had it.
PingPongParameters = ends.with_qos(PingPongEnds, "PingPongParameters", depth=1, reliability="best_effort")


def make(parameters: PingPongEnds) -> Made:
    pins = Pins(
        duration_ns=parameters.duration_ns,
        measure=("loops",),
        why=f"{NAME} measures loops x period, {format_duration(parameters.duration_ns / NS_PER_S)} here",
    )
    return Made(topology.resolved(document(parameters), native.find()), pins)


def document(p: PingPongEnds) -> dict[str, Any]:
    """The graph as a file would have it."""
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


KIND = WorkloadKind(
    NAME,
    "a ping every period, and a pong that answers it, in one node, two nodes or two processes",
    PingPongParameters,
    make,
)
