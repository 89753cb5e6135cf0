"""The trials' outcomes, if the kind of workload has its own: counts and shares, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from perflab.columns import Cell, Column, Table, Tone
from perflab.quantity import PLAIN
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.outcome import FAILED, OwnOutcome
from perflab.results.trial import Result
from perflab.statistics.proportion import wilson

LEVEL = 0.95
TITLE = "Outcomes"


def tables(rows: Sequence[Of[Result]]) -> list[Table[Of[Result]]]:
    """One, with a column for each outcome that occurred in any result; none if there are no such outcomes."""
    ordered = there_are([row.record for row in rows])
    if not ordered:
        return []
    columns: list[Column[Of[Result]]] = [result_column(0), RUN]
    columns += [Column(own.name, own.words, _share(own), PLAIN, rank=0) for own in ordered]
    note = f"Shares of the judged trials, with Wilson's intervals of {100 * LEVEL:g} %."
    return [Table("outcomes", TITLE, columns, list(rows), [note])]


def there_are(results: Iterable[Result]) -> list[OwnOutcome]:
    """Those that occurred in any result, failures last."""
    found = {own.name: OwnOutcome(name=own.name, words=own.words, of=own.of) for r in results for own in r.outcomes.own}
    return sorted(found.values(), key=lambda own: own.of == FAILED)


def counted(result: Result, own: OwnOutcome) -> int:
    return sum(one.trials for one in result.outcomes.own if one.name == own.name)


def _share(own: OwnOutcome) -> Callable[[Of[Result]], Cell]:
    """ "2/9 [6, 55] %"."""

    def read(row: Of[Result]) -> Cell:
        outcomes = row.record.outcomes
        k = counted(row.record, own)
        interval = wilson(k, outcomes.judged, LEVEL)
        between = "" if interval is None else f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}] %"
        tone: Tone = "bad" if k and own.of == FAILED else ""
        return Cell(f"{k}/{outcomes.judged}{between}", k / outcomes.judged if outcomes.judged else None, tone)

    return read
