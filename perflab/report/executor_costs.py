"""The picture of executor costs: the CPU time for each message, and its parts."""

from __future__ import annotations

from collections.abc import Mapping

from perflab.quantity import SHARE
from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Plot, Span, Spans, fixed, rows
from perflab.report.tables.costs import FAMILIES_NOTE, GROUP_NAMES, names, shown
from perflab.results.summary import Summary
from perflab.statistics.cost import ENDED
from perflab.statistics.executor_costs import OTHER

ROLE_NAMES: Mapping[str, str] = {
    "executor": "executor's threads",
    "program": "program's threads",
    "middleware": "middleware's threads",
    "perflab": "perflab's threads",
    "tracer": "tracer's threads",
    ENDED: "threads that ended",
}


TOP, BOTTOM = -0.2, 0.4  # half height of a bar in its row; a page writes the name above it


def figure(summary: Summary) -> Figure | None:
    """CPU time in stacked bars: by families if every treatment was profiled, else by role of threads."""
    drawn = [row for row in shown(summary) if row.cpu_percent.value is not None]
    by_families = bool(drawn) and all(row.families is not None for row in drawn)
    drawn = [row for row in drawn if by_families or row.roles is not None]
    if not drawn:
        return None
    per_message = all(row.cpu_per_message_ns.value is not None for row in drawn)
    totals = [(row.cpu_per_message_ns if per_message else row.cpu_percent).value or 0.0 for row in drawn]
    name, per = axes.time_unit(totals) if per_message else ("%", 1.0)
    called = names(drawn)
    if len({row.middleware for row in drawn}) > 1:
        called = [f"{text}, {row.middleware}" for text, row in zip(called, drawn, strict=True)]
    words = GROUP_NAMES if by_families else ROLE_NAMES
    grounds = OTHER if by_families else ENDED  # unknown parts have no colour of their own
    spans: dict[str, list[Span]] = {part: [] for part in words}
    for place, (row, total) in enumerate(zip(drawn, totals, strict=True)):
        shares = row.families.groups if row.families is not None and by_families else row.roles or {}
        begin = 0.0
        for part in words:
            if not (size := shares.get(part, 0.0) * total / per):
                continue
            said = f"{called[place]}: {words[part]} {size:.3g} {name}, {SHARE.text(shares[part])}"
            label = "" if part == grounds else f"{100 * shares[part]:.0f} %"  # unreadable on grey
            spans[part].append(Span(begin, begin + size, place + TOP, place + BOTTOM, label, said))
            begin += size
    having = [part for part, of in spans.items() if of]
    places = {part: None if part == grounds else n for n, part in enumerate(having)}
    high = 1.05 * max(totals) / per or 1.0
    what = "CPU time per message" if per_message else "CPU time"
    title = f"{what} ({name}{'' if per_message else ' of one CPU'})"
    plot = Plot(fixed(Axis(title, "linear", 0.0, high, axes.linear_ticks(0.0, high))), rows(called))
    plot.notes += [FAMILIES_NOTE] if by_families else []
    return plot.figure(
        "executor_costs",
        f"{what}, {'by families of functions' if by_families else 'by role of threads'}",
        ", ".join(dict.fromkeys(str(row.workload) for row in drawn)) + ": medians over trials",
        [(n, words[part]) for part, n in places.items() if n is not None],
        [Key(words[part], None, sign="ground") for part, n in places.items() if n is None],
        spans=tuple(Spans(words[part], n, tuple(spans[part])) for part, n in places.items()),
        lanes=2,
    )
