"""A run: trials in order, their files, and the summary at the end.

A crash at any instant loses at most the trial in progress: the manifest is written first, every trial's files
during and right after it, summary.json last.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from perflab import __version__
from perflab.errors import BadInput, Interrupted, PerflabError, TrialFailed, Unavailable, one_line
from perflab.experiment import domain, rundir
from perflab.experiment.collect import collect
from perflab.experiment.process import Signals
from perflab.experiment.rundir import RunDirectory, TrialDirectory, write_json
from perflab.experiment.settings import Experiment
from perflab.experiment.trial import (
    Listener,
    LiveProgress,
    TrialOutcome,
    TrialPlan,
    file_names,
    node_configuration,
    run_trial,
)
from perflab.experiment.variant import Variant
from perflab.formats import tables
from perflab.host import Host
from perflab.native import Native
from perflab.statistics.summary import Json, TrialData, summarize
from perflab.units import NS_PER_S

MANIFEST_SCHEMA = 1
BASELINE = "baseline"
CHECK_TIMEOUT_S = 60.0

# What reaches into the middlewares from outside, and so belongs to what was measured.
_ENVIRONMENT_PREFIXES = ("CYCLONEDDS_", "FASTDDS_", "FASTRTPS_", "ROS_", "RMW_", "ZENOH_", "IOX2_", "RCUTILS_")


@dataclass(frozen=True)
class RunResult:
    """What a run ended with; `error` is None when every trial was a success."""

    directory: RunDirectory
    summary: Json
    error: PerflabError | None


TrialReporter = Callable[[TrialPlan, int], AbstractContextManager[Callable[[LiveProgress], None]]]


def execute(experiment: Experiment, native: Native, host: Host, reporter: TrialReporter) -> RunResult:
    """Runs an experiment. `reporter(plan, trials)` gives a context whose value is told a trial's progress.

    Raises BadInput and Unavailable, with nothing written, when not even the first trial could begin; every other end
    is in the result.
    """
    node_program = native.program("perflab-node")
    for condition in experiment.conditions:
        condition.check(host, experiment.workload)
    for observer in experiment.observers:
        observer.check(host)
    with Signals() as signals:
        check_variants(experiment, node_program, signals)
        # What takes time comes first: a directory without a manifest is of no use to anybody.
        manifest = _manifest(experiment, native, host)
        directory = rundir.create(experiment.output, experiment.name)
        trials: list[TrialData] = []
        error: PerflabError | None = None
        try:
            write_json(directory.manifest, {"schema": MANIFEST_SCHEMA, "run": directory.path.name, **manifest})
            directory.reserve()
            domain_before: int | None = None
            for order, (repetition, variant) in enumerate(experiment.order(), start=1):
                signals.raise_if_received()
                with _domain(variant, domain_before) as held:
                    domain_before = held if held is not None else domain_before
                    plan = _plan(experiment, order, repetition, variant, held, node_program)
                    data, outcome = _one_trial(plan, experiment, directory, signals, reporter)
                trials.append(data)
                error = error or _error_of(plan, data, outcome)
                if outcome.last:
                    break
        except Interrupted as interrupt:
            error = interrupt
        except OSError as problem:
            error = TrialFailed(f"cannot write {problem.filename or directory.path}: {problem.strerror}")
        except PerflabError as problem:
            error = problem
        finally:
            directory.release_reserve()
        if isinstance(error, BadInput | Unavailable) and not any(trial.outcome == "success" for trial in trials):
            directory.discard()
            raise error
        summary = summarize(directory.path.name, trials, planned_trials=len(experiment.order()))
        if isinstance(error, Interrupted):
            summary["valid"] = False
        try:
            write_json(directory.summary, summary)
        except OSError as problem:
            error = error or TrialFailed(f"cannot write {directory.summary}: {problem.strerror}")
        if signals.received is not None:  # after the last trial: its run is whole, but what follows it must not begin
            error = error or Interrupted(signals.received)
    return RunResult(directory, summary, error)


def check_variants(experiment: Experiment, node_program: Path, signals: Signals) -> None:
    """Lets perflab-node judge what it would otherwise see only after other trials have run.

    Raises BadInput, Unavailable. The first variant is judged by the first trial.
    """
    for variant in experiment.variants[1:]:
        with _domain(variant, None) as held, tempfile.TemporaryDirectory() as folder:
            plan = _plan(experiment, 1, 1, variant, held, node_program)
            for process in file_names(plan):
                signals.raise_if_received()
                config = Path(folder) / "config.json"
                write_json(config, node_configuration(plan, process, Path(os.devnull)))
                _check(node_program, config, variant)


def _check(node_program: Path, config: Path, variant: Variant) -> None:
    done = subprocess.run(
        [node_program, "--check", "--config", config],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=CHECK_TIMEOUT_S,
        check=False,
    )
    complaint = one_line(done.stderr).removeprefix("perflab-node: ")
    for kind in (BadInput, Unavailable):
        if done.returncode == kind.exit_code:
            raise kind(complaint)
    if done.returncode != 0:
        raise PerflabError(f"{variant.words}: {complaint or f'perflab-node ended with {done.returncode}'}")


class _Keeper(Listener):
    """Keeps trial.json up to date while the trial runs, so that it tells of processes even after a crash."""

    def __init__(self, directory: TrialDirectory, document: Json) -> None:
        self._directory = directory
        self._document = document

    def launched(self, pids: Mapping[str, int]) -> None:
        for name, pid in pids.items():
            self._document["processes"][name]["pid"] = pid
        write_json(self._directory.trial_json, self._document)

    def created(self, name: str, shared_memory: Sequence[str]) -> None:
        self._document["processes"][name]["shared_memory"] = list(shared_memory)
        write_json(self._directory.trial_json, self._document)


def _one_trial(
    plan: TrialPlan, experiment: Experiment, run: RunDirectory, signals: Signals, reporter: TrialReporter
) -> tuple[TrialData, TrialOutcome]:
    """Runs one trial, collects what it recorded and closes its directory."""
    directory = run.new_trial(plan.order, plan.condition)
    document = _trial_document(plan, experiment)
    write_json(directory.trial_json, document)

    with reporter(plan, len(experiment.order())) as report:
        outcome = run_trial(plan, directory, signals, report, _Keeper(directory, document))
    run.release_reserve()
    document["status"] = "finished"
    document["ended_utc"] = _now()
    document["outcome"], document["reason"] = outcome.outcome, outcome.reason
    document["evidence"] = outcome.evidence
    document["artifacts"] = [{"kind": a.kind, "path": str(a.path)} for a in outcome.artifacts]
    document["start_at_ns"], document["drain"] = outcome.start_at_ns, outcome.drain
    for name, status in outcome.statuses.items():
        document["processes"][name]["status"] = status
        document["processes"][name]["log_tail"] = outcome.log_tails.get(name, [])
    graph = experiment.workload.graph
    collected = collect(directory, document, graph.edges(), graph.services())
    document["outcome"], document["reason"] = collected.data.outcome, collected.data.reason
    document["notes"] = [*outcome.notes, *collected.notes]
    try:
        document["tables"] = tables.write(directory.path, collected.data.accounts, collected.processes)
    except OSError as problem:
        document["notes"].append(f"the tables could not be written: {problem.strerror}")
    data = collected.data
    try:
        write_json(directory.trial_json, document)
        if not outcome.last:
            run.reserve()
    except OSError as problem:
        # What the nodes recorded is there; only our own last words are not.
        outcome.last = True
        reason = data.reason or f"cannot write {directory.trial_json}: {problem.strerror}"
        data = replace(data, outcome="harness_error" if data.outcome == "success" else data.outcome, reason=reason)
    return data, outcome


def _plan(
    experiment: Experiment, order: int, repetition: int, variant: Variant, held: int | None, program: Path
) -> TrialPlan:
    return TrialPlan(
        order=order,
        repetition=repetition,
        condition="+".join(c.name for c in experiment.conditions) or BASELINE,
        variant=variant,
        graph=experiment.workload.graph,
        settings=experiment.settings,
        domain=held,
        node_program=program,
        conditions=experiment.conditions,
        observers=experiment.observers,
    )


@contextlib.contextmanager
def _domain(variant: Variant, before: int | None) -> Iterator[int | None]:
    """A domain for the trial; none for the virtual runtime, which meets nobody."""
    if variant.runtime == "virtual":
        yield None
        return
    with domain.hold(after=before) as held:
        yield held


def _error_of(plan: TrialPlan, data: TrialData, outcome: TrialOutcome) -> PerflabError | None:
    if outcome.error is not None:
        return outcome.error
    if data.outcome == "success":
        return None
    return TrialFailed(f"trial {plan.order} ({plan.variant.words}): {data.outcome.replace('_', ' ')}: {data.reason}")


def _trial_document(plan: TrialPlan, experiment: Experiment) -> Json:
    """trial.json before the trial; what is not known yet is null."""
    return {
        "schema": 1,
        "trial": plan.order,
        "order": plan.order,
        "repetition": plan.repetition,
        "status": "running",
        "outcome": None,
        "reason": None,
        "workload": experiment.workload.name,
        "middleware": _middleware_document(plan),
        **plan.variant.document(),
        "service_framing": plan.variant.service_framing,
        "conditions": [c.name for c in experiment.conditions],
        "evidence": {},
        "artifacts": [],
        "duration_s": plan.settings.duration_ns / NS_PER_S,
        "warmup_s": plan.settings.warmup_ns / NS_PER_S,
        "domain": plan.domain,
        "started_utc": _now(),
        "ended_utc": None,
        "start_at_ns": None,
        "drain": None,
        "processes": {
            name: {"process": process, "pid": None, "shared_memory": None} for process, name in file_names(plan).items()
        },
    }


def _middleware_document(plan: TrialPlan) -> Json:
    """That of all processes; where each has its own, `processes` says which."""
    first, *others = plan.variant.middlewares
    if not others:
        return first.document()
    each = zip(plan.graph.processes, plan.variant.middlewares, strict=True)
    return {
        "name": plan.variant.middleware_name,
        "version": None,
        "options": {},
        "processes": {process: middleware.document() for process, middleware in each},
    }


def _manifest(experiment: Experiment, native: Native, host: Host) -> Json:
    """What is known before the run has a directory."""
    workload = experiment.workload
    return {
        "name": experiment.name,
        "created_utc": _now(),
        "command_line": list(experiment.command_line),
        "settings": experiment.settings.document(),
        "workload": {
            "kind": workload.kind,
            "name": workload.name,
            "sources": [{"path": s.path, "sha256": s.sha256, "text": s.text} for s in workload.sources],
            "graph": workload.graph.document,
            "edges": [list(edge) for edge in workload.graph.edges()],
            "services": [list(service) for service in workload.graph.services()],
        },
        "middlewares": list(
            {m.name: m.document() for variant in experiment.variants for m in variant.middlewares}.values()
        ),
        "variants": [{"middleware": v.middleware_name, **v.document()} for v in experiment.variants],
        "conditions": [{"name": c.name, "parameters": c.parameters} for c in experiment.conditions],
        "observers": [{"name": o.name, "parameters": o.parameters} for o in experiment.observers],
        "trials": [
            {
                "order": order,
                "repetition": repetition,
                "middleware": variant.middleware_name,
                **variant.document(),
                "seed": experiment.settings.seed + repetition - 1,
            }
            for order, (repetition, variant) in enumerate(experiment.order(), start=1)
        ],
        "versions": _versions(native),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_ENVIRONMENT_PREFIXES)},
        "host": host.facts(),
        "preflight": [check.document() for check in host.preflight()],
        "controller": {"pid": os.getpid(), "start_ticks": process_start_ticks(os.getpid()), "boot_id": host.boot_id()},
        "clock": {"monotonic_ns": time.monotonic_ns(), "wall_ns": time.time_ns()},
    }


def still_running(manifest: Json, host: Host) -> bool:
    """Whether the perflab that wrote the manifest is still alive on this machine."""
    controller = manifest.get("controller") or {}
    pid, ticks = controller.get("pid"), controller.get("start_ticks")
    if not isinstance(pid, int) or ticks is None or controller.get("boot_id") != host.boot_id():
        return False
    return process_start_ticks(pid) == int(ticks)


def process_start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; with its number it identifies a process. None if gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(status.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _versions(native: Native) -> Json:
    packages: dict[str, str | None] = {}
    for name in ("numpy", "polars", "pydantic", "rich", "typer"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "perflab": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "native": str(native.folder),
        "packages": packages,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
