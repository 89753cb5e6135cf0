"""What one output directory of irobot_benchmark says."""

from __future__ import annotations

from dataclasses import dataclass, field

from perflab.statistics.irobot import Row, Total

DISCOVERY = 0  # codes of events; the others are in perflab/statistics/irobot.py
SERVICE_UNAVAILABLE = 4


@dataclass(frozen=True)
class Sample:
    """A line of resources.txt; memory in KiB, CPU in per cent of all CPUs of the machine. None: not said."""

    time_ms: int
    cpu_percent: float | None
    arena_kb: int | None
    in_use_kb: int | None
    mmap_kb: int | None
    rss_kb: int | None
    vsz_kb: int | None


@dataclass(frozen=True)
class Event:
    """A line of events.txt; milliseconds from the start of spinning."""

    time_ms: int
    caller: str
    code: int
    description: str


@dataclass(frozen=True)
class Output:
    """One `<process>_log` directory. None where a file is missing; rows as the file has them."""

    process: str
    subscriptions: tuple[Row, ...] | None = None
    clients: tuple[Row, ...] = ()
    publishers: tuple[Row, ...] = ()
    total: Total | None = None
    resources: tuple[Sample, ...] | None = None
    events: tuple[Event, ...] | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    duration_s: float | None = None  # the older dialect has it in latency_all.txt
    legacy: bool = False
