"""The key figures that a graph declares, in a terminal: of one result beside each other, of several one table each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from perflab.report.label import labels
from perflab.report.table import Column, print_table
from perflab.results.trial import JitterFigure, KeyFigureResult, LostFigure, Median, PathFigure, Result
from perflab.statistics.key_figures import JITTER, PATH, SHOWN
from perflab.statistics.metrics import COUNT, PERCENT, Metric, find
from perflab.units import format_count, format_time

_RANKS = {"mean": 4, "p50": 2, "p99": 3, "max": 1, "missed": 1, "": 1, "share": 2}


@dataclass(frozen=True)
class Shown:
    """One metric of a key figure in one result: the median over its trials, or what all messages say together."""

    metric: Metric
    value: float | None
    low: float | None = None
    high: float | None = None
    over_trials: bool = False

    @property
    def text(self) -> str:
        return self.metric.format(self.value)

    @property
    def interval(self) -> str:
        """ "[9.9 ms, 10.1 ms]", or "" where there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"[{self.metric.format(self.low)}, {self.metric.format(self.high)}]"

    @property
    def bad(self) -> bool:
        return self.metric.unit in (COUNT, PERCENT) and bool(self.value)


def names_in(results: Sequence[Result]) -> list[str]:
    """The key figures of some results, in the order in which they were declared."""
    return list(dict.fromkeys(name for result in results for name in result.key_figures))


def entry_of(results: Sequence[Result], name: str) -> KeyFigureResult:
    """What a key figure is, from the first result that has it."""
    return next(r.key_figures[name] for r in results if name in r.key_figures)


def shown(name: str, entry: KeyFigureResult, *, over_trials: bool) -> list[Shown]:
    """What tables show of a key figure in a result, in their order.

    With `over_trials` one value per trial decides; a statistic for which the trials have too few messages is None.
    """
    found = []
    for statistic in SHOWN[entry.kind]:
        metric = find(f"{name}.{statistic}" if statistic else name)
        assert metric is not None
        if over_trials:
            known = entry.metrics.get(metric.name) or Median(value=None, low=None, high=None, n=0)
            found.append(Shown(metric, known.value, known.low, known.high, over_trials=True))
        else:
            found.append(Shown(metric, _together(entry, statistic)))
    return found


def _together(entry: KeyFigureResult, statistic: str) -> float | None:
    """Over all messages of all trials."""
    value: float | None
    match entry:
        case LostFigure():
            value = entry.share_percent if statistic else entry.lost
        case PathFigure() if statistic == "missed":
            value = entry.missed
        case PathFigure(response_ns=times) | JitterFigure(jitter_ns=times):
            value = None if times is None else getattr(times, statistic)
    return None if value is None else float(value)


def explained(entries: Sequence[KeyFigureResult]) -> str:
    """What a key figure is; of a jitter with the period, where it has the same one in all results."""
    words = str(entries[0].words)
    periods = {period for entry in entries if isinstance(entry, JitterFigure) for period in entry.periods_ns}
    return f"{words}, period {format_time(periods.pop())}" if len(periods) == 1 else words


def print_of_result(out: Console, result: Result) -> None:
    """All key figures of one result, with one row for each."""
    names = names_in([result])
    if not names:
        return
    entries = {name: result.key_figures[name] for name in names}
    values = {name: {s.metric.name.partition(".")[2]: s for s in shown(name, e, over_trials=False)}
              for name, e in entries.items()}  # fmt: skip
    columns = [
        Column("key figure", 0, [Text(name, "bold") for name in names], right=False),
        Column("", 5, [Text(explained([entries[name]])) for name in names], right=False, called="path"),
    ]
    statistics = dict.fromkeys(s for kind in (PATH, JITTER) for s in SHOWN[kind] if s != "missed")
    for statistic in statistics:
        cells = [Text(s.text if (s := values[name].get(statistic)) is not None else "") for name in names]
        columns.append(Column(statistic, _RANKS[statistic], cells))
    columns.append(Column("", 1, [_came(entries[name]) for name in names], right=False, called="what came"))
    print_table(out, [c for c in columns if any(cell.plain for cell in c.cells)])
    out.print()


def _came(entry: KeyFigureResult) -> Text:
    """How much of what should have come did not."""
    match entry:
        case LostFigure():
            missing, of, words = entry.lost, entry.sent, "lost"
        case PathFigure():
            missing, of, words = entry.missed, entry.possible, "missed"
        case JitterFigure():
            return Text("")
    return Text(f"{format_count(missing)} of {format_count(of)} {words}", "red" if missing else "")


def print_compared(out: Console, results: Sequence[Result]) -> None:
    """One table for each key figure, with one row per result."""
    for name in names_in(results):
        having = [result for result in results if name in result.key_figures]
        over_trials = any(result.key_figures[name].metrics for result in having)
        rows = [shown(name, result.key_figures[name], over_trials=over_trials) for result in having]
        first = having[0].key_figures[name]
        how = "; medians over trials [interval]" if over_trials else ""
        out.print(
            Text.assemble((f"{name}: ", "bold"), f"{explained([result.key_figures[name] for result in having])}{how}")
        )
        columns = [
            Column("", 0, [Text(label) for label in labels(having)], right=False),
            Column("trials", 3, [Text(str(result.coverage.trials_merged)) for result in having]),
        ]
        for index, statistic in enumerate(SHOWN[first.kind]):
            if all(row[index].value is None for row in rows):  # too few messages in each trial
                continue
            cells = [_cell(row[index]) for row in rows]
            header = (statistic or "lost").replace("_", ".")
            columns.append(Column(header, _RANKS[statistic], cells))
        print_table(out, columns)
        out.print()


def _cell(one: Shown) -> Text:
    return Text(f"{one.text} {one.interval}".strip(), "red" if one.bad else "")
