"""`perflab inventory`: hardware and software of this machine, or of a run; and what two of them differ in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.options import complete_run
from perflab.errors import BadInput
from perflab.formats import json_file
from perflab.option import one_of
from perflab.output import console
from perflab.report import whole_file

if TYPE_CHECKING:
    from perflab.middleware import Middleware
    from perflab.report.inventory import Row

Json = dict[str, Any]

FORMATS = ("table", "json", "latex", "markdown")
WIDTH = 80  # of a table in a file


def inventory(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN [RUN]]",
            help="A run directory, or its name in runs/; default this machine. Of two: what differs and matters.",
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
    """Say on what and with what measurements are made here, or were made in a run.

    Example: perflab inventory RUN --format latex --output machine.tex

    Example: perflab inventory RUN ANOTHER_RUN
    """
    words = run or []
    chosen = _format(fmt, as_json)
    if len(words) > 2:
        raise BadInput(f"perflab inventory takes one run, or two to compare, not {len(words)}")
    if len(words) == 2:
        if chosen not in ("table", "json"):
            raise BadInput(f"--format {chosen} is of one inventory; what two differ in is text, or --json")
        text = _compared(words[0], words[1], chosen)
    else:
        document = _of_run(words[0]) if words else _of_this_machine()
        if output is None and chosen == "table":
            _print(document)
            return 0
        text = _MAKERS[chosen](document)
    if output is None:
        sys.stdout.write(text)
    else:
        whole_file.write(output, text)
    return 0


def _format(fmt: str | None, as_json: bool) -> str:
    if fmt is not None and fmt not in FORMATS:
        raise BadInput(f"--format {fmt!r} is not one of {', '.join(FORMATS)}")
    if as_json and fmt not in (None, "json"):
        raise BadInput(f"--json does not go with --format {fmt}")
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
        except Unavailable:  # what is missing is doctor's to say
            continue
    return take(Host(), native, middlewares)


def _of_run(word: str) -> Json:
    from perflab.runs import rundir

    directory = rundir.open_run(word)
    manifest = json_file.read_json(directory.manifest)
    # Of a run from before there were inventories there is what it knows of its host.
    found = manifest.get("inventory") or manifest.get("host")
    if not isinstance(found, dict) or not found:
        raise BadInput(f"run {word!r} has no inventory in {directory.manifest}")
    return found


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
        return "Nothing differs that matters for measurements, of what is known of both.\n"
    return "".join(f"{line}\n" for line in lines)


# -- formats ---------------------------------------------------------------------------------------------------------


def _rows(document: Json) -> Sequence[Row]:
    from perflab.errors import DAMAGE
    from perflab.report.inventory import rows

    try:
        return rows(document)
    except DAMAGE as error:
        raise BadInput(f"the inventory is damaged: {type(error).__name__}: {error}") from error


def _print(document: Json) -> None:
    _table(console(), _rows(document))


def _table(out: Any, rows: Sequence[Row]) -> None:
    """Two columns for each section; long values go on in the next line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    width = max(len(row.label) for row in rows)
    for section in dict.fromkeys(row.section for row in rows):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        table.add_column(section, width=width, no_wrap=True)
        table.add_column("", overflow="fold")
        for row in rows:
            if row.section == section:
                table.add_row(Text(row.label), Text(row.text, "" if row.value is not None else "dim"))
        out.print(table)
        out.print()


def _as_table(document: Json) -> str:
    import io

    from perflab.output import plain_console

    target = io.StringIO()
    _table(plain_console(target, WIDTH), _rows(document))
    return "".join(f"{line.rstrip()}\n" for line in target.getvalue().splitlines())


def _as_json(document: Json) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _as_latex(document: Json) -> str:
    from perflab.report.latex import table_file
    from perflab.report.latex.machine import machine

    _rows(document)
    return table_file(machine(document, "tab:perflab-machine"))


def _as_markdown(document: Json) -> str:
    from perflab.report.inventory import markdown

    return markdown(_rows(document))


_MAKERS: dict[str, Callable[[Json], str]] = {
    "table": _as_table,
    "json": _as_json,
    "latex": _as_latex,
    "markdown": _as_markdown,
}
