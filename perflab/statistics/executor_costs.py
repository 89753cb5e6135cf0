"""What executors cost: CPU time for what was delivered, beside the same middleware without an executor.

One row per treatment, with one value per trial behind each figure. The reference of a treatment is the one on the same
middleware that has no executor: where a generated workload has cases the case `middleware`, else the executor `inline`,
whose callbacks run in the middleware's threads. All else of the two is alike. The ratio to it is Hodges and Lehmann's
shift of the logarithms, within blocks where there are some, as in findings.

Shares of thread roles are of all trials of a row together. Shares of families and the phases of executors come from
extra trials (observers cpu_profile, tracing), which enter no other figure; of several the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflab.statistics.cost import ENDED, ROLES
from perflab.statistics.metrics import METRICS, Metric, Reading
from perflab.statistics.sample import Estimate, Sample
from perflab.statistics.selection import EXTRA, MEASURED, entering, purpose_of, sample_of, variant_of

Json = dict[str, Any]
Trial = Mapping[str, Any]

INLINE = "inline"
CASE = "workload.case"  # the factor whose level says what a generated workload leaves out
MIDDLEWARE, PLAIN = "middleware", "plain"  # its levels without an executor, and without a middleware as well

# What families are put together in a table; all of symbols that are in none of them is `other`.
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
LEAST_SAMPLES = 10  # of a profile, as in perflab.profile.table
MIN_KNOWN = 0.9  # of a duration that the scheduler's events must cover, as in perflab.trace.executor

_KEYS = ("workload", "middleware", "executor", "ipc", "pass_by", "treatment", "conditions", "factors", "duration_s")


def _per_tick(trial: Trial) -> Reading:
    percent, seconds = METRICS["cpu_percent"].read(trial), trial.get("ticks_per_s")
    if percent.value is None:
        return percent
    if not seconds:
        return Reading(None, "messages are delivered" if seconds is None else "there are no timers")
    return Reading(percent.value / 100 * 1e9 / seconds)


_PER_TICK = Metric("cpu_per_tick", "CPU per timer tick", "ns", "lower", "ratio", _per_tick)

# By key of a row; those of time are in nanoseconds.
FIGURES: Mapping[str, Metric] = {
    "cpu_per_message_ns": METRICS["cpu_per_message"],
    "cpu_per_tick_ns": _PER_TICK,
    "cpu_percent": METRICS["cpu_percent"],
    "cycles_per_message": METRICS["cycles_per_message"],
    "instructions_per_message": METRICS["instructions_per_message"],
    "latency_p50_ns": METRICS["latency.p50"],
    "latency_p99_ns": METRICS["latency.p99"],
    "response_p50_ns": METRICS["response.p50"],
    "response_p99_ns": METRICS["response.p99"],
}


def of(results: Sequence[Json], alpha: float = 0.05) -> Json | None:
    """`executor_costs` of a summary from its results; None where no CPU time was measured, as in virtual time."""
    shown = [r for r in results if purpose_of(r) == MEASURED and entering(r)]
    if not any(_reading(r, "cpu_percent").n for r in shown):
        return None
    rows = [_row(r, results, 1 - alpha) for r in shown]
    for index, row in enumerate(rows):
        row["reference"], row["ratio"] = _compared(index, shown, 1 - alpha)
    return {"level": 1 - alpha, "rows": rows}


def is_about_executors(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a table of costs is what a reader of these rows looks for."""
    executors = {row["executor"] for row in rows}
    return len(executors) > 1 or any(CASE in row["factors"] for row in rows)


def _row(result: Json, results: Sequence[Json], confidence: float) -> Json:
    trials = entering(result)
    row: Json = {key: result.get(key) for key in _KEYS}
    row["factors"] = dict(result.get("factors") or {})
    row["trials"] = len(trials)
    for key, metric in FIGURES.items():
        row[key] = _figure(_reading(result, key), confidence, _reason(trials, metric))
    row["roles"], row["roles_reason"] = _roles(trials)
    row["notes"] = list(dict.fromkeys(n for t in trials for n in (t.get("cost") or {}).get("notes") or ()))
    own = [result, *(r for r in results if purpose_of(r) == EXTRA and _same(r, result))]
    for key, observer in (("families", "cpu_profile"), ("phases", "tracing")):
        row[key], row[f"{key}_reason"] = _observed(own, key, observer)
    return row


def _reading(result: Json, key: str) -> Sample:
    return sample_of(entering(result), FIGURES[key], "")


def _reason(trials: Sequence[Trial], metric: Metric) -> str | None:
    readings = [metric.read(t) for t in trials]
    return next((r.reason for r in readings if r.value is None), None)


