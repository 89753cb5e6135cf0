"""Cool-down on machines made of a /proc/stat whose counters follow a script; time passes only during waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.experiment.quiet import QuietMachine, threshold_percent
from perflab.results.files import CoolDown

CPUS = 2
HZ = 100


class Machine:
    """Two CPUs, busy by `load(seconds since the start)` in per cent of both; perflab uses `own` CPUs of it."""

    def __init__(self, root: Path, load: Callable[[float], float], own: float = 0.0, running: int = 1) -> None:
        self.now, self.used_s = 1000.0, 5.0
        self._begin, self._load, self._own, self._running = self.now, load, own, running
        self._busy, self._idle = 50_000.0, 900_000.0
        self._stat = root / "proc/stat"
        self._stat.parent.mkdir(parents=True, exist_ok=True)
        self.waits: list[float] = []
        self._write()
        self.quiet = QuietMachine(root, clock=lambda: self.now, own_cpu_s=lambda: self.used_s, ticks_per_s=HZ)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        ticks = seconds * HZ * CPUS
        busy = ticks * self._load(self.now - self._begin) / 100
        self._busy += busy
        self._idle += ticks - busy
        self.now += seconds
        self.used_s += seconds * self._own
        self._write()

    def _write(self) -> None:
        # Of the busy ticks some are of the kernel and some stolen; of the idle ones some waited for the disk.
        busy, idle = round(self._busy), round(self._idle)
        columns = [busy - 200, 0, 100, idle - 300, 300, 0, 0, 100, 40_000, 0]
        cpu0 = "cpu0 1 2 3 4 5 6 7 8 9 10"
        self._stat.write_text(
            f"cpu  {' '.join(map(str, columns))}\n{cpu0}\nintr 1 2\nprocs_running {self._running}\nprocs_blocked 0\n"
        )


def test_a_quiet_machine_takes_one_window(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 0.0)
    quiet = machine.quiet.await_quiet(5.0, machine.wait, window_s=1.0)
    assert quiet == CoolDown(1.0, 0.0, True, 0, 5.0)


def test_the_wait_ends_when_the_last_window_was_quiet(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda s: 90.0 if s < 3.0 else 2.0, running=3)
    quiet = machine.quiet.await_quiet(5.0, machine.wait, window_s=1.0)
    assert quiet.reached
    assert quiet.waited_s == pytest.approx(4.0)
    assert quiet.busy_percent == pytest.approx(2.0, abs=0.5)
    assert quiet.runnable == 2


def test_a_machine_that_stays_busy_is_given_up_at_the_limit(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 40.0)
    quiet = machine.quiet.await_quiet(5.0, machine.wait, window_s=1.0, limit_s=6.0)
    assert quiet.reached is False
    assert quiet.waited_s == pytest.approx(6.0)
    assert quiet.busy_percent == pytest.approx(40.0, abs=0.5)


def test_a_busy_moment_within_the_window_is_not_quiet(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda s: 100.0 if s == 0.75 else 0.0)  # until 1.0
    assert machine.quiet.await_quiet(5.0, machine.wait, window_s=1.0).waited_s == pytest.approx(2.0)


def test_what_perflab_uses_itself_is_not_counted(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 50.0, own=1.0)  # one of two CPUs is perflab's own
    quiet = machine.quiet.await_quiet(5.0, machine.wait, window_s=1.0)
    assert quiet.reached
    assert quiet.busy_percent == pytest.approx(0.0, abs=0.5)


def test_a_limit_shorter_than_the_window_measures_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 0.0)
    quiet = machine.quiet.await_quiet(5.0, machine.wait, window_s=4.0, limit_s=1.0)
    assert (quiet.reached, quiet.busy_percent) == (False, None)


def test_the_reference_is_the_mean_over_its_time(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 12.0)
    assert machine.quiet.measure(2.0, machine.wait) == pytest.approx(12.0)
    assert machine.waits == [2.0]


def test_counters_that_stand_still_tell_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda _: 12.0)
    assert machine.quiet.measure(0.5, lambda _: None) is None


@pytest.mark.parametrize("content", [None, "", "cpu", "cpu  a b c d e", "intr 1 2 3 4 5 6", "cpu  1 2 3"])
def test_a_machine_that_cannot_be_observed_is_not_waited_for(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/stat").write_text(content)
    quiet = QuietMachine(tmp_path)
    waits: list[float] = []
    assert quiet.measure(0.0, waits.append) is None
    assert quiet.await_quiet(5.0, waits.append) == CoolDown(0.0, None, None, None, 5.0)
    assert waits == [0.0]


def test_what_wait_raises_ends_it(tmp_path: Path) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Machine(tmp_path, lambda _: 90.0).quiet.await_quiet(5.0, interrupted)


@pytest.mark.parametrize(
    ("reference", "threshold"), [(None, 5.0), (0.0, 5.0), (3.0, 5.0), (10.0, 15.0), (30.0, 45.0), (90.0, 50.0)]
)
def test_the_threshold(reference: float | None, threshold: float) -> None:
    assert threshold_percent(reference) == threshold


def test_this_machine_can_be_observed() -> None:
    machine = QuietMachine()
    assert (busy := machine.measure(0.2)) is not None
    assert 0 <= busy <= 100
    quiet = machine.await_quiet(100.0, time.sleep)
    assert quiet.reached
    assert quiet.runnable is not None and quiet.runnable >= 0
