"""`perflab trace export`: everything that a trace becomes, as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.trace.common import AsJson, Paths, Threads, opened, write_json
from perflab.errors import BadInput

_FORMATS = ("csv", "parquet")


def export(
    paths: Paths,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to.", show_default=False)],
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="csv or parquet.")] = "csv",
    force: Annotated[bool, typer.Option("--force", help="Also into a folder that is not empty.")] = False,
    as_json: AsJson = False,
    threads: Threads = 0,
) -> int:
    """Write all tables of a trace, and every section of all answers, one file each; index.json says what there is.

    \b
        perflab trace export ~/.ros/tracing/session --output tables --format parquet
    """
    from perflab.trace import export as exporter

    if format_ not in _FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(_FORMATS)}")
    exporter.check(output, force=force)

    def wrote(path: Path) -> None:
        if not as_json:
            sys.stdout.write(f"{path}\n")

    index = exporter.export(opened(paths, threads), output, format_, force=force, wrote=wrote)
    if as_json:
        write_json({"directory": str(output), **{key: index[key] for key in ("format", "paths", "files")}})
    return 0
