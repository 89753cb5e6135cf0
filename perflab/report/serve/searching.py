"""A search for a breaking point while it goes on: what its trials say by now, by the functions that judge its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perflab.errors import DAMAGE, BadInput
from perflab.models import as_json
from perflab.statistics.summary import TrialData

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal

Json = dict[str, Any]

# Of an entry of `breaking_points` in summary.json.
SHOWN = (
    "variant", "treatment", "factor", "criterion", "share", "low", "high", "scale", "state", "value", "interval",
    "trials", "levels", "fit", "words",
)  # fmt: skip


def asked(manifest: Mapping[str, Any]) -> Json | None:
    """What a search was asked for; None of other runs."""
    found = ((manifest.get("experiment") or {}).get("document") or {}).get("breaking_point")
    return found if isinstance(found, dict) else None


def goal_of(manifest: Mapping[str, Any]) -> Goal | None:
    """None of runs without a search, and where its target is not on this machine. Raises one of DAMAGE."""
    if asked(manifest) is None:
        return None
    from perflab.design.breaking_point import goal_of_document  # scipy takes half a second to import
    from perflab.design.document import Written, validate
    from perflab.statistics import key_figures
    from perflab.statistics.target import machine_cpus

    try:
        document = validate(Written(dict(manifest["experiment"]["written"])))
        if document.breaking_point is None:
            return None
        figures = key_figures.kinds(key_figures.declared(manifest["workload"]["graph"]))
        return goal_of_document(document, document.breaking_point, machine_cpus(manifest), figures)
    except BadInput:
        return None


def judged(goal: Goal, data: TrialData) -> bool | None:
    """Whether a trial met the criterion; None where it says nothing."""
    try:
        return goal.judge(data)
    except BadInput:
        return None


def slim(data: TrialData) -> TrialData:
    """What a search needs of a trial that is judged: without its histograms."""
    return replace(data, accounts=None, resources=(), threads=None, passing=None, evidence={}, hiccup=None, why=None)


def found(goal: Goal, trials: Sequence[tuple[TrialData, bool | None]], manifest: Mapping[str, Any]) -> list[Json]:
    """The breaking points as of now, with SHOWN of their keys. `trials` are slim ones, each with its judgement."""
    from perflab.design.breaking_point import results

    verdicts = {data.order: met for data, met in trials}
    told = replace(goal, judge=lambda data: verdicts[data.order])
    try:
        points = results(told, [data for data, _ in trials], int(manifest["settings"]["seed"]))
    except (BadInput, *DAMAGE):
        return []  # trials of another search, which the end of the run will tell
    return [{key: as_json(getattr(point, key)) for key in SHOWN} for point in points]
