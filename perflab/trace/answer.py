"""What an analysis of a trace says: tables, why something in them is missing, and how good the data were.

    Answer(kind="callbacks", sections=(Section(CALLBACKS, frame),), quality=quality.lines("callbacks"))

A value that is not known is null, never 0, and `Section.reasons` or a note says why. Handles are text,
"0x55d0c8a1b2f0": JSON has no 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perflab.trace.columns import Column, Rows, Table, holds

if TYPE_CHECKING:
    import polars as pl
else:
    from perflab.late_modules import polars as pl

SCHEMA_VERSION = 1

_RESERVED = ("schema_version", "kind", "quality", "warnings", "scope")


@dataclass(frozen=True)
class Section:
    """One table of an answer: one row per thing, one value per column."""

    table: Table
    content: pl.DataFrame | Rows  # a frame with the columns of the table, or what `Table.plain` made
    notes: tuple[str, ...] = ()  # one sentence each: coverage, what was left out
    because: Mapping[str, str] = field(default_factory=dict)  # why a column is null, where this answer knows better
    hidden: Collection[str] = ()  # columns that tell a terminal nothing here

    def __post_init__(self) -> None:
        if self.name in _RESERVED:
            raise ValueError(f"a section cannot be called {self.name!r}")
        if not isinstance(self.content, list):
            self._check(self.frame)
        if unknown := [name for name in (*self.because, *self.hidden) if name not in self.table.of]:
            raise ValueError(f"section {self.name} has no column {unknown[0]!r}")

    def _check(self, frame: pl.DataFrame) -> None:
        if tuple(frame.columns) != self.table.names:
            raise ValueError(f"section {self.name} has columns {frame.columns}, not {list(self.table.names)}")
        for column, dtype in zip(self.table.columns, frame.dtypes, strict=True):
            if not holds(column, dtype):
                raise ValueError(f"section {self.name}: column {column.name} is {dtype}, not {column.kind}")

    @cached_property
    def frame(self) -> pl.DataFrame:
        return self.table.frame(self.content) if isinstance(self.content, list) else self.content

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """By the names of the columns."""
        if isinstance(self.content, list):
            return [dict(zip(self.table.names, row, strict=True)) for row in self.content]
        return self.frame.to_dicts()

    def head(self, rows: int, note: str) -> Section:
        """The first rows of it, and that note."""
        content = self.content[:rows] if isinstance(self.content, list) else self.frame.head(rows)
        return replace(self, content=content, notes=(*self.notes, note))

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def title(self) -> str:
        return self.table.title

    @property
    def reasons(self) -> dict[str, str]:
        """Column -> why it is null, where it is."""
        return {column.name: column.empty for column in self.table.columns if column.empty} | dict(self.because)

    @property
    def shown(self) -> list[Column]:
        """The columns of a terminal from left to right."""
        return [self.table.of[name] for name in self.table.shown or self.table.names if name not in self.hidden]

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.rows]
        return {"rows": rows, "notes": list(self.notes), "reasons": self.reasons}


@dataclass(frozen=True)
class Answer:
    """All that one question to a trace gave."""

    kind: str  # "callbacks", "messages", ...
    sections: tuple[Section, ...]
    quality: tuple[str, ...] = ()  # what of the data's quality matters for this answer, one sentence each
    warnings: tuple[str, ...] = ()  # what to know before a figure is believed: poor coverage; one sentence each
    scope: str = ""  # what of the trace the answer is about, where that is not all of it

    def __post_init__(self) -> None:
        names = [section.name for section in self.sections]
        if len(set(names)) != len(names):
            raise ValueError(f"answer {self.kind} has two sections of one name: {names}")

    def section(self, name: str) -> Section:
        """Raises KeyError where there is none."""
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def document(self) -> dict[str, Any]:
        """The answer as JSON: {"schema_version", "kind", "quality", "warnings", "scope", "<section>": {...}, ...}; a
        section has "rows", "notes" and "reasons".
        """
        head = {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "quality": list(self.quality),
            "warnings": list(self.warnings),
            "scope": self.scope or None,
        }
        return head | {section.name: section.document() for section in self.sections}


def notes_of(*told: tuple[object, str]) -> tuple[str, ...]:
    """The sentences whose condition is true."""
    return tuple(sentence for condition, sentence in told if condition)


def _plain(value: Any) -> Any:
    """JSON knows neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
