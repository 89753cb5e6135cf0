"""Stretches of threads' time, and how layers of intervals cut them: what `why` is computed with.

A layer is a set of intervals of threads, disjoint on each thread: its states, its callbacks, who held its CPU. Cutting
a stretch by a layer gives pieces, each within one interval or between two, that together are the stretch:

    stretch        |-------------------------|
    layer       |======|   |======||===|  |=====|
    pieces         |---|---|------||---|--|--|
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FOREVER = 2**62  # ns
NONE = -1  # no row


def ints(series: pl.Series, missing: int = NONE) -> Ints:
    """As numbers; null is `missing`. Enumerations by their place."""
    if series.dtype == pl.Enum:
        series = series.to_physical()
    filled: Ints = series.cast(pl.Int64).fill_null(missing).to_numpy()
    return filled


class Layer:
    """Intervals by thread and time. `row` is what each is of; where two overlap, the later one ends the earlier one."""

    def __init__(self, thread: Ints, start: Ints, end: Ints, row: Ints | None = None) -> None:
        row = np.arange(len(thread), dtype=np.int64) if row is None else row
        if not _is_sorted(thread, start):  # the scheduler's tables are
            order = np.lexsort((start, thread))
            thread, start, end, row = thread[order], start[order], end[order], row[order]
        self.thread, self.start, self.row, self.end = thread, start, row, end.copy()
        if len(thread) > 1:
            same = self.thread[1:] == self.thread[:-1]
            self.end[:-1] = np.where(same, np.minimum(self.end[:-1], self.start[1:]), self.end[:-1])
        times = np.sort(self.start)
        self._times = times[np.diff(times, prepend=times[:1] - 1) != 0]  # np.unique is slower
        self._keys = self._key(self.thread, self.start, right=True)

    @classmethod
    def of(cls, table: pl.DataFrame, rows: Ints | None = None) -> Layer:
        """These rows of a table with `thread`, `start_ns` and `end_ns`, or all; what was not seen to end goes on."""
        rows = np.arange(table.height, dtype=np.int64) if rows is None else rows
        thread, start = ints(table["thread"])[rows], ints(table["start_ns"])[rows]
        return cls(thread, start, ints(table["end_ns"], FOREVER)[rows], rows)

    def __len__(self) -> int:
        return len(self.thread)

    def _key(self, thread: Ints, time: Ints, *, right: bool) -> Ints:
        """Ascending with thread, then with how many different starts lie before the time (`right`: or at it)."""
        rank = np.searchsorted(self._times, time, side="right" if right else "left")
        key: Ints = thread * (len(self._times) + 1) + rank
        return key

    def at(self, thread: Ints, time: Ints) -> Ints:
        """The row within whose interval that thread is at that time; NONE where it is in none."""
        place = self._place(thread, time)
        return of_rows(self.row, place)

    def start_at(self, thread: Ints, time: Ints) -> Ints:
        """Where the interval of `at` begins; -FOREVER where there is none."""
        place = self._place(thread, time)
        return np.where(place >= 0, self.start[place] if len(self) else -FOREVER, -FOREVER)

    def next_start(self, thread: Ints, time: Ints) -> Ints:
        """The first start on that thread after that time; FOREVER where there is none."""
        if not len(self):
            return np.full(len(thread), FOREVER)
        after = np.searchsorted(self._keys, self._key(thread, time, right=True), side="right")
        at = np.minimum(after, len(self) - 1)
        found = (after < len(self)) & (self.thread[at] == thread)
        return np.where(found, self.start[at], FOREVER)

    def _place(self, thread: Ints, time: Ints) -> Ints:
        if not len(self):
            return np.full(len(thread), NONE, dtype=np.int64)
        last = np.searchsorted(self._keys, self._key(thread, time, right=True), side="right") - 1
        at = np.maximum(last, 0)
        within = (last >= 0) & (self.thread[at] == thread) & (time < self.end[at])
        place: Ints = np.where(within, last, NONE)
        return place

    def cut(self, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The pieces of these stretches: of which stretch, start, end, and the row of the layer, NONE between them."""
        if not len(self):
            whole = np.flatnonzero(end > start)
            return whole, start[whole], end[whole], np.full(len(whole), NONE, dtype=np.int64)
        first = np.searchsorted(self._keys, self._key(thread, start, right=True), side="right") - 1
        at = np.maximum(first, 0)
        reaches_in = (first >= 0) & (self.thread[at] == thread) & (self.end[at] > start)
        first = np.where(reaches_in, first, first + 1)
        after = np.searchsorted(self._keys, self._key(thread, end, right=False), side="right")
        count = np.maximum(after - first, 0)
        # Of n intervals there are 2 n + 1 places: before, within the first, between, within the second, ..., after.
        places = 2 * count + 1
        of = np.repeat(np.arange(len(thread), dtype=np.int64), places)
        number = np.arange(len(of), dtype=np.int64) - np.repeat(np.cumsum(places) - places, places)
        inside = (number & 1) == 1
        interval = first[of] + (number >> 1)  # of a place between two: the later one
        within = np.clip(interval, 0, len(self) - 1)
        previous = np.clip(interval - 1, 0, len(self) - 1)
        is_first, is_last = number == 0, number == places[of] - 1
        begins = np.where(inside, self.start[within], np.where(is_first, start[of], self.end[previous]))
        ends = np.where(inside, self.end[within], np.where(is_last, end[of], self.start[within]))
        begins, ends = np.maximum(begins, start[of]), np.minimum(ends, end[of])
        keep = ends > begins
        row = np.where(inside, self.row[within], NONE)
        return of[keep], begins[keep], ends[keep], row[keep]


def _is_sorted(thread: Ints, start: Ints) -> bool:
    same, later = thread[1:] == thread[:-1], start[1:] >= start[:-1]
    return bool(((thread[1:] > thread[:-1]) | (same & later)).all())


# Columns of equal length. Those of stretches of time are subject (whose time it is: the message, or the callback
# instance), thread (its row; NONE where no thread's states matter), start, end, role and note.
Columns = dict[str, Ints]
_STRETCHES = ("subject", "thread", "start", "end", "role", "note")


def cut_by(layer: Layer, pieces: Columns, where: Flags | None = None) -> tuple[Columns, Ints]:
    """Pieces with thread, start and end (those `where` only) cut by a layer, and the layer's row of each."""
    thread = pieces["thread"] if where is None else np.where(where, pieces["thread"], NONE)
    of, start, end, row = layer.cut(thread, pieces["start"], pieces["end"])
    return {name: column[of] for name, column in pieces.items()} | {"start": start, "end": end}, row


def of_rows(values: Ints, row: Ints) -> Ints:
    """The values of these rows; NONE where there is none."""
    return np.where(row >= 0, values[row], NONE) if len(values) else np.full(len(row), NONE)


def chosen(pieces: Columns, rows: Flags) -> Columns:
    return {name: column[rows] for name, column in pieces.items()}


class Collected:
    """Stretches that are found one after the other. Those of no length are left out."""

    def __init__(self) -> None:
        self._found: list[Columns] = []

    def put(self, pieces: Columns, **instead: Ints | int) -> None:
        """Pieces with their columns, or with others `instead`."""
        columns = {"note": 0, **pieces, **instead}
        n = len(pieces["subject"])
        stretches = {name: np.broadcast_to(np.int64(columns[name]), n) for name in _STRETCHES}
        self._found.append(chosen(stretches, stretches["end"] > stretches["start"]))

    def all(self) -> Columns:
        return {name: np.concatenate([found[name] for found in self._found]) for name in _STRETCHES}
