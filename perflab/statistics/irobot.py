"""irobot_benchmark's figures, counted as that program counts them (`original`) or as perflab does (`corrected`).

The original keeps one tracker per subscription and classifies every message as it arrives:

    period_us = int(1e6 / frequency)                                   in 32-bit floating point
    too_late  = latency_us > min(too_late_absolute_us, too_late_percentage * period_us // 100)
    late      = latency_us > min(late_absolute_us, late_percentage * period_us // 100), and not too late
    lost     += uint32(number - expected), whenever the number is not the expected one; then expected = number + 1

with latency_us the latency truncated to whole microseconds. Too late messages are received, but excluded from mean, sd,
min and max. Numbers are expected from 0 on, so messages sent before the match are lost; missing ones at the end are not
noticed. `lost` is a difference of unsigned 32-bit numbers: a message that arrives twice, or after a later one, adds
about 4.29e9. Without tracking there are no classes and no losses, and every sample counts.

tests/python/irobot_tracker.py does exactly this with single arrivals. perflab records counts, histograms and late
messages instead, from which `original_subscription` reproduces

- exactly: received, and lost if at most one message was out of order or duplicated (and was not the last one); late and
too_late, min and, if no message was too late or some were late, max - given `late_ns`;
- mean: from the exact sum; the loss by truncation of each sample is taken from the histogram's cells, at most 0.5 us
from the original's before both are rounded; duplicates are in no histogram and are ignored;
- sd, and max if there are only on-time messages: from the cells, whose values are known to 0.1 %;
- late and too_late without `late_ns`: from the cells; wrong by at most the messages in the cell of the threshold;
- lost, if several messages were out of order: each counts as a separate wrap-around, which may be too many;
- throughput: with the scheduled interval from first to last message; perflab does not record the jitter of these two.

With several publishers on one topic the original mixes their numbers; here each is counted separately.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram, Int64s

UINT32 = 1 << 32
UINT64 = 1 << 64
KIB = 1024

Times = tuple[float, float, float, float]
"""Mean, standard deviation, minimum and maximum, in microseconds."""
_NO_TIMES: Times = (math.nan,) * 4
_NO_COUNTS = (0, 0, 0, 0)

LATE = 1  # codes of events
TOO_LATE = 2
LOST = 3


@dataclass(frozen=True)
class Options:
    """The original's options; integers, as it takes them."""

    tracking: bool = True
    late_percentage: int = 20
    late_absolute_us: int = 5000
    too_late_percentage: int = 100
    too_late_absolute_us: int = 50000

    def late_threshold_us(self, frequency_hz: float | None) -> int:
        return _threshold_us(self.late_absolute_us, self.late_percentage, frequency_hz)

    def too_late_threshold_us(self, frequency_hz: float | None) -> int:
        return _threshold_us(self.too_late_absolute_us, self.too_late_percentage, frequency_hz)


@dataclass(frozen=True)
class Row:
    """A line of latency_all.txt. Times in microseconds, NaN if there are no samples; None: unknown."""

    node: str
    topic: str
    size_bytes: int
    received: int
    late: int
    too_late: int
    lost: int | None
    mean_us: float
    sd_us: float
    min_us: float
    max_us: float
    frequency_hz: float
    throughput_kib_s: float


@dataclass(frozen=True)
class Total:
    """The line of latency_total.txt; percentages are NaN if there is nothing to divide by."""

    received: int
    mean_us: float
    late: int
    late_percent: float
    too_late: int
    too_late_percent: float
    lost: int | None
    lost_percent: float


@dataclass(frozen=True)
class Delivery:
    """Messages that one subscription received from one publisher, as perflab records them.

    `late_ns` are the latencies of all messages above `recorded_above_ns`; None if not all were recorded.
    """

    size_bytes: int | None
    frequency_hz: float | None
    received: int
    first_sequence: int | None
    highest_sequence: int | None
    lost: int | None
    reordered: int
    duplicate: int
    beyond_window: int
    late: int
    too_late: int
    latency: Histogram
    late_ns: tuple[int, ...] | None = None
    recorded_above_ns: float = math.inf


