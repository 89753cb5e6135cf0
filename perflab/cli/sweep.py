"""`perflab sweep`: a workload over the levels of factors, as degradation curves."""

from __future__ import annotations

from typing import Any

import typer

from perflab.cli.run import carry_out
from perflab.cli.run_options import takes


@takes(defaults={"trials": "5", "baseline_again": "off"})
def sweep(context: typer.Context, **values: Any) -> int:
    """Run a workload at every level of one or several factors, and see how it degrades.

    Conditions that a factor names need no --condition; with some, the sweep goes on under them. Level 0 of a load is
    the baseline. Levels that this machine cannot do are left out and told. Trials that fail are results: exit code 1
    is for trials that could not be judged.

    Example: perflab sweep sierra_nevada --factor cpu_load.load=0..90:15

    Example: perflab sweep sierra_nevada --factor message_flood.rate=100..3000/6log --condition
    message_flood:readers=inside --success 'lost == 0'

    Example: perflab sweep sierra_nevada --factor workload.rate=1,2,5,10 --middleware cyclonedds,fastdds
    """
    from perflab.experiment.sweep import as_sweep

    return carry_out(context, values, also={"sweep": True}, changed=as_sweep, verb="sweep")
