"""Which trials of a run a report shows a film of: a success without disturbance, one of each kind of failure, the one
with the latest loop, and a traced one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from perflab.report.runs import ReportRun
from perflab.results.film import Film
from perflab.results.outcome import SUCCESS
from perflab.results.trial import Trial
from perflab.runs import traced
from perflab.runs.film import film, films_may_be

MOST_FAILED = 4  # kinds of failure, each with a film
MOST_READ = 40  # trials that are searched for the latest loop, evenly over the run


@dataclass(frozen=True)
class Chosen:
    label: str  # of its treatment
    trial: Trial
    film: Film
    why: str
    occupancy: Any = None  # from a traced trial: which threads had the CPUs of its loops


def chosen(run: ReportRun) -> list[Chosen]:
    """In the order of presentation."""
    if not films_may_be(run.manifest):
        return []
    # By number: a trial is read once, for whatever reasons it is chosen.
    read = cache(lambda number: film(run.folders[number]) if number in run.folders else None)
    trials = [(label, trial) for label, _, trial in run.trials if not run.is_interrupted(trial)]
    with_trace = {trial.trial for _, trial in trials if _is_traced(run, trial)}
    well = [(label, trial) for label, trial in trials if trial.outcome == SUCCESS]
    # Detailed recording disturbed a trial.
    measured = [(label, trial) for label, trial in well if trial.trial not in with_trace] or well
    undisturbed = {trial.trial for _, result, trial in run.trials if not result.conditions}
    found: dict[int, Chosen] = {}

    def take(label: str, trial: Trial, why: str) -> bool:
        shown = read(trial.trial)
        if shown is None:
            return False
        known = found.get(trial.trial)
        reasons = why if known is None else f"{known.why}; {why}"
        found[trial.trial] = Chosen(label, trial, shown, reasons, traced.occupancy(run.folders[trial.trial]))
        return True

    quiet = [(label, trial) for label, trial in measured if trial.trial in undisturbed]
    any(take(label, trial, "the first successful one") for label, trial in (quiet or measured)[:3])
    # Among failed trials, a traced one is more informative.
    for label, trial, how in _failed(sorted(trials, key=lambda one: one[1].trial not in with_trace)):
        take(label, trial, f"ended in “{how}”")
    some = measured[:: -(-len(measured) // MOST_READ)] if measured else []
    latest = max(some, key=lambda one: _latest(read(one[1].trial)), default=None)
    if latest is not None and len(measured) > 1 and _latest(read(latest[1].trial)) > 0:
        take(*latest, "the successful one with the latest loop")
    any(take(label, trial, "a traced one") for label, trial in well if trial.trial in with_trace)
    return list(found.values())


def _failed(trials: list[tuple[str, Trial]]) -> Iterator[tuple[str, Trial, str]]:
    """The first of these trials for each outcome other than success."""
    known: set[str] = set()
    for label, trial in trials:
        if trial.outcome == SUCCESS or (how := trial.ended) in known or len(known) == MOST_FAILED:
            continue
        known.add(how)
        yield label, trial, how


def _latest(found: Film | None) -> float:
    if found is None or found.lateness is None:
        return 0.0
    return max((max(row) for row in found.lateness.rows), default=0.0)


def _is_traced(run: ReportRun, trial: Trial) -> bool:
    return trial.trial in run.folders and traced.occupancy(run.folders[trial.trial]) is not None
