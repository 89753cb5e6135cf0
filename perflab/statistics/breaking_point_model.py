"""The belief about a breaking point after some trials: a posterior over curves on a grid; and the information gain of a
trial.

A curve gives the probability that a trial meets its criterion at a place. Places are positions on the search's scale: 0
is the end at which it should be met, 1 the other. All curves fall:

    p(place) = guess + (1 - guess - lapse) S((place - threshold) / spread + z),   with z such that p(threshold) = share

S is the logistic function, or one of the two Gumbel survival functions (a long tail towards the safe or towards the
broken side). So the threshold is the breaking point itself, whatever the share, and the others are nuisance parameters:
`lapse` of the trials miss the criterion without any disturbance, `guess` meet it by luck. Threshold x spread x shape x
lapse x guess is a grid, as in Kontsevich and Tyler's psi (Vision Research 39, 1999) and, with the lapse rate among the
unknowns that are summed out, Prins' psi-marginal (Journal of Vision 13(7), 2013); the most informative next level is
that with the greatest mutual information between its outcome and the threshold.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perflab.statistics.sample import Floats

BEYOND = 0.3  # thresholds are modelled this far outside the range, in ranges
OUTSIDE = 0.15  # prior probability of a threshold below the range, and of one above it
SPREADS = 10  # from a step within one cell to a curve that does not fall completely within the range
WIDEST = 0.5
STEEPEST = 20  # of a cell: otherwise a step between neighbouring levels would be attributed to one beside them
# With prior probabilities: many lapses, and successes after the break, occur but are not expected.
LAPSES = ((0.002, 0.4), (0.02, 0.3), (0.05, 0.2), (0.1, 0.1))
GUESSES = ((0.002, 0.8), (0.15, 0.2))  # of the rest that the share leaves
KINDS = (0.5, 0.25, 0.25)
TINY = 1e-12


@dataclass(frozen=True)
class Shapes:
    """All curves with threshold 0: one entry per curve in each array."""

    kind: Floats  # 0 logistic, 1 long tail towards the safe side, 2 towards the broken side
    spread: Floats
    lapse: Floats
    guess: Floats
    z: Floats
    log_prior: Floats

    def at(self, distance: ArrayLike) -> Floats:
        """P(met) at each distance beyond the threshold, for each curve: [distance x curve]."""
        return self.paired(np.asarray(distance, dtype=np.float64)[..., None])

    def paired(self, distance: Floats) -> Floats:
        """The same if the last axis of the distances is that of the curves, or has length 1."""
        x = np.clip(distance / self.spread + self.z, -40.0, 40.0)
        grown = np.exp(np.where(self.kind == 2, -x, x))
        logistic, gumbel = 1 / (1 + grown), np.exp(-grown)
        survival = np.where(self.kind == 0, logistic, np.where(self.kind == 1, gumbel, 1 - gumbel))
        return np.asarray(self.guess + (1 - self.guess - self.lapse) * survival)


def shapes(share: float, step: float) -> Shapes:
    """The curves for a share, on a grid of thresholds with that step."""
    lapses: dict[float, float] = {}
    for lapse, probability in LAPSES:
        cut = min(lapse, 0.8 * (1 - share))
        lapses[cut] = lapses.get(cut, 0.0) + probability
    spreads = np.geomspace(step / STEEPEST, WIDEST, SPREADS)
    rows = [
        (kind, spread, lapse, guess * share, of_kind * of_lapse * of_guess / SPREADS)
        for kind, of_kind in enumerate(KINDS)
        for spread in spreads
        for lapse, of_lapse in lapses.items()
        for guess, of_guess in GUESSES
    ]
    kind, spread, lapse, guess, prior = np.array(rows).T
    # The survival function at the threshold, and where it has that value.
    s = (share - guess) / (1 - guess - lapse)
    z = np.where(kind == 0, np.log((1 - s) / s), np.where(kind == 1, np.log(-np.log(s)), -np.log(-np.log1p(-s))))
    return Shapes(kind, spread, lapse, guess, z, np.log(prior))


class Posterior:
    """The grid with its weights. `step` is its resolution, in ranges."""

    def __init__(self, share: float, step: float) -> None:
        self.cells = round(1 / step)
        self.step = 1 / self.cells
        margin = round(BEYOND * self.cells)
        self.shapes = shapes(share, self.step)
        self.thresholds = (np.arange(-margin, self.cells + margin) + 0.5) * self.step
        prior = np.where(
            (self.thresholds > 0) & (self.thresholds < 1), (1 - 2 * OUTSIDE) / self.cells, OUTSIDE / margin
        )
        self.prior = prior
        self.log_weights = np.log(prior)[:, None] + self.shapes.log_prior[None, :]
        self.weights = np.exp(self.log_weights)
        # P(met) at every grid line for every threshold depends only on their distance: one table of distances.
        lines = np.arange(self.cells + 1)
        cells = np.arange(len(self.thresholds))
        first = -margin  # the first cell's number, counted from the low end
        self._row = lines[:, None] - (cells[None, :] + first) + self.cells + margin - 1
        distances = (np.arange(int(self._row.max()) + 1) - (self.cells + margin - 1) - 0.5) * self.step
        self._table = self.shapes.at(distances)
        self._column = np.broadcast_to(cells, self._row.shape)

    def add(self, place: float, met: bool) -> None:
        """One trial's outcome."""
        p = self.shapes.at(place - self.thresholds)
        self.log_weights += np.log(np.maximum(p if met else 1 - p, TINY))
        self.log_weights -= self.log_weights.max()
        weights = np.exp(self.log_weights)
        total = float(weights.sum())
        self.weights = weights / total
        self.log_weights -= np.log(total)

    def information(self) -> Floats:
        """For a trial at each grid line 0 … 1: the mutual information of its outcome and the threshold, in nats."""
        marginal = self.weights.sum(axis=1)
        joint = (self.weights @ self._table.T)[self._column, self._row]  # P(met, threshold), [line x threshold]
        given = joint / np.maximum(marginal, TINY)
        return np.asarray(_entropy(joint.sum(axis=1)) - (_entropy(given) * marginal).sum(axis=1))

    def quantile(self, q: float) -> float:
        """Distribution of the threshold, as a place; outside 0 … 1 if it lies beyond an end."""
        below = np.concatenate([[0.0], np.cumsum(self.weights.sum(axis=1))])
        edges = np.append(self.thresholds - self.step / 2, self.thresholds[-1] + self.step / 2)
        return float(np.interp(q * below[-1], below, edges))

    def mean(self, places: Floats) -> Floats:
        """The expected P(met) at places."""
        return np.array([float((self.shapes.at(place - self.thresholds) * self.weights).sum()) for place in places])

    def beyond(self, place: float) -> float:
        """The probability that the threshold lies beyond a place; cells that it cuts count by half."""
        marginal = self.weights.sum(axis=1)
        part = np.clip((self.thresholds - place) / self.step + 0.5, 0.0, 1.0)
        return float(marginal @ part)

    def region(self, ratio: float) -> tuple[float, float]:
        """The ends of the set of thresholds that are at most `ratio` times less credible than before the trials.

        The prior-posterior ratio of the true value is a martingale of mean 1, so that the chance that it ever exceeds
        `ratio` is at most 1 / ratio, whenever one stops (Waudby-Smith and Ramdas, NeurIPS 2020); on average over the
        prior of what is summed out. The set holds whole cells, and is closed to an interval.
        """
        marginal = self.weights.sum(axis=1)
        inside = np.flatnonzero(marginal * ratio > self.prior)
        if not len(inside):
            inside = np.array([int(np.argmax(marginal / self.prior))])
        return (
            float(self.thresholds[inside[0]] - self.step / 2),
            float(self.thresholds[inside[-1]] + self.step / 2),
        )

    def curve(self, places: Floats, level: float, seed: int, draws: int = 1000) -> tuple[Floats, Floats, Floats]:
        """Mean P(met) at places, and its pointwise credible band, from curves drawn from the posterior."""
        generator = np.random.default_rng(seed)
        cumulative = np.cumsum(self.weights.ravel())
        drawn = np.searchsorted(cumulative, generator.random(draws) * cumulative[-1], side="right")
        threshold, curve = np.divmod(np.minimum(drawn, cumulative.size - 1), self.weights.shape[1])
        one = Shapes(*(field[curve] for field in dataclasses.astuple(self.shapes)))
        values = one.paired(np.asarray(places)[:, None] - self.thresholds[threshold][None, :])
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1)
        return values.mean(axis=1), low, high


@functools.lru_cache(maxsize=8)
def _start(share: float, step: float) -> Posterior:
    return Posterior(share, step)


def posterior(share: float, step: float) -> Posterior:
    """A model without trials; searches with the same share and step share the constant tables."""
    fresh = copy.copy(_start(share, step))
    fresh.log_weights = fresh.log_weights.copy()
    return fresh


def _entropy(p: Floats) -> Floats:
    q = np.clip(p, TINY, 1 - TINY)
    return np.asarray(-q * np.log(q) - (1 - q) * np.log1p(-q))
