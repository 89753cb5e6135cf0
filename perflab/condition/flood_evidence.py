"""What a flood promised and what it achieved, from the counts of those who sent and those who received.

Every process of a trial writes the cumulative counts of a condition's nodes every second. Between two lines counts are
taken as growing evenly, so the counts of all processes are known at the same instants, to a line's interval. A process
that says nothing for longer than that leaves seconds of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from perflab.condition import Counts, Evidence, Window
from perflab.condition.flood_graph import Flood
from perflab.condition.flood_parameters import FloodParameters
from perflab.formats import records
from perflab.units import NS_PER_S

MADE_UP_FOR_S = 0.1  # by how much perflab-node's timers of conditions make up for what is late
# Of what a reliable flow offered, by the end of the window: the rest may be under way.
DELIVERED_AT_LEAST = 0.95
# Best effort may lose messages, but a reader that gets less than half of them is not the one that was promised.
BEST_EFFORT_DELIVERED_AT_LEAST = 0.5
# A reader that needs more of its thread than this falls behind sooner or later, whatever the middleware does.
KEEPS_UP_BELOW = 0.8
# Processes report every second; on a busy machine later, but not much.
SILENT_AT_MOST_NS = 3 * NS_PER_S
# Two words and a half: what happened within a longer silence is not known, and a line drawn through it is no count.
LONGEST_SILENCE_NS = 5 * NS_PER_S // 2
# Below so many messages per publisher and second, a full second may have none.
STEADY_FROM_HZ = 2.0

NO_READER = "nothing was delivered: no reader"


@dataclass(frozen=True)
class Point:
    """Counts of the measured part until an instant."""

    at_ns: int
    sent: float
    not_sent: float
    expected: float
    received: float


@dataclass(frozen=True)
class Silence:
    """A time in which a process should have said something."""

    process: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Curve:
    """What one process said, in the order of time; its first point is the start of the measured part."""

    process: str
    points: tuple[Point, ...]

    @property
    def last_at_ns(self) -> int:
        return self.points[-1].at_ns

    def silences(self, window: Window) -> list[Silence]:
        """Where in the window it said nothing for too long."""
        instants = [point.at_ns for point in self.points] + [max(self.last_at_ns, window.end_ns)]
        inside = [min(max(at_ns, window.begin_ns), window.end_ns) for at_ns in instants]
        return [Silence(self.process, a, b) for a, b in pairwise(inside) if b - a > LONGEST_SILENCE_NS]

    def at(self, at_ns: int) -> Point:
        """The counts at an instant; before the first point and behind the last one, those of that point."""
        before = self.points[0]
        for after in self.points:
            if after.at_ns >= at_ns:
                return _between(before, after, at_ns)
            before = after
        return before


@dataclass(frozen=True)
class Account:
    """What is known of a flood in a trial."""

    curves: tuple[Curve, ...]
    sending_ends_ns: int  # nothing is sent behind it
    last: Point | None = None  # of all processes together, as they last said
    matched_readers: int | None = None  # of all publishers, as they themselves told before the start
    write_errors: int | None = None

    @property
    def common_until_ns(self) -> int:
        """Until when every process has reported."""
        return min(curve.last_at_ns for curve in self.curves)

    @property
    def until_ns(self) -> int:
        return max(self.common_until_ns, self.last.at_ns if self.last else 0)

    def at(self, at_ns: int) -> Point:
        """The counts of all processes together; none of them is extrapolated."""
        known_ns = self.common_until_ns
        if self.last is None or at_ns <= known_ns or self.last.at_ns <= known_ns:
            return _sum(at_ns, [curve.at(at_ns) for curve in self.curves])
        known = _sum(known_ns, [curve.at(known_ns) for curve in self.curves])
        # Nothing is sent behind the end, so what the last word adds belongs before it; of deliveries the few that came
        # between the end and that word are counted with them.
        return _between(known, replace(self.last, at_ns=min(self.last.at_ns, self.sending_ends_ns)), at_ns)


def account(folder: Path, label: str, counts: Counts | None, window: Window, names: Iterable[str]) -> Account:
    """What the processes of a trial recorded in `folder` of a condition, and last said.

    `names` are the qualified names of the condition's publishers. Raises RecordError and OSError.
    """
    publishers = frozenset(names)
    files = [_read(path, label, window.begin_ns, publishers) for path in sorted(folder.glob("*.jsonl"))]
    return Account(
        tuple(file.curve for file in files if file.curve is not None),
        window.end_ns,
        _last(counts),
        _total(file.matched for file in files),
        _total(file.write_errors for file in files),
    )


def in_virtual_time(counts: Counts | None, window: Window) -> Account:
    """Of a trial that ran in virtual time, of which the totals are known alone."""
    if counts is None:
        return Account((), window.end_ns)
    begin, end = Point(window.begin_ns, 0, 0, 0, 0), replace(_word(counts), at_ns=window.end_ns)
    return Account((Curve("virtual", (begin, end)),), window.end_ns, end)


@dataclass(frozen=True)
class _File:
    """What the records of one process hold of a flood."""

    curve: Curve | None
    matched: int | None
    write_errors: int | None


def _read(path: Path, label: str, begin_ns: int, publishers: frozenset[str]) -> _File:
    points: list[Point] = []
    matched = write_errors = None
    for record in records.lines(path):
        if record is None:
            continue  # a last line that is being written
        kind = record.get("type")
        if kind == "start":
            begin_ns = int(record["measured_from_ns"])
        elif kind == "progress" and (own := (record.get("conditions") or {}).get(label)):
            points.append(_point(record["at_ns"], own))
        elif kind == "passing" and (ways := _of(publishers, record)):
            matched = sum(way["intra_process"] + way["middleware"] for way in ways)
        elif kind == "checkpoint" and (counted := _of(publishers, record)):
            write_errors = sum(publisher["write_errors"] for publisher in counted)
    begin = Point(begin_ns, 0, 0, 0, 0)
    curve = Curve(path.stem, (begin, *(p for p in points if p.at_ns > begin_ns))) if points else None
    return _File(curve, matched, write_errors)


def _of(publishers: frozenset[str], record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [publisher for publisher in record["publishers"] if publisher["node"] in publishers]


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _word(counts: Counts) -> Point:
    return Point(counts.at_ns, counts.sent, counts.not_sent, counts.deliveries_expected, counts.received)


def _last(counts: Counts | None) -> Point | None:
    return None if counts is None else _word(counts)


def promised(flood: Flood, parameters: FloodParameters) -> dict[str, Any]:
    limit = reader_limit_per_s(flood, parameters)
    sizes = {topic.size_bytes for topic in flood.topics}
    return {
        "publishers": flood.publishers,
        "rate_hz": flood.rate_hz,
        "messages_per_s": flood.messages_per_s,
        "payload_bytes": sizes.pop() if len(sizes) == 1 else {topic.name: topic.size_bytes for topic in flood.topics},
        "at_least_percent": parameters.at_least,
        "megabytes_per_s": flood.bytes_per_s / 1e6,
        "reliability": sorted({str(topic.qos["reliability"]) for topic in flood.topics}),
        "readers": parameters.readers,
        "subscriptions": sum(topic.subscriptions for topic in flood.topics),
        "deliveries_per_s": flood.deliveries_per_s if limit is None else min(flood.deliveries_per_s, limit),
        "reader_limit_per_s": limit,
    }


def reader_limit_per_s(flood: Flood, parameters: FloodParameters) -> float | None:
    """How many messages the flood's own readers can work on; each is one callback at a time. None without work."""
    return flood.readers * NS_PER_S / parameters.work if flood.readers and parameters.work else None


