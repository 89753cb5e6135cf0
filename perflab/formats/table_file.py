"""Tables from elsewhere: CSV, TSV or semicolons, UTF-8, with a header. A cell is text until it is read as a number.

Rows are selected with `status == 'success' and not trial_id endswith '_profiled'`: columns by name, or col('a name with
blanks'); texts in quotes; numbers; == != < <= > >= in, and, or, not, parentheses; startswith, endswith and contains
between two texts. It is parsed as a Python expression and interpreted; nothing of it is executed. A cell is compared as
a number if the other side is one. A cell that is not a number is unequal to every number; an empty one is neither less
nor more than anything.
"""

from __future__ import annotations

import ast
import csv
import io
import math
import operator
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import BadInput, one_line

MISSING = ("", "nan", "na", "n/a", "null", "none", "-", "–")
MAX_BYTES = 256 * 1024 * 1024
# For values other than 0: their fourth powers, as in Welch's degrees of freedom, are representable
SMALLEST, LARGEST = 1e-60, 1e60


@dataclass(frozen=True)
class Row:
    """`number` is that of the row's last line in the file, from 1, as shown by an editor."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class TableFile:
    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def require(self, column: str, option: str) -> str:
        """The column's name, if there is such a column. Raises BadInput that lists the existing ones."""
        if column not in self.columns:
            raise BadInput(f"{option} {column!r} is not a column of {self.path}; columns: {', '.join(self.columns)}")
        return column

    def number(self, row: Row, column: str) -> float | None:
        """The number in a cell; None if it is missing. Raises BadInput that names the row."""
        text = row.cells[column].strip()
        if text.lower() in MISSING:
            return None
        try:
            value = float(text)
        except ValueError:
            raise BadInput(
                f"{self.path}, line {row.number}: {column} is {_short(text)}, which is not a number"
            ) from None
        if not math.isfinite(value):
            raise BadInput(f"{self.path}, line {row.number}: {column} is {_short(text)}, which is not finite")
        if value and not SMALLEST <= abs(value) <= LARGEST:
            raise BadInput(
                f"{self.path}, line {row.number}: {column} is {_short(text)}, which is not within {SMALLEST:g} "
                f"and {LARGEST:g}; use another unit for the column"
            )
        return value

    def where(self, keep: Callable[[Row], bool]) -> TableFile:
        return TableFile(self.path, self.columns, tuple(row for row in self.rows if keep(row)))


def read_table(path: Path) -> TableFile:
    """Reads a table. Raises BadInput that names the wrong line."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadInput(f"{path} exceeds the limit of {MAX_BYTES // 1024**2} MiB for a table")
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
    """A tab in .tsv files, else the most frequent one of comma, semicolon and tab in the header."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=header.count)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


# -- row selection ---------------------------------------------------------------------------------------------------

MAX_LENGTH = 2000
_TEXT_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
}
_ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

Value = str | float
Operand = Callable[[Row], Value]
Predicate = Callable[[Row], bool]


def parse_where(text: str, table: TableFile) -> Predicate:
    """The predicate of rows that the text describes. Raises BadInput for invalid syntax."""
    if len(text) > MAX_LENGTH:
        raise BadInput(f"--where is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(_between(text), mode="eval")
        return _Reader(table).predicate(tree.body)
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadInput(f"--where {one_line(text)!r} cannot be understood: {one_line(said)}") from error


def _between(text: str) -> str:
    """`a endswith b` as `a in endswith @ b`, which is valid Python with the same precedence."""
    tokens = [(t.type, t.string) for t in tokenize.generate_tokens(io.StringIO(text.strip()).readline)]
    out: list[tuple[int, str]] = []
    for kind, string in tokens:
        if kind == tokenize.NAME and string in _TEXT_OPERATORS:
            out += [(tokenize.NAME, "in"), (kind, string), (tokenize.OP, "@")]
        else:
            out.append((kind, string))
    return str(tokenize.untokenize(out)).strip()


class _Reader:
    """Converts the tree to functions of a row."""

    def __init__(self, table: TableFile) -> None:
        self._table = table

    def predicate(self, node: ast.expr) -> Predicate:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                parts = [self.predicate(value) for value in values]
                return lambda row: all(part(row) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=values):
                parts = [self.predicate(value) for value in values]
                return lambda row: any(part(row) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                part = self.predicate(operand)
                return lambda row: not part(row)
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [left, *others]
                parts = [self._comparison(*each) for each in zip(sides, operators, others, strict=False)]
                return lambda row: all(part(row) for part in parts)
        raise ValueError(f"{ast.unparse(node)} is not a condition; compare a column with something")

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Predicate:
        a = self._operand(left)
        match op, right:
            case ast.In() | ast.NotIn(), ast.BinOp(left=ast.Name(id=name), op=ast.MatMult(), right=other):
                test, b = _TEXT_OPERATORS[name], self._operand(other)
                wanted = isinstance(op, ast.In)
                return lambda row: test(str(a(row)), str(b(row))) is wanted
            case ast.In() | ast.NotIn(), ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                members = [self._operand(element) for element in elements]
                wanted = isinstance(op, ast.In)
                return lambda row: any(self._equal(a(row), b(row)) for b in members) is wanted
            case ast.Eq() | ast.NotEq(), _:
                b, wanted = self._operand(right), isinstance(op, ast.Eq)
                return lambda row: self._equal(a(row), b(row)) is wanted
        if (order := _ORDERS.get(type(op))) is None:
            raise ValueError("`in` must be followed by a list, such as ('success', 'failed')")
        b = self._operand(right)
        return lambda row: self._ordered(order, a(row), b(row), row)

    def _operand(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant(value=str(text)):
                return lambda _: text
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return lambda _: float(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return lambda _: -float(number)
            case ast.Name(id=name):
                return self._column(name)
            case ast.Call(func=ast.Name(id="col"), args=[ast.Constant(value=str(name))], keywords=[]):
                return self._column(name)
        raise ValueError(f"{ast.unparse(node)} is neither a column nor text nor a number")

    def _column(self, name: str) -> Operand:
        if name not in self._table.columns:
            columns = ", ".join(self._table.columns)
            raise ValueError(f"there is no column {name!r} (texts need quotes); columns: {columns}")
        return lambda row: row.cells[name].strip()

    def _equal(self, a: Value, b: Value) -> bool:
        if isinstance(a, str) and isinstance(b, str):
            return a == b
        x, y = _number(a), _number(b)
        return x is not None and x == y

    def _ordered(self, order: Callable[[Any, Any], bool], a: Value, b: Value, row: Row) -> bool:
        if a == "" or b == "":
            return False
        x, y = _number(a), _number(b)
        if x is not None and y is not None:
            return order(x, y)
        if isinstance(a, str) and isinstance(b, str):
            return order(a, b)
        text = a if x is None else b
        raise BadInput(f"{self._table.path}, line {row.number}: --where compares {text!r} with a number")


def _number(value: Value) -> float | None:
    if isinstance(value, float):
        return value
    try:
        return float(value)
    except ValueError:
        return None
