"""`io_load`: stress-ng workers that write files and wait for the storage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from perflab.condition import Condition, Shown, Trial, Window
from perflab.condition.evidence import part_words, parts, rounded
from perflab.condition.stress_ng import Load, LoadEvidence, StressNg, WorkersSeen
from perflab.errors import Unavailable
from perflab.kernel import Files
from perflab.parameters import Bytes
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_bytes, is_zero, plural

# A full file system breaks the run's own records: it must have room for twice what the load writes.
ROOM = 2
# Something must be written in every full second. Longest pause: a storage device that is busy for longer cannot give a
# promised load.
LONGEST_PAUSE_S = 1.0
# Nor may a pause exceed this share of a short window.
LONGEST_PAUSE_SHARE = 0.5
# Without a rate, the share of the monitor's intervals that may pass without a written byte. A flush of a busy device
# sometimes takes longer than an interval; a load that writes in less than half of the intervals pauses more than it
# writes.
IDLE_AT_MOST = 0.5
# File systems in memory: writes to them never reach a storage device.
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


Written = Annotated[float | None, Shown("written", "MB/s")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    workers: int
    """Processes that write."""
    file_bytes: int
    """Size of each process's file."""
    sync: str
    """How a write reaches the storage."""
    written_mb_per_s: Written
    """Least rate of all together; null: any."""


@dataclass(frozen=True, kw_only=True)
class Achieved(WorkersSeen):
    """From the change of the load's /proc/PID/io over time; null if the kernel has none."""

    written_mb_per_s: Written
    """Bytes written per second."""
    read_mb_per_s: float | None
    """Bytes read from the storage, not from the cache, per second."""
    longest_pause_s: Annotated[float | None, Shown("longest pause", "s")]
    """Longest time without a byte written."""
    idle_intervals_share: float | None
    """Share of the monitor's intervals without a byte written, 0 to 1."""
    part_s: float | None
    """Length of the parts that are judged separately."""
    written_mb_per_s_by_part: tuple[float | None, ...]
    """Bytes written per second in each part."""


@dataclass(frozen=True, kw_only=True)
class IoLoadEvidence(LoadEvidence):
    promised: Promised
    achieved: Achieved
    file_system: str | None = None
    """Type of the file system written to."""