def judge(
    flood: Flood, parameters: FloodParameters, known: Account, window: Window, *, seconds: bool = True
) -> Evidence:
    """The evidence of a flood. Without `seconds` the window is judged as a whole, as virtual time has to be."""
    promise = promised(flood, parameters)
    if not known.curves and known.last is not None:
        # Too short for a word in between: what was said at the end is judged as a whole.
        begin = Point(window.begin_ns, 0, 0, 0, 0)
        end = replace(known.last, at_ns=window.end_ns)
        if window.end_ns - window.begin_ns > LONGEST_SILENCE_NS:
            mute = f"no process of the flood said anything in the {window.seconds:.3g} s of the measured part"
            return {"promised": promise, "achieved": None, "in_effect": False, "reason": mute}
        known, seconds = replace(known, curves=(Curve("all processes", (begin, end)),), last=end), False
    if not known.curves:
        unknown = "no process counted a message of the flood; nobody can tell whether there was one"
        return {"promised": promise, "achieved": None, "in_effect": False, "reason": unknown}
    end_ns = max(window.begin_ns + 1, min(window.end_ns, known.until_ns))
    length_s = (end_ns - window.begin_ns) / NS_PER_S
    total = _minus(known.at(end_ns), known.at(window.begin_ns))
    edges = [window.begin_ns + k * NS_PER_S for k in range(int(length_s) + 1)] if seconds else [window.begin_ns, end_ns]
    points = [known.at(at_ns) for at_ns in edges]
    steps = [_minus(b, a) for a, b in pairwise(points)]
    silences = [silence for curve in known.curves for silence in curve.silences(window)] if seconds else []
    heard = [not any(a < silence.end_ns and b > silence.begin_ns for silence in silences) for a, b in pairwise(edges)]
    payload = flood.bytes_per_s / flood.messages_per_s if flood.publishers else 0.0
    achieved = {
        "seconds": length_s,
        "sent": round(total.sent),
        "not_sent": round(total.not_sent),
        "write_errors": known.write_errors,
        "messages_per_s": total.sent / length_s,
        "megabytes_per_s": total.sent / length_s * payload / 1e6,
        "deliveries_expected": round(total.expected),
        "delivered": round(total.received),
        "deliveries_per_s": total.received / length_s,
        "delivered_megabytes_per_s": total.received / length_s * payload / 1e6,
        "matched_readers": known.matched_readers,
        "sent_in_second": _by_second([step.sent for step in steps], heard) if seconds else None,
        "delivered_in_second": _by_second([step.received for step in steps], heard) if seconds else None,
        "last_heard_s": {c.process: (c.last_at_ns - window.begin_ns) / NS_PER_S for c in known.curves},
    }
    reason = (
        _silence(known, silences, window)
        or _offered(flood, parameters, steps, total, length_s, seconds=seconds)
        or _delivered(flood, parameters, steps, total, known, seconds=seconds)
    )
    return {
        "promised": promise,
        "achieved": achieved,
        "in_effect": reason is None,
        "reason": reason,
        "notes": _notes(flood, parameters, total),
    }


