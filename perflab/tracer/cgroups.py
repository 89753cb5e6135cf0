"""The effect of control groups on the processes of a recording: a CPU quota throttles them, a freezer stops them.

The scheduler's events do not show this: a thread of a throttled group is preempted, one of a frozen group sleeps. The
groups' own counters show it, so they are read repeatedly while the scheduler is recorded:

    quotas   cpu.stat of each group with a quota: nr_throttled, and throttled_usec (v2) or throttled_time (v1, ns),
             which grow when a group may run on
    freezer  cgroup.events (v2) or freezer.state (v1) of each group that has a process of the recording; they say so
             too where a group above is the frozen one

Both versions of cgroups (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/freezer-subsystem.rst,
scheduler/sched-bwc.rst of Linux); unreadable files are skipped.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from perflab.formats.recording import Cgroup, Frozen, Throttled
from perflab.processes import descendants, pids

STEP_S = 0.02  # between two readings
LOOK_S = 0.25  # between two searches for groups and their threads
LOOK_EVERYWHERE_S = 1.0  # the same, of all processes of the machine

Counts = tuple[int, int]  # times throttled, ns


class _Group:
    """A group that is watched until it disappears; its record is reused for another one in its place."""

    def __init__(self, folder: Path, record: Cgroup) -> None:
        self.record = record
        self.inode = _inode(folder)
        self.counts: Counts | None = None
        self.counted_at_ns = 0
        self.times_let_go = 0  # nr_throttled when it was last released
        self.is_frozen: bool | None = None
        self.asked_at_ns = 0
        # Files of the kernel that are read again and again: keeping them open costs a tenth of opening them each time.
        self._files: dict[str, int] = {}
        for name in ("cpu.stat", "cgroup.events", "freezer.state"):
            with contextlib.suppress(OSError):
                self._files[name] = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)

    def text(self, name: str) -> str | None:
        """The content of a file; None if unreadable, e.g. because the group is gone."""
        try:
            return os.pread(self._files[name], 4096, 0).decode("utf-8", "replace")
        except (KeyError, OSError):
            return None

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()


class CgroupWatch:
    """Watches the groups of the processes below `roots`, or of all processes if there are none, until `end`."""

    def __init__(
        self,
        roots: Sequence[int],
        *,
        root: Path = Path("/"),
        pids: Callable[[Sequence[int]], set[int]] | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.roots = list(roots)
        self._root = root
        self._pids = pids or _pids
        self._now_ns = now_ns
        self._mounts = _mounts(root)
        self._groups: dict[Path, _Group] = {}
        self._sees_groups = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cgroups", daemon=True)

    def begin(self) -> None:
        """Watches from here on, in its own thread."""
        if self._mounts:
            self.look()
            self.read()
            self._thread.start()

    def end(self) -> list[Cgroup] | None:
        """The groups' effects on processes; None if no group of the processes is visible. Once."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
            self.look()
            self.read()
        for group in self._groups.values():
            group.close()
        if not self._sees_groups:
            return None
        records = (group.record for group in self._groups.values())
        return [record for record in records if record.throttled or record.frozen]

    def _run(self) -> None:
        look_s = LOOK_S if self.roots else LOOK_EVERYWHERE_S
        looked = time.monotonic()
        while not self._over.wait(STEP_S if self._groups else look_s):
            if time.monotonic() - looked >= look_s:
                self.look()
                looked = time.monotonic()
            self.read()

    # Which groups -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Finds new groups, the present quotas, and their threads."""
        for folder, group in self._groups.items():
            if _inode(folder) != group.inode:
                group.close()
                self._groups[folder] = _Group(folder, group.record)
        folders = {place for pid in self._pids(self.roots) for place in self._folders(pid)}
        for mount, folder in folders:
            self._sees_groups |= _inode(folder) is not None
            if any(os.access(folder / name, os.R_OK) for name in ("cgroup.events", "freezer.state")):
                self._group(folder)
            for level in _levels(mount, folder):
                if (quota := _quota(level)) is not None:
                    record = self._group(level).record
                    record.quota_us, record.period_us = quota
        for group in self._groups.values():
            group.record.threads = sorted({*group.record.threads, *_threads(Path(group.record.path))})

    def _group(self, folder: Path) -> _Group:
        if folder not in self._groups:
            record = Cgroup(path=str(folder), quota_us=None, period_us=None, threads=[], throttled=[], frozen=[])
            self._groups[folder] = _Group(folder, record)
        return self._groups[folder]

    def _folders(self, pid: int) -> Iterator[tuple[Path, Path]]:
        """Mount and folder of each group of a process that may have a quota or a freezer."""
        for line in (_text(self._root / "proc" / str(pid) / "cgroup") or "").splitlines():
            _, controllers, path = (*line.split(":", 2), "", "")[:3]
            for controller in controllers.split(","):
                mount, top = self._mounts.get(controller, (None, ""))
                # A mount may show a part of the hierarchy; neighbours, such as another container, are not visible.
                if mount is not None and ".." not in path and f"{path}/".startswith(f"{top}/"):
                    yield mount, mount / path.removeprefix(top).strip("/")

    # Their activity ------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads the counters of all known groups."""
        for group in self._groups.values():
            if group.record.quota_us is not None:
                self._read_counts(group)
            self._read_freezer(group)

    def _read_counts(self, group: _Group) -> None:
        began = self._now_ns()
        counts = _counts(group.text("cpu.stat"))
        if counts is None:
            return
        before, group.counts = group.counts, counts
        since, group.counted_at_ns = group.counted_at_ns, began
        if before is None:
            group.times_let_go = counts[0]
        elif counts[1] > before[1]:
            # The kernel counts every period, and the time when it is over.
            periods, group.times_let_go = counts[0] - group.times_let_go, counts[0]
            ns = counts[1] - before[1]
            group.record.throttled.append(Throttled(before_ns=since, after_ns=self._now_ns(), periods=periods, ns=ns))

    def _read_freezer(self, group: _Group) -> None:
        began = self._now_ns()
        frozen = _is_frozen(group)
        ended = self._now_ns()
        if frozen is None:
            return
        found = group.record.frozen
        if frozen and not group.is_frozen:
            before = group.asked_at_ns if group.is_frozen is not None else None
            found.append(Frozen(before_ns=before, first_ns=ended, last_ns=began, after_ns=None))
        elif frozen:
            found[-1] = replace(found[-1], last_ns=began)
        elif group.is_frozen:
            found[-1] = replace(found[-1], after_ns=ended)
        group.is_frozen, group.asked_at_ns = frozen, began


