"""Further repetitions until every comparison is decided, or the time is up (docs/statistics.md, "Until decided").

The trials are judged at looks: as soon as their number can decide everything with the look's share of alpha, but not
before there are half as many more as at the last look. Each look spends its share (`Looks`), so that repeated looks
make no more false claims, and what a look has shown remains shown. The result of a look must not move the next one: it
happens at a number of trials that is known beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from perflab.design.document import Document
from perflab.design.treatments import EXTRA, Planned, Treatment, further_block
from perflab.results.comparison import CLAIMS, Looks, Verdict
from perflab.results.files import Ending, StoppingRule
from perflab.statistics.summary import TrialData
from perflab.units import format_duration, plural

MINUTE_S = 60.0
GROWTH = 1.5  # ratio of the trials at a look to those at the look before it


class Judged(NamedTuple):
    """A comparison at a look. `verdict` includes what earlier looks showed; `too_few`: this look had too few trials to
    show anything. `decidable`: further trials can decide it."""

    verdict: Verdict
    too_few: bool = False
    decidable: bool = True


# The comparisons as of the rule's last look.
Judge = Callable[[Sequence[TrialData], StoppingRule], Sequence[Judged]]


class Foreseen(NamedTuple):
    """The next look that can decide everything, from the numbers of repetitions alone."""

    number: int
    there: int  # repetitions that exist or are planned
    repetitions: int  # number of repetitions at the look
    at_time_up: int  # the number at which a look also happens when the time is up
    block_s: float  # duration of a repetition
    at_most_s: float

    @property
    def words(self) -> str:
        """ "look 2 comes with 8 repetitions, 3 more than there are: about 4 min"."""
        more = self.repetitions - self.there
        look = f"look {self.number} comes with {plural(self.repetitions, 'repetition')}"
        if more <= 0:
            return f"{look}, which are planned"
        lasts_s = more * self.block_s
        said = f"{look}, {more} more than now"
        if not lasts_s:
            return said
        said = f"{said}: about {format_duration(_rounded(lasts_s))}"
        if lasts_s <= self.at_most_s:
            return said
        shorter = f"{said}, but --at-most {format_duration(self.at_most_s)} is shorter"
        fits = self.there + int(self.at_most_s // self.block_s)
        if fits >= self.at_time_up and fits > self.there:
            return f"{shorter}: the look comes when that time is up, with about {fits}"
        return f"{shorter}: nothing more can be shown until then"


def _rounded(seconds: float) -> float:
    """Forecasts are rounded, since they are not accurate to the second."""
    step = 1.0 if seconds < MINUTE_S else 10.0
    return max(step, round(seconds / step) * step)


def looks_of(rule: StoppingRule | None, trials: int) -> Looks:
    """The look that judges this many trials of a run; trials after the last look count as one more look."""
    if rule is None:
        return Looks()
    number = len(rule.looks) + (not rule.looks or trials > rule.looks[-1])
    return Looks(number=number, from_start=rule.from_start, earlier=rule.looks[: number - 1])


def next_look(trials: int) -> int:
    """Least number of trials at the look that follows a look at this many."""
    return math.ceil(GROWTH * trials)


def undecided(judged: Sequence[Judged]) -> int:
    return sum(one.decidable and one.verdict not in CLAIMS for one in judged)


def look_in_words(rule: StoppingRule, judged: Sequence[Judged]) -> str:
    """ "look 2, after 24 trials: 3 of 8 comparisons are not decided"; with too few trials it is not a look."""
    left, trials = undecided(judged), plural(rule.looks[-1], "trial")
    if any(one.too_few for one in judged if one.decidable):
        return f"{trials} are too few for look {len(rule.looks)} to decide everything"
    are = "is" if left == 1 else "are"
    of = plural(sum(one.decidable for one in judged), "comparison")
    what = f"{left} of {of} {are} not decided" if left else "every comparison is decided"
    return f"look {len(rule.looks)}, after {trials}: {what}"


class UntilDecided:
    """A course: the plan, then blocks, as the rule asks for them.

    `rule` has the looks of earlier sessions; the first `seen` trials are from those sessions. A user may have looked at
    those trials and continued because too little was decided: so they are judged by a look, too. `judge` is called at
    each look with the current rule; `enough` returns how many repetitions can decide everything at a look; `begins`
    receives the forecast before the first new trial, `added` that of each further block.
    """

    def __init__(
        self,
        document: Document,
        treatments: Sequence[Treatment],
        order: Sequence[Planned],
        rule: StoppingRule,
        judge: Judge,
        *,
        block_s: float = 0.0,
        seen: int = 0,
        enough: Callable[[Looks, int | None], int] | None = None,
        begins: Callable[[Foreseen], None] = lambda _: None,
        added: Callable[[Sequence[Planned]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`block_s`: duration of a block in seconds, as far as known before a trial has run."""
        self._document = document
        self._treatments = [t for t in treatments if t.purpose != EXTRA]
        self._order = list(order)
        self._judge, self._added, self._clock = judge, added, clock
        self._seen, self._enough, self._begins = seen, enough, begins
        self._planned_block_s = block_s
        self._longest_block_s = 0.0  # of this session
        self._begun = False
        self._compared: int | None = None  # according to the last judgement
        self._adding_since_s: float | None = None
        self._block_began_s = 0.0
        self._told: list[TrialData] = []
        self._left: int | None = None  # comparisons that this session's last look left undecided
        self.rule = rule

    @property
    def most(self) -> int:
        return len(self._order)

    def next(self) -> Planned | None:
        if len(self._told) == len(self._order) and self._goes_on():
            if len(self._told) >= self._seen:
                self._begin()
            block = further_block(self._document, self._treatments, self._order)
            self._order += block
            self._added(block)
            self._block_began_s = self._clock()
        if len(self._told) >= len(self._order):
            return None
        if len(self._told) >= self._seen:
            self._begin()
        return self._order[len(self._told)]

    def ended(self, planned: Planned, data: TrialData) -> None:
        self._told.append(data)
        if len(self._told) == self._seen:
            self._look()
        elif len(self._told) == len(self._order) and self._adding_since_s is not None:
            self._longest_block_s = max(self._longest_block_s, self._clock() - self._block_began_s)

    def close(self) -> StoppingRule:
        """The rule at the end of the run, whatever ended it. Trials after the last look are judged now, as another
        look."""
        if self.rule.ended is None:
            self._look()
            self._end("interrupted")
        return self.rule

    def _goes_on(self) -> bool:
        trials, looks = len(self._told), self.rule.looks
        if self.rule.ended is not None:
            return False
        if trials < self._seen:
            return True
        if not looks or trials == looks[-1] or trials >= next_look(looks[-1]):
            self._look(to_stop=True)
        if self._is_decided():
            return self._end("decided")
        now_s = self._clock()
        self._adding_since_s = now_s if self._adding_since_s is None else self._adding_since_s
        if now_s - self._adding_since_s + self._block_s() > self.rule.at_most_s:
            self._look()
            return self._end("decided" if self._is_decided() else "time_up")
        return True

    def _begin(self) -> None:
        """Reports the forecast before the first new trial."""
        if not self._begun and self._enough is not None:
            self._begins(self._foreseen(self._enough))
        self._begun = True

    def _block_s(self) -> float:
        """Forecast duration of a further block: the average of the trials so far, but not less than in this session."""
        took = [data.took_s for data in self._told if data.took_s is not None]
        mean_s = sum(took) / len(took) if took else 0.0
        known_s = mean_s * self._per_block if took else self._planned_block_s
        return max(known_s, self._longest_block_s)

    @property
    def _per_block(self) -> int:
        """Trials of a further block."""
        return len(further_block(self._document, self._treatments, self._order))

    def _foreseen(self, enough: Callable[[Looks, int | None], int]) -> Foreseen:
        looks, trials = self.rule.looks, len(self._order)
        there = max(planned.block for planned in self._order)
        number = len(looks) + 1
        needed = enough(Looks(number=number, from_start=self.rule.from_start), self._compared)
        lacking = next_look(looks[-1]) - trials if looks else 0
        repetitions = max(needed, there + max(0, math.ceil(lacking / self._per_block)))
        return Foreseen(number, there, repetitions, needed, self._block_s(), self.rule.at_most_s)

    def _is_decided(self) -> bool:
        return self._left == 0 and self.rule.looks[-1:] == (len(self._told),)

    def _look(self, *, to_stop: bool = False) -> None:
        """Judges the trials. This is not a look if these numbers of trials could show nothing, nor, with `to_stop`, if
        they could not decide everything."""
        trials, looks = len(self._told), self.rule.looks
        new = not looks or trials > looks[-1]
        rule = replace(self.rule, looks=(*looks, trials)) if new else self.rule
        if not trials or (not new and (trials < looks[-1] or self._left is not None)):
            return
        judged = self._judge(self._told, rule)
        self._compared = len(judged) or None
        nothing = all(one.too_few for one in judged)
        if new and (nothing or (to_stop and any(one.too_few for one in judged if one.decidable))):
            return
        self.rule, self._left = rule, undecided(judged)

    def _end(self, ended: Ending) -> bool:
        self.rule = replace(self.rule, ended=ended)
        return False
