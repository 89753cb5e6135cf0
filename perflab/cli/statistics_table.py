"""Statistics of a table from elsewhere, with one row per trial, or with mean, sd and n per treatment."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from perflab.columns import Table
from perflab.errors import BadInput
from perflab.formats.table_file import TableFile
from perflab.models import as_json as to_json
from perflab.report.table import print_rows
from perflab.report.tables import statistics as tables
from perflab.results.comparison import Margin
from perflab.statistics import comparison as cmp
from perflab.statistics import estimate, verdicts
from perflab.statistics.estimate import find_outliers
from perflab.statistics.lattice import detect
from perflab.statistics.noise import noise_floor
from perflab.statistics.sample import Sample
from perflab.statistics.summary_data import Moments, SummaryComparison, compare_moments, corrected, welch_anova

if TYPE_CHECKING:
    from perflab.cli.statistics_ import Asked

Json = dict[str, Any]
Block = list[Table[Any] | Text]

MAX_N = 1e12  # of a group
MAX_PAIRS_OF = 6  # most groups that are compared pairwise without a baseline
LABELS = ("trial_id", "trial", "label", "id", "name")
BASELINE = "baseline"
NAMES = {
    "mean": ("mean", "average", "avg"),
    "sd": ("sd", "std", "stdev", "stddev", "standard_deviation"),
    "n": ("n", "trials", "count"),
}
UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Report:
    """The output: blocks of tables and lines, each followed by a blank line, then the document's sentences."""

    document: Json
    blocks: list[Block]

    def draw(self, out: Console) -> None:
        for block in self.blocks:
            for part in block:
                if isinstance(part, Text):
                    out.print(part)
                else:
                    print_rows(out, part)
            out.print()
        for sentence in self.document["words"]:
            out.print(Text(sentence))


def report_of(table: TableFile, group: str, asked: Asked) -> Report:
    """Raises BadInput if the table lacks something."""
    return (_of_summary if asked.from_summary else _of_rows)(table, group, asked)


