"""Executor costs, as tables: each treatment beside the same middleware without an executor, CPU time by families of
functions, and the activity of executor threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.columns import Cell, Column, Table
from perflab.quantity import COUNT, FACTOR, PERCENT, PLAIN, SHARE, TIME, UNKNOWN, Quantity
from perflab.report.label import levels
from perflab.report.tables.messages import Of
from perflab.results.costs import CostRow
from perflab.results.summary import Summary
from perflab.results.trial import Families, PhaseRow
from perflab.statistics.executor_costs import GROUPS, OTHER, is_about_executors
from perflab.units import format_confidence

TITLE = "What it costs"
FAMILIES_TITLE = "Where the CPU time went, by families of functions"
PHASES_TITLE = "What executor threads did"

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
FAMILIES_NOTE = (
    "Shares of the CPU time, measured with perf in extra trials. Perflab's runtime: its executors and plug-ins, "
    "or what it adds "
    "to rclcpp; other: memory allocator, C library, measuring, unknown."
)
PHASES_NOTE = (
    "All executor threads of a traced extra trial together. CPU usage: time on a CPU, of the overall duration; "
    "the shares are of the CPU time of the threads and of the row above."
)

PROGRAM = "program"  # role of a program's own threads


def shown(summary: Summary) -> Sequence[CostRow]:
    """The rows of a run about executor costs; none for other runs."""
    costs = summary.executor_costs
    rows = () if costs is None else costs.rows
    return rows if is_about_executors(rows) else ()


def names(rows: Sequence[CostRow]) -> list[str]:
    """Case and executor, with other differences between rows except the middleware, which has a column."""
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


def tables(summary: Summary) -> list[Table[Any]]:
    """The costs, families and phases of a run about executors, as far as it has them."""
    found, rows = summary.executor_costs, shown(summary)
    if found is None or not rows:
        return []
    named = [Of(row, name) for row, name in zip(rows, names(rows), strict=True)]
    explained = f"Medians over trials, {format_confidence(found.level)} intervals in brackets; 100 % is one CPU."
    made: list[Table[Any]] = [_costs(named, [explained, *notes(rows)]), _families(named), _phases(named)]
    return [table for table in made if table.rows]


def _costs(rows: Sequence[Of[CostRow]], said: Sequence[str]) -> Table[Of[CostRow]]:
    """One row per treatment."""
    known = {row.record.ratio.level for row in rows if row.record.ratio is not None}
    level = format_confidence(*(confidence for confidence in known if confidence is not None))
    return Table(
        "executor_costs",
        TITLE,
        [
            _case(),
            _middleware(rows),
            Column("trials", "trials", lambda row: row.record.trials, PLAIN, rank=8),
            _median("cpu_per_message_ns", "per message", TIME, 2, group="CPU"),
            _median("cpu_per_tick_ns", "per tick", TIME, 3, group="CPU"),
            _median("cpu_percent", "use", PERCENT, 4, group="CPU"),
            Column(
                "to_middleware", "to middleware", _ratio, FACTOR, rank=1, beside=True,
                help=f"CPU per message, relative to the same middleware without an executor, with {level} interval",
            ),
            _role("executor", 3),
            *([_role(PROGRAM, 4)] if any(PROGRAM in (row.record.roles or ()) for row in rows) else []),
            _role("middleware", 6),
            _median("cycles_per_message", "cycles/message", COUNT, 7),
            _median("instructions_per_message", "instr./message", COUNT, 10),
            _median("latency_p50_ns", "p50", TIME, 3, group="latency"),
            _median("latency_p99_ns", "p99", TIME, 9, group="latency"),
            _median("response_p50_ns", "p50", TIME, 11, group="response"),
            _median("response_p99_ns", "p99", TIME, 3, group="response"),
        ],
        rows,
        said,
    )  # fmt: skip


def _families(rows: Sequence[Of[CostRow]]) -> Table[Of[CostRow]]:
    """Profiled rows, with the share of each group of families."""
    told = [row for row in rows if row.record.families is not None]
    groups = [group for group in (*GROUPS, OTHER) if any(_share(row, group) for row in told)]
    return Table(
        "executor_families",
        FAMILIES_TITLE,
        [
            _case(once=True),
            _middleware(told),
            *map(_group, groups),
            Column("samples", "samples", lambda row: _of(row).samples, COUNT, rank=2),
        ],
        told,
        [FAMILIES_NOTE],
    )  # fmt: skip


def _of(row: Of[CostRow]) -> Families:
    assert row.record.families is not None
    return row.record.families


def _group(group: str) -> Column[Of[CostRow]]:
    return Column(
        group, GROUP_NAMES[group], lambda row: _share(row, group), SHARE, rank=1 if group == OTHER else 0
    )  # fmt: skip


def _share(row: Of[CostRow], group: str) -> float | None:
    return _of(row).groups.get(group)


def _phases(rows: Sequence[Of[CostRow]]) -> Table[Of[PhaseRow]]:
    """Traced rows, each with its functions below each other, indented by depth."""
    several = len({row.record.middleware for row in rows}) > 1
    told = [
        Of(phase, f"{row.result}, {row.record.middleware}" if several else row.result)
        for row in rows
        if row.record.phases is not None
        for phase in row.record.phases.rows
    ]
    return Table(
        "executor_phases",
        PHASES_TITLE,
        [
            _case(once=True),
            Column("function", "function", _function, rank=0),
            Column("calls", "calls", lambda row: row.record.count, COUNT, rank=3),
            Column("overall", "overall", lambda row: row.record.wall_ns, TIME, rank=2, help="duration"),
            Column(
                "on_cpu", "on a CPU", lambda row: row.record.on_cpu_ns, TIME, rank=1,
                help="time in which the thread was on a CPU",
            ),
            Column(
                "cpu_usage", "CPU usage", lambda row: row.record.cpu_usage, SHARE, rank=1,
                help="on a CPU, of the overall duration",
            ),
            Column(
                "of_thread", "of thread", lambda row: row.record.of_thread, SHARE, rank=1,
                help="of the CPU time of the threads",
            ),
            Column(
                "of_parent", "of parent", lambda row: row.record.of_parent, SHARE, rank=2,
                help="of the CPU time of the row above it",
            ),
        ],
        told,
        [PHASES_NOTE],
    )  # fmt: skip


def _function(row: Of[PhaseRow]) -> Cell:
    return Cell(row.record.function, row.record.function, depth=row.record.depth)


def _case(*, once: bool = False) -> Column[Of[Any]]:
    return Column("case", "case, executor", lambda row: row.result, rank=0, once=once)


def _middleware(rows: Sequence[Of[CostRow]]) -> Column[Of[CostRow]]:
    """What distinguishes rows stays, however narrow the table is."""
    several = len({row.record.middleware for row in rows}) > 1
    return Column("middleware", "middleware", lambda row: str(row.record.middleware), rank=0 if several else 5)


def _median(key: str, header: str, quantity: Quantity, rank: int, *, group: str = "") -> Column[Of[CostRow]]:
    return Column(
        key, header, lambda row: getattr(row.record, key), quantity, group=group, rank=rank, help="median over trials"
    )


def _ratio(row: Of[CostRow]) -> Cell | None:
    ratio = row.record.ratio
    if ratio is None or ratio.value is None:
        return Cell(UNKNOWN, reason=None if ratio is None else ratio.reason)
    return Cell(f"{FACTOR.text(ratio.value)}x", ratio.value, low=ratio.low, high=ratio.high)


def _role(role: str, rank: int) -> Column[Of[CostRow]]:
    def read(row: Of[CostRow]) -> float | Cell | None:
        roles = row.record.roles
        if roles is None:
            return Cell(UNKNOWN, reason=row.record.roles_reason)
        return roles.get(role)  # a program has its own threads in place of others

    return Column(
        f"{role}_threads", f"{role}'s", read, SHARE, group="threads", rank=rank, called=f"{role}'s threads"
    )  # fmt: skip


def notes(rows: Sequence[CostRow]) -> list[str]:
    """Remarks needed to read the table of costs."""
    found = [note for row in rows for note in row.notes]
    if all(row.cycles_per_message.value is None for row in rows):
        reasons = {row.not_counted["cycles"] for row in rows if "cycles" in row.not_counted}
        found += [f"Cycles are not counted: {reason}." for reason in sorted(reasons)]
    ratios = [(row, row.ratio) for row in rows if row.ratio is not None]
    if by_use := [row for row, ratio in ratios if ratio.of == "cpu_percent" and ratio.value is not None]:
        found.append(f"The ratio of {_which(by_use, rows)} is that of CPU use: no messages are delivered there.")
    without = [(row, str(ratio.reason)) for row, ratio in ratios if ratio.value is None]
    for reason in dict.fromkeys(why for _, why in without):
        meant = [row for row, why in without if why == reason]
        whose = "" if len(meant) == len(rows) else f" of {_which(meant, rows)}"
        found.append(f"No ratio to the middleware{whose}: {reason}.")
    return list(dict.fromkeys(found))


def _which(meant: Sequence[CostRow], rows: Sequence[CostRow]) -> str:
    """Rows by their names in the table, without duplicates."""
    called = dict.fromkeys(name for name, row in zip(names(rows), rows, strict=True) if any(row is m for m in meant))
    return " and ".join(called)
