"""A line for each second of a trial: messages sent, received and lost in it, and their latency.

The processes of a trial report their counts once a second, at slightly different times. A second is complete when all
of them have reported; rates use the actual time between two reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.columns import Column
from perflab.quantity import COUNT, TIME, Quantity
from perflab.report.progress import quantiles
from perflab.runs.display import LiveProgress
from perflab.statistics import histogram as hg
from perflab.units import NS_PER_S, format_count

GAP = 2
LEAST = 8  # characters of a column


@dataclass(frozen=True)
class Second:
    """The difference between two reports of all processes. Times in nanoseconds, of the messages received."""

    until_ns: int  # since the measured part began
    length_ns: int
    sent: int
    received: int
    lost: int  # messages that are known to be missing since a later one has arrived
    received_bytes: int | None  # payload; None: not reported
    latency: hg.Histogram
    response: hg.Histogram

    def per_s(self, count: int) -> float:
        return count * NS_PER_S / self.length_ns

    @property
    def lost_percent(self) -> float | None:
        known = self.received + self.lost
        return 100 * self.lost / known if known else None


class Seconds:
    """Divides a trial's progress reports into seconds."""

    def __init__(self) -> None:
        self._told: tuple[LiveProgress, hg.Histogram, hg.Histogram] | None = None

    def next(self, progress: LiveProgress) -> Second | None:
        """The second that this report completes; None if none."""
        before = 0 if self._told is None else self._told[0].complete_ns
        if progress.phase != "measuring" or progress.complete_ns - before < NS_PER_S / 2:
            return None
        empty = (LiveProgress("", 0, 0, 0, 0, published=0, received_bytes=0), hg.empty(), hg.empty())
        last, last_latency, last_response = self._told or empty
        try:
            latency, response = (_merged(texts) for texts in (progress.histograms, progress.responses))
            passed_latency, passed_response = hg.since(latency, last_latency), hg.since(response, last_response)
        except hg.HistogramError:
            # A process that is already draining while a publisher is behind its schedule no longer reports its times.
            return None
        self._told = (progress, latency, response)

        def passed(name: str) -> int:
            return (getattr(progress, name) or 0) - (getattr(last, name) or 0)

        return Second(
            until_ns=progress.complete_ns,
            length_ns=progress.complete_ns - before,
            sent=passed("published"),
            received=passed("received"),
            lost=passed("lost"),
            received_bytes=None if progress.received_bytes is None else passed("received_bytes"),
            latency=passed_latency,
            response=passed_response,
        )


def _merged(texts: Sequence[str]) -> hg.Histogram:
    return hg.merge(hg.decode(text) for text in texts) if texts else hg.empty()


def _variance(values: hg.Histogram) -> float | None:
    """In ns², from the centres of the bins: each value is known to within 1/1000 of itself."""
    if not values.count:
        return None
    low, high = hg.lowest_value(values.indices), hg.highest_value(values.indices)
    middle = (low + high) / 2
    return float(np.average((middle - np.average(middle, weights=values.counts)) ** 2, weights=values.counts))


def _megabytes_per_s(second: Second) -> float | None:
    return None if second.received_bytes is None else second.per_s(second.received_bytes) / 1e6


_RATE = Quantity("1/s", lambda value: format_count(round(value)))
_MEGABYTES = Quantity("MB/s", lambda value: f"{value:.4g}" if value < 1e4 else format_count(round(value)))
_SECOND = Quantity("s", lambda value: f"{value:.0f}")
_PERCENT = Quantity("%", lambda value: f"{value:.3g}")
_SQUARE = Quantity("µs²", lambda value: f"{value / 1e6:.4g}" if value < 1e10 else format_count(round(value / 1e6)))

_LATENCY, _RESPONSE = "latency", "response"
COLUMNS: tuple[Column[Second], ...] = (
    Column("second", "s", lambda s: s.until_ns / NS_PER_S, _SECOND, rank=0),
    Column("sent", "sent/s", lambda s: s.per_s(s.sent), _RATE, rank=2),
    Column("received", "recv/s", lambda s: s.per_s(s.received), _RATE, rank=0),
    Column("lost", "lost", lambda s: s.lost, COUNT, rank=0),
    Column("lost_percent", "lost %", lambda s: s.lost_percent, _PERCENT, rank=3),
    Column("rate", "MB/s", _megabytes_per_s, _MEGABYTES, rank=1),
    Column("min", "min", lambda s: s.latency.min, TIME, rank=4, group=_LATENCY),
    Column("mean", "mean", lambda s: hg.mean(s.latency), TIME, rank=3, group=_LATENCY),
    Column("variance", "var µs²", lambda s: _variance(s.latency), _SQUARE, rank=5, group=_LATENCY),
    Column("p50", "p50", lambda s: quantiles(s.latency)[0], TIME, rank=0, group=_LATENCY),
    Column("p99", "p99", lambda s: quantiles(s.latency)[1], TIME, rank=0, group=_LATENCY),
    Column("max", "max", lambda s: s.latency.max, TIME, rank=1, group=_LATENCY),
    Column("response_p50", "p50", lambda s: quantiles(s.response)[0], TIME, rank=6, group=_RESPONSE),
    Column("response_p99", "p99", lambda s: quantiles(s.response)[1], TIME, rank=2, group=_RESPONSE),
    Column("response_max", "max", lambda s: s.response.max, TIME, rank=6, group=_RESPONSE),
)


class Table:
    """Aligned lines, no longer than `width`; None: all columns."""

    def __init__(self, width: int | None = None) -> None:
        self._columns = list(COLUMNS)
        while width is not None and self._width() > width:
            last = max(column.rank or 0 for column in self._columns)
            if not last:
                break
            self._columns = [column for column in self._columns if column.rank != last]

    def heading(self) -> list[str]:
        """Two lines: the groups, and the columns."""
        before = ["", *(column.group for column in self._columns)]
        groups = ["" if c.group == last else c.group for c, last in zip(self._columns, before, strict=False)]
        return [self._line(groups).rstrip(), self._line([column.header for column in self._columns])]

    def line(self, second: Second) -> str:
        return self._line([column.cell(second).text for column in self._columns])

    def _line(self, words: Sequence[str]) -> str:
        return (" " * GAP).join(f"{word:>{LEAST}}" for word in words)

    def _width(self) -> int:
        return len(self._columns) * (LEAST + GAP) - GAP
