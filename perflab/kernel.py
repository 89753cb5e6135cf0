"""Small files of the kernel in /proc and /sys, below a root that tests choose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CPU = "sys/devices/system/cpu"

CAP_SYS_NICE = 23  # linux/capability.h


@dataclass(frozen=True)
class Files:
    """Files below `root` ("/" is this machine). Missing or unexpected values are None."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """The stripped content of a file."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        return whole(self.text(path))

    def table(self, path: str) -> dict[str, str]:
        """The lines "key: value" of a file; the first if a key repeats."""
        table: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            key, colon, value = line.partition(":")
            if colon:
                table.setdefault(key.strip(), value.strip())
        return table

    def kb(self, path: str, *keys: str) -> list[int | None]:
        """The values of these keys in a file like /proc/meminfo."""
        table = self.table(path)
        return [whole(table.get(key, "").removesuffix(" kB")) for key in keys]

    def chosen(self, path: str) -> str | None:
        """The choice in "always [madvise] never"."""
        found = re.search(r"\[(\w+)\]", self.text(path) or "")
        return found.group(1) if found else None

    def folders(self, path: str, pattern: str) -> list[str]:
        """The paths below the root that match, sorted."""
        return sorted(str(found.relative_to(self.root)) for found in (self.root / path).glob(pattern))

    def online(self) -> list[int]:
        """The online CPUs."""
        return parse_cpu_list(self.text(f"{CPU}/online") or "")

    def turbo(self) -> bool | None:
        intel, boost = self.text(f"{CPU}/intel_pstate/no_turbo"), self.text(f"{CPU}/cpufreq/boost")
        if intel is None and boost is None:
            return None
        return not (intel == "1" or (intel is None and boost == "0"))

    def may(self, capability: int) -> bool:
        """Whether this process has a capability, by its number in capability.h."""
        held = self.table("proc/self/status").get("CapEff", "0")
        return bool(int(held, 16) >> capability & 1) if re.fullmatch("[0-9a-f]+", held) else False

    def cgroup(self) -> Cgroup | None:
        """The control groups of this process; None if there are none."""
        lines = [line.split(":", 2) for line in (self.text("proc/self/cgroup") or "").splitlines()]
        paths = {controller: line[2] for line in lines if len(line) == 3 for controller in line[1].split(",")}
        mount = self.root / "sys/fs/cgroup"
        return Cgroup(mount, (mount / "cgroup.controllers").is_file() and "" in paths, paths) if paths else None

    def mounts(self) -> list[tuple[Path, str]]:
        """Every mount point, and the type of its file system."""
        lines = [line.split() for line in (self.text("proc/self/mounts") or "").splitlines()]
        plain = [(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[1]), words[2]) for words in lines]
        return [(Path(point), kind) for point, kind in plain]

    def limits(self) -> dict[str, tuple[str, str]]:
        """Soft and hard limits of this process, by their names in /proc/self/limits."""
        lines = (self.text("proc/self/limits") or "").splitlines()
        columns = [re.split(r"\s{2,}", line.strip()) for line in lines]
        return {c[0]: (c[1], c[2]) for c in columns if len(c) >= 3 and c[0] != "Limit"}

    def may_be_real_time(self, priority: int) -> bool:
        """Whether this process may have threads with that real-time priority: by capability, or by limit."""
        if self.may(CAP_SYS_NICE):
            return True
        limit, _ = self.limits().get("Max realtime priority", ("0", "0"))
        return limit == "unlimited" or (limit.isdigit() and int(limit) >= priority)


@dataclass(frozen=True)
class Cgroup:
    """A control group, of version 2 (`unified`) or of version 1: `paths` by controller, below `mount`."""

    mount: Path
    unified: bool
    paths: dict[str, str]

    @property
    def path(self) -> str | None:
        return self.paths[""] if self.unified else self.paths.get("cpu")

    def levels(self, controller: str) -> list[Path]:
        """The visible groups from this one upwards; in a container often only the mount."""
        names = ("",) if self.unified else (controller, "cpu,cpuacct") if controller == "cpu" else (controller,)
        for folder in (self.mount / name for name in names if (self.mount / name).is_dir()):
            own = folder / self.paths.get("" if self.unified else controller, "/").strip("/")
            return [level for level in (own, *own.parents) if level.is_dir() and level.is_relative_to(folder)]
        return []

    def cpu_quotas(self) -> list[float | str]:
        """The number of CPUs that each level may use, or UNLIMITED; only levels with a limit file."""
        files = ("cpu.max",) if self.unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        texts = [[Files(level).text(file) for file in files] for level in self.levels("cpu")]
        quotas = [_quota(" ".join(map(str, found))) for found in texts if None not in found]
        return [quota for quota in quotas if quota is not None]


UNLIMITED = "unlimited"


def _quota(text: str) -> float | str | None:
    """The number of CPUs in "150000 100000", from cpu.max or from the two files of version 1."""
    words = text.split()
    if len(words) != 2 or not words[1].isdigit() or not int(words[1]):
        return None
    if words[0] in ("max", "-1"):
        return UNLIMITED
    return int(words[0]) / int(words[1]) if words[0].isdigit() else None


def parse_cpu_list(text: str) -> list[int]:
    """The CPUs of the kernel's list notation: "0-3,8" is [0, 1, 2, 3, 8]."""
    cpus: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if low.strip().isdigit() and (not dash or high.strip().isdigit()):
            cpus.extend(range(int(low), int(high if dash else low) + 1))
    return cpus


def cpu_list(cpus: Iterable[int]) -> str:
    """CPUs as the kernel lists them.

    >>> cpu_list([3, 0, 1, 2, 6])
    '0-3,6'
    """
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def whole(text: str | None) -> int | None:
    """The integer in a text."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
