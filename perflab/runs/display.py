"""The interface for progress of a run, trial by trial; perflab/report/live.py shows it to people."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.results.trial import Trial


@dataclass(frozen=True)
class LiveProgress:
    """The progress of a running trial, of the measured part, without warm-up. None: for a command, not known yet."""

    phase: str
    elapsed_ns: int
    sent: int | None
    received: int | None
    lost: int | None
    histograms: tuple[str, ...] = ()  # of latency, one from each process
    note: str = ""
    responses: tuple[str, ...] = ()
    published: int | None = None  # messages; `sent` counts each as often as it should be received
    received_bytes: int | None = None  # payload
    complete_ns: int = 0  # time in the measured part up to which every process has reported; 0: not yet


@dataclass(frozen=True)
class PlannedTrial:
    """One trial to run. `order` is its place in the plan of the whole run, from 1."""

    order: int
    label: str  # of the treatment
    variant: str  # in words
    duration_s: float  # warm-up and measured part
    warmup_s: float = 0.0  # of these
    virtual: bool = False  # its seconds are of virtual time, which passes as fast as it can be computed
    endless: bool = False  # it is measured until it is stopped
    open: bool = False  # it ends by itself, after that duration at the latest

    @property
    def measured_s(self) -> float | None:
        """None: until it is stopped."""
        return None if self.endless else self.duration_s - self.warmup_s

    @property
    def lasts_s(self) -> float:
        """Its minimum duration in real time."""
        return 0.0 if self.virtual or self.open else self.duration_s


@dataclass(frozen=True)
class RunPlan:
    """The trials to run. `total` counts all trials of the plan, including those that a resumed run already has."""

    total: int
    entries: tuple[PlannedTrial, ...]
    at_most: bool = False  # a search: its trials are not known beforehand, and it may end before the last
    quiet_limit_s: float = 0.0  # longest wait for a quiet machine before a trial
    rough: bool = False  # made to take a minute
    adds: str | None = None  # which repetitions are added to it, as a sentence without its end; None: none are


@dataclass(frozen=True, kw_only=True)
class FinishedTrial:
    """A finished trial, and its total duration; None: unknown."""

    trial: Trial
    took_s: float | None = None


class Display:
    """Receives the events of a run in order, from `begin` to `close`, which always comes. This one shows nothing."""

    def begin(self, plan: RunPlan) -> None:
        pass

    def planned(self, trial: PlannedTrial) -> None:
        """Describes the trial of this order, if the plan could not."""

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
