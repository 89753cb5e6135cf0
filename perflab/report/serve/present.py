"""The running trial, from what its processes have recorded so far.

Progress records are cumulative and come once a second, so two of them differ by exactly that second; in a long trial,
neighbouring seconds are merged, which is just as exact.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perflab.errors import DAMAGE
from perflab.formats.checkpoints import difference
from perflab.formats.records import measured_until_ns
from perflab.report.progress import quantiles
from perflab.results.files import TrialFile
from perflab.results.trial import added
from perflab.runs.rundir import TrialDirectory
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.units import NS_PER_S

CHUNK_BYTES = 8 << 20  # bytes of a file to read at a time; the rest is read with the next requests
LONGEST_LINE_BYTES = 64 << 20
MAX_POINTS = 300  # of a curve; more than a telephone or a column of a page can show
MAX_PROCESSES = 8  # processes whose CPU use is shown
COMMAND = "running"  # the phase of a command, whose figures are known after the trial

# Most lines are events and checkpoints, which are slow to parse and not needed here.
_TYPE = re.compile(rb'"type": ?"(\w+)"')
_CODE = re.compile(rb'"code": ?"(\w+)"')

Json = dict[str, Any]
Point = tuple[float, float | None, float | None, float | None]


class Tail:
    """Follows one file that another process appends to: nothing is read twice, and a half-written line waits.

    The file may not exist yet, and may be replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False  # the last read found another file under the name, or a shorter one
        self._offset = 0
        self._rest = b""
        self._identity: tuple[int, int] | None = None

    def lines(self) -> list[bytes]:
        """The new complete lines, without their ends; none if the file cannot be read."""
        self.restarted = False
        try:
            with self.path.open("rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                identity = (status.st_dev, status.st_ino)
                if self._identity is not None and (identity != self._identity or status.st_size < self._offset):
                    self._offset, self._rest, self.restarted = 0, b"", True
                self._identity = identity
                file.seek(self._offset)
                new = file.read(CHUNK_BYTES)
        except OSError:
            return []
        self._offset += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        if len(self._rest) > LONGEST_LINE_BYTES:
            self._rest = b""  # not a valid record; what follows it is damaged, and counted
        return lines


class Seconds:
    """Latency second by second, of all processes together. `width` is the present number of seconds per point."""

    def __init__(self) -> None:
        self.width = 1
        self._parts: dict[int, Histogram] = {}
        self._points: dict[int, Point] = {}

    def add(self, second: int, counted: Histogram) -> None:
        """Counts of a second, numbered from 1."""
        place = max(0, second - 1) // self.width
        known = self._parts.get(place)
        self._parts[place] = counted if known is None else hg.merge([known, counted])
        self._points.pop(place, None)
        if len(self._parts) > MAX_POINTS:
            self._widen()

    def points(self) -> list[Point]:
        """The end of each interval in seconds from the start of the measured part, p50, p99, and maximum in ns."""
        for place, counted in self._parts.items():
            if place not in self._points:
                self._points[place] = ((place + 1) * self.width, *quantiles(counted), counted.max)
        return [self._points[place] for place in sorted(self._parts)]

    def _widen(self) -> None:
        self.width *= 2
        joined: dict[int, list[Histogram]] = {}
        for place, counted in self._parts.items():
            joined.setdefault(place // 2, []).append(counted)
        self._parts = {place: hg.merge(parts) for place, parts in joined.items()}
        self._points.clear()


class Usage:
    """CPU use of one process between its samples; neighbours are merged if there are many."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int, int]] = []  # at_ns, interval_ns, of it on a CPU

    def add(self, at_ns: int, interval_ns: int, cpu_ns: int) -> None:
        self.samples.append((at_ns, interval_ns, cpu_ns))
        if len(self.samples) > MAX_POINTS:
            pairs = [self.samples[i : i + 2] for i in range(0, len(self.samples), 2)]
            self.samples = [(p[-1][0], sum(s[1] for s in p), sum(s[2] for s in p)) for p in pairs]

    def points(self, from_ns: int, until_ns: int) -> list[tuple[float, float]]:
        """Seconds from the start of the measured part, and percent of one CPU; without starting up and ending."""
        return [
            (round((at - from_ns) / NS_PER_S, 2), round(100 * used / wall, 1))
            for at, wall, used in self.samples
            if at - wall >= from_ns - wall // 2 and at <= until_ns + wall // 2
        ]


class _Process:
    """What one process of the workload has recorded so far."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tail = Tail(path)
        self.start: tuple[int, int] | None = None  # begin and end of the measured part
        self.last: Json | None = None  # its last progress
        self.latency: Histogram | None = None  # everything so far
        self.usage = Usage()
        self.late = self.too_late = self.unreadable = 0

    def read(self, seconds: Seconds) -> bool:
        """Reads new records; returns whether there were any."""
        lines = self.tail.lines()
        for line in lines:
            try:
                self._take(line, seconds)
            except DAMAGE:
                self.unreadable += 1
        return bool(lines)

    def _take(self, line: bytes, seconds: Seconds) -> None:
        found = _TYPE.search(line)
        if found is None or not line.endswith(b"}"):
            raise ValueError("not a record")
        match found[1]:
            case b"progress":
                self._progress(json.loads(line), seconds)
            case b"resources":
                record = json.loads(line)
                if record["interval_ns"] and record["cpu_interval_ns"] is not None:
                    self.usage.add(int(record["at_ns"]), int(record["interval_ns"]), int(record["cpu_interval_ns"]))
            case b"start":
                record = json.loads(line)
                self.start = (int(record["measured_from_ns"]), measured_until_ns(record))
            case b"end" if self.start is not None:
                self.start = (self.start[0], measured_until_ns(json.loads(line)))
            case b"event" if (code := _CODE.search(line)) is not None:
                self.late += code[1] == b"late"
                self.too_late += code[1] == b"too_late"

    def _progress(self, record: Json, seconds: Seconds) -> None:
        elapsed_ns = int(record["elapsed_ns"])
        if elapsed_ns <= 0 and self.last is None:
            return  # warming up
        self.last = record
        if record.get("latency") is None:
            return
        counted = hg.decode(record["latency"])
        new = counted if self.latency is None else difference(counted, self.latency)
        self.latency = counted
        if new.count:
            seconds.add(max(1, round(elapsed_ns / NS_PER_S)), new)


class PresentTrial:
    """The records of one trial, followed from their beginning. `here`: they use the clock of this machine."""

    def __init__(self, directory: TrialDirectory) -> None:
        self.directory = directory
        self._seconds = Seconds()
        self._processes: dict[str, _Process] = {}
        self._whole = False
        self._since: float | None = None

    def refresh(self, file: TrialFile, *, running: bool) -> None:
        """Reads new records of the workload's own processes, which trial.json lists."""
        if self._whole:
            return
        for name, told in file.processes.items():
            if not told.condition and name not in self._processes:
                self._processes[name] = _Process(name, self.directory.records(name))
        new = [process.read(self._seconds) for process in self._processes.values()]
        if any(process.tail.restarted for process in self._processes.values()):
            # Another file than before: its content is forgotten, and everything is read anew.
            self._seconds, self._processes = Seconds(), {}
            self.refresh(file, running=running)
        else:
            self._whole = not running and not any(new)

    @property
    def _measured(self) -> tuple[int, int] | None:
        """Begin and end of the measured part, CLOCK_MONOTONIC (virtual time on the virtual runtime)."""
        starts = [p.start for p in self._processes.values() if p.start is not None]
        return (min(s[0] for s in starts), max(s[1] for s in starts)) if starts else None

    @property
    def _told(self) -> list[Json]:
        """The last progress of each process that reported any."""
        return [p.last for p in self._processes.values() if p.last is not None]

    def phase(self, file: TrialFile, *, here: bool, command: bool) -> str:
        """The state of the trial, from its files."""
        if self._measured is None:
            launched = any(p.pid is not None for p in file.processes.values())
            return COMMAND if command and launched else "starting" if launched else "preparing"
        if here:
            now_ns, (begin_ns, end_ns) = time.monotonic_ns(), self._measured
            if now_ns < begin_ns:
                return "warming up" if file.warmup_s else "starting"
            return "measuring" if now_ns < end_ns else "draining"
        if not self._told:
            return "warming up"
        return "measuring" if any(record["publishing"] for record in self._told) else "draining"

    def since(self, *, here: bool) -> float | None:
        """The start of measuring, in seconds since the epoch, for a clock that runs between two states."""
        if not here or self._measured is None:
            return None
        if self._since is None:
            self._since = round(time.time() - (time.monotonic_ns() - self._measured[0]) / NS_PER_S, 2)
        return self._since

    def document(self) -> Json:
        """The figures so far; null is not reported yet."""
        processes, told = list(self._processes.values()), self._told
        latencies = [p.latency for p in processes if p.latency is not None]
        p50, p99 = quantiles(hg.merge(latencies)) if latencies else (None, None)
        return {
            # The progress that the processes report.
            "elapsed_s": max((round(max(0.0, r["elapsed_ns"] / NS_PER_S), 1) for r in told), default=None),
            "p50_ns": p50,
            "p99_ns": p99,
            **{key: added(record.get(key) for record in told) for key in ("received", "sent", "lost")},
            "late": sum(p.late for p in processes) if told else None,
            "too_late": sum(p.too_late for p in processes) if told else None,
            "seconds_per_point": self._seconds.width,
            "latency": self._seconds.points(),
            "cpu": self._cpu(processes),
            "processes_not_shown": max(0, len(processes) - MAX_PROCESSES),
            "unreadable_lines": sum(p.unreadable for p in processes),
        }

    def _cpu(self, processes: Sequence[_Process]) -> list[Json]:
        """For the processes that used most; in the order of the graph, so that their marks stay the same."""
        if self._measured is None:
            return []
        busiest = sorted(processes, key=lambda p: -sum(s[2] for s in p.usage.samples))[:MAX_PROCESSES]
        return [{"process": p.name, "points": p.usage.points(*self._measured)} for p in processes if p in busiest]
