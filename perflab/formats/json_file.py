"""JSON files, and others: written completely or not at all; reading errors are one line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from perflab.errors import BadInput


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file for writing, which replaces the old one when it is complete. Raises OSError, leaving nothing behind."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON file completely or not at all. Raises OSError, leaving nothing behind."""
    with replaced(path) as file:
        file.write(f"{json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)}\n".encode())
    _sync_directory(path.parent)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises BadInput if it cannot be read or is not an object."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is damaged: not a regular file")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict):
        raise BadInput(f"{path} is damaged: not a JSON object")
    return document


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
