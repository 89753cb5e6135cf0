"""A table as LaTeX: booktabs, and nothing else that has to be loaded.

What is too wide is set as several tables below each other, with the names of the rows repeated; what is too long
becomes several floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from perflab import columns as model
from perflab import quantity
from perflab.columns import AnyTable, Cell
from perflab.quantity import Quantity
from perflab.report.latex.text import aligned, breakable, decimals, decimals_of, escape, number
from perflab.results.trial import Median

TEXT_PT = 468.0  # width of the text that a table may fill: A4 with margins of 2.2 cm
LETTER_PT = 4.1  # of a mean letter or digit of \small
GAP_PT = 12.0  # between columns: twice \tabcolsep
# Widths of a column of names beyond which its entries are broken into lines: the first one of those that need the
# fewest tables below each other.
NAME_PTS = (150.0, 120.0, 95.0)
MAX_LINES = 36  # of one float

# Environments that a paper may want instead: `\newcommand{\perflabfloat}{table*}` before a file is read.
FLOAT = "perflabfloat"


@dataclass(frozen=True)
class Names:
    """A column of words, broken where they are too long. `cells` are plain text."""

    title: str
    cells: Sequence[str]
    limit: float = NAME_PTS[0]
    once: frozenset[int] | None = None  # an entry like the one above it is left empty, but in these rows

    def columns(self) -> int:
        return 1

    def width(self) -> float:
        return min(self.limit, LETTER_PT * max(len(self.title), self._longest)) + GAP_PT

    def spec(self) -> str:
        return "l" if LETTER_PT * self._longest <= self.limit else f"p{{{self.limit:.0f}pt}}"

    def head(self) -> tuple[str, str]:
        return escape(self.title), ""

    def body(self, rows: Sequence[int]) -> list[str]:
        shown = [self.cells[i] if n == 0 or not self._repeats(i) else "" for n, i in enumerate(rows)]
        if self.spec() == "l":
            return [escape(cell) for cell in shown]
        return [rf"\raggedright {breakable(cell)}" if cell else "" for cell in shown]

    def _repeats(self, row: int) -> bool:
        return self.once is not None and row > 0 and row not in self.once and self.cells[row] == self.cells[row - 1]

    def lines(self, row: int) -> int:
        """Of an entry; a long word may leave a part of a line empty."""
        if self._repeats(row):
            return 1
        needed = LETTER_PT * len(self.cells[row])
        return 1 if needed <= self.limit else math.ceil(1.15 * needed / self.limit)

    @property
    def _longest(self) -> int:
        return max(map(len, self.cells), default=0)


@dataclass(frozen=True)
class Texts:
    """A column of finished LaTeX."""

    title: str
    cells: Sequence[str]
    right: bool = False
    unit: str = ""

    def columns(self) -> int:
        return 1

    def width(self) -> float:
        longest = max(map(printed, self.cells), default=0)
        return LETTER_PT * max(len(self.title), len(self.unit) + 2, longest) + GAP_PT

    def spec(self) -> str:
        return "r" if self.right else "l"

    def head(self) -> tuple[str, str]:
        return escape(self.title), f"({escape(self.unit)})" if self.unit else ""

    def body(self, rows: Sequence[int]) -> list[str]:
        return [self.cells[i] for i in rows]


@dataclass(frozen=True)
class Value:
    """A number with its interval, in the unit of the column. `signed` writes a + as well."""

    value: float | None
    low: float | None = None
    high: float | None = None
    signed: bool = False
    exact: bool = False  # a count: no decimals but those that it has
    factor: bool = False  # at least two decimals, below 10

    @property
    def places(self) -> int:
        if self.value is None:
            return 0
        shown = [v for v in (self.value, self.low, self.high) if v is not None]
        if self.exact or (self.low is not None and self.low == self.high):
            return min(2, max((own_decimals(v) for v in shown), default=0)) if self.exact else decimals(self.value)
        places = decimals(self.value, self.low, self.high)
        if self.low is not None and 0 < self.low < 1:  # not to be printed as 0
            places = max(places, decimals_of(self.low, 1))
        return max(places, 2) if self.factor and abs(self.value) < 9.995 else places

    def texts(self) -> tuple[str, str]:
        """The number and its interval."""
        if self.value is None:
            return "--", ""
        return self.of(self.value), self.interval()

    def interval(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return ""
        return f"[{self.of(self.low)}, {self.of(self.high)}]"

    def of(self, value: float) -> str:
        """Another value with the same decimals."""
        return ("+" if self.signed and value > 0 else "") + number(value, self.places)


def own_decimals(value: float) -> int:
    """How many decimals a number has, at most 6."""
    return len(f"{value:.6f}".rstrip("0").partition(".")[2])


@dataclass(frozen=True)
class Values:
    """A column of numbers, aligned at their decimal points, and beside it one of their intervals if there are any."""

    title: str
    unit: str
    cells: Sequence[Value]

    def columns(self) -> int:
        return 2 if any(cell.interval() for cell in self.cells) else 1

    def width(self) -> float:
        texts = [cell.texts() for cell in self.cells]
        own = max((printed(n) for n, _ in texts), default=0) + max((printed(i) for _, i in texts), default=0)
        return LETTER_PT * max(own + (self.columns() - 1), len(self.title), len(self.unit) + 2) + GAP_PT

    def spec(self) -> str:
        return "r@{~}l" if self.columns() == 2 else "r"

    def head(self) -> tuple[str, str]:
        return escape(self.title), f"({escape(self.unit)})" if self.unit else ""

    def body(self, rows: Sequence[int]) -> list[str]:
        cells = [self.cells[i] for i in rows]
        numbers = aligned([(c.texts()[0], c.places) if c.value is not None else ("--", 0) for c in cells])
        if self.columns() == 1:
            return numbers
        return [f"{n} & {cell.interval()}" for n, cell in zip(numbers, cells, strict=True)]


Column = Names | Texts | Values


@dataclass(frozen=True)
class Table:
    """Columns of equally many rows. `groups` names the rows that begin a group; the first column stays when it is
    broken. `caption` and `notes` are finished LaTeX."""

    name: str  # of its file and label
    caption: str
    columns: Sequence[Column]
    groups: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def height(self) -> int:
        return len(self.columns[0].cells)

    def floats(self, label: str) -> str:
        """The whole file but its head."""
        panels = self._panels()
        parts = self._parts(panels)
        return "\n".join(
            self._float(rows, panels, label if n == 0 else f"{label}-{n + 1}", (n + 1, len(parts)))
            for n, rows in enumerate(parts)
        )

    def _panels(self) -> list[list[Column]]:
        """The columns that are set beside each other, each time with the first one: in as few tables as possible, and
        these about equally wide."""
        made = [_broken(self._narrowed(limit), TEXT_PT) for limit in NAME_PTS]
        fewest = min(map(len, made))
        limit, panels = next((lim, p) for lim, p in zip(NAME_PTS, made, strict=True) if len(p) == fewest)
        width = TEXT_PT
        while len(panels) > 1 and len(closer := _broken(self._narrowed(limit), width - 8)) == fewest:
            panels, width = closer, width - 8
        return panels

    def _narrowed(self, limit: float) -> list[Column]:
        return [replace(c, limit=limit) if isinstance(c, Names) else c for c in self.columns]

    def _parts(self, panels: Sequence[Sequence[Column]]) -> list[list[int]]:
        """Rows of each float: groups stay together where they fit."""
        lines = [sum(_lines(panel, row) for panel in panels) for row in range(self.height)]
        starts = sorted({0, *(row for row, _ in self.groups)})
        groups = [list(range(a, b)) for a, b in zip(starts, [*starts[1:], self.height], strict=True)]
        parts: list[list[int]] = [[]]

        def full(rows: Sequence[int]) -> bool:
            return sum(lines[row] for row in rows) > MAX_LINES

        for group in groups:
            if parts[-1] and full([*parts[-1], *group]):
                parts.append([])
            for row in group:  # a group that is too long for one float
                if parts[-1] and full([*parts[-1], row]):
                    parts.append([])
                parts[-1].append(row)
        return parts

    def _float(
        self, rows: Sequence[int], panels: Sequence[Sequence[Column]], label: str, place: tuple[int, int]
    ) -> str:
        number_, of = place
        more = f" (part {number_} of {of})" if of > 1 else ""
        body = "\n\n\\medskip\n".join(self._tabular(rows, panel) for panel in panels)
        notes = "".join(f"\n\n\\smallskip\n\\parbox{{0.95\\linewidth}}{{\\footnotesize {n}}}" for n in self.notes)
        return (
            f"\\begin{{\\{FLOAT}}}[htbp]\n\\centering\n\\caption{{{self.caption}{more}}}\n\\label{{{label}}}\n"
            f"\\small\n{body}{notes if number_ == of else ''}\n\\end{{\\{FLOAT}}}\n"
        )

    def _tabular(self, rows: Sequence[int], columns: Sequence[Column]) -> str:
        heads = [column.head() for column in columns]
        lines = [self._head_line(columns, [first for first, _ in heads])]
        if any(second for _, second in heads):
            lines.append(self._head_line(columns, [second for _, second in heads]))
        bodies = [column.body(rows) for column in columns]
        total = sum(column.columns() for column in columns)
        named = dict(self.groups)
        body: list[str] = []
        shown = self._group_at(rows[0]) if rows else None
        for place, row in enumerate(rows):
            group = named.get(row) if row in named else (shown if place == 0 else None)
            if group is not None:
                body += [*(["\\addlinespace"] if place else []), _group_line(group, total, columns)]
            body.append(" & ".join(cells[place] for cells in bodies) + r" \\")
        spec = "".join(column.spec() for column in columns)
        return "\n".join(
            [
                f"\\begin{{tabular}}{{@{{}}{spec}@{{}}}}",
                "\\toprule",
                *lines,
                "\\midrule",
                *body,
                "\\bottomrule",
                "\\end{tabular}",
            ]
        )

    def _group_at(self, row: int) -> str | None:
        return next((name for start, name in reversed(self.groups) if start <= row), None)

    @staticmethod
    def _head_line(columns: Sequence[Column], texts: Sequence[str]) -> str:
        cells = []
        for column, text in zip(columns, texts, strict=True):
            if column.columns() > 1:
                cells.append(rf"\multicolumn{{{column.columns()}}}{{c}}{{{text}}}")
            elif isinstance(column, Values) and text:
                cells.append(rf"\multicolumn{{1}}{{c}}{{{text}}}")
            else:
                cells.append(text)
        return " & ".join(cells) + r" \\"


SHOWN = 8  # columns that fit a page


def declared(table: AnyTable, caption: str, most: int = SHOWN) -> Table:
    """A table that was declared once, for a paper: the columns that matter most."""
    filled = table.filled()
    ranked = sorted((column.rank, place) for place, (column, _) in enumerate(filled) if column.rank is not None)
    kept = {place for _, place in ranked[:most]}
    columns = [_declared(column, cells) for place, (column, cells) in enumerate(filled) if place in kept]
    return Table(table.name, escape(caption), columns, notes=tuple(map(escape, table.notes)))


def _declared(column: model.Column[Any], cells: Sequence[Cell]) -> Column:
    if column.quantity in _MEASURED:
        per, unit = unit_of(column.quantity, [number_of(cell.value) for cell in cells])
        return Values(column.title, unit, [value_of(column.quantity, cell, per) for cell in cells])
    if column.quantity.numeric:
        return Texts(column.title, [escape(column.whole(cell)) for cell in cells], right=True)
    if any(cell.depth for cell in cells):
        return Texts(column.title, [r"\quad " * cell.depth + escape(cell.text) for cell in cells])
    return Names(column.title, [cell.text for cell in cells])


_TIMES = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_MEASURED = (quantity.TIME, quantity.COUNT, quantity.PERCENT, quantity.KILOBYTES, quantity.PER_MESSAGE)


def number_of(value: float | str | None) -> float | None:
    return None if isinstance(value, str) else value


def unit_of(of: Quantity, values: Sequence[float | None]) -> tuple[float, str]:
    """By what to divide values of a quantity so that they can be read, and the name of that unit."""
    if of != quantity.TIME:
        return {quantity.KILOBYTES: (1024.0, "MiB"), quantity.PERCENT: (1.0, "%")}.get(of, (1.0, ""))
    sizes = sorted(abs(v) for v in values if v)
    if not sizes:
        return 1.0, "ns"
    usual, largest = sizes[len(sizes) // 2], sizes[-1]
    fitting = [(per, name) for name, per in _TIMES if usual >= per or largest >= 1e5 * per]
    return fitting[-1] if fitting else (1.0, "ns")


def value_of(of: Quantity, found: Median | Cell, per: float) -> Value:
    """In a unit of so many of the quantity's."""
    exact, value = of == quantity.COUNT, number_of(found.value)
    if value is None or found.low is None or found.high is None:
        return Value(None if value is None else value / per, exact=exact)
    return Value(value / per, found.low / per, found.high / per, exact=exact)


