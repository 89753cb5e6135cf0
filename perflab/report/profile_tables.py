"""A profile in a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perflab.profile import TOP, result

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.profile.families import Group
    from perflab.profile.result import Profile

MOST_PROCESSES = 12
MOST_TABLES = 4  # number of families; the files have the rest


def print_profile(out: Console, profile: Profile, directory: Path, *, threads: bool = False, top: int = TOP) -> None:
    """Facts, processes, families and hottest functions of those that count (`top` of each), and the location of the
    pages."""
    from rich.text import Text

    from perflab.report.table import print_rows

    out.print(Text(f"CPU profile of {profile.title}", "bold"))
    out.print(", stacks ".join(result.facts(profile.quality, profile)))
    for note in profile.notes:
        out.print(note, style="dim")
    for warning in profile.warnings:
        out.print(warning, style="yellow")
    out.print()
    processes = profile.processes
    table = result.processes_table(profile)
    print_rows(out, replace(table, rows=processes[:MOST_PROCESSES]))
    if len(processes) > MOST_PROCESSES:
        out.print(f"and {len(processes) - MOST_PROCESSES} more processes", style="dim")
    for process in [p for p in processes if p.page is not None][:MOST_TABLES]:
        _print_families(out, process.title, process, profile)
        if (functions := result.functions_table("", process, profile, top)).rows:
            out.print()
            print_rows(out, functions)
            for note in functions.notes:
                out.print(note, style="dim")
        for thread in process.threads if threads else ():
            _print_families(out, f"{process.name}, thread {thread.name} ({thread.tid})", thread, profile)
    out.print()
    out.print(f"Flame graphs: {directory / result.INDEX}", soft_wrap=True)


def _print_families(out: Console, title: str, part: Group, profile: Profile) -> None:
    from rich.text import Text

    from perflab.report.table import print_rows

    out.print()
    out.print(Text.assemble((title, "bold"), f", {part.samples:,} samples"))
    table = result.families_table(title, part, profile)
    if part.whole is None or not table.rows:
        out.print("too few samples for shares", style="dim")
        return
    print_rows(out, replace(table, rows=sorted(table.rows, key=lambda row: -row.self_weight)))
