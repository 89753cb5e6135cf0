"""Texts of a run without the folders of the machine on which it was made: a report goes to other people."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any, TypeVar

T = TypeVar("T")

# Not within a word, an address or another path; a single name below / is no folder of anybody.
_PATH = re.compile(r"""(?<![\w/.:~-])/(?:[^\s/'"`,;:()\[\]]+/)+[^\s/'"`,;:()\[\]]*""")
_ALIKE_EVERYWHERE = ("/proc/", "/sys/", "/dev/")


def without_folders(text: str, runs: Iterable[str], kept: Iterable[str] = ()) -> str:
    """`text` with paths below folders of these names as from there, others as the name of the file; what is `kept` (the
    names of topics and nodes look like paths) and what is at the same place on every machine stay as they are."""
    names, same = set(runs) - {""}, set(kept)

    def short(found: re.Match[str]) -> str:
        path = found.group().rstrip(".")
        rest = found.group()[len(path) :]
        if path in same or path.startswith(_ALIKE_EVERYWHERE):
            return found.group()
        parts = PurePosixPath(path).parts
        at = max((n for n, part in enumerate(parts) if part in names), default=None)
        below = parts[-1:] if at is None else parts[at + 1 :] or parts[at:]
        return "/".join(below) + rest

    return _PATH.sub(short, text)


def mapped(value: T, change: Callable[[str], str]) -> T:
    """A record with its sentences changed. A text without a blank is a name, and stays."""
    found: Any = value
    of: Any = type(found)
    if found is None or isinstance(found, int | float):
        pass  # most of a record
    elif isinstance(found, str):
        if type(found) is str and "/" in found and " " in found:
            found = change(found)
    elif isinstance(found, Mapping):
        items = {key: mapped(item, change) for key, item in found.items()}
        found = items if any(items[key] is not item for key, item in found.items()) else found
    elif names := _fields(of):
        given = [(name, getattr(found, name)) for name in names]
        changed = {name: new for name, old in given if (new := mapped(old, change)) is not old}
        found = dataclasses.replace(found, **changed) if changed else found
    elif isinstance(found, list | tuple):
        several = [mapped(item, change) for item in found]
        if any(new is not old for new, old in zip(several, found, strict=True)):
            found = several if isinstance(found, list) else tuple(several)
    result: T = found
    return result


@cache
def _fields(of: Any) -> tuple[str, ...]:
    """Those that a record is made of; none of what is no record."""
    return tuple(f.name for f in dataclasses.fields(of) if f.init) if dataclasses.is_dataclass(of) else ()


def names_like_paths(document: object) -> set[str]:
    """The texts in a document that begin like a path."""
    if isinstance(document, str):
        return {document} if document.startswith("/") else set()
    if isinstance(document, Mapping):
        return {name for item in document.items() for one in item for name in names_like_paths(one)}
    if isinstance(document, list | tuple):
        return {name for item in document for name in names_like_paths(item)}
    return set()
