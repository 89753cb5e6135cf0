"""`io_load`: stress-ng workers that write files and wait for the storage."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from perflab.condition import Condition, Evidence, Trial, Window
from perflab.condition.evidence import (
    catch_up,
    longest_gap_s,
    outcome,
    part_words,
    parts,
    recent,
    require_processes,
    rounded,
    wait_until,
)
from perflab.condition.stress_ng import Load, find
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.parameters import Bytes, Parameters
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_bytes, is_zero
from perflab.workload import Graph

# A file system that fills up fails the run's own records: there must be room for twice what the load writes.
ROOM = 2
SETTLED_S = 1.0
# Every full second something must be written. A storage device that is busy for longer is no load that can be promised.
LONGEST_PAUSE_S = 1.0
# Nor may a pause take more than this share of a short window.
LONGEST_PAUSE_SHARE = 0.5
# Without a rate, the share of the monitor's intervals that may pass without a byte. A flush of a busy device takes
# longer than an interval now and then; a load that writes in less than half of them stands still more than it writes.
IDLE_AT_MOST = 0.5
# File systems in memory: what is written there never meets a storage device.
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


class IoLoadParameters(Parameters):
    workers: int = Field(default=1, ge=1, le=256, description="processes that write")
    bytes: Bytes = Field(default=64 << 20, ge=1 << 20, description="size of each worker's file, e.g. 64MiB")
    rate: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="least that all workers together must write, in MB/s (default: anything)",
    )
    sync: Literal["fsync", "dsync", "direct"] = Field(
        default="fsync",
        description="how writes reach the storage: fsync after each, a file with O_DSYNC, or past the cache (O_DIRECT)",
    )


class IoLoad(Condition):
    """Writes to the file system of the run, all the time, and waits until the storage has it."""

    name: ClassVar[str] = "io_load"

    def __init__(self, parameters: IoLoadParameters) -> None:
        self.label = self.name
        self._asked = parameters
        self._load: Load | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self._asked.model_dump(mode="json")

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        find()

    def apply(self, trial: Trial) -> None:
        self._require_room(trial.directory)
        self._load = Load(
            trial,
            self.label,
            "hdd",
            self._asked.workers,
            [
                # stress-ng divides the bytes among the workers.
                *("--hdd-bytes", str(self._asked.bytes * self._asked.workers)),
                # Without one of these a write is done, and counted, when the page cache has it: the kernel's choice
                # when the storage gets it.
                *("--hdd-opts", f"wr-seq,{self._asked.sync}"),
            ],
        )

    def settle(self, trial: Trial) -> None:
        load = self._started()
        load.find_workers(trial)
        since_ns = time.monotonic_ns()

        def problem() -> str | None:
            if (reason := load.lost()) is not None:
                return reason
            window = recent(trial, since_ns, SETTLED_S)
            return "the monitor has not seen the load yet" if window is None else self._judge(trial, window)[1]

        wait_until(trial, problem)
        load.note_scheduling(trial)

    def verify(self, trial: Trial, window: Window) -> Evidence:
        load = self._started()
        late = catch_up(trial, window, [self.label])
        achieved, weak = self._judge(trial, window)
        return outcome(
            {
                "workers": self._asked.workers,
                "file_bytes": self._asked.bytes,
                "sync": self._asked.sync,
                "written_mb_per_s": self._asked.rate,
            },
            {
                "workers_alive": load.alive,
                "monitor_gap_s": rounded(longest_gap_s(trial, [self.label], window)),
                **achieved,
            },
            load.lost() or load.rescheduled(trial, window) or late or weak,
            file_system=_file_system(trial.directory),
            **load.document(),
        )

    def remove(self, trial: Trial) -> None:
        if self._load is not None:
            self._load.stop()
            self._load = None

    def _require_room(self, folder: Path) -> None:
        """In apply(): only then it is known where the trial writes."""
        kind = _file_system(folder)
        if kind in IN_MEMORY:
            raise Unavailable(f"{self.label}: the run is on {kind}, which is memory; write it to a storage device")
        need = ROOM * self._asked.workers * self._asked.bytes
        free = shutil.disk_usage(folder).free
        if free < need:
            raise Unavailable(
                f"{self.label}: {format_bytes(free)} are free where the run is written, "
                f"and {format_bytes(need)} must be, {ROOM} times what the load writes"
            )

    def _judge(self, trial: Trial, window: Window) -> tuple[dict[str, Any], str | None]:
        monitor = trial.monitor
        read, written = monitor.io_bytes(self.label, window.begin_ns, window.end_ns)
        pieces = parts(window)
        by_part = [_written_mb_per_s(trial, self.label, piece) for piece in pieces]
        mean = None if written is None else written / window.seconds / 1e6
        intervals = monitor.io_by_interval(self.label, window.begin_ns, window.end_ns)
        pause_s = _longest_pause_s(intervals, window)
        idle = _idle_share(intervals)
        achieved = {
            "written_mb_per_s": rounded(mean),
            "read_mb_per_s": rounded(None if read is None else read / window.seconds / 1e6),
            "longest_pause_s": rounded(pause_s),
            "idle_intervals_share": rounded(idle),
            "part_s": rounded(window.seconds / len(pieces)),
            "written_mb_per_s_by_part": [rounded(rate) for rate in by_part],
        }
        if mean is None or pause_s is None or idle is None:
            return achieved, "the kernel gives no /proc/PID/io of it"
        if not mean:
            return achieved, "it wrote nothing"
        if pause_s >= min(LONGEST_PAUSE_S, LONGEST_PAUSE_SHARE * window.seconds):
            return achieved, f"it wrote nothing for {pause_s:.1f} s"
        if self._asked.rate is None:
            return achieved, f"it wrote nothing in {idle:.0%} of the time" if idle > IDLE_AT_MOST else None
        for number, rate in enumerate(by_part, 1):
            if rate is None or rate < self._asked.rate:
                wrote = "an unknown amount" if rate is None else f"{rate:.3g} MB/s"
                where = part_words(number, len(pieces))
                return achieved, f"it wrote {wrote}{where}, and {self._asked.rate:.3g} were promised"
        return achieved, None

    def _started(self) -> Load:
        assert self._load is not None, "apply comes first"
        return self._load


def _longest_pause_s(intervals: Sequence[tuple[int, int | None, int | None]], window: Window) -> float | None:
    """The longest time in the window without a byte written; None where that is not known."""
    longest_ns, last_ns = 0, window.begin_ns
    for at_ns, _, written in intervals:
        if written is None:
            return None
        if written:
            longest_ns, last_ns = max(longest_ns, at_ns - last_ns), at_ns
    return max(longest_ns, window.end_ns - last_ns) / NS_PER_S if intervals else None


def _idle_share(intervals: Sequence[tuple[int, int | None, int | None]]) -> float | None:
    """The share of the monitor's intervals without a byte written; None where that is not known."""
    amounts = [written for _, _, written in intervals]
    return None if not amounts or None in amounts else amounts.count(0) / len(amounts)


def _written_mb_per_s(trial: Trial, group: str, window: Window) -> float | None:
    written = trial.monitor.io_bytes(group, window.begin_ns, window.end_ns)[1]
    return None if written is None else written / window.seconds / 1e6


def _file_system(folder: Path) -> str | None:
    """Type of the file system that holds a folder."""
    path = str(folder.resolve())
    best, kind = "", None
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        _, point, found = (word.replace("\\040", " ") for word in line.split()[:3])
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, found
    return kind


KIND: Kind[Condition] = Kind(
    "io_load",
    "stress-ng workers that write to the storage",
    IoLoadParameters,
    IoLoad,
    is_off=lambda written: is_zero(written.get("workers")),
)
