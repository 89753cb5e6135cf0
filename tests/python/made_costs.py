"""Summaries of runs with several executors whose costs are known."""

from __future__ import annotations

from typing import Any

from made_experiment import read_results, result, trial

from perflab.models import as_json
from perflab.statistics import executor_costs

Json = dict[str, Any]

TITLES = {"application": "application", "perflab_runtime": "perflab: executors, plug-ins", "cyclonedds": "Cyclone DDS"}
SHARES = {"perflab_runtime": 0.5, "cyclonedds": 0.2, "kernel_network": 0.2, "libc": 0.1}


def costing(number: int, cpu_percent: float, **changes: Any) -> Json:
    """A trial of 2 s and 2000 messages: 10 µs for each per cent of one CPU. Half of it is the executor's threads'."""
    made = trial(number, block=number, spread=0.0)
    cpu_ns = round(cpu_percent / 100 * 2e9)
    roles = {"executor": cpu_ns // 2, "middleware": cpu_ns // 4, "perflab": cpu_ns // 4, "tracer": 0, "ended": 0}
    cost = {
        "cpu_ns": cpu_ns, "roles": roles, "cycles": None, "cycles_reason": "this machine has no such counter",
        "instructions": None, "instructions_reason": "this machine has no such counter", "notes": [],
    }  # fmt: skip
    resources = {"cpu_percent_mean": cpu_percent, "rss_kb_max": 7000, "processes": []}
    return {**made, "resources": resources, "cost": cost, **changes}


def of_executor(executor: str | None, cpus: list[float], **changes: Any) -> Json:
    """A result with a trial for each CPU use, in blocks 1, 2, ..."""
    made = [costing(n, cpu) for n, cpu in enumerate(cpus, 1)]
    return result(changes.pop("trials_detail", made), executor=executor, **changes)


def nothing_sent(number: int, cpu_percent: float) -> Json:
    """A trial of timers alone."""
    made = costing(number, cpu_percent, ticks_per_s=500.0)
    totals = dict.fromkeys(made["totals"])
    lost = {"pre_match": None, "gap": None, "tail": None}
    return {**made, "totals": {**totals, "received": None, "lost": lost}}


def families() -> Json:
    return {
        "samples": 900, "titles": TITLES, "shares": SHARES, "groups": executor_costs.grouped(SHARES), "by_role": {},
        "warnings": [],
    }  # fmt: skip


def phase(function: str, depth: int, wall_ns: int, on_cpu_ns: int | None, known: float | None = 100.0) -> Json:
    return {
        "function": function, "depth": depth, "count": 5, "wall_ns": wall_ns, "on_cpu_ns": on_cpu_ns,
        "known_percent": known,
    }  # fmt: skip


def answer(known: float | None = 100.0) -> Json:
    """That of `perflab trace executor` about two threads, the first one that of the published table."""
    rows: list[Json] = []
    for factor in (1, 3):
        rows += [
            phase("thread", 0, 2930 * factor, 1640 * factor, known),
            phase("spin", 1, 2620 * factor, 1470 * factor, known),
            phase("get_next_executable", 2, 2440 * factor, 1300 * factor, known),
            phase("get_next_ready_executable", 3, 870 * factor, 870 * factor, known),
            phase("wait_for_work", 3, 1520 * factor, 390 * factor, known),
            phase("execute", 2, 140 * factor, 130 * factor, known),
            phase("callbacks in execute", 3, 100 * factor, 100 * factor, known),
        ]
    return {"executor": {"rows": rows}}


def summary(*, observed: bool = True, results: list[Json] | None = None) -> Json:
    """inline, single_threaded at twice its cost and events at 1.2 times; profiled and traced in extra trials."""
    made = results or [
        of_executor("inline", [10.0 + n / 100 for n in range(8)]),
        of_executor("single_threaded", [20.0 + n / 50 for n in range(8)]),
        of_executor("events", [12.0 + 1.2 * n / 100 for n in range(8)]),
    ]
    if observed:
        for executor in ("inline", "single_threaded", "events"):
            extra = costing(20, 30.0, purpose="extra", families=families())
            made.append(result([extra], executor=executor, purpose="extra", observers=["cpu_profile"]))
            traced = costing(21, 30.0, purpose="extra", phases=as_json(executor_costs.phases_of(answer())))
            made.append(result([traced], executor=executor, purpose="extra", observers=["tracing"]))
    return {
        "schema": 1, "run": "made", "valid": True, "results": made, "findings": None,
        "executor_costs": as_json(executor_costs.of(read_results(made))),
    }  # fmt: skip
