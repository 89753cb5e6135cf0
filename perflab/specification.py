"""What a user asks for of a kind of thing, as a value: a condition, an observer. What acts is made of it, per trial."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import WithJsonSchema

from perflab.parameters import DURATION, Parameters
from perflab.units import duration_text


class Specification(Parameters):
    """Parsed, checked and frozen: its fields are its parameters, and equal ones make equal specifications."""

    name: ClassVar[str]

    @property
    def written(self) -> dict[str, Any]:
        """Every parameter as a user could write it: what makes the same specification again. JSON."""
        document = self.model_dump(mode="json")
        for key, field in type(self).model_fields.items():
            schemas = (m.json_schema for m in field.metadata if isinstance(m, WithJsonSchema))
            if any((schema or {}).get("format") == DURATION for schema in schemas):
                document[key] = duration_text(getattr(self, key))
        return document

    @property
    def parameters(self) -> dict[str, Any]:
        """As the user gave them with every default filled in: what trials are grouped and told by. JSON."""
        return self.written
