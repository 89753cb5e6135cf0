"""The user's request for a kind of thing, as a value: a condition, an observer. The acting object is made from it, per
trial."""

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
        """Every parameter as a user could write it: input that makes the same specification again. JSON."""
        return written(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """The user's values with every default filled in: by these, trials are grouped and labelled. JSON."""
        return self.written


def written(model: BaseModel) -> dict[str, Any]:
    """JSON that makes the same model again: durations, whose bare numbers are seconds, have their unit."""
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
    """The schemas annotated at a type, or at a member of a union."""
    for part in parts:
        if isinstance(part, WithJsonSchema):
            yield (part.json_schema or {}).get("format", "")
        yield from _formats((*getattr(part, "__metadata__", ()), *get_args(part)))
