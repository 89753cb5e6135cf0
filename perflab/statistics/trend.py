"""Changes during a trial: slopes over time that are robust against a few odd seconds.

slope([0.0, 1.0, 2.0], [5.0, 7.0, 9.0])    # 2.0 per second
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perflab.results.trial import SLOPE_FROM_S
from perflab.units import NS_PER_S

MOST = 400  # number of points up to which all pairs are used; beyond, every n-th


def slope(at_s: Sequence[float], values: Sequence[float]) -> float | None:
    """The median of the slopes between all pairs of points (Theil and Sen), per second; None for too few points."""
    if len(at_s) < SLOPE_FROM_S:
        return None
    step = -(-len(at_s) // MOST)
    x, y = np.asarray(at_s, float)[::step], np.asarray(values, float)[::step]
    later, earlier = np.tril_indices(len(x), -1)
    apart = x[later] - x[earlier]
    known = apart > 0
    return float(np.median((y[later] - y[earlier])[known] / apart[known])) if known.any() else None


def of_latency(processes: Sequence[Sequence[Mapping[str, Any]]], from_ns: int, until_ns: int) -> float | None:
    """Slope of the mean latency of each second, in ns per second, from each process's progress reports."""
    seconds: dict[int, tuple[int, int]] = {}
    for told in processes:
        count = total = 0
        for record in told:
            if record.get("latency_sum") is None or not from_ns < record["at_ns"] <= until_ns + NS_PER_S // 2:
                continue
            second = round((record["at_ns"] - from_ns) / NS_PER_S)
            more, longer = record["latency_count"] - count, record["latency_sum"] - total
            before = seconds.get(second, (0, 0))
            seconds[second] = before[0] + more, before[1] + longer
            count, total = record["latency_count"], record["latency_sum"]
    means = [(second, total / count) for second, (count, total) in sorted(seconds.items()) if count > 0]
    return slope([second for second, _ in means], [mean for _, mean in means])


def of_memory(processes: Sequence[Sequence[Mapping[str, Any]]], from_ns: int, until_ns: int) -> float | None:
    """Slope of the resident memory of all processes together, in kB of 1024 bytes per second, from their resource
    records."""
    slopes = []
    for records in processes:
        kept = [r for r in records if r.get("rss_kb") is not None and from_ns <= r["at_ns"] <= until_ns]
        slopes.append(slope([(r["at_ns"] - from_ns) / NS_PER_S for r in kept], [r["rss_kb"] for r in kept]))
    known = [one for one in slopes if one is not None]
    return sum(known) if known and len(known) == len(slopes) else None
