"""Ranks of many designs at once: each is a row of arrays, so that hundreds of tests cost little more than one.

Leaving out each trial in turn, testing the ends of a margin and searching the ends of an interval all test designs that
differ by one trial or by a shift. Shapes: R designs, K blocks, at most A trials of the baseline and B of the treatment
in a block, M = A + B. Absent entries of a design do not count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from perflab.statistics.sample import Design, Floats

Ranks = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_EXACT = 80  # number of trials beyond which the error of the normal approximation is less than 0.003
NOISE = 1e-10  # floating-point tolerance, relative to the largest value: closer values are equal
_TINY = 1e-7  # less than any non-zero difference of rank sums
_CELLS = 4_000_000  # limits the memory that distributions take at once


class Tails(NamedTuple):
    """For each design, the probabilities, without a difference, of a rank sum at most and at least as large as its
    own."""

    low: Floats
    high: Floats
    exact: Bools


@dataclass(frozen=True)
class Designs:
    """Designs with one block or more. `blocked` are those whose values are aligned."""

    a: Floats  # R K A; absent ones are 0
    b: Floats  # R K B
    has_a: Bools
    has_b: Bools
    blocked: Bools  # R
    arrangements: Floats  # R

    @staticmethod
    def of(designs: Sequence[Design]) -> Designs:
        """Raises ValueError for a design without blocks."""
        if not all(design.blocks for design in designs):
            raise ValueError("a design without blocks has no ranks")
        shape = len(designs), max((len(design.blocks) for design in designs), default=0)
        blocks = [(r, k, block) for r, design in enumerate(designs) for k, block in enumerate(design.blocks)]
        a = np.zeros((*shape, max((len(block.a) for _, _, block in blocks), default=0)))
        b = np.zeros((*shape, max((len(block.b) for _, _, block in blocks), default=0)))
        n_a, n_b = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for r, k, block in blocks:
            n_a[r, k], n_b[r, k] = len(block.a), len(block.b)
            a[r, k, : len(block.a)], b[r, k, : len(block.b)] = block.a, block.b
        return Designs(
            a,
            b,
            np.arange(a.shape[2]) < n_a[:, :, None],
            np.arange(b.shape[2]) < n_b[:, :, None],
            np.asarray([design.blocked for design in designs], bool),
            np.asarray([float(design.arrangements) for design in designs]),
        )

    def take(self, rows: Ranks) -> Designs:
        return Designs(*(getattr(self, field.name)[rows] for field in fields(self)))

    @functools.cached_property
    def n_a(self) -> Ranks:
        """R K."""
        return _number(self.has_a)

    @functools.cached_property
    def n_b(self) -> Ranks:
        return _number(self.has_b)

    @functools.cached_property
    def present(self) -> Bools:
        """R K M: the baseline's trials of a block, and then the treatment's."""
        return np.concatenate([self.has_a, self.has_b], axis=2)

    def of_b(self, of_all: Ranks) -> Ranks:
        """The treatment's part of an array of shape R K M."""
        return of_all[:, :, self.a.shape[2] :]


def _number(of: Bools) -> Ranks:
    """Along the last axis."""
    found: Ranks = of.sum(axis=-1)
    return found


def tails(designs: Designs, by: Floats) -> Tails:
    """Tails of the sum of the treatment's ranks, for each design after its treatment was moved by this shift."""
    ranks = _doubled_ranks(designs, by)
    exact = designs.present.sum(axis=(1, 2)) <= MAX_EXACT
    low, high = np.empty(len(by)), np.empty(len(by))
    for rows, found in ((np.flatnonzero(exact), _exact), (np.flatnonzero(~exact), _normal)):
        if len(rows):
            low[rows], high[rows] = found(designs.take(rows), ranks[rows])
    return Tails(np.minimum(low, 1.0), np.minimum(high, 1.0), exact)


