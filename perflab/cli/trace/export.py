"""`perflab trace export`: a trace as files, for other tools and for a reader of one's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.trace.common import AsJson, Paths, Threads, opened, write_json
from perflab.errors import BadInput
from perflab.option import one_of
from perflab.units import format_count, format_time

_TABLES = ("csv", "parquet")
_FILES = ("perfetto", "folded", "flamegraph")


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
            help=f"{', '.join(_FILES)}, {' or '.join(_TABLES)}.",
            autocompletion=one_of((*_FILES, *_TABLES)),
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
    if format_ not in (*_FILES, *_TABLES):
        raise BadInput(f"--format {format_!r} is not one of {', '.join((*_FILES, *_TABLES))}")
    if wall and format_ not in ("folded", "flamegraph"):
        raise BadInput("--wall is for --format folded and flamegraph; the others have both times")
    if format_ in _FILES:
        return _file(paths, output, format_, wall=wall, force=force, as_json=as_json, threads=threads)
    return _tables(paths, output, format_, force=force, as_json=as_json, threads=threads)


def _file(
    paths: list[Path], output: Path, format_: str, *, wall: bool, force: bool, as_json: bool, threads: int
) -> int:
    from perflab.trace.export_file import check_file, export_file

    check_file(output, force=force)
    counts = export_file(opened(paths, threads), output, format_, force=force, wall=wall)
    if as_json:
        write_json({"file": str(output), "format": format_, "counts": counts})
        return 0
    sys.stdout.write(f"{output}\n")
    sys.stdout.write(f"{', '.join(_said(name, n) for name, n in counts.items() if n)}\n")
    return 0


def _said(name: str, n: int) -> str:
    if name == "total_ns":
        return format_time(n)
    return f"{format_count(n)} {name.replace('_', ' ')}"


def _tables(paths: list[Path], output: Path, format_: str, *, force: bool, as_json: bool, threads: int) -> int:
    from perflab.trace import export as exporter

    exporter.check(output, force=force)

    def wrote(path: Path) -> None:
        if not as_json:
            sys.stdout.write(f"{path}\n")

    index = exporter.export(opened(paths, threads), output, format_, force=force, wrote=wrote)
    if as_json:
        write_json({"directory": str(output), **{key: index[key] for key in ("format", "paths", "files")}})
    return 0
