"""Removes the machine's folders from the texts of a run: a report is passed on to other people."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any, TypeVar

T = TypeVar("T")

# Not within a word, an address or another path; a single name below / is not a private folder.
_PATH = re.compile(r"""(?<![\w/.:~-])/(?:[^\s/'"`,;:()\[\]]+/)+[^\s/'"`,;:()\[\]]*""")
_ALIKE_EVERYWHERE = ("/proc/", "/sys/", "/dev/")
# The annotation of a field with a number or nothing, as most fields of a record are.
_NUMBER = re.compile(r"(?:(?:int|float|bool|None|Count|Ordinal|Share|Number)(?: \| |$))+")


def without_folders(text: str, runs: Iterable[str], kept: Iterable[str] = ()) -> str:
    """`text` with paths relative to folders of these names, and other paths as file names; `kept` words (names of
    topics and nodes look like paths) and standard paths stay as they are."""
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
    """A record with its sentences changed. A text without a space is a name, and stays."""
    found: Any = value
    map_it = _how_to_map(found.__class__)
    result: T = found if map_it is None else map_it(found, change)
    return result


@cache
def _how_to_map(of: type[Any]) -> Callable[[Any, Callable[[str], str]], Any] | None:
    """By type, since a run has few types and many values; None if nothing can change."""
    if of is str:
        return _text
    if issubclass(of, Mapping):
        return _mapping
    if dataclasses.is_dataclass(of):
        return _record(tuple(f.name for f in dataclasses.fields(of) if f.init and not _NUMBER.fullmatch(str(f.type))))
    return _several if issubclass(of, list | tuple) else None


def _text(text: str, change: Callable[[str], str]) -> str:
    return change(text) if "/" in text and " " in text else text


def _mapping(found: Mapping[Any, Any], change: Callable[[str], str]) -> Mapping[Any, Any]:
    changed = _changed(found.items(), change)
    return {**found, **changed} if changed else found


def _record(names: tuple[str, ...]) -> Callable[[Any, Callable[[str], str]], Any]:
    def of(found: Any, change: Callable[[str], str]) -> Any:
        changed = _changed([(name, getattr(found, name)) for name in names], change)
        return dataclasses.replace(found, **changed) if changed else found

    return of


def _several(found: Any, change: Callable[[str], str]) -> Any:
    changed = _changed(enumerate(found), change)
    if not changed:
        return found
    several = [changed.get(n, item) for n, item in enumerate(found)]
    return several if isinstance(found, list) else tuple(several)


def _changed(items: Iterable[tuple[Any, Any]], change: Callable[[str], str]) -> dict[Any, Any]:
    """The changed entries, by name or number; without a call for numbers, which are most of a record."""
    return {
        name: new
        for name, old in items
        if (map_it := _how_to_map(old.__class__)) is not None and (new := map_it(old, change)) is not old
    }


def names_like_paths(document: object) -> set[str]:
    """The texts in a document that begin like a path."""
    if isinstance(document, str):
        return {document} if document.startswith("/") else set()
    if isinstance(document, Mapping):
        return {name for item in document.items() for one in item for name in names_like_paths(one)}
    if isinstance(document, list | tuple):
        return {name for item in document for name in names_like_paths(item)}
    return set()
