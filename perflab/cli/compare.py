"""`perflab compare`: the figures of several results side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import models
from perflab.cli.show import complete_metric, complete_run
from perflab.errors import BadInput, damage_of
from perflab.results.comparison import BETTER, WORSE, Findings, RunFinding
from perflab.results.trial import Distribution, Result, counted, least_lost, owners, received
from perflab.units import format_bytes, format_count, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.report.table import Column
    from perflab.results.run import RunData
    from perflab.statistics.metrics import Metric

Json = dict[str, Any]

MAX_HEADER = 28  # of a column; longer labels stand above the table

SESSIONS = (
    "several runs are several sessions: a drift of the machine between them cannot be told from an effect; "
    "one run of all variants can tell"
)
NO_INTERVALS = "figures side by side, without intervals: whether a difference is more than chance, they do not say"


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Run directories, names in runs/, or output of irobot_benchmark; also one run with several results.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What is tested, e.g. latency.p99; may be repeated. Default: a few that matter.",
            autocompletion=complete_metric,
        ),
    ] = None,
    margin: Annotated[str, typer.Option(metavar="PERCENT", help="A difference below this is called none.")] = "5%",
    alpha: Annotated[float, typer.Option(help="Rate of false claims over all comparisons of two runs.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> int:
    """Show the figures of several runs, or of the results of one, side by side; ratios are to the first.

    Where there are several trials, also whether the differences are more than chance, by one value per trial.
    """
    from perflab.runs.rundata import open_run
    from perflab.statistics.key_figures import kinds_in
    from perflab.statistics.metrics import chosen
    from perflab.statistics.verdicts import no_success

    share, alpha = parse_margin(margin), check_alpha(alpha)
    data = [_without_extras(open_run(run, with_tables=False)) for run in runs]
    with damage_of(*(run.path for run in data)):
        wanted = chosen(metric, figures=kinds_in(*(run.summary for run in data)))
        _check_distinct(data)
        columns = _columns(data)
        if len(columns) < 2:
            raise BadInput("there is one result and nothing to compare it with; name another run")
        per_trial = _per_trial(columns)
        notes = [f"{run.name}: {note}" for run in data for note in run.notes]
        results = [result for run in data for result in run.summary.results]
        for column, result in zip(columns, results, strict=True):
            if (failed := no_success(result)) is not None:
                notes.append(f"{column['label']}: {failed}")
        if not any(value is not None for column in columns for value in column["figures"].values()):
            raise BadInput(f"nothing was recorded in {' nor in '.join(str(run.path) for run in data)}")
        statistics = _statistics(data, wanted, share, alpha)
        sessions = len(data) > 1 and not all(_is_virtual(run) for run in data)
        if as_json:
            said = [*([] if statistics.tested else [NO_INTERVALS]), *([SESSIONS] if sessions else []), *notes]
            document = {
                "notes": said,
                "reference": columns[0]["label"],
                "counts": "mean of a trial" if per_trial else "all trials",
                "columns": columns,
                "statistics": models.as_json(statistics),
            }
            sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        else:
            _print(columns, notes, statistics, share, per_trial=per_trial, sessions=sessions)
    return 0


def _without_extras(run: RunData) -> RunData:
    """Without the results of extra trials, which are slower and enter no statistics."""
    kept = tuple(result for result in run.summary.results if not result.is_extra)
    return replace(run, summary=replace(run.summary, results=kept))


def _check_distinct(data: Sequence[RunData]) -> None:
    """Raises BadInput where a run is named twice."""
    paths = [run.path.resolve() for run in data]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise BadInput(f"{data[number].name} is named twice, and is compared with itself; name another run")


def parse_margin(text: str, option: str = "--margin") -> float:
    """The share of "5%" or "5". Raises BadInput."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = float("nan")
    if not 0 < percent <= 100:
        raise BadInput(f"{option} {text!r} is not a percentage within 0 and 100; write it like 5%")
    return percent / 100


def check_alpha(alpha: float) -> float:
    """Raises BadInput."""
    if not 0 < alpha < 0.5:
        raise BadInput(f"--alpha {alpha:g} is not a rate between 0 and 0.5; 0.05 is usual")
    return alpha


