"""summary.json: the accounts of trials as the documented keys (docs/schema/summary.schema.json).

Totals of a trial are merged over its edges (publish_delay and publish_call over its publishers); those of a result
over its trials. `sent` is what the subscriptions should have received, each message counted once per subscription,
so that sent = received + lost; `published` counts each message once. A total that depends on complete data is None
where one part is not known. Services are apart from all that: a reply is no message of a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflab.statistics import histogram as hg
from perflab.statistics import key_figures
from perflab.statistics.accounting import EDGE_HISTOGRAMS, PUBLISHER_HISTOGRAMS, Accounts, Edge, Publisher, Service
from perflab.statistics.histogram import Histogram
from perflab.statistics.key_figures import KeyFigure
from perflab.statistics.totals import largest

SCHEMA = 1
OUTCOMES = ("success", "failed", "invalid", "harness_error")
PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9), ("p99_99", 99.99))
MEASURED = "measured"
# Of a publisher, how its messages went (docs/formats.md, section 4).
PASSING = ("node", "topic", "asked", "intra_process", "copies", "middleware", "loaned")

Json = dict[str, Any]


@dataclass(frozen=True)
class ProcessResources:
    """What one process used in the measured part; None where it was not sampled."""

    name: str
    cpu_percent_mean: float | None  # of one CPU
    rss_kb_max: int | None


@dataclass(frozen=True)
class Thread:
    """Threads of one process that have one name and are scheduled alike, as the kernel says it."""

    process: str
    name: str
    role: str
    asked: Mapping[str, Any] | None
    policy: str
    priority: int
    cpus: tuple[int, ...]
    tids: tuple[int, ...]


@dataclass(frozen=True)
class TrialData:
    """One trial as the summary needs it. `accounts` is None where nothing was recorded."""

    number: int
    order: int
    workload: str
    middleware: str
    conditions: tuple[str, ...]
    outcome: str
    reason: str | None
    drain: str | None
    duration_s: float
    measured_s: float | None
    started_ns: int | None
    accounts: Accounts | None
    resources: tuple[ProcessResources, ...]
    participants_found_ns: int | None = None  # from the creation of the participant; likewise below
    endpoints_matched_ns: int | None = None
    executor: str | None = None  # as asked for; None: as the graph says, likewise pass_by
    ipc: str | None = None
    pass_by: str | None = None
    phase: str | None = None  # where in their periods timers ticked; None: of a command, or without timers
    threads: tuple[Thread, ...] | None = None  # None: not recorded, likewise below
    passing: tuple[Mapping[str, Any], ...] | None = None
    treatment: str | None = None  # None: of a run from before there were treatments
    condition_parameters: Mapping[str, Any] = field(default_factory=dict)  # by label
    factors: Mapping[str, Any] = field(default_factory=dict)
    observers: tuple[str, ...] = ()
    purpose: str = MEASURED  # "measured", "control" (without observers), "extra" (never in statistics)
    block: int = 1
    after: str | None = None  # the disturbing treatment that ran right before
    evidence: Mapping[str, Any] = field(default_factory=dict)  # of each condition, by label
    hiccup: Histogram | None = None  # of all processes; None: not observed
    allocations: int | None = None  # of all processes in the measured part; None: not counted
    why: Mapping[str, Any] | None = None  # of a trial that was traced
    criteria: tuple[Mapping[str, Any], ...] = ()  # each with "criterion", "met", "words"
    key_figures: tuple[KeyFigure, ...] = ()  # that the graph declares
    run_s: float | None = None  # how long a command ran that ends by itself
    messages: Mapping[str, Any] | None = None  # of a command: where the figures of its messages come from, or why none
    cost: Mapping[str, Any] | None = None  # of all processes in the measured part (cost.py); None: not recorded
    ticks_per_s: float | None = None  # of the workload's timers, where no message was delivered
    families: Mapping[str, Any] | None = None  # of a trial that was profiled (executor_costs.py)
    phases: Mapping[str, Any] | None = None  # of a trial that was traced (executor_costs.py)

    @property
    def group(self) -> tuple[object, ...]:
        """Trials of which this is equal belong to one result."""
        asked = (self.executor, self.ipc, self.pass_by, self.conditions, self.treatment, self.observers, self.purpose)
        return self.workload, self.middleware, *asked, tuple(sorted(self.factors.items()))

    @property
    def measured(self) -> bool:
        """Whether it ran to its end with everything in effect; one that failed a criterion was measured as well."""
        if self.accounts is None or not self.accounts.complete:
            return False
        return self.outcome == "success" or (self.outcome == "failed" and any(not c["met"] for c in self.criteria))


@dataclass(frozen=True)
class _Timed:
    """A histogram with the start of its trial, for "when did the maximum happen"."""

    histogram: Histogram
    started_ns: int | None


def summarize(run: str, trials: Sequence[TrialData], planned_trials: int | None = None) -> Json:
    """summary.json of a run: one result per variant and conditions, in order of first appearance.

    A result merges its measured trials; where there is none, all that recorded anything. `coverage` says which.
    """
    groups: dict[tuple[object, ...], list[TrialData]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    planned = len(trials) if planned_trials is None else planned_trials
    return {
        "schema": SCHEMA,
        "run": run,
        "valid": bool(trials) and len(trials) == planned and all(t.outcome == "success" for t in trials),
        "results": [_result(group) for group in groups.values()],
    }


def resources_of(name: str, records: Sequence[Mapping[str, Any]], from_ns: int, until_ns: int) -> ProcessResources:
    """Mean CPU use within the measured part and the peak of memory of one process, from its resource records.

    A sample counts where its interval lies in the measured part, give or take half an interval at either end; the
    first sample of a process has no interval.
    """
    cpu_ns = wall_ns = 0
    for record in records:
        interval_ns, used_ns = record["interval_ns"], record["cpu_interval_ns"]
        if not interval_ns or used_ns is None:
            continue
        begin_ns, end_ns = record["at_ns"] - interval_ns, record["at_ns"]
        if begin_ns >= from_ns - interval_ns // 2 and end_ns <= until_ns + interval_ns // 2:
            cpu_ns, wall_ns = cpu_ns + used_ns, wall_ns + interval_ns
    peaks = [r["rss_peak_kb"] for r in records if r["rss_peak_kb"] is not None]
    return ProcessResources(name, 100.0 * cpu_ns / wall_ns if wall_ns else None, max(peaks, default=None))


def threads_of(process: str, states: Iterable[Mapping[str, Any]]) -> list[Thread]:
    """The threads of one process from their readings; those with one name that are scheduled alike are one entry."""
    merged: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for state in states:
        key = (
            state["name"],
            state["role"],
            str(state["asked"]),
            state["policy"],
            state["priority"],
            str(state["cpus"]),
        )
        merged.setdefault(key, []).append(state)
    return [
        Thread(
            process=process,
            name=str(alike[0]["name"]),
            role=str(alike[0]["role"]),
            asked=alike[0]["asked"],
            policy=str(alike[0]["policy"]),
            priority=int(alike[0]["priority"]),
            cpus=tuple(alike[0]["cpus"]),
            tids=tuple(int(state["tid"]) for state in alike),
        )
        for alike in merged.values()
    ]


def quantiles(histogram: Histogram | None, started_ns: int | None = None) -> Json | None:
    """The numbers of one histogram; None where it was not measured, null members where it has no values.

    A percentile is HdrHistogram's value, which is the top of a cell, and never above the exact maximum.
    """
    return _quantiles([] if histogram is None else [_Timed(histogram, started_ns)])


def _quantiles(parts: Sequence[_Timed]) -> Json | None:
    if not parts:
        return None
    merged = hg.merge(p.histogram for p in parts)
    summary: Json = {"count": merged.count, "min": merged.min, "mean": hg.mean(merged)}
    for name, percentile in PERCENTILES:
        value = hg.value_at_percentile(merged, percentile)
        summary[name] = None if value is None or merged.max is None else min(value, merged.max)
    summary["max"] = merged.max
    summary["max_at_s"] = _max_at_s(parts, merged.max)
    summary["saturated"] = merged.saturated
    summary["negative"] = merged.negative
    return summary


def _max_at_s(parts: Sequence[_Timed], maximum: int | None) -> float | None:
    """Seconds from the start of the measured part of its trial to the first maximum."""
    instants = [
        (p.histogram.max_at_ns - p.started_ns) / 1e9
        for p in parts
        if p.histogram.max == maximum and p.histogram.max_at_ns is not None and p.started_ns is not None
    ]
    return min(instants, default=None)


def _result(trials: Sequence[TrialData]) -> Json:
    first = trials[0]
    # What failed a criterion counts: leaving it out would show only the good trials.
    merged = [t for t in trials if t.measured]
    if not merged:
        merged = [t for t in trials if t.accounts is not None]
    complete = bool(merged) and all(t.accounts is not None and t.accounts.complete for t in merged)
    return {
        "workload": first.workload,
        "middleware": first.middleware,
        "executor": first.executor,
        "ipc": first.ipc,
        "pass_by": first.pass_by,
        "phase": first.phase,
        "conditions": list(first.conditions),
        "treatment": first.treatment,
        "condition_parameters": dict(first.condition_parameters),
        "factors": dict(first.factors),
        "observers": list(first.observers),
        "purpose": first.purpose,
        "trials": len(trials),
        "outcomes": {outcome: sum(t.outcome == outcome for t in trials) for outcome in OUTCOMES},
        "duration_s": first.duration_s,
        "coverage": {"trials_merged": len(merged), "complete": complete},
        "totals": _totals(merged),
        "trials_detail": [figures_of(t) for t in trials],
        "intervals": {},
        "services": _services(merged),
        "edges": _edges(merged),
        "key_figures": _key_figures(merged or trials),
        "resources": _resources(merged),
        "hiccup_ns": _quantiles([_Timed(t.hiccup, t.started_ns) for t in merged if t.hiccup is not None]),
        "threads": _threads(merged),
        "passing": _passing(merged),
    }


def figures_of(t: TrialData) -> Json:
    """One trial with all its figures: an entry of `trials_detail`."""
    return {
        "trial": t.number,
        "order": t.order,
        "block": t.block,
        "purpose": t.purpose,
        "after": t.after,
        "measured": t.measured,
        "outcome": t.outcome,
        "reason": t.reason,
        "drain": t.drain,
        "measured_s": t.measured_s,
        "discovery_ns": {"participants": t.participants_found_ns, "endpoints": t.endpoints_matched_ns},
        "complete": t.accounts is not None and t.accounts.complete,
        "totals": _totals([t] if t.accounts is not None else []),
        "resources": _resources([t]),
        "services": _services([t]),
        "hiccup_ns": quantiles(t.hiccup, t.started_ns),
        "allocations": t.allocations,
        "key_figures": _key_figures([t]),
        "criteria": [dict(c) for c in t.criteria],
        "evidence": dict(t.evidence),
        "why": None if t.why is None else dict(t.why),
        "run_s": t.run_s,
        "messages": None if t.messages is None else dict(t.messages),
        "cost": None if t.cost is None else dict(t.cost),
        "ticks_per_s": t.ticks_per_s,
        "families": None if t.families is None else dict(t.families),
        "phases": None if t.phases is None else dict(t.phases),
    }


def _totals(trials: Sequence[TrialData]) -> Json:
    accounts = [(t.accounts, t.started_ns) for t in trials if t.accounts is not None]
    edges = [(e, started) for a, started in accounts for e in a.edges]
    publishers = [(p, started) for a, started in accounts for p in a.publishers]
    return {
        **_counts([e for e, _ in edges]),
        **_publisher_counts([p for p, _ in publishers]),
        **_histograms(edges, publishers),
    }


def _name(qualified: str) -> str:
    """A node or topic as people write it in a graph file: relative to the root namespace."""
    return qualified.removeprefix("/")


def _edges(trials: Sequence[TrialData]) -> list[Json]:
    """Each edge merged over trials, in the order of the first trial that has it."""
    edges: dict[tuple[str, str, str], list[tuple[Edge, int | None]]] = {}
    publishers: dict[tuple[str, str], list[tuple[Publisher, int | None]]] = {}
    for trial in trials:
        if trial.accounts is None:
            continue
        for publisher in trial.accounts.publishers:
            publishers.setdefault(publisher.key, []).append((publisher, trial.started_ns))
        for edge in trial.accounts.edges:
            edges.setdefault(edge.key, []).append((edge, trial.started_ns))
    return [
        {
            "publisher": _name(key[0]),
            "topic": _name(key[1]),
            "subscription": _name(key[2]),
            "size_bytes": next((e.size_bytes for e, _ in parts if e.size_bytes is not None), None),
            "frequency_hz": next((e.frequency_hz for e, _ in parts if e.frequency_hz is not None), None),
            **_counts([e for e, _ in parts]),
            **_publisher_counts([p for p, _ in publishers.get(key[:2], [])]),
            **_histograms(parts, publishers.get(key[:2], [])),
        }
        for key, parts in edges.items()
    ]


def _services(trials: Sequence[TrialData]) -> list[Json]:
    """Each client and service merged over trials, in the order of the first trial that has it."""
    services: dict[tuple[str, str, str], list[tuple[Service, int | None]]] = {}
    for trial in trials:
        for service in trial.accounts.services if trial.accounts is not None else ():
            services.setdefault(service.key, []).append((service, trial.started_ns))
    results = []
    for (client, name, server), parts in services.items():
        replies = [(s.replies, started) for s, started in parts]
        figures = _histograms(replies, [(s.requests, started) for s, started in parts])
        results.append(
            {
                "client": _name(client),
                "service": _name(name),
                "server": _name(server),
                "size_bytes": next((r.size_bytes for r, _ in replies if r.size_bytes is not None), None),
                "frequency_hz": next((r.frequency_hz for r, _ in replies if r.frequency_hz is not None), None),
                **_counts([r for r, _ in replies]),
                **_publisher_counts([s.requests for s, _ in parts]),
                "round_trip_ns": figures.pop("latency_ns"),
                "round_trip_response_ns": figures.pop("response_ns"),
                **figures,
            }
        )
    return results


def _key_figures(trials: Sequence[TrialData]) -> Json:
    """Those that the graph declares, by name, in its order; empty where it declares none."""
    recorded = [(t.accounts, t.started_ns) for t in trials if t.accounts is not None]
    return key_figures.of_trials(trials[0].key_figures, recorded, lambda owners, name: _quantiles(_parts(owners, name)))


def _threads(trials: Sequence[TrialData]) -> list[Json] | None:
    """Those of the first trial that recorded them."""
    threads = next((t.threads for t in trials if t.threads is not None), None)
    if threads is None:
        return None
    return [
        {
            "process": t.process,
            "name": t.name,
            "role": t.role,
            "asked": None if t.asked is None else dict(t.asked),
            "policy": t.policy,
            "priority": t.priority,
            "cpus": list(t.cpus),
            "tids": list(t.tids),
        }
        for t in threads
    ]


def _passing(trials: Sequence[TrialData]) -> list[Json] | None:
    """How the messages of each publisher went, in the first trial that recorded it."""
    passing = next((t.passing for t in trials if t.passing is not None), None)
    if passing is None:
        return None
    return [
        {
            "node": _name(str(p["node"])),
            "topic": _name(str(p["topic"])),
            **{key: p[key] for key in PASSING[2:]},
        }
        for p in passing
    ]


def _counts(edges: Sequence[Edge]) -> Json:
    def total(member: Callable[[Edge], int | None]) -> int | None:
        return _sum(member(e) for e in edges)

    return {
        "sent": total(lambda e: e.sent),
        "received": total(lambda e: e.received),
        "on_time": total(lambda e: e.on_time),
        "late": total(lambda e: e.late),
        "too_late": total(lambda e: e.too_late),
        "lost": {
            "pre_match": total(lambda e: e.pre_match),
            "gap": total(lambda e: e.gap),
            "tail": total(lambda e: e.tail),
        },
        "reordered": total(lambda e: e.reordered),
        "duplicate": total(lambda e: e.duplicate),
        "beyond_window": total(lambda e: e.beyond_window),
    }


def _publisher_counts(publishers: Sequence[Publisher]) -> Json:
    return {
        "published": _sum(p.sent for p in publishers),
        "not_sent": _sum(p.not_sent for p in publishers),
        "write_errors": _sum(p.write_errors for p in publishers),
    }


def _histograms(edges: Sequence[tuple[Edge, int | None]], publishers: Sequence[tuple[Publisher, int | None]]) -> Json:
    summaries: Json = {}
    for name in ("latency", "response"):
        summaries[f"{name}_ns"] = _quantiles(_parts(edges, name))
    for name in PUBLISHER_HISTOGRAMS:
        summaries[f"{name}_ns"] = _quantiles(_parts(publishers, name))
    for name in EDGE_HISTOGRAMS[2:]:
        summaries[f"{name}_ns"] = _quantiles(_parts(edges, name))
    return summaries


def _parts(owners: Iterable[tuple[Edge | Publisher, int | None]], name: str) -> list[_Timed]:
    return [_Timed(h, started) for owner, started in owners if (h := owner.histograms.get(name)) is not None]


def _resources(trials: Sequence[TrialData]) -> Json:
    """CPU in percent of one CPU, summed over processes and averaged over trials; RSS of the largest process. Neither is
    known where it is not of one process."""
    names = list(dict.fromkeys(r.name for t in trials for r in t.resources))
    processes: list[Json] = []
    for name in names:
        samples = [r for t in trials for r in t.resources if r.name == name]
        cpu = [r.cpu_percent_mean for r in samples if r.cpu_percent_mean is not None]
        rss = [r.rss_kb_max for r in samples if r.rss_kb_max is not None]
        processes.append(
            {
                "process": name,
                "cpu_percent_mean": sum(cpu) / len(cpu) if cpu else None,
                "rss_kb_max": max(rss, default=None),
            }
        )
    cpus = [p["cpu_percent_mean"] for p in processes]
    return {
        "cpu_percent_mean": sum(cpus) if cpus and None not in cpus else None,
        "rss_kb_max": largest([p["rss_kb_max"] for p in processes]),
        "processes": processes,
    }


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; None where there is no value or one is not known."""
    known = list(values)
    if not known or any(v is None for v in known):
        return None
    return sum(v for v in known if v is not None)
