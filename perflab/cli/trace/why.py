"""`perflab trace why`: what late messages waited for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.trace.common import Asked, Paths
from perflab.errors import BadInput
from perflab.units import parse_duration

if TYPE_CHECKING:
    from perflab.trace.why import Selection

_TREES = ("causes",)


@Asked.options("top")
def why(
    paths: Paths,
    later_than: Annotated[
        str | None,
        typer.Option("--later-than", metavar="TIME", help="Messages that took longer: 5ms, 200us.", show_default=False),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The N slowest of all.", show_default=False)
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            metavar="Q",
            help="Of every edge, those from this quantile on.",
            show_default="what the run calls late; else 0.99",
        ),
    ] = None,
    slow_callbacks: Annotated[
        bool, typer.Option("--slow-callbacks", help="Ask about callbacks and their durations instead.")
    ] = False,
    **options: Any,
) -> int:
    """Show what late messages waited for, and who was in their way.

    The time of each late message, from when it was due to its callback, is cut into parts that add up to it: waits for
    a CPU and who had it, callbacks ahead in the executor, the sender's own work, the middleware, the way. With --all
    and in JSON all parts of each message.

    \b
        perflab trace why session --later-than 5ms
        perflab trace why session --slow-callbacks --top 20
    """
    from perflab.trace.why import Selection
    from perflab.trace.why import why as answer

    late = {"--later-than": later_than, "--top": top, "--quantile": quantile}
    said = [name for name, value in late.items() if value is not None]
    if len(said) > 1:
        raise BadInput(f"{' and '.join(said)} are two ways to say what is late; give one of them")
    selection = Selection(
        later_than_ns=None if later_than is None else parse_duration(later_than, "--later-than", zero_allowed=True),
        slowest=top,
        per_mille=None if quantile is None else _per_mille(quantile),
        slow_callbacks=slow_callbacks,
    )
    if not said and not slow_callbacks:
        selection = _of_run(paths) or selection
    asked = Asked(**options)
    trace = asked.open(paths)
    found = answer(trace, dataclasses.replace(selection, scope=asked.scope(trace)))
    if not (asked.whole or asked.as_json):
        found = dataclasses.replace(found, sections=tuple(s for s in found.sections if s.name != "parts"))
    return asked.show(found, _TREES)


def _of_run(paths: Sequence[Path]) -> Selection | None:
    """What the report of a run calls late, where the trace is that of one of its trials."""
    from perflab.runs.traced import asked_of

    return asked_of(paths[0]) if len(paths) == 1 else None


def _per_mille(quantile: float) -> int:
    per_mille = round(quantile * 1000) if 0 <= quantile < 1 else -1
    if per_mille < 0 or abs(per_mille - quantile * 1000) > 1e-9:
        raise BadInput(f"--quantile {quantile:g} is not in [0, 1) with at most three decimals: 0.9, 0.99, 0.999")
    return per_mille
