"""A run's summary from the accounts of its trials.

Totals of a trial are merged over its edges (publish_delay and publish_call over its publishers); those of a result
over its trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from perflab.results.figure import Distribution, KeyFigureResult
from perflab.results.objective import PathResult
from perflab.results.outcome import FAILED, SUCCESS, BrokenOff, Outcomes
from perflab.results.summary import Summary
from perflab.results.trial import (
    MEASURED,
    Circumstances,
    Coverage,
    EdgeResult,
    Lost,
    Passing,
    ProcessResources,
    Purpose,
    Resources,
    Result,
    ServiceResult,
    ThreadGroup,
    Totals,
    Trial,
    TrialFacts,
    added,
    largest,
)
from perflab.statistics import histogram as hg
from perflab.statistics import key_figures, objectives
from perflab.statistics.accounting import EDGE_HISTOGRAMS, PUBLISHER_HISTOGRAMS, Accounts, Edge, Publisher, Service
from perflab.statistics.histogram import Histogram
from perflab.statistics.key_figures import KeyFigure

T = TypeVar("T")
Owner = TypeVar("Owner", Edge, Publisher, Service)
Timed = tuple[T, int | None]
"""With the start of its trial, for "when did the maximum happen"."""

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}


@dataclass(frozen=True, kw_only=True)
class TrialData(Circumstances, TrialFacts):
    """One trial as the summary needs it."""

    number: int
    block: int = 1
    purpose: Purpose | None = MEASURED
    duration_s: float
    took_s: float | None = None
    """From its start, including the wait for a quiet machine, to its end."""
    started_ns: int | None
    accounts: Accounts | None
    """None if nothing was recorded."""
    resources: tuple[ProcessResources, ...]
    threads: tuple[ThreadGroup, ...] | None = None
    """None: not recorded, likewise below."""
    passing: tuple[Passing, ...] | None = None
    observed: Mapping[str, Histogram] = field(default_factory=dict)
    """The times that observers recorded, by name."""
    key_figures: tuple[KeyFigure, ...] = ()
    """Declared by the graph, and the kind of workload."""
    own_figures: Mapping[str, float | None] = field(default_factory=dict)
    """The trial's values from the kind of workload, by name."""
    own_times: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Likewise, in the form of histogram records."""
    broken_off: BrokenOff | None = None

    @property
    def measured(self) -> bool:
        """Whether it ran to its end with everything in effect; a later failure by judgement was still measured."""
        if self.accounts is None or not self.accounts.complete:
            return False
        if self.broken_off is not None and self.broken_off.why == "limit":
            return False
        judged = self.own_outcome is not None or any(not c.met for c in self.criteria)
        return self.outcome == SUCCESS or (self.outcome == FAILED and judged)


def summarize(run: str, trials: Sequence[TrialData], planned_trials: int | None = None) -> Summary:
    """The summary of a run: one result per variant and conditions, in order of first appearance.

    A result merges its measured trials; if there is none, all with records. `coverage` says which.
    """
    groups: dict[tuple[object, ...], list[TrialData]] = {}
    for trial in trials:
        groups.setdefault(trial.circumstances, []).append(trial)
    planned = len(trials) if planned_trials is None else planned_trials
    return Summary(
        run=run,
        valid=bool(trials) and len(trials) == planned and all(t.outcome == SUCCESS for t in trials),
        results=objectives.with_objectives([_result(group) for group in groups.values()]),
    )


def resources_of(name: str, records: Sequence[Mapping[str, Any]], from_ns: int, until_ns: int) -> ProcessResources:
    """Mean CPU use within the measured part and the peak of memory of one process, from its resource records.

    A sample counts if its interval lies in the measured part, with a tolerance of half an interval at either end; the
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
    return ProcessResources(
        process=name,
        cpu_percent_mean=100.0 * cpu_ns / wall_ns if wall_ns else None,
        rss_kb_max=max(peaks, default=None),
    )


_DEADLINE = ("runtime_ns", "deadline_ns", "period_ns")  # in a reading of a thread


def threads_of(process: str, states: Iterable[Mapping[str, Any]]) -> list[ThreadGroup]:
    """The threads of one process from their readings; those with the same name and scheduling are one entry."""
    merged: dict[str, list[Mapping[str, Any]]] = {}
    for state in states:
        times = [state.get(key) for key in _DEADLINE]
        alike = [*(state[key] for key in ("name", "role", "asked", "policy", "priority", "cpus")), *times]
        merged.setdefault(str(alike), []).append(state)
    return [
        ThreadGroup(
            process=process,
            name=str(alike[0]["name"]),
            role=str(alike[0]["role"]),
            asked=alike[0]["asked"],
            policy=str(alike[0]["policy"]),
            priority=int(alike[0]["priority"]),
            cpus=tuple(alike[0]["cpus"]),
            tids=tuple(int(state["tid"]) for state in alike),
            # The records have 0 if the policy has no such times.
            **{key: int(alike[0].get(key) or 0) or None for key in _DEADLINE},
        )
        for alike in merged.values()
    ]


