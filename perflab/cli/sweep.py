"""`perflab sweep`: a workload over the levels of factors, as degradation curves."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from perflab.cli.options import with_options
from perflab.cli.run import carry_out

_HOW: dict[str, Any] = {"without": ("breaking_point",), "defaults": {"trials": "5", "baseline_again": "off"}}


def _parameters() -> list[inspect.Parameter]:
    from perflab.cli.run_options import takes

    return takes(**_HOW)


@with_options(_parameters)
def sweep(context: typer.Context, **values: Any) -> int:
    """Run a workload at every level of one or several factors, and see how it degrades.

    Conditions that a factor names need no --condition; with some, the sweep goes on under them. Level 0 of a load is
    the baseline. Levels are skipped if this machine cannot produce them, and reported. Trials that fail are results:
    exit code 1 is for trials that could not be judged.

    Example: perflab sweep sierra_nevada --factor cpu_load.load=0..90:15

    Example: perflab sweep sierra_nevada --factor message_flood.rate=100..3000/6log --condition
    message_flood:readers=inside --success 'lost == 0'

    Example: perflab sweep sierra_nevada --factor workload.timer_speed=1,2,5,10 --middleware cyclonedds,fastdds
    """
    from perflab.design.sweep import as_sweep

    return carry_out(context, values, also={"sweep": True}, changed=as_sweep, verb="sweep", **_HOW)
