"""`perflab statistics`: what a table from elsewhere shows; one row per trial, or mean, sd and n per treatment."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import output
from perflab.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.formats.table_file import TableFile
    from perflab.report.table import Column
    from perflab.results.comparison import Comparison, Lattice, Margin
    from perflab.statistics.sample import Sample
    from perflab.statistics.summary_data import Moments, SummaryComparison

Json = dict[str, Any]

MAX_N = 1e12  # of a group
MAX_PAIRS_OF = 6  # groups without a baseline that are compared each with each
LABELS = ("trial_id", "trial", "label", "id", "name")
BASELINE = "baseline"
NAMES = {
    "mean": ("mean", "average", "avg"),
    "sd": ("sd", "std", "stdev", "stddev", "standard_deviation"),
    "n": ("n", "trials", "count"),
}
UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class _Report:
    """What is printed: groups and comparisons of one value column after the other, and sentences."""

    document: Json
    draw: Callable[[Console], None]


def statistics_(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV or TSV file with a header.", show_default=False)
    ],
    group: Annotated[
        str, typer.Option("--group", metavar="COLUMN", help="What tells the treatments apart.", show_default=False)
    ],
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="COLUMN",
            help="What was measured, one value per trial; repeatable. With --from-summary COLUMN_mean and COLUMN_sd.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="EXPR", help="Rows to take: \"status == 'success' and not trial endswith '_x'\"."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="GROUP", help=f"What the others are compared with [{BASELINE}; else each with each]."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Names of the trials [trial_id, trial, …, or lines]."),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option("--block", metavar="COLUMN", help="Trials that belong together: pairs, repetitions, sessions."),
    ] = None,
    from_summary: Annotated[
        bool, typer.Option("--from-summary", help="Rows are treatments, with mean, sd and n.")
    ] = False,
    mean: Annotated[str | None, typer.Option("--mean", metavar="COLUMN", help="With --from-summary.")] = None,
    sd: Annotated[str | None, typer.Option("--sd", metavar="COLUMN", help="With --from-summary.")] = None,
    n: Annotated[str | None, typer.Option("--n", metavar="COLUMN", help="With --from-summary.")] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            "--margin",
            metavar="D",
            help="The largest difference that does not matter: 5%, 10, or 10ms of a column …_ms.",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="The rate of false claims.")] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything that is resampled.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> int:
    """Compare the groups of a table: intervals, tests, equivalence, influence of single trials, lattices."""
    from perflab.formats.table_file import read_table
    from perflab.formats.where import parse_where

    if not 0 < alpha < 0.5:
        raise BadInput(f"--alpha {alpha:g} is no rate of false claims; use a number between 0 and 0.5, such as 0.05")
    _check_options(from_summary, value, {"--mean": mean, "--sd": sd, "--n": n}, {"--label": label, "--block": block})
    read = read_table(table)
    read.require(group, "--group")
    chosen = read if where is None else read.where(parse_where(where, read))
    if not chosen.rows:
        raise BadInput(f"--where {where!r} leaves no row of the {len(read.rows)} of {table}")
    head: Json = {
        "schema": 1,
        "table": str(table),
        "group": group,
        "where": where,
        "rows": len(chosen.rows),
        "rows_of_table": len(read.rows),
        "alpha": alpha,
        "seed": seed,
    }
    if from_summary:
        columns = _summary_columns(chosen, value, {"mean": mean, "sd": sd, "n": n})
        report = _of_summary(chosen, group, columns, baseline, margin, alpha)
    else:
        assert value is not None
        report = _of_rows(chosen, group, value, label, block, baseline, margin, alpha, seed)
    if as_json:
        sys.stdout.write(json.dumps({**head, **report.document}, indent=1, ensure_ascii=False) + "\n")
        return 0
    out = output.console()
    with output.captured(out) as printed:
        _draw_head(out, head)
        report.draw(out)
    output.write_captured(printed[0])
    return 0


def _check_options(
    from_summary: bool, value: list[str] | None, of_summary: dict[str, str | None], of_rows: dict[str, str | None]
) -> None:
    if not from_summary and not value:
        raise BadInput("--value is missing: name the column that was measured")
    wrong = of_rows if from_summary else of_summary
    for option, given in wrong.items():
        if given is not None:
            raise BadInput(f"{option} goes {'without' if from_summary else 'with'} --from-summary")
    if from_summary and value and any(of_summary[option] for option in ("--mean", "--sd")):
        raise BadInput("--value names COLUMN_mean and COLUMN_sd already; leave out --mean and --sd, or --value")


def _margin(text: str | None, column: str) -> Margin | None:
    """ "5%", "10", or "10ms" of a column whose name ends in a unit. Raises BadInput."""
    from perflab.results.comparison import Margin

    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%|[a-zµ]*)\s*", text)
    wanted = "use 5%, 10, or 10ms of a column whose name ends in _ms"
    if match is None or float(match[1]) <= 0 or match[2].replace("µs", "us") not in ("", "%", *UNITS):
        raise BadInput(f"--margin {text!r} is no size of a difference; {wanted}")
    number, unit = float(match[1]), match[2].replace("µs", "us")
    if unit == "%":
        return Margin(number / 100, relative=True)
    if not unit:
        return Margin(number)
    own = column.rpartition("_")[2]
    if own not in UNITS:
        raise BadInput(f"--margin {text!r}: the unit of column {column!r} is not known; {wanted}")
    return Margin(number * UNITS[unit] / UNITS[own])


def _pairs(groups: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Who is compared with whom: (baseline, treatment). Raises BadInput."""
    if baseline is not None and baseline not in groups:
        raise BadInput(f"--baseline {baseline!r} is no group; groups: {', '.join(groups)}")
    if baseline is None and BASELINE in groups:
        baseline = BASELINE
    if baseline is not None:
        return [(baseline, other) for other in groups if other != baseline]
    if len(groups) > MAX_PAIRS_OF:
        raise BadInput(f"{len(groups)} groups are too many to compare each with each; name one with --baseline")
    return list(itertools.combinations(groups, 2))


