"""What executors cost, in a terminal and as a picture: CPU time for each message beside the middleware alone, where it
went by families of functions, and what the threads of executors did."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from perflab.quantity import SHARE
from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Span, Spans, rows_axis
from perflab.report.table import print_declared
from perflab.report.tables.costs import FAMILIES_NOTE, GROUP_NAMES, names, shown, tables
from perflab.results.summary import Summary
from perflab.statistics.cost import ENDED
from perflab.statistics.executor_costs import OTHER

ROLE_NAMES: Mapping[str, str] = {
    "executor": "executor's threads",
    "middleware": "middleware's threads",
    "perflab": "perflab's threads",
    "tracer": "tracer's threads",
    ENDED: "threads that ended",
}


def print_costs(out: Console, summary: Summary) -> None:
    """Nothing where the run is not about executors."""
    for table in tables(summary):
        print_declared(out, table)


# -- the picture -----------------------------------------------------------------------------------------------------

TOP, BOTTOM = -0.2, 0.4  # of a bar from the middle of its row; a page writes the name above it


def figure(summary: Summary, name: str = "executor_costs") -> Figure | None:
    """CPU time in stacked bars: by families where every treatment was profiled, else by the role of threads."""
    rows = shown(summary)
    drawn = [row for row in rows if row.cpu_percent.value is not None]
    by_families = bool(drawn) and all(row.families is not None for row in drawn)
    drawn = [row for row in drawn if by_families or row.roles is not None]
    if not drawn:
        return None
    per_message = all(row.cpu_per_message_ns.value is not None for row in drawn)
    totals = [(row.cpu_per_message_ns if per_message else row.cpu_percent).value or 0.0 for row in drawn]
    unit = axes.time_unit(totals) if per_message else axes.Unit("%", 1.0)
    called = names(drawn)
    if len({row.middleware for row in drawn}) > 1:
        called = [f"{text}, {row.middleware}" for text, row in zip(called, drawn, strict=True)]
    parts = list(GROUP_NAMES if by_families else ROLE_NAMES)
    words = GROUP_NAMES if by_families else ROLE_NAMES
    grounds = OTHER if by_families else ENDED  # a colour is no part of what is not known
    spans: dict[str, list[Span]] = {}
    for place, (row, total) in enumerate(zip(drawn, totals, strict=True)):
        shares = row.families.groups if row.families is not None and by_families else row.roles or {}
        begin = 0.0
        for part in parts:
            size = shares.get(part, 0.0) * total / unit.ns
            if not size:
                continue
            said = f"{called[place]}: {words[part]} {size:.3g} {unit.name}, {SHARE.text(shares[part])}"
            label = "" if part == grounds else f"{100 * shares[part]:.0f} %"  # it cannot be read on grey
            span = Span(begin, begin + size, place + TOP, place + BOTTOM, label, said)
            spans.setdefault(part, []).append(span)
            begin += size
    high = 1.05 * max(totals) / unit.ns or 1.0
    places = {part: None if part == grounds else n for n, part in enumerate(p for p in parts if p in spans)}
    what = "CPU time per message" if per_message else "CPU time"
    groups = tuple((n, words[part]) for part, n in places.items() if n is not None)
    keys = tuple(Key(words[part], None, sign="ground") for part, n in places.items() if n is None)
    return Figure(
        name=name,
        title=f"{what}, {'by families of functions' if by_families else 'by the role of threads'}",
        subtitle=", ".join(dict.fromkeys(str(row.workload) for row in drawn)) + ": medians over trials",
        x=Axis(f"{what} ({unit.name}{'' if per_message else ' of one CPU'})", "linear", 0.0, high,
               axes.linear_ticks(0.0, high)),
        y=rows_axis(called),
        series=(),
        groups=groups,
        keys=keys,
        notes=(FAMILIES_NOTE,) if by_families else (),
        spans=tuple(Spans(words[part], places[part], tuple(found)) for part, found in spans.items()),
        lanes=2,
    )  # fmt: skip
