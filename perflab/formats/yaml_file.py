"""YAML written by people for perflab: experiments, paths, families. (perflab-graph reads graphs, by the same rules.)

One reader for all of them. Features that would make a small file large in memory, or a document mean something else
than it shows, are rejected with their place: aliases, merge keys, duplicate keys, tags, endless nesting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perflab.errors import BadInput, one_line

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
MAX_VALUES = 50_000
MAX_DIGITS = 100  # limit of a number's length: longer ones are slow to parse, and not numbers

Location = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(f"{_TAG}{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map"))
_NUMBERS = frozenset((f"{_TAG}int", f"{_TAG}float"))


@dataclass(frozen=True)
class YamlFile:
    """A document, and the line on which each part of it begins. An empty file is the document None."""

    text: str
    sha256: str
    document: Any
    lines: Mapping[Location, int]
    path: str = ""

    def where(self, *location: str | int) -> str:
        """ "file.yaml:12": where a part of it, or its parent, begins."""
        for length in range(len(location), 0, -1):
            if location[:length] in self.lines:
                return f"{self.path}:{self.lines[location[:length]]}"
        return self.path


def read(path: Path, what: str, where: str = "") -> YamlFile:
    """The file for `what` ("an experiment"); `where` begins the error if it cannot be opened. Raises BadInput."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"cannot read {where or what.partition(' ')[2]} {str(path)!r}: {why}") from error
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path} exceeds the limit of {MAX_BYTES >> 20} MiB for {what}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text: byte {error.start}") from error
    document, lines = parse(text, str(path))
    return YamlFile(text, hashlib.sha256(data).hexdigest(), document, lines, str(path))


def parse(text: str, source: str) -> tuple[Any, dict[Location, int]]:
    """The document in a text, and its lines; `source` names it. Raises BadInput with the place."""
    lines: dict[Location, int] = {}
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            document = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise BadInput(f"{source}{_place(error)}: {'' if isinstance(error, _Refused) else 'not YAML: '}"
                       f"{one_line(error.problem or str(error))}") from error  # fmt: skip
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{source}: not YAML: {one_line(str(error))}") from error
    if root is not None:
        _locate(root, (), lines)
    return document, lines


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML, but not accepted by perflab."""


class _Loader(yaml.SafeLoader):
    """Rejects while reading, before anything can grow."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event: Any = super().peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, AliasEvent):
            raise _refused(event, f"the alias *{event.anchor} is not allowed; write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in ("!", *_TAGS):
            raise _refused(event, f"the tag {tag.replace(_TAG, '!!')} is not allowed; write the value without it")
        self._values += 1
        if self._values > MAX_VALUES:
            raise _refused(event, f"more than {MAX_VALUES:,} values are not allowed")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _refused(event, f"more than {MAX_DEPTH} nested values are not allowed")
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, MappingNode):
            _check_keys(node)
        if isinstance(node, ScalarNode) and node.tag in _NUMBERS and len(node.value) > MAX_DIGITS:
            raise _refused(event, f"a number of {len(node.value):,} characters is not allowed")
        return node


def _as_written(loader: _Loader, node: ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_Loader.add_constructor(f"{_TAG}timestamp", _as_written)  # a date is read as text


def _check_keys(node: MappingNode) -> None:
    seen: set[Hashable] = set()
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise _refused(key, "a key must be a word, not a list or a mapping")
        if key.tag == f"{_TAG}merge":
            raise _refused(key, "the merge key << is not allowed; write the values out")
        if key.value in seen:
            raise _refused(key, f"{key.value} is there twice")
        seen.add(key.value)


def _refused(at: Any, problem: str) -> _Refused:
    return _Refused(problem=problem, problem_mark=at.start_mark)


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"


def _locate(node: Node, location: Location, lines: dict[Location, int]) -> None:
    if location:
        lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, MappingNode):
        for key, value in node.value:
            lines[(*location, key.value)] = key.start_mark.line + 1
            _locate(value, (*location, key.value), lines)
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            _locate(value, (*location, index), lines)