def distribution(parts: Sequence[Timed[Histogram]]) -> Distribution | None:
    """The statistics of merged histograms; None if there are none, null members if they have no values.

    A percentile is HdrHistogram's value, which is the top of a cell, and never above the exact maximum.
    """
    if not parts:
        return None
    merged = hg.merge(histogram for histogram, _ in parts)
    found: dict[str, int | None] = {}
    for name, percentile in PERCENTILES.items():
        value = hg.value_at_percentile(merged, percentile)
        found[name] = None if value is None or merged.max is None else min(value, merged.max)
    instants = [
        (h.max_at_ns - started_ns) / 1e9
        for h, started_ns in parts
        if h.max == merged.max and h.max_at_ns is not None and started_ns is not None
    ]
    return Distribution(
        count=merged.count,
        min=merged.min,
        mean=hg.mean(merged),
        **found,
        max=merged.max,
        max_at_s=min(instants, default=None),  # of the first one, from the start of the measured part of its trial
        saturated=merged.saturated,
        negative=merged.negative,
    )


def _result(trials: Sequence[TrialData]) -> Result:
    first = trials[0]
    # Trials that failed a criterion count: leaving them out would show only the good ones.
    merged = [t for t in trials if t.measured] or [t for t in trials if t.accounts is not None]
    complete = bool(merged) and all(t.accounts is not None and t.accounts.complete for t in merged)
    return Result(
        **{f.name: getattr(first, f.name) for f in fields(Circumstances)},
        trials=len(trials),
        outcomes=Outcomes.of(
            [t.outcome for t in trials], [t.own_outcome for t in trials], sum(t.interrupted for t in trials)
        ),
        coverage=Coverage(trials_merged=len(merged), complete=complete),
        trials_detail=tuple(map(figures_of, trials)),
        **_together(merged),
        edges=_edges(merged),
        key_figures=_key_figures(merged or trials),
        threads=next((t.threads for t in merged if t.threads is not None), None),
        passing=next((t.passing for t in merged if t.passing is not None), None),
    )


def figures_of(t: TrialData) -> Trial:
    """One trial with all its figures."""
    return Trial(
        **{f.name: getattr(t, f.name) for f in fields(TrialFacts)} | {"paths": _paths(t)},
        trial=t.number,
        measured=t.measured,
        complete=t.accounts is not None and t.accounts.complete,
        **_together([t]),
        key_figures=_key_figures([t]),
    )


def _paths(t: TrialData) -> tuple[PathResult, ...] | None:
    """The named paths of a trial, including those that are times which its processes or observers measured."""
    if not t.paths or not any(path.times for path in t.paths):
        return t.paths
    own = {name: hg.from_record(record) for name, record in t.own_times.items()}
    return objectives.resolved(t.paths, own | dict(t.observed))


def _together(trials: Sequence[TrialData]) -> dict[str, Any]:
    """The figures of a trial, or of a result from all that it merges."""
    edges, publishers = _recorded(trials, lambda a: a.edges), _recorded(trials, lambda a: a.publishers)
    return {
        "totals": Totals(**_figures(edges, publishers)),
        "services": _services(trials),
        "resources": _resources(trials),
        "observed_ns": _observed(trials),
    }


def _observed(trials: Sequence[TrialData]) -> dict[str, Distribution]:
    """Records of observers, by name, from the trials that have them."""
    by_name: dict[str, list[tuple[Histogram, int | None]]] = {}
    for trial in trials:
        for name, histogram in trial.observed.items():
            by_name.setdefault(name, []).append((histogram, trial.started_ns))
    return {name: merged for name, of in by_name.items() if (merged := distribution(of)) is not None}


def _name(qualified: str) -> str:
    """A node or topic in the form of a graph file: relative to the root namespace."""
    return qualified.removeprefix("/")


def _edges(trials: Sequence[TrialData]) -> tuple[EdgeResult, ...]:
    """Each edge merged over trials, in the order of the first trial that has it."""
    publishers = _by_key(_recorded(trials, lambda a: a.publishers))
    return tuple(
        EdgeResult(
            publisher=_name(key[0]),
            topic=_name(key[1]),
            subscription=_name(key[2]),
            **_described(parts),
            **_figures(parts, publishers.get(key[:2], [])),
        )
        for key, parts in _by_key(_recorded(trials, lambda a: a.edges)).items()
    )


