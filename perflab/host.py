"""The machine: its properties, and what makes its measurements noisy.

Everything is read from /proc, /sys and /etc below an injectable root; nothing is changed and no program is
started. A value that cannot be determined is None with the status "unknown", never a guess.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perflab.kernel import CPU, Files
from perflab.real_time import real_time_limits

OK, WARN, UNKNOWN = "ok", "warn", "unknown"

# A wake-up from a deeper idle state costs more than a small message does.
DEEP_IDLE_LATENCY_US = 50
BUSY_LOAD_PER_CPU = 0.25


@dataclass(frozen=True)
class Check:
    """One property of the machine. `advice` is one sentence on what to do, None if nothing needs to be done."""

    name: str
    status: str
    value: str | None
    advice: str | None = None

    def document(self) -> dict[str, Any]:
        return asdict(self)


def _check(name: str, value: str | None, advice: str | None = None) -> Check:
    """Unknown without a value; a warning if there is advice."""
    return Check(name, UNKNOWN if value is None else WARN if advice else OK, value, advice)


# Clocks that a hypervisor provides to its guests, if it has no firmware tables.
_CLOCKS_OF = {"kvm-clock": "KVM", "hyperv_clocksource": "Hyper-V", "xen": "Xen", "vmware": "VMware"}


@dataclass(frozen=True)
class Host(Files):
    """The machine below `root` ("/" is this one)."""

    def facts(self) -> dict[str, Any]:
        """The machine's properties; None for unknown ones."""
        here = self.root == Path("/")
        return {
            "hostname": self.text("proc/sys/kernel/hostname"),
            "kernel": self.text("proc/sys/kernel/osrelease"),
            "kernel_version": self.text("proc/sys/kernel/version"),
            "kernel_command_line": self._command_line(),
            "preemption": self.preemption(),
            "distribution": self._distribution(),
            "machine": platform.machine() if here else None,
            "cpu_model": self._cpu_model(),
            "cpus_online": self.text(f"{CPU}/online"),
            "cpus_allowed": len(os.sched_getaffinity(0)) if here else None,
            "memory_kb": self.kb("proc/meminfo", "MemTotal")[0],
            "hypervisor": self._hypervisor(),
            "container": self._container(),
            "clock_source": self.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "uptime_s": self._first_float("proc/uptime"),
        }

    def boot_id(self) -> str | None:
        """Distinguishes this boot of the machine from all others."""
        return self.text("proc/sys/kernel/random/boot_id")

    def preflight(self) -> list[Check]:
        """The noise preflight: disturbances of measurements on this machine, in a fixed order."""
        return [
            self._virtualization(),
            self._cpus(),
            self._governor(),
            self._idle(),
            self._turbo(),
            self._smt(),
            self._clock_source(),
            self._isolation(),
            _check("preemption", self.preemption()),
            self._throttling(),
            self._fair_server(),
            self._load(),
            self._swap(),
            self._huge_pages(),
            self._socket_buffers(),
            self._memlock(),
            self._rtprio(),
        ]

    # -- checks ------------------------------------------------------------------------------------------------------

    def _virtualization(self) -> Check:
        hypervisor = self._hypervisor()
        if hypervisor is None:
            return _check("virtual machine", None if self._cpu_flags() is None else "no")
        advice = (
            "other guests and the hypervisor delay this one unnoticed: use a dedicated machine for absolute numbers"
        )
        return _check("virtual machine", hypervisor, advice)

    def _cpus(self) -> Check:
        count = len(self.online())
        advice = "with fewer than 4 the workload shares CPUs with everything else: expect queueing"
        return _check("cpus", str(count) if count else None, advice if 0 < count < 4 else None)

    def _governor(self) -> Check:
        governors = {g for cpu in self.online() if (g := self.text(f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"))}
        if not governors:
            return _check("frequency governor", None, "no cpufreq here: the frequency can be neither read nor held")
        advice = "hold the frequency: `cpupower frequency-set -g performance`"
        held = governors == {"performance"}
        return _check("frequency governor", ", ".join(sorted(governors)), None if held else advice)

    def _idle(self) -> Check:
        """From the enabled states of the first CPU."""
        driver = self.text(f"{CPU}/cpuidle/current_driver")
        states = []
        for folder in self.folders(f"{CPU}/cpu0/cpuidle", "state*"):
            name, latency_us = self.text(f"{folder}/name"), self.number(f"{folder}/latency")
            if name is not None and latency_us is not None and self.text(f"{folder}/disable") != "1":
                states.append((latency_us, name))
        if not states:
            return Check("idle states", OK if driver == "none" else UNKNOWN, driver)
        latency_us, name = max(states, key=lambda state: state[0])
        advice = f"waking costs up to {latency_us} µs: hold /dev/cpu_dma_latency at 0 or `cpupower idle-set -D 10`"
        deep = latency_us > DEEP_IDLE_LATENCY_US
        return _check("idle states", f"{driver or 'unnamed'}: {name}, {latency_us} µs", advice if deep else None)

    def _turbo(self) -> Check:
        turbo = self.turbo()
        if not turbo:
            return _check("turbo", None if turbo is None else "off")
        intel = self.text(f"{CPU}/intel_pstate/no_turbo") is not None
        file = "intel_pstate/no_turbo` with 1" if intel else "cpufreq/boost` with 0"
        return _check("turbo", "on", f"the frequency follows heat and load: write `/{CPU}/{file}")

    def _smt(self) -> Check:
        active = self.text(f"{CPU}/smt/active")
        if active in (None, "0"):
            return _check("smt", active and "off")
        return _check("smt", "on", f"siblings slow each other: `echo off > /{CPU}/smt/control`")

    def _clock_source(self) -> Check:
        source = self.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
        fast = source in (None, "tsc", "arch_sys_counter", "kvm-clock")
        advice = "reading it is slow: boot with `clocksource=tsc tsc=reliable` if it is stable"
        return _check("clock source", source, None if fast else advice)

    def _isolation(self) -> Check:
        isolated, nohz = self.text(f"{CPU}/isolated"), self.text(f"{CPU}/nohz_full")
        full = nohz if nohz and nohz != "(null)" else "none"
        value = None if isolated is None else f"isolcpus {isolated or 'none'}, nohz_full {full}"
        return _check("isolated cpus", value)

    def _throttling(self) -> Check:
        limits = real_time_limits(self.root)
        share = limits.throttled_to
        if limits.throttle is None and share is not None:
            advice = (
                "from Linux 6.12 on it applies only with RT_GROUP_SCHED, and the kernel's configuration cannot be read"
            )
            return Check("real-time throttling", UNKNOWN, str(share), advice)
        if share is None:
            return _check("real-time throttling", None if limits.throttle is None else "off")
        advice = "real-time threads are stopped when they use that share: `sysctl kernel.sched_rt_runtime_us=-1`"
        return _check("real-time throttling", str(share), advice)

    def _fair_server(self) -> Check:
        """Since Linux 6.12, instead of throttling or in addition to it."""
        share = real_time_limits(self.root).fair_server
        if share is None:
            known = self.text("proc/sys/kernel/osrelease") is not None
            advice = "its share cannot be read: as root, `mount -t debugfs none /sys/kernel/debug`"
            return _check("fair server", None, advice if known else None)
        advice = (
            "waiting threads get that share of a CPU from real-time ones: write 0 to "
            "`/sys/kernel/debug/sched/fair_server/cpu*/runtime`"
        )
        return _check("fair server", f"{100 * share:g} %" if share else "off", advice if share else None)

    def _load(self) -> Check:
        load, cpus = self._first_float("proc/loadavg"), len(self.online())
        if load is None or not cpus:
            return _check("load", None)
        advice = "other programs are running: end them, or wait until the load is near 0"
        return _check("load", f"{load:.2f} on {cpus} CPUs", advice if load > BUSY_LOAD_PER_CPU * cpus else None)

    def _swap(self) -> Check:
        total, free = self.kb("proc/meminfo", "SwapTotal", "SwapFree")
        if not total or free is None:
            return _check("swap", "none" if total == 0 and free is not None else None)
        advice = "a page on disk costs milliseconds: `swapoff -a`"
        return _check("swap", f"{(total - free) >> 10} of {total >> 10} MiB used", advice)

    def _huge_pages(self) -> Check:
        chosen = self.chosen("sys/kernel/mm/transparent_hugepage/enabled")
        advice = "collapsing pages stalls threads: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`"
        return _check("transparent huge pages", chosen, advice if chosen == "always" else None)

    def _socket_buffers(self) -> Check:
        size = self.number("proc/sys/net/core/rmem_max")
        if size is None:
            return _check("socket buffers", None)
        advice = "large messages overrun them and are lost: `sysctl net.core.rmem_max=8388608`"
        return _check("socket buffers", f"rmem_max {size >> 10} KiB", advice if size < 4 << 20 else None)

    def _memlock(self) -> Check:
        limit, _ = self.limits().get("Max locked memory", (None, None))
        if limit is None or limit == "unlimited":
            return _check("memlock limit", limit)
        advice = "memory cannot be locked: set `memlock unlimited` in /etc/security/limits.d/perflab.conf"
        return _check("memlock limit", f"{int(limit) >> 10} KiB", advice)

    def _rtprio(self) -> Check:
        limit, _ = self.limits().get("Max realtime priority", (None, None))
        if limit is not None and self.table("proc/self/status").get("Uid", "").split()[1:2] == ["0"]:
            return _check("rtprio limit", "root")
        enough = limit is None or limit == "unlimited" or int(limit) >= 98
        advice = "real-time priorities are refused: set `rtprio 98` in /etc/security/limits.d/perflab.conf"
        return _check("rtprio limit", limit, None if enough else advice)

    # -- readers -----------------------------------------------------------------------------------------------------

    def _first_float(self, path: str) -> float | None:
        try:
            return float((self.text(path) or "").split()[0])
        except (ValueError, IndexError):
            return None

    def _cpu_model(self) -> str | None:
        info = self.table("proc/cpuinfo")
        return info.get("model name") or info.get("Model") or info.get("CPU part")

    def _cpu_flags(self) -> set[str] | None:
        flags = self.table("proc/cpuinfo").get("flags")
        return None if flags is None else set(flags.split())

    def _hypervisor(self) -> str | None:
        """The hypervisor's name; "yes" if only its presence is known; None on bare metal or if unknown."""
        kind = self.text("sys/hypervisor/type")
        if kind:
            return kind
        if "hypervisor" in (self._cpu_flags() or set()):
            vendor = self.text("sys/class/dmi/id/sys_vendor")
            if vendor and vendor.lower() != "to be filled by o.e.m.":
                return vendor
            clocks = self.text("sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
            return next((name for clock, name in _CLOCKS_OF.items() if clock in clocks), "yes")
        return None

    def _container(self) -> str | None:
        if (self.root / ".dockerenv").exists():
            return "docker"
        if (self.root / "run/.containerenv").exists():
            return "podman"
        return None

    def _distribution(self) -> str | None:
        match = re.search(r'^PRETTY_NAME="?([^"\n]+)', self.text("etc/os-release") or "", re.MULTILINE)
        return match.group(1) if match else None

    def _command_line(self) -> str | None:
        """The kernel's part: words after -- are for the first process."""
        text = self.text("proc/cmdline")
        return None if text is None else text.partition(" -- ")[0]

    def preempt_rt(self) -> bool | None:
        """Whether it is a real-time kernel (PREEMPT_RT); None if unknown."""
        said = self.text("sys/kernel/realtime")
        preemption = self.preemption()
        return said == "1" if said is not None else None if preemption is None else preemption == "real-time"

    def preemption(self) -> str | None:
        version = self.text("proc/sys/kernel/version")
        if version is None:
            return None
        for word, name in (("PREEMPT_RT", "real-time"), ("PREEMPT_DYNAMIC", "dynamic"), ("PREEMPT", "full")):
            if word in version.split():
                return name
        return "voluntary or none"
