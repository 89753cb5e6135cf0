"""Whether the results of a run can be trusted: a grade, and its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Grade = Literal["good", "warn", "bad"]
GRADES: Mapping[Grade, tuple[str, str]] = {
    "good": ("✔", "These results can be trusted"),
    "warn": ("!", "Read these results with care"),
    "bad": ("✖", "These results are not enough to rely on"),
}
"""Sign and words, the best first."""


@dataclass(frozen=True)
class Reason:
    """One criterion by which results were judged."""

    kind: Literal["rough", "planned", "rule", "invalid", "machine", "spread", "comparisons", "carry_over"]
    grade: Grade
    words: str
    details: tuple[str, ...] = ()
    """Which trials, and why."""
    more: tuple[str, ...] = ()
    """The number of all, if `details` are examples."""

    @property
    def sign(self) -> str:
        return GRADES[self.grade][0]


@dataclass(frozen=True)
class Trust:
    reasons: tuple[Reason, ...]

    @property
    def grade(self) -> Grade:
        """The grade of the worst reason."""
        order = list(GRADES)
        return max((reason.grade for reason in self.reasons), key=order.index, default="warn")

    @property
    def sign(self) -> str:
        return GRADES[self.grade][0]

    @property
    def words(self) -> str:
        return GRADES[self.grade][1]
