"""Who starved whom in a trial: the long waits for a CPU, and the stretches in which callbacks did not come for them. On
CLOCK_MONOTONIC, as the records of the trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.results.trial import StarvedThread

LONG_WAIT_NS = 100_000_000  # twice the 50 ms that Linux takes from real-time threads in one piece
LEAST_SHARE = 0.5  # of the time, where no trace tells; a thread that shares a busy CPU with one other waits half of it
LEAST_HELD = 0.05  # of the time; who had a CPU for less is not told
_FITS = 0.5  # of two stretches of time what both have, of what one of them has, where they are said to be the same


@dataclass(frozen=True)
class LongWait:
    begin_ns: int
    end_ns: int
    thread: StarvedThread  # `waiting_share` and `holders` are of this wait
    waited_ns: int | None = None  # how much of that time it waited, where not all of it; when is not known then


@dataclass(frozen=True)
class Stretch:
    """In which a callback did not come; `tid` is the thread that starved."""

    begin_ns: int
    end_ns: int
    tid: int


@dataclass(frozen=True)
class Starvation:
    waits: Sequence[LongWait] = ()
    stretches: Sequence[Stretch] = ()
    least_share: float = 0.0  # of a stretch of time that a thread must have waited to have starved in it

    def during(self, begin_ns: int, end_ns: int) -> tuple[StarvedThread, ...]:
        """The threads that starved then. First the one that stood between a callback and its last one in that stretch;
        then those that messages are known to have waited for, then the others, by how long each waited."""
        length = max(1, end_ns - begin_ns)
        waits: dict[tuple[str | None, int], list[tuple[int, LongWait]]] = {}
        for wait in self.waits:
            overlap = min(wait.end_ns, end_ns) - max(wait.begin_ns, begin_ns)
            if wait.waited_ns is not None:  # as if it waited evenly
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
        """Of the stretch that fits best."""

        def fit(stretch: Stretch) -> float:
            both = min(stretch.end_ns, end_ns) - max(stretch.begin_ns, begin_ns)
            return both / max(1, max(stretch.end_ns, end_ns) - min(stretch.begin_ns, begin_ns))

        best = max(self.stretches, key=fit, default=None)
        return best.tid if best is not None and fit(best) >= _FITS else None