def _pids(roots: Sequence[int]) -> set[int]:
    if not roots:
        return set(pids())
    return {*roots, *(process.pid for root in roots for process in descendants(root))}


def _mounts(root: Path) -> dict[str, tuple[Path, str]]:
    """The mounts of the controllers, and the mounted group; "" is version 2."""
    found: dict[str, tuple[Path, str]] = {}
    for line in (_text(root / "proc/self/mountinfo") or "").splitlines():
        place, _, kind = line.partition(" - ")
        words, of_kind = place.split(), kind.split()
        if len(words) < 5 or len(of_kind) < 3 or not of_kind[0].startswith("cgroup"):
            continue
        place_of = (root / words[4].lstrip("/"), words[3].rstrip("/"))
        if of_kind[0] == "cgroup2":
            found.setdefault("", place_of)
        else:
            options = set(of_kind[2].split(","))
            for controller in ("cpu", "freezer"):
                if controller in options:
                    found.setdefault(controller, place_of)
    return found


def _levels(mount: Path, folder: Path) -> Iterator[Path]:
    """The group and those above it, up to the mount."""
    for level in (folder, *folder.parents):
        yield level
        if level == mount:
            return


def _threads(folder: Path) -> set[int]:
    """Threads of the group and of all below it, which it affects as well."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for place, _, files in os.walk(folder):
            name = "cgroup.threads" if "cgroup.threads" in files else "tasks"
            found |= {int(word) for word in (_text(Path(place) / name) or "").split()}
    return found


def _quota(folder: Path) -> tuple[int, int] | None:
    """Quota and period in us; None if there is no quota."""
    text = _text(folder / "cpu.max")
    if text is None:
        text = f"{_text(folder / 'cpu.cfs_quota_us')} {_text(folder / 'cpu.cfs_period_us')}"
    words = text.split()
    return (int(words[0]), int(words[1])) if len(words) == 2 and all(w.isdigit() for w in words) else None


def _counts(text: str | None) -> Counts | None:
    values = dict(words for line in (text or "").splitlines() if len(words := line.split()) == 2)
    try:
        ns = int(values["throttled_time"]) if "throttled_time" in values else 1000 * int(values["throttled_usec"])
        return int(values["nr_throttled"]), ns
    except (KeyError, ValueError):
        return None


def _is_frozen(group: _Group) -> bool | None:
    text = group.text("cgroup.events")
    if text is not None:
        return "frozen 1" in text.splitlines()
    text = group.text("freezer.state")
    return None if text is None else text.strip() != "THAWED"


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
