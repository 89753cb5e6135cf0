"""Reads performance_test's logs. Every error names the file, the place in it, and what would be right."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import BadInput
from perflab.formats.performance_test import dialect
from perflab.formats.performance_test.dialect import Column, Log, Second, Setting, Value

MAX_COUNT = 2**63 - 1
_HEAD = 1 << 16  # bytes that identify a file
_LONGEST_S = MAX_COUNT / 1e9

# Without CPU times: in 2018 their microseconds were multiplied instead of divided by 1e6.
_TIMES = ("experiment_s", "loop_s", "latency_min_s", "latency_max_s", "latency_mean_s")

_HEADER = re.compile(r"^(T_experiment|received),\s")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_NONE = re.compile(r"[+-]?(nan|inf|infinity)(\(.*\))?", re.IGNORECASE)
_GLUED = re.compile(r"(\d+)([^\d\s].*)")  # the settings end without a newline, and so touch what follows
_QOS = re.compile("|".join(map(re.escape, dialect.QOS_PARTS)))


def find(path: Path) -> tuple[Path, ...] | None:
    """The logs for a path: a file, those in a directory, or those in the directories of one. None if it is none of
    these.

    Raises BadInput if this is unknown.
    """
    try:
        if path.is_file():
            return (path,) if _is_log(path) else None
        if not path.is_dir():
            return None
        inside = _inside(path) or [
            log for folder in sorted(path.iterdir()) if folder.is_dir() for log in _inside(folder)
        ]
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    return tuple(inside) or None


def _inside(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and _is_log(p, strict=True))


def _is_log(path: Path, *, strict: bool = False) -> bool:
    """By its beginning, because names of 2018 have no suffix. Unless `strict`, a named CSV file is assumed to be one,
    to get a precise error."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.lstrip()[:1] == b"{":
        return f'"{dialect.RESULTS}"'.encode() in head
    marked = dialect.START.encode() in head or bool(re.search(_HEADER.pattern.encode(), head, re.MULTILINE))
    return marked or (not strict and (path.suffix == ".csv" or (path.suffix == ".json" and not head)))


def parse(path: Path) -> Log:
    """Parses a file. Raises BadInput."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: is not text; a log of performance_test is") from None
    if not text.strip():
        raise BadInput(f"{path} is empty; performance_test writes JSON when it ends, and CSV from its start on")
    return _json(path, text) if text.lstrip().startswith("{") else _csv(path, text)


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv(path: Path, text: str) -> Log:
    lines = text.split("\n")
    cut = lines.pop() != ""  # each line had this suffix
    at = next((n for n, line in enumerate(lines) if line.strip() == dialect.START), None)
    begin = next((n for n, line in enumerate(lines) if _HEADER.match(line)), None) if at is None else at + 1
    if begin is None:
        raise BadInput(f"{path}: no line {dialect.START} with a table below it, as performance_test would write")
    settings, external = _settings(path, lines[:begin])
    rows = [(n, line) for n, line in enumerate(lines[begin:], start=begin + 1) if line.strip()]
    if not rows:
        raise BadInput(f"{path}:{begin + 1}: no header; there should be T_experiment,\\tT_loop,\\t...")
    number, header = rows[0]
    columns, older = _header(path, number, header)
    own = dialect.CORRECTED if external.get(dialect.ACCOUNTING) == dialect.CORRECTED else None
    accounting = own if dialect.MEASURED_BY in external else None
    if cut:
        last = text.count("\n") + 1
        raise BadInput(f"{path}:{last}: the line was cut: it has no end; remove it to read the lines before it")
    seconds = tuple(_row(path, n, line, columns, accounting) for n, line in rows[1:])
    return Log(path, settings, external, seconds, older)


def _header(path: Path, number: int, line: str) -> tuple[list[Column | None], bool]:
    """The columns by index, None for one that is not read; and whether they are those of 2018-19."""
    names = _cells(line)
    names = names if names[-1] else names[:-1]
    known: dict[str, Column | None] = {c.bare: c for c in dialect.CSV_COLUMNS if c.bare is not None}
    known |= dict.fromkeys(dialect.LOOPS)
    bare = [name.partition(" (")[0] for name in names]
    for place, (name, word) in enumerate(zip(names, bare, strict=True), start=1):
        if word not in known:
            raise BadInput(f"{path}:{number}: column {place} is {name!r}, which performance_test does not have")
        if bare.index(word) != place - 1:
            raise BadInput(f"{path}:{number}: column {place} is {name!r} again")
    if missing := [name for name in dialect.NEEDED if name not in bare]:
        raise BadInput(f"{path}:{number}: no column {missing[0]}, which a table of performance_test must have")
    older = any(name in dialect.LOOPS for name in bare) or not {"ru_utime", "cpu_usage"} & set(bare)
    return [known[word] for word in bare], older


def _row(path: Path, number: int, line: str, columns: Sequence[Column | None], accounting: str | None) -> Second:
    cells = _cells(line)
    if len(cells) == len(columns) + 1 and not cells[-1]:
        cells.pop()  # the end of a line of 2018-19
    if len(cells) != len(columns):
        raise BadInput(f"{path}:{number}: {len(cells)} columns; the header has {len(columns)}")
    found: dict[str, float | None] = {}
    for column, cell in zip(columns, cells, strict=True):
        if column is not None:
            value = _number(path, f"{number}: {column.csv}", cell)
            found[column.member] = None if value is None else value / dialect.variance_scale(column, accounting)
    return _second(found, f"{path}:{number}", {c.member: str(c.csv) for c in columns if c is not None})


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _number(path: Path, where: str, cell: str) -> float | None:
    """None if there is none: an empty cell, nan, inf."""
    if not cell or _NONE.fullmatch(cell):
        return None
    if not _NUMBER.fullmatch(cell):
        raise BadInput(f"{path}:{where} is {cell!r}, which is not a number")
    value = float(cell)
    return value if math.isfinite(value) else None


def _settings(path: Path, lines: Sequence[str]) -> tuple[dict[str, Value], dict[str, str]]:
    """The lines above the table; unknown ones come from the environment of that run."""
    by_name = {name: setting for setting in dialect.SETTINGS for name in setting.csv}
    settings: dict[str, Value] = {}
    external: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if name == dialect.QOS:
            settings |= _qos(path, number, value)
        elif (setting := by_name.get(name)) is None:
            external[name] = value
        else:
            if setting.kind == "whole" and (glued := _GLUED.fullmatch(value)) and ":" in value:
                value = glued[1]
                key, _, rest = glued[2].partition(":")
                external[key.strip()] = rest.strip()
            settings[setting.key] = _setting(path, number, setting, name, value)
    return settings, external


def _setting(path: Path, number: int, setting: Setting, name: str, value: str) -> Value:
    if setting.kind == "text":
        return value
    if not value.isascii() or not value.isdigit() or (setting.kind == "flag" and value not in ("0", "1")):
        right = "0 or 1" if setting.kind == "flag" else "a whole number from 0 on"
        raise BadInput(f"{path}:{number}: {name} is {value!r} instead of {right}")
    return value == "1" if setting.kind == "flag" else int(value)


def _qos(path: Path, number: int, text: str) -> dict[str, Value]:
    """Reliability: RELIABLE Durability: VOLATILE History kind: KEEP_LAST History depth: 16, and a word of 2018."""
    found: dict[str, Value] = {}
    for match in _QOS.finditer(text):
        key = dialect.QOS_PARTS[match.group()]
        word = text[match.end() :].lstrip(": ").split(" ")[0]
        found[key] = _setting(path, number, dialect.BY_KEY[key], match.group(), word)
    return found


# -- JSON --------------------------------------------------------------------------------------------------------------


def _json(path: Path, text: str) -> Log:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip())
        cut = "; the file was cut" if error.pos >= end - 1 or error.msg.startswith("Unterminated") else ""
        raise BadInput(f"{path}:{error.lineno}: column {error.colno}: {error.msg}{cut}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON: {error}") from None
    rows = document.get(dialect.RESULTS)
    if not isinstance(rows, list):
        raise BadInput(f"{path}: no list {dialect.RESULTS}, which a log of performance_test must have")
    settings: dict[str, Value] = {}
    external: dict[str, str] = {}
    for key, value in document.items():
        if key.startswith(dialect.EXTERNAL):
            external[key.removeprefix(dialect.EXTERNAL)] = str(value)
        elif (setting := dialect.BY_KEY.get(key)) is not None and value is not None:
            settings[key] = _member(path, setting, value)
    seconds = tuple(_entry(path, n, row) for n, row in enumerate(rows))
    return Log(path, settings, external, seconds)


def _member(path: Path, setting: Setting, value: Any) -> Value:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if setting.kind == "text" and isinstance(value, str):
        return value
    if setting.kind == "whole" and whole and value >= 0:
        return int(value)
    if setting.kind == "flag" and (isinstance(value, bool) or (whole and value in (0, 1))):
        return bool(value)
    right = {"text": "a text", "whole": "a whole number from 0 on", "flag": "true or false"}[setting.kind]
    raise BadInput(f"{path}: {setting.key} is {value!r:.40} instead of {right}")


def _entry(path: Path, number: int, row: Any) -> Second:
    where = f"{path}: {dialect.RESULTS}[{number}]"
    if not isinstance(row, dict):
        raise BadInput(f"{where} is {row!r:.40} instead of an object")
    found: dict[str, float | None] = {}
    for column in dialect.JSON_COLUMNS:
        value = row.get(str(column.json))
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise BadInput(f"{where}.{column.json} is {value!r:.40}, which is not a number")
        finite = value is not None and abs(value) < math.inf
        found[column.member] = value / column.json_scale if value is not None and finite else None
    names = {c.member: str(c.json) for c in dialect.JSON_COLUMNS}
    for name in dialect.NEEDED:
        column = next(c for c in dialect.COLUMNS if c.bare == name)
        if str(column.json) not in row:
            raise BadInput(f"{where} has no {column.json}, which a row of performance_test must have")
    return _second(_without_none(found), where, names)


def _without_none(found: dict[str, float | None]) -> dict[str, float | None]:
    """performance_test writes 0.0 for undefined values: the mean of nothing, the variance of one."""
    n = found["latency_n"]
    if n == 0:
        found |= {"latency_mean_s": None, "latency_m2_s2": None, "latency_variance_s2": None}
    elif n == 1:
        found["latency_variance_s2"] = None
    return found


# -- both --------------------------------------------------------------------------------------------------------------


def _second(found: Mapping[str, float | None], where: str, names: Mapping[str, str]) -> Second:
    """A row, with None for the extremes of no messages, which are the limits of the number type."""
    low, high = found.get("latency_min_s"), found.get("latency_max_s")
    values = dict(found)
    if low is None or high is None or low > high:
        values |= dict.fromkeys(m for m in values if m.startswith("latency_") and m != "latency_n")
    for column in dialect.COLUMNS:
        value = values.get(column.member)
        if value is None:
            continue
        if column.whole and (not 0 <= value <= MAX_COUNT or value != int(value)):
            raise BadInput(f"{where}: {names[column.member]} is {value:g} instead of a whole number from 0 on")
        if column.member in _TIMES and abs(value) > _LONGEST_S:
            raise BadInput(f"{where}: {names[column.member]} is longer than 292 years")
        if column.member in ("experiment_s", "loop_s", "cpu_usage") and value < 0:
            raise BadInput(f"{where}: {names[column.member]} is {value:g} instead of a number from 0 on")
    return Second(**values)
