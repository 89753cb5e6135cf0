"""The picture of a run's course: which trial ran when, under which treatment, which were invalid, and where perflab
waited for a quiet machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Plot, Span, Spans, fixed, rows
from perflab.report.results import Trials, as_in_summary
from perflab.results.outcome import SUCCESS
from perflab.results.run import TrialTables
from perflab.results.trial import EXTRA
from perflab.units import format_duration, plural

MAX_ROWS = 24
UNDISTURBED, DISTURBED, WATCHED, WRONG, BUSY = range(5)
NAMES = ("undisturbed", "under a condition", "watched by a tracer or a profiler", "not successful")
TOP, BOTTOM = -0.2, 0.4  # half height of a bar in its row


@dataclass(frozen=True)
class _Ran:
    """A trial: its begin, end and the begin of its wait, in seconds since the first trial began to wait."""

    trial: TrialTables
    waits: float
    begin: float
    end: float


def course(results: Sequence[Trials]) -> Figure | None:
    """A row for each result of the first run with recorded times; None for fewer than two."""
    run = next((r.run for r in results if any(_times(t) for t in r.trials)), None)
    own = as_in_summary([result for result in results if result.run is run])
    ran = {id(result): _ran(result) for result in own}
    begins = [one.waits for found in ran.values() for one in found]
    if len(begins) < 2:
        return None
    first = min(begins)
    # Sorting worst last would hide it: a result with unsuccessful trials keeps its row.
    order = sorted(own, key=lambda result: all(r.trial.outcome == SUCCESS for r in ran[id(result)]))
    kept = {id(result) for result in order[:MAX_ROWS]}
    shown = [result for result in own if id(result) in kept]
    bars: dict[int | None, list[Span]] = {}
    signs: list[tuple[float, float, str]] = []
    busy: list[tuple[float, float, str]] = []
    latest = 0.0
    for place, result in enumerate(shown):
        for one in ran[id(result)]:
            trial, begin, end = one.trial, one.begin - first, one.end - first
            latest = max(latest, end)
            words = f"{result.label}<br>trial {trial.number}: {trial.outcome.words}"
            waited = (
                f"waited {format_duration(one.begin - one.waits)} for a quiet machine" if one.begin > one.waits else ""
            )
            if waited:
                said = f"trial {trial.number} {waited}"
                bars.setdefault(None, []).append(Span(one.waits - first, begin, place + TOP, place + BOTTOM, "", said))
            group = _group(trial)
            bars.setdefault(group, []).append(Span(begin, end, place + TOP, place + BOTTOM, "", words))
            if trial.outcome != SUCCESS:
                signs.append(((begin + end) / 2, place + (TOP + BOTTOM) / 2, words))
            if trial.quiet is False:
                busy.append((begin, place + (TOP + BOTTOM) / 2, f"{words}<br>began on a busy machine"))
    plot = Plot(
        fixed(
            Axis(
                "time since the first trial began (s)", "linear", 0.0, latest * 1.01, axes.linear_ticks(0.0, latest, 8)
            )
        ),
        rows([result.label for result in shown]),
    )
    plot.points("not successful", WRONG, signs, sign="cross")
    plot.points("began on a busy machine", BUSY, busy, sign="ring")
    if rest := len(own) - len(shown):
        plot.notes.append(f"{plural(rest, 'result')} with only successful trials: not drawn.")
    trials, lasting = sum(map(len, ran.values())), None if run is None else run.lasted_s
    return plot.figure(
        "course",
        "What ran when",
        f"{shown[0].workload}: {plural(trials, 'trial')}{f' in {format_duration(lasting)}' if lasting else ''}",
        enumerate(NAMES),
        [
            Key("waiting for a quiet machine", None, sign="ground"),
            Key("invalid, failed or stopped", None, sign="cross"),
            Key("began on a busy machine", None, sign="ring"),
        ],
        spans=tuple(
            Spans("waiting for a quiet machine" if group is None else NAMES[group], group, tuple(found))
            for group, found in sorted(bars.items(), key=lambda item: -1 if item[0] is None else item[0])
        ),
        lanes=1,
    )


def _group(trial: TrialTables) -> int:
    if trial.outcome != SUCCESS:
        return WRONG
    return WATCHED if trial.purpose == EXTRA else DISTURBED if trial.is_disturbed else UNDISTURBED


def _ran(result: Trials) -> list[_Ran]:
    found = []
    for trial in (*result.trials, *result.left_out):
        if (times := _times(trial)) is not None:
            begin, end = times
            found.append(_Ran(trial, begin, min(end, begin + (trial.waited_s or 0.0)), end))
    return found


def _times(trial: TrialTables) -> tuple[float, float] | None:
    """Seconds of the time of day at which it began to wait, began, and ended; None if not recorded."""
    return None if trial.span is None else (trial.span[0].timestamp(), trial.span[1].timestamp())
