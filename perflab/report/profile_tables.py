"""A profile in a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.profile import result

if TYPE_CHECKING:
    from rich.console import Console


Json = dict[str, Any]

MOST_PROCESSES = 12
MOST_TABLES = 4  # of families; the rest is in the files


def print_profile(out: Console, document: Json, directory: Path, *, threads: bool = False) -> None:
    """Facts, processes, the families of those that count, and where the pages are."""
    from rich.text import Text

    from perflab.report.table import print_rows

    quality, unit = document["quality"], document["unit"]
    out.print(Text(f"CPU profile of {result.title(document)}", "bold"))
    out.print(
        f"{result.amount(quality['weight'], unit)} in {quality['samples']:,} samples of {document['event']} at "
        f"{document['frequency_hz']} Hz, stacks by {document['call_graph']}; {result.percent(quality['whole'])} of the "
        f"stacks are whole, {result.percent(quality['unresolved'])} of the samples in functions without a name"
    )
    for note in document["notes"]:
        out.print(note, style="dim")
    for warning in document["warnings"]:
        out.print(warning, style="yellow")
    out.print()
    processes = document["processes"]
    table = result.processes_table("Processes", document)
    print_rows(out, replace(table, rows=processes[:MOST_PROCESSES]))
    if len(processes) > MOST_PROCESSES:
        out.print(f"and {len(processes) - MOST_PROCESSES} processes more", style="dim")
    for process in [p for p in processes if p["page"] is not None][:MOST_TABLES]:
        _print_families(out, result.process_name(process), process, document)
        for thread in process["threads"] if threads else ():
            _print_families(out, f"{process['name']}, thread {thread['name']} ({thread['tid']})", thread, document)
    out.print()
    out.print(f"Flame graphs: {directory / result.INDEX}", soft_wrap=True)


def _print_families(out: Console, title: str, part: Json, document: Json) -> None:
    from rich.text import Text

    from perflab.report.table import print_rows

    out.print()
    out.print(Text.assemble((title, "bold"), f", {part['samples']:,} samples"))
    table = result.families_table(title, part, document)
    if part["whole"] is None or not table.rows:
        out.print("too few samples for shares", style="dim")
        return
    print_rows(out, replace(table, rows=sorted(table.rows, key=lambda row: -row["self_weight"])))
