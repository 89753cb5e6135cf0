"""Reads irobot_benchmark's files. Every error names file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from perflab.errors import BadInput
from perflab.formats.irobot import dialect
from perflab.formats.irobot.dialect import Column, Event, Output, Sample
from perflab.statistics.irobot import Row, Total

Record = TypeVar("Record")
Value = TypeVar("Value", int, float)

MAX_COUNT = 2**63 - 1  # kinds of table entries
_NS = {"us": 1000, "ms": 1_000_000}

_RESULTS = (dialect.LATENCY_ALL, dialect.LATENCY_TOTAL, dialect.RESOURCES)
_TITLES = (dialect.SUBSCRIPTIONS, dialect.CLIENTS, dialect.PUBLISHERS)
_EVENT = re.compile(r"\s*(-?\d+)\s+(\S+)\s+(\d)\s+(\S.*)")
_EVENT_WITHOUT_GAP = re.compile(r"\s*(-?\d+)\s+(\S+)(\d) +(\S.*)")  # a caller as long as its column or longer


def find(path: Path) -> tuple[Path, ...] | None:
    """The output directories for a path: itself, or the *_log directories in it. None if it is neither.

    Raises BadInput if this is unknown.
    """
    try:
        if not path.is_dir():
            return None
        if _has_results(path):
            return (path,)
        inside = sorted(p for p in path.iterdir() if p.name.endswith(dialect.LOG_SUFFIX) and _has_results(p))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    return tuple(inside) or None


def parse(directory: Path) -> Output:
    """Parses a directory. Raises BadInput."""
    metadata = _metadata(directory / dialect.METADATA)
    latency = _sections(directory / dialect.LATENCY_ALL)
    total = _table(directory / dialect.LATENCY_TOTAL, dialect.TOTAL_COLUMNS)
    resources = _table(directory / dialect.RESOURCES, dialect.RESOURCE_COLUMNS)
    sections = latency or {}
    in_lines = [line.number_of(dialect.DURATION.name) for table in sections.values() for line in table.lines]
    tables = [table for table in (*sections.values(), total, resources) if table is not None]

    def rows(title: str) -> tuple[Row, ...]:
        return _records(Row, sections[title]) if title in sections else ()

    return Output(
        process=_process_name(directory, metadata),
        subscriptions=None if latency is None else rows(dialect.SUBSCRIPTIONS),
        clients=rows(dialect.CLIENTS),
        publishers=rows(dialect.PUBLISHERS),
        total=None if total is None else next(iter(_records(Total, total)), None),
        resources=None if resources is None else _records(Sample, resources),
        events=_events(directory / dialect.EVENTS),
        metadata=metadata,
        duration_s=max((d for d in in_lines if d is not None), default=None),
        legacy=any(table.legacy for table in tables),
    )


@dataclass(frozen=True)
class _Line:
    """The cells of a line by the current names of their columns."""

    path: Path
    number: int
    cells: Mapping[str, str]

    def cell(self, name: str) -> str:
        try:
            return self.cells[name]
        except KeyError:
            raise BadInput(f"{self.path} has no column {name}") from None

    def number_of(self, name: str) -> float | None:
        """A number; None if the column is missing, or has no number (nan, -nan)."""
        text = self.cells.get(name)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, f"{text!r}, which is not a number") from None
        return value if math.isfinite(value) else None

    def count(self, name: str) -> int:
        text = self.cell(name)
        try:
            count = int(text)  # exact beyond 2**53, which a wrapped lost may reach
        except ValueError:
            raise self._wrong(name, f"{text!r}, which is not a whole number") from None
        return self._within(name, count, text)

    def value(self, column: Column) -> str | float | None:
        """The value of a column for a record; NaN for missing times and numbers."""
        name = column.name
        match column.kind:
            case "text":
                return self.cell(name)
            case "count":
                return self.count(name)
            case "count_or_nan":
                return None if self.cells.get(name, "nan").lower().lstrip("-") == "nan" else self.count(name)
        number = self.number_of(name)
        match column.kind:
            case "kib":
                return None if number is None else int(self._within(name, number, f"{number:g}"))
            case "number_or_none":
                return number
            case "us" | "ms" if abs(number or 0) * _NS[column.kind] > MAX_COUNT:
                raise self._wrong(name, f"{self.cells[name]}, which is longer than 292 years")
            case "ms":
                return int(number or 0)
        return math.nan if number is None else number

    def _within(self, name: str, number: Value, text: str) -> Value:
        if not 0 <= number <= MAX_COUNT:
            raise self._wrong(name, f"{text}, which is not within 0..{MAX_COUNT}")
        return number

    def _wrong(self, name: str, text: str) -> BadInput:
        return BadInput(f"{self.path}:{self.number}: {name} is {text}")


@dataclass(frozen=True)
class _Table:
    columns: Sequence[Column]
    lines: tuple[_Line, ...]
    legacy: bool


def _records(record: Callable[..., Record], table: _Table) -> tuple[Record, ...]:
    return tuple(record(**{column.field: line.value(column) for column in table.columns}) for line in table.lines)


def _has_results(directory: Path) -> bool:
    return directory.is_dir() and any((directory / name).is_file() for name in _RESULTS)


def _process_name(directory: Path, metadata: Mapping[str, str]) -> str:
    name = directory.resolve().name
    if name.endswith(dialect.LOG_SUFFIX):
        return name.removesuffix(dialect.LOG_SUFFIX)
    topologies = metadata.get("topology_json_list", "").split()
    return Path(topologies[0]).stem if len(topologies) == 1 else name


def _text(path: Path) -> list[str] | None:
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise BadInput(f"{path} is not a file, as irobot_benchmark would write")
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text") from None


def _metadata(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in _text(path) or ())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _sections(path: Path) -> dict[str, _Table] | None:
    """The tables of latency_all.txt by title; the older dialect only has subscriptions, without a title."""
    lines = _text(path)
    if lines is None:
        return None
    parts: dict[str, list[tuple[int, str]]] = {}
    title = dialect.SUBSCRIPTIONS
    for number, line in enumerate(lines, start=1):
        if line.strip() in _TITLES:
            title = line.strip()
        elif line.strip():
            parts.setdefault(title, []).append((number, line))
    columns = (*dialect.LATENCY_COLUMNS, dialect.THROUGHPUT)
    return {title: _parse_table(path, part, columns) for title, part in parts.items()}


def _table(path: Path, columns: Sequence[Column]) -> _Table | None:
    lines = _text(path)
    if lines is None:
        return None
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    return _parse_table(path, filled, columns)


def _parse_table(path: Path, lines: Sequence[tuple[int, str]], columns: Sequence[Column]) -> _Table:
    """A header and the lines below it."""
    if not lines:
        return _Table(columns, (), legacy=False)
    number, header = lines[0]
    csv = "," in header
    names = _cells(header, csv)
    known = [dialect.current_name(name) for name in names]
    if columns[0].name not in known:
        raise BadInput(f"{path}:{number}: not a table of irobot_benchmark: no column {columns[0].name}")
    parsed = []
    for line_number, line in lines[1:]:
        cells: list[str] | None = _cells(line, csv)
        if cells is not None and len(cells) != len(known):
            cells = None if csv else _by_width(line, [c.width for c in columns], known)
        if cells is None:
            raise BadInput(f"{path}:{line_number}: the columns cannot be separated; there should be {len(known)}")
        parsed.append(_Line(path, line_number, dict(zip(known, cells, strict=True))))
    return _Table(columns, tuple(parsed), legacy=any("[" in name for name in names))


def _cells(line: str, csv: bool) -> list[str]:
    if not csv:
        return line.split()
    cells = [cell.strip() for cell in line.split(",")]
    return cells[:-1] if cells and not cells[-1] else cells


def _by_width(line: str, widths: Sequence[int], names: Sequence[str]) -> list[str] | None:
    """The cells of a line of text in which one is so long that it touches the next; None if this is ambiguous.

    All cells are padded to their widths, so the excess length of the line belongs to the one cell that fills its
    column.
    """
    if len(widths) != len(names):
        return None
    extra = len(line) - sum(widths)
    cells: list[str] = []
    at = 0
    for width in widths:
        cell = line[at : at + width]
        at += width
        if cell.strip() and not cell.endswith(" ") and extra > 0 and len(cells) + 1 < len(widths):
            cell += line[at : at + extra]
            at += extra
            extra = 0
        cells.append(cell.strip())
    return cells if at >= len(line) and all(cells) and not any(" " in cell for cell in cells) else None


def _events(path: Path) -> tuple[Event, ...] | None:
    lines = _text(path)
    if lines is None:
        return None
    if not lines:
        return ()
    split: Callable[[str], Sequence[str] | None] = _split_csv_event if "," in lines[0] else _split_event
    events = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = split(line)
        if cells is None:
            raise BadInput(f"{path}:{number}: not an event; expected a time, a caller, a code and a description")
        if abs(int(cells[0])) * 1_000_000 > MAX_COUNT:
            raise BadInput(f"{path}:{number}: the time is {cells[0]}, which is longer than 292 years")
        events.append(Event(int(cells[0]), cells[1], int(cells[2]), cells[3].strip()))
    return tuple(events)


def _split_event(line: str) -> Sequence[str] | None:
    match = _EVENT.fullmatch(line) or _EVENT_WITHOUT_GAP.fullmatch(line)
    return match.groups() if match else None


def _split_csv_event(line: str) -> Sequence[str] | None:
    cells = [cell.strip() for cell in line.split(",", 3)]
    return cells if len(cells) == 4 and cells[0].lstrip("-").isdigit() and cells[2].isdigit() else None
