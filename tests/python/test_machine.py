"""What the machine did in a trial: on a made /proc, and on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from test_real_time import GROUPS, NEW, SYSCTL

from perflab.columns import Cell
from perflab.experiment import machine as module
from perflab.experiment.machine import MachineWatch
from perflab.report.tables.machine import in_words, limit_in_words, of_results
from perflab.report.tables.messages import Of
from perflab.results.machine import CpuCounts, KernelThread, LimitsOverTrial, LimitsSeen, Machine, NetworkCounts
from perflab.results.outcome import SUCCESS
from perflab.results.trial import Result, SystemCounts, Trial
from perflab.statistics.metrics import METRICS

INTERRUPTS = """           CPU0       CPU2
 36:          {0}      10    PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:        100        {1}   Local timer interrupts
ERR:          0
"""
# Of all CPUs that there may be; of those CPU 1 is offline.
SOFTIRQS = "                    CPU0       CPU1       CPU2\n      NET_RX:         {0}         90          {0}\n"
STAT = "cpu  0 0 0 0 0 0 0 {1} 0 0\ncpu0 0 0 0 0 0 0 0 {1} 0 0\ncpu2 0 0 0 0 0 0 0 5 0 0\n"
SNMP = """Ip: Forwarding
Ip: 1
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: {0} 1 {1} 30 {1} 0
UdpLite: InDatagrams
UdpLite: 0
"""
DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets
    lo: 1000 {0} 0 0 0 0 0 0 1000 {0} 0 0 0 0 0 0
"""


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def kernel_thread(root: Path, pid: int, name: str, policy: int, state: str, ran: int, waited: int) -> None:
    rest = ["0"] * 49
    rest[0], rest[36], rest[37] = "2", "1" if policy == 1 else "0", str(policy)
    folder = f"proc__{pid}__"
    write(
        root,
        **{
            f"{folder}stat": f"{pid} ({name}) {state} {' '.join(rest)}\n",
            f"{folder}comm": f"{name}\n",
            f"{folder}status": "Cpus_allowed_list:\t0\n",
            f"{folder}schedstat": f"{ran} {waited} 1\n",
        },
    )


