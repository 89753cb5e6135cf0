"""The part of a run that serves a course which adds blocks until all is decided: it judges trials, and keeps the
manifest up to date."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from perflab.design import family
from perflab.design.claims import metrics_asked
from perflab.design.settings import Experiment
from perflab.design.treatments import Course, Planned, planned_trials
from perflab.design.until_decided import Judged, UntilDecided, look_in_words, looks_of
from perflab.results.comparison import Looks
from perflab.results.files import Manifest, StoppingRule
from perflab.runs.collect import metrics_of
from perflab.runs.rundir import RunDirectory
from perflab.statistics import key_figures
from perflab.statistics.summary import TrialData, summarize
from perflab.units import format_duration


class Deciding:
    """For one session of a run. `trials` are the existing ones, in order; `told` receives each look in words, `planned`
    each added trial."""

    def __init__(
        self,
        experiment: Experiment,
        directory: RunDirectory,
        trials: Mapping[int, TrialData],
        told: Callable[[str], None],
        planned: Callable[[Planned], None],
    ) -> None:
        self._experiment, self._directory, self._trials = experiment, directory, trials
        self._told, self._planned = told, planned
        self._said = ""
        self.course: Course = experiment.course(
            self._judge,
            self._added,
            seen=len(trials),
            enough=partial(enough, experiment),
            begins=lambda foreseen: told(foreseen.words),
            told=told,
        )

    def close(self, manifest: Manifest) -> Manifest:
        """The current manifest, with how the rule ended; `manifest` for a run without a rule."""
        if isinstance(self.course, UntilDecided):
            with contextlib.suppress(OSError):  # the disk is full, which was reported
                rule = self.course.close()
                if rule.ended == "time_up":
                    self._told(f"the time for adding repetitions ({format_duration(rule.at_most_s)}) is up")
                return self._keep(rule=rule)
        return manifest

    def _judge(self, trials: Sequence[TrialData], rule: StoppingRule) -> list[Judged]:
        found = judged(self._experiment, trials, looks_of(rule, len(trials)))
        if (words := look_in_words(rule, found)) != self._said:
            self._said = words
            self._told(words)
        return found

    def _added(self, block: Sequence[Planned]) -> None:
        known = self._directory.read_manifest()
        new = [p for p in block if p.order > len(known.trials)]  # for a run that was killed in it, it already exists
        seed = self._experiment.settings.seed
        rule = self.course.rule if isinstance(self.course, UntilDecided) else None
        self._keep(trials=(*known.trials, *planned_trials(new, seed)), rule=rule)
        for planned in block:
            if planned.order not in self._trials:
                self._planned(planned)

    def _keep(self, **changes: object) -> Manifest:
        manifest = replace(self._directory.read_manifest(), **changes)  # type: ignore[arg-type]
        self._directory.write_manifest(manifest)
        return manifest


def judged(experiment: Experiment, trials: Sequence[TrialData], looks: Looks) -> list[Judged]:
    """All comparisons that have trials."""
    from perflab.statistics import findings  # scipy takes a second to import

    asked = experiment.document.statistics
    results = summarize("", sorted(trials, key=lambda t: t.order)).results
    figures = key_figures.kinds(trials[0].key_figures if trials else ())
    metrics = metrics_of(results, experiment.document, figures)
    rules = {"alpha": asked.alpha, "margin": asked.margin / 100}
    found = findings.verdicts(results, metrics, **rules, seed=experiment.settings.seed, looks=looks)
    return [Judged(quick.verdict, quick.too_few, quick.decidable) for quick in found]


def too_few(experiment: Experiment) -> list[str]:
    """A warning before the first trial of a run with too few trials to show anything; empty if there are enough. Runs
    with a single trial of each, and with --quick, have their own warnings."""
    document, workload = experiment.document, experiment.workload
    if experiment.rule is not None or experiment.search is not None or workload.command is not None:
        return []
    if document.trials == 1 or document.quick:
        return []
    pairs, metrics = _planned(experiment)
    alpha = document.statistics.alpha * Looks().share
    words = family.too_few(pairs, metrics, document.trials, alpha) if pairs and metrics else None
    return [] if words is None else [words]


def enough(experiment: Experiment, looks: Looks, compared: int | None = None) -> int:
    """Repetitions of the plan that can decide every comparison at this look; `compared`: their number, if trials have
    shown it."""
    pairs, metrics = _planned(experiment)
    alpha = experiment.document.statistics.alpha * looks.share
    return family.enough(pairs, compared or len(pairs) * metrics, alpha) if pairs and metrics else 1


def _planned(experiment: Experiment) -> tuple[list[family.PlannedPair], int]:
    """The comparisons to make, and their number of metrics."""
    document, graph = experiment.document, experiment.workload.graph
    figures = key_figures.kinds(key_figures.declared(graph.document))
    there = {"round_trip": graph.services(), "latency": graph.edges(), "response": graph.edges()}
    wanted = metrics_asked(document, figures)
    metrics = sum(bool(there.get(metric.name.partition(".")[0], True)) for metric in wanted)
    return family.planned_pairs(experiment.order, experiment.workload.name), metrics
