"""The figures that a performance target of irobot_benchmark bounds, of a result or of one trial."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from perflab.kernel import parse_cpu_list
from perflab.results.figure import Distribution
from perflab.results.trial import HasCounts, ProcessResources, added, counted, largest, owners

# Meaning of the columns, and their units.
WORDS: Mapping[str, tuple[str, str]] = {
    "cpu_perc": ("CPU", "% of all CPUs"),
    "rss_KB": ("RSS, peak", "KB"),
    "mean_us": ("latency, mean", "µs"),
    "late_msgs": ("late", "messages"),
    "late_perc": ("late", "% of received"),
    "too_late_msgs": ("too late", "messages"),
    "too_late_perc": ("too late", "% of received"),
    "lost_msgs": ("lost", "messages"),
    "lost_perc": ("lost", "% of sent"),
}


def measured(
    result: HasCounts, processes: Sequence[ProcessResources], cpus: int | None, *, one_class_of_loss: bool = False
) -> dict[str, float | None]:
    """Every figure by column name, over subscriptions and clients, as in latency_total.txt; None: not measured.

    CPU is the sum over `processes` as a share of all `cpus` of the machine, memory that of the largest of them.
    `one_class_of_loss`: only gaps are known, as in a run of another program.
    """
    one = added([p.cpu_percent_mean for p in processes])
    machine = added([p.cpu_percent_of_machine for p in processes])
    if machine is None and one is not None and cpus is not None:
        machine = one / cpus
    received = counted(result, lambda owner: owner.received)
    late = counted(result, lambda owner: owner.late)
    too_late = counted(result, lambda owner: owner.too_late)
    lost = counted(result, lambda owner: owner.lost.gap if one_class_of_loss else owner.all_lost)
    mean_ns = _mean_ns(result)
    return {
        "cpu_perc": machine,
        "rss_KB": largest([p.rss_kb_max for p in processes]),
        "mean_us": None if mean_ns is None else mean_ns / 1000,
        "late_msgs": late,
        "late_perc": _percent(late, received),
        "too_late_msgs": too_late,
        "too_late_perc": _percent(too_late, received),
        "lost_msgs": lost,
        "lost_perc": None if lost is None or received is None else _percent(lost, received + lost),
    }


def exceeded(
    bounds: Mapping[str, float], result: HasCounts, processes: Sequence[ProcessResources], cpus: int | None
) -> tuple[list[str], list[str]]:
    """The columns that exceed their bounds, and those that were not measured."""
    values = measured(result, processes, cpus)
    over = [key for key, bound in bounds.items() if (value := values[key]) is not None and value > bound]
    return over, [key for key in bounds if values[key] is None]


def machine_cpus(host: Mapping[str, Any]) -> int | None:
    """How many CPUs a machine had online, from its facts."""
    text = host.get("cpus_online")
    return len(parse_cpu_list(text)) or None if isinstance(text, str) else None


def processes_of(result: HasCounts, topology: str | None) -> Sequence[ProcessResources]:
    """The process with the name of a target's topology; without one, all."""
    processes = result.resources.processes
    return [p for p in processes if p.process == topology] or processes


def _mean_ns(result: HasCounts) -> float | None:
    """Over all messages and replies; None if some of them have no known mean."""
    means: list[float] = []
    counts: list[int | None] = []
    for owner in owners(result):
        times = owner.times_ns or Distribution()
        count = owner.received if times.count is None else times.count
        if count == 0:
            continue
        if times.mean is None:
            return None
        means.append(times.mean)
        counts.append(count)
    if len(means) < 2:
        return means[0] if means else None
    known = [count for count in counts if count is not None]
    return sum(map(operator.mul, known, means)) / sum(known) if len(known) == len(counts) else None


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole
