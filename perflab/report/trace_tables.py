"""Answers about a trace on a terminal: each section a table that fits, what it rests on, why something is missing."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from perflab.quantity import SYMBOL
from perflab.report.table import COLUMN_GAP, Column, print_table
from perflab.trace.columns import Column as Described
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.trace.answer import Answer, Section

MAX_ROWS = 20
MAX_NAMES = 4  # of columns that have one reason
LEAST_SYMBOL_WIDTH = 32
LEAST_NAME_WIDTH = 20
NAMES_SHARE = 0.4  # of the width, where the table is too wide
ARROW = " → "

_OPERATOR = re.compile(r"operator(<=>|<<=|>>=|<<|>>|<=|>=|->|<|>)|->")


def print_answer(out: Console, answer: Answer, *, everything: bool = False, uncut: Collection[str] = ()) -> None:
    """What to know first, all sections of an answer, then the quality of its data. `everything`: all rows; `uncut`: all
    rows of these sections.
    """
    if answer.scope:
        out.print(Text(f"Only {answer.scope}", "bold"))
    for line in answer.warnings:
        out.print(Text(f"Warning: {line}", "yellow"))
    if answer.scope or answer.warnings:
        out.print()
    for section in answer.sections:
        _print_section(out, section, everything or section.name in uncut)
        out.print()
    if answer.quality:
        out.print(Text("Data quality", "bold"))
        for line in answer.quality:
            out.print(Text(f"- {line}"), soft_wrap=False)


def fold_symbol(symbol: str, width: int) -> str:
    """A C++ name in at most `width` cells: template arguments go first, from within, then the middle."""
    while len(symbol) > width and (inner := _deepest_arguments(symbol)) is not None:
        symbol = f"{symbol[: inner[0]]}…{symbol[inner[1] :]}"
    return shorten(symbol, width)


def _deepest_arguments(symbol: str) -> tuple[int, int] | None:
    """Where the template arguments that lie deepest begin and end, the longest of these; None where none are left."""
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


def _print_section(out: Console, section: Section, everything: bool) -> None:
    out.print(Text(section.title, "bold"))
    frame = section.frame
    if section.table.vertical:
        _print_lines(out, section)
    elif frame.height:
        rows = frame if everything else frame.head(MAX_ROWS)
        print_table(out, _columns(section, rows.to_dicts(), out.width))
        if rows.height < frame.height:
            out.print(Text(f"… and {format_count(frame.height - rows.height)} more: --all", "dim"))
    for note in section.notes:
        out.print(Text(note, "dim"))
    for line in _reasons(section):
        out.print(Text(line, "dim"))


def _shown(section: Section) -> list[Described]:
    """The columns of a terminal; a figure that is null throughout takes no room but in `reasons`."""
    frame = section.frame
    return [c for i, c in enumerate(section.shown) if i == 0 or frame[c.name].null_count() < frame.height]


def _columns(section: Section, rows: Sequence[dict[str, Any]], width: int) -> list[Column]:
    """The first column stays, and so do texts beside it that are not spare; they are cut so that figures have room."""
    shown = _shown(section)
    named = [column.name for column in shown]
    spare = [name for name in section.table.spare if name in named]
    order = [*spare, *(name for name in reversed(named) if name not in spare)]  # what is left out first, first
    columns = []
    leading = True
    for i, column in enumerate(shown):
        is_text = not column.quantity.numeric
        leading = leading and is_text
        tree = column.name == "function" and "depth" in section.table.of
        cells = [Text(f"{_indent(row) if tree else ''}{_cell(column, row[column.name], width)}") for row in rows]
        rank = 0 if i == 0 or (leading and column.name not in spare) else len(order) - order.index(column.name)
        columns.append(Column(column.header, rank, cells, right=not is_text, group=column.group))
    if sum(c.width + COLUMN_GAP for c in columns) <= width:
        return columns
    names = sum(c.rank == 0 for c in columns)
    room = width - sum(c.width + COLUMN_GAP for c in columns if c.rank) - COLUMN_GAP * names
    most = max(LEAST_NAME_WIDTH, max(room, int(NAMES_SHARE * width)) // names)
    return [c if c.rank else replace(c, cells=[Text(shorten(t.plain, most)) for t in c.cells]) for c in columns]


def _indent(row: dict[str, Any]) -> str:
    """Of a tree whose nodes are rows, in its order."""
    return "  " * (row["depth"] or 0)


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` letters without its middle; of "a → b" both sides keep their beginning and end."""
    if len(text) <= width:
        return text
    left, arrow, right = text.partition(ARROW)
    if arrow:
        room = width - len(ARROW)
        of_left = max(min(len(left), room // 2), room - len(right))
        return f"{shorten(left, of_left)}{ARROW}{shorten(right, room - of_left)}"
    tail = width // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _cell(column: Described, value: Any, width: int) -> str:
    if column.quantity is SYMBOL and value is not None:
        return fold_symbol(value, max(LEAST_SYMBOL_WIDTH, width // 4))
    return column.quantity.text(value)


def _print_lines(out: Console, section: Section) -> None:
    """Each row as lines: what, and its value."""
    shown = _shown(section)
    width = max(cell_len(column.title) for column in shown)
    for row in section.frame.iter_rows(named=True):
        for column in shown:
            text = Text(f"{column.title:<{width}}  {_cell(column, row[column.name], out.width)}")
            out.print(text, no_wrap=True, overflow="ellipsis")


def _reasons(section: Section) -> list[str]:
    """Why there are dashes in the columns of a terminal, or whole columns are missing; equal reasons once."""
    by_reason: dict[str, list[str]] = {}
    reasons = section.reasons
    for column in section.shown:
        if column.name in reasons and section.frame.height and section.frame[column.name].null_count():
            by_reason.setdefault(reasons[column.name], []).append(column.title)
    lines = []
    for reason, headers in by_reason.items():
        if reason in section.notes:
            continue
        more = f" and {len(headers) - MAX_NAMES} more" if len(headers) > MAX_NAMES else ""
        which = ", ".join(headers[:MAX_NAMES]) + more
        lines.append(f"– {which}: {reason}")
    return lines
