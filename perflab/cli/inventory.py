"""`perflab inventory`: hardware and software of this machine, or of a run, or the differences between two runs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.options import complete_run
from perflab.errors import BadInput
from perflab.option import one_of
from perflab.output import console
from perflab.phases import phase
from perflab.report import whole_file

if TYPE_CHECKING:
    from perflab.middleware import Middleware

Json = dict[str, Any]

FORMATS = ("table", "json", "latex", "markdown")
WIDTH = 80  # a table within a file


def inventory(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN [RUN]]",
            help="A run directory, or its name in runs/; default this machine. With two runs: the differences "
            "that matter.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    fmt: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="table|json|latex|markdown",
            help="Default table.",
            autocompletion=one_of(FORMATS),
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default stdout.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> int:
    """Show the hardware and software that this machine has, or that a run was measured on.

    Example: perflab inventory RUN --format latex --output machine.tex

    Example: perflab inventory RUN ANOTHER_RUN
    """
    words = run or []
    chosen = _format(fmt, as_json)
    if len(words) > 2:
        raise BadInput(f"perflab inventory takes one run, or two to compare, not {len(words)}")
    if len(words) == 2:
        if chosen not in ("table", "json"):
            raise BadInput(f"--format {chosen} is for one inventory; a comparison of two is text, or --json")
        text = _compared(words[0], words[1], chosen)
    else:
        text = _of_one(_of_run(words[0]) if words else _of_this_machine(), chosen, output)
    if output is None:
        sys.stdout.write(text)
    else:
        whole_file.write(output, text)
    return 0


def _format(fmt: str | None, as_json: bool) -> str:
    if fmt is not None and fmt not in FORMATS:
        raise BadInput(f"--format {fmt!r} is not one of {', '.join(FORMATS)}")
    if as_json and fmt not in (None, "json"):
        raise BadInput(f"--json excludes --format {fmt}")
    return "json" if as_json else fmt or "table"


def _of_this_machine() -> Json:
    from perflab import native as native_programs
    from perflab.errors import Unavailable
    from perflab.experiment.inventory import inventory as take
    from perflab.host import Host
    from perflab.middleware import REGISTRY, select

    native = native_programs.find()
    middlewares: list[Middleware] = []
    for name in REGISTRY:
        try:
            middlewares += select(name, [], native)[0]
        except Unavailable:  # doctor reports what is missing
            continue
    with phase("reading this machine's inventory"):
        return take(Host(), native, middlewares)


def _of_run(word: str) -> Json:
    from perflab.report.inventory import inventory_of
    from perflab.runs import rundir

    directory = rundir.open_run(word)
    found = inventory_of(directory.read_manifest())
    if found is None:
        raise BadInput(f"run {word!r} has no inventory in {directory.manifest}")
    return dict(found)


def _compared(one: str, other: str, fmt: str) -> str:
    from perflab.errors import DAMAGE
    from perflab.experiment.inventory import difference

    documents = _of_run(one), _of_run(other)
    try:
        lines = difference(*documents)
    except DAMAGE as error:
        raise BadInput(f"the inventory of {one!r} or {other!r} is damaged: {type(error).__name__}: {error}") from error
    if fmt == "json":
        document = {"first": one, "second": other, "differences": lines}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if not lines:
        return "No known difference matters for measurements.\n"
    return "".join(f"{line}\n" for line in lines)


def _of_one(document: Json, fmt: str, output: Path | None) -> str:
    """Raises BadInput for an inventory that is damaged."""
    from perflab.errors import DAMAGE
    from perflab.output import plain_console
    from perflab.report.inventory import table
    from perflab.report.table import print_folded

    if fmt == "json":
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    try:
        found = table(document)
    except DAMAGE as error:
        raise BadInput(f"the inventory is damaged: {type(error).__name__}: {error}") from error
    if fmt == "latex":
        from perflab.report.latex import machine_file

        return machine_file(document)
    if fmt == "markdown":
        from perflab.report.tables.plain import markdown

        return markdown(found)
    if output is None:
        print_folded(console(), found)
        return ""
    target = io.StringIO()
    print_folded(plain_console(target, WIDTH), found)
    return "".join(f"{line.rstrip()}\n" for line in target.getvalue().splitlines())
