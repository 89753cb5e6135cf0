"""Who is told how a run goes, trial by trial; what shows it to people is in perflab/report/live.py."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.results.trial import Trial


@dataclass(frozen=True)
class LiveProgress:
    """What is known while a trial runs; of the measured part, without warm-up. None: of a command, not known yet."""

    phase: str
    elapsed_ns: int
    sent: int | None
    received: int | None
    lost: int | None
    histograms: tuple[str, ...] = ()  # of latency, one of each process
    note: str = ""
    responses: tuple[str, ...] = ()
    published: int | None = None  # messages; `sent` counts each as often as it should be received
    received_bytes: int | None = None  # payload
    complete_ns: int = 0  # so far into the measured part every process has told; 0: not yet


@dataclass(frozen=True)
class PlannedTrial:
    """One trial that is to run. `order` is its place in the plan of the whole run, from 1."""

    order: int
    label: str  # of the treatment
    variant: str  # in words
    duration_s: float  # warm-up and measured part
    warmup_s: float = 0.0  # of these
    virtual: bool = False  # its seconds are of virtual time, which passes as fast as it can be computed
    endless: bool = False  # it is measured until somebody stops it
    open: bool = False  # it ends by itself, after that duration at the latest

    @property
    def measured_s(self) -> float | None:
        """None: until it is stopped."""
        return None if self.endless else self.duration_s - self.warmup_s

    @property
    def lasts_s(self) -> float:
        """What it takes at least of real time."""
        return 0.0 if self.virtual or self.open else self.duration_s


@dataclass(frozen=True)
class RunPlan:
    """What is to run. `total` counts all trials of the plan, also those that a resumed run has already."""

    total: int
    entries: tuple[PlannedTrial, ...]
    at_most: bool = False  # a search: which trials there will be is not known, and it may end before the last
    quiet_limit_s: float = 0.0  # longest wait for a quiet machine before a trial
    rough: bool = False  # made to take a minute
    adds: str | None = None  # which repetitions are added to it, as a sentence without its end; None: none are


@dataclass(frozen=True, kw_only=True)
class FinishedTrial:
    """A trial that is over, and how long it took in all; None: not known."""

    trial: Trial
    took_s: float | None = None


class Display:
    """Gets the events of a run in order, from `begin` to `close`, which always comes. This one shows nothing."""

    def begin(self, plan: RunPlan) -> None:
        pass

    def planned(self, trial: PlannedTrial) -> None:
        """What the trial of this order will be, where the plan could not say it."""

    def trial_started(self, order: int) -> None:
        pass

    def progress(self, progress: LiveProgress) -> None:
        pass

    def trial_finished(self, trial: FinishedTrial) -> None:
        pass

    def waiting(self, text: str) -> None:
        """Names a wait that has lasted some seconds ("waiting for ..."); may come before `begin` or after `close`."""

    def note(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass
