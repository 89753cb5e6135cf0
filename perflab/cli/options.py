"""From options that models declare (perflab/option.py) to what typer is given, and from what it read back to keys."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

from perflab.cli.commands import PARAMETERS
from perflab.errors import BadInput
from perflab.option import Declared, Form, Group

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_NUMBER = 1e12  # of a threshold


def with_options(make: Callable[[], list[inspect.Parameter]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a verb, instead of its **values, the parameters that `make` makes when they are needed."""

    def give(verb: Callable[..., int]) -> Callable[..., int]:
        setattr(verb, PARAMETERS, make)
        return verb

    return give


def parameters(options: Iterable[Declared], defaults: Mapping[str, str] | None = None) -> list[inspect.Parameter]:
    """What typer shall make of the options, in the order of their groups; `defaults` are by keys of the document."""
    ordered = sorted((o for o in options if o.is_option), key=_place)
    return [_parameter(option, (defaults or {}).get(option.path[0], option.default)) for option in ordered]


def _place(option: Declared) -> int:
    return len(Group) if option.option.group is None else list(Group).index(option.option.group)


def _parameter(option: Declared, default: str | None) -> inspect.Parameter:
    form = option.form
    flag = option.field.annotation is bool and not any(isinstance(m, Form) for m in option.field.metadata)
    names = [option.name, *([option.option.short] if option.option.short else [])]
    help_ = f"{option.field.description}{' Repeatable.' if option.option.many else ''}"
    declared = typer.Option(
        *names,
        metavar=None if flag else form.metavar,
        help=help_,
        autocompletion=form.complete,
        rich_help_panel=option.option.group,
        envvar=option.option.envvar,
    )
    kind: Any = bool if flag else list[str] | None if option.option.many else str | None
    return inspect.Parameter(
        option.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if flag else default,
        annotation=Annotated[kind, declared],
    )


def given(context: typer.Context) -> set[str]:
    """The names of the parameters that stand on the command line, or in a variable of the environment."""
    return {name for name in context.params if _source(context, name) in ("COMMANDLINE", "ENVIRONMENT")}


def typed(context: typer.Context) -> set[str]:
    """Those that stand on the command line."""
    return {name for name in context.params if _source(context, name) == "COMMANDLINE"}


def _source(context: typer.Context, name: str) -> str | None:
    source = context.get_parameter_source(name)
    return None if source is None else source.name


def mapping_of(options: Iterable[Declared], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the values of these options are as keys of a file. Raises BadInput."""
    mapping: dict[str, Any] = {}
    for option in options:
        if (name := option.parameter) in values:
            within = mapping
            for key in option.path[:-1]:
                within = within.setdefault(key, {})
            within[option.path[-1]] = _value(option, values[name])
    return mapping


def _value(option: Declared, value: Any) -> Any:
    if option.option.many:
        return _pairs(value, option) if get_origin(option.field.annotation) is dict else list(value)
    if option.option.unit == "us":
        return f"{_number(value, option.name):.12g}us"
    return scalar(value) if _is_number(option) else value


def scalar(text: str) -> int | float | str:
    """As YAML would read it."""
    from perflab.design import levels

    return levels.scalar(text)


def _pairs(words: Sequence[str], option: Declared) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip("."):
            raise BadInput(f"{option.name} {word!r} is not {option.form.metavar}")
        if key in pairs:
            raise BadInput(f"{option.name} {word!r} comes after another value of {key!r}; give it once")
        pairs[key] = value
    return pairs


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MAX_NUMBER:
        raise BadInput(f"{option} {text} is not a number from 0 to {MAX_NUMBER:g}")
    return value


def _is_number(option: Declared) -> bool:
    annotation = option.field.annotation
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return not any(isinstance(m, Form) for m in option.field.metadata) and bool({int, float} & set(parts))


def read(model: type[BaseModel], options: Iterable[Declared], values: Mapping[str, Any]) -> Any:
    """The model of these values. Raises BadInput, which names the option."""
    from pydantic import ValidationError

    from perflab.validation import what_is_wrong

    options = list(options)
    chosen = {o.path[-1]: values[o.parameter] for o in options if values.get(o.parameter) is not None}
    try:
        return model.model_validate(chosen)
    except ValidationError as error:
        first = error.errors()[0]
        name = next(o.name for o in options if o.path[-1] == first["loc"][0])
        said = what_is_wrong(first) or str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"{name} {said}") from error