def _of_rows(
    table: TableFile,
    group: str,
    columns: Sequence[str],
    label: str | None,
    block: str | None,
    baseline: str | None,
    margin: str | None,
    alpha: float,
    seed: int,
) -> _Report:
    from perflab.models import as_json as to_json
    from perflab.statistics import comparison as cmp
    from perflab.statistics import verdicts
    from perflab.statistics.lattice import detect
    from perflab.statistics.noise import noise_floor

    samples = {column: _samples(table, group, column, label, block) for column in dict.fromkeys(columns)}
    lattices: dict[str, Lattice | None] = {}
    made: list[cmp.Analysed] = []
    for column, of_column in samples.items():
        lattices[column] = detect([x for sample in of_column.values() for x in sample.values])
        for first, second in _pairs(list(of_column), baseline):
            a, b = of_column[first], of_column[second]
            made.append(
                cmp.compare(
                    a, b, metric=column, alpha=alpha, margin=_margin(margin, column), seed=seed,
                    noise_floor=noise_floor(a, a.n, b.n, seed),
                )
            )  # fmt: skip
    family = cmp.corrected(made)
    sentences = []
    for column, of_column in samples.items():
        for c in family:
            if c.metric == column:
                sentences.append(verdicts.in_words(c))
                if (spread := verdicts.spread_in_words(c)) is not None:
                    sentences.append(spread)
        if (lattice := lattices[column]) is not None:
            sentences.append(verdicts.lattice_in_words(lattice, column))
        if missing := sum(sample.missing for sample in of_column.values()):
            sentences.append(f"{column}: {missing} {'rows have' if missing > 1 else 'row has'} no value.")
    groups = [_described(column, sample, alpha, seed) for column, each in samples.items() for sample in each.values()]
    document = {
        "groups": [described.to_json() for described in groups],
        "comparisons": [c.document() for c in family],
        "lattices": to_json(lattices),
        "words": sentences,
    }

    def draw(out: Console) -> None:
        for column in samples:
            _draw_groups(out, column, [described for described in groups if described.column == column])
            _draw_comparisons(out, [c for c in family if c.metric == column])
            _draw_outliers(out, [described for described in groups if described.column == column])
        _draw_words(out, sentences)

    return _Report(document, draw)