def state_of(root: Path, *, n: int, usec: int) -> None:
    write(
        root,
        proc__interrupts=INTERRUPTS.format(n, n),
        proc__softirqs=SOFTIRQS.format(n),
        proc__stat=STAT.format(0, n),
        proc__7__net__snmp=SNMP.format(n, 2),
        proc__7__net__dev=DEV.format(n),
        sys__fs__cgroup__app__cpu_stat="",
    )
    folder = root / "sys/fs/cgroup/app"
    (folder / "cpu.stat").write_text(f"usage_usec 5\nnr_periods {n}\nnr_throttled 3\nthrottled_usec {usec}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for files in (NEW, SYSCTL, GROUPS):
        write(tmp_path, **{name.replace("/", "__"): text for name, text in files.items()})
    write(
        tmp_path,
        proc__self__cgroup="0::/app\n",
        proc__7__ns__net="",
        sys__devices__system__cpu__isolated="2\n",
        sys__devices__system__cpu__nohz_full="(null)\n",
        sys__kernel__realtime="1\n",
    )
    (tmp_path / "sys/fs/cgroup/app").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu\n")
    (tmp_path / "sys/fs/cgroup/app/cpu.max").write_text("50000 100000\n")
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("max 100000\n")
    kernel_thread(tmp_path, 14, "ksoftirqd/0", 0, "R", 5, 0)
    kernel_thread(tmp_path, 15, "rcu_preempt", 1, "S", 1000, 10)
    kernel_thread(tmp_path, 16, "kworker/0:1", 0, "S", 0, 0)
    return tmp_path


def test_counts_are_those_between_the_readings(root: Path) -> None:
    state_of(root, n=10, usec=100)
    watch = MachineWatch(root, ticks_per_s=100)
    watch.begin([7])
    state_of(root, n=40, usec=700)
    kernel_thread(root, 15, "rcu_preempt", 1, "S", 3000, 60)
    watch.end([7])
    watch.after()
    found = watch.record
    assert (found.isolated_cpus, found.nohz_full_cpus, found.preempt_rt) == ("2", "", True)
    first, second = found.cpus
    assert (first.cpu, first.interrupts, first.device_interrupts, first.timer_interrupts) == (0, 30, 30, 0)
    assert (first.softirqs, first.steal_ns) == (30, 300_000_000)
    assert (second.cpu, second.interrupts, second.softirqs, second.steal_ns) == (2, 30, 30, 0)
    assert found.interrupts == {"36 virtio1-req.0": 30, "LOC": 30}
    assert found.softirqs == {"NET_RX": 60}
    starved, rcu = found.kernel_threads
    assert (starved.name, starved.policy, starved.ran_ns, starved.waits) == ("ksoftirqd/0", "OTHER", 0, True)
    assert (rcu.name, rcu.policy, rcu.priority, rcu.ran_ns, rcu.waited_ns, rcu.waits) == (
        *("rcu_preempt", "FIFO", 1),
        *(2000, 50, False),
    )
    assert found.quota is not None
    assert (found.quota.cpus, found.quota.periods, found.quota.throttled) == (0.5, 30, 0)
    assert found.quota.throttled_ns == 600_000
    assert found.network == NetworkCounts(loopback_packets=30, udp_received=30, udp_sent=0, udp_errors=0, udp_no_room=0)


def test_frequencies_are_read_again_and_again_until_the_end(root: Path) -> None:
    state_of(root, n=10, usec=100)
    frequency = root / "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq"
    write(root, **{"sys__devices__system__cpu__online": "0,2\n"})
    frequency.parent.mkdir(parents=True)
    frequency.write_text("2000000\n")
    calls: list[tuple[int, Callable[[], None]]] = []
    watch = MachineWatch(root)
    watch.begin([7])
    watch.follow(5, lambda at_ns, call: calls.append((at_ns, call)))
    assert [at_ns for at_ns, _ in calls] == [5]
    for khz in (1_000_000, 3_000_000):
        frequency.write_text(f"{khz}\n")
        calls.pop()[1]()
    watch.end([7])
    calls.pop()[1]()  # after the measured part
    assert calls == []
    found = watch.record
    assert ([cpu.frequency_hz for cpu in found.cpus], found.frequency_samples) == ([None, 2e9], 2)
    trial = Trial(trial=1, order=1, outcome=SUCCESS, machine=found)
    assert METRICS["cpu_frequency"].read(trial).value == 2e9
    assert METRICS["cpu_frequency"].format(2e9) == "2 GHz"


def test_a_machine_without_cpufreq_is_not_asked_again(tmp_path: Path) -> None:
    watch = MachineWatch(tmp_path)
    calls: list[int] = []
    watch.follow(5, lambda at_ns, call: calls.append(at_ns))
    assert calls == []
    trial = Trial(trial=1, order=1, outcome=SUCCESS, machine=watch.record)
    assert "no cpufreq" in (METRICS["cpu_frequency"].read(trial).reason or "")


def test_limits_that_changed_meanwhile_are_seen(root: Path) -> None:
    state_of(root, n=1, usec=0)
    watch = MachineWatch(root)
    watch.begin([7])
    (root / "proc/sys/kernel/sched_rt_runtime_us").write_text("-1")
    watch.end([7])
    limits = watch.record.real_time_limits
    assert limits.begin is not None
    assert limits.end is not None
    assert (limits.begin.real_time_share, limits.end.real_time_share, limits.end.runtime_us) == (0.95, 1.0, -1)
    assert limits.measured is None
    assert limits.after is None
    both: list[LimitsSeen | None] = [limits.begin, limits.end]
    assert limit_in_words(both, lambda seen: seen.real_time_share) == "changed"
    assert limit_in_words(both[:1], lambda seen: seen.real_time_share) == "95 %"
    assert limit_in_words(both, lambda seen: seen.fair_server_share) is None


def test_what_a_machine_does_not_say_is_null(tmp_path: Path) -> None:
    watch = MachineWatch(tmp_path)
    watch.begin([7])
    watch.end([7])
    found = watch.record
    assert (found.isolated_cpus, found.preempt_rt, found.quota, found.network) == (None, None, None, None)
    assert (found.cpus, found.kernel_threads) == ((), ())


def test_a_hypervisor_that_never_reported_steal_is_no_zero(root: Path) -> None:
    state_of(root, n=1, usec=0)
    (root / "proc/stat").write_text("cpu0 0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\n")
    watch = MachineWatch(root)
    watch.begin([7])
    watch.end([7])
    assert {cpu.steal_ns for cpu in watch.record.cpus} == {None}


def test_a_process_that_ended_makes_no_sum_of_packets(root: Path) -> None:
    state_of(root, n=1, usec=0)
    watch = MachineWatch(root)
    watch.begin([7])
    watch.end([])
    assert watch.record.network is None


def test_the_table_has_a_row_for_each_result_that_recorded_it() -> None:
    held = LimitsSeen(real_time_share=1.0, fair_server_share=0.0, runtime_us=-1, period_us=1_000_000)
    cpu = CpuCounts(cpu=1, interrupts=500, device_interrupts=20, timer_interrupts=480, softirqs=40, steal_ns=10_000_000)
    waiting = KernelThread(name="ksoftirqd/1", tid=22, policy="OTHER", priority=None, cpus=(1,), ran_ns=0, waits=True)
    machine = Machine(
        real_time_limits=LimitsOverTrial(before=None, begin=held, end=held, after=None),
        from_ns=0,
        until_ns=2_000_000_000,
        cpus=(cpu,),
        kernel_threads=(waiting,),
        network=NetworkCounts(loopback_packets=7, udp_received=1, udp_sent=1, udp_errors=0, udp_no_room=0),
    )
    system = SystemCounts(socket_drops=0, minor_faults=3, major_faults=0)
    trial = SimpleNamespace(machine=machine, system=system)
    other = SimpleNamespace(machine=None, system=None)
    results = [cast(Result, SimpleNamespace(merged=[trial])), cast(Result, SimpleNamespace(merged=[other]))]
    table = of_results([Of(result, name) for result, name in zip(results, ("one", "other"), strict=True)])
    (row,) = table.rows
    shown = {column.name: column.read(row) for column in table.columns if column.read is not None}
    texts = {name: cell.text for name, cell in shown.items() if isinstance(cell, Cell)}
    assert texts == {
        "real_time_share": "all",
        "fair_server_share": "none",
        "kernel_thread": "ksoftirqd/1 (OTHER): did not run",
    }
    assert (shown["interrupts_per_s"], shown["device_interrupts_per_s"], shown["softirqs_per_s"]) == (250, 10, 20)
    assert (shown["steal_percent"], shown["loopback_packets"], shown["throttled_ns"]) == (0.5, 7, None)
    assert in_words(results[0]) == (
        "real-time threads may use all of a CPU; waiting others get none of it; 7 packets on the loopback, "
        "0 socket drops, 3 minor page faults, 0 major page faults; the hypervisor took 0.5 %"
    )
    assert in_words(results[1]) == ""


def test_this_machine_says_something() -> None:
    watch = MachineWatch()
    watch.begin([os.getpid()])
    watch.end([os.getpid()])
    found = watch.record
    assert found.from_ns is not None
    assert {cpu.cpu for cpu in found.cpus} <= set(range(os.cpu_count() or 1))
    assert found.network is None or (found.network.loopback_packets or 0) >= 0
    assert all(module.KERNEL_THREAD.fullmatch(thread.name) for thread in found.kernel_threads)
