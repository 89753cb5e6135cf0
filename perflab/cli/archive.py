"""`perflab archive`: packs a run into one file, checks the file, and unpacks it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.options import complete_run
from perflab.errors import BadInput
from perflab.output import write_json
from perflab.phases import phase
from perflab.units import format_bytes, format_count

if TYPE_CHECKING:
    from perflab.experiment.archive import Archive


def archive(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A run directory, or its name in runs/.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", help="Read an archive and verify every checksum in it.")
    ] = None,
    extract: Annotated[
        Path | None, typer.Option("--extract", metavar="FILE", help="Unpack an archive into a run directory.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Where to write the archive, .tar.gz or .tar.xz, default <run>.tar.gz here; with --extract the "
            "run directory, default the run's name here.",
        ),
    ] = None,
    without_records: Annotated[
        bool,
        typer.Option("--without-records", help="Leave out processes/*.jsonl; the summary and tables remain."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> int:
    """Pack a run into one file, check such a file, or unpack it.

    The same run always gives the same bytes; the file is read back and verified before it gets its final name.
    """
    from perflab.experiment import archive as archives

    if sum(word is not None for word in (run, check, extract)) != 1:
        raise BadInput("choose one action: `perflab archive RUN`, `--check FILE` or `--extract FILE`")
    if without_records and run is None:
        raise BadInput("--without-records applies only when an archive is written: `perflab archive RUN`")
    if check is not None:
        if output is not None:
            raise BadInput("--check writes nothing: leave out --output")
        with phase(f"checking {check}"):
            checked = archives.check(check)
        _print(checked, "all checksums match", as_json)
    elif extract is not None:
        with phase(f"unpacking {extract}"):
            done = archives.extract(extract, output)
        _print(done, f"show it: perflab show {shlex.quote(done.path)}", as_json)
    elif run is not None:
        with phase(f"packing {run}"):
            written = _write(run, output, not without_records)
        _print(written, "read back, all checksums match", as_json)
    return 0


def _write(word: str, output: Path | None, with_records: bool) -> Archive:
    from perflab.experiment import archive as archives
    from perflab.host import Host
    from perflab.runs import rundir
    from perflab.runs.controller import RUNNING, controller_state

    directory = rundir.open_run(word)
    if controller_state(directory.read_manifest(), Host()) == RUNNING:
        raise BadInput(f"{directory.path} is still running; archive it when it has ended")
    target = output if output is not None else Path(f"{directory.path.resolve().name}{archives.SUFFIXES[0]}")
    return archives.write(directory, target, with_records=with_records)


def _print(archive_: Archive, words: str, as_json: bool) -> None:
    if as_json:
        write_json(archive_.document())
        return
    files = f"{format_count(archive_.files)} files, {format_bytes(archive_.bytes)}"
    sys.stdout.write(f"{archive_.path}: run {archive_.run}, {files}; {words}\n")
