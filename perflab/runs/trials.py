"""Which of the trials in a run's directory belong to it, without reading their records."""

from __future__ import annotations

from collections.abc import Iterator

from perflab.errors import BadInput
from perflab.results.files import Manifest, TrialFile
from perflab.runs.rundir import RunDirectory, TrialDirectory

# Prefix of a trial's note about DDS settings that perflab could not make.
NOT_SET = "not set by perflab: "
OF_OBSERVER = "observer "


def own_trials(
    run: RunDirectory, manifest: Manifest, notes: list[str], damaged: list[str] | None = None
) -> Iterator[tuple[TrialDirectory, TrialFile | None]]:
    """The trials that belong to a run, with their trial.json (None if perflab ended before it wrote one).

    Trials copied from another run, and interrupted ones whose place was run again, are left out with a note. So are
    those with a damaged trial.json, named in `damaged`; without it BadInput is raised.
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
    if manifest.run_id is None:  # from a version that had neither identities nor repeated places
        yield from found
        return
    own = [(trial, file) for trial, file in found if file is None or file.run_id == manifest.run_id]
    notes += [
        f"{trial.path.name} belongs to another run and is left out" for trial, d in found if (trial, d) not in own
    ]
    places = [None if file is None else file.order for _, file in own]
    for number, (trial, file) in enumerate(own):
        again = file is not None and file.order in places[number + 1 :]
        if file is not None and again and (file.interrupted or not file.finished):
            notes.append(f"{trial.path.name} was interrupted and its place run again; it is left out")
            continue
        yield trial, file


def left_out(problem: str, *, in_summary: bool = False) -> str:
    """A remark on the damaged trials that are missing; printed at the top of each output, except the summary's data."""
    what = "what only its files have" if in_summary else "the trial"
    return f"{problem}; {what} is left out"
