"""Further repetitions of the treatments whose outcome is not clear yet (docs/statistics.md, "Until it is clear").

Whether successes or failures are the rule is tested for each treatment by itself, by Wald's sequential test of a share:
it is over as soon as one of them leads by LEAD trials. That is a test of SHARE against its complement, at the log
likelihood ratio of LEAD trials; what the leading outcome is worth follows from the lead alone, whenever it came.
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
    """How often the rarer outcome is taken for the rule, where the other one has this share (gambler's ruin; of a test
    that may end undecided less often).

    >>> round(error_of(0.8), 3)
    0.015
    """
    return 1 / (1 + (share / (1 - share)) ** LEAD)


class UntilClear:
    """A course: the plan, then blocks of the treatments that are not clear, until each has `most_trials`.

    `added` gets the trials of each block, `told` what it says of them.
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
        """By how many trials successes lead failures; below 0: these lead."""
        judged = [data.outcome for of, data in self._told if of is treatment and data.outcome.judged]
        return sum(1 if outcome == SUCCESS else -1 for outcome in judged)

    def _go_on(self) -> None:
        """A block more, where any treatment is not clear and may have one."""
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
