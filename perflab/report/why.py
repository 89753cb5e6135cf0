"""Why messages were late, for a terminal: of every trial that was traced one sentence, and what passed the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perflab.columns import Column, Table
from perflab.quantity import COUNT, PERCENT
from perflab.report.label import labels
from perflab.report.table import print_rows
from perflab.results.trial import Result, Why
from perflab.trace.causes import CAUSES

LEAST_SHARE = 0.5  # per cent of all lateness; a cause that is less everywhere has no column
MOST_COLUMNS = 7


def print_why(out: Console, results: Sequence[Result]) -> None:
    """Nothing where no trial was traced."""
    traced = [result for result in results if any(trial.why for trial in result.trials_detail)]
    found: list[tuple[str, Why]] = []
    for label, result in zip(_labels(traced), traced, strict=True):
        told = [(trial.trial, trial.why) for trial in result.trials_detail if trial.why]
        found += [(f"{label}, trial {number}" if len(told) > 1 else label, why) for number, why in told]
    if not found:
        return
    out.print("Why messages were late", style="bold")
    for label, why in found:
        out.print(
            Padding(Text.assemble((label, "bold"), ": ", f"{why.sentence[:1].lower()}{why.sentence[1:]}"), (0, 0, 0, 2))
        )
    out.print()
    if late := [(label, why) for label, why in found if why.late]:
        table = _table(late)
        print_rows(out, table)
        out.print(table.notes[0], style="dim")
        out.print()


def _labels(traced: Sequence[Result]) -> list[str]:
    """What the traced ones differ in among themselves; that they were traced is in the title."""
    if len(traced) == 1:
        return [traced[0].label]
    return labels([replace(result, purpose=None) for result in traced])


def _table(found: Sequence[tuple[str, Why]]) -> Table[tuple[str, Why]]:
    """The causes that matter most, in the order in which all are listed."""
    largest: dict[str, float] = dict.fromkeys(CAUSES, 0.0)
    for _, why in found:
        for cause in CAUSES:
            largest[cause] = max(largest[cause], _share(why, cause) or 0.0)
    most = sorted(largest, key=lambda cause: -largest[cause])[:MOST_COLUMNS]
    shown = [cause for cause in CAUSES if cause in most and largest[cause] >= LEAST_SHARE]
    return Table(
        "why",
        "Why messages were late",
        [
            Column("trial", "traced trial", lambda row: row[0], rank=0),
            Column("late", "late", lambda row: row[1].late, COUNT, rank=0),
            Column("messages", "of", lambda row: row[1].messages, COUNT, rank=1),
            *(_of_cause(cause, rank) for rank, cause in enumerate(shown, start=2)),
        ],
        found,
        ["shares of the time that the late messages took; `perflab trace why` tells more"],
    )


def _of_cause(cause: str, rank: int) -> Column[tuple[str, Why]]:
    return Column(cause, CAUSES[cause].short, lambda row: _share(row[1], cause), PERCENT, rank=rank)


def _share(why: Why, cause: str) -> float | None:
    return next((row["total_percent"] for row in why.causes if row["cause"] == cause), None)
