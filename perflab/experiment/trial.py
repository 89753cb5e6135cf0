"""The life of one trial: its phases, top to bottom. The system and its surroundings are in other modules."""

from __future__ import annotations

import contextlib
import time
from functools import partial

from perflab.condition import NotInEffect, Window
from perflab.errors import BadInput, Interrupted, PerflabError, Unavailable
from perflab.experiment.command import CommandSystem
from perflab.experiment.machine import MachineWatch
from perflab.experiment.nodes import Nodes
from perflab.experiment.running import Ended, Keeper, Report, RunningTrial
from perflab.experiment.shared_memory import remove_left_over
from perflab.experiment.supervisor import Supervisor
from perflab.experiment.surroundings import Surroundings
from perflab.experiment.system import Failed, System
from perflab.experiment.trial_plan import TrialPlan
from perflab.results.files import FINISHED, TrialArtifact, utc_now
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, SUCCESS
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals
from perflab.units import NS_PER_S

LEAST_JUDGED_NS = NS_PER_S  # of a condition, in a trial that ended early
LOOK_BEFORE_NS = 20_000_000  # at the machine, before the measured part begins


def run_trial(
    plan: TrialPlan, directory: TrialDirectory, signals: Signals, report: Report, keeper: Keeper | None = None
) -> Ended:
    """Runs a trial to its end and leaves no process and no shared memory behind. Errors are recorded in its trial.json.

    Raises OSError if a file cannot be written before the processes run.
    """
    keeper = keeper or Keeper(directory, plan.begun())
    supervisor = Supervisor(signals)
    trial = RunningTrial(plan, directory, supervisor, report, keeper)
    system = system_of(trial)
    trial.hear = system.hear
    surroundings = Surroundings(plan.conditions, plan.observers, trial)
    failure: Failed | None = None
    problems: list[str] = []
    machine = None if plan.variant.runtime == "virtual" else MachineWatch()
    try:
        with supervisor:
            try:
                trial.make_credentials()
                surroundings.prepare()
                system.launch()
                system.ready()
                surroundings.surround()
                system.start()
                if machine is not None:
                    began = partial(machine.begin, trial.processes.values())
                    trial.call_at(system.scheduled.begin_ns - LOOK_BEFORE_NS, began)
                    machine.follow(system.scheduled.begin_ns, trial.call_at)
                system.progress()
                if machine is not None:
                    machine.end(trial.processes.values())
                system.drain()
                surroundings.verify(system.scheduled, system.published_until_ns)
                system.end()
            except (Failed, PerflabError, NotInEffect) as error:
                failure = _judged(_failure_of(error), system, surroundings, trial)
                surroundings.note_failure(failure.reason, failure.condition)
                system.farewell()
            finally:
                problems = [*system.close(), *surroundings.close()]
                if machine is not None:
                    machine.after()
    finally:
        # Remove shared memory left by killed processes; no process uses it any more.
        keeper.add_note(*remove_left_over(system.shared_memory).notes)
        trial.remove_credentials()
        for daemon in plan.variant.daemons:
            for path in daemon.left_over([*trial.processes.values(), *trial.condition_processes.values()]):
                with contextlib.suppress(OSError):
                    path.unlink()
    if problems and failure is None:
        interrupted = None if signals.seen is None else Interrupted(signals.seen)
        failure = Failed(HARNESS_ERROR, problems[0], last=interrupted is not None, error=interrupted)
    keeper.note(
        status=FINISHED,
        ended_utc=utc_now(),
        outcome=SUCCESS if failure is None else failure.outcome,
        reason=None if failure is None else failure.reason,
        broken_off=None if failure is None else failure.broken_off,
        interrupted=failure is not None and isinstance(failure.error, Interrupted),
        evidence=surroundings.evidence,
        condition_times={} if plan.variant.runtime == "virtual" else surroundings.times,
        artifacts=tuple(TrialArtifact(kind=a.kind, path=str(a.path)) for a in surroundings.artifacts),
        machine=None if machine is None else machine.record,
    )
    system.records(surroundings.artifacts)
    return Ended(keeper.file) if failure is None else Ended(keeper.file, failure.last, failure.error)


def system_of(trial: RunningTrial) -> System:
    """What the trial runs."""
    return Nodes(trial) if trial.plan.command is None else CommandSystem(trial, trial.plan.command)


def _failure_of(error: Failed | PerflabError | NotInEffect) -> Failed:
    match error:
        case Failed():
            return error
        case NotInEffect():
            return Failed(INVALID, str(error), condition=error.condition)
        case Interrupted() | BadInput() | Unavailable():
            return Failed(HARNESS_ERROR, str(error), last=True, error=error)
        case _:
            return Failed(HARNESS_ERROR, str(error))


def _judged(failure: Failed, system: System, surroundings: Surroundings, trial: RunningTrial) -> Failed:
    """A failure of the workload counts only if its conditions were in effect up to then."""
    if failure.error is None and (locked := surroundings.locked()) is not None:
        return Failed(FAILED, f"{locked}; {failure.reason}", broken_off=failure.broken_off)
    if failure.outcome != FAILED or not surroundings.conditions or trial.start_at_ns is None:
        return failure
    begin_ns, end_ns = system.scheduled.begin_ns, min(time.monotonic_ns(), system.scheduled.end_ns)
    if end_ns - begin_ns < LEAST_JUDGED_NS:
        return failure  # too short to tell
    try:
        surroundings.verify(Window(begin_ns, end_ns), end_ns)
    except NotInEffect as error:
        return Failed(INVALID, f"{error}; besides, {failure.reason}")
    except (PerflabError, Failed) as error:
        trial.keeper.add_note(f"whether the conditions held up to the failure is unknown: {error}")
    return failure
