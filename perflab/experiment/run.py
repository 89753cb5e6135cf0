"""A run: trials in the order of the plan, their files, and the summary at the end.

A crash at any instant loses at most the trial in progress: the manifest is written first, every trial's files
during and right after it, summary.json last. Missing trials can be run later: `resume`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perflab import models, programs, tracer, waiting
from perflab.condition import Condition, extended
from perflab.design.settings import Experiment
from perflab.design.sweep import possible
from perflab.design.treatments import CONTROL, Course, Planned, Treatment, designed, planned_trials
from perflab.design.until_decided import looks_of
from perflab.design.variant import Variant
from perflab.errors import BadInput, Interrupted, PerflabError, TrialFailed, Unavailable, one_line
from perflab.experiment import domain, liveness
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.deciding import Deciding, too_few
from perflab.experiment.inventory import environment, inventory, package_version
from perflab.experiment.nodes import node_configuration, program_of
from perflab.experiment.quiet import QuietMachine, threshold_percent
from perflab.experiment.running import Ended, Keeper
from perflab.experiment.surroundings import needs_monitor
from perflab.experiment.trial import run_trial
from perflab.experiment.trial_plan import TrialPlan
from perflab.formats import loops, tables
from perflab.formats.json_file import write_json
from perflab.host import Host
from perflab.middleware import security
from perflab.models import as_json
from perflab.native import Native
from perflab.observer.tracing import Tracing
from perflab.phases import phase
from perflab.processes import last_words, pid_namespace, start_ticks
from perflab.results.curve import BreakingPoint
from perflab.results.files import (
    Clock,
    Controller,
    CoolDown,
    DesignedVariant,
    LeftOutLevel,
    Manifest,
    TrialFile,
    UsedExperiment,
    UsedSettings,
    UsedWorkload,
    Versions,
    utc_now,
)
from perflab.results.outcome import FAILED, HARNESS_ERROR, SUCCESS
from perflab.results.summary import Summary
from perflab.results.trial import Asked
from perflab.runs import delays, rundir, traced
from perflab.runs.collect import Collected, as_designed, collect, expected_of, with_answers
from perflab.runs.display import Display, FinishedTrial, LiveProgress, PlannedTrial, RunPlan
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.runs.trials import own_trials
from perflab.signals import Signals
from perflab.statistics import histogram as hg
from perflab.statistics import key_figures, said
from perflab.statistics.key_figures import KeyFigure
from perflab.statistics.metrics import Criterion, parse_criterion
from perflab.statistics.summary import TrialData, figures_of, summarize
from perflab.statistics.target import machine_cpus
from perflab.units import NS_PER_S, format_duration
from perflab.version import __version__
from perflab.waiting import Wait
from perflab.workload import Graph, Workload, outside

CHECK_TIMEOUT_S = 60.0
RECORDED_FROM_OUTSIDE = "perflab ran inside of the recorded trace: the figures include its cost"
REFERENCE_S = 0.3  # how long the machine is observed before the first trial


@dataclass(frozen=True)
class RunResult:
    """How a run ended; `error` is None if every trial was a success."""

    directory: RunDirectory
    manifest: Manifest
    summary: Summary
    error: PerflabError | None


@dataclass(frozen=True)
class Earlier:
    """What a resumed run already has: its directory, its manifest, and its finished trials by slot."""

    directory: RunDirectory
    manifest: Manifest
    run_id: str
    trials: Mapping[int, TrialData]
    seconds: float = 0.0


@dataclass(frozen=True)
class Admitted:
    """A treatment on this machine: its resolved conditions, and the graph with their additions."""

    conditions: tuple[Condition, ...]
    graph: Graph


@dataclass
class _Context:
    """What every trial of a run needs."""

    experiment: Experiment
    native: Native
    host: Host
    signals: Signals
    display: Display
    run_id: str
    admitted: dict[tuple[object, ...], Admitted]  # by treatment key
    criteria: tuple[Criterion, ...]
    figures: tuple[KeyFigure, ...]
    monitored: bool
    machine: QuietMachine = field(default_factory=QuietMachine)
    quiet_percent: float | None = None


def execute(
    experiment: Experiment, native: Native, host: Host, display: Display, earlier: Earlier | None = None
) -> RunResult:
    """Runs an experiment, or what `earlier` lacks of it.

    Raises BadInput and Unavailable, with nothing written, if not even the first trial can begin; every other end is in
    the result.
    """
    with Signals() as signals, waiting.told_to(display.waiting), _domain_of_all(experiment):
        with phase("checking what this machine can do"):
            experiment = possible(experiment, host)
            context = _prepare(experiment, native, host, signals, display, earlier)
            # Slow steps come first: a directory without a manifest is useless.
            manifest = _manifest(context) if earlier is None else earlier.manifest
        directory = rundir.create(experiment.output, experiment.name) if earlier is None else earlier.directory
        trials: dict[int, TrialData] = dict(earlier.trials) if earlier is not None else {}
        error = next((failure for data in trials.values() if (failure := _failure(experiment, data))), None)
        begun = False
        shown = partial(_show_planned, display, experiment)
        deciding = Deciding(experiment, directory, trials, display.note, shown)
        try:
            if earlier is None:
                manifest = replace(manifest, run=directory.path.name)
                directory.write_manifest(manifest)
            begun = True
            directory.reserve()
            display.begin(_run_plan(experiment, trials))
            for note in (*experiment.notes, *too_few(experiment)):
                display.note(note)
            with phase(""):  # the display shows the progress
                error = _run_trials(context, deciding.course, directory, trials) or error
        except Interrupted as interrupt:
            error = interrupt
        except OSError as problem:
            error = TrialFailed(f"cannot write {problem.filename or directory.path}: {problem.strerror}")
        except PerflabError as problem:
            error = problem
        finally:
            display.close()
            directory.release_reserve()
        if begun and not directory.manifest.exists() and not isinstance(error, Interrupted):
            raise TrialFailed(
                f"the run directory {directory.path} was moved or removed during the run; at its new place, "
                "`perflab show` shows what was recorded, and `perflab run --resume` continues"
            )
        useless = not any(_is_of_use(experiment, trial) for trial in trials.values())
        if isinstance(error, BadInput | Unavailable) and useless and earlier is None:
            directory.discard()
            raise error
        with phase("comparing the trials"):
            manifest = deciding.close(manifest)
            summary = summary_of(manifest, experiment, list(trials.values()))
        if isinstance(error, Interrupted):
            summary = replace(summary, valid=False)
        elif error is None:
            error = _nothing_found(summary.breaking_points)
        unwritten = _write_summary(directory, summary)
        error = error or unwritten
        if signals.seen is not None:  # after the last trial: its run is complete, but nothing may follow
            error = error or Interrupted(signals.seen)
    return RunResult(directory, manifest, summary, error)


def _write_summary(directory: RunDirectory, summary: Summary) -> TrialFailed | None:
    """Why it cannot be written, or None."""
    try:
        write_json(directory.summary, as_json(summary))
    except OSError as problem:
        return TrialFailed(f"cannot write {directory.summary}: {problem.strerror}")
    return None


def _show_planned(display: Display, experiment: Experiment, planned: Planned) -> None:
    display.planned(_planned_trial(experiment, planned.order, planned.treatment))


def summary_of(manifest: Manifest, experiment: Experiment, trials: Sequence[TrialData]) -> Summary:
    """With its findings."""
    planned = len(trials) if experiment.search is not None else len(manifest.trials)
    summary = summarize(manifest.run, sorted(trials, key=lambda t: t.order), planned_trials=planned)
    summary = as_designed(summary, list(map(designed, experiment.treatments)))
    cpus, looks = machine_cpus(Host().facts()), looks_of(manifest.rule, len(trials))
    return with_answers(summary, experiment.document, experiment.settings.seed, trials, cpus, looks)


def _prepare(
    experiment: Experiment,
    native: Native,
    host: Host,
    signals: Signals,
    display: Display,
    earlier: Earlier | None,
) -> _Context:
    """All checks that are possible before anything is written. Raises BadInput, Unavailable."""
    figures = key_figures.declared(experiment.workload.graph.document)
    kinds = key_figures.kinds(figures)
    criteria = tuple(parse_criterion(text, figures=kinds) for text in experiment.document.success)
    admitted = {treatment.key: _admitted(treatment, experiment, host) for treatment in experiment.treatments}
    everything = experiment.treatments
    for daemon in dict.fromkeys(daemon for t in everything for daemon in t.in_trial.daemons):
        daemon.require_none()
    # For a command it is the source of resources.
    monitored = experiment.workload.command is not None
    monitored = monitored or any(needs_monitor(t.conditions, t.observers) for t in everything)
    if monitored and any(t.variant.runtime != "virtual" for t in everything):
        native.program("perflab-monitor")
        native.program("perflab-guard")
    threads = experiment.settings.threads
    graphs = {t.key: admitted[t.key].graph for t in everything}
    if any(t.variant.runtime != "virtual" and liveness.uses(graphs[t.key], threads, t.conditions) for t in everything):
        native.program(liveness.PROGRAM)
        native.program("perflab-guard")
    context = _Context(
        experiment=experiment,
        native=native,
        host=host,
        signals=signals,
        display=display,
        run_id=uuid.uuid4().hex if earlier is None else earlier.run_id,
        admitted=admitted,
        criteria=criteria,
        figures=figures,
        monitored=monitored,
    )
    _check_treatments(context)
    return context


def _admitted(treatment: Treatment, experiment: Experiment, host: Host) -> Admitted:
    """Raises BadInput, or Unavailable if this machine cannot do all of it."""
    runtime = experiment.runtime_of(treatment)
    treatment.check(host, runtime)
    for condition in treatment.conditions:
        condition.check_network(experiment.settings.network)
    for observer in treatment.observers:
        observer.check(host, runtime)
    conditions = tuple(condition.resolved(host) for condition in treatment.conditions)
    graph = extended(treatment.graph, conditions)
    if runtime != "virtual":
        liveness.check(treatment.label, graph, experiment.settings.threads, conditions, host)
    _check_processes(treatment, graph, experiment.workload)
    return Admitted(conditions, graph)


def _check_processes(treatment: Treatment, graph: Graph, workload: Workload) -> None:
    first = treatment.variant.middlewares[0]
    hosted = graph.with_nodes.processes
    if workload.command is not None and not set(workload.command.drawn.processes).isdisjoint(hosted):
        raise BadInput(
            f"{treatment.label}: the workload is a command, to which perflab cannot add nodes; leave own_process "
            "on, with readers=external or readers=none"
        )
    if len(hosted) > 1 and not first.across_processes:
        added = ", ".join(graph.condition_processes)
        raise BadInput(
            f"{treatment.label}: middleware {first.name} does not connect processes, but the condition adds "
            f"{added}; message_flood can publish from within with own_process=off"
        )


def _check_treatments(context: _Context) -> None:
    """Lets the processes check what they would otherwise reject only after other trials have run.

    Raises BadInput, Unavailable. The first trial checks its own treatment, unless programs may reject it, or loops are
    measured, which not every graph has: then it is checked before any trial.
    """
    document = context.experiment.document
    first = context.experiment.course().next()
    judged = set()
    may_refuse = context.experiment.workload.graph.programs or "loops" in context.experiment.settings.measure
    if first is not None and first.treatment.key in context.admitted and not may_refuse:
        judged.add((first.treatment.in_trial.key, id(context.admitted[first.treatment.key].graph)))
    for treatment in context.experiment.treatments:
        graph = context.admitted[treatment.key].graph
        if (treatment.in_trial.key, id(graph)) in judged:
            continue
        judged.add((treatment.in_trial.key, id(graph)))
        with (
            _domain(treatment.variant, None, document.domain) as held,
            tempfile.TemporaryDirectory() as folder,
            contextlib.ExitStack() as beside,
        ):
            plan = _plan(context, Planned(1, 1, treatment), held)
            outside.check(plan.graph)
            node_programs = {process: program_of(plan, process) for process in plan.node_names}
            beside.enter_context(_daemons(plan, Path(folder)))
            credentials = Path(folder) / security.OPTION
            if any(middleware.secured for middleware in plan.variant.middlewares):
                credentials.mkdir()
                security.make(credentials, held or 0)
            for process in plan.node_names:
                context.signals.raise_if_received()
                config = Path(folder) / "config.json"
                write_json(config, node_configuration(plan, process, Path(os.devnull), credentials=credentials))
                index = 0 if process is None else plan.hosted.processes.index(process)
                _check(node_programs[process], config, treatment, plan.variant.middleware_of(index).environment)


@contextlib.contextmanager
def _daemons(plan: TrialPlan, folder: Path) -> Iterator[None]:
    """The daemons that the processes of the plan need."""
    with contextlib.ExitStack() as running:
        for daemon in plan.variant.daemons:
            daemon.require_none()
            log = folder / f"{daemon.name}.log"
            guard = plan.native.program("perflab-guard")
            command = daemon.command(plan.hosted.document, folder)
            companion = running.enter_context(GuardedCompanion(daemon.name, command, guard=guard, log=log))
            while not daemon.ready():
                waiting.raise_if_interrupted()
                companion.poll()
                if companion.finished:
                    raise Unavailable(f"{daemon.name} ended at once{last_words(log)}")
                time.sleep(waiting.STEP_S)
        yield


def _check(node_program: Path, config: Path, treatment: Treatment, environment: Mapping[str, str]) -> None:
    command: list[str | Path] = [node_program, "--check", "--config", config]
    done = programs.ask(command, limit_s=CHECK_TIMEOUT_S, environment=environment)
    complaint = one_line(done.stderr).removeprefix(f"{node_program.name}: ").removeprefix(f"{config}: ")
    for kind in (BadInput, Unavailable):
        if done.returncode == kind.exit_code:
            raise kind(complaint)
    if done.returncode != 0:
        raise PerflabError(f"{treatment.words}: {complaint or f'{node_program.name} ended with {done.returncode}'}")


def _run_trials(
    context: _Context, course: Course, directory: RunDirectory, trials: dict[int, TrialData]
) -> PerflabError | None:
    """Runs missing trials and adds them to `trials`; returns the first error, if any."""
    error: PerflabError | None = None
    domain_before: int | None = None
    experiment = context.experiment
    if any(t.variant.runtime != "virtual" for t in experiment.treatments):
        reference = context.machine.measure(REFERENCE_S)
        chosen = context.experiment.settings.quiet_threshold
        context.quiet_percent = threshold_percent(reference) if chosen is None else chosen
    while (planned := course.next()) is not None:
        if (before := trials.get(planned.order)) is not None:
            _check_same(planned, before)
            course.ended(planned, before)
            continue
        context.signals.raise_if_seen()
        _admit(context, planned)
        with _domain(planned.treatment.variant, domain_before, experiment.document.domain) as held:
            domain_before = held if held is not None else domain_before
            plan = _plan(context, planned, held)
            data, ended = _one_trial(context, plan, planned, directory)
        trials[planned.order] = data
        error = error or ended.error or _failure(experiment, data, planned.treatment.words)
        if ended.last:
            break
        course.ended(planned, data)
    return error


def _check_same(planned: Planned, before: TrialData) -> None:
    """Checks that a trial of a resumed run is the one that comes now."""
    if before.treatment != planned.treatment.label:
        raise BadInput(
            f"trial {before.number} is of {before.treatment!r}, but {planned.treatment.label!r} would come now: "
            "the run was made by another version of perflab; run it again"
        )


def _admit(context: _Context, planned: Planned) -> None:
    """Checks a treatment that was unknown when the run began, like `_prepare`."""
    treatment = planned.treatment
    if treatment.key not in context.admitted:
        context.admitted[treatment.key] = _admitted(treatment, context.experiment, context.host)
    if context.experiment.search is not None:
        _show_planned(context.display, context.experiment, planned)


def _one_trial(context: _Context, plan: TrialPlan, planned: Planned, run: RunDirectory) -> tuple[TrialData, Ended]:
    """Runs one trial, collects its records and closes its directory."""
    began = time.monotonic()
    experiment, display = context.experiment, context.display
    directory = run.new_trial(planned.treatment.label)
    keeper = Keeper(directory, _begun(context, plan, planned, directory))
    keeper.write()
    plan.write(directory)
    display.trial_started(planned.order)
    if plan.variant.runtime != "virtual" and context.quiet_percent is not None and experiment.settings.quiet_limit_ns:
        display.progress(LiveProgress("waiting for quiet", 0, 0, 0, 0))
        try:
            keeper.note(cool_down=_cool_down(context))
        except Interrupted as interrupt:
            keeper.note(reason=str(interrupt))
            keeper.file = keeper.file.ended
            keeper.write()
            raise
    ended = run_trial(plan, directory, context.signals, display.progress, keeper)
    run.release_reserve()
    graph = plan.graph
    # The processes that a command starts are unknown.
    processes = ended.file.processes.values() if plan.command is None else ()
    pids = {process.pid for process in processes if process.pid is not None}
    named = next((observer.paths for observer in plan.observers if isinstance(observer, Tracing)), None)
    told = traced.explain(directory.path, graph, plan.settings.thresholds, pids, named)
    collected = collect(directory, ended.file, graph.edges(), graph.services(), context.figures)
    by_kind, stretch = _judged_by_kind(collected, experiment.workload, directory.path)
    told += traced.keep_stretch(directory.path, stretch, collected.processes, pids)
    data = _judged(by_kind, context.criteria)
    recorded = [RECORDED_FROM_OUTSIDE] if tracer.is_recorded() and plan.variant.runtime != "virtual" else []
    keeper.note(
        outcome=data.outcome,
        reason=data.reason,
        own_outcome=data.own_outcome,
        own_figures=data.own_figures,
        own_times=data.own_times,
        starved=data.starved,
        criteria=data.criteria,
        notes=(*recorded, *ended.file.notes, *told, *collected.notes),
    )
    try:
        keeper.note(tables=tuple(tables.write(directory.path, data.accounts, collected.processes)))
    except OSError as problem:
        keeper.add_note(f"the tables could not be written: {problem.strerror}")
    try:
        keeper.write()
        if not ended.last:
            run.reserve()
    except OSError as problem:
        # The nodes' records exist; only perflab's own final report is missing.
        ended = replace(ended, last=True)
        reason = data.reason or f"cannot write {directory.trial_json}: {problem.strerror}"
        data = replace(data, outcome=HARNESS_ERROR if data.outcome == SUCCESS else data.outcome, reason=reason)
    display.trial_finished(FinishedTrial(trial=figures_of(data), took_s=time.monotonic() - began))
    return data, ended


def _judged_by_kind(
    collected: Collected, workload: Workload, directory: Path
) -> tuple[TrialData, tuple[int, int] | None]:
    """The trial with its judgement by the kind of workload, and when it made no progress according to that; a failure
    of the workload only gets a name."""
    data = collected.data
    if not data.outcome.judged:
        return data, None
    try:
        found_loops = [timer for p in collected.processes for timer in loops.of(p.name, p.loops)]
        lives = [loops.life(process) for process in collected.processes]
        starvation = traced.starvation(directory, collected.processes)
        if starvation is None:
            starvation = delays.starvation(directory, collected.processes)
        told = said.of({process.name: process.program for process in collected.processes})
        found, outcome = workload.at(data.factors).judged(
            figures_of(data), directory, found_loops, lives, starvation, told, data.broken_off
        )
        times = {name: hg.to_record(histogram) for name, histogram in found.times.items()}
    except Exception as error:  # noqa: BLE001 - of a kind that may be anybody's
        reason = f"workload {workload.kind} cannot judge the trial: {one_line(f'{type(error).__name__}: {error}')}"
        return replace(data, outcome=HARNESS_ERROR, reason=reason), None
    data = replace(data, own_figures=found.figures, own_times=times)
    if outcome is None or data.outcome not in (SUCCESS, outcome.of):
        return data, found.stretch
    why = "; ".join(filter(None, (data.reason, found.reason)))
    reason = f"{outcome.words}: {why}" if why else outcome.words
    judged = replace(
        data,
        outcome=outcome.of,
        own_outcome=outcome,
        reason=None if outcome.of == SUCCESS else reason,
        starved=found.starved or data.starved,
    )
    return judged, found.stretch


def _judged(data: TrialData, criteria: Sequence[Criterion]) -> TrialData:
    """The trial with the criteria of success applied to it; a success that misses one becomes a failure."""
    if data.outcome != SUCCESS or not criteria:
        return data
    figures = figures_of(data)
    verdicts = [criterion.evaluate(figures) for criterion in criteria]
    missed = [v.words for v in verdicts if not v.met]
    judged = replace(data, criteria=tuple(verdicts))
    return replace(judged, outcome=FAILED, reason=str(missed[0])) if missed else judged


def _cool_down(context: _Context) -> CoolDown:
    """Waits until the machine is as quiet as at first; returns the measurements. Raises Interrupted."""
    threshold = context.quiet_percent
    assert threshold is not None

    limit_s = context.experiment.settings.quiet_limit_ns / NS_PER_S
    shown = Wait(f"the machine to be as quiet as before the run (at most {threshold:.0f} % busy)", limit_s)

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        shown.look()

    return context.machine.await_quiet(threshold, limit_s=limit_s, wait=wait)


def _plan(context: _Context, planned: Planned, held: int | None) -> TrialPlan:
    treatment, experiment = planned.treatment, context.experiment
    admitted = context.admitted[treatment.key]
    workload = experiment.workload.at(treatment.factors)
    return TrialPlan(
        graph=admitted.graph,
        variant=treatment.in_trial,
        settings=experiment.settings.pinned(treatment.pins),
        seed=experiment.settings.seed + planned.block - 1,
        domain=held,
        native=context.native,
        conditions=admitted.conditions,
        observers=treatment.observers,
        # A control shows the cost of observing, and perflab-monitor is part of that.
        monitored=context.monitored
        and treatment.variant.runtime != "virtual"
        and (workload.command is not None or treatment.purpose != CONTROL),
        command=workload.command,
    )


@contextlib.contextmanager
def _domain_of_all(experiment: Experiment) -> Iterator[None]:
    """Holds the requested domain during the whole run, including between two trials."""
    asked = experiment.document.domain
    with contextlib.nullcontext() if asked is None else domain.hold_this(asked):
        yield


@contextlib.contextmanager
def _domain(variant: Variant, before: int | None, asked: int | None) -> Iterator[int | None]:
    """A domain for the trial, `asked` if the run holds that; none for the virtual runtime, which has no peers."""
    if variant.runtime == "virtual" or asked is not None:
        yield None if variant.runtime == "virtual" else asked
        return
    with domain.hold(after=before) as held:
        yield held


def _is_of_use(experiment: Experiment, trial: TrialData) -> bool:
    """Whether a run that cannot continue is worth keeping; baselines alone are not a search."""
    return trial.outcome == SUCCESS and (experiment.search is None or experiment.search.goal.factor in trial.factors)


def _failure(experiment: Experiment, data: TrialData, words: str | None = None) -> PerflabError | None:
    """How a trial ends the run; for a sweep or a search, a failed trial is a result."""
    is_result = data.outcome.judged if experiment.document.sweep else data.outcome == SUCCESS
    if experiment.search is not None or is_result:
        return None
    named = "" if words is None else f" ({words})"
    return TrialFailed(f"trial {data.number}{named}: {data.outcome.words}: {data.reason}")


def _nothing_found(found: Sequence[BreakingPoint]) -> PerflabError | None:
    """A message for a search in which no trial gave an answer."""
    empty = next((f for f in found if not f.trials), None)
    return None if empty is None else TrialFailed(f"{empty.variant}: {' '.join(empty.words)}")


def _run_plan(experiment: Experiment, finished: Mapping[int, TrialData]) -> RunPlan:
    most = max(experiment.course().most, *finished, 0)
    treatments = {p.order: p.treatment for p in experiment.order}  # none for a search, which decides by itself
    entries = [_planned_trial(experiment, n, treatments.get(n)) for n in range(1, most + 1) if n not in finished]
    real = any(not entry.virtual for entry in entries)
    return RunPlan(
        most,
        tuple(entries),
        at_most=experiment.search is not None,
        quiet_limit_s=experiment.settings.quiet_limit_ns / NS_PER_S if real else 0.0,
        rough=experiment.document.quick,
        adds=_adds(experiment),
    )


def _adds(experiment: Experiment) -> str | None:
    if experiment.rule is not None:
        at_most = format_duration(experiment.rule.at_most_s)
        return f"repetitions are added until every comparison is decided, for at most {at_most}"
    most = experiment.document.until_clear
    if most is None or most <= experiment.document.trials:
        return None
    return f"treatments with an unclear outcome get more repetitions, up to {most} of each"


def _planned_trial(experiment: Experiment, order: int, treatment: Treatment | None) -> PlannedTrial:
    label = experiment.search.goal.factor if experiment.search is not None else ""
    label, variant = (label, "") if treatment is None else (treatment.title, treatment.variant.words)
    settings = experiment.settings if treatment is None else experiment.settings.pinned(treatment.pins)
    warmup_s = settings.warmup_ns / NS_PER_S
    variants = experiment.variants if treatment is None else [treatment.variant]
    return PlannedTrial(
        order,
        label,
        variant,
        settings.trial_s,
        warmup_s,
        virtual=all(v.runtime == "virtual" for v in variants),
        endless=not settings.duration_ns,
        open=experiment.workload.graph.limit_ns is not None,
    )


def _begun(context: _Context, plan: TrialPlan, planned: Planned, directory: TrialDirectory) -> TrialFile:
    """trial.json before the trial, with the trial's place in the run."""
    return replace(
        plan.begun(),
        **models.shared(Asked, designed(planned.treatment)),
        run_id=context.run_id,
        trial=directory.number,
        order=planned.order,
        block=planned.block,
        after=planned.after,
        workload=context.experiment.workload.name,
        phase=planned.treatment.graph.phase,
    )


