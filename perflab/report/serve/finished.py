"""Finished trials, each read once, and their combined results so far: records as in a summary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from perflab import models
from perflab.errors import DAMAGE, BadInput
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.figure import Median
from perflab.results.files import DesignedTreatment, Manifest, TrialFile
from perflab.results.outcome import Outcomes
from perflab.results.trial import Circumstances, Coverage, Result, Totals, added, least_lost, owners
from perflab.runs.collect import collect, expected_of
from perflab.runs.display import FinishedTrial
from perflab.runs.rundir import TrialDirectory
from perflab.statistics import key_figures
from perflab.statistics.metrics import METRICS, VALUE, Metric, named
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Sample
from perflab.statistics.selection import placed, sample_of, why_missing
from perflab.statistics.summary import TrialData, figures_of

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal

Json = dict[str, Any]

KEYS = ("middleware", "executor", "ipc", "pass_by", "treatment", "factors", "observers", "purpose")
OF_TREATMENT = (*KEYS, "conditions", "condition_parameters")
_WITHOUT_HISTOGRAMS: Json = {"accounts": None, "resources": (), "threads": None, "passing": None, "evidence": {},
                             "observed": {}, "why": None}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finished(FinishedTrial):
    """A trial of the run, its circumstances, and its answer for a search."""

    of: Circumstances
    file: TrialFile
    unfinished: bool  # its trial.json says that it runs; it may still be closed
    figure: str  # "latency", or "round_trip" if there are only services
    met: bool | None  # the criterion of a search; None: there is none, or the trial gives no answer
    data: TrialData | None  # for a search, without histograms

    @property
    def place(self) -> str:
        return place_of(self.of)

    def quantile(self, name: str) -> float | None:
        """p50 or p99 of the figure; of the latency even for few messages."""
        if self.figure == "latency":
            latency = self.trial.totals.latency_ns
            return None if latency is None else getattr(latency, name)
        return METRICS[f"{self.figure}.{name}"].read(self.trial).value


def circumstances(of: DesignedTreatment | TrialFile) -> Circumstances:
    """Label of a treatment, or of a trial."""
    middleware = of.middleware.name if isinstance(of, TrialFile) else of.middleware
    return Circumstances(**{"workload": "", **models.shared(Circumstances, of), "middleware": middleware})


def place_of(of: Circumstances) -> str:
    """The common part of trials of one result."""
    return of.key(of.middleware)


def read(directory: TrialDirectory, file: TrialFile, manifest: Manifest, goal: Goal | None = None) -> Finished:
    """`goal` is that of a search. Raises the errors of damaged files: one of DAMAGE, BadInput, OSError."""
    edges, services = expected_of(directory, manifest.workload)
    data = collect(directory, file, edges, services, key_figures.declared(manifest.workload.graph)).data
    return Finished(
        trial=figures_of(data),
        took_s=_took_s(directory, file) if file.finished else None,
        of=circumstances(file),
        file=file,
        unfinished=not file.finished,
        figure="latency" if edges or not services else "round_trip",
        met=None if goal is None else _judged(goal, data),
        data=None if goal is None else replace(data, **_WITHOUT_HISTOGRAMS),
    )


def _took_s(directory: TrialDirectory, file: TrialFile) -> float | None:
    """From the beginning of the trial until its last file was written: its summary is part of its duration."""
    began_s = epoch_s(file.started_utc)
    return None if began_s is None else round(max(0.0, directory.trial_json.stat().st_mtime - began_s), 1)


def epoch_s(text: str | None) -> float | None:
    """Parses an instant in a file; None if it is not one."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


# -- results ---------------------------------------------------------------------------------------------------------


def results(
    trials: Sequence[Finished], treatments: Sequence[Circumstances], metrics: Sequence[Metric], alpha: float
) -> list[Result]:
    """The results so far, in design order; treatments without a trial are included, without figures."""
    places: dict[str, tuple[Circumstances, list[Finished]]] = {}
    for of in (*treatments, *(trial.of for trial in trials)):
        places.setdefault(place_of(of), (of, []))
    for trial in trials:
        if not trial.trial.interrupted:
            places[trial.place][1].append(trial)
    return [_result(of, own, metrics, alpha) for of, own in places.values()]


def _result(of: Circumstances, own: Sequence[Finished], metrics: Sequence[Metric], alpha: float) -> Result:
    trials = [finished.trial for finished in own]
    made = Result(
        **vars(of),
        trials=len(trials),
        outcomes=Outcomes.of(
            [t.outcome for t in trials], [t.own_outcome for t in trials], sum(t.interrupted for t in trials)
        ),
        coverage=Coverage(trials_merged=0, complete=False),
        totals=Totals(),
        trials_detail=tuple(trials),
    )
    samples = {metric: sample_of(made.entering, metric, "") for metric in metrics}
    return replace(made, intervals={m.name: median(s, alpha, m.unit) for m, s in samples.items() if s.n})


