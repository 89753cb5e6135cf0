"""Writes irobot_benchmark's files like that program: the same columns, widths, spaces and digits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.formats.irobot import dialect
from perflab.formats.irobot.dialect import Column, Output
from perflab.statistics.irobot import Row, Total, round_half_up

_DIGITS = 6  # of a C++ stream
_LEGACY_SHARE_DIGITS = 4
_CPU_DIGITS = 2
_CELL = 9  # width of a narrow column without its space


@dataclass(frozen=True)
class _Style:
    legacy: bool
    csv: bool
    whole_us: bool

    def cell(self, column: Column, value: str | float | None, digits: int) -> str:
        match column.kind:
            case "us" if value is not None:
                return _time(float(value), self.whole_us)
            case "number" | "number_or_none":
                return f"{math.nan if value is None else float(value):.{digits}g}"  # as printed by a C++ stream
        return "nan" if value is None else str(value)

    def table(self, columns: Sequence[Column], records: Iterable[object], digits: int = _DIGITS) -> str:
        """With a line for each record; shares and other numbers with these digits."""
        names = [column.legacy if self.legacy else column.name for column in columns]
        lines = [[self.cell(c, getattr(record, c.field), digits) for c in columns] for record in records]
        if self.csv:
            return "".join(",".join(cells) + "\n" for cells in (names, *lines))
        padded = [[cell.ljust(c.width) for cell, c in zip(cells, columns, strict=True)] for cells in (names, *lines)]
        return "".join("".join(cells) + "\n" for cells in padded)


@dataclass(frozen=True)
class _LegacyRow(Row):
    duration_s: float | None


def write(output: Output, directory: Path, *, legacy: bool, csv: bool, whole_us: bool) -> list[str]:
    """Writes one process into an existing directory; returns the names of the files.

    `whole_us` rounds times to microseconds and CPU to two digits, as the original does. A file whose content was not
    measured is left out. Raises OSError.
    """
    style = _Style(legacy, csv, whole_us)
    files: dict[str, str] = {}
    if output.subscriptions is not None:
        files[dialect.LATENCY_ALL] = _latency_all(output, style)
    if output.total is not None:
        files[dialect.LATENCY_TOTAL] = total_table(output.total, legacy=legacy, csv=csv, whole_us=whole_us)
    if output.resources is not None:
        digits = _CPU_DIGITS if whole_us and not csv else _DIGITS
        files[dialect.RESOURCES] = style.table(dialect.RESOURCE_COLUMNS, output.resources, digits)
    if output.events is not None:
        files[dialect.EVENTS] = style.table(dialect.EVENT_COLUMNS, output.events)
    if output.metadata:
        files[dialect.METADATA] = "".join(f"{k}: {v}\n" for k, v in output.metadata.items()) + "\n"
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return list(files)


def total_table(total: Total, *, legacy: bool, csv: bool, whole_us: bool) -> str:
    """latency_total.txt; the original prints the total of all processes in the same format."""
    digits = _LEGACY_SHARE_DIGITS if legacy else _DIGITS
    return _Style(legacy, csv, whole_us).table(dialect.TOTAL_COLUMNS, [total], digits)


def _latency_all(output: Output, style: _Style) -> str:
    if style.legacy:
        duration_s = None if output.duration_s is None else round(output.duration_s)
        rows = [_LegacyRow(**vars(row), duration_s=duration_s) for row in output.subscriptions or ()]
        return style.table((*dialect.LATENCY_COLUMNS, dialect.DURATION), rows)
    text = ""
    for title, of_title in (
        (dialect.SUBSCRIPTIONS, output.subscriptions or ()),
        (dialect.CLIENTS, output.clients),
        (dialect.PUBLISHERS, output.publishers),
    ):
        if of_title:  # a section without lines is left out
            text += f"\n{title}\n{style.table((*dialect.LATENCY_COLUMNS, dialect.THROUGHPUT), of_title)}"
    return text


def _time(us: float, whole: bool) -> str:
    """A time as the original prints it, or with as many decimals up to nanoseconds as fit into the column."""
    if math.isnan(us):
        return "nan"
    if whole:
        return f"{round_half_up(us):.{_DIGITS}g}"
    decimals = max(0, min(3, _CELL - 1 - len(str(int(us)))))
    return f"{us:.{decimals}f}"
