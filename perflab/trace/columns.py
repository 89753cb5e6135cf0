"""Columns of the answers about a trace, each defined once: its name, quantity, header, help, and why a cell is empty.

    CPUS = Table("cpus", "CPUs", (text("host", "host"), percent("busy", "share of the time in which a thread ran")))

The terminal, the JSON with its published schema, the exports and the docs' tables come from these. What a column and a
table are in general says perflab/columns.py. Times are
nanoseconds; names of columns end in their unit (`_ns`, `_percent`, `_hz`, `_bytes`), which the constructors add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perflab import columns
from perflab.columns import Kind
from perflab.quantity import BYTES, COUNT, FLAG, FREQUENCY, PART, PLAIN, POINTS, SYMBOL, TEXT, TIME, Quantity
from perflab.trace.quantiles import MAX_AT, PER_MILLE, REASON_QUANTILE, REASON_SD, STATISTICS

if TYPE_CHECKING:
    import polars as pl

Column = columns.Column[Any]
Rows = list[tuple[Any, ...]]  # a value per column
# What the values of a column are; None is none of them, and a number may be given as an integer.
_TYPES: dict[Kind, type] = {"integer": int, "number": float, "string": str, "boolean": bool}


def _of(quantity: Quantity, kind: Kind, unit: str = "", after: str = "") -> Callable[..., Column]:
    """What makes columns of a quantity: `unit` ends their names, `after` their headers."""
    usual = kind

    def column(name: str, help: str, empty: str = "", *, of: str = "", kind: Kind = usual) -> Column:
        """`of`: the figure that this is a statistic of."""
        header = f"{name.replace('p99_9', 'p99.9').replace('_', ' ')}{after}"
        named = "_".join(filter(None, (of, name, unit)))
        return Column(named, header, None, quantity, group=of.replace("_", " "), help=help, empty=empty, kind=kind)

    return column


text, symbol, flag = _of(TEXT, "string"), _of(SYMBOL, "string"), _of(FLAG, "boolean")
identity = _of(PLAIN, "integer")  # the number of a process, of a CPU: not of anything
count, number = _of(COUNT, "integer"), _of(COUNT, "number")
time, size, rate = _of(TIME, "integer", "ns"), _of(BYTES, "integer", "bytes"), _of(FREQUENCY, "number", "hz")
percent, points = _of(PART, "number", "percent"), _of(POINTS, "number", "points", " points")

_WORDS = {"min": "the shortest", "max": "the longest", "mean": "mean", "sd": "standard deviation"}


def distribution(
    figure: str, help: str, statistics: Sequence[str] = STATISTICS, empty: str = "", *, at: str = "when it began"
) -> tuple[Column, ...]:
    """What `describe` makes of a figure, without its n. `empty` is why there is no value at all."""
    reasons = {**dict.fromkeys(PER_MILLE, REASON_QUANTILE), "sd": REASON_SD}
    words = _WORDS | {name: name.replace("_", ".") for name in PER_MILLE}
    words[MAX_AT] = f"the longest: {at}, from the beginning of the trace"
    return tuple(
        time(
            statistic,
            f"{help}: {words[statistic]}",
            "; or ".join(filter(None, (reasons.get(statistic, ""), empty))),
            of=figure,
            kind="number" if statistic in ("mean", "sd") else "integer",
        )
        for statistic in statistics
    )


def because(empty: str, *columns: Column) -> tuple[Column, ...]:
    """The columns with why they are null."""
    return tuple(replace(column, empty=empty) for column in columns)


def holds(column: Column, dtype: pl.DataType) -> bool:
    """Whether a column of a frame is of the kind of a column."""
    import polars as pl

    if column.kind == "string":
        return isinstance(dtype, pl.String | pl.Enum | pl.Categorical)
    if column.kind == "boolean":
        return isinstance(dtype, pl.Boolean)
    return dtype.is_integer() if column.kind == "integer" else dtype.is_numeric()


@dataclass(frozen=True)
class Table(columns.Table[Any]):
    """What the rows of a section have; the rows are those of a frame."""

    # Columns of the table in a terminal from left to right; empty: all of them. JSON and exports always have all.
    shown: tuple[str, ...] = ()
    # Columns that a narrow terminal leaves out, the first of them first; then those of `shown` from the right.
    spare: tuple[str, ...] = ()
    vertical: bool = False  # a terminal writes each row as lines "column  value"; for tables of one row
    always: bool = True  # every answer of its kind has it
    of: dict[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", {column.name: column for column in self.columns})
        if len(self.of) < len(self.columns):
            raise ValueError(f"table {self.name} has two columns of one name")
        if unknown := [name for name in (*self.shown, *self.spare) if name not in self.of]:
            raise ValueError(f"table {self.name} has no column {unknown[0]!r}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.of)

    def plain(self, rows: Iterable[Any]) -> Rows:
        """Rows, given as tuples in the order of the columns or as dictionaries. Raises ValueError for a value that is
        not of its column's kind.
        """
        given = ([row.get(name) for name in self.names] if isinstance(row, Mapping) else row for row in rows)
        return [tuple(_value(c, value) for c, value in zip(self.columns, row, strict=True)) for row in given]

    def frame(self, rows: Iterable[Any]) -> pl.DataFrame:
        """Rows, given likewise, as a frame."""
        import polars as pl

        types = {"integer": pl.Int64, "number": pl.Float64, "string": pl.String, "boolean": pl.Boolean}
        schema = {column.name: types[column.kind] for column in self.columns}
        return pl.DataFrame(list(rows), schema=schema, orient="row")


def _value(column: Column, value: Any) -> Any:
    kind = _TYPES[column.kind]
    if value is None or type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return float(value)
    raise ValueError(f"column {column.name}: {value!r} is not of the kind {column.kind}")
