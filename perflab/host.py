"""The machine: what it is, and what about it makes measurements noisy.

Everything is read from /proc, /sys and /etc below an injectable root; nothing is changed and no program is
started. What cannot be found out is None and has the status "unknown", never a guess.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perflab.real_time import real_time_limits

OK, WARN, UNKNOWN = "ok", "warn", "unknown"

# A wake-up from a deeper idle state than this costs more than a small message does.
DEEP_IDLE_LATENCY_US = 50
BUSY_LOAD_PER_CPU = 0.25


@dataclass(frozen=True)
class Check:
    """One property of the machine. `advice` is one sentence on what to do, None where nothing is to be done."""

    name: str
    status: str
    value: str | None
    advice: str | None = None

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Host:
    """The machine below `root` ("/" is this one)."""

    root: Path = Path("/")

    def facts(self) -> dict[str, Any]:
        """What the machine is; None where it cannot be told."""
        memory = self._table("proc/meminfo")
        return {
            "hostname": self._text("proc/sys/kernel/hostname"),
            "kernel": self._text("proc/sys/kernel/osrelease"),
            "kernel_version": self._text("proc/sys/kernel/version"),
            "kernel_command_line": self._text("proc/cmdline"),
            "preemption": self._preemption(),
            "distribution": self._distribution(),
            "machine": platform.machine() if self.root == Path("/") else None,
            "cpu_model": self._cpu_model(),
            "cpus_online": self._text("sys/devices/system/cpu/online"),
            "cpus_allowed": len(os.sched_getaffinity(0)) if self.root == Path("/") else None,
            "memory_kb": _leading_number(memory.get("MemTotal")),
            "hypervisor": self._hypervisor(),
            "container": self._container(),
            "clock_source": self._text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "uptime_s": _float(_first(self._text("proc/uptime"))),
        }

    def boot_id(self) -> str | None:
        """Distinguishes this boot of the machine from all others."""
        return self._text("proc/sys/kernel/random/boot_id")

    def preflight(self) -> list[Check]:
        """The noise preflight: what disturbs measurements on this machine, in a fixed order."""
        checks: tuple[Callable[[], Check], ...] = (
            self._check_virtualization,
            self._check_cpus,
            self._check_governor,
            self._check_idle,
            self._check_turbo,
            self._check_smt,
            self._check_clock_source,
            self._check_isolation,
            self._check_preemption,
            self._check_rt_throttling,
            self._check_fair_server,
            self._check_load,
            self._check_swap,
            self._check_huge_pages,
            self._check_socket_buffers,
            self._check_memlock,
            self._check_rtprio,
        )
        return [check() for check in checks]

    # -- checks ------------------------------------------------------------------------------------------------------

    def _check_virtualization(self) -> Check:
        hypervisor = self._hypervisor()
        if hypervisor is None:
            if self._cpu_flags() is None:
                return Check("virtual machine", UNKNOWN, None)
            return Check("virtual machine", OK, "no")
        return Check(
            "virtual machine",
            WARN,
            hypervisor,
            "other guests and the hypervisor delay this one unseen: use a machine of your own for absolute numbers",
        )

    def _check_cpus(self) -> Check:
        cpus = self._online()
        if not cpus:
            return Check("cpus", UNKNOWN, None)
        if len(cpus) < 4:
            return Check(
                "cpus",
                WARN,
                str(len(cpus)),
                "with fewer than 4 the workload shares CPUs with everything else: expect queueing",
            )
        return Check("cpus", OK, str(len(cpus)))

    def _check_governor(self) -> Check:
        governors = {g for cpu in self._online() if (g := self._text(self._cpu(cpu) + "cpufreq/scaling_governor"))}
        if not governors:
            return Check("frequency governor", UNKNOWN, None, "no cpufreq here: the frequency cannot be told or held")
        value = ", ".join(sorted(governors))
        if governors == {"performance"}:
            return Check("frequency governor", OK, value)
        return Check("frequency governor", WARN, value, "hold the frequency: `cpupower frequency-set -g performance`")

    def _check_idle(self) -> Check:
        driver = self._text("sys/devices/system/cpu/cpuidle/current_driver")
        states = self._idle_states()
        if states:
            name, latency_us = max(states, key=lambda s: s[1])
            value = f"{driver or 'unnamed'}: {name}, {latency_us} µs"
            if latency_us > DEEP_IDLE_LATENCY_US:
                advice = (
                    f"waking costs up to {latency_us} µs: hold /dev/cpu_dma_latency at 0 or `cpupower idle-set -D 10`"
                )
                return Check("idle states", WARN, value, advice)
            return Check("idle states", OK, value)
        if driver == "none":
            return Check("idle states", OK, "none")
        return Check("idle states", UNKNOWN, driver)

    def _check_turbo(self) -> Check:
        intel = self._text("sys/devices/system/cpu/intel_pstate/no_turbo")
        boost = self._text("sys/devices/system/cpu/cpufreq/boost")
        if intel is None and boost is None:
            return Check("turbo", UNKNOWN, None)
        if intel == "1" or (intel is None and boost == "0"):
            return Check("turbo", OK, "off")
        file = "intel_pstate/no_turbo` with 1" if intel is not None else "cpufreq/boost` with 0"
        return Check("turbo", WARN, "on", f"the frequency follows heat and load: write `/sys/devices/system/cpu/{file}")

    def _check_smt(self) -> Check:
        active = self._text("sys/devices/system/cpu/smt/active")
        if active is None:
            return Check("smt", UNKNOWN, None)
        if active == "0":
            return Check("smt", OK, "off")
        return Check("smt", WARN, "on", "siblings slow each other: `echo off > /sys/devices/system/cpu/smt/control`")

    def _check_clock_source(self) -> Check:
        source = self._text("sys/devices/system/clocksource/clocksource0/current_clocksource")
        if source is None:
            return Check("clock source", UNKNOWN, None)
        if source in ("tsc", "arch_sys_counter", "kvm-clock"):
            return Check("clock source", OK, source)
        return Check(
            "clock source", WARN, source, "reading it is slow: boot with `clocksource=tsc tsc=reliable` if it is stable"
        )

    def _check_isolation(self) -> Check:
        isolated = self._text("sys/devices/system/cpu/isolated")
        nohz = self._text("sys/devices/system/cpu/nohz_full")
        if isolated is None:
            return Check("isolated cpus", UNKNOWN, None)
        full = nohz if nohz and nohz != "(null)" else "none"
        value = f"isolcpus {isolated or 'none'}, nohz_full {full}"
        return Check("isolated cpus", OK, value)

    def _check_preemption(self) -> Check:
        preemption = self._preemption()
        return Check("preemption", UNKNOWN if preemption is None else OK, preemption)

    def _check_rt_throttling(self) -> Check:
        limits = real_time_limits(self.root)
        share = limits.throttled_to
        if limits.throttle is None:
            value = None if share is None else str(share)
            advice = "from Linux 6.12 it holds with RT_GROUP_SCHED only, and the kernel's configuration cannot be read"
            return Check("real-time throttling", UNKNOWN, value, None if share is None else advice)
        if share is None:
            return Check("real-time throttling", OK, "off")
        return Check(
            "real-time throttling",
            WARN,
            str(share),
            "real-time threads are stopped when they use that share: `sysctl kernel.sched_rt_runtime_us=-1`",
        )

    def _check_fair_server(self) -> Check:
        """Since Linux 6.12, in place of throttling or beside it."""
        share = real_time_limits(self.root).fair_server
        if share is None:
            known = self._text("proc/sys/kernel/osrelease") is not None
            advice = "how much it takes cannot be read: as root, `mount -t debugfs none /sys/kernel/debug`"
            return Check("fair server", UNKNOWN, None, advice if known else None)
        if share == 0:
            return Check("fair server", OK, "off")
        return Check(
            "fair server",
            WARN,
            f"{100 * share:g} %",
            "threads that wait get that share of a CPU from real-time ones: write 0 to "
            "`/sys/kernel/debug/sched/fair_server/cpu*/runtime`",
        )

    def _check_load(self) -> Check:
        load = _float(_first(self._text("proc/loadavg")))
        cpus = len(self._online())
        if load is None or not cpus:
            return Check("load", UNKNOWN, None)
        value = f"{load:.2f} on {cpus} CPUs"
        if load > BUSY_LOAD_PER_CPU * cpus:
            return Check("load", WARN, value, "something else is running: end it, or wait until the load is near 0")
        return Check("load", OK, value)

    def _check_swap(self) -> Check:
        memory = self._table("proc/meminfo")
        total = _leading_number(memory.get("SwapTotal"))
        free = _leading_number(memory.get("SwapFree"))
        if total is None or free is None:
            return Check("swap", UNKNOWN, None)
        if total == 0:
            return Check("swap", OK, "none")
        value = f"{(total - free) >> 10} of {total >> 10} MiB used"
        return Check("swap", WARN, value, "a page on disk costs milliseconds: `swapoff -a`")

    def _check_huge_pages(self) -> Check:
        modes = self._text("sys/kernel/mm/transparent_hugepage/enabled")
        chosen = re.search(r"\[(\w+)\]", modes or "")
        if chosen is None:
            return Check("transparent huge pages", UNKNOWN, None)
        if chosen.group(1) == "always":
            advice = "collapsing pages stalls threads: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`"
            return Check("transparent huge pages", WARN, "always", advice)
        return Check("transparent huge pages", OK, chosen.group(1))

    def _check_socket_buffers(self) -> Check:
        size = _int(self._text("proc/sys/net/core/rmem_max"))
        if size is None:
            return Check("socket buffers", UNKNOWN, None)
        value = f"rmem_max {size >> 10} KiB"
        if size < 4 << 20:
            return Check(
                "socket buffers",
                WARN,
                value,
                "large messages overrun them and are lost: `sysctl net.core.rmem_max=8388608`",
            )
        return Check("socket buffers", OK, value)

    def _check_memlock(self) -> Check:
        limit = self._limit("Max locked memory")
        if limit is None:
            return Check("memlock limit", UNKNOWN, None)
        if limit == "unlimited":
            return Check("memlock limit", OK, limit)
        advice = "memory cannot be locked: set `memlock unlimited` in /etc/security/limits.d/perflab.conf"
        return Check("memlock limit", WARN, f"{int(limit) >> 10} KiB", advice)

    def _check_rtprio(self) -> Check:
        limit = self._limit("Max realtime priority")
        if limit is None:
            return Check("rtprio limit", UNKNOWN, None)
        if limit == "unlimited" or int(limit) >= 98 or self._is_root():
            return Check("rtprio limit", OK, "root" if self._is_root() else limit)
        advice = "real-time priorities are refused: set `rtprio 98` in /etc/security/limits.d/perflab.conf"
        return Check("rtprio limit", WARN, limit, advice)

    # -- readers -----------------------------------------------------------------------------------------------------

    def _text(self, path: str) -> str | None:
        """The stripped content of a small file; None where it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def _table(self, path: str) -> dict[str, str]:
        """The lines "key: value" of a file; of equal keys the first."""
        table: dict[str, str] = {}
        for line in (self._text(path) or "").splitlines():
            key, colon, value = line.partition(":")
            if colon:
                table.setdefault(key.strip(), value.strip())
        return table

    def _online(self) -> list[int]:
        return parse_cpu_list(self._text("sys/devices/system/cpu/online") or "")

    @staticmethod
    def _cpu(cpu: int) -> str:
        return f"sys/devices/system/cpu/cpu{cpu}/"

    def _cpu_model(self) -> str | None:
        info = self._table("proc/cpuinfo")
        return info.get("model name") or info.get("Model") or info.get("CPU part")

    def _cpu_flags(self) -> set[str] | None:
        flags = self._table("proc/cpuinfo").get("flags")
        return None if flags is None else set(flags.split())

    def _hypervisor(self) -> str | None:
        """The hypervisor's name; "yes" where only its presence is known; None on the bare machine or unknown."""
        kind = self._text("sys/hypervisor/type")
        if kind:
            return kind
        if "hypervisor" in (self._cpu_flags() or set()):
            vendor = self._text("sys/class/dmi/id/sys_vendor")
            return vendor if vendor and vendor.lower() not in ("", "to be filled by o.e.m.") else "yes"
        return None

    def _container(self) -> str | None:
        if (self.root / ".dockerenv").exists():
            return "docker"
        if (self.root / "run/.containerenv").exists():
            return "podman"
        return None

    def _distribution(self) -> str | None:
        match = re.search(r'^PRETTY_NAME="?([^"\n]+)', self._text("etc/os-release") or "", re.MULTILINE)
        return match.group(1) if match else None

    def _preemption(self) -> str | None:
        version = self._text("proc/sys/kernel/version")
        if version is None:
            return None
        for word, name in (("PREEMPT_RT", "real-time"), ("PREEMPT_DYNAMIC", "dynamic"), ("PREEMPT", "full")):
            if word in version.split():
                return name
        return "voluntary or none"

    def _idle_states(self) -> list[tuple[str, int]]:
        """Name and exit latency in µs of the enabled idle states of the first CPU."""
        states = []
        for folder in sorted((self.root / "sys/devices/system/cpu/cpu0/cpuidle").glob("state*")):
            name, latency = (self._text(str((folder / part).relative_to(self.root))) for part in ("name", "latency"))
            disabled = self._text(str((folder / "disable").relative_to(self.root)))
            latency_us = _int(latency)
            if name is not None and latency_us is not None and disabled != "1":
                states.append((name, latency_us))
        return states

    def _limit(self, name: str) -> str | None:
        """A soft limit of this process, "unlimited" or a number."""
        for line in (self._text("proc/self/limits") or "").splitlines():
            if line.startswith(name):
                return line[len(name) :].split()[0]
        return None

    def _is_root(self) -> bool:
        uid = self._table("proc/self/status").get("Uid", "")
        return uid.split()[1:2] == ["0"]


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


def _first(text: str | None) -> str | None:
    return text.split()[0] if text else None


def _leading_number(text: str | None) -> int | None:
    return _int(_first(text))


def _int(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
