"""A table for programs, with one name for each column and plain values in its unit; and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perflab.columns import AnyTable, Cell


def records(table: AnyTable) -> list[dict[str, float | str | None]]:
    """For JSON: the value of each column for every row, null if unknown."""
    return [{column.name: column.cell(row).value for column in table.columns} for row in table.rows]


def write(table: AnyTable, path: Path) -> None:
    """An empty cell is unknown; columns with only unknown values are left out. Raises OSError."""
    filled = table.filled()
    rows = zip(*([_plain(cell) for cell in cells] for _, cells in filled), strict=True)
    _write(path, [[column.name for column, _ in filled], *rows])


def write_columns(table: AnyTable, path: Path) -> None:
    """The columns of a table: name, unit and meaning. Raises OSError."""
    told = [(column.name, column.quantity.unit, column.help) for column, _ in table.filled()]
    _write(path, [("column", "unit", "meaning"), *told])


def markdown(table: AnyTable) -> str:
    """A table for each group, without its head."""
    lines: list[str] = []
    for name, part in table.groups():
        lines += [f"### {name}", "", _markdown(part, [""] * len(part.filled())), ""]
    return "\n".join(lines)


def markdown_table(table: AnyTable) -> str:
    """The whole table, with its head."""
    return _markdown(table, [_escaped(column.title) for column, _ in table.filled()])


def _markdown(table: AnyTable, head: list[str]) -> str:
    cells = zip(*(cells for _, cells in table.filled()), strict=True)
    return markdown_rows(head, ([_escaped(cell.text) for cell in row] for row in cells))


def markdown_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are one line of Markdown each, in which | is escaped."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _escaped(text: str) -> str:
    r"""A | would end the cell, < begin HTML, and ` * _ have a meaning."""
    out = " ".join(text.split()).replace("\\", "\\\\")
    for letter in "|`*_<[":
        out = out.replace(letter, f"\\{letter}")
    return out


def _plain(cell: Cell) -> float | str:
    value = cell.value
    if value is None:
        return ""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _write(path: Path, rows: list[Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
