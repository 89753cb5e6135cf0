"""A table as LaTeX that needs only booktabs.

A table that is too wide becomes several tables below each other, with the names of the rows repeated; one that is too
long becomes several floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import AnyTable, Cell, Column
from perflab.quantity import NUMBER, Quantity, ends
from perflab.report.latex.text import aligned, breakable, decimals, decimals_of, escape, number

TEXT_PT = 468.0  # width of the text that a table may fill: A4 with margins of 2.2 cm
LETTER_PT = 4.1  # of an average letter or digit of \small
GAP_PT = 12.0  # between columns: twice \tabcolsep
# Widths of a column of names from which its entries are wrapped: the first one that needs the fewest tables below each
# other.
NAME_PTS = (150.0, 120.0, 95.0)
MAX_LINES = 36  # limit for one float

# Environments that a paper may want instead: `\newcommand{\perflabfloat}{table*}` before a file is read.
FLOAT = "perflabfloat"


@dataclass(frozen=True)
class Value:
    """A number with its interval, in a given unit."""

    value: float | None
    low: float | None = None
    high: float | None = None
    quantity: Quantity = NUMBER
    excluded: float | None = None

    @property
    def places(self) -> int:
        if self.value is None:
            return 0
        shown = [v for v in (self.value, self.low, self.high) if v is not None]
        if self.quantity.exact:
            return min(2, max(map(own_decimals, shown)))
        if self.low is not None and self.low == self.high:
            return decimals(self.value)
        places = decimals(self.value, self.low, self.high)
        if self.low is not None and 0 < self.low < 1:  # must not be printed as 0
            places = max(places, decimals_of(self.low, 1))
        return max(places, self.quantity.decimals) if abs(self.value) < 9.995 else places

    def texts(self) -> tuple[str, str]:
        """The number and its interval."""
        if self.value is None:
            return "--", ""
        if self.low is None or self.high is None:
            return self.of(self.value), ""
        first, last = ends(self.low, self.high, self.excluded, self.of)
        between = f"[{first}, {last}]".replace(">", "$>$").replace("<", "$<$")
        return self.of(self.value), between

    def of(self, value: float) -> str:
        """Another value with the same decimals."""
        return ("+" if self.quantity.signed and value > 0 else "") + number(value, self.places)


def own_decimals(value: float) -> int:
    """The number of decimals, at most 6."""
    return len(f"{value:.6f}".rstrip("0").partition(".")[2])


def values_of(cells: Sequence[Cell], quantity: Quantity) -> tuple[list[Value], str]:
    """Cells in one unit, and its name; cells with their own quantity have their own units."""
    numbers = [None if isinstance(cell.value, str) else cell.value for cell in cells]
    per, unit = quantity.scale(numbers)
    found = []
    for cell, value in zip(cells, numbers, strict=True):
        by = per if cell.quantity is None else cell.quantity.scale([value])[0]
        scaled, low, high = (None if end is None else end / by for end in (value, cell.low, cell.high))
        excluded = None if cell.excluded is None else cell.excluded / by
        found.append(Value(scaled, low, high, cell.quantity or quantity, excluded))
    return found, unit


@dataclass(frozen=True)
class _Set:
    """A column as typeset."""

    head: tuple[str, str]  # and its unit
    cells: Sequence[str]  # complete LaTeX; intervals, if any, have their own column
    spec: str
    width: float
    lines: Sequence[int]  # of each cell
    span: int = 1
    once: bool = False

    def body(self, rows: Sequence[int], begins: set[int]) -> list[str]:
        """Cells that repeat the row above are left empty, except in the first row and in those that begin a group."""
        if not self.once:
            return [self.cells[row] for row in rows]
        return [
            self.cells[row] if row == rows[0] or row in begins or self.cells[row] != self.cells[row - 1] else ""
            for row in rows
        ]


def _set(column: Column[Any], cells: Sequence[Cell], limit: float, *, fills: bool = False) -> _Set:
    """Words are wrapped if they are wider than `limit`, and if they fill a line."""
    if column.quantity.scales:
        return _numbers(column, cells)
    if column.quantity.numeric or any(cell.depth for cell in cells):
        texts = [r"\quad " * cell.depth + escape(column.whole(cell)) for cell in cells]
        width = LETTER_PT * max(len(column.title), *map(printed, texts)) + GAP_PT
        spec = "r" if column.quantity.numeric else "l"
        return _Set((escape(column.title), ""), texts, spec, width, [1] * len(cells), once=column.once)
    longest = LETTER_PT * max(len(cell.text) for cell in cells)
    wide = max(longest, LETTER_PT * len(column.title))
    broken = fills or longest > limit
    texts = [_word(cell, broken=broken) for cell in cells]
    # A long word may leave a part of a line empty.
    needed = [LETTER_PT * len(cell.text) for cell in cells]
    lines = [1 if points <= limit else math.ceil(1.15 * points / limit) for points in needed]
    if column.once:
        lines = [1 if i and cell == cells[i - 1] else lines[i] for i, cell in enumerate(cells)]
    spec = f"p{{{limit:.0f}pt}}" if broken else "l"
    return _Set((escape(column.title), ""), texts, spec, min(limit, wide) + GAP_PT, lines, once=column.once)


def _word(cell: Cell, *, broken: bool) -> str:
    text = rf"\raggedright\hspace{{0pt}}{breakable(cell.text)}" if broken else escape(cell.text)
    return rf"\textbf{{{text}}}" if cell.tone == "strong" else text


def _numbers(column: Column[Any], cells: Sequence[Cell]) -> _Set:
    """Aligned at the decimal points."""
    values, unit = values_of(cells, column.quantity)
    texts, intervals = zip(*(value.texts() for value in values), strict=True)
    numbers = aligned([(text, value.places) for text, value in zip(texts, values, strict=True)])
    span = 2 if any(intervals) else 1
    own = max(map(printed, texts)) + max(map(printed, intervals)) + span - 1
    made = [f"{n} & {between}" for n, between in zip(numbers, intervals, strict=True)] if span == 2 else numbers
    second = f"({escape(unit)})" if unit else ""
    heads = [rf"\multicolumn{{{span}}}{{c}}{{{text}}}" if text else "" for text in (escape(column.title), second)]
    width = LETTER_PT * max(own, len(column.title), len(unit) + 2) + GAP_PT
    spec = "r@{~}l" if span == 2 else "r"
    return _Set((heads[0], heads[1] or "&" * (span - 1)), made, spec, width, [1] * len(cells), span, column.once)


@dataclass(frozen=True)
class Table:
    """A declared table, for a paper: the `most` most important columns. `said` is its caption in plain words."""

    declared: AnyTable
    said: str
    most: int | None = None

    @property
    def name(self) -> str:
        """Name of its file."""
        return self.declared.name

    @property
    def caption(self) -> str:
        return escape(self.said)

    def floats(self, label: str) -> str:
        """The whole file but its head."""
        panels = self._panels()
        begins = self._begins()
        parts = self._parts(panels, sorted(begins))
        notes = "".join(
            f"\n\n\\smallskip\n\\parbox{{0.95\\linewidth}}{{\\footnotesize {escape(note)}}}"
            for note in self.declared.notes
        )
        made = []
        for part, rows in enumerate(parts, start=1):
            body = "\n\n\\medskip\n".join(_tabular(rows, panel, begins) for panel in panels)
            more = f" (part {part} of {len(parts)})" if len(parts) > 1 else ""
            made.append(
                f"\\begin{{\\{FLOAT}}}[htbp]\n\\centering\n\\caption{{{self.caption}{more}}}\n"
                f"\\label{{{label if part == 1 else f'{label}-{part}'}}}\n"
                f"\\small\n{body}{notes if part == len(parts) else ''}\n\\end{{\\{FLOAT}}}\n"
            )
        return "\n".join(made)

    def _begins(self) -> dict[int, str]:
        """The rows that begin a group, with its name; the first one always does."""
        of, rows = self.declared.grouped, self.declared.rows
        names = [of(row) if of is not None else "" for row in rows]
        return {i: name for i, name in enumerate(names) if i == 0 or name != names[i - 1]}

    def _panels(self) -> list[list[_Set]]:
        """The columns of each of the tables side by side, all with the first column: as few tables as possible, about
        equally wide."""
        filled = self.declared.filled()
        ranked = sorted((column.rank, place) for place, (column, _) in enumerate(filled) if column.rank is not None)
        kept = sorted(place for _, place in ranked[: self.most])
        columns = [filled[place] for place in kept]

        def made(limit: float) -> list[_Set]:
            sets = [_set(column, cells, limit) for column, cells in columns]
            if any(column.quantity.numeric for column, _ in columns):
                return sets
            rest = TEXT_PT - sum(one.width for one in sets[:-1])  # only words: the last column fills the line
            return [*sets[:-1], _set(*columns[-1], rest - GAP_PT, fills=True)]

        broken = [_broken(made(limit), TEXT_PT) for limit in NAME_PTS]
        fewest = min(map(len, broken))
        limit, panels = next((lim, p) for lim, p in zip(NAME_PTS, broken, strict=True) if len(p) == fewest)
        width = TEXT_PT
        while len(panels) > 1 and len(closer := _broken(made(limit), width - 8)) == fewest:
            panels, width = closer, width - 8
        return panels

    def _parts(self, panels: Sequence[Sequence[_Set]], starts: Sequence[int]) -> list[list[int]]:
        """Rows of each float: groups stay together if they fit."""
        height = len(self.declared.rows)
        lines = [sum(max(one.lines[row] for one in panel) for panel in panels) for row in range(height)]
        parts: list[list[int]] = [[]]

        def full(rows: Sequence[int]) -> bool:
            return sum(lines[row] for row in rows) > MAX_LINES

        for start, end in zip(starts, [*starts[1:], height], strict=True):
            if parts[-1] and full([*parts[-1], *range(start, end)]):
                parts.append([])
            for row in range(start, end):  # a group that is too long for one float
                if parts[-1] and full([*parts[-1], row]):
                    parts.append([])
                parts[-1].append(row)
        return parts


def _tabular(rows: Sequence[int], columns: Sequence[_Set], begins: dict[int, str]) -> str:
    heads = [" & ".join(line) + r" \\" for line in zip(*(column.head for column in columns), strict=True)]
    bodies = [column.body(rows, set(begins)) for column in columns]
    end = r" \tabularnewline" if columns[-1].spec.startswith("p") else r" \\"  # \raggedright redefines \\
    body: list[str] = []
    for place, row in enumerate(rows):
        group = next(begins[start] for start in sorted(begins, reverse=True) if start <= row)
        if group and (place == 0 or row in begins):
            body += [*([r"\addlinespace"] if place else []), _group_line(group, columns)]
        body.append(" & ".join(cells[place] for cells in bodies) + end)
    return "\n".join(
        [
            f"\\begin{{tabular}}{{@{{}}{''.join(column.spec for column in columns)}@{{}}}}",
            "\\toprule",
            heads[0],
            *([heads[1]] if any(column.head[1].strip("&") for column in columns) else []),
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
        ]
    )


def _group_line(name: str, columns: Sequence[_Set]) -> str:
    width = sum(column.width for column in columns) - GAP_PT
    total = sum(column.span for column in columns)
    if LETTER_PT * len(name) <= width:
        return rf"\multicolumn{{{total}}}{{@{{}}l@{{}}}}{{\emph{{{escape(name)}}}}} \\"
    return rf"\multicolumn{{{total}}}{{@{{}}p{{{width:.0f}pt}}@{{}}}}{{\raggedright\emph{{{breakable(name)}}}}} \\"


def _broken(columns: Sequence[_Set], width: float) -> list[list[_Set]]:
    """Columns in panels of at most this width, each with the first one."""
    first, *others = columns
    panels: list[list[_Set]] = [[first]]
    used = first.width
    for column in others:
        if used + column.width > width and len(panels[-1]) > 1:
            panels.append([first])
            used = first.width
        panels[-1].append(column)
        used += column.width
    return panels


def printed(latex: str) -> int:
    """Approximate number of printed letters of a cell."""
    text = re.sub(r"\\phantom\{([^}]*)\}", r"\1", latex)
    text = re.sub(r"\\[A-Za-z]+\{\}|\\(ensuremath|textbf|emph|mbox)\{\\?", "", text)
    text = re.sub(r"\\[A-Za-z]+", "x", text)
    return len(re.sub(r"\\.", "x", text).replace("{", "").replace("}", ""))
