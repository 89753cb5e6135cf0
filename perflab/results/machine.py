"""What the machine did in a trial beside the workload, as reported by its kernel. Values that it does not report are
null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perflab.models import Count


@dataclass(frozen=True, kw_only=True)
class LimitsSeen:
    """The limits of real-time threads at one instant (docs/realtime.md)."""

    real_time_share: float | None
    """Share of a CPU that real-time threads together may use; 1: no limit."""
    fair_server_share: float | None
    """Share that waiting threads of other policies still get; 0: none."""
    runtime_us: int | None
    """`sched_rt_runtime_us`; -1: no limit."""
    period_us: int | None


@dataclass(frozen=True, kw_only=True)
class LimitsOverTrial:
    before: LimitsSeen | None = None
    """Before the conditions of the trial began."""
    begin: LimitsSeen | None = None
    """At the beginning of the measured part."""
    end: LimitsSeen | None = None
    after: LimitsSeen | None = None
    """When the conditions had been removed."""

    @property
    def measured(self) -> LimitsSeen | None:
        """The value during the measured part; null if it changed, or was not read at both ends."""
        return self.begin if self.begin == self.end else None


@dataclass(frozen=True, kw_only=True)
class CpuCounts:
    """The activity of one CPU between the two readings."""

    cpu: int
    interrupts: Count | None
    """All lines of /proc/interrupts."""
    device_interrupts: Count | None
    """Its numbered lines."""
    timer_interrupts: Count | None
    """Of the local timer; null if the architecture has another name for it."""
    softirqs: Count | None
    steal_ns: Count | None
    """Time in which the hypervisor ran something else, in ticks of 10 ms; null if it has reported none since boot."""
    frequency_hz: float | None = None
    """Mean frequency reported by cpufreq in the measured part; null if the machine has no cpufreq."""


@dataclass(frozen=True, kw_only=True)
class KernelThread:
    """A kernel thread that others wait for: softirqs, timers, RCU, interrupts."""

    name: str
    tid: Count
    policy: str | None
    priority: int | None
    """Real-time priority; null without one."""
    cpus: tuple[int, ...]
    ran_ns: Count | None = None
    """Between the two readings; likewise below."""
    waited_ns: Count | None = None
    """Waiting time for a CPU, of completed waits: a current one is in `waits`."""
    waits: bool | None = None
    """Whether it was ready at the second reading and had not run since the first."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The CPU time that the control group of perflab and the workload may use, at the tightest level."""

    cpus: float | None
    """Number of CPUs; null: no limit."""
    periods: Count | None = None
    """Between the two readings; likewise below, over all levels that count it."""
    throttled: Count | None = None
    """Periods in which the quota was used up."""
    throttled_ns: Count | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkCounts:
    """All traffic in the network namespaces of the workload's processes, including that of other programs."""

    loopback_packets: Count | None
    """Received on the loopback; each was sent once."""
    udp_received: Count | None
    udp_sent: Count | None
    udp_errors: Count | None
    """Datagrams that were not delivered: no room, bad checksum."""
    udp_no_room: Count | None
    """Those for which a socket had no room."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    isolated_cpus: str | None = None
    """In the kernel's format; empty: none."""
    nohz_full_cpus: str | None = None
    """CPUs without a timer tick, in the same format."""
    preempt_rt: bool | None = None
    preemption: str | None = None
    """As reported by the kernel: real-time, full, dynamic, \"voluntary or none\"."""
    real_time_limits: LimitsOverTrial = LimitsOverTrial()
    from_ns: int | None = None
    """The two readings, CLOCK_MONOTONIC: right before the measured part, and when everything was published."""
    until_ns: int | None = None
    cpus: tuple[CpuCounts, ...] = ()
    frequency_samples: Count | None = None
    """How often frequencies were read in the measured part; null if the machine has no cpufreq."""
    interrupts: Mapping[str, Count] = field(default_factory=dict)
    """Over all CPUs, by line of /proc/interrupts; without those that did not happen."""
    softirqs: Mapping[str, Count] = field(default_factory=dict)
    """Likewise from /proc/softirqs."""
    kernel_threads: tuple[KernelThread, ...] = ()
    quota: Quota | None = None
    network: NetworkCounts | None = None
