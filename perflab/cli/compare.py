"""`perflab compare`: the figures of several results side by side."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perflab import models
from perflab.cli import options
from perflab.cli.options import AsJson, MeasuredRuns, with_options
from perflab.errors import BadInput, damage_of
from perflab.output import console, write_json
from perflab.results.comparison import BETTER, WORSE, Findings, RunFinding
from perflab.results.trial import Result

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.design.document import Statistics
    from perflab.report.tables.side_by_side import Beside, Side
    from perflab.results.run import RunData
    from perflab.statistics.metrics import Metric
    from perflab.statistics.selection import Match

MAX_HEADER = 28  # width of a column; longer labels are listed above the table

SESSIONS = (
    "the runs are separate sessions: a machine drift between them looks like an effect; put all variants into one "
    "run to avoid this"
)
NO_INTERVALS = "figures without intervals: they do not show whether a difference is more than chance"


def _parameters() -> list[inspect.Parameter]:
    return options.of_statistics()


@with_options(_parameters)
def compare(
    runs: MeasuredRuns,
    as_json: AsJson = False,
    **values: Any,
) -> int:
    """Show the figures of several runs, or the results of one run, side by side; ratios are relative to the first.

    With several trials, also test whether the differences are more than chance, with one value per trial.
    """
    from perflab.report.tables.side_by_side import Side, beside, differ_in_trials
    from perflab.runs.rundata import open_run
    from perflab.statistics.verdicts import no_success

    asked = options.statistics(values)
    data = [_without_extras(open_run(run, with_tables=False)) for run in runs]
    with damage_of(*(run.path for run in data)):
        rules = Rules.of(asked, data)
        _check_distinct(data)
        sides = [Side(run, result) for run in data for result in run.summary.results]
        if len(sides) < 2:
            raise BadInput("only one result, and nothing to compare it with; name another run")
        found, per_trial = beside(sides), differ_in_trials(sides)
        notes = [f"{run.name}: {note}" for run in data for note in run.notes]
        notes += [f"{b.label}: {failed}" for b in found if (failed := no_success(b.side.result)) is not None]
        if all(value is None for b in found for value in b.figures.values()):
            raise BadInput(f"nothing was recorded in {' nor in '.join(str(run.path) for run in data)}")
        statistics = _statistics(data, rules)
        said = [] if statistics.tested else [NO_INTERVALS]
        said += [SESSIONS] if len(data) > 1 and not all(run.is_virtual for run in data) else []
        if not as_json:
            _print(found, notes, [*_alike(sides, per_trial=per_trial), *said], per_trial=per_trial)
            _print_statistics(console(), statistics, rules.margin)
            return 0
        write_json(
            {
                "notes": [*said, *notes],
                "reference": found[0].label,
                "counts": "mean over trials" if per_trial else "all trials",
                "columns": [b.document() for b in found],
                "statistics": models.as_json(statistics),
            }
        )
    return 0


@dataclass(frozen=True)
class Rules:
    """What is tested, and how. `margin` 0.05: 5 %."""

    metrics: tuple[Metric, ...]
    margin: float
    alpha: float

    @staticmethod
    def of(asked: Statistics, runs: Sequence[RunData]) -> Rules:
        """For runs whose key figures are also metrics. Raises BadInput."""
        from perflab.statistics.key_figures import kinds_in
        from perflab.statistics.metrics import chosen

        figures = kinds_in(*(run.summary for run in runs))
        return Rules(chosen(asked.metrics or None, figures=figures), asked.margin / 100, asked.alpha)


def _without_extras(run: RunData) -> RunData:
    """Without the results of extra trials, which are slower and excluded from statistics."""
    kept = tuple(result for result in run.summary.results if not result.is_extra)
    return replace(run, summary=replace(run.summary, results=kept))


def _check_distinct(data: Sequence[RunData]) -> None:
    """Raises BadInput where a run is named twice."""
    paths = [run.path.resolve() for run in data]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise BadInput(f"{data[number].name} is named twice and would be compared with itself; name another run")


# -- what is tested --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statistics:
    """The results of one run against each other (`findings`), or each later run against the first (`comparisons`)."""

    tested: bool  # whether there were enough trials to test
    comparisons: tuple[RunFinding, ...]
    remarks: tuple[str, ...]  # limits of the comparison
    findings: Findings | None


def _statistics(data: Sequence[RunData], rules: Rules) -> _Statistics:
    if len(data) == 1:
        from perflab.statistics import findings

        results = data[0].summary.results
        looks = None if (own := data[0].summary.findings) is None else own.looks
        found = findings.find(results, alpha=rules.alpha, margin=rules.margin, metrics=rules.metrics, looks=looks)
        return _Statistics(bool(found.comparisons), (), tuple(r.words for r in found.remarks), found)
    remarks: list[str] = []
    comparisons: list[RunFinding] = []
    for run in data[1:]:
        comparisons += _between(data[0], run, rules, remarks)
    return _Statistics(bool(comparisons), tuple(comparisons), tuple(remarks), None)


def _between(first: RunData, run: RunData, rules: Rules, remarks: list[str]) -> list[RunFinding]:
    """Compares a run with the first; the remarks explain what could not be compared."""
    from perflab.statistics.runs import compare_runs
    from perflab.statistics.selection import match, names_of
    from perflab.statistics.verdicts import ONE_TRIAL, effect_of, in_words

    matches = match(first.summary.results, run.summary.results).pairs
    if not matches:
        remarks.append(f"{run.name} measured nothing that {first.name} measured: nothing to test")
    names = names_of([m.first for m in matches])
    pairs: list[Match] = []
    for name, pair in zip(names, matches, strict=True):
        if pair.differing:
            remarks.append(f"{first.name} and {run.name} differ in {'; '.join(pair.differing)}")
        if pair.first.duration_s == pair.second.duration_s:
            pairs.append(pair)
        else:
            differ = f"a trial lasts {_seconds(pair.second)}, in the first run {_seconds(pair.first)}"
            remarks.append(f"{name}: {run.name} cannot be tested against {first.name}: {differ}")
    if pairs and max(min(len(m.first.entering), len(m.second.entering)) for m in pairs) <= 1:
        remarks.append(f"{first.name} and {run.name}: {ONE_TRIAL}")
        return []
    between, paired = (first.name, run.name), first.is_paired(run)
    found = compare_runs(pairs, rules.metrics, between, alpha=rules.alpha, margin=rules.margin, paired=paired)
    by_result = {id(m): name for name, m in zip(names, matches, strict=True)}
    comparisons = []
    for one in found:
        result, words = by_result[id(one.of)], in_words(one.comparison, one.metric.format)
        comparisons.append(
            RunFinding(
                **{**vars(one.comparison.alone()), "metric": one.metric.name},
                result=result,
                baseline_run=first.name,
                run=run.name,
                effect=effect_of(one.metric, one.comparison),
                words=f"{result}: {words}" if len(matches) > 1 else words,
            )
        )
    return comparisons


def _seconds(result: Result) -> str:
    duration_s = result.duration_s
    return "an unrecorded time" if duration_s is None else f"{duration_s:g} s"


# -- in a terminal ---------------------------------------------------------------------------------------------------


def _print(found: Sequence[Beside], notes: Sequence[str], said: Sequence[str], *, per_trial: bool) -> None:
    from rich.text import Text

    from perflab.report.table import print_declared, print_rows, width_of
    from perflab.report.tables import outcomes
    from perflab.report.tables.messages import Of
    from perflab.report.tables.side_by_side import table

    out = console()
    for note in notes:
        out.print(Text(f"Note: {note}", "yellow"))
    if notes:
        out.print()
    headers = [b.label for b in found]
    if max(map(len, headers)) > MAX_HEADER:
        headers = [f"({n})" for n in range(1, len(found) + 1)]
        for header, b in zip(headers, found, strict=True):
            out.print(Text(f"{header} {b.label}"))
        out.print()
    first, *rest = zip(headers, found, strict=True)
    while rest:
        # As many columns beside the first as fit; a narrow terminal gets several tables.
        count = len(rest)
        while count > 1 and width_of(table([first, *rest[:count]], per_trial=per_trial)) > out.width:
            count -= 1
        print_rows(out, table([first, *rest[:count]], per_trial=per_trial))
        out.print()
        rest = rest[count:]
    for of_kind in outcomes.tables([Of(b.side.result, header) for header, b in zip(headers, found, strict=True)]):
        print_declared(out, of_kind)
    for words in said:
        out.print(Text(f"{words[0].upper()}{words[1:].removesuffix('.')}.", "dim"))


def _alike(sides: Sequence[Side], *, per_trial: bool) -> list[str]:
    """Why the figures are not comparable."""
    results = [side.result for side in sides]
    words = (
        ["the numbers of trials differ: counts are means over trials, maxima are over all trials"] if per_trial else []
    )
    if len({result.duration_s for result in results}) > 1:
        words.append("the durations differ, so counts differ, too")
    if len({result.workload for result in results}) > 1:
        words.append("the workloads differ")
    if not all(result.coverage.complete for result in results):
        words.append("not every process of every run wrote its last record, so some losses at the end are unknown")
    return words


def _print_statistics(out: Console, statistics: _Statistics, margin: float) -> None:
    """First the significant differences, then why the others are not."""
    from perflab.report.answers import print_sentences, sentences

    if statistics.findings is not None:
        said = sentences(statistics.findings.remarks)
    else:
        styles = {WORSE: "red", BETTER: "green"}
        claims = [(c.effect, c.words) for c in statistics.comparisons if c.effect is not None]
        said = [(styles[effect], words) for effect, words in sorted(claims, key=lambda claim: claim[0] != WORSE)]
        said += [("", words) for words in _grouped([c for c in statistics.comparisons if not c.effect], margin)]
        said += [("yellow", words) for words in statistics.remarks]
    if said:
        out.print()
    print_sentences(out, said)


def _grouped(comparisons: Sequence[RunFinding], margin: float) -> list[str]:
    """One sentence for each reason why no difference was shown; `words` in JSON has more detail."""
    from perflab.statistics.metrics import named
    from perflab.statistics.verdicts import no_difference_of, no_difference_words

    sentences = []
    for verdict, words in no_difference_words(margin).items():
        mine: dict[str, list[str]] = {}
        for c in (c for c in comparisons if no_difference_of(c) == verdict):
            mine.setdefault(f"{c.run} against {c.baseline_run}, {c.result}", []).append(named(c.metric).words)
        if mine:
            listed = [f"{name}: {', '.join(metrics)}" for name, metrics in mine.items()]
            sentences.append(f"{words}: {'; '.join(listed)}")
    return sentences
