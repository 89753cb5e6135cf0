"""What a flood promised and what it achieved, from the counts of its senders and receivers.

Every process of a trial writes the cumulative counts of a condition's nodes every second. Counts are assumed to grow
evenly between two lines, so the counts of all processes are known at the same instants, to a line's interval. A process
that is silent for longer than that leaves seconds whose counts are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from perflab.condition import Counts, Evidence, Shown, Window
from perflab.condition.flood_churn import ChurnAchieved, ChurnPromised
from perflab.condition.flood_graph import Flood
from perflab.formats import records
from perflab.units import NS_PER_S

MADE_UP_FOR_S = 0.1  # catch-up rate of perflab-node's timers of conditions
# Share of what a reliable flow offered by the end of the window: the rest may be under way.
DELIVERED_AT_LEAST = 0.95
# Best effort may lose messages, but a reader that gets less than half of them is not the promised one.
BEST_EFFORT_DELIVERED_AT_LEAST = 0.5
# Processes report every second, and slightly later on a busy machine.
SILENT_AT_MOST_NS = 3 * NS_PER_S
# Two and a half reports: what happened within a longer silence is unknown, and interpolation is not a count.
LONGEST_SILENCE_NS = 5 * NS_PER_S // 2
# Below this many messages per publisher and second, a full second may have none.
STEADY_FROM_HZ = 2.0

NO_READER = "nothing was delivered: no reader"


Offered = Annotated[float | None, Shown("messages offered", "1/s")]
Delivered = Annotated[float | None, Shown("messages delivered", "1/s", zero=False)]
OfferedMegabytes = Annotated[float | None, Shown("offered", "MB/s")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    """For churn alone, `publishers` is 0 and the rest null."""

    publishers: int
    """Publishers of the flood."""
    rate_hz: float | None = None
    """Messages per second of each publisher."""
    messages_per_s: Offered = None
    """Messages per second of all publishers."""
    deliveries_per_s: Delivered = None
    """Deliveries per second to all readers, as far as they keep up."""
    megabytes_per_s: OfferedMegabytes = None
    """Payload of all messages per second."""
    payload_bytes: int | Mapping[str, int] | None = None
    """Payload of a message; by topic if they differ."""
    at_least_percent: float | None = None
    """Share of the messages that must be sent in every second."""
    reliability: tuple[str, ...] = ()
    """QoS of its publishers."""
    readers: str | None = None
    """Who reads."""
    subscriptions: int | None = None
    """Names of its topics."""
    reader_limit_per_s: float | None = None
    """Messages that readers can process if they work on each; null without work."""
    churn: ChurnPromised | None = None
    """Null without churn."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """As counted by its publishers and readers; null for churn alone."""

    seconds: float | None = None
    """The part of the measured part whose counts are known."""
    sent: int | None = None
    """Messages that were written."""
    not_sent: int | None = None
    """Messages that could not be written in time."""
    write_errors: int | None = None
    """Messages that the middleware refused; null: no process wrote its last checkpoint."""
    messages_per_s: Offered = None
    """Sent."""
    deliveries_per_s: Delivered = None
    """Received."""
    megabytes_per_s: OfferedMegabytes = None
    """Payload sent."""
    deliveries_expected: int | None = None
    """Messages that readers should have received, once for each reader."""
    delivered: int | None = None
    """Messages that they received."""
    delivered_megabytes_per_s: float | None = None
    """Payload received."""
    matched_readers: int | None = None
    """Readers matched before the start, as reported by its publishers."""
    sent_in_second: tuple[int | None, ...] | None = None
    """Messages sent, second by second; null if a process was silent, and in virtual time."""
    delivered_in_second: tuple[int | None, ...] | None = None
    """Received, likewise."""
    last_heard_s: Mapping[str, float] = field(default_factory=dict)
    """When each process last reported, from the start of the measured part."""
    churn: ChurnAchieved | None = None
    """Null without churn."""


@dataclass(frozen=True, kw_only=True)
class FloodEvidence(Evidence):
    promised: Promised
    achieved: Achieved | None
    notes: tuple[str, ...] = ()
    """What the evidence of its readers must contain."""


@dataclass(frozen=True)
class Silence:
    """A time in which a process should have reported."""

    process: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Curve:
    """The reports of one process, in time order; the first point is the start of the measured part."""

    process: str
    points: tuple[Counts, ...]

    @property
    def last_at_ns(self) -> int:
        return self.points[-1].at_ns

    def silences(self, window: Window) -> list[Silence]:
        """Where in the window it was silent for too long."""
        instants = [point.at_ns for point in self.points] + [max(self.last_at_ns, window.end_ns)]
        inside = [min(max(at_ns, window.begin_ns), window.end_ns) for at_ns in instants]
        return [Silence(self.process, a, b) for a, b in pairwise(inside) if b - a > LONGEST_SILENCE_NS]

    def at(self, at_ns: int) -> Counts:
        """The counts at an instant; before the first point and after the last one, those of that point."""
        before = self.points[0]
        for after in self.points:
            if after.at_ns >= at_ns:
                return _between(before, after, at_ns)
            before = after
        return before


@dataclass(frozen=True)
class Account:
    """What is recorded about a flood in a trial."""

    curves: tuple[Curve, ...]
    sending_ends_ns: int  # nothing is sent after it
    last: Counts | None = None  # of all processes together, as of their last reports
    matched_readers: int | None = None  # of all publishers, as they reported before the start
    write_errors: int | None = None

    @property
    def common_until_ns(self) -> int:
        """The time until which every process has reported."""
        return min(curve.last_at_ns for curve in self.curves)

    @property
    def until_ns(self) -> int:
        return max(self.common_until_ns, self.last.at_ns if self.last else 0)

    def at(self, at_ns: int) -> Counts:
        """The counts of all processes together; none of them is extrapolated."""
        known_ns = self.common_until_ns
        if self.last is None or at_ns <= known_ns or self.last.at_ns <= known_ns:
            return _sum(at_ns, [curve.at(at_ns) for curve in self.curves])
        known = _sum(known_ns, [curve.at(known_ns) for curve in self.curves])
        # Nothing is sent after the end, so what the last report adds belongs before it; the few deliveries between the
        # end and that report are counted with them.
        return _between(known, replace(self.last, at_ns=min(self.last.at_ns, self.sending_ends_ns)), at_ns)


def account(folder: Path, label: str, counts: Counts | None, window: Window, names: Iterable[str]) -> Account:
    """What the processes of a trial recorded about a condition in `folder`, and last reported.

    `names` are the qualified names of the condition's publishers. Raises RecordError and OSError.
    """
    publishers = frozenset(names)
    files = [_read(path, label, window.begin_ns, publishers) for path in sorted(folder.glob("*.jsonl"))]
    return Account(
        tuple(file.curve for file in files if file.curve is not None),
        window.end_ns,
        counts,
        _total(file.matched for file in files),
        _total(file.write_errors for file in files),
    )


def in_virtual_time(counts: Counts | None, window: Window) -> Account:
    """For a trial in virtual time, of which only the totals are known."""
    if counts is None:
        return Account((), window.end_ns)
    begin, end = Counts(window.begin_ns, 0, 0, 0, 0), replace(counts, at_ns=window.end_ns)
    return Account((Curve("virtual", (begin, end)),), window.end_ns, end)


@dataclass(frozen=True)
class _File:
    """The records of one process about a flood."""

    curve: Curve | None
    matched: int | None
    write_errors: int | None


def _read(path: Path, label: str, begin_ns: int, publishers: frozenset[str]) -> _File:
    points: list[Counts] = []
    matched = write_errors = None
    for record in records.lines(path, "start", "progress", "passing", "checkpoint"):
        if record is None:
            continue  # an incomplete last line
        kind = record.get("type")
        if kind == "start":
            begin_ns = int(record["measured_from_ns"])
        elif kind == "progress" and (own := (record.get("conditions") or {}).get(label)):
            points.append(Counts(int(record["at_ns"]), **{key: own[key] for key in _COUNTED}))
        elif kind == "passing" and (ways := _of(publishers, record)):
            matched = sum(way["intra_process"] + way["middleware"] for way in ways)
        elif kind == "checkpoint" and (counted := _of(publishers, record)):
            write_errors = sum(publisher["write_errors"] for publisher in counted)
    begin = Counts(begin_ns, 0, 0, 0, 0)
    curve = Curve(path.stem, (begin, *(p for p in points if p.at_ns > begin_ns))) if points else None
    return _File(curve, matched, write_errors)


def _of(publishers: frozenset[str], record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [publisher for publisher in record["publishers"] if publisher["node"] in publishers]


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def promised(flood: Flood) -> Promised:
    limit, sizes = flood.reader_limit_per_s, {topic.size_bytes for topic in flood.topics}
    return Promised(
        publishers=flood.publishers,
        rate_hz=flood.rate_hz,
        messages_per_s=flood.messages_per_s,
        deliveries_per_s=flood.deliveries_per_s if limit is None else min(flood.deliveries_per_s, limit),
        megabytes_per_s=flood.bytes_per_s / 1e6,
        payload_bytes=sizes.pop() if len(sizes) == 1 else {topic.name: topic.size_bytes for topic in flood.topics},
        at_least_percent=flood.asked.at_least,
        reliability=tuple(sorted({str(topic.qos["reliability"]) for topic in flood.topics})),
        readers=flood.asked.readers,
        subscriptions=sum(topic.subscriptions for topic in flood.topics),
        reader_limit_per_s=limit,
    )


def judge(flood: Flood, known: Account, window: Window, *, seconds: bool = True) -> FloodEvidence:
    """The evidence of a flood. Without `seconds`, the window is judged as a whole, as virtual time requires."""
    promise = promised(flood)
    if not known.curves and known.last is not None:
        # Too short for a report in between: the counts at the end are judged as a whole.
        begin, end = Counts(window.begin_ns, 0, 0, 0, 0), replace(known.last, at_ns=window.end_ns)
        if window.end_ns - window.begin_ns > LONGEST_SILENCE_NS:
            mute = f"no process of the flood reported anything in the {window.seconds:.3g} s of the measured part"
            return FloodEvidence(promised=promise, achieved=None, reason=mute)
        known, seconds = replace(known, curves=(Curve("all processes", (begin, end)),), last=end), False
    if not known.curves:
        unknown = "no process counted a message of the flood, so it is unknown whether there was one"
        return FloodEvidence(promised=promise, achieved=None, reason=unknown)
    return _Judge(flood, known, window, seconds).evidence(promise)


class _Judge:
    """What a flood achieved, in steps of a second or, without `seconds`, in one."""

    def __init__(self, flood: Flood, known: Account, window: Window, seconds: bool) -> None:
        self.flood, self.known, self.window, self.seconds = flood, known, window, seconds
        end_ns = max(window.begin_ns + 1, min(window.end_ns, known.until_ns))
        self.length_s = (end_ns - window.begin_ns) / NS_PER_S
        self.total = _minus(known.at(end_ns), known.at(window.begin_ns))
        begins = [window.begin_ns + k * NS_PER_S for k in range(int(self.length_s) + 1)]
        self.edges = list(pairwise(begins if seconds else [window.begin_ns, end_ns]))
        self.steps = [_minus(known.at(b), known.at(a)) for a, b in self.edges]
        self.silences = [silence for curve in known.curves for silence in curve.silences(window)] if seconds else []

    def evidence(self, promise: Promised) -> FloodEvidence:
        flood, known, total, length_s = self.flood, self.known, self.total, self.length_s
        payload = flood.bytes_per_s / flood.messages_per_s if flood.publishers else 0.0
        achieved = Achieved(
            seconds=length_s,
            sent=round(total.sent),
            not_sent=round(total.not_sent),
            write_errors=known.write_errors,
            messages_per_s=total.sent / length_s,
            deliveries_per_s=total.received / length_s,
            megabytes_per_s=total.sent / length_s * payload / 1e6,
            deliveries_expected=round(total.deliveries_expected),
            delivered=round(total.received),
            delivered_megabytes_per_s=total.received / length_s * payload / 1e6,
            matched_readers=known.matched_readers,
            sent_in_second=self._by_second([step.sent for step in self.steps]),
            delivered_in_second=self._by_second([step.received for step in self.steps]),
            last_heard_s={c.process: (c.last_at_ns - self.window.begin_ns) / NS_PER_S for c in known.curves},
        )
        reason = self._silence() or self._offered() or self._delivered()
        return FloodEvidence(promised=promise, achieved=achieved, reason=reason, notes=tuple(self._notes()))

    def _by_second(self, figures: Sequence[float]) -> tuple[int | None, ...] | None:
        """Unknown in the seconds in which a process was silent."""
        if not self.seconds:
            return None
        heard = [not any(a < s.end_ns and b > s.begin_ns for s in self.silences) for a, b in self.edges]
        return tuple(round(figure) if known else None for figure, known in zip(figures, heard, strict=True))

    def _silence(self) -> str | None:
        """Whether a process did not report for a while, or stopped before the end."""
        window, last_at_ns = self.window, {curve.process: curve.last_at_ns for curve in self.known.curves}
        for silence in self.silences:
            if silence.begin_ns < last_at_ns[silence.process]:  # it reported again
                return (
                    f"process {silence.process} reported nothing for "
                    f"{(silence.end_ns - silence.begin_ns) / NS_PER_S:.1f} s, from "
                    f"{(silence.begin_ns - window.begin_ns) / NS_PER_S:.1f} s into the measured part"
                )
        for process, at_ns in last_at_ns.items():
            if window.end_ns - at_ns > SILENT_AT_MOST_NS:
                return (
                    f"process {process} last reported {(window.end_ns - at_ns) / NS_PER_S:.1f} s before the end "
                    f"of the measured part; a flood of {window.seconds:.3g} s was promised"
                )
        return None

    def _offered(self) -> str | None:
        """Whether too little was sent, as a whole or in some second."""
        flood = self.flood
        if flood.is_held_back:
            silent = next((n for n, step in enumerate(self.steps) if step.sent < 1), None)
            if silent is None or flood.rate_hz < STEADY_FROM_HZ:
                return None
            return f"nothing was sent in {self._span(silent)}; readers may slow a flood down, but not stop it"
        slack = float(flood.publishers)  # a second may cut off one message of each publisher
        least = flood.asked.at_least / 100
        wanted = least * flood.messages_per_s
        moved = MADE_UP_FOR_S * flood.messages_per_s  # messages that a stall at its end moves into the next second
        for number, step in enumerate(self.steps):
            if self.seconds and step.sent < wanted - moved - slack:
                return (
                    f"{step.sent:.0f} messages were sent in second {number + 1}, of {flood.messages_per_s:.0f} "
                    f"promised; at least {least:.0%} is needed in every second"
                )
        if self.total.sent < wanted * self.length_s - slack:
            return (
                f"{self.total.sent / self.length_s:.1f} messages/s were sent, of {flood.messages_per_s:.1f} promised; "
                f"at least {least:.0%} is needed"
            )
        return None

    def _delivered(self) -> str | None:
        """Whether readers received enough; if none was promised, whether there was one all the same."""
        flood, known, total = self.flood, self.known, self.total
        if flood.deliveries_per_s == 0:
            if total.received or total.deliveries_expected or known.matched_readers:
                return (
                    f"no reader was promised, but there are {known.matched_readers or 0} and "
                    f"{total.received:.0f} messages were delivered"
                )
            return None
        if known.matched_readers == 0:
            return "readers were promised, but no publisher of the flood had one"
        for number, step in enumerate(self.steps):
            if flood.rate_hz >= STEADY_FROM_HZ and step.received < 1:
                return f"no message of the flood was delivered in {self._span(number)}"
        # Messages under way at the end may have arrived since.
        final = known.last or total
        least = DELIVERED_AT_LEAST if flood.is_reliable else BEST_EFFORT_DELIVERED_AT_LEAST
        # The workload's executor may be busy with other things.
        keep_up = flood.asked.readers == "external" and not flood.falls_behind
        if keep_up and final.received < least * final.deliveries_expected - flood.publishers:
            kind = "reliable" if flood.is_reliable else "best-effort"
            return (
                f"{final.received:.0f} messages were delivered, of {final.deliveries_expected:.0f} sent to {kind} "
                f"readers; at least {least:.0%} is needed"
            )
        return None

    def _notes(self) -> Iterator[str]:
        flood, total = self.flood, self.total
        if flood.publishers and flood.deliveries_per_s == 0:
            yield NO_READER
        if flood.falls_behind:
            yield (
                f"readers work {flood.asked.work / 1e6:.3g} ms on each message, so that at most "
                f"{flood.reader_limit_per_s:.0f} of {flood.deliveries_per_s:.0f} deliveries/s are possible"
            )
        if flood.throttled:
            yield "readers that fall behind slow the publishers down, as the mitigation intends"
        elif flood.is_held_back:
            yield (
                "nothing may be lost, so slow readers slow the publishers down once the queues are full, or their "
                "memory grows, depending on the middleware"
            )
        of = total.deliveries_expected
        if flood.asked.readers in ("inside", "topics") and total.received < DELIVERED_AT_LEAST * of:
            yield f"{total.received / of:.1%} was delivered; deliveries depend on the workload's executor"

    def _span(self, number: int) -> str:
        return f"second {number + 1}" if self.seconds else "the whole measured part"


def _between(a: Counts, b: Counts, at_ns: int) -> Counts:
    if b.at_ns <= a.at_ns or at_ns >= b.at_ns:
        return b
    share = max(0.0, (at_ns - a.at_ns) / (b.at_ns - a.at_ns))
    return _each(at_ns, lambda x, y: x + share * (y - x), a, b)


def _minus(a: Counts, b: Counts) -> Counts:
    return _each(a.at_ns, lambda x, y: x - y, a, b)


def _sum(at_ns: int, counts: Sequence[Counts]) -> Counts:
    return _each(at_ns, lambda *values: sum(values), *counts)


def _each(at_ns: int, of: Callable[..., float], *counts: Counts) -> Counts:
    """Applies a function to each count of these."""
    return Counts(at_ns, **{key: of(*(getattr(one, key) for one in counts)) for key in _COUNTED})


_COUNTED = ("sent", "not_sent", "deliveries_expected", "received")
