"""The machine's activity in a trial: read before it, right before its measured part, when everything was published, and
after.

A reading takes about a millisecond of perflab's own CPU time and starts no program.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perflab.host import Host
from perflab.kernel import CPU, Files, parse_cpu_list
from perflab.processes import pids, stat_fields
from perflab.real_time import PERIOD_US, RUNTIME_US, real_time_limits
from perflab.results.machine import (
    CpuCounts,
    KernelThread,
    LimitsOverTrial,
    LimitsSeen,
    Machine,
    NetworkCounts,
    Quota,
)
from perflab.results.trial import added
from perflab.units import NS_PER_S

# Those on which messages and timers depend: softirqs, timers of PREEMPT_RT, RCU, interrupts.
KERNEL_THREAD = re.compile(r"ksoftirqd/\d+|ktimers/\d+|rcu\w*(?:/\d+)?|irq/.+")
KERNEL_PARENT = 2  # kthreadd, the parent of all kernel threads
TIMER_LINES = ("LOC", "arch_timer")
FREQUENCY_INTERVAL_NS = NS_PER_S // 2  # between two readings of all CPUs
POLICIES = {0: "OTHER", 1: "FIFO", 2: "RR", 3: "BATCH", 5: "IDLE", 6: "DEADLINE"}
STATE, PARENT, PRIORITY, POLICY = 0, 1, 37, 38  # in `stat_fields`, which begin with the third of proc(5)
_UDP = {
    "udp_received": "InDatagrams",
    "udp_sent": "OutDatagrams",
    "udp_errors": "InErrors",
    "udp_no_room": "RcvbufErrors",
}

Lines = Mapping[str, tuple[int, ...]]  # a count for each CPU, by line


@dataclass(frozen=True)
class _Waited:
    ready: bool
    ran_ns: int
    waited_ns: int


@dataclass(frozen=True)
class _Reading:
    at_ns: int
    limits: LimitsSeen
    cpus: tuple[int, ...]
    interrupts: Lines
    softirqs: Lines
    steal_ticks: Mapping[int, int]
    threads: Mapping[int, _Waited]
    periods: int | None
    throttled: int | None
    throttled_ns: int | None
    network: Mapping[int, Mapping[str, int | None]]  # by namespace


class MachineWatch:
    """Of one trial, on the machine below `root`."""

    def __init__(self, root: Path = Path("/"), ticks_per_s: int | None = None) -> None:
        self._files = Files(root)
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")
        self._before = limits_seen(root)
        self._after: LimitsSeen | None = None
        self._threads = kernel_threads(root)
        self._begin: _Reading | None = None
        self._end: _Reading | None = None
        self._frequencies_khz: dict[int, list[int]] = {}

    def begin(self, processes: Iterable[int]) -> None:
        """`processes` are those of the workload, for their network namespaces."""
        self._begin = self._read(processes)

    def end(self, processes: Iterable[int]) -> None:
        self._end = self._read(processes)

    def follow(self, from_ns: int, call_at: Callable[[int, Callable[[], None]], None]) -> None:
        """Reads the frequencies of the CPUs from that instant to `end`, if the machine has them.

        `call_at` schedules a call at an instant of CLOCK_MONOTONIC.
        """
        self._frequencies_khz = {cpu: [] for cpu in self._files.online() if self._khz(cpu) is not None}

        def look() -> None:
            if self._end is None:
                for cpu, found in self._frequencies_khz.items():
                    if (khz := self._khz(cpu)) is not None:
                        found.append(khz)
                call_at(time.monotonic_ns() + FREQUENCY_INTERVAL_NS, look)

        if self._frequencies_khz:
            call_at(from_ns, look)

    def _khz(self, cpu: int) -> int | None:
        return self._files.number(f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq")

    def after(self) -> None:
        self._after = limits_seen(self._files.root)

    @property
    def record(self) -> Machine:
        files, begin, end = self._files, self._begin, self._end
        host = Host(files.root)
        nohz = files.text(f"{CPU}/nohz_full")
        known = Machine(
            isolated_cpus=files.text(f"{CPU}/isolated"),
            nohz_full_cpus="" if nohz == "(null)" else nohz,
            preempt_rt=host.preempt_rt(),
            preemption=host.preemption(),
            real_time_limits=LimitsOverTrial(
                before=self._before,
                begin=None if begin is None else begin.limits,
                end=None if end is None else end.limits,
                after=self._after,
            ),
            kernel_threads=self._threads,
        )
        if begin is None or end is None:
            return known
        return replace(
            known,
            from_ns=begin.at_ns,
            until_ns=end.at_ns,
            cpus=tuple(self._cpu(cpu, begin, end) for cpu in end.cpus if cpu in begin.cpus),
            frequency_samples=max(map(len, self._frequencies_khz.values()), default=None),
            interrupts=_happened(begin.interrupts, end.interrupts),
            softirqs=_happened(begin.softirqs, end.softirqs),
            kernel_threads=tuple(_over(thread, begin, end) for thread in self._threads),
            quota=self._quota(begin, end),
            network=_network(begin, end),
        )

    def _read(self, processes: Iterable[int]) -> _Reading:
        files = self._files
        cpus, interrupts = _table(files.text("proc/interrupts"))
        more, softirqs = _table(files.text("proc/softirqs"))
        threads = {t.tid: seen for t in self._threads if (seen := _waited(files.root, t.tid)) is not None}
        return _Reading(
            at_ns=time.monotonic_ns(),
            limits=limits_seen(files.root),
            cpus=cpus or more,
            interrupts=interrupts,
            softirqs=_of_cpus(softirqs, more, cpus) if cpus else softirqs,
            steal_ticks=_steal(files.text("proc/stat")),
            threads=threads,
            **self._throttled(),
            network=dict(filter(None, (_namespace(files.root, pid) for pid in processes))),
        )

    def _cpu(self, cpu: int, begin: _Reading, end: _Reading) -> CpuCounts:
        place = (begin.cpus.index(cpu), end.cpus.index(cpu))

        def counted(begin_: Lines, end_: Lines, wanted: Iterable[str]) -> int | None:
            lines = [line for line in wanted if line in end_]
            # A line may appear meanwhile: a new device.
            then = sum(begin_[line][place[0]] for line in lines if line in begin_)
            return sum(end_[line][place[1]] for line in lines) - then if lines else None

        lines = list(end.interrupts)
        devices, timers = [n for n in lines if n.split(" ")[0].isdigit()], [n for n in lines if n in TIMER_LINES]
        known = any(end.steal_ticks.values())
        stolen = _grown(begin.steal_ticks.get(cpu), end.steal_ticks.get(cpu)) if known else None
        return CpuCounts(
            cpu=cpu,
            interrupts=counted(begin.interrupts, end.interrupts, lines),
            device_interrupts=counted(begin.interrupts, end.interrupts, devices),
            timer_interrupts=counted(begin.interrupts, end.interrupts, timers),
            softirqs=counted(begin.softirqs, end.softirqs, list(end.softirqs)),
            steal_ns=None if stolen is None else stolen * NS_PER_S // self._ticks_per_s,
            frequency_hz=1000 * sum(khz) / len(khz) if (khz := self._frequencies_khz.get(cpu)) else None,
        )

    def _throttled(self) -> dict[str, int | None]:
        """For the group and those above it, each of which may have its own quota."""
        group = self._files.cgroup()
        tables = [
            dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
            for level in (group.levels("cpu") if group else ())
            if (text := Files(level).text("cpu.stat")) is not None
        ]
        with_quota = [table for table in tables if "nr_periods" in table]

        def over(key: str, factor: int = 1) -> int | None:
            return added(int(table[key]) * factor for table in with_quota if key in table)

        own = over("throttled_time")
        return {
            "periods": over("nr_periods"),
            "throttled": over("nr_throttled"),
            "throttled_ns": over("throttled_usec", 1000) if own is None else own,
        }

    def _quota(self, begin: _Reading, end: _Reading) -> Quota | None:
        group = self._files.cgroup()
        quotas = [] if group is None else group.cpu_quotas()
        if not quotas:
            return None
        return Quota(
            cpus=min((quota for quota in quotas if not isinstance(quota, str)), default=None),
            periods=_grown(begin.periods, end.periods),
            throttled=_grown(begin.throttled, end.throttled),
            throttled_ns=_grown(begin.throttled_ns, end.throttled_ns),
        )


def limits_seen(root: Path = Path("/")) -> LimitsSeen:
    found, files = real_time_limits(root), Files(root)
    return LimitsSeen(
        real_time_share=found.throttle,
        fair_server_share=found.fair_server,
        runtime_us=files.number(RUNTIME_US),
        period_us=files.number(PERIOD_US),
    )


def kernel_threads(root: Path = Path("/")) -> tuple[KernelThread, ...]:
    """Those that others wait for, by process id; none if /proc hides them, as in a container."""
    files, proc = Files(root), root / "proc"
    found = []
    for pid in sorted(pids(proc)):
        fields = stat_fields(proc / str(pid) / "stat")
        if fields is None or int(fields[PARENT]) != KERNEL_PARENT:
            continue
        name = files.text(f"proc/{pid}/comm")
        if name is None or not KERNEL_THREAD.fullmatch(name):
            continue
        allowed = files.table(f"proc/{pid}/status").get("Cpus_allowed_list", "")
        thread = KernelThread(
            name=name,
            tid=pid,
            policy=POLICIES.get(int(fields[POLICY])),
            priority=int(fields[PRIORITY]) or None,
            cpus=tuple(parse_cpu_list(allowed)),
        )
        found.append(thread)
    return tuple(found)


def _waited(root: Path, pid: int) -> _Waited | None:
    fields = stat_fields(root / "proc" / str(pid) / "stat")
    counts = (Files(root).text(f"proc/{pid}/schedstat") or "").split()
    return _Waited(fields[STATE] == "R", int(counts[0]), int(counts[1])) if fields and len(counts) == 3 else None


def _over(thread: KernelThread, begin: _Reading, end: _Reading) -> KernelThread:
    then, now = begin.threads.get(thread.tid), end.threads.get(thread.tid)
    if then is None or now is None:
        return thread
    ran = now.ran_ns - then.ran_ns
    return replace(
        thread, ran_ns=ran, waited_ns=now.waited_ns - then.waited_ns, waits=then.ready and now.ready and ran == 0
    )


def _table(text: str | None) -> tuple[tuple[int, ...], Lines]:
    """The CPUs of /proc/interrupts or /proc/softirqs, and the counts of each line: "LOC", "36 virtio1-req.0"."""
    head, *lines = (text or "").splitlines() or [""]
    cpus = tuple(int(word[3:]) for word in head.split() if re.fullmatch(r"CPU\d+", word))
    found: dict[str, tuple[int, ...]] = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        counts = words[: len(cpus)]
        if len(counts) < len(cpus) or not all(word.isdigit() for word in counts):
            continue  # ERR and MIS have one count for all CPUs
        name = name.strip()
        what = f" {words[-1]}" if name.isdigit() and len(words) > len(cpus) else ""
        found[name + what] = tuple(map(int, counts))
    return cpus, found


def _of_cpus(lines: Lines, cpus: tuple[int, ...], wanted: tuple[int, ...]) -> Lines:
    """In the order of `wanted`: /proc/softirqs has possible CPUs, /proc/interrupts only online ones."""
    places = [cpus.index(cpu) for cpu in wanted] if set(wanted) <= set(cpus) else None
    return {} if places is None else {line: tuple(counts[p] for p in places) for line, counts in lines.items()}


def _happened(begin: Lines, end: Lines) -> dict[str, int]:
    grown = {line: sum(counts) - sum(begin.get(line, ())) for line, counts in end.items()}
    return {line: count for line, count in grown.items() if count > 0}


def _steal(text: str | None) -> dict[int, int]:
    """By CPU, in ticks since boot."""
    lines = [line.split() for line in (text or "").splitlines() if re.match(r"cpu\d", line)]
    return {int(words[0][3:]): int(words[8]) for words in lines if len(words) > 8}


def _namespace(root: Path, pid: int) -> tuple[int, dict[str, int | None]] | None:
    files = Files(root)
    try:
        namespace = (root / f"proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None
    udp = [line.split() for line in (files.text(f"proc/{pid}/net/snmp") or "").splitlines() if line.startswith("Udp:")]
    counts = dict(zip(udp[0], udp[1], strict=False)) if len(udp) == 2 else {}
    loopback = files.table(f"proc/{pid}/net/dev").get("lo", "").split()
    of_udp = {name: int(counts[key]) if key in counts else None for name, key in _UDP.items()}
    return namespace, {"loopback_packets": int(loopback[1]) if len(loopback) > 1 else None, **of_udp}


def _network(begin: _Reading, end: _Reading) -> NetworkCounts | None:
    """For namespaces that existed at both readings."""
    both = begin.network.keys() & end.network.keys()
    if not both or begin.network.keys() != end.network.keys():
        return None
    names = ("loopback_packets", *_UDP)
    return NetworkCounts(**{n: added(_grown(begin.network[k][n], end.network[k][n]) for k in both) for n in names})


def _grown(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else end - begin
