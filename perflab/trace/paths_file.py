"""Paths files: which ways through a system matter, how late they may be, and how much each counts (YAML or JSON).

    paths:
      - name: control
        nodes: [/sensor, /control, /actuator]   # in order, others may lie between; or topics: [...]
        deadline: 10ms
        weight: 2

Names are exact, or patterns (`*`, `?`, `[...]`). A file is checked as far as it goes without a trace; whether its names
are there is `perflab.trace.paths_named`'s to say. Everything that is wrong is one line with the place in the file.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from perflab.errors import BadInput, one_line
from perflab.formats import yaml_file
from perflab.formats.yaml_file import Location, YamlFile
from perflab.validation import DurationNs, plain_schema, what_is_wrong

MAX_PATHS = 1000


def _names(value: Any) -> Any:
    """One name or a list of them."""
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[
    list[Name],
    BeforeValidator(_names),
    Field(min_length=1),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string", "minLength": 1}, "minItems": 1}),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NamedPath(_Part):
    """A way through the system. It has either nodes or topics."""

    name: Name = Field(description="what it is called; no other path of the file is called so")
    nodes: Names | None = Field(None, description="nodes in order, with their namespaces; others may lie between")
    topics: Names | None = Field(
        None, description="topics in order: from the callback that publishes the first to the one that takes the last"
    )
    deadline: DurationNs | None = Field(None, gt=0, description="longest latency that is no miss, e.g. 10ms")
    weight: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="in the objective; needs a deadline; default 1 with one"
    )
    since: Literal["start", "due"] = Field(
        "start", description="latency begins with the start of the first callback, or when its timer was due"
    )
    until: Literal["start", "end"] = Field("end", description="and ends with the start or the end of the last callback")
    may_stop: bool = Field(False, description="a callback on the way may choose not to publish; that is no miss then")


class PathsFile(_Part):
    """The paths of a system that matter."""

    paths: Annotated[list[NamedPath], Field(min_length=1, max_length=MAX_PATHS, description="one entry per path")]


@dataclass(frozen=True)
class Wanted:
    """A path of a file, and its place in the list there."""

    path: NamedPath
    file: YamlFile
    place: int

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def names(self) -> list[str]:
        """Its nodes or its topics."""
        return self.path.nodes or self.path.topics or []

    @property
    def weight(self) -> float | None:
        """None of a path without a deadline, which is in no objective."""
        return None if self.path.deadline is None else 1.0 if self.path.weight is None else self.path.weight

    def where(self, *location: str | int) -> str:
        """ "paths.yaml:12"."""
        return self.file.where("paths", self.place, *location)


def read(path: Path) -> tuple[Wanted, ...]:
    """The paths of a file. Raises BadInput."""
    file = yaml_file.read(path, "a paths file", "--paths")
    if file.document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(file.document, dict):
        raise BadInput(f"{path}: a paths file is a mapping with the key paths")
    try:
        validated = PathsFile.model_validate(file.document)
    except ValidationError as error:
        raise _complaint(file, error) from error
    wanted = tuple(Wanted(path, file, place) for place, path in enumerate(validated.paths))
    _check(wanted)
    return wanted


def json_schema() -> dict[str, Any]:
    """docs/schema/paths.schema.json: what may be written, for editors and other programs."""
    schema = PathsFile.model_json_schema()
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Paths through a system"}
    schema["description"] = "docs/formats.md explains it. Durations are seconds, or text with a unit (500us, 10ms)."
    plain_schema(schema)
    return schema


def _check(wanted: tuple[Wanted, ...]) -> None:
    """What pydantic does not see: names that are there twice, keys that need each other."""
    seen: dict[str, Wanted] = {}
    for path in wanted:
        if (first := seen.setdefault(path.name, path)) is not path:
            where = first.where("name").rpartition(":")[2]
            raise BadInput(f"{path.where('name')}: there is a path {path.name!r} already, on line {where}")
        if (path.path.nodes is None) == (path.path.topics is None):
            which = "has both nodes and topics; give" if path.path.nodes is not None else "needs"
            raise BadInput(f"{path.where()}: path {path.name!r} {which} either nodes or topics")
        if path.path.nodes is not None and len(path.path.nodes) < 2:
            raise BadInput(f"{path.where('nodes')}: a path of nodes has a first and a last one")
        if path.path.weight is not None and path.path.deadline is None:
            raise BadInput(f"{path.where('weight')}: a weight needs a deadline, which makes paths comparable")


def _complaint(file: YamlFile, error: ValidationError) -> BadInput:
    errors = error.errors()
    # A key that is misspelled is also one that is missing.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    location: Location = tuple(p for p in first["loc"] if isinstance(p, int) or not p.startswith("function-"))
    where, key = file.where(*location), str(location[-1]) if location else ""
    if first["type"] == "extra_forbidden":
        known = list((PathsFile if len(location) == 1 else NamedPath).model_fields)
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        return BadInput(f"{where}: no key {key!r}; {hint}")
    if first["type"] == "missing":
        return BadInput(f"{where}: {key} is missing")
    given = first["input"]
    if first["type"] == "greater_than":
        return BadInput(f"{where}: {key} {given} must be more than 0")
    if first["type"] in ("model_type", "dict_type"):
        return BadInput(f"{where}: a path is a mapping with name, nodes or topics, deadline and weight, not {given!r}")
    if (said := what_is_wrong(first)) is not None:
        return BadInput(f"{where}: {key}: {said}")
    message = one_line(str(first["msg"]).removeprefix("Value error, "))
    return BadInput(f"{where}: {key}: {message[:1].lower()}{message[1:]}")
