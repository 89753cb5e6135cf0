"""A profile in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.profile import result
from perflab.units import format_confidence

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.report.table import Column

Json = dict[str, Any]

MOST_PROCESSES = 12
MOST_TABLES = 4  # of families; the rest is in the files


def print_profile(out: Console, document: Json, directory: Path, *, threads: bool = False) -> None:
    """Facts, processes, the families of those that count, and where the pages are."""
    from rich.text import Text

    from perflab.report.table import print_table

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
    print_table(out, _process_columns(processes[:MOST_PROCESSES], quality["weight"], unit))
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

    from perflab.report.table import print_table

    out.print()
    out.print(Text.assemble((title, "bold"), f", {part['samples']:,} samples"))
    if part["whole"] is None or part["families"][0]["self_share"] is None:
        out.print("too few samples for shares", style="dim")
        return
    print_table(out, _family_columns(part["families"], document))


def _process_columns(processes: Sequence[Json], total: int, unit: str) -> list[Column]:
    from rich.text import Text

    from perflab.report.table import Column

    def texts(cells: Sequence[str]) -> list[Text]:
        return [Text(cell) for cell in cells]

    return [
        Column("process", 0, texts([f"{p['name']} ({p['pid']})" for p in processes]), right=False),
        Column("CPU", 0, texts([result.amount(p["weight"], unit) for p in processes])),
        Column("share", 0, texts([result.percent(p["weight"] / total if total else None) for p in processes])),
        Column("samples", 2, texts([f"{p['samples']:,}" for p in processes])),
        Column("whole stacks", 1, texts([result.percent(p["whole"]) for p in processes])),
        Column("without a name", 3, texts([result.percent(p["unresolved"]) for p in processes])),
    ]


def _family_columns(families: Sequence[Json], document: Json) -> list[Column]:
    from rich.text import Text

    from perflab.report.table import Column

    found = sorted(families, key=lambda row: -row["self_weight"])

    def texts(cells: Sequence[str]) -> list[Text]:
        return [Text(cell) for cell in cells]

    return [
        Column("family", 0, texts([document["families"][row["family"]] for row in found]), right=False),
        Column("itself", 0, texts([result.percent(row["self_share"]) for row in found])),
        Column(
            f"{format_confidence(document['confidence'])} interval",
            1,
            texts([result.interval(row["self_low"], row["self_high"]) for row in found]),
        ),
        Column("with what it calls", 2, texts([result.percent(row["inclusive_share"]) for row in found])),
        Column("samples", 3, texts([f"{row['self_samples']:,}" for row in found])),
    ]