def _group_line(name: str, total: int, columns: Sequence[Column]) -> str:
    width = sum(column.width() for column in columns) - GAP_PT
    if LETTER_PT * len(name) <= width:
        return rf"\multicolumn{{{total}}}{{@{{}}l@{{}}}}{{\emph{{{escape(name)}}}}} \\"
    return rf"\multicolumn{{{total}}}{{@{{}}p{{{width:.0f}pt}}@{{}}}}{{\raggedright\emph{{{breakable(name)}}}}} \\"


def _broken(columns: Sequence[Column], width: float) -> list[list[Column]]:
    """Columns in panels of at most this width, each with the first one."""
    first, *others = columns
    panels: list[list[Column]] = [[first]]
    used = first.width()
    for column in others:
        if used + column.width() > width and len(panels[-1]) > 1:
            panels.append([first])
            used = first.width()
        panels[-1].append(column)
        used += column.width()
    return panels


def _lines(columns: Sequence[Column], row: int) -> int:
    return max((c.lines(row) for c in columns if isinstance(c, Names)), default=1)


def printed(latex: str) -> int:
    """About how many letters of a cell are printed."""
    text = re.sub(r"\\phantom\{([^}]*)\}", r"\1", latex)
    text = re.sub(r"\\[A-Za-z]+\{\}|\\(ensuremath|textbf|emph|mbox)\{\\?", "", text)
    text = re.sub(r"\\[A-Za-z]+", "x", text)
    return len(re.sub(r"\\.", "x", text).replace("{", "").replace("}", ""))
