"""What executors cost, in a terminal and as a picture: CPU time for each message beside the middleware alone, where it
went by families of functions, and what the threads of executors did. The page of a report and the tables for papers
are made of the same cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Span, Spans
from perflab.report.label import levels
from perflab.report.table import Column, print_table
from perflab.results.costs import CostRow
from perflab.results.summary import Summary
from perflab.results.trial import Median, PhaseRow
from perflab.statistics.cost import ENDED
from perflab.statistics.executor_costs import GROUPS, OTHER, is_about_executors
from perflab.units import format_confidence, format_count, format_time

TITLE = "What it costs"
FAMILIES_TITLE = "Where the CPU time went, by families of functions"
PHASES_TITLE = "What the threads of executors did"
UNKNOWN = "–"
THREADS = "threads"
DEEPER = "\u00a0\u00a0"  # before a name that is part of the one above it

GROUP_NAMES: Mapping[str, str] = {
    "application": "application",
    "rclcpp": "rclcpp",
    "executor": "perflab's runtime",
    "rcl": "rcl",
    "rmw": "rmw",
    "dds": "DDS",
    "kernel": "kernel",
    OTHER: "other",
}
ROLE_NAMES: Mapping[str, str] = {
    "executor": "executor's threads",
    "middleware": "middleware's threads",
    "perflab": "perflab's threads",
    "tracer": "tracer's threads",
    ENDED: "threads that ended",
}
FAMILIES_NOTE = (
    "Shares of the CPU time, by perf in extra trials. Perflab's runtime: its executors and plug-ins, or what it adds "
    "to rclcpp; other: memory allocator, C library, measuring, unknown."
)
PHASES_NOTE = (
    "All executor threads of a traced extra trial together. CPU usage: on a CPU, of the overall duration; the shares "
    "are of the CPU time of the threads and of the row above."
)


@dataclass(frozen=True)
class Figured:
    """A cell: what is shown, what it is sorted by, and below it the interval where there is one."""

    text: str
    value: float | None = None
    interval: str = ""
    reason: str | None = None


@dataclass(frozen=True)
class CostColumn:
    """A column of a table of costs. The higher its rank, the earlier it is left out where there is no room."""

    header: str
    rank: int
    cells: Sequence[Figured]
    numeric: bool = True
    group: str = ""
    title: str = ""

    @property
    def name(self) -> str:
        """Where there are no headers of groups."""
        words = (self.header, self.group) if self.group == THREADS else (self.group, self.header)
        return " ".join(word for word in words if word)

    @property
    def known(self) -> bool:
        return any(cell.text != UNKNOWN for cell in self.cells)


def shown(summary: Summary) -> Sequence[CostRow]:
    """The rows of a run whose reader asks what executors cost; none of other runs."""
    costs = summary.executor_costs
    rows = () if costs is None else costs.rows
    return rows if is_about_executors(rows) else ()


def names(rows: Sequence[CostRow]) -> list[str]:
    """Case and executor, with what else rows differ in but the middleware, which has a column."""
    several_ipc = len({r.ipc for r in rows}) > 1
    several_pass_by = len({r.pass_by for r in rows}) > 1
    several_treatments = len({r.label for r in rows}) > 1
    found = []
    for row in rows:
        parts = [
            levels(row),
            row.executor or "as in the graph",
            f"ipc {row.ipc}" if several_ipc and row.ipc else None,
            f"by {row.pass_by}" if several_pass_by and row.pass_by else None,
            row.label if several_treatments else None,
        ]
        found.append(", ".join(part for part in parts if part))
    return found


# -- tables ----------------------------------------------------------------------------------------------------------


def costs(rows: Sequence[CostRow]) -> list[CostColumn]:
    """One row per treatment; columns in which nothing is known are left out."""
    known = {row.ratio.level for row in rows if row.ratio is not None}
    level = format_confidence(*(confidence for confidence in known if confidence is not None))
    columns = [
        CostColumn("case, executor", 0, [Figured(name) for name in names(rows)], numeric=False),
        _middleware(rows),
        CostColumn("trials", 8, [Figured(str(r.trials), r.trials) for r in rows]),
        _figures(rows, "cpu_per_message_ns", "per message", 2, format_time, "CPU"),
        _figures(rows, "cpu_per_tick_ns", "per tick", 3, format_time, "CPU"),
        _figures(rows, "cpu_percent", "use", 4, _percent, "CPU"),
        CostColumn(
            "to middleware", 1, [_ratio(r) for r in rows],
            title=f"CPU per message, against the same middleware without an executor, with {level} interval",
        ),
        CostColumn("executor's", 3, [_role(r, "executor") for r in rows], group=THREADS),
        CostColumn("middleware's", 6, [_role(r, "middleware") for r in rows], group=THREADS),
        _figures(rows, "cycles_per_message", "cycles/message", 7, _count),
        _figures(rows, "instructions_per_message", "instr./message", 10, _count),
        _figures(rows, "latency_p50_ns", "p50", 3, format_time, "latency"),
        _figures(rows, "latency_p99_ns", "p99", 9, format_time, "latency"),
        _figures(rows, "response_p50_ns", "p50", 11, format_time, "response"),
        _figures(rows, "response_p99_ns", "p99", 3, format_time, "response"),
    ]  # fmt: skip
    return [column for column in columns if column.known]


def families(rows: Sequence[CostRow]) -> list[CostColumn]:
    """Rows that were profiled, and the share of each group of families."""
    told = [(name, row, f) for name, row in zip(names(rows), rows, strict=True) if (f := row.families) is not None]
    if not told:
        return []
    columns = [
        CostColumn("case, executor", 0, [Figured(name) for name, *_ in told], numeric=False),
        _middleware([r for _, r, _ in told]),
    ]
    for place, group in enumerate((*GROUPS, OTHER)):
        shares = [f.groups.get(group) for *_, f in told]
        if any(shares):
            cells = [Figured(_share(share), share) for share in shares]
            columns.append(CostColumn(GROUP_NAMES[group], 0 if place != len(GROUPS) else 1, cells))
    samples = [f.samples for *_, f in told]
    return [*columns, CostColumn("samples", 2, [Figured(format_count(n), n) for n in samples])]


def _middleware(rows: Sequence[CostRow]) -> CostColumn:
    """What tells rows apart stays, however narrow the table is."""
    called = [str(row.middleware) for row in rows]
    return CostColumn("middleware", 0 if len(set(called)) > 1 else 5, [Figured(name) for name in called], numeric=False)


def phases(rows: Sequence[CostRow]) -> list[CostColumn]:
    """Rows that were traced, each with its functions below each other, deeper ones to the right."""
    told = [
        (f"{name}, {row.middleware}" if len({r.middleware for r in rows}) > 1 else name, phase)
        for name, row in zip(names(rows), rows, strict=True)
        if row.phases is not None
        for phase in row.phases.rows
    ]
    if not told:
        return []

    def column(header: str, rank: int, cell: Callable[[PhaseRow], Figured], title: str = "") -> CostColumn:
        return CostColumn(header, rank, [cell(phase) for _, phase in told], title=title)

    return [
        CostColumn("case, executor", 0, [Figured(name) for name, _ in told], numeric=False),
        CostColumn("function", 0, [Figured(f"{DEEPER * p.depth}{p.function}") for _, p in told], numeric=False),
        column("calls", 3, lambda p: Figured(format_count(p.count), p.count)),
        column("overall", 2, lambda p: _time(p.wall_ns), "duration"),
        column("on a CPU", 1, lambda p: _time(p.on_cpu_ns), "duration in which the thread was on a CPU"),
        column("CPU usage", 1, lambda p: _shared(p.cpu_usage), "on a CPU, of the overall duration"),
        column("of thread", 1, lambda p: _shared(p.of_thread), "of the CPU time of the threads"),
        column("of parent", 2, lambda p: _shared(p.of_parent), "of the CPU time of the row above it"),
    ]


def notes(rows: Sequence[CostRow]) -> list[str]:
    """What must be known to read the table of costs."""
    found = [note for row in rows for note in row.notes]
    if all(row.cycles_per_message.value is None for row in rows):
        reasons = {str(row.cycles_per_message.reason) for row in rows}
        counted = sorted(reason for reason in reasons if reason.startswith("not counted: "))
        found += [f"Cycles are {reason}." for reason in counted]
    ratios = [(row, row.ratio) for row in rows if row.ratio is not None]
    if by_use := [row for row, ratio in ratios if ratio.of == "cpu_percent" and ratio.value is not None]:
        found.append(f"The ratio of {_which(by_use, rows)} is that of CPU use: no message is delivered there.")
    without = [(row, str(ratio.reason)) for row, ratio in ratios if ratio.value is None]
    for reason in dict.fromkeys(why for _, why in without):
        meant = [row for row, why in without if why == reason]
        whose = "" if len(meant) == len(rows) else f" of {_which(meant, rows)}"
        found.append(f"No ratio to the middleware{whose}: {reason}.")
    return list(dict.fromkeys(found))


def _which(meant: Sequence[CostRow], rows: Sequence[CostRow]) -> str:
    """Rows as the table calls them, each once."""
    called = dict.fromkeys(name for name, row in zip(names(rows), rows, strict=True) if any(row is m for m in meant))
    return " and ".join(called)


def _figures(
    rows: Sequence[CostRow], key: str, header: str, rank: int, form: Callable[[float | None], str], group: str = ""
) -> CostColumn:
    def cell(figure: Median) -> Figured:
        value, low, high = figure.value, figure.low, figure.high
        between = "" if low is None or high is None else f"[{form(low)}, {form(high)}]"
        return Figured(UNKNOWN if value is None else form(value), value, between, figure.reason)

    return CostColumn(header, rank, [cell(getattr(row, key)) for row in rows], group=group, title="median over trials")


def _ratio(row: CostRow) -> Figured:
    ratio = row.ratio
    if ratio is None or ratio.value is None:
        return Figured(UNKNOWN, reason=None if ratio is None else ratio.reason)
    known = ratio.low is not None and ratio.high is not None
    interval = f"[{_factor(ratio.low or 0)}, {_factor(ratio.high or 0)}]" if known else ""
    return Figured(f"{_factor(ratio.value)}x", ratio.value, interval, ratio.reason)


def _role(row: CostRow, role: str) -> Figured:
    share = None if row.roles is None else row.roles[role]
    return Figured(_share(share), share, reason=row.roles_reason)


def _time(ns: float | None) -> Figured:
    return Figured(format_time(ns), ns)


def _shared(share: float | None) -> Figured:
    return Figured(_share(share), share)


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g} %"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else format_count(round(value))


# -- in a terminal ---------------------------------------------------------------------------------------------------


def print_costs(out: Console, summary: Summary) -> None:
    """Nothing where the run is not about executors."""
    rows = shown(summary)
    if not rows:
        return
    out.print(f"{TITLE} (medians over trials; 100 % is one CPU)", style="bold")
    print_table(out, [_column(c, interval=c.header == "to middleware") for c in costs(rows)])
    for note in notes(rows):
        out.print(Text(note, "dim"))
    out.print()
    for title, columns, note in (
        (FAMILIES_TITLE, families(rows), FAMILIES_NOTE),
        (PHASES_TITLE, phases(rows), PHASES_NOTE),
    ):
        if columns:
            out.print(title, style="bold")
            first, *others = columns
            print_table(out, [_once(_column(first)), *map(_column, others)])
            out.print(Text(note, "dim"))
            out.print()


def _column(column: CostColumn, *, interval: bool = False) -> Column:
    cells = [Text(f"{c.text} {c.interval}".rstrip() if interval else c.text) for c in column.cells]
    return Column(column.header, column.rank, cells, right=column.numeric, group=column.group)


def _once(column: Column) -> Column:
    """What repeats the row above is left out."""
    cells = [Text("") if n and cell == column.cells[n - 1] else cell for n, cell in enumerate(column.cells)]
    return replace(column, cells=cells)


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
            said = f"{called[place]}: {words[part]} {size:.3g} {unit.name}, {_share(shares[part])}"
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
        kind="executor_costs",
        title=f"{what}, {'by families of functions' if by_families else 'by the role of threads'}",
        subtitle=", ".join(dict.fromkeys(str(row.workload) for row in drawn)) + ": medians over trials",
        x=Axis(f"{what} ({unit.name}{'' if per_message else ' of one CPU'})", "linear", 0.0, high,
               axes.linear_ticks(0.0, high)),
        y=Axis("", "rows", -0.5, len(drawn) - 0.5, tuple((float(n), text) for n, text in enumerate(called))),
        series=(),
        groups=groups,
        keys=keys,
        notes=(FAMILIES_NOTE,) if by_families else (),
        spans=tuple(Spans(words[part], places[part], tuple(found)) for part, found in spans.items()),
        lanes=2,
    )  # fmt: skip
