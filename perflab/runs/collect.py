"""From the files of a trial to its numbers: the same for a trial that just ended and for one found years later."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from perflab import models
from perflab.design.claims import asked_of, metrics_asked
from perflab.design.document import Document, Written, validate
from perflab.design.treatments import timer_speed
from perflab.design.until_decided import looks_of
from perflab.errors import DAMAGE, BadInput, one_line
from perflab.formats import records
from perflab.formats.json_file import read_json
from perflab.formats.records import ProcessRecords, RecordError
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.results.comparison import Looks
from perflab.results.files import DesignedTreatment, TrialFile, UsedWorkload
from perflab.results.outcome import HARNESS_ERROR, SUCCESS
from perflab.results.summary import Summary
from perflab.results.trial import (
    AllocationSite,
    Cost,
    Discovery,
    Families,
    Passing,
    ProcessResources,
    Recovery,
    Result,
    SystemCounts,
    ThreadGroup,
    added,
)
from perflab.runs import traced
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.runs.trials import NOT_SET, OF_OBSERVER, left_out, own_trials
from perflab.statistics import accounting, allocation_sites, executor_costs, key_figures, system_counts, trend
from perflab.statistics.accounting import (
    AccountingError,
    Accounts,
    EdgeKey,
    ServiceKey,
    account,
    missed_between,
)
from perflab.statistics.claims import judge
from perflab.statistics.cost import ProcessCost, of_process, of_trial
from perflab.statistics.executor_costs import families_of
from perflab.statistics.histogram import Histogram, HistogramError
from perflab.statistics.key_figures import KeyFigure
from perflab.statistics.metrics import METRICS, Metric
from perflab.statistics.summary import TrialData, resources_of, summarize, threads_of
from perflab.statistics.target import machine_cpus
from perflab.units import NS_PER_S
from perflab.workload import PLAIN_KINDS, Graph

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal


@dataclass(frozen=True)
class Collected:
    """A trial's data, their records, and what was incomplete in these."""

    data: TrialData
    processes: tuple[ProcessRecords, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Lives:
    """The processes of a trial, some of which may have crashed and been replaced."""

    first: tuple[ProcessRecords, ...]
    last: tuple[ProcessRecords, ...]
    crashed: tuple[ProcessRecords, ...]

    @staticmethod
    def of(trial: TrialFile, processes: Sequence[ProcessRecords]) -> _Lives:
        continued = {name: told.continues for name, told in trial.processes.items() if told.continues is not None}
        crashed = set(continued.values())
        return _Lives(
            first=tuple(p for p in processes if p.name not in continued),
            last=tuple(p for p in processes if p.name not in crashed),
            crashed=tuple(p for p in processes if p.name in crashed),
        )

    def over_all(self, cost: ProcessCost | None, from_ns: int | None, until_ns: int | None) -> ProcessCost | None:
        """The cost of a process over the whole measured part, even if it did not live through it."""
        partial = {p.name for p in self.crashed} | ({p.name for p in self.last} - {p.name for p in self.first})
        if cost is None or from_ns is None or until_ns is None or cost.process not in partial:
            return cost
        return replace(cost, interval_ns=until_ns - from_ns)


def expected_of(directory: TrialDirectory, workload: UsedWorkload) -> tuple[list[EdgeKey], list[ServiceKey]]:
    """The edges and services of a trial's graph: the run's, or for a generated one the graph that the trial itself
    received.

    Raises one of DAMAGE, OSError.
    """
    if workload.kind in PLAIN_KINDS:
        return list(workload.edges), list(workload.services)
    given = next(iter(sorted(directory.processes.glob("*.config.json"))), None)
    if given is None:  # it ended before anything was started
        return [], []
    graph = Graph(read_json(given)["graph"])
    return graph.edges(), graph.services()


def collect(
    directory: TrialDirectory,
    trial: TrialFile,
    edges: Sequence[EdgeKey],
    services: Sequence[ServiceKey] = (),
    figures: Sequence[KeyFigure] = (),
) -> Collected:
    """Reads the records of a trial and computes its accounts, from those of the workload's own processes.

    A success with contradictory or incomplete records becomes a harness_error with the place of the error.
    """
    trial = trial.ended
    notes: list[str] = []
    processes, problem = _read(directory, trial, notes)
    problem = problem or _unwanted(processes, trial, notes)
    drained = trial.outcome == SUCCESS or trial.drain is not None
    lives = _Lives.of(trial, processes)
    accounts, accounting_problem = _account(lives.last, edges, services, drained, lives.crashed)
    problem = problem or accounting_problem
    starts = [p.start for p in processes if p.start is not None]
    from_ns = min((s.measured_from_ns for s in starts), default=None)
    until_ns = max((s.measured_until_ns for s in starts), default=None)
    measured: dict[str, Any] = {"resources": ()}
    if from_ns is not None and until_ns is not None:
        last_ns = max((p.checkpoint["at_ns"] for p in processes if p.checkpoint is not None), default=from_ns)
        measured["measured_s"] = max(0, min(last_ns, until_ns) - from_ns) / NS_PER_S
        try:
            measured |= _over_time(processes, from_ns, until_ns)
        except (KeyError, TypeError) as error:
            problem = problem or f"a record of resources or of progress lacks {error}"
    cost: Cost | None = None
    costs: list[ProcessCost | None] = []
    try:
        costs = [lives.over_all(of_process(p.name, p.cost), from_ns, until_ns) for p in processes]
        cost = of_trial(costs)
        measured |= {
            "resources": tuple(_with_faults(_exact(used, costs), processes) for used in measured["resources"]),
            "system": _system_counts(processes),
        }
    except (KeyError, TypeError) as error:
        problem = problem or f"a record of costs lacks {error}"
    threads: tuple[ThreadGroup, ...] | None = None
    passing: tuple[Passing, ...] | None = None
    sites: tuple[AllocationSite, ...] | None = None
    try:
        threads, passing = _threads(processes), _passing(processes)
        sites = _allocation_sites(processes)
    except (KeyError, TypeError, ValueError) as error:
        problem = problem or f"a record of threads, passing or allocations lacks {error}"
    observed: dict[str, Histogram] = {}
    try:
        observed = observed_times(directory, trial, processes)
    except (HistogramError, OSError, *DAMAGE) as error:
        problem = problem or f"an observer's records are damaged: {one_line(str(error))}"
    data = TrialData(
        **models.shared(TrialData, trial)
        | {
            "number": trial.trial,
            "middleware": trial.middleware.name,
            "block": trial.block or 1,
            **measured,
            "started_ns": from_ns,
            "took_s": None if trial.span is None else (trial.span[1] - trial.span[0]).total_seconds(),
            "accounts": accounts,
            "discovery_ns": Discovery(
                participants=_discovery(lives.first, "all_participants_found"),
                endpoints=_discovery(lives.first, "all_endpoints_matched"),
            ),
            "first_message_ns": _first_message(lives.first),
            "recoveries": _recoveries(trial, processes),
            "threads": threads,
            "passing": passing,
            "observed": observed,
            "allocations": _allocations(costs),
            "allocation_sites": sites,
            "key_figures": tuple(f.at_rate(timer_speed(trial.factors)) for f in figures),
            "why": traced.why(directory.path),
            "run_s": trial.run_s,
            "cost": cost,
            "ticks_per_s": _ticks_per_s(directory, trial, accounts),
            "families": _families(directory, processes),
            "phases": traced.phases(directory.path),
            "paths": traced.paths(directory.path),
        }
    )
    if data.outcome == SUCCESS:
        if problem is None and (accounts is None or not accounts.complete):
            silent = [p.name for p in lives.last if not p.final]
            problem = f"process {silent[0]!r} wrote no final checkpoint" if silent else "nothing was recorded"
        if problem is not None:
            data = replace(data, outcome=HARNESS_ERROR, reason=problem)
    elif problem is not None:
        notes.append(problem)
    return Collected(data, processes, (*notes, *_not_set(processes), *_remarks(directory, trial, threads or ())))


def _remarks(directory: TrialDirectory, trial: TrialFile, threads: Sequence[ThreadGroup]) -> list[str]:
    """The observers' remarks on their records of a trial."""
    said = []
    for kind in _observers(trial):
        with contextlib.suppress(BadInput, OSError, *DAMAGE):  # the damage is reported elsewhere
            said += [f"{OF_OBSERVER}{kind.name}: {words}" for words in kind.remarks(directory.path, threads)]
    return said


def _observers(trial: TrialFile) -> list[type[Observer]]:
    kinds = [kind.model for name in trial.observers if (kind := OBSERVERS.get(name)) is not None]
    return [kind for kind in kinds if issubclass(kind, Observer)]


def _not_set(processes: Sequence[ProcessRecords]) -> list[str]:
    """Settings that perflab could not make in their middlewares, but makes in all others; without duplicates."""
    said: dict[str, None] = {}
    for process in processes:
        middleware = (process.process or {}).get("middleware") or {}
        effective = middleware.get("effective") or {}
        several = effective.get("participants")
        for one in [effective, *(several if isinstance(several, list) else [])]:
            said |= {f"{NOT_SET}{middleware.get('name')}: {sentence}": None for sentence in one.get("not_set", ())}
    return list(said)


def collect_run(run: RunDirectory) -> tuple[Summary, list[str]]:
    """The summary of a run that wrote none, rebuilt from the records of its trials, with remarks."""
    manifest = run.read_manifest()
    notes: list[str] = []
    trials: list[TrialData] = []
    damaged: list[str] = []
    reading = run.manifest
    try:
        figures = key_figures.declared(manifest.workload.graph)
        reading = run.path
        for directory, file in own_trials(run, manifest, notes, damaged):
            if file is None:
                notes.append(f"{directory.path.name} was being prepared and recorded nothing")
                continue
            try:
                collected = collect(directory, file, *expected_of(directory, manifest.workload), figures)
                # Values that only a calculation rejects, or with a type that a summary cannot hold, belong to this
                # trial.
                models.read(Summary, models.as_json(summarize(manifest.run, [collected.data], planned_trials=1)))
            except DAMAGE as error:
                damaged.append(f"{directory.path} is damaged: {type(error).__name__}: {error}")
                continue
            trials.append(collected.data)
            notes.extend(collected.notes)
        if damaged and not trials:
            raise BadInput(damaged[0])
        notes += [left_out(problem) for problem in damaged]
        written = manifest.experiment.written
        asked = None if written is None else validate(Written(dict(written)))
        searched = asked is not None and asked.breaking_point is not None
        planned = len(trials) if searched else len(manifest.trials)
        summary = as_designed(summarize(manifest.run, trials, planned_trials=planned), manifest.treatments)
        if asked is not None:
            seed = manifest.settings.seed or 0
            summary = with_answers(
                summary, asked, seed, trials, machine_cpus(manifest.host), looks_of(manifest.rule, len(trials))
            )
        return summary, notes
    except DAMAGE as error:
        raise BadInput(f"{reading} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {reading}: {error.strerror}") from error


def as_designed(summary: Summary, treatments: Sequence[DesignedTreatment]) -> Summary:
    """With the results in design order; they appear in the order of their first trials."""
    places = {treatment.key(treatment.middleware): n for n, treatment in enumerate(treatments)}
    results = sorted(summary.results, key=lambda result: places.get(result.key(result.middleware), len(places)))
    return replace(summary, results=tuple(results))


def with_answers(
    summary: Summary,
    document: Document,
    seed: int,
    trials: Sequence[TrialData],
    cpus: int | None,
    looks: Looks | None = None,
) -> Summary:
    """With the experiment's analysis: comparisons, curves over its factors, or the breaking point it searched."""
    figures = trials[0].key_figures if trials else ()
    kinds = key_figures.kinds(figures)
    if document.breaking_point is not None:
        from perflab.design import breaking_point  # scipy takes a second to import

        asked = document.breaking_point
        goal = breaking_point.goal_of_document(document, asked, cpus, kinds)
        # The search compares levels that were tried once or twice; findings do not.
        return replace(
            summary,
            results=tuple(sorted(summary.results, key=lambda r: _place_of(goal, r))),
            breaking_points=tuple(breaking_point.results(goal, trials, seed)),
        )
    statistics = document.statistics
    if figures and any(result.trials > 1 for result in summary.results):
        confidence = 1 - statistics.alpha
        results = tuple(key_figures.with_medians(result, figures, confidence) for result in summary.results)
        summary = replace(summary, results=results)
    metrics = metrics_of(summary.results, document, kinds)
    margin = statistics.margin / 100
    summary = with_findings(summary, metrics, alpha=statistics.alpha, margin=margin, seed=seed, looks=looks)
    if document.claims:
        claims = judge(asked_of(document, kinds), summary.results, summary.findings, statistics.alpha)
        summary = replace(summary, claims=claims)
    summary = replace(summary, executor_costs=executor_costs.of(summary.results, statistics.alpha))
    if not document.factors or summary.findings is None:
        return summary
    from perflab.statistics import curves

    found = curves.of(summary.results, document.factors, metrics, alpha=statistics.alpha, margin=margin, seed=seed)
    return replace(summary, curves=tuple(found))


def _place_of(goal: Goal, result: Result) -> float:
    """Sort key of a result of a search: baselines first, then by level."""
    level = result.factors.get(goal.factor)
    return float("-inf") if level is None else goal.number(level)


def with_findings(
    summary: Summary,
    metrics: Sequence[Metric],
    *,
    alpha: float,
    margin: float,
    seed: int,
    looks: Looks | None = None,
) -> Summary:
    """With the results compared in these metrics; a single trial has no findings. `margin` 0.05: a factor of 1.05."""
    if sum(result.trials for result in summary.results) < 2:
        return summary
    from perflab.statistics import findings  # scipy takes a second to import, and most commands do not need it

    results = tuple(replace(r, intervals=findings.intervals(r, metrics, 1 - alpha)) for r in summary.results)
    found = findings.find(results, alpha=alpha, margin=margin, metrics=metrics, seed=seed, looks=looks)
    return replace(summary, results=results, findings=found)


def metrics_of(results: Sequence[Result], document: Document, figures: Mapping[str, str] | None) -> tuple[Metric, ...]:
    """The requested ones; else the usual ones, with the running time of a command that ends by itself."""
    ends = any(t.run_s is not None for result in results for t in result.trials_detail)
    found = metrics_asked(document, figures)
    return (METRICS["run_time"], *found) if ends and not document.statistics.metrics else found


def _read(
    directory: TrialDirectory, trial: TrialFile, notes: list[str]
) -> tuple[tuple[ProcessRecords, ...], str | None]:
    processes: list[ProcessRecords] = []
    problem: str | None = None
    for name, told in trial.processes.items():
        if told.condition:
            continue
        path = directory.records(name)
        try:
            process = records.read(path, name)
        except (RecordError, OSError) as error:
            problem = problem or str(error)
            process = ProcessRecords(name)
        if process.truncated:
            notes.append(f"{path.name} of {directory.path.name} ends within a line; the records before it count")
        processes.append(process)
    return tuple(processes), problem


def _unwanted(processes: Sequence[ProcessRecords], trial: TrialFile, notes: list[str]) -> str | None:
    """For messages that do not belong to the graph: why a success does not count."""
    strangers, malformed, forgotten = (
        sum(int((p.checkpoint or {}).get(f"{what}_messages") or 0) for p in processes)
        for what in ("foreign", "malformed", "forgotten")
    )
    if forgotten:
        notes.append(
            f"{forgotten} messages came after so many later ones that their due times are no longer known; they "
            "count as lost"
        )
    if strangers and trial.outcome == SUCCESS:
        return (
            f"{strangers} messages came from writers that are not in the graph: another program uses domain "
            f"{trial.domain}"
        )
    if malformed and trial.outcome == SUCCESS:
        return f"{malformed} messages do not have the type of their topic, and are in no figure"
    return None


def observed_times(
    directory: TrialDirectory, trial: TrialFile, processes: Sequence[ProcessRecords]
) -> dict[str, Histogram]:
    """The times that the trial's observers recorded, by name."""
    checkpoints = [p.checkpoint for p in processes if p.checkpoint is not None]
    found: dict[str, Histogram] = {}
    for kind in _observers(trial):
        found |= kind.histograms(directory.path, checkpoints)
    return found


def _allocations(costs: Sequence[ProcessCost | None]) -> int | None:
    """All processes in the measured part; None if one did not count them."""
    return added(None if cost is None else cost.allocations for cost in costs) if costs else None


def _allocation_sites(processes: Sequence[ProcessRecords]) -> tuple[AllocationSite, ...] | None:
    found = [(p.name, p.allocation_sites) for p in processes if p.allocation_sites is not None]
    if not found:
        return None
    return allocation_sites.most([site for name, record in found for site in allocation_sites.of_process(name, record)])


def _over_time(processes: Sequence[ProcessRecords], from_ns: int, until_ns: int) -> dict[str, Any]:
    """Resources from the samples within the measured part. Raises KeyError and TypeError."""
    return {
        "resources": tuple(resources_of(p.name, p.resources, from_ns, until_ns) for p in processes if p.resources),
        "latency_slope_ns_per_s": trend.of_latency([p.progress for p in processes], from_ns, until_ns),
        "rss_slope_kb_per_s": trend.of_memory([p.resources for p in processes], from_ns, until_ns),
    }


def _exact(used: ProcessResources, costs: Sequence[ProcessCost | None]) -> ProcessResources:
    """With the CPU time between the ends of the measured part, if it was recorded: samples lie slightly beside
    these."""
    percent = next((c.cpu_percent for c in costs if c is not None and c.process == used.process), None)
    return used if percent is None else replace(used, cpu_percent_mean=percent)


def _with_faults(used: ProcessResources, processes: Sequence[ProcessRecords]) -> ProcessResources:
    counts = next((system_counts.of_process(p.cost) for p in processes if p.name == used.process), {})
    return replace(used, minor_faults=counts.get("minor_faults"), major_faults=counts.get("major_faults"))


def _system_counts(processes: Sequence[ProcessRecords]) -> SystemCounts | None:
    """Raises KeyError and TypeError."""
    return system_counts.of_trial([p.cost for p in processes], [(p.end or {}).get("middleware") for p in processes])


def _ticks_per_s(directory: TrialDirectory, trial: TrialFile, accounts: Accounts | None) -> float | None:
    """Ticks of the workload's timers by their schedule, if no messages measure the work; None otherwise."""
    if accounts is None or any(e.received != 0 for e in accounts.edges) or accounts.services:
        return None
    for name in trial.processes:
        try:
            processes = read_json(directory.config(name))["graph"]["processes"]
            nodes = [node for process in processes for node in process["nodes"] if not node.get("condition")]
            periods = [timer["period_ns"] for node in nodes for timer in node["timers"]]
            return None if None in periods else float(sum(NS_PER_S / period_ns for period_ns in periods))
        except (BadInput, OSError, *DAMAGE):
            return None
    return None


def _families(directory: TrialDirectory, processes: Sequence[ProcessRecords]) -> Families | None:
    """For a profiled trial; None if it was not profiled, or its profile cannot be read."""
    path = directory.path / "profile" / "profile.json"
    if not path.is_file():
        return None
    try:
        roles = {t["tid"]: str(t["role"]) for p in processes for record in p.cost for t in record["threads"]}
        return families_of(read_json(path), roles)
    except (BadInput, OSError, *DAMAGE):
        return None


def _discovery(processes: Sequence[ProcessRecords], code: str) -> int | None:
    """From the creation of a process's participant to the event, in the slowest process that reports it."""
    times = []
    for process in processes:
        at = {event.get("code"): event.get("at_ns") for event in process.events}
        begin, end = at.get("participant_created"), at.get(code)
        if isinstance(begin, int) and isinstance(end, int):
            times.append(max(0, end - begin))
    return max(times, default=None)


def _first_messages(process: ProcessRecords) -> list[dict[str, int]]:
    """For its edges with messages; none for records from before it was recorded."""
    edges = (process.checkpoint or {}).get("edges", ())
    return [first for edge in edges if (first := edge.get("first_message")) is not None]


def _first_message(processes: Sequence[ProcessRecords]) -> int | None:
    firsts = [first for process in processes for first in _first_messages(process)]
    return max((first["at_ns"] - first["intended_ns"] for first in firsts), default=None)


def _recoveries(trial: TrialFile, processes: Sequence[ProcessRecords]) -> tuple[Recovery, ...]:
    by_name = {process.name: process for process in processes}
    found = []
    for name, told in trial.processes.items():
        after, before = by_name.get(name), by_name.get(told.continues or "")
        if told.started_ns is None or after is None or before is None:
            continue
        matched = next((e.get("at_ns") for e in after.events if e.get("code") == "all_endpoints_matched"), None)
        first = min((f["at_ns"] for f in _first_messages(after)), default=None)
        lives = before.checkpoint, after.checkpoint
        found.append(
            Recovery(
                process=before.name,
                matched_ns=None if matched is None else matched - told.started_ns,
                first_message_ns=None if first is None else first - told.started_ns,
                missed=None if lives[0] is None or lives[1] is None else missed_between(lives[0], lives[1]),
            )
        )
    return tuple(found)


def _threads(processes: Sequence[ProcessRecords]) -> tuple[ThreadGroup, ...] | None:
    """All threads of the trial; None if no process recorded its own."""
    if not any(p.threads for p in processes):
        return None
    return tuple(t for p in processes for t in threads_of(p.name, p.thread_states.values()))


def _passing(processes: Sequence[ProcessRecords]) -> tuple[Passing, ...] | None:
    """How the messages of all publishers were delivered; None if no process recorded it."""
    found = [p.passing["publishers"] for p in processes if p.passing is not None]
    if not found:
        return None
    keys = [f.name for f in fields(Passing)]
    passing = [Passing(**{key: p[key] for key in keys}) for publishers in found for p in publishers]
    return tuple(replace(p, node=p.node.removeprefix("/"), topic=p.topic.removeprefix("/")) for p in passing)


def _account(
    processes: Sequence[ProcessRecords],
    edges: Sequence[EdgeKey],
    services: Sequence[ServiceKey],
    drained: bool,
    crashed: Sequence[ProcessRecords],
) -> tuple[Accounts | None, str | None]:
    checkpoints: list[dict[str, Any] | None] = [p.checkpoint for p in processes]
    if not any(checkpoints):
        return None, None
    if any("source" in c for c in checkpoints if c is not None):  # of a command
        try:
            told = accounting.counted(checkpoints)
        except AccountingError as error:
            return None, str(error)
        return told, told.problems[0] if told.problems else None
    matched = all(p.start.matched for p in processes if p.start is not None)
    try:
        accounts = account(
            checkpoints,
            edges,
            services,
            matched_at_start=matched,
            drained=drained,
            earlier=[p.checkpoint for p in crashed],
        )
    except AccountingError as error:
        return None, str(error)
    more = f" (and {len(accounts.problems) - 1} more)" if len(accounts.problems) > 1 else ""
    return accounts, f"{accounts.problems[0]}{more}" if accounts.problems else None
