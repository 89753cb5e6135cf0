"""A kind of workload."""

from __future__ import annotations

from pydantic import Field

from perflab.parameters import Parameters
from perflab.registry import Kind
from perflab.workload import Graph, extend
from perflab.workload.generated import Made


class PairParameters(Parameters):
    rate: float = Field(10, gt=0, le=1000, description="messages per second")


def make(asked: PairParameters) -> Made:
    period_ns = round(1e9 / asked.rate)
    publisher = extend.publisher("/words", "stamped_vector", 16, period_ns, extend.DEFAULT_QOS)
    talker = extend.node(
        "talker", "/", 0, publishers=[publisher], timers=[extend.timer("timer", period_ns, [0], "catch_up")]
    )
    listener = extend.node(
        "listener", "/", 0, subscriptions=[extend.subscription("/words", "stamped_vector", extend.DEFAULT_QOS)]
    )
    process = extend.process("pair", [extend.executor(0, "single_threaded")], [talker, listener])
    return Made(Graph({"schema": 1, "name": "pair", "processes": [process]}))


KIND: Kind[Made] = Kind("pair", "one node talks to another", PairParameters, make)
