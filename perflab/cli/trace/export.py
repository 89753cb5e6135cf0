"""`perflab trace export`: a trace as files, for other tools and for a reader of one's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.trace.common import AsJson, Paths, Threads, opened, write_json
from perflab.option import one_of
from perflab.units import format_count, format_time


def _formats() -> Sequence[str]:
    from perflab.trace.export import FILES, FOLDERS

    return (*FILES, *FOLDERS)


def export(
    paths: Paths,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE_OR_DIR", help="Where to; csv and parquet are folders.", show_default=False
        ),
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="perfetto, folded, flamegraph, csv or parquet.",
            autocompletion=one_of(_formats),
        ),
    ] = "csv",
    wall: Annotated[bool, typer.Option("--wall", help="Stacks of wall time instead of time on a CPU.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file; write into a folder that is not empty.")
    ] = False,
    as_json: AsJson = False,
    threads: Threads = 0,
) -> int:
    """Write a trace for other tools.

    \b
        perfetto       one file for ui.perfetto.dev: threads, callbacks, executors, scheduler, flows of messages
        folded         stacks weighed by time on a CPU, for flamegraph.pl, inferno and speedscope
        flamegraph     the same as a page that draws itself
        csv, parquet   all tables, and every section of all answers, one file each; index.json says what there is

    \b
        perflab trace export ~/.ros/tracing/session --format perfetto --output session.pftrace
        perflab trace export ~/.ros/tracing/session --format parquet --output tables
    """
    from perflab.trace import export as exporter

    exporter.check(output, format_, force=force, wall=wall)
    trace = opened(paths, threads)
    if format_ in exporter.FILES:
        counts = exporter.export_file(trace, output, format_, force=force, wall=wall)
        if as_json:
            return write_json({"file": str(output), "format": format_, "counts": counts})
        sys.stdout.write(f"{output}\n{', '.join(_said(name, n) for name, n in counts.items() if n)}\n")
        return 0

    def wrote(path: Path) -> None:
        if not as_json:
            sys.stdout.write(f"{path}\n")

    index = exporter.export(trace, output, format_, force=force, wrote=wrote)
    if as_json:
        write_json({"directory": str(output), **{key: index[key] for key in ("format", "paths", "files")}})
    return 0


def _said(name: str, n: int) -> str:
    return format_time(n) if name == "total_ns" else f"{format_count(n)} {name.replace('_', ' ')}"
