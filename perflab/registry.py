"""Kinds that a user names as "NAME[:key=value,...]" or, in a file, as a mapping: conditions and observers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from perflab.errors import BadInput, instead
from perflab.option import form_of
from perflab.validation import plain, what_is_wrong

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _never(_: Mapping[str, Any]) -> bool:
    return False


def _as_it_is(parameters: Any, /) -> Any:
    """Of a specification, i.e. its parameters."""
    return parameters


class Factory(Protocol[T_co]):
    """Makes a specification from validated parameters."""

    def __call__(self, parameters: Any, /) -> T_co: ...


@dataclass(frozen=True)
class Kind(Generic[T]):
    """Its name, one line about it, the model of its parameters, and its constructor.

    Every field of `model` has a description, which `perflab list` prints, and accepts the text of the command line
    ("10ms", "80", "1kB", "0-3") as well as the value of a YAML file. Unknown keys are rejected.

    `is_off`: whether parameters as written request nothing at all, like a load of 0: so a factor can begin there,
    although a condition with that strength cannot be made.

    `words` describes parameters as recorded by a run: "4 × 80 % CPU load". Default: the name.

    `gently` are parameters for a smoke test, as on the command line: a small machine must manage them beside its other
    work. If there are several, the others cover what not every machine has.

    `names` looks up parameters that the model accepts in addition to its fields, for a kind whose model accepts any
    name.
    """

    name: str
    summary: str
    model: type[BaseModel]
    create: Factory[T] = _as_it_is
    is_off: Callable[[Mapping[str, Any]], bool] = _never
    words: Callable[[Mapping[str, Any]], str] | None = None
    gently: tuple[str, ...] = ("",)
    names: Callable[[], Iterable[str]] | None = None

    @property
    def tries(self) -> dict[str, str]:
        """The smoke test's specifications, by the name of the check."""
        first, *others = self.gently
        further = {f"{self.name} with {words.partition('=')[0]}": f"{self.name}:{words}" for words in others}
        return {self.name: f"{self.name}:{first}" if first else self.name, **further}

    def takes(self, key: str) -> bool:
        """Whether it may be a parameter."""
        return key in self.model.model_fields or self.names is not None

    @property
    def fields(self) -> dict[str, FieldInfo | None]:
        """All parameters by name, with the field that declares each."""
        named: dict[str, FieldInfo | None] = dict.fromkeys(() if self.names is None else self.names())
        return {**named, **self.model.model_fields}

    def make(self, parameters: Mapping[str, Any], where: str) -> T:
        """A specification with these parameters; `where` begins the line of BadInput if they are wrong."""
        from pydantic import ValidationError  # importing it takes a quarter of a start, and other checks can come first

        try:
            validated = self.model.model_validate(dict(parameters))
        except ValidationError as error:
            raise BadInput(f"{where}: {in_words(error, self.model)}") from error
        return self.create(validated)


def in_words(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem of a validation: which key, the given value, what would be right."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
    if first["type"] == "extra_forbidden":
        return f"no parameter {key!r}; {instead(key, model.model_fields)}"
    if first["type"] == "missing":
        return f"{key} is required"
    where = f"{key}: " if key else ""  # none if several keys exclude each other
    text = form_of(model.model_fields[key]).text if key in model.model_fields else plain
    if (said := what_is_wrong(first, text)) is not None:
        return where + said
    message = first["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if first["type"] == "value_error":
        return where + message
    return f"{where}{message[:1].lower()}{message[1:]}, not {first['input']!r}"


def parse(words: Sequence[str], what: str, registry: Mapping[str, Kind[T]]) -> list[T]:
    """The specifications in the words of the option `--{what}`, in their order. Raises BadInput."""
    return [make(*split(word, f"--{what}"), what, registry, f"--{what} {word}") for word in words]


def make(name: str, parameters: Mapping[str, Any], what: str, registry: Mapping[str, Kind[T]], where: str) -> T:
    """A specification of the kind `name`. Raises BadInput."""
    if name not in registry:
        raise BadInput(f"no {what} named {name!r}; {instead(name, sorted(registry))}")
    return registry[name].make(parameters, where)


def split(word: str, option: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of "NAME[:key=value,...]". A comma within a value is part of it if no key= follows.

    >>> split("cpu_pinning:cpus=0,2,processes=a", "--condition")
    ('cpu_pinning', {'cpus': '0,2', 'processes': 'a'})
    """
    name, colon, rest = word.partition(":")
    parameters: dict[str, str] = {}
    last: str | None = None
    for pair in rest.split(",") if colon else []:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if equals and key:
            if key in parameters:
                raise BadInput(f"{option} {word!r} gives {key} twice")
            parameters[key], last = value, key
        elif last is not None and not equals and pair.strip():
            parameters[last] += f",{pair.strip()}"
        else:
            raise BadInput(f"{option} {word!r} is not NAME:key=value,...; {pair!r} has no value")
    return name, parameters
