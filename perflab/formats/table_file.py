"""Tables from elsewhere: CSV, TSV or semicolons, UTF-8, with a header. A cell is text until it is read as a number."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import BadInput

MISSING = ("", "nan", "na", "n/a", "null", "none", "-", "–")
MAX_BYTES = 256 * 1024 * 1024
SMALLEST, LARGEST = 1e-60, 1e60  # of what is not 0: fourth powers of it, as in Welch's degrees of freedom, are numbers


@dataclass(frozen=True)
class Row:
    """`number` is that of the line on which the row ends in the file, from 1: what an editor shows."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class TableFile:
    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def require(self, column: str, option: str) -> str:
        """The column's name, if there is such a column. Raises BadInput, which lists those that there are."""
        if column not in self.columns:
            raise BadInput(f"{option} {column!r} is no column of {self.path}; columns: {', '.join(self.columns)}")
        return column

    def number(self, row: Row, column: str) -> float | None:
        """The number in a cell; None where it is missing. Raises BadInput, which names the row."""
        text = row.cells[column].strip()
        if text.lower() in MISSING:
            return None
        try:
            value = float(text)
        except ValueError:
            raise BadInput(f"{self.path}, line {row.number}: {column} is {_short(text)}, which is no number") from None
        if not math.isfinite(value):
            raise BadInput(f"{self.path}, line {row.number}: {column} is {_short(text)}, which is not finite")
        if value and not SMALLEST <= abs(value) <= LARGEST:
            raise BadInput(
                f"{self.path}, line {row.number}: {column} is {_short(text)}, which is not within {SMALLEST:g} and "
                f"{LARGEST:g}; write the column in another unit"
            )
        return value

    def where(self, keep: Callable[[Row], bool]) -> TableFile:
        return TableFile(self.path, self.columns, tuple(row for row in self.rows if keep(row)))


def read_table(path: Path) -> TableFile:
    """Reads a table. Raises BadInput, which names the line that is wrong."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadInput(f"{path} is larger than the {MAX_BYTES // 1024**2} MiB that a table may have")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start})") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(path, text), strict=True)
    columns: tuple[str, ...] | None = None
    rows = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if columns is None:
                columns = _header(path, cells)
            elif len(cells) != len(columns):
                raise BadInput(
                    f"{path}, line {reader.line_num}: {len(cells)} cells, but the header has {len(columns)} columns"
                )
            else:
                rows.append(Row(reader.line_num, dict(zip(columns, cells, strict=True))))
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}") from error
    if columns is None:
        raise BadInput(f"{path} is empty; a table has a header line and rows")
    if not rows:
        raise BadInput(f"{path} has a header and no rows")
    return TableFile(path, columns, tuple(rows))


def _header(path: Path, cells: list[str]) -> tuple[str, ...]:
    columns = tuple(cell.strip() for cell in cells)
    if "" in columns:
        raise BadInput(f"{path}: column {columns.index('') + 1} has no name")
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise BadInput(f"{path}: two columns are called {twice[0]!r}")
    return columns


def _delimiter(path: Path, text: str) -> str:
    """A tab in .tsv files, else whatever of comma, semicolon and tab the header has most of."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=header.count)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