def is_paired(first: RunData, second: RunData) -> bool:
    """Whether the blocks of two runs belong together: only what simulates the same disturbances, from one seed."""
    runs = (first, second)
    seeds = [(run.manifest.get("settings") or {}).get("seed") for run in runs]
    return all(map(_is_virtual, runs)) and seeds[0] is not None and seeds[0] == seeds[1]


def _is_virtual(run: RunData) -> bool:
    """Whether nothing of it is of a machine that could drift."""
    return all(r.middleware == "virtual" for r in run.summary.results)


@dataclass(frozen=True)
class _Statistics:
    """The results of one run with each other (`findings`), or each later run with the first (`comparisons`)."""

    tested: bool  # whether there were enough trials to test anything
    comparisons: tuple[RunFinding, ...]
    remarks: tuple[str, ...]  # what cannot be read off
    findings: Findings | None


def _statistics(data: Sequence[RunData], metrics: Sequence[Metric], margin: float, alpha: float) -> _Statistics:
    if len(data) == 1:
        return _within(data[0], metrics, margin, alpha)
    from perflab.statistics.metric_comparison import effect_of
    from perflab.statistics.runs import compare_runs
    from perflab.statistics.selection import match, names_of
    from perflab.statistics.verdicts import in_words

    remarks: list[str] = []
    comparisons: list[RunFinding] = []
    for run in data[1:]:
        matches = match(data[0].summary.results, run.summary.results)
        if not matches.pairs:
            remarks.append(f"{run.name} has no result of what {data[0].name} measured: nothing to test")
            continue
        names = names_of([m.first for m in matches.pairs])
        for name, pair in zip(names, matches.pairs, strict=True):
            if pair.differing:
                remarks.append(f"{data[0].name} and {run.name} differ in {'; '.join(pair.differing)}")
            if pair.first.duration_s != pair.second.duration_s:
                differ = f"a trial lasts {_seconds(pair.second)}, there {_seconds(pair.first)}"
                remarks.append(f"{name}: {run.name} cannot be tested against {data[0].name}: {differ}")
        pairs = [m for m in matches.pairs if m.first.duration_s == m.second.duration_s]
        if not pairs:
            continue
        most = max(min(len(m.first.entering), len(m.second.entering)) for m in pairs)
        if most <= 1:
            remarks.append(f"{data[0].name} and {run.name}: {_one_trial()}")
            continue
        found = compare_runs(
            pairs, metrics, (data[0].name, run.name), alpha=alpha, margin=margin, paired=is_paired(data[0], run)
        )
        by_result = {id(m): name for name, m in zip(names, matches.pairs, strict=True)}
        for one in found:
            label = by_result[id(one.match)] if len(matches.pairs) > 1 else ""
            words = in_words(one.comparison, one.metric.format)
            comparisons.append(
                RunFinding(
                    **{**vars(one.comparison.alone()), "metric": one.metric.name},
                    result=by_result[id(one.match)],
                    baseline_run=data[0].name,
                    run=run.name,
                    effect=effect_of(one.metric, one.comparison),
                    words=f"{label}: {words}" if label else words,
                )
            )
    return _Statistics(bool(comparisons), tuple(comparisons), tuple(remarks), None)


def _seconds(result: Result) -> str:
    duration_s = result.duration_s
    return "a time that is not recorded" if duration_s is None else f"{duration_s:g} s"


def _within(run: RunData, metrics: Sequence[Metric], margin: float, alpha: float) -> _Statistics:
    from perflab.statistics import findings

    found = findings.find(run.summary.results, alpha=alpha, margin=margin, metrics=metrics)
    return _Statistics(bool(found.comparisons), (), tuple(r.words for r in found.remarks), found)


def _one_trial() -> str:
    from perflab.statistics.remarks import ONE_TRIAL

    return ONE_TRIAL


def _columns(data: Sequence[RunData]) -> list[Json]:
    from perflab.report.label import labels

    pairs = [(run, result) for run in data for result in run.summary.results]
    names = labels([result for _, result in pairs], [run.name for run, _ in pairs])
    figures = [_figures(run, result) for run, result in pairs]
    return [
        {
            "label": name,
            "run": run.name,
            "origin": run.origin,
            **{key: models.as_json(getattr(result, key)) for key in _ABOUT},
            "trials_merged": result.coverage.trials_merged,
            "complete": result.coverage.complete,
            "figures": own,
            "ratios": {key: _ratio(value, figures[0][key]) for key, value in own.items()},
        }
        for name, (run, result), own in zip(names, pairs, figures, strict=True)
    ]


