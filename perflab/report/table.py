"""Tables that fit a terminal: they never wrap; the columns that matter least are left out first, and named below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from perflab import columns as model
from perflab.columns import DEEPER, AnyTable, Cell, Tone
from perflab.output import visible_line, visible_text

MIN_NAME_WIDTH = 18
COLUMN_GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a table. The higher its rank, the earlier it is left out, together with all others of that rank.

    Rank 0 stays, and is cut where it must be.
    """

    header: str
    rank: int
    cells: Sequence[Text]
    right: bool = True
    group: str = ""  # written above the first column of the group that is shown
    called: str = ""  # where it is named as left out; default group and header

    @property
    def width(self) -> int:
        """Without the name of its group."""
        return max(cell_len(line) for line in (self.header, *(cell.plain for cell in self.cells)))

    @property
    def name(self) -> str:
        """ "latency p99"."""
        return self.called or " ".join(filter(None, (self.group, self.header)))


def print_table(out: Console, columns: Sequence[Column]) -> None:
    """A table that fits: columns of high rank are left out first, then the first column of rank 0 is cut."""
    columns = [_visible(column) for column in columns]
    shown = columns
    while sum(_widths(shown)) + _gaps(shown) > out.width and any(c.rank for c in shown):
        lowest = max(c.rank for c in shown)
        shown = [c for c in shown if c.rank != lowest]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, COLUMN_GAP - 1, 0, 0), header_style="bold"
    )
    widths = _widths(shown)
    spare = out.width - sum(widths) - _gaps(shown)
    groups = {""}
    two_lines = any(column.group for column in shown)
    for column, full in zip(shown, widths, strict=True):
        width = full
        if spare < 0 and column.rank == 0:
            cut = min(-spare, max(0, full - MIN_NAME_WIDTH))
            width, spare = full - cut, spare + cut
        above = "" if column.group in groups else column.group
        groups.add(column.group)
        table.add_column(
            Group(above, column.header) if two_lines else column.header,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*row)
    out.print(table)
    if missing := ", ".join(column.name for column in columns if column not in shown):
        out.print(Text(f"Left out at {out.width} columns: {missing}", "dim"))


STYLES: dict[Tone, str] = {"": "", "bad": "red", "warn": "yellow", "good": "green", "faint": "dim"}


def print_rows(out: Console, table: AnyTable) -> None:
    """A table that was declared once, in a terminal."""
    columns = [
        Column(
            column.header,
            column.rank,
            _texts(column, cells),
            right=column.quantity.numeric,
            group=column.group,
            called=column.called,
        )
        for column, cells in table.filled()
        if column.rank is not None
    ]
    print_table(out, columns)


def print_declared(out: Console, table: AnyTable) -> None:
    """With its title and notes."""
    out.print(Text(table.title, "bold"))
    print_rows(out, table)
    for note in table.notes:
        out.print(Text(note, "dim"))
    out.print()


def _texts(column: model.Column[Any], cells: Sequence[Cell]) -> list[Text]:
    texts = []
    for place, cell in enumerate(cells):
        if column.once and place and cells[place - 1] == cell:
            texts.append(Text(""))
            continue
        words = column.whole(cell) if column.beside else cell.text
        texts.append(Text(DEEPER * cell.depth + words, STYLES[cell.tone]))
    return texts


def _visible(column: Column) -> Column:
    """With the widths that its cells will have in print."""
    return replace(
        column,
        header=visible_line(column.header),
        group=visible_line(column.group),
        cells=[visible_text(cell) for cell in column.cells],
    )


def _widths(columns: Sequence[Column]) -> list[int]:
    """Of the columns when these are shown: the first of each group has room for the group's name."""
    seen = {""}
    widths = []
    for column in columns:
        widths.append(column.width if column.group in seen else max(column.width, cell_len(column.group)))
        seen.add(column.group)
    return widths


def _gaps(columns: Sequence[Column]) -> int:
    return COLUMN_GAP * (len(columns) - 1)
