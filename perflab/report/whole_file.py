"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from perflab import output
from perflab.errors import BadInput, PerflabError

STDOUT = Path("-")


def write(path: Path, content: str | bytes, option: str = "--output", *, parents: bool = False) -> None:
    """Writes a file completely or not at all, `-` to stdout; `parents`: creates its folders as needed.

    Raises PerflabError, which names the option.
    """
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        put(path, content)
    except OSError as error:
        raise PerflabError(f"cannot write {path}: {error.strerror}; choose another place with {option}") from error


def put(path: Path, content: str | bytes) -> None:
    """The same with OSError. A device or a pipe is written to, not replaced by a file."""
    if path == STDOUT:
        if isinstance(content, str):
            content = output.visible(content)
        elif sys.stdout.isatty():
            raise BadInput("binary output cannot be shown on a terminal; write it to a file, or into a pipe")
    data = content.encode("utf-8", errors="replace") if isinstance(content, str) else content
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            file.write(data)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
