"""Tables that fit a terminal: they never wrap; the least important columns are left out first, and listed below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from perflab.columns import DEEPER, AnyTable, Cell, Column, Tone
from perflab.output import visible_line, visible_text
from perflab.quantity import SYMBOL

MIN_NAME_WIDTH = 18
LEAST_SYMBOL_WIDTH = 32
COLUMN_GAP = 2
ARROW = " → "

STYLES: dict[Tone, str] = {"": "", "bad": "red", "warn": "yellow", "good": "green", "faint": "dim", "strong": "bold"}

_OPERATOR = re.compile(r"operator(<=>|<<=|>>=|<<|>>|<=|>=|->|<|>)|->")


@dataclass(frozen=True)
class _Shown:
    """A column with the texts of its cells."""

    column: Column[Any]
    rank: int
    texts: Sequence[Text]

    @property
    def width(self) -> int:
        """Without the name of its group."""
        return max(cell_len(line) for line in (self.column.header, *(text.plain for text in self.texts)))


def print_declared(out: Console, table: AnyTable) -> None:
    """With its title and notes."""
    out.print(Text(table.title, "bold"))
    print_rows(out, table)
    for note in table.notes:
        out.print(Text(note, "dim"))
    out.print()


def print_rows(out: Console, table: AnyTable) -> None:
    """Columns of high rank are left out first, then the first column of rank 0 is shortened."""
    columns = _shown(table, out.width)
    shown = columns
    while sum(_widths(shown)) + _gaps(shown) > out.width and any(c.rank for c in shown):
        lowest = max(c.rank for c in shown)
        shown = [c for c in shown if c.rank != lowest]
    made = _table()
    widths = _widths(shown)
    spare = out.width - sum(widths) - _gaps(shown)
    groups = {""}
    two_lines = any(c.column.group for c in shown)
    for c, full in zip(shown, widths, strict=True):
        width = full
        if spare < 0 and c.rank == 0:
            cut = min(-spare, max(0, full - MIN_NAME_WIDTH))
            width, spare = full - cut, spare + cut
        above = "" if c.column.group in groups else c.column.group
        groups.add(c.column.group)
        made.add_column(
            Group(above, c.column.header) if two_lines else c.column.header,
            justify="right" if c.column.quantity.numeric else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in zip(*(c.texts for c in shown), strict=True):
        made.add_row(*row)
    out.print(made)
    if missing := ", ".join(c.column.title for c in columns if c not in shown):
        out.print(Text(f"Left out at {out.width} columns: {missing}", "dim"))


def print_lines(out: Console, table: AnyTable) -> None:
    """Each row as lines: name, and value."""
    columns = _shown(table, out.width)
    width = max(cell_len(c.column.title) for c in columns)
    for texts in zip(*(c.texts for c in columns), strict=True):
        for c, text in zip(columns, texts, strict=True):
            out.print(Text(f"{c.column.title:<{width}}  ") + text, no_wrap=True, overflow="ellipsis")


def print_folded(out: Console, table: AnyTable) -> None:
    """A table of two columns for each group, under its name; long values continue on the next line."""
    width = max(cell_len(column.cell(row).text) for column in table.columns[:1] for row in table.rows)
    for name, part in table.groups():
        made = _table()
        made.add_column(name, width=width, no_wrap=True)
        made.add_column("", overflow="fold")
        for cells in zip(*(cells for _, cells in part.filled()), strict=True):
            made.add_row(*(Text(cell.text, STYLES[cell.tone]) for cell in cells))
        out.print(made)
        out.print()


def _table() -> Table:
    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, COLUMN_GAP - 1, 0, 0), header_style="bold"
    )


def width_of(table: AnyTable) -> int:
    """Terminal width that shows all columns with a rank."""
    columns = _shown(table, LEAST_SYMBOL_WIDTH)
    return sum(_widths(columns)) + _gaps(columns)


def _shown(table: AnyTable, width: int) -> list[_Shown]:
    """The columns with a rank as printed, some of them shortened in the middle to make room for all."""
    columns = [
        _Shown(
            replace(column, header=visible_line(column.header), group=visible_line(column.group)),
            column.rank,
            [visible_text(text) for text in _texts(column, cells, width)],
        )
        for column, cells in table.filled()
        if column.rank is not None
    ]
    names = [c for c in columns if c.column.least]
    if not names or sum(c.width for c in columns) + _gaps(columns) <= width:
        return columns
    room = (width - sum(c.width for c in columns if c not in names) - _gaps(columns)) // len(names)

    def cut(c: _Shown) -> _Shown:
        most = max(c.column.least, room, int(NAMES_SHARE * width) // len(names))
        return replace(c, texts=[Text(shorten(text.plain, most), text.style) for text in c.texts])

    return [cut(c) if c.column.least else c for c in columns]


def _texts(column: Column[Any], cells: Sequence[Cell], width: int) -> list[Text]:
    texts = []
    for place, cell in enumerate(cells):
        if column.once and place and cells[place - 1] == cell:
            texts.append(Text(""))
            continue
        words = column.whole(cell) if column.beside else cell.text
        if column.quantity is SYMBOL:
            words = fold_symbol(words, max(LEAST_SYMBOL_WIDTH, width // 4))
        texts.append(Text(DEEPER * cell.depth + words, STYLES[cell.tone]))
    return texts


def _widths(columns: Sequence[_Shown]) -> list[int]:
    """Widths of the columns when these are shown: the first of each group has room for the group's name."""
    seen = {""}
    widths = []
    for c in columns:
        group = c.column.group
        widths.append(c.width if group in seen else max(c.width, cell_len(group)))
        seen.add(group)
    return widths


def _gaps(columns: Sequence[_Shown]) -> int:
    return COLUMN_GAP * (len(columns) - 1)


# -- names that are too long -----------------------------------------------------------------------------------------

NAMES_SHARE = 0.4  # share of the width, if a table is too wide


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` letters without its middle; for "a → b" both sides keep their beginning and end."""
    if len(text) <= width:
        return text
    left, arrow, right = text.partition(ARROW)
    if arrow:
        room = width - len(ARROW)
        of_left = max(min(len(left), room // 2), room - len(right))
        return f"{shorten(left, of_left)}{ARROW}{shorten(right, room - of_left)}"
    tail = width // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def fold_symbol(symbol: str, width: int) -> str:
    """A C++ name in at most `width` cells: template arguments are removed first, from the innermost, then the
    middle."""
    while len(symbol) > width and (inner := _deepest_arguments(symbol)) is not None:
        symbol = f"{symbol[: inner[0]]}…{symbol[inner[1] :]}"
    return shorten(symbol, width)


def _deepest_arguments(symbol: str) -> tuple[int, int] | None:
    """Begin and end of the deepest template arguments, the longest of these; None if there are none left."""
    opened: list[int] = []
    found: list[tuple[int, int, int]] = []  # depth, begin, end
    text = _OPERATOR.sub(lambda m: "x" * len(m[0]), symbol)
    for i, letter in enumerate(text):
        if letter == "<":
            opened.append(i + 1)
        elif letter == ">" and opened:
            begin = opened.pop()
            if i - begin > 1:
                found.append((len(opened), begin, i))
    if not found:
        return None
    _, begin, end = max(found, key=lambda f: (f[0], f[2] - f[1]))
    return begin, end
