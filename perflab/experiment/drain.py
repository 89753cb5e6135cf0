"""Detects from progress lines, outside of the processes, that a graph has come to rest after its publishers stopped.

A message under way is counted by its sender and not yet by its receiver, and the counts of several processes are never
read at one instant. So the sums must be equal in two successive rounds, where every report of the second round was made
after every report of the first one, and must not have changed between them (Mattern's four-counter method).
"""

from __future__ import annotations

from dataclasses import dataclass

from perflab.experiment.protocol import Progress


@dataclass(frozen=True)
class Sums:
    """Expected deliveries and finished callbacks, over all processes."""

    expected: int
    completed: int


class Drain:
    """Receives every progress line; `verdict` says whether the drain is over, and why.

    `quiet_ns`: without any change for this long, missing messages count as lost. `limit_ns`: the limit of the drain.
    """

    def __init__(self, processes: list[str], quiet_ns: int, limit_ns: int) -> None:
        self._processes = frozenset(processes)
        self._quiet_ns = quiet_ns
        self._limit_ns = limit_ns
        self._latest: dict[str, Progress] = {}
        self._round: dict[str, Progress] = {}
        self._floor_ns = -(1 << 63)
        self._previous: Sums | None = None
        self._at_rest = False
        self._began_ns: int | None = None
        self._changed_ns = 0
        self._last: Sums | None = None

    @property
    def publishing(self) -> bool:
        """Whether any process may still publish by itself."""
        return self._began_ns is None

    def leave(self, process: str) -> None:
        """It has ended before the others and sends no further reports."""
        self._processes -= {process}
        for reports in (self._latest, self._round):
            reports.pop(process, None)

    def join(self, process: str) -> None:
        """Another process has begun."""
        self._processes |= {process}

    def update(self, process: str, progress: Progress, now_ns: int) -> None:
        """Receives a line; `now_ns` is perflab's own clock, which measures quiet and limit."""
        self._latest[process] = progress
        if len(self._latest) < len(self._processes) or any(p.publishing for p in self._latest.values()):
            return
        sums = _sum(self._latest)
        if self._began_ns is None:
            self._began_ns = now_ns
        if sums != self._last:
            self._last, self._changed_ns = sums, now_ns
        if progress.at_ns >= self._floor_ns:
            self._round[process] = progress
        if self._round.keys() == self._processes:
            self._end_round()

    def verdict(self, now_ns: int) -> str | None:
        """ "rest", "quiet", "limit", or None while the drain goes on."""
        if self._began_ns is None:
            return None
        if self._at_rest:
            return "rest"
        if now_ns - self._changed_ns >= self._quiet_ns:
            return "quiet"
        return "limit" if now_ns - self._began_ns >= self._limit_ns else None

    def _end_round(self) -> None:
        sums = _sum(self._round)
        self._at_rest = sums.expected == sums.completed and sums == self._previous
        self._previous = sums
        self._floor_ns = max(p.at_ns for p in self._round.values())
        self._round = {}


def _sum(reports: dict[str, Progress]) -> Sums:
    return Sums(
        expected=sum(p.deliveries_expected for p in reports.values()),
        completed=sum(p.completed for p in reports.values()),
    )
