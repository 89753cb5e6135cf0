"""`perflab breaking-point`: the level of a factor at which a system no longer does what it must."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perflab.cli.run import carry_out
from perflab.cli.run_options import complete_factor, takes
from perflab.errors import BadInput

_SEARCH = "What is searched"


def _complete_scale(incomplete: str) -> list[str]:
    return [word for word in ("auto", "linear", "log") if word.startswith(incomplete)]


def _complete_breaks(incomplete: str) -> list[str]:
    return [word for word in ("above", "below") if word.startswith(incomplete)]


def searched(
    factor: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="What is turned up: message_flood.rate, cpu_load.load, workload.rate, sim.delay ...",
            autocompletion=complete_factor,
            show_default=False,
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    low: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="The search goes from this level, e.g. 100 or 1ms, ...",
            show_default=False,
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    high: Annotated[
        str | None,
        typer.Option(metavar="B", help="... to this one.", show_default=False, rich_help_panel=_SEARCH),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|linear|log",
            help="auto: log where B is at least ten times A.",
            autocompletion=_complete_scale,
            rich_help_panel=_SEARCH,
        ),
    ] = "auto",
    breaks: Annotated[
        str,
        typer.Option(
            metavar="above|below",
            help="On which side of the breaking point the system breaks; below: of CPUs, few break it.",
            autocompletion=_complete_breaks,
            rich_help_panel=_SEARCH,
        ),
    ] = "above",
    criterion: Annotated[
        str,
        typer.Option(
            metavar="C",
            help="What a trial must meet: success (with what --success says), a bound like 'latency.p99 <= 5ms', "
            "'late_share <= 1 %', 'lost == 0', or target:FILE|NAME.",
            rich_help_panel=_SEARCH,
        ),
    ] = "success",
    share: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="The share of trials that must meet it: default 0.9 of success, 0.5 of a bound.",
            show_default=False,
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="P%",
            help="Width of the interval that is good enough, as a part of the range from A to B (on a logarithmic "
            "scale, of its logarithm).",
            rich_help_panel=_SEARCH,
        ),
    ] = "10%",
    max_trials: Annotated[
        int, typer.Option(metavar="N", help="After so many trials the search ends.", rich_help_panel=_SEARCH)
    ] = 60,
    confidence: Annotated[str, typer.Option(metavar="P%", help="Of the interval.", rich_help_panel=_SEARCH)] = "95%",
) -> None:
    """Never called: the options of the search, which stand before those of `perflab run`."""


_KEYS = ("factor", "low", "high", "scale", "breaks", "criterion", "share", "precision", "max_trials", "confidence")


@takes(without=("factor", "trials", "order", "baseline_again", "observer_control"), beside=searched)
def breaking_point(context: typer.Context, **values: Any) -> int:
    """Search for the level at which a system breaks, trial by trial, each where it tells most.

    Prints the level with its interval; or that the range does not reach it, or that there is no such level. One search
    per variant. Trials that were invalid, or that the laboratory failed, never count as breaking.

    Example: perflab breaking-point sierra_nevada --factor message_flood.rate --low 100 --high 4000 --condition
    message_flood:readers=inside,work=100us --criterion 'latency.p50 <= 200us'

    Example: perflab breaking-point sierra_nevada --factor workload.rate --low 1 --high 100 --criterion
    'response.p99 <= 5ms' --time 2
    """
    from perflab.experiment.sweep import as_search

    options = {key: values.pop(key) for key in _KEYS}
    given = {key: value for key, value in options.items() if _is_given(context, key)}
    also = {"breaking_point": given} if given else {}
    if values["resume"] is not None and given:
        option = next(iter(given)).replace("_", "-")
        raise BadInput(f"--resume goes on with what {values['resume']!r} was; --{option} cannot be changed")
    return carry_out(context, values, also=also, changed=as_search, verb="breaking-point")


def _is_given(context: typer.Context, key: str) -> bool:
    source = context.get_parameter_source(key)
    return source is not None and source.name == "COMMANDLINE"
