"""From the files of a trial to its numbers: the same for a trial that just ended and for one found years later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from perflab.errors import DAMAGE, BadInput
from perflab.experiment.rundir import RunDirectory, TrialDirectory, read_json
from perflab.formats import records
from perflab.formats.records import ProcessRecords, RecordError
from perflab.statistics.accounting import AccountingError, Accounts, EdgeKey, ServiceKey, account
from perflab.statistics.summary import (
    PASSING,
    Json,
    ProcessResources,
    Thread,
    TrialData,
    resources_of,
    summarize,
    threads_of,
)
from perflab.units import NS_PER_S


@dataclass(frozen=True)
class Collected:
    """A trial's data, the records they came from, and what was not whole about these."""

    data: TrialData
    processes: tuple[ProcessRecords, ...]
    notes: tuple[str, ...]


def trial_document(directory: TrialDirectory) -> Json | None:
    """trial.json, or None where perflab ended before it wrote one."""
    return read_json(directory.trial_json) if directory.trial_json.exists() else None


def collect(
    directory: TrialDirectory, trial: Json, edges: Sequence[EdgeKey], services: Sequence[ServiceKey] = ()
) -> Collected:
    """Reads the records of a trial and draws up its accounts.

    A success whose records do not add up, or are not complete, becomes a harness_error that says where.
    """
    notes: list[str] = []
    processes, problem = _read(directory, trial, notes)
    drained = trial["outcome"] == "success" or trial.get("drain") is not None
    accounts, accounting_problem = _account(processes, edges, services, drained)
    problem = problem or accounting_problem
    starts = [p.start for p in processes if p.start is not None]
    from_ns = min((s.measured_from_ns for s in starts), default=None)
    until_ns = max((s.measured_until_ns for s in starts), default=None)
    resources: tuple[ProcessResources, ...] = ()
    measured_s = None
    if from_ns is not None and until_ns is not None:
        last_ns = max((p.checkpoint["at_ns"] for p in processes if p.checkpoint is not None), default=from_ns)
        measured_s = max(0, min(last_ns, until_ns) - from_ns) / NS_PER_S
        try:
            resources = tuple(resources_of(p.name, p.resources, from_ns, until_ns) for p in processes if p.resources)
        except (KeyError, TypeError) as error:
            problem = problem or f"a resource record lacks {error}"
    threads: tuple[Thread, ...] | None = None
    passing: tuple[Json, ...] | None = None
    try:
        threads, passing = _threads(processes), _passing(processes)
    except (KeyError, TypeError, ValueError) as error:
        problem = problem or f"a record of threads or of passing lacks {error}"
    data = TrialData(
        number=int(trial["trial"]),
        order=int(trial["order"]),
        workload=str(trial["workload"]),
        middleware=str(trial["middleware"]["name"]),
        conditions=tuple(trial["conditions"]),
        outcome=str(trial["outcome"] or "harness_error"),
        reason=trial["reason"],
        drain=trial.get("drain"),
        duration_s=float(trial["duration_s"]),
        measured_s=measured_s,
        started_ns=from_ns,
        accounts=accounts,
        resources=resources,
        participants_found_ns=_discovery(processes, "all_participants_found"),
        endpoints_matched_ns=_discovery(processes, "all_endpoints_matched"),
        executor=trial.get("executor"),
        ipc=trial.get("ipc"),
        pass_by=trial.get("pass_by"),
        threads=threads,
        passing=passing,
    )
    if data.outcome == "success":
        if problem is None and (accounts is None or not accounts.complete):
            silent = [p.name for p in processes if not p.final]
            problem = f"process {silent[0]!r} wrote no final checkpoint" if silent else "nothing was recorded"
        if problem is not None:
            data = replace(data, outcome="harness_error", reason=problem)
    elif problem is not None:
        notes.append(problem)
    return Collected(data, processes, tuple(notes))


def collect_run(run: RunDirectory) -> tuple[Json, list[str]]:
    """The summary of a run that wrote none, rebuilt from whatever its trials recorded, and what to say about it."""
    manifest = read_json(run.manifest)
    notes: list[str] = []
    trials: list[TrialData] = []
    reading = run.manifest
    try:
        edges = [tuple(e) for e in manifest["workload"]["edges"]]
        services = [tuple(s) for s in manifest["workload"].get("services", ())]
        name, planned = str(manifest["run"]), len(manifest["trials"])
        reading = run.path
        for directory in run.trials():
            reading = directory.path
            document = trial_document(directory)
            if document is None:
                notes.append(f"{directory.path.name} was being prepared and recorded nothing")
                continue
            if document["status"] != "finished":
                document["outcome"] = document["outcome"] or "harness_error"
                document["reason"] = document["reason"] or "perflab ended before the trial did"
            collected = collect(directory, document, edges, services)
            trials.append(collected.data)
            notes.extend(collected.notes)
        return summarize(name, trials, planned_trials=planned), notes
    except DAMAGE as error:
        raise BadInput(f"{reading} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {reading}: {error.strerror}") from error


def _read(directory: TrialDirectory, trial: Json, notes: list[str]) -> tuple[tuple[ProcessRecords, ...], str | None]:
    processes: list[ProcessRecords] = []
    problem: str | None = None
    for name in trial["processes"]:
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


def _discovery(processes: Sequence[ProcessRecords], code: str) -> int | None:
    """From the creation of a process's participant to the event, in the slowest process that reports it."""
    times = []
    for process in processes:
        at = {event.get("code"): event.get("at_ns") for event in process.events}
        begin, end = at.get("participant_created"), at.get(code)
        if isinstance(begin, int) and isinstance(end, int):
            times.append(max(0, end - begin))
    return max(times, default=None)


def _threads(processes: Sequence[ProcessRecords]) -> tuple[Thread, ...] | None:
    """All threads of the trial; None where no process recorded its own."""
    if not any(p.threads for p in processes):
        return None
    return tuple(t for p in processes for t in threads_of(p.name, p.thread_states.values()))


def _passing(processes: Sequence[ProcessRecords]) -> tuple[Json, ...] | None:
    """How the messages of all publishers went; None where no process recorded it."""
    found = [p.passing["publishers"] for p in processes if p.passing is not None]
    if not found:
        return None
    return tuple({key: p[key] for key in PASSING} for publishers in found for p in publishers)


def _account(
    processes: Sequence[ProcessRecords], edges: Sequence[EdgeKey], services: Sequence[ServiceKey], drained: bool
) -> tuple[Accounts | None, str | None]:
    checkpoints: list[dict[str, Any] | None] = [p.checkpoint for p in processes]
    if not any(checkpoints):
        return None, None
    matched = all(p.start.matched for p in processes if p.start is not None)
    try:
        accounts = account(checkpoints, edges, services, matched_at_start=matched, drained=drained)
    except AccountingError as error:
        return None, str(error)
    more = f" (and {len(accounts.problems) - 1} more)" if len(accounts.problems) > 1 else ""
    return accounts, f"{accounts.problems[0]}{more}" if accounts.problems else None
