"""The table of outcomes that only a kind of workload can have: how many of how many, with intervals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from perflab.report.tables.messages import Of
from perflab.report.tables.outcomes import tables
from perflab.results.outcome import FAILED, SUCCESS, Outcomes, OwnOutcome
from perflab.results.trial import Result

STALLED = OwnOutcome(name="stalled", words="stalled")
UNAFFECTED = OwnOutcome(name="unaffected", words="unaffected", of=SUCCESS)


def row(name: str, *own: OwnOutcome | None) -> Of[Result]:
    outcomes = Outcomes.of([SUCCESS if one is None else one.of for one in own], own)
    return Of(cast(Result, SimpleNamespace(outcomes=outcomes)), name)


def test_each_outcome_has_a_column_with_how_many_of_how_many() -> None:
    (table,) = tables([row("with", *[STALLED] * 9), row("without", *[UNAFFECTED] * 8, STALLED)])
    assert [column.name for column in table.columns] == ["result", "run", "unaffected", "stalled"]
    cells = [[column.cell(of) for column in table.columns[2:]] for of in table.rows]
    assert [[cell.text for cell in of] for of in cells] == [
        ["0/9 [0, 30] %", "9/9 [70, 100] %"],
        ["8/9 [57, 98] %", "1/9 [2, 43] %"],
    ]
    assert [[cell.tone for cell in of] for of in cells] == [["", "bad"], ["", "bad"]]
    assert STALLED.of == FAILED


def test_a_trial_without_an_outcome_of_its_own_counts_among_all() -> None:
    (table,) = tables([row("mixed", STALLED, None)])
    assert table.columns[-1].cell(table.rows[0]).value == 0.5


def test_there_is_no_table_where_there_are_no_such_outcomes() -> None:
    assert tables([row("plain", None, None)]) == []