def original_subscription(
    node: str, topic: str, deliveries: Sequence[Delivery], options: Options, duration_s: float
) -> Row:
    """A subscription as the original counts it; the head of this module lists what is exact."""
    received = late = too_late = lost = 0
    throughput = 0.0
    kept = _Samples()
    for delivery in deliveries:
        arrivals = delivery.received + delivery.duplicate + delivery.beyond_window
        received += arrivals
        frequency = delivery.frequency_hz
        if options.tracking:
            limits_ns = (
                _first_above_ns(options.late_threshold_us(frequency)),
                _first_above_ns(options.too_late_threshold_us(frequency)),
            )
            part, found_late, found_too_late = _classify(delivery, *limits_ns)
            late, too_late = late + found_late, too_late + found_too_late
            lost = (lost + original_lost(delivery)) % UINT64
        else:
            part = _Samples().plus(delivery.latency, None)
        kept = kept.merged(part)
        throughput += _original_throughput(delivery, arrivals, duration_s)
    first = deliveries[0] if deliveries else None
    seen = kept.count > 0 and first is not None
    size_bytes, frequency_hz = (first.size_bytes or 0, first.frequency_hz or 0.0) if seen and first else (0, 0.0)
    # Neither size nor time of too late messages is kept: 0 bytes in 0 seconds.
    throughput = throughput if seen or received < 2 else math.nan
    counts = (received, late, too_late, lost)
    return Row(node, topic, size_bytes, *counts, *kept.times(), frequency_hz, throughput)


def corrected_subscription(node: str, topic: str, deliveries: Sequence[Delivery], duration_s: float) -> Row:
    """A subscription in perflab's figures: all exact but sd, which is the histogram's (0.1 %)."""
    sizes = [d.size_bytes for d in deliveries if d.size_bytes is not None]
    frequencies = [d.frequency_hz for d in deliveries if d.frequency_hz is not None]
    received, late, too_late = (sum(getattr(d, key) for d in deliveries) for key in ("received", "late", "too_late"))
    times = _exact(hg.merge(d.latency for d in deliveries))
    throughput = sum(d.received * (d.size_bytes or 0) for d in deliveries) / duration_s / KIB
    return Row(
        node, topic, max(sizes, default=0), received, late, too_late, _sum(d.lost for d in deliveries), *times,
        max(frequencies, default=0.0), throughput,
    )  # fmt: skip


def original_publisher(
    node: str, topic: str, size_bytes: int, frequency_hz: float, sent: int, calls: Histogram, duration_s: float
) -> Row:
    """A publisher as the original reports it: times are those of publish(), counts are 0."""
    throughput = (frequency_hz or (sent - 1) / duration_s) * size_bytes / KIB if sent >= 2 else 0.0
    times = _Samples().plus(calls, None).times()
    return Row(node, topic, size_bytes, *_NO_COUNTS, *times, frequency_hz, throughput)


def corrected_publisher(
    node: str, topic: str, size_bytes: int, frequency_hz: float, sent: int, calls: Histogram, duration_s: float
) -> Row:
    """A publisher in perflab's figures. The counts stay 0: only a subscription has them."""
    throughput, times = sent * size_bytes / duration_s / KIB, _exact(calls)
    return Row(node, topic, size_bytes, *_NO_COUNTS, *times, frequency_hz, throughput)


def original_total(rows: Sequence[Row]) -> Total:
    """The original's total of one process: each row's mean is weighted by its received messages, including too late
    ones.

    One subscription that received nothing makes it NaN, as in the original.
    """
    received = sum(row.received for row in rows)
    mean = round_half_up(sum(row.received * row.mean_us for row in rows) / received) if received else math.nan
    return _total(rows, mean)


def corrected_total(rows: Sequence[Row], samples: Sequence[int]) -> Total:
    """perflab's total of one process: the mean of all messages. `samples` is the number of messages behind each row's
    mean."""
    count = sum(samples)
    mean = sum(n * row.mean_us for n, row in zip(samples, rows, strict=True) if n) / count if count else math.nan
    return _total(rows, mean)


