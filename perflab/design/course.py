"""Which trial runs next: as planned beforehand, or as a search decides from what the trials before it showed.

A course is asked for a trial, told how it ended, and asked again. It decides by what it was told and by seeds alone, so
that one which is told the trials of an interrupted run again goes on where that run stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perflab.design.treatments import Planned
from perflab.statistics.summary import TrialData


class Course(Protocol):
    """The trials of a run, one after the other."""

    @property
    def most(self) -> int:
        """How many there are, or at most will be."""
        ...

    def next(self) -> Planned | None:
        """The trial to run now; None when there is no more. Asked again it says the same."""
        ...

    def ended(self, planned: Planned, data: TrialData) -> None:
        """How the trial that `next` said has ended."""
        ...


class AsPlanned:
    """Every trial of a plan, in its order."""

    def __init__(self, order: Sequence[Planned]) -> None:
        self._order = order
        self._over = 0

    @property
    def most(self) -> int:
        return len(self._order)

    def next(self) -> Planned | None:
        return self._order[self._over] if self._over < len(self._order) else None

    def ended(self, planned: Planned, data: TrialData) -> None:
        self._over += 1
