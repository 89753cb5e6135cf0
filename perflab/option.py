"""Options of the command line, declared at the fields of models that they set.

    time: Annotated[DurationNs, Option(Group.LENGTH, short="-t")] = Field(10 * NS_PER_S, description="Measured time.")

makes the key `time` of an experiment file the option --time. Everything else comes from the field: its default, its
help, and from its type the metavar and the completion.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from perflab.registry import Kind

Words = Sequence[str] | Callable[[], Iterable[str]]  # or a function that returns them
Completer = Callable[[str], Iterable[str]]  # takes the text typed so far


class Group(StrEnum):
    """The headings of `perflab run --help`, in their order."""

    SEARCH = "What is searched"
    GRAPH = "The graph"
    VARIANTS = "Variants (every combination of the listed values runs)"
    LENGTH = "Duration, repetition, order"
    THREADS = "Threads and nodes"
    MEASURED = "What is measured"
    TRIAL = "Start and end of a trial"
    AROUND = "Conditions, factors, observers"
    VERDICTS = "Criteria and statistics"
    COMMAND = "A command as the workload (everything after --)"
    OUTPUT = "Output"


@dataclass(frozen=True)
class Option:
    """A field as an option. `name` is --FIELD by default; one without -- is the metavar of an argument.

    `many`: the option is repeatable; its value is a list, or a mapping of KEY=VALUE. `unit` is the unit of durations on
    the command line.
    """

    group: Group | None = None
    name: str | None = None
    short: str | None = None
    many: bool = False
    unit: Literal["us"] | None = None
    envvar: str | None = None


@dataclass(frozen=True)
class Form:
    """How values of a type are written: metavar, value as text, completion."""

    metavar: str
    text: Callable[[Any], str] = str
    complete: Completer | None = None


@dataclass(frozen=True)
class Declared:
    """An option, the place of its field in the document, and the field."""

    path: tuple[str, ...]
    option: Option
    field: FieldInfo

    @property
    def name(self) -> str:
        return self.option.name or f"--{self.path[-1].replace('_', '-')}"

    @property
    def parameter(self) -> str:
        """The variable's name in Python."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def is_option(self) -> bool:
        return self.name.startswith("--")

    @property
    def form(self) -> Form:
        return form_of(self.field)

    @property
    def default(self) -> str | None:
        """As shown in the help; None if the description includes it."""
        default = self.field.get_default(call_default_factory=True)
        if self.option.many or self.field.is_required() or default is None or default == []:
            return None
        return f"{default / 1000:g}" if self.option.unit == "us" else self.form.text(default)


def declared(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Declared]:
    """The options of a model and of the models within it, in the order of the fields."""
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        option = next((m for m in field.metadata if isinstance(m, Option)), None)
        if option is not None:
            yield Declared(here, option, field)
        for part in models_in(field.annotation):
            yield from declared(part, here)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a union, or the model itself."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        for part in get_args(annotation):
            yield from models_in(part)


def form_of(field: FieldInfo) -> Form:
    return _form(field.annotation, field.metadata)


def _form(annotation: Any, metadata: Sequence[Any] = ()) -> Form:
    if (own := next((m for m in reversed(metadata) if isinstance(m, Form)), None)) is not None:
        return own
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _form(parts[0], parts[1:])
    if origin in (Union, types.UnionType):
        return next(_form(part) for part in parts if part is not type(None))
    if origin is Literal:
        return Form("|".join(map(str, parts)), complete=one_of([str(part) for part in parts]))
    return _PLAIN.get(annotation, Form("TEXT"))


_PLAIN: Mapping[Any, Form] = {int: Form("N"), float: Form("X", lambda x: f"{x:g}"), Path: Form("DIR")}


def one_of(words: Words) -> Callable[[str], list[str]]:
    """Completes one of the words."""
    return lambda incomplete: [word for word in _all(words) if word.startswith(incomplete)]


def some_of(words: Words, separators: str = ",") -> Callable[[str], list[str]]:
    """Completes the last of several words, which are separated by these characters."""

    def complete(incomplete: str) -> list[str]:
        start = 1 + max(incomplete.rfind(separator) for separator in separators)
        return [incomplete[:start] + word for word in _all(words) if word.startswith(incomplete[start:])]

    return complete


def _all(words: Words) -> Iterable[str]:
    return words() if callable(words) else words


def kind_of(registry: Callable[[], Mapping[str, Kind[Any]]], joined: str | None = None) -> Callable[[str], list[str]]:
    """Completes NAME[:KEY=VALUE,...]: the names of kinds, their parameters, and possible values.

    Several kinds are joined by `joined`.
    """

    def complete(incomplete: str) -> list[str]:
        before, separator, last = incomplete.rpartition(joined) if joined else ("", "", incomplete)
        name, colon, given = last.partition(":")
        kinds = registry()
        if not colon:
            return [f"{before}{separator}{kind}" for kind in kinds if kind.startswith(name)]
        if name not in kinds:
            return []
        found = _parameters(kinds[name].fields, given)
        return [f"{before}{separator}{name}:{word}" for word in found]

    return complete


def _parameters(fields: Mapping[str, FieldInfo | None], given: str) -> list[str]:
    """Completions of KEY=VALUE,...: the unused keys, or values of the last one."""
    before, comma, last = given.rpartition(",")
    key, equals, value = last.partition("=")
    if equals:
        return [f"{before}{comma}{key}={word}" for word in values(fields.get(key), value)]
    there = {pair.partition("=")[0] for pair in before.split(",")}
    return [f"{before}{comma}{name}=" for name in fields if name.startswith(key) and name not in there]


def values(field: FieldInfo | None, incomplete: str) -> list[str]:
    """Completions for a field's value; none if its type has none."""
    complete = None if field is None else form_of(field).complete
    return [] if complete is None else list(complete(incomplete))
