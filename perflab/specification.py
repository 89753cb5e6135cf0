"""What a user asks for of a kind of thing, as a value: a condition, an observer. What acts is made of it, per trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, WithJsonSchema

from perflab.parameters import Parameters
from perflab.units import duration_text
from perflab.validation import DURATION


class Specification(Parameters):
    """Parsed, checked and frozen: its fields are its parameters, and equal ones make equal specifications."""

    name: ClassVar[str]

    @property
    def written(self) -> dict[str, Any]:
        """Every parameter as a user could write it: what makes the same specification again. JSON."""
        return written(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """As the user gave them with every default filled in: what trials are grouped and told by. JSON."""
        return self.written


def written(model: BaseModel) -> dict[str, Any]:
    """What makes the same model again, as JSON: durations, of which bare numbers are seconds, have their unit."""
    document = model.model_dump(mode="json")
    for key, field in type(model).model_fields.items():
        value = getattr(model, key)
        if isinstance(value, BaseModel):
            document[key] = written(value)
        elif isinstance(value, dict) and all(isinstance(one, BaseModel) for one in value.values()):
            document[key] = {name: written(one) for name, one in value.items()}
        elif value is not None and DURATION in _formats((*field.metadata, field.annotation)):
            document[key] = duration_text(value)
    return document


def _formats(parts: Any) -> Iterator[str]:
    """Those of the schemas that stand beside a type, or beside one of a union."""
    for part in parts:
        if isinstance(part, WithJsonSchema):
            yield (part.json_schema or {}).get("format", "")
        yield from _formats((*getattr(part, "__metadata__", ()), *get_args(part)))
