"""What a table is: columns, each with its quantity and what it reads of a record, over rows of such records.

Whoever writes a table down (a terminal, a page, a paper, a file) knows columns and cells, and no records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Literal, TypeVar

from perflab.quantity import TEXT, UNKNOWN, Quantity

Row = TypeVar("Row")

Tone = Literal["", "bad", "good", "warn", "faint"]


@dataclass(frozen=True)
class Cell:
    """What is shown, and the plain value that it is sorted by; None for what is not known."""

    text: str
    value: float | str | None = None
    tone: Tone = ""
    below: Sequence[str] = ()  # more lines, smaller, where there is room
    sign: str = ""
    reason: str | None = None  # why it is empty

    @property
    def known(self) -> bool:
        return self.text != UNKNOWN or any(self.below)


Read = float | str | Cell | None


@dataclass(frozen=True)
class Column(Generic[Row]):
    """What is read of each row: a plain value of the quantity, or a whole cell.

    The higher its rank, the earlier it is left out where there is no room, together with all others of that rank;
    0 stays, and a column without a rank is only where there is always room.
    """

    name: str  # in files: it stays as it is when the header gets better words
    header: str
    read: Callable[[Row], Read]
    quantity: Quantity = TEXT
    _: KW_ONLY
    group: str = ""  # written above the first column of it, or before the header
    rank: int | None = None
    help: str = ""
    tone: Tone = ""  # of values other than 0

    @property
    def title(self) -> str:
        """ "latency p99"; where there is no header at all, what the column tells."""
        return " ".join(filter(None, (self.group, self.header)))

    def cell(self, row: Row) -> Cell:
        found = self.read(row)
        if isinstance(found, Cell):
            return found
        return Cell(self.quantity.text(found), None if found == "" else found, self.tone if found else "")


@dataclass(frozen=True)
class Table(Generic[Row]):
    """`columns` stay in their order; the first one names the row."""

    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    def filled(self) -> list[tuple[Column[Row], list[Cell]]]:
        """Every column with its cells, without those in which nothing is known (but the first)."""
        found = [(column, [column.cell(row) for row in self.rows]) for column in self.columns]
        return [(c, cells) for i, (c, cells) in enumerate(found) if i == 0 or any(cell.known for cell in cells)]


AnyTable = Table[Any]
