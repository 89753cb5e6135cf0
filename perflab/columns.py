"""The definition of a table: columns, each with its quantity and how it reads a row, over rows.

    Table("rides", "Rides", [Column("ride", "ride", lambda ride: ride.name), ...], rides)

Renderers of tables (a terminal, a page, a paper, a file) know columns and cells, but not what a row is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, cast

from perflab.quantity import TEXT, UNKNOWN, Quantity, ends

Row = TypeVar("Row")

DEEPER = "\u00a0\u00a0"  # before the name of a row that is a part of the row above it
Tone = Literal["", "bad", "good", "warn", "faint", "strong"]
Kind = Literal["integer", "number", "string", "boolean"]  # of a value in JSON


@dataclass(frozen=True)
class Drawn:
    """A value with its interval on an axis from 0 to 1, and the position of no difference."""

    none: float
    at: float
    low: float | None = None
    high: float | None = None
    own_scale: bool = False  # unlike that of the axis


@dataclass(frozen=True)
class Cell:
    """The shown text, and the plain value for sorting; None for an unknown one."""

    text: str
    value: float | str | None = None
    tone: Tone = ""
    below: Sequence[str] = ()  # further lines, smaller, if there is room
    sign: str = ""
    low: float | None = None  # of the interval of the value
    high: float | None = None
    excluded: float | None = None  # a value that differs in kind from the one in the interval
    depth: int = 0  # indentation as a part of the row above it
    reason: str | None = None  # why it is empty
    quantity: Quantity | None = None  # if it differs from the column's
    link: str = ""  # where a page has the details
    drawn: Drawn | None = None  # what a page shows instead of text

    @property
    def known(self) -> bool:
        return self.text not in ("", UNKNOWN) or any(self.below)


class Estimated(Protocol):
    """A value with its interval, and why there is none."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...


Read = float | str | Estimated | Cell | None


@dataclass(frozen=True)
class Column(Generic[Row]):
    """The value read from each row: a plain value of the quantity, or a whole cell.

    The higher its rank, the earlier it is left out for lack of room, together with all others of that rank; 0 stays,
    and a column without a rank is only shown if there is always room.
    """

    name: str  # in files: it stays the same when the wording of the header changes
    header: str
    read: Callable[[Row], Read] | None = None  # default: row[name]
    quantity: Quantity = TEXT
    _: KW_ONLY
    group: str = ""  # written above the first column of it, or before the header
    rank: int | None = None
    help: str = ""
    empty: str = ""  # default reason for an empty cell; a row may have its own
    tone: Tone = ""  # for values other than 0
    called: str = ""  # without groups; default group and header
    beside: bool = False  # intervals stay beside their values, even if there is little room
    least: int = 0  # letters that remain of a shortened name before other columns are left out; 0: not shortened
    once: bool = False  # if rows keep their order, repetitions of the row above are left out
    kind: Kind = "string"
    optional: bool = False  # only some tables of the name have it

    @property
    def title(self) -> str:
        """ "latency p99"."""
        return self.called or " ".join(filter(None, (self.group, self.header)))

    def cell(self, row: Row) -> Cell:
        found: Read = cast(Any, row)[self.name] if self.read is None else self.read(row)
        if isinstance(found, Cell):
            return found
        if found is None or isinstance(found, str | float | int):
            return self._cell_of(found)
        reason = found.reason if found.value is None else None
        return replace(self._cell_of(found.value), low=found.low, high=found.high, reason=reason)

    def interval(self, cell: Cell) -> str:
        """ "[9.9 ms, 10.1 ms]", or "" if there is none."""
        if cell.low is None or cell.high is None:
            return ""
        quantity = cell.quantity or self.quantity
        return f"[{', '.join(ends(cell.low, cell.high, cell.excluded, quantity.write))}]"

    def whole(self, cell: Cell) -> str:
        """ "10.0 [9.9, 10.1] ms": with its interval, and the unit once if all have the same one."""
        quantity = cell.quantity or self.quantity
        texts = [cell.text]
        if cell.low is not None and cell.high is not None:
            texts += ends(cell.low, cell.high, cell.excluded, quantity.write)
        numbers, units = zip(*(text.partition(" ")[::2] for text in texts), strict=True)
        if len(texts) == 3 and units[0] and len(set(units)) == 1:
            return f"{numbers[0]} [{numbers[1]}, {numbers[2]}] {units[0]}"
        return f"{cell.text} {self.interval(cell)}".rstrip()

    def _cell_of(self, found: float | str | None) -> Cell:
        value = None if found == "" else found
        reason = self.empty or None if value is None else None
        return Cell(self.quantity.text(found), value, self.tone if found else "", reason=reason)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """`columns` stay in their order; the first one names the row. `name` is its file name, or key in JSON."""

    name: str
    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row] = ()
    notes: Sequence[str] = ()
    grouped: Callable[[Row], str] | None = None  # heading above consecutive rows that belong together

    def without(self, *names: str) -> Self:
        return replace(self, columns=tuple(column for column in self.columns if column.name not in names))

    def groups(self) -> list[tuple[str, Self]]:
        """The table of each group, with its name; rows of one name follow each other."""
        of = self.grouped or (lambda _: "")
        return [(name, replace(self, rows=list(rows))) for name, rows in itertools.groupby(self.rows, of)]

    def filled(self) -> list[tuple[Column[Row], list[Cell]]]:
        """Every column with its cells, without those with only unknown values (except the first)."""
        found = [(column, [column.cell(row) for row in self.rows]) for column in self.columns]
        return [(c, cells) for i, (c, cells) in enumerate(found) if i == 0 or any(cell.known for cell in cells)]


AnyTable = Table[Any]
