"""The life of one trial: its phases, top to bottom. What it runs and what goes on around it are elsewhere."""

from __future__ import annotations

import time

from perflab.condition import NotInEffect, Window
from perflab.errors import BadInput, Interrupted, PerflabError, Unavailable
from perflab.experiment.command import CommandSystem
from perflab.experiment.nodes import Nodes
from perflab.experiment.running import Listener, Report, RunningTrial, TrialOutcome
from perflab.experiment.shared_memory import remove_left_over
from perflab.experiment.supervisor import Supervisor
from perflab.experiment.surroundings import Surroundings
from perflab.experiment.system import Failed, System
from perflab.experiment.trial_plan import TrialPlan
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, SUCCESS
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals
from perflab.units import NS_PER_S

LEAST_JUDGED_NS = NS_PER_S  # of a condition, in a trial that broke off


def run_trial(
    plan: TrialPlan,
    directory: TrialDirectory,
    signals: Signals,
    report: Report,
    listener: Listener | None = None,
) -> TrialOutcome:
    """Runs a trial to its end and leaves no process and no shared memory behind. What goes wrong is in the outcome.

    Raises OSError where a file cannot be written before the processes run.
    """
    outcome = TrialOutcome()
    supervisor = Supervisor(signals)
    trial = RunningTrial(plan, directory, supervisor, report, listener or Listener(), outcome)
    system = system_of(trial)
    trial.hear = system.hear
    surroundings = Surroundings(plan.conditions, plan.observers, trial)
    problems: list[str] = []
    try:
        with supervisor:
            try:
                surroundings.prepare()
                system.launch()
                system.ready()
                surroundings.surround()
                system.start()
                system.progress()
                system.drain()
                surroundings.verify(system.scheduled, system.published_until_ns)
                system.end()
            except (Failed, PerflabError, NotInEffect) as error:
                failure = _judged(_failure_of(error), system, surroundings, outcome)
                _note(outcome, failure)
                surroundings.note_failure(failure.reason, failure.condition)
                system.farewell()
            finally:
                problems = [*system.close(), *surroundings.close()]
    finally:
        # Whoever was killed could not take away what it had made; now nobody is left to use it.
        outcome.notes += remove_left_over(system.shared_memory).notes
    if problems and outcome.outcome == SUCCESS:
        interrupted = None if signals.seen is None else Interrupted(signals.seen)
        _note(outcome, Failed(HARNESS_ERROR, problems[0], last=interrupted is not None, error=interrupted))
    outcome.evidence, outcome.artifacts = surroundings.evidence, surroundings.artifacts
    outcome.system = system.records(surroundings.artifacts)
    return outcome


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


def _judged(failure: Failed, system: System, surroundings: Surroundings, outcome: TrialOutcome) -> Failed:
    """A failure of the workload is one only if its conditions were in effect up to then."""
    if failure.outcome != FAILED or not surroundings.conditions or outcome.start_at_ns is None:
        return failure
    begin_ns, end_ns = system.scheduled.begin_ns, min(time.monotonic_ns(), system.scheduled.end_ns)
    if end_ns - begin_ns < LEAST_JUDGED_NS:
        return failure  # too short to tell
    try:
        surroundings.verify(Window(begin_ns, end_ns), end_ns)
    except NotInEffect as error:
        return Failed(INVALID, f"{error}; besides, {failure.reason}")
    except (PerflabError, Failed) as error:
        outcome.notes.append(f"whether the conditions held up to the failure cannot be told: {error}")
    return failure


def _note(outcome: TrialOutcome, failure: Failed) -> None:
    outcome.outcome, outcome.reason = failure.outcome, failure.reason
    outcome.last, outcome.error = failure.last, failure.error
