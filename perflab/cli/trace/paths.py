"""`perflab trace paths`: end-to-end latency along the message flow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perflab.cli.trace.common import Asked, Paths
from perflab.errors import BadInput, PerflabError
from perflab.option import one_of

_FORMATS = ("table", "dot", "mermaid")


@Asked.options()
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
    **options: Any,
) -> int:
    """Show how long messages took from source to sink, through every callback between, and where they were lost.

    By what the trace says of cause and effect, never by closeness in time; what --inferred adds is marked as such.

    \b
        perflab trace paths ~/.ros/tracing/session --paths paths.yaml
        perflab trace paths ~/.ros/tracing/session --format dot --output flow.dot
    """
    from perflab.trace import paths_drawing, paths_file
    from perflab.trace.paths import LARGEST, answer_of, paths_of
    from perflab.trace.paths import Asked as Question

    asked = Asked(**options)
    if format_ not in _FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(_FORMATS)}")
    if format_ == "table" and output is not None:
        raise BadInput("--output is for drawings; add --format dot or --format mermaid")
    if format_ != "table" and asked.as_json:
        raise BadInput("--json and --format are two ways to print; choose one")
    if format_ != "table" and baseline:
        raise BadInput("--baseline is for tables; a drawing is of one trace")
    if baseline and (asked.begin is not None or asked.end is not None):
        raise BadInput(
            "--begin and --end are of one trace, and --baseline has a time of its own; leave one of them out"
        )
    wanted = paths_file.read(file) if file is not None else ()
    trace = asked.open(paths)
    before = asked.open(baseline) if baseline else None
    question = Question(wanted, source, sink, inferred, None if asked.whole else LARGEST, asked.scope(trace))
    found = paths_of(trace, question)
    if format_ != "table":
        _write(paths_drawing.dot(found) if format_ == "dot" else paths_drawing.mermaid(found), output)
        return 0
    return asked.show(answer_of(found, None if before is None else paths_of(before, question, strict=False)))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise PerflabError(f"cannot write --output {output}: {error.strerror}") from error