def _services(trials: Sequence[TrialData]) -> tuple[ServiceResult, ...]:
    """Each client and service merged over trials, in the order of the first trial that has it."""
    results = []
    for (client, name, server), parts in _by_key(_recorded(trials, lambda a: a.services)).items():
        replies = [(s.replies, started) for s, started in parts]
        figures = _figures(replies, [(s.requests, started) for s, started in parts])
        results.append(
            ServiceResult(
                client=_name(client),
                service=_name(name),
                server=_name(server),
                **_described(replies),
                round_trip_ns=figures.pop("latency_ns"),
                round_trip_response_ns=figures.pop("response_ns"),
                answers=_answers([s for s, _ in parts]),
                **figures,
            )
        )
    return tuple(results)


def _answers(services: Sequence[Service]) -> dict[str, int] | None:
    counts: Counter[str] = Counter()
    for service in services:
        counts.update(service.answers)
    return dict(sorted(counts.items())) or None


def _recorded(trials: Iterable[TrialData], of: Callable[[Accounts], Iterable[Owner]]) -> list[Timed[Owner]]:
    return [(owner, t.started_ns) for t in trials if t.accounts is not None for owner in of(t.accounts)]


def _by_key(owners: Iterable[Timed[Owner]]) -> dict[tuple[str, ...], list[Timed[Owner]]]:
    found: dict[tuple[str, ...], list[Timed[Owner]]] = {}
    for owner, started_ns in owners:
        found.setdefault(owner.key, []).append((owner, started_ns))
    return found


def _key_figures(trials: Sequence[TrialData]) -> dict[str, KeyFigureResult]:
    """Figures that the graph declares, by name, in its order; empty if it declares none."""
    return key_figures.of_trials(
        trials[0].key_figures,
        [(t.accounts, t.started_ns) for t in trials if t.accounts is not None],
        lambda owners, name: distribution(_parts(owners, name)),
        [t.own_figures for t in trials],
        [({name: hg.from_record(record) for name, record in t.own_times.items()}, t.started_ns) for t in trials],
        distribution,
    )


def _described(edges: Sequence[Timed[Edge]]) -> dict[str, Any]:
    return {
        "size_bytes": next((e.size_bytes for e, _ in edges if e.size_bytes is not None), None),
        "frequency_hz": next((e.frequency_hz for e, _ in edges if e.frequency_hz is not None), None),
    }


_OF_EDGES = ("sent", "filtered", "received", "on_time", "late", "too_late", "reordered", "duplicate", "beyond_window")
_OF_PUBLISHERS = {"published": "sent", "not_sent": "not_sent", "write_errors": "write_errors"}


def _figures(edges: Sequence[Timed[Edge]], publishers: Sequence[Timed[Publisher]]) -> dict[str, Any]:
    """Counts, and the distributions of all times."""
    lost = {f.name: added(getattr(e, f.name) for e, _ in edges) for f in fields(Lost)}
    return {
        **{name: added(getattr(e, name) for e, _ in edges) for name in _OF_EDGES},
        "received_bytes": added(_payload(e) for e, _ in edges),
        "lost": Lost(**lost),
        **{name: added(getattr(p, own) for p, _ in publishers) for name, own in _OF_PUBLISHERS.items()},
        **{f"{name}_ns": distribution(_parts(edges, name)) for name in EDGE_HISTOGRAMS},
        **{f"{name}_ns": distribution(_parts(publishers, name)) for name in PUBLISHER_HISTOGRAMS},
    }


def _payload(edge: Edge) -> int | None:
    return None if edge.size_bytes is None or edge.received is None else edge.received * edge.size_bytes


def _parts(owners: Iterable[Timed[Edge | Publisher]], name: str) -> list[Timed[Histogram]]:
    return [(h, started) for owner, started in owners if (h := owner.histograms.get(name)) is not None]


def _resources(trials: Sequence[TrialData]) -> Resources:
    """CPU in percent of one CPU, summed over processes and averaged over trials; RSS of the largest process. Either is
    unknown if it is unknown for one process."""
    by_process: dict[str, list[ProcessResources]] = {}
    for used in (r for t in trials for r in t.resources):
        by_process.setdefault(used.process, []).append(used)
    processes = []
    for name, samples in by_process.items():
        cpu = [r.cpu_percent_mean for r in samples if r.cpu_percent_mean is not None]
        rss = [r.rss_kb_max for r in samples if r.rss_kb_max is not None]
        mean = sum(cpu) / len(cpu) if cpu else None
        used = ProcessResources(
            process=name,
            cpu_percent_mean=mean,
            rss_kb_max=max(rss, default=None),
            minor_faults=largest([r.minor_faults for r in samples]),
            major_faults=largest([r.major_faults for r in samples]),
        )
        processes.append(used)
    return Resources(
        cpu_percent_mean=added(p.cpu_percent_mean for p in processes),
        rss_kb_max=largest([p.rss_kb_max for p in processes]),
        processes=tuple(processes),
    )
