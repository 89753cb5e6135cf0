"""Writes logs like performance_test 2.3: the same settings, columns, separators, units and digits.

Unmeasured values are an empty cell, or null, and not 0. With perflab's own accounting, numbers have all known digits,
and the variance of CSV is in ms², as the name of its column says.
"""

from __future__ import annotations

import json

from perflab.formats.performance_test import dialect
from perflab.formats.performance_test.dialect import Column, Log, Value


def csv_text(log: Log, name: str) -> str:
    """A whole file with this name."""
    header = dialect.HEADER_SEPARATOR.join(str(column.csv) for column in dialect.CSV_COLUMNS)
    rows = [
        dialect.ROW_SEPARATOR.join(_cell(c, getattr(row, c.member), log.accounting) for c in dialect.CSV_COLUMNS)
        for row in log.seconds
    ]
    lines = [*_settings(log, name), "", dialect.START, header, *rows]
    return "".join(f"{line}\n" for line in lines)


def json_text(log: Log, _: str) -> str:
    """The whole file, one line without a line end, like performance_test's."""
    known = {s.key: log.settings[s.key] for s in dialect.SETTINGS if s.key in log.settings}
    document: dict[str, object] = {k: v for k, v in known.items() if k not in dialect.NOT_IN_JSON}
    document |= {f"{dialect.EXTERNAL}{key}": value for key, value in log.external.items()}
    document[dialect.RESULTS] = [
        {str(c.json): _member(c, getattr(row, c.member)) for c in dialect.JSON_COLUMNS} for row in log.seconds
    ]
    return json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _settings(log: Log, name: str) -> list[str]:
    lines = []
    settings = {**log.settings, "logfile_name": name}
    for setting in dialect.SETTINGS:
        value = settings.get(setting.key)
        if value is not None and setting.csv and setting.key not in dialect.NOT_IN_CSV:
            lines.append(f"{setting.csv[0]}: {_plain(value)}")
        if setting.key == "dds_domain_id":
            parts = [(name, log.settings.get(key)) for name, key in dialect.QOS_PARTS.items()]
            known = [f"{name}: {part}" for name, part in parts if part is not None]
            lines += [f"{dialect.QOS}: {' '.join(known)}"] if known else []
    return [*lines, *(f"{key}: {value}" for key, value in log.external.items())]


def _plain(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _cell(column: Column, value: float | None, accounting: str | None) -> str:
    if value is None:
        return ""
    value *= dialect.variance_scale(column, accounting)
    if column.whole:
        return f"{value:.0f}"
    if column.digits == "fixed":
        return f"{value:.6f}"
    if accounting == dialect.CORRECTED:
        return f"{value:.9g}"
    return f"{value:.2f}" if column.digits == "share" else f"{value:.4g}"


def _member(column: Column, value: float | None) -> float | int | None:
    if value is None:
        return None
    value *= column.json_scale
    return round(value) if column.whole or column.json_scale != 1 else float(value)
