"""Which threads starved which in a trial: the long waits for a CPU, and the gaps in which callbacks did not run. Times
are on CLOCK_MONOTONIC, like the trial's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.results.trial import StarvedThread

LONG_WAIT_NS = 100_000_000  # twice the 50 ms that Linux takes from real-time threads in one piece
LEAST_SHARE = 0.5  # share of the time, without a trace; a thread that shares a busy CPU with one other waits half of it
LEAST_HELD = 0.05  # share of the time; threads that had a CPU for less are not listed
_FITS = 0.5  # share of overlap of two gaps from which they count as the same


@dataclass(frozen=True)
class LongWait:
    begin_ns: int
    end_ns: int
    thread: StarvedThread  # `waiting_share` and `holders` refer to this wait
    waited_ns: int | None = None  # how long it waited of that time, if not all of it; when is then unknown


@dataclass(frozen=True)
class Stretch:
    """A gap in which a callback did not run; `tid` is the thread that starved."""

    begin_ns: int
    end_ns: int
    tid: int


@dataclass(frozen=True)
class Starvation:
    waits: Sequence[LongWait] = ()
    stretches: Sequence[Stretch] = ()
    least_share: float = 0.0  # share of a gap that a thread must have waited to have starved in it

    def during(self, begin_ns: int, end_ns: int) -> tuple[StarvedThread, ...]:
        """The threads that starved then. First the thread that delayed a callback in that gap; then those that messages
        are known to have waited for, then the others, by waiting time."""
        length = max(1, end_ns - begin_ns)
        waits: dict[tuple[str | None, int], list[tuple[int, LongWait]]] = {}
        for wait in self.waits:
            overlap = min(wait.end_ns, end_ns) - max(wait.begin_ns, begin_ns)
            if wait.waited_ns is not None:  # as if it had waited evenly
                overlap = overlap * wait.waited_ns // max(1, wait.end_ns - wait.begin_ns)
            if overlap > 0:
                waits.setdefault((wait.thread.process, wait.thread.tid), []).append((overlap, wait))
        blamed = self._blamed(begin_ns, end_ns)
        in_chains = {stretch.tid for stretch in self.stretches}
        found: list[tuple[bool, bool, int, StarvedThread]] = []
        for (_, tid), mine in waits.items():
            longest, wait = max(mine, key=lambda part: part[0])
            together = sum(overlap for overlap, _ in mine)
            share = min(1.0, together / length)
            known_ns = longest if wait.waited_ns is None else None
            thread = replace(wait.thread, longest_ns=known_ns, waiting_share=round(share, 3))
            if share >= self.least_share:
                found.append((tid == blamed, tid in in_chains, together, thread))
        return tuple(thread for *_, thread in sorted(found, key=lambda f: f[:3], reverse=True))

    def _blamed(self, begin_ns: int, end_ns: int) -> int | None:
        """Of the gap that fits best."""

        def fit(stretch: Stretch) -> float:
            both = min(stretch.end_ns, end_ns) - max(stretch.begin_ns, begin_ns)
            return both / max(1, max(stretch.end_ns, end_ns) - min(stretch.begin_ns, begin_ns))

        best = max(self.stretches, key=fit, default=None)
        return best.tid if best is not None and fit(best) >= _FITS else None
