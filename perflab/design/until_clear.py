"""Further repetitions of treatments whose outcome is not clear yet (docs/statistics.md, "Until it is clear").

For each treatment, Wald's sequential test of a proportion decides whether it usually succeeds or fails: the test ends
as soon as one outcome leads by LEAD trials. It tests SHARE against its complement, at the log likelihood ratio of LEAD
trials; the strength of the leading outcome depends on the lead alone, whenever it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perflab.design.document import Document
from perflab.design.treatments import EXTRA, Planned, Treatment, further_block
from perflab.results.outcome import SUCCESS
from perflab.statistics.summary import TrialData
from perflab.units import plural

LEAD = 3  # trials


def error_of(share: float) -> float:
    """Probability that the rarer outcome is taken for the usual one, if the other has this share (gambler's ruin; lower
    for a test that may end undecided).

    >>> round(error_of(0.8), 3)
    0.015
    """
    return 1 / (1 + (share / (1 - share)) ** LEAD)


class UntilClear:
    """A course: the plan, then blocks of the unclear treatments, until each has `most_trials`.

    `added` receives the trials of each block, `told` its message.
    """

    def __init__(
        self,
        document: Document,
        treatments: Sequence[Treatment],
        order: Sequence[Planned],
        most_trials: int,
        *,
        added: Callable[[Sequence[Planned]], None] = lambda _: None,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._document, self._order = document, list(order)
        self._treatments = [t for t in treatments if t.purpose != EXTRA]
        self._most_trials = most_trials
        self._added, self._say = added, told
        self._told: list[tuple[Treatment, TrialData]] = []

    @property
    def most(self) -> int:
        return len(self._order)

    def next(self) -> Planned | None:
        if len(self._told) == len(self._order):
            self._go_on()
        return self._order[len(self._told)] if len(self._told) < len(self._order) else None

    def ended(self, planned: Planned, data: TrialData) -> None:
        self._told.append((planned.treatment, data))

    def lead(self, treatment: Treatment) -> int:
        """By how many trials successes lead failures; negative if failures lead."""
        judged = [data.outcome for of, data in self._told if of is treatment and data.outcome.judged]
        return sum(1 if outcome == SUCCESS else -1 for outcome in judged)

    def _go_on(self) -> None:
        """One more block, if any treatment is unclear and may have more trials."""
        unclear = [t for t in self._treatments if abs(self.lead(t)) < LEAD]
        wanted = [t for t in unclear if sum(of is t for of, _ in self._told) < self._most_trials]
        if not wanted:
            return
        block = further_block(self._document, self._treatments, self._order, only=wanted)
        self._say(
            f"the outcome of {len(unclear)} of {plural(len(self._treatments), 'treatment')} is not clear: repetition "
            f"{block[0].block} is of {plural(len(wanted), 'treatment')}"
        )
        self._order += block
        self._added(block)
