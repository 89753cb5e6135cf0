"""The assignment of policies and priorities that prevents failed trials beside a program that takes the CPU.

Computed from a run by perflab/statistics/advice.py; printed by `perflab advise realtime`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perflab.models import Count, Share
from perflab.results.trial import Level

SCHEMA: Literal[1] = 1
Verdict = Literal["avoids", "fails", "undecided", "not_judged"]
AVOIDS: Verdict = "avoids"
FAILS: Verdict = "fails"
UNDECIDED: Verdict = "undecided"
NOT_JUDGED: Verdict = "not_judged"

EXECUTOR, MIDDLEWARE = "executor", "middleware"  # roles of threads, as records of threads have them
DEADLINE = "DEADLINE"
REAL_TIME = ("FIFO", "RR", DEADLINE)


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """A policy with its priority; 0 if the policy has none."""

    policy: str
    priority: int

    @property
    def rank(self) -> int:
        """Which thread runs before which: DEADLINE before every priority, and a policy that is not real-time last."""
        return 100 if self.policy == DEADLINE else self.priority if self.policy in REAL_TIME else 0

    @property
    def words(self) -> str:
        return f"{self.policy} {self.priority}" if self.priority else self.policy


@dataclass(frozen=True, kw_only=True)
class RoleScheduled(Scheduled):
    """The scheduling of a role's threads in a process, as read back from the kernel: the lowest of them."""

    process: str
    role: str
    cpus: tuple[int, ...]
    threads: Count
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How many of the judged trials failed, with Wilson's interval."""

    failed: Count
    judged: Count
    low: Share | None
    high: Share | None

    @property
    def words(self) -> str:
        """ "0 of 9 [0, 30] %"."""
        between = "" if self.low is None or self.high is None else f" [{100 * self.low:.0f}, {100 * self.high:.0f}] %"
        return f"{self.failed} of {self.judged}{between}"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The results of the trials of one assignment."""

    assignment: str
    threads: tuple[str, ...]
    """The words of --thread."""
    verdict: Verdict
    trials: Counted
    outcomes: str
    """In words, including outcomes specific to this kind of workload."""
    without: Counted | None
    """The same without any condition; null: not run."""
    more_trials: Count | None
    """For an undecided assignment: this many more trials would show that it prevents failures, if none of them
    fails."""
    scheduled: tuple[RoleScheduled, ...]
    """Empty if no trial recorded it."""
    response_p99_ns: float | None
    """Median over the trials of the p99 of messages from due time to callback."""

    @property
    def real_time(self) -> tuple[int, ...]:
        """The ranks of the processes' roles with a real-time policy, the highest first."""
        return tuple(sorted((s.rank for s in self.scheduled if s.rank), reverse=True))

    @property
    def real_time_threads(self) -> int:
        return sum(s.threads for s in self.scheduled if s.rank)

    def lowest(self, role: str) -> Scheduled | None:
        """The lowest rank of a role's threads; None if none was recorded."""
        return min((s for s in self.scheduled if s.role == role), key=lambda s: s.rank, default=None)

    def above(self, rank: int) -> bool | None:
        """Whether all threads are above a rank; None if none was recorded."""
        return all(s.rank > rank for s in self.scheduled) if self.scheduled else None


@dataclass(frozen=True, kw_only=True)
class Disturber(Scheduled):
    """The program that took the CPU."""

    label: str
    """Name of the condition."""
    cpus: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The assignments tried in one variant, under one disturbance."""

    name: str
    workload: str
    middleware: str | None
    version: str | None
    """Of the middleware; null if it is not recorded."""
    executor: str | None
    ipc: str | None
    pass_by: str | None
    treatment: str
    conditions: Mapping[str, Any]
    """Parameters of each condition, by its label."""
    factors: Mapping[str, Level]
    """The levels of the other factors, without parameters of conditions."""
    disturber: Disturber
    tried: tuple[Tried, ...]
    """The recommended one first, then by result."""
    advised: str | None
    """The name of the recommended assignment; null: none."""
    words: str
    """The recommendation and its reason, or why there is none."""
    borders: tuple[str, ...]
    """The two tried priorities between which failures begin."""

    @property
    def chosen(self) -> Tried | None:
        return next((one for one in self.tried if one.assignment == self.advised), None)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A recommended assignment that was run again, under the same disturbance."""

    situation: str
    assignment: str
    run: str
    """Its directory."""
    trials: Counted
    outcomes: str
    verdict: Verdict

    @property
    def words(self) -> str:
        return f"{self.assignment}, {self.situation}: {self.trials.words} trials failed ({self.outcomes})"


@dataclass(frozen=True, kw_only=True)
class Advice:
    schema: Literal[1] = SCHEMA
    run: str
    below: Share
    """An assignment is recommended if the share of its trials that fail is shown to be below this."""
    confidence: Share
    """Confidence level of the intervals."""
    rule: str
    """In words."""
    situations: tuple[Situation, ...]

    @property
    def complete(self) -> bool:
        """Whether every situation has a recommendation."""
        return all(situation.advised is not None for situation in self.situations)
