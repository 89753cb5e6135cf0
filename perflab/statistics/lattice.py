"""Values on a lattice: approximately k times a period plus an offset.

A timer that polls every 50 ms makes durations on a lattice, and means of such values agree to three digits by counting
ticks.

For a period P, the residues x mod P are points on a circle. Without a lattice they are approximately uniform, and the
probability that n - 1 points fall within the arc of length w (as a share of P) that begins at the n-th is w^(n-1); for
any of them at most n times that (exactly that for w <= 1/2: Laubscher and Rudolph 1968). Up to a tenth of the values
may be off the lattice: then the probability is n P(Binomial(n-1, w) >= m-1) for m of n points, times the number of m's
tried.

Protection against false findings:
- Values in one cell count once. Three clusters of trials are three points, however many trials they have.
- Values rounded to r fill an arc anyway: w is taken r/P wider.
- Periods are searched up to where the values fill MIN_LEVELS cells and down to range/MAX_CELLS. The probability is
multiplied by the number of frequencies tried up to that one and by their harmonic sum (Bonferroni, weights 1/j).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from perflab.results.comparison import Lattice
from perflab.statistics.sample import Floats

Bools = npt.NDArray[np.bool_]

MIN_VALUES = 6
MIN_LEVELS = 5  # cells with values; fewer look like clusters
MAX_CELLS = 400
MAX_VALUES = 400  # more are thinned: they add no information
MAX_ARC = 0.25  # share of the period; wider scatter is not called a lattice
MIN_PERIOD = 4  # in units of the resolution
OFF_SHARE = 0.1
ALPHA = 0.01
_COARSE, _FINE = 0.1, 0.005  # steps of the frequency, in cycles over the range


_NOISE = 1e-12  # floating-point tolerance, relative to the largest value


def detect(
    values: Sequence[float] | Floats, *, resolution: float | None = None, alpha: float = ALPHA
) -> Lattice | None:
    """The lattice of the values, their written resolution if that is coarse, or None.

    `resolution` is for values known to be binned. A resolution is reported if the values are multiples of it, cover
    MIN_LEVELS or more, and there are at most MAX_CELLS of it in their range: a finer one has no visible effect.
    """
    data = np.sort(np.asarray(values, dtype=np.float64))
    if len(data) < MIN_VALUES or data[0] == data[-1]:
        return None
    unit, written = _written(data)
    grain = resolution or written or 0.0
    found = _exact(data, unit, written, resolution, alpha) or _search(data, grain, alpha)
    if found is not None:
        return found
    if grain and np.ptp(data) / grain <= MAX_CELLS and len(np.unique(np.round(data / grain))) >= MIN_LEVELS:
        return _fitted(data, np.round((data - data[0]) / grain), grain, len(data), 0.0, grain, kind="resolution")
    return None


def _written(data: Floats) -> tuple[Fraction, float | None]:
    """The greatest common divisor of the differences, and the power of ten that all values are multiples of.

    From the shortest decimals of the values; the power is None if they have more than 12 digits: computed ones.
    """
    exact = [Fraction(repr(float(x))) for x in data]
    differences = {b - exact[0] for b in exact} - {Fraction(0)}
    denominator = math.lcm(*(d.denominator for d in differences))
    unit = Fraction(math.gcd(*(int(d * denominator) for d in differences)), denominator)
    power, digits = Fraction(1), math.floor(math.log10(max(abs(data[0]), abs(data[-1])))) + 1
    while any((x / power).denominator != 1 for x in exact):
        power /= 10
        digits += 1
        if digits > 12:
            return unit, None
    while all((x / (power * 10)).denominator == 1 for x in exact):
        power *= 10
    return unit, float(power)


def _exact(
    data: Floats, unit: Fraction, written: float | None, resolution: float | None, alpha: float
) -> Lattice | None:
    """A lattice without any scatter that is coarser than the written resolution."""
    if written is None:
        return None
    period, grain = float(unit), resolution or written
    times = round(period / grain)
    levels = len(np.unique(data))
    # The probability that the differences of n numbers share a divisor of m or more: at most the sum of k^-(n-1) from m
    # on.
    p = 1.0 if times < 2 else float(times) ** -(levels - 1) * (times / (levels - 2) + 1) if levels > 2 else 1.0
    if levels < MIN_LEVELS or p > alpha or np.ptp(data) / period > MAX_CELLS:
        return None
    return _fitted(data, np.round((data - data[0]) / period), period, len(data), p, written, kind="lattice")


def _search(data: Floats, grain: float, alpha: float) -> Lattice | None:
    if len(data) > MAX_VALUES:
        data = data[np.linspace(0, len(data) - 1, MAX_VALUES).round().astype(int)]
    span = float(np.ptp(data))
    highest = min(float(MAX_CELLS), span / (MIN_PERIOD * grain) if grain else math.inf)
    lowest = MIN_LEVELS - 1.0  # cycles over the range
    if highest <= lowest:
        return None
    cycles = np.arange(lowest, highest, _COARSE)
    keep = len(data) - math.floor(OFF_SHARE * len(data))
    # A coarse step blurs the residues by at most half of it.
    candidates = cycles[_arcs(data, cycles / span, keep) <= MAX_ARC + _COARSE / 2]
    best: tuple[float, float, Floats, Floats] | None = None
    tests = highest / _FINE
    weight = math.log(tests) + 0.5772
    for coarse in candidates:
        fine = np.arange(coarse - _COARSE / 2, coarse + _COARSE / 2, _FINE)
        fine = fine[fine > 0]
        for kept in range(keep, len(data) + 1):
            arcs = _arcs(data, fine / span, kept)
            at = int(np.argmin(arcs))
            arc = float(arcs[at]) + grain * fine[at] / span
            if arc > MAX_ARC:
                continue
            on, cells = _members(data, span / float(fine[at]), kept)
            levels = len(np.unique(cells))
            points = levels + len(data) - kept
            if levels < MIN_LEVELS:
                continue
            single = points * float(scipy.special.bdtrc(levels - 2, points - 1, arc))
            p = single * (fine[at] / _FINE) * weight * (len(data) - keep + 1)
            if best is None or p < best[0]:
                best = float(p), span / float(fine[at]), data[on], cells
    if best is None or best[0] > alpha:
        return None
    p, period, members, cells = best
    return _fitted(members, cells, period, len(data), p, grain or None, kind="lattice")


def _arcs(data: Floats, frequencies: Floats, kept: int) -> Floats:
    """The shortest arc, as a share of the circle, that contains `kept` of the residues; per frequency."""
    phases = np.sort(np.mod(np.multiply.outer(frequencies, data - data[0]), 1.0), axis=1)
    around = np.concatenate([phases, phases + 1], axis=1)
    n = len(data)
    lengths: Floats = (around[:, kept - 1 : kept - 1 + n] - around[:, :n]).min(axis=1)
    return lengths


def _members(data: Floats, period: float, kept: int) -> tuple[Bools, Floats]:
    """Which values lie in the shortest arc that contains `kept` of them, and in which cells those are."""
    phases = np.mod((data - data[0]) / period, 1.0)
    order = np.argsort(phases, kind="stable")
    around = np.concatenate([phases[order], phases[order] + 1])
    n = len(data)
    start = int(np.argmin(around[kept - 1 : kept - 1 + n] - around[:n]))
    on = np.zeros(n, dtype=bool)
    on[order[np.arange(start, start + kept) % n]] = True
    middle = (around[start] + around[start + kept - 1]) / 2
    cells: Floats = np.round((data[on] - data[0]) / period - middle)
    return on, cells


def _fitted(
    members: Floats,
    cells: Floats,
    period: float,
    n: int,
    p: float,
    resolution: float | None,
    *,
    kind: Literal["lattice", "resolution"],
) -> Lattice:
    """The lattice by least squares through the values on it, whose cells are known."""
    fitted, error = period, 0.0
    if np.ptp(members - cells * period) > period * 1e-9:
        fitted, error = _slope(cells, members)
    rounded = _roundest(fitted, 2 * error)
    residues = members - cells * rounded
    residues = residues - math.floor(float(np.median(residues)) / rounded + 1e-9) * rounded
    residues[np.abs(residues) < np.abs(members).max() * _NOISE] = 0.0
    return Lattice(
        kind=kind,
        period=rounded,
        fitted_period=fitted,
        period_error=error,
        offset=float(np.median(residues)),
        offset_low=float(residues.min()),
        offset_high=float(residues.max()),
        levels=len(np.unique(cells)),
        on_lattice=len(members),
        n=n,
        p=min(1.0, p),
        resolution=resolution,
    )


def _slope(x: Floats, y: Floats) -> tuple[float, float]:
    """The intercept and slope of the line by least squares, with standard error."""
    (of_x, both), (_, of_y) = np.cov(x, y, bias=True)
    unexplained = max(0.0, 1 - both**2 / (of_x * of_y))
    return float(both / of_x), math.sqrt(unexplained * of_y / of_x / (len(x) - 2))


def _roundest(value: float, within: float) -> float:
    """The number with the fewest digits that is not further away."""
    if within <= 0:
        return value
    for digits in range(1, 16):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= within:
            return rounded
    return value
