"""Who is told how a run goes, trial by trial; what shows it to people is in perflab/report/live.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from perflab.results.outcome import Outcome
from perflab.results.trial import Totals


@dataclass(frozen=True)
class LiveProgress:
    """What is known while a trial runs; of the measured part, without warm-up. None: of a command, not known yet."""

    phase: str
    elapsed_ns: int
    sent: int | None
    received: int | None
    lost: int | None
    histograms: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class PlannedTrial:
    """One trial that is to run. `order` is its place in the plan of the whole run, from 1."""

    order: int
    label: str  # of the treatment
    variant: str  # in words
    duration_s: float  # warm-up and measured part
    warmup_s: float = 0.0  # of these


@dataclass(frozen=True)
class RunPlan:
    """What is to run. `total` counts all trials of the plan, also those that a resumed run has already."""

    total: int
    entries: tuple[PlannedTrial, ...]
    at_most: bool = False  # a search: which trials there will be is not known, and it may end before the last


class Display(Protocol):
    """Told of everything from `begin` to `close`, in this order; `close` always comes."""

    def begin(self, plan: RunPlan) -> None: ...

    def planned(self, trial: PlannedTrial) -> None:
        """What the trial of this order will be, where the plan could not say it."""
        ...

    def trial_started(self, order: int) -> None: ...

    def progress(self, progress: LiveProgress) -> None: ...

    def trial_finished(self, order: int, outcome: Outcome, reason: str | None, totals: Totals, took_s: float) -> None:
        """`totals` as in the summary."""
        ...

    def waiting(self, text: str) -> None:
        """What has been waited for since seconds ("waiting for ..."); between `begin` and `close` or not."""
        ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...