_ABOUT = ("workload", "middleware", "executor", "ipc", "pass_by", "conditions", "phase", "duration_s")


def _figures(data: RunData, result: Result) -> dict[str, float | None]:
    from perflab.statistics.target import machine_cpus

    resources = result.resources
    figures: dict[str, float | None] = {}
    for name, times in (("latency", result.totals.latency_ns), ("response", result.totals.response_ns)):
        for key in ("mean", "p50", "p99", "max"):
            figures[f"{name}_{key}_ns"] = getattr(times or Distribution(), key)
    for key in ("p99", "max"):
        # Of the slowest service: percentiles of several cannot be merged.
        slowest = [getattr(s.round_trip_ns, key) for s in result.services if s.round_trip_ns is not None]
        figures[f"round_trip_{key}_ns"] = max((ns for ns in slowest if ns is not None), default=None)
    figures |= {
        "delivered": received(result),
        "late": counted(result, lambda owner: owner.late),
        "too_late": counted(result, lambda owner: owner.too_late),
        "lost": least_lost(*owners(result)),
        "cpu_percent": resources.cpu_percent_mean,
        "cpu_percent_of_machine": resources.cpu_percent_of_machine,
        "rss_kb_max": resources.rss_kb_max,
    }
    cpus, one = machine_cpus(data.manifest), resources.cpu_percent_mean
    if resources.cpu_percent_of_machine is None and one is not None and cpus is not None:
        figures["cpu_percent_of_machine"] = one / cpus
    return figures


def _per_trial(columns: Sequence[Json]) -> bool:
    """Whether the results have different numbers of trials; then counts become means of a trial, and maxima, which
    grow with the number, get no ratio."""
    if len({column["trials_merged"] for column in columns}) == 1:
        return False
    for column in columns:
        for key in _COUNTS:
            count, trials = column["figures"][key], column["trials_merged"]
            column["figures"][key] = None if count is None or not trials else count / trials
    for column in columns:
        reference = columns[0]["figures"]
        column["ratios"] |= {key: _ratio(column["figures"][key], reference[key]) for key in _COUNTS}
        column["ratios"] |= dict.fromkeys(_MAXIMA)
    return True


def _ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g} %"


def _whole(value: float | None) -> str:
    return format_count(None if value is None else int(value))


def _mean_count(value: float | None) -> str:
    return "–" if value is None else format_count(round(value)) if value >= 100 else f"{value:.3g}"


_COUNTS = ("delivered", "late", "too_late", "lost")
_MAXIMA = ("latency_max_ns", "response_max_ns", "round_trip_max_ns", "rss_kb_max")

_ROWS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("latency_mean_ns", "latency mean", format_time),
    ("latency_p50_ns", "latency p50", format_time),
    ("latency_p99_ns", "latency p99", format_time),
    ("latency_max_ns", "latency max", format_time),
    ("response_mean_ns", "response mean", format_time),
    ("response_p50_ns", "response p50", format_time),
    ("response_p99_ns", "response p99", format_time),
    ("response_max_ns", "response max", format_time),
    ("round_trip_p99_ns", "round trip p99", format_time),
    ("round_trip_max_ns", "round trip max", format_time),
    ("delivered", "delivered", _whole),
    ("late", "late", _whole),
    ("too_late", "too late", _whole),
    ("lost", "lost", _whole),
    ("cpu_percent", "CPU, of one", _percent),
    ("cpu_percent_of_machine", "CPU, of all", _percent),
    ("rss_kb_max", "RSS, largest", lambda kb: format_bytes(None if kb is None else kb * 1024)),
)


