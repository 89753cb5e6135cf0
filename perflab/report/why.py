"""Why messages were late, for a terminal: of every trial that was traced one sentence, and what passed the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perflab.report.label import labels
from perflab.report.table import Column, print_table
from perflab.results.trial import Result, Why
from perflab.trace.causes import CAUSES
from perflab.units import format_count

LEAST_SHARE = 0.5  # per cent of all lateness; a cause that is less everywhere has no column
MOST_COLUMNS = 7


def print_why(out: Console, results: Sequence[Result]) -> None:
    """Nothing where no trial was traced."""
    traced = [result for result in results if any(trial.why for trial in result.trials_detail)]
    found: list[tuple[str, Why]] = []
    for label, result in zip(_labels(traced), traced, strict=True):
        told = [(trial.trial, trial.why) for trial in result.trials_detail if trial.why]
        found += [(f"{label}, trial {number}" if len(told) > 1 else label, why) for number, why in told]
    if not found:
        return
    out.print("Why messages were late", style="bold")
    for label, why in found:
        out.print(Padding(Text.assemble((label, "bold"), ": ", _lower(why.sentence)), (0, 0, 0, 2)))
    out.print()
    late = [(label, why) for label, why in found if why.late]
    if late:
        print_table(out, _columns(late))
        out.print("shares of the time that the late messages took; `perflab trace why` tells more", style="dim")
        out.print()


def _labels(traced: Sequence[Result]) -> list[str]:
    """What the traced ones differ in among themselves; that they were traced is in the title."""
    if len(traced) == 1:
        return [traced[0].label]
    return labels([replace(result, purpose=None) for result in traced])


def _columns(found: Sequence[tuple[str, Why]]) -> list[Column]:
    shares = [{row["cause"]: row["total_percent"] for row in why.causes} for _, why in found]
    largest = {cause: max((share.get(cause) or 0.0 for share in shares), default=0.0) for cause in CAUSES}
    shown = [cause for cause, share in largest.items() if share >= LEAST_SHARE]
    kept = set(sorted(shown, key=lambda cause: -largest[cause])[:MOST_COLUMNS])
    return [
        Column("traced trial", 0, [Text(label) for label, _ in found], right=False),
        Column("late", 0, [Text(format_count(why.late)) for _, why in found]),
        Column("of", 1, [Text(format_count(why.messages)) for _, why in found]),
        *(
            Column(CAUSES[cause].short, 2 + number, [Text(_percent(share.get(cause))) for share in shares])
            for number, cause in enumerate(cause for cause in shown if cause in kept)
        ),
    ]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.3g} %"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
