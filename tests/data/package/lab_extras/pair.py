"""A kind of workload, with a figure and an outcome of its own."""

from __future__ import annotations

from pydantic import Field

from perflab.parameters import Parameters
from perflab.results.figure import OwnFigure
from perflab.results.outcome import OwnOutcome
from perflab.workload import Ended, Graph, Judgement, Made, WorkloadKind, extend


class PairParameters(Parameters):
    rate: float = Field(10, gt=0, le=1000, description="messages per second")
    least: float = Field(0, ge=0, description="messages per second that the listener must hear")


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


def judge(ended: Ended) -> Judgement:
    received, seconds, least = ended.trial.totals.received, ended.trial.measured_s, ended.parameters.least
    if received is None or not seconds:
        return Judgement()
    heard = received / seconds
    if heard < least:
        return Judgement({"heard": heard}, "too_quiet", f"{heard:.3g} words per second were heard, {least:g} had to be")
    return Judgement({"heard": heard})


KIND = WorkloadKind(
    "pair",
    "one node talks to another",
    PairParameters,
    make,
    figures={"heard": OwnFigure(words="words heard", unit="Hz", better="higher")},
    outcomes=(OwnOutcome(name="too_quiet", words="too quiet"),),
    judge=judge,
)