def _margin(text: str | None, column: str) -> Margin | None:
    """ "5%", "10", or "10ms" for a column whose name ends in a unit. Raises BadInput."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%|[a-zµ]*)\s*", text)
    wanted = "use 5%, 10, or 10ms for a column whose name ends in _ms"
    if match is None or float(match[1]) <= 0 or match[2].replace("µs", "us") not in ("", "%", *UNITS):
        raise BadInput(f"--margin {text!r} is not a valid difference; {wanted}")
    number, unit = float(match[1]), match[2].replace("µs", "us")
    if unit == "%":
        return Margin(number / 100, relative=True)
    if not unit:
        return Margin(number)
    own = column.rpartition("_")[2]
    if own not in UNITS:
        raise BadInput(f"--margin {text!r}: the unit of column {column!r} is unknown; {wanted}")
    return Margin(number * UNITS[unit] / UNITS[own])


def _pairs(groups: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """The pairs to compare: (baseline, treatment). Raises BadInput."""
    if baseline is not None and baseline not in groups:
        raise BadInput(f"--baseline {baseline!r} is not a group; groups: {', '.join(groups)}")
    if baseline is None and BASELINE in groups:
        baseline = BASELINE
    if baseline is not None:
        return [(baseline, other) for other in groups if other != baseline]
    if len(groups) > MAX_PAIRS_OF:
        raise BadInput(f"{len(groups)} groups are too many to compare every pair; name one with --baseline")
    return list(itertools.combinations(groups, 2))


def _of_rows(table: TableFile, group: str, asked: Asked) -> Report:
    alpha, seed = asked.alpha, asked.seed
    samples = {column: _samples(table, group, column, asked) for column in dict.fromkeys(asked.value)}
    made: list[cmp.Analysed] = []
    for column, of_column in samples.items():
        margin = _margin(asked.margin, column)
        for first, second in _pairs(list(of_column), asked.baseline):
            a, b = of_column[first], of_column[second]
            floor = noise_floor(a, a.n, b.n, seed)
            one = cmp.compare(
                a, b, metric=column, alpha=alpha, margin=margin, seed=seed, noise_floor=floor, alone=False
            )
            made.append(one)
    family = cmp.corrected(made)
    lattices = {
        column: detect([x for sample in of_column.values() for x in sample.values])
        for column, of_column in samples.items()
    }
    sentences = []
    for column, of_column in samples.items():
        for c in family:
            if c.metric == column:
                sentences += [verdicts.in_words(c), verdicts.spread_in_words(c)]
        if (lattice := lattices[column]) is not None:
            sentences.append(verdicts.lattice_in_words(lattice, column))
        if missing := sum(sample.missing for sample in of_column.values()):
            sentences.append(f"{column}: {missing} {'rows have' if missing > 1 else 'row has'} no value.")

    def described(sample: Sample) -> tables.Group:
        estimates = {
            "median": estimate.median(sample, 1 - alpha),
            "mean": estimate.mean(sample, 1 - alpha, seed),
            "sd": estimate.standard_deviation(sample, 1 - alpha, seed),
        }
        return tables.Group(sample, estimates, find_outliers(sample))

    groups = {column: [described(sample) for sample in each.values()] for column, each in samples.items()}
    words = [sentence for sentence in sentences if sentence is not None]
    document = {
        "groups": [{"value": column, **_group_document(g)} for column, each in groups.items() for g in each],
        "comparisons": [c.document() for c in family],
        "lattices": to_json(lattices),
        "words": words,
    }

    blocks: list[Block] = []
    for column, each in groups.items():
        medians = [(g.sample.name, g.estimates["median"]) for g in each]
        unknown = [
            Text(f"{name}: median {verdicts.estimate_in_words(found)}: {found.reason}", "dim")
            for name, found in medians
            if found.reason is not None
        ]
        blocks.append([tables.groups(column, each), *unknown])
        if compared := [c for c in family if c.metric == column]:
            blocks.append([tables.comparisons(compared)])
        if far := [f"{x.label} ({verdicts.plain(x.value)})" for g in each for x in g.outliers]:
            blocks.append([Text(f"Outliers of their group (kept): {', '.join(far)}", "dim")])
    return Report(document, blocks)


def _group_document(group: tables.Group) -> Json:
    return {
        "name": group.sample.name,
        "n": group.sample.n,
        "missing": group.sample.missing,
        **{name: to_json(estimate) for name, estimate in group.estimates.items()},
        "outliers": to_json(tuple(group.outliers)),
    }


def _samples(table: TableFile, group: str, column: str, asked: Asked) -> dict[str, Sample]:
    """The groups in order of appearance. Raises BadInput for a group without any value."""
    label, block = asked.label, asked.block
    table.require(column, "--value")
    if label is not None:
        table.require(label, "--label")
    else:
        label = next((name for name in LABELS if name in table.columns and name not in (group, column)), None)
    if block is not None:
        table.require(block, "--block")
    members: dict[str, list[int]] = {}
    for index, row in enumerate(table.rows):
        if not (name := row.cells[group].strip()):
            raise BadInput(f"{table.path}, line {row.number}: {group} is empty")
        members.setdefault(name, []).append(index)
    samples = {}
    for name, indices in members.items():
        rows = [table.rows[i] for i in indices]
        values = [table.number(row, column) for row in rows]
        if all(v is None for v in values):
            raise BadInput(f"{table.path}: group {name!r} has no value of {column} in its {len(rows)} rows")
        labels = [row.cells[label].strip() if label else f"line {row.number}" for row in rows]
        blocks = None if block is None else [row.cells[block].strip() for row in rows]
        samples[name] = Sample.of(values, labels, blocks, name)
    return samples


def _summary_columns(table: TableFile, asked: Asked) -> dict[str, dict[str, str]]:
    """The columns of mean, sd and n, per value. Raises BadInput."""

    def guessed(what: str) -> str:
        if (given := getattr(asked, what)) is not None:
            return table.require(given, f"--{what}")
        by_name = {column.lower(): column for column in table.columns}
        if (found := next((by_name[name] for name in NAMES[what] if name in by_name), None)) is None:
            columns = ", ".join(table.columns)
            raise BadInput(f"no column of {table.path} is called {what}; name it with --{what}: {columns}")
        return found

    if not asked.value:
        columns = {what: guessed(what) for what in NAMES}
        return {re.sub(r"_(mean|average|avg)$", "", columns["mean"]) if asked.mean else "": columns}
    return {
        name: {what: table.require(f"{name}_{what}", "--value") for what in ("mean", "sd")} | {"n": guessed("n")}
        for name in dict.fromkeys(asked.value)
    }


def _moments(table: TableFile, group: str, columns: dict[str, str]) -> tuple[dict[str, Moments], list[str]]:
    """The groups, and those that lack a figure. Raises BadInput for invalid values."""
    found: dict[str, Moments] = {}
    missing = []
    for row in table.rows:
        name = row.cells[group].strip()
        if not name or name in found:
            raise BadInput(
                f"{table.path}, line {row.number}: {group} {'is empty' if not name else f'{name!r} was there before'}; "
                "with --from-summary every group is one row"
            )
        mean, sd, n = (table.number(row, columns[what]) for what in ("mean", "sd", "n"))
        if mean is None or sd is None or n is None:
            missing.append(name)
            continue
        try:
            if n != int(n):
                raise ValueError(f"n is {n:g}, which is not a whole number")
            if n > MAX_N:
                raise ValueError(f"n is {n:g}; the maximum is {MAX_N:g}")
            found[name] = Moments(name, mean, sd, int(n))
        except ValueError as error:
            raise BadInput(f"{table.path}, line {row.number}: {error}") from error
    if not found:
        raise BadInput(f"{table.path}: no row has mean, sd and n")
    return found, missing


def _of_summary(table: TableFile, group: str, asked: Asked) -> Report:
    alpha = asked.alpha
    made: list[SummaryComparison] = []
    moments: dict[str, dict[str, Moments]] = {}
    lacking = []
    for name, columns in _summary_columns(table, asked).items():
        moments[name], missing = _moments(table, group, columns)
        if missing:
            lacking.append(f"{name or 'the value'}: no mean, sd or n of {', '.join(missing)}.")
        for first, second in _pairs(list(moments[name]), asked.baseline):
            pair = moments[name][first], moments[name][second]
            made.append(compare_moments(*pair, metric=name, alpha=alpha, margin=_margin(asked.margin, name)))
    family = corrected(made)
    anovas = {name: welch_anova(list(each.values())) for name, each in moments.items() if len(each) > 2}
    sentences: list[str] = []
    for name, each in moments.items():
        if (anova := anovas.get(name)) is not None and anova.p is not None:
            shown = "the means differ" if anova.p <= alpha else "no difference among the means is shown"
            of = f"{name} of " if name else ""
            sentences.append(f"{of}all {len(each)} groups: {shown} ({anova.name}, {verdicts.p_in_words(anova.p)}).")
        sentences += [verdicts.summary_in_words(c) for c in family if c.metric == name]
    sentences += lacking
    sentences.append("With only mean, sd and n, single trials, outliers and lattices cannot be examined.")
    document = {
        "groups": [
            {"value": name, **to_json(one), "interval": to_json(one.interval(1 - alpha).interval)}
            for name, each in moments.items()
            for one in each.values()
        ],
        "comparisons": [c.to_dict() for c in family],
        "anova": to_json(anovas),
        "words": sentences,
    }

    blocks: list[Block] = []
    for name, each in moments.items():
        blocks.append([tables.moments(name, list(each.values()), 1 - alpha)])
        if compared := [c for c in family if c.metric == name]:
            blocks.append([tables.of_moments(compared)])
    return Report(document, blocks)
