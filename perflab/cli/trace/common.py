"""What the verbs of `perflab trace` share: their options, opening traces, and printing answers."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from perflab.cli.options import with_options
from perflab.errors import BadInput
from perflab.output import console, write_json

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
Threads = Annotated[
    int, typer.Option(min=0, max=1024, metavar="N", help="Threads that decode.", show_default="one per CPU")
]


@dataclass(frozen=True)
class Asked:
    """The options of every answer, each a field with what typer needs to know of it."""

    begin: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what begins later in the trace: 1.5s, 200ms.", show_default=False),
    ] = None
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only what begins earlier in the trace.", show_default=False)
    ] = None
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE", help="Only of these nodes; a name or a pattern, may be repeated.", show_default="all"
        ),
    ] = None
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Only of these topics, likewise.", show_default="all")
    ] = None
    as_json: AsJson = False
    whole: Annotated[bool, typer.Option("--all", help="Print all rows of all tables.")] = False
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Print the first N rows of each table.")] = None
    threads: Threads = 0

    @classmethod
    def options(cls, *without: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
        """Gives these options, but for some, to a verb with **values."""
        hints = get_type_hints(cls, include_extras=True)
        return with_options(
            lambda: [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
                for f in dataclasses.fields(cls)
                if f.name not in without
            ]
        )

    def open(self, paths: Sequence[Path]) -> NativeTrace:
        return opened(paths, self.threads)

    def scope(self, trace: NativeTrace) -> Scope:
        """What --begin, --end, --node and --topic leave of a trace. Raises BadInput."""
        from perflab.trace.scope import Scope

        return Scope.of(trace, begin=self.begin, end=self.end, nodes=self.node or (), topics=self.topic or ())

    def answer(
        self, paths: Sequence[Path], ask: Callable[[NativeTrace, Scope], Answer], trees: Collection[str] = ()
    ) -> int:
        trace = self.open(paths)
        return self.show(ask(trace, self.scope(trace)), trees)

    def show(self, answer: Answer, trees: Collection[str] = ()) -> int:
        """Prints it. `trees` are sections whose rows belong together: they are cut only where --top asks for it."""
        if self.top is not None:
            cut = tuple(_cut(section, self.top) for section in answer.sections)
            answer = dataclasses.replace(answer, sections=cut)
        if self.as_json:
            write_json(answer.document())
            return 0
        from perflab.report import trace_tables

        everything = self.whole or self.top is not None
        trace_tables.print_answer(console(), answer, everything=everything, uncut=trees)
        return 0


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


def _cut(section: Section, rows: int) -> Section:
    if section.frame.height <= rows:
        return section
    note = f"The first {rows} of {section.frame.height} rows"
    return dataclasses.replace(section, frame=section.frame.head(rows), notes=(*section.notes, note))
