"""`perflab breaking-point`: the level of a factor at which a system no longer does what it must."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from perflab.cli.options import with_options
from perflab.cli.run import carry_out

_WITHOUT = ("factors", "trials", "order", "baseline_again", "observer_control")


def _parameters() -> list[inspect.Parameter]:
    from perflab.cli.run_options import takes

    return takes(without=_WITHOUT)


@with_options(_parameters)
def breaking_point(context: typer.Context, **values: Any) -> int:
    """Search for the level at which a system breaks, trial by trial, each where it tells most.

    Prints the level with its interval; or that the range does not reach it, or that there is no such level. One search
    per variant. Trials that were invalid, or that the laboratory failed, never count as breaking.

    Example: perflab breaking-point sierra_nevada --factor message_flood.rate --low 100 --high 4000 --condition
    message_flood:readers=inside,work=100us --criterion 'latency.p50 <= 200us'

    Example: perflab breaking-point sierra_nevada --factor workload.timer_speed --low 1 --high 100 --criterion
    'response.p99 <= 5ms' --time 2
    """
    from perflab.design.sweep import as_search

    return carry_out(context, values, changed=as_search, verb="breaking-point", without=_WITHOUT)
