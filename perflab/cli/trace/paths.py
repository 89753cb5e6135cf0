"""`perflab trace paths`: end-to-end latency along the message flow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show
from perflab.errors import BadInput, PerflabError
from perflab.option import one_of

_FORMATS = ("table", "dot", "mermaid")


def paths(
    paths: Paths,
    file: Annotated[
        Path | None,
        typer.Option("--paths", metavar="FILE", help="Named paths with deadlines and weights (YAML, JSON)."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="NODE|TOPIC", help="Where paths begin; a name or a pattern.")
    ] = None,
    sink: Annotated[str | None, typer.Option("--to", metavar="NODE|TOPIC", help="Where they end.")] = None,
    inferred: Annotated[
        bool, typer.Option("--inferred", help="Also paths by the latest input of a node before it published; a guess.")
    ] = False,
    baseline: Annotated[
        list[Path] | None, typer.Option("--baseline", metavar="PATH", help="Another trace to stand beside; repeatable.")
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, dot or mermaid.",
            autocompletion=one_of(_FORMATS),
        ),
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a drawing there.", show_default=False)
    ] = None,
    begin: Begin = None,
    end: End = None,
    node: Node = None,
    topic: Topic = None,
    as_json: AsJson = False,
    whole: Whole = False,
    top: Top = None,
    threads: Threads = 0,
) -> int:
    """Show how long messages took from source to sink, through every callback between, and where they were lost.

    By what the trace says of cause and effect, never by closeness in time; what --inferred adds is marked as such.

    \b
        perflab trace paths ~/.ros/tracing/session --paths paths.yaml
        perflab trace paths ~/.ros/tracing/session --format dot --output flow.dot
    """
    from perflab.trace import paths_file

    if format_ not in _FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(_FORMATS)}")
    if format_ == "table" and output is not None:
        raise BadInput("--output is for drawings; add --format dot or --format mermaid")
    if format_ != "table" and as_json:
        raise BadInput("--json and --format are two ways to print; choose one")
    if format_ != "table" and baseline:
        raise BadInput("--baseline is for tables; a drawing is of one trace")
    if baseline and (begin is not None or end is not None):
        raise BadInput(
            "--begin and --end are of one trace, and --baseline has a time of its own; leave one of them out"
        )
    wanted = paths_file.read(file) if file is not None else ()
    from perflab.trace.paths import LARGEST, Asked, answer_of, paths_of

    trace = opened(paths, threads)
    before = opened(baseline, threads) if baseline else None
    scope = scope_of(trace, begin, end, node, topic)
    asked = Asked(wanted, source, sink, inferred, None if whole else LARGEST, scope)
    found = paths_of(trace, asked)
    if format_ != "table":
        from perflab.trace import paths_drawing

        _write(paths_drawing.dot(found) if format_ == "dot" else paths_drawing.mermaid(found), output)
        return 0
    answer = answer_of(trace, found, None if before is None else paths_of(before, asked, strict=False))
    return show(answer, as_json=as_json, whole=whole, top=top)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise PerflabError(f"cannot write --output {output}: {error.strerror}") from error