def _figure(sample: Sample, confidence: float, reason: str | None) -> Json:
    """The median over trials with its interval."""
    if not sample.n:
        return _as_figure(Estimate(None, reason=reason or "not measured"), 0, confidence)
    if sample.n == 1:  # nothing to be estimated; what does it takes a second to import
        return _as_figure(Estimate(sample.values[0], reason="1 trial is too few for an interval"), 1, confidence)
    from perflab.statistics import estimate

    return _as_figure(estimate.median(sample, confidence), sample.n, confidence)


def _as_figure(found: Estimate, n: int, confidence: float) -> Json:
    low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
    return {
        "value": found.value, "low": low, "high": high, "level": confidence, "n": n,
        "reason": found.reason,
    }  # fmt: skip


# -- the ratio -------------------------------------------------------------------------------------------------------


def _compared(index: int, results: Sequence[Json], confidence: float) -> tuple[int | None, Json]:
    """The place of the reference, and the ratio to it: of CPU per message, or of CPU where nothing is delivered."""
    result = results[index]
    key = "cpu_per_message_ns" if _reading(result, "cpu_per_message_ns").n else "cpu_percent"
    if not _reading(result, key).n:
        return None, _ratio(Estimate(None, reason=_reason(entering(result), FIGURES[key])), key, 0, confidence)
    reference = _reference(index, results, key)
    if reference is None:
        return None, _ratio(Estimate(None, reason=_no_reference(result, results)), key, 0, confidence)
    if reference == index:
        return index, _ratio(Estimate(1.0, reason="it is the reference itself"), key, 0, confidence)
    first, second = _reading(results[reference], key), _reading(result, key)
    if not (first.positive and second.positive):
        return reference, _ratio(Estimate(None, reason="a ratio needs CPU times above 0"), key, 0, confidence)
    if first.n == 1 == second.n:
        value = second.values[0] / first.values[0]
        return reference, _ratio(
            Estimate(value, reason="1 trial of each is too few for an interval"), key, 1, confidence
        )
    from perflab.statistics.design import design
    from perflab.statistics.difference import shift

    compared = design(first.mapped(math.log), second.mapped(math.log))
    return reference, _ratio(
        shift(compared, confidence).mapped(math.exp), key, len(compared.b), confidence, compared.blocked
    )


def _ratio(found: Estimate, key: str, n: int, confidence: float, paired: bool = False) -> Json:
    return {**_as_figure(found, n, confidence), "of": key, "paired": paired}


def _reference(index: int, results: Sequence[Json], key: str) -> int | None:
    """The case without an executor, if there is one; else the same with the executor inline.

    Of timers alone the other way round, as their traffic is another; `plain`, on no middleware, has the case
    middleware of the only one that there is.
    """
    own = results[index]
    if _case(own) == PLAIN:
        found = _beside_plain(own, results, key)
        return found[0] if len({results[i].get("middleware") for i in found}) == 1 else None
    alike = [i for i, other in enumerate(results) if _reading(other, key).n and _alike(own, other)]
    by_case = [i for i in alike if _is_middleware(results[i])]
    by_case.sort(key=lambda i: (results[i].get("ipc") != own.get("ipc"), i))
    inline = [
        i
        for i in alike
        if results[i].get("executor") == INLINE
        and _case(results[i]) == _case(own)
        and results[i].get("ipc") == own.get("ipc")
    ]
    found = [*by_case, *inline] if key == "cpu_per_message_ns" else [*inline, *by_case]
    return found[0] if found else None


def _beside_plain(own: Json, results: Sequence[Json], key: str) -> list[int]:
    """The cases middleware that differ from `plain` in what carries the messages alone."""
    found = [
        i
        for i, other in enumerate(results)
        if _is_middleware(other)
        and _reading(other, key).n
        and _alike({**own, "middleware": other["middleware"]}, other)
    ]
    return sorted(found, key=lambda i: (results[i].get("ipc") != own.get("ipc"), i))


def _is_middleware(result: Json) -> bool:
    return _case(result) == MIDDLEWARE and result.get("executor") in (None, INLINE)


def _no_reference(result: Json, results: Sequence[Json]) -> str:
    if _case(result) != PLAIN:
        how = "the executor inline" if _case(result) is None else "the case middleware, or the executor inline"
        return f"no treatment on {result['middleware']} runs without an executor ({how})"
    if any(_is_middleware(other) for other in results):
        return "it runs on no middleware, and the case middleware ran on several"
    return "it runs on no middleware, and the case middleware did not run"


def _alike(one: Json, other: Json) -> bool:
    """Whether two results differ in their executor, their case and the way of delivery alone."""
    keys = ("workload", "middleware", "pass_by", "treatment")
    return all(one.get(k) == other.get(k) for k in keys) and _factors(one) == _factors(other)


