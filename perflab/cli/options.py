"""Converts options that models declare (perflab/option.py) to typer's, and the values that typer parsed to keys."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

from perflab.cli.commands import PARAMETERS
from perflab.errors import DAMAGE, BadInput
from perflab.option import Declared, Form, Group, declared, form_of, one_of
from perflab.profile import MOST_FUNCTIONS

if TYPE_CHECKING:
    from pydantic import BaseModel

    from perflab.design.document import Statistics

MAX_NUMBER = 1e12  # of a threshold


def complete_run(incomplete: str) -> list[str]:
    """The runs below runs/ that complete a word of the command line."""
    return sorted(str(m.parent) for m in Path("runs").glob("*/manifest.json") if str(m.parent).startswith(incomplete))


def complete_metric(context: typer.Context, incomplete: str) -> list[str]:
    """The metrics that complete a word: those that every graph has, and those of the runs named before it."""
    from perflab.results import summary as summaries
    from perflab.statistics.key_figures import kinds_in
    from perflab.statistics.metrics import METRICS, made_by

    given = [context.params.get(name) for name in ("run", "baseline", "runs")]
    runs = [run for value in given for run in ([value] if isinstance(value, str) else value or ())]
    kinds: dict[str, str] = {}
    for folder in (Path(place) / run for run in runs for place in ("", "runs")):
        with contextlib.suppress(OSError, *DAMAGE):
            kinds |= kinds_in(summaries.read(json.loads((folder / "summary.json").read_text())))
    return [name for name in (*METRICS, *made_by(kinds)) if name.startswith(incomplete)]


AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]
MeasuredRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run directory, its name in runs/, or output of irobot_benchmark or performance_test.",
        autocompletion=complete_run,
    ),
]
MeasuredRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Run directories, or their names in runs/; also output of irobot_benchmark or performance_test.",
        autocompletion=complete_run,
        show_default=False,
    ),
]
TopFunctions = Annotated[
    int,
    typer.Option(
        "--top", metavar="N", min=1, max=MOST_FUNCTIONS, help="List the N hottest functions of each profiled process."
    ),
]
THEMES = ("auto", "light", "dark")
Theme = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        help="light, dark, or auto: the page follows the screen, and separate pictures are light.",
        show_default="auto",
        autocompletion=one_of(THEMES),
    ),
]


def complete_target(incomplete: str) -> list[str]:
    from perflab import catalog

    return [entry.name for entry in catalog.targets() if entry.name.startswith(incomplete)]


TargetName = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME",
        help="A target of irobot_benchmark, or a catalog name (`perflab list targets`).",
        autocompletion=complete_target,
        show_default=False,
    ),
]


def of_statistics(group: str | None = None) -> list[inspect.Parameter]:
    """--margin, --alpha and --metric for verbs that compare runs, under the verb's own heading if it has one."""
    return parameters(_statistics(), completes={"metric": complete_metric}, group=group)


def statistics(values: Mapping[str, Any]) -> Statistics:
    """The values of these options. Raises BadInput."""
    from perflab.design.document import Statistics

    said: Statistics = read(Statistics, _statistics(), values)
    return said


def _statistics() -> list[Declared]:
    from perflab.design.document import Statistics

    return list(declared(Statistics))


def with_options(make: Callable[[], list[inspect.Parameter]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a verb, instead of its **values, the parameters that `make` returns when they are needed."""

    def give(verb: Callable[..., int]) -> Callable[..., int]:
        setattr(verb, PARAMETERS, make)
        return verb

    return give


def parameters(
    options: Iterable[Declared],
    defaults: Mapping[str, str] | None = None,
    completes: Mapping[str, Callable[..., Iterable[str]]] | None = None,
    group: str | None = None,
) -> list[inspect.Parameter]:
    """The options as typer parameters, in the order of their groups; `defaults` are by document key; `completes`
    overrides a type's completion, by parameter. `group` replaces the groups of all options."""
    ordered = sorted((o for o in options if o.is_option), key=_place)
    return [
        _parameter(
            option,
            (defaults or {}).get(option.path[0], option.default),
            (completes or {}).get(option.parameter, option.form.complete),
            group or option.option.group,
        )
        for option in ordered
    ]


def _place(option: Declared) -> int:
    return len(Group) if option.option.group is None else list(Group).index(option.option.group)


def _parameter(
    option: Declared, default: str | None, complete: Callable[..., Iterable[str]] | None, group: str | None
) -> inspect.Parameter:
    form = option.form
    flag = option.field.annotation is bool and not any(isinstance(m, Form) for m in option.field.metadata)
    names = [option.name, *([option.option.short] if option.option.short else [])]
    help_ = f"{option.field.description}{' Repeatable.' if option.option.many else ''}"
    declared = typer.Option(
        *names,
        metavar=None if flag else form.metavar,
        help=help_,
        autocompletion=complete,
        rich_help_panel=group,
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
    """The names of the parameters given on the command line, or in an environment variable."""
    return {name for name in context.params if _source(context, name) in ("COMMANDLINE", "ENVIRONMENT")}


def typed(context: typer.Context) -> set[str]:
    """The parameters given on the command line."""
    return {name for name in context.params if _source(context, name) == "COMMANDLINE"}


def _source(context: typer.Context, name: str) -> str | None:
    source = context.get_parameter_source(name)
    return None if source is None else source.name


def mapping_of(options: Iterable[Declared], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these options as keys of a file. Raises BadInput."""
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
    """Parses a word as YAML would."""
    from perflab.design import levels

    return levels.scalar(text)


def _pairs(words: Sequence[str], option: Declared) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip("."):
            raise BadInput(f"{option.name} {word!r} is not {option.form.metavar}")
        if key in pairs:
            raise BadInput(f"{option.name} {word!r} follows another value of {key!r}; give it once")
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
    """The model filled with these values. Raises BadInput that names the option."""
    from pydantic import ValidationError

    from perflab.validation import what_is_wrong

    options = list(options)
    chosen = {o.path[-1]: values[o.parameter] for o in options if values.get(o.parameter) is not None}
    try:
        return model.model_validate(chosen)
    except ValidationError as error:
        first = error.errors()[0]
        option = next(o for o in options if o.path[-1] == first["loc"][0])
        said = what_is_wrong(first, form_of(option.field).text) or str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"{option.name} {said}") from error


def check_theme(theme: str | None) -> str:
    """Raises BadInput."""
    if theme is not None and theme not in THEMES:
        raise BadInput(f"--theme {theme!r} is not one of {', '.join(THEMES)}")
    return theme or "auto"