def _by_second(figures: Sequence[float], heard: Sequence[bool]) -> list[int | None]:
    """Unknown in the seconds of which a process said nothing."""
    return [round(figure) if known else None for figure, known in zip(figures, heard, strict=True)]


def _silence(known: Account, silences: Sequence[Silence], window: Window) -> str | None:
    """Whether somebody did not report for a while, or stopped before the end."""
    last_at_ns = {curve.process: curve.last_at_ns for curve in known.curves}
    for silence in silences:
        if silence.begin_ns < last_at_ns[silence.process]:  # it spoke again
            return (
                f"process {silence.process} said nothing for {(silence.end_ns - silence.begin_ns) / NS_PER_S:.1f} s, "
                f"from {(silence.begin_ns - window.begin_ns) / NS_PER_S:.1f} s into the measured part"
            )
    for curve in known.curves:
        silent_ns = window.end_ns - curve.last_at_ns
        if silent_ns > SILENT_AT_MOST_NS:
            return (
                f"process {curve.process} was last heard of {silent_ns / NS_PER_S:.1f} s before the end of the "
                f"measured part; a flood of {window.seconds:.3g} s was promised"
            )
    return None


def _offered(
    flood: Flood, parameters: FloodParameters, steps: Sequence[Point], total: Point, length_s: float, *, seconds: bool
) -> str | None:
    """Whether too little was sent, as a whole or in some second."""
    # A second may cut off one message of each publisher.
    slack = float(flood.publishers)
    if _held_back(flood, parameters):
        for number, step in enumerate(steps):
            if flood.rate_hz >= STEADY_FROM_HZ and step.sent < 1:
                return f"nothing was sent in {_span(number, seconds=seconds)}; readers hold a flood back, not for ever"
        return None
    least = parameters.at_least / 100
    wanted = least * flood.messages_per_s
    for number, step in enumerate(steps):
        # A stall at its end moves what it should have sent into the next second.
        moved = MADE_UP_FOR_S * flood.messages_per_s
        if seconds and step.sent < wanted - moved - slack:
            return (
                f"{step.sent:.0f} messages were sent in second {number + 1}, of {flood.messages_per_s:.0f} promised; "
                f"at least {least:.0%} is needed in every second"
            )
    if total.sent < wanted * length_s - slack:
        return (
            f"{total.sent / length_s:.1f} messages/s were sent, of {flood.messages_per_s:.1f} promised; at least "
            f"{least:.0%} is needed"
        )
    return None


