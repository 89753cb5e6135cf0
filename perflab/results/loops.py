"""Records of the processes about loops, i.e. timers whose messages come back, and about their own lives.

Instants are CLOCK_MONOTONIC in nanoseconds (virtual time on the virtual runtime); None is what had not happened at the
process's last record.
"""

from __future__ import annotations

from dataclasses import dataclass

INSTANTS = ("due_ns", "woken_ns", "published_ns", "sent_ns", "answered_ns", "back_ns")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop, by its number from 0 on."""

    loop: int
    due_ns: int | None
    """By the schedule of the timer; None for a tick that rclcpp's timer skipped."""
    woken_ns: int | None
    """When its callback began."""
    published_ns: int | None
    """When the message was stamped, right before the call that sends it."""
    sent_ns: int | None
    """When that call returned."""
    answered_ns: int | None
    """When the returning message was published."""
    back_ns: int | None
    """When its callback began."""


@dataclass(frozen=True, kw_only=True)
class Loops:
    """The loops of one timer, in scheduled order; `beyond`: the number of ticks that did not fit."""

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
    """Time of its last record with a time."""
    ended_ns: int | None = None
    """Whether it recorded its end."""
