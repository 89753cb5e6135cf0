"""Trials that are over, each read once, and what they say together so far."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from perflab.quantity import of_unit
from perflab.report import label
from perflab.report.serve import searching
from perflab.results.outcome import HARNESS_ERROR, Outcomes
from perflab.results.trial import Circumstances, Distribution, OwnFigure, least_lost, owners, received
from perflab.runs.collect import collect, expected_of
from perflab.runs.display import FinishedTrial
from perflab.runs.rundir import TrialDirectory
from perflab.statistics import key_figures
from perflab.statistics.metrics import METRICS
from perflab.statistics.proportion import wilson
from perflab.statistics.summary import TrialData, figures_of

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal

Json = dict[str, Any]

KEYS = ("middleware", "executor", "ipc", "pass_by", "treatment", "factors", "observers", "purpose")
QUANTILES = ("p50", "p99")


@dataclass(frozen=True, kw_only=True)
class Finished(FinishedTrial):
    """What one trial of the run says; its p50 and p99 are those of round trips where there are services alone."""

    number: int
    place: Mapping[str, Any]  # KEYS of its treatment
    conditions: tuple[str, ...]
    condition_parameters: Mapping[str, Any]
    interrupted: bool
    unfinished: bool  # its trial.json says that it runs; it may be closed yet
    measured: bool
    figure: str  # "latency", or "round_trip" where there are services alone
    received: int | None
    p99_reason: str | None  # why its p99 enters no statistics
    met: bool | None  # the criterion of a search; None: there is none, or the trial says nothing
    data: TrialData | None  # of a search, without histograms
    own: tuple[OwnFigure, ...]  # what the kind of workload says of it, each with its value

    @property
    def key(self) -> str:
        return key_of(self.place)


def place_of(document: Mapping[str, Any]) -> Json:
    """KEYS of an entry of the plan, of a treatment, or of trial.json."""
    place = {key: document.get(key) for key in KEYS}
    if isinstance(place["middleware"], dict):
        place["middleware"] = place["middleware"].get("name")
    return place


def key_of(place: Mapping[str, Any]) -> str:
    return json.dumps(place, sort_keys=True)


def read(directory: TrialDirectory, document: Json, manifest: Json, goal: Goal | None = None) -> Finished:
    """`goal` is that of a search. Raises what damaged files raise: one of DAMAGE, BadInput, OSError."""
    edges, services = expected_of(directory, manifest)
    told = dict(document)
    if told["status"] != "finished":
        told["outcome"] = told["outcome"] or HARNESS_ERROR
        told["reason"] = told["reason"] or "perflab ended before the trial did"
    declared = key_figures.declared(manifest["workload"]["graph"])
    data = collect(directory, told, edges, services, declared).data
    figures = figures_of(data)
    figure = "latency" if edges or not services else "round_trip"
    readings = {q: METRICS[f"{figure}.{q}"].read(figures) for q in QUANTILES}
    shown = figures.totals.latency_ns or Distribution()
    return Finished(
        number=directory.number,
        order=data.order,
        place=place_of(document),
        conditions=data.conditions,
        condition_parameters=data.condition_parameters,
        outcome=data.outcome,
        reason=data.reason,
        interrupted=bool(document.get("interrupted")) or document["status"] != "finished",
        unfinished=document["status"] != "finished",
        took_s=_took_s(directory, document) if document["status"] == "finished" else None,
        measured=data.measured,
        figure=figure,
        p50_ns=shown.p50 if figure == "latency" else readings["p50"].value,
        p99_ns=shown.p99 if figure == "latency" else readings["p99"].value,
        lost=least_lost(*owners(figures)),
        received=received(figures),
        p99_reason=readings["p99"].reason,
        met=None if goal is None else searching.judged(goal, data),
        data=None if goal is None else searching.slim(data),
        own=tuple(f for f in figures.key_figures.values() if isinstance(f, OwnFigure)),
    )


def _took_s(directory: TrialDirectory, document: Mapping[str, Any]) -> float | None:
    """From the beginning of the trial until its last file was written: its summary is part of what a trial takes."""
    from datetime import datetime

    try:
        began = datetime.fromisoformat(str(document["started_utc"])).timestamp()
        return round(max(0.0, directory.trial_json.stat().st_mtime - began), 1)
    except (KeyError, ValueError, OSError):
        return None


# -- together --------------------------------------------------------------------------------------------------------


def results(trials: Sequence[Finished], treatments: Sequence[Mapping[str, Any]], alpha: float) -> list[Json]:
    """The results so far, in the order of the design; treatments without a trial are there, too, without figures."""
    places: dict[str, Json] = {}
    for entry in treatments:
        place = place_of(entry)
        places[key_of(place)] = {**place, **_conditions(entry.get("conditions"), entry.get("condition_parameters"))}
    for trial in trials:
        places.setdefault(trial.key, {**trial.place, **_conditions(trial.conditions, trial.condition_parameters)})
    names = label.labels([circumstances(place) for place in places.values()])
    return [
        {"label": name, **place, **_together([t for t in trials if t.key == key], alpha)}
        for name, (key, place) in zip(names, places.items(), strict=True)
    ]


def circumstances(place: Mapping[str, Any]) -> Circumstances:
    """Of a result of this page."""
    known = {field.name for field in fields(Circumstances)} - {"workload"}
    return Circumstances(workload="", **{key: value for key, value in place.items() if key in known})


def _conditions(names: Sequence[str] | None, parameters: Mapping[str, Any] | None) -> Json:
    return {"conditions": list(names or ()), "condition_parameters": dict(parameters or {})}


def _together(trials: Sequence[Finished], alpha: float) -> Json:
    valid = [t for t in trials if not t.interrupted]
    outcomes = Outcomes.of([t.outcome for t in valid])
    interval = wilson(outcomes.success, outcomes.judged, 1 - alpha)
    measured = [t for t in valid if t.measured]
    lost = [t.lost for t in measured if t.lost is not None]
    return {
        "trials": len(valid),
        "invalid": outcomes.invalid,
        "harness_errors": outcomes.harness_error,
        "judged": outcomes.judged,
        "successes": outcomes.success,
        "success_low": None if interval is None else interval[0],
        "success_high": None if interval is None else interval[1],
        "p50_ns": median([t.p50_ns for t in measured], alpha),
        # Of so few messages a p99 is their maximum, and no statistic of a run takes it.
        "p99_ns": median([t.p99_ns if t.p99_reason is None else None for t in measured], alpha)
        | {"trial_reason": next((t.p99_reason for t in measured if t.p99_reason is not None), None)},
        "lost": sum(lost) if lost and len(lost) == len(measured) else None,
        "own": [_of_own([t.own[n] for t in measured], alpha) for n in range(len(measured[0].own) if measured else 0)],
    }


def _of_own(values: Sequence[OwnFigure], alpha: float) -> Json:
    """One figure of the kind of workload: its words, and its median as people read it."""
    told, shown = median([figure.value for figure in values], alpha), of_unit(values[0].unit)
    ends = None if told["low"] is None else f"{shown.text(told['low'])} – {shown.text(told['high'])}"
    return {**told, "words": values[0].words, "text": shown.text(told["value"]), "interval": ends}


def median(values: Sequence[float | None], alpha: float) -> Json:
    """The median over trials, with its interval as soon as there are enough of them."""
    known = [v for v in values if v is not None]
    told: Json = {"value": None, "low": None, "high": None, "n": len(known), "needed": needed(alpha)}
    if not known:
        return told
    if len(known) < told["needed"]:
        middle = sorted(known)[(len(known) - 1) // 2 : len(known) // 2 + 1]
        return told | {"value": sum(middle) / len(middle)}
    from perflab.statistics import estimate  # scipy takes half a second to import, and a short run needs none of it
    from perflab.statistics.sample import Sample

    found = estimate.median(Sample.of(known), 1 - alpha)
    interval = found.interval
    return told | {
        "value": found.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
    }


def needed(alpha: float) -> int:
    """How many values an interval of a median takes: all of them lie on one side with probability 2^(1 - n)."""
    return max(2, math.ceil(1 - math.log2(alpha) - 1e-9))


def levels(made: Sequence[Json]) -> list[Json]:
    """For each factor with numeric levels the curves that a sweep has: which results stand at which level."""
    everything = [circumstances(result) for result in made]
    places = {id(result): n for n, result in enumerate(everything)}
    measured = [result for result in everything if result.is_regular]
    factors = dict.fromkeys(path for result in measured for path in result.factors or {})
    if not factors:
        return []
    from perflab.statistics.selection import placed

    found = []
    for factor in factors:
        curves = [curve for curve in placed(factor, measured) if len(curve.levels) > 1]
        several = len({curve.words for curve in curves}) > 1
        told = [
            {
                "label": _curve_label(curve.words if several else "", curve.others, [c.others for c in curves]),
                "points": [{"level": level, "result": places[id(r)]} for level, of in curve.levels.items() for r in of],
            }
            for curve in curves
        ]
        if told:
            found.append({"factor": factor, "curves": told})
    return found


def _curve_label(variant: str, others: Mapping[str, Any], all_others: Sequence[Mapping[str, Any]]) -> str:
    """What a curve differs in from the others of its factor; empty where there is but one."""
    different = [path for path in others if len({str(o.get(path)) for o in all_others}) > 1]
    return ", ".join([*([variant] if variant else []), *(f"{p.partition('.')[2]}={others[p]}" for p in different)])
