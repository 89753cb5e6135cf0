"""The seconds of a log as counts and nanoseconds: values of rows, corrected or left out if the files are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perflab.formats.performance_test import dialect
from perflab.formats.performance_test.dialect import Log, Second
from perflab.results.figure import Distribution
from perflab.results.trial import added

_SINCE_BOOT_S = 10  # longer than a row can be, except by its position: no row lasts that long
_OVERFLOW_NS = 3.037e9  # the root of 2^63: a sum of latencies from which the variance of 2.x overflows
_NS = 1e9


@dataclass(frozen=True)
class Row:
    """A second in counts and nanoseconds. `received` and `lost` are over all subscriptions of the process."""

    begin_ns: int
    end_ns: int
    sent: int | None
    received: int | None
    lost: int | None
    minimum: float | None
    mean: float | None
    maximum: float | None
    variance: float | None
    cpu_usage: float | None  # percent of all CPUs
    second: Second

    @property
    def lasted_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Process:
    """The seconds of a log that count; `notes` says what was left out."""

    log: Log
    name: str
    rows: tuple[Row, ...]
    since_start: bool  # latencies of a row are those of all rows up to it
    notes: tuple[str, ...]

    @property
    def measured_s(self) -> float:
        return sum(row.lasted_ns for row in self.rows) / _NS

    @property
    def subscribes(self) -> bool:
        return self.log.whole("number_of_subscribers") != 0 and any(row.received is not None for row in self.rows)

    @property
    def publishes(self) -> bool:
        return self.log.whole("number_of_publishers") != 0 and any(row.sent is not None for row in self.rows)


def process_of(log: Log, several: bool) -> Process:
    notes: list[str] = []
    seconds = list(log.seconds)
    if seconds and _since_boot(seconds[0]):
        seconds = seconds[1:]
        left = "nothing is left" if not seconds else "its losses are unknown"
        notes.append(f"the first row is left out: its time is that since boot, and {left}")
    if not seconds:
        notes.append("there is no row")
    elif any(row.loop_s is None for row in seconds):
        notes.append("rows do not have their length; each is assumed to be one second")
    since_start = _since_start(log, seconds)
    if since_start:
        notes.append(
            "latencies of each row are those since the start, as in some versions 1.x: those of the last row are "
            "shown, and none over time"
        )
    rows = tuple(_rows(log, seconds, notes))
    name = log.external.get(dialect.PROCESS) if log.is_own else log.path.stem if several else None
    return Process(log, name or "", rows, since_start, tuple(notes))


def ignored_s(log: Log) -> int:
    """How many seconds at the beginning have no rows. JSON does not have it; there the first row determines it."""
    if (said := log.whole("ignore_seconds")) is not None or log.older or not log.seconds:
        return said or 0
    return int(log.seconds[0].experiment_s or 0)


def _since_boot(row: Second) -> bool:
    """Whether the time of a row is clock time, which steady_clock counts from boot."""
    return row.loop_s is not None and row.experiment_s is not None and row.loop_s > row.experiment_s + _SINCE_BOOT_S


def _since_start(log: Log, seconds: Sequence[Second]) -> bool:
    """Whether latencies are cumulative: minimum and maximum only ever widen, over enough rows to exclude chance."""
    if log.is_own or (log.text("perf_test_version") or "").startswith("2."):
        return False
    ranges = [
        (s.latency_min_s, s.latency_max_s)
        for s in seconds
        if s.latency_min_s is not None and s.latency_max_s is not None
    ]
    if len(ranges) < 4 or len(set(ranges)) == 1:
        return False
    return all(low <= before[0] and high >= before[1] for before, (low, high) in pairwise(ranges))


def _rows(log: Log, seconds: Sequence[Second], notes: list[str]) -> Iterator[Row]:
    """In a file of 2018-19 T_experiment is the end of a row, in later ones its beginning.

    The CPU use of the first row in a file is that since boot, even if its time is not, because rows were ignored.
    """
    first = next((s.experiment_s for s in log.seconds), None)
    ends = log.older and first is not None and first >= ignored_s(log) + 0.5
    subscribers = log.whole("number_of_subscribers") or 1
    at_ns = 0
    bad = 0
    for second in seconds:
        lasted_s = 1.0 if second.loop_s is None else second.loop_s
        begin_ns = at_ns
        if second.experiment_s is not None:
            begin_ns = max(0, round((second.experiment_s - (lasted_s if ends else 0)) * _NS))
        at_ns = begin_ns + round(lasted_s * _NS)
        exact = log.accounting == dialect.CORRECTED
        variance, dubious = _variance(log, second)
        bad += dubious
        received = None if second.received is None else _messages(second.received, lasted_s, exact)
        if (
            second.latency_n is not None
            and received is not None
            and abs(second.latency_n - received) <= subscribers + 1
        ):
            received = int(second.latency_n)
        yield Row(
            begin_ns=begin_ns,
            end_ns=at_ns,
            sent=None if second.sent is None else _messages(second.sent, lasted_s, exact),
            received=received,
            lost=None if second.lost is None else _messages(second.lost, lasted_s, exact),
            minimum=_ns(second.latency_min_s),
            mean=_ns(second.latency_mean_s) if received else None,
            maximum=_ns(second.latency_max_s),
            variance=None if variance is None or not received else variance * _NS**2,
            cpu_usage=second.cpu_usage if second is not log.seconds[0] or log.is_own else None,
            second=second,
        )
    if bad:
        of = "row has" if bad == 1 else "rows have"
        notes.append(
            f"{bad} {of} no variance: it overflowed, as it does in 2.x if the latencies of a second add up to 3.04 s"
        )


def _messages(per_second: float, lasted_s: float, exact: bool) -> int:
    """The least count that, divided by the time and truncated, gives this value."""
    return int(per_second) if exact else math.ceil(per_second * lasted_s - 1e-6)


def _variance(log: Log, second: Second) -> tuple[float | None, bool]:
    """In s², and whether it is unknown because it overflowed.

    2.x subtracts from the sum of squares the square of the sum over n, which it truncates to 64 bits. In JSON the sum
    is precise enough to restore the whole square; four digits of CSV are too few.
    """
    variance, mean = second.latency_variance_s2, second.latency_mean_s
    if variance is None or mean is None or log.is_own:
        return variance, False
    version = log.text("perf_test_version") or ""
    n = second.latency_n if second.latency_n is not None else second.received
    could = n is not None and n * mean * _NS >= _OVERFLOW_NS and not log.older and not version.startswith(("0.", "1."))
    if second.latency_n is not None and could and second.latency_m2_s2 is not None and n is not None and n > 1:
        total = round(mean * n * _NS)
        square = total * total
        wrapped = (square + 2**63) % 2**64 - 2**63
        mended = second.latency_m2_s2 + (wrapped - square) / n / _NS**2
        return (mended / (n - 1), False) if mended >= 0 else (None, True)
    return (None, True) if could or variance < 0 else (variance, False)


def distribution_of(process: Process) -> Distribution:
    rows = [row for row in process.rows if row.maximum is not None]
    if process.since_start and rows:
        last = rows[-1]
        sd = None if last.variance is None else math.sqrt(last.variance)
        n = last.second.latency_n
        count = None if n is None else int(n)
        return Distribution(count=count, min=_whole(last.minimum), mean=last.mean, max=_whole(last.maximum), sd=sd)
    parts = [
        Distribution(
            count=row.received,
            min=_whole(row.minimum),
            mean=row.mean,
            max=_whole(row.maximum),
            sd=None if row.variance is None else math.sqrt(row.variance),
        )
        for row in process.rows
    ]
    return pooled(parts)


def pooled(parts: Iterable[Distribution]) -> Distribution:
    """Over all messages together. The deviation of a single message, which has none, is 0."""
    found = list(parts)
    known = [p for p in found if p.mean is not None]
    count = added(p.count for p in found)
    weights = [p.count for p in known]
    mean = sd = None
    if len(known) == 1:
        mean, sd = known[0].mean, known[0].sd
    elif known and None not in weights and (weight := sum(n or 0 for n in weights)):
        mean = sum((p.count or 0) * (p.mean or 0.0) for p in known) / weight
        spreads = [0.0 if p.count == 1 else p.sd for p in known]
        if None not in spreads and weight > 1:
            squares = sum(
                max(0, (p.count or 0) - 1) * (s or 0.0) ** 2 + (p.count or 0) * ((p.mean or 0.0) - mean) ** 2
                for p, s in zip(known, spreads, strict=True)
            )
            sd = math.sqrt(squares / (weight - 1))
    return Distribution(
        count=count,
        min=min((p.min for p in found if p.min is not None), default=None),
        mean=mean,
        max=max((p.max for p in found if p.max is not None), default=None),
        sd=sd,
    )


def size_of(process: Process) -> int | None:
    """Bytes of a message in memory: the only number on which all rows agree."""
    low, high = 0.0, math.inf
    for row in process.rows:
        data, received = row.second.data_received, row.second.received
        if not data or not received or row.received is None or row.second.loop_s is None:
            continue
        if process.log.accounting == dialect.CORRECTED:
            low, high = max(low, data / received), min(high, data / received)
        else:
            lasted_s = row.lasted_ns / _NS
            most = row.received if row.second.latency_n is not None else (received + 1) * lasted_s
            low = max(low, data * lasted_s / most)
            high = min(high, (data + 1) * lasted_s / row.received)
    least = math.ceil(low - 1e-9)
    return least if 0 < least <= high + 1e-9 and least + 1 > high else None


def cpus_of(process: Process) -> int | None:
    said = process.log.external.get(dialect.CPUS, "") if process.log.is_own else ""
    cores = next((row.second.cpu_cores for row in process.rows if row.second.cpu_cores), None)
    return int(cores) if cores else int(said) if said.isdigit() and int(said) > 0 else None


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * _NS


def _whole(ns: float | None) -> int | None:
    return None if ns is None else round(ns)
