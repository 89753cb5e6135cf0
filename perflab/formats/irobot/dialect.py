"""irobot_benchmark's files: the columns, their names in both dialects, their widths in text; and their content.

The current dialect is that of irobot-ros/ros2-performance since December 2023; the older one has units in brackets and,
in latency_all.txt, no sections and the duration instead of the throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from perflab.statistics.irobot import Row, Total

LATENCY_ALL = "latency_all.txt"
LATENCY_TOTAL = "latency_total.txt"
RESOURCES = "resources.txt"
EVENTS = "events.txt"
METADATA = "metadata.txt"
FILES = (LATENCY_ALL, LATENCY_TOTAL, RESOURCES, EVENTS, METADATA)

LOG_SUFFIX = "_log"

SUBSCRIPTIONS = "Subscriptions stats:"
CLIENTS = "Clients stats:"
PUBLISHERS = "Publishers stats:"

_WIDE = 15
_NARROW = 10


Kind = Literal["text", "count", "count_or_nan", "kib", "ms", "us", "number", "number_or_none"]


@dataclass(frozen=True)
class Column:
    """A column by its name in the current and in the older dialect, with the field of its record."""

    name: str
    legacy: str
    width: int
    field: str
    kind: Kind


LATENCY_COLUMNS = (
    Column("node", "node", _WIDE, "node", "text"),
    Column("topic", "topic", _WIDE, "topic", "text"),
    Column("size_b", "size[b]", _NARROW, "size_bytes", "count"),
    Column("received_msgs", "received[#]", _WIDE, "received", "count"),
    Column("late_msgs", "late[#]", _NARROW, "late", "count"),
    Column("too_late_msgs", "too_late[#]", _WIDE, "too_late", "count"),
    Column("lost_msgs", "lost[#]", _NARROW, "lost", "count_or_nan"),
    Column("mean_us", "mean[us]", _NARROW, "mean_us", "us"),
    Column("sd_us", "sd[us]", _NARROW, "sd_us", "us"),
    Column("min_us", "min[us]", _NARROW, "min_us", "us"),
    Column("max_us", "max[us]", _NARROW, "max_us", "us"),
    Column("freq_hz", "freq[hz]", _NARROW, "frequency_hz", "number"),
)
THROUGHPUT = Column("throughput_Kb_per_sec", "throughput[Kb/s]", _WIDE, "throughput_kib_s", "number")
DURATION = Column("duration_s", "duration[s]", _WIDE, "duration_s", "number_or_none")

TOTAL_COLUMNS = (
    Column("received_msgs", "received[#]", _WIDE, "received", "count"),
    Column("mean_us", "mean[us]", _NARROW, "mean_us", "us"),
    Column("late_msgs", "late[#]", _NARROW, "late", "count"),
    Column("late_perc", "late[%]", _NARROW, "late_percent", "number"),
    Column("too_late_msgs", "too_late[#]", _WIDE, "too_late", "count"),
    Column("too_late_perc", "too_late[%]", _WIDE, "too_late_percent", "number"),
    Column("lost_msgs", "lost[#]", _NARROW, "lost", "count_or_nan"),
    Column("lost_perc", "lost[%]", _NARROW, "lost_percent", "number"),
)

RESOURCE_COLUMNS = (
    Column("time_ms", "time[ms]", _WIDE, "time_ms", "ms"),
    Column("cpu_perc", "cpu[%]", _NARROW, "cpu_percent", "number_or_none"),
    Column("arena_KB", "arena[KB]", _WIDE, "arena_kb", "kib"),
    Column("in_use_KB", "in_use[KB]", _WIDE, "in_use_kb", "kib"),
    Column("mmap_KB", "mmap[KB]", _WIDE, "mmap_kb", "kib"),
    Column("rss_KB", "rss[KB]", _WIDE, "rss_kb", "kib"),
    Column("vsz_KB", "vsz[KB]", _WIDE, "vsz_kb", "kib"),
)

EVENT_COLUMNS = (
    Column("Time_ms", "Time[ms]", 12, "time_ms", "ms"),
    Column("Caller", "Caller", 25, "caller", "text"),
    Column("Code", "Code", 6, "code", "count"),
    Column("Description", "Description", 20, "description", "text"),
)

_ALL = (*LATENCY_COLUMNS, THROUGHPUT, DURATION, *TOTAL_COLUMNS, *RESOURCE_COLUMNS, *EVENT_COLUMNS)


def current_name(name: str) -> str:
    """The current name of a column in any dialect; unknown names are returned unchanged.

    For a few days of December 2023, counts were called received_num and so on.
    """
    if name.endswith("_num"):
        return f"{name.removesuffix('_num')}_msgs"
    return next((column.name for column in _ALL if column.legacy == name), name)


def legacy_name(name: str) -> str:
    """The older name of a column."""
    return next((column.legacy for column in _ALL if column.name == name), name)


# -- the content of one output directory, in any dialect --------------------------------------------------------------

DISCOVERY = 0  # codes of events; the others are in perflab/statistics/irobot.py
SERVICE_UNAVAILABLE = 4


@dataclass(frozen=True)
class Sample:
    """A line of resources.txt; memory in KiB, CPU in percent of all CPUs of the machine. None: missing."""

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
    """One `<process>_log` directory. None if a file is missing; rows are in file order."""

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
