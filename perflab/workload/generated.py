"""Workloads that are generated from a few parameters, written like conditions: NAME:key=value,...

A kind is one module with a model of its parameters and a function from these to a graph (`Made`) or a command
(`perflab.workload.command.Command`). Every parameter is also a factor, `workload.PARAMETER`: at each of its levels the
workload is made anew. A kind may judge its trials: its own figures and outcomes are then beside all others wherever
results are shown, compared and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_serializer

from perflab import registry
from perflab.errors import BadInput
from perflab.plugins import Registry
from perflab.workload import Workload, WorkloadKind

REGISTRY: Registry[WorkloadKind] = Registry("workload", "perflab.workload", WorkloadKind)


class GeneratedParameters(BaseModel):
    """A generated workload as the user wrote it: words, or a mapping of its name to parameters. `load` checks it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    written: Any

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, handler: Any) -> dict[str, Any]:
        """The schema: a mapping of the name of one kind to its parameters."""
        kinds = {
            name: {"anyOf": [{**kind.model.model_json_schema(), "description": kind.summary}, {"type": "null"}]}
            for name, kind in REGISTRY.items()
        }
        bounds = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        return {"type": "object", "properties": kinds, **bounds}

    @property
    def model(self) -> type[BaseModel]:
        """The model of its parameters."""
        return REGISTRY[self.name].model

    def given(self) -> dict[str, Any]:
        """The parameters as the user wrote them. Raises BadInput."""
        words = self.written
        if not isinstance(words, str) and len(words) > 1:
            others = [str(word) for word in words if named(word) != self.name]
            beside = f"leave out {others[0]}" if others else "name it once"
            raise BadInput(f"workload {self.name} is a whole graph and cannot be combined; {beside}")
        if isinstance(words, Mapping):
            parameters = words[self.name]
            if parameters is not None and not isinstance(parameters, Mapping):
                raise BadInput(f"workload {self.name}: {parameters!r} is not a mapping of parameters")
            return dict(parameters or {})
        return dict(registry.split(words if isinstance(words, str) else words[0], "workload")[1])

    @model_serializer
    def _document(self) -> dict[str, Any]:
        return {self.name: self.model.model_validate(self.given()).model_dump(mode="json")}


def named(words: Any) -> str | None:
    """The kind that a workload of the command line or of a file names; None if it names none."""
    if isinstance(words, str):
        name = words.partition(":")[0].strip()
        return name if name in REGISTRY else None
    if isinstance(words, Mapping | list | tuple):
        return next((kind for word in words if (kind := named(word)) is not None), None)
    return None


def parse(words: Any) -> GeneratedParameters:
    """The workload that these words name; `load` checks its parameters. Raises ValueError without a name."""
    if isinstance(words, GeneratedParameters):
        return words
    if (name := named(words)) is None:
        raise ValueError(f"{words!r} names no generated workload")
    return GeneratedParameters(name=name, written=words)


def load(asked: GeneratedParameters, message_path: Sequence[str] = ()) -> Workload:
    """The workload, with the message types of these folders. Raises BadInput for an unknown or wrong parameter."""
    return REGISTRY[asked.name].workload(asked.given(), message_path)
