"""The search for a breaking point: the level at which the probability that a trial meets a criterion falls to a share.

Each trial runs at the most informative level (breaking_point_model), every sixth one somewhere in the range regardless
of the model, and in the end no wide stretch of the range is without one. The interval is the set of levels whose
credibility has not fallen below a fixed part of the prior; it may be looked at after every trial, so that the search
can stop when it is narrow. With many trials it is reduced to a central credible interval of more than the stated level.
Its coverage in simulations, and the exceptions, are in docs/breaking_point.md.

Example, with a function trial() that returns whether a trial at a level met the criterion:

    search = Search(Space(100, 3000, "log"), Aim(share=0.9), seed=1)
    while (level := search.next()) is not None:
        search.add(level, trial(level))
    print(sentences(search.result(), lambda x: f"{x:.0f} msg/s"))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from perflab.models import Number
from perflab.results.curve import NOT_FINISHED, Bounds, Fit, Found, LeftOutTrials, LevelTried, State, Step
from perflab.results.outcome import INVALID, Outcome, Outcomes
from perflab.statistics import breaking_point_model as model
from perflab.statistics import breaking_point_monotone as monotone
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Floats

FEWEST = 8  # trials before a search may stop
FILLING = 6  # every this many trials, one is placed to fill the range
HOLE = 0.2  # share of the range: no wider stretch stays without a trial, so that a gap in it is noticed
INVALID_AT_A_LEVEL = 3  # in a row, after which the level is not tried again
SLACK = 2.0  # the interval's threshold is 1 / (SLACK alpha); by Ville's inequality 1 / alpha is always enough
MANY = 30  # number of trials from which the interval also lies within a central credible one
TIGHTER = 0.4  # share of alpha that the credible interval leaves out
RISES = 0.005  # p of monotonicity up to which the result is "not monotone"
SUSPICIOUS = 2.0  # nats of a dip from which one of its levels is tried again
REPEATS = 4  # so often
COARSEST, FINEST = 100, 300  # cells of the grid over the range
CELLS_PER_PRECISION = 12
CURVE_PLACES = 41


@dataclass(frozen=True)
class Space:
    """The searched levels. Disturbance grows from `low` to `high`, or with `falls` from `high` to `low`.

    Raises ValueError for an empty range.
    """

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    integer: bool = False
    falls: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range needs low < high, not {self.low:g} and {self.high:g}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"a logarithmic scale needs low > 0, not {self.low:g}")
        if self.integer and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(f"a factor of whole numbers needs whole ends, not {self.low:g} and {self.high:g}")

    def place(self, level: float) -> float:
        """The place of a level on the scale: 0 at the harmless end, 1 at the other."""
        if self.scale == "log":
            place = math.log(level / self.low) / math.log(self.high / self.low)
        else:
            place = (level - self.low) / (self.high - self.low)
        return 1 - place if self.falls else place

    def level(self, place: float) -> float:
        """The level at a place, not rounded."""
        place = 1 - place if self.falls else place
        if self.scale == "log":
            return self.low * math.exp(place * math.log(self.high / self.low))
        return self.low + (self.high - self.low) * place

    def rounded(self, level: float, step: float) -> float:
        """The level that is run: an integer, or three digits and more if a step of the scale needs them; never
        outside."""
        if level <= self.low or level >= self.high:
            return min(max(level, self.low), self.high)
        if self.integer:
            return float(round(level))
        slope = level * math.log(self.high / self.low) if self.scale == "log" else self.high - self.low
        unit = _exponent(slope * step) if level == 0 else min(_exponent(level) - 2, _exponent(slope * step))
        return min(max(round(level, -unit), self.low), self.high)

    @property
    def steps(self) -> int | None:
        """The steps between the integers of the range; None for real levels."""
        return round(self.high - self.low) if self.integer else None


@dataclass(frozen=True)
class Aim:
    """The target of a search, its confidence, and its largest number of trials.

    `share`: the breaking point is the level at which the probability that a trial meets the criterion falls to this.
    `precision`: the interval width at which the search ends, as a part of the range on the scale of the search: linear
    (high - low) / range; log: log(high / low) of the interval / log(high / low) of the range. For integers, one step is
    always precise enough. Raises ValueError for an invalid value.
    """

    share: float = 0.5
    confidence: float = 0.95
    precision: float = 0.1
    max_trials: int = 60

    def __post_init__(self) -> None:
        if not 0.05 <= self.share <= 0.99:
            raise ValueError(
                f"share must be 0.05 to 0.99, not {self.share:g}: nearer to 0 or 1 takes thousands of trials"
            )
        if not 0.5 <= self.confidence <= 0.999:
            raise ValueError(f"confidence must be 0.5 to 0.999, not {self.confidence:g}")
        if not 0.01 <= self.precision <= 0.5:
            raise ValueError(f"precision must be 0.01 to 0.5 of the range, not {self.precision:g}; or narrow the range")
        if self.max_trials < FEWEST:
            raise ValueError(f"max_trials must be at least {FEWEST}, not {self.max_trials}")


@dataclass
class _Tally:
    """Trials at one level."""

    place: float
    met: int = 0
    n: int = 0
    invalid: int = 0
    invalid_in_a_row: int = 0


@dataclass(frozen=True)
class _Candidate:
    level: float
    place: float
    line: int = field(compare=False)


class Search:
    """Chooses the level of the next trial, and gives the result at the end.

    A pure function of space, aim, seed and the calls of add() and invalid(): the same calls give the same levels.
    """

    def __init__(self, space: Space, aim: Aim, seed: int) -> None:
        self.space, self.aim, self._seed = space, aim, seed
        self._width = max(aim.precision, 1 / space.steps if space.steps else 0.0)
        self._posterior = model.posterior(aim.share, 1 / _cells(self._width, space))
        self._candidates = list(_candidates(space, self._posterior.cells))
        self._offset = float(np.random.default_rng(seed).random())
        self._tallies: dict[float, _Tally] = {}
        self._course: list[tuple[float, bool | None]] = []
        self._trials = 0
        self._left: list[Outcome] = []
        self._repeats = 0
        self._suspected: float | None = None
        self._next: float | None = None
        self._known = False

    def next(self) -> float | None:
        """The level of the next trial; None when the search is finished. Unchanged until add() or invalid()."""
        if not self._known:
            self._next = None if self._why_stopped() is not None else self._choose()
            self._known = True
        return self._next

    def add(self, level: float, met: bool) -> None:
        """A trial that met the criterion or did not. Raises ValueError for a level outside the range."""
        tally = self._tally(level)
        if level == self._suspected:
            self._repeats += 1
        self._course.append((level, bool(met)))
        self._trials += 1
        tally.n += 1
        tally.met += bool(met)
        tally.invalid_in_a_row = 0
        self._posterior.add(tally.place, bool(met))
        self._known = False
        self._suspected = self._find_suspect()

    def invalid(self, level: float, why: Outcome = INVALID) -> None:
        """A trial that gives no answer about the criterion. Raises ValueError for a level outside the range."""
        tally = self._tally(level)
        self._course.append((level, None))
        self._left.append(why)
        tally.invalid += 1
        tally.invalid_in_a_row += 1
        self._known = False

    def result(self) -> Found:
        """The present result; also before the search is finished."""
        stopped = self._why_stopped()
        p, rises = self._monotone()
        low, high = self._interval()
        state = self._state(p)
        located = state in ("found", "unsettled", "not_monotone") and self._trials > 0 and high > 0 and low < 1
        farthest, limit = self._limits()
        value = self._value(low, high) if located and state in ("found", "unsettled") else None
        number = self._number
        at_the_end = [level for level, tally in self._tallies.items() if tally.place == farthest and tally.n]
        return Found(
            **{**vars(self.space), "low": number(self.space.low), "high": number(self.space.high)},
            **vars(self.aim),
            state=state,
            value=None if value is None else number(value),
            interval=self._bounds(low, high, number) if located and state != "not_monotone" else None,
            stopped=stopped or NOT_FINISHED,
            trials=self._trials,
            left_out=LeftOutTrials.of(Outcomes.of(self._left)),
            levels=tuple(self._levels()),
            course=tuple(Step(n, number(level), met) for n, (level, met) in enumerate(self._course, start=1)),
            fit=self._fit() if self._trials else None,
            monotone_p=p,
            rises=rises if state == "not_monotone" else None,
            producible=None if math.isinf(limit) or not self._trials else number(at_the_end[0]),
        )

    # -- the level of the next trial

    def _choose(self) -> float:
        allowed = self._allowed()
        if not self._trials and not math.isinf(self._limits()[1]):
            return min(allowed, key=lambda c: c.place).level  # checks whether any level can be produced
        suspect = self._suspected
        filling = (self._trials + 1) % FILLING == 0
        settled = self._where() is not None
        if suspect is not None and self._repeats < REPEATS and (filling or settled):
            return suspect
        if settled and (hole := self._hole(allowed)) is not None:
            return hole
        if filling:
            wanted = self._filling((self._trials + 1) // FILLING)
            return min(allowed, key=lambda c: (abs(c.place - wanted), c.place)).level
        # So that rounding differences between machines do not matter
        told = np.round(self._posterior.information(), 12)
        return max(allowed, key=lambda c: (told[c.line], -c.place)).level

    def _filling(self, number: int) -> float:
        """The harmful end, the harmless one, then van der Corput's sequence from an offset given by the seed."""
        if number <= 2:
            return 2.0 - number
        place, part, rest = 0.0, 0.5, number - 2
        while rest:
            place, part, rest = place + part * (rest & 1), part / 2, rest >> 1
        return (place + self._offset) % 1.0

    def _hole(self, allowed: list[_Candidate]) -> float | None:
        """The level in the middle of the widest stretch without a trial; None if no stretch is worth a trial."""
        tried = [t.place for t in self._tallies.values() if t.n]
        ends = sorted({0.0, max(c.place for c in allowed), *tried})
        low, high = max(pairwise(ends), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))
        inside = [c for c in allowed if low < c.place < high]
        if high - low <= HOLE or not inside:
            return None
        return min(inside, key=lambda c: (abs(c.place - (low + high) / 2), c.place)).level

    def _limits(self) -> tuple[float, float]:
        """The farthest place with a valid trial, and the nearest one beyond it that was given up, or infinity."""
        farthest = max((t.place for t in self._tallies.values() if t.n), default=0.0)
        none_valid = not any(t.n for t in self._tallies.values())
        given_up = (
            t.place
            for t in self._tallies.values()
            if t.invalid_in_a_row >= INVALID_AT_A_LEVEL and (t.place > farthest or none_valid)
        )
        return farthest, min(given_up, default=math.inf)

    def _allowed(self) -> list[_Candidate]:
        """Levels that can be produced as far as is known, and half of the way from them to one that cannot."""
        farthest, limit = self._limits()
        closed = {t.place for t in self._tallies.values() if t.invalid_in_a_row >= INVALID_AT_A_LEVEL}
        nearer = [c for c in self._candidates if c.place < limit and c.place not in closed]
        if math.isinf(limit):
            return nearer
        halfway = max(farthest, (farthest + limit) / 2)
        return [c for c in nearer if c.place <= halfway] or nearer[:1]

    def _end(self) -> float | None:
        """The farthest place that can be produced, if one beyond it that cannot is near or next; else None."""
        farthest, limit = self._limits()
        between = any(farthest < c.place < limit for c in self._candidates)
        return farthest if not math.isinf(limit) and (limit - farthest <= self._width or not between) else None

    def _find_suspect(self) -> float | None:
        """A level with few trials that contradict a falling share."""
        tallies, met, n = self._ordered()
        found = monotone.dip(met, n)
        if found is None or found.statistic < SUSPICIOUS:
            return None
        stretches = [range(a, b + 1) for a, b in (found.lower, found.upper)]
        fewer = min(stretches, key=lambda s: sum(n[i] for i in s))
        chosen = fewer[len(fewer) // 2]
        return next(level for level, tally in self._tallies.items() if tally is tallies[chosen])

    # -- when it ends

    def _why_stopped(self) -> str | None:
        left = len(self._left)
        if not self._allowed():
            return "no level can be produced"
        if self._trials >= self.aim.max_trials:
            return f"all {self.aim.max_trials} trials used up"
        if left >= max(4 * INVALID_AT_A_LEVEL, self.aim.max_trials):
            return f"{left} trials gave no answer"
        if (where := self._where()) is None:
            return None
        if self._suspected is not None and self._repeats < REPEATS:
            return None
        if self._hole(self._allowed()) is not None:
            return None
        return "the interval is narrow enough" if where == "found" else "the range has been left"

    def _where(self) -> State | None:
        """The state in which it may end; None if the breaking point is not known with the required confidence."""
        if self._trials < FEWEST:
            return None
        tail = (1 - self.aim.confidence) / 2
        end = self._end()
        if end is not None and self._posterior.beyond(end) >= 1 - tail:
            return "not_producible"
        if self._posterior.beyond(1.0) >= 1 - tail:
            return "not_reached"
        if self._posterior.beyond(0.0) <= tail:
            return "below_low"
        low, high = self._interval()
        if low < -1e-9 or high > 1 + 1e-9:
            return None
        bounds = self._bounds(low, high)
        narrow = abs(self.space.place(bounds.high) - self.space.place(bounds.low)) <= self._width + 1e-9
        one_step = self.space.integer and bounds.high - bounds.low <= 1
        return "found" if narrow or one_step else None

    def _state(self, p: float | None) -> State:
        if p is not None and p <= RISES:
            return "not_monotone"
        if not self._trials:
            return "unsettled" if self._allowed() else "not_producible"
        return self._where() or "unsettled"

    # -- the result

    def _interval(self) -> tuple[float, float]:
        """As places; beyond 0 and 1 if it is open there.

        With few trials a credible interval is narrow by chance, and the search would stop because of that: so only with
        MANY of them. Both figures are from simulations (docs/breaking_point.md).
        """
        alpha = 1 - self.aim.confidence
        low, high = self._posterior.region(1 / (SLACK * alpha))
        if self._trials < MANY:
            return low, high
        tail = TIGHTER * alpha / 2
        inner = max(low, self._posterior.quantile(tail)), min(high, self._posterior.quantile(1 - tail))
        return inner if inner[0] < inner[1] else (low, high)

    def _bounds(self, low: float, high: float, number: Callable[[float], Number] = float) -> Bounds:
        outside = (low < -1e-9, high > 1 + 1e-9)
        if self.space.falls:
            outside = (outside[1], outside[0])
        ends = sorted((self._reported(low, up=True), self._reported(high, up=False)))
        beyond: Literal["low", "high", "both"] | None = None
        if any(outside):
            beyond = "both" if all(outside) else "low" if outside[0] else "high"
        return Bounds(number(ends[0]), number(ends[1]), self.aim.confidence, beyond)

    def _value(self, low: float, high: float) -> float:
        return self._reported(min(max(self._posterior.quantile(0.5), low), high), up=False)

    def _reported(self, place: float, up: bool) -> float:
        """The level of a threshold; for integers, the first one beyond it.

        A threshold exactly at an integer counts as right after it (`up`) or right before it.
        """
        level = self.space.level(min(max(place, 0.0), 1.0))
        if not self.space.integer:
            return level
        nudge = 1e-6 if up != self.space.falls else -1e-6
        first = math.floor(level + nudge) if self.space.falls else math.ceil(level + nudge)
        return float(min(max(first, self.space.low), self.space.high))

    def _monotone(self) -> tuple[float | None, tuple[Number, Number, Number, Number] | None]:
        """The p of a falling share, and where it rises most; None if there is nothing to test."""
        tallies, met, n = self._ordered()
        if len(tallies) < 2:
            return None, None
        found = monotone.dip(met, n)
        if found is None:
            return 1.0, None
        places = np.array([t.place for t in tallies])
        fitted = (monotone.falling_fit(met, n) + self._posterior.mean(places)) / 2
        p = monotone.p_value(met, n, fitted, self._seed)
        a, b, c, d = (self._number(self.space.level(float(places[i]))) for i in (*found.lower, *found.upper))
        return p, (a, b, c, d)

    def _fit(self) -> Fit:
        places = np.linspace(0.0, 1.0, CURVE_PLACES)
        if self.space.falls:
            places = places[::-1]
        share, low, high = self._posterior.curve(places, self.aim.confidence, self._seed)
        levels = tuple(self.space.level(float(place)) for place in places)
        return Fit(levels, *(tuple(map(float, values)) for values in (share, low, high)))

    def _levels(self) -> Iterator[LevelTried]:
        for level, tally in sorted(self._tallies.items()):
            bounds = wilson(tally.met, tally.n, self.aim.confidence)
            low, high = (None, None) if bounds is None else bounds
            yield LevelTried(self._number(level), tally.met, tally.n, low, high, tally.invalid)

    def _number(self, level: float) -> Number:
        """A level in reported form."""
        return round(level) if self.space.integer else float(f"{level:.6g}")

    def _ordered(self) -> tuple[list[_Tally], Floats, Floats]:
        tallies = sorted((t for t in self._tallies.values() if t.n), key=lambda t: t.place)
        return tallies, np.array([t.met for t in tallies], dtype=float), np.array([t.n for t in tallies], dtype=float)

    def _tally(self, level: float) -> _Tally:
        if not self.space.low <= level <= self.space.high:
            raise ValueError(f"level {level:g} is outside of {self.space.low:g} to {self.space.high:g}")
        if self.space.integer and not float(level).is_integer():
            raise ValueError(f"level {level:g} is not a whole number")
        return self._tallies.setdefault(level, _Tally(self.space.place(level)))


def _cells(width: float, space: Space) -> int:
    """Resolution of the grid: fine enough for the precision; with integers a whole number of cells between
    neighbours."""
    cells = min(max(math.ceil(CELLS_PER_PRECISION / width), COARSEST), FINEST)
    if space.steps is not None and space.scale == "linear" and space.steps <= FINEST:
        return space.steps * max(1, math.ceil(cells / space.steps)) if space.steps < cells else space.steps
    return cells


def _candidates(space: Space, cells: int) -> Iterator[_Candidate]:
    """The levels that may be tried, by place."""
    seen = set()
    for line in range(cells + 1):
        level = space.rounded(space.level(line / cells), 1 / cells)
        if level not in seen:
            seen.add(level)
            place = space.place(level)
            yield _Candidate(level, place, min(max(round(place * cells), 0), cells))


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))