def _samples(table: TableFile, group: str, column: str, label: str | None, block: str | None) -> dict[str, Sample]:
    """The groups in order of appearance. Raises BadInput for a group without any value."""
    from perflab.statistics.sample import Sample

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


def _summary_columns(
    table: TableFile, value: list[str] | None, named: dict[str, str | None]
) -> dict[str, dict[str, str]]:
    """Per value the columns of mean, sd and n. Raises BadInput."""

    def guessed(what: str) -> str:
        if (given := named[what]) is not None:
            return table.require(given, f"--{what}")
        by_name = {column.lower(): column for column in table.columns}
        for name in NAMES[what]:
            if name in by_name:
                return by_name[name]
        raise BadInput(f"no column of {table.path} is called {what}; name it with --{what}: {', '.join(table.columns)}")

    if not value:
        columns = {what: guessed(what) for what in NAMES}
        name = columns["mean"] if named["mean"] else ""
        return {re.sub(r"_(mean|average|avg)$", "", name): columns}
    return {
        name: {
            "mean": table.require(f"{name}_mean", "--value"),
            "sd": table.require(f"{name}_sd", "--value"),
            "n": guessed("n"),
        }
        for name in dict.fromkeys(value)
    }


def _moments(table: TableFile, group: str, columns: dict[str, str]) -> tuple[dict[str, Moments], list[str]]:
    """The groups, and those that lack a figure. Raises BadInput for what cannot be."""
    from perflab.statistics.summary_data import Moments

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
                raise ValueError(f"n is {n:g}, which is no whole number")
            if n > MAX_N:
                raise ValueError(f"n is {n:g}; at most {MAX_N:g} can be calculated with")
            found[name] = Moments(name, mean, sd, int(n))
        except ValueError as error:
            raise BadInput(f"{table.path}, line {row.number}: {error}") from error
    if not found:
        raise BadInput(f"{table.path}: no row has mean, sd and n")
    return found, missing


def _of_summary(
    table: TableFile,
    group: str,
    columns: dict[str, dict[str, str]],
    baseline: str | None,
    margin: str | None,
    alpha: float,
) -> _Report:
    from perflab.models import as_json
    from perflab.statistics import verdicts
    from perflab.statistics.summary_data import compare_moments, corrected, welch_anova

    made: list[SummaryComparison] = []
    moments: dict[str, dict[str, Moments]] = {}
    sentences: list[str] = []
    lacking = []
    for name, of_value in columns.items():
        moments[name], missing = _moments(table, group, of_value)
        if missing:
            lacking.append(f"{name or 'the value'}: no mean, sd or n of {', '.join(missing)}.")
        for first, second in _pairs(list(moments[name]), baseline):
            pair = moments[name][first], moments[name][second]
            made.append(compare_moments(*pair, metric=name, alpha=alpha, margin=_margin(margin, name)))
    family = corrected(made)
    anovas = {name: welch_anova(list(each.values())) for name, each in moments.items() if len(each) > 2}
    for name, of_name in moments.items():
        if (anova := anovas.get(name)) is not None and anova.p is not None:
            shown = "the means differ" if anova.p <= alpha else "no difference among the means is shown"
            what = f"{name} of " if name else ""
            sentences.append(
                f"{what}all {len(of_name)} groups: {shown} ({anova.name}, {verdicts.p_in_words(anova.p)})."
            )
        sentences += [verdicts.summary_in_words(c) for c in family if c.metric == name]
    sentences += lacking
    sentences.append("Of mean, sd and n alone: single trials, outliers and lattices cannot be seen in them.")
    document = {
        "groups": [
            {"value": name, **as_json(group_), "interval": as_json(group_.interval(1 - alpha).interval)}
            for name, each in moments.items()
            for group_ in each.values()
        ],
        "comparisons": [c.to_dict() for c in family],
        "anova": as_json(anovas),
        "words": sentences,
    }

    def draw(out: Console) -> None:
        for name, each in moments.items():
            _draw_moments(out, name, list(each.values()), alpha)
            _draw_summary_comparisons(out, [c for c in family if c.metric == name])
        _draw_words(out, sentences)

    return _Report(document, draw)


