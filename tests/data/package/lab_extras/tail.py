"""A metric."""

from __future__ import annotations

from perflab.quantity import FACTOR
from perflab.results.trial import Trial
from perflab.statistics.metrics import METRICS, Measured, Metric


def measured(trial: Trial) -> Measured:
    slow, usual = (METRICS[f"latency.{quantile}"].read(trial) for quantile in ("p99", "p50"))
    if slow.value is None or usual.value is None:
        return slow.reason or usual.reason
    return slow.value / usual.value if usual.value else "the usual message took no time"


KIND = Metric("tail", "tail of latency", FACTOR, measured, "p99 of the latency over its p50")
