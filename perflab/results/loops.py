"""What processes recorded of the loops of timers whose messages come back, and of their own lives.

Instants are CLOCK_MONOTONIC in nanoseconds (virtual time on the virtual runtime); None is what had not happened when
the process wrote its last records.
"""

from __future__ import annotations

from dataclasses import dataclass

INSTANTS = ("due_ns", "woken_ns", "published_ns", "sent_ns", "answered_ns", "back_ns")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop, by its number from 0 on."""

    loop: int
    due_ns: int | None
    """By the schedule of the timer; None of a tick that the timer of rclcpp never came to."""
    woken_ns: int | None
    """Its callback began."""
    published_ns: int | None
    """The message was stamped, right before the call that sends it."""
    sent_ns: int | None
    """That call came back."""
    answered_ns: int | None
    """The message that came back was published."""
    back_ns: int | None
    """Its callback began."""


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Those of one timer, in the order of the schedule; `beyond`: how many ticks there was no room for."""

    process: str
    node: str
    timer: str
    period_ns: int
    beyond: int
    rows: tuple[Loop, ...]


@dataclass(frozen=True, kw_only=True)
class Life:
    """When a process of the workload began, had found its peers, was started and ended, by its own records."""

    process: str
    began_ns: int | None = None
    matched_ns: int | None = None
    start_ns: int | None = None
    measured_from_ns: int | None = None
    measured_until_ns: int | None = None
    last_ns: int | None = None
    """Of its last record that says when it was written."""
    ended_ns: int | None = None
    """It wrote that it ends."""
