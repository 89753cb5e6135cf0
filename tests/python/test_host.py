"""The preflight on machines made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.host import Check, Host
from perflab.kernel import parse_cpu_list

CPU0 = "sys/devices/system/cpu/cpu0"
QUIET = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU\nflags\t\t: fpu tsc\n",
    "proc/meminfo": "MemTotal: 16000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
    "proc/loadavg": "0.05 0.1 0.2 1/100 5\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_RT Fri",
    "proc/sys/kernel/osrelease": "6.18.1-rt",
    "proc/sys/kernel/sched_rt_runtime_us": "-1",
    "proc/sys/kernel/sched_rt_period_us": "1000000",
    "sys/kernel/debug/sched/fair_server/cpu0/runtime": "0",
    "sys/kernel/debug/sched/fair_server/cpu0/period": "1000000000",
    "proc/sys/net/core/rmem_max": "8388608",
    "proc/self/limits": "Max locked memory   unlimited  unlimited  bytes\nMax realtime priority  99  99\n",
    "proc/self/status": "Uid:\t1000\t1000\t1000\t1000\n",
    "sys/devices/system/cpu/online": "0-7",
    "sys/devices/system/cpu/isolated": "4-7",
    "sys/devices/system/cpu/nohz_full": "4-7",
    "sys/devices/system/cpu/smt/active": "0",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/cpuidle/current_driver": "intel_idle",
    f"{CPU0}/cpufreq/scaling_governor": "performance",
    f"{CPU0}/cpuidle/state0/name": "POLL",
    f"{CPU0}/cpuidle/state0/latency": "0",
    f"{CPU0}/cpuidle/state1/name": "C6",
    f"{CPU0}/cpuidle/state1/latency": "133",
    f"{CPU0}/cpuidle/state1/disable": "1",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
}
NOISY = {
    "proc/cpuinfo": "model name : Slow CPU\nflags : fpu hypervisor\n",
    "proc/meminfo": "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
    "proc/loadavg": "3.50 1 1 1/100 5",
    "proc/sys/kernel/osrelease": "6.18.1-generic",
    "boot/config-6.18.1-generic": "CONFIG_RT_GROUP_SCHED=y\n",
    "sys/kernel/debug/sched/fair_server/cpu0/runtime": "50000000",
    "sys/kernel/debug/sched/fair_server/cpu0/period": "1000000000",
    "proc/sys/kernel/sched_rt_runtime_us": "950000",
    "proc/sys/kernel/sched_rt_period_us": "1000000",
    "proc/sys/net/core/rmem_max": "212992",
    "proc/self/limits": "Max locked memory   8388608  8388608  bytes\nMax realtime priority  0  0\n",
    "sys/devices/system/cpu/online": "0-1",
    "sys/devices/system/cpu/smt/active": "1",
    "sys/devices/system/cpu/cpufreq/boost": "1",
    f"{CPU0}/cpufreq/scaling_governor": "powersave",
    f"{CPU0}/cpuidle/state1/name": "C6",
    f"{CPU0}/cpuidle/state1/latency": "133",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/class/dmi/id/sys_vendor": "QEMU",
}


def machine(root: Path, files: dict[str, str]) -> dict[str, Check]:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return {check.name: check for check in Host(root).preflight()}


def test_a_quiet_machine_is_all_ok(tmp_path: Path) -> None:
    checks = machine(tmp_path, QUIET)
    assert {name: c.status for name, c in checks.items() if c.status != "ok"} == {}
    assert checks["preemption"].value == "real-time"
    assert checks["isolated cpus"].value == "isolcpus 4-7, nohz_full 4-7"


def test_a_noisy_machine_is_warned_of_with_what_to_do(tmp_path: Path) -> None:
    checks = machine(tmp_path, NOISY)
    warned = {name for name, c in checks.items() if c.status == "warn"}
    assert warned == set(checks) - {"isolated cpus", "preemption"}
    assert all(checks[name].advice for name in warned)
    assert checks["virtual machine"].value == "QEMU"
    assert checks["swap"].value == "1024 of 2048 MiB used"
    assert checks["idle states"].value == "unnamed: C6, 133 µs"


def test_the_clocks_of_a_guest_tell_its_hypervisor(tmp_path: Path) -> None:
    guest = {"proc/cpuinfo": NOISY["proc/cpuinfo"]}
    assert machine(tmp_path, guest)["virtual machine"].value == "yes"
    clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource"
    assert machine(tmp_path, {**guest, clocks: "tsc kvm-clock\n"})["virtual machine"].value == "KVM"


def test_what_cannot_be_read_is_unknown_and_null(tmp_path: Path) -> None:
    checks = machine(tmp_path, {})
    assert {c.status for c in checks.values()} == {"unknown"}
    assert {c.value for c in checks.values()} == {None}
    assert set(Host(tmp_path).facts().values()) == {None}
    assert Host(tmp_path).boot_id() is None


def test_garbage_is_unknown(tmp_path: Path) -> None:
    checks = machine(tmp_path, dict.fromkeys([*QUIET, *NOISY], "\0garbage"))
    assert checks["load"].status == checks["swap"].status == checks["real-time throttling"].status == "unknown"


def test_root_may_have_any_priority(tmp_path: Path) -> None:
    checks = machine(tmp_path, {**NOISY, "proc/self/status": "Uid:\t0\t0\t0\t0\n"})
    assert checks["rtprio limit"].status == "ok"


def test_facts_of_this_machine() -> None:
    facts = Host().facts()
    assert facts["kernel"]
    assert facts["memory_kb"] > 0
    assert facts["cpus_allowed"] >= 1


@pytest.mark.parametrize(("text", "cpus"), [("", []), ("0", [0]), ("0-3,8", [0, 1, 2, 3, 8]), ("x", []), ("1-x", [])])
def test_cpu_lists(text: str, cpus: list[int]) -> None:
    assert parse_cpu_list(text) == cpus


def test_the_command_line_is_that_of_the_kernel_and_not_of_the_first_process(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text("quiet isolcpus=3 -- --port 7\n")
    assert Host(tmp_path).facts()["kernel_command_line"] == "quiet isolcpus=3"
