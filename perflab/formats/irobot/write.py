"""Writing irobot_benchmark's files as that program does: the same columns, widths, blanks and digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from perflab.formats.irobot import dialect
from perflab.formats.irobot.dialect import Column
from perflab.formats.irobot.model import Output
from perflab.statistics.irobot import Row, Total, round_half_up

_DIGITS = 6  # of a C++ stream
_LEGACY_SHARE_DIGITS = 4
_CPU_DIGITS = 2
_CELL = 9  # what a narrow column holds beside its blank


def write(output: Output, directory: Path, *, legacy: bool, csv: bool, whole_us: bool) -> list[str]:
    """Writes one process into a directory that exists; returns the names of the files.

    `whole_us` rounds times to microseconds and CPU to two digits, as the original does. A file whose content was not
    measured is left out. Raises OSError.
    """
    files: dict[str, str] = {}
    if output.subscriptions is not None:
        files[dialect.LATENCY_ALL] = _latency_all(output, legacy, csv, whole_us)
    if output.total is not None:
        files[dialect.LATENCY_TOTAL] = total_table(output.total, legacy=legacy, csv=csv, whole_us=whole_us)
    if output.resources is not None:
        files[dialect.RESOURCES] = _resources(output, legacy, csv, whole_us)
    if output.events is not None:
        files[dialect.EVENTS] = _events(output, legacy, csv)
    if output.metadata:
        files[dialect.METADATA] = "".join(f"{k}: {v}\n" for k, v in output.metadata.items()) + "\n"
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return list(files)


def total_table(total: Total, *, legacy: bool, csv: bool, whole_us: bool) -> str:
    """latency_total.txt; the original prints the total of all processes the same way."""
    digits = _LEGACY_SHARE_DIGITS if legacy else _DIGITS
    values = (
        str(total.received),
        _time(total.mean_us, whole_us),
        str(total.late),
        _general(total.late_percent, digits),
        str(total.too_late),
        _general(total.too_late_percent, digits),
        _count(total.lost),
        _general(total.lost_percent, digits),
    )
    return _table(dialect.TOTAL_COLUMNS, [values], legacy, csv)


def _latency_all(output: Output, legacy: bool, csv: bool, whole_us: bool) -> str:
    if legacy:
        columns = (*dialect.LATENCY_COLUMNS, dialect.DURATION)
        duration = str(round(output.duration_s)) if output.duration_s is not None else "nan"
        return _table(columns, [(*_cells(row, whole_us), duration) for row in output.subscriptions or ()], True, csv)
    columns = (*dialect.LATENCY_COLUMNS, dialect.THROUGHPUT)
    text = ""
    for title, rows in (
        (dialect.SUBSCRIPTIONS, output.subscriptions or ()),
        (dialect.CLIENTS, output.clients),
        (dialect.PUBLISHERS, output.publishers),
    ):
        if rows:  # a section without lines is left out
            lines = [(*_cells(row, whole_us), _general(row.throughput_kib_s, _DIGITS)) for row in rows]
            text += f"\n{title}\n" + _table(columns, lines, False, csv)
    return text


def _cells(row: Row, whole_us: bool) -> tuple[str, ...]:
    times = (row.mean_us, row.sd_us, row.min_us, row.max_us)
    return (
        row.node,
        row.topic,
        str(row.size_bytes),
        str(row.received),
        str(row.late),
        str(row.too_late),
        _count(row.lost),
        *(_time(us, whole_us) for us in times),
        _general(row.frequency_hz, _DIGITS),
    )


def _resources(output: Output, legacy: bool, csv: bool, whole_us: bool) -> str:
    digits = _CPU_DIGITS if whole_us and not csv else _DIGITS
    lines = [
        (
            str(sample.time_ms),
            _general(math.nan if sample.cpu_percent is None else sample.cpu_percent, digits),
            *(_count(kb) for kb in (sample.arena_kb, sample.in_use_kb, sample.mmap_kb, sample.rss_kb, sample.vsz_kb)),
        )
        for sample in output.resources or ()
    ]
    return _table(dialect.RESOURCE_COLUMNS, lines, legacy, csv)


def _events(output: Output, legacy: bool, csv: bool) -> str:
    lines = [(str(e.time_ms), e.caller, str(e.code), e.description) for e in output.events or ()]
    return _table(dialect.EVENT_COLUMNS, lines, legacy, csv)


def _table(columns: Sequence[Column], lines: Iterable[Sequence[str]], legacy: bool, csv: bool) -> str:
    names = [column.legacy if legacy else column.name for column in columns]
    if csv:
        return "".join(",".join(cells) + "\n" for cells in (names, *lines))
    pad: Callable[[str, Column], str] = lambda cell, column: cell.ljust(column.width)  # noqa: E731
    return "".join("".join(map(pad, cells, columns)) + "\n" for cells in (names, *lines))


def _count(value: int | None) -> str:
    return "nan" if value is None else str(value)


def _general(value: float, digits: int) -> str:
    """A number as a C++ stream prints it."""
    return f"{value:.{digits}g}"


def _time(us: float, whole: bool) -> str:
    """A time as the original prints it, or with as many decimals up to nanoseconds as the column has room for."""
    if math.isnan(us):
        return "nan"
    if whole:
        return _general(round_half_up(us), _DIGITS)
    decimals = max(0, min(3, _CELL - 1 - len(str(int(us)))))
    return f"{us:.{decimals}f}"
