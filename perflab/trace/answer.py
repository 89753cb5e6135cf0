"""What an analysis of a trace says: tables, why something in them is missing, and how good the data were.

    Answer(kind="callbacks", sections=(Section("callbacks", "Callbacks", frame),), quality=quality.lines("callbacks"))

A value that is not known is null, never 0, and `Section.reasons` or a note says why. Times are nanoseconds; names of
columns end in their unit (`_ns`, `_percent`, `_hz`, `_bytes`). Handles are text, "0x55d0c8a1b2f0": JSON has no 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1

_RESERVED = ("schema_version", "kind", "quality", "warnings", "scope")


@dataclass(frozen=True)
class Section:
    """One table of an answer: one row per thing, one value per column."""

    name: str  # snake_case: key in the JSON, file name of an export
    title: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()  # one sentence each: coverage, what was left out
    reasons: Mapping[str, str] = field(default_factory=dict)  # column -> why it is null, where it is
    # Columns of the table in a terminal from left to right; empty: all of them. JSON and exports always have all.
    shown: tuple[str, ...] = ()
    # Columns that a narrow terminal leaves out, the first of them first; then those of `shown` from the right.
    spare: tuple[str, ...] = ()
    vertical: bool = False  # a terminal writes each row as lines "column  value"; for tables of one row

    def __post_init__(self) -> None:
        if self.name in _RESERVED:
            raise ValueError(f"a section cannot be called {self.name!r}")
        unknown = [c for c in (*self.reasons, *self.shown, *self.spare) if c not in self.frame.columns]
        if unknown:
            raise ValueError(f"section {self.name} has no column {unknown[0]!r}")

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.frame.iter_rows(named=True)]
        return {"rows": rows, "notes": list(self.notes), "reasons": dict(self.reasons)}


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


def _plain(value: Any) -> Any:
    """JSON knows neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