def _case(result: Json) -> Any:
    return (result.get("factors") or {}).get(CASE)


def _factors(result: Json) -> dict[str, Any]:
    return {path: level for path, level in (result.get("factors") or {}).items() if path != CASE}


def _same(one: Json, other: Json) -> bool:
    """Whether two results are of one treatment, whatever was observed."""
    keys = ("treatment", "factors")
    return variant_of(one) == variant_of(other) and all(one.get(k) == other.get(k) for k in keys)


# -- where it went ---------------------------------------------------------------------------------------------------


def _roles(trials: Sequence[Trial]) -> tuple[Json | None, str | None]:
    """The share of each role of threads in the CPU time, or why it is not known."""
    costs = [cost for t in trials if (cost := t.get("cost")) is not None]
    total = sum(cost["cpu_ns"] for cost in costs)
    if not costs:
        return None, "the threads' CPU time over the measured part was not recorded"
    if not total:
        return None, "no CPU time was used"
    names = (*ROLES, ENDED)
    return {name: sum(cost["roles"].get(name, 0) for cost in costs) / total for name in names}, None


def _observed(results: Iterable[Json], key: str, observer: str) -> tuple[Json | None, str | None]:
    """What an observer saw in the first trial that has it."""
    for result in results:
        for trial in result["trials_detail"]:
            if trial.get(key) is not None:
                return {"trial": trial["trial"], **trial[key]}, None
    return None, f"no trial had the observer {observer}, or what it left is too little or cannot be read"


def families_of(document: Mapping[str, Any], roles: Mapping[int, str]) -> Json | None:
    """`families` of a trial from its profile.json: shares of the CPU time, of all threads and of those of each role.

    `roles` are by thread number. Shares are of CPU time, from 0 to 1. None where there are too few samples.
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
    return {
        "samples": document["quality"]["samples"],
        "titles": {name: document["families"].get(name, name) for name in whole},
        "shares": _shares(whole),
        "groups": grouped(_shares(whole)),
        "by_role": {
            role: {"share": sum(part.values()) / sum(whole.values()), "groups": grouped(_shares(part))}
            for role, part in parts.items()
            if sum(part.values())
        },
        "warnings": list(document.get("warnings") or ()),
    }


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in sorted(weights.items(), key=lambda w: -w[1])} if total else {}


def grouped(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of families as those of GROUPS and what is in none of them; empty where there are none."""
    if not shares:
        return {}
    found = {group: sum(shares.get(name, 0.0) for name in names) for group, names in GROUPS.items()}
    inside = {name for names in GROUPS.values() for name in names}
    return {**found, OTHER: sum(share for name, share in shares.items() if name not in inside)}


def phases_of(document: Mapping[str, Any]) -> Json | None:
    """`phases` of a trial from the answer of `perflab trace executor`: all executor threads together.

    None where no thread has phases. CPU time is null where the scheduler's events cover too little of the time.
    """
    section = document["executor"]
    found: dict[str, Json] = {}
    for row in section["rows"]:
        name = row["function"]
        if name not in PHASES:
            continue
        part = found.setdefault(name, {"function": name, "count": 0, "wall_ns": 0, "on_cpu_ns": 0, "told_ns": 0.0})
        part["count"] += row["count"]
        part["wall_ns"] += row["wall_ns"] or 0
        part["on_cpu_ns"] += row["on_cpu_ns"] or 0
        part["told_ns"] += (row["wall_ns"] or 0) * (row["known_percent"] or 0) / 100
    if "thread" not in found:
        return None
    cpu = {name: _known_cpu(part) for name, part in found.items()}
    rows = []
    for name, part in found.items():
        above = PHASES[name]
        rows.append(
            {
                "function": name,
                "depth": _depth(name),
                "count": part["count"],
                "wall_ns": part["wall_ns"],
                "on_cpu_ns": cpu[name],
                "cpu_usage": _part(cpu[name], part["told_ns"]),
                "of_thread": _part(cpu[name], cpu["thread"]),
                "of_parent": None if above is None else _part(cpu[name], cpu.get(above)),
            }
        )
    threads = sum(row["function"] == "thread" for row in section["rows"])
    uncovered = any(value is None for value in cpu.values())
    reason = "the scheduler's events are missing, or cover too little of it" if uncovered else None
    return {"threads": threads, "rows": rows, "reason": reason}


def _known_cpu(part: Json) -> int | None:
    if not part["wall_ns"]:
        return 0
    return part["on_cpu_ns"] if part["told_ns"] >= MIN_KNOWN * part["wall_ns"] else None


def _part(value: float | None, whole: float | None) -> float | None:
    return None if value is None or not whole else value / whole


def _depth(name: str) -> int:
    above = PHASES[name]
    return 0 if above is None else 1 + _depth(above)
