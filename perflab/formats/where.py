"""Which rows of a table to take: `status == 'success' and not trial_id endswith '_profiled'`.

Columns by name, or col('a name with blanks'); texts in quotes; numbers; == != < <= > >= in, and, or, not, parentheses;
startswith, endswith and contains between two texts. It is parsed as an expression of Python and walked; nothing of it
is run.

A cell is compared as a number where the other side is one. A cell that is no number is unequal to every number; an
empty one is neither less nor more than anything.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
from collections.abc import Callable
from typing import Any

from perflab.errors import BadInput, one_line
from perflab.formats.table_file import Row, TableFile

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
    """The predicate of rows that the text describes. Raises BadInput for what it does not understand."""
    if len(text) > MAX_LENGTH:
        raise BadInput(f"--where is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(_between(text), mode="eval")
        return _Reader(table).predicate(tree.body)
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadInput(f"--where {one_line(text)!r} cannot be understood: {one_line(said)}") from error


def _between(text: str) -> str:
    """`a endswith b` as `a in endswith @ b`, which is Python's grammar and binds alike."""
    tokens = [(t.type, t.string) for t in tokenize.generate_tokens(io.StringIO(text.strip()).readline)]
    out: list[tuple[int, str]] = []
    for kind, string in tokens:
        if kind == tokenize.NAME and string in _TEXT_OPERATORS:
            out += [(tokenize.NAME, "in"), (kind, string), (tokenize.OP, "@")]
        else:
            out.append((kind, string))
    return str(tokenize.untokenize(out)).strip()


class _Reader:
    """Turns the tree into functions of a row."""

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
        raise ValueError(f"{ast.unparse(node)} is no condition; compare a column with something")

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
            raise ValueError("after `in` stands a list, such as ('success', 'failed')")
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
        raise ValueError(f"{ast.unparse(node)} is neither a column nor a text nor a number")

    def _column(self, name: str) -> Operand:
        if name not in self._table.columns:
            columns = ", ".join(self._table.columns)
            raise ValueError(f"there is no column {name!r} (texts stand in quotes); columns: {columns}")
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
