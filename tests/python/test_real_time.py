"""What the kernel keeps from real-time threads: by its version, its configuration and its settings; and on this one."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from perflab.host import Host
from perflab.real_time import RealTimeLimits, real_time_limits

SYSCTL = {"proc/sys/kernel/sched_rt_runtime_us": "950000", "proc/sys/kernel/sched_rt_period_us": "1000000"}
OLD, NEW = {"proc/sys/kernel/osrelease": "6.11.9-arch"}, {"proc/sys/kernel/osrelease": "6.12.0"}
GROUPS = {"boot/config-6.12.0": "CONFIG_RT_GROUP_SCHED=y", "boot/config-6.11.9-arch": "CONFIG_RT_GROUP_SCHED=y"}
NO_GROUPS = {
    "boot/config-6.12.0": "# CONFIG_RT_GROUP_SCHED is not set",
    "boot/config-6.11.9-arch": "# CONFIG_RT_GROUP_SCHED is not set",
}
OFF = {"proc/sys/kernel/sched_rt_runtime_us": "-1"}
WHOLE = {"proc/sys/kernel/sched_rt_runtime_us": "1000000"}
GROUP_V1 = {
    "proc/self/cgroup": "4:memory:/a\n1:cpu,cpuacct:/robot\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/robot/cpu.rt_runtime_us": "400000",
    "sys/fs/cgroup/cpu,cpuacct/robot/cpu.rt_period_us": "1000000",
}
SERVER = {
    f"sys/kernel/debug/sched/fair_server/cpu{cpu}/{name}": value
    for cpu in (0, 1)
    for name, value in (("runtime", "50000000"), ("period", "1000000000"))
}


def limits(root: Path, *files: dict[str, str]) -> RealTimeLimits:
    for name, content in (item for each in files for item in each.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return real_time_limits(root)


@pytest.mark.parametrize(
    ("files", "throttle", "server"),
    [
        # Before 6.12 the sysctl throttles, and there is no fair server.
        ([OLD, SYSCTL, NO_GROUPS], 0.95, 0.0),
        ([OLD, SYSCTL], 0.95, 0.0),
        ([OLD, SYSCTL, OFF], 1.0, 0.0),
        ([OLD, SYSCTL, WHOLE, NO_GROUPS], 1.0, 0.0),
        # From 6.12 it does so with RT_GROUP_SCHED only.
        ([NEW, SYSCTL, NO_GROUPS, SERVER], 1.0, 0.05),
        ([NEW, SYSCTL, NO_GROUPS], 1.0, None),
        ([NEW, SYSCTL, GROUPS, SERVER], 0.95, 0.05),
        ([NEW, SYSCTL, OFF, GROUPS, SERVER], 1.0, 0.05),
        ([NEW, SYSCTL], None, None),
        # Then the group's own share counts, and the root group has what it had at boot.
        ([NEW, SYSCTL, WHOLE, GROUPS], 0.95, None),
        ([NEW, SYSCTL, GROUPS, GROUP_V1], 0.4, None),
        ([NEW, SYSCTL, WHOLE, GROUP_V1], 0.4, None),
        ([NEW, SYSCTL, OFF, GROUP_V1], 1.0, None),
        ([OLD, SYSCTL, GROUP_V1], 0.4, 0.0),
        # RT_GROUP_SCHED that is compiled in may be switched off at boot.
        ([NEW, SYSCTL, GROUPS, {"proc/cmdline": "quiet rt_group_sched=0 ro"}], 1.0, None),
        (
            [NEW, SYSCTL, {"boot/config-6.12.0": "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y"}],
            1.0,
            None,
        ),
        ([], None, None),
        ([NEW, {"proc/sys/kernel/sched_rt_runtime_us": "garbage"}], None, None),
    ],
)
def test_what_holds_on_a_kernel(
    tmp_path: Path, files: list[dict[str, str]], throttle: float | None, server: float | None
) -> None:
    found = limits(tmp_path, *files)
    assert found.throttle == throttle
    assert found.fair_server == server


def test_garbage_in_proc_is_not_known(tmp_path: Path) -> None:
    names = ("proc/self/cgroup", "proc/sys/kernel/osrelease", "proc/cmdline", *SYSCTL, *SERVER)
    assert limits(tmp_path, dict.fromkeys(names, "\0:x:/../..\n")) == RealTimeLimits(None, None, None, None)


def test_a_fair_server_of_one_cpu_that_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    one = {**SERVER, "sys/kernel/debug/sched/fair_server/cpu1/runtime": ""}
    assert limits(tmp_path, NEW, one).fair_server is None


def test_the_configuration_is_read_from_the_kernel_itself(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(b"# CONFIG_RT_GROUP_SCHED is not set\n"))
    assert limits(tmp_path, NEW, SYSCTL, GROUPS).throttle == 1.0
    (tmp_path / "proc/config.gz").write_bytes(b"no gzip")
    assert limits(tmp_path).throttle == 0.95


def test_doctor_advises_what_helps_on_the_kernel_at_hand(tmp_path: Path) -> None:
    def doctor(name: str, *files: dict[str, str]) -> dict[str, tuple[str, str | None, bool]]:
        limits(tmp_path / name, *files)
        checks = {c.name: c for c in Host(tmp_path / name).preflight()}
        return {
            key: (checks[key].status, checks[key].value, "sched_rt_runtime_us=-1" in str(checks[key].advice))
            for key in ("real-time throttling", "fair server")
        }

    assert doctor("old", OLD, SYSCTL, NO_GROUPS) == {
        "real-time throttling": ("warn", "950000 of 1000000 µs", True),
        "fair server": ("ok", "off", False),
    }
    assert doctor("new", NEW, SYSCTL, NO_GROUPS, SERVER) == {
        "real-time throttling": ("ok", "off", False),
        "fair server": ("warn", "5 %", False),
    }
    assert doctor("grouped", NEW, SYSCTL, GROUP_V1) == {
        "real-time throttling": ("warn", "400000 of 1000000 µs", True),
        "fair server": ("unknown", None, False),
    }
    assert doctor("untold", NEW, SYSCTL) == {
        "real-time throttling": ("unknown", "950000 of 1000000 µs", False),
        "fair server": ("unknown", None, False),
    }


def _burn(cpu: int, fifo: bool, seconds: float, answer: Any) -> None:
    os.sched_setaffinity(0, {cpu})
    try:
        if fifo:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError as error:
        answer.put((fifo, str(error)))
        return
    begun, used = time.monotonic(), time.process_time()
    while time.monotonic() - begun < seconds:
        pass
    answer.put((fifo, (time.process_time() - used) / (time.monotonic() - begun)))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("waiting", [False, True])
def test_this_kernel_keeps_from_real_time_threads_what_is_said_of_it(waiting: bool) -> None:
    """A FIFO thread that burns a CPU for 4 s, alone on it or beside one of the usual policy that waits for it."""
    cpu = max(os.sched_getaffinity(0))
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    kinds = [True, False] if waiting else [True]
    burners = [context.Process(target=_burn, args=(cpu, fifo, 4.0, answer), daemon=True) for fifo in kinds]
    for burner in burners:
        burner.start()
    shares = dict(answer.get(timeout=60) for _ in burners)
    for burner in burners:
        burner.join()
    if isinstance(shares[True], str):
        pytest.skip(f"this user may not use SCHED_FIFO: {shares[True]}")
    found = real_time_limits()
    if found.throttle is not None:
        assert shares[True] <= found.throttle + 0.03
    # A hypervisor and other real-time threads may take of it; the kernel keeps back no more than is said.
    least = found.at_least if waiting else (1.0 if found.throttle is None else found.throttle)
    assert shares[True] >= least - 0.1
    if waiting and found.fair_server is not None:
        assert shares[False] >= max(found.fair_server, 1 - (found.throttle or 1.0)) - 0.03