def _programs_of_users(experiment: Experiment) -> list[Path]:
    """The programs of the graph that are not perflab's own."""
    return sorted({Path(p) for p in experiment.workload.graph.programs.values() if "/" in p})


def _manifest(context: _Context) -> Manifest:
    """The facts known before the run has a directory."""
    experiment, host, native = context.experiment, context.host, context.native
    workload = experiment.workload
    middlewares = {
        (m.name, tuple(m.options.items())): m for variant in experiment.variants for m in variant.middlewares
    }
    return Manifest(
        run="",
        name=experiment.name,
        run_id=context.run_id,
        created_utc=utc_now(),
        command_line=experiment.command_line,
        experiment=UsedExperiment(
            written=experiment.written,
            document=experiment.document.model_dump(mode="json"),
            sources=experiment.sources,
        ),
        settings=_used(experiment),
        workload=UsedWorkload(
            kind=workload.kind,
            name=workload.name,
            sources=tuple(workload.sources),
            **workload.document(),
            graph=workload.graph.document,
            edges=tuple(workload.graph.edges()),
            services=tuple(workload.graph.services()),
        ),
        middlewares=tuple(m.used for m in middlewares.values()),
        variants=tuple(DesignedVariant(middleware=v.middleware_name, **v.document()) for v in experiment.variants),
        treatments=tuple(map(designed, experiment.treatments)),
        trials=planned_trials(experiment.order, experiment.settings.seed),
        rule=experiment.rule,
        unavailable_levels=tuple(LeftOutLevel(**dataclasses.asdict(level)) for level in experiment.unavailable),
        left_out=experiment.left_out,
        not_recorded=experiment.not_recorded,
        versions=_versions(native),
        environment=environment(tracer.RECORDED),
        host=host.facts(),
        inventory=inventory(host, native, list(middlewares.values()), _programs_of_users(experiment)),
        preflight=tuple(host.preflight()),
        controller=_controller(host),
        clock=Clock(monotonic_ns=time.monotonic_ns(), wall_ns=time.time_ns()),
    )


