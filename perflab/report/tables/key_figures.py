"""The key figures that graphs declare, as tables: for one result beside each other, for several one table each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perflab.columns import AnyTable, Cell, Column, Read, Table
from perflab.quantity import PLAIN
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.figure import JitterFigure, KeyFigureResult, LostFigure, OwnFigure, OwnTimes, PathFigure
from perflab.results.trial import Result
from perflab.statistics.key_figures import JITTER, PATH, SHOWN, TIMES
from perflab.statistics.metrics import COUNT, LOWER, PERCENT, Reading, find, named, of_distribution
from perflab.units import format_count, format_time

MAX_TABLES = 4  # of a terminal
IN_SHORT = {PATH: ("p50", "p99", "max"), JITTER: ("p50", "p99", "max"), TIMES: ("p50", "p99", "max")}
_RANKS = {"mean": 4, "p50": 2, "p99": 3, "max": 1, "missed": 1, "": 1, "share": 2}


def of_result(result: Result) -> Table[Of[KeyFigureResult]]:
    """All key figures of one result, with one row for each: over all messages of all trials."""
    statistics = dict.fromkeys(s for kind in (PATH, JITTER) for s in SHOWN[kind] if s != "missed")
    return Table(
        "key_figures",
        "Key figures",
        [
            Column("key_figure", "key figure", lambda row: row.result, rank=0),
            Column("path", "", lambda row: explained([row.record]), rank=5, called="path"),
            *(_statistic(statistic) for statistic in statistics),
            Column("came", "", _came, rank=1, called="what came"),
        ],
        [Of(entry, name) for name, entry in result.key_figures.items()],
    )


def _statistic(statistic: str) -> Column[Of[KeyFigureResult]]:
    metric = find(f"figure.{statistic}")
    assert metric is not None

    def read(row: Of[KeyFigureResult]) -> Read:
        return _together(row.record, statistic) if statistic in SHOWN[row.record.kind] else Cell("")

    return Column(statistic, statistic, read, metric.quantity, rank=_RANKS[statistic])


def _came(row: Of[KeyFigureResult]) -> Cell:
    """How much of what should have arrived did not."""
    match row.record:
        case LostFigure(lost=missing, sent=of):
            words = "lost"
        case PathFigure(missed=missing, possible=of):
            words = "missed"
        case OwnFigure(value=value):
            return Cell(named(row.result).format(value), value)
        case JitterFigure() | OwnTimes():
            return Cell("")
    return Cell(f"{format_count(missing)} of {format_count(of)} {words}", missing, "bad" if missing else "")


def tables(rows: Sequence[Of[Result]]) -> list[Table[Of[Result]]]:
    """One for each key figure, with one row per result; none if no graph declares one."""
    return [_table(name, rows) for name in dict.fromkeys(name for row in rows for name in row.record.key_figures)]


def are_many(rows: Sequence[Of[Result]]) -> bool:
    return len({name for row in rows for name in row.record.key_figures}) > MAX_TABLES


def in_short(rows: Sequence[Of[Result]], others: str = "in the report, and in `--json`") -> list[AnyTable]:
    """Few figures as separate tables; many as one table, with those that a kind of workload highlights. `others`: where
    the rest is."""
    names = list(dict.fromkeys(name for row in rows for name in row.record.key_figures))
    if not are_many(rows):
        return [*tables(rows)]
    having = [row for row in rows if row.record.key_figures]
    columns: list[Column[Of[Result]]] = [result_column(0), RUN]
    left = []
    for place, name in enumerate(names):
        entry = next(row.record.key_figures[name] for row in rows if name in row.record.key_figures)
        if isinstance(entry, OwnTimes) and not entry.drawn:
            left.append(name)
            continue
        for statistic in IN_SHORT.get(entry.kind, SHOWN[entry.kind][:1]):
            own = isinstance(entry, OwnFigure)
            metric = named(f"{name}.{statistic}" if statistic else name)
            rank = (20 + place) if own else {"p99": 0, "max": 1}.get(statistic, 2)
            group = "" if own else name.replace("_", " ")
            header = name.replace("_", " ") if own else statistic.replace("_", ".")
            read = _reader(name, statistic)
            columns.append(Column(metric.name, header, read, metric.quantity, rank=rank, group=group))
    notes = ["All messages of all trials together; for plain numbers, medians over trials."]
    if left:
        notes.append(f"{', '.join(left)} are {others}.")
    return [Table("key_figures", "Key figures", columns, having, notes)]


def _reader(name: str, statistic: str) -> Callable[[Of[Result]], float | None]:
    def read(row: Of[Result]) -> float | None:
        entry = row.record.key_figures.get(name)
        return None if entry is None else _together(entry, statistic)

    return read


def _table(name: str, rows: Sequence[Of[Result]]) -> Table[Of[Result]]:
    """From one value per trial if there are any; a statistic for which the trials have too few messages is unknown."""
    having = [row for row in rows if name in row.record.key_figures]
    entries = [row.record.key_figures[name] for row in having]
    over_trials = any(entry.metrics for entry in entries)
    note = (
        "Medians over trials, one value per trial, with their intervals."
        if over_trials
        else "All messages of all trials together."
    )
    return Table(
        "key_figure",
        f"Key figure {name}: {explained(entries)}",
        [
            result_column(0),
            RUN,
            Column("trials", "trials", lambda row: row.record.coverage.trials_merged, PLAIN, rank=3),
            *(_of_results(name, statistic, entries[0].kind, over_trials) for statistic in SHOWN[entries[0].kind]),
        ],
        having,
        [note],
    )


def _of_results(name: str, statistic: str, kind: str, over_trials: bool) -> Column[Of[Result]]:
    metric = find(f"{name}.{statistic}" if statistic else name)
    assert metric is not None
    column = statistic or kind

    def read(row: Of[Result]) -> Read:
        entry = row.record.key_figures[name]
        return entry.metrics.get(metric.name) if over_trials else _together(entry, statistic)

    return Column(
        column,
        column.replace("_", "."),
        read,
        metric.quantity,
        rank=_RANKS[statistic],
        tone="bad" if metric.unit in (COUNT, PERCENT) and metric.better == LOWER else "",
        beside=True,
    )


def _together(entry: KeyFigureResult, statistic: str) -> float | None:
    """Over all messages of all trials; a percentile with too few messages is unknown."""
    match entry:
        case OwnFigure():
            return entry.value
        case LostFigure():
            return entry.share_percent if statistic else entry.lost
        case PathFigure() if statistic == "missed":
            return entry.missed
    return Reading.of(of_distribution(entry.times_ns, statistic)).value


def explained(entries: Sequence[KeyFigureResult]) -> str:
    """The definition of a key figure; for a jitter with the period, if it is the same in all results."""
    words = str(entries[0].words)
    periods = {period for entry in entries if isinstance(entry, JitterFigure) for period in entry.periods_ns}
    return f"{words}, period {format_time(periods.pop())}" if len(periods) == 1 else words
