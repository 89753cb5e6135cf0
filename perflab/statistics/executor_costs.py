"""The cost of executors: CPU time per delivered message, beside the same middleware without an executor.

One row per treatment, with one value per trial behind each figure. The reference of a treatment is the one on the same
middleware without an executor: if a generated workload has cases, the case `middleware`, else the executor `inline`,
whose callbacks run in the middleware's threads. Everything else is the same in both. The ratio to it is Hodges and
Lehmann's shift of the logarithms, within blocks if there are some, as in findings.

Shares of thread roles cover all trials of a row together. Shares of families and the phases of executors come from
extra trials (observers cpu_profile, tracing), which enter no other figure; if there are several, from the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from perflab import quantity
from perflab.results.comparison import Estimate
from perflab.results.costs import CostRatio, CostRow, ExecutorCosts
from perflab.results.figure import Median
from perflab.results.trial import Circumstances, Cost, Families, PhaseRow, Phases, Result, RoleShare, Trial
from perflab.statistics.cost import COUNTERS, ENDED, ROLES
from perflab.statistics.metrics import METRICS, Measured, Metric
from perflab.statistics.sample import Sample, as_median, design
from perflab.statistics.selection import sample_of, why_missing

INLINE = "inline"
CASE = "workload.case"  # the factor whose level selects what a generated workload leaves out
MIDDLEWARE, PLAIN = "middleware", "plain"  # its levels without an executor, and also without a middleware

# Groups of families in a table; symbols of no family are `other`.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "application": ("application",),
    "rclcpp": ("rclcpp",),
    "executor": ("perflab_runtime",),
    "rcl": ("rcl",),
    "rmw": ("rmw",),
    "dds": ("cyclonedds", "fastdds"),
    "kernel": ("kernel_network", "kernel_scheduler", "kernel_memory", "kernel_other"),
}
OTHER = "other"

# Rows of the answer `executor` that a table of costs has, each with the row above it.
PHASES: Mapping[str, str | None] = {
    "thread": None,
    "spin": "thread",
    "get_next_executable": "spin",
    "get_next_ready_executable": "get_next_executable",
    "wait_for_work": "get_next_executable",
    "execute": "spin",
    "dispatch": "spin",
}
LEAST_SAMPLES = 10  # of a profile, as in perflab.profile.families
NOT_SEEN = "no trial had the observer {}, or its records are too short or unreadable"
MIN_KNOWN = 0.9  # share of a duration that the scheduler's events must cover, as in perflab.trace.executor


def _per_tick(trial: Trial) -> Measured:
    used, ticks = METRICS["cpu_percent"].read(trial), trial.ticks_per_s
    if used.value is None:
        return used.reason
    if not ticks:
        return "messages are delivered" if ticks is None else "there are no timers"
    return used.value / 100 * 1e9 / ticks


_PER_TICK = Metric(
    "cpu_per_tick", "CPU per timer tick", quantity.TIME, _per_tick, "CPU time of all processes for each tick"
)

# Metrics by key of a row; those of time are in nanoseconds.
FIGURES: Mapping[str, str] = {
    "cpu_per_message_ns": "cpu_per_message",
    "cpu_per_tick_ns": _PER_TICK.name,
    "cpu_percent": "cpu_percent",
    "cycles_per_message": "cycles_per_message",
    "instructions_per_message": "instructions_per_message",
    "latency_p50_ns": "latency.p50",
    "latency_p99_ns": "latency.p99",
    "response_p50_ns": "response.p50",
    "response_p99_ns": "response.p99",
}


def _metric(key: str) -> Metric:
    return METRICS.get(FIGURES[key], _PER_TICK)


def of(results: Sequence[Result], alpha: float = 0.05) -> ExecutorCosts | None:
    """The cost of each treatment; None if no CPU time was measured, as in virtual time."""
    shown = [r for r in results if r.is_regular and r.entering]
    if not any(_reading(r, "cpu_percent").n for r in shown):
        return None
    extra = [r for r in results if r.is_extra]
    return ExecutorCosts(level=1 - alpha, rows=tuple(_row(i, shown, extra, 1 - alpha) for i in range(len(shown))))


def is_about_executors(rows: Sequence[CostRow]) -> bool:
    """Whether readers of these rows need a table of costs."""
    return len({row.executor for row in rows}) > 1 or any(CASE in row.factors for row in rows)


def _row(index: int, results: Sequence[Result], extra: Sequence[Result], confidence: float) -> CostRow:
    result = results[index]
    trials = result.entering
    reference, ratio = _compared(index, results, confidence)
    figures: dict[str, Any] = {
        key: _figure(_reading(result, key), confidence, why_missing(trials, _metric(key))) for key in FIGURES
    }
    costs = [t.cost for t in trials if t.cost is not None]
    roles, roles_reason = _roles(costs)
    # Rows of the same treatment, with any observers.
    own = [result, *(r for r in extra if _treatment(r) == _treatment(result))]
    seen = [trial for r in own for trial in r.trials_detail]
    families = next((replace(t.families, trial=t.trial) for t in seen if t.families is not None), None)
    phases = next((replace(t.phases, trial=t.trial) for t in seen if t.phases is not None), None)
    return CostRow(
        **{f.name: getattr(result, f.name) for f in fields(Circumstances)},
        trials=len(trials),
        **figures,
        reference=reference,
        ratio=ratio,
        roles=roles,
        roles_reason=roles_reason,
        families=families,
        families_reason=None if families else NOT_SEEN.format("cpu_profile"),
        phases=phases,
        phases_reason=None if phases else NOT_SEEN.format("tracing"),
        not_counted={
            counter: str(getattr(costs[0], f"{counter}_reason"))
            for counter in COUNTERS
            if costs and all(getattr(cost, counter) is None for cost in costs)
        },
        notes=tuple(dict.fromkeys(note for cost in costs for note in cost.notes)),
    )


def _reading(result: Result, key: str) -> Sample:
    return sample_of(result.entering, _metric(key), "")


def _figure(sample: Sample, confidence: float, reason: str | None) -> Median:
    """The median over trials with its interval."""
    if not sample.n:
        return as_median(Estimate(None, reason=reason or "not measured"), 0, confidence)
    if sample.n == 1:  # nothing to estimate; the estimating code takes a second to import
        return as_median(Estimate(sample.values[0], reason="1 trial is too few for an interval"), 1, confidence)
    from perflab.statistics import estimate

    return estimate.median_of(sample, confidence)


# -- the ratio -------------------------------------------------------------------------------------------------------


def _compared(index: int, results: Sequence[Result], confidence: float) -> tuple[int | None, CostRatio]:
    """The place of the reference, and the ratio to it: of CPU per message, or of CPU if nothing is delivered."""
    result = results[index]
    key = "cpu_per_message_ns" if _reading(result, "cpu_per_message_ns").n else "cpu_percent"
    second, reference = _reading(result, key), _reference(index, results, key)
    first = _reading(results[reference], key) if reference is not None else second
    n, paired = 0, False
    if not second.n:
        reference, found = None, Estimate(None, reason=why_missing(result.entering, _metric(key)))
    elif reference is None:
        found = Estimate(None, reason=_no_reference(result, results))
    elif reference == index:
        found = Estimate(1.0, reason="it is the reference itself")
    elif not (first.positive and second.positive):
        found = Estimate(None, reason="a ratio needs CPU times above 0")
    elif first.n == 1 == second.n:
        n, found = 1, Estimate(second.values[0] / first.values[0], reason="1 trial of each is too few for an interval")
    else:
        from perflab.statistics.difference import shift

        compared = design(first.mapped(math.log), second.mapped(math.log))
        found, n, paired = shift(compared, confidence).mapped(math.exp), len(compared.b), compared.blocked
    return reference, CostRatio(**vars(as_median(found, n, confidence)), of=key, paired=paired)


def _reference(index: int, results: Sequence[Result], key: str) -> int | None:
    """The case without an executor, if there is one; else the same with the executor inline.

    For timers alone the reverse, as their traffic is different; for `plain`, on no middleware, the case middleware if
    there is only one.
    """
    own = results[index]
    plain = _case(own) == PLAIN
    alike = [
        i
        for i, other in enumerate(results)
        if _reading(other, key).n and _surroundings(other, plain) == _surroundings(own, plain)
    ]
    by_case = sorted(filter(lambda i: _is_middleware(results[i]), alike), key=lambda i: (results[i].ipc != own.ipc, i))
    if plain:
        return by_case[0] if len({results[i].middleware for i in by_case}) == 1 else None
    inline = [
        i
        for i in alike
        if results[i].executor == INLINE and _case(results[i]) == _case(own) and results[i].ipc == own.ipc
    ]
    found = [*by_case, *inline] if key == "cpu_per_message_ns" else [*inline, *by_case]
    return found[0] if found else None


def _surroundings(result: Result, any_middleware: bool) -> tuple[object, ...]:
    """What a result and its reference share: everything but the executor, the case and the way of delivery."""
    factors = {path: level for path, level in result.factors.items() if path != CASE}
    middleware = None if any_middleware else result.middleware
    return result.workload, middleware, result.pass_by, result.treatment, factors


def _is_middleware(result: Result) -> bool:
    return _case(result) == MIDDLEWARE and result.executor in (None, INLINE)


def _no_reference(result: Result, results: Sequence[Result]) -> str:
    if _case(result) != PLAIN:
        how = "the executor inline" if _case(result) is None else "the case middleware, or the executor inline"
        return f"no treatment on {result.middleware} runs without an executor ({how})"
    if any(_is_middleware(other) for other in results):
        return "it runs on no middleware, but the case middleware ran on several"
    return "it runs on no middleware, but the case middleware did not run"


def _case(result: Result) -> Any:
    return result.factors.get(CASE)


def _treatment(result: Result) -> tuple[object, ...]:
    return result.variant, result.treatment, result.factors


# -- where the CPU time went ------------------------------------------------------------------------------------------


def _roles(costs: Sequence[Cost]) -> tuple[dict[str, float] | None, str | None]:
    """The share of each role of threads in the CPU time, or why it is unknown."""
    # The threads' sum: they are read after their process, so together they may have slightly more than it.
    total = sum(sum(cost.roles.values()) for cost in costs)
    if not costs:
        return None, "the threads' CPU time over the measured part was not recorded"
    if not total:
        return None, "no CPU time was used"
    names = dict.fromkeys((*ROLES, *(role for cost in costs for role in cost.roles if role != ENDED), ENDED))
    return {name: sum(cost.roles.get(name, 0) for cost in costs) / total for name in names}, None


def families_of(document: Mapping[str, Any], roles: Mapping[int, str]) -> Families | None:
    """`families` of a trial from its profile.json: shares of the CPU time, of all threads and of those of each role.

    `roles` are by thread id. Shares are of CPU time, from 0 to 1. None if there are too few samples.
    """
    if document["quality"]["samples"] < LEAST_SAMPLES:
        return None
    whole: dict[str, float] = {}
    parts: dict[str, dict[str, float]] = {}
    for process in document["processes"]:
        for thread in process["threads"]:
            of_role = parts.setdefault(roles.get(thread["tid"], ENDED), {})
            for row in thread["families"]:
                for into in (whole, of_role):
                    into[row["family"]] = into.get(row["family"], 0) + row["self_weight"]
    return Families(
        samples=document["quality"]["samples"],
        titles={name: document["families"].get(name, name) for name in whole},
        shares=_shares(whole),
        groups=grouped(_shares(whole)),
        by_role={
            role: RoleShare(share=sum(part.values()) / sum(whole.values()), groups=grouped(_shares(part)))
            for role, part in parts.items()
            if sum(part.values())
        },
        warnings=tuple(document.get("warnings") or ()),
    )


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in sorted(weights.items(), key=lambda w: -w[1])} if total else {}


def grouped(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of families grouped as in GROUPS, and the rest; empty if there are none."""
    if not shares:
        return {}
    found = {group: sum(shares.get(name, 0.0) for name in names) for group, names in GROUPS.items()}
    inside = {name for names in GROUPS.values() for name in names}
    return {**found, OTHER: sum(share for name, share in shares.items() if name not in inside)}


