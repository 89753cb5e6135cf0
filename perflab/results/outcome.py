"""How a trial ended, with all consequences: each outcome is declared here, and other code asks for its attributes.

A kind of workload may have outcomes of its own (perflab/workload/generated.py). Each is a case of one of these, counts
as that one everywhere, and is named beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from perflab.models import Count


class Outcome(StrEnum):
    """By its name in files; in the order of counting.

    `words` describe one trial, `counted` follows a number of trials. `judged`: it shows something about the system, so
    it counts in success rates, and sweeps may have it. For many trials, the outcome with the greatest `severity` is
    shown.
    """

    SUCCESS = "success", "success", "successful", "✔", "good", True, 0
    FAILED = "failed", "failed", "failed", "✖", "bad", True, 2
    # A condition was not in effect.
    INVALID = "invalid", "invalid", "invalid", "!", "warn", False, 1
    # The fault was perflab's or its machine's.
    HARNESS_ERROR = "harness_error", "harness error", "stopped by a perflab error", "!", "bad", False, 3

    words: str
    counted: str
    sign: str
    tone: Literal["good", "bad", "warn"]
    judged: bool
    severity: int

    def __new__(cls, name: str, *attributes: Any) -> Outcome:
        made = str.__new__(cls, name)
        made._value_ = name
        made.words, made.counted, made.sign, made.tone, made.judged, made.severity = attributes
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Parses a name from a file."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, core_schema.literal_schema([str(o) for o in cls]))


SUCCESS, FAILED, INVALID, HARNESS_ERROR = Outcome
INTERRUPTED = "interrupted"  # for one trial, and after a number; a signal to perflab cut the trial off


@dataclass(frozen=True, kw_only=True)
class BrokenOff:
    """What ended a trial early, if known."""

    why: Literal["ended", "failed", "silent", "stuck", "limit"]
    """A process ended, reported a failure, was silent, or did not end when it should; or the time was up in
    which a process should have ended the measured part."""
    process: str | None = None
    """As named in the graph; null: the limit, a graph of one process, or a process of a condition."""
    at_ns: int
    """CLOCK_MONOTONIC."""


@dataclass(frozen=True, kw_only=True)
class OwnOutcome:
    """The name that a kind of workload gives an outcome."""

    name: str
    """In files, e.g. planning_failed."""
    words: str
    """For one trial, e.g. planning failed."""
    of: Outcome = FAILED
    """What it counts as."""


@dataclass(frozen=True, kw_only=True)
class CountedOutcome(OwnOutcome):
    trials: Count = 1


class Counted(NamedTuple):
    """How many trials ended so; `words` follow their number in a table, `counted` in a sentence."""

    outcome: Outcome
    n: int
    words: str
    counted: str


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    success: Count = 0
    failed: Count = 0
    invalid: Count = 0
    harness_error: Count = 0
    interrupted: Count = 0
    """The harness_error trials that a signal to perflab cut off, which is not an error."""
    own: tuple[CountedOutcome, ...] = ()
    """The trials with outcomes specific to this kind of workload."""

    @staticmethod
    def of(outcomes: Iterable[Outcome], own: Iterable[OwnOutcome | None] = (), interrupted: int = 0) -> Outcomes:
        counted = Counter(one for one in own if one is not None)
        return Outcomes(
            **Counter(map(str, outcomes)),
            interrupted=interrupted,
            own=tuple(CountedOutcome(name=o.name, words=o.words, of=o.of, trials=n) for o, n in counted.items()),
        )

    @staticmethod
    def together(several: Sequence[Outcomes]) -> Outcomes:
        counts = {outcome: sum(getattr(o, outcome) for o in several) for outcome in Outcome}
        own: dict[str, CountedOutcome] = {}
        for one in (one for outcomes in several for one in outcomes.own):
            before = own.get(one.name)
            own[one.name] = one if before is None else replace(one, trials=one.trials + before.trials)
        return Outcomes(**counts, interrupted=sum(o.interrupted for o in several), own=tuple(own.values()))

    def __iter__(self) -> Iterator[tuple[Outcome, int]]:
        """The outcomes that occurred, and how often."""
        return ((outcome, n) for outcome in Outcome if (n := int(getattr(self, outcome))))

    @property
    def judged(self) -> int:
        """Those that show something about the system: successes and failures."""
        return sum(n for outcome, n in self if outcome.judged)

    @property
    def left_out(self) -> Outcomes:
        """Those that show nothing about it."""
        judged: dict[str, Any] = {outcome: 0 for outcome in Outcome if outcome.judged}
        return replace(self, **judged)

    @property
    def counts(self) -> list[Counted]:
        """The outcomes that occurred; trials that were cut off are separate."""
        found = []
        for outcome, n in self:
            cut = self.interrupted if outcome == HARNESS_ERROR else 0
            if n > cut:
                found.append(Counted(outcome, n - cut, outcome.words, f"{outcome.counted}{self.cases(outcome)}"))
            if cut:
                found.append(Counted(outcome, cut, INTERRUPTED, INTERRUPTED))
        return found

    @property
    def total(self) -> int:
        return sum(n for _, n in self)

    @property
    def worst(self) -> Outcome:
        return max((outcome for outcome, _ in self), key=lambda outcome: outcome.severity, default=SUCCESS)

    @property
    def words(self) -> str:
        """ "3 successful, 2 failed (1 planning failed)"; empty if there are none."""
        return ", ".join(f"{n} {words}" for _, n, _, words in self.counts)

    def cases(self, outcome: Outcome) -> str:
        """ " (1 planning failed)": the specific outcomes of the kind of workload among these."""
        cases = ", ".join(f"{one.trials} {one.words}" for one in self.own if one.of == outcome)
        return f" ({cases})" if cases else ""
