"""Generated workloads: graphs that a few parameters describe, named as conditions are, NAME:key=value,...

A kind is one module with a model of its parameters and a function from these to a graph. Every parameter is also a
factor, `workload.PARAMETER`: at each of its levels the graph is made anew. A kind may judge its trials: its own figures
and outcomes are then beside all others wherever results are shown, compared and written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_serializer

from perflab import models, registry
from perflab.errors import BadInput
from perflab.plugins import Registry
from perflab.registry import Kind
from perflab.results.outcome import OwnOutcome
from perflab.results.trial import OwnFigure, Trial
from perflab.workload import Graph, Pins, Source, Workload

FACTOR = "workload."


@dataclass(frozen=True)
class Made:
    """What a kind makes of its parameters."""

    graph: Graph
    pins: Pins = field(default_factory=Pins)


@dataclass(frozen=True)
class Ended:
    """A trial that ran to its end, or in which the workload failed, for its kind to judge."""

    parameters: Any  # those of the kind, at the levels of the trial
    trial: Trial  # what it measured, and its outcome
    directory: Path  # with `processes`, the records and the log of each


@dataclass(frozen=True)
class Judgement:
    """`figures` by name; None is what was not measured. `outcome` is the name of one of the kind's, for `reason`."""

    figures: Mapping[str, float | None] = field(default_factory=dict)
    outcome: str | None = None
    reason: str | None = None


def _nothing(_: Ended) -> Judgement:
    return Judgement()


@dataclass(frozen=True)
class WorkloadKind(Kind[Made]):
    """With what a kind has of its own, and `judge`, which says it of a trial."""

    figures: Mapping[str, OwnFigure] = field(default_factory=dict)
    outcomes: tuple[OwnOutcome, ...] = ()
    judge: Callable[[Ended], Judgement] = _nothing

    def judged(self, ended: Ended) -> tuple[Judgement, OwnOutcome | None]:
        """The judgement and the outcome that it names. Raises ValueError where the kind has declared something else."""
        found = self.judge(ended)
        if strange := [name for name in found.figures if name not in self.figures]:
            raise ValueError(f"it has no figure {strange[0]!r}")
        outcome = next((own for own in self.outcomes if own.name == found.outcome), None)
        if found.outcome is not None and outcome is None:
            raise ValueError(f"it has no outcome {found.outcome!r}")
        return found, outcome


REGISTRY: Registry[WorkloadKind] = Registry("workload", "perflab.workload", WorkloadKind)


class GeneratedParameters(BaseModel):
    """A generated workload as it was written: words, or a mapping of its name and its parameters. `load` judges it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    written: Any

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, handler: Any) -> dict[str, Any]:
        """What may be written: a mapping of the name of one kind and its parameters."""
        kinds = {
            name: {"anyOf": [{**kind.model.model_json_schema(), "description": kind.summary}, {"type": "null"}]}
            for name, kind in REGISTRY.items()
        }
        bounds = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        return {"type": "object", "properties": kinds, **bounds}

    @property
    def model(self) -> type[BaseModel]:
        """Of its parameters."""
        return REGISTRY[self.name].model

    def given(self) -> dict[str, Any]:
        """The parameters as the user wrote them. Raises BadInput."""
        words = self.written
        if not isinstance(words, str) and len(words) > 1:
            others = [str(word) for word in words if named(word) != self.name]
            beside = f"leave out {others[0]}" if others else "name it once"
            raise BadInput(f"workload {self.name} is a whole graph and stands alone; {beside}")
        if isinstance(words, Mapping):
            parameters = words[self.name]
            if parameters is not None and not isinstance(parameters, Mapping):
                raise BadInput(f"workload {self.name}: {parameters!r} is not a mapping of parameters")
            return dict(parameters or {})
        return dict(registry.split(words if isinstance(words, str) else words[0], "workload")[1])

    @model_serializer
    def _document(self) -> dict[str, Any]:
        return {self.name: self.model.model_validate(self.given()).model_dump(mode="json")}


@dataclass(frozen=True)
class Generated(Workload):
    """A generated graph, with what it was made of."""

    kind: str
    made: Made
    given: Mapping[str, Any] = field(default_factory=dict)  # as the user wrote them
    sources: tuple[Source, ...] = ()

    @property
    def graph(self) -> Graph:
        return self.made.graph

    @property
    def pins(self) -> Pins:
        return self.made.pins

    @property
    def name(self) -> str:
        """With the case where one was named: other cases are other workloads."""
        return f"{self.kind}_{self.given['case']}" if "case" in self.given else self.kind

    @property
    def own_factors(self) -> Collection[str]:
        return REGISTRY[self.kind].model.model_fields

    def document(self) -> dict[str, Any]:
        """With all parameters, times in nanoseconds."""
        return {"parameters": self.parameters}

    @property
    def parameters(self) -> dict[str, Any]:
        """All of them, as JSON has them; times in nanoseconds."""
        return REGISTRY[self.kind].model.model_validate(dict(self.given)).model_dump(mode="json")

    def at(self, factors: Mapping[str, Any]) -> Generated:
        """At these levels of factors, of which those of parameters count. Raises BadInput."""
        levels = {k.removeprefix(FACTOR): v for k, v in factors.items() if k.startswith(FACTOR)}
        mine = {key: level for key, level in levels.items() if key in self.own_factors}
        return self if not mine else _made(self.kind, {**self.given, **mine})

    def judged(self, trial: Trial, directory: Path, factors: Mapping[str, Any]) -> tuple[Judgement, OwnOutcome | None]:
        """What the kind says of a trial at these levels. Raises whatever it raises."""
        kind = REGISTRY[self.kind]
        parameters = kind.model.model_validate(dict(self.at(factors).given))
        return kind.judged(Ended(parameters, trial, directory))


def named(words: Any) -> str | None:
    """The kind that a workload of the command line or of a file names; None where it is something else."""
    if isinstance(words, str):
        name = words.partition(":")[0].strip()
        return name if name in REGISTRY else None
    if isinstance(words, Mapping | list | tuple):
        return next((kind for word in words if (kind := named(word)) is not None), None)
    return None


def parse(words: Any) -> GeneratedParameters:
    """What these words name; what is wrong beside the name `load` says. Raises ValueError without a name."""
    if isinstance(words, GeneratedParameters):
        return words
    if (name := named(words)) is None:
        raise ValueError(f"{words!r} names no generated workload")
    return GeneratedParameters(name=name, written=words)


def load(asked: GeneratedParameters) -> Generated:
    """Raises BadInput where a parameter is none, or is not right."""
    return _made(asked.name, asked.given())


def _made(name: str, given: Mapping[str, Any]) -> Generated:
    kind = REGISTRY[name]
    made = kind.make(given, f"workload {name}")
    own = {"own_figures": models.as_json(dict(kind.figures))} if kind.figures else {}
    return Generated(name, replace(made, graph=Graph({**made.graph.document, **own})), dict(given))