@dataclass(frozen=True)
class _Described:
    column: str
    sample: Sample
    estimates: dict[str, Any]
    outliers: tuple[Any, ...]

    def to_json(self) -> Json:
        from perflab.models import as_json

        return {
            "value": self.column,
            "name": self.sample.name,
            "n": self.sample.n,
            "missing": self.sample.missing,
            **{name: as_json(estimate) for name, estimate in self.estimates.items()},
            "outliers": as_json(self.outliers),
        }


def _described(column: str, sample: Sample, alpha: float, seed: int) -> _Described:
    from perflab.statistics import estimate
    from perflab.statistics.outliers import find_outliers

    estimates = {
        "median": estimate.median(sample, 1 - alpha),
        "mean": estimate.mean(sample, 1 - alpha, seed),
        "sd": estimate.standard_deviation(sample, 1 - alpha, seed),
    }
    return _Described(column, sample, estimates, find_outliers(sample))


def _draw_head(out: Console, head: Json) -> None:
    from rich.text import Text

    of = "" if head["rows"] == head["rows_of_table"] else f" of {head['rows_of_table']}, where {head['where']}"
    out.print(Text(f"{head['table']}: {head['rows']} rows{of}; by {head['group']}", "bold"))
    out.print()


def _column(header: str, rank: int, cells: Sequence[str], *, right: bool = True, group: str = "") -> Column:
    from rich.text import Text

    from perflab.report.table import Column

    return Column(header, rank, [Text(cell) for cell in cells], right, group)


def _draw_groups(out: Console, column: str, groups: Sequence[_Described]) -> None:
    from perflab.report.table import print_table
    from perflab.statistics.verdicts import estimate_in_words, plain

    def interval(what: str) -> list[str]:
        return [_interval(g.estimates[what].interval) for g in groups]

    def values(what: str) -> list[str]:
        return ["–" if g.estimates[what].value is None else plain(g.estimates[what].value) for g in groups]

    print_table(
        out,
        [
            _column(column, 0, [g.sample.name for g in groups], right=False),
            _column("n", 1, [str(g.sample.n) for g in groups]),
            _column("missing", 7, [str(g.sample.missing or "–") for g in groups]),
            _column("median", 1, values("median")),
            _column("its interval", 3, interval("median")),
            _column("mean", 2, values("mean")),
            _column("its interval", 5, interval("mean")),
            _column("sd", 4, values("sd")),
            _column("min", 6, [plain(min(g.sample.values)) for g in groups]),
            _column("max", 6, [plain(max(g.sample.values)) for g in groups]),
        ],
    )
    for g in groups:
        if (reason := g.estimates["median"].reason) is not None:
            _dim(out, f"{g.sample.name}: median {estimate_in_words(g.estimates['median'])}: {reason}")
    out.print()


