"""The watch over control groups: on files as the kernel writes them, of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.formats.recording import Cgroup, Frozen, Throttled
from perflab.tracer.cgroups import CgroupWatch

PID = 42
MS = 1_000_000


class Machine:
    """Files below a folder, and a clock that a test moves."""

    def __init__(self, root: Path, version: int) -> None:
        self.root, self.version, self.now_ns = root, version, 0
        one, two = root / "sys/fs/cgroup/cpu/robot", root / "sys/fs/cgroup/unified/robot"
        self.cpu = one if version == 1 else two
        self.freezer = root / "sys/fs/cgroup/freezer/robot" if version == 1 else two
        mounts = {
            1: "30 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
            "31 1 0:2 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n",
            2: "32 1 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        }
        groups = {1: "6:freezer:/robot\n1:cpu:/robot\n0::/\n", 2: "0::/robot\n"}
        self.write(root / "proc/self/mountinfo", mounts[version])
        self.write(root / f"proc/{PID}/cgroup", groups[version])
        self.write(self.cpu / ("tasks" if version == 1 else "cgroup.threads"), f"{PID}\n43\n")
        self.write(self.freezer / ("tasks" if version == 1 else "cgroup.threads"), f"{PID}\n43\n")
        self.limit(20_000)
        self.count(0, 0)
        self.freeze(False)
        self.watch = CgroupWatch([PID], root=root, pids=lambda roots: {*roots}, now_ns=lambda: self.now_ns)

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def limit(self, quota_us: int | None) -> None:
        if self.version == 2:
            self.write(self.cpu / "cpu.max", f"{quota_us or 'max'} 100000\n")
        else:
            self.write(self.cpu / "cpu.cfs_quota_us", f"{quota_us or -1}\n")
            self.write(self.cpu / "cpu.cfs_period_us", "100000\n")

    def count(self, times: int, ns: int) -> None:
        time = f"throttled_time {ns}" if self.version == 1 else f"throttled_usec {ns // 1000}"
        self.write(self.cpu / "cpu.stat", f"nr_periods 7\nnr_throttled {times}\n{time}\n")

    def freeze(self, frozen: bool) -> None:
        if self.version == 2:
            self.write(self.freezer / "cgroup.events", f"populated 1\nfrozen {int(frozen)}\n")
        else:
            self.write(self.freezer / "freezer.state", "FROZEN\n" if frozen else "THAWED\n")

    def read_at(self, now_ms: int) -> None:
        self.now_ns = now_ms * MS
        self.watch.read()


def only(watch: CgroupWatch) -> Cgroup:
    """The one group that did something."""
    groups = watch.end()
    assert groups is not None
    (group,) = groups
    return group


@pytest.fixture(params=[1, 2])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, request.param)


def test_a_quota_is_seen_to_hold_its_threads_back(machine: Machine) -> None:
    machine.watch.look()
    machine.read_at(10)
    machine.count(1, 80 * MS)
    machine.read_at(20)
    machine.read_at(30)
    group = only(machine.watch)
    assert group == Cgroup(
        path=str(machine.cpu), quota_us=20_000, period_us=100_000, threads=[PID, 43], frozen=[],
        throttled=[Throttled(before_ns=10 * MS, after_ns=20 * MS, periods=1, ns=80 * MS)],
    )  # fmt: skip


def test_a_quota_that_is_set_later_is_seen(machine: Machine) -> None:
    machine.limit(None)
    machine.watch.look()
    machine.read_at(10)
    machine.limit(50_000)
    machine.watch.look()
    machine.read_at(20)
    machine.count(3, 9 * MS)
    machine.read_at(30)
    group = only(machine.watch)
    assert (group.quota_us, [t.periods for t in group.throttled]) == (50_000, [3])


def test_what_was_throttled_before_the_recording_is_not_in_it(machine: Machine) -> None:
    machine.count(5, 500 * MS)
    machine.watch.look()
    machine.read_at(10)
    machine.read_at(20)
    assert machine.watch.end() == []


def test_a_freezer_is_seen(machine: Machine) -> None:
    machine.watch.look()
    machine.read_at(10)
    for now_ms, frozen in ((20, True), (30, True), (40, False), (50, True)):
        machine.freeze(frozen)
        machine.read_at(now_ms)
    group = only(machine.watch)
    assert group.frozen == [
        Frozen(before_ns=10 * MS, first_ns=20 * MS, last_ns=30 * MS, after_ns=40 * MS),
        Frozen(before_ns=40 * MS, first_ns=50 * MS, last_ns=50 * MS, after_ns=None),
    ]
    assert group.threads == [PID, 43]


def test_a_group_that_was_frozen_before_is_frozen_since_nobody_knows_when(machine: Machine) -> None:
    machine.freeze(True)
    machine.watch.look()
    machine.read_at(10)
    group = only(machine.watch)
    assert group.frozen == [Frozen(before_ns=None, first_ns=10 * MS, last_ns=10 * MS, after_ns=None)]


def test_a_group_that_goes_away_keeps_what_it_did(machine: Machine) -> None:
    machine.watch.look()
    machine.read_at(10)
    machine.count(1, 5 * MS)
    machine.read_at(20)
    for name in ("cpu.stat", "tasks", "cgroup.threads"):
        (machine.cpu / name).unlink(missing_ok=True)
    machine.read_at(30)
    group = only(machine.watch)
    assert [t.ns for t in group.throttled] == [5 * MS]
    assert PID in group.threads


def test_periods_are_counted_until_the_group_is_let_go(machine: Machine) -> None:
    """The kernel counts each when it ends, and the time only when the group runs again."""
    machine.count(3, 100 * MS)
    machine.watch.look()
    machine.read_at(10)
    for now_ms, times in ((60, 4), (160, 5)):
        machine.count(times, 100 * MS)
        machine.read_at(now_ms)
    machine.count(5, 290 * MS)
    machine.read_at(180)
    group = only(machine.watch)
    assert group.throttled == [Throttled(before_ns=160 * MS, after_ns=180 * MS, periods=2, ns=190 * MS)]


def test_a_group_that_is_made_again_begins_anew(machine: Machine) -> None:
    """As by a restart of its service: the same name, other counters."""
    machine.count(9, 900 * MS)
    machine.watch.look()
    machine.read_at(10)
    machine.cpu.rename(machine.cpu.with_name("gone"))
    if machine.freezer != machine.cpu:
        machine.freezer.rename(machine.freezer.with_name("gone"))
    machine.watch.look()
    machine.limit(20_000)
    machine.count(0, 0)
    machine.freeze(False)
    machine.watch.look()
    machine.read_at(20)
    machine.count(1, 80 * MS)
    machine.read_at(30)
    group = only(machine.watch)
    assert group.throttled == [Throttled(before_ns=20 * MS, after_ns=30 * MS, periods=1, ns=80 * MS)]


def test_a_container_sees_its_own_groups(tmp_path: Path) -> None:
    """Without a namespace of cgroups: the mount shows what /proc calls /docker/abc."""
    machine = Machine(tmp_path, 1)
    machine.write(
        tmp_path / "proc/self/mountinfo", "30 1 0:1 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup ro,cpu\n"
    )
    machine.write(tmp_path / f"proc/{PID}/cgroup", "1:cpu:/docker/abc/robot\n")
    watch = CgroupWatch([PID], root=tmp_path, pids=lambda roots: {*roots}, now_ns=lambda: machine.now_ns)
    watch.look()
    watch.read()
    machine.count(1, 80 * MS)
    watch.read()
    assert [group.path for group in watch.end() or ()] == [str(machine.cpu)]


@pytest.mark.parametrize("group", ["/docker/other", "/../beside"])
def test_groups_that_cannot_be_seen_are_not_taken_for_quiet_ones(tmp_path: Path, group: str) -> None:
    machine = Machine(tmp_path, 1)
    machine.write(
        tmp_path / "proc/self/mountinfo", "30 1 0:1 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup ro,cpu\n"
    )
    machine.write(tmp_path / f"proc/{PID}/cgroup", f"1:cpu:{group}\n")
    watch = CgroupWatch([PID], root=tmp_path, pids=lambda roots: {*roots})
    watch.look()
    assert watch.end() is None


def test_the_watch_reads_until_it_is_ended(tmp_path: Path) -> None:
    """In its own thread, with the clock of the machine."""
    machine = Machine(tmp_path, 2)
    watch = CgroupWatch([PID], root=tmp_path, pids=lambda roots: {*roots})
    watch.begin()
    machine.count(2, 30 * MS)
    group = only(watch)
    assert [t.ns for t in group.throttled] == [30 * MS]


def test_without_control_groups_there_is_nothing_to_watch(tmp_path: Path) -> None:
    watch = CgroupWatch([PID], root=tmp_path, pids=lambda roots: {*roots})
    watch.begin()
    assert watch.end() is None
