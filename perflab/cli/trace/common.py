"""What the verbs of `perflab trace` share: their arguments, opening traces, and printing answers."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.errors import BadInput

if TYPE_CHECKING:
    from perflab.trace.answer import Answer, Section
    from perflab.trace.scope import Scope
    from perflab.trace.source import NativeTrace

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Folders with traces of one session, user space and kernel; what is below them is read, too.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Whole = Annotated[bool, typer.Option("--all", help="Print all rows of all tables.")]
Top = Annotated[int | None, typer.Option(min=1, metavar="N", help="Print the first N rows of each table.")]
Threads = Annotated[
    int, typer.Option(min=0, max=1024, metavar="N", help="Threads that decode.", show_default="one per CPU")
]


Begin = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only what begins later in the trace: 1.5s, 200ms.", show_default=False),
]
End = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only what begins earlier in the trace.", show_default=False)
]
Node = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE", help="Only of these nodes; a name or a pattern, may be repeated.", show_default="all"),
]
Topic = Annotated[
    list[str] | None, typer.Option(metavar="TOPIC", help="Only of these topics, likewise.", show_default="all")
]


def scope_of(
    trace: NativeTrace, begin: str | None, end: str | None, node: Sequence[str] | None, topic: Sequence[str] | None
) -> Scope:
    """What --begin, --end, --node and --topic leave of a trace. Raises BadInput."""
    from perflab.trace.scope import Scope

    return Scope.of(trace, begin=begin, end=end, nodes=node or (), topics=topic or ())


def opened(paths: Sequence[Path], threads: int = 0) -> NativeTrace:
    """Reads traces of one session. Raises BadInput where there is none, or no event in it can be read."""
    from perflab.trace import open_trace

    for path in paths:
        try:
            if not path.exists():
                raise BadInput(f"{path}: there is no such file or folder")
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
    # Takes a tenth of a second: beside the reading, not after it.
    threading.Thread(target=importlib.import_module, args=("polars",), name="polars", daemon=True).start()
    trace = open_trace(paths, threads)
    if not any(part["events"] for part in trace.facts["traces"]):
        raise BadInput(f"{', '.join(map(str, paths))}: no event can be read")
    return trace


def show(answer: Answer, *, as_json: bool, whole: bool, top: int | None, trees: Collection[str] = ()) -> int:
    """Prints an answer. `trees` are sections whose rows belong together: they are cut only where `top` asks for it."""
    if top is not None:
        answer = dataclasses.replace(answer, sections=tuple(_cut(section, top) for section in answer.sections))
    if as_json:
        write_json(answer.document())
        return 0
    from perflab.report import terminal, trace_tables

    out = terminal.console()
    trace_tables.print_answer(out, answer, everything=whole or top is not None, uncut=trees)
    return 0


def write_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _cut(section: Section, rows: int) -> Section:
    if section.frame.height <= rows:
        return section
    note = f"The first {rows} of {section.frame.height} rows"
    return dataclasses.replace(section, frame=section.frame.head(rows), notes=(*section.notes, note))
