"""All that a trace becomes, as files: its tables and every section of all answers, as CSV or Parquet.

    DIR/tables/<table>.csv          what docs/tracing.md calls the tables
    DIR/<answer>/<section>.csv      what `perflab trace summary, callbacks, ...` show
    DIR/index.json                  what there is: written last, so that it stands for a whole export

Each file appears whole or not at all. In CSV a value that is not known is an empty cell, a flag "true" or "false", and
an enumeration its name; Parquet keeps the types.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from perflab.errors import BadInput, PerflabError
from perflab.trace.answer import SCHEMA_VERSION, Answer
from perflab.trace.source import TABLES

if TYPE_CHECKING:
    import polars as pl

    from perflab.trace.columns import Column
    from perflab.trace.source import Source

Json = dict[str, Any]

FORMATS = ("csv", "parquet")
INDEX = "index.json"


def answers(trace: Source) -> Iterator[Answer]:
    """Every answer about one trace, whole."""
    from perflab.trace.callbacks import callbacks
    from perflab.trace.executor import executor
    from perflab.trace.messages import messages
    from perflab.trace.paths import Asked, paths
    from perflab.trace.scheduling import scheduling
    from perflab.trace.summary import summary
    from perflab.trace.why import why

    yield summary(trace)
    yield callbacks(trace)
    yield messages(trace)
    yield executor(trace, None)
    yield scheduling(trace)
    yield why(trace)
    yield paths(trace, Asked(limit=None))


def check(directory: Path, *, force: bool) -> None:
    """Raises BadInput where an export may not go: a file, or a folder with something in it, unless forced."""
    try:
        if directory.exists() and not directory.is_dir():
            raise BadInput(f"--output {directory} is not a directory; name another")
        if directory.is_dir() and any(directory.iterdir()) and not force:
            raise BadInput(f"--output {directory} is not empty; name another, or write into it with --force")
    except OSError as error:
        raise BadInput(f"cannot look into --output {directory}: {error.strerror}") from error


def export(
    trace: Source,
    directory: Path,
    format_: str = "csv",
    *,
    force: bool = False,
    wrote: Callable[[Path], None] = lambda path: None,
) -> Json:
    """Writes all files and returns the index; `wrote` is told each of them.

    Raises BadInput where `check` does or the format is none, PerflabError where a file cannot be written; those written
    before stay, without an index.
    """
    if format_ not in FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(FORMATS)}")
    check(directory, force=force)
    files: list[Json] = []

    def write(stem: str, frame: pl.DataFrame, defined: Mapping[str, Column] = {}, **more: Any) -> None:
        path = directory / f"{stem}.{format_}"
        _write(path, lambda file: _put(frame, file, format_))
        columns = [
            {"name": name, "type": str(kind)} | ({"help": defined[name].help} if name in defined else {})
            for name, kind in frame.schema.items()
        ]
        files.append({"file": f"{stem}.{format_}", **more, "rows": frame.height, "columns": columns})
        wrote(path)

    # An index of an export before would speak of files that are about to change.
    with _failing(directory / INDEX):
        (directory / INDEX).unlink(missing_ok=True)
    for table in TABLES:
        write(f"tables/{table}", trace.table(table), kind="table", name=table)
    quality: Json = {}
    for answer in answers(trace):
        quality[answer.kind] = list(answer.quality)
        for section in answer.sections:
            write(
                f"{answer.kind}/{section.name}", section.frame, section.table.of, kind="section", answer=answer.kind,
                name=section.name, title=section.title, notes=list(section.notes), reasons=section.reasons,
            )  # fmt: skip
    index = {
        "schema_version": SCHEMA_VERSION,
        "format": format_,
        "paths": [str(path) for path in trace.facts["paths"]],
        "quality": quality,
        "files": files,
        "facts": trace.facts,
    }
    text = json.dumps(index, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    _write(directory / INDEX, lambda file: file.write(text.encode()))
    wrote(directory / INDEX)
    return index


def _put(frame: pl.DataFrame, file: BinaryIO, format_: str) -> None:
    if format_ == "csv":
        frame.write_csv(file)
    else:
        frame.write_parquet(file)


def _write(path: Path, put: Callable[[BinaryIO], object]) -> None:
    """A file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    with _failing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                put(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _failing(path: Path) -> Iterator[None]:
    """What cannot be written is one line."""
    import polars as pl

    try:
        yield
    except OSError as error:
        raise PerflabError(f"cannot write {path}: {error.strerror or error}; choose another with --output") from error
    except pl.exceptions.PolarsError as error:
        raise PerflabError(f"cannot write {path}: {error}; choose another with --output") from error