def superiority(designs: Designs) -> Floats:
    """The share of pairs, whatever their blocks, in which the treatment's value is larger; ties are a half."""
    a, b = (values.reshape(len(values), 1, -1) for values in (designs.a, designs.b))
    pairs = _pairs(designs)
    larger = ((b.swapaxes(1, 2) > a) & pairs).sum(axis=(1, 2))
    equal = ((b.swapaxes(1, 2) == a) & pairs).sum(axis=(1, 2))
    found: Floats = (larger + equal / 2) / pairs.sum(axis=(1, 2))
    return found


@dataclass(frozen=True)
class Steps:
    """For each design the shifts of b, sorted, at which a pair (a_i, b_j) changes its order; infinite after the last.

    Subtracting d from all b's subtracts d n_b / n from their block's mean: aligned b's fall by d n_a / n of their
    block, aligned a's rise by d n_b / n of theirs.
    """

    designs: Designs
    sorted: Floats  # R, pairs
    counts: Ranks  # R

    @staticmethod
    def of(designs: Designs) -> Steps:
        blocked = designs.blocked[:, None]
        n = np.maximum(designs.n_a + designs.n_b, 1)
        middle = np.where(blocked, (designs.a.sum(axis=2) + designs.b.sum(axis=2)) / n, 0.0)[:, :, None]
        rows = len(designs.a)
        a, b = ((values - middle).reshape(rows, -1) for values in (designs.a, designs.b))
        rise = np.broadcast_to((designs.n_b / n)[:, :, None], designs.a.shape).reshape(rows, 1, -1)
        fall = np.broadcast_to((designs.n_a / n)[:, :, None], designs.b.shape).reshape(rows, -1, 1)
        pairs = _pairs(designs)
        closing = np.where(pairs & blocked[:, :, None], fall + rise, 1.0)
        apart = np.where(pairs, (b[:, :, None] - a[:, None, :]) / closing, np.inf)
        return Steps(designs, np.sort(apart.reshape(rows, -1), axis=1), pairs.sum(axis=(1, 2)))

    @functools.cached_property
    def points(self) -> tuple[Floats, Ranks]:
        """The same without duplicates; and their number."""
        new = np.ones(self.sorted.shape, bool)
        new[:, 1:] = self.sorted[:, 1:] != self.sorted[:, :-1]
        places = np.cumsum(new, axis=1) - 1
        found = np.full(self.sorted.shape, np.inf)
        np.put_along_axis(found, places, self.sorted, axis=1)
        return found, np.isfinite(found).sum(axis=1)

    def centres(self) -> Floats:
        """Hodges and Lehmann's shift: at which the rank sum equals its mean under exchange."""
        found = np.empty(len(self.counts))
        plain, aligned = np.flatnonzero(~self.designs.blocked), np.flatnonzero(self.designs.blocked)
        counts = self.counts[plain]
        found[plain] = (self.sorted[plain, (counts - 1) // 2] + self.sorted[plain, counts // 2]) / 2
        if len(aligned):
            points, last = self.points[0][aligned], self.points[1][aligned] - 1
            twice = np.tile(np.arange(len(aligned)), 2)  # a search for each end of the stretch where the excess is 0
            designs, of_point = self.designs.take(aligned[twice]), points[twice]
            above = np.repeat([_TINY, -_TINY], len(aligned))
            ends = last_that(
                last[twice] + 1,
                lambda at: _excess(designs, -np.take_along_axis(of_point, at[:, None], axis=1)[:, 0]) > above,
            )
            rows, (low, high) = np.arange(len(aligned)), np.split(ends, 2)
            found[aligned] = (points[rows, np.minimum(low + 1, last)] + points[rows, np.maximum(high, 0)]) / 2
        return found

    def kept(self, tail: Floats) -> tuple[Floats, Floats]:
        """The smallest and the largest shift that the rank test does not reject with that probability in either tail.

        Between two steps no rank changes, so that the test is evaluated at their middles.
        """
        points, counts = self.points
        rows = np.arange(len(counts))
        first, last = points[:, 0], points[rows, counts - 1]
        beyond = np.where(last > first, last - first, np.where(first != 0, np.abs(first), 1.0))
        before, after = points[:, :-1], points[:, 1:]
        between = np.where(np.isfinite(after), (before + np.where(np.isfinite(after), after, 0.0)) / 2, np.inf)
        middles = np.concatenate([(first - beyond)[:, None], between, np.full((len(rows), 1), np.inf)], axis=1)
        middles[rows, counts] = last + beyond
        twice = np.tile(rows, 2)
        designs, of_middle, limit = self.designs.take(twice), middles[twice], tail[twice]

        def holds(at: Ranks) -> Bools:
            found = tails(designs, -np.take_along_axis(of_middle, at[:, None], axis=1)[:, 0])
            held: Bools = np.where(np.arange(len(twice)) < len(rows), found.high <= limit, found.low > limit)
            return held

        rejected, kept = np.split(last_that(counts[twice] + 1, holds), 2)
        return points[rows, np.maximum(rejected, 0)], points[rows, np.clip(kept, 0, counts - 1)]


def last_that(counts: Ranks, holds: Callable[[Ranks], Bools]) -> Ranks:
    """For each row the last index below its count for which `holds`, which holds up to some index and not after it; -1
    if it never does. `holds` is evaluated at an index of every row at once."""
    low, high = np.zeros_like(counts), counts.copy()
    while (low < high).any():
        middle = (low + high) // 2
        held = holds(np.minimum(middle, counts - 1))
        searched = low < high
        low = np.where(searched & held, middle + 1, low)
        high = np.where(searched & ~held, middle, high)
    return low - 1


@functools.lru_cache(maxsize=256)
def counts_without_ties(n: int, chosen: int) -> Floats:
    """How many of the choices of this many of n ranks have each sum; index: the sum minus the smallest one."""
    scores = np.arange(n, dtype=np.int64).reshape(1, 1, n)
    counts = _counts(scores, np.full((1, 1), chosen), np.ones((1, 1, n), bool))[0]
    found: Floats = counts[chosen * (chosen - 1) // 2 :][: chosen * (n - chosen) + 1]
    found.flags.writeable = False
    return found


def _pairs(designs: Designs) -> Bools:
    """R, all of b, all of a: which pairs there are."""
    rows = len(designs.a)
    return designs.has_b.reshape(rows, -1, 1) & designs.has_a.reshape(rows, 1, -1)


def _doubled_ranks(designs: Designs, by: Floats) -> Ranks:
    """R K M: twice the ranks of all values, aligned if there are several blocks; integers even with ties."""
    present = designs.present
    values = np.concatenate([designs.a, np.where(designs.has_b, designs.b + by[:, None, None], 0.0)], axis=2)
    n = np.maximum(present.sum(axis=2), 1)
    aligned = values - (values.sum(axis=2) / n)[:, :, None]
    # Equal values must stay equal despite rounding.
    grain = np.abs(values).max(axis=(1, 2), initial=0.0) * NOISE
    aligned = np.round(aligned / np.where(grain > 0, grain, 1.0)[:, None, None])
    ranked = np.where(designs.blocked[:, None, None], aligned, values)
    flat = np.where(present, ranked, np.inf).reshape(len(by), -1)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    places = np.arange(flat.shape[1])
    new = ordered[:, 1:] != ordered[:, :-1]
    edge = np.ones((len(by), 1), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, new], axis=1), places, 0), axis=1)
    ends = np.where(np.concatenate([new, edge], axis=1), places, flat.shape[1])
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(flat.shape, np.int64)
    np.put_along_axis(ranks, order, first + last + 2, axis=1)
    found: Ranks = ranks.reshape(present.shape) * present
    return found


