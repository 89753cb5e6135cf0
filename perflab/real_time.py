"""The share of a CPU that the kernel withholds from real-time threads (SCHED_FIFO, SCHED_RR), and its mechanism.

Before Linux 6.12 `sched_rt_runtime_us` throttles them: by default they rest for 50 ms of every second, even on a CPU
that no other thread wants (sched(7)). Linux 6.12 removed that ("sched/rt: Remove default bandwidth control") unless the
kernel has CONFIG_RT_GROUP_SCHED; there a control group's own share counts, and for the sysctl only -1 disables it. It
was replaced by the fair server ("sched/fair: Add trivial fair server"): threads of other policies that wait for a CPU
get 50 ms of every second despite real-time ones; it takes nothing if no thread waits.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from perflab.kernel import Files, cpu_list

FAIR_SERVER_SINCE = (6, 12)
FAIR_SERVER_DEFAULT = 0.05  # kernel/sched/deadline.c, fair_server_init
# The root group of RT_GROUP_SCHED keeps its value from boot, whatever the sysctl is set to later (kernel/sched/core.c).
ROOT_GROUP_RUNTIME_US, ROOT_GROUP_PERIOD_US = 950_000, 1_000_000
US, NS = "µs", "ns"
RUNTIME_US, PERIOD_US = "proc/sys/kernel/sched_rt_runtime_us", "proc/sys/kernel/sched_rt_period_us"
FAIR_SERVER = "sys/kernel/debug/sched/fair_server"  # of debugfs


BOUNDLESS = ("FIFO", "RR")  # policies of threads whose CPU no lower thread can take


@dataclass(frozen=True)
class RealTimeUse:
    """Threads with one of these policies; no CPUs: any."""

    who: str
    policy: str
    priority: int
    cpus: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """ "executors of ping (RR 98 on CPUs 0-1)"."""
        where = f"on CPU{'s' if len(self.cpus) > 1 else ''} {cpu_list(self.cpus)}" if self.cpus else "on any CPU"
        return f"{self.who} ({self.policy} {self.priority} {where})"


@dataclass(frozen=True)
class Share:
    """The kernel's share of every period."""

    runtime: int
    period: int
    unit: str

    @property
    def value(self) -> float:
        return min(1.0, self.runtime / self.period)

    def __str__(self) -> str:
        return f"{self.runtime} of {self.period} {self.unit}"


@dataclass(frozen=True)
class RealTimeLimits:
    """The limits on a machine. None: unknown.

    `throttle`: the share of a CPU that real-time threads may use; 1.0 if they are not throttled. `throttled_to` is it
    in the kernel's words. `fair_server`: the share that other waiting threads still get; 0.0 if there is none.
    """

    throttle: float | None
    throttled_to: Share | None
    fair_server: float | None
    group_scheduling: bool | None

    @property
    def at_least(self) -> float:
        """The share on which real-time threads can rely; the kernel's default for an unknown one."""
        throttle = ROOT_GROUP_RUNTIME_US / ROOT_GROUP_PERIOD_US if self.throttle is None else self.throttle
        taken = FAIR_SERVER_DEFAULT if self.fair_server is None else self.fair_server
        return min(throttle, 1.0 - taken)

    @property
    def off(self) -> bool:
        """Whether a real-time thread that never waits is unlimited: a lower thread on its CPU never runs again."""
        return self.throttle == 1.0 and self.fair_server == 0.0


@dataclass(frozen=True)
class Means:
    """How the kernel of a machine limits real-time threads. None: unknown.

    `group_scheduling`: whether it has RT_GROUP_SCHED, and uses it. `group`: the folder of this process's own group of
    cgroup v1, below the root, if that is what counts.
    """

    version: tuple[int, int] | None
    group_scheduling: bool | None
    group: str | None

    @property
    def throttles(self) -> bool | None:
        """Whether it throttles real-time threads at all."""
        if self.group_scheduling:
            return True
        if self.version is None:
            return None
        return None if self.has_fair_server and self.group_scheduling is None else not self.has_fair_server

    @property
    def has_fair_server(self) -> bool:
        return self.version is not None and self.version >= FAIR_SERVER_SINCE


