"""Which of the trials in a run's directory belong to it, without what reads their records."""

from __future__ import annotations

from collections.abc import Iterator

from perflab.errors import BadInput
from perflab.results.files import Manifest, TrialFile
from perflab.runs.rundir import RunDirectory, TrialDirectory

# How a note of a trial begins that says what of DDS perflab could not set.
NOT_SET = "not set by perflab: "
OF_OBSERVER = "observer "


def own_trials(
    run: RunDirectory, manifest: Manifest, notes: list[str], damaged: list[str] | None = None
) -> Iterator[tuple[TrialDirectory, TrialFile | None]]:
    """The trials that belong to a run, with their trial.json (None where perflab ended before it wrote one).

    Those of another run that were put there, and interrupted ones whose place was run again, are left out with a note.
    So are those with a damaged trial.json, named in `damaged`; without it BadInput is raised.
    """
    found = []
    for trial in run.trials():
        try:
            file = trial.read()
            if manifest.run_id is not None and file is not None and file.run_id is None:
                raise BadInput(f"{trial.trial_json} is damaged: it has no run_id")
        except BadInput as error:
            if damaged is None:
                raise
            damaged.append(str(error))
            continue
        found.append((trial, file))
    if manifest.run_id is None:  # of a version that had neither identities nor places that are run again
        yield from found
        return
    own = [(trial, file) for trial, file in found if file is None or file.run_id == manifest.run_id]
    notes += [f"{trial.path.name} is of another run and left out" for trial, d in found if (trial, d) not in own]
    places = [None if file is None else file.order for _, file in own]
    for number, (trial, file) in enumerate(own):
        again = file is not None and file.order in places[number + 1 :]
        if file is not None and again and (file.interrupted or not file.finished):
            notes.append(f"{trial.path.name} was interrupted and its place run again; it is left out")
            continue
        yield trial, file


def left_out(problem: str, *, in_summary: bool = False) -> str:
    """What is said at the top of whatever is made without a trial that is damaged, but for what the summary has."""
    what = "what only its files tell" if in_summary else "the trial"
    return f"{problem}; {what} is left out"
