"""A run as a report needs it: its summary, further data of its trials, and its progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perflab.errors import BadInput
from perflab.report.label import labels
from perflab.report.places import mapped, names_like_paths, without_folders
from perflab.report.tables.trials import TrialOf
from perflab.results.comparison import Finding, Remark
from perflab.results.files import Manifest, TrialFile
from perflab.results.outcome import HARNESS_ERROR
from perflab.results.run import PERFLAB, RunData
from perflab.results.summary import Summary
from perflab.results.trial import Result, Trial
from perflab.runs.rundir import SUMMARY

VERBS = ("run", "sweep", "breaking-point")  # verbs that make runs


@dataclass(frozen=True, eq=False)
class ReportRun:
    """`labels` are those of the results, by what they differ in; `files` and `folders` are by trial number."""

    data: RunData
    labels: tuple[str, ...]
    files: dict[int, TrialFile] = field(repr=False)
    folders: dict[int, Path] = field(repr=False)
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def manifest(self) -> Manifest:
        return self.data.manifest

    @property
    def summary(self) -> Summary:
        return self.data.summary

    @property
    def results(self) -> list[Result]:
        return list(self.summary.results)

    @property
    def comparisons(self) -> tuple[Finding, ...]:
        """Empty if nothing was compared."""
        return () if self.summary.findings is None else self.summary.findings.comparisons

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Empty if nothing was compared."""
        return () if self.summary.findings is None else self.summary.findings.remarks

    @property
    def own(self) -> bool:
        """Whether it was made by perflab."""
        return self.data.origin == PERFLAB

    @property
    def planned(self) -> int | None:
        """The number of planned trials; None for a foreign run, and for a search, which plans as it proceeds."""
        return len(self.manifest.trials) or None if self.own else None

    @property
    def verb(self) -> str:
        """The verb of its command line, to make it again."""
        verb = "".join(self.manifest.command_line[1:2])
        return verb if verb in VERBS else "run"

    @property
    def trials(self) -> list[tuple[str, Result, Trial]]:
        """Every trial with its result and the result's label, in the order in which they ran."""
        found = [(label, r, t) for label, r in zip(self.labels, self.results, strict=True) for t in r.trials_detail]
        return sorted(found, key=lambda entry: (entry[2].order, entry[2].trial))

    @property
    def interrupted(self) -> list[Trial]:
        return [trial for _, _, trial in self.trials if self.is_interrupted(trial)]

    @property
    def ended(self) -> int:
        """Planned trials that came to an end: including extra and invalid ones, without interrupted ones."""
        return len(self.trials) - len(self.interrupted)

    @property
    def is_whole(self) -> bool:
        return not self.interrupted and (self.planned is None or self.ended >= self.planned)

    @property
    def is_running(self) -> bool:
        """Whether the perflab process of the run is alive, and on this machine."""
        from perflab.host import Host
        from perflab.runs.controller import RUNNING, controller_state

        if not self.own or self.manifest.controller is None or (self.data.path / SUMMARY).exists():
            return False
        return controller_state(self.manifest, Host()) == RUNNING

    def file(self, trial: Trial) -> TrialFile | None:
        """trial.json of an entry of trials_detail; None if there is none."""
        return self.files.get(trial.trial)

    def is_interrupted(self, trial: Trial) -> bool:
        file = self.file(trial)
        return trial.interrupted or (trial.outcome == HARNESS_ERROR and file is not None and file.interrupted)


def read(data: RunData) -> ReportRun:
    """What a report needs beside the data; no text in it names a folder of the run's machine."""
    results = data.summary.results
    names = labels(results, [data.name] * len(results)) if results else []
    files, folders = {file.trial: file for _, file in data.files}, {file.trial: path for path, file in data.files}
    graph = names_like_paths(data.manifest.workload.graph)
    change = partial(without_folders, runs=(data.manifest.run, data.path.resolve().name), kept=graph)
    data = replace(
        data,
        summary=mapped(data.summary, change),
        manifest=replace(data.manifest, not_recorded=mapped(data.manifest.not_recorded, change)),
    )
    return ReportRun(data, tuple(names), mapped(files, change), folders, tuple(dict.fromkeys(map(change, data.notes))))


def trials_of(runs: Sequence[ReportRun]) -> list[TrialOf]:
    """The trials of all runs, as rows of their table."""
    return [
        TrialOf(trial, result, label, run.file(trial), run.name if len(runs) > 1 else "")
        for run in runs
        for label, result, trial in run.trials
    ]


def of_all(runs: Sequence[ReportRun]) -> Iterator[tuple[ReportRun, str, Result]]:
    """Every result of every run, with its label."""
    for run in runs:
        for label, result in zip(run.labels, run.results, strict=True):
            yield run, label, result


def open_all(words: Sequence[str]) -> list[ReportRun]:
    """The runs with these paths or names, without duplicates. Raises BadInput with one line."""
    from perflab.runs.rundata import open_run

    found: list[ReportRun] = []
    seen: dict[Path, str] = {}
    for text in words:
        data = open_run(text)
        place = data.path.resolve()
        if place in seen:
            raise BadInput(f"{data.name} is named twice; name each run once")
        seen[place] = text
        found.append(read(data))
    return found
