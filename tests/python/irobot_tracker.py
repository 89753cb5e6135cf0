"""irobot_benchmark's tracker, message by message: what perflab's records must reproduce
(perflab/statistics/irobot.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from perflab.statistics import irobot
from perflab.statistics.irobot import LATE, LOST, TOO_LATE, UINT64, Options, Row, late_text, original_lost_text


@dataclass(frozen=True)
class Arrival:
    """One message as its subscription saw it."""

    number: int
    latency_ns: int
    at_ns: int


@dataclass(frozen=True)
class Replay:
    """What the original makes of a list of arrivals: its line, and (code, text) of its events."""

    row: Row
    events: tuple[tuple[int, str], ...]


def replay(arrivals: Iterable[Arrival], size_bytes: int, frequency_hz: float, options: Options) -> Replay:
    """The original's tracker, message by message."""
    expected = received = late = too_late = lost = 0
    kept: list[int] = []
    times: list[int] = []
    events: list[tuple[int, str]] = []
    late_us = options.late_threshold_us(frequency_hz)
    too_late_us = options.too_late_threshold_us(frequency_hz)
    for arrival in arrivals:
        whole_us = abs(arrival.latency_ns) // 1000
        latency_us = whole_us if arrival.latency_ns >= 0 else -whole_us % UINT64  # a negative one becomes huge
        is_too_late = False
        if options.tracking:
            if arrival.number != expected:
                missing = (arrival.number - expected) % irobot.UINT32
                lost = (lost + missing) % UINT64
                events.append((LOST, original_lost_text(arrival.number, missing)))
            expected = (arrival.number + 1) % irobot.UINT32
            is_too_late = latency_us > too_late_us
            if is_too_late:
                too_late += 1
                events.append((TOO_LATE, late_text(arrival.number, latency_us, too_late_us, too_late=True)))
            elif latency_us > late_us:
                late += 1
                events.append((LATE, late_text(arrival.number, latency_us, late_us, too_late=False)))
        if not is_too_late:
            kept.append(latency_us)
            times.append(arrival.at_ns)
        received += 1
    mean = math.fsum(kept) / len(kept) if kept else math.nan
    variance = math.fsum((x - mean) ** 2 for x in kept) / len(kept) if kept else math.nan
    throughput = 0.0 if received < 2 else math.nan
    if received >= 2 and times:
        interval_s = (times[-1] - times[0]) / 1e9
        throughput = (received - 1) / interval_s * size_bytes / irobot.KIB if interval_s else math.inf
    row = Row(
        node="",
        topic="",
        size_bytes=size_bytes if kept else 0,
        received=received,
        late=late,
        too_late=too_late,
        lost=lost,
        mean_us=mean,
        sd_us=math.sqrt(variance),
        min_us=min(kept, default=math.nan),
        max_us=max(kept, default=math.nan),
        frequency_hz=frequency_hz if kept else 0.0,
        throughput_kib_s=throughput,
    )
    return Replay(row, tuple(events))
