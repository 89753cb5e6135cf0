"""A recommended assignment of threads as an experiment of its own: the same variant under the same disturbance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.design.document import Written
from perflab.errors import BadInput, Interrupted, Unavailable
from perflab.experiment.build import build, workload_of
from perflab.experiment.run import RunResult, execute
from perflab.host import Host
from perflab.native import Native
from perflab.results.advice import Situation, Tried
from perflab.results.files import Manifest
from perflab.runs.display import Display
from perflab.statistics.advice import THREADS

# Keys of an experiment that define what else is run.
_NOT_KEPT = ("until_decided", "until_clear", "at_most", "quick", "sweep", "pass_by", "ipc", "executors")


def written(manifest: Manifest, situation: Situation, advised: Tried, trials: int) -> dict[str, Any]:
    """The experiment, in the form of a file. Raises BadInput for a run that did not record its experiment."""
    if manifest.experiment.written is None:
        raise BadInput(f"{manifest.run} did not record its experiment; it cannot be tried again")
    kept = {key: value for key, value in manifest.experiment.written.items() if key not in _NOT_KEPT}
    variant = {"executors": situation.executor, "ipc": situation.ipc, "pass_by": situation.pass_by}
    return {
        **kept,
        "middlewares": [situation.middleware],
        **{key: [value] for key, value in variant.items() if value is not None},
        "trials": trials,
        "assignments": {advised.assignment: list(advised.threads)},
        "factors": {**{path: [level] for path, level in situation.factors.items()}, THREADS: [advised.assignment]},
        "conditions": [{"name": situation.treatment, **_given(situation.conditions)}],
        "baseline": False,
        "baseline_again": False,
        "observer_control": False,
    }


def _given(conditions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Without parameters that were not set."""
    return {label: {k: v for k, v in said.items() if v is not None} for label, said in conditions.items()}


def run(
    manifest: Manifest,
    situation: Situation,
    advised: Tried,
    trials: int,
    native: Native,
    display: Display,
    command_line: Sequence[str],
) -> RunResult:
    """Runs it; failed trials are results. Raises BadInput, Unavailable, Interrupted."""
    asked = Written(written(manifest, situation, advised, trials))
    workload = workload_of(manifest.run, manifest, asked, native)
    experiment = build(asked, native, output=None, command_line=command_line, workload=workload)
    result = execute(experiment, native, Host(), display)
    if isinstance(result.error, BadInput | Unavailable | Interrupted):
        raise result.error
    return result