def median(sample: Sample, alpha: float, unit: str = "") -> Median:
    """With its interval as soon as there are enough values."""
    if sample.n < needed(alpha):
        return Median(value=statistics.median(sample.values), low=None, high=None, n=sample.n, unit=unit)
    from perflab.statistics import estimate  # scipy takes half a second to import, and a short run does not need it

    return estimate.median_of(sample, 1 - alpha, unit)


def needed(alpha: float) -> int:
    """How many values an interval of a median needs: all of them lie on one side with probability 2^(1 - n)."""
    return max(2, math.ceil(1 - math.log2(alpha) - 1e-9))


def document(result: Result, label: str, figure: str, alpha: float) -> Json:
    """A result for programs."""
    outcomes = result.outcomes
    low, high = wilson(outcomes.success, outcomes.judged, 1 - alpha) or (None, None)
    return {
        "label": label,
        **{key: getattr(result, key) for key in OF_TREATMENT},
        "trials": result.trials,
        "invalid": outcomes.invalid,
        "harness_errors": outcomes.harness_error,
        "judged": outcomes.judged,
        "successes": outcomes.success,
        "success_low": low,
        "success_high": high,
        **{f"{name}_ns": _median(result, METRICS[f"{figure}.{name}"], alpha) for name in ("p50", "p99")},
        "lost": added(least_lost(*owners(trial)) for trial in result.entering),
        "own": [_own(result, metric, alpha) for metric in _of_kind(result)],
    }


def _of_kind(result: Result) -> list[Metric]:
    """Figures from the kind of workload."""
    figures = {name: e.kind for trial in result.entering for name, e in trial.key_figures.items()}
    return [named(name) for name, kind in figures.items() if kind == VALUE]


def _own(result: Result, metric: Metric, alpha: float) -> Json:
    found = _median(result, metric, alpha)
    low, high = found["low"], found["high"]
    interval = None if low is None else f"{metric.format(low)} – {metric.format(high)}"
    return {**found, "words": metric.words, "text": metric.format(found["value"]), "interval": interval}


def _median(result: Result, metric: Metric, alpha: float) -> Json:
    found = result.intervals.get(metric.name) or Median(value=None, low=None, high=None, n=0)
    told = {key: getattr(found, key) for key in ("value", "low", "high", "n")}
    return told | {"needed": needed(alpha), "trial_reason": why_missing(result.entering, metric)}


# -- curves over levels ----------------------------------------------------------------------------------------------


def curves(results: Sequence[Result], figure: str, alpha: float) -> list[tuple[Curve, list[list[Result]]]]:
    """For each factor with numeric levels, the curves as in a sweep, with the results at each of their levels."""
    measured = [result for result in results if result.is_regular]
    factors = dict.fromkeys(path for result in measured for path in result.factors)
    found = [(path, curve) for path in factors for curve in placed(path, measured) if len(curve.levels) > 1]
    if not found:
        return []
    from perflab.statistics.curves import outline  # scipy takes half a second to import

    metrics = [METRICS[f"{figure}.p99"]]
    return [(outline(path, curve, metrics, alpha), list(curve.levels.values())) for path, curve in found]


def asked(manifest: Manifest) -> Json | None:
    """The parameters of a search; None for other runs."""
    found = manifest.experiment.document.get("breaking_point")
    return found if isinstance(found, dict) else None


def goal_of(manifest: Manifest) -> Goal | None:
    """None for runs without a search, and if its target is not on this machine. Raises one of DAMAGE."""
    if asked(manifest) is None:
        return None
    from perflab.design.breaking_point import goal_of_document  # scipy takes half a second to import
    from perflab.design.document import Written, validate
    from perflab.statistics.target import machine_cpus

    try:
        document = validate(Written(dict(manifest.experiment.written or {})))
        if document.breaking_point is None:
            return None
        figures = key_figures.kinds(key_figures.declared(manifest.workload.graph))
        return goal_of_document(document, document.breaking_point, machine_cpus(manifest.host), figures)
    except BadInput:
        return None


def _judged(goal: Goal, data: TrialData) -> bool | None:
    """Whether a trial met the criterion; None if it gives no answer."""
    try:
        return goal.judge(data)
    except BadInput:
        return None


def breaking_points(goal: Goal | None, trials: Sequence[Finished], manifest: Manifest) -> list[BreakingPoint]:
    """The breaking points, as far as a search knows them by now."""
    if goal is None:
        return []
    from perflab.design.breaking_point import results

    told = [(t.data, t.met) for t in trials if t.data is not None and not t.trial.interrupted]
    verdicts = {data.order: met for data, met in told}
    judged = replace(goal, judge=lambda data: verdicts[data.order])
    try:
        return results(judged, [data for data, _ in told], manifest.settings.seed or 0)
    except (BadInput, *DAMAGE):
        return []  # trials of another search; the end of the run will show them
