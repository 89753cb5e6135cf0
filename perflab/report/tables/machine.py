"""The machine's activity beside a workload: interrupts, what the kernel withheld from real-time threads, packets,
quotas."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from perflab.columns import Cell, Column, Table
from perflab.quantity import COUNT, PER_SECOND, PERCENT, TIME
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.machine import KernelThread, LimitsSeen, Machine
from perflab.results.trial import Result, added
from perflab.units import NS_PER_S

TITLE = "The machine in the measured part, median of the trials"
CHANGED = "changed"

Row = tuple[Result, Sequence[Machine]]
Number = float | None


def of_results(rows: Sequence[Of[Result]]) -> Table[Of[Row]]:
    """A row for each result whose trials recorded it."""
    interrupts, faults = "interrupts", "page faults"
    return Table(
        "machine",
        TITLE,
        [
            result_column(1),
            RUN,
            Column("real_time_share", "real-time threads may use", _real_time, rank=0),
            Column("fair_server_share", "others get", _others, rank=0),
            Column("interrupts_per_s", "all", _per_s(_interrupts), PER_SECOND, rank=2, group=interrupts),
            Column("device_interrupts_per_s", "of devices", _per_s(_of_devices), PER_SECOND, rank=5, group=interrupts),
            Column("softirqs_per_s", "softirqs", _per_s(_softirqs), PER_SECOND, rank=4),
            Column("steal_percent", "hypervisor took", _middle(_steal), PERCENT, rank=3, help="of all CPUs"),
            Column("throttled_ns", "withheld by quota", _middle(_throttled), TIME, rank=6, help="by the control group"),
            Column("loopback_packets", "packets on the loopback", _middle(_packets), COUNT, rank=1),
            Column("wire_packets", "packets on all interfaces", _of_trials("wire_packets"), COUNT, rank=7),
            Column("socket_drops", "socket drops", _of_trials("socket_drops"), COUNT, rank=1),
            Column("minor_faults", "minor", _of_trials("minor_faults"), COUNT, rank=3, group=faults),
            Column("major_faults", "major", _of_trials("major_faults"), COUNT, rank=3, group=faults),
            Column("kernel_thread", "longest-waiting kernel thread", _waited, rank=2),
        ],
        [row for result in rows for row in result.parts(_measured)],
        ["Packets are those of all programs in the network namespace of the workload."],
    )


def in_words(result: Result) -> str:
    """ "real-time threads may use 95 % of a CPU; 3 259 packets on the loopback, 0 socket drops"; empty: unknown."""
    parts = []
    for row in Of(result).parts(_measured):
        real_time, others = _real_time(row), _others(row)
        parts += [] if real_time is None else [f"real-time threads may use {real_time.text} of a CPU"]
        parts += [] if others is None else [f"waiting others get {others.text} of it"]
        counts = {
            "packets on the loopback": _middle(_packets)(row),
            "socket drops": _of_trials("socket_drops")(row),
            "minor page faults": _of_trials("minor_faults")(row),
            "major page faults": _of_trials("major_faults")(row),
        }
        known = [f"{COUNT.text(count)} {what}" for what, count in counts.items() if count is not None]
        parts += [", ".join(known)] if known else []
        if stolen := _middle(_steal)(row):
            parts.append(f"the hypervisor took {PERCENT.text(stolen)}")
    return "; ".join(parts)


def _measured(result: Result) -> Iterable[Row]:
    machines = [trial.machine for trial in result.merged if trial.machine is not None]
    if any(machine.from_ns is not None for machine in machines):
        yield result, machines


def limit_in_words(shares: Iterable[LimitsSeen | None], of: Callable[[LimitsSeen], float | None]) -> str | None:
    """ "95 %", "off", "changed"; None if unknown."""
    found = {None if limits is None else of(limits) for limits in shares}
    if len(found) != 1:
        return CHANGED
    share = found.pop()
    return None if share is None else "all" if share == 1 else "none" if share == 0 else f"{100 * share:.3g} %"


def _share(row: Of[Row], of: Callable[[LimitsSeen], float | None]) -> Cell | None:
    """From the trials' readings at both ends of their measured parts."""
    limits = [machine.real_time_limits for machine in row.record[1]]
    text = limit_in_words([end for held in limits for end in (held.begin, held.end)], of)
    return None if text is None else Cell(text, text, "warn" if text == CHANGED else "")


def _real_time(row: Of[Row]) -> Cell | None:
    return _share(row, lambda limits: limits.real_time_share)


def _others(row: Of[Row]) -> Cell | None:
    return _share(row, lambda limits: limits.fair_server_share)


def _middle(of: Callable[[Machine], Number]) -> Callable[[Of[Row]], Number]:
    def read(row: Of[Row]) -> Number:
        known = [value for machine in row.record[1] if (value := of(machine)) is not None]
        return statistics.median(known) if known else None

    return read


def _per_s(of: Callable[[Machine], Number]) -> Callable[[Of[Row]], Number]:
    def rate(machine: Machine) -> Number:
        count, seconds = of(machine), _seconds(machine)
        return None if count is None or not seconds else count / seconds

    return _middle(rate)


def _of_trials(name: str) -> Callable[[Of[Row]], Number]:
    """A count of the operating system for the workload's processes."""

    def read(row: Of[Row]) -> Number:
        systems = [trial.system for trial in row.record[0].merged if trial.system is not None]
        known = [value for system in systems if (value := getattr(system, name)) is not None]
        return statistics.median(known) if known else None

    return read


def _seconds(machine: Machine) -> Number:
    ends = machine.from_ns, machine.until_ns
    return None if ends[0] is None or ends[1] is None else (ends[1] - ends[0]) / NS_PER_S


def _interrupts(machine: Machine) -> Number:
    return added(cpu.interrupts for cpu in machine.cpus)


def _of_devices(machine: Machine) -> Number:
    return added(cpu.device_interrupts for cpu in machine.cpus)


def _softirqs(machine: Machine) -> Number:
    return added(cpu.softirqs for cpu in machine.cpus)


def _steal(machine: Machine) -> Number:
    stolen, seconds = added(cpu.steal_ns for cpu in machine.cpus), _seconds(machine)
    return None if stolen is None or not seconds else 100 * stolen / (seconds * NS_PER_S * len(machine.cpus))


def _throttled(machine: Machine) -> Number:
    """None without a quota."""
    quota = machine.quota
    return None if quota is None or quota.cpus is None else quota.throttled_ns


def _packets(machine: Machine) -> Number:
    return None if machine.network is None else machine.network.loopback_packets


def _waited(row: Of[Row]) -> Cell | None:
    """Over all trials; one that waited all the time has no time of its own."""
    threads = [thread for machine in row.record[1] for thread in machine.kernel_threads]
    if never := next((thread for thread in threads if thread.waits), None):
        return Cell(f"{_named(never)}: did not run", never.name, "bad")
    longest = max((t for t in threads if t.waited_ns), key=lambda t: t.waited_ns or 0, default=None)
    return None if longest is None else Cell(f"{_named(longest)}: {TIME.text(longest.waited_ns or 0)}", longest.name)


def _named(thread: KernelThread) -> str:
    return f"{thread.name} ({thread.policy}{f' {thread.priority}' if thread.priority else ''})"