def _delivered(
    flood: Flood,
    parameters: FloodParameters,
    steps: Sequence[Point],
    total: Point,
    known: Account,
    *,
    seconds: bool,
) -> str | None:
    """Whether readers got what they should; where there is none, whether nobody read all the same."""
    if flood.deliveries_per_s == 0:
        if total.received or total.expected or known.matched_readers:
            return (
                f"no reader was promised, but there are {known.matched_readers or 0} and "
                f"{total.received:.0f} messages were delivered"
            )
        return None
    if known.matched_readers == 0:
        return "readers were promised, but no publisher of the flood had one"
    for number, step in enumerate(steps):
        if flood.rate_hz >= STEADY_FROM_HZ and step.received < 1:
            return f"no message of the flood was delivered in {_span(number, seconds=seconds)}"
    # What was under way at the end may have arrived since.
    final = known.last or total
    least = DELIVERED_AT_LEAST if _reliable(flood) else BEST_EFFORT_DELIVERED_AT_LEAST
    if _keep_up(flood, parameters) and final.received < least * final.expected - flood.publishers:
        kind = "reliable" if _reliable(flood) else "best-effort"
        return (
            f"{final.received:.0f} messages were delivered, of {final.expected:.0f} sent to {kind} readers; at least "
            f"{least:.0%} is needed"
        )
    return None


def _notes(flood: Flood, parameters: FloodParameters, total: Point) -> list[str]:
    notes = []
    if flood.publishers and flood.deliveries_per_s == 0:
        notes.append(NO_READER)
    limit = reader_limit_per_s(flood, parameters)
    if limit is not None and _behind(flood, parameters):
        notes.append(
            f"readers work {parameters.work / 1e6:.3g} ms on each message, so that at most {limit:.0f} of "
            f"{flood.deliveries_per_s:.0f} deliveries/s are possible"
        )
    if _held_back(flood, parameters):
        notes.append(
            "nothing may be lost, so slow readers hold the publishers back once the queues are full, or take "
            "everything into memory, as their middleware does it"
        )
    if parameters.readers in ("inside", "topics") and total.received < DELIVERED_AT_LEAST * total.expected:
        notes.append(
            f"{total.received / total.expected:.1%} was delivered; what arrives depends on the workload's executor"
        )
    return notes


def _reliable(flood: Flood) -> bool:
    return all(topic.qos["reliability"] == "reliable" for topic in flood.topics)


def _behind(flood: Flood, parameters: FloodParameters) -> bool:
    """Whether the flood's own readers have more to do than they can."""
    limit = reader_limit_per_s(flood, parameters)
    return limit is not None and flood.deliveries_per_s > KEEPS_UP_BELOW * limit


def _keep_up(flood: Flood, parameters: FloodParameters) -> bool:
    """Whether readers have the time for all that was sent. The workload's executor may be busy with other things."""
    return parameters.readers == "external" and not _behind(flood, parameters)


def _held_back(flood: Flood, parameters: FloodParameters) -> bool:
    """Whether publishers must wait for readers: nothing may be lost, and readers are, or may be, too slow."""
    waits = _reliable(flood) and parameters.history == "keep_all" and flood.deliveries_per_s > 0
    return waits and (_behind(flood, parameters) or parameters.readers in ("inside", "topics"))


def _span(number: int, *, seconds: bool) -> str:
    return f"second {number + 1}" if seconds else "the whole measured part"


def _point(at_ns: int, own: Mapping[str, Any]) -> Point:
    return Point(int(at_ns), own["sent"], own["not_sent"], own["deliveries_expected"], own["received"])


def _between(a: Point, b: Point, at_ns: int) -> Point:
    if b.at_ns <= a.at_ns or at_ns >= b.at_ns:
        return b
    share = max(0.0, (at_ns - a.at_ns) / (b.at_ns - a.at_ns))
    return Point(
        at_ns,
        a.sent + share * (b.sent - a.sent),
        a.not_sent + share * (b.not_sent - a.not_sent),
        a.expected + share * (b.expected - a.expected),
        a.received + share * (b.received - a.received),
    )


def _minus(a: Point, b: Point) -> Point:
    return Point(a.at_ns, a.sent - b.sent, a.not_sent - b.not_sent, a.expected - b.expected, a.received - b.received)


def _sum(at_ns: int, points: Sequence[Point]) -> Point:
    return Point(
        at_ns,
        sum(p.sent for p in points),
        sum(p.not_sent for p in points),
        sum(p.expected for p in points),
        sum(p.received for p in points),
    )
