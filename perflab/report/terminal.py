"""Results on a terminal: a header, totals in words, a table of distributions, a table of edges, and what to know.

Tables never wrap: where the terminal is narrow the columns that matter least are left out, and long names end in an
ellipsis.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perflab.units import format_bytes, format_count, format_duration, format_rate, format_time

Json = dict[str, Any]

PLAIN_WIDTH = 160  # of output that goes into a file or a pipe, where COLUMNS does not say otherwise
MIN_NAME_WIDTH = 18
MAX_EDGES = 60
COLUMN_GAP = 2

_OUTCOME_STYLES = {"success": "green", "failed": "red", "invalid": "yellow", "harness_error": "red"}


@dataclass(frozen=True)
class Column:
    """A column of a table. The higher its rank, the earlier it is left out, together with all others of that rank.

    Rank 0 stays, and is cut where it must be.
    """

    header: str
    rank: int
    cells: Sequence[Text]
    right: bool = True
    group: str = ""  # written above the first column of the group that is shown

    @property
    def width(self) -> int:
        lines = [self.header, self.group, *(cell.plain for cell in self.cells)]
        return max(cell_len(line) for line in lines)


def console(file: IO[str] | None = None) -> Console:
    """A console on stdout: styled and as wide as the terminal, or plain and wide when it is not one."""
    target = file or sys.stdout
    if target.isatty():
        return Console(file=target, highlight=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) > 0 else PLAIN_WIDTH
    return Console(file=target, highlight=False, width=width, no_color=True, force_terminal=False)


_DRAIN_WORDS = {
    "quiet": "what is lost at the end had not arrived when nothing had moved for --drain-quiet",
    "limit": "messages still came when the drain reached --drain-limit; what is lost at the end may be merely late",
}


def print_summary(out: Console, summary: Json, manifest: Json, notes: Sequence[str] = ()) -> None:
    """The report of a run."""
    for note in notes:
        _line(out, f"Note: {note}", "yellow")
    if notes:
        out.print()
    versions = {m["name"]: m.get("version") for m in manifest.get("middlewares", ())}
    for result in summary["results"]:
        _print_result(out, result, versions.get(result["middleware"]))
    if not summary["results"]:
        _line(out, "No trial was recorded.", "yellow")
        out.print()
    if any(result["middleware"] != "virtual" for result in summary["results"]):
        _print_noise(out, manifest.get("preflight", ()))


def print_table(out: Console, columns: Sequence[Column]) -> None:
    """A table that fits: columns of high rank are left out first, then the first column of rank 0 is cut."""
    shown = list(columns)
    while _width(shown) > out.width and any(c.rank for c in shown):
        lowest = max(c.rank for c in shown)
        shown = [c for c in shown if c.rank != lowest]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, COLUMN_GAP - 1, 0, 0), header_style="bold"
    )
    spare = out.width - _width(shown)
    groups = {""}
    two_lines = any(column.group for column in shown)
    for column in shown:
        width = column.width
        if spare < 0 and column.rank == 0:
            cut = min(-spare, max(0, width - MIN_NAME_WIDTH))
            width, spare = width - cut, spare + cut
        above = "" if column.group in groups else column.group
        groups.add(column.group)
        table.add_column(
            f"{above}\n{column.header}" if two_lines else column.header,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*row)
    out.print(table)


def _width(columns: Sequence[Column]) -> int:
    return sum(c.width for c in columns) + COLUMN_GAP * (len(columns) - 1)


def _discovery(result: Json) -> str:
    """What is known of how long the parts of the graph took to find each other, in the slowest trial."""
    parts = []
    for what, words in (("participants", "all participants found"), ("endpoints", "all endpoints matched")):
        known = [ns for t in result["trials_detail"] if (ns := t["discovery_ns"][what]) is not None]
        if known:
            parts.append(f"{words} after {format_time(max(known))}")
    return ", ".join(parts)


def _print_result(out: Console, result: Json, version: str | None) -> None:
    conditions = " + ".join(result["conditions"]) or "baseline"
    trials = result["trials"]
    how_often = "1 trial" if trials == 1 else f"{trials} trials"
    outcomes = [f"{n} {name}" if trials > 1 else name for name, n in result["outcomes"].items() if n]
    worst = next((o for o in ("harness_error", "failed", "invalid") if result["outcomes"][o]), "success")
    header = Text()
    header.append(result["workload"], "bold")
    header.append(f" on {result['middleware']}{f' {version}' if version else ''}, {conditions}: {how_often} of ")
    header.append(f"{format_duration(result['duration_s'])}, ")
    header.append(", ".join(outcomes), f"bold {_OUTCOME_STYLES[worst]}")
    out.print(header)
    for trial in result["trials_detail"]:
        if trial["outcome"] != "success" and trial["reason"]:
            _line(out, f"trial {trial['trial']}: {trial['reason']}", "red")
    if not result["coverage"]["complete"] and result["coverage"]["trials_merged"]:
        _line(out, "The numbers are those of the last checkpoints: what was lost at the end is not known.", "yellow")
    for trial in result["trials_detail"]:
        if trial["drain"] in _DRAIN_WORDS and trial["totals"]["lost"]["tail"]:
            _line(out, f"trial {trial['trial']}: {_DRAIN_WORDS[trial['drain']]}", "yellow")
    totals = result["totals"]
    if totals["received"] is None and totals["published"] is None:
        _line(out, "Nothing was recorded.", "yellow")
        out.print()
        return
    out.print()
    out.print(totals_in_words(totals))
    if (discovery := _discovery(result)) and result["middleware"] != "virtual":
        _line(out, f"Discovery: {discovery}", "dim")
    out.print()
    _print_distributions(out, totals)
    out.print()
    _print_edges(out, result["edges"])
    out.print()
    _print_resources(out, result["resources"])


def totals_in_words(totals: Json) -> Text:
    """ "10 540 of 10 540 messages received, 0 lost, 12 late (0.11 %), 0 too late"; only what is known."""
    received = totals["received"]
    text = Text()
    of = f" of {format_count(totals['sent'])}" if totals["sent"] is not None else ""
    text.append(f"{format_count(received)}{of} messages received", "bold")
    lost = totals["lost"]
    known = [n for n in lost.values() if n is not None]
    amount = sum(known)
    kinds = ", ".join(f"{format_count(n)} {_LOST_WORDS[kind]}" for kind, n in lost.items() if n)
    text.append(", ")
    if not known:
        text.append("losses not known", "yellow")
    else:
        least = "" if len(known) == len(lost) else "at least "
        style = "red" if amount else "green" if not least else ""
        text.append(f"{least}{format_count(amount)} lost{f' ({kinds})' if kinds else ''}", style)
    for key, word, style in (("late", "late", "yellow"), ("too_late", "too late", "red")):
        if (n := totals[key]) is not None:
            share = f" ({100 * n / received:.3g} %)" if n and received else ""
            text.append(", ")
            text.append(f"{format_count(n)} {word}{share}", style if n else "")
    extras = (
        ("reordered", "reordered"),
        ("duplicate", "duplicates"),
        ("not_sent", "ticks not sent"),
        ("write_errors", "write errors"),
    )
    for key, word in extras:
        if totals[key]:
            text.append(f", {format_count(totals[key])} {word}", "yellow")
    return text


_LOST_WORDS = {"pre_match": "before matching", "gap": "in gaps", "tail": "at the end"}


def _print_distributions(out: Console, totals: Json) -> None:
    names = ("latency", "response", "publish_delay", "publish_call", "dispatch", "work")
    rows = [(name.replace("_", " "), q) for name in names if (q := totals[f"{name}_ns"]) is not None]
    ranks = {"min": 7, "mean": 8, "p50": 3, "p90": 6, "p99": 1, "p99_9": 4, "p99_99": 5, "max": 2}
    columns = [Column("", 0, [Text(name) for name, _ in rows], right=False)]
    for key, rank in ranks.items():
        columns.append(Column(key.replace("_", "."), rank, [Text(format_time(q[key])) for _, q in rows]))
    when = [Text("–" if q["max_at_s"] is None else f"at {format_duration(q['max_at_s'])}") for _, q in rows]
    columns.append(Column("", 9, when, right=False))
    print_table(out, columns)


def _print_edges(out: Console, edges: Sequence[Json]) -> None:
    if not edges:
        return
    shown = list(edges)
    if len(shown) > MAX_EDGES:
        shown = sorted(shown, key=lambda e: _quantile(e, "latency_ns", "p99") or 0, reverse=True)[:MAX_EDGES]

    def ends(edge: Json) -> str:
        return f"{edge['publisher']} → {edge['subscription']}"

    def column(header: str, rank: int, cell: Callable[[Json], Text | str], *, right: bool = True) -> Column:
        return Column(header, rank, [c if isinstance(c := cell(e), Text) else Text(c) for e in shown], right)

    def times(owner: str, key: str, rank: int) -> Column:
        cells = [Text(format_time(_quantile(e, f"{owner}_ns", key))) for e in shown]
        return Column(key, rank, cells, group=owner)

    print_table(
        out,
        [
            column("publisher → subscription", 0, ends, right=False),
            column("topic", 7, lambda e: e["topic"], right=False),
            column("size", 14, lambda e: format_bytes(e["size_bytes"])),
            column("Hz", 13, lambda e: format_rate(e["frequency_hz"] or None)),
            column("sent", 12, lambda e: format_count(e["sent"])),
            column("received", 2, lambda e: format_count(e["received"])),
            column("lost", 3, lambda e: _count(_lost(e), "red")),
            column("late", 10, lambda e: _count(e["late"], "yellow")),
            column("too late", 11, lambda e: _count(e["too_late"], "red")),
            times("latency", "p50", 6),
            times("latency", "p99", 4),
            times("latency", "max", 5),
            times("response", "p50", 9),
            times("response", "p99", 8),
            times("response", "max", 9),
        ],
    )
    if len(edges) > len(shown):
        _line(out, f"… and {len(edges) - len(shown)} more with a lower p99; `--json` has all of them", "dim")


def _quantile(edge: Json, owner: str, key: str) -> int | None:
    quantiles = edge[owner]
    return None if quantiles is None else quantiles[key]


def _lost(edge: Json) -> int | None:
    known = [n for n in edge["lost"].values() if n is not None]
    return sum(known) if len(known) == len(edge["lost"]) or any(known) else None


def _count(n: int | None, style: str) -> Text:
    return Text(format_count(n), style if n else "")


def _print_resources(out: Console, resources: Json) -> None:
    parts = []
    for process in resources["processes"]:
        cpu, rss = process["cpu_percent_mean"], process["rss_kb_max"]
        used = "CPU –" if cpu is None else f"CPU {cpu:.3g} %"
        peak = "RSS –" if rss is None else f"RSS {format_bytes(rss * 1024)} at most"
        parts.append(f"{process['process']}: {used}, {peak}")
    if parts:
        out.print(Text(f"Resources (100 % is one CPU): {'; '.join(parts)}"), soft_wrap=False)
        out.print()


def _print_noise(out: Console, preflight: Sequence[Json]) -> None:
    warnings = [f"{c['name']} ({c['value']})" if c["value"] else c["name"] for c in preflight if c["status"] == "warn"]
    if warnings:
        out.print(Text(f"Noise on this machine: {', '.join(warnings)}; `perflab doctor` says what to do.", "yellow"))
        out.print()


def _line(out: Console, text: str, style: str) -> None:
    out.print(Text(text, style))
