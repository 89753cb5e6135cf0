"""All checkpoints of a process, and the counts between them (docs/formats.md, section 4).

Checkpoints are cumulative, so the difference of two is exactly the count between them: the histogram of an interval is
as exact as that of a whole trial. `records` only keeps the last one; this module reads them all, for one figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from perflab.formats import records
from perflab.formats.records import RecordError
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import PUBLISHER_HISTOGRAMS
from perflab.statistics.histogram import Histogram

HICCUP = "hiccup"

# Tolerance for instants of several processes: a checkpoint may be late by this share of its interval.
_SLACK = 0.25


@dataclass(frozen=True)
class Snapshot:
    """Everything counted from the start of the measured part to an instant."""

    at_ns: int
    histogram: Histogram


@dataclass(frozen=True)
class Interval:
    """Counts between two instants. The maximum is that of its cell if the exact one is unknown."""

    begin_ns: int
    end_ns: int
    histogram: Histogram


def read(path: Path, figure: str) -> tuple[Snapshot, ...]:
    """The checkpoints of a record file, one figure of it merged over the edges (or publishers) of the process.

    The figure `hiccup` is the process's own. Nodes that a condition added are left out.

    Latency and response are also in the progress records of every second; these then replace the checkpoints, except
    the last one. The first one is the start of the measured part, with no values. Empty if the process never started or
    did not measure the figure. Raises RecordError if the file is damaged, and OSError.
    """
    begin: Snapshot | None = None
    kept: list[tuple[int, list[Any]]] = []  # checkpoints: instants, and the records of histograms
    seconds: list[Snapshot] = []
    measured = False
    try:
        for record in records.lines(path, "start", "checkpoint", "progress"):
            if record is None:
                continue  # an incomplete last line
            if record.get("type") == "start" and begin is None:
                begin = Snapshot(int(record["measured_from_ns"]), hg.empty())
            elif record.get("type") == "checkpoint" and begin is not None:
                parts = [h for owner in _owners(record, figure) if (h := owner.get(figure)) is not None]
                measured = measured or bool(parts)
                at_ns = int(record["at_ns"])
                if at_ns > (kept[-1][0] if kept else begin.at_ns):  # earlier ones were written during warm-up
                    kept.append((at_ns, parts))
            elif record.get("type") == "progress" and begin is not None and record.get(figure) is not None:
                at_ns = int(record["at_ns"])
                if at_ns > (seconds[-1] if seconds else begin).at_ns:
                    seconds.append(Snapshot(at_ns, hg.decode(record[figure])))
        if begin is None or not measured:
            return ()
        if seconds:
            kept = [of for of in kept[-1:] if of[0] > seconds[-1].at_ns]
        ends = [Snapshot(at_ns, hg.merge(hg.from_records(parts))) for at_ns, parts in kept]
        return (begin, *seconds, *ends)
    except (KeyError, TypeError, hg.HistogramError) as error:
        raise RecordError(f"{path}: a record is damaged: {type(error).__name__}: {error}") from error


def _owners(checkpoint: dict[str, Any], figure: str) -> list[dict[str, Any]]:
    if figure == HICCUP:
        return [checkpoint]
    own: list[dict[str, Any]] = records.without_conditions(checkpoint)[
        "publishers" if figure in PUBLISHER_HISTOGRAMS else "edges"
    ]
    return own


def difference(later: Histogram, earlier: Histogram) -> Histogram:
    """The values that `later` has beyond `earlier`, which must be part of it. Raises HistogramError if it is not.

    A new maximum is exact; any other one, and the minimum, are the bounds of their cells.
    """
    dense = np.zeros(hg.COUNTS_LENGTH, np.int64)
    dense[later.indices] = later.counts
    dense[earlier.indices] -= earlier.counts
    if int(dense.min(initial=0)) < 0:
        raise hg.HistogramError("a later checkpoint counts less than an earlier one")
    cells = np.flatnonzero(dense)
    if not cells.size:
        return hg.empty()
    risen = later.max is not None and (earlier.max is None or later.max > earlier.max)
    bound = int(hg.highest_value(cells[-1:])[0])
    return Histogram(
        indices=cells,
        counts=dense[cells],
        count=int(dense.sum()),
        sum=later.sum - earlier.sum,
        min=int(hg.lowest_value(cells[:1])[0]),
        max=later.max if risen else bound if later.max is None else min(bound, later.max),
        max_at_ns=later.max_at_ns if risen else None,
    )


def intervals(snapshots: Sequence[Snapshot]) -> tuple[Interval, ...]:
    """The counts between each two successive checkpoints."""
    return tuple(
        Interval(earlier.at_ns, later.at_ns, difference(later.histogram, earlier.histogram))
        for earlier, later in pairwise(snapshots)
    )


def shifted(parts: Iterable[Interval], by_ns: int) -> tuple[Interval, ...]:
    """The same intervals, `by_ns` later."""
    return tuple(Interval(p.begin_ns + by_ns, p.end_ns + by_ns, p.histogram) for p in parts)


def merge(sources: Iterable[Sequence[Interval]]) -> tuple[Interval, ...]:
    """Intervals of several processes (or trials, shifted to a common start) as one series.

    Processes write their checkpoints at slightly different times; intervals whose ends differ by less than a quarter of
    their length are merged. An interval that only some of the sources have covers only those.
    """
    groups: list[list[Interval]] = []
    for part in sorted((p for source in sources for p in source), key=lambda p: (p.begin_ns, p.end_ns)):
        for group in reversed(groups):
            if _together(group[0], part):
                group.append(part)
                break
        else:
            groups.append([part])
    return tuple(
        Interval(min(p.begin_ns for p in g), max(p.end_ns for p in g), hg.merge(p.histogram for p in g)) for g in groups
    )


def _together(one: Interval, other: Interval) -> bool:
    slack = _SLACK * max(one.end_ns - one.begin_ns, other.end_ns - other.begin_ns)
    return abs(one.begin_ns - other.begin_ns) <= slack and abs(one.end_ns - other.end_ns) <= slack
