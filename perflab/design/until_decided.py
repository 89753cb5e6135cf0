"""Further repetitions until every comparison is decided, or the time is up (docs/statistics.md, "Until decided").

The trials are judged at looks: as soon as their number can decide everything, and whenever there are half as many more
as at the last look. Each look spends its share of alpha (`Looks`), so that looking again and again makes no more false
claims. What a look says may not move the next one: it comes at a number of trials that is known beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from perflab.design.document import Document
from perflab.design.treatments import EXTRA, Planned, Treatment, further_block
from perflab.results.comparison import CLAIMS, Looks, Verdict
from perflab.results.files import Ending, StoppingRule
from perflab.statistics.summary import TrialData
from perflab.units import plural

GROWTH = 1.5  # trials of a look, of those of the look before it

# The verdicts of those comparisons that trials can decide, as the last look of the rule finds them.
Judge = Callable[[Sequence[TrialData], StoppingRule], Sequence[Verdict]]


def looks_of(rule: StoppingRule | None, trials: int) -> Looks:
    """The look that judges so many trials of a run; those that came after the last look are one more."""
    if rule is None:
        return Looks()
    number = len(rule.looks) + (not rule.looks or trials > rule.looks[-1])
    return Looks(number=number, from_start=rule.from_start)


def next_look(trials: int) -> int:
    """How many trials there are at least at the look after one at so many."""
    return math.ceil(GROWTH * trials)


def undecided(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict not in CLAIMS for verdict in verdicts)


def look_in_words(rule: StoppingRule, verdicts: Sequence[Verdict]) -> str:
    """ "look 2, after 24 trials: 3 of 8 comparisons are not decided"; where trials are too few they are no look."""
    left, trials = undecided(verdicts), plural(rule.looks[-1], "trial")
    if "too_few_trials" in verdicts:
        return f"{trials} are too few to decide everything"
    are = "is" if left == 1 else "are"
    what = (
        f"{left} of {plural(len(verdicts), 'comparison')} {are} not decided" if left else "every comparison is decided"
    )
    return f"look {len(rule.looks)}, after {trials}: {what}"


class UntilDecided:
    """A course: the plan, then blocks, as the rule asks for them.

    `rule` has the looks that were made in earlier sessions; the first `seen` trials are of those. Somebody may have
    looked at them, and goes on because they decided too little: so they are judged by a look too. `judge` is asked at
    each look, with the rule as it is then; `added` is told of each further block.
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
        added: Callable[[Sequence[Planned]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`block_s`: what a block takes at least, in seconds."""
        self._document = document
        self._treatments = [t for t in treatments if t.purpose != EXTRA]
        self._order = list(order)
        self._judge, self._added, self._clock = judge, added, clock
        self._seen = seen
        self._block_s = block_s
        self._adding_since_s: float | None = None
        self._block_began_s = 0.0
        self._told: list[TrialData] = []
        self._left: int | None = None  # comparisons that the last look of this session did not decide
        self.rule = rule

    @property
    def most(self) -> int:
        return len(self._order)

    def next(self) -> Planned | None:
        if len(self._told) == len(self._order) and self._goes_on():
            block = further_block(self._document, self._treatments, self._order)
            self._order += block
            self._added(block)
            self._block_began_s = self._clock()
        return self._order[len(self._told)] if len(self._told) < len(self._order) else None

    def ended(self, planned: Planned, data: TrialData) -> None:
        self._told.append(data)
        if len(self._told) == self._seen:
            self._look()
        elif len(self._told) == len(self._order) and self._adding_since_s is not None:
            self._block_s = max(self._block_s, self._clock() - self._block_began_s)

    def close(self) -> StoppingRule:
        """The rule as the run ends, whyever. Trials that came after the last look are judged now, which is a look."""
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
        if now_s - self._adding_since_s + self._block_s > self.rule.at_most_s:
            self._look()
            return self._end("decided" if self._is_decided() else "time_up")
        return True

    def _is_decided(self) -> bool:
        return self._left == 0 and self.rule.looks[-1:] == (len(self._told),)

    def _look(self, *, to_stop: bool = False) -> None:
        """Judges the trials. It is no look where these numbers of trials could show nothing, nor, `to_stop`, where
        they could not decide everything."""
        trials, looks = len(self._told), self.rule.looks
        new = not looks or trials > looks[-1]
        rule = replace(self.rule, looks=(*looks, trials)) if new else self.rule
        if not trials or (not new and (trials < looks[-1] or self._left is not None)):
            return
        verdicts = self._judge(self._told, rule)
        short = [verdict == "too_few_trials" for verdict in verdicts]
        if new and (all(short) or (to_stop and any(short))):
            return
        self.rule, self._left = rule, undecided(verdicts)

    def _end(self, ended: Ending) -> bool:
        self.rule = replace(self.rule, ended=ended)
        return False
