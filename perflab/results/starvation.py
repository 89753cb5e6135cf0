"""Who starved whom in a trial that was traced: the long waits for a CPU, and the stretches in which callbacks did not
come for them. On CLOCK_MONOTONIC, as the records of the trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perflab.results.trial import StarvedThread

_FITS = 0.5  # of two stretches of time what both have, of what one of them has, where they are said to be the same


@dataclass(frozen=True)
class LongWait:
    begin_ns: int
    end_ns: int
    thread: StarvedThread  # `waiting_share` and `holders` are of this wait


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

    def during(self, begin_ns: int, end_ns: int) -> tuple[StarvedThread, ...]:
        """The threads that starved then. First the one that stood between a callback and its last one in that stretch;
        then those that messages are known to have waited for, then the others, by how long each waited."""
        length = max(1, end_ns - begin_ns)
        waits: dict[tuple[str | None, int], list[tuple[int, LongWait]]] = {}
        for wait in self.waits:
            overlap = min(wait.end_ns, end_ns) - max(wait.begin_ns, begin_ns)
            if overlap > 0:
                waits.setdefault((wait.thread.process, wait.thread.tid), []).append((overlap, wait))
        blamed = self._blamed(begin_ns, end_ns)
        in_chains = {stretch.tid for stretch in self.stretches}
        found: list[tuple[bool, bool, int, StarvedThread]] = []
        for (_, tid), mine in waits.items():
            longest, wait = max(mine, key=lambda part: part[0])
            together = sum(overlap for overlap, _ in mine)
            thread = replace(wait.thread, longest_ns=longest, waiting_share=round(min(1.0, together / length), 3))
            found.append((tid == blamed, tid in in_chains, together, thread))
        return tuple(thread for *_, thread in sorted(found, key=lambda f: f[:3], reverse=True))

    def _blamed(self, begin_ns: int, end_ns: int) -> int | None:
        """Of the stretch that fits best."""

        def fit(stretch: Stretch) -> float:
            both = min(stretch.end_ns, end_ns) - max(stretch.begin_ns, begin_ns)
            return both / max(1, max(stretch.end_ns, end_ns) - min(stretch.begin_ns, begin_ns))

        best = max(self.stretches, key=fit, default=None)
        return best.tid if best is not None and fit(best) >= _FITS else None
