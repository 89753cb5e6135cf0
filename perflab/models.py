"""Records that describe themselves: frozen dataclasses whose types and docstrings are the published schema.

A field has the type of its annotation; the string below it is its description in the schema. Unmeasured values are
None. A field with a default may be missing in a file of an older version; unknown keys are ignored. A name that is a
keyword in Python ends with an underscore, which the file does not have (`from_`).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import textwrap
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from annotated_types import Ge, Le

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter, ValidationError
    from pydantic.json_schema import GenerateJsonSchema

T = TypeVar("T")

Count = Annotated[int, Ge(0)]
Ordinal = Annotated[int, Ge(1)]
Share = Annotated[float, Ge(0), Le(1)]
Number = int | float
# JSON's names for them.
_AS_JSON = {"dataclass_type": "an object", "dict_type": "an object", "tuple_type": "a list"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Damaged(ValueError):
    """A document that is not such a record. One line: where, the given value, what would be right."""


def as_json(value: object) -> Any:
    """Records, tuples and numpy numbers in the form that json writes; a number that is not finite becomes None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name.rstrip("_"): as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if hasattr(value, "item"):  # of numpy
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def shared(record: type, source: object) -> dict[str, Any]:
    """The fields that a record has in common with another: the values in `source` of the fields that both have."""
    return {f.name: getattr(source, f.name) for f in dataclasses.fields(record) if f.init and hasattr(source, f.name)}


def read(record: type[T], document: object) -> T:
    """Parses a record from a JSON document. Raises Damaged."""
    from pydantic import ValidationError

    try:
        return _adapter(record).validate_python(document)
    except ValidationError as error:
        raise Damaged(what_is_wrong(error)) from error


def schema(record: type, title: str) -> dict[str, Any]:
    """The JSON Schema of the documents of a record."""
    made = _adapter(record).json_schema(schema_generator=_described())
    definitions = made.pop("$defs", {})
    return {"$schema": _DIALECT, "title": title, **made, "$defs": definitions}


def schema_of_each(records: Mapping[str, type], title: str) -> dict[str, Any]:
    """The schema of objects whose members are these records, by the pattern of their names."""
    from pydantic import TypeAdapter

    made, shared = TypeAdapter.json_schemas(
        [(pattern, "validation", _adapter(record)) for pattern, record in records.items()],
        schema_generator=_described(),
    )
    members = {pattern: schema for (pattern, _), schema in made.items()}
    return {"$schema": _DIALECT, "title": title, "type": "object", "patternProperties": members, **shared}


def _described() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import core_schema

    class Described(GenerateJsonSchema):
        """With the docstrings of fields, including inherited ones, and without titles generated from names."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
            inner = self.generate_inner(schema["schema"])
            if isinstance(inner.get("type"), str) and "enum" not in inner and "const" not in inner:
                return {**inner, "type": [inner["type"], "null"]}
            return self.get_flattened_anyof([inner, {"type": "null"}])

        def union_schema(self, schema: core_schema.UnionSchema) -> dict[str, Any]:
            made = super().union_schema(schema)
            return {"type": "number"} if made.get("anyOf") == [{"type": "integer"}, {"type": "number"}] else made

        def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
            made = super().dataclass_schema(schema)
            made.pop("title", None)
            for member in made["properties"].values():
                member.pop("default", None)  # its default says enough
            for name, words in docstrings(schema["cls"]).items():
                if (member := made["properties"].get(name.rstrip("_"))) is not None:
                    member["description"] = words
            return made

    return Described


def docstrings(record: type) -> dict[str, str]:
    """The strings below each field of a record, on one line each; including inherited ones."""
    found: dict[str, str] = {}
    for cls in reversed(record.__mro__):
        if not dataclasses.is_dataclass(cls):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                found[field.target.id] = " ".join(below.value.value.split())
    return found


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(record: type[T]) -> TypeAdapter[T]:
    from pydantic import ConfigDict, TypeAdapter

    if record not in _adapters:
        config = ConfigDict(alias_generator=lambda name: name.rstrip("_"), allow_inf_nan=False)
        record.__pydantic_config__ = config  # type: ignore[attr-defined]
        _adapters[record] = TypeAdapter(record)
    return _adapters[record]


def what_is_wrong(error: ValidationError) -> str:
    """The first problem of a document: where, what would be right, and the given value."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"it lacks {where}"
    kind, given = _AS_JSON.get(first["type"]), json.dumps(first["input"], default=str)
    said = str(first["msg"]).replace("Input should ", "must ", 1) if kind is None else f"must be {kind}"
    given = given if len(given) < 40 else f"{given[:36]}..."
    return f"{where}: {said[:1].lower()}{said[1:]}, not {given}"