def _excess(designs: Designs, by: Floats) -> Floats:
    """The sum of the treatment's doubled ranks minus its mean under exchange within blocks."""
    ranks = _doubled_ranks(designs, by)
    n = np.maximum(designs.n_a + designs.n_b, 1)
    apart: Floats = (designs.of_b(ranks).sum(axis=2) - designs.n_b * (ranks.sum(axis=2) / n)).sum(axis=1)
    return apart


def _exact(designs: Designs, ranks: Ranks) -> tuple[Floats, Floats]:
    """By enumerating every arrangement."""
    chosen, present = designs.n_b, designs.present
    least = np.where(present, ranks, np.iinfo(np.int64).max).min(axis=2)
    least = np.where(designs.n_a + designs.n_b > 0, least, 0)
    scores = np.where(present, ranks - least[:, :, None], 0)
    unit = np.where((scores % 2 == 0).all(axis=(1, 2)), 2, 1)  # without ties all are even
    scores //= unit[:, None, None]
    observed = np.where(designs.has_b, designs.of_b(scores), 0).sum(axis=(1, 2))
    if scores.shape[1] == 1:  # the counts depend on which scores there are, not on which trial has them
        scores = np.where(present, scores, -1)
        key = np.concatenate([np.sort(scores[:, 0], axis=1), chosen], axis=1)
        _, rows, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    else:
        rows = which = np.arange(len(scores))
    low, high = np.empty(len(scores)), np.empty(len(scores))
    widest = int(((scores.max(axis=2)) * chosen).sum(axis=1).max()) + 1
    some = max(1, _CELLS // (widest * (int(chosen.max()) + 1)))
    for start in range(0, len(rows), some):
        of = rows[start : start + some]
        counts = _counts(scores[of], chosen[of], present[of])
        asked = np.flatnonzero((which >= start) & (which < start + some))
        mine, at = counts[which[asked] - start], observed[asked, None]
        sums = np.arange(counts.shape[1])
        low[asked] = np.where(sums <= at, mine, 0.0).sum(axis=1)
        high[asked] = np.where(sums >= at, mine, 0.0).sum(axis=1)
    return low / designs.arrangements, high / designs.arrangements


def _counts(scores: Ranks, chosen: Ranks, present: Bools) -> Floats:
    """R, sums: how many arrangements choose `chosen` (R K) of the scores (R K M, from 0 on) of each block, by sum."""
    rows = np.arange(len(scores))
    reach = np.where(present, scores, 0).max(axis=2) * chosen
    upto = np.cumsum(reach, axis=1).max(axis=0) + 1  # everything beyond is 0 after each block
    before = int(scores.max(initial=0))  # zeros, for sums that are too small to come from another
    width = before + int(upto[-1])
    counted = np.zeros((len(rows), width))
    counted[:, before] = 1
    places = (rows * width)[:, None] + np.arange(before, width)
    for block in range(scores.shape[1]):
        most = int(chosen[:, block].max())
        states = np.zeros((most + 1, *counted.shape))  # how many are chosen, from this block
        states[0] = counted
        reached = places[:, : upto[block]]
        for place in range(scores.shape[2]):
            here = present[:, block, place]
            if here.any():
                source = reached - np.where(here, scores[:, block, place], 0)[:, None]
                for state in range(most, 0, -1):
                    moved = states[state - 1].take(source)
                    moved[~here] = 0
                    states[state, :, before : before + upto[block]] += moved
        counted = states[chosen[:, block], rows]
    return counted[:, before:]


def _normal(designs: Designs, ranks: Ranks) -> tuple[Floats, Floats]:
    """By the normal approximation, with half a step of a rank for continuity."""
    n, chosen = np.maximum(designs.n_a + designs.n_b, 2), designs.n_b
    mean = ranks.sum(axis=2) / n
    apart = np.where(designs.present, ranks - mean[:, :, None], 0.0)
    expected = (chosen * mean).sum(axis=1)
    variance = (chosen * (n - chosen) / n * ((apart**2).sum(axis=2) / (n - 1))).sum(axis=1)
    sd = np.sqrt(np.where(variance > 0, variance, 1.0))
    observed = designs.of_b(ranks).sum(axis=(1, 2))
    low = scipy.special.ndtr((observed + 1 - expected) / sd)  # ranks are doubled: half a step is 1
    high = scipy.special.ndtr(-(observed - 1 - expected) / sd)
    return np.where(variance > 0, low, 1.0), np.where(variance > 0, high, 1.0)
