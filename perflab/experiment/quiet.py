"""Cool-down by observed quiet: the next trial begins when the machine is as quiet as before the first one.

The share of busy CPU time comes from /proc/stat over a short sliding window, minus perflab's own use. Steal counts as
busy, waiting for input and output as idle. In a window of 0.1 s on 2 CPUs, one tick of the kernel (10 ms) is 5 %:
smaller shares cannot be distinguished from 0, and thresholds below it make no sense.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perflab.results.files import CoolDown

FLOOR_PERCENT = 5.0
FACTOR = 1.5
# A machine busier than this is not quiet, even if it was so at the start of the run.
CEILING_PERCENT = 50.0
STEPS_PER_WINDOW = 4

_IDLE_COLUMNS = (3, 4)  # idle, iowait
_COLUMNS = 8  # user nice system idle iowait irq softirq steal; the guests' columns are within user and nice

Wait = Callable[[float], None]


@dataclass(frozen=True)
class _Sample:
    at_s: float
    busy_s: float  # of all CPUs, without perflab
    total_s: float
    runnable: int | None


def threshold_percent(reference_percent: float | None) -> float:
    """The busy share up to which a machine counts as quiet, for its reference at the start of the run."""
    if reference_percent is None:
        return FLOOR_PERCENT
    return min(max(FLOOR_PERCENT, FACTOR * reference_percent), CEILING_PERCENT)


class QuietMachine:
    """Measures how busy the machine below `host_root` is. `own_cpu_s` is the CPU time of perflab itself."""

    def __init__(
        self,
        host_root: Path = Path("/"),
        *,
        clock: Callable[[], float] = time.monotonic,
        own_cpu_s: Callable[[], float] = time.process_time,
        ticks_per_s: int | None = None,
    ) -> None:
        self._stat = host_root / "proc/stat"
        self._clock = clock
        self._own_cpu_s = own_cpu_s
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")

    def measure(self, seconds: float, wait: Wait = time.sleep) -> float | None:
        """The busy share in percent over the next `seconds`: the reference of a run. None if it cannot be read."""
        before = self._sample()
        wait(seconds)
        return _busy_percent(before, self._sample())

    def await_quiet(
        self, threshold_percent: float, wait: Wait, window_s: float = 0.1, limit_s: float = 10.0
    ) -> CoolDown:
        """Waits until the last `window_s` were at most that busy, and no longer than `limit_s`.

        `wait(seconds)` sleeps; its exceptions end the wait. On a quiet machine this takes one window.
        """
        begin_s = self._clock()
        first = self._sample()
        if first is None:
            return CoolDown(0.0, None, None, None, threshold_percent)
        window = deque([first])
        while True:
            wait(window_s / STEPS_PER_WINDOW)
            waited_s = self._clock() - begin_s
            sample = self._sample()
            if sample is None:
                return CoolDown(waited_s, None, None, None, threshold_percent)
            window.append(sample)
            # The first one stays as long as it is needed to fill the window.
            while sample.at_s - window[1].at_s >= window_s:
                window.popleft()
            busy = _busy_percent(window[0], sample) if sample.at_s - window[0].at_s >= window_s else None
            reached = busy is not None and busy <= threshold_percent
            if reached or waited_s >= limit_s:
                return CoolDown(waited_s, busy, reached, sample.runnable, threshold_percent)

    def _sample(self) -> _Sample | None:
        own_s = self._own_cpu_s()
        try:
            lines = self._stat.read_text(encoding="ascii", errors="replace").splitlines()
            ticks = [int(word) for word in lines[0].split()[1 : 1 + _COLUMNS]]
        except (OSError, ValueError, IndexError):
            return None
        if not lines[0].startswith("cpu ") or len(ticks) <= max(_IDLE_COLUMNS):
            return None
        idle = sum(ticks[column] for column in _IDLE_COLUMNS)
        busy_s = (sum(ticks) - idle) / self._ticks_per_s - own_s
        return _Sample(self._clock(), busy_s, sum(ticks) / self._ticks_per_s, _others_runnable(lines))


def _busy_percent(before: _Sample | None, after: _Sample | None) -> float | None:
    """Busy share of all CPUs; None if no tick was counted in between."""
    if before is None or after is None or after.total_s <= before.total_s:
        return None
    share = (after.busy_s - before.busy_s) / (after.total_s - before.total_s)
    return 100 * min(max(share, 0.0), 1.0)  # ticks are coarser than perflab's own CPU time


def _others_runnable(lines: list[str]) -> int | None:
    """Without perflab, which runs while it reads."""
    for line in lines:
        key, _, count = line.partition(" ")
        if key == "procs_running" and count.strip().isdigit():
            return max(0, int(count) - 1)
    return None
