"""The loops of a trial: distributions of their times, and where they stalled. Pure.

A stall is a time longer than a period and a threshold in which no loop was completed. This finds a stall at every stage
of the loop, regardless of how many messages are lost or made up for afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from perflab.results.loops import Life, Loop, Loops

if TYPE_CHECKING:
    from perflab.statistics.histogram import Histogram

# The stages at which a loop can stall, from one instant to the next, in their order.
STAGES = (
    ("due_ns", "woken_ns", "its timer was due, but its callback did not begin"),
    ("woken_ns", "published_ns", "its callback did not reach publishing"),
    ("published_ns", "sent_ns", "the call that publishes its ping did not return"),
    ("sent_ns", "answered_ns", "no pong answered its ping"),
    ("answered_ns", "back_ns", "its pong was published and did not come back"),
)


@dataclass(frozen=True, kw_only=True)
class Stall:
    """No loop was completed between two instants; `until_ns` None: nor afterwards. `stage` says where `loop` was."""

    since_ns: int
    until_ns: int | None
    seen_ns: int
    loop: int
    stage: str

    @property
    def length_ns(self) -> int:
        """For a stall that did not end, the observed part."""
        return (self.seen_ns if self.until_ns is None else self.until_ns) - self.since_ns


def stalls(loops: Loops, wanted: int, from_ns: int, seen_ns: int, threshold_ns: int) -> list[Stall]:
    """The stalls of a trial in their order. `wanted` loops were due from `from_ns` on; the records cover the time until
    `seen_ns`."""
    done = sorted((row.back_ns, row.loop) for row in loops.rows if row.back_ns is not None)
    by_number = {row.loop: row for row in loops.rows}
    longest = loops.period_ns + threshold_ns
    found: list[Stall] = []
    since_ns, furthest = from_ns, -1
    for back_ns, number in done:
        if back_ns - since_ns > longest:
            found.append(_stall(since_ns, back_ns, seen_ns, furthest + 1, by_number, threshold_ns))
        since_ns, furthest = back_ns, max(furthest, number)
    if furthest + 1 < wanted and seen_ns - since_ns > longest:
        found.append(_stall(since_ns, None, seen_ns, furthest + 1, by_number, threshold_ns))
    return found


def _stall(
    since_ns: int, until_ns: int | None, seen_ns: int, loop: int, rows: dict[int, Loop], threshold_ns: int
) -> Stall:
    row = rows.get(loop)
    stage = STAGES[0][2] if row is None else _stage(row, seen_ns if until_ns is None else until_ns, threshold_ns)
    return Stall(since_ns=since_ns, until_ns=until_ns, seen_ns=seen_ns, loop=loop, stage=stage)


def _stage(row: Loop, until_ns: int, threshold_ns: int) -> str:
    """The stage at which the loop was for most of the stall."""
    waited: list[tuple[int, str]] = []
    for begin, end, words in STAGES:
        began, ended = getattr(row, begin), getattr(row, end)
        if began is None:
            break
        waited.append((min(until_ns if ended is None else ended, until_ns) - began, words))
        if ended is None:
            break
    if not waited:  # rclcpp reports nothing about a tick that its timer skipped
        return STAGES[0][2]
    longest = max(waited, key=lambda stage: stage[0])
    return longest[1] if longest[0] > threshold_ns else "the loops before it were late, or their messages were lost"


class Timed(NamedTuple):
    """A time of a loop, and the instant of its end."""

    loop: int
    value_ns: int
    at_ns: int


# The times of loops: from one instant to another one,
BETWEEN: Mapping[str, tuple[str, str]] = {
    "wakeup_late": ("due_ns", "woken_ns"),
    "ping_sent": ("woken_ns", "sent_ns"),
    "ping_call": ("published_ns", "sent_ns"),
    "ping_pong": ("published_ns", "back_ns"),
    "ping_pong_restamped": ("answered_ns", "back_ns"),
    "ping_pong_due": ("due_ns", "back_ns"),
}
# and the statistic of the interval between consecutive wake-ups and the period.
OF_INTERVALS: Mapping[str, Callable[[int, int], int]] = {
    "wakeup_interval": lambda interval_ns, _: interval_ns,
    "wakeup_jitter": lambda interval_ns, period_ns: abs(interval_ns - period_ns),
}
TIMES = (*BETWEEN, *OF_INTERVALS)
USUAL = ("wakeup_late", "ping_pong")  # default times of loops


def times(found: Sequence[Loops]) -> dict[str, Histogram]:
    """The distributions over the loops, by name; without those that have no value."""
    from perflab.statistics import histogram  # imports numpy, which would slow down listing kinds of workloads

    made = {name: [timed for loops in found for timed in over_loops(loops, name)] for name in TIMES}
    return {
        name: histogram.from_values([timed.value_ns for timed in values], [timed.at_ns for timed in values])
        for name, values in made.items()
        if values
    }


def over_loops(loops: Loops, name: str) -> list[Timed]:
    """One of TIMES for each loop that has it, in the order of the loops."""
    if name in BETWEEN:
        begin, end = BETWEEN[name]
        return [
            Timed(row.loop, until - since, until)
            for row in loops.rows
            if (since := getattr(row, begin)) is not None and (until := getattr(row, end)) is not None
        ]
    value = OF_INTERVALS[name]
    woken = [(row.loop, row.woken_ns) for row in loops.rows if row.woken_ns is not None]
    return [Timed(loop, value(b - a, loops.period_ns), b) for (_, a), (loop, b) in itertools.pairwise(woken)]


def phases(lives: Sequence[Life], found: Sequence[Loops]) -> dict[str, float | None]:
    """How long the benchmark took, and its parts: until the processes had found each other, the loops, the closing.
    The wait for perflab's common start is in none of them."""
    began = min((life.began_ns for life in lives if life.began_ns is not None), default=None)
    matched = [life.matched_ns for life in lives]
    ended = [life.ended_ns for life in lives]
    from_ns = min((life.measured_from_ns for life in lives if life.measured_from_ns is not None), default=None)
    back = max((row.back_ns for loops in found for row in loops.rows if row.back_ns is not None), default=None)
    start = _last(matched, began)
    loops_ns = None if back is None or from_ns is None else float(back - from_ns)
    closing = _last(ended, back)
    parts = (start, loops_ns, closing)
    total = sum(p for p in parts if p is not None) if None not in parts else None
    return {"time_total": total, "time_start": start, "time_loops": loops_ns, "time_closing": closing}


def _last(instants: Sequence[int | None], since: int | None) -> float | None:
    known = [instant for instant in instants if instant is not None]
    return float(max(known) - since) if since is not None and known and len(known) == len(instants) else None
