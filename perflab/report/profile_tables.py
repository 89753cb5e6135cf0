"""A profile in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.columns import Column, Table
from perflab.profile import result
from perflab.quantity import PLAIN
from perflab.units import format_confidence

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
    print_rows(out, _processes(processes[:MOST_PROCESSES], quality["weight"], unit))
    if len(processes) > MOST_PROCESSES:
        out.print(f"and {len(processes) - MOST_PROCESSES} processes more", style="dim")
    for process in [p for p in processes if p["page"] is not None][:MOST_TABLES]:
        _print_families(out, f"{process['name']} ({process['pid']})", process, document)
        for thread in process["threads"] if threads else ():
            _print_families(out, f"{process['name']}, thread {thread['name']} ({thread['tid']})", thread, document)
    out.print()
    out.print(f"Flame graphs: {directory / result.INDEX}", soft_wrap=True)


def _print_families(out: Console, title: str, part: Json, document: Json) -> None:
    from rich.text import Text

    from perflab.report.table import print_rows

    out.print()
    out.print(Text.assemble((title, "bold"), f", {part['samples']:,} samples"))
    if part["whole"] is None or part["families"][0]["self_share"] is None:
        out.print("too few samples for shares", style="dim")
        return
    print_rows(out, _families(part, document))


def _processes(processes: Sequence[Json], total: int, unit: str) -> Table[Json]:
    return Table(
        "processes",
        "Processes",
        [
            Column("process", "process", lambda p: f"{p['name']} ({p['pid']})", rank=0),
            Column("cpu", "CPU", lambda p: result.amount(p["weight"], unit), PLAIN, rank=0),
            Column("share", "share", lambda p: result.percent(p["weight"] / total if total else None), PLAIN, rank=0),
            Column("samples", "samples", lambda p: f"{p['samples']:,}", PLAIN, rank=2),
            Column("whole", "whole stacks", lambda p: result.percent(p["whole"]), PLAIN, rank=1),
            Column("unresolved", "without a name", lambda p: result.percent(p["unresolved"]), PLAIN, rank=3),
        ],
        processes,
    )


def _families(part: Json, document: Json) -> Table[Json]:
    interval = f"{format_confidence(document['confidence'])} interval"
    return Table(
        "families",
        "Families",
        [
            Column("family", "family", lambda row: document["families"][row["family"]], rank=0),
            Column("self", "itself", lambda row: result.percent(row["self_share"]), PLAIN, rank=0),
            Column(
                "interval", interval, lambda row: result.interval(row["self_low"], row["self_high"]), PLAIN, rank=1
            ),
            Column("calls", "with what it calls", lambda row: result.percent(row["inclusive_share"]), PLAIN, rank=2),
            Column("samples", "samples", lambda row: f"{row['self_samples']:,}", PLAIN, rank=3),
        ],
        sorted(part["families"], key=lambda row: -row["self_weight"]),
    )  # fmt: skip
