"""The columns of irobot_benchmark's files: their names in both dialects, and their widths in text.

The current dialect is that of irobot-ros/ros2-performance since December 2023; the older one has units in brackets
and, in latency_all.txt, no sections and the duration in place of the throughput.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Column:
    """A column by its name in the current and in the older dialect."""

    name: str
    legacy: str
    width: int


LATENCY_COLUMNS = (
    Column("node", "node", _WIDE),
    Column("topic", "topic", _WIDE),
    Column("size_b", "size[b]", _NARROW),
    Column("received_msgs", "received[#]", _WIDE),
    Column("late_msgs", "late[#]", _NARROW),
    Column("too_late_msgs", "too_late[#]", _WIDE),
    Column("lost_msgs", "lost[#]", _NARROW),
    Column("mean_us", "mean[us]", _NARROW),
    Column("sd_us", "sd[us]", _NARROW),
    Column("min_us", "min[us]", _NARROW),
    Column("max_us", "max[us]", _NARROW),
    Column("freq_hz", "freq[hz]", _NARROW),
)
THROUGHPUT = Column("throughput_Kb_per_sec", "throughput[Kb/s]", _WIDE)
DURATION = Column("duration_s", "duration[s]", _WIDE)

TOTAL_COLUMNS = (
    Column("received_msgs", "received[#]", _WIDE),
    Column("mean_us", "mean[us]", _NARROW),
    Column("late_msgs", "late[#]", _NARROW),
    Column("late_perc", "late[%]", _NARROW),
    Column("too_late_msgs", "too_late[#]", _WIDE),
    Column("too_late_perc", "too_late[%]", _WIDE),
    Column("lost_msgs", "lost[#]", _NARROW),
    Column("lost_perc", "lost[%]", _NARROW),
)

RESOURCE_COLUMNS = (
    Column("time_ms", "time[ms]", _WIDE),
    Column("cpu_perc", "cpu[%]", _NARROW),
    Column("arena_KB", "arena[KB]", _WIDE),
    Column("in_use_KB", "in_use[KB]", _WIDE),
    Column("mmap_KB", "mmap[KB]", _WIDE),
    Column("rss_KB", "rss[KB]", _WIDE),
    Column("vsz_KB", "vsz[KB]", _WIDE),
)

EVENT_COLUMNS = (
    Column("Time_ms", "Time[ms]", 12),
    Column("Caller", "Caller", 25),
    Column("Code", "Code", 6),
    Column("Description", "Description", 20),
)

# Written by some versions in their resources.txt, and of no use to perflab.
EXTRA_RESOURCE_NAMES = ("pubs", "subs", "frequency")

_ALL = (*LATENCY_COLUMNS, THROUGHPUT, DURATION, *TOTAL_COLUMNS, *RESOURCE_COLUMNS, *EVENT_COLUMNS)


def current_name(name: str) -> str:
    """The current name of a column in any dialect; unknown names stay as they are.

    For a few days of December 2023 counts were called received_num and so on.
    """
    if name.endswith("_num"):
        return f"{name.removesuffix('_num')}_msgs"
    return next((column.name for column in _ALL if column.legacy == name), name)


def legacy_name(name: str) -> str:
    """The older name of a column."""
    return next((column.legacy for column in _ALL if column.name == name), name)