def means(root: Path = Path("/")) -> Means:
    """For the machine below `root`, and the control group of this process."""
    files = Files(root)
    release = re.match(r"([0-9]+)\.([0-9]+)", files.text("proc/sys/kernel/osrelease") or "")
    version = None if release is None else (int(release[1]), int(release[2]))
    folder = _group_folder(files)
    grouped = _group_scheduling(files, folder)
    has_share = folder is not None and files.number(f"{folder}/cpu.rt_runtime_us") is not None
    return Means(version, grouped, folder if grouped and has_share else None)


def real_time_limits(root: Path = Path("/")) -> RealTimeLimits:
    """For the machine below `root`, and the control group of this process."""
    files, by = Files(root), means(root)
    throttle, share = _throttle(files, by)
    return RealTimeLimits(throttle, share, _fair_server(files, by), by.group_scheduling)


def _share(files: Files, runtime: str, period: str, unit: str) -> Share | None:
    """The share in two files; a negative runtime is the whole period."""
    used, whole = files.number(runtime), files.number(period)
    return None if used is None or whole is None or whole <= 0 else Share(whole if used < 0 else used, whole, unit)


def _throttle(files: Files, by: Means) -> tuple[float | None, Share | None]:
    said = _share(files, RUNTIME_US, PERIOD_US, US)
    if said is None:
        return None, None
    if (files.number(RUNTIME_US) or 0) < 0:
        return 1.0, None
    if by.group_scheduling:
        group = by.group
        own = None if group is None else _share(files, f"{group}/cpu.rt_runtime_us", f"{group}/cpu.rt_period_us", US)
        share = own or min(said, Share(ROOT_GROUP_RUNTIME_US, ROOT_GROUP_PERIOD_US, US), key=lambda s: s.value)
        return share.value, share if share.value < 1 else None
    if by.throttles is None:
        return None, said
    if not by.throttles or said.value == 1:
        return 1.0, None
    return said.value, said


def _fair_server(files: Files, by: Means) -> float | None:
    """The largest of all CPUs, from debugfs; None if that is not mounted or not readable."""
    if by.version is None:
        return None
    if not by.has_fair_server:
        return 0.0
    folders = files.folders(FAIR_SERVER, "cpu*")
    shares = [_share(files, f"{folder}/runtime", f"{folder}/period", NS) for folder in folders]
    known = [share.value for share in shares if share is not None]
    return max(known, default=None) if len(known) == len(shares) else None


def _group_folder(files: Files) -> str | None:
    """The process's own group of cgroup v1, which may have its own share; cgroup v2 has none."""
    for line in (files.text("proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            return f"sys/fs/cgroup/{controllers}/{path.lstrip('/')}"
    return None


def _group_scheduling(files: Files, group: str | None) -> bool | None:
    """Whether the kernel runs with RT_GROUP_SCHED; None if its configuration is not readable."""
    if group is not None and files.text(f"{group}/cpu.rt_runtime_us") is not None:
        return True
    config = _config(files)
    if config is None:
        return None
    if "CONFIG_RT_GROUP_SCHED=y" not in config:
        return False
    asked = re.search(r"(?:^|\s)rt_group_sched=(\w+)", files.text("proc/cmdline") or "")
    if asked is not None:
        return asked[1] in ("1", "y", "Y", "on")
    return "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y" not in config


def _config(files: Files) -> set[str] | None:
    try:
        packed = (files.root / "proc/config.gz").read_bytes()
        return set(gzip.decompress(packed).decode("ascii", "replace").splitlines())
    except (OSError, EOFError, zlib.error):
        release = files.text("proc/sys/kernel/osrelease") or ""
    for path in (f"boot/config-{release}", f"lib/modules/{release}/config", f"usr/lib/modules/{release}/config"):
        if re.fullmatch(r"[\w.+~-]+", release) and (text := files.text(path)) is not None:
            return set(text.splitlines())
    return None