def _print(
    columns: Sequence[Json],
    notes: Sequence[str],
    statistics: _Statistics,
    margin: float,
    *,
    per_trial: bool,
    sessions: bool,
) -> None:
    from rich.text import Text

    from perflab.report import terminal
    from perflab.report.table import print_table

    out = terminal.console()
    for note in notes:
        out.print(Text(f"Note: {note}", "yellow"))
    if notes:
        out.print()
    headers = [str(column["label"]) for column in columns]
    if max(map(len, headers)) > MAX_HEADER:
        numbers = [f"({n})" for n in range(1, len(columns) + 1)]
        for number, label in zip(numbers, headers, strict=True):
            out.print(Text(f"{number} {label}"))
        out.print()
        headers = numbers
    first, *rest = zip(headers, columns, strict=True)
    while rest:
        # As many beside the first as fit; a narrow terminal gets several tables.
        count = len(rest)
        while count > 1 and _width(_table([first, *rest[:count]], per_trial=per_trial)) > out.width:
            count -= 1
        print_table(out, _table([first, *rest[:count]], per_trial=per_trial))
        out.print()
        rest = rest[count:]
    if per_trial:
        out.print(Text("The numbers of trials differ: counts are means of a trial, maxima are of all trials.", "dim"))
    for words in _alike(columns):
        out.print(Text(words, "dim"))
    if not statistics.tested:
        out.print(Text(f"{NO_INTERVALS[0].upper()}{NO_INTERVALS[1:]}.", "dim"))
    if sessions:
        out.print(Text(f"{SESSIONS[0].upper()}{SESSIONS[1:]}.", "dim"))
    _print_statistics(out, statistics, margin)


def _grouped(comparisons: Sequence[RunFinding], margin: float) -> list[str]:
    """One sentence for each way in which no difference was shown; `words` of JSON say more of each."""
    from perflab.statistics.metrics import named
    from perflab.statistics.remarks import no_difference_of, no_difference_words

    sentences = []
    for verdict, words in no_difference_words(margin).items():
        mine: dict[str, list[str]] = {}
        for c in (c for c in comparisons if no_difference_of(c) == verdict):
            mine.setdefault(f"{c.run} against {c.baseline_run}, {c.result}", []).append(named(c.metric).words)
        listed = [f"{name}: {', '.join(metrics)}" for name, metrics in mine.items()]
        if listed:
            sentences.append(f"{words}: {'; '.join(listed)}")
    return sentences


def _print_statistics(out: Console, statistics: _Statistics, margin: float) -> None:
    """What was shown to differ first; of what was not, why."""
    from rich.text import Text

    from perflab.report.findings import sentences

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
    for style, words in said:
        out.print(Text(f"- {words.removesuffix('.')}", style))


def _table(shown: Sequence[tuple[str, Json]], *, per_trial: bool) -> list[Column]:
    """The figures of some results under their headers; the first is what the others are divided by."""
    from rich.text import Text

    from perflab.report.table import Column

    rows = [row for row in _ROWS if any(column["figures"][row[0]] is not None for _, column in shown)]
    if per_trial:
        rows = [
            (key, f"{name} per trial", _mean_count) if key in _COUNTS else (key, name, form) for key, name, form in rows
        ]
    table = [Column("", 0, [Text("trials"), *(Text(name) for _, name, _ in rows)], right=False)]
    for number, (header, column) in enumerate(shown):
        cells = [Text(form(column["figures"][key])) for key, _, form in rows]
        table.append(Column(header, 0, [Text(str(column["trials_merged"])), *cells]))
        if number:
            ratios = [None, *(column["ratios"][key] for key, _, _ in rows)]
            table.append(Column("ratio", 1, [Text("–" if r is None else f"{r:.2f}") for r in ratios]))
    return table


def _width(table: Sequence[Column]) -> int:
    from perflab.report.table import COLUMN_GAP

    return sum(column.width for column in table) + COLUMN_GAP * (len(table) - 1)


def _alike(columns: Sequence[Json]) -> list[str]:
    """What keeps the figures from being about the same thing."""
    words = []
    durations = {column["duration_s"] for column in columns}
    if len(durations) > 1:
        words.append("The durations differ, and so do the counts.")
    if len({column["workload"] for column in columns}) > 1:
        words.append("The workloads differ.")
    if not all(column["complete"] for column in columns):
        words.append("Not every process of every run wrote its last record: losses at the end are not all known.")
    return words