def _used(experiment: Experiment) -> UsedSettings:
    """The settings of every trial; without the duration if the workload demands different ones."""
    used = models.read(UsedSettings, experiment.settings.document())
    pinned = [experiment.settings.pinned(t.pins) for t in experiment.treatments]
    alike = len({settings.duration_ns for settings in pinned}) <= 1
    measure = tuple(dict.fromkeys(name for settings in pinned for name in settings.measure))
    return replace(used, duration_ns=used.duration_ns if alike else None, measure=measure or used.measure)


def _controller(host: Host) -> Controller:
    """This process, so that it can be recognised while it lives and is not confused with another one afterwards."""
    pid = os.getpid()
    namespace = pid_namespace()
    return Controller(pid=pid, start_ticks=start_ticks(pid), boot_id=host.boot_id(), pid_namespace=namespace)


def take_over(manifest: Manifest, directory: RunDirectory, host: Host) -> None:
    """Makes this process the one that the run's manifest names as running it."""
    controllers = (*manifest.earlier_controllers, manifest.controller)
    try:
        directory.write_manifest(replace(manifest, earlier_controllers=controllers, controller=_controller(host)))
    except OSError as error:
        raise PerflabError(
            f"cannot write {directory.manifest}: {error.strerror}; a run can only be resumed in its own "
            "directory, or in a copy"
        ) from error


def finished_trials(directory: RunDirectory, manifest: Manifest) -> dict[int, TrialData]:
    """The trials of a run that need not be repeated, by their place in the plan.

    A trial that was interrupted, or in progress when perflab ended, is not a result: its directory is closed and stays,
    and its place is free again.
    """
    found: dict[int, TrialData] = {}
    figures = key_figures.declared(manifest.workload.graph)
    for trial, file in own_trials(directory, manifest, []):
        if file is None:
            continue
        if not file.finished:
            trial.write(file.ended)
        if not file.ended.interrupted:
            found[file.order] = collect(trial, file, *expected_of(trial, manifest.workload), figures).data
    return found


def _versions(native: Native) -> Versions:
    return Versions(
        perflab=__version__,
        python=platform.python_version(),
        executable=sys.executable,
        native=str(native.folder),
        packages={name: package_version(name) for name in ("numpy", "polars", "pydantic", "rich", "typer")},
    )