def _draw_comparisons(out: Console, comparisons: Sequence[Comparison]) -> None:
    from perflab.report.table import print_table
    from perflab.statistics.verdicts import factor, plain

    if not comparisons:
        return

    def p(value: float | None) -> str:
        return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.2g}"

    def estimates(what: str, form: Callable[[float], str] = plain) -> list[str]:
        return ["–" if (v := getattr(c, what).value) is None else form(v) for c in comparisons]

    def intervals(what: str) -> list[str]:
        return [_interval(getattr(c, what).interval) for c in comparisons]

    print_table(
        out,
        [
            _column("", 0, [f"{c.treatment.name} : {c.baseline.name}" for c in comparisons], right=False),
            _column("ratio", 2, estimates("ratio", factor)),
            _column("its interval", 4, intervals("ratio")),
            _column("shift", 2, estimates("shift", lambda v: f"{v:+.3g}")),
            _column("its interval", 5, intervals("shift")),
            _column("rank p", 2, [p(c.p) for c in comparisons]),
            _column("Holm", 1, [p(c.p_adjusted) for c in comparisons]),
            _column("perm. p", 8, [p(c.permutation.p) for c in comparisons]),
            _column("t p", 8, [p(c.welch.p) for c in comparisons]),
            _column("g", 9, estimates("hedges_g", lambda v: f"{v:+.2f}")),
            _column("delta", 9, estimates("cliffs_delta", lambda v: f"{v:+.2f}")),
            _column(
                "sd ratio", 6, ["–" if (v := c.spread.sd_ratio.value) is None else f"{v:.2f}" for c in comparisons]
            ),
            _column("spread p", 6, [p(c.spread.brown_forsythe.p) for c in comparisons]),
            _column("verdict", 0, [c.verdict.replace("_", " ") for c in comparisons], right=False),
        ],
    )
    out.print()


def _draw_outliers(out: Console, groups: Sequence[_Described]) -> None:
    from perflab.statistics.verdicts import plain

    found = [outlier for g in groups for outlier in g.outliers]
    if found:
        named = ", ".join(f"{outlier.label} ({plain(outlier.value)})" for outlier in found)
        _dim(out, f"Far from the others of their group, and not left out: {named}")
        out.print()


def _draw_moments(out: Console, name: str, groups: Sequence[Moments], alpha: float) -> None:
    from perflab.report.table import print_table
    from perflab.statistics.verdicts import plain

    print_table(
        out,
        [
            _column(name, 0, [g.name for g in groups], right=False),
            _column("n", 1, [str(g.n) for g in groups]),
            _column("mean", 1, [plain(g.mean) for g in groups]),
            _column("its interval", 2, [_interval(g.interval(1 - alpha).interval) for g in groups]),
            _column("sd", 1, [plain(g.sd) for g in groups]),
        ],
    )
    out.print()


def _draw_summary_comparisons(out: Console, comparisons: Sequence[SummaryComparison]) -> None:
    from perflab.report.table import print_table
    from perflab.statistics.verdicts import plain

    if not comparisons:
        return
    print_table(
        out,
        [
            _column("", 0, [f"{c.treatment.name} : {c.baseline.name}" for c in comparisons], right=False),
            _column("difference", 1, [f"{c.difference.value or 0:+.3g}" for c in comparisons]),
            _column("its interval", 2, [_interval(c.difference.interval) for c in comparisons]),
            _column("Welch p", 1, ["–" if c.p is None else f"{c.p:.2g}" for c in comparisons]),
            _column("Holm", 1, ["–" if c.p_adjusted is None else f"{c.p_adjusted:.2g}" for c in comparisons]),
            _column("g", 4, ["–" if c.hedges_g.value is None else f"{c.hedges_g.value:+.2f}" for c in comparisons]),
            _column("found with 0.8", 5, ["–" if (d := c.power.detectable) is None else plain(d) for c in comparisons]),
            _column("verdict", 0, [c.verdict.replace("_", " ") for c in comparisons], right=False),
        ],
    )
    out.print()


def _draw_words(out: Console, sentences: Sequence[str]) -> None:
    from rich.text import Text

    for sentence in sentences:
        out.print(Text(sentence))


def _dim(out: Console, text: str) -> None:
    from rich.text import Text

    out.print(Text(text, "dim"))


def _interval(interval: Any) -> str:
    from perflab.statistics.verdicts import plain

    return "–" if interval is None else f"[{plain(interval.low)}, {plain(interval.high)}]"
