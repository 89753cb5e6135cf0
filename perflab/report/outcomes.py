"""The picture of outcomes, if the kind of workload has its own: a row for each result."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report.axes import linear_ticks
from perflab.report.captions import interval_of
from perflab.report.figures import Axis, Figure, Key, Plot, Span, Spans, fixed, rows
from perflab.report.label import labels
from perflab.report.tables.outcomes import LEVEL, counted, there_are
from perflab.results.outcome import OwnOutcome
from perflab.results.run import RunData
from perflab.results.trial import Result
from perflab.statistics.proportion import wilson
from perflab.units import plural

MAX_ROWS = 60
OTHERWISE = "failed otherwise"
TOP, BOTTOM = -0.42, -0.02  # half height of a bar in its row
_BELOW, _STEP = 0.14, 0.2  # offset of the intervals: of the first one, and from one to the next


def outcomes(runs: Sequence[RunData]) -> Figure | None:
    """Shares of the judged trials as a bar, coloured by outcome, with their intervals below it; None if no workload has
    its own outcomes."""
    found = [(run, r) for run in runs for r in run.summary.results if not r.is_extra and r.outcomes.judged]
    ordered = there_are(result for _, result in found)
    if not ordered:
        return None
    words = [*(own.words for own in ordered), OTHERWISE]
    named = list(zip(labels([r for _, r in found], [run.name for run, _ in found]), found, strict=True))
    troubled = {id(result) for _, (_, result) in named if result.outcomes.failed}
    kept = {id(r) for _, (_, r) in sorted(named, key=lambda one: id(one[1][1]) not in troubled)[:MAX_ROWS]}
    shown = [(name, result) for name, (_, result) in named if id(result) in kept]
    bars: dict[int, list[Span]] = {}
    whole = Axis("share of the judged trials (%)", "linear", 0.0, 100.0, linear_ticks(0.0, 100.0, 10))
    plot = Plot(fixed(whole), rows([name for name, _ in shown]))
    lanes = 1
    for row, (name, result) in enumerate(shown):
        counts = _counts(result, ordered)
        n, begin, lane = result.outcomes.judged, 0.0, 0
        for group, k in enumerate(counts):
            if not k:
                continue
            said = f"{name}<br>{words[group]}: {k} of {n}"
            end = begin + 100 * k / n
            bars.setdefault(group, []).append(Span(begin, end, row + TOP, row + BOTTOM, f"{k}/{n}", said))
            begin = end
            if (interval := wilson(k, n, LEVEL)) is not None:
                low, high = (100 * side for side in interval)
                mark = (100 * k / n, row + _BELOW + _STEP * lane, (low, high), f"{said} [{low:.0f}, {high:.0f}] %")
                plot.whiskers(f"{name}, {words[group]}", group, [mark], sign="full", across=True, sizes=(0.7,))
                lane += 1
        lanes = max(lanes, lane)
    if rest := len(named) - len(shown):
        plot.notes.append(f"{plural(rest, 'result')} not drawn; those with failed trials are.")
    trials = sum(result.outcomes.judged for _, result in shown)
    if left := sum(result.outcomes.total - result.outcomes.judged for _, result in shown):
        told = "shows nothing about the system, and is" if left == 1 else "show nothing about the system, and are"
        plot.notes.append(f"{plural(left, 'trial')} {told} in no share.")
    return plot.figure(
        "outcomes",
        "Outcomes of the trials",
        f"{', '.join(dict.fromkeys(r.workload for _, r in shown))}: {plural(trials, 'judged trial')}",
        list(enumerate(words)),
        [Key(f"share with its {interval_of([LEVEL])} (Wilson)", None, sign="whisker")],
        spans=tuple(Spans(words[group], group, tuple(spans)) for group, spans in sorted(bars.items())),
        lanes=1 + min(lanes, 2),
    )  # fmt: skip


def _counts(result: Result, ordered: Sequence[OwnOutcome]) -> list[int]:
    """How many trials had each of these outcomes, and how many failed for another reason."""
    own = [counted(result, one) for one in ordered]
    return [*own, max(0, result.outcomes.judged - sum(own))]
