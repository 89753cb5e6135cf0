"""Builds the commands of verbs lazily, with grouped options and an optional command line after --.

Help is plain text, so that it reads the same in a terminal, a pipe and a narrow window.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param
from typer.core import TyperCommand

from perflab import phases
from perflab.option import one_of

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter
    from typer._click.formatting import HelpFormatter


_COLUMN = 26  # width of the option column; the help of a longer option starts on the next line


# The words after --, kept in a context.
COMMAND_KEY = "perflab.command"

# An attribute of a verb with **values: the function that makes the parameters for which they stand.
PARAMETERS = "make_parameters"
_VERB = "verb"
_PROGRESS = phases.OPTION.removeprefix("--")


def late(module: str, name: str) -> Callable[[], int]:
    """A verb whose module is imported on first use: importing all of them takes longer than most answers."""

    def stub() -> int:
        raise AssertionError("LateCommand replaces it with the real verb")

    setattr(stub, _VERB, (module, name))
    return stub


class LateCommand(TyperCommand):
    """A command that `late` made from a verb. If the verb makes its own parameters, it makes them here."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        if (verb := self._verb()) is not None:
            app = typer.Typer(add_completion=False)
            app.command()(_with_parameters(verb))
            made = typer.main.get_command(app)
            self.params, self.callback, self.help = made.params, made.callback, made.help
        return super().get_params(ctx)

    def get_short_help_str(self, limit: int = 45) -> str:
        if (place := self._place) is not None:
            self.help = _docstring(*place)
        return super().get_short_help_str(limit)

    @property
    def _place(self) -> tuple[str, str] | None:
        """Module and name of the verb; None once the verb is loaded."""
        return getattr(self.callback, _VERB, None)

    def _verb(self) -> Callable[..., int] | None:
        if (place := self._place) is None:
            return None
        module, name = place
        verb: Callable[..., int] = getattr(importlib.import_module(module), name)
        return verb


@dataclass(frozen=True)
class _Plain(RuntimeParam):
    """Converts texts, paths and defaults without typer. Everything else is left to typer, which imports pydantic: that
    takes longer than many answers.
    """

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        annotation: Any = self.annotation
        several = get_origin(annotation) is list
        kind = get_args(annotation)[0] if several else annotation
        made = [Path(one) if kind is Path and isinstance(one, str) else one for one in (value if several else [value])]
        if kind not in (str, Path, int, bool) or not all(isinstance(one, kind) for one in made):
            return build_runtime_param(self.descriptor)._coerce_value(value, param=param, ctx=ctx)
        return made if several else made[0]


def _coercion(descriptor: TypeDescriptor) -> RuntimeParam:
    return _Plain(descriptor.parameter_info, descriptor.annotation, descriptor)


# typer has no other place for it, and its models would import pydantic even for options that are not given.
setattr(typer.core, "build_runtime_param", _coercion)  # noqa: B010 - it exports the name to nobody


def _docstring(module: str, function: str) -> str:
    """The docstring of a function, read from the module's source without importing it: the help lists every verb."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None
    code = SourceFileLoader(module, found.origin).get_code(module)
    assert code is not None
    body = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == function)
    return inspect.cleandoc(str(body.co_consts[0]))


def _with_parameters(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with the parameters that it makes itself, and with --progress, which every command has."""
    hints = get_type_hints(verb, include_extras=True)
    own = [
        p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY)
        for p in inspect.signature(verb).parameters.values()
        if p.kind != p.VAR_KEYWORD
    ]
    make: Callable[[], list[inspect.Parameter]] = getattr(verb, PARAMETERS, list)
    parameters: list[inspect.Parameter] = [*own, *make()]
    parameters.append(_progress(parameters))

    def called(**values: Any) -> int:
        del values[_PROGRESS]  # chosen when the file was read
        return verb(**values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__doc__ = verb.__doc__
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _progress(beside: Sequence[inspect.Parameter]) -> inspect.Parameter:
    """--progress, placed after a command's own options."""
    said = [getattr(a, "rich_help_panel", None) for p in beside[-1:] for a in getattr(p.annotation, "__metadata__", ())]
    option = typer.Option(
        phases.OPTION,
        metavar="|".join(phases.MODES),
        help=phases.HELP,
        envvar=phases.ENVIRONMENT,
        callback=_choose,
        is_eager=True,
        expose_value=False,
        autocompletion=one_of(phases.MODES),
        rich_help_panel=next(iter(said), None),
    )
    return inspect.Parameter(
        _PROGRESS, inspect.Parameter.KEYWORD_ONLY, default=phases.AUTO, annotation=Annotated[str, option]
    )


def _choose(context: typer.Context, mode: str) -> str:
    """Raises BadInput."""
    source = context.get_parameter_source(_PROGRESS)
    phases.check(mode, from_environment=source is not None and source.name == "ENVIRONMENT")
    phases.choose(mode)
    return mode


class GroupedCommand(LateCommand):
    """A command whose options are listed under their `rich_help_panel`, in order of first appearance."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                fallback = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or fallback, []).append(
                    (record[0].ljust(_COLUMN), record[1])
                )
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=_COLUMN)


class CommandAfterDashes(GroupedCommand):
    """A command that keeps everything after the first -- unchanged, as another command line."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[COMMAND_KEY] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]