def phases_of(document: Mapping[str, Any]) -> Phases | None:
    """`phases` of a trial from the answer of `perflab trace executor`: all executor threads together.

    None if no thread has phases. CPU time is null if the scheduler's events cover too little of the time.
    """
    rows = document["executor"]["rows"]
    by_function: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["function"] in PHASES:
            by_function.setdefault(row["function"], []).append(row)
    if "thread" not in by_function:
        return None
    wall = {name: sum(row["wall_ns"] or 0 for row in own) for name, own in by_function.items()}
    told = {  # the part of it that the scheduler's events cover
        name: sum((row["wall_ns"] or 0) * (row["known_percent"] or 0) / 100 for row in own)
        for name, own in by_function.items()
    }
    cpu = {
        name: sum(row["on_cpu_ns"] or 0 for row in own) if told[name] >= MIN_KNOWN * wall[name] else None
        for name, own in by_function.items()
    }
    uncovered = any(value is None for value in cpu.values())
    return Phases(
        threads=len(by_function["thread"]),
        reason="the scheduler's events are missing, or cover too little of it" if uncovered else None,
        rows=tuple(
            PhaseRow(
                function=name,
                depth=_depth(name),
                count=sum(row["count"] for row in own),
                wall_ns=wall[name],
                on_cpu_ns=cpu[name],
                cpu_usage=_part(cpu[name], told[name]),
                of_thread=_part(cpu[name], cpu["thread"]),
                of_parent=None if (above := PHASES[name]) is None else _part(cpu[name], cpu.get(above)),
            )
            for name, own in by_function.items()
        ),
    )


def _part(value: float | None, whole: float | None) -> float | None:
    return None if value is None or not whole else value / whole


def _depth(name: str) -> int:
    above = PHASES[name]
    return 0 if above is None else 1 + _depth(above)