def original_aggregate(totals: Sequence[Total]) -> Total:
    """The original's "System total" of several processes: the mean of their means, unweighted and truncated."""
    means = [0 if math.isnan(total.mean_us) else int(total.mean_us) for total in totals]
    return _total(totals, float(sum(means) // len(means)) if means else math.nan)


def corrected_aggregate(totals: Sequence[Total]) -> Total:
    """The total of several processes: a mean that counts every message once."""
    known = [total for total in totals if total.received]
    received = sum(total.received for total in known)
    mean = sum(total.received * total.mean_us for total in known) / received if received else math.nan
    return _total(totals, mean)


def original_lost(delivery: Delivery) -> int:
    """The original's `lost` of one publisher's messages.

    The differences telescope: with N arrivals, of which K have a lower number than expected, and L the number of the
    last, lost = (L + 1) - N + K * 2**32. perflab uses the highest number as L, and the number of messages that came
    after a later one or twice as K; K is exact up to 1, else possibly too high.
    """
    if not delivery.received or delivery.highest_sequence is None:
        return 0
    backwards = delivery.reordered + delivery.duplicate + delivery.beyond_window
    arrivals = delivery.received + delivery.duplicate + delivery.beyond_window
    return (delivery.highest_sequence + 1 - arrivals + backwards * UINT32) % UINT64


def late_text(number: int, latency_us: int, threshold_us: int, *, too_late: bool) -> str:
    """The original's line about a late message."""
    return f"msg {number} {'too late' if too_late else 'late'}. {latency_us}us > {threshold_us}us"


def original_lost_text(number: int, missing: int) -> str:
    """The original's line when message `number` arrives and `missing` messages before it did not: the range runs
    upwards."""
    before = (number - 1) % UINT32
    return f"msg {before} lost." if missing == 1 else f"msgs {before} to {before + missing} lost."


def corrected_lost_text(first: int, missing: int) -> str:
    """The same with the numbers that are missing."""
    return f"msg {first} lost." if missing == 1 else f"msgs {first} to {first + missing - 1} lost."


def cpu_percent_of_machine(cpu_ns: float, wall_ns: float, cpus: int) -> float:
    """CPU use in the original's unit: 100 % is every CPU of the machine busy."""
    return 100.0 * cpu_ns / (wall_ns * cpus) if wall_ns > 0 and cpus > 0 else math.nan


def round_half_up(value: float) -> float:
    """C's round(): halves away from zero; NaN stays NaN."""
    if math.isnan(value) or math.isinf(value):
        return value
    return math.copysign(math.floor(abs(value) + 0.5), value)


@dataclass(frozen=True)
class _Samples:
    """Latencies in whole microseconds, as far as cells show them: their number, sum, and cells for the deviation."""

    count: int = 0
    sum_us: float = 0.0
    sum_of_cells: float = 0.0
    squares_of_cells: float = 0.0
    in_cells: int = 0
    min_us: float = math.nan
    max_us: float = math.nan

    def plus(self, histogram: Histogram, max_us: float | None) -> _Samples:
        """With the values of a histogram; `max_us` if its own maximum is not among them."""
        if not histogram.count or histogram.min is None or histogram.max is None:
            return self
        rest_ns = _mean_rest_ns(histogram.indices)
        middle_us = (_middle(histogram.indices) - rest_ns) / 1000
        return self.merged(
            _Samples(
                count=histogram.count,
                sum_us=(histogram.sum - float((rest_ns * histogram.counts).sum())) / 1000,
                sum_of_cells=float((middle_us * histogram.counts).sum()),
                squares_of_cells=float((middle_us**2 * histogram.counts).sum()),
                in_cells=int(histogram.counts.sum()),
                min_us=float(histogram.min // 1000),
                max_us=float(histogram.max // 1000) if max_us is None else max_us,
            )
        )

    def merged(self, other: _Samples) -> _Samples:
        if not self.count or not other.count:
            return self if self.count else other
        return _Samples(
            self.count + other.count,
            self.sum_us + other.sum_us,
            self.sum_of_cells + other.sum_of_cells,
            self.squares_of_cells + other.squares_of_cells,
            self.in_cells + other.in_cells,
            min(self.min_us, other.min_us),
            max(self.max_us, other.max_us),
        )

    def times(self) -> Times:
        if not self.count:
            return _NO_TIMES
        # Truncation cannot remove more than each sample's fraction, so the smallest sample bounds the mean from below.
        mean, sd = min(max(self.sum_us / self.count, self.min_us), self.max_us), math.nan
        if self.in_cells:
            of_cells = self.sum_of_cells / self.in_cells
            sd = math.sqrt(max(0.0, self.squares_of_cells / self.in_cells - of_cells * of_cells))
        return mean, sd, self.min_us, self.max_us


def _classify(delivery: Delivery, late_ns: int, too_late_ns: int) -> tuple[_Samples, int, int]:
    """The samples that the original keeps, and its late and too late ones, for latencies at and above these limits."""
    latency = delivery.latency
    one_by_one = delivery.late_ns
    if one_by_one is None or delivery.recorded_above_ns >= min(late_ns, too_late_ns):
        above = np.repeat(_middle(latency.indices), latency.counts)
        too_late = int((above >= too_late_ns).sum())
        late = int((above >= late_ns).sum()) - int((above >= max(late_ns, too_late_ns)).sum())
        if too_late == 0:
            return _Samples().plus(latency, None), late, 0
        keep = _middle(latency.indices) < too_late_ns
        gone_ns = float((_middle(latency.indices)[~keep] * latency.counts[~keep]).sum())
        return _kept(latency, latency.counts * keep, too_late, gone_ns, ()), late, too_late
    gone = [ns for ns in one_by_one if ns >= too_late_ns]
    late_ones = [ns for ns in one_by_one if late_ns <= ns < too_late_ns]
    if not gone:
        return _Samples().plus(latency, None), len(late_ones), 0
    counts = latency.counts.copy()
    for ns in gone:
        counts[np.searchsorted(latency.indices, hg.index_of(np.array([min(ns, hg.HIGHEST_NS)])))] -= 1
    left = [ns for ns in one_by_one if ns < too_late_ns]
    return _kept(latency, counts, len(gone), float(sum(gone)), left), len(late_ones), len(gone)


def _kept(latency: Histogram, counts: Int64s, gone: int, gone_ns: float, late_left: Sequence[int]) -> _Samples:
    """A histogram without its too late messages; its maximum is that of the remaining late ones, or of the last
    cell."""
    filled = counts > 0
    if not filled.any() or latency.min is None or latency.max is None:
        return _Samples()
    highest = max(late_left) if late_left else int(hg.highest_value(latency.indices[filled][-1:])[0])
    rest = Histogram(
        indices=latency.indices[filled],
        counts=counts[filled],
        count=latency.count - gone,
        sum=round(latency.sum - gone_ns),
        min=latency.min,
        max=latency.max,
        max_at_ns=None,
    )
    return _Samples().plus(rest, float(min(highest, latency.max) // 1000))


def _original_throughput(delivery: Delivery, arrivals: int, duration_s: float) -> float:
    first, last = delivery.first_sequence, delivery.highest_sequence
    if arrivals < 2 or first is None or last is None:
        return 0.0
    interval_s = (last - first) / delivery.frequency_hz if delivery.frequency_hz else duration_s
    if interval_s <= 0:
        return math.inf
    return (arrivals - 1) / interval_s * (delivery.size_bytes or 0) / KIB


def _exact(histogram: Histogram) -> Times:
    """The sd is from the cells."""
    mean_ns = hg.mean(histogram)
    if mean_ns is None or histogram.min is None or histogram.max is None or not histogram.counts.size:
        return _NO_TIMES
    middle = _middle(histogram.indices).astype(np.float64)
    weights = histogram.counts / histogram.counts.sum()
    center = float((middle * weights).sum())
    sd_ns = math.sqrt(float(((middle - center) ** 2 * weights).sum()))
    return mean_ns / 1000, sd_ns / 1000, histogram.min / 1000, histogram.max / 1000


def _total(parts: Sequence[Row] | Sequence[Total], mean_us: float) -> Total:
    def share(part: int | None, whole: int) -> float:
        return math.nan if part is None or not whole else part / whole * 100

    received, late, too_late = (sum(getattr(p, key) for p in parts) for key in ("received", "late", "too_late"))
    lost = _sum(p.lost for p in parts)
    lost = None if lost is None else lost % UINT64
    return Total(
        received=received,
        mean_us=mean_us,
        late=late,
        late_percent=share(late, received),
        too_late=too_late,
        too_late_percent=share(too_late, received),
        lost=lost,
        lost_percent=share(lost, received + (lost or 0)),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """None if one of them is unknown."""
    known = list(counts)
    return None if None in known else sum(n for n in known if n is not None)


def _threshold_us(absolute_us: int, percentage: int, frequency_hz: float | None) -> int:
    """The original's limit; without a period (a reaction publishes), only the absolute time."""
    if not frequency_hz:
        return absolute_us
    period_us = int(np.float32(1_000_000) / np.float32(frequency_hz))
    return min(absolute_us, percentage * period_us // 100)


def _first_above_ns(threshold_us: int) -> int:
    """The shortest time that is longer than a threshold when truncated to microseconds."""
    return (threshold_us + 1) * 1000


def _middle(indices: Int64s) -> Int64s:
    low = hg.lowest_value(indices)
    middle: Int64s = low + (hg.highest_value(indices) - low) // 2
    return middle


def _mean_rest_ns(indices: Int64s) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The average loss of a value by truncation to microseconds, over all values of each cell."""
    low, end = hg.lowest_value(indices), hg.highest_value(indices) + 1

    def sum_below(x: Int64s) -> Int64s:
        rest = x % 1000
        total: Int64s = x // 1000 * 499_500 + rest * (rest - 1) // 2
        return total

    rests: np.ndarray[tuple[int], np.dtype[np.float64]] = (sum_below(end) - sum_below(low)) / (end - low)
    return rests
