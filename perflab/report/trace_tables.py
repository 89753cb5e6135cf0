"""Answers about a trace on a terminal: each section a table that fits, its evidence, and why something is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from perflab.columns import Column, Table
from perflab.report.table import print_lines, print_rows
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.trace.answer import Answer, Section

Row = dict[str, Any]

MAX_ROWS = 20
MAX_NAMES = 4  # of columns that have one reason
LEAST_NAME_WIDTH = 20


def print_answer(out: Console, answer: Answer, *, everything: bool = False, uncut: Collection[str] = ()) -> None:
    """Warnings, all sections of an answer, then the quality of its data. `everything`: all rows; `uncut`: all rows of
    these sections.
    """
    if answer.scope:
        out.print(Text(f"Only {answer.scope}", "bold"))
    for line in answer.warnings:
        out.print(Text(f"Warning: {line}", "yellow"))
    if answer.scope or answer.warnings:
        out.print()
    for section in answer.sections:
        _print_section(out, section, everything or section.name in uncut)
        out.print()
    if answer.quality:
        out.print(Text("Data quality", "bold"))
        for line in answer.quality:
            out.print(Text(f"- {line}"), soft_wrap=False)


def _print_section(out: Console, section: Section, everything: bool) -> None:
    out.print(Text(section.title, "bold"))
    rows = section.rows if everything else section.rows[:MAX_ROWS]
    if rows:
        table = Table(section.name, section.title, _columns(section), rows)
        (print_lines if section.table.vertical else print_rows)(out, table)
    if len(rows) < len(section.rows):
        out.print(Text(f"… and {format_count(len(section.rows) - len(rows))} more: --all", "dim"))
    for line in (*section.notes, *_reasons(section)):
        out.print(Text(line, "dim"))


def _columns(section: Section) -> list[Column[Row]]:
    """The first column stays, and so do important texts beside it; they are shortened to make room for figures."""
    shown, spare = section.shown, section.table.spare
    named = [column.name for column in shown]
    # In the order in which they are left out
    order = [*spare, *(name for name in reversed(named) if name not in spare)]
    leads = next((i for i, column in enumerate(shown) if column.quantity.numeric), len(shown))
    tree = "depth" in section.table.of
    columns = []
    for i, column in enumerate(shown):
        stays = i == 0 or (i < leads and column.name not in spare)
        ranked = replace(
            column,
            rank=0 if stays else len(order) - order.index(column.name),
            least=LEAST_NAME_WIDTH if stays else 0,
            read=_indented(column) if tree and column.name == "function" else None,
        )
        columns.append(ranked)
    return columns


def _indented(column: Column[Row]) -> Callable[[Row], str]:
    """For a tree whose nodes are rows, in its order."""
    return lambda row: f"{'  ' * (row['depth'] or 0)}{column.quantity.text(row[column.name])}"


def _reasons(section: Section) -> list[str]:
    """Why there are dashes in the columns of a terminal, or whole columns are missing; equal reasons once."""
    by_reason: dict[str, list[str]] = {}
    reasons = section.reasons
    for column in section.shown:
        if column.name in reasons and any(row[column.name] is None for row in section.rows):
            by_reason.setdefault(reasons[column.name], []).append(column.title)
    return [f"– {_some(titles)}: {reason}" for reason, titles in by_reason.items() if reason not in section.notes]


def _some(titles: Sequence[str]) -> str:
    more = f" and {len(titles) - MAX_NAMES} more" if len(titles) > MAX_NAMES else ""
    return ", ".join(titles[:MAX_NAMES]) + more