class IoLoad(StressNg):
    """Keeps writing to the file system of the run, and waits until the storage has the data."""

    name: ClassVar[str] = "io_load"
    evidence: ClassVar[type[LoadEvidence]] = IoLoadEvidence
    stressor: ClassVar[str] = "hdd"
    settled_s: ClassVar[float] = 1.0

    workers: int = Field(default=1, ge=1, le=256, description="processes that write")
    bytes: Bytes = Field(default=64 << 20, ge=1 << 20, description="size of each worker's file, e.g. 64MiB")
    rate: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="least rate of all workers together, in MB/s (default: any)",
    )
    sync: Literal["fsync", "dsync", "direct"] = Field(
        default="fsync",
        description="how writes reach the storage: fsync after each, a file with O_DSYNC, or past the cache (O_DIRECT)",
    )

    @property
    def arguments(self) -> list[str]:
        # stress-ng divides the bytes among the workers. Without an option for it, a write counts when the page cache
        # has it: the kernel chooses when the storage gets it.
        return ["--hdd-bytes", str(self.bytes * self.workers), "--hdd-opts", f"wr-seq,{self.sync}"]

    @property
    def promised(self) -> Promised:
        return Promised(workers=self.workers, file_bytes=self.bytes, sync=self.sync, written_mb_per_s=self.rate)

    def begin(self, trial: Trial) -> Load:
        self._require_room(trial.directory)  # the trial's folder is known only now
        return super().begin(trial)

    def _require_room(self, folder: Path) -> None:
        kind = _file_system(folder)
        if kind in IN_MEMORY:
            raise Unavailable(f"{self.label}: the run is on {kind}, which is memory; write it to a storage device")
        need = ROOM * self.workers * self.bytes
        free = shutil.disk_usage(folder).free
        if free < need:
            raise Unavailable(
                f"{self.label}: {format_bytes(free)} are free in the run's file system, but {format_bytes(need)} "
                f"are needed, {ROOM} times what the load writes"
            )

    def beside(self, load: Load, achieved: Achieved) -> dict[str, Any]:
        return {"file_system": _file_system(load.trial.directory)}

    def judge(self, load: Load, window: Window) -> tuple[Achieved, str | None]:
        monitor = load.trial.monitor
        read, written = monitor.io_bytes(self.label, window.begin_ns, window.end_ns)
        pieces = parts(window)
        by_part = [_written_mb_per_s(load.trial, self.label, piece) for piece in pieces]
        mean = None if written is None else written / window.seconds / 1e6
        intervals = monitor.io_by_interval(self.label, window.begin_ns, window.end_ns)
        pause_s = _longest_pause_s(intervals, window)
        idle = _idle_share(intervals)
        achieved = Achieved(
            **load.seen(window),
            written_mb_per_s=rounded(mean),
            read_mb_per_s=rounded(None if read is None else read / window.seconds / 1e6),
            longest_pause_s=rounded(pause_s),
            idle_intervals_share=rounded(idle),
            part_s=rounded(window.seconds / len(pieces)),
            written_mb_per_s_by_part=tuple(rounded(rate) for rate in by_part),
        )
        if mean is None or pause_s is None or idle is None:
            return achieved, "the kernel has no /proc/PID/io for it"
        if not mean:
            return achieved, "it wrote nothing"
        if pause_s >= min(LONGEST_PAUSE_S, LONGEST_PAUSE_SHARE * window.seconds):
            return achieved, f"it wrote nothing for {pause_s:.1f} s"
        if self.rate is None:
            return achieved, f"it wrote nothing in {idle:.0%} of the time" if idle > IDLE_AT_MOST else None
        for number, rate in enumerate(by_part, 1):
            if rate is None or rate < self.rate:
                wrote = "an unknown amount" if rate is None else f"{rate:.3g} MB/s"
                where = part_words(number, len(pieces))
                return achieved, f"it wrote {wrote}{where}, but {self.rate:.3g} were promised"
        return achieved, None


def _longest_pause_s(intervals: Sequence[tuple[int, int | None, int | None]], window: Window) -> float | None:
    """The longest time in the window without a byte written; None if unknown."""
    longest_ns, last_ns = 0, window.begin_ns
    for at_ns, _, written in intervals:
        if written is None:
            return None
        if written:
            longest_ns, last_ns = max(longest_ns, at_ns - last_ns), at_ns
    return max(longest_ns, window.end_ns - last_ns) / NS_PER_S if intervals else None


def _idle_share(intervals: Sequence[tuple[int, int | None, int | None]]) -> float | None:
    """The share of the monitor's intervals without a byte written; None if unknown."""
    amounts = [written for _, _, written in intervals]
    return None if not amounts or None in amounts else amounts.count(0) / len(amounts)


def _written_mb_per_s(trial: Trial, group: str, window: Window) -> float | None:
    written = trial.monitor.io_bytes(group, window.begin_ns, window.end_ns)[1]
    return None if written is None else written / window.seconds / 1e6


def _file_system(folder: Path) -> str | None:
    """Type of the file system that holds a folder."""
    around = [(point, kind) for point, kind in Files().mounts() if folder.resolve().is_relative_to(point)]
    # If two are mounted on one point, the later one is visible.
    return max(reversed(around), key=lambda mounted: len(mounted[0].parts), default=(None, None))[1]


def words(given: Mapping[str, Any]) -> str:
    rate = f" at {given['rate']:g} MB/s" if given.get("rate") else ""
    return f"{plural(given['workers'], 'writer')} to storage{rate}"


KIND: Kind[Condition] = Kind(
    "io_load",
    "stress-ng workers that write to the storage",
    IoLoad,
    words=words,
    is_off=lambda written: is_zero(written.get("workers")),
    gently=("bytes=1MiB",),
)
